//! From response to reply.

use super::contents::{Contents, object};
use super::decode::top;
use crate::entry::{Status, Text};
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
    if let Some(raw) = fields.get("error").filter(|raw| raw.get() != "null") {
        return Err(source.refuse(raw, format!("the provider answered with an error: {}", error_text(raw.get()))));
    }
    let told = Told::of(&source, &fields)?;
    if !told.says_something() {
        return Err(Error::input("no \"candidates\" in it").hinting("is this a response of generateContent?"));
    }
    let Told { id, model, parts, finish, blocked, usage, .. } = told;
    reply(&source, parts, &Ended { id, model, finish, blocked, usage })
}

/// What a response, or a piece of a streamed one, tells.
#[derive(Default)]
pub(super) struct Told<'t> {
    pub(super) id: Option<Text>,
    pub(super) model: Option<Text>,
    /// The parts of the first candidate.
    pub(super) parts: Vec<&'t RawValue>,
    pub(super) has_candidate: bool,
    pub(super) finish: Option<Text>,
    /// Why nothing was answered at all.
    pub(super) blocked: Option<Text>,
    pub(super) usage: Option<Usage>,
}

impl<'t> Told<'t> {
    pub(super) fn of(source: &Source<'t>, fields: &Fields<'t>) -> Result<Told<'t>, Error> {
        let text = |name: &str| -> Result<Option<Text>, Error> {
            Ok(fields.get(name).map(|raw| source.read(raw, name)).transpose()?.flatten())
        };
        let mut told = Told { id: text("responseId")?, model: text("modelVersion")?, ..Told::default() };
        told.model = told.model.map(|model| model.strip_prefix("models/").unwrap_or(&model).into());
        if let Some(raw) = fields.get("promptFeedback").filter(|raw| raw.get() != "null") {
            told.blocked = object(source, raw, "promptFeedback")?.given("blockReason")?;
        }
        if let Some(raw) = fields.get("usageMetadata").filter(|raw| raw.get() != "null") {
            let mut usage = object(source, raw, "usageMetadata")?;
            told.usage = Some(Usage::from(Reported {
                prompt: usage.given("promptTokenCount")?,
                tool_use: usage.given("toolUsePromptTokenCount")?,
                cached: usage.given("cachedContentTokenCount")?,
                candidates: usage.given("candidatesTokenCount")?,
                thoughts: usage.given("thoughtsTokenCount")?,
            }));
        }
        let candidates: Option<Vec<&RawValue>> =
            fields.get("candidates").map(|raw| source.read(raw, "candidates")).transpose()?.flatten();
        let Some(first) = candidates.and_then(|list| list.into_iter().next()) else { return Ok(told) };
        let mut candidate = object(source, first, "candidates[0]")?;
        told.has_candidate = true;
        told.finish = candidate.given("finishReason")?;
        if let Some(raw) = candidate.fields.get("content").filter(|raw| raw.get() != "null") {
            let mut content = object(source, raw, "candidates[0].content")?;
            let role: Option<String> = content.given("role")?;
            if role.is_some_and(|role| !role.is_empty() && role != "model") {
                return Err(source.refuse(raw, "the reply is not the model's"));
            }
            let parts: Option<Vec<&'t RawValue>> = content.given("parts")?;
            told.parts = parts.unwrap_or_default();
        }
        Ok(told)
    }

    pub(super) fn says_something(&self) -> bool {
        self.has_candidate || self.blocked.is_some()
    }
}

/// How a response ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) id: Option<Text>,
    pub(super) model: Option<Text>,
    pub(super) finish: Option<Text>,
    pub(super) blocked: Option<Text>,
    pub(super) usage: Option<Usage>,
}

/// Reads the parts of a response.
pub(super) fn reply(source: &Source<'_>, parts: Vec<&RawValue>, ended: &Ended) -> Result<Reply, Error> {
    let mut entry = Contents::of(source, ended.model.clone()).answer(parts)?;
    let has_calls = entry.calls().next().is_some();
    let stop = match ended.finish.as_deref() {
        _ if ended.blocked.is_some() => Some(Stop::Refused),
        // There is no other word for calls.
        Some("STOP") if has_calls => Some(Stop::Calls),
        Some("STOP") => Some(Stop::End),
        Some("MAX_TOKENS") => Some(Stop::Length),
        Some("CONTINUATION") => Some(Stop::Paused),
        Some("SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => Some(Stop::Refused),
        Some(image) if image.starts_with("IMAGE_") => Some(Stop::Refused),
        _ => None,
    };
    let failed = ended.finish.as_ref().filter(|it| stop.is_none() && &***it != "FINISH_REASON_UNSPECIFIED");
    if let Some(reason) = failed {
        entry.status = Status::Error;
        entry.meta.insert("error".into(), Value::from(&**reason));
    }
    Ok(Reply { entry, id: ended.id.clone(), model: ended.model.clone(), stop, usage: ended.usage })
}

/// What an error says, as one text.
pub(super) fn error_text(error: &str) -> String {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    match (error["status"].as_str(), error["message"].as_str()) {
        (Some(status), Some(message)) => format!("{status}: {message}"),
        (None, Some(text)) | (Some(text), None) => text.to_string(),
        (None, None) => error.to_string(),
    }
}

/// Usage as the provider reports it.
struct Reported {
    prompt: Option<u64>,
    tool_use: Option<u64>,
    cached: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
}

impl From<Reported> for Usage {
    /// What was thought stands beside what was said here, not within it.
    fn from(it: Reported) -> Usage {
        let sum = |one: Option<u64>, other: Option<u64>| Tokens(one.unwrap_or(0).saturating_add(other.unwrap_or(0)));
        Usage {
            input: sum(it.prompt, it.tool_use),
            cached: Tokens(it.cached.unwrap_or(0)),
            written: Tokens(0),
            output: sum(it.candidates, it.thoughts),
        }
    }
}
