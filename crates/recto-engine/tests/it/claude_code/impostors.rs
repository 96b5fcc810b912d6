//! Programs in place of Claude Code that do not do what it does: scripts of the shell.

use super::{message, said, settings, uuid};
use crate::folder::TempFolder;
use recto::entry::{Part, Role};
use recto_engine::drive::claude_code::ClaudeCode;
use recto_engine::drive::{Failed, Found, Heard, Ran, Settings, Turn};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A record that says how a turn ended.
const GOOD: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Hi.","session_id":"s","usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":5}}"#;
const HI: &str = r#"{"type":"assistant","uuid":"u1","session_id":"s","message":{"id":"m","role":"assistant","model":"some","content":[{"type":"text","text":"Hi."}]}}"#;

/// A program that tells about itself, and else does what the script says.
fn impostor(folder: &TempFolder, script: &str) -> ClaudeCode {
    let about = "case \"$1\" in --version) echo '2.9.0 (Claude Code)'; exit;; --help) exit;; esac";
    program(folder, &format!("{about}\n{script}"))
}

fn program(folder: &TempFolder, script: &str) -> ClaudeCode {
    let file = folder.file("claude");
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it can be changed");
    let usual = settings(file, folder.path(), "http://127.0.0.1:9");
    ClaudeCode::new(Settings { arguments: Vec::new(), ..usual })
}

async fn turn(folder: &TempFolder, driver: &ClaudeCode) -> (Result<Ran, Failed>, Vec<Heard>) {
    let (said, mut heard, message) = (said("Hello?"), Vec::new(), uuid());
    let turn = Turn {
        session: None,
        new_session: "s",
        mark: None,
        rewind_to: None,
        message: &message,
        instructions: "",
        said: &said,
        workspace: folder.path(),
    };
    let ran = driver.turn(turn, &mut |it| heard.push(it)).await;
    (ran, heard)
}

