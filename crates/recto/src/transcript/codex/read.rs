//! From a rollout's lines to a conversation.

use super::super::{Conversation, RECORD_BYTES_MAX, responses};
use crate::entry::{Entry, Millis, Origin, Part, Role, Text};
use crate::error::{Error, Place};
use crate::transcript::lines::counted;
use crate::transcript::time;
use crate::wire::json::{Source, offset_in, without_position};
use crate::wire::openai_responses::{Items, Record, kind_of};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Kinds of records that say nothing to the model.
const SILENT: &[&str] = &["event_msg", "world_state", "token_usage_record", "inter_agent_communication"];
/// Kinds of items that are taken.
pub(super) const ITEMS: &[&str] = &[
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "image_generation_call",
    "tool_search_call",
    "tool_search_output",
    "compaction",
    "additional_tools",
    "configuration_update",
    "mcp_call",
    "mcp_list_tools",
];
/// How user messages begin that Codex writes itself; they begin no turn.
const CONTEXT: &[&str] = &["<environment_context>", "<user_instructions>", "# AGENTS.md instructions"];

#[derive(Deserialize)]
pub(super) struct Line<'t> {
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    ordinal: Option<u64>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(borrow)]
    pub(super) payload: &'t RawValue,
}

impl Line<'_> {
    pub(super) fn at(&self) -> Option<Millis> {
        self.timestamp.as_deref().and_then(time::parsed)
    }
}

#[derive(Deserialize)]
pub(super) struct Meta {
    #[serde(default)]
    id: Option<Text>,
    #[serde(default)]
    forked_from_id: Option<Text>,
    #[serde(default)]
    forked_from_ordinal_exclusive: Option<u64>,
    #[serde(default)]
    base_instructions: Option<Instructions>,
    #[serde(default)]
    pub(super) thread_source: Option<Text>,
}

impl Meta {
    /// The head of a rollout; `None` if its first line is none.
    pub(super) fn of(text: &str) -> Option<Meta> {
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        let line: Line<'_> = serde_json::from_str(first).ok()?;
        serde_json::from_str(line.payload.get()).ok().filter(|_| line.kind == "session_meta")
    }

    /// The instructions that a session was begun with.
    pub(super) fn begun_with(&self) -> Option<Text> {
        let text = self.base_instructions.as_ref().and_then(|it| match it {
            Instructions::Text(text) | Instructions::Object { text: Some(text) } => Some(text.clone()),
            Instructions::Object { text: None } | Instructions::Other(_) => None,
        });
        text.filter(|text| !text.is_empty())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Instructions {
    Text(Text),
    Object { text: Option<Text> },
    Other(serde::de::IgnoredAny),
}

/// Returns whether a text is a rollout, by its first line.
pub(crate) fn is_rollout(text: &str) -> bool {
    const FIRST: &[&str] = &["session_meta", "turn_context", "response_item", "compacted", "event_msg"];
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line: Option<Line<'_>> = serde_json::from_str(first).ok();
    line.is_some_and(|line| FIRST.contains(&line.kind.as_str()) && line.payload.get().starts_with('{'))
}

/// Returns the rollout that a rollout forks from, and the number of the first record there that it does not go on from.
/// Older ones hold what they forked from themselves.
pub fn fork_of(text: &str) -> Option<(Text, u64)> {
    let meta = Meta::of(text)?;
    Some((meta.forked_from_id?, meta.forked_from_ordinal_exclusive?))
}

/// Reads a rollout as one conversation. Lines that are cut off are left out, as the program does that was stopped while
/// it wrote; any other that can't be read is an error.
pub(crate) fn read(source: &Source<'_>) -> Result<Vec<Conversation>, Error> {
    let mut reading = Reading::default();
    for (offset, text) in lines(source.text) {
        let line = line(source, offset, text)?;
        reading.is_cut_off = line.is_none();
        match line {
            Some(line) => reading.line(source, &line)?,
            None => reading.cut_off += 1,
        }
    }
    Ok(vec![reading.told()])
}

/// Reads one line; `None` if it ends too early.
pub(super) fn line<'t>(source: &Source<'t>, offset: usize, line: &'t str) -> Result<Option<Line<'t>>, Error> {
    if line.len() > RECORD_BYTES_MAX {
        let (size, most) = (line.len() >> 20, RECORD_BYTES_MAX >> 20);
        let what = format!("a record of {size} MiB; at most {most} MiB are read");
        return Err(Error::input(what).at(Place::at(source.text, offset)));
    }
    match serde_json::from_str::<Line<'_>>(line) {
        Ok(line) => Ok(Some(line)),
        Err(error) if error.is_eof() => Ok(None),
        Err(error) => {
            let at = offset + offset_in(line, error.line(), error.column());
            let hint = "every line of a rollout is {\"timestamp\", \"type\", \"payload\"}";
            Err(Error::input(without_position(&error)).at(Place::at(source.text, at)).hinting(hint))
        }
    }
}

/// The lines that hold something, and where they begin.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let all = text.split('\n').scan(0, |next, line| {
        let offset = *next;
        *next += line.len() + 1;
        Some((offset, line))
    });
    all.filter(|(_, line)| !line.trim().is_empty())
}

#[derive(Default)]
struct Reading {
    items: Items,
    meta: Option<Meta>,
    has_ordinals: bool,
    number: usize,
    compactions: usize,
    /// How many turns were taken back.
    taken_back: usize,
    skipped: BTreeMap<String, usize>,
    /// How many lines are cut off, and whether the last one is.
    cut_off: usize,
    is_cut_off: bool,
}

