//! Signed thinking comes back as it was given, behind the conversation it was made in.

use super::{ask, with};
use recto_testkit::fake::{Api, Incoming, Provider, Reply, Settings};
use serde_json::{Value, json};

const MODEL: &str = "claude-opus-5-5";

fn body(model: &str, messages: &[Value]) -> Value {
    let tools =
        json!([{"name": "f", "input_schema": {"type": "object"}}, {"name": "g", "input_schema": {"type": "object"}}]);
    json!({"model": model, "max_tokens": 100, "system": "be brief", "tools": tools, "messages": messages})
}

/// A conversation of one user message and so many tool rounds, each with thinking.
fn rounds(provider: &mut Provider, model: &str, rounds: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for round in 0..rounds {
        provider.push(Reply::default().thinking("hm").text("Reading.").call("f", &format!("{{\"round\": {round}}}")));
        let answer = ask(provider, Api::Messages, &body(model, &messages)).json();
        let id = answer["content"][2]["id"].clone();
        messages.push(json!({"role": "assistant", "content": answer["content"]}));
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
        messages.push(json!({"role": "user", "content": [result]}));
    }
    messages
}

fn three_rounds() -> (Provider, Value) {
    let mut provider = Provider::default();
    let messages = rounds(&mut provider, MODEL, 3);
    (provider, body(MODEL, &messages))
}

#[track_caller]
fn refused(provider: &Provider, body: &Value, rule: &str) {
    let refusal = provider.check(Api::Messages, body.to_string().as_bytes()).expect_err(rule);
    assert_eq!(refusal.rule, rule, "{refusal}");
}

#[track_caller]
fn taken(provider: &Provider, body: &Value) {
    if let Err(refusal) = provider.check(Api::Messages, body.to_string().as_bytes()) {
        panic!("{refusal}");
    }
}

/// Takes the thinking out of the assistant messages at these places.
fn without(body: &Value, places: &[usize]) -> Value {
    let mut body = body.clone();
    for at in places {
        body["messages"][at]["content"].as_array_mut().unwrap().remove(0);
    }
    body
}

#[test]
fn an_unchanged_conversation_is_taken() {
    let (mut provider, body) = three_rounds();
    taken(&provider, &body);
    ask(&mut provider, Api::Messages, &body);
    let exchange = provider.log().last().unwrap();
    assert_eq!((exchange.status, exchange.dropped), (200, 0));
}

#[test]
fn what_does_not_count_may_change() {
    let (provider, body) = three_rounds();
    let system = json!([{"type": "text", "text": " be brief\n", "cache_control": {"type": "ephemeral"}}]);
    let tools = json!([body["tools"][1], body["tools"][0]]);
    let result = json!([{"type": "text", "text": "done"}]);
    let changes = [
        ("/system", system),
        ("/tools", tools),
        ("/max_tokens", json!(7)),
        ("/output_config", json!({"effort": "low"})),
        ("/messages/0/content", json!([{"type": "text", "text": "go"}])),
        ("/messages/2/content/0/content", result),
        ("/messages/1/content/2/input", json!({"round": 0.0})),
    ];
    for change in &changes {
        taken(&provider, &with(&body, std::slice::from_ref(change)));
    }
    taken(&provider, &with(&body, &changes));
    let mut padded = body.clone();
    padded["messages"].as_array_mut().unwrap().insert(1, json!({"role": "assistant", "content": ""}));
    taken(&provider, &padded);
}

#[test]
fn an_edited_past_breaks_the_binding() {
    let (provider, body) = three_rounds();
    let edits = [
        ("/system", json!("be long")),
        ("/messages/0/content", json!("go on")),
        ("/messages/1/content/1/text", json!("Read.")),
        ("/messages/1/content/2/input", json!({"round": 9})),
        ("/messages/2/content/0/content", json!("[shortened]")),
        ("/tools/0/description", json!("new")),
    ];
    for edit in edits {
        let edited = with(&body, &[edit]);
        refused(&provider, &edited, "A17");
        taken(&provider, &without(&edited, &[1, 3, 5]));
    }
    // What stands behind the last thinking may change.
    taken(&provider, &with(&body, &[("/messages/6/content/0/content", json!("other"))]));
}

#[test]
fn thinking_is_removed_from_an_end_never_from_the_middle() {
    let (provider, body) = three_rounds();
    taken(&provider, &without(&body, &[1]));
    taken(&provider, &without(&body, &[1, 3]));
    taken(&provider, &without(&body, &[1, 3, 5]));
    taken(&provider, &without(&body, &[5]));
    refused(&provider, &without(&body, &[3]), "A17");
    // A block that was left out once does not come back before one that was made without it.
    let mut provider = provider;
    provider.push(Reply::default().thinking("more").text("Done."));
    let cut = without(&body, &[5]);
    let answer = ask(&mut provider, Api::Messages, &cut).json();
    let go_on = |body: &Value| {
        let mut body = body.clone();
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": answer["content"]}));
        messages.push(json!({"role": "user", "content": "thanks"}));
        body
    };
    taken(&provider, &go_on(&cut));
    refused(&provider, &go_on(&body), "A17");
}

