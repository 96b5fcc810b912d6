//! A conversation that models carry on.

use super::{KEY, Place, count};
use crate::run::mentions;
use recto_testkit::fake::Reply;
use serde_json::json;
use std::io::{BufRead, BufReader, Read};

/// A model for each wire, with where it is asked.
const MODELS: [(&str, &str); 3] =
    [("claude-haiku-4-5", "/v1/messages"), ("gpt-5.5", "/v1/responses"), ("gpt-4o", "/v1/chat/completions")];

#[test]
fn every_wire_answers_on_stdout_and_the_next_run_goes_on() {
    for (model, path) in MODELS {
        let place = Place::new();
        let ran = place.says(model, "WORDS-1.", "ANSWER-1.", &[]);
        assert_eq!(ran.stdout, "ANSWER-1.\n", "{model}");
        mentions(&ran.stderr, &["store: ", "conversation \"talk\" begins\n", "everything was sent; ", "reported: "]);
        assert_eq!(place.calls()[0].request.path, path);
        let again = place.says(model, "WORDS-2.", "ANSWER-2.", &[]);
        assert!(!again.stderr.contains("begins"), "{}", again.stderr);
        place.assert_once(&["WORDS-1.", "ANSWER-1.", "WORDS-2."]);
        assert_eq!(place.calls().len(), 2);
    }
}

#[test]
fn one_model_goes_on_where_another_stopped() {
    let place = Place::new();
    for (turn, (model, _)) in MODELS.iter().enumerate() {
        place.says(model, &format!("WORDS-{turn}."), &format!("ANSWER-{turn}."), &[]);
    }
    place.assert_once(&["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2."]);
    let turns = place.run(&["turns", "talk"]).stdout;
    assert_eq!(turns.lines().count(), 1 + MODELS.len(), "{turns}");
    let shown = place.run(&["show", "talk"]).stdout;
    mentions(&shown, &["user", "assistant", "WORDS-1.", "ANSWER-2."]);
}

