//! The command is ended in the middle of a turn: by force, or by Ctrl-C.
#![cfg(target_os = "linux")]

use super::programs::Program;
use super::{Place, count};
use crate::run::{Ran, mentions};
use recto_testkit::fake::{Gate, Reply};
use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a process may take to end, or to show that it is at work.
const PATIENCE: Duration = Duration::from_secs(60);

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Whether any process works in a folder, or was started with a word.
fn is_running(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(|it| it.file_name().into_string().ok());
    let mut numbers = processes.filter(|name| name.bytes().all(|letter| letter.is_ascii_digit()));
    numbers.any(|number| {
        let arguments = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(word)
    })
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Begins a turn whose answer waits in front of a gate.
fn held_up(place: &Place, with: &str, words: &str, answer: &str) -> (Child, Gate) {
    let gate = Gate::default();
    place.server.push(Reply::default().text(answer).waiting_after(0, &gate));
    let child = place.begins(with, words);
    gate.reached();
    (child, gate)
}

#[test]
fn a_killed_command_leaves_a_program_at_work_and_nothing_is_said_twice() {
    for program in Program::ALL {
        for turns_before in [1, 0] {
            let test = "a_killed_command_leaves_a_program_at_work_and_nothing_is_said_twice";
            let Some(place) = Place::of_programs(test) else { return };
            let name = program.name();
            let mut all = Vec::new();
            if turns_before > 0 {
                place.says(name, "WORDS-1.", "ANSWER-1.", &[]);
                all.extend(["WORDS-1.", "ANSWER-1."]);
            }
            let (mut child, gate) = held_up(&place, name, "WORDS-2.", "ANSWER-2.");
            signal(&child, "-KILL");
            child.wait().unwrap();
            let calls = place.calls().len();
            let again = || place.run(&["run", "--with", name, "talk", "WORDS-2."]);
            let refused = again();
            assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{name} {turns_before}: {}", refused.stderr);
            mentions(&refused.stderr, &["error[R0113]: ", "hint: wait until it has ended, then try again"]);
            assert_eq!(place.calls().len(), calls, "nothing is sent while somebody is at work");

            // Whether the program still keeps the answer that nobody listens to is its own business.
            place.server.push(Reply::default().text("ANSWER-2."));
            gate.open();
            let mut last = None;
            until("it never ends", || {
                let ran = again();
                let is_over = !ran.stderr.contains("error[R0113]");
                last = Some(ran);
                is_over
            });
            let ran = last.unwrap();
            assert_eq!((ran.code, &*ran.stdout), (Some(0), "ANSWER-2.\n"), "{name} {turns_before}: {}", ran.stderr);
            place.says(name, "WORDS-3.", "ANSWER-3.", &[]);
            all.extend(["WORDS-2.", "WORDS-3."]);
            place.assert_once(&all);
            assert!(count(&place.last_body(), "ANSWER-2.") > 0);
        }
    }
}

#[test]
fn an_interrupted_command_ends_its_program_too() {
    for program in Program::ALL {
        let Some(place) = Place::of_programs("an_interrupted_command_ends_its_program_too") else { return };
        let name = program.name();
        let told = place.told(name, "WORDS-1.", "ANSWER-1.");
        let session = told["session"].as_str().unwrap();
        let (child, _gate) = held_up(&place, name, "WORDS-2.", "NEVER HEARD");
        assert!(is_running(session), "the name of the session is how it is found");
        signal(&child, "-INT");
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, &*ran.stdout), (Some(130), ""), "{}", ran.stderr);
        assert!(ran.stderr.ends_with("interrupted\n"), "{}", ran.stderr);
        until("the program is still there", || !is_running(session));
        assert_eq!(place.says(name, "WORDS-2.", "ANSWER-2.", &[]).stdout, "ANSWER-2.\n");
        place.says(name, "WORDS-3.", "ANSWER-3.", &[]);
        place.assert_once(&["WORDS-1.", "ANSWER-1.", "WORDS-2.", "ANSWER-2.", "WORDS-3."]);
    }
}

#[test]
fn an_interrupted_call_of_a_model_counts_for_nothing() {
    for remember in ["no", "response", "conversation"] {
        let place = Place::with(&format!("remember = '{remember}'"));
        place.says("gpt-5.5", "WORDS-1.", "ANSWER-1.", &[]);
        let (child, gate) = held_up(&place, "gpt-5.5", "WORDS-2.", "NEVER HEARD");
        signal(&child, "-INT");
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, &*ran.stdout), (Some(130), ""), "{}", ran.stderr);
        gate.open();
        assert_eq!(count(&place.kept(), "WORDS-2."), 0);
        place.says("gpt-5.5", "WORDS-2.", "ANSWER-2.", &[]);
        let items = serde_json::Value::from(place.calls().pop().unwrap().items);
        let found = ["WORDS-1.", "ANSWER-1.", "WORDS-2.", "NEVER HEARD"].map(|mark| count(&items, mark));
        assert_eq!(found, [1, 1, 1, 0], "{remember}: {items:#}");
    }
}
