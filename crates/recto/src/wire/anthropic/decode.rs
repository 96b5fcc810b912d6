//! From body to entries: every mistake is named with its position, and nothing is half-read.

use super::blocks::{Read, Reading};
use crate::binding::bind;
use crate::entry::{Entry, Role, Text};
use crate::error::Error;
use crate::tokens::Tokens;
use crate::wire::json::{Fields, Source, place_of, without_position};
use crate::wire::{Decoded, GivenMark, Reply, Stop, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Reads a request body.
pub fn decode(body: &str) -> Result<Decoded, Error> {
    let source = Source { text: body };
    let mut fields: Fields<'_> = top(body)?;
    let model = fields.remove("model").map(|raw| source.read(raw, "model")).transpose()?.flatten();
    let mut decoded = Decoded { model, ..Decoded::default() };
    let reading = Reading { source: &source, model: decoded.model.clone() };
    if let Some(raw) = fields.remove("system") {
        system(&reading, raw, &mut decoded)?;
    }
    if let Some(raw) = fields.remove("messages") {
        let list: Vec<&RawValue> = source.read(raw, "messages")?;
        for (at, raw) in list.into_iter().enumerate() {
            message(&reading, raw, at, &mut decoded)?;
        }
    }
    if let Some(raw) = fields.remove("tools") {
        let tools: Option<Vec<&RawValue>> = source.read(raw, "tools")?;
        decoded.tools = tools.unwrap_or_default().into_iter().map(|tool| tool.get().into()).collect();
    }
    if let Some(raw) = fields.remove("output_config") {
        output_config(&source, raw, &mut decoded)?;
    }
    for (name, raw) in fields {
        let value = source.read(raw, &name)?;
        decoded.extra.insert(name, value);
    }
    bind(&mut decoded.entries, decoded.tools.iter().map(|tool| &**tool));
    Ok(decoded)
}

pub(super) fn top(body: &str) -> Result<Fields<'_>, Error> {
    serde_json::from_str(body).map_err(|error| Error::input(without_position(&error)).at(place_of(body, &error)))
}

/// Reads instructions: every block is an entry, since each may have a cache mark.
fn system<'t>(reading: &Reading<'_, 't>, raw: &'t RawValue, decoded: &mut Decoded) -> Result<(), Error> {
    let source = reading.source;
    match raw.get().as_bytes().first() {
        Some(b'n') => Ok(()),
        Some(b'"') => {
            let text: Text = source.read(raw, "system")?;
            decoded.entries.extend((!text.is_empty()).then(|| Entry::system(text)));
            Ok(())
        }
        Some(b'[') => {
            let blocks: Vec<&RawValue> = source.read(raw, "system")?;
            for (at, raw) in blocks.into_iter().enumerate() {
                let here = format!("system.{at}");
                let fields: Fields<'_> = source.read(raw, &here)?;
                if fields.get("type").is_none_or(|kind| kind.get() != "\"text\"") {
                    return Err(source.refuse(raw, format!("{here}: no text block")));
                }
                let read = reading.one(raw, Role::System, &here)?;
                add(decoded, read, &Map::new());
            }
            Ok(())
        }
        _ => Err(source.refuse(raw, "system is neither a string nor a list of text blocks")),
    }
}

fn message<'t>(reading: &Reading<'_, 't>, raw: &'t RawValue, at: usize, decoded: &mut Decoded) -> Result<(), Error> {
    let (source, here) = (reading.source, format!("messages.{at}"));
    let mut fields: Fields<'_> = source.read(raw, &here)?;
    let Some(named) = fields.remove("role") else {
        return Err(source.refuse(raw, format!("{here} has no role")));
    };
    let name: String = source.read(named, &format!("{here}.role"))?;
    let role = match name.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => {
            return Err(source
                .refuse(named, format!("{here}: unknown role {name:?}"))
                .hinting("known roles: user, assistant, system"));
        }
    };
    let Some(content) = fields.remove("content") else {
        return Err(source.refuse(raw, format!("{here} has no content")));
    };
    let mut read = reading.content(content, role, &here)?;
    let mut rest = Map::new();
    for (name, raw) in fields {
        let value: Value = source.read(raw, &format!("{here}.{name}"))?;
        rest.insert(name, value);
    }
    if read.is_empty() && !rest.is_empty() {
        read.push(Read::new(role));
    }
    add(decoded, read, &rest);
    Ok(())
}

