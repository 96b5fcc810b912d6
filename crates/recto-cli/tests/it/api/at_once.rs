//! What several ask at once, of conversations that come and go under their hands.

use super::live::{Client, Live};
use recto_testkit::mixed::Dice;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

const ASKERS: u64 = 4;
const ASKS: usize = 500;
/// With `RECTO_LONG`.
const ASKS_LONG: usize = 20_000;
/// After how many requests of anybody the next conversation is talked about, and how many are at once.
const TURNOVER: usize = 60;
const AT_ONCE: usize = 3;

/// Returns a request that makes sense, if what it is about is there.
fn request(dice: &mut Dice, asked: usize) -> (&'static str, String, Value) {
    let name = format!("c{}", (asked / TURNOVER + AT_ONCE).saturating_sub(dice.below(AT_ONCE)));
    let conversation = format!("/conversations/{name}");
    let reader = format!("{conversation}/readers/{}", dice.pick(&["main", "other"]));
    let words = "words of it\n".repeat(1 + dice.below(300));
    let call = json!({
        "model": "gpt-4o", "policy": dice.pick(&["default", "safe", "first_chars", "none"]),
        "window": dice.pick(&[2_000, 4_000, 100_000]), "reserve": 500, "body_as": "none",
    });
    let (first, last) = (dice.below(3), 3 + dice.below(3));
    match dice.below(28) {
        0 | 1 => ("POST", "/conversations".into(), json!({"conversation": name})),
        2..=5 => ("POST", conversation + "/entries", json!({"entries": [{"role": "user", "text": words}]})),
        6..=11 => ("POST", reader + "/compile", call),
        12 => ("POST", reader + "/preview", call),
        13 => ("POST", reader + "/pins", json!({"first": first, "last": last})),
        14 => ("DELETE", format!("{reader}/pins?first={first}&last={last}"), Value::Null),
        15 => ("POST", format!("{reader}/decisions/{}/revert", dice.below(6)), Value::Null),
        16 => ("POST", reader + "/expand", json!({"handle": format!("m{first}"), "window": 2_000, "reserve": 500})),
        17 => ("GET", format!("{reader}/turns/{first}"), Value::Null),
        18 => ("GET", format!("{reader}/{}", dice.pick(&["turns", "decisions", "curve", "wants"])), Value::Null),
        19 => ("POST", reader + "/replay", json!({})),
        20 => {
            ("GET", format!("{conversation}/{}", dice.pick(&["entries", "readers", "sessions", "notes"])), Value::Null)
        }
        21 => ("GET", conversation + "/search?words=words", Value::Null),
        22 => ("GET", (*dice.pick(&["/conversations", "/search?words=words"])).into(), Value::Null),
        23 => ("PATCH", conversation, json!({"title": "a title"})),
        24 => {
            let upto = if dice.chance(50) { json!(first) } else { Value::Null };
            ("POST", conversation + "/forks", json!({"conversation": format!("{name}-{asked}"), "upto": upto}))
        }
        25 => ("POST", conversation + "/erase", json!({"entries": [{"first": first, "last": first}]})),
        26 => ("GET", conversation, Value::Null),
        _ if dice.chance(40) => ("DELETE", conversation + "?with_forks=true", Value::Null),
        _ => ("DELETE", conversation, Value::Null),
    }
}

/// Asks again and again, and calls back with each answer.
fn asks(
    client: &Client,
    seed: u64,
    asked: &AtomicUsize,
    mut heard: impl FnMut(&'static str, String, super::live::Answer),
) {
    let mut dice = Dice::new(seed);
    let mut ask = |method: &'static str, path: String, body: &Value| {
        let path = format!("/api/v1{path}");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = client.ask(method, &path, &[], body);
        let told = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        heard(method, path, answer);
        told
    };
    let asks = if std::env::var_os("RECTO_LONG").is_some() { ASKS_LONG } else { ASKS };
    for _ in 0..asks {
        let (method, path, body) = request(&mut dice, asked.fetch_add(1, Ordering::Relaxed));
        let told = ask(method, path.clone(), &body);
        if let (Some(reader), Some(ticket)) = (path.strip_suffix("/compile"), told.get("ticket")) {
            let entries =
                json!([{"role": "assistant", "text": "an answer of some words\n".repeat(1 + dice.below(40))}]);
            match dice.chance(80) {
                true => ask("POST", format!("{reader}/acknowledge"), &json!({"ticket": ticket, "entries": entries})),
                false => ask("POST", format!("{reader}/abandon"), &json!({"ticket": ticket})),
            };
        }
    }
}

#[test]
fn whatever_is_asked_at_once_is_answered_as_it_is_described_and_the_store_stays_whole() {
    let live = Live::new();
    let (asked, (tell, told)) = (Arc::new(AtomicUsize::new(0)), mpsc::channel());
    let askers: Vec<_> = (0..ASKERS)
        .map(|seed| {
            let (client, asked, tell) = (live.client(), asked.clone(), tell.clone());
            thread::spawn(move || {
                asks(&client, seed + 1, &asked, |method, path, answer| tell.send((method, path, answer)).unwrap())
            })
        })
        .collect();
    drop(tell);
    let mut refused = BTreeSet::new();
    for (method, path, answer) in told {
        match answer.status {
            200..300 => live.holds(method, &path, &answer),
            400..500 => {
                live.is_problem(&answer);
                refused.insert(answer.status);
            }
            _ => panic!("{method} {path}: {} {}", answer.status, answer.text()),
        }
    }
    askers.into_iter().for_each(|asker| asker.join().unwrap());
    // All of them met, and most of what there is was answered.
    assert!(refused.is_superset(&[404, 409, 410].into()), "{refused:?}");
    assert!(live.answered.borrow().len() >= 25, "{:?}", live.answered.borrow());
    let doctor = live.place.command(&["doctor"]).output().unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    live.ends();
}
