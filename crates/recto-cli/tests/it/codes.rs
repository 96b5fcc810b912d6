//! Error codes: every example in the table is run, and says what the table says.
#![cfg(target_os = "linux")]

use crate::run::{Folder, Ran, SMALL, isolated, succeeds};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Codes that no command line brings about.
const NOT_RUN: [&str; 15] = [
    "R0104", "R0105", "R0106", "R0107", "R0108", "R0111", "R0112", "R0113", "R0117", "R0118", "R0119", "R0352",
    "R0370", "R0371", "R0372",
];

/// Where SQLite keeps the number of the schema.
const SCHEMA_AT: usize = 60;

/// The files that the examples speak of.
fn stage() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.path.join("chats")).unwrap();
    fs::create_dir(folder.path.join("empty")).unwrap();
    File::create(folder.at("huge.json")).unwrap().set_len((1 << 30) + 1).unwrap();
    let call = r#"{"id":"c","type":"function","function":{"name":"f","arguments":""}}"#;
    let line = |id: &str| format!("{{\"id\":\"{id}\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hi\"}}]}}\n");
    folder.file("chat.json", SMALL);
    folder.file("latin1.json", b"[{\"role\":\"user\",\"content\":\"caf\xe9\"}]");
    folder.file("broken.json", "[{\"role\":\"usr\",\"content\":\"Hi\"}]");
    folder.file("twice.json", format!("[{{\"role\":\"assistant\",\"tool_calls\":[{call},{call}]}}]"));
    folder.file("two.jsonl", line("monday") + &line("tuesday"));
    folder.file("same.jsonl", line("monday") + &line("monday"));
    folder.file("silent.json", "[]");
    folder.file("greeting.json", r#"[{"role":"assistant","content":"Welcome"},{"role":"user","content":"Hi"}]"#);
    folder.file("open.toml", "[defaults]\nfor = \"gpt-4o\n");
    folder.file("slip.toml", "[defaults]\nwindwo = 1\n");
    folder.file("wrong.toml", "[defaults]\nwindow = true\n");
    folder.file("llama.toml", "[models.llama]\nwindwo = 8_000\n");
    folder.file("nobody.json", "{}");
    let fields = r#"{"model":"gpt-4o","temperature":0.5,"messages":[{"role":"user","content":"Hi"}]}"#;
    folder.file("fields.json", fields);
    folder.file("gone.toml", "[programs.codex]\npath = 'gone'\n");
    folder.file("slow.toml", "[programs.codex]\npath = 'slow'\nsilence_limit_seconds = 1\n");
    let slow = folder.file("slow", "#!/bin/sh\ncase \"$*\" in *--version*) echo 0.200.0;; *) exec sleep 600;; esac\n");
    fs::set_permissions(slow, fs::Permissions::from_mode(0o755)).unwrap();
    let closed = "url = 'http://127.0.0.1:1/v1'\nwire = 'openai_chat'\nmodels = ['gpt-4o']\nretries = 0";
    folder.file("closed.toml", format!("[upstream.closed]\n{closed}\n"));
    let store = folder.at("kept.db");
    let kept = |args: &[&str]| succeeds(&[args, &["--store", &store]].concat());
    kept(&["import", &folder.at("two.jsonl")]);
    for name in ["sunday", "saturday"] {
        kept(&["import", &folder.at("chat.json"), "--as", name]);
    }
    kept(&["fork", "sunday", "sunday-again"]);
    kept(&["erase", "saturday", "--yes"]);
    let mut newer = fs::read(&store).unwrap();
    newer[SCHEMA_AT..SCHEMA_AT + 4].copy_from_slice(&9_999_u32.to_be_bytes());
    folder.file("newer.db", newer);
    folder
}

/// The codes that `recto help errors` lists, each with its exit code.
fn listed() -> Vec<(String, i32)> {
    let list = succeeds(&["help", "errors"]).stdout;
    let rows = list.lines().filter(|line| line.starts_with('R'));
    let words = rows.map(|row| row.split_whitespace().take(2).map(String::from).collect::<Vec<_>>());
    words.map(|words| (words[0].clone(), words[1].parse().unwrap())).collect()
}

#[test]
fn every_example_says_what_is_told_of_it() {
    let folder = stage();
    let bin = Path::new(env!("CARGO_BIN_EXE_recto")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut not_run = Vec::new();
    for (code, exit_code) in listed() {
        let help = succeeds(&["help", &code]).stdout;
        let (_, example) = help.split_once("Example:\n").unwrap();
        let (example, _) = example.split_once("\n\nWhat to do:\n").unwrap();
        let mut lines = example.lines().map(|line| &line[2..]).peekable();
        let Some(line) = lines.next_if(|line| line.starts_with("$ ")) else {
            not_run.push(code);
            continue;
        };
        let told: Vec<&str> = lines.collect();
        let mut shell = isolated(Command::new("sh"));
        shell.args(["-c", &line[2..]]).current_dir(&folder.path).env("PATH", &path).env("CODEX_HOME", &folder.path);
        let ran = Ran::from(shell.output().unwrap());
        assert_eq!((ran.code, &*ran.stdout), (Some(exit_code), ""), "{code}: {}", ran.stderr);
        let said = ran.stderr.lines().chain(std::iter::repeat(""));
        let is_true = told.iter().zip(said).all(|(told, said)| match told.strip_suffix(" …") {
            Some(start) => said.starts_with(start),
            None => said == *told,
        });
        assert!(is_true, "{code}: the table says {told:#?}, the command\n{}", ran.stderr);
    }
    assert_eq!(not_run, NOT_RUN);
}
