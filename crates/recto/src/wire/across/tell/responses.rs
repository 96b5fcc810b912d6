//! OpenAI Responses: items, one after the other, and all of them once more at the end.

use super::super::{Telling, Told};
use super::{event, named, responses_usage};
use crate::entry::Part;
use crate::error::Error;
use crate::wire::{Reply, Stop, Usage};
use serde_json::{Value, json};

/// What was told so far.
#[derive(Debug)]
pub(in super::super) struct Responses {
    telling: Telling,
    id: String,
    model: String,
    has_begun: bool,
    /// The number of the next event.
    number: u64,
    /// The items that are done.
    output: Vec<Value>,
    /// The item that is open.
    open: Option<Open>,
    stop: Option<Stop>,
    usage: Usage,
}

#[derive(Debug)]
struct Open {
    kind: Kind,
    /// What was told of it piece by piece.
    told: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Refusal,
    Thought,
    Call { at: usize, id: String, name: String },
}

impl Responses {
    pub(super) fn new(telling: Telling) -> Responses {
        let (id, model, usage) = (named(None, "resp_"), String::new(), Usage::default());
        let (has_begun, number, output, open, stop) = (false, 0, Vec::new(), None, None);
        Responses { telling, id, model, has_begun, number, output, open, stop, usage }
    }

    pub(super) fn tell(&mut self, told: Told, out: &mut Vec<u8>) -> Result<Option<&'static str>, Error> {
        match told {
            Told::Begun { id, model } => {
                self.id = named(id.as_deref(), "resp_");
                self.model = model.as_deref().unwrap_or_default().to_string();
                self.begin(out);
            }
            Told::Text(text) => self.piece(Kind::Text, &text, out),
            Told::Refusal(text) => self.piece(Kind::Refusal, &text, out),
            Told::Thought(text) => self.piece(Kind::Thought, &text, out),
            Told::Call { at, id, name } => self.open(Kind::Call { at, id, name }, out),
            Told::Arguments { at, piece } => {
                match self.open.as_ref().map(|open| open.kind.clone()) {
                    Some(Kind::Call { at: open, id, name }) if open == at => {
                        self.piece(Kind::Call { at, id, name }, &piece, out);
                    }
                    _ => {
                        return Err(Error::input(format!(
                            "arguments of call {at} go on after the next item has begun"
                        )));
                    }
                };
            }
            Told::Used(usage) => self.usage = usage,
            Told::Stopped(stop) => self.stop = stop,
            Told::Ended => self.end(out),
            Told::Failed { kind, message } => {
                self.event("error", json!({"code": kind, "message": message, "param": null}), out);
            }
            Told::Alive => out.extend_from_slice(b": alive\n\n"),
            Told::LeftOut(what) => return Ok(Some(what)),
        }
        Ok(None)
    }

    fn event(&mut self, name: &str, mut data: Value, out: &mut Vec<u8>) {
        data["type"] = name.into();
        data["sequence_number"] = self.number.into();
        self.number += 1;
        event(out, Some(name), &data);
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let response = response(self.telling, &self.id, &self.model, "in_progress", &self.output);
            self.event("response.created", json!({"response": response}), out);
            self.event("response.in_progress", json!({"response": response}), out);
        }
    }

    fn open(&mut self, kind: Kind, out: &mut Vec<u8>) {
        self.begin(out);
        self.close(out);
        let (at, id) = (self.output.len(), self.item_id(&kind));
        let mut item = item(&id, &kind, "");
        item["status"] = "in_progress".into();
        let part = part_of(&kind, "");
        match kind {
            Kind::Text | Kind::Refusal => item["content"] = json!([]),
            Kind::Thought => item["summary"] = json!([]),
            Kind::Call { .. } => {}
        }
        self.event("response.output_item.added", json!({"output_index": at, "item": item}), out);
        if let Some((name, part)) = part {
            let added = self.part_event(&kind, json!({"part": part}));
            self.event(&format!("response.{name}.added"), added, out);
        }
        self.open = Some(Open { kind, told: String::new() });
    }

    /// Tells a piece of an item, which is begun if another one is open.
    fn piece(&mut self, kind: Kind, piece: &str, out: &mut Vec<u8>) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.open(kind.clone(), out);
        }
        if let Some(open) = &mut self.open {
            open.told.push_str(piece);
        }
        let delta = self.part_event(&kind, json!({"delta": piece}));
        self.event(&format!("response.{}.delta", pieces_of(&kind)), delta, out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let Some(Open { kind, told }) = self.open.take() else { return };
        let field = match kind {
            Kind::Text | Kind::Thought => "text",
            Kind::Refusal => "refusal",
            Kind::Call { .. } => "arguments",
        };
        let done = self.part_event(&kind, json!({field: told}));
        self.event(&format!("response.{}.done", pieces_of(&kind)), done, out);
        if let Some((name, part)) = part_of(&kind, &told) {
            let done = self.part_event(&kind, json!({"part": part}));
            self.event(&format!("response.{name}.done"), done, out);
        }
        let (at, item) = (self.output.len(), item(&self.item_id(&kind), &kind, &told));
        self.event("response.output_item.done", json!({"output_index": at, "item": item}), out);
        self.output.push(item);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        self.close(out);
        let (status, why) = status(self.stop);
        let mut response = response(self.telling, &self.id, &self.model, status, &self.output);
        response["incomplete_details"] = why.map_or(Value::Null, |why| json!({"reason": why}));
        response["usage"] = responses_usage(&self.usage);
        self.event(&format!("response.{status}"), json!({"response": response}), out);
    }

    fn item_id(&self, kind: &Kind) -> String {
        item_id(&self.id, kind, self.output.len())
    }

    /// An event about a piece of the open item.
    fn part_event(&self, kind: &Kind, mut data: Value) -> Value {
        data["item_id"] = self.item_id(kind).into();
        data["output_index"] = self.output.len().into();
        match kind {
            Kind::Text | Kind::Refusal => data["content_index"] = 0.into(),
            Kind::Thought => data["summary_index"] = 0.into(),
            Kind::Call { .. } => {}
        }
        data
    }
}

