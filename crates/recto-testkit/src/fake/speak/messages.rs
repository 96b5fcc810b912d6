//! A `message` and its events.

use super::super::model::Claude;
use super::super::reply::Part;
use super::{Saying, deltas, event};
use serde_json::{Value, json};

pub(in super::super) fn whole(saying: &mut Saying<'_>) -> Value {
    let thinks = thinks(saying.body);
    let shows = shows_thinking(saying.body);
    let mut content = Vec::new();
    let mut stop = "end_turn";
    for part in &saying.reply.parts {
        match part {
            Part::Text(text) => content.push(json!({"type": "text", "text": text})),
            Part::Thinking(text) if thinks => content.push(json!({
                "type": "thinking", "thinking": if shows { text } else { "" },
                "signature": saying.ids.next("EqQB", 100),
            })),
            Part::Redacted if thinks => {
                content.push(json!({"type": "redacted_thinking", "data": saying.ids.next("EmwK", 80)}));
            }
            Part::Thinking(_) | Part::Redacted => {}
            Part::Call { name, arguments } => {
                stop = "tool_use";
                let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
                let id = saying.ids.next("toolu_01", 22);
                content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            }
            Part::Refusal(_) => stop = "refusal",
        }
    }
    if saying.body["max_tokens"] == 0 {
        stop = "max_tokens";
    }
    let stop = saying.reply.stop.clone().unwrap_or_else(|| stop.to_owned());
    json!({
        "id": saying.ids.next("msg_01", 22), "type": "message", "role": "assistant", "model": saying.model(),
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage(saying),
    })
}

fn thinks(body: &Value) -> bool {
    match body["thinking"]["type"].as_str() {
        Some(kind) => kind != "disabled",
        None => Claude::named(body["model"].as_str().unwrap_or_default()).is_some_and(Claude::thinks_by_default),
    }
}

fn shows_thinking(body: &Value) -> bool {
    match body["thinking"]["display"].as_str() {
        Some(display) => display != "omitted",
        None => !Claude::named(body["model"].as_str().unwrap_or_default()).is_some_and(Claude::hides_thinking),
    }
}

fn usage(saying: &Saying<'_>) -> Value {
    let served = saying.served;
    json!({
        "input_tokens": served.total - served.read - served.written_tokens(),
        "cache_creation_input_tokens": served.written_tokens(),
        "cache_read_input_tokens": served.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": served.written_for("5m"),
            "ephemeral_1h_input_tokens": served.written_for("1h"),
        },
        "output_tokens": saying.output_tokens,
        "output_tokens_details": {"thinking_tokens": saying.thinking_tokens},
        "service_tier": "standard",
    })
}

pub(in super::super) fn stream(whole: &Value) -> Vec<String> {
    let mut started = whole.clone();
    started["content"] = json!([]);
    started["stop_reason"] = Value::Null;
    started["usage"]["output_tokens"] = json!(1);
    let mut events = vec![typed("message_start", json!({"message": started})), typed("ping", json!({}))];
    for (index, block) in whole["content"].as_array().into_iter().flatten().enumerate() {
        let (empty, changes) = opened(block);
        events.push(typed("content_block_start", json!({"index": index, "content_block": empty})));
        for delta in changes {
            events.push(typed("content_block_delta", json!({"index": index, "delta": delta})));
        }
        events.push(typed("content_block_stop", json!({"index": index})));
    }
    let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
    events.push(typed("message_delta", json!({"delta": delta, "usage": whole["usage"]})));
    events.push(typed("message_stop", json!({})));
    events
}

fn typed(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    event(Some(kind), &data)
}

/// Returns a block as it starts, and the changes that fill it.
fn opened(block: &Value) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    let changes = match block["type"].as_str() {
        Some("text") => {
            empty["text"] = json!("");
            deltas(text("text")).iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        }
        Some("thinking") => {
            empty["thinking"] = json!("");
            empty["signature"] = json!("");
            let pieces = if text("thinking").is_empty() { Vec::new() } else { deltas(text("thinking")) };
            let shown = pieces.iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
            shown.chain([json!({"type": "signature_delta", "signature": block["signature"]})]).collect()
        }
        Some("tool_use") => {
            empty["input"] = json!({});
            let no_input = block["input"].as_object().is_some_and(|input| input.is_empty());
            let input = if no_input { String::new() } else { block["input"].to_string() };
            deltas(&input).iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        }
        _ => Vec::new(),
    };
    (empty, changes)
}
