//! Begun on one, carried on by the other, by a plain provider, and back: with tool calls, each thing once, in order.

use super::lab::{Lab, Program, count, markers};
use crate::engine::block_on;
use recto::page::Mode;
use recto::receipt::Full;
use recto::session::Lost;
use recto::wire::Wire;
use recto::{Policy, Target};
use recto_engine::Call;
use recto_engine::upstream::{Settings, Upstream};
use recto_testkit::fake::{self, Reply};
use serde_json::Value;

/// What has been said when a conversation has gone around once.
const ALL: [&str; 13] = [
    "WORDS-0.",
    "CALLED-0.",
    "FOUND-0.",
    "ANSWER-0.", // by one
    "WORDS-1.",
    "CALLED-1.",
    "FOUND-1.",
    "ANSWER-1.", // by the other
    "WORDS-2.",
    "ANSWER-2.", // by a plain provider
    "WORDS-3.",
    "ANSWER-3.", // by the first again
    "WORDS-4.",
];

fn in_request(body: &Value) -> Vec<String> {
    // What a call says and what it found are alike in a request; the second one is the result.
    let mut found: Vec<String> = Vec::new();
    for mark in markers(body) {
        let is_result = found.last().is_some_and(|last| *last == mark);
        found.push(if is_result { mark.replace("CALLED", "FOUND") } else { mark });
    }
    found
}

#[test]
fn a_conversation_goes_from_one_to_the_other_and_back() {
    for (one, other) in [(Program::ClaudeCode, Program::Codex), (Program::Codex, Program::ClaudeCode)] {
        let test = "a_conversation_goes_from_one_to_the_other_and_back";
        if let (Some(lab), Some(path)) = (Lab::new(one, test), other.path(test)) {
            block_on(around(lab, other, path));
        }
    }
}

async fn around(mut lab: Lab, other: Program, path: std::path::PathBuf) {
    let url = lab.server.url();
    let first = (lab.program, lab.driver.clone());
    let second = (other, other.driver(path, &lab.folder.file("other"), &url));

    turn(&lab, 0, Mode::Full, Some(Full::NoSession), true).await;
    (lab.program, lab.driver) = second.clone();
    turn(&lab, 1, Mode::Full, Some(Full::NoSession), true).await;

    let upstream = Upstream::of(Settings::new("plain", &format!("{url}/v1"), Wire::OpenaiChat)).unwrap();
    let target = Target::named("gpt-4o").unwrap();
    let call = Call { input: lab.call("WORDS-2.", "").input, ..Call::new("main", Policy::usual(), target) };
    lab.server.push(Reply::default().text("ANSWER-2."));
    lab.engine.ask(&lab.at, &upstream, call, &Default::default(), &mut |_| ()).await.unwrap();
    assert_eq!(in_request(&lab.bodies().pop().unwrap()), ALL[..9]);

    // Others have answered in between: it gets a session that holds all of it.
    (lab.program, lab.driver) = first.clone();
    turn(&lab, 3, Mode::Full, Some(Full::Lost { lost: Lost::WentOn }), false).await;
    // And from then on what is new.
    turn(&lab, 4, Mode::Delta, None, false).await;
    (lab.program, lab.driver) = second;
    turn(&lab, 5, Mode::Full, Some(Full::Lost { lost: Lost::WentOn }), false).await;
    turn(&lab, 6, Mode::Delta, None, false).await;
    let log = lab.log().await;
    assert_eq!(log[..13], ALL);
    let last = lab.bodies().pop().unwrap();
    assert_eq!(in_request(&last), log[..log.len() - 1]);
    assert_eq!(count(&last, "IDENTITY."), 1);
    assert!(lab.server.log().iter().all(|it| it.refusal.is_none() || it.request.method != "POST"));
}

/// One turn: what the program was told, and that its model read all of it once, in order.
async fn turn(lab: &Lab, number: usize, mode: Mode, full: Option<Full>, has_call: bool) {
    if has_call {
        lab.server.push(lab.calling(&format!("echo CALLED-{number}.")));
    }
    lab.server.push(Reply::default().text(&format!("ANSWER-{number}.")));
    let driven = lab.say(&format!("WORDS-{number}."), "").await.unwrap();
    let receipt = driven.receipt.unwrap();
    assert_eq!((receipt.mode, receipt.full), (mode, full), "turn {number}");
    let log = lab.log().await;
    let last = lab.bodies().pop().unwrap();
    assert_eq!(in_request(&last), log[..log.len() - 1], "turn {number}: {last:#}");
    let api = if last["messages"].is_array() { fake::Api::Messages } else { fake::Api::Responses };
    fake::check(api, last.to_string().as_bytes()).unwrap_or_else(|refusal| panic!("{refusal:?}: {last:#}"));
}
