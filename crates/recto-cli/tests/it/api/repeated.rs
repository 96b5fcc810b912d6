//! Retries are safe, and whoever was not quick enough is told where the log ends.

use super::live::Live;
use serde_json::{Value, json};

const ENTRIES: &str = "/api/v1/conversations/monday/entries";

fn appends(live: &Live, key: &str, text: &str) -> (u16, Value) {
    let body = json!({"entries": [{"role": "user", "text": text}]}).to_string();
    let answer = live.ask("POST", ENTRIES, &[&format!("idempotency-key: {key}")], body);
    (answer.status, answer.json())
}

#[test]
fn an_append_of_the_same_key_is_done_once() {
    let live = Live::new();
    live.post("/conversations", json!({"conversation": "monday"}));
    let (status, first) = appends(&live, "k1", "Hello?");
    assert_eq!((status, &first["first"], &first["is_repeated"]), (200, &json!(0), &json!(false)));
    for _ in 0..3 {
        let (status, again) = appends(&live, "k1", "Hello?");
        assert_eq!((status, &again["first"], &again["is_repeated"]), (200, &json!(0), &json!(true)));
    }
    let (status, other) = appends(&live, "k1", "Something else.");
    assert_eq!((status, &other["kind"], &other["head"]), (409, &json!("key_reused"), &json!(0)));
    // Without a key, the same words are said twice.
    let (status, second) = appends(&live, "k2", "Hello?");
    assert_eq!((status, &second["first"]), (200, &json!(1)));
    assert_eq!(live.get("/conversations/monday")["entries"], 2);
    for wrong in ["idempotency-key: ", &format!("idempotency-key: {}", "k".repeat(300))] {
        let answer = live.ask("POST", ENTRIES, &[wrong], r#"{"entries":[{"role":"user","text":"x"}]}"#);
        assert_eq!(answer.status, 400, "{wrong}");
    }
}

#[test]
fn an_append_behind_another_entry_is_refused_with_the_newest() {
    let live = Live::new();
    live.post("/conversations", json!({"conversation": "monday"}));
    let say = |after: Value| json!({"entries": [{"role": "user", "text": "Hi"}], "after": after}).to_string();
    let path = "/conversations/monday/entries";
    let refused = live.refuses((412, "head_moved"), "POST", path, say(json!(3)));
    assert_eq!(refused["head"], Value::Null);
    assert_eq!(live.ask("POST", ENTRIES, &[], say(Value::Null)).status, 200);
    let refused = live.refuses((412, "head_moved"), "POST", path, say(Value::Null));
    assert_eq!(refused["head"], 0);
    assert_eq!(live.ask("POST", ENTRIES, &[], say(json!(0))).status, 200);
    assert_eq!(live.get("/conversations/monday")["entries"], 2);
}

#[test]
fn a_call_is_acknowledged_once_however_often_it_is_told() {
    let live = Live::new();
    live.talk("monday", "words", 1);
    live.post("/conversations/monday/entries", json!({"entries": [{"role": "user", "text": "More?"}]}));
    let reader = "/conversations/monday/readers/main";
    let pages = [0, 1].map(|_| live.post(&format!("{reader}/compile"), json!({"body_as": "none"})));
    let done = |page: &Value, key: &str, text: &str| {
        let body = json!({"ticket": page["ticket"], "entries": [{"role": "assistant", "text": text}]}).to_string();
        live.ask("POST", &format!("/api/v1{reader}/acknowledge"), &[&format!("idempotency-key: {key}")], body)
    };
    let [first, again] = [0, 1].map(|_| done(&pages[0], "a", "Yes."));
    assert_eq!((first.status, again.status), (200, 200), "{}", again.text());
    assert_eq!((&first.json()["is_repeated"], &again.json()["is_repeated"]), (&json!(false), &json!(true)));
    assert_eq!(first.json()["last"], again.json()["last"]);
    // The other page of the same call, and the same page under another name, come too late.
    for (page, key) in [(&pages[1], "b"), (&pages[0], "c")] {
        let late = done(page, key, "No.");
        assert_eq!((late.status, &late.json()["kind"], &late.json()["head"]), (409, &json!("conflict"), &json!(3)));
    }
    assert_eq!(live.get(&format!("{reader}/turns"))["calls"].as_array().unwrap().len(), 2);
    assert_eq!(live.get("/conversations/monday")["entries"], 4);
}
