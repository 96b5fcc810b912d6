//! A response that comes in pieces: `data:` lines up to `[DONE]`.

use super::decode::top;
use super::plain::{self, Calling, Chunk};
use super::reply::{reply, said, usage};
use crate::entry::{Status, Text};
use crate::error::Error;
use crate::wire::json::{Fields, Object, Said, Source, Word};
use crate::wire::{Reply, Usage};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// Reads a streamed response event by event.
#[derive(Debug, Default)]
pub struct Stream {
    id: Option<Text>,
    model: Option<Text>,
    content: Option<String>,
    reasoning: String,
    refusal: String,
    calls: Vec<CallSoFar>,
    /// Fields of the message that have no place; lists go on, other values are the newest.
    rest: Map<String, Value>,
    usage: Option<Usage>,
    ended: Option<Text>,
    error: Option<String>,
    has_begun: bool,
    is_done: bool,
}

/// A call of which pieces have come.
#[derive(Debug, Default)]
struct CallSoFar {
    index: Option<u64>,
    id: String,
    is_custom: bool,
    name: String,
    arguments: String,
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Choice<'t> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Fields<'t>>,
    finish_reason: Option<Text>,
}

#[derive(Deserialize)]
struct Piece {
    index: Option<u64>,
    id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    function: Option<Told>,
    custom: Option<Told>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Told {
    name: Option<String>,
    #[serde(alias = "input")]
    arguments: Option<Value>,
}

impl Stream {
    /// Takes the data of one event.
    pub fn event(&mut self, data: &str) -> Result<(), Error> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if let Some(chunk) = plain::chunk(data) {
            self.grow(chunk);
            return Ok(());
        }
        let source = Source { text: data };
        let fields: Fields<'_> = top(data)?;
        self.error = fields.get("error").and_then(|raw| said(raw)).or(self.error.take());
        let choices: Option<Vec<Choice<'_>>> =
            fields.get("choices").map(|raw| source.read(raw, "choices")).transpose()?.flatten();
        let Some(choices) = choices else { return Ok(()) };
        self.has_begun = true;
        for (name, kept) in [("id", &mut self.id), ("model", &mut self.model)] {
            let text: Option<Text> = fields.get(name).map(|raw| source.read(raw, name)).transpose()?.flatten();
            *kept = kept.take().or(text.filter(|text| !text.is_empty()));
        }
        if let Some(raw) = fields.get("usage") {
            self.usage = usage(&source, raw)?.or(self.usage);
        }
        for choice in choices.into_iter().filter(|choice| choice.index == 0) {
            self.ended = choice.finish_reason.or(self.ended.take());
            for (name, raw) in choice.delta.unwrap_or_default() {
                self.delta(&source, &name, raw)?;
            }
        }
        Ok(())
    }

    /// Takes a plain piece: the same as field by field, in one go.
    fn grow(&mut self, chunk: Chunk<'_>) {
        self.has_begun = true;
        for (told, kept) in [(chunk.id, &mut self.id), (chunk.model, &mut self.model)] {
            if kept.is_none() {
                *kept = told.filter(|Word(text)| !text.is_empty()).map(|Word(text)| text.into());
            }
        }
        for Object(choice) in chunk.choices.into_iter().filter(|Object(choice)| choice.index == 0) {
            self.ended = choice.finish_reason.map(|Said(reason)| reason).or(self.ended.take());
            let Some(Object(delta)) = choice.delta else { continue };
            if let Some(Word(text)) = delta.content {
                self.content.get_or_insert_default().push_str(&text);
            }
            if let Some(Word(text)) = delta.reasoning_content {
                self.reasoning.push_str(&text);
            }
            for Object(calling) in delta.tool_calls.into_iter().flatten() {
                self.call(calling.into());
            }
        }
    }

