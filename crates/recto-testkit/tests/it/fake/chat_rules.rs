//! C1–C13, and the shapes of Chat.

use super::{refuses, takes, with};
use recto_testkit::fake::Api;
use serde_json::{Value, json};

fn chat(messages: Value) -> Value {
    json!({"model": "gpt-4o", "messages": messages})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "r"})
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}})
}

#[track_caller]
fn case(rule: &str, refused: Value, taken: Value) {
    refuses(Api::Chat, rule, &refused, &taken);
}

#[test]
fn messages_and_contents_are_not_empty() {
    case("C1", chat(json!([])), chat(json!([user("x")])));
    let part = json!([{"type": "text", "text": ""}]);
    case("C1", chat(json!([{"role": "user", "content": []}])), chat(json!([{"role": "user", "content": part}])));
    case("C4", chat(json!([user("x"), {"role": "assistant"}])), chat(json!([user("x"), said("")])));
    case("C4", chat(json!([{"role": "assistant", "content": null, "tool_calls": []}])), chat(json!([said("x")])));
}

#[test]
fn calls_and_results_stand_together() {
    let good = chat(json!([user("x"), calls(&["a", "b"]), result("b"), result("a"), user("x")]));
    case("C2", chat(json!([user("x"), calls(&["a", "b"]), result("b"), user("x"), result("a")])), good.clone());
    case("C2", chat(json!([user("x"), calls(&["a", "b"]), result("b")])), good.clone());
    case("C2", chat(json!([user("x"), calls(&["a"]), user("x")])), good.clone());
    case("C2", chat(json!([user("x"), calls(&["a"]), result("a"), result("a")])), good.clone());
    case("C3", chat(json!([result("a")])), good.clone());
    case("C3", chat(json!([user("x"), calls(&["a"]), result("a"), user("x"), result("a")])), good.clone());
    case("C3", chat(json!([user("x"), calls(&["a"]), result("a"), said("x"), result("a")])), good);
}

