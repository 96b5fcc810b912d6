//! R1–R13, and the shapes of Responses.

use super::{ask, refuses, takes, with};
use recto_testkit::fake::{Api, Incoming, Provider, Reply};
use serde_json::{Value, json};

fn body(input: Value) -> Value {
    json!({"model": "gpt-5.5", "store": false, "include": ["reasoning.encrypted_content"], "input": input})
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "r"})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
}

#[track_caller]
fn case(rule: &str, refused: Value, taken: Value) {
    refuses(Api::Responses, rule, &refused, &taken);
}

#[test]
fn calls_and_outputs_belong_together() {
    let good = body(json!([user("x"), call("a"), call("b"), output("b"), output("a"), user("x")]));
    case("R1", body(json!([user("x"), call("a"), user("x")])), good.clone());
    case("R2", body(json!([output("a")])), good.clone());
    case("R2", body(json!([output("a"), call("a")])), good.clone());
    let custom = json!({"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "x"});
    case("R2", body(json!([custom, output("a")])), good);
    takes(Api::Responses, &with(&body(json!([output("a")])), &[("/previous_response_id", json!("resp_1"))]));
}

#[test]
fn reasoning_is_followed_and_carries_its_content() {
    let good = body(json!([user("x"), reasoning(), call("a"), output("a")]));
    case("R3", body(json!([user("x"), reasoning()])), good.clone());
    case("R3", body(json!([user("x"), reasoning(), user("x")])), good.clone());
    let bare = with(&reasoning(), &[("/encrypted_content", Value::Null)]);
    let without = body(json!([user("x"), bare, call("a"), output("a")]));
    case("R5", without.clone(), with(&without, &[("/store", json!(true))]));
    case("R5", body(json!([{"type": "item_reference", "id": "msg_1"}])), good);
}

#[test]
fn ids_and_names_have_their_form() {
    let item = |item: Value| body(json!([item, output("a")]));
    let good = item(with(&call("a"), &[("/id", json!("fc_1"))]));
    case("R6", item(with(&call("a"), &[("/id", json!("call_1"))])), good.clone());
    let message = |id: &str| body(json!([{"role": "assistant", "id": id, "content": "x"}, user("x")]));
    case("R6", message("abc"), message("msg_1"));
    let long = |length: usize| {
        let id = "c".repeat(length);
        body(json!([call(&id), output(&id)]))
    };
    case("R7", long(65), long(64));
    case("R7", item(with(&call("a"), &[("/id", json!(format!("fc_{}", "1".repeat(62))))])), good.clone());
    let named = |name: String| item(with(&call("a"), &[("/name", json!(name))]));
    case("R8", named("n".repeat(129)), named("n".repeat(128)));
    case("R8", named("a b".to_owned()), good);
    let tool = |name: &str| with(&body(json!("x")), &[("/tools", json!([{"type": "function", "name": name}]))]);
    case("R8", tool("a.b"), tool("a_b"));
}

#[test]
fn options_have_their_bounds() {
    let good = body(json!("x"));
    let set = |field: &str, value: Value| with(&good, &[(field, value)]);
    let both = [("/previous_response_id", json!("resp_1")), ("/conversation", json!("conv_1"))];
    case("R10", with(&good, &both), with(&good, &both[..1]));
    case("R11", set("/max_output_tokens", json!(15)), set("/max_output_tokens", json!(16)));
    case("R12", set("/truncation", json!("always")), set("/truncation", json!("disabled")));
    case("R13", body(json!("x".repeat(10_485_761))), body(json!("x".repeat(10_485_760))));
    case("C13", set("/temperature", json!(0.2)), set("/temperature", json!(1.0)));
    let strict = json!([{"type": "function", "name": "f", "strict": true, "parameters": {"type": "object"}}]);
    let closed = with(&strict, &[("/0/parameters/additionalProperties", json!(false))]);
    case("C11", set("/tools", strict), set("/tools", closed));
    let wrapped = json!([{"type": "function", "function": {"name": "f"}}]);
    case("shape", set("/tools", wrapped), set("/tools", json!([])));
    let format = json!({"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}});
    let nameless = with(&format, &[("/format/name", Value::Null)]);
    case("shape", set("/text", nameless), set("/text", format));
}

#[test]
fn unknown_fields_and_parts_are_refused() {
    let good = body(json!([user("x"), {"role": "assistant", "content": "y"}, user("z")]));
    for place in ["/extra", "/messages", "/input/0/extra", "/input/0/content/0/extra", "/input/1/reasoning"] {
        case("shape", with(&good, &[(place, json!("x"))]), good.clone());
    }
    case("shape", with(&good, &[("/input/0/type", json!("thought"))]), good.clone());
    let wrong_part = json!({"role": "assistant", "content": [{"type": "input_text", "text": "y"}]});
    case("shape", with(&good, &[("/input/1", wrong_part)]), good.clone());
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"});
    let pictured = with(&good, &[("/input/0/content/0", image)]);
    for (place, value) in [("detail", Value::Null), ("image_url", json!("data:image/png;base64,!"))] {
        case("shape", with(&pictured, &[(&format!("/input/0/content/0/{place}"), value)]), pictured.clone());
    }
}

#[test]
fn what_looks_odd_but_is_fine_is_taken() {
    let said = json!({"role": "assistant", "content": "x"});
    takes(Api::Responses, &body(json!([user("x"), user("x")])));
    takes(Api::Responses, &body(json!([user("x"), said, said, user("x")])));
    takes(Api::Responses, &body(json!([said, user("x")])));
    takes(Api::Responses, &body(json!([user("x"), said])));
    takes(Api::Responses, &body(json!([user("x"), {"role": "assistant", "content": ""}, user("x")])));
}

/// One step with reasoning, and the request that replays it.
fn step() -> (Provider, Value) {
    let mut provider = Provider::default();
    provider.push(Reply::default().thinking("hm").call("f", "{}"));
    let first = body(json!([user("x")]));
    let answer = ask(&mut provider, Api::Responses, &first).json();
    let id = answer["output"][1]["call_id"].as_str().unwrap().to_owned();
    let next = body(json!([user("x"), answer["output"][0], answer["output"][1], output(&id)]));
    (provider, next)
}

#[track_caller]
fn replay_refused(provider: &mut Provider, body: &Value, rule: &str) {
    assert_eq!(provider.check(Api::Responses, body.to_string().as_bytes()).unwrap_err().rule, rule);
    let answer = provider.answer(&Incoming::post("/v1/responses", body));
    assert_eq!(answer.status, 400);
    assert_eq!(provider.log().last().unwrap().refusal.as_ref().unwrap().rule, rule);
}

#[test]
fn a_step_is_replayed_whole_or_without_ids() {
    let (mut provider, next) = step();
    ask(&mut provider, Api::Responses, &next);
    let bare_call = with(&next["input"][2], &[("/id", Value::Null)]);
    let [user_item, result] = [0, 3].map(|at| next["input"][at].clone());
    ask(&mut provider, Api::Responses, &body(json!([user_item, bare_call, result])));
    replay_refused(&mut provider, &body(json!([user_item, next["input"][2], result])), "R4");
    let other = json!([user_item, next["input"][1], call("call_other"), output("call_other")]);
    replay_refused(&mut provider, &body(other), "R3");
}

#[test]
fn encrypted_content_is_the_providers_own_and_of_this_model() {
    let (mut provider, next) = step();
    let damaged = with(&next, &[("/input/1/encrypted_content", json!("gAAAbad"))]);
    replay_refused(&mut provider, &damaged, "R9");
    replay_refused(&mut provider, &with(&next, &[("/model", json!("gpt-5.4"))]), "R9");
    let refusal = provider.check(Api::Responses, damaged.to_string().as_bytes()).unwrap_err();
    assert_eq!(refusal.to_body()["error"]["code"], "invalid_encrypted_content");
    ask(&mut provider, Api::Responses, &next);
}

#[test]
fn a_stored_response_can_be_continued() {
    let mut provider = Provider::default();
    provider.push(Reply::default().call("f", "{}"));
    let first = with(&body(json!("x")), &[("/store", Value::Null)]);
    let answer = ask(&mut provider, Api::Responses, &first).json();
    let call_id = answer["output"][0]["call_id"].as_str().unwrap();
    let next = |input: Value| with(&body(input), &[("/previous_response_id", answer["id"].clone())]);
    ask(&mut provider, Api::Responses, &next(json!([output(call_id)])));
    replay_refused(&mut provider, &next(json!([user("x")])), "R1");
    replay_refused(&mut provider, &next(json!([output(call_id), output("call_x")])), "R2");
    let unknown = with(&next(json!([user("x")])), &[("/previous_response_id", json!("resp_unknown"))]);
    replay_refused(&mut provider, &unknown, "R5");
}

#[test]
fn a_response_that_is_continued_brings_its_items_but_not_its_instructions() {
    let mut provider = Provider::default();
    let stored = |input: Value, more: &[(&str, Value)]| with(&with(&body(input), &[("/store", json!(true))]), more);
    let first = stored(json!([user("one")]), &[("/instructions", json!("be brief, be brief, be brief"))]);
    let answer = ask(&mut provider, Api::Responses, &first).json();
    let next = stored(json!([user("two")]), &[("/previous_response_id", answer["id"].clone())]);
    ask(&mut provider, Api::Responses, &next);
    let whole = json!([user("one"), answer["output"][0], user("two")]);
    assert_eq!(json!(provider.log()[1].items), whole);
    let again = ask(&mut provider, Api::Responses, &body(whole)).json();
    assert_eq!(again["usage"]["input_tokens"], provider.log()[1].usage["input_tokens"]);
    assert!(provider.forget(answer["id"].as_str().unwrap()));
    assert!(!provider.forget("resp_never"));
    replay_refused(&mut provider, &next, "R5");
    let refusal = provider.log().last().unwrap().refusal.clone().unwrap();
    assert_eq!(refusal.code.as_deref(), Some("previous_response_not_found"));
}

#[test]
fn what_was_not_stored_cannot_be_continued() {
    let mut provider = Provider::default();
    let answer = ask(&mut provider, Api::Responses, &body(json!([user("one")]))).json();
    let next = with(&body(json!([user("two")])), &[("/previous_response_id", answer["id"].clone())]);
    replay_refused(&mut provider, &next, "R5");
}

fn conversation(provider: &mut Provider, opening: &Value) -> Value {
    let answer = provider.answer(&Incoming::post("/v1/conversations", opening));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["object"], "conversation");
    answer.json()["id"].clone()
}

#[test]
fn a_conversation_grows_by_input_and_output() {
    let mut provider = Provider::default();
    let id = conversation(&mut provider, &json!({"items": [user("zero")]}));
    assert!(id.as_str().unwrap().starts_with("conv_"));
    let within = |input: Value| with(&body(input), &[("/conversation", id.clone())]);
    provider.push(Reply::default().call("f", "{}"));
    let first = ask(&mut provider, Api::Responses, &within(json!([user("one")]))).json();
    assert_eq!(first["conversation"], json!({"id": id}));
    let call_id = first["output"][0]["call_id"].as_str().unwrap();
    replay_refused(&mut provider, &within(json!([user("two")])), "R1");
    replay_refused(&mut provider, &within(json!([output("call_x"), output(call_id)])), "R2");
    provider.push(Reply::error(500, json!({"error": {"message": "no"}})));
    let by_object = with(&body(json!([output(call_id)])), &[("/conversation", json!({"id": id}))]);
    assert_eq!(provider.answer(&Incoming::post("/v1/responses", &by_object)).status, 500);
    let second = ask(&mut provider, Api::Responses, &by_object).json();
    ask(&mut provider, Api::Responses, &within(json!([user("three")])));
    let last = provider.log().last().unwrap();
    let whole = [
        user("zero"),
        user("one"),
        first["output"][0].clone(),
        output(call_id),
        second["output"][0].clone(),
        user("three"),
    ];
    assert_eq!(last.items, whole, "what was refused or failed was not appended");
}

#[test]
fn a_conversation_that_is_not_there_is_not_found() {
    let mut provider = Provider::default();
    let id = conversation(&mut provider, &json!({}));
    let named = |id: &Value| with(&body(json!([user("x")])), &[("/conversation", id.clone())]);
    ask(&mut provider, Api::Responses, &named(&id));
    let other = conversation(&mut provider, &json!({}));
    ask(&mut provider, Api::Responses, &named(&other));
    assert_eq!(provider.log().last().unwrap().items, [user("x")], "conversations are apart");
    assert!(provider.forget(id.as_str().unwrap()));
    for gone in [&id, &json!("conv_never")] {
        let answer = provider.answer(&Incoming::post("/v1/responses", &named(gone)));
        let text = format!("Conversation with id '{}' not found.", gone.as_str().unwrap());
        assert_eq!((answer.status, &answer.json()["error"]["message"]), (404, &json!(text)));
    }
    replay_refused(&mut provider, &named(&json!(7)), "shape");
    let wrong = provider.answer(&Incoming::post("/v1/conversations", &json!({"input": "x"})));
    assert_eq!(wrong.status, 400);
    let many: Vec<Value> = (0..21).map(|_| user("x")).collect();
    assert_eq!(provider.answer(&Incoming::post("/v1/conversations", &json!({"items": many}))).status, 400);
}
