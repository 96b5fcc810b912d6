//! The view: the items one reader would see, from its floor up.
//!
//! A view reads no further down than its floor, the edge, or the bound it was given, plus the few entries that
//! are named below. Only [`View::apply`] changes what is shown.

mod join;
mod read;

use crate::edit::{Change, Edit, OpenCall, PartAt, Reason};
use crate::entry::{Entry, Part, Role, Seq, Span, Status, Text};

use crate::item::{Changed, Item, Kind, result_text};
use crate::policy::{AuthorRule, StatusRule};
use crate::reader::Decided;
use crate::receipt::{FateRow, Warning};
use crate::request::Request;
use crate::select;
use crate::target::{Reasoned, Target};
use crate::tokens::{Count, Tokens};
use std::collections::{HashMap, HashSet};

pub(crate) use read::{Shelf, Window, below};

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
    /// Whether a plan reads no further than this.
    pub(crate) is_final: bool,
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
        let shelved = window.before.iter().chain(&window.after).flat_map(|shelf| &shelf.entries);
        let named: Vec<Seq> = window.named.iter().chain(shelved).map(|entry| entry.seq).collect();
        let edits: Vec<&Edit> = decided.edits(window.start, &named).collect();
        let too_many = window.too_many.clone();
        let mut view = join::join(window, request, decided, purpose);
        view.warnings.extend(too_many.into_iter().map(|what| Warning::TooMany { what: what.into() }));
        view.shape(request.target);
        view.select(request);
        view.tell(request);
        view.hide_empty();
        view.mark(request);
        view.apply(edits);
        view.fold();
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

    /// Whether more lies below that a plan will not read: what was read must do.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_final && !self.window.is_complete
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
        }
    }

    /// Hides what would be a message without content.
    fn hide_empty(&mut self) {
        for item in self.items.iter_mut().filter(|item| item.is_shown() && item.kind == Kind::Message) {
            if !item.says_something() {
                let why = item.changed.first().map_or(Reason::Empty, |(_, changed)| changed.why.clone());
                item.hidden = Some(("shape".into(), why));
            }
        }
    }

    fn select(&mut self, request: &Request<'_>) {
        for item in self.items.iter_mut().filter(|item| item.hidden.is_none()) {
            let own = request.policy.own_selects().iter().map(|pass| &**pass);
            let mut passes = select::ALL.iter().copied().chain(own);
            item.hidden = passes.find_map(|pass| {
                let why = pass.excludes(item, request)?;
                Some((pass.name().to_string().into(), why))
            });
        }
    }

    /// Says in the text what only a field says: that an answer was broken off, or who speaks.
    fn tell(&mut self, request: &Request<'_>) {
        let rules = &request.policy.select;
        if rules.status == StatusRule::Exclude && rules.authors == AuthorRule::Plain {
            return;
        }
        let (overhead, counter) = (self.overhead, self.counter);
        for item in self.items.iter_mut().filter(|it| it.is_shown() && it.role() == Role::Assistant) {
            let entry = item.entry.original();
            let is_named = rules.authors == AuthorRule::Named;
            let other = entry.author.as_ref().filter(|author| is_named && **author != *request.reader.name());
            let note = (entry.status != Status::Sent).then(|| broken_off(entry));
            let why = match (&note, other) {
                (Some(_), _) => Reason::Status { status: entry.status },
                (None, Some(author)) => Reason::Named { author: author.clone() },
                (None, None) => continue,
            };
            let said = item.entry.shown().iter().enumerate().filter_map(|(at, part)| match part {
                Part::Text { text } if !text.is_empty() => Some((at, text.clone())),
                _ => None,
            });
            let mut said: Vec<(usize, Text)> = said.collect();
            if let (Some((_, first)), Some(author)) = (said.first_mut(), other) {
                *first = format!("[{author}] {first}").into();
            }
            match (said.last_mut(), note) {
                (Some((_, last)), Some(note)) => *last = format!("{last}\n\n{note}").into(),
                (None, Some(note)) => {
                    let cost = counter.count(&note);
                    item.note = Some(Changed {
                        text: Some(note.into()),
                        cost,
                        by: "select".into(),
                        why: why.clone(),
                        is_edit: false,
                    });
                }
                (_, None) => {}
            }
            for (at, text) in said {
                let is_same = matches!(&item.entry.shown()[at], Part::Text { text: old } if *old == text);
                if !is_same {
                    let (cost, by) = (counter.count(&text), "select".into());
                    item.changed.push((at, Changed { text: Some(text), cost, by, why: why.clone(), is_edit: false }));
                }
            }
            item.recount(overhead, counter);
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
            // The last on the page, and what came last: a result may stand behind a call far above.
            let last = self.items.iter().rposition(|item| item.is_shown() && item.is_main());
            let shown = self.items.iter().enumerate().filter(|(_, item)| item.is_shown() && item.is_main());
            let newest = shown.max_by_key(|(_, item)| item.last_seq()).map(|(at, _)| at);
            for at in last.into_iter().chain(newest) {
                self.items[at].keep.get_or_insert(Reason::Newest);
            }
            let mut users = self.items.iter_mut().rev().filter(|item| item.is_shown() && item.opens_exchange());
            if let Some(item) = users.next() {
                item.keep = Some(Reason::LastUserWords);
            }
        }
    }

    /// Leaves out what a summary on the page stands for, but for instructions and pins.
    fn fold(&mut self) {
        let folds: Vec<(Seq, Span)> = self.window.folds().collect();
        let may_go = |item: &&mut Item<'_>| !matches!(item.keep, Some(Reason::System | Reason::Pinned));
        for item in self.items.iter_mut().filter(|item| item.is_main()).filter(may_go) {
            if let Some((by, _)) = folds.iter().find(|(_, span)| span.contains(item.seq())) {
                item.hidden.get_or_insert(("sections".into(), Reason::Folded { by: *by }));
            }
        }
    }

    /// Applies edits, in order. One that would break an item is skipped and named.
    pub(crate) fn apply<'e>(&mut self, edits: impl IntoIterator<Item = &'e Edit>) {
        let mut places: Option<HashMap<Seq, (usize, Option<usize>)>> = None;
        for edit in edits {
            match &edit.change {
                Change::Hide(span) => self.hide(*span, edit),
                Change::Replace { at, .. } | Change::Omit(at) => {
                    let text = if let Change::Replace { text, .. } = &edit.change { Some(text.clone()) } else { None };
                    let cost = text.as_ref().map_or(Tokens(0), |text| self.counter.count(text));
                    let (by, why) = (edit.by.clone(), edit.why.clone());
                    let changed = Changed { text, cost, by, why, is_edit: true };
                    let places = places.get_or_insert_with(|| self.places());
                    if let Some(&place) = places.get(&at.seq) {
                        self.replace(*at, place, changed);
                    }
                }
                Change::Pin(span) => {
                    let pinned = self.items.iter_mut().filter(|item| item.seqs().any(|seq| span.contains(seq)));
                    pinned.for_each(|item| item.keep = Some(Reason::Pinned));
                }
                Change::Floor(floor) => {
                    let below =
                        self.items.iter_mut().filter(|it| it.is_main() && it.seq() < floor.at && it.keep.is_none());
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
            // What is last or newest changes with every call; what was decided stands.
            let is_fixed = matches!(item.keep, Some(Reason::Pinned | Reason::System));
            if is_fixed || !item.seqs().any(|seq| span.contains(seq)) {
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

    fn replace(&mut self, at: PartAt, (item, answer): (usize, Option<usize>), changed: Changed) {
        let item = &mut self.items[item];
        match answer {
            Some(answer) => item.answers[answer].changed = Some(changed),
            None => {
                let why = (changed.by.clone(), changed.why.clone());
                item.changed.retain(|(part, _)| *part != at.part);
                item.changed.push((at.part, changed));
                if item.kind == Kind::Message && !item.says_something() {
                    item.hidden.get_or_insert(why);
                }
            }
        }
        item.recount(self.overhead, self.counter);
    }

    /// The parts that an edit has changed.
    pub(crate) fn edited(&self) -> HashSet<PartAt> {
        let mut edited = HashSet::new();
        for item in &self.items {
            let own = item.changed.iter().filter(|(_, changed)| changed.is_edit);
            edited.extend(own.map(|(part, _)| PartAt { seq: item.seq(), part: *part }));
            let answers = item.answers.iter().filter(|it| it.changed.as_ref().is_some_and(|changed| changed.is_edit));
            edited.extend(answers.filter_map(|it| Some(PartAt { seq: it.result?.seq, part: 0 })));
        }
        edited
    }

    /// Where each entry stands: in which item, and as which of its answers.
    fn places(&self) -> HashMap<Seq, (usize, Option<usize>)> {
        let mut places = HashMap::new();
        for (i, item) in self.items.iter().enumerate() {
            places.insert(item.seq(), (i, None));
            for (j, answer) in item.answers.iter().enumerate() {
                if let Some(entry) = answer.result {
                    places.insert(entry.seq, (i, Some(j)));
                }
            }
        }
        places
    }
}

/// What is told of an answer that was broken off.
fn broken_off(entry: &Entry) -> String {
    let what = if entry.status == Status::Cancelled { "[Generation cancelled]" } else { "[Generation failed]" };
    let reason = entry.meta.get("error").and_then(|reason| reason.as_str());
    let reason = reason.map_or(String::new(), |reason| format!("\nReason: {reason}"));
    format!("{what}{reason}")
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

fn not_taken(what: &'static str, text: Option<Text>, cost: Tokens) -> Changed {
    Changed { text, cost, by: "shape".into(), why: Reason::NotTaken { what: what.into() }, is_edit: false }
}
