//! Turns that fail, are killed, or meet others.

use super::lab::{Lab, Program, count, markers};
use super::with_each_program;
use crate::engine::block_on;
use recto::page::Mode;
use recto::receipt::Full;
use recto::session::Lost;
use recto_engine::engine::How;
use recto_testkit::fake::{Gate, Reply};
use serde_json::json;
use std::path::PathBuf;

with_each_program! {
    a_turn_that_failed_can_be_made_again
    a_turn_that_was_killed_can_be_made_again
    a_first_turn_that_was_killed_can_be_made_again
    a_turn_whose_end_nobody_heard_is_taken_as_it_was
    another_folder_means_another_session_that_holds_everything
    a_session_that_is_gone_or_damaged_is_written_anew
    of_two_turns_at_once_one_is_told_to_wait
    a_program_that_refuses_what_is_written_for_it_is_told_as_text
}

/// The first turn of every conversation here.
async fn begun(lab: &Lab) {
    lab.server.push(Reply::default().text("ANSWER-0."));
    lab.say("WORDS-0.", "").await.unwrap();
}

/// Every message stands once in the last request and in the log, in order.
async fn assert_once(lab: &Lab, expected: &[&str]) {
    let last = lab.bodies().pop().expect("a request");
    assert_eq!(markers(&last), expected[..expected.len() - 1], "{last:#}");
    assert_eq!(lab.log().await, expected);
}

fn session_file(lab: &Lab, id: &str) -> PathBuf {
    let mut folders = vec![lab.folder.file("home")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(&format!("{id}.jsonl")) {
                return path;
            }
        }
    }
    panic!("no file of session {id}");
}

mod told {
    use super::*;

