//! A program with a home of its own, a provider on this machine, and an engine.

use crate::folder::TempFolder;
use recto::entry::{Entry, Part, Piece, Text};
use recto::fragment::Fragment;
use recto::page::Message;
use recto::target::Instructions;
use recto::{Policy, Role, Seq, Target, Tokens};
use recto_engine::drive::claude_code::ClaudeCode;
use recto_engine::drive::codex::Codex;
use recto_engine::drive::{Driver, Heard, Settings, Turn};
use recto_engine::engine::Driven;
use recto_engine::session::Sending;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{At, Call, Engine, Error, Opening, Remembering, Tenant};
use recto_testkit::fake::{Reply, Server};
use recto_testkit::shared::skipped;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(120);
/// Fields of requests that repeat names of sessions.
const NOT_READ: [&str; 3] = ["metadata", "client_metadata", "prompt_cache_key"];
/// How words begin that are looked for.
const MARKS: [&str; 4] = ["WORDS-", "ANSWER-", "CALLED-", "FOUND-"];

/// The programs that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    ClaudeCode,
    Codex,
}

impl Program {
    pub(super) const ALL: [Program; 2] = [Program::ClaudeCode, Program::Codex];

    fn variable(self) -> &'static str {
        match self {
            Program::ClaudeCode => "RECTO_CLAUDE_CODE",
            Program::Codex => "RECTO_CODEX",
        }
    }

    /// Returns where the program is, or says loudly that a test is skipped.
    pub(super) fn path(self, test: &str) -> Option<PathBuf> {
        let path = std::env::var_os(self.variable()).map(PathBuf::from);
        if path.is_none() {
            skipped(&format!("{test}: no {self:?} (set {} to its native program)", self.variable()));
        }
        path
    }

    /// Returns the program with a home of its own that knows only this provider.
    pub(super) fn driver(self, path: PathBuf, home: &Path, url: &str) -> Driver {
        std::fs::create_dir_all(home).unwrap();
        let home_text = home.to_str().unwrap().to_string();
        let mut pairs = vec![("PATH", "/usr/bin:/bin".to_string()), ("HOME", home_text.clone())];
        let settings = |pairs: Vec<(&str, String)>, arguments: &[&str], model: Option<Text>| Settings {
            program: Some(path.clone()),
            environment: pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            model,
            arguments: arguments.iter().map(|it| it.to_string()).collect(),
            turn_limit: LIMIT,
            silence_limit: LIMIT,
        };
        match self {
            Program::ClaudeCode => {
                pairs.extend([
                    ("ANTHROPIC_API_KEY", "sk-test".to_string()),
                    ("ANTHROPIC_BASE_URL", url.to_string()),
                    ("CLAUDE_CODE_MAX_RETRIES", "0".to_string()),
                ]);
                let arguments = ["--allowedTools", "Bash(echo *)"];
                Driver::ClaudeCode(ClaudeCode::new(settings(pairs, &arguments, Some("claude-sonnet-4-5".into()))))
            }
            Program::Codex => {
                let config = format!(
                    "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\napproval_policy = \"never\"\n\
                     web_search = \"disabled\"\n[features]\nplugins = false\napps = false\n\
                     [model_providers.fake]\nname = \"fake\"\nbase_url = \"{url}/v1\"\nenv_key = \"FAKE_KEY\"\n\
                     wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n"
                );
                std::fs::write(home.join("config.toml"), config).unwrap();
                pairs.extend([("CODEX_HOME", home_text), ("FAKE_KEY", "sk-test".to_string())]);
                Driver::Codex(Codex::new(settings(pairs, &[], None)))
            }
        }
    }
}

/// Everything that a test needs.
pub(super) struct Lab {
    pub(super) program: Program,
    pub(super) folder: TempFolder,
    pub(super) server: Server,
    pub(super) driver: Driver,
    pub(super) engine: Engine<Sqlite>,
    pub(super) at: At,
}

