//! The fake provider refuses what real ones refuse, and nothing next to it.

mod cache;
mod chat_rules;
mod message_rules;
mod response_rules;
mod server;
mod thinking;

use recto_testkit::fake::{Answer, Api, Incoming, Provider, check};
use serde_json::{Value, json};

/// Checks that one body is refused by this rule and its neighbour is taken.
#[track_caller]
fn refuses(api: Api, rule: &str, refused: &Value, taken: &Value) {
    let refusal = check(api, refused.to_string().as_bytes()).expect_err(&format!("{rule} must refuse {refused}"));
    assert_eq!(refusal.rule, rule, "{refusal}");
    assert_eq!(refusal.status, 400);
    takes(api, taken);
}

#[track_caller]
fn takes(api: Api, body: &Value) {
    if let Err(refusal) = check(api, body.to_string().as_bytes()) {
        panic!("{refusal}\n{body}");
    }
}

/// Returns a body with some fields set, given by their JSON pointers. Null takes a field out.
fn with(body: &Value, changes: &[(&str, Value)]) -> Value {
    let mut body = body.clone();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match body.pointer_mut(parent).unwrap() {
            Value::Object(fields) if value.is_null() => drop(fields.remove(key)),
            Value::Object(fields) => drop(fields.insert(key.to_owned(), value.clone())),
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value.clone(),
            _ => panic!("{pointer}"),
        }
    }
    body
}

fn path(api: Api) -> &'static str {
    match api {
        Api::Chat => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
        Api::Messages => "/v1/messages",
        Api::Gemini => "/v1beta/models/gemini-2.5-pro:generateContent",
        Api::Ollama => "/api/chat",
    }
}

#[track_caller]
fn ask(provider: &mut Provider, api: Api, body: &Value) -> Answer {
    let answer = provider.answer(&Incoming::post(path(api), body));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

#[test]
fn json_that_is_none_is_refused_everywhere() {
    for api in [Api::Chat, Api::Responses, Api::Messages] {
        for body in ["", "{", "[]", "{\"model\": \"\\ud800\"}", "{\"model\": \"\\udc00x\"}"] {
            let refusal = check(api, body.as_bytes()).expect_err(body);
            assert_eq!((refusal.rule, refusal.status), ("json", 400), "{body}");
        }
    }
}

#[test]
fn each_envelope_is_the_providers_own() {
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": 1}]}).to_string();
    assert_eq!(
        check(Api::Chat, body.as_bytes()).unwrap_err().to_body(),
        json!({"error": {
            "message": "Invalid type for 'messages[0].content': expected an array, but got a number instead.",
            "type": "invalid_request_error", "param": "messages[0].content", "code": "invalid_type",
        }})
    );
    let body = json!({"model": "gpt-5.5", "input": [{"role": "user"}]}).to_string();
    assert_eq!(
        check(Api::Responses, body.as_bytes()).unwrap_err().to_body(),
        json!({"error": {
            "message": "Missing required parameter: 'input[0].content'.", "type": "invalid_request_error",
            "param": "input[0].content", "code": "missing_required_parameter",
        }})
    );
    let body = json!({"model": "claude-opus-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": ""}]});
    let envelope = check(Api::Messages, body.to_string().as_bytes()).unwrap_err().to_body();
    assert_eq!(envelope["type"], "error");
    assert_eq!(
        envelope["error"],
        json!({"type": "invalid_request_error", "message": "messages.0: user messages must have non-empty content"})
    );
    assert!(envelope["request_id"].as_str().unwrap().starts_with("req_"));
}
