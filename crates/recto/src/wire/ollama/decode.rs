//! From body to entries: every mistake is named with its position, and nothing is half-read.

use super::messages::Messages;
use crate::error::Error;
use crate::wire::Decoded;
use crate::wire::json::{Fields, Source, place_of, without_position};
use serde_json::value::RawValue;

/// Reads a request body.
pub fn decode(body: &str) -> Result<Decoded, Error> {
    let source = Source { text: body };
    let mut decoded = Decoded::default();
    for (name, raw) in top(body)? {
        match name.as_str() {
            "model" => decoded.model = source.read(raw, "model")?,
            "messages" => {
                let list: Vec<&RawValue> = source.read(raw, "messages")?;
                let mut messages = Messages::of(&source);
                for (at, raw) in list.into_iter().enumerate() {
                    decoded.entries.push(messages.take(raw, &format!("messages[{at}]"))?);
                }
            }
            "tools" => {
                let tools: Option<Vec<&RawValue>> = source.read(raw, "tools")?;
                decoded.tools = tools.unwrap_or_default().into_iter().map(|tool| tool.get().into()).collect();
            }
            "format" => decoded.format = (!["null", "\"\""].contains(&raw.get())).then(|| raw.get().into()),
            _ => drop(decoded.extra.insert(name, source.read(raw, "field")?)),
        }
    }
    Ok(decoded)
}

pub(super) fn top(body: &str) -> Result<Fields<'_>, Error> {
    serde_json::from_str(body).map_err(|error| Error::input(without_position(&error)).at(place_of(body, &error)))
}
