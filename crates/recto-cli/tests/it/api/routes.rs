//! Each route, once, on a conversation that has lived a little.

use super::live::Live;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A name that must be escaped in a path, and how it then reads.
const NAME: &str = "monday/1 ä";
const PLACE: &str = "/conversations/monday%2F1%20%C3%A4";

fn place(rest: &str) -> String {
    format!("{PLACE}{rest}")
}

fn reader(rest: &str) -> String {
    format!("{PLACE}/readers/main{rest}")
}

/// Makes the conversation, with three calls and a long result.
fn lived(live: &Live) {
    let made = live.post("/conversations", json!({"conversation": NAME, "meta": {"a": 1}}));
    assert_eq!((&made["conversation"], &made["head"]), (&json!(NAME), &Value::Null));
    let long: String = (0..3_000).map(|line| format!("line {line} of the file\n")).collect();
    let messages = json!([
        {"role": "user", "content": "Read a.rs, please."},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": long}]);
    let appended = live.post(&place("/entries"), json!({"messages": messages, "after": null}));
    assert_eq!((&appended["first"], &appended["last"]), (&json!(0), &json!(2)));
    for call in 0..3 {
        let say = json!({"entries": [{"role": "user", "text": format!("Question {call}?")}], "after": 2 + 2 * call});
        live.post(&place("/entries"), say);
        let fragments = json!([{"id": "rules", "content": "Be terse."},
            {"id": "todo", "content": format!("{call} to do"), "lifecycle": "dynamic", "placement": "tail"}]);
        let page = live.post(&reader("/compile"), json!({"model": "gpt-4o", "fragments": fragments}));
        assert_eq!(page["page"]["messages"][0]["fragment"], "rules");
        let reply = json!({"id": "r", "object": "chat.completion", "model": "gpt-4o", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": format!("Answer {call}.")}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}});
        let answer = json!({"ticket": page["ticket"], "model": "gpt-4o", "binding": page["binding"], "reply": reply});
        let done = live.post(&reader("/acknowledge"), answer);
        assert_eq!((&done["turn"], &done["last"]), (&json!(call), &json!(4 + 2 * call)));
    }
}

fn facts(live: &Live) {
    assert_eq!(live.get("/version")["tenant"], "local");
    assert_eq!(live.get("/policies")["default"], "default");
    assert_eq!(live.get("/policies/default")["name"], "default");
    let models = live.get("/models?limit=3");
    assert_eq!(models["models"].as_array().unwrap().len(), 3);
    let after = models["next"].as_str().unwrap();
    assert!(live.get(&format!("/models?after={after}&limit=1000"))["models"][0]["name"].as_str() > Some(after));
    assert_eq!(live.get("/models/gpt-4o")["known"], true);
    assert_eq!(live.get("/models/nobody%2Fknows")["known"], false);
    live.asks("GET", "/openapi.json", &[], &Value::Null);
}

fn conversation(live: &Live) {
    let listed = live.get("/conversations?search=MONDAY&limit=10");
    let row = &listed["conversations"][0];
    assert_eq!((&row["conversation"], &row["title"]), (&json!(NAME), &json!("Read a.rs, please.")));
    assert_eq!((&row["readers"][0]["turns"], &row["readers"][0]["last"]["turn"]), (&json!(3), &json!(2)));
    assert!(live.get("/conversations?prefix=tues")["conversations"].as_array().unwrap().is_empty());
    assert_eq!(live.get(PLACE)["meta"]["a"], 1);
    let patched = live.asks("PATCH", &format!("/api/v1{PLACE}"), &[], &json!({"title": "Files"}));
    assert_eq!((&patched["title"], &patched["meta"]["a"]), (&json!("Files"), &json!(1)));
    assert_eq!(live.get(&place("/readers"))["readers"][0]["reader"], "main");
    assert_eq!(live.get(&place("/entries?limit=2&from=1"))["next"], 3);
    assert_eq!(live.get(&place("/entries/0"))["entry"]["role"], "user");
    assert_eq!(live.get(&place("/entries/0/original"))["entry"]["parts"][0]["text"], "Read a.rs, please.");
    let found = live.get(&place("/search?words=read+a.rs"));
    assert_eq!((&found["found"][0]["seq"], &found["found"][0]["conversation"]), (&json!(0), &json!(NAME)), "{found}");
    assert_eq!(live.get("/search?words=read+a.rs")["found"], found["found"]);
    assert!(
        live.get(&format!("/search?words=read&after={}", NAME.replace('/', "%2F").replace(" ä", "%20%C3%A4")))["found"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    live.refuses((400, "bad_request"), "GET", &place("/search?words=+"), "");
    live.refuses((400, "bad_request"), "GET", &place("/search?words=a&budget=0"), "");
    live.refuses((413, "too_much"), "GET", &format!("/search?words={}", "a".repeat(5_000)), "");
    assert!(live.get(&place("/notes"))["notes"].as_array().unwrap().is_empty());
    assert!(live.get(&reader("/wants?policy=default&window=32000"))["wants"].as_array().unwrap().is_empty());
}

fn turns(live: &Live) {
    let turns = live.get(&reader("/turns?limit=2"));
    assert_eq!((turns["calls"].as_array().unwrap().len(), &turns["next"]), (2, &json!(2)));
    assert_eq!(turns["calls"][0]["used"][0]["input"], 100);
    assert!(turns["calls"][0]["totals"]["usd_without"].as_f64() > Some(0.0));
    let first = live.get(&reader("/turns/0"));
    assert_eq!((&first["agrees"], &first["difference"], &first["body"]), (&json!(true), &Value::Null, &Value::Null));
    let second = live.get(&reader("/turns/1?body_as=json"));
    let difference = &second["difference"];
    assert_eq!(difference["fragments"], json!([{"id": "rules", "is": "equal"}, {"id": "todo", "is": "changed"}]));
    let is: Vec<&str> =
        difference["messages"].as_array().unwrap().iter().map(|it| it["is"].as_str().unwrap()).collect();
    assert_eq!(is.iter().filter(|is| **is == "equal").count(), 5, "{is:?}");
    assert_eq!(is.iter().filter(|is| **is == "new").count(), 3, "{is:?}");
    assert_eq!(is.iter().filter(|is| **is == "gone").count(), 1, "{is:?}");
    let path = format!("/api/v1{}", reader("/turns/1/request"));
    let bytes = live.ask("GET", &path, &[], "");
    assert!(bytes.head.contains("x-recto-agrees: true"), "{}", bytes.head);
    assert_eq!(bytes.json(), second["body"]);
    live.holds("GET", &path, &bytes);
    let small = live.post(&reader("/turns/2/preview"), json!({"window": 4_000, "reserve": 500}));
    assert!(small["receipt"]["ledger"]["window"] == 4_000, "{}", small["receipt"]["ledger"]);
    let tokens = |it: &Value| -> u64 {
        ["cached", "written", "plain"].iter().map(|of| it["receipt"]["money"][of].as_u64().unwrap()).sum()
    };
    let (was, is) = (tokens(&live.get(&reader("/turns/2"))), tokens(&small));
    assert!(is < was, "{is} of {was}");
}

fn money(live: &Live) {
    let curve = live.get(&reader("/curve"));
    assert_eq!((curve["points"].as_array().unwrap().len(), &curve["total"]["calls"]), (3, &json!(3)));
    assert!(curve["total"]["usd_without"].as_f64() >= curve["total"]["usd"].as_f64());
    let replay = live.post(&reader("/replay"), json!({"policy": "none", "model": "gpt-4o"}));
    assert_eq!((&replay["is_complete"], &replay["total"]["calls"]), (&json!(true), &json!(4)));
    assert_eq!(replay["total"]["tokens"], replay["total"]["tokens_without"]);
    let tight = live.post(&reader("/replay"), json!({"window": 4_000, "reserve": 500}));
    assert!(
        tight["points"].as_array().unwrap().iter().any(|it| it["reductions"]["decisions"].as_u64() > Some(0)),
        "{tight}"
    );
}

fn decisions(live: &Live) {
    live.post(&reader("/pins"), json!({"first": 0, "last": 0}));
    live.post(&reader("/pins"), json!({"first": 3, "last": 4}));
    let all = live.get(&reader("/decisions?limit=1"));
    assert_eq!((&all["decisions"][0]["ordinal"], &all["next"]), (&json!(1), &json!(1)));
    assert_eq!(live.get(&reader("/decisions?after=1"))["decisions"][0]["edit"]["change"]["pin"]["first"], 3);
    assert_eq!(live.post(&reader("/decisions/1/revert"), Value::Null)["reverted"], 1);
    live.refuses((422, "not_taken"), "POST", &reader("/decisions/1/revert"), "");
    let path = format!("/api/v1{}", reader("/pins?first=4&last=9"));
    assert_eq!(live.asks("DELETE", &path, &[], &Value::Null)["removed"], 1);
    // In a small window the long result can't be shown whole.
    let small = json!({"handle": "m2", "lines": [1, 3], "window": 4_000, "reserve": 500});
    let expanded = live.post(&reader("/expand"), small);
    assert!(expanded["text"].as_str().unwrap().contains("line 2 of the file"), "{expanded}");
    let refused = live.refuses((422, "not_expanded"), "POST", &reader("/expand"), r#"{"handle":"m0"}"#);
    assert_eq!(refused["refusal"], "never_reduced");
}

fn open_calls(live: &Live) {
    live.post(&place("/entries"), json!({"entries": [{"role": "user", "text": "And now?"}]}));
    let preview = live.post(&reader("/preview"), json!({"body_as": "text"}));
    let body: Value = serde_json::from_str(preview["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["messages"].as_array().unwrap().last().unwrap()["content"], "And now?");
    let page = live.post(&reader("/compile"), json!({"input": {"role": "user", "text": "Really?"}, "body_as": "none"}));
    assert_ne!(page["ticket"]["page"], preview["ticket"]["page"]);
    let ticket = json!({"ticket": page["ticket"]});
    assert_eq!(live.post(&reader("/abandon"), ticket.clone())["was_open"], true);
    assert_eq!(live.post(&reader("/abandon"), ticket.clone())["was_open"], false);
    let late = json!({"ticket": page["ticket"], "entries": [{"role": "assistant", "text": "Late."}]});
    let refused = live.refuses((409, "conflict"), "POST", &reader("/acknowledge"), late.to_string());
    assert_eq!(refused["head"], 9);
    assert!(live.get(&place("/sessions"))["sessions"].as_array().unwrap().is_empty());
    let with = json!({"session": {"provider": "mine", "workspace": "w"}, "body_as": "none"});
    let page = live.post(&reader("/compile"), with.clone());
    live.refuses((409, "in_use"), "POST", &reader("/compile"), with.to_string());
    let answer = json!({"ticket": page["ticket"], "entries": [{"role": "assistant", "text": "Yes."}], "session": "s1"});
    live.post(&reader("/acknowledge"), answer);
    let session = &live.get(&place("/sessions"))["sessions"][0];
    assert_eq!((&session["id"], &session["acked"], &session["head"]), (&json!("s1"), &json!(10), &json!(10)));
}

fn streams(live: &Live) {
    for path in [format!("/api/v1{}", reader("/events")), "/api/v1/events".into()] {
        let mut stream = live.opened("GET", &path, &[], b"");
        let mut head = [0; 15];
        std::io::Read::read_exact(&mut stream, &mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        let answer = super::live::Answer { status: 200, head: String::new(), body: Vec::new() };
        live.holds("GET", &path, &answer);
    }
}

fn end(live: &Live) {
    let gone = live.post(&place("/erase"), json!({"entries": [{"first": 2, "last": 2}]}));
    assert_eq!(gone["entries"], 1);
    assert!(live.get(&place("/entries/2"))["entry"]["erased"]["bytes"].as_u64() > Some(10_000));
    let fork = live.post(&place("/forks"), json!({"conversation": "tuesday", "upto": 4}));
    assert_eq!((&fork["entries"], &fork["from"]), (&json!(5), &json!(NAME)));
    let refused = live.refuses((409, "has_forks"), "DELETE", PLACE, "");
    assert_eq!((&refused["forks"], &refused["head"]), (&json!(["tuesday"]), &json!(10)));
    let path = format!("/api/v1{PLACE}?with_forks=true");
    let gone = live.asks("DELETE", &path, &[], &Value::Null);
    assert_eq!(gone["conversations"].as_array().unwrap().len(), 2);
    live.refuses((410, "erased"), "GET", PLACE, "");
    live.refuses((409, "exists"), "POST", "/conversations", json!({"conversation": NAME}).to_string());
}

#[test]
fn every_route_answers_as_it_is_described() {
    let live = Live::new();
    lived(&live);
    facts(&live);
    conversation(&live);
    turns(&live);
    money(&live);
    decisions(&live);
    open_calls(&live);
    streams(&live);
    end(&live);
    let all: BTreeSet<(String, String)> =
        live.routes().into_iter().map(|(method, path, _)| (method.to_lowercase(), path)).collect();
    let answered = live.answered.borrow().clone();
    assert_eq!(all.difference(&answered).collect::<Vec<_>>(), Vec::<&(String, String)>::new(), "never asked");
    assert!(all.len() >= 40);
}

#[test]
fn newest_conversations_come_first_and_pages_of_them_go_on() {
    let live = Live::new();
    for name in ["a", "b", "c", "d", "e"] {
        live.post("/conversations", json!({"conversation": name}));
    }
    live.talk("f", "words", 1);
    live.post("/conversations/b/entries", json!({"entries": [{"role": "user", "text": "newest"}]}));
    let names = |query: &str| -> Vec<String> {
        let (mut names, mut after) = (Vec::new(), String::new());
        loop {
            let page = live.get(&format!("/conversations?limit=2&{query}{after}"));
            let rows = page["conversations"].as_array().unwrap();
            names.extend(rows.iter().map(|it| it["conversation"].as_str().unwrap().to_string()));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return names,
            }
        }
    };
    assert_eq!(names("order=name"), ["a", "b", "c", "d", "e", "f"]);
    let newest = names("order=updated");
    assert_eq!((newest.len(), &*newest[0], &*newest[1]), (6, "b", "f"));
    assert_eq!(names("order=name&prefix=e"), ["e"]);
}
