//! Ollama's `ChatResponse`, whole and in lines.

use super::super::reply::Part;
use super::{Saying, deltas};
use serde_json::{Value, json};

pub(in super::super) fn whole(saying: &mut Saying<'_>) -> Value {
    let (mut content, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    let thinks = saying.body["think"] != false;
    for part in &saying.reply.parts {
        match part {
            Part::Text(text) | Part::Refusal(text) => content += text,
            Part::Thinking(text) if thinks => thinking += text,
            Part::Thinking(_) | Part::Redacted => {}
            Part::Call { name, arguments } => {
                let arguments: Value = serde_json::from_str(arguments).unwrap_or(json!({}));
                let function = json!({"index": calls.len(), "name": name, "arguments": arguments});
                calls.push(json!({"id": saying.ids.next("call_", 8), "function": function}));
            }
        }
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !thinking.is_empty() {
        message["thinking"] = json!(thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    json!({
        "model": saying.model(), "created_at": "2026-11-17T12:00:00.000000001Z", "message": message, "done": true,
        "done_reason": saying.reply.stop.clone().unwrap_or_else(|| "stop".to_owned()),
        "total_duration": 5_000_000, "load_duration": 1_000, "prompt_eval_count": saying.served.total,
        "prompt_eval_duration": 2_000_000, "eval_count": saying.output_tokens, "eval_duration": 3_000_000,
    })
}

pub(in super::super) fn stream(whole: &Value) -> Vec<String> {
    let message = &whole["message"];
    let mut pieces: Vec<Value> = Vec::new();
    for field in ["thinking", "content"] {
        let text = message[field].as_str().filter(|text| !text.is_empty());
        for delta in text.map(deltas).unwrap_or_default() {
            let mut piece = json!({"role": "assistant", "content": ""});
            piece[field] = json!(delta);
            pieces.push(piece);
        }
    }
    // Each call comes whole, in a line of its own.
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    pieces.extend(calls.map(|call| json!({"role": "assistant", "content": "", "tool_calls": [call]})));
    let line = |piece: Value| json!({"model": whole["model"], "created_at": whole["created_at"], "message": piece, "done": false});
    let mut last = whole.clone();
    last["message"] = json!({"role": "assistant", "content": ""});
    pieces.into_iter().map(line).chain([last]).map(|line| format!("{line}\n")).collect()
}
