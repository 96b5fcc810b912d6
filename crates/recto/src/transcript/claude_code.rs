//! Session files of Claude Code: one record a line. Those of the conversation form a tree by `uuid` and `parentUuid`,
//! of which the branch that ends last is read.

mod since;
pub(super) mod steps;
mod tree;
mod write;

use super::Conversation;
use super::lines::{self, Line, Lines};
use crate::entry::{Origin, Role};
use crate::error::Error;
use crate::wire::anthropic::Reading;
use crate::wire::json::{Fields, Source};
use serde_json::value::RawValue;
use steps::Steps;
use tree::Branch;

pub use since::{Since, since};
pub use write::{session, user_line};

/// The field that tells records apart.
pub(super) const KEY: &str = "uuid";
/// How many lines are looked at to tell what a file is.
const LINES_SEEN_MAX: usize = 200;

/// Returns whether a text is a session file.
pub(crate) fn is_session(text: &str) -> bool {
    let is_one = |line: &str| {
        // Within a string the quotes would be escaped, so this finds a field, and most files have none.
        let fields: Fields<'_> = match line.contains("\"parentUuid\"") {
            true => serde_json::from_str(line).unwrap_or_default(),
            false => return false,
        };
        ["type", "uuid", "parentUuid", "sessionId"].iter().all(|name| fields.contains_key(*name))
    };
    text.lines().take(LINES_SEEN_MAX).any(is_one)
}

/// Reads a session file as one conversation; what is left out is counted in its notes.
pub(crate) fn read(source: &Source<'_>) -> Result<Vec<Conversation>, Error> {
    let lines = Lines::of(source, KEY)?;
    let branch = Branch::of(&lines.list);
    if branch.lines.is_empty() {
        return Err(Error::input("no conversation in it").hinting("is this the main file of a session?"));
    }
    let mut steps = Steps::new(source);
    let mut left_out = branch.left_out;
    let mut is_edge = false;
    for &at in &branch.lines {
        let line = &lines.list[at];
        match line.kind.as_str() {
            "user" | "assistant" if line.flag("isApiErrorMessage") => {
                *left_out.entry("message of the program about an error").or_default() += 1;
            }
            "user" | "assistant" => steps.said(line, std::mem::take(&mut is_edge))?,
            "attachment" => {
                let untold = usize::from(!attached(source, line, &mut steps)?);
                *left_out.entry("attachment without what the model saw").or_default() += untold;
            }
            "system" if line.is_boundary() => is_edge = true,
            _ => {}
        }
    }
    let id = branch.lines.iter().rev().find_map(|at| lines.list[*at].text("sessionId"));
    let mut notes = lines.notes();
    if branch.lost > 0 {
        let what = "whose parent is not in the file: taken to follow the line before";
        notes.push(format!("{} {what}", lines::counted(branch.lost, "line")));
    }
    let left_out = left_out.into_iter().filter(|(_, number)| *number > 0);
    notes.extend(left_out.map(|(what, number)| lines::left_out(number, what)));
    notes.extend(steps.notes());
    Ok(vec![Conversation { id: id.map(Into::into), entries: steps.entries(), notes, ..Conversation::default() }])
}

impl Line<'_> {
    /// Whether the conversation was condensed here.
    pub(super) fn is_boundary(&self) -> bool {
        self.kind == "system" && self.text("subtype").as_deref() == Some("compact_boundary")
    }
}

/// Reads what the program put before the model by itself; returns whether the record tells it.
fn attached<'t>(source: &Source<'t>, line: &Line<'t>, steps: &mut Steps<'_, 't>) -> Result<bool, Error> {
    let Some(rendered) = line.fields.get("rendered").copied().filter(|raw| raw.get().starts_with('[')) else {
        return Ok(false);
    };
    let pieces: Vec<&RawValue> = source.read(rendered, "rendered")?;
    let (reading, mut is_told) = (Reading { source, model: None }, false);
    for piece in pieces {
        let fields: Fields<'_> = source.read(piece, "rendered")?;
        let Some(content) = fields.get("content").copied() else { continue };
        let own = ["renderedRole", "role"].into_iter().find_map(|name| fields.get(name).copied());
        let named = own.or(line.fields.get("renderedRole").copied()).map(RawValue::get);
        let role = if named == Some("\"system\"") { Role::System } else { Role::User };
        for read in reading.content(content, role, "rendered")? {
            is_told = true;
            steps.add(line, read, Origin::Host);
        }
    }
    Ok(is_told)
}
