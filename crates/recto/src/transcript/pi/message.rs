//! From a message of pi to an entry.

use super::of_program;
use crate::entry::{Entry, EntryKind, Media, Millis, Origin, Part, Reasoning, Role, Status, Text};
use crate::error::Error;
use crate::transcript::content::{Contents, call};
use crate::transcript::lines::{self, Line};
use crate::transcript::time;
use crate::wire::json::Fielded;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The APIs whose reasoning is signed.
const SIGNED: [&str; 2] = ["anthropic-messages", "bedrock-converse-stream"];
/// The APIs whose reasoning is an item of its own, given as JSON text.
const ITEMS: [&str; 3] = ["openai-responses", "openai-codex-responses", "azure-openai-responses"];

/// Reads messages, and counts what it leaves out.
pub(super) struct Messages<'s, 't> {
    contents: Contents<'s, 't>,
    /// How many messages of roles that nobody knows.
    unknown: BTreeMap<String, usize>,
    /// How many commands that the user kept from the model.
    unshown: usize,
}

impl<'s, 't> Messages<'s, 't> {
    pub(super) fn of(contents: Contents<'s, 't>) -> Messages<'s, 't> {
        Messages { contents, unknown: BTreeMap::new(), unshown: 0 }
    }

    /// Reads a record with a message; `None` if the model never sees it.
    pub(super) fn message(&mut self, line: &Line<'t>) -> Result<Option<Entry>, Error> {
        let Some(raw) = line.fields.get("message").copied() else {
            return Err(self.contents.source.refuse(line.raw, "a record of type \"message\" without a message"));
        };
        let mut message = Fielded::of(self.contents.source, raw, "message")?;
        let role: String = message.needed("role")?;
        let at = message.given::<i64>("timestamp").ok().flatten().map(Millis).or_else(|| said_at(line));
        let entry = match role.as_str() {
            "user" => Some(self.said(Role::User, message)?),
            "assistant" => Some(self.answer(message)?),
            "toolResult" => Some(self.result(message)?),
            "custom" | "hookMessage" => Some(Entry { origin: Origin::Host, ..self.said(Role::User, message)? }),
            "bashExecution" => self.ran(message)?,
            "branchSummary" | "compactionSummary" => message.given::<Text>("summary")?.map(of_program),
            _ => {
                *self.unknown.entry(role).or_default() += 1;
                None
            }
        };
        Ok(entry.map(|entry| Entry { at, ..entry }))
    }

    /// Reads what an extension put before the model.
    pub(super) fn put_in(&mut self, line: &Line<'t>) -> Result<Entry, Error> {
        let content = line.fields.get("content").copied();
        let content = self.contents.read(content, "custom_message.content", |kind, block| part(kind, block, None))?;
        let kept = ["customType", "details"].into_iter().filter_map(|name| Some((name.into(), line.value(name)?)));
        let entry = self.contents.entry(Role::User, content, kept.collect());
        Ok(Entry { origin: Origin::Host, at: said_at(line), ..entry })
    }

    /// Reads what a model made of a branch that was left, or of what was condensed.
    pub(super) fn summary(&self, line: &Line<'t>) -> Result<Option<Entry>, Error> {
        let Some(raw) = line.fields.get("summary").copied() else {
            return Err(self.contents.source.refuse(line.raw, format!("a {} without a summary", line.kind)));
        };
        let text: Text = self.contents.source.read(raw, "summary")?;
        // A compaction without words still ends what was shown before it.
        let is_told = !text.is_empty() || line.kind == "compaction";
        Ok(is_told.then(|| Entry { at: said_at(line), ..of_program(text) }))
    }

    fn said(&mut self, role: Role, mut message: Fielded<'s, 't>) -> Result<Entry, Error> {
        let content = message.fields.remove("content");
        let content = self.contents.read(content, "message.content", |kind, block| part(kind, block, None))?;
        Ok(self.contents.entry(role, content, message.rest()?))
    }

    fn answer(&mut self, mut message: Fielded<'s, 't>) -> Result<Entry, Error> {
        let content = message.fields.remove("content");
        let text = |name: &str| message.fields.get(name).and_then(|raw| serde_json::from_str::<Text>(raw.get()).ok());
        let maker = Maker { api: text("api"), provider: text("provider"), model: text("model") };
        let ended = text("stopReason");
        let content = self.contents.read(content, "message.content", |kind, block| part(kind, block, Some(&maker)))?;
        let why = message.given::<String>("errorMessage")?;
        let mut entry = self.contents.entry(Role::Assistant, content, message.rest()?);
        entry.status = match ended.as_deref() {
            Some("error") => Status::Error,
            Some("aborted") => Status::Cancelled,
            _ => Status::Sent,
        };
        entry.meta.extend(why.map(|why| ("error".to_string(), Value::String(why))));
        Ok(entry)
    }

