//! OpenAI Chat Completions: one message in chunks.

use super::super::{Telling, Told};
use super::{chat_usage, event, named};
use crate::entry::Part;
use crate::error::Error;
use crate::wire::{Reply, Stop, Usage};
use serde_json::{Value, json};

/// What was told so far.
#[derive(Debug)]
pub(in super::super) struct Chat {
    telling: Telling,
    id: String,
    model: String,
    has_begun: bool,
    stop: Option<Stop>,
    usage: Usage,
}

impl Chat {
    pub(super) fn new(telling: Telling) -> Chat {
        let (id, model) = (named(None, "chatcmpl-"), String::new());
        Chat { telling, id, model, has_begun: false, stop: None, usage: Usage::default() }
    }

    pub(super) fn tell(&mut self, told: Told, out: &mut Vec<u8>) -> Result<Option<&'static str>, Error> {
        match told {
            Told::Begun { id, model } => {
                self.id = named(id.as_deref(), "chatcmpl-");
                self.model = model.as_deref().unwrap_or_default().to_string();
                self.begin(out);
            }
            Told::Text(text) => self.delta(&json!({"content": text}), out),
            Told::Refusal(text) => self.delta(&json!({"refusal": text}), out),
            // No field of OpenAI's own, but the one by which servers with thoughts and their clients know it.
            Told::Thought(text) => self.delta(&json!({"reasoning_content": text}), out),
            Told::Call { at, id, name } => {
                let call =
                    json!({"index": at, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
                self.delta(&json!({"tool_calls": [call]}), out);
            }
            Told::Arguments { at, piece } => {
                let call = json!({"index": at, "function": {"arguments": piece}});
                self.delta(&json!({"tool_calls": [call]}), out);
            }
            Told::Used(usage) => self.usage = usage,
            Told::Stopped(stop) => self.stop = stop,
            Told::Ended => self.end(out),
            Told::Failed { kind, message } => {
                let error = json!({"message": message, "type": kind, "param": null, "code": null});
                event(out, None, &json!({"error": error}));
            }
            Told::Alive => out.extend_from_slice(b": alive\n\n"),
            Told::LeftOut(what) => return Ok(Some(what)),
        }
        Ok(None)
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.delta(&json!({"role": "assistant", "content": null}), out);
        }
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<u8>) {
        self.begin(out);
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
        event(out, None, &self.chunk(&json!([choice]), &Value::Null));
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        let choice = json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish(self.stop)});
        event(out, None, &self.chunk(&json!([choice]), &Value::Null));
        if self.telling.has_usage {
            event(out, None, &self.chunk(&json!([]), &chat_usage(&self.usage)));
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn chunk(&self, choices: &Value, usage: &Value) -> Value {
        let mut chunk = json!({"id": self.id, "object": "chat.completion.chunk", "created": self.telling.created,
            "model": self.model, "choices": choices});
        if self.telling.has_usage {
            chunk["usage"] = usage.clone();
        }
        chunk
    }
}

/// Returns the body of an answer that is no stream.
pub(super) fn whole(telling: Telling, reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    let mut calls = Vec::new();
    for part in reply.entry.parts.iter() {
        match part {
            Part::Text { text } => message["content"] = json!(text),
            Part::Reasoning(thought) => {
                let before = message["reasoning_content"].as_str().unwrap_or_default();
                message["reasoning_content"] = Value::from(format!("{before}{}", thought.text));
            }
            Part::Call(call) => calls.push(json!({"id": call.id.as_str(), "type": "function",
                "function": {"name": call.name, "arguments": call.arguments.as_str()}})),
            Part::Opaque { payload, .. } => message["refusal"] = super::super::refused(payload).into(),
            _ => {}
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply.stop)});
    json!({"id": named(reply.id.as_deref(), "chatcmpl-"), "object": "chat.completion", "created": telling.created,
        "model": reply.model, "choices": [choice], "usage": reply.usage.as_ref().map(chat_usage)})
}

/// Why an answer ended, in this format's word for it.
fn finish(stop: Option<Stop>) -> &'static str {
    match stop {
        Some(Stop::Calls) => "tool_calls",
        Some(Stop::Length | Stop::Window) => "length",
        Some(Stop::Refused) => "content_filter",
        Some(Stop::End | Stop::Paused) | None => "stop",
    }
}
