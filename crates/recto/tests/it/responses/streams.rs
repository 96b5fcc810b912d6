//! A stream gives what the whole response does, and wherever it is cut, what there was.

use super::*;

fn response() -> Value {
    json!({
        "id": "resp_1", "object": "response", "model": "gpt-6-sol-2026-10-01", "status": "completed",
        "incomplete_details": null, "error": null,
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "gAAAA"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
                "content": [{"type": "output_text", "text": "on it", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": "{\"a\":1}"},
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "b", "name": "patch", "input": "***"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        ],
        "usage": {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
            "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 1050},
    })
}

/// The events of a response, as the provider tells them.
fn events(response: &Value) -> Vec<Value> {
    let mut head = response.clone();
    (head["status"], head["output"], head["usage"]) = (json!("in_progress"), json!([]), Value::Null);
    let mut events = vec![
        json!({"type": "response.created", "response": head}),
        json!({"type": "response.in_progress",
        "response": head}),
        json!({"type": "keepalive"}),
        json!({"type": "response.of_tomorrow", "output_index": 90}),
    ];
    for (at, item) in response["output"].as_array().unwrap().iter().enumerate() {
        let mut added = item.clone();
        if added["encrypted_content"].is_string() {
            added["encrypted_content"] = json!("gA");
        }
        events.push(json!({"type": "response.output_item.added", "output_index": at, "item": added}));
        let mut tell = |kind: &str, whole: &str, text: &Value| {
            let text = text.as_str().unwrap();
            for piece in [&text[..1], &text[1..]] {
                events.push(json!({"type": format!("response.{kind}.delta"), "output_index": at, "delta": piece,
                    "obfuscation": "xyz"}));
            }
            events.push(json!({"type": format!("response.{kind}.done"), "output_index": at, whole: text}));
        };
        match item["type"].as_str().unwrap() {
            "reasoning" => tell("reasoning_summary_text", "text", &item["summary"][0]["text"]),
            "message" if item["content"][0]["type"] == "refusal" => {
                tell("refusal", "refusal", &item["content"][0]["refusal"])
            }
            "message" => tell("output_text", "text", &item["content"][0]["text"]),
            "function_call" => tell("function_call_arguments", "arguments", &item["arguments"]),
            "custom_tool_call" => tell("custom_tool_call_input", "input", &item["input"]),
            _ => {}
        }
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    let status = response["status"].as_str().unwrap();
    events.push(json!({"type": format!("response.{status}"), "response": response}));
    events
}

fn streamed(events: &[Value]) -> Reply {
    let mut stream = Stream::default();
    events.iter().for_each(|event| stream.event(&event.to_string()).unwrap());
    stream.event("[DONE]").unwrap();
    stream.finish().unwrap()
}

fn whole(response: &Value) -> Reply {
    wire::decode_reply(&response.to_string()).unwrap()
}

#[test]
fn a_stream_gives_what_the_response_does() {
    let reply = whole(&response());
    assert_eq!(streamed(&events(&response())), reply);
    assert_eq!((reply.id.as_deref(), reply.stop), (Some("resp_1"), Some(Stop::Calls)));
    let usage = Usage { input: Tokens(1000), cached: Tokens(600), written: Tokens(100), output: Tokens(50) };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!((reply.entry.status, reply.entry.parts.len()), (Status::Sent, 5));
    let Part::Reasoning(thought) = &reply.entry.parts[0] else { panic!("{reply:?}") };
    assert!(thought.item.as_deref().unwrap().contains("gAAAA"));
    assert_eq!(thought.model.as_deref(), Some("gpt-6-sol-2026-10-01"));
    // It goes back as it came, without the ids that nobody needs.
    let mut entries = vec![Entry::user("go"), reply.entry];
    entries.extend(["a", "b"].map(|id| Entry::result(id, "x")));
    let items = input(entries);
    let kinds: Vec<&str> = items.as_array().unwrap().iter().filter_map(|item| item["type"].as_str()).collect();
    let expected = [
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "web_search_call",
        "function_call_output",
        "custom_tool_call_output",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(items[2], json!({"role": "assistant", "content": "on it", "phase": "commentary"}));
}

#[test]
fn a_response_ends_for_many_reasons() {
    let with = |status: &str, details: Value, error: Value, output: Value| {
        let mut it = response();
        (it["status"], it["incomplete_details"], it["error"]) = (json!(status), details, error);
        it["output"] = output;
        assert_eq!(streamed(&events(&it)), whole(&it));
        whole(&it)
    };
    let say = json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]}]);
    let no = json!([{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]);
    assert_eq!(with("completed", json!(null), json!(null), say.clone()).stop, Some(Stop::End));
    assert_eq!(with("completed", json!(null), json!(null), no).stop, Some(Stop::Refused));
    let cut = |why: &str| with("incomplete", json!({"reason": why}), json!(null), say.clone());
    assert_eq!((cut("max_output_tokens").stop, cut("content_filter").stop), (Some(Stop::Length), Some(Stop::Refused)));
    assert_eq!((cut("steered").stop, cut("of tomorrow").stop), (Some(Stop::Paused), None));
    assert_eq!(cut("max_output_tokens").entry.status, Status::Sent);
    let failed = with("failed", json!(null), json!({"code": "server_error", "message": "broken"}), json!([]));
    assert_eq!((failed.entry.status, &failed.entry.meta["error"]), (Status::Error, &json!("broken")));
    assert_eq!(with("cancelled", json!(null), json!(null), say.clone()).entry.status, Status::Cancelled);
    let refused = wire::decode_reply(r#"{"error":{"message":"no such model"}}"#).unwrap_err();
    assert!(refused.to_string().contains("no such model"));
    assert!(wire::decode_reply("{}").unwrap_err().hint().is_some());
}

#[test]
fn wherever_a_stream_is_cut_what_there_was_is_kept() {
    let all = events(&response());
    assert!(Stream::default().finish().is_err());
    let mut said = 0;
    for cut in 1..all.len() {
        let reply = streamed(&all[..cut]);
        assert_eq!((reply.entry.status, reply.stop, reply.usage), (Status::Error, None, None), "cut at {cut}");
        let length = |part: &Part| match part {
            Part::Text { text } => text.len(),
            Part::Reasoning(it) => it.text.len() + it.item.as_deref().map_or(0, str::len),
            Part::Call(call) => 1 + call.arguments.as_str().len(),
            _ => 1,
        };
        let now = reply.entry.parts.iter().map(length).sum();
        assert!(now >= said, "cut at {cut}: {now} after {said}");
        said = now;
        // A seal that never came to its end is none.
        let is_half = |part: &Part| matches!(part, Part::Reasoning(it) if it.item.as_deref().is_some_and(|it| !it.contains("gAAAA")));
        assert!(!reply.entry.parts.iter().any(is_half), "cut at {cut}");
        // A page can hold it, whatever it is.
        let page = page([Entry::user("go"), reply.entry], &target());
        assert_eq!(wire::validate(&wire::encode(&page, &target())), [], "cut at {cut}");
    }
    assert_eq!(streamed(&all[..all.len() - 1]).entry.parts, whole(&response()).entry.parts);
}

#[test]
fn errors_and_other_servers() {
    let all = events(&response());
    let error = json!({"type": "error", "code": "overloaded", "message": "too busy", "param": null});
    let broken = streamed(&[&all[..12], &[error]].concat());
    assert_eq!((broken.entry.status, &broken.entry.meta["error"]), (Status::Error, &json!("too busy")));
    assert!(!broken.entry.parts.is_empty());
    let only = streamed(&[json!({"type": "error", "error": {"message": "no"}})]);
    assert_eq!((only.entry.parts.len(), &only.entry.meta["error"]), (0, &json!("no")));
    // Servers that tell of items in the last event alone.
    assert_eq!(streamed(&all[all.len() - 1..]), whole(&response()));
    let mut stream = Stream::default();
    assert!(stream.event("{\"type\": ").unwrap_err().place().is_some());
    stream.event(&all[0].to_string()).unwrap();
    assert_eq!(stream.finish().unwrap().entry.status, Status::Error);
    let refusal =
        json!([{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no way"}]}]);
    let mut refused = response();
    refused["output"] = refusal;
    let all = events(&refused);
    assert_eq!(streamed(&all[..all.len() - 2]).entry.parts, whole(&refused).entry.parts);
}
