//! Programs that keep conversations of their own, as they are called here and run.

use crate::config::Config;
use recto_engine::drive::claude_code::ClaudeCode;
use recto_engine::drive::codex::Codex;
use recto_engine::drive::{Driver, Settings, process};

/// A program that a conversation can be carried on with.
#[derive(Debug)]
pub(crate) struct Program {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// Under which name the configuration speaks of it, and its sessions are kept.
    pub(crate) key: &'static str,
    /// The model it is taken to ask, where nobody says.
    pub(crate) usual_model: &'static str,
    /// How the variables of the environment begin that concern it.
    prefixes: &'static [&'static str],
}

/// All programs there are.
pub(crate) const PROGRAMS: [Program; 2] = [
    Program {
        name: "claude-code",
        key: "claude_code",
        usual_model: "claude-sonnet-5-5",
        prefixes: &["ANTHROPIC_", "CLAUDE_", "DISABLE_", "AWS_", "GOOGLE_", "VERTEX_", "CLOUD_ML_"],
    },
    Program { name: "codex", key: "codex", usual_model: "gpt-5.5", prefixes: &["OPENAI_", "CODEX_", "AZURE_"] },
];

impl Program {
    /// Returns how it is run, as the configuration has it; `model` wins.
    pub(crate) fn driver(&self, model: Option<&str>, config: &Config) -> Driver {
        let configured = config.program(self.key);
        let settings = Settings {
            program: configured.path,
            environment: process::usual_environment(self.prefixes),
            model: model.map(str::to_string).or(configured.model).map(Into::into),
            arguments: configured.arguments,
            turn_limit: configured.turn_limit,
            silence_limit: configured.silence_limit,
        };
        match self.key {
            "codex" => Driver::Codex(Codex::new(settings)),
            _ => Driver::ClaudeCode(ClaudeCode::new(settings)),
        }
    }

    /// Returns a model like the one that it asks, of which something is known.
    pub(crate) fn model(&self, named: Option<&str>, config: &Config) -> String {
        let named = named.map(str::to_string).or_else(|| config.program(self.key).model);
        let known = named.filter(|model| config.models.catalogue().target(model).is_some());
        known.unwrap_or_else(|| self.usual_model.to_string())
    }
}
