//! `chat.completion` and its chunks.

use super::super::reply::Part;
use super::{Saying, deltas, event};
use serde_json::{Value, json};

pub(in super::super) fn whole(saying: &mut Saying<'_>) -> Value {
    let mut content = String::new();
    let mut refusal = Value::Null;
    let mut calls = Vec::new();
    for part in &saying.reply.parts {
        match part {
            Part::Text(text) => content += text,
            Part::Call { name, arguments } => calls.push(json!({
                "id": saying.ids.next("call_", 24), "type": "function",
                "function": {"name": name, "arguments": arguments},
            })),
            Part::Refusal(text) => refusal = json!(text),
            // Chat has no place for it; it only costs.
            Part::Thinking(_) | Part::Redacted => {}
        }
    }
    let default = if calls.is_empty() { "stop" } else { "tool_calls" };
    let finish = saying.reply.stop.clone().unwrap_or_else(|| default.to_owned());
    let content = if content.is_empty() { Value::Null } else { json!(content) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": refusal, "annotations": []});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    json!({
        "id": saying.ids.next("chatcmpl-", 29), "object": "chat.completion", "created": 1_790_000_000,
        "model": saying.model(), "service_tier": "default",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": usage(saying),
    })
}

fn usage(saying: &Saying<'_>) -> Value {
    let served = saying.served;
    json!({
        "prompt_tokens": served.total, "completion_tokens": saying.output_tokens,
        "total_tokens": served.total + saying.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": served.read, "cache_write_tokens": served.written_tokens(), "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": saying.thinking_tokens, "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

pub(in super::super) fn stream(whole: &Value, include_usage: bool) -> Vec<String> {
    let choice = &whole["choices"][0];
    let message = &choice["message"];
    let mut changes = vec![(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null)];
    for field in ["content", "refusal"] {
        let pieces = message[field].as_str().map(deltas).unwrap_or_default();
        changes.extend(pieces.into_iter().map(|piece| (json!({field: piece}), Value::Null)));
    }
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let mut opening = call.clone();
        opening["index"] = json!(index);
        opening["function"]["arguments"] = json!("");
        changes.push((json!({"tool_calls": [opening]}), Value::Null));
        for piece in deltas(call["function"]["arguments"].as_str().unwrap_or_default()) {
            let delta = json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
            changes.push((delta, Value::Null));
        }
    }
    changes.push((json!({}), choice["finish_reason"].clone()));
    let chunk = |choices: Value, usage: &Value| {
        let mut chunk = json!({
            "id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"],
            "model": whole["model"], "service_tier": "default", "choices": choices,
        });
        if include_usage {
            chunk["usage"] = usage.clone();
        }
        event(None, &chunk)
    };
    let with_delta = |(delta, finish): (Value, Value)| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        chunk(json!([choice]), &Value::Null)
    };
    let mut events: Vec<String> = changes.into_iter().map(with_delta).collect();
    if include_usage {
        events.push(chunk(json!([]), &whole["usage"]));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}
