//! Anthropic Messages: blocks, one after the other.

use super::super::{REASONING, Told};
use super::{event, messages_usage, named};
use crate::entry::Part;
use crate::error::Error;
use crate::tool::arguments_object;
use crate::wire::{Reply, Stop, Usage};
use serde_json::{Value, json};

/// What was told so far.
#[derive(Debug, Default)]
pub(in super::super) struct Messages {
    has_begun: bool,
    /// The block that is open.
    open: Option<Open>,
    /// How many blocks were begun.
    blocks: u64,
    stop: Option<Stop>,
    usage: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Text,
    Call(usize),
}

impl Messages {
    pub(super) fn tell(&mut self, told: Told, out: &mut Vec<u8>) -> Result<Option<&'static str>, Error> {
        match told {
            Told::Begun { id, model } => self.begin(id.as_deref(), model.as_deref(), out),
            // There is no other place for a refusal than among the words.
            Told::Text(text) | Told::Refusal(text) => self.text(&text, out),
            // A thought without a signature of this provider's is none.
            Told::Thought(_) => return Ok(Some(REASONING)),
            Told::Call { at, id, name } => {
                self.block(Open::Call(at), &json!({"type": "tool_use", "id": id, "name": name, "input": {}}), out);
            }
            Told::Arguments { at, piece } => {
                if self.open != Some(Open::Call(at)) {
                    return Err(Error::input(format!("arguments of call {at} go on after the next block has begun")));
                }
                self.delta(&json!({"type": "input_json_delta", "partial_json": piece}), out);
            }
            Told::Used(usage) => self.usage = usage,
            Told::Stopped(stop) => self.stop = stop,
            Told::Ended => self.end(out),
            Told::Failed { kind, message } => {
                let error = json!({"type": "error", "error": {"type": kind, "message": message}});
                event(out, Some("error"), &error);
            }
            Told::Alive => event(out, Some("ping"), &json!({"type": "ping"})),
            Told::LeftOut(what) => return Ok(Some(what)),
        }
        Ok(None)
    }

    fn begin(&mut self, id: Option<&str>, model: Option<&str>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        // What is used is known at the end; this format wants a number here.
        let message = json!({"id": named(id, "msg_"), "type": "message", "role": "assistant",
            "model": model.unwrap_or_default(), "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": messages_usage(&Usage::default())});
        event(out, Some("message_start"), &json!({"type": "message_start", "message": message}));
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.open != Some(Open::Text) {
            self.block(Open::Text, &json!({"type": "text", "text": ""}), out);
        }
        self.delta(&json!({"type": "text_delta", "text": text}), out);
    }

    fn block(&mut self, kind: Open, block: &Value, out: &mut Vec<u8>) {
        self.begin(None, None, out);
        self.close(out);
        let start = json!({"type": "content_block_start", "index": self.blocks, "content_block": block});
        event(out, Some("content_block_start"), &start);
        (self.open, self.blocks) = (Some(kind), self.blocks + 1);
    }

    fn delta(&self, delta: &Value, out: &mut Vec<u8>) {
        let delta = json!({"type": "content_block_delta", "index": self.blocks - 1, "delta": delta});
        event(out, Some("content_block_delta"), &delta);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            let stop = json!({"type": "content_block_stop", "index": self.blocks - 1});
            event(out, Some("content_block_stop"), &stop);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.begin(None, None, out);
        self.close(out);
        let delta = json!({"stop_reason": reason(self.stop), "stop_sequence": null});
        let delta = json!({"type": "message_delta", "delta": delta, "usage": messages_usage(&self.usage)});
        event(out, Some("message_delta"), &delta);
        event(out, Some("message_stop"), &json!({"type": "message_stop"}));
    }
}

/// Returns the body of an answer that is no stream.
pub(super) fn whole(reply: &Reply) -> Value {
    let blocks = reply.entry.parts.iter().filter_map(|part| match part {
        Part::Text { text } if !text.is_empty() => Some(json!({"type": "text", "text": text})),
        Part::Call(call) => {
            let mut input = Vec::new();
            arguments_object(&mut input, call.arguments.as_str());
            let input: Value = serde_json::from_slice(&input).unwrap_or_else(|_| json!({}));
            Some(json!({"type": "tool_use", "id": call.id.as_str(), "name": call.name, "input": input}))
        }
        _ => None,
    });
    let content: Vec<Value> = blocks.collect();
    json!({"id": named(reply.id.as_deref(), "msg_"), "type": "message", "role": "assistant", "model": reply.model,
        "content": content, "stop_reason": reason(reply.stop), "stop_sequence": null,
        "usage": messages_usage(&reply.usage.unwrap_or_default())})
}

/// Why an answer ended, in this format's word for it.
fn reason(stop: Option<Stop>) -> &'static str {
    match stop {
        Some(Stop::Calls) => "tool_use",
        Some(Stop::Length) => "max_tokens",
        Some(Stop::Window) => "model_context_window_exceeded",
        Some(Stop::Refused) => "refusal",
        Some(Stop::Paused) => "pause_turn",
        Some(Stop::End) | None => "end_turn",
    }
}
