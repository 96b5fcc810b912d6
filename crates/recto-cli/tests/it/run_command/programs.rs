//! Claude Code and Codex themselves, as the command runs them.

use super::{KEY, Place, count};
use crate::run::mentions;
use recto_testkit::fake::Reply;
use recto_testkit::shared::skipped;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// What a program is called on the command line, and in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    ClaudeCode,
    Codex,
}

impl Program {
    pub(crate) const ALL: [Program; 2] = [Program::ClaudeCode, Program::Codex];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::ClaudeCode => "claude-code",
            Program::Codex => "codex",
        }
    }

    pub(crate) fn key(self) -> &'static str {
        match self {
            Program::ClaudeCode => "claude_code",
            Program::Codex => "codex",
        }
    }

    fn other(self) -> Program {
        if self == Program::Codex { Program::ClaudeCode } else { Program::Codex }
    }

    /// Returns where the program is, or says loudly that a test is skipped.
    pub(super) fn path(self, test: &str) -> Option<String> {
        let variable = match self {
            Program::ClaudeCode => "RECTO_CLAUDE_CODE",
            Program::Codex => "RECTO_CODEX",
        };
        let path = std::env::var(variable).ok();
        if path.is_none() {
            skipped(&format!("{test}: no {self:?} (set {variable} to its native program)"));
        }
        path
    }
}

impl Place {
    /// Has programs run from these files, with the provider as the only one that they know.
    pub(super) fn with_programs(&self, paths: &[(Program, &str)]) {
        let mut config = String::new();
        for (program, path) in paths {
            config += &format!("[programs.{}]\npath = '{path}'\n", program.key());
            if *program == Program::ClaudeCode {
                config += "model = 'claude-sonnet-4-5'\narguments = ['--allowedTools', 'Bash(echo *)']\n";
            }
        }
        self.configure(&config);
        let codex = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\napproval_policy = \"never\"\nweb_search = \"disabled\"\n\
             [features]\nplugins = false\napps = false\n[model_providers.fake]\nname = \"fake\"\n\
             base_url = \"{}/v1\"\nenv_key = \"OPENAI_FAKE_KEY\"\nwire_api = \"responses\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n",
            self.server.url()
        );
        self.folder.file("home/config.toml", codex);
    }

    /// Returns a place with both programs, or says loudly that the test is skipped.
    pub(crate) fn of_programs(test: &str) -> Option<Place> {
        let paths = Program::ALL.map(|program| program.path(test));
        let [Some(claude_code), Some(codex)] = paths else { return None };
        let place = Place::new();
        place.with_programs(&[(Program::ClaudeCode, &claude_code), (Program::Codex, &codex)]);
        Some(place)
    }
}

/// An answer that runs a command.
pub(crate) fn calling(program: Program, command: &str) -> Reply {
    let (name, arguments) = match program {
        Program::ClaudeCode => ("Bash", serde_json::json!({"command": command, "description": "say it"})),
        Program::Codex => ("exec_command", serde_json::json!({"cmd": command})),
    };
    Reply::default().thinking("I say it.").call(name, &arguments.to_string())
}

/// The file in which a program keeps a session.
fn session_file(home: &Path, session: &str) -> PathBuf {
    let mut folders = vec![home.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(&format!("{session}.jsonl")) {
                return path;
            }
        }
    }
    panic!("no file of session {session}");
}

