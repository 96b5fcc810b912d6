//! No telemetry, ever: no command but `run` and `serve` opens a connection, and none works differently without a network.
#![cfg(target_os = "linux")]

use crate::manual::COMMANDS;
use crate::run::{Folder, Ran, SMALL, isolated};
use recto_testkit::shared;
use std::fs;
use std::process::Command;

const RECTO: &str = env!("CARGO_BIN_EXE_recto");

/// Every command, in a good and in a bad case.
const RUNS: [&[&str]; 66] = [
    &["compile", "chat.json"],
    &["compile", "gone.json"],
    &["explain", "chat.json", "--json"],
    &["explain", "chat.json", "--for", "unknown"],
    &["replay", "chat.json", "--pages", "-"],
    &["replay", "chat.json", "--window", "30", "--reserve", "10"],
    &["convert", "chat.json", "--to", "anthropic"],
    &["convert", "chat.json", "--to", "codex"],
    &["validate", "chat.json"],
    &["validate", "gone.json"],
    &["models"],
    &["models", "--from", "broken.toml"],
    &["demo"],
    &["config"],
    &["config", "--config", "broken.toml"],
    &["policy", "list"],
    &["policy", "check", "broken.toml"],
    &["completions", "zsh"],
    &["man"],
    &["man", "pages"],
    &["help", "R0301"],
    &["--version"],
    &["import", "chat.json", "--store", "kept.db"],
    &["import", "gone.json", "--store", "kept.db"],
    &["list", "--store", "kept.db"],
    &["list", "--store", "gone.db"],
    &["show", "chat", "--store", "kept.db"],
    &["show", "chat", "m99", "--store", "kept.db"],
    &["search", "hello", "chat", "--store", "kept.db"],
    &["search", "hello", "--store", "kept.db"],
    &["search", "hello", "gone", "--store", "kept.db"],
    // Nothing is said on stdin.
    &["mcp", "--store", "kept.db"],
    &["mcp", "--store", "gone.db"],
    &["turns", "chat", "--store", "kept.db"],
    &["turns", "gone", "--store", "kept.db"],
    &["compile", "chat", "--store", "kept.db"],
    &["explain", "gone", "--store", "kept.db"],
    &["expand", "chat", "m0", "--store", "kept.db"],
    &["expand", "chat", "?", "--store", "kept.db"],
    // Nobody is named who makes summaries.
    &["summarize", "chat", "--store", "kept.db"],
    &["summarize", "gone", "--store", "kept.db"],
    &["pin", "chat", "1-2", "--store", "kept.db"],
    &["pin", "chat", "1-99", "--store", "kept.db"],
    &["decisions", "chat", "--store", "kept.db"],
    &["decisions", "gone", "--store", "kept.db"],
    &["revert", "chat", "1", "--store", "kept.db"],
    &["revert", "chat", "9", "--store", "kept.db"],
    &["fork", "chat", "other", "--store", "kept.db"],
    &["fork", "chat", "other", "--store", "kept.db"],
    &["export", "--all", "-o", "exports", "--store", "kept.db"],
    &["export", "gone", "--store", "kept.db"],
    &["erase", "other", "--yes", "--store", "kept.db"],
    &["erase", "chat", "--store", "kept.db"],
    &["backup", "copy.db", "--store", "kept.db"],
    &["backup", "copy.db", "--store", "kept.db"],
    &["restore", "copy.db", "--store", "again.db"],
    &["restore", "copy.db", "--store", "again.db"],
    &["doctor", "--store", "kept.db"],
    // What goes elsewhere than to a database goes nowhere.
    &["migrate", "--from", "kept.db", "--to", "other.db"],
    &["migrate", "--from", "sqlite:gone.db", "--to", "postgres://127.0.0.1:1/recto"],
    &["keys", "add", "own", "--store", "keys.db"],
    &["keys", "list", "--store", "keys.db"],
    &["keys", "revoke", "own", "--store", "keys.db"],
    &["keys", "revoke", "own", "--store", "keys.db"],
    // What it is told before it listens; once it does, connections are its purpose.
    &["serve", "--listen", "0.0.0.0:0", "--store", "kept.db"],
    // Nobody answers for this model, so there is nobody to reach.
    &["run", "--with", "nobody", "chat", "Hi", "--store", "kept.db"],
];

