use super::Inspected;
use super::browser::{Browser, asks};
use recto_testkit::fake::{Gate, Reply, Server};
use serde_json::{Value, json};

/// Has an agent make one more call through the gateway, of a talk of so many questions.
fn calls(inspected: &Inspected, fake: &Server, questions: usize) {
    answered(inspected, fake, questions, Reply::default());
}

/// The same, with an answer that begins as it is told.
fn answered(inspected: &Inspected, fake: &Server, questions: usize, reply: Reply) {
    fake.push(reply.text(&format!("Answer {questions}.")));
    let mut messages = Vec::new();
    for at in 1..=questions {
        messages.push(json!({"role": "user", "content": format!("Question {at}?")}));
        if at < questions {
            messages.push(json!({"role": "assistant", "content": format!("Answer {at}.")}));
        }
    }
    let headers = ["x-recto-conversation: live-talk", "authorization: Bearer sk-fake"];
    let body = json!({"model": "gpt-4o", "messages": messages});
    let (status, answer) = asks(&inspected.url, "POST", "/v1/chat/completions", &headers, &body);
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn a_call_through_the_gateway_is_seen_as_it_happens() {
    let Some(browser) = Browser::start("inspector, live") else { return };
    let fake = Server::start();
    let inspected = Inspected::before(&fake);
    browser.goes(&inspected.at(""));
    browser.says("No conversation yet");
    browser.until("document.querySelector('#live.on')");
    calls(&inspected, &fake, 1);
    browser.until("document.querySelector('.conversation')?.textContent.includes('Question 1?')");

    browser.goes(&inspected.at("#/c/live-talk/main"));
    browser.until("document.querySelector('.stepper')?.textContent.includes('of 1')");
    browser.until("document.querySelector('#live.on')");
    browser.runs("window.isSamePage = true");
    calls(&inspected, &fake, 2);
    browser.until("document.querySelector('.stepper')?.textContent.includes('of 2')");
    browser.until("document.querySelector('#call').value === '1'");
    browser.until("[...document.querySelectorAll('.entry')].some((it) => it.textContent.includes('Question 2?'))");
    assert_eq!(browser.runs("return window.isSamePage"), json!(true), "nobody loaded the page again");
    browser.pictures("live");
    browser.is_quiet();
}

#[test]
fn what_was_said_is_seen_while_the_call_runs_and_its_answer_when_it_is_there() {
    let Some(browser) = Browser::start("inspector, running call") else { return };
    let fake = Server::start();
    let inspected = Inspected::before(&fake);
    calls(&inspected, &fake, 1);
    browser.goes(&inspected.at("#/c/live-talk/main/page/next"));
    browser.until("document.querySelector('#live.on')");
    browser.until("document.querySelector('.entry .words')");
    let says = |words: &str| {
        browser.until(&format!(
            "[...document.querySelectorAll('.entry .said')].some((it) => it.textContent.includes({}))",
            json!(words)
        ));
    };
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let reply = Reply::default().waiting_after(0, &gate);
        let call = scope.spawn(|| answered(&inspected, &fake, 2, reply));
        gate.reached();
        says("Question 2?");
        assert!(!browser.words().contains("Answer 2."));
        assert!(!call.is_finished(), "nobody has answered yet");
        browser.pictures("live-running");
        gate.open();
        call.join().unwrap();
    });
    says("Answer 2.");
    browser.until("document.querySelector('.stepper')?.textContent.includes('of 2')");
    browser.is_quiet();
}

/// What the API says of the decisions about an entry.
fn decided(inspected: &Inspected, seq: u64) -> Vec<Value> {
    let all = inspected.api("GET", "/conversations/late-fees/readers/main/decisions?limit=1000", &Value::Null);
    let about = |one: &&Value| one["edit"]["change"]["replace"]["at"]["seq"] == seq;
    all["decisions"].as_array().unwrap().iter().filter(about).cloned().collect()
}

#[test]
fn what_was_left_out_is_brought_back() {
    let Some(browser) = Browser::start("inspector, expand") else { return };
    let inspected = Inspected::demo();
    browser.goes(&inspected.at("#/c/late-fees/main/page"));
    browser.until("document.querySelector('.entry[data-seq=\"3\"].fate-changed .words')");
    browser.runs("document.querySelector('.entry[data-seq=\"3\"]').click()");
    browser.until("document.querySelector('.drawer:not([hidden])')?.textContent.includes('What was decided')");
    browser.pictures("entry");
    browser.clicks(".drawer button", "Bring it back");
    browser.says("#3 stands on the next page again");
    browser.clicks("button", "Next");
    browser.until("document.querySelector('.entry[data-seq=\"3\"].fate-shown')");
    browser.until("document.querySelector('.entry[data-seq=\"3\"] .gutter').textContent.includes('expanded')");
    browser.is_quiet();
}

#[test]
fn a_decision_is_taken_back_and_an_entry_pinned() {
    let Some(browser) = Browser::start("inspector, revert") else { return };
    let inspected = Inspected::demo();
    let before = decided(&inspected, 3);
    assert!(!before.is_empty() && before.iter().all(|one| one.get("reverted").is_none()), "{before:?}");
    browser.goes(&inspected.at("#/c/late-fees/main/page"));
    browser.until("document.querySelector('.entry[data-seq=\"3\"].fate-changed .words')");
    browser.runs("document.querySelector('.entry[data-seq=\"3\"]').click()");
    browser.clicks(".drawer button", "Take back");
    browser.says("was taken back");
    browser.until("document.querySelector('.drawer .reverted')");
    assert!(decided(&inspected, 3).iter().any(|one| one.get("reverted").is_some()));
    browser.clicks(".drawer button", "Pin");
    browser.says("is pinned from the next page on");
    browser.clicks(".drawer button", "Take the pin back");
    browser.says("is not pinned any more");
    browser.is_quiet();
}

#[test]
fn another_policy_is_tried_before_it_is_adopted() {
    let Some(browser) = Browser::start("inspector, what if") else { return };
    let inspected = Inspected::demo();
    let count = || inspected.api("GET", "/conversations/late-fees", &Value::Null)["version"].clone();
    let before = count();
    browser.goes(&inspected.at("#/c/late-fees/main/what-if/60"));
    browser.until("document.querySelectorAll('#policy option').length > 5");
    browser.runs("document.querySelector('#policy').value = 'none'; document.querySelector('#window').value = '128k';");
    browser.clicks("button", "Show this page");
    browser.says("The page of call 60");
    browser.says("Entries that fare otherwise");
    let table = browser.runs("return document.querySelector('.compare').innerText");
    assert!(table.as_str().unwrap().contains("Tokens"), "{table}");
    browser.says("policy = \"none\"");
    browser.clicks("button", "The whole conversation");
    browser.says("as if every answer had been a call under these settings");
    browser.pictures("what-if");
    browser.runs("document.querySelector('#window').value = 'much';");
    browser.clicks("button", "Show this page");
    browser.says("is no number of tokens");
    assert_eq!(count(), before, "nothing was recorded");
    browser.is_quiet();
}
