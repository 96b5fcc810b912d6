//! A response, read.

use super::decode::top;
use super::items::Items;
use crate::entry::{Entry, Part, Role, Status, Text};
use crate::error::Error;
use crate::tokens::Tokens;
use crate::wire::json::{Fields, Source};
use crate::wire::{Reply, Stop, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads the body of a response that was not streamed.
pub fn decode_reply(body: &str) -> Result<Reply, Error> {
    let source = Source { text: body };
    let fields = top(body)?;
    let Some(output) = fields.get("output") else {
        if let Some(why) = fields.get("error").and_then(|raw| message(raw)) {
            return Err(Error::input(format!("the provider refused: {why}")));
        }
        return Err(Error::input("no \"output\" in it").hinting("is this a Responses response?"));
    };
    let end = End::of(&source, &fields)?;
    let mut items = Items::answer_of(end.model.clone());
    let list: Vec<&RawValue> = source.read(output, "output")?;
    for (at, raw) in list.into_iter().enumerate() {
        items.take(&source, raw, &format!("output[{at}]"))?;
    }
    Ok(end.reply(items))
}

/// What a response says beside its output.
#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) id: Option<Text>,
    pub(super) model: Option<Text>,
    pub(super) status: Option<String>,
    pub(super) why_incomplete: Option<String>,
    pub(super) error: Option<String>,
    pub(super) usage: Option<Usage>,
}

impl End {
    pub(super) fn of(source: &Source<'_>, fields: &Fields<'_>) -> Result<End, Error> {
        #[derive(Deserialize)]
        struct Details {
            reason: Option<String>,
        }
        let details: Option<Details> = optional(source, fields, "incomplete_details")?;
        Ok(End {
            id: optional(source, fields, "id")?,
            model: optional(source, fields, "model")?,
            status: optional(source, fields, "status")?,
            why_incomplete: details.and_then(|it| it.reason),
            error: fields.get("error").and_then(|raw| message(raw)),
            usage: fields.get("usage").map(|raw| usage(source, raw)).transpose()?.flatten(),
        })
    }

    /// Returns the reply of what was read.
    pub(super) fn reply(self, mut items: Items) -> Reply {
        items.close();
        let mut entry = items.entries.pop().unwrap_or_else(|| Entry::new(Role::Assistant, Vec::new()));
        let is_refusal = |part: &Part| matches!(part, Part::Opaque { payload, .. } if payload.contains("\"refusal\""));
        let stop = match (self.status.as_deref(), self.why_incomplete.as_deref()) {
            (Some("completed"), _) if entry.calls().next().is_some() => Some(Stop::Calls),
            (Some("completed"), _) if entry.parts.iter().any(is_refusal) => Some(Stop::Refused),
            (Some("completed"), _) => Some(Stop::End),
            (Some("incomplete"), Some("max_output_tokens")) => Some(Stop::Length),
            (Some("incomplete"), Some("content_filter")) => Some(Stop::Refused),
            (Some("incomplete"), Some("max_messages" | "steered")) => Some(Stop::Paused),
            _ => None,
        };
        entry.status = match self.status.as_deref() {
            Some("completed" | "incomplete") => Status::Sent,
            Some("cancelled") => Status::Cancelled,
            _ => Status::Error,
        };
        entry.meta.extend(self.error.map(|why| ("error".to_string(), why.into())));
        Reply { entry, id: self.id, model: self.model, stop, usage: self.usage }
    }
}

/// The message of an error, however it is wrapped.
pub(super) fn message(raw: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Told {
        message: Option<String>,
        code: Option<String>,
    }
    let told: Told = serde_json::from_str(raw.get()).ok()?;
    told.message.or(told.code)
}

fn optional<'t, T: Deserialize<'t>>(source: &Source<'t>, fields: &Fields<'t>, name: &str) -> Result<Option<T>, Error> {
    fields.get(name).map_or(Ok(None), |raw| source.read(raw, name))
}

fn usage(source: &Source<'_>, raw: &RawValue) -> Result<Option<Usage>, Error> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Details {
        cached_tokens: u64,
        cache_write_tokens: u64,
    }
    #[derive(Deserialize)]
    struct Reported {
        input_tokens: u64,
        output_tokens: u64,
        input_tokens_details: Option<Details>,
    }
    let reported: Option<Reported> = source.read(raw, "usage")?;
    Ok(reported.map(|it| {
        let details = it.input_tokens_details.unwrap_or_default();
        Usage {
            input: Tokens(it.input_tokens),
            cached: Tokens(details.cached_tokens),
            written: Tokens(details.cache_write_tokens),
            output: Tokens(it.output_tokens),
        }
    }))
}
