//! What a request asks for beside its messages: carried over, named as dropped, or refused; never passed over.

use recto::Target;
use recto::wire::Wire;
use recto::wire::across::Wishes;
use serde_json::{Map, Value, json};

fn target(model: &str, wire: Wire) -> Target {
    let found = Target::named(model).unwrap_or_else(|| Target::unknown(model));
    if found.wire == wire { found } else { found.over(wire) }
}

/// What of a body is asked of a model, and what is dropped.
fn carried(from: Wire, model: &str, to: Wire, mut body: Value) -> Result<(Value, Vec<String>), String> {
    body["model"] = model.into();
    body["messages"] = json!([]);
    let wishes = Wishes::of(from, &body.to_string(), &target(model, to));
    wishes.map(|it| (Value::Object(it.fields), it.dropped)).map_err(|why| why.to_string())
}

fn to_claude(body: Value) -> Result<(Value, Vec<String>), String> {
    carried(Wire::OpenaiChat, "claude-haiku-4-5", Wire::Anthropic, body)
}

fn to_gpt(body: Value) -> Result<(Value, Vec<String>), String> {
    carried(Wire::Anthropic, "gpt-4o", Wire::OpenaiChat, body)
}

fn functions(from: Wire) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    match from {
        Wire::OpenaiChat => json!([{"type": "function", "function": {"name": "look", "parameters": schema}}]),
        Wire::OpenaiResponses => json!([{"type": "function", "name": "look", "parameters": schema}]),
        Wire::Anthropic => json!([{"name": "look", "input_schema": schema}]),
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in {from}"),
    }
}

#[test]
fn what_both_formats_have_a_word_for_is_carried_over() {
    let chat = json!({"max_completion_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stop": "END", "stream": true,
        "stream_options": {"include_usage": true}, "user": "u1", "tools": functions(Wire::OpenaiChat),
        "tool_choice": {"type": "function", "function": {"name": "look"}}, "parallel_tool_calls": false});
    let messages = json!({"max_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"],
        "stream": true, "metadata": {"user_id": "u1"},
        "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": true}});
    assert_eq!(to_claude(chat.clone()), Ok((messages.clone(), vec![])));
    let mut body = messages;
    body["tools"] = functions(Wire::Anthropic);
    let expected = json!({"max_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "stream": true,
        "stream_options": {"include_usage": true}, "user": "u1", "parallel_tool_calls": false,
        "tool_choice": {"type": "function", "function": {"name": "look"}}});
    assert_eq!(to_gpt(body), Ok((expected, vec![])));
}