#[test]
fn words_are_printed_as_they_come() {
    let place = Place::new();
    let gate = recto_testkit::fake::Gate::default();
    // All three wires have sent some of the text by then, and none has sent its end.
    place.server.push(Reply::default().text("ANSWER-1.\nand more").waiting_after(5, &gate));
    let mut child = place.begins("claude-haiku-4-5", "WORDS-1.");
    gate.reached();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = vec![0; 3];
    stdout.read_exact(&mut first).unwrap();
    gate.open();
    let mut rest = String::new();
    while stdout.read_line(&mut rest).unwrap() > 0 {}
    assert_eq!(String::from_utf8(first).unwrap() + &rest, "ANSWER-1.\nand more\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn json_has_the_shape_that_the_help_tells() {
    let place = Place::new();
    let told = place.told("gpt-4o", "WORDS-1.", "ANSWER-1.");
    let keys: Vec<&str> = told.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected =
        ["conversation", "entries", "full_because", "how", "mode", "sent", "session", "text", "usage", "with"];
    expected.sort_unstable();
    let mut keys_sorted = keys.clone();
    keys_sorted.sort_unstable();
    assert_eq!(keys_sorted, expected);
    let help = place.run(&["run", "--help"]).stdout;
    mentions(&help, &keys);
    assert_eq!((&told["conversation"], &told["with"]), (&"talk".into(), &"gpt-4o".into()));
    assert_eq!((&told["how"], &told["mode"]), (&"told".into(), &"full".into()));
    assert_eq!((&told["text"], &told["entries"]), (&"ANSWER-1.".into(), &1.into()));
    let usage: Vec<&str> = ["input", "cached", "written", "output"].into_iter().collect();
    assert!(usage.iter().all(|key| told["usage"][key].is_u64()), "{told}");
    assert!(told["sent"].as_u64().unwrap() > 0);
}

#[test]
fn what_is_said_may_come_from_stdin() {
    let place = Place::new();
    place.server.push(Reply::default().text("ANSWER-1."));
    let ran = place.run_reading("WORDS-1.\nand more", &["run", "--with", "gpt-4o", "talk", "-"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "ANSWER-1.\n"), "{}", ran.stderr);
    assert_eq!(count(&place.last_body(), "WORDS-1.\nand more"), 1);
    for (stdin, words) in [(" \n", "-"), ("", " ")] {
        let ran = place.run_reading(stdin, &["run", "--with", "gpt-4o", "talk", words]);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
        mentions(&ran.stderr, &["error[R0202]: TEXT says nothing"]);
    }
}

#[test]
fn instructions_stay_and_notes_go() {
    for (model, _) in MODELS {
        let place = Place::new();
        let system = place.folder.file("system.md", "SYSTEM-1. Be terse.");
        let says = |words: &str, note: &str| {
            place.says(model, words, "ANSWER.", &["--system", &system, "--note", note, "--note", "NOTE-ALWAYS."]);
            place.last_body()
        };
        for (turn, body) in [says("WORDS-1.", "NOTE-1."), says("WORDS-2.", "NOTE-2.")].iter().enumerate() {
            let is_first = usize::from(turn == 0);
            let found = ["SYSTEM-1.", "NOTE-ALWAYS.", "NOTE-1.", "NOTE-2."].map(|mark| count(body, mark));
            assert_eq!(found, [1, 1, is_first, 1 - is_first], "{model}: {body:#}");
        }
        let kept = place.kept();
        assert_eq!(["SYSTEM-1.", "NOTE-"].map(|mark| count(&kept, mark)), [0, 0], "they are no part of what was said");
    }
}

#[test]
fn a_model_for_which_nobody_answers_begins_nothing() {
    let place = Place::new();
    let ran = place.run(&["run", "--with", "llama-9", "talk", "WORDS-1."]);
    assert_eq!((ran.code, &*ran.stdout), (Some(3), ""));
    mentions(&ran.stderr, &["error[R0325]: no upstream answers for model \"llama-9\"", "hint: add `models = "]);
    assert!(!place.folder.path.join("kept.db").exists(), "{}", ran.stderr);
    let ran = place.run(&["run", "--with", "codx", "talk", "WORDS-1."]);
    mentions(&ran.stderr, &["error[R0325]", "hint: did you mean \"codex\"?"]);
    let ran = place.run(&["run", "--with", "gpt-4o", "--in", ".", "talk", "WORDS-1."]);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    mentions(&ran.stderr, &["error[R0204]: --in is for Claude Code and Codex, and \"gpt-4o\" is a model"]);
    assert_eq!(place.calls().len(), 0);
}

#[test]
fn a_missing_or_wrong_key_is_told_without_it() {
    let place = Place::new();
    let run = |key: Option<&str>| {
        let mut command = place.command(&["run", "--with", "gpt-4o", "talk", "WORDS-1."]);
        match key {
            Some(key) => command.env("OPENAI_FAKE_KEY", key),
            None => command.env_remove("OPENAI_FAKE_KEY"),
        };
        crate::run::Ran::from(command.output().unwrap())
    };
    let missing = run(None);
    assert_ne!(missing.code, Some(0));
    mentions(&missing.stderr, &["OPENAI_FAKE_KEY"]);
    let wrong = run(Some("sk-wrong-98765"));
    assert_eq!((wrong.code, &*wrong.stdout), (Some(1), ""));
    mentions(&wrong.stderr, &["error[R0115]: ", "(401)", "Incorrect API key", "check the key in OPENAI_FAKE_KEY"]);
    assert!(!wrong.stderr.contains("sk-wrong") && !wrong.stderr.contains(KEY));
    place.says("gpt-4o", "WORDS-1.", "ANSWER-1.", &[]);
    place.assert_once(&["WORDS-1."]);
}

#[test]
fn what_was_refused_can_be_said_again_and_stands_once() {
    for (model, _) in MODELS {
        let place = Place::new();
        place.says(model, "WORDS-1.", "ANSWER-1.", &[]);
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "not today"}});
        place.server.push(Reply::error(400, error));
        let ran = place.run(&["run", "--with", model, "talk", "WORDS-2."]);
        assert_eq!((ran.code, &*ran.stdout), (Some(1), ""));
        mentions(&ran.stderr, &["error[R0115]: ", "not today"]);
        assert_eq!(count(&place.kept(), "WORDS-2."), 0, "nothing counts as sent");
        place.says(model, "WORDS-2.", "ANSWER-2.", &[]);
        place.assert_once(&["WORDS-1.", "ANSWER-1.", "WORDS-2."]);
    }
}

#[test]
fn an_answer_that_breaks_off_is_kept_and_told() {
    let place = Place::new();
    place.server.push(Reply::default().text("ANSWER-1. and so much more to say").broken_after(5));
    let ran = place.run(&["run", "--with", "claude-haiku-4-5", "talk", "WORDS-1."]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    mentions(&ran.stderr, &["error[R0115]: "]);
    place.says("claude-haiku-4-5", "WORDS-2.", "ANSWER-2.", &[]);
    place.assert_once(&["WORDS-1.", "WORDS-2."]);
}

#[test]
fn with_nothing_to_say_what_was_added_is_told() {
    let place = Place::new();
    let chat = place.folder.file("talk.json", r#"[{"role":"user","content":"WORDS-1."}]"#);
    assert_eq!(place.run(&["import", &chat]).code, Some(0));
    place.server.push(Reply::default().text("ANSWER-1."));
    let ran = place.run(&["run", "--with", "gpt-4o", "talk"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "ANSWER-1.\n"), "{}", ran.stderr);
    place.assert_once(&["WORDS-1."]);
}
