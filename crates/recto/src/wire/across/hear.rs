//! What the events of a provider's stream tell, in words of nobody's.

mod chat;
mod messages;
mod responses;

use super::Told;
use crate::error::Error;
use crate::wire::json::{place_of, without_lone_surrogates, without_position};
use crate::wire::{Reply, Wire};
use serde_json::Value;

/// How an answer is heard, by the wire it comes in.
#[derive(Debug)]
pub(super) enum Hear {
    Chat(chat::Chat),
    Responses(responses::Responses),
    Messages(messages::Messages),
}

impl Hear {
    pub(super) fn of(wire: Wire) -> Option<Hear> {
        match wire {
            Wire::OpenaiChat => Some(Hear::Chat(chat::Chat::default())),
            Wire::OpenaiResponses => Some(Hear::Responses(responses::Responses::default())),
            Wire::Anthropic => Some(Hear::Messages(messages::Messages::default())),
            Wire::Gemini | Wire::Ollama => None,
        }
    }

    /// Takes the data of one event.
    pub(super) fn event(&mut self, data: &str) -> Result<Vec<Told>, Error> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(Vec::new());
        }
        if data == "[DONE]" {
            if let Hear::Chat(chat) = self {
                chat.done();
            }
            return Ok(self.close());
        }
        let (data, _) = without_lone_surrogates(data);
        let event: Value = serde_json::from_str(&data)
            .map_err(|error| Error::input(without_position(&error)).at(place_of(&data, &error)))?;
        let mut told = Vec::new();
        match self {
            Hear::Chat(chat) => chat.event(&event, &mut told),
            Hear::Responses(responses) => responses.event(&event, &mut told),
            Hear::Messages(messages) => messages.event(&event, &mut told),
        }
        Ok(told)
    }

    /// Takes the end of the stream. Only Chat Completions has an answer that is over before its last event says so.
    pub(super) fn close(&mut self) -> Vec<Told> {
        match self {
            Hear::Chat(chat) => chat.close(),
            Hear::Responses(_) | Hear::Messages(_) => Vec::new(),
        }
    }
}

/// A text of an object.
fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

/// A text of an object that says something.
fn said(value: &Value, name: &str) -> Option<String> {
    text(value, name).filter(|text| !text.is_empty()).map(str::to_string)
}

/// What an error of a provider says: its kind and its words.
fn failed(error: &Value) -> Told {
    let kind = text(error, "type").or(text(error, "code")).unwrap_or("api_error").to_string();
    let message = error.as_str().or(text(error, "message")).map_or_else(|| error.to_string(), str::to_string);
    Told::Failed { kind, message }
}

/// Tells what is in a reply that was told all at once.
fn all_of(reply: &Reply, told: &mut Vec<Told>) {
    use crate::entry::Part;
    let mut calls = 0;
    for part in reply.entry.parts.iter() {
        match part {
            Part::Text { text } => told.push(Told::Text(text.to_string())),
            Part::Reasoning(thought) if !thought.text.is_empty() => told.push(Told::Thought(thought.text.to_string())),
            Part::Call(call) => {
                let (at, id, name) = (calls, call.id.to_string(), call.name.to_string());
                told.push(Told::Call { at, id, name });
                told.push(Told::Arguments { at, piece: call.arguments.as_str().to_string() });
                calls += 1;
            }
            Part::Opaque { payload, .. } => told.extend(super::refused(payload).map(Told::Refusal)),
            _ => {}
        }
    }
}
