//! Logs of Inspect in JSON, and single samples as they lie in its archives: each sample is a conversation.

use super::content::{Content, Contents, call};
use super::lines::{self, counted};
use super::{Conversation, bounded};
use crate::entry::{Entry, Media, Part, Reasoning, Role, Text};
use crate::error::Error;
use crate::wire::json::{Fielded, Fields, Source};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Whose the fields are that have no place in an entry.
const OWNER: &str = "inspect";
/// What is kept of a sample beside its messages.
const KEPT: [&str; 8] = ["id", "epoch", "target", "choices", "scores", "metadata", "error", "limit"];
/// How a text begins that stands among the attachments.
const ATTACHED: &str = "attachment://";

/// Returns whether a record is a log.
pub(super) fn is_log(fields: &Fields<'_>) -> bool {
    let is_object = |raw: &&RawValue| raw.get().starts_with('{');
    fields.get("eval").is_some_and(is_object) && ["samples", "plan", "stats"].iter().any(|it| fields.contains_key(*it))
}

/// Returns whether a record is a sample.
pub(super) fn is_sample(fields: &Fields<'_>) -> bool {
    ["messages", "epoch", "input"].iter().all(|name| fields.contains_key(*name))
}

/// Reads a log, one conversation for each sample that says something.
pub(super) fn log(source: &Source<'_>, record: &RawValue) -> Result<Vec<Conversation>, Error> {
    let mut log = Fielded::of(source, record, "log")?;
    let model = log.fields.get("eval").and_then(|raw| {
        let eval: Fields<'_> = serde_json::from_str(raw.get()).ok()?;
        serde_json::from_str::<String>(eval.get("model")?.get()).ok()
    });
    let Some(samples) = log.given::<Vec<&RawValue>>("samples")?.filter(|samples| !samples.is_empty()) else {
        let hint = "a log that was written without its samples says nothing: `inspect log dump` writes all of it";
        return Err(source.refuse(record, "a log of Inspect without samples").hinting(hint));
    };
    let (mut conversations, mut silent) = (Vec::new(), 0);
    for (at, raw) in samples.iter().enumerate() {
        let conversation = sample(source, raw, &format!("samples[{at}]"), model.as_deref())?;
        if conversation.entries.is_empty() {
            silent += 1;
        } else {
            conversations.push(conversation);
        }
    }
    let Some(first) = conversations.first_mut() else {
        return Err(source.refuse(record, "no conversation in it").hinting("no sample of this log has messages"));
    };
    if silent > 0 {
        first.notes.push(lines::left_out(silent, "sample without messages"));
    }
    first.notes.push(format!("events and stores of {} left out", counted(samples.len(), "sample")));
    Ok(conversations)
}

/// Reads a sample.
pub(super) fn one(source: &Source<'_>, record: &RawValue) -> Result<Vec<Conversation>, Error> {
    Ok(vec![sample(source, record, "sample", None)?])
}

fn sample(source: &Source<'_>, raw: &RawValue, here: &str, model: Option<&str>) -> Result<Conversation, Error> {
    let mut sample = Fielded::of(source, raw, here)?;
    let messages = sample.fields.remove("messages");
    messages.map_or(Ok(()), |raw| bounded(source, raw))?;
    let messages: Option<Vec<&RawValue>> = messages.map_or(Ok(None), |raw| source.read(raw, here))?;
    let attached = sample.given("attachments")?.unwrap_or_default();
    let mut kept = Map::new();
    for name in KEPT {
        let value = sample.given::<Value>(name)?.filter(|value| *value != Value::Object(Map::new()));
        kept.extend(value.map(|value| (name.to_string(), value)));
    }
    let spelled = |name: &str| kept.get(name).map(|value| value.as_str().map_or(value.to_string(), Into::into));
    let within = spelled("id").map(|id| match spelled("epoch") {
        Some(epoch) => format!("{id}_epoch_{epoch}"),
        None => id,
    });
    let provider = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider.into());
    let mut reading = Reading { contents: Contents::new(source, OWNER), attached, missing: 0, provider };
    let mut entries = Vec::new();
    for (at, raw) in messages.unwrap_or_default().into_iter().enumerate() {
        entries.push(reading.message(raw, &format!("{here}.messages[{at}]"))?);
    }
    let notes = reading.notes();
    if let Some(first) = entries.first_mut() {
        let extra = first.extra.entry(OWNER).or_insert_with(|| Value::Object(Map::new()));
        extra.as_object_mut().into_iter().for_each(|extra| drop(extra.insert("sample".into(), kept.clone().into())));
    }
    Ok(Conversation { within: within.map(Into::into), entries, notes, ..Conversation::default() })
}

struct Reading<'s, 't> {
    contents: Contents<'s, 't>,
    /// Texts and pictures that messages only point at.
    attached: HashMap<String, Text>,
    /// How many of them are not there.
    missing: usize,
    /// Whose model answered.
    provider: Option<Text>,
}