/// Adds what was read as entries; the message's own fields stay with the last.
fn add(decoded: &mut Decoded, read: Vec<Read>, rest: &Map<String, Value>) {
    let last = read.len().saturating_sub(1);
    for (nth, mut read) in read.into_iter().enumerate() {
        let entry = decoded.entries.len();
        decoded.marks.extend(read.marks.drain(..).map(|mark| GivenMark { entry, mark }));
        decoded.entries.push(read.into_entry(if nth == last { rest.clone() } else { Map::new() }));
    }
}

fn output_config<'t>(source: &Source<'t>, raw: &'t RawValue, decoded: &mut Decoded) -> Result<(), Error> {
    let Some(mut fields) = source.read::<Option<Fields<'t>>>(raw, "output_config")? else { return Ok(()) };
    let format = fields.remove("format").map(|raw| raw.get()).filter(|format| *format != "null");
    decoded.format = format.map(Text::from);
    let mut rest = Map::new();
    for (name, raw) in fields {
        rest.insert(name.clone(), source.read(raw, &format!("output_config.{name}"))?);
    }
    if !rest.is_empty() {
        decoded.extra.insert("output_config".into(), Value::Object(rest));
    }
    Ok(())
}

/// Reads a response body that was not streamed.
pub fn decode_reply(body: &str) -> Result<Reply, Error> {
    let source = Source { text: body };
    let fields: Fields<'_> = top(body)?;
    if let Some(raw) = fields.get("error").filter(|raw| raw.get() != "null") {
        return Err(source.refuse(raw, format!("the provider answered with an error: {}", error_text(raw.get()))));
    }
    let Some(content) = fields.get("content") else {
        return Err(Error::input("no \"content\" in it").hinting("is this a response of the Messages API?"));
    };
    let role: Option<String> = fields.get("role").map(|raw| source.read(raw, "role")).transpose()?.flatten();
    if role.is_some_and(|role| role != "assistant") {
        return Err(source.refuse(content, "the reply is not an assistant's"));
    }
    let text = |name: &str| -> Result<Option<Text>, Error> {
        Ok(fields.get(name).map(|raw| source.read(raw, name)).transpose()?.flatten())
    };
    let model = text("model")?;
    let reading = Reading { source: &source, model: model.clone() };
    let mut read = Read::new(Role::Assistant);
    reading.content(content, Role::Assistant, "reply")?.into_iter().for_each(|later| read.append(later));
    let usage: Option<Reported> = fields.get("usage").map(|raw| source.read(raw, "usage")).transpose()?.flatten();
    Ok(Reply {
        entry: read.into_entry(Map::new()),
        id: text("id")?,
        model,
        stop: text("stop_reason")?.as_deref().and_then(stop),
        usage: usage.map(Reported::normalised),
    })
}

/// What an error says, as one text.
pub(super) fn error_text(error: &str) -> String {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    match (error["type"].as_str(), error["message"].as_str()) {
        (Some(kind), Some(message)) => format!("{kind}: {message}"),
        (None, Some(text)) | (Some(text), None) => text.to_string(),
        (None, None) => error.to_string(),
    }
}

pub(crate) fn stop(reason: &str) -> Option<Stop> {
    match reason {
        "end_turn" | "stop_sequence" | "compaction" => Some(Stop::End),
        "max_tokens" => Some(Stop::Length),
        "tool_use" => Some(Stop::Calls),
        "refusal" => Some(Stop::Refused),
        "pause_turn" => Some(Stop::Paused),
        "model_context_window_exceeded" => Some(Stop::Window),
        _ => None,
    }
}

/// Usage as the provider reports it; a stream tells it in pieces.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Reported {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Reported {
    /// Takes over what is told later.
    pub(crate) fn update(&mut self, later: Reported) {
        let pick = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
        pick(&mut self.input_tokens, later.input_tokens);
        pick(&mut self.cache_read_input_tokens, later.cache_read_input_tokens);
        pick(&mut self.cache_creation_input_tokens, later.cache_creation_input_tokens);
        pick(&mut self.output_tokens, later.output_tokens);
    }

    /// What is cached stands beside the input here, not within it.
    pub(crate) fn normalised(self) -> Usage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let input = self.input_tokens.unwrap_or(0).saturating_add(cached).saturating_add(written);
        Usage {
            input: Tokens(input),
            cached: Tokens(cached),
            written: Tokens(written),
            output: Tokens(self.output_tokens.unwrap_or(0)),
        }
    }
}