impl Lab {
    /// Returns `None` after it said loudly that the program is not there.
    pub(super) fn new(program: Program, test: &str) -> Option<Lab> {
        let path = program.path(test)?;
        let (folder, server) = (TempFolder::new(), Server::start());
        for name in ["work", "elsewhere"] {
            std::fs::create_dir(folder.file(name)).unwrap();
        }
        let driver = program.driver(path, &folder.file("home"), &server.url());
        let engine = Engine::over(Sqlite::open(folder.file("kept.db")).unwrap());
        let at = At::new(&Tenant::default(), "talk");
        crate::engine::block_on(engine.open(&at, Opening::default())).unwrap();
        Some(Lab { program, folder, server, driver, engine, at })
    }

    /// A call with one lasting and, if there is any, one passing instruction.
    pub(super) fn call(&self, words: &str, todo: &str) -> Call {
        let target = match self.program {
            Program::ClaudeCode => Target::named("claude-haiku-4-5"),
            Program::Codex => Target::named("gpt-5.5"),
        };
        let mut fragments = vec![Fragment::fixed("identity", "IDENTITY. You help.")];
        fragments.extend((!todo.is_empty()).then(|| Fragment::dynamic("todo", todo)));
        let input = (!words.is_empty()).then(|| Entry::user(words));
        Call { fragments, input, ..Call::new("main", Policy::usual(), target.expect("built in")) }
    }

    pub(super) async fn say(&self, words: &str, todo: &str) -> Result<Driven, Error> {
        self.say_in("work", words, todo).await
    }

    pub(super) async fn say_in(&self, folder: &str, words: &str, todo: &str) -> Result<Driven, Error> {
        let call = self.call(words, todo);
        self.engine.drive(&self.at, &self.driver, call, &self.folder.file(folder), &mut |_| ()).await
    }

    /// What a person does who uses the program without Recto.
    pub(super) async fn by_hand(&self, session: &Text, words: &str) {
        let said = [message(words)];
        let name = "11111111-2222-4333-8444-555555555555";
        let turn = Turn {
            session: Some(session),
            new_session: name,
            mark: None,
            rewind_to: None,
            message: name,
            instructions: "IDENTITY.",
            said: &said,
            workspace: &self.folder.file("work"),
        };
        let ran = self.driver.turn(turn, &mut |_: Heard| ()).await;
        ran.map_err(|failed| format!("{failed:?}")).expect("a good turn");
    }

    /// A turn that the program does, and of which nobody records that it has ended.
    pub(super) async fn forgotten_turn(&self, words: &str) {
        let work = self.folder.file("work").canonicalize().unwrap();
        let provider = self.driver.provider();
        let call = self.call(words, "");
        let session = Remembering::new(provider, work.to_str().unwrap(), Duration::ZERO);
        let target = call.target.clone().remembering(Instructions::Replaced);
        let call = Call { session: Some(session), target, ..call };
        let compiled = self.engine.compile(&self.at, &call).await.unwrap();
        let held = self.engine.session(&self.at, &"main".into(), provider).await.unwrap().unwrap();
        let name = "99999999-2222-4333-8444-555555555555";
        let sending = Sending { session: None, message: Some(name.into()), mark: None };
        self.engine.sending(&self.at, &compiled.receipt.ticket, provider, sending).await.unwrap();
        let turn = Turn {
            session: held.id.as_ref(),
            new_session: name,
            mark: held.mark.as_deref(),
            rewind_to: None,
            message: name,
            instructions: "IDENTITY.",
            said: &[message(words)],
            workspace: &work,
        };
        let ran = self.driver.turn(turn, &mut |_: Heard| ()).await;
        ran.map_err(|failed| format!("{failed:?}")).expect("a good turn");
    }