#[test]
fn calls_have_short_ids_plain_names_and_text_arguments() {
    let with_call = |pointer: &str, value: Value| {
        let body = chat(json!([user("x"), calls(&["a"]), result("a")]));
        with(&body, &[(&format!("/messages/1/tool_calls/0{pointer}"), value)])
    };
    let good = with_call("/function/arguments", json!("not json"));
    case("C5", with_call("/function/arguments", json!({})), good.clone());
    case("C7", with_call("/function/name", json!("a.b")), good.clone());
    let long = |length| {
        let id = "i".repeat(length);
        chat(json!([user("x"), calls(&[&id]), result(&id)]))
    };
    case("C8", long(41), long(40));
    let many = |count: usize| {
        let ids: Vec<String> = (0..count).map(|at| format!("i{at}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let results = ids.iter().map(|id| result(id));
        chat([user("x"), calls(&ids)].into_iter().chain(results).collect())
    };
    case("C6", many(129), many(128));
}

#[test]
fn tools_are_few_named_plainly_and_there_when_chosen() {
    let tools = |tools: Value| with(&chat(json!([user("x")])), &[("/tools", tools)]);
    let many = |count: usize| tools((0..count).map(|at| tool(&format!("t{at}"))).collect());
    case("C6", tools(json!([])), tools(json!([tool("f")])));
    case("C6", many(129), many(128));
    case("C7", tools(json!([tool("read file")])), tools(json!([tool("read_file-2")])));
    case("C7", tools(json!([tool(&"n".repeat(65))])), tools(json!([tool(&"n".repeat(64))])));
    let bare = chat(json!([user("x")]));
    for (field, value) in [("/tool_choice", json!("auto")), ("/parallel_tool_calls", json!(false))] {
        case("C10", with(&bare, &[(field, value.clone())]), with(&tools(json!([tool("f")])), &[(field, value)]));
    }
    let choice = |name: &str| json!({"type": "function", "function": {"name": name}});
    let chosen = |name: &str| with(&tools(json!([tool("f")])), &[("/tool_choice", choice(name))]);
    case("shape", chosen("g"), chosen("f"));
    case("shape", with(&tools(json!([tool("f")])), &[("/tools/0/function/parameters/type", json!("array"))]), bare);
}

#[test]
fn strict_schemas_are_closed_at_every_level() {
    let strict = |schema: Value| {
        let tool = json!({"type": "function", "function": {"name": "f", "strict": true, "parameters": schema}});
        with(&chat(json!([user("x")])), &[("/tools", json!([tool]))])
    };
    let inner = json!({"type": ["object", "null"], "properties": {}, "required": [], "additionalProperties": false});
    let good = json!({"type": "object", "properties": {"a": {"type": "array", "items": inner}}, "required": ["a"],
        "additionalProperties": false});
    for broken in ["/additionalProperties", "/required", "/properties/a/items/additionalProperties"] {
        case("C11", strict(with(&good, &[(broken, Value::Null)])), strict(good.clone()));
    }
    let loose =
        with(&strict(with(&good, &[("/required", Value::Null)])), &[("/tools/0/function/strict", json!(false))]);
    takes(Api::Chat, &loose);
}

#[test]
fn long_texts_are_refused() {
    let long = |length| chat(json!([user(&"é".repeat(length))]));
    case("C9", long(10_485_761), long(10_485_760));
}

#[test]
fn models_that_reason_have_rules_of_their_own() {
    let body =
        |model: &str, changes: &[(&str, Value)]| with(&json!({"model": model, "messages": [user("x")]}), changes);
    let tools = ("/tools", json!([tool("f")]));
    let none = ("/reasoning_effort", json!("none"));
    for model in ["gpt-5.4-mini", "gpt-5.6-sol", "gpt-6-sol"] {
        let refused = body(model, std::slice::from_ref(&tools));
        case("C12", refused, body(model, &[tools.clone(), none.clone()]));
    }
    takes(Api::Chat, &body("gpt-5.2", std::slice::from_ref(&tools)));
    let max = |field| (field, json!(100));
    case("C13", body("gpt-5.2", &[max("/max_tokens")]), body("gpt-5.2", &[max("/max_completion_tokens")]));
    takes(Api::Chat, &body("gpt-4.1", &[max("/max_tokens")]));
    for field in ["/temperature", "/top_p"] {
        case("C13", body("o4-mini", &[(field, json!(0.5))]), body("o4-mini", &[(field, json!(1))]));
        takes(Api::Chat, &body("gpt-4o", &[(field, json!(0.5))]));
    }
}

#[test]
fn unknown_fields_roles_and_parts_are_refused() {
    let good = chat(json!([user("x"), said("y")]));
    for place in ["/extra", "/messages/0/extra", "/messages/1/reasoning_content"] {
        case("shape", with(&good, &[(place, json!("x"))]), good.clone());
    }
    case("shape", with(&good, &[("/messages/0/role", json!("human"))]), good.clone());
    case("shape", with(&good, &[("/model", Value::Null)]), good.clone());
    case("shape", with(&good, &[("/stream_options", json!({"include_usage": true}))]), good.clone());
    case("cache", with(&good, &[("/prompt_cache_key", json!("k".repeat(65)))]), good.clone());
    let image =
        |url: &str| chat(json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]));
    let picture = image("data:image/png;base64,iVBORw0KGgo=");
    for url in ["data:image/png;base64,?", "data:text/plain;base64,aGk=", "data:image/png,x", "nowhere"] {
        case("shape", image(url), picture.clone());
    }
    for role in ["system", "assistant"] {
        case("shape", with(&picture, &[("/messages/0/role", json!(role))]), picture.clone());
    }
}

#[test]
fn a_schema_for_the_answer_has_a_name() {
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}});
    let good = with(&chat(json!([user("x")])), &[("/response_format", format)]);
    for missing in ["name", "schema"] {
        let place = format!("/response_format/json_schema/{missing}");
        case("shape", with(&good, &[(&place, Value::Null)]), good.clone());
    }
}

#[test]
fn what_looks_odd_but_is_fine_is_taken() {
    takes(Api::Chat, &chat(json!([user("x"), user("x")])));
    takes(Api::Chat, &chat(json!([user("x"), said("x"), said("x"), user("x")])));
    takes(Api::Chat, &chat(json!([said("x"), user("x")])));
    takes(Api::Chat, &chat(json!([user("x"), said("x")])));
    takes(Api::Chat, &chat(json!([user("x"), said(""), {"role": "system", "content": "late"}, user("x")])));
    let empty = json!([user("x"), {"role": "assistant", "content": []}, user("x")]);
    refuses(Api::Chat, "C1", &chat(empty), &chat(json!([user("x")])));
}
