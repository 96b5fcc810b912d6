//! From response to reply.

use super::decode::top;
use super::messages::Messages;
use crate::entry::{Role, Status, Text};
use crate::error::Error;
use crate::tokens::Tokens;
use crate::wire::json::{Fields, Source};
use crate::wire::{Reply, Stop, Usage};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a response body that was not streamed.
pub fn decode_reply(body: &str) -> Result<Reply, Error> {
    let source = Source { text: body };
    let fields = top(body)?;
    if let Some(what) = fields.get("error").and_then(|raw| said(raw)) {
        return Err(Error::input(format!("the server answers with an error: {what}")));
    }
    let Some(message) = fields.get("message") else {
        return Err(Error::input("no \"message\" in it").hinting("is this a response of /api/chat?"));
    };
    let told = Told::of(&source, &fields)?;
    let mut reply = reply(&source, message, &told)?;
    if !told.is_done {
        reply.entry.status = Status::Error;
    }
    Ok(reply)
}

/// What a response, or a line of a streamed one, tells beside the message.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) model: Option<Text>,
    pub(super) is_done: bool,
    pub(super) why: Option<Text>,
    pub(super) usage: Option<Usage>,
}

impl Told {
    pub(super) fn of(source: &Source<'_>, fields: &Fields<'_>) -> Result<Told, Error> {
        let text = |name: &str| -> Result<Option<Text>, Error> {
            Ok(fields.get(name).map(|raw| source.read(raw, name)).transpose()?.flatten())
        };
        let number = |name: &str| -> Result<Option<u64>, Error> {
            Ok(fields.get(name).map(|raw| source.read(raw, name)).transpose()?.flatten())
        };
        let (input, output) = (number("prompt_eval_count")?, number("eval_count")?);
        let usage = input.or(output).map(|_| Usage {
            input: Tokens(input.unwrap_or(0)),
            output: Tokens(output.unwrap_or(0)),
            ..Usage::default()
        });
        let is_done = fields.get("done").is_some_and(|raw| raw.get() == "true");
        Ok(Told { model: text("model")?, is_done, why: text("done_reason")?, usage })
    }
}

/// Reads the message of a response.
pub(super) fn reply(source: &Source<'_>, message: &RawValue, told: &Told) -> Result<Reply, Error> {
    let entry = Messages::of(source).take(message, "message")?;
    if entry.role != Role::Assistant {
        return Err(source.refuse(message, "the reply is not an assistant's"));
    }
    let has_calls = entry.calls().next().is_some();
    let stop = match told.why.as_deref() {
        // There is no other word for calls.
        Some("stop") if has_calls => Some(Stop::Calls),
        Some("stop") => Some(Stop::End),
        Some("length") => Some(Stop::Length),
        _ => None,
    };
    Ok(Reply { entry, id: None, model: told.model.clone(), stop, usage: told.usage })
}

/// The message of an error, as a bare text or an object.
pub(super) fn said(error: &RawValue) -> Option<String> {
    match serde_json::from_str(error.get()).ok()? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other["message"].as_str().map_or_else(|| other.to_string(), str::to_string)),
    }
}
