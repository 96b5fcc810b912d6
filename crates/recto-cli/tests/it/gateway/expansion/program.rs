//! Claude Code and Codex, whose models ask back what a page leaves out.

use super::super::programs::{Program, Seat};
use super::super::said::Said;
use super::super::world::World;
use super::{asking, is_kept_once, world};
use crate::run::Folder;
use recto_testkit::fake::Reply;
use recto_testkit::shared::skipped;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// What the program's own records must not have in them.
const OURS: &str = "recto_expand";

/// The handle of the first result that is on record.
fn handle(world: &World) -> String {
    let name = world.names().pop().expect("a conversation");
    let shown = world.json(&["show", &name, "--json"]);
    let entries = shown["entries"].as_array().expect("entries");
    let of = |it: &Value| it["entry"]["role"] == "tool";
    format!("m{}", entries.iter().find(|it| of(it)).expect("a result")["seq"])
}

/// Whether any file below a folder has these words in it.
fn tells(folder: &Path, words: &str) -> bool {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: &Path| match path.is_dir() {
        true => !path.is_symlink() && tells(path, words),
        false => String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).contains(words),
    };
    entries.into_iter().any(|path| of(&path))
}

fn check(program: Program, test: &str) {
    let Ok(path) = std::env::var(program.variable()) else {
        skipped(&format!("{test}: no {program:?} (set {} to its native program)", program.variable()));
        return;
    };
    let desk = Folder::new();
    fs::create_dir(desk.path.join("work")).unwrap();
    let mut world = world();
    let seat = Seat { program, path, desk: &desk, home: "home", url: world.url() };
    seat.configure();
    let original = "CALLED-0, with words that nobody else says. ".repeat(20);
    world.fake.push(program.calling(&format!("echo '{original}'")));
    world.fake.push(Reply::default().text("ANSWER-0."));
    let (session, answer) = seat.says(None, "WORDS-0.");
    assert_eq!(answer, "ANSWER-0.");

    world.fake.push(asking(Reply::default().thinking("I look again.").text("ANSWER-1, and "), &handle(&world)));
    world.fake.push(Reply::default().thinking("It is there.").text("that is all of it."));
    let (session, answer) = seat.says(Some(&session), "WORDS-1.");
    assert!(answer.ends_with("that is all of it."), "{answer}");

    world.fake.push(program.calls(asking(Reply::default().thinking("I say more."), "m999"), "echo CALLED-2."));
    world.fake.push(Reply::default().text("ANSWER-2."));
    let (_, answer) = seat.says(Some(&session), "WORDS-2.");
    assert_eq!(answer, "ANSWER-2.");

    let calls = world.calls();
    assert_eq!(calls.len(), 6, "two of each turn");
    let told = |at: usize| String::from_utf8_lossy(&calls[at].request.body).into_owned();
    let of_result = |at: usize| told(at).matches(original.trim()).count();
    // The command itself has the words in it as well.
    assert_eq!([of_result(1), of_result(2), of_result(3), of_result(4)], [2, 1, 2, 2], "{}", told(2));
    assert!(told(4).contains(OURS) && calls[2].answer.contains(OURS), "it was there to be hidden");
    assert!(calls.iter().all(|call| call.dropped == 0), "no reasoning is lost");
    assert!(!tells(&desk.path, OURS), "the program's own records show none of it");
    assert!(tells(&desk.path, "that is all of it."), "they show what it was told");

    let mut expected = Said::all(program.wire(), &calls[5].request.json());
    expected.push(Said::Assistant("ANSWER-2.".into()));
    let kept = world.kept();
    assert_eq!(kept.len(), 1, "one conversation");
    is_kept_once(&kept[0], &expected);
    world.run(&["doctor"]);
}

#[test]
fn claude_code_sees_nothing_of_what_its_model_asks_back() {
    check(Program::ClaudeCode, "claude_code_sees_nothing_of_what_its_model_asks_back");
}

#[test]
fn codex_sees_nothing_of_what_its_model_asks_back() {
    check(Program::Codex, "codex_sees_nothing_of_what_its_model_asks_back");
}
