//! Programs that keep conversations of their own, as the user wants them run.

use super::{Config, Set};
use std::path::PathBuf;
use std::time::Duration;

/// The programs that there are.
pub(super) const PROGRAMS: [&str; 2] = ["claude_code", "codex"];

const TURN_LIMIT: Duration = Duration::from_secs(3_600);
const SILENCE_LIMIT: Duration = Duration::from_secs(900);

/// What is said about one program.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramLayer {
    pub(crate) path: Option<Set<String>>,
    pub(crate) model: Option<Set<String>>,
    pub(crate) arguments: Option<Set<Vec<String>>>,
    pub(crate) turn_limit_seconds: Option<Set<u32>>,
    pub(crate) silence_limit_seconds: Option<Set<u32>>,
}

/// How a program is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramSettings {
    /// Its file; without one it is looked for.
    pub(crate) path: Option<PathBuf>,
    /// The model that it is to ask; without one, its own choice.
    pub(crate) model: Option<String>,
    /// Arguments that come before all others.
    pub(crate) arguments: Vec<String>,
    /// How long a turn may take in all.
    pub(crate) turn_limit: Duration,
    /// How long a turn may go without a sign of life.
    pub(crate) silence_limit: Duration,
}

impl ProgramLayer {
    /// Returns what holds when this layer lies over another.
    pub(super) fn over(self, lower: ProgramLayer) -> ProgramLayer {
        ProgramLayer {
            path: self.path.or(lower.path),
            model: self.model.or(lower.model),
            arguments: self.arguments.or(lower.arguments),
            turn_limit_seconds: self.turn_limit_seconds.or(lower.turn_limit_seconds),
            silence_limit_seconds: self.silence_limit_seconds.or(lower.silence_limit_seconds),
        }
    }
}

impl Config {
    /// Returns how a program is to be run: `claude_code` or `codex`.
    pub(crate) fn program(&self, name: &str) -> ProgramSettings {
        let layer = self.layer.programs.get(name).cloned().unwrap_or_default();
        let seconds =
            |set: Option<Set<u32>>, usual: Duration| set.map_or(usual, |set| Duration::from_secs(set.value.into()));
        ProgramSettings {
            path: layer.path.map(|set| set.as_path()),
            model: layer.model.map(|set| set.value),
            arguments: layer.arguments.map(|set| set.value).unwrap_or_default(),
            turn_limit: seconds(layer.turn_limit_seconds, TURN_LIMIT),
            silence_limit: seconds(layer.silence_limit_seconds, SILENCE_LIMIT),
        }
    }

    /// Returns every program with how it is to be run.
    pub(crate) fn programs(&self) -> [(&'static str, ProgramSettings); 2] {
        PROGRAMS.map(|name| (name, self.program(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_program_is_run_as_the_files_say() {
        let text = "[programs.codex]\npath = 'bin/codex'\nmodel = 'gpt-5.5'\narguments = ['-c', 'a=1']\n\
                    turn_limit_seconds = 9\nsilence_limit_seconds = 8";
        let content = super::super::file::of(Path::new("work/recto.toml"), text).unwrap();
        let config = Config { layer: content.layer, ..Config::default() };
        let codex = ProgramSettings {
            path: Some("work/bin/codex".into()),
            model: Some("gpt-5.5".into()),
            arguments: vec!["-c".into(), "a=1".into()],
            turn_limit: Duration::from_secs(9),
            silence_limit: Duration::from_secs(8),
        };
        assert_eq!(config.program("codex"), codex);
        let usual = config.program("claude_code");
        assert_eq!((usual.path, usual.arguments.len(), usual.turn_limit), (None, 0, TURN_LIMIT));
    }
}
