//! From records to entries: records of one message of the model are one step again, in the order of its blocks.

use crate::entry::{Entry, Millis, Origin, Part, Role, Text};
use crate::error::Error;
use crate::transcript::lines::{self, Line};
use crate::transcript::time;
use crate::wire::anthropic::{Read, Reading};
use crate::wire::json::{Fields, Source};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// What the program calls a model that is none.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// Gathers entries.
pub(crate) struct Steps<'s, 't> {
    source: &'s Source<'t>,
    list: Vec<Step>,
    /// Which of them is the step of a message.
    messages: HashMap<String, usize>,
    /// Calls that stood twice in one step.
    twice: usize,
}

/// An entry while records may still add to it.
struct Step {
    /// What each record adds, with the number of its first block.
    reads: Vec<(Option<u64>, Read)>,
    role: Role,
    id: Option<String>,
    at: Option<Millis>,
    origin: Option<Origin>,
    is_edge: bool,
    /// What the program kept about the message.
    kept: Map<String, Value>,
}

impl<'s, 't> Steps<'s, 't> {
    pub(crate) fn new(source: &'s Source<'t>) -> Steps<'s, 't> {
        Steps { source, list: Vec::new(), messages: HashMap::new(), twice: 0 }
    }

    /// Takes a record with a message of the user or of the model.
    pub(crate) fn said(&mut self, line: &Line<'t>, is_edge: bool) -> Result<(), Error> {
        let Some(raw) = line.fields.get("message").copied() else {
            return Err(self.source.refuse(line.raw, format!("a record of type {:?} without a message", line.kind)));
        };
        let fields: Fields<'t> = self.source.read(raw, "message")?;
        let text = |name: &str| -> Option<String> { serde_json::from_str(fields.get(name)?.get()).ok() };
        let role = if line.kind == "assistant" { Role::Assistant } else { Role::User };
        let model = text("model").filter(|model| model != SYNTHETIC);
        let reading = Reading { source: self.source, model: model.map(Text::from) };
        let read = match fields.get("content").copied() {
            Some(content) => reading.content(content, role, "message")?,
            None => Vec::new(),
        };
        let origin =
            (role == Role::User && (line.flag("isMeta") || line.flag("isCompactSummary"))).then_some(Origin::Host);
        let mut is_edge = is_edge;
        for read in read {
            let id = text("id").filter(|_| role == Role::Assistant);
            let index = line.value::<u64>("apiBlockIndex");
            match id.as_ref().and_then(|id| self.messages.get(id).copied()) {
                Some(at) => self.list[at].reads.push((index, read)),
                None => {
                    id.map(|id| self.messages.insert(id, self.list.len()));
                    self.push(line, index, read, origin);
                }
            }
            let step = match text("id").and_then(|id| self.messages.get(&id).copied()) {
                Some(at) => &mut self.list[at],
                None => match self.list.last_mut() {
                    Some(last) => last,
                    None => continue,
                },
            };
            step.is_edge |= std::mem::take(&mut is_edge);
            // Every record of a message repeats these; the last knows best.
            for (name, kept) in [("id", "message"), ("usage", "usage"), ("stop_reason", "stop_reason")] {
                let value: Option<Value> = fields.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
                let value = value.filter(|value| role == Role::Assistant && !value.is_null());
                step.kept.extend(value.map(|value| (kept.to_string(), value)));
            }
        }
        Ok(())
    }

    /// Takes something that was read apart.
    pub(crate) fn add(&mut self, line: &Line<'t>, read: Read, origin: Origin) {
        self.push(line, None, read, Some(origin));
    }

    fn push(&mut self, line: &Line<'t>, index: Option<u64>, read: Read, origin: Option<Origin>) {
        let at = line.text("timestamp").as_deref().and_then(time::parsed);
        let id = line.text("uuid").filter(|id| self.list.last().is_none_or(|last| last.id.as_ref() != Some(id)));
        let role = read.role;
        let origin = origin.filter(|_| role != Role::Tool);
        self.list.push(Step { reads: vec![(index, read)], role, id, at, origin, is_edge: false, kept: Map::new() });
    }

    /// What should be told; to be asked for before the entries are taken.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        self.twice = self.list.iter_mut().map(Step::drop_twice).sum();
        (self.twice > 0).then(|| lines::left_out(self.twice, "call repeated in its step")).into_iter().collect()
    }

    /// Returns the entries.
    pub(crate) fn entries(mut self) -> Vec<Entry> {
        self.notes();
        self.list.into_iter().map(Step::into_entry).collect()
    }
}

impl Step {
    /// Leaves out calls whose id was there before.
    fn drop_twice(&mut self) -> usize {
        let (mut seen, mut dropped) = (Vec::new(), 0);
        if self.reads.len() < 2 {
            return 0;
        }
        for (_, read) in &mut self.reads {
            let before = read.parts.len();
            read.parts.retain(|part| match part {
                Part::Call(call) if seen.contains(&call.id) => false,
                Part::Call(call) => {
                    seen.push(call.id.clone());
                    true
                }
                _ => true,
            });
            dropped += before - read.parts.len();
            if read.parts.is_empty() {
                *read = Read::new(read.role);
            }
        }
        dropped
    }

    fn into_entry(mut self) -> Entry {
        if self.reads.iter().all(|(index, _)| index.is_some()) {
            self.reads.sort_by_key(|(index, _)| *index);
        }
        let mut whole = Read::new(self.role);
        self.reads.into_iter().for_each(|(_, read)| whole.append(read));
        let mut entry = whole.into_entry(Map::new());
        entry.id = self.id.map(Into::into);
        (entry.at, entry.edge) = (self.at, self.is_edge);
        entry.origin = self.origin.unwrap_or(entry.origin);
        if !self.kept.is_empty() {
            entry.extra.insert("claude_code".into(), Value::Object(self.kept));
        }
        entry
    }
}
