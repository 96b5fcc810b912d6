//! Items, read one after the other: neighbouring ones of the model are one entry, every output is one of its own.

use super::part::{contents, output};
use super::record::{Record, kind_of};
use super::{NAME, PRIVATE, PROVIDER};
use crate::entry::{Arguments, Call, Entry, Millis, Part, Reasoning, Role, Text, ToolResult};
use crate::error::Error;
use crate::wire::GivenMark;
use crate::wire::json::Source;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// How a body spells a call, so that its output is spelled alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// A function with arguments.
    Function,
    /// A tool that takes plain text.
    Custom,
}

/// Returns how the call that is an entry's part number `at` was spelled.
pub(crate) fn written_as(extra: &Map<String, Value>, at: usize) -> Written {
    let part = extra.get(NAME).and_then(|own| own.get("parts")).and_then(|parts| parts.get(at.to_string()));
    match part.and_then(|part| part.get("type")).is_some_and(|kind| kind == "custom_tool_call") {
        true => Written::Custom,
        false => Written::Function,
    }
}

/// Reads items in order.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// The model whose reasoning is read.
    pub(crate) model: Option<Text>,
    /// When what is read next happened.
    pub(crate) at: Option<Millis>,
    /// What was read.
    pub(crate) entries: Vec<Entry>,
    /// The cache marks found on it, one an entry at most.
    pub(crate) marks: Vec<GivenMark>,
    /// Whether all of it is one answer.
    is_answer: bool,
    step: Step,
    /// Calls that stay as they are; so do their outputs.
    opaque_calls: HashSet<String>,
}

/// The entry of a model that is being put together.
#[derive(Debug, Default)]
struct Step {
    parts: Vec<Part>,
    at: Option<Millis>,
    /// Fields of parts, by their number.
    rest: Map<String, Value>,
    /// Fields of the message that a part belongs to, by the part's number.
    messages: Vec<(usize, Map<String, Value>)>,
}

impl Items {
    /// Returns a reader of what was said to or by a model.
    pub(super) fn of(model: Option<Text>) -> Items {
        Items { model, ..Items::default() }
    }

    /// Returns a reader of one answer: all of it is one entry.
    pub(super) fn answer_of(model: Option<Text>) -> Items {
        Items { model, is_answer: true, ..Items::default() }
    }

    /// Reads one item; `at` says where it stands.
    pub(crate) fn take(&mut self, source: &Source<'_>, raw: &RawValue, at: &str) -> Result<(), Error> {
        let fields: Record<'_> = source.read(raw, at)?;
        let Some(kind) = kind_of(&fields) else {
            let what = format!("{at} has neither type nor role");
            return Err(source.refuse(raw, what).hinting("an item is a message, or says its type"));
        };
        match kind.as_str() {
            "message" => self.message(source, raw, &fields, at),
            "reasoning" => self.reasoning(source, raw, &fields, at),
            "function_call" => self.call(source, raw, &fields, Written::Function, at),
            "custom_tool_call" => self.call(source, raw, &fields, Written::Custom, at),
            "function_call_output" | "custom_tool_call_output" => {
                let call = fields.text("call_id");
                match call.filter(|id| self.opaque_calls.contains(id)) {
                    Some(_) => self.opaque(raw, &fields, &kind),
                    None => return self.result(source, raw, &fields, at),
                }
                Ok(())
            }
            _ => {
                self.opaque(raw, &fields, &kind);
                Ok(())
            }
        }
    }

    /// Takes a part of the model's answer.
    pub(crate) fn say(&mut self, part: Part) {
        self.step.at = self.step.at.or(self.at);
        self.step.parts.push(part);
    }

    /// Takes a call of the model's answer.
    pub(crate) fn say_call(&mut self, call: Call, is_custom: bool) {
        if is_custom {
            let kind = Map::from_iter([("type".to_string(), Value::from("custom_tool_call"))]);
            self.step.rest.insert(self.step.parts.len().to_string(), kind.into());
        }
        self.say(Part::Call(call));
    }

