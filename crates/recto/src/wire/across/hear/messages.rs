//! Anthropic Messages: blocks that begin, grow and end.

use super::super::{CITATIONS, CONTENT, SIGNATURE, Told};
use super::{failed, said, text};
use crate::wire::anthropic::{Reported, stop};
use serde::Deserialize;
use serde_json::Value;

/// What is known of the blocks so far.
#[derive(Debug, Default)]
pub(in super::super) struct Messages {
    usage: Reported,
    calls: usize,
    /// The input that the open call began with, as long as nothing else was told of it.
    input: Option<Value>,
}

impl Messages {
    /// Takes an event.
    pub(super) fn event(&mut self, event: &Value, told: &mut Vec<Told>) {
        match text(event, "type") {
            Some("message_start") => {
                let message = &event["message"];
                self.used(&message["usage"]);
                let text = |name| text(message, name).map(Into::into);
                told.push(Told::Begun { id: text("id"), model: text("model") });
            }
            Some("content_block_start") => self.block(&event["content_block"], told),
            Some("content_block_delta") => self.delta(&event["delta"], told),
            Some("content_block_stop") => {
                let whole = self.input.take().map(|input| input.to_string());
                told.extend(whole.map(|piece| Told::Arguments { at: self.calls - 1, piece }));
            }
            Some("message_delta") => {
                self.used(&event["usage"]);
                told.push(Told::Used(self.usage.normalised()));
                if let Some(reason) = text(&event["delta"], "stop_reason") {
                    told.push(Told::Stopped(stop(reason)));
                }
            }
            Some("message_stop") => told.push(Told::Ended),
            Some("error") => told.push(failed(&event["error"])),
            Some("ping") => told.push(Told::Alive),
            _ => {}
        }
    }

    fn used(&mut self, usage: &Value) {
        if let Ok(later) = Reported::deserialize(usage) {
            self.usage.update(later);
        }
    }

    fn block(&mut self, block: &Value, told: &mut Vec<Told>) {
        match text(block, "type") {
            Some("text") => told.extend(said(block, "text").map(Told::Text)),
            Some("thinking") => {
                told.extend(said(block, "thinking").map(Told::Thought));
                told.extend(said(block, "signature").map(|_| Told::LeftOut(SIGNATURE)));
            }
            Some("redacted_thinking") => told.push(Told::LeftOut(SIGNATURE)),
            Some("tool_use") => {
                let text = |name| text(block, name).unwrap_or_default().to_string();
                told.push(Told::Call { at: self.calls, id: text("id"), name: text("name") });
                self.calls += 1;
                self.input = Some(block["input"].clone()).filter(|input| !input.is_null());
            }
            _ => told.push(Told::LeftOut(CONTENT)),
        }
    }

    fn delta(&mut self, delta: &Value, told: &mut Vec<Told>) {
        match text(delta, "type") {
            Some("text_delta") => told.extend(said(delta, "text").map(Told::Text)),
            Some("thinking_delta") => told.extend(said(delta, "thinking").map(Told::Thought)),
            Some("signature_delta") => told.push(Told::LeftOut(SIGNATURE)),
            Some("citations_delta") => told.push(Told::LeftOut(CITATIONS)),
            Some("input_json_delta") => {
                let piece = said(delta, "partial_json").filter(|_| self.calls > 0);
                if let Some(piece) = piece {
                    self.input = None;
                    told.push(Told::Arguments { at: self.calls - 1, piece });
                }
            }
            _ => {}
        }
    }
}
