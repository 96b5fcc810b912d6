//! A `response` and its events.

use super::super::reply::Part;
use super::{Saying, deltas, event};
use serde_json::{Value, json};

pub(in super::super) fn whole(saying: &mut Saying<'_>) -> Value {
    let mut output: Vec<Value> = Vec::new();
    for part in &saying.reply.parts {
        let item = match part {
            Part::Text(text) => {
                let content = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
                message(saying.ids.next("msg_", 48), content)
            }
            Part::Refusal(text) => message(saying.ids.next("msg_", 48), json!({"type": "refusal", "refusal": text})),
            Part::Call { name, arguments } => json!({
                "type": "function_call", "id": saying.ids.next("fc_", 48), "call_id": saying.ids.next("call_", 24),
                "name": name, "arguments": arguments, "status": "completed",
            }),
            Part::Thinking(text) => reasoning(saying, text),
            Part::Redacted => reasoning(saying, ""),
        };
        output.push(item);
    }
    let body = saying.body;
    let incomplete = saying.reply.stop.as_ref().map(|reason| json!({"reason": reason}));
    let mut whole = json!({
        "id": saying.ids.next("resp_", 48), "object": "response", "created_at": 1_790_000_000,
        "status": if incomplete.is_some() { "incomplete" } else { "completed" },
        "incomplete_details": incomplete, "error": null, "model": saying.model(), "output": output,
        "instructions": body["instructions"], "previous_response_id": body["previous_response_id"],
        "store": body["store"] != false, "tools": body.get("tools").cloned().unwrap_or(json!([])),
        "usage": usage(saying),
    });
    if let Some(conversation) = body.get("conversation").filter(|given| !given.is_null()) {
        let id = if conversation.is_string() { conversation } else { &conversation["id"] };
        whole["conversation"] = json!({"id": id});
    }
    whole
}

fn message(id: String, content: Value) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "phase": "final_answer",
        "content": [content]})
}

fn reasoning(saying: &mut Saying<'_>, text: &str) -> Value {
    let body = saying.body;
    let wants_summary = body["reasoning"]["summary"].is_string() && !text.is_empty();
    let summary = if wants_summary { json!([{"type": "summary_text", "text": text}]) } else { json!([]) };
    let mut item = json!({"type": "reasoning", "id": saying.ids.next("rs_", 48), "summary": summary});
    let includes = |wanted: &str| body["include"].as_array().is_some_and(|list| list.iter().any(|it| it == wanted));
    if includes("reasoning.encrypted_content") {
        item["encrypted_content"] = json!(saying.ids.next("gAAAAA", 120));
    }
    item
}

fn usage(saying: &Saying<'_>) -> Value {
    let served = saying.served;
    json!({
        "input_tokens": served.total,
        "input_tokens_details": {
            "cached_tokens": served.read, "cache_write_tokens": served.written_tokens(),
            "cache_write_tokens_details": {
                "ttl_30m_tokens": served.written_for("30m"), "ttl_12h_tokens": served.written_for("12h"),
            },
        },
        "output_tokens": saying.output_tokens,
        "output_tokens_details": {"reasoning_tokens": saying.thinking_tokens},
        "total_tokens": served.total + saying.output_tokens,
    })
}

/// Events with their running number.
struct Stream(Vec<String>);

impl Stream {
    fn push(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.0.len());
        self.0.push(event(Some(kind), &data));
    }
}

pub(in super::super) fn stream(whole: &Value) -> Vec<String> {
    let mut stream = Stream(Vec::new());
    let mut started = whole.clone();
    started["status"] = json!("in_progress");
    started["output"] = json!([]);
    started["usage"] = Value::Null;
    started["incomplete_details"] = Value::Null;
    stream.push("response.created", json!({"response": started}));
    stream.push("response.in_progress", json!({"response": started}));
    for (index, item) in whole["output"].as_array().into_iter().flatten().enumerate() {
        stream.push("response.output_item.added", json!({"output_index": index, "item": begun(item)}));
        match item["type"].as_str() {
            Some("message") => said(&mut stream, index, item),
            Some("function_call") => {
                let place = json!({"item_id": item["id"], "output_index": index});
                for piece in deltas(item["arguments"].as_str().unwrap_or_default()) {
                    stream.push("response.function_call_arguments.delta", with(&place, "delta", &json!(piece)));
                }
                let done = with(&place, "arguments", &item["arguments"]);
                stream.push("response.function_call_arguments.done", done);
            }
            _ => summarised(&mut stream, index, item),
        }
        stream.push("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    let status = whole["status"].as_str().unwrap_or("completed");
    stream.push(&format!("response.{status}"), json!({"response": whole}));
    stream.0
}

fn with(place: &Value, key: &str, value: &Value) -> Value {
    let mut data = place.clone();
    data[key] = value.clone();
    data
}

/// Returns an item as it is announced: nothing in it yet, and its encrypted content cut off.
fn begun(item: &Value) -> Value {
    let mut item = item.clone();
    match item["type"].as_str() {
        Some("message") => item["content"] = json!([]),
        Some("function_call") => item["arguments"] = json!(""),
        _ => item["summary"] = json!([]),
    }
    if item["status"].is_string() {
        item["status"] = json!("in_progress");
    }
    if let Some(content) = item["encrypted_content"].as_str() {
        item["encrypted_content"] = json!(content[..content.len() / 2]);
    }
    item
}

fn said(stream: &mut Stream, index: usize, item: &Value) {
    let part = &item["content"][0];
    let (kind, key) =
        if part["type"] == "refusal" { ("response.refusal", "refusal") } else { ("response.output_text", "text") };
    let place = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
    let mut empty = part.clone();
    empty[key] = json!("");
    stream.push("response.content_part.added", with(&place, "part", &empty));
    for piece in deltas(part[key].as_str().unwrap_or_default()) {
        stream.push(&format!("{kind}.delta"), with(&place, "delta", &json!(piece)));
    }
    stream.push(&format!("{kind}.done"), with(&place, key, &part[key]));
    stream.push("response.content_part.done", with(&place, "part", part));
}

fn summarised(stream: &mut Stream, index: usize, item: &Value) {
    for (at, part) in item["summary"].as_array().into_iter().flatten().enumerate() {
        let place = json!({"item_id": item["id"], "output_index": index, "summary_index": at});
        for piece in deltas(part["text"].as_str().unwrap_or_default()) {
            stream.push("response.reasoning_summary_text.delta", with(&place, "delta", &json!(piece)));
        }
        stream.push("response.reasoning_summary_text.done", with(&place, "text", &part["text"]));
    }
}
