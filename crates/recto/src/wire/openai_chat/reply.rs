//! From response to reply.

use super::decode::{record, top};
use super::plain;
use crate::entry::{Entry, Part, Role, Status, Text};
use crate::error::Error;
use crate::tokens::Tokens;
use crate::wire::json::{Fields, Source};
use crate::wire::{Reply, Stop, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a response body that was not streamed.
pub fn decode_reply(body: &str) -> Result<Reply, Error> {
    if let Some(reply) = plain::reply(body) {
        return Ok(reply);
    }
    let source = Source { text: body };
    let fields: Fields<'_> = top(body)?;
    let Some(choices) = fields.get("choices") else {
        return Err(match fields.get("error").and_then(|raw| said(raw)) {
            Some(what) => Error::input(format!("the provider answers with an error: {what}")),
            None => Error::input("no \"choices\" in it").hinting("is this a Chat Completions response?"),
        });
    };
    let choices: Vec<Fields<'_>> = source.read(choices, "choices")?;
    let choice = choices.first();
    let Some(message) = choice.and_then(|choice| choice.get("message")) else {
        return Err(Error::input("no message in its first choice"));
    };
    let text = |fields: &Fields<'_>, name: &str| -> Result<Option<Text>, Error> {
        Ok(fields.get(name).map(|raw| source.read(raw, name)).transpose()?.flatten())
    };
    let ended = choice.map_or(Ok(None), |choice| text(choice, "finish_reason"))?;
    let mut reply = reply(&source, message, ended.as_deref())?;
    (reply.id, reply.model) = (text(&fields, "id")?, text(&fields, "model")?);
    reply.usage = fields.get("usage").map(|raw| usage(&source, raw)).transpose()?.flatten();
    if let Some(what) = fields.get("error").and_then(|raw| said(raw)) {
        reply.entry.status = Status::Error;
        reply.entry.meta.insert("error".into(), what.into());
    }
    Ok(reply)
}

/// Reads the message of a response, which ended for a reason.
pub(super) fn reply(source: &Source<'_>, message: &RawValue, ended: Option<&str>) -> Result<Reply, Error> {
    let entry = record(source, message, 0)?.entry;
    if entry.role != Role::Assistant {
        return Err(source.refuse(message, "the reply is not an assistant's"));
    }
    Ok(self::ended(entry, ended))
}

/// Returns the reply that ended for a reason.
pub(super) fn ended(mut entry: Entry, reason: Option<&str>) -> Reply {
    if reason == Some("error") {
        entry.status = Status::Error;
    }
    let has_calls = entry.calls().next().is_some();
    let has_refused = entry.parts.iter().any(|part| matches!(part, Part::Opaque { .. }));
    let stop = reason.and_then(|reason| stop(reason, has_calls, has_refused));
    Reply { entry, id: None, model: None, stop, usage: None }
}

/// Why an answer ended, in the provider's word for it, that calls tools or has refused.
pub(crate) fn stop(ended: &str, has_calls: bool, has_refused: bool) -> Option<Stop> {
    match ended {
        "content_filter" => Some(Stop::Refused),
        "length" => Some(Stop::Length),
        "tool_calls" | "function_call" => Some(Stop::Calls),
        // Some servers say so although they call tools.
        "stop" if has_calls => Some(Stop::Calls),
        "stop" if has_refused => Some(Stop::Refused),
        "stop" => Some(Stop::End),
        _ => None,
    }
}

/// The message of an error, as an object or a bare text.
pub(super) fn said(error: &RawValue) -> Option<String> {
    match serde_json::from_str(error.get()).ok()? {
        Value::Null => None,
        Value::String(text) => Some(text),
        Value::Object(fields) => Some(match fields.get("message") {
            Some(Value::String(text)) => text.clone(),
            _ => Value::Object(fields).to_string(),
        }),
        other => Some(other.to_string()),
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Reported {
    prompt_tokens: u64,
    completion_tokens: u64,
    prompt_tokens_details: Option<Details>,
    /// What DeepSeek calls cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

pub(super) fn usage(source: &Source<'_>, raw: &RawValue) -> Result<Option<Usage>, Error> {
    let reported: Option<Reported> = source.read(raw, "usage")?;
    Ok(reported.map(Reported::normalised))
}

/// Reads usage, if a value is one.
pub(crate) fn read_usage(value: &Value) -> Option<Usage> {
    Option::<Reported>::deserialize(value).ok().flatten().map(Reported::normalised)
}

impl Reported {
    pub(super) fn normalised(self) -> Usage {
        let details = self.prompt_tokens_details.unwrap_or_default();
        Usage {
            input: Tokens(self.prompt_tokens),
            cached: Tokens(details.cached_tokens.or(self.prompt_cache_hit_tokens).unwrap_or(0)),
            written: Tokens(details.cache_write_tokens.unwrap_or(0)),
            output: Tokens(self.completion_tokens),
        }
    }
}
