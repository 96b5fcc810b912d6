//! `recto run` as a process of its own, with a provider on this machine.

mod killed; // the command or the program ends in the middle
mod models; // a model over HTTP
pub(crate) mod programs; // Claude Code and Codex themselves
mod remembered; // a provider that keeps the history
mod stand_ins; // programs that don't do what they should

use crate::run::{Folder, Ran, TODAY};
use recto_testkit::fake::{Exchange, Reply, Server, Settings};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// What nobody may ever see.
const KEY: &str = "sk-test-0123456789";
/// Fields of requests that repeat names of sessions.
const NOT_READ: [&str; 3] = ["metadata", "client_metadata", "prompt_cache_key"];
/// Where models are asked.
const CALLS: [&str; 3] = ["/v1/messages", "/v1/responses", "/v1/chat/completions"];

/// A home, a folder to work in, a configuration, a store and a provider.
pub(crate) struct Place {
    pub(crate) folder: Folder,
    pub(crate) server: Server,
}

impl Place {
    /// Returns one whose configuration sends all models to the provider.
    fn new() -> Place {
        Place::with("")
    }

    /// Returns one with more lines for the provider of the Responses API.
    fn with(more: &str) -> Place {
        let server = Server::with(Settings { api_key: Some(KEY.into()), ..Settings::default() });
        let place = Place { folder: Folder::new(), server };
        for name in ["home", "work"] {
            fs::create_dir(place.folder.path.join(name)).unwrap();
        }
        let (url, rest) = (place.server.url(), "key_env = 'OPENAI_FAKE_KEY'\nretries = 0");
        place.configure(&format!(
            "[upstream.anthropic]\nurl = '{url}'\n{rest}\n[upstream.openai]\nurl = '{url}/v1'\n{rest}\n{more}\n\
             [upstream.chat]\nurl = '{url}/v1'\nwire = 'openai_chat'\nmodels = ['gpt-4o']\n{rest}\n"
        ));
        place
    }

    fn configure(&self, text: &str) {
        self.folder.file("recto.toml", text);
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recto"));
        let home = self.folder.at("home");
        command.args(args).current_dir(self.folder.path.join("work")).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HOME", &home).env("CODEX_HOME", &home).env("RECTO_TODAY", TODAY);
        command.env("RECTO_CONFIG", self.folder.at("recto.toml")).env("RECTO_STORE", self.folder.at("kept.db"));
        command.env("OPENAI_FAKE_KEY", KEY).env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", self.server.url());
        command.env("CLAUDE_CODE_MAX_RETRIES", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command; the key must not be heard of.
    #[track_caller]
    fn run(&self, args: &[&str]) -> Ran {
        checked(self.command(args).output().unwrap().into())
    }

    #[track_caller]
    fn run_reading(&self, stdin: &str, args: &[&str]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        checked(child.wait_with_output().unwrap().into())
    }

    /// Says something and hears an answer.
    #[track_caller]
    pub(crate) fn says(&self, with: &str, words: &str, answer: &str, more: &[&str]) -> Ran {
        self.server.push(Reply::default().text(answer));
        let ran = self.run(&[&["run", "--with", with, "talk", words], more].concat());
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
        ran
    }

    /// The same, and what `--json` tells of it.
    #[track_caller]
    fn told(&self, with: &str, words: &str, answer: &str) -> Value {
        serde_json::from_str(&self.says(with, words, answer, &["--json"]).stdout).unwrap()
    }

    /// Starts to say something.
    fn begins(&self, with: &str, words: &str) -> Child {
        self.command(&["run", "--with", with, "talk", words]).spawn().unwrap()
    }

    /// All model calls so far.
    fn calls(&self) -> Vec<Exchange> {
        let is_call = |it: &Exchange| CALLS.contains(&it.request.path.split('?').next().unwrap_or_default());
        self.server.log().into_iter().filter(is_call).collect()
    }

    /// The body of the last model call.
    fn last_body(&self) -> Value {
        self.calls().pop().expect("a call").request.json()
    }

    /// Everything that is kept of the conversation.
    fn kept(&self) -> Value {
        let ran = self.run(&["show", "talk", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Each of these stands once in the last request and in the store.
    #[track_caller]
    fn assert_once(&self, all: &[&str]) {
        let (last, kept) = (self.last_body(), self.kept());
        for mark in all {
            assert_eq!((count(&last, mark), count(&kept, mark)), (1, 1), "{mark}: {last:#}\n{kept:#}");
        }
    }
}

#[track_caller]
fn checked(ran: Ran) -> Ran {
    let is_heard = |text: &str| text.contains(KEY);
    assert!(!is_heard(&ran.stdout) && !is_heard(&ran.stderr), "the key was printed: {}{}", ran.stdout, ran.stderr);
    ran
}

/// How often a text stands in a request, or in whatever else is JSON.
fn count(value: &Value, text: &str) -> usize {
    match value {
        Value::String(it) => it.matches(text).count(),
        Value::Array(list) => list.iter().map(|it| count(it, text)).sum(),
        Value::Object(fields) => {
            let read = fields.iter().filter(|(name, _)| !NOT_READ.contains(&name.as_str()));
            read.map(|(_, it)| count(it, text)).sum()
        }
        _ => 0,
    }
}
