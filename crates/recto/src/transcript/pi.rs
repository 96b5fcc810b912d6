//! Sessions of pi: one record a line. Those of newer versions form a tree by `id` and `parentId`, of which the branch
//! that ends last is read; in older ones each follows the one before. Where a session was compacted, the summary stands
//! before what was kept, and nothing older is shown.

mod message;
mod tree;

use super::Conversation;
use super::content::Contents;
use super::lines::{self, Line, Lines};
use crate::entry::{Entry, Origin, Text};
use crate::error::Error;
use crate::wire::json::{Fields, Source};
use message::Messages;
use std::collections::BTreeMap;
use tree::Branch;

/// Whose the fields are that have no place in an entry.
const OWNER: &str = "pi";
/// The field that tells records apart.
const KEY: &str = "id";
/// Kinds of records that say nothing to the model.
const SILENT: [&str; 7] =
    ["session", "model_change", "thinking_level_change", "label", "session_info", "custom", "leaf"];
/// Kinds that do.
const TOLD: [&str; 4] = ["message", "custom_message", "branch_summary", "compaction"];

/// Returns whether a text is a session, by its first line.
pub(super) fn is_session(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let fields: Fields<'_> = serde_json::from_str(first).unwrap_or_default();
    fields.get("type").is_some_and(|kind| kind.get() == "\"session\"")
        && [KEY, "timestamp"].iter().all(|name| fields.contains_key(*name))
}

/// Reads a session as one conversation; what is left out is counted in its notes.
pub(super) fn read(source: &Source<'_>) -> Result<Vec<Conversation>, Error> {
    let lines = Lines::of(source, KEY)?;
    let branch = Branch::of(&lines.list);
    let mut reading =
        Reading { messages: Messages::of(Contents::new(source, OWNER)), unknown: BTreeMap::new(), entries: Vec::new() };
    for &at in &branch.older {
        reading.line(&lines.list[at])?;
    }
    if let Some(at) = branch.compaction {
        reading.line(&lines.list[at])?;
        reading.entries.last_mut().into_iter().for_each(|summary| summary.edge = true);
    }
    for &at in branch.shown.iter().filter(|at| lines.list[**at].kind != "compaction") {
        reading.line(&lines.list[at])?;
    }
    if reading.entries.is_empty() {
        return Err(Error::input("no conversation in it").hinting("nothing was said in this session of pi"));
    }
    let id = lines.list.iter().find(|line| line.kind == "session").and_then(|line| line.text(KEY));
    let mut notes = lines.notes();
    if branch.lost > 0 {
        let what = "whose parent is not in the file: taken to follow the line before";
        notes.push(format!("{} {what}", lines::counted(branch.lost, "line")));
    }
    let is_silent = |line: &&Line<'_>| SILENT.contains(&line.kind.as_str());
    let silent = lines.list.iter().filter(is_silent).count();
    let counts = [(branch.others, "line of other branches"), (silent, "record without a message")];
    notes.extend(counts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| lines::left_out(*number, what)));
    notes.extend(reading.notes());
    Ok(vec![Conversation { id: id.map(Into::into), entries: reading.entries, notes, ..Conversation::default() }])
}

struct Reading<'s, 't> {
    messages: Messages<'s, 't>,
    /// How many records of each kind nobody knows.
    unknown: BTreeMap<String, usize>,
    entries: Vec<Entry>,
}

impl<'t> Reading<'_, 't> {
    fn line(&mut self, line: &Line<'t>) -> Result<(), Error> {
        let entry = match line.kind.as_str() {
            "message" => self.messages.message(line)?,
            "custom_message" => Some(self.messages.put_in(line)?),
            "branch_summary" | "compaction" => self.messages.summary(line)?,
            kind if SILENT.contains(&kind) => None,
            kind => {
                *self.unknown.entry(kind.to_string()).or_default() += 1;
                None
            }
        };
        self.entries.extend(entry.map(|mut entry| {
            entry.id = line.text(KEY).map(Into::into);
            entry
        }));
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.messages.notes();
        if !self.unknown.is_empty() {
            let all = lines::counted(self.unknown.values().sum(), "record");
            let each: Vec<String> = self.unknown.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
            notes.push(format!("{all} of unknown kinds left out: {}", each.join(", ")));
        }
        notes
    }
}

/// What the program says in the user's place.
fn of_program(text: Text) -> Entry {
    Entry { origin: Origin::Host, ..Entry::user(text) }
}
