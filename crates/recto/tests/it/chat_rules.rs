//! Rules of the Chat Completions wire that depend on the model or on schemas.

use expect_test::expect;
use recto::wire::openai_chat;
use serde_json::{Value, json};

fn found(body: &Value) -> String {
    let violations = openai_chat::validate(&serde_json::to_vec(body).unwrap());
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What is found in a body for a model with some fields of its own.
fn with(model: &str, fields: Value) -> String {
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    found(&body)
}

#[test]
fn newer_models_take_functions_only_without_reasoning() {
    let tools = json!([{"type": "function", "function": {"name": "look"}}]);
    let custom = json!([{"type": "custom", "custom": {"name": "patch"}}]);
    for model in ["gpt-5.4", "gpt-5.4-mini", "gpt-5.6-sol", "gpt-6-luna", "gpt-6.1-sol"] {
        assert!(with(model, json!({"tools": tools})).starts_with("reasoning_effort: "), "{model}");
        assert!(!with(model, json!({"tools": tools, "reasoning_effort": "low"})).is_empty(), "{model}");
        assert_eq!(with(model, json!({"tools": tools, "reasoning_effort": "none"})), "", "{model}");
        assert_eq!(with(model, json!({"tools": custom})), "", "{model}");
        assert_eq!(with(model, json!({})), "", "{model}");
    }
    for model in
        ["gpt-5.3-codex", "gpt-5", "gpt-4o", "gpt-4.1", "gpt-oss-120b", "gpt-35-turbo", "o3", "openai/gpt-6-sol", "m"]
    {
        assert_eq!(with(model, json!({"tools": tools})), "", "{model}");
    }
}

#[test]
fn reasoning_models_take_no_setting_of_chance() {
    for model in ["o1", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5-mini", "gpt-5.6-sol"] {
        assert!(with(model, json!({"max_tokens": 9})).starts_with("max_tokens: "), "{model}");
        assert!(with(model, json!({"temperature": 0.2})).starts_with("temperature: "), "{model}");
        assert!(with(model, json!({"top_p": 0.2})).starts_with("top_p: "), "{model}");
        let usual = json!({"max_completion_tokens": 9, "temperature": 1, "top_p": 1.0});
        assert_eq!(with(model, usual), "", "{model}");
        assert_eq!(with(model, json!({"temperature": null, "max_tokens": null})), "", "{model}");
    }
    let plain = json!({"temperature": 0.2, "reasoning_effort": "none"});
    assert_eq!(with("gpt-5.6-sol", plain), "");
    for model in ["gpt-4o", "gpt-5-chat-latest", "omni", "o", "olmo-7b", "some-model"] {
        assert_eq!(with(model, json!({"temperature": 0.2, "max_tokens": 9})), "", "{model}");
    }
}

#[test]
fn strict_schemas_list_everything() {
    let object = |rest: Value| {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false});
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        schema
    };
    let tool = |schema: Value| {
        let function = json!({"name": "f", "strict": true, "parameters": schema});
        with("m", json!({"tools": [{"type": "function", "function": function}]}))
    };
    let inner = |schema: Value| object(json!({"properties": {"a": schema}}));
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "n x", "strict": true, "schema": {"type": "object"}}});
    let lines = [
        tool(object(json!({}))),
        tool(inner(json!({"type": "array", "items": object(json!({}))}))),
        tool(object(json!({"additionalProperties": true}))),
        tool(object(json!({"required": []}))),
        tool(inner(json!({"type": ["object", "null"]}))),
        tool(inner(json!({"type": "array", "items": object(json!({"required": null}))}))),
        tool(inner(json!({"anyOf": [{"type": "null"}, {"properties": {}}]}))),
        tool(object(json!({"$defs": {"d": {"type": "object"}}}))),
        with("m", json!({"response_format": format})),
    ];
    expect![[r#"


        tools[0].function.parameters: Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.
        tools[0].function.parameters: Invalid schema for function 'f': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'a'.
        tools[0].function.parameters: Invalid schema for function 'f': In context=('properties', 'a'), 'additionalProperties' is required to be supplied and to be false.
        tools[0].function.parameters: Invalid schema for function 'f': In context=('properties', 'a', 'items'), 'required' is required to be supplied and to be an array including every key in properties. Missing 'a'.
        tools[0].function.parameters: Invalid schema for function 'f': In context=('properties', 'a', 'anyOf'), 'additionalProperties' is required to be supplied and to be false.
        tools[0].function.parameters: Invalid schema for function 'f': In context=('$defs', 'd'), 'additionalProperties' is required to be supplied and to be false.
        response_format.json_schema.name: "n x" does not match ^[a-zA-Z0-9_-]{1,64}$; response_format.json_schema.schema: Invalid schema for response_format 'n x': In context=(), 'additionalProperties' is required to be supplied and to be false."#]].assert_eq(&lines.join("\n"));
    let loose = json!({"name": "f", "strict": false, "parameters": {"type": "object"}});
    assert_eq!(with("m", json!({"tools": [{"type": "function", "function": loose}]})), "");
}

#[test]
fn every_kind_of_call_and_part_is_whole() {
    let step = |call: Value| {
        let results = json!({"role": "tool", "tool_call_id": "a", "content": ""});
        found(&json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}, results]}))
    };
    let part = |role: &str, part: Value| found(&json!({"model": "m", "messages": [{"role": role, "content": [part]}]}));
    let lines = [
        step(json!({"id": "a", "type": "custom", "custom": {"name": "patch", "input": "x"}})),
        step(json!({"id": "a", "type": "custom", "custom": {"name": "patch"}})),
        step(json!({"id": "a", "type": "magic"})),
        part("user", json!({"type": "input_audio", "input_audio": {"data": "x"}})),
        part("user", json!({"type": "file", "file": {"filename": "x"}})),
        part("assistant", json!({"type": "refusal"})),
        with("m", json!({"tools": [{"type": "custom", "custom": {}}]})),
        found(&json!({"model": "m", "messages": [{"role": "assistant", "refusal": "no"}]})),
    ];
    expect![[r#"

        messages[0].tool_calls[0].custom.input: must be a string
        messages[0].tool_calls[0].type: unknown kind "magic"
        messages[0].content[0]: a "input_audio" part without its content
        messages[0].content[0]: a "file" part without its content
        messages[0].content[0]: a "refusal" part without its content
        tools[0].custom.name: missing
    "#]]
    .assert_eq(&lines.join("\n"));
}
