//! Which records are on the branch that goes on.

use crate::transcript::lines::{Counts, Line};
use crate::wire::json::Fields;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

/// The records that make up the conversation, and what else there is.
pub(super) struct Branch {
    /// Which lines, in the order of the file.
    pub(super) lines: Vec<usize>,
    pub(super) left_out: Counts,
    /// How many hang on something that is not in the file.
    pub(super) lost: usize,
}

/// Records that say something, or end a condensed stretch.
fn is_said(line: &Line<'_>) -> bool {
    matches!(line.kind.as_str(), "user" | "assistant" | "attachment") || line.is_boundary()
}

impl Branch {
    /// Finds the branch that ends last, or that the file names as the one to go on with.
    pub(super) fn of(lines: &[Line<'_>]) -> Branch {
        let mut left_out = Counts::new();
        let is_aside = |line: &Line<'_>| line.flag("isSidechain");
        let places: HashMap<String, usize> =
            lines.iter().enumerate().filter_map(|(at, line)| Some((line.text("uuid")?, at))).collect();
        let parents = Parents::new(lines, &places);
        let main = |at: &usize| is_said(&lines[*at]) && !is_aside(&lines[*at]);
        let named = lines.iter().rev().find(|line| line.kind == "last-prompt");
        let named = named.and_then(|line| places.get(&line.text("leafUuid")?).copied());
        // What was appended behind the named record belongs to its branch.
        let behind = named.map(|leaf| parents.behind(leaf));
        let is_behind = |at: &usize| behind.as_ref().is_none_or(|behind| behind[*at]);
        let last = (0..lines.len()).rev().filter(main).find(is_behind);
        let mut taken: HashSet<usize> = last.or(named).into_iter().flat_map(|leaf| parents.back_from(leaf)).collect();
        let lost = taken.iter().filter(|at| parents.is_lost[**at]).count();
        parents.add_parallel(&mut taken);
        for (_, line) in lines.iter().enumerate().filter(|(at, line)| is_said(line) && !taken.contains(at)) {
            let what = if is_aside(line) { "line of side chains" } else { "line of other branches" };
            *left_out.entry(if line.text("uuid").is_none() { "line without uuid" } else { what }).or_default() += 1;
        }
        let others = lines.iter().filter(|line| !is_said(line)).count();
        if others > 0 {
            left_out.insert("record without a message", others);
        }
        let lines = (0..lines.len()).filter(|at| taken.contains(at) && is_said(&lines[*at])).collect();
        Branch { lines, left_out, lost }
    }
}

struct Parents<'l, 't> {
    lines: &'l [Line<'t>],
    /// The line before each on its branch.
    of: Vec<Option<usize>>,
    /// Whether it hangs on something that is not in the file; the line before it is taken for that.
    is_lost: Vec<bool>,
}

impl<'l, 't> Parents<'l, 't> {
    fn new(lines: &'l [Line<'t>], places: &HashMap<String, usize>) -> Parents<'l, 't> {
        let (mut of, mut is_lost) = (Vec::with_capacity(lines.len()), Vec::with_capacity(lines.len()));
        let mut before = None;
        for (at, line) in lines.iter().enumerate() {
            let named = line.text("parentUuid").or_else(|| line.text("logicalParentUuid"));
            let found = named.as_ref().and_then(|uuid| places.get(uuid).copied());
            is_lost.push(named.is_some() && found.is_none() && before.is_some());
            of.push(named.and(found.or(before)));
            if is_said(line) && !line.flag("isSidechain") {
                before = Some(at);
            }
        }
        Parents { lines, of, is_lost }
    }

    /// A line and those before it on its branch; a circle ends it.
    fn back_from(&self, leaf: usize) -> impl Iterator<Item = usize> {
        let mut seen = HashSet::new();
        let back = std::iter::successors(Some(leaf), |at| self.of[*at]);
        back.take_while(move |at| seen.insert(*at))
    }

    /// Which lines hang on one, itself included.
    fn behind(&self, root: usize) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = vec![None; self.lines.len()];
        known[root] = Some(true);
        for at in 0..self.lines.len() {
            let way: Vec<usize> = self.back_from(at).take_while(|at| known[*at].is_none()).collect();
            let end = way.last().map_or(Some(at), |last| self.of[*last]);
            let is_behind = end.and_then(|end| known[end]).unwrap_or(false);
            way.into_iter().for_each(|at| known[at] = Some(is_behind));
        }
        known.into_iter().map(|it| it.unwrap_or(false)).collect()
    }

    /// Calls of one message hang on each other, and their results on the calls: only one of them is on the way back
    /// from the end, but all of them were said.
    fn add_parallel(&self, taken: &mut HashSet<usize>) {
        let mut calls: HashSet<String> = HashSet::new();
        let mut answered: HashSet<String> = HashSet::new();
        for at in taken.iter() {
            let named = named_calls(&self.lines[*at]);
            calls.extend(named.made);
            answered.extend(named.answered);
        }
        for (at, line) in self.lines.iter().enumerate() {
            if taken.contains(&at) || line.flag("isSidechain") {
                continue;
            }
            let Some(parent) = self.of[at].filter(|parent| taken.contains(parent)) else { continue };
            let named = named_calls(line);
            let is_more = line.kind == "assistant"
                && message_id(line).is_some_and(|id| message_id(&self.lines[parent]) == Some(id));
            let is_answer = line.kind == "user"
                && !named.answered.is_empty()
                && named.answered.iter().all(|id| calls.contains(id) && !answered.contains(id));
            if is_more || is_answer {
                taken.insert(at);
                calls.extend(named.made);
                answered.extend(named.answered);
            }
        }
    }
}

fn message_id(line: &Line<'_>) -> Option<String> {
    let message: Fields<'_> = line.value("message")?;
    serde_json::from_str(message.get("id")?.get()).ok()
}

/// The ids of calls that a line makes, and of those that it answers.
#[derive(Default)]
pub(super) struct Named {
    made: Vec<String>,
    pub(super) answered: Vec<String>,
}

pub(super) fn named_calls(line: &Line<'_>) -> Named {
    let mut named = Named::default();
    let Some(message) = line.value::<Fields<'_>>("message") else { return named };
    let blocks: Vec<&RawValue> =
        message.get("content").and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    for block in blocks {
        let fields: Fields<'_> = serde_json::from_str(block.get()).unwrap_or_default();
        let text = |name: &str| -> Option<String> { serde_json::from_str(fields.get(name)?.get()).ok() };
        match text("type").as_deref() {
            Some("tool_use") => named.made.extend(text("id")),
            Some("tool_result") => named.answered.extend(text("tool_use_id")),
            _ => {}
        }
    }
    named
}
