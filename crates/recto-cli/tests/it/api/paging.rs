//! Long lists are read in pages, and every row comes once.

use super::live::Live;
use serde_json::{Value, json};

const ENTRIES: u64 = 5_000;

fn seqs(live: &Live, query: &str) -> Vec<u64> {
    let (mut seqs, mut from, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = live.get(&format!("/conversations/long/entries?{query}{from}"));
        seqs.extend(page["entries"].as_array().unwrap().iter().map(|row| row["seq"].as_u64().unwrap()));
        pages += 1;
        assert!(pages <= 60, "it never ends");
        match page["next"].as_u64() {
            Some(next) => from = format!("&from={next}"),
            None => return seqs,
        }
    }
}

#[test]
fn five_thousand_entries_are_read_forward_and_back_each_once() {
    let live = Live::new();
    live.post("/conversations", json!({"conversation": "long"}));
    for batch in 0..ENTRIES / 1_000 {
        let say = |at: u64| json!({"role": if at.is_multiple_of(2) { "user" } else { "assistant" }, "text": format!("entry {at}")});
        let entries: Vec<Value> = (batch * 1_000..(batch + 1) * 1_000).map(say).collect();
        let body = json!({"entries": entries}).to_string();
        assert_eq!(live.ask("POST", "/api/v1/conversations/long/entries", &[], body).status, 200);
    }
    let all: Vec<u64> = (0..ENTRIES).collect();
    let back: Vec<u64> = all.iter().rev().copied().collect();
    assert_eq!(seqs(&live, "limit=1000"), all);
    assert_eq!(seqs(&live, "limit=777"), all);
    assert_eq!(seqs(&live, "limit=777&order=back"), back);
    let some = live.get("/conversations/long/entries?from=10&limit=4&order=back");
    let told: Vec<u64> = some["entries"].as_array().unwrap().iter().map(|row| row["seq"].as_u64().unwrap()).collect();
    assert_eq!((told, &some["next"]), (vec![10, 9, 8, 7], &json!(6)));
    assert!(live.get("/conversations/long/entries?from=999999")["entries"].as_array().unwrap().is_empty());
    live.refuses((400, "bad_request"), "GET", "/conversations/long/entries?limit=1001", "");
    live.refuses((413, "too_much"), "POST", "/conversations/long/entries", {
        let entries: Vec<Value> = (0..1_001).map(|_| json!({"role": "user", "text": "x"})).collect();
        json!({"entries": entries}).to_string()
    });
    assert_eq!(live.get("/conversations/long")["entries"], ENTRIES, "nothing of what was refused is there");
    live.refuses((413, "too_much"), "POST", "/conversations/long/erase", r#"{"entries":[{"first":0,"last":4999}]}"#);
}