/// Returns the body of an answer that is no stream.
pub(super) fn whole(telling: Telling, reply: &Reply) -> Value {
    let id = named(reply.id.as_deref(), "resp_");
    let (mut output, mut calls) = (Vec::new(), 0);
    for part in reply.entry.parts.iter() {
        let (kind, told) = match part {
            Part::Text { text } => (Kind::Text, text.to_string()),
            Part::Reasoning(thought) => (Kind::Thought, thought.text.to_string()),
            Part::Call(call) => {
                calls += 1;
                let kind = Kind::Call { at: calls, id: call.id.to_string(), name: call.name.to_string() };
                (kind, call.arguments.as_str().to_string())
            }
            Part::Opaque { payload, .. } => match super::super::refused(payload) {
                Some(refusal) => (Kind::Refusal, refusal),
                None => continue,
            },
            _ => continue,
        };
        output.push(item(&item_id(&id, &kind, output.len()), &kind, &told));
    }
    let (status, why) = status(reply.stop);
    let mut body = response(telling, &id, reply.model.as_deref().unwrap_or_default(), status, &output);
    body["incomplete_details"] = why.map_or(Value::Null, |why| json!({"reason": why}));
    body["usage"] = reply.usage.as_ref().map_or(Value::Null, responses_usage);
    body
}

/// What is said of a response beside its usage and its end. Its provider keeps nothing under its name.
fn response(telling: Telling, id: &str, model: &str, status: &str, output: &[Value]) -> Value {
    json!({"id": id, "object": "response", "created_at": telling.created, "model": model, "status": status,
        "output": output, "error": null, "incomplete_details": null, "instructions": null, "metadata": {},
        "parallel_tool_calls": true, "store": false, "temperature": null, "tool_choice": "auto", "tools": [],
        "top_p": null, "usage": null})
}

/// The name of an item of a response.
fn item_id(response: &str, kind: &Kind, at: usize) -> String {
    let prefix = match kind {
        Kind::Text | Kind::Refusal => "msg",
        Kind::Thought => "rs",
        Kind::Call { .. } => "fc",
    };
    format!("{prefix}_{}_{at}", response.trim_start_matches("resp_"))
}

/// What the pieces of an item are called.
fn pieces_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text => "output_text",
        Kind::Refusal => "refusal",
        Kind::Thought => "reasoning_summary_text",
        Kind::Call { .. } => "function_call_arguments",
    }
}

/// The part of an item that holds its words, and what such parts are called.
fn part_of(kind: &Kind, told: &str) -> Option<(&'static str, Value)> {
    match kind {
        Kind::Text => Some(("content_part", json!({"type": "output_text", "text": told, "annotations": []}))),
        Kind::Refusal => Some(("content_part", json!({"type": "refusal", "refusal": told}))),
        Kind::Thought => Some(("reasoning_summary_part", json!({"type": "summary_text", "text": told}))),
        Kind::Call { .. } => None,
    }
}

/// An item that is done.
fn item(id: &str, kind: &Kind, told: &str) -> Value {
    let parts: Vec<Value> = part_of(kind, told).map(|(_, part)| part).into_iter().collect();
    match kind {
        Kind::Text | Kind::Refusal => {
            json!({"id": id, "type": "message", "role": "assistant", "status": "completed", "content": parts})
        }
        Kind::Thought => json!({"id": id, "type": "reasoning", "summary": parts}),
        Kind::Call { id: call, name, .. } => json!({"id": id, "type": "function_call", "call_id": call,
            "name": name, "arguments": told, "status": "completed"}),
    }
}

/// How a response ended, and why it is not whole.
fn status(stop: Option<Stop>) -> (&'static str, Option<&'static str>) {
    match stop {
        Some(Stop::Length | Stop::Window) => ("incomplete", Some("max_output_tokens")),
        Some(Stop::Refused) => ("incomplete", Some("content_filter")),
        Some(Stop::End | Stop::Calls | Stop::Paused) | None => ("completed", None),
    }
}