#[test]
fn how_much_to_think_is_told_to_models_that_can_be_told() {
    let effort = |model: &str, effort: &str| {
        carried(Wire::OpenaiChat, model, Wire::Anthropic, json!({"reasoning_effort": effort})).unwrap()
    };
    assert_eq!(effort("claude-opus-5-5", "minimal"), (json!({"output_config": {"effort": "low"}}), vec![]));
    assert_eq!(effort("claude-haiku-4-5", "none"), (json!({"thinking": {"type": "disabled"}}), vec![]));
    assert_eq!(effort("claude-haiku-4-5", "high"), (json!({}), vec!["effort".to_string()]));
    let body = || json!({"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}, "tools": functions(Wire::Anthropic)});
    let (fields, dropped) = carried(Wire::Anthropic, "gpt-5.6-sol", Wire::OpenaiResponses, body()).unwrap();
    assert_eq!((fields, dropped), (json!({"reasoning": {"effort": "high"}}), vec!["thinking".to_string()]));
    let (_, dropped) = carried(Wire::Anthropic, "gpt-5.6-sol", Wire::OpenaiChat, body()).unwrap();
    assert_eq!(dropped, ["effort", "thinking"], "with tools this model takes none there");
}

#[test]
fn what_does_not_change_the_meaning_is_dropped_and_named() {
    let body = json!({"seed": 7, "frequency_penalty": 0.5, "metadata": {"a": "b"}, "temperature": 1.7,
        "made_up": {"x": 1}});
    let (fields, dropped) = to_claude(body).unwrap();
    assert_eq!(fields, json!({"temperature": 1.0}));
    assert_eq!(dropped, ["frequency_penalty", "made_up", "metadata", "seed", "temperature"]);
    let (fields, dropped) = to_gpt(json!({"top_k": 5, "context_management": {"edits": [1]}})).unwrap();
    assert_eq!((fields, dropped), (json!({}), vec!["context_management".to_string(), "top_k".to_string()]));
    let (fields, dropped) =
        carried(Wire::OpenaiChat, "claude-opus-5-5", Wire::Anthropic, json!({"temperature": 0.2, "top_p": 1})).unwrap();
    assert_eq!((fields, dropped), (json!({}), vec!["temperature".to_string()]), "this model takes no sampling");
}

#[test]
fn what_holds_anyway_is_neither_carried_over_nor_dropped() {
    let body = json!({"n": 1, "logprobs": false, "top_logprobs": 0, "presence_penalty": 0, "logit_bias": {},
        "modalities": ["text"], "service_tier": "auto", "store": false, "seed": null, "audio": null,
        "response_format": {"type": "text"}});
    assert_eq!(to_claude(body), Ok((json!({}), vec![])));
    assert_eq!(to_gpt(json!({"thinking": {"type": "disabled"}, "stop_sequences": []})), Ok((json!({}), vec![])));
}

#[test]
fn what_would_be_another_request_is_refused() {
    let refused = [
        json!({"n": 2}),
        json!({"logprobs": true}),
        json!({"logit_bias": {"50256": -100}}),
        json!({"modalities": ["text", "audio"]}),
        json!({"audio": {"voice": "alloy"}}),
        json!({"functions": [{"name": "f"}]}),
        json!({"web_search_options": {"x": 1}}),
        json!({"response_format": {"type": "json_object"}}),
        json!({"tool_choice": {"type": "allowed_tools"}}),
        json!({"tools": [{"type": "custom", "custom": {"name": "grep"}}]}),
        json!({"max_tokens": "many"}),
    ];
    for body in refused {
        assert!(to_claude(body.clone()).is_err(), "{body}");
    }
    let refused = [
        json!({"stop_sequences": ["1", "2", "3", "4", "5"]}),
        json!({"mcp_servers": [{"url": "https://example.com"}]}),
        json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
        json!({"tool_choice": {"type": "tool"}}),
    ];
    for body in refused {
        assert!(to_gpt(body.clone()).is_err(), "{body}");
    }
    let responses = |body: Value| carried(Wire::OpenaiResponses, "claude-haiku-4-5", Wire::Anthropic, body);
    assert!(responses(json!({"previous_response_id": "resp_1"})).is_err());
    assert!(carried(Wire::Anthropic, "gpt-5.5", Wire::OpenaiResponses, json!({"stop_sequences": ["x"]})).is_err());
}

/// Every field that the strict provider knows of is accounted for: carried over, dropped by name, or refused.
#[test]
fn no_field_is_passed_over() {
    let chat = [
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "stop",
        "stream",
        "tool_choice",
        "parallel_tool_calls",
        "user",
        "safety_identifier",
        "reasoning_effort",
        "response_format",
        "n",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "modalities",
        "audio",
        "seed",
        "service_tier",
        "store",
        "metadata",
        "prediction",
        "presence_penalty",
        "frequency_penalty",
        "verbosity",
        "prompt_cache_key",
        "prompt_cache_retention",
        "web_search_options",
        "functions",
        "function_call",
    ];
    for name in chat {
        for value in [json!(1), json!("x"), json!({"x": 1}), json!(true)] {
            let body =
                Map::from_iter([(name.to_string(), value.clone()), ("tools".into(), functions(Wire::OpenaiChat))]);
            let Ok((fields, dropped)) = to_claude(Value::Object(body)) else { continue };
            let is_carried = !fields.as_object().unwrap().is_empty();
            let is_known = [("n", json!(1)), ("parallel_tool_calls", json!(true))].contains(&(name, value.clone()));
            assert!(is_carried || !dropped.is_empty() || is_known, "{name}: {value} is passed over");
        }
    }
}