impl<'t> Reading<'_, 't> {
    fn message(&mut self, raw: &'t RawValue, here: &str) -> Result<Entry, Error> {
        let mut message = Fielded::of(self.contents.source, raw, here)?;
        let role = self.role(&mut message)?;
        let id: Option<Text> = message.given("id")?;
        let model: Option<Text> = message.fields.get("model").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let given = message.fields.remove("content");
        let mut content = self.content(given, &format!("{here}.content"), role, model.as_ref())?;
        match role {
            Role::Assistant => {
                let calls = message.given::<Vec<&RawValue>>("tool_calls")?.unwrap_or_default();
                for (nth, raw) in calls.into_iter().enumerate() {
                    let mut made = Fielded::of(self.contents.source, raw, &format!("{here}.tool_calls[{nth}]"))?;
                    let call = call(&mut made, "function")?;
                    made.fields.remove("type");
                    content.push(Part::Call(call), made.rest()?);
                }
            }
            Role::Tool => {
                let call: Text = message.needed("tool_call_id")?;
                content = self.result(&mut message, content, call, given)?;
            }
            Role::System | Role::User => {}
        }
        let mut entry = self.contents.entry(role, content, message.rest()?);
        entry.id = id.map(Into::into);
        Ok(entry)
    }

    fn role(&self, message: &mut Fielded<'_, 't>) -> Result<Role, Error> {
        let named = message.fields.get("role").copied();
        let name: String = message.needed("role")?;
        match name.as_str() {
            "system" => Ok(Role::System),
            "user" => Ok(Role::User),
            "assistant" => Ok(Role::Assistant),
            "tool" => Ok(Role::Tool),
            _ => Err(self
                .contents
                .source
                .refuse(named.unwrap_or(message.raw), format!("{}: unknown role {name:?}", message.here))
                .hinting("known roles: system, user, assistant, tool")),
        }
    }

    /// A result. Of a call that failed the model is told the error, whatever it brought before.
    fn result(
        &self,
        message: &mut Fielded<'_, 't>,
        content: Content,
        call: Text,
        given: Option<&'t RawValue>,
    ) -> Result<Content, Error> {
        let error = message.fields.get("error").filter(|raw| raw.get() != "null").copied();
        let Some(error) = error else { return Ok(content.into_result(call, false)) };
        let mut error = Fielded::of(self.contents.source, error, &format!("{}.error", message.here))?;
        let told: Text = error.needed("message")?;
        if let Some(given) = given.filter(|_| !content.parts.is_empty()) {
            message.left.insert("content".into(), self.contents.source.read(given, "content")?);
        }
        let mut failed = Content::default();
        failed.push(Part::Text { text: told }, Map::new());
        Ok(failed.into_result(call, true))
    }

    fn content(
        &mut self,
        raw: Option<&'t RawValue>,
        here: &str,
        role: Role,
        model: Option<&Text>,
    ) -> Result<Content, Error> {
        let Reading { contents, attached, missing, provider } = self;
        let mut found = |text: Text| match text.strip_prefix(ATTACHED) {
            Some(name) => attached.get(name).cloned().unwrap_or_else(|| {
                *missing += 1;
                text.clone()
            }),
            None => text,
        };
        let mut content = contents.read(raw, here, |kind, block| {
            Ok(Some(match (kind, role) {
                ("text", _) => Part::Text { text: found(block.needed("text")?) },
                ("image", _) => {
                    let (url, detail) = (found(block.needed("image")?), block.given("detail")?);
                    Part::Image(Media { url, name: None, detail })
                }
                ("audio", Role::User) => {
                    Part::Audio(Media { url: found(block.needed("audio")?), name: None, detail: None })
                }
                ("document", Role::User) => {
                    let (url, name) = (found(block.needed("document")?), block.given("filename")?);
                    Part::Document(Media { url, name, detail: None })
                }
                ("reasoning", Role::Assistant) => Part::Reasoning(Reasoning {
                    model: model.cloned(),
                    provider: provider.clone(),
                    ..thought(block, provider.as_deref(), &mut found)?
                }),
                _ => return Ok(None),
            }))
        })?;
        // A content that is one text may point at an attachment, too.
        if let (Some(b'"'), [Part::Text { text }]) = (raw.and_then(|raw| raw.get().bytes().next()), &mut *content.parts)
        {
            *text = found(text.clone());
        }
        Ok(content)
    }

    fn notes(&self) -> Vec<String> {
        let missing = (self.missing > 0).then(|| format!("{} not in the log", counted(self.missing, "attachment")));
        self.contents.notes().into_iter().chain(missing).collect()
    }
}

/// Reads reasoning; only Anthropic's seals are spelled in a way that goes back to it.
fn thought(
    block: &mut Fielded<'_, '_>,
    provider: Option<&str>,
    found: &mut impl FnMut(Text) -> Text,
) -> Result<Reasoning, Error> {
    let is_redacted: bool = block.given("redacted")?.unwrap_or(false);
    let text: Text = found(block.needed("reasoning")?);
    let is_anthropics = provider == Some("anthropic");
    if !is_redacted {
        let signature = if is_anthropics { block.given("signature")? } else { None };
        return Ok(Reasoning { text, signature, ..Reasoning::default() });
    }
    if is_anthropics {
        return Ok(Reasoning { encrypted: Some(text), ..Reasoning::default() });
    }
    block.left.insert("redacted".into(), Value::from(&*text));
    Ok(Reasoning { text: block.given("summary")?.unwrap_or_default(), ..Reasoning::default() })
}
