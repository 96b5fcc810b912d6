//! MemberJunction's field names over HTTP: its override of expiry, and messages that are named by their index.

use super::live::Live;
use serde_json::{Value, json};

const READER: &str = "/conversations/monday/readers/main";

/// Makes a conversation with one long action result, and acknowledges so many calls.
fn aged(live: &Live, calls: usize) {
    live.post("/conversations", json!({"conversation": "monday"}));
    let result = format!("Action results:\n{}", "x".repeat(4_984));
    let entries = json!([
        {"role": "user", "text": "List the items."},
        {"role": "user", "text": result, "kind": "action_result", "tools": ["Search"], "origin": "tool"},
    ]);
    live.post("/conversations/monday/entries", json!({"entries": entries}));
    for _ in 0..calls {
        let page = live.post(&format!("{READER}/compile"), json!({"policy": "mj_doc", "body_as": "none"}));
        let entries = json!([{"role": "assistant", "text": "Next."}]);
        live.post(&format!("{READER}/acknowledge"), json!({"ticket": page["ticket"], "entries": entries}));
    }
}

/// Returns the text of the message that shows an entry.
fn text(page: &Value, seq: u64) -> String {
    let messages = page["page"]["messages"].as_array().unwrap();
    let message = messages.iter().find(|it| it["seq"] == seq).unwrap_or_else(|| panic!("{messages:?}"));
    message["parts"][0]["text"].as_str().unwrap().to_string()
}

fn override_of(turns: u64) -> Value {
    json!({
        "expirationTurns": turns, "expirationMode": "Compact", "compactMode": "First N Chars", "compactLength": 200,
        "compactPromptId": null, "preserveOriginalContent": true,
    })
}

/// Design points M21 and M68, scenario S27: the override under its own names, next to Recto's own.
#[test]
fn s27_an_override_of_memberjunction_is_taken() {
    let live = Live::new();
    aged(&live, 3);
    let preview = |more: Value| {
        let mut call = json!({"policy": "mj_doc"});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        live.post(&format!("{READER}/preview"), call)
    };
    let shortened = preview(json!({"messageExpirationOverride": override_of(1)}));
    let expected = "[Compacted: showing first 200 of 5000 characters.";
    assert!(text(&shortened, 1).contains(expected), "{}", text(&shortened, 1));
    let own = preview(json!({"expiry": {"after": 1, "mode": "compact", "compact": "first_chars", "chars": 200}}));
    assert_eq!(text(&own, 1), text(&shortened, 1));
    let disabled = json!({"messageExpirationOverride": {"disableExpiration": true, "expirationTurns": 1}});
    assert_eq!(text(&preview(disabled), 1).len(), 5_000);
    let refused = |body: Value, what: &str| {
        let problem = live.refuses((400, "bad_request"), "POST", &format!("{READER}/preview"), body.to_string());
        assert!(problem["detail"].as_str().unwrap().contains(what), "{problem}");
    };
    refused(json!({"messageExpirationOverride": {"expirationTurn": 1}}), "expirationTurn");
    refused(json!({"messageExpirationOverride": {}, "expiry": {}}), "messageExpirationOverride");
}

/// Design points M56 and R12b, scenario S29: a message is named by its index on the page of the newest call.
#[test]
fn s29_a_message_is_expanded_by_its_index() {
    let live = Live::new();
    aged(&live, 3);
    let call = json!({"policy": "mj_doc", "messageExpirationOverride": override_of(1)});
    let page = live.post(&format!("{READER}/compile"), call);
    let messages = page["page"]["messages"].as_array().unwrap();
    let index = messages.iter().position(|it| it["seq"] == 1).unwrap();
    let entries = json!([{"role": "assistant", "text": "Let me look."}]);
    live.post(&format!("{READER}/acknowledge"), json!({"ticket": page["ticket"], "entries": entries}));
    let request = json!({"policy": "mj_doc", "messageIndex": index, "reason": "item 47", "in_place": true});
    let expanded = live.post(&format!("{READER}/expand"), request);
    let whole = expanded["text"].as_str().unwrap().contains(&"x".repeat(4_984));
    assert_eq!((whole, &expanded["handle"], &expanded["in_place"]), (true, &json!("m1"), &json!(true)));
    let after = live.post(&format!("{READER}/preview"), json!({"policy": "mj_doc"}));
    assert_eq!(text(&after, 1).len(), 5_000);
    let path = format!("{READER}/expand");
    let problem = live.refuses((422, "not_expanded"), "POST", &path, json!({"messageIndex": 99}).to_string());
    assert!(problem["detail"].as_str().unwrap().contains("99"), "{problem}");
    live.refuses((400, "bad_request"), "POST", &path, json!({"messageIndex": 1, "handle": "m1"}).to_string());
    live.refuses((400, "bad_request"), "POST", &path, json!({"reason": "none"}).to_string());
}
