//! Facts over HTTP: what a client knows at a call, for blocks to be made from.

use super::live::Live;
use serde_json::{Value, json};

const PREVIEW: &str = "/conversations/monday/readers/main/preview";

/// Returns the texts of a page's messages.
fn texts(page: &Value) -> Vec<String> {
    let messages = page["page"]["messages"].as_array().unwrap();
    messages.iter().map(|it| it["parts"][0]["text"].as_str().unwrap().to_string()).collect()
}

/// Design points N19 and N21, scenarios S38 and S42: the time of the call and the profile are in the blocks, and a stored
/// call compiles to the same page again.
#[test]
fn s42_facts_of_a_request_fill_the_moment_and_the_profile() {
    let live = Live::new();
    live.post("/conversations", json!({"conversation": "monday"}));
    let facts = json!({
        "now": "2025-12-10T08:00:00Z", "zone": "Asia/Shanghai",
        "profile": {"prompt_overrides": {"friends_profile": "Likes short answers."}},
    });
    let call = json!({"policy": "nexus_doc", "input": {"role": "user", "text": "And now?"}, "facts": facts});
    let page = live.post("/conversations/monday/readers/main/compile", call);
    let moment = "[THIS_MOMENT]\n<current_time>2025-12-10 16:00:00+08:00</current_time>\n<human_input>\nAnd now?\n</human_input>";
    assert_eq!(texts(&page)[3..], ["[FRIENDS_INFO]\nAbout this friend:\n\nLikes short answers.", moment]);
    let answer = json!({"ticket": page["ticket"], "entries": [{"role": "assistant", "text": "Now."}]});
    live.post("/conversations/monday/readers/main/acknowledge", answer);
    let again = live.get("/conversations/monday/readers/main/turns/0");
    assert_eq!((&again["agrees"], texts(&again)), (&json!(true), texts(&page)));
    let wrong = json!({"policy": "nexus_doc", "facts": {"time": 1}}).to_string();
    let problem = live.refuses((400, "bad_request"), "POST", PREVIEW, wrong);
    assert!(problem["detail"].as_str().unwrap().contains("unknown field `time`"), "{problem}");
}

/// Design points N22 and R22, scenario S42: an offset in minutes as JavaScript counts them, west positive, as a number or
/// as text, also under the name that the design has for it.
#[test]
fn s42_facts_take_the_offset_of_javascript_in_minutes() {
    let live = Live::new();
    live.post("/conversations", json!({"conversation": "monday"}));
    let moment = |now: Value, zone: (&str, Value)| {
        let facts = json!({"now": now, zone.0: zone.1});
        let call = json!({"policy": "nexus_doc", "input": {"role": "user", "text": "Hi"}, "facts": facts});
        let told = texts(&live.post(PREVIEW, call)).pop().unwrap();
        told.split(['<', '>']).nth(2).unwrap().to_string()
    };
    let utc = || json!("2025-12-10T08:00:00Z");
    for zone in [json!(-480), json!("-480"), json!("\u{2212}480"), json!("+08:00")] {
        assert_eq!(moment(utc(), ("zone", zone.clone())), "2025-12-10 16:00:00+08:00", "{zone}");
    }
    assert_eq!(moment(utc(), ("zone", json!(300))), "2025-12-10 03:00:00-05:00");
    assert_eq!(moment(utc(), ("zone", json!("-330"))), "2025-12-10 13:30:00+05:30");
    assert_eq!(moment(utc(), ("client_timezone_offset", json!(-480))), "2025-12-10 16:00:00+08:00");
    assert_eq!(moment(json!("2025-12-10T16:00:00+08:00"), ("zone", json!(-480))), "2025-12-10 16:00:00+08:00");
    for wrong in [json!(100_000), json!("-0800"), json!("8"), json!(1.5), json!("eight")] {
        live.refuses((400, "bad_request"), "POST", PREVIEW, json!({"facts": {"zone": wrong}}).to_string());
    }
}

/// Design points N11 and N14, scenario S39: without run ids, what a model said to one user message is one entry.
#[test]
fn s39_without_run_ids_an_exchange_is_one_entry_of_the_memory() {
    let live = Live::new();
    live.post("/conversations", json!({"conversation": "monday"}));
    let call = json!({"type": "call", "id": "c1", "name": "web_search", "arguments": {"object": "{\"query\":\"AI\"}"}});
    let entries = json!([
        {"role": "user", "text": "Search for AI"},
        {"role": "assistant", "parts": [{"type": "text", "text": "I'll search..."}, call]},
        {"role": "tool", "parts": [{"type": "result", "call": "c1", "content": [{"type": "text", "text": "found"}]}]},
        {"role": "assistant", "text": "Based on what I found"},
    ]);
    live.post("/conversations/monday/entries", json!({"entries": entries}));
    let page = live.post(PREVIEW, json!({"policy": "nexus_doc", "input": {"role": "user", "text": "Thanks"}}));
    let memory = &texts(&page)[2];
    assert!(memory.starts_with("[SHARED_MEMORY count=2]\n"), "{memory}");
    let merged = "  Nexus: I'll search...\n[tool_use:web_search, query:AI]\nBased on what I found";
    assert!(memory.ends_with(merged), "{memory}");
}