    /// Returns whether nothing was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.step.parts.is_empty()
    }

    /// Ends the model's entry, if one is being put together.
    pub(crate) fn close(&mut self) {
        let step = std::mem::take(&mut self.step);
        if !step.parts.is_empty() {
            self.entries.push(step.entry());
        }
    }

    fn message(&mut self, source: &Source<'_>, raw: &RawValue, fields: &Record<'_>, at: &str) -> Result<(), Error> {
        let role = role(source, raw, fields, at)?;
        let read = fields.get("content").map(|raw| contents(source, raw, role)).transpose()?.unwrap_or_default();
        let rest = others(source, fields, &["type", "role", "content", "id", "status", PRIVATE])?;
        if role == Role::Assistant {
            for it in read {
                let number = self.step.parts.len();
                if !it.rest.is_empty() {
                    self.step.rest.insert(number.to_string(), it.rest.into());
                }
                self.step.messages.push((number, rest.clone()));
                self.say(it.part);
            }
            return Ok(());
        }
        self.close();
        let (mut parts, mut of_parts) = (Vec::new(), Map::new());
        for (number, it) in read.into_iter().enumerate() {
            if !it.rest.is_empty() {
                of_parts.insert(number.to_string(), it.rest.into());
            }
            self.mark(it.mark);
            parts.push(it.part);
        }
        let mut entry = Entry::new(role, parts);
        keep(&mut entry, rest, of_parts);
        entry.at = self.at;
        self.entries.push(entry);
        Ok(())
    }

    fn mark(&mut self, mark: Option<Text>) {
        let entry = self.entries.len();
        let Some(mark) = mark else { return };
        self.marks.retain(|it| it.entry != entry);
        self.marks.push(GivenMark { entry, mark });
    }

    fn reasoning(&mut self, source: &Source<'_>, raw: &RawValue, fields: &Record<'_>, at: &str) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Piece {
            text: Option<String>,
        }
        let texts = |name: &str| -> Result<String, Error> {
            let pieces: Option<Vec<Piece>> = fields.get(name).map_or(Ok(None), |raw| source.read(raw, at))?;
            let texts = pieces.unwrap_or_default().into_iter().filter_map(|piece| piece.text);
            Ok(texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n"))
        };
        let summary = texts("summary")?;
        let text: Text = if summary.is_empty() { texts("content")?.into() } else { summary.into() };
        let is_sealed = fields.text("encrypted_content").is_some_and(|it| !it.is_empty());
        let item: Option<Text> = match (is_sealed, fields.get(PRIVATE)) {
            (false, _) => None,
            (true, None) => Some(raw.get().into()),
            (true, Some(_)) => Some(fields.without(&[PRIVATE]).into()),
        };
        if item.is_some() || !text.is_empty() {
            let (provider, model) = (Some(PROVIDER.into()), self.model.clone());
            self.say(Part::Reasoning(Reasoning { text, provider, model, item, ..Reasoning::default() }));
        }
        Ok(())
    }

    fn call(
        &mut self,
        source: &Source<'_>,
        raw: &RawValue,
        fields: &Record<'_>,
        written: Written,
        at: &str,
    ) -> Result<(), Error> {
        let field = |name: &str| {
            let missing = || source.refuse(raw, format!("{at}: a call without {name:?}"));
            fields.get(name).ok_or_else(missing)
        };
        let id: Text = source.read(field("call_id")?, "call_id")?;
        let name: Text = source.read(field("name")?, "name")?;
        let spelled = if written == Written::Custom { "input" } else { "arguments" };
        let arguments = match fields.get(spelled).filter(|raw| raw.get() != "null") {
            Some(raw) if raw.get().starts_with('"') => Arguments::String(source.read(raw, spelled)?),
            Some(raw) => Arguments::Object(raw.get().into()),
            None => Arguments::String("".into()),
        };
        let known = ["type", "id", "call_id", "name", spelled, "status", PRIVATE];
        let mut rest = others(source, fields, &known)?;
        if written == Written::Custom {
            rest.insert("type".into(), "custom_tool_call".into());
        }
        let call = Call { id: id.into(), name, arguments };
        let is_there = |part: &Part| matches!(part, Part::Call(other) if other.id == call.id);
        // One step can't hold two calls of one id.
        if self.step.parts.iter().any(is_there) && !self.is_answer {
            self.close();
        }
        if !rest.is_empty() {
            self.step.rest.insert(self.step.parts.len().to_string(), rest.into());
        }
        self.say(Part::Call(call));
        Ok(())
    }

    fn result(&mut self, source: &Source<'_>, raw: &RawValue, fields: &Record<'_>, at: &str) -> Result<(), Error> {
        let Some(id) = fields.get("call_id") else {
            return Err(source.refuse(raw, format!("{at}: an output without call_id")));
        };
        let call: Text = source.read(id, "call_id")?;
        let read = fields.get("output").map(|raw| output(source, raw)).transpose()?;
        self.close();
        let (mut pieces, mut of_parts) = (Vec::new(), Map::new());
        if let Some(read) = read {
            pieces = read.pieces;
            self.mark(read.mark);
            of_parts
                .extend(read.whole.map(|whole| ("0".to_string(), Map::from_iter([("output".into(), whole)]).into())));
        }
        let result = ToolResult { call: call.into(), content: pieces, is_error: false };
        let mut entry = Entry::new(Role::Tool, [Part::Result(result)]);
        let known = ["type", "id", "call_id", "output", "status", PRIVATE];
        keep(&mut entry, others(source, fields, &known)?, of_parts);
        entry.at = self.at;
        self.entries.push(entry);
        Ok(())
    }

    /// Takes an item that goes back as it came; what a model made of it stays in its step.
    fn opaque(&mut self, raw: &RawValue, fields: &Record<'_>, kind: &str) {
        let payload: Text = match fields.get(PRIVATE) {
            Some(_) => fields.without(&[PRIVATE]).into(),
            None => raw.get().into(),
        };
        let part = Part::Opaque { provider: PROVIDER.into(), payload };
        if kind.ends_with("_call") {
            self.opaque_calls.extend(fields.text("call_id"));
        }
        if self.is_answer || is_models(kind) {
            return self.say(part);
        }
        self.close();
        let mut entry = Entry::new(Role::User, [part]);
        entry.at = self.at;
        self.entries.push(entry);
    }
}

