//! OpenAI Chat Completions: chunks up to `[DONE]`.

use super::super::Told;
use super::{failed, said, text};
use crate::wire::{Stop, openai_chat};
use serde_json::Value;

/// What is known of the chunks so far.
#[derive(Debug, Default)]
pub(in super::super) struct Chat {
    has_begun: bool,
    has_refused: bool,
    calls: Vec<CallSoFar>,
    /// Why it ended, if it has.
    ended: Option<String>,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct CallSoFar {
    index: Option<u64>,
    id: String,
    name: String,
    /// Arguments that came before the name.
    early: String,
    is_told: bool,
}

impl Chat {
    /// Takes a chunk.
    pub(super) fn event(&mut self, event: &Value, told: &mut Vec<Told>) {
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            told.push(failed(error));
            return;
        }
        let choices = event["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !std::mem::replace(&mut self.has_begun, true) {
            let text = |name| said(event, name).map(Into::into);
            told.push(Told::Begun { id: text("id"), model: text("model") });
        }
        for choice in choices.iter().filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
            self.delta(&choice["delta"], told);
            self.ended = text(choice, "finish_reason").map(str::to_string).or(self.ended.take());
        }
        told.extend(openai_chat::read_usage(&event["usage"]).map(Told::Used));
    }

    fn delta(&mut self, delta: &Value, told: &mut Vec<Told>) {
        // The same words may come under both names.
        told.extend(said(delta, "reasoning_content").or_else(|| said(delta, "reasoning")).map(Told::Thought));
        told.extend(said(delta, "content").map(Told::Text));
        if let Some(refusal) = said(delta, "refusal") {
            self.has_refused = true;
            told.push(Told::Refusal(refusal));
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(piece, told);
        }
    }

    /// Takes a piece of a call: its number says of which, and an id of its own begins another where servers give all the
    /// same number, or none.
    fn call(&mut self, piece: &Value, told: &mut Vec<Told>) {
        let (index, id) = (piece["index"].as_u64(), said(piece, "id"));
        let is_same = |call: &CallSoFar| {
            let is_id = id.as_ref().is_none_or(|id| call.id.is_empty() || call.id == *id);
            is_id && (index.is_none() || call.index == index)
        };
        let at = self.calls.iter().rposition(is_same).unwrap_or_else(|| {
            self.calls.push(CallSoFar { index, ..CallSoFar::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        call.id = id.unwrap_or(std::mem::take(&mut call.id));
        let function = &piece["function"];
        if call.name.is_empty() {
            call.name = said(function, "name").unwrap_or_default();
        }
        match &function["arguments"] {
            Value::Null => {}
            Value::String(text) => call.early.push_str(text),
            whole => call.early = whole.to_string(),
        }
        call.tell(at, told);
    }

    /// Takes the last event, which ends the answer even if nothing else has said why.
    pub(super) fn done(&mut self) {
        if !self.is_closed {
            self.ended.get_or_insert_with(|| "stop".to_string());
        }
    }

    /// Takes the end of the stream, which is a proper one if the model has said why it ends, or the provider that it
    /// does.
    pub(super) fn close(&mut self) -> Vec<Told> {
        let Some(ended) = self.ended.take().filter(|_| !self.is_closed) else { return Vec::new() };
        self.is_closed = true;
        let mut told = Vec::new();
        for (at, call) in self.calls.iter_mut().enumerate() {
            call.close(at, &mut told);
        }
        let stop = match ended.as_str() {
            "error" => None,
            ended => openai_chat::stop(ended, !self.calls.is_empty(), self.has_refused),
        };
        told.extend([Told::Stopped(stop.or(Some(Stop::End))), Told::Ended]);
        told
    }
}

impl CallSoFar {
    /// Tells what has come of it, once it has a name.
    fn tell(&mut self, at: usize, told: &mut Vec<Told>) {
        if self.name.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_told, true) {
            let id = if self.id.is_empty() { format!("call_{at}") } else { self.id.clone() };
            told.push(Told::Call { at, id, name: self.name.clone() });
        }
        let piece = std::mem::take(&mut self.early);
        if !piece.is_empty() {
            told.push(Told::Arguments { at, piece });
        }
    }

    /// Tells it without a name, if none has come.
    fn close(&mut self, at: usize, told: &mut Vec<Told>) {
        if !self.is_told {
            let (id, name) = (std::mem::take(&mut self.id), String::new());
            told.push(Told::Call { at, id: if id.is_empty() { format!("call_{at}") } else { id }, name });
            told.push(Told::Arguments { at, piece: std::mem::take(&mut self.early) });
        }
    }
}
