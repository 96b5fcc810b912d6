//! A streamed response: every event is a response of its own, and their parts one behind the other are the whole.

use super::decode::top;
use super::reply::{Ended, Told, error_text, reply};
use crate::entry::Status;
use crate::error::Error;
use crate::wire::Reply;
use crate::wire::json::{Fields, Source};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a streamed response event by event.
#[derive(Debug, Default)]
pub struct Stream {
    /// The parts so far, as JSON texts.
    parts: Vec<Growing>,
    ended: Ended,
    error: Option<String>,
    has_begun: bool,
}

/// A part: words go on growing as long as nothing else stands behind them.
#[derive(Debug)]
enum Growing {
    Words { text: String, is_thought: bool },
    Whole(String),
}

impl Stream {
    /// Takes the data of one event.
    pub fn event(&mut self, data: &str) -> Result<(), Error> {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let source = Source { text: data };
        let fields = top(data)?;
        if let Some(raw) = fields.get("error").filter(|raw| raw.get() != "null") {
            self.error = Some(error_text(raw.get()));
            return Ok(());
        }
        let told = Told::of(&source, &fields)?;
        self.has_begun |= told.says_something();
        for raw in told.parts {
            self.part(raw);
        }
        let ended = &mut self.ended;
        ended.id = ended.id.take().or(told.id);
        ended.model = ended.model.take().or(told.model);
        ended.finish = told.finish.or(ended.finish.take());
        ended.blocked = told.blocked.or(ended.blocked.take());
        // The last is final.
        ended.usage = told.usage.or(ended.usage);
        Ok(())
    }

    fn part(&mut self, raw: &RawValue) {
        let fields: Fields<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        let text: Option<String> = fields.get("text").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let is_plain = fields.keys().all(|name| name == "text" || name == "thought");
        let now = fields.get("thought").is_some_and(|raw| raw.get() == "true");
        match (text.filter(|_| is_plain), self.parts.last_mut()) {
            (Some(more), Some(Growing::Words { text, is_thought })) if *is_thought == now => text.push_str(&more),
            (Some(text), _) => self.parts.push(Growing::Words { text, is_thought: now }),
            (None, _) => self.parts.push(Growing::Whole(raw.get().to_string())),
        }
    }

    /// Returns what was said; without a reason why it ended, the entry's status is an error.
    pub fn finish(self) -> Result<Reply, Error> {
        if !self.has_begun && self.error.is_none() {
            return Err(Error::input("the stream ended before it said anything").hinting("ask again"));
        }
        let parts = self.parts.into_iter().map(|part| match part {
            Growing::Whole(part) => part,
            Growing::Words { text, is_thought: false } => format!("{{\"text\":{}}}", Value::String(text)),
            Growing::Words { text, is_thought: true } => {
                format!("{{\"text\":{},\"thought\":true}}", Value::String(text))
            }
        });
        let whole = format!("[{}]", parts.collect::<Vec<String>>().join(","));
        let source = Source { text: &whole };
        let parts: Vec<&RawValue> = serde_json::from_str(&whole).map_err(|error| Error::input(error.to_string()))?;
        let mut reply = reply(&source, parts, &self.ended)?;
        if let Some(error) = self.error {
            reply.entry.status = Status::Error;
            reply.entry.meta.insert("error".into(), Value::String(error));
        } else if self.ended.finish.is_none() && self.ended.blocked.is_none() {
            reply.entry.status = Status::Error;
        }
        Ok(reply)
    }
}
