//! No telemetry, ever: no command opens a connection, and none works differently without a network.
#![cfg(target_os = "linux")]

use crate::manual::COMMANDS;
use crate::run::{Folder, Ran, SMALL, isolated};
use recto_testkit::shared;
use std::fs;
use std::process::Command;

const RECTO: &str = env!("CARGO_BIN_EXE_recto");

/// What a program must import to talk to anybody. Asking for a user may ask a server.
const SOCKETS: [&str; 9] =
    ["socket", "connect", "getaddrinfo", "gethostbyname", "sendto", "sendmsg", "res_query", "getpwuid_r", "getpwnam_r"];

/// Every command, in a good and in a bad case.
const RUNS: [&[&str]; 51] = [
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
    &["turns", "chat", "--store", "kept.db"],
    &["turns", "gone", "--store", "kept.db"],
    &["compile", "chat", "--store", "kept.db"],
    &["explain", "gone", "--store", "kept.db"],
    &["expand", "chat", "m0", "--store", "kept.db"],
    &["expand", "chat", "?", "--store", "kept.db"],
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
        let stdout = if args[0] == "list" { stdout.replace(|c: char| c.is_ascii_digit(), "") } else { stdout };
        (code, stdout, stderr)
    };
    RUNS.iter().map(run).collect()
}

/// Working the same could be failing in silence; what is not imported can't be called.
#[test]
fn the_command_cannot_open_a_socket() {
    let binary = fs::read(RECTO).unwrap();
    if !binary.starts_with(b"\x7fELF\x02\x01") {
        return shared::skipped("imported functions: not a 64-bit little-endian program");
    }
    let imported = imported(&binary);
    assert!(imported.iter().any(|name| name == "write"), "{imported:?}");
    assert_eq!(imported.iter().filter(|name| SOCKETS.contains(&name.as_str())).collect::<Vec<_>>(), [""; 0]);
}

/// The names in the dynamic symbol table of an ELF file.
fn imported(binary: &[u8]) -> Vec<String> {
    const DYNAMIC_SYMBOLS: usize = 11;
    const SYMBOL_BYTES: usize = 24;
    let number = |at: usize, bytes: usize| {
        binary[at..at + bytes].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    };
    let (sections, size, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    // Of a section: where it lies in the file, and how long it is.
    let extent = |section: usize| (number(section + 0x18, 8), number(section + 0x20, 8));
    let symbols = (0..count).map(|nth| sections + nth * size).find(|&it| number(it + 4, 4) == DYNAMIC_SYMBOLS).unwrap();
    let (names, _) = extent(sections + number(symbols + 0x28, 4) * size);
    let (start, length) = extent(symbols);
    let name = |symbol: usize| {
        let name = binary[names + number(symbol, 4)..].split(|&byte| byte == 0).next().unwrap();
        String::from_utf8(name.to_vec()).unwrap()
    };
    (start..start + length).step_by(SYMBOL_BYTES).map(name).collect()
}
