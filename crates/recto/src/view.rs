//! The view: the items one reader would see, from its floor up.
//!
//! A view reads no further down than its floor, the edge, or the bound it was given, plus the few entries that
//! are named below. Only [`View::apply`] changes what is shown.

mod join;
mod read;

use crate::edit::{Change, Edit, OpenCall, PartAt, Reason};
use crate::entry::{Part, Role, Seq, Span};
use crate::item::{Changed, Item, Kind, result_text};
use crate::reader::Decided;
use crate::receipt::{FateRow, Warning};
use crate::request::Request;
use crate::select;
use crate::target::{Reasoned, Target};
use crate::tokens::{Count, Tokens};
use std::collections::HashMap;

pub(crate) use read::{Window, below};

/// The items one reader would see.
#[derive(Debug)]
pub struct View<'a> {
    pub(crate) items: Vec<Item<'a>>,
    /// Entries that are in no item, with their fates.
    pub(crate) gone: Vec<FateRow>,
    pub(crate) window: Window<'a>,
    pub(crate) warnings: Vec<Warning>,
    /// What planning must record before the next page: calls that were shown unanswered stay so.
    pub(crate) settles: Vec<Edit>,
    /// Calls whose step was not read, though a result of theirs was.
    pub(crate) unread_calls: Vec<OpenCall>,
    pub(crate) counter: &'a dyn Count,
    pub(crate) overhead: Tokens,
}

/// What a view is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// What must be settled is settled, and proposed.
    Plan,
    /// Only what was decided applies.
    Compile,
}