#[test]
fn a_program_goes_on_another_takes_over_and_importing_adds_nothing() {
    for program in Program::ALL {
        let test = "a_program_goes_on_another_takes_over_and_importing_adds_nothing";
        let Some(place) = Place::of_programs(test) else { return };
        let name = program.name();
        let ran = place.says(name, "WORDS-1.", "ANSWER-1.", &["--note", "NOTE-1."]);
        assert_eq!(ran.stdout, "ANSWER-1.\n", "{name}");
        mentions(&ran.stderr, &["conversation \"talk\" begins\n", "everything was sent", "session "]);
        assert_eq!(count(&place.last_body(), "NOTE-1."), 1);

        place.server.push(calling(program, "echo CALLED-2"));
        let ran = place.says(name, "WORDS-2.", "ANSWER-2.", &["--note", "NOTE-2."]);
        assert_eq!(ran.stdout, "ANSWER-2.\n", "{name}: what it does is no part of the answer");
        mentions(&ran.stderr, &["calls ", "echo CALLED-2", "came back: ", "only what is new was sent; "]);
        place.assert_once(&["WORDS-1.", "ANSWER-1.", "WORDS-2."]);
        assert_eq!(["NOTE-1.", "NOTE-2."].map(|note| count(&place.last_body(), note)), [0, 1]);

        let told = place.told(program.other().name(), "WORDS-3.", "ANSWER-3.");
        assert_eq!((&told["how"], &told["mode"], &told["text"]), (&"told".into(), &"full".into(), &"ANSWER-3.".into()));
        place.assert_once(&["WORDS-1.", "ANSWER-1.", "WORDS-2.", "ANSWER-2.", "WORDS-3."]);
        assert!(count(&place.last_body(), "CALLED-2") > 0, "what was called is told, too");

        let back = place.told(name, "WORDS-4.", "ANSWER-4.");
        let all = ["WORDS-1.", "ANSWER-1.", "WORDS-2.", "ANSWER-2.", "WORDS-3.", "ANSWER-3.", "WORDS-4."];
        place.assert_once(&all);
        for session in [&told["session"], &back["session"]] {
            let file = session_file(&place.folder.path.join("home"), session.as_str().unwrap());
            let ran = place.run(&["import", file.to_str().unwrap(), "--json"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let report: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(
                (&report["imported"][0]["conversation"], &report["imported"][0]["added"]),
                (&"talk".into(), &0.into())
            );
            mentions(&ran.stderr, &[" carries on \"talk\""]);
        }
        assert_eq!(place.run(&["list", "--json"]).stdout.lines().count(), 1, "no other conversation came of it");
        place.assert_once(&all);
        let turns = place.run(&["turns", "talk"]).stdout;
        assert_eq!(turns.lines().count(), 5, "{turns}");
        assert!(!fs::read_to_string(place.folder.at("recto.toml")).unwrap().contains(KEY));
    }
}

#[test]
fn what_was_said_in_the_program_itself_is_imported_once() {
    for program in Program::ALL {
        let Some(place) = Place::of_programs("what_was_said_in_the_program_itself_is_imported_once") else { return };
        let told = place.told(program.name(), "WORDS-1.", "ANSWER-1.");
        let session = told["session"].as_str().unwrap();
        place.server.push(Reply::default().text("ANSWER-2."));
        let path = program.path("").unwrap();
        let args: &[&str] = match program {
            Program::ClaudeCode => &["-p", "--model", "claude-sonnet-4-5", "--resume", session, "WORDS-2."],
            Program::Codex => &["exec", "--skip-git-repo-check", "resume", session, "WORDS-2."],
        };
        // As the user runs it, without Recto.
        let template = place.command(&[]);
        let mut by_hand = std::process::Command::new(path);
        by_hand.args(args).current_dir(place.folder.path.join("work")).env_clear();
        by_hand.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = by_hand.stdin(std::process::Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = session_file(&place.folder.path.join("home"), session);
        for added in [2, 0] {
            let ran = place.run(&["import", file.to_str().unwrap(), "--json"]);
            let report: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(report["imported"][0]["added"], added, "{}", ran.stderr);
        }
        place.says(program.name(), "WORDS-3.", "ANSWER-3.", &[]);
        place.assert_once(&["WORDS-1.", "ANSWER-1.", "WORDS-2.", "ANSWER-2.", "WORDS-3."]);
        // Where the program's own file is gone, a copy is kept by itself, and nobody is told that it was added.
        let copy = place.folder.path.join("copy.jsonl");
        fs::rename(&file, &copy).unwrap();
        let ran = place.run(&["import", copy.to_str().unwrap(), "--json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["imported"][0]["conversation"], session, "{}", ran.stderr);
        assert!(ran.stderr.contains("its own file is not here"), "{}", ran.stderr);
        fs::rename(&copy, &file).unwrap();
        let told = place.told(program.name(), "WORDS-4.", "ANSWER-4.");
        assert_eq!((&told["mode"], &told["session"]), (&"delta".into(), &session.into()), "{told}");
    }
}
