//! OpenAI Responses: items that are added, grow, and are done.

use super::super::{CONTENT, SIGNATURE, Told};
use super::{all_of, failed, said, text};
use crate::entry::Status;
use crate::wire::openai_responses;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is known of the items so far.
#[derive(Debug, Default)]
pub(in super::super) struct Responses {
    has_begun: bool,
    calls: usize,
    /// The items, by their number.
    items: BTreeMap<u64, Item>,
}

#[derive(Debug, Default)]
struct Item {
    /// Which of the calls it is.
    call: Option<usize>,
    /// Whether something of it was told piece by piece.
    is_told: bool,
    /// The newest piece of its thoughts.
    thought: Option<u64>,
}

impl Responses {
    /// Takes an event.
    pub(super) fn event(&mut self, event: &Value, told: &mut Vec<Told>) {
        let kind = text(event, "type").unwrap_or_default();
        let at = event["output_index"].as_u64().unwrap_or(0);
        match kind.strip_prefix("response.").unwrap_or(kind) {
            "created" | "in_progress" | "queued" => self.begin(&event["response"], told),
            "output_item.added" => self.added(at, &event["item"], told),
            "output_item.done" => self.done(at, &event["item"], told),
            "output_text.delta" => self.piece(at, said(event, "delta").map(Told::Text), told),
            "refusal.delta" => self.piece(at, said(event, "delta").map(Told::Refusal), told),
            "reasoning_summary_text.delta" | "reasoning_text.delta" => self.thought(at, event, told),
            "function_call_arguments.delta" => {
                let call = self.items.get(&at).and_then(|item| item.call);
                let piece = said(event, "delta").zip(call).map(|(piece, at)| Told::Arguments { at, piece });
                self.piece(at, piece, told);
            }
            "completed" | "incomplete" | "cancelled" => self.end(&event["response"], told),
            "failed" => {
                self.begin(&event["response"], told);
                told.push(failed(&event["response"]["error"]));
            }
            "error" => told.push(failed(event.get("error").filter(|it| !it.is_null()).unwrap_or(event))),
            _ => {}
        }
    }

    fn begin(&mut self, response: &Value, told: &mut Vec<Told>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let text = |name| text(response, name).map(Into::into);
            told.push(Told::Begun { id: text("id"), model: text("model") });
        }
    }

    fn piece(&mut self, at: u64, piece: Option<Told>, told: &mut Vec<Told>) {
        if piece.is_some() {
            self.items.entry(at).or_default().is_told = true;
        }
        told.extend(piece);
    }

    /// The pieces of a thought are paragraphs.
    fn thought(&mut self, at: u64, event: &Value, told: &mut Vec<Told>) {
        let Some(piece) = said(event, "delta") else { return };
        let nth = event["summary_index"].as_u64().or(event["content_index"].as_u64());
        let item = self.items.entry(at).or_default();
        let is_next = item.thought.is_some() && item.thought != nth;
        item.thought = nth.or(item.thought);
        let piece = if is_next { format!("\n\n{piece}") } else { piece };
        self.piece(at, Some(Told::Thought(piece)), told);
    }

    fn added(&mut self, at: u64, item: &Value, told: &mut Vec<Told>) {
        let known = self.items.entry(at).or_default();
        if text(item, "type") == Some("function_call") && known.call.is_none() {
            known.call = Some(self.calls);
            let text = |name| text(item, name).unwrap_or_default().to_string();
            told.push(Told::Call { at: self.calls, id: text("call_id"), name: text("name") });
            self.calls += 1;
        }
    }

    /// Tells what was not told piece by piece, and what can't be told.
    fn done(&mut self, at: u64, item: &Value, told: &mut Vec<Told>) {
        self.added(at, item, told);
        let known = self.items.entry(at).or_default();
        let is_told = std::mem::replace(&mut known.is_told, true);
        match (text(item, "type"), known.call) {
            (Some("function_call"), Some(at)) if !is_told => {
                told.extend(said(item, "arguments").map(|piece| Told::Arguments { at, piece }));
            }
            (Some("message"), _) if !is_told => {
                for part in item["content"].as_array().into_iter().flatten() {
                    told.extend(
                        said(part, "text").map(Told::Text).or_else(|| said(part, "refusal").map(Told::Refusal)),
                    );
                }
            }
            (Some("reasoning"), _) => {
                let summary = item["summary"].as_array().into_iter().flatten().filter_map(|it| said(it, "text"));
                let thought = summary.collect::<Vec<String>>().join("\n\n");
                told.extend(Some(thought).filter(|it| !is_told && !it.is_empty()).map(Told::Thought));
                told.extend(said(item, "encrypted_content").map(|_| Told::LeftOut(SIGNATURE)));
            }
            (Some("message" | "function_call"), _) => {}
            _ => told.push(Told::LeftOut(CONTENT)),
        }
    }

    fn end(&mut self, response: &Value, told: &mut Vec<Told>) {
        self.begin(response, told);
        let Ok(reply) = openai_responses::decode_reply(&response.to_string()) else {
            return told.push(failed(&response["error"]));
        };
        // Some servers tell of their items only here.
        if self.items.is_empty() {
            all_of(&reply, told);
        }
        told.extend(reply.usage.map(Told::Used));
        match reply.entry.status {
            Status::Sent => {
                let has_calls = self.calls > 0 && reply.stop == Some(crate::wire::Stop::End);
                let stop = if has_calls { Some(crate::wire::Stop::Calls) } else { reply.stop };
                told.extend([Told::Stopped(stop), Told::Ended]);
            }
            _ => told.push(failed(&response["error"])),
        }
    }
}
