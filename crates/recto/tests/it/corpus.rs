//! Real transcripts: every conversation compiles within every window, and any past turn compiles again.

use recto::page::Mode;
use recto::receipt::Overflow;
use recto::transcript::{self, Conversation};
use recto::{Log, Policy, Replay, Target, Tokens, compile_once, wire};
use recto_testkit::{check, shared};
use serde_json::Value;

const WINDOWS: [u64; 3] = [8_000, 32_000, 128_000];
const CONVERSATIONS: usize = 148;
const LONGEST: usize = 10;

fn conversations(test: &str) -> Option<Vec<Conversation>> {
    let folder = shared::folder("data/conversations", test)?;
    let files = shared::jsonl(&folder);
    let read = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).expect("shared data can be read");
        transcript::read(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    Some(files.iter().flat_map(read).collect())
}

fn log(conversation: &Conversation) -> Log {
    conversation.clone().into_log(Target::eval().tokenizer).expect("real conversations can be appended")
}

/// Two policies: one that only drops, one that shortens first.
fn policies() -> [Policy; 2] {
    [Policy::safe(), Policy::first_chars()]
}

/// Walks a conversation and checks every page; returns how many pages there were and how many didn't fit.
fn walk(name: &str, log: &Log, policy: &Policy, target: &Target) -> (usize, usize) {
    let (mut pages, mut overflows) = (Vec::new(), 0);
    let mut replay = Replay::new(log, policy, target);
    for turn in replay.by_ref() {
        let at = || format!("{name}, turn {}, window {:?}, policy {}", turn.turn, target.window, policy.name);
        match &turn.compiled {
            Ok(compiled) => {
                let body = wire::openai_chat::encode(&compiled.page, target);
                let json: Value = serde_json::from_slice(&body).expect("a body is JSON");
                let messages = json["messages"].as_array().expect("a body has messages");
                check::pairs(messages, false).unwrap_or_else(|what| panic!("{}: {what}", at()));
                let cost = compiled.page.messages.iter().map(|message| message.cost.0).sum();
                check::budget(&compiled.receipt, cost).unwrap_or_else(|what| panic!("{}: {what}", at()));
                check::fates(&compiled.receipt.fates, &log.until(compiled.receipt.ticket.head))
                    .unwrap_or_else(|what| panic!("{}: {what}", at()));
                assert_eq!(compiled.page.mode, Mode::Full);
                assert_eq!(wire::openai_chat::validate(&body), [], "{}", at());
                pages.push((compiled.receipt.ticket.clone(), body));
            }
            Err(error) => {
                let overflow = error.overflow().unwrap_or_else(|| panic!("{}: {error}", at()));
                assert!(cannot_fit(overflow), "{}: {error}", at());
                overflows += 1;
            }
        }
    }
    for (ticket, body) in &pages {
        let again = replay.again(ticket).expect("what fitted once fits again");
        assert!(
            wire::openai_chat::encode(&again, target) == *body,
            "{name}: turn {} has other bytes now",
            ticket.turn.0
        );
    }
    (pages.len(), overflows)
}

/// Whether it wouldn't fit even if all history went that may go.
fn cannot_fit(overflow: &Overflow) -> bool {
    let beside = overflow.reserve_out + overflow.tools + overflow.input + overflow.framing;
    beside + overflow.protected > overflow.window && overflow.over > Tokens(0)
}

/// Walks a conversation in a small window under both policies.
pub(super) fn keeps_the_laws(name: &str, conversation: &Conversation, window: u64) {
    let log = log(conversation);
    for policy in policies() {
        let (pages, overflows) = walk(name, &log, &policy, &Target::eval().with_window(Some(Tokens(window))));
        assert!(pages > overflows, "{name} in {window}: {pages} pages, {overflows} that don't fit");
    }
}

#[test]
fn the_longest_conversations_compile_at_every_turn_in_every_window() {
    let Some(mut all) = conversations("every turn of the ten longest conversations") else { return };
    all.sort_by_key(|conversation| std::cmp::Reverse(conversation.entries.len()));
    for conversation in &all[..LONGEST] {
        let (log, name) = (log(conversation), conversation.id.as_deref().unwrap_or("?"));
        for (window, policy) in WINDOWS.into_iter().flat_map(|window| policies().map(|policy| (window, policy))) {
            let target = Target::eval().with_window(Some(Tokens(window)));
            let (pages, overflows) = walk(name, &log, &policy, &target);
            let replies = log.back_by(recto::Role::Assistant).filter(|entry| entry.seq.0 > 0).count();
            assert_eq!(pages + overflows, replies, "{name} in {window}");
        }
    }
}

#[test]
fn every_conversation_compiles_in_every_window_to_the_same_bytes_twice() {
    let Some(all) = conversations("all conversations in all windows") else { return };
    assert_eq!(all.len(), CONVERSATIONS);
    for conversation in &all {
        let (log, name) = (log(conversation), conversation.id.as_deref().unwrap_or("?"));
        for (window, policy) in WINDOWS.into_iter().flat_map(|window| policies().map(|policy| (window, policy))) {
            let target = Target::eval().with_window(Some(Tokens(window)));
            let reader = recto::Reader::new("main");
            let request = recto::Request::new(&log, &reader, &policy, &target);
            match (compile_once(&request), compile_once(&request)) {
                (Ok(one), Ok(two)) => {
                    let (one, two) = (one.page, two.page);
                    let (one, two) =
                        (wire::openai_chat::encode(&one, &target), wire::openai_chat::encode(&two, &target));
                    assert!(one == two, "{name} in {window}: other bytes the second time");
                    assert_eq!(wire::openai_chat::validate(&one), [], "{name} in {window}");
                }
                (Err(error), _) | (_, Err(error)) => {
                    let overflow = error.overflow().unwrap_or_else(|| panic!("{name} in {window}: {error}"));
                    assert!(cannot_fit(overflow), "{name} in {window}: {error}");
                }
            }
        }
    }
}