/// The error of a turn with what to do about it.
async fn error(script: &str) -> String {
    let folder = TempFolder::new();
    let driver = impostor(&folder, script);
    match turn(&folder, &driver).await.0 {
        Err(Failed::Other(error)) => format!("{error}; {}", error.hint().expect("a hint")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn garbage_is_no_answer() {
    let told = error("cat > /dev/null; echo 'Segmentation fault (no JSON)'; echo oops >&2").await;
    assert!(told.contains("without a single record") && told.contains("Segmentation fault"), "{told}");
    assert!(told.contains("oops"), "{told}");
}

#[tokio::test]
async fn silence_is_no_answer() {
    let told = error("cat > /dev/null").await;
    assert!(told.contains("ended with code 0 without a word"), "{told}");
    let told = error("kill -9 $$").await;
    assert!(told.contains("killed by a signal"), "{told}");
    let told = error(&format!("echo '{HI}'; exit 1")).await;
    assert!(told.contains("ended with code 1 before it told a result"), "{told}");
}

#[tokio::test]
async fn a_result_without_an_answer_or_with_an_error_is_none() {
    let told = error(&format!("echo '{}'", GOOD.replace("Hi.", " "))).await;
    assert!(told.contains("without an answer"), "{told}");
    let told = error(&format!("echo '{HI}'; echo '{}'", GOOD.replace("\"is_error\":false", "\"is_error\":true"))).await;
    assert!(told.contains("failed: Hi."), "{told}");
    let told = error(&format!("echo '{}'", GOOD.replace("\"is_error\":false,", ""))).await;
    assert!(told.contains("failed"), "what doesn't say that it went well has not: {told}");
}

#[tokio::test]
async fn a_program_that_never_ends_is_ended() {
    let folder = TempFolder::new();
    let silence_limit = Duration::from_millis(300);
    let usual = impostor(&folder, "sleep 100000").settings().clone();
    let driver = ClaudeCode::new(Settings { silence_limit, ..usual });
    let Err(Failed::Other(error)) = turn(&folder, &driver).await.0 else { panic!("it never ends") };
    assert!(error.is_timed_out(), "{error}");
}

#[tokio::test]
async fn a_program_that_is_missing_or_old_or_another_one_is_an_error_with_a_hint() {
    let folder = TempFolder::new();
    let absent = ClaudeCode::new(settings(folder.file("absent"), folder.path(), ""));
    assert!(absent.version().await.is_err_and(|error| error.to_string().contains("there is no program")));
    let mut unset = settings(folder.file("absent"), folder.path(), "");
    unset.program = None;
    unset.environment.insert("PATH".into(), folder.path().to_string_lossy().into_owned());
    let error = ClaudeCode::new(unset.clone()).version().await.expect_err("nothing is there");
    assert!(error.is_program() && error.to_string().contains("PATH") && error.hint().is_some(), "{error}");

    let old = program(&folder, "echo '1.0.3 (Claude Code)'").version().await.expect_err("too old");
    assert!(old.to_string().contains("1.0.3 is too old") && old.hint().is_some_and(|it| it.contains("2.1.")), "{old}");
    let other = program(&folder, "echo 'hello there'").version().await.expect_err("another program");
    assert!(other.to_string().contains("hello there"), "{other}");
    let broken = program(&folder, "echo no >&2; exit 4").version().await.expect_err("broken");
    assert!(broken.to_string().contains("no"), "{broken}");

    program(&folder, "echo '2.9.0 (Claude Code)'");
    let found = ClaudeCode::new(unset).version().await.expect("found on the PATH");
    assert_eq!(&*found, "2.9.0");
}

#[tokio::test]
async fn a_turn_that_its_file_does_not_show_is_taken_from_what_was_printed() {
    let folder = TempFolder::new();
    let driver = impostor(&folder, &format!("cat > /dev/null; echo '{HI}'; echo '{GOOD}'"));
    let (ran, heard) = turn(&folder, &driver).await;
    let ran = ran.expect("a good turn");
    assert_eq!((ran.entries.len(), ran.mark, &*ran.session), (1, None, "s"));
    assert_eq!(ran.entries[0].id.as_ref().map(|id| id.as_str()), Some("u1"));
    assert_eq!(ran.usage.map(|it| [it.input.0, it.cached.0, it.output.0]), Some([7, 4, 5]));
    assert_eq!(heard, [Heard::Text("Hi.".into())]);
    assert!(matches!(driver.look("s", folder.path(), None), Found::Missing));
}

#[tokio::test]
async fn the_line_that_it_reads_and_its_arguments_are_those_of_the_turn() {
    let folder = TempFolder::new();
    let script = format!("cat > input; echo \"$@\" > arguments; echo '{HI}'; echo '{GOOD}'");
    let driver = impostor(&folder, &script);
    let message = message(Role::User, [Part::text("One."), Part::text("Two.")]);
    let (session, mark) = ("s".into(), "m1".into());
    let turn = Turn {
        session: Some(&session),
        new_session: "unused",
        mark: None,
        rewind_to: Some(&mark),
        message: "u0",
        instructions: "DYNAMIC",
        said: &[message.clone(), message],
        workspace: folder.path(),
    };
    driver.turn(turn, &mut |_| {}).await.expect("a good turn");
    let read = |name: &str| fs::read_to_string(folder.file(name)).expect("written");
    let line: serde_json::Value = serde_json::from_str(&read("input")).expect("one record");
    assert_eq!(
        (&line["uuid"], &line["type"], &line["message"]["role"]),
        (&"u0".into(), &"user".into(), &"user".into())
    );
    let texts = line["message"]["content"].as_array().expect("blocks").iter().map(|it| it["text"].as_str());
    assert_eq!(texts.collect::<Option<Vec<_>>>().expect("texts"), ["One.", "Two.", "One.", "Two."]);
    let arguments = read("arguments");
    for wanted in ["--resume s", "--resume-session-at m1", "--append-system-prompt DYNAMIC", "--verbose"] {
        assert!(arguments.contains(wanted), "{wanted} in {arguments}");
    }
    assert!(!arguments.contains("unused") && !arguments.contains("snapshot"), "{arguments}");
    let nothing = Turn { said: &[], ..turn };
    assert!(driver.turn(nothing, &mut |_| {}).await.is_err(), "nothing can't be said");
}