    pub(super) async fn a_turn_that_failed_can_be_made_again(lab: Lab) {
        begun(&lab).await;
        for _ in 0..3 {
            let (acked, entries) = (lab.acked().await, lab.entries().await.len());
            let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "not today"}});
            lab.server.push(Reply::error(400, error));
            let failed = lab.say("WORDS-1.", "").await.unwrap_err();
            assert!(failed.is_refused() || failed.is_program(), "{failed:?}");
            assert!(failed.to_string().contains("not today"), "{failed}");
            // What the program turns out to hold is taken in before it is told anything; nothing else counts as sent.
            let held = lab.acked().await.unwrap().0 - acked.unwrap().0;
            assert_eq!(held as usize, lab.entries().await.len() - entries);
        }
        lab.server.push(Reply::default().text("ANSWER-1."));
        lab.say("WORDS-1.", "").await.unwrap();
        assert_once(&lab, &["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1."]).await;
        lab.server.push(Reply::default().text("ANSWER-2."));
        lab.say("WORDS-2.", "").await.unwrap();
        assert_once(&lab, &["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2.", "ANSWER-2."]).await;
        assert_eq!(lab.acked().await.unwrap().0 + 1, lab.entries().await.len() as u64, "all of it is held");
    }

    /// A turn that is killed, with all that it started, while its model is asked.
    async fn killed(lab: &Lab, words: &str) {
        let gate = Gate::default();
        lab.server.push(Reply::default().text("NEVER HEARD").waiting_after(0, &gate));
        let reached = tokio::task::spawn_blocking({
            let gate = gate.clone();
            move || gate.reached()
        });
        tokio::select! {
            driven = lab.say(words, "") => panic!("it should wait at the gate: {driven:?}"),
            reached = reached => reached.unwrap(),
        }
        gate.open();
    }

    pub(super) async fn a_first_turn_that_was_killed_can_be_made_again(lab: Lab) {
        killed(&lab, "WORDS-0.").await;
        lab.server.push(Reply::default().text("ANSWER-0."));
        let again = lab.say("WORDS-0.", "").await.unwrap();
        assert_ne!(again.how, How::HadAnswered);
        assert_once(&lab, &["WORDS-0.", "ANSWER-0."]).await;
        lab.server.push(Reply::default().text("ANSWER-1."));
        let next = lab.say("WORDS-1.", "").await.unwrap();
        assert_eq!(next.receipt.unwrap().mode, Mode::Delta);
        assert_once(&lab, &["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1."]).await;
    }

    pub(super) async fn a_turn_that_was_killed_can_be_made_again(lab: Lab) {
        begun(&lab).await;
        killed(&lab, "WORDS-1.").await;
        lab.server.push(Reply::default().text("ANSWER-1."));
        let again = lab.say("WORDS-1.", "").await.unwrap();
        assert_ne!(again.how, How::HadAnswered);
        assert_once(&lab, &["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1."]).await;
    }

    pub(super) async fn a_turn_whose_end_nobody_heard_is_taken_as_it_was(lab: Lab) {
        begun(&lab).await;
        // The turn goes well, but whoever made it is gone before it is recorded: as if the process had been killed.
        lab.server.push(lab.calling("echo CALLED-1."));
        lab.server.push(Reply::default().text("ANSWER-1."));
        lab.forgotten_turn("WORDS-1.").await;
        assert_eq!(lab.log().await, ["WORDS-0.", "ANSWER-0."]);
        let calls = lab.bodies().len();
        let driven = lab.say("WORDS-1.", "").await.unwrap();
        assert_eq!((driven.how, lab.bodies().len()), (How::HadAnswered, calls), "nothing is asked twice");
        let all = ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "CALLED-1.", "FOUND-1.", "ANSWER-1."];
        assert_eq!(lab.log().await, all);
        lab.server.push(Reply::default().text("ANSWER-2."));
        let next = lab.say("WORDS-2.", "").await.unwrap();
        assert_eq!(next.receipt.unwrap().mode, Mode::Delta);
        let last = lab.bodies().pop().unwrap();
        for mark in ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2."] {
            assert_eq!(count(&last, mark), 1, "{mark}: {last:#}");
        }
    }

    pub(super) async fn another_folder_means_another_session_that_holds_everything(lab: Lab) {
        begun(&lab).await;
        lab.server.push(lab.calling("echo CALLED-1."));
        lab.server.push(Reply::default().text("ANSWER-1."));
        let first = lab.say("WORDS-1.", "").await.unwrap();
        lab.server.push(Reply::default().text("ANSWER-2."));
        let moved = lab.say_in("elsewhere", "WORDS-2.", "").await.unwrap();
        let receipt = moved.receipt.unwrap();
        assert_eq!((receipt.mode, receipt.full), (Mode::Full, Some(Full::Lost { lost: Lost::WorkspaceChanged })));
        assert_ne!(moved.session, first.session);
        let last = lab.bodies().pop().unwrap();
        let all = ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "CALLED-1.", "CALLED-1.", "ANSWER-1.", "WORDS-2."];
        assert_eq!(markers(&last), all, "the call, and what it found");
        lab.server.push(Reply::default().text("ANSWER-3."));
        let next = lab.say_in("elsewhere", "WORDS-3.", "").await.unwrap();
        assert_eq!(next.receipt.unwrap().mode, Mode::Delta);
        assert_eq!(markers(&lab.bodies().pop().unwrap())[..7], all);
    }

    pub(super) async fn a_session_that_is_gone_or_damaged_is_written_anew(lab: Lab) {
        lab.server.push(Reply::default().text("ANSWER-0."));
        let mut last = lab.say("WORDS-0.", "").await.unwrap();
        for (turn, damage) in ["gone", "damaged"].into_iter().enumerate() {
            let file = session_file(&lab, last.session.as_ref().unwrap());
            match damage {
                "gone" => std::fs::remove_file(file).unwrap(),
                _ => {
                    let text = std::fs::read_to_string(&file).unwrap();
                    std::fs::write(file, format!("{{broken\n{text}")).unwrap();
                }
            }
            let turn = turn + 1;
            lab.server.push(Reply::default().text(&format!("ANSWER-{turn}.")));
            last = lab.say(&format!("WORDS-{turn}."), "").await.unwrap();
            let receipt = last.receipt.as_ref().unwrap();
            let why = (receipt.mode, receipt.full);
            assert_eq!(why, (Mode::Full, Some(Full::Lost { lost: Lost::Forgotten })), "{damage}");
        }
        assert_once(&lab, &["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2.", "ANSWER-2."]).await;
    }

    pub(super) async fn of_two_turns_at_once_one_is_told_to_wait(lab: Lab) {
        begun(&lab).await;
        let gate = Gate::default();
        lab.server.push(Reply::default().text("ANSWER-1.").waiting_after(0, &gate));
        let first = lab.say("WORDS-1.", "");
        let second = async {
            tokio::task::spawn_blocking({
                let gate = gate.clone();
                move || gate.reached()
            })
            .await
            .unwrap();
            let refused = lab.say("WORDS-9.", "").await.unwrap_err();
            gate.open();
            refused
        };
        let (first, refused) = tokio::join!(first, second);
        first.unwrap();
        assert!(refused.is_in_use(), "{refused:?}");
        assert_once(&lab, &["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1."]).await;
    }

    pub(super) async fn a_program_that_refuses_what_is_written_for_it_is_told_as_text(lab: Lab) {
        begun(&lab).await;
        let mut notes = String::new();
        lab.server.push(Reply::default().text("ANSWER-1."));
        // In another folder a session is written; this program goes on with none.
        let (call, refusing) = (lab.call("WORDS-1.", ""), lab.refusing_to_resume());
        let folder = lab.folder.file("elsewhere");
        let mut note = |heard| notes += &format!("{heard:?}");
        lab.engine.drive(&lab.at, &refusing, call, &folder, &mut note).await.unwrap();
        assert!(notes.contains("told as text"), "{notes}");
        let last = lab.bodies().pop().unwrap();
        for mark in ["WORDS-0.", "ANSWER-0.", "WORDS-1."] {
            assert_eq!(count(&last, mark), 1, "{mark}: {last:#}");
        }
    }
}