#[test]
fn every_command_works_the_same_without_a_network() {
    for command in COMMANDS {
        assert!(RUNS.iter().any(|args| args[0] == command), "{command} is not run");
    }
    let alone = isolated(Command::new("unshare")).args(["-rn", "true"]).output();
    if !alone.is_ok_and(|output| output.status.success()) {
        return shared::skipped("commands without a network: `unshare -rn` is not there (util-linux) or not permitted");
    }
    let without = || {
        let mut command = isolated(Command::new("unshare"));
        command.args(["-rn", RECTO]);
        command
    };
    let folder = Folder::new();
    let (without, with) = (all(&folder, without), all(&folder, || isolated(Command::new(RECTO))));
    for (args, (without, with)) in RUNS.iter().zip(without.into_iter().zip(with)) {
        assert_eq!(without, with, "{args:?}");
    }
}

/// Runs everything in a folder where nothing was run before, so that each time the store is as new.
fn all(folder: &Folder, command: impl Fn() -> Command) -> Vec<(Option<i32>, String, String)> {
    fs::remove_dir_all(&folder.path).unwrap();
    fs::create_dir(&folder.path).unwrap();
    folder.file("chat.json", SMALL);
    folder.file("broken.toml", "broken");
    let run = |args: &&[&str]| {
        let output = command().current_dir(&folder.path).args(*args).output().unwrap();
        let Ran { code, stdout, stderr } = output.into();
        // It tells what time it is.
        let tells_time = args[0] == "list" || args.starts_with(&["keys", "list"]);
        let stdout = if tells_time { stdout.replace(|c: char| c.is_ascii_digit(), "") } else { stdout };
        // A key is another each time.
        let stdout = if args.starts_with(&["keys", "add"]) { stdout[..6].into() } else { stdout };
        (code, stdout, stderr)
    };
    RUNS.iter().map(run).collect()
}

/// Working the same could be failing in silence; here the system tells what was tried.
#[test]
fn no_command_but_run_and_serve_tries_to_reach_anybody() {
    let traced = |folder: &Folder| {
        let mut command = isolated(Command::new("strace"));
        command.args(["-f", "-qq", "-A", "-e", "trace=%network", "-o", &folder.at("trace"), "--", RECTO]);
        command
    };
    let folder = Folder::new();
    if !traced(&folder).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return shared::skipped("who opens connections: `strace` is not there or not permitted");
    }
    all(&folder, || traced(&folder));
    let trace = fs::read_to_string(folder.at("trace")).unwrap();
    // A pair of sockets reaches nobody but the process itself; signals are told over one.
    let is_harmless = |line: &str| line.contains("socketpair(AF_UNIX") || line.contains("--- SIG");
    let tried: Vec<&str> = trace.lines().filter(|line| !is_harmless(line)).collect();
    assert_eq!(tried, [""; 0]);

    // What the trace would show: a run that has somebody to reach.
    let config = "[upstream.far]\nurl = 'http://127.0.0.1:1'\nwire = 'openai_chat'\nmodels = ['llama']\nretries = 0\n";
    folder.file("far.toml", config);
    let mut run = traced(&folder);
    run.args(["run", "--with", "llama", "talk", "Hi", "--store", "kept.db", "--config", "far.toml"]);
    assert_eq!(run.current_dir(&folder.path).output().unwrap().status.code(), Some(1));
    let trace = fs::read_to_string(folder.at("trace")).unwrap();
    assert!(trace.contains("connect("), "{trace}");
}