impl<'a> View<'a> {
    /// Reads a log back until its floor, or until `bound` is spent, and applies what was decided.
    pub(crate) fn of(request: &Request<'a>, decided: Decided<'a>, bound: Tokens, purpose: Purpose) -> View<'a> {
        let window = read::window(request, decided, bound);
        let named: Vec<Seq> = window.named.iter().map(|entry| entry.seq).collect();
        let edits: Vec<&Edit> = decided.edits(window.start, &named).collect();
        let mut view = join::join(window, request, decided, purpose);
        view.shape(request.target);
        view.select(request);
        view.mark(request);
        view.apply(edits);
        if let Some(floor) = view.window.floor {
            let late = decided.pins().filter(|span| span.last < floor.at);
            let gone = late.filter(|span| !floor.keeps.iter().any(|&seq| span.contains(seq)));
            view.warnings.extend(gone.map(|at| Warning::PinBelowFloor { at, floor: floor.at }));
        }
        view
    }

    /// Returns its items in the order they stand on the page, hidden ones included.
    pub fn items(&self) -> &[Item<'a>] {
        &self.items
    }

    /// Returns the items that a pass may reduce.
    pub fn editable(&self) -> impl Iterator<Item = &Item<'a>> {
        self.items.iter().filter(|item| item.is_shown() && item.keep.is_none())
    }

    /// Returns what its items cost.
    pub fn cost(&self) -> Tokens {
        self.items.iter().map(Item::cost).sum()
    }

    /// Returns what a text costs here.
    pub fn count(&self, text: &str) -> Tokens {
        self.counter.count(text)
    }

    /// Leaves out what the target takes from nobody.
    fn shape(&mut self, target: &Target) {
        for item in &mut self.items {
            let before = item.changed.len();
            for (at, part) in item.entry.shown().iter().enumerate() {
                if let Some(what) = refused(part, item.entry.role(), target) {
                    item.changed.push((at, not_taken(what, None, Tokens(0))));
                }
            }
            let mut answers_changed = false;
            if !target.result_images {
                let results = item.answers.iter_mut().filter_map(|answer| Some((answer.result?, &mut answer.changed)));
                for (entry, changed) in results {
                    let result = crate::item::as_result(entry);
                    if result.content.iter().any(|piece| matches!(piece, crate::entry::Piece::Image(_))) {
                        let text = result_text(result);
                        let cost = self.counter.count(&text);
                        *changed = Some(not_taken("pictures in tool results", Some(text), cost));
                        answers_changed = true;
                    }
                }
            }
            if answers_changed || item.changed.len() > before {
                item.recount(self.overhead, self.counter);
            }
            if item.kind == Kind::Message && !item.says_something() {
                let why = item.changed.first().map_or(Reason::Empty, |(_, changed)| changed.why.clone());
                item.hidden = Some(("shape".into(), why));
            }
        }
    }

    fn select(&mut self, request: &Request<'_>) {
        for item in self.items.iter_mut().filter(|item| item.hidden.is_none()) {
            let verdict = select::ALL.iter().find_map(|pass| Some((pass.name().into(), pass.excludes(item, request)?)));
            item.hidden = verdict;
        }
    }

    /// Marks what must never be reduced.
    fn mark(&mut self, request: &Request<'_>) {
        for item in &mut self.items {
            if item.role() == Role::System {
                item.keep = Some(Reason::System);
            }
        }
        // With an input, that is what the model must answer.
        if request.input.is_none() {
            if let Some(newest) = self.items.iter_mut().rev().find(|item| item.is_shown()) {
                newest.keep.get_or_insert(Reason::Newest);
            }
            let mut users = self.items.iter_mut().rev().filter(|item| item.is_shown() && item.opens_exchange());
            if let Some(item) = users.next() {
                item.keep = Some(Reason::LastUserWords);
            }
        }
    }

    /// Applies edits, in order. One that would break an item is skipped and named.
    pub(crate) fn apply<'e>(&mut self, edits: impl IntoIterator<Item = &'e Edit>) {
        let mut answers: Option<HashMap<Seq, (usize, usize)>> = None;
        for edit in edits {
            match &edit.change {
                Change::Hide(span) => self.hide(*span, edit),
                Change::Replace { at, text } => {
                    let answers = answers.get_or_insert_with(|| self.answers());
                    let changed = Changed {
                        text: Some(text.clone()),
                        cost: self.counter.count(text),
                        by: edit.by.clone(),
                        why: edit.why.clone(),
                    };
                    let answer = answers.get(&at.seq).copied();
                    self.replace(*at, answer, changed);
                }
                Change::Pin(span) => {
                    let pinned = self.items.iter_mut().filter(|item| item.seqs().any(|seq| span.contains(seq)));
                    pinned.for_each(|item| item.keep = Some(Reason::Pinned));
                }
                Change::Floor(floor) => {
                    let below = self.items.iter_mut().filter(|item| item.seq() < floor.at && item.keep.is_none());
                    for item in below.filter(|item| item.is_shown() && !floor.keeps.contains(&item.seq())) {
                        item.hidden = Some((edit.by.clone(), Reason::BelowFloor { floor: floor.at }));
                    }
                }
                // Joining has seen to it.
                Change::Settle { .. } => {}
            }
        }
    }

    fn hide(&mut self, span: Span, edit: &Edit) {
        for item in &mut self.items {
            if item.keep.is_some() || !item.seqs().any(|seq| span.contains(seq)) {
                continue;
            }
            if item.seqs().all(|seq| span.contains(seq)) {
                item.hidden.get_or_insert((edit.by.clone(), edit.why.clone()));
            } else {
                let why = "it would part a step from its results".into();
                self.warnings.push(Warning::EditSkipped { by: edit.by.clone(), at: span, why });
            }
        }
    }

    fn replace(&mut self, at: PartAt, answer: Option<(usize, usize)>, changed: Changed) {
        let item = match answer {
            Some((item, answer)) => {
                let item = &mut self.items[item];
                item.answers[answer].changed = Some(changed);
                item
            }
            None => {
                let Ok(item) = self.items.binary_search_by_key(&at.seq, Item::seq) else { return };
                let item = &mut self.items[item];
                item.changed.retain(|(part, _)| *part != at.part);
                item.changed.push((at.part, changed));
                item
            }
        };
        item.recount(self.overhead, self.counter);
    }

    /// Where each result stands.
    fn answers(&self) -> HashMap<Seq, (usize, usize)> {
        let mut at = HashMap::new();
        for (i, item) in self.items.iter().enumerate() {
            for (j, answer) in item.answers.iter().enumerate() {
                if let Some(entry) = answer.result {
                    at.insert(entry.seq, (i, j));
                }
            }
        }
        at
    }
}

/// What the target does not take of a part in this role.
fn refused(part: &Part, role: Role, target: &Target) -> Option<&'static str> {
    match part {
        Part::Reasoning(_) if target.reasoning == Reasoned::Dropped => Some("reasoning from earlier turns"),
        Part::Opaque { provider, .. } if *provider != target.provider => Some("content of another provider"),
        Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::File { .. } if role != Role::User => {
            Some("media that isn't the user's")
        }
        _ => None,
    }
}

fn not_taken(what: &'static str, text: Option<crate::entry::Text>, cost: Tokens) -> Changed {
    Changed { text, cost, by: "shape".into(), why: Reason::NotTaken { what: what.into() } }
}
