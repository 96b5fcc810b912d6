//! Programs that are missing, old, talk nonsense, or say nothing.
#![cfg(unix)]

use super::programs::Program;
use super::{Place, count};
use crate::run::mentions;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const SILENCE: &str = "exit 0";
const GARBAGE: &str = "echo '%%% garbage {'; exit 0";

/// Scripts in a program's place: what they say of their version, what they do in a turn, and what is told of it.
fn stand_ins(program: Program) -> [(&'static str, &'static str, &'static str); 4] {
    match program {
        Program::ClaudeCode => {
            let new = "2.1.300 (Claude Code)";
            [
                ("1.0.3 (Claude Code)", SILENCE, "Claude Code 1.0.3 is too old"),
                ("a coffee machine", SILENCE, "doesn't tell its version, but says \"a coffee machine\""),
                (new, GARBAGE, "may not be Claude Code; it printed: %%% garbage {"),
                (new, SILENCE, "ended with code 0 without a word"),
            ]
        }
        Program::Codex => [
            ("codex-cli 0.9.1", SILENCE, "has version 0.9.1; at least 0.150.0 is needed"),
            ("a coffee machine", SILENCE, "doesn't say which version it has; it said \"a coffee machine\""),
            ("codex-cli 0.200.0", GARBAGE, "began no turn; it printed: \"%%% garbage {\""),
            ("codex-cli 0.200.0", SILENCE, "ended with code 0 and began no turn"),
        ],
    }
}

fn script(place: &Place, version: &str, turn: &str) -> String {
    let text = format!("#!/bin/sh\ncat >/dev/null\ncase \"$*\" in *--version*) echo '{version}';; *) {turn};; esac\n");
    let path = place.folder.file("stand-in", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_program_that_cannot_answer_is_told_and_nothing_counts_as_sent() {
    for program in Program::ALL {
        let place = Place::new();
        let real = program.path("the real program after one that could not answer");
        let mut all = Vec::new();
        if let Some(real) = &real {
            place.with_programs(&[(program, real)]);
            place.says(program.name(), "WORDS-1.", "ANSWER-1.", &[]);
            all.extend(["WORDS-1.", "ANSWER-1."]);
        }
        let missing = place.folder.at("gone");
        let fails = |path: &str, told: &str| {
            place.with_programs(&[(program, path)]);
            let ran = place.run(&["run", "--with", program.name(), "talk", "WORDS-2."]);
            assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{told}: {}", ran.stderr);
            mentions(&ran.stderr, &["error[R0114]: ", told, "\nhint: "]);
            if real.is_some() {
                assert_eq!(count(&place.kept(), "WORDS-2."), 0, "nothing counts as said");
            }
        };
        fails(&missing, "there is no program");
        for (version, turn, told) in stand_ins(program) {
            fails(&script(&place, version, turn), told);
        }
        let Some(real) = real else { continue };
        place.with_programs(&[(program, &real)]);
        let told = place.told(program.name(), "WORDS-2.", "ANSWER-2.");
        assert_eq!(told["mode"], "delta", "what it held before it still holds");
        all.push("WORDS-2.");
        place.assert_once(&all);
    }
}