#[test]
fn blocks_can_be_dropped_instead_of_refused() {
    let (mut provider, body) = three_rounds();
    let binding = json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    let edited = with(&body, &[("/messages/2/content/0/content", json!("[shortened]")), ("/thinking", binding)]);
    let mut request = Incoming::post("/v1/messages", &edited);
    request.headers.push(("anthropic-beta".to_owned(), "thinking-binding-controls-2026-08-01".to_owned()));
    let answer = provider.answer(&request).json();
    let dropped = |at: usize| json!({"type": "thinking_dropped", "path": format!("messages.{at}.content.0"), "reason": "prefix_binding_mismatch"});
    assert_eq!(answer["input_transformations"], json!([dropped(3), dropped(5)]));
    assert_eq!(provider.log().last().unwrap().dropped, 2);
}

#[test]
fn signatures_are_checked_on_every_model() {
    for model in [MODEL, "claude-sonnet-5"] {
        let mut provider = Provider::default();
        let body = body(model, &rounds(&mut provider, model, 2));
        refused(&provider, &with(&body, &[("/messages/1/content/0/signature", json!("forged"))]), "A16");
        refused(&provider, &with(&body, &[("/messages/1/content/0/thinking", json!("changed"))]), "A16");
        refused(&provider, &with(&body, &[("/messages/3/content/0/thinking", json!("changed"))]), "A14");
        // Only newer models bind to the conversation.
        let edited = with(&body, &[("/messages/0/content", json!("edited"))]);
        if model == MODEL { refused(&provider, &edited, "A17") } else { taken(&provider, &edited) }
    }
}

#[test]
fn an_account_from_before_the_binding_is_not_bound() {
    let mut provider = Provider::new(Settings { binds_thinking: false, ..Settings::default() });
    let messages = rounds(&mut provider, MODEL, 2);
    taken(&provider, &with(&body(MODEL, &messages), &[("/messages/0/content", json!("edited"))]));
}

#[test]
fn the_latest_step_is_whole_or_without_thinking() {
    let mut provider = Provider::default();
    provider.push(Reply::default().thinking("a").text("x").redacted_thinking().text("y").call("f", "{}"));
    let first = [json!({"role": "user", "content": "go"})];
    let answer = ask(&mut provider, Api::Messages, &body(MODEL, &first)).json();
    let content = answer["content"].as_array().unwrap();
    let replay = |places: &[usize]| {
        let content: Vec<&Value> = places.iter().map(|at| &content[*at]).collect();
        let result = json!({"type": "tool_result", "tool_use_id": content.last().unwrap()["id"]});
        let messages = [
            first[0].clone(),
            json!({"role": "assistant", "content": content}),
            json!({"role": "user", "content": [result]}),
        ];
        body(MODEL, &messages)
    };
    taken(&provider, &replay(&[0, 1, 2, 3, 4]));
    taken(&provider, &replay(&[1, 3, 4]));
    refused(&provider, &replay(&[0, 1, 3, 4]), "A14");
    refused(&provider, &replay(&[1, 2, 3, 4]), "A14");
}

#[test]
fn a_model_drops_what_it_cannot_read() {
    let mut provider = Provider::default();
    let messages = rounds(&mut provider, "claude-sonnet-5-5", 2);
    ask(&mut provider, Api::Messages, &body("claude-opus-5-5", &messages));
    assert_eq!(provider.log().last().unwrap().dropped, 2);
    let messages = rounds(&mut provider, "claude-opus-5", 1);
    ask(&mut provider, Api::Messages, &body("claude-opus-5-5", &messages));
    assert_eq!(provider.log().last().unwrap().dropped, 0);
}

#[test]
fn texts_are_shown_only_when_asked_for() {
    let mut provider = Provider::default();
    let plain = body(MODEL, &[json!({"role": "user", "content": "go"})]);
    let shown = with(&plain, &[("/thinking", json!({"type": "adaptive", "display": "summarized"}))]);
    for (body, text) in [(plain, ""), (shown, "hm")] {
        provider.push(Reply::default().thinking("hm").text("x"));
        let block = ask(&mut provider, Api::Messages, &body).json()["content"][0].clone();
        assert_eq!(block["thinking"], text);
        assert!(!block["signature"].as_str().unwrap().is_empty());
    }
}