impl Reading {
    fn line(&mut self, source: &Source<'_>, line: &Line<'_>) -> Result<(), Error> {
        self.number += 1;
        self.has_ordinals |= line.ordinal.is_some();
        let at = line.at();
        match line.kind.as_str() {
            "session_meta" if self.meta.is_none() => self.meta = Some(source.read(line.payload, "session_meta")?),
            // A copied history brings the records of those it was copied from.
            "session_meta" => {}
            "turn_context" => {
                let fields: Record<'_> = source.read(line.payload, "turn_context")?;
                self.items.model = fields.text("model").map(Into::into).or(self.items.model.take());
            }
            "response_item" => self.item(source, line.payload, at)?,
            "compacted" => self.compacted(source, line.payload, at)?,
            "event_msg" => self.event(source, line.payload)?,
            kind if SILENT.contains(&kind) => {}
            kind => *self.skipped.entry(kind.to_string()).or_default() += 1,
        }
        Ok(())
    }

    fn item(&mut self, source: &Source<'_>, raw: &RawValue, at: Option<Millis>) -> Result<(), Error> {
        let here = format!("record {}", self.number);
        let fields: Record<'_> = source.read(raw, &here)?;
        let kind = kind_of(&fields).unwrap_or_default();
        if !ITEMS.contains(&kind.as_str()) {
            *self.skipped.entry(kind).or_default() += 1;
            return Ok(());
        }
        self.items.at = at;
        self.items.take(source, raw, &here)
    }

    /// Begins again with what a compaction left: its own history, or the instructions and a summary.
    fn compacted(&mut self, source: &Source<'_>, raw: &RawValue, at: Option<Millis>) -> Result<(), Error> {
        let fields: Record<'_> = source.read(raw, "compacted")?;
        self.items.close();
        self.items.at = at;
        let history = fields.get("replacement_history").filter(|raw| raw.get() != "null");
        let summary = fields.text("message").filter(|text| !text.trim().is_empty());
        match (history, summary) {
            (Some(history), _) => {
                self.items.entries.clear();
                responses::read(source, history, "replacement_history", &mut self.items)?;
            }
            (None, Some(summary)) => {
                self.items.entries.retain(|entry| entry.role == Role::System);
                let mut entry = Entry::user(summary);
                (entry.at, entry.origin) = (at, Origin::Host);
                self.items.entries.push(entry);
            }
            (None, None) => return Ok(()),
        }
        self.compactions += 1;
        Ok(())
    }

    /// Of what is shown to the person, one thing changes what the model reads: turns that are taken back.
    fn event(&mut self, source: &Source<'_>, raw: &RawValue) -> Result<(), Error> {
        if !raw.get().contains("thread_rolled_back") {
            return Ok(());
        }
        let fields: Record<'_> = source.read(raw, "event_msg")?;
        if fields.text("type").as_deref() != Some("thread_rolled_back") {
            return Ok(());
        }
        let turns: u64 = fields.get("num_turns").map_or(Ok(0), |raw| source.read(raw, "num_turns"))?;
        self.items.close();
        for _ in 0..turns {
            let Some(at) = self.items.entries.iter().rposition(begins_turn) else { break };
            self.items.entries.truncate(at);
            self.taken_back += 1;
        }
        Ok(())
    }

    fn told(mut self) -> Conversation {
        self.items.close();
        let mut notes = Vec::new();
        if self.compactions > 0 {
            let what = "what stood before is left out, as it is for the model";
            notes.push(format!("compacted {}: {what}", counted(self.compactions, "time")));
        }
        if self.taken_back > 0 {
            notes.push(format!("{} taken back", counted(self.taken_back, "turn")));
        }
        let meta = self.meta.as_ref();
        let parent = meta.and_then(|meta| meta.forked_from_id.as_ref());
        let ordinal = meta.and_then(|meta| meta.forked_from_ordinal_exclusive);
        if let Some(parent) = parent.filter(|_| self.has_ordinals || ordinal.is_some()) {
            let upto = ordinal.map_or(String::new(), |ordinal| format!(" up to record {ordinal}"));
            notes.push(format!("forked from {parent}{upto}: what was said there is in its own file"));
        }
        if !self.skipped.is_empty() {
            let all = self.skipped.values().sum();
            let each: Vec<String> = self.skipped.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
            notes.push(format!("{} of unknown kinds left out: {}", counted(all, "record"), each.join(", ")));
        }
        let before = self.cut_off - usize::from(self.is_cut_off);
        if before > 0 {
            notes.push(format!("{} cut off and left out", counted(before, "line")));
        }
        if self.is_cut_off {
            notes.push("the last line is cut off and was left out".into());
        }
        let base = meta.and_then(Meta::begun_with).map(super::own_prompt);
        let entries = base.into_iter().chain(self.items.entries).collect();
        Conversation { id: self.meta.and_then(|meta| meta.id), entries, notes, ..Conversation::default() }
    }
}

pub(super) fn begins_turn(entry: &Entry) -> bool {
    let is_context = |part: &Part| match part {
        Part::Text { text } => CONTEXT.iter().any(|start| text.starts_with(start)),
        _ => false,
    };
    entry.role == Role::User && !entry.parts.first().is_some_and(is_context)
}
