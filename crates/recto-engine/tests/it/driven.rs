//! Conversations carried on by the real programs, through the engine: everything reaches the model exactly once, in
//! order, whatever goes wrong in between. The programs are where `RECTO_CLAUDE_CODE` and `RECTO_CODEX` say.

mod lab;
mod moves; // from one to the other and back
mod table; // what is sent over twenty turns
mod trouble; // turns that fail, are killed, or go on elsewhere

use crate::engine::block_on;
use lab::{Lab, Program, count, markers};
use recto::page::Mode;
use recto_engine::engine::How;
use recto_testkit::fake::Reply;

/// Runs a test with each program that there is; one that isn't is told loudly.
macro_rules! with_each_program {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            for program in Program::ALL {
                if let Some(lab) = Lab::new(program, stringify!($name)) {
                    block_on(told::$name(lab));
                }
            }
        }
    )*};
}
use with_each_program;

with_each_program! {
    three_turns_reach_the_model_exactly_once
    a_session_that_was_used_by_hand_is_caught_up_with
    what_was_driven_adds_nothing_when_it_is_read_again
}

mod told {
    use super::*;

    pub(super) async fn three_turns_reach_the_model_exactly_once(lab: Lab) {
        for turn in 0..3 {
            lab.server.push(Reply::default().text(&format!("ANSWER-{turn}.")));
            let driven = lab.say(&format!("WORDS-{turn}."), &format!("TODO-{turn}.")).await.unwrap();
            assert_eq!(driven.how, How::Told);
            assert_eq!(driven.receipt.unwrap().mode, if turn == 0 { Mode::Full } else { Mode::Delta });
        }
        let bodies = lab.bodies();
        assert_eq!(bodies.len(), 3, "one model call a turn");
        for (at, body) in bodies.iter().enumerate() {
            for turn in 0..3 {
                assert_eq!(count(body, &format!("WORDS-{turn}.")), usize::from(turn <= at), "{at} {turn}: {body}");
                assert_eq!(count(body, &format!("ANSWER-{turn}.")), usize::from(turn < at), "{at} {turn}: {body}");
                assert_eq!(count(body, &format!("TODO-{turn}.")), usize::from(turn == at), "{at} {turn}: {body}");
            }
            assert_eq!(count(body, "IDENTITY."), 1, "instructions are there, once");
        }
        assert_eq!(markers(&bodies[2]), ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2."]);
        assert_eq!(lab.log().await, ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2.", "ANSWER-2."]);
        // The control: whoever sends the history once more is seen to do so.
        lab.server.push(Reply::default().text("END"));
        lab.say("WORDS-0. ANSWER-0. WORDS-1. ANSWER-1. WORDS-2. ANSWER-2. and now?", "").await.unwrap();
        let naive = lab.bodies().pop().unwrap();
        for marker in ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2."] {
            assert_eq!(count(&naive, marker), 2, "{marker}");
        }
    }

    pub(super) async fn a_session_that_was_used_by_hand_is_caught_up_with(lab: Lab) {
        lab.server.push(Reply::default().text("ANSWER-0."));
        let first = lab.say("WORDS-0.", "").await.unwrap();
        lab.server.push(Reply::default().text("ANSWER-1."));
        lab.by_hand(first.session.as_ref().unwrap(), "WORDS-1.").await;
        lab.server.push(Reply::default().text("ANSWER-2."));
        lab.say("WORDS-2.", "").await.unwrap();
        let all = ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2."];
        assert_eq!(markers(&lab.bodies()[2]), all);
        assert_eq!(lab.log().await[..5], all);
    }

    pub(super) async fn what_was_driven_adds_nothing_when_it_is_read_again(lab: Lab) {
        for turn in 0..2 {
            lab.server.push(lab.calling(&format!("echo CALLED-{turn}.")));
            lab.server.push(Reply::default().text(&format!("ANSWER-{turn}.")));
            lab.say(&format!("WORDS-{turn}."), "").await.unwrap();
        }
        let before = lab.entries().await;
        assert_eq!(before.len(), 8, "words, a step, its result, the answer; twice");
        let mut notes = Vec::new();
        let caught = lab.engine.catch_up(&lab.at, &lab.driver, &"main".into(), &mut |heard| notes.push(heard)).await;
        assert_eq!((caught.unwrap(), notes), (Some(0), vec![]));
        assert_eq!(lab.entries().await, before);
    }
}