    fn delta(&mut self, source: &Source<'_>, name: &str, raw: &RawValue) -> Result<(), Error> {
        let text = || -> Result<String, Error> {
            let text: Option<String> = source.read(raw, name)?;
            Ok(text.unwrap_or_default())
        };
        match name {
            "role" => {}
            "content" if raw.get() == "null" => {}
            "content" => self.content.get_or_insert_default().push_str(&text()?),
            "reasoning_content" => self.reasoning.push_str(&text()?),
            // The same words may come under both names.
            "reasoning" if raw.get().starts_with('"') => {
                if !source.text.contains("\"reasoning_content\"") {
                    self.reasoning.push_str(&text()?);
                }
            }
            "refusal" => self.refusal.push_str(&text()?),
            "tool_calls" => {
                let pieces: Option<Vec<Piece>> = source.read(raw, name)?;
                pieces.into_iter().flatten().for_each(|piece| self.call(piece));
            }
            _ => match (self.rest.get_mut(name), source.read(raw, name)?) {
                (_, Value::Null) => {}
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
                (_, value) => drop(self.rest.insert(name.into(), value)),
            },
        }
        Ok(())
    }

    /// Takes a piece of a call: its number says of which, and an id of its own begins another where servers give all
    /// the same number, or none.
    fn call(&mut self, piece: Piece) {
        let id = piece.id.filter(|id| !id.is_empty());
        let is_same = |call: &&mut CallSoFar| {
            let is_id = id.as_ref().is_none_or(|id| call.id.is_empty() || call.id == *id);
            is_id && (piece.index.is_none() || call.index == piece.index)
        };
        let call = match self.calls.iter_mut().rev().find(is_same) {
            Some(call) => call,
            None => {
                self.calls.push(CallSoFar { index: piece.index, ..CallSoFar::default() });
                self.calls.last_mut().expect("one was pushed")
            }
        };
        if let Some(id) = id {
            call.id = id;
        }
        call.is_custom |= piece.kind.as_deref() == Some("custom") || piece.custom.is_some();
        if let Some(told) = piece.function.or(piece.custom) {
            if let Some(name) = told.name.filter(|_| call.name.is_empty()) {
                call.name = name;
            }
            match told.arguments {
                Some(Value::String(text)) => call.arguments.push_str(&text),
                Some(Value::Null) | None => {}
                Some(whole) => call.arguments = whole.to_string(),
            }
        }
        call.rest.extend(piece.rest);
    }

    /// Returns what was said; without its proper end, the entry's status is an error.
    pub fn finish(self) -> Result<Reply, Error> {
        if !self.has_begun && self.error.is_none() {
            return Err(Error::input("the stream ended before anything came"));
        }
        let mut message = self.rest;
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), self.content.into());
        message.insert("reasoning_content".into(), self.reasoning.into());
        message.insert("refusal".into(), self.refusal.into());
        message.insert("tool_calls".into(), self.calls.into_iter().enumerate().map(CallSoFar::whole).collect());
        let message = to_raw_value(&message).map_err(|error| Error::input(error.to_string()))?;
        let mut reply = reply(&Source { text: message.get() }, &message, self.ended.as_deref())?;
        (reply.id, reply.model, reply.usage) = (self.id, self.model, self.usage);
        if let Some(error) = self.error {
            reply.entry.status = Status::Error;
            reply.entry.meta.insert("error".into(), error.into());
        } else if self.ended.is_none() && !self.is_done {
            reply.entry.status = Status::Error;
        }
        Ok(reply)
    }
}

impl From<Calling<'_>> for Piece {
    fn from(calling: Calling<'_>) -> Piece {
        let Calling { index, id, kind, function } = calling;
        let owned = |word: Option<Word<'_>>| word.map(|Word(text)| text.into_owned());
        let told = |Object(told): Object<plain::Told<'_>>| Told {
            name: owned(told.name),
            arguments: owned(told.arguments).map(Value::String),
        };
        Piece { index, id, kind: owned(kind), function: function.map(told), custom: None, rest: Map::new() }
    }
}

impl CallSoFar {
    /// The call as it stands in a response that was not streamed; one without an id gets its number.
    fn whole((at, call): (usize, CallSoFar)) -> Value {
        let id = if call.id.is_empty() { format!("call_{at}") } else { call.id };
        let own = match call.is_custom {
            true => json!({"id": id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}),
            false => json!({"id": id, "type": "function", "function":
                {"name": call.name, "arguments": call.arguments}}),
        };
        let mut whole = call.rest;
        if let Value::Object(own) = own {
            whole.extend(own);
        }
        Value::Object(whole)
    }
}