    fn result(&mut self, mut message: Fielded<'s, 't>) -> Result<Entry, Error> {
        let id: Text = message.needed("toolCallId")?;
        let is_error = message.given("isError")?.unwrap_or(false);
        let content = message.fields.remove("content");
        let content = self.contents.read(content, "message.content", |kind, block| part(kind, block, None))?;
        Ok(self.contents.entry(Role::Tool, content.into_result(id, is_error), message.rest()?))
    }

    /// A command that the user ran, told as pi tells it to the model.
    fn ran(&mut self, mut message: Fielded<'s, 't>) -> Result<Option<Entry>, Error> {
        if message.given("excludeFromContext")?.unwrap_or(false) {
            self.unshown += 1;
            return Ok(None);
        }
        let (command, output): (String, Option<String>) = (message.needed("command")?, message.given("output")?);
        let code = message.given::<i64>("exitCode")?.filter(|code| *code != 0);
        let is_cancelled = message.given("cancelled")?.unwrap_or(false);
        let output = output.filter(|output| !output.is_empty());
        let output = output.map_or_else(|| "(no output)".into(), |output| format!("```\n{output}\n```"));
        let ended = match (is_cancelled, code) {
            (true, _) => "\n\n(command cancelled)".into(),
            (false, Some(code)) => format!("\n\nCommand exited with code {code}"),
            (false, None) => String::new(),
        };
        let whole: Option<String> = message.given("fullOutputPath")?;
        let whole = whole.map_or(String::new(), |path| format!("\n\n[Output truncated. Full output: {path}]"));
        let mut entry = self.contents.entry(Role::User, Default::default(), message.rest()?);
        entry.parts = [Part::text(format!("Ran `{command}`\n{output}{ended}{whole}"))].into();
        (entry.kind, entry.origin, entry.tools) = (Some(EntryKind::ActionResult), Origin::Tool, vec!["bash".into()]);
        Ok(Some(entry))
    }

    /// What should be told of what was not taken.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.contents.notes().into_iter().collect();
        if self.unshown > 0 {
            notes.push(lines::left_out(self.unshown, "command that the user kept from the model"));
        }
        if !self.unknown.is_empty() {
            let all = lines::counted(self.unknown.values().sum(), "message");
            let each: Vec<String> = self.unknown.iter().map(|(role, number)| format!("{number} {role}")).collect();
            notes.push(format!("{all} of unknown roles left out: {}", each.join(", ")));
        }
        notes
    }
}

/// Who made an answer.
struct Maker {
    api: Option<Text>,
    provider: Option<Text>,
    model: Option<Text>,
}

fn said_at(line: &Line<'_>) -> Option<Millis> {
    line.text("timestamp").as_deref().and_then(time::parsed)
}

/// Makes a part of a block; a model's own kinds have a maker.
fn part(kind: &str, block: &mut Fielded<'_, '_>, maker: Option<&Maker>) -> Result<Option<Part>, Error> {
    Ok(Some(match (kind, maker) {
        ("text", _) => Part::Text { text: block.needed("text")? },
        ("image", _) => {
            let (kind, data): (String, String) = (block.needed("mimeType")?, block.needed("data")?);
            Part::Image(Media { url: format!("data:{kind};base64,{data}").into(), name: None, detail: None })
        }
        ("thinking", Some(maker)) => Part::Reasoning(maker.thought(block)?),
        ("toolCall", Some(_)) => Part::Call(call(block, "name")?),
        _ => return Ok(None),
    }))
}

impl Maker {
    /// Reads reasoning; a seal is taken as one only where its API is known to make it.
    fn thought(&self, block: &mut Fielded<'_, '_>) -> Result<Reasoning, Error> {
        let text: Text = block.given("thinking")?.unwrap_or_default();
        let (provider, model) = (self.provider.clone(), self.model.clone());
        let thought = Reasoning { text, provider, model, ..Reasoning::default() };
        let given = block.fields.get("thinkingSignature").map(|raw| raw.get());
        let seal: Option<Text> = given.and_then(|raw| serde_json::from_str(raw).ok());
        let Some(seal) = seal.filter(|seal| !seal.is_empty()) else { return Ok(thought) };
        let api = self.api.as_deref().unwrap_or_default();
        let is_item = || {
            serde_json::from_str::<Map<String, Value>>(&seal)
                .is_ok_and(|it| it.get("type").is_some_and(|kind| kind == "reasoning"))
        };
        let is_redacted = block.fields.get("redacted").map(|raw| RawValue::get(raw)) == Some("true");
        let sealed = match (SIGNED.contains(&api), ITEMS.contains(&api) && is_item()) {
            (true, _) if is_redacted => Reasoning { text: "".into(), encrypted: Some(seal), ..thought },
            (true, _) => Reasoning { signature: Some(seal), ..thought },
            (false, true) => Reasoning { item: Some(seal), ..thought },
            (false, false) => return Ok(thought),
        };
        block.fields.remove("thinkingSignature");
        Ok(sealed)
    }
}
