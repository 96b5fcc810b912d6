//! Claude Code and Codex themselves, pointed at the gateway: three turns with tools, the second and third resumed by
//! another process.

use super::said::{Said, repeated};
use super::world::{Between, World};
use crate::run::Folder;
use recto::wire::Wire;
use recto_testkit::fake::{Exchange, Reply};
use recto_testkit::shared::skipped;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

const TURNS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    ClaudeCode,
    Codex,
}

impl Program {
    pub(super) fn variable(self) -> &'static str {
        match self {
            Program::ClaudeCode => "RECTO_CLAUDE_CODE",
            Program::Codex => "RECTO_CODEX",
        }
    }

    pub(super) fn wire(self) -> Wire {
        match self {
            Program::ClaudeCode => Wire::Anthropic,
            Program::Codex => Wire::OpenaiResponses,
        }
    }

    /// An answer that runs a command.
    pub(super) fn calling(self, command: &str) -> Reply {
        self.calls(Reply::default().thinking("I say it."), command)
    }

    /// Adds a call that runs a command to an answer.
    pub(super) fn calls(self, reply: Reply, command: &str) -> Reply {
        let (name, arguments) = match self {
            Program::ClaudeCode => ("Bash", json!({"command": command, "description": "say it"})),
            Program::Codex => ("exec_command", json!({"cmd": command})),
        };
        reply.call(name, &arguments.to_string())
    }
}

/// A program with a home of its own that knows only one address.
pub(super) struct Seat<'a> {
    pub(super) program: Program,
    pub(super) path: String,
    pub(super) desk: &'a Folder,
    pub(super) home: &'a str,
    pub(super) url: String,
}

impl Seat<'_> {
    /// Says something, and returns the session and the answer.
    #[track_caller]
    pub(super) fn says(&self, session: Option<&str>, words: &str) -> (String, String) {
        let mut command = Command::new(&self.path);
        command.current_dir(self.desk.path.join("work")).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.desk.at(self.home)).stdin(Stdio::null());
        match self.program {
            Program::ClaudeCode => {
                command.env("ANTHROPIC_API_KEY", "sk-test").env("ANTHROPIC_BASE_URL", &self.url);
                command.env("CLAUDE_CODE_MAX_RETRIES", "0");
                command.args(["-p", "--model", "claude-sonnet-4-6", "--output-format", "json"]);
                command.args(["--allowedTools", "Bash(echo *)"]);
                command.args(session.map(|id| format!("--resume={id}"))).args(["--", words]);
            }
            Program::Codex => {
                command.env("CODEX_HOME", self.desk.at(self.home)).env("FAKE_KEY", "sk-test");
                command.args(["exec", "--json", "--skip-git-repo-check"]);
                command.args(session.iter().flat_map(|id| ["resume", id])).arg(words);
            }
        }
        let output = command.output().unwrap();
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
        assert!(output.status.success(), "{:?}: {stdout}{stderr}", self.program);
        self.heard(&stdout)
    }

    fn heard(&self, stdout: &str) -> (String, String) {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{stdout}")).to_owned();
        if self.program == Program::ClaudeCode {
            let result: Value = serde_json::from_str(stdout).unwrap();
            return (text(&result["session_id"]), text(&result["result"]));
        }
        let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let started = events.iter().find(|it| it["type"] == "thread.started").expect("it starts");
        let spoken = events.iter().rfind(|it| it["item"]["type"] == "agent_message").expect("it speaks");
        (text(&started["thread_id"]), text(&spoken["item"]["text"]))
    }

    pub(super) fn configure(&self) {
        let home = self.desk.path.join(self.home);
        fs::create_dir(&home).unwrap();
        let config = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\napproval_policy = \"never\"\nweb_search = \"disabled\"\n\
             [features]\nplugins = false\napps = false\n[model_providers.fake]\nname = \"fake\"\n\
             base_url = \"{}/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n",
            self.url
        );
        fs::write(home.join("config.toml"), config).unwrap();
    }
}

/// Three turns with a tool each; returns what was answered and the world in which it was.
fn three_turns(program: Program, path: &str, desk: &Folder, home: &str, between: Between) -> (Vec<String>, World) {
    let world = World::new(between);
    let seat = Seat { program, path: path.to_owned(), desk, home, url: world.url() };
    seat.configure();
    let (mut session, mut answers) = (None, Vec::new());
    for turn in 0..TURNS {
        world.fake.push(program.calling(&format!("echo CALLED-{turn}.")));
        world.fake.push(Reply::default().text(&format!("ANSWER-{turn}.")));
        let (id, answer) = seat.says(session.as_deref(), &format!("WORDS-{turn}."));
        answers.push(answer);
        session = Some(id);
    }
    (answers, world)
}

/// The tokens that the provider's cache held, call by call.
fn cached(calls: &[Exchange]) -> Vec<u64> {
    let places = ["/input_tokens_details/cached_tokens", "/cache_read_input_tokens"];
    let of = |call: &Exchange| places.iter().find_map(|place| call.usage.pointer(place)?.as_u64()).expect("usage");
    calls.iter().map(of).collect()
}

fn check(program: Program, test: &str) {
    let Ok(path) = std::env::var(program.variable()) else {
        skipped(&format!("{test}: no {program:?} (set {} to its native program)", program.variable()));
        return;
    };
    let desk = Folder::new();
    fs::create_dir(desk.path.join("work")).unwrap();
    let (direct, without) = three_turns(program, &path, &desk, "home-a", Between::Nothing);
    let (through, mut world) = three_turns(program, &path, &desk, "home-b", Between::Recto("none"));
    assert_eq!(direct, ["ANSWER-0.", "ANSWER-1.", "ANSWER-2."]);
    assert_eq!(through, direct, "it says what it says without Recto");
    let (before, calls) = (without.calls(), world.calls());
    assert_eq!((before.len(), calls.len()), (2 * TURNS, 2 * TURNS), "two model calls a turn");
    assert_eq!(cached(&calls), cached(&before), "the cache holds as much, call by call");
    assert!(cached(&calls)[1] > 0, "the cache is used at all");

    let mut expected = Said::all(program.wire(), &calls.last().expect("calls").request.json());
    expected.push(Said::Assistant("ANSWER-2.".into()));
    let kept = world.kept();
    assert_eq!(kept.len(), 1, "one conversation");
    assert_eq!(kept[0], expected, "everything once, in order");
    let is_ours = |it: &&Said| matches!(it, Said::Assistant(_) | Said::Call { .. } | Said::Result { .. });
    assert_eq!(kept[0].iter().filter(is_ours).count(), 3 * TURNS);
    let twice = repeated(&kept[0]);
    assert!(!twice.iter().any(is_ours), "{twice:#?}");
}

#[test]
fn claude_code_says_what_it_says_without_recto_and_everything_is_kept_once() {
    check(Program::ClaudeCode, "claude_code_says_what_it_says_without_recto_and_everything_is_kept_once");
}

#[test]
fn codex_says_what_it_says_without_recto_and_everything_is_kept_once() {
    check(Program::Codex, "codex_says_what_it_says_without_recto_and_everything_is_kept_once");
}
