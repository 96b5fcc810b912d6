//! A response that comes in lines, each a response of its own; the last one says that it is done.

use super::decode::top;
use super::reply::{Told, reply, said};
use crate::entry::Status;
use crate::error::Error;
use crate::wire::Reply;
use crate::wire::json::{Fields, Source};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Reads a streamed response line by line.
#[derive(Debug, Default)]
pub struct Stream {
    content: String,
    thinking: String,
    /// Calls come whole, as JSON texts.
    calls: Vec<String>,
    /// Fields of the message that have no place: the newest.
    rest: Map<String, Value>,
    told: Told,
    error: Option<String>,
    has_begun: bool,
}

impl Stream {
    /// Takes one line.
    pub fn event(&mut self, data: &str) -> Result<(), Error> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        let source = Source { text: data };
        let fields = top(data)?;
        self.error = fields.get("error").and_then(|raw| said(raw)).or(self.error.take());
        let told = Told::of(&source, &fields)?;
        self.told = Told {
            model: self.told.model.take().or(told.model),
            is_done: self.told.is_done || told.is_done,
            why: told.why.or(self.told.why.take()),
            usage: told.usage.or(self.told.usage),
        };
        let Some(message) = fields.get("message").filter(|raw| raw.get() != "null") else { return Ok(()) };
        self.has_begun = true;
        let message: Fields<'_> = source.read(message, "message")?;
        for (name, raw) in message {
            self.field(&source, &name, raw)?;
        }
        Ok(())
    }

    fn field(&mut self, source: &Source<'_>, name: &str, raw: &RawValue) -> Result<(), Error> {
        let text = || -> Result<String, Error> {
            let text: Option<String> = source.read(raw, name)?;
            Ok(text.unwrap_or_default())
        };
        match name {
            "role" => {}
            "content" => self.content.push_str(&text()?),
            "thinking" => self.thinking.push_str(&text()?),
            "tool_calls" => {
                let calls: Option<Vec<&RawValue>> = source.read(raw, name)?;
                self.calls.extend(calls.into_iter().flatten().map(|call| call.get().to_string()));
            }
            _ => drop(self.rest.insert(name.into(), source.read(raw, name)?)),
        }
        Ok(())
    }

    /// Returns what was said; without the line that ends a response, the entry's status is an error.
    pub fn finish(self) -> Result<Reply, Error> {
        if !self.has_begun && self.error.is_none() {
            return Err(Error::input("the stream ended before anything came"));
        }
        let mut message = self.rest;
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), self.content.into());
        message.insert("thinking".into(), self.thinking.into());
        let whole = Value::Object(message).to_string();
        let open = whole.strip_suffix('}').unwrap_or(&whole);
        let whole = format!("{open},\"tool_calls\":[{}]}}", self.calls.join(","));
        let raw: &RawValue = serde_json::from_str(&whole).map_err(|error| Error::input(error.to_string()))?;
        let mut reply = reply(&Source { text: &whole }, raw, &self.told)?;
        if let Some(error) = self.error {
            reply.entry.status = Status::Error;
            reply.entry.meta.insert("error".into(), error.into());
        } else if !self.told.is_done {
            reply.entry.status = Status::Error;
        }
        Ok(reply)
    }
}