    /// The program, but for one thing: it knows no session, whatever is written for it.
    pub(super) fn refusing_to_resume(&self) -> Driver {
        let settings = self.driver.settings().clone();
        let real = settings.program.as_ref().unwrap().to_str().unwrap().to_string();
        let (word, what) = match self.program {
            Program::ClaudeCode => ("--resume", "No conversation found with session ID: it"),
            Program::Codex => ("resume", "Error: no rollout found for thread id it"),
        };
        let script = format!(
            "#!/bin/sh\nfor it in \"$@\"; do if [ \"$it\" = {word} ]; then echo '{what}' >&2; exit 1; fi; done\n\
             exec '{real}' \"$@\"\n"
        );
        let path = self.folder.file("refusing");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let settings = Settings { program: Some(path), ..settings };
        match self.program {
            Program::ClaudeCode => Driver::ClaudeCode(ClaudeCode::new(settings)),
            Program::Codex => Driver::Codex(Codex::new(settings)),
        }
    }

    /// An answer that runs a command.
    pub(super) fn calling(&self, command: &str) -> Reply {
        let arguments = match self.program {
            Program::ClaudeCode => serde_json::json!({"command": command, "description": "say it"}),
            Program::Codex => serde_json::json!({"cmd": command}),
        };
        let name = if self.program == Program::ClaudeCode { "Bash" } else { "exec_command" };
        Reply::default().thinking("I say it.").call(name, &arguments.to_string())
    }

    /// The bodies of all model calls so far that were taken.
    pub(super) fn bodies(&self) -> Vec<Value> {
        let log = self.server.log();
        let is_call = |path: &str| ["/v1/messages", "/v1/responses", "/v1/chat/completions"].contains(&path);
        let calls = log.iter().filter(|it| is_call(it.request.path.split('?').next().unwrap_or_default()));
        let calls = calls.inspect(|it| assert!(it.refusal.is_none(), "refused: {:?}", it.refusal));
        calls.map(|it| it.request.json()).collect()
    }

    pub(super) async fn entries(&self) -> Vec<Entry> {
        let entries = self.engine.read(&self.at, Seq(0), 1_000).await.unwrap();
        entries.iter().map(|it| it.original().clone()).collect()
    }

    /// The marks in the log, in order.
    pub(super) async fn log(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in self.entries().await {
            for part in entry.parts.iter() {
                match part {
                    Part::Text { text } => found.extend(marks(text)),
                    Part::Call(call) => found.extend(marks(call.arguments.as_str())),
                    Part::Result(result) => result.content.iter().for_each(|piece| {
                        if let Piece::Text { text } = piece {
                            found.extend(marks(text).map(|mark| mark.replace("CALLED", "FOUND")));
                        }
                    }),
                    _ => {}
                }
            }
        }
        found
    }

    pub(super) async fn acked(&self) -> Option<Seq> {
        let held = self.engine.session(&self.at, &"main".into(), self.driver.provider()).await.unwrap();
        held.and_then(|held| held.session.acked())
    }
}

pub(super) fn message(text: &str) -> Message {
    let parts = [Part::text(text)].into();
    let (cost, digest, extra) = (Tokens(0), Default::default(), Default::default());
    Message { role: Role::User, author: None, parts, seq: None, cost, digest, extra }
}

/// How often a text stands in a request.
pub(super) fn count(body: &Value, text: &str) -> usize {
    let mut all = 0;
    each_text(body, &mut |it| all += it.matches(text).count());
    all
}

/// The marks in a request, in order.
pub(super) fn markers(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let list = if body["messages"].is_array() { &body["messages"] } else { &body["input"] };
    each_text(list, &mut |text| found.extend(marks(text)));
    found
}

fn marks(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|it: char| !(it.is_ascii_alphanumeric() || "-.".contains(it)));
    words.filter(|word| word.ends_with('.') && MARKS.iter().any(|start| word.starts_with(start))).map(str::to_string)
}

fn each_text(value: &Value, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(list) => list.iter().for_each(|it| each_text(it, take)),
        Value::Object(fields) => {
            let read = fields.iter().filter(|(name, _)| !NOT_READ.contains(&name.as_str()));
            read.for_each(|(_, it)| each_text(it, take));
        }
        _ => {}
    }
}