impl Step {
    fn entry(mut self) -> Entry {
        let mut message = Map::new();
        let (_, first) = self.messages.first().cloned().unwrap_or_default();
        if self.messages.iter().all(|(_, rest)| *rest == first) {
            message = first;
        } else {
            for (number, rest) in self.messages.into_iter().filter(|(_, rest)| !rest.is_empty()) {
                let of_part = self.rest.entry(number.to_string()).or_insert_with(|| Map::new().into());
                if let Value::Object(of_part) = of_part {
                    of_part.insert("message".into(), rest.into());
                }
            }
        }
        let mut entry = Entry::new(Role::Assistant, self.parts);
        keep(&mut entry, message, self.rest);
        entry.at = self.at;
        entry
    }
}

/// Returns whether an item of a kind that has no part of its own is something that a model said or did.
fn is_models(kind: &str) -> bool {
    kind.ends_with("_call") || ["compaction", "mcp_list_tools", "mcp_approval_request"].contains(&kind)
}

fn keep(entry: &mut Entry, message: Map<String, Value>, parts: Map<String, Value>) {
    let kept = [("message", message), ("parts", parts)].into_iter().filter(|(_, fields)| !fields.is_empty());
    let kept: Map<String, Value> = kept.map(|(name, fields)| (name.to_string(), fields.into())).collect();
    if !kept.is_empty() {
        entry.extra.insert(NAME.into(), kept.into());
    }
}

/// The fields of an item that have no place in parts.
fn others(source: &Source<'_>, fields: &Record<'_>, known: &[&str]) -> Result<Map<String, Value>, Error> {
    let mut rest = Map::new();
    for (name, raw) in fields.others(known).filter(|(_, raw)| raw.get() != "null") {
        rest.insert(name.into(), source.read(raw, name)?);
    }
    Ok(rest)
}

fn role(source: &Source<'_>, raw: &RawValue, fields: &Record<'_>, at: &str) -> Result<Role, Error> {
    let Some(named) = fields.get("role") else {
        return Err(source.refuse(raw, format!("{at}: a message without a role")));
    };
    let name: String = source.read(named, "role")?;
    match name.as_str() {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        _ => Err(source
            .refuse(named, format!("{at}: unknown role {name:?}"))
            .hinting("known roles: system, developer, user, assistant")),
    }
}
