//! Excerpt: of old results, calls and thoughts the lines stay that say what nothing else on the page says.
//!
//! What the agent has used already stands in its own words, and what it reads again stands there again; what is left is
//! cut to the lines that are worth their tokens, over the whole batch at once. Lines stay word for word, gaps are marked,
//! and the first gap tells the handle by which all of it can be had. Users' words and instructions are never touched,
//! nor is what the model has not seen yet, nor an entry with an expiry of its own; nothing is if the request disables
//! expiry.

mod content; // what a line says
mod cover; // which lines stay
mod lines; // a text cut into lines, and what is left of it
mod worth; // how likely it is used again

use super::{Candidate, Reduce};
use crate::edit::{Change, Edit, PartAt, Reason, Turn};
use crate::entry::{Call, Part, Piece, Role, Seq, Text};
use crate::error::Error;
use crate::item::{Item, Kind, as_result};
use crate::policy::Pass;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::tool_use::{Deed, recognise};
use crate::view::View;
use cover::{Unit, cover};
use lines::{Form, Line, lines, without};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use worth::{Contents, Knowledge, Source};

/// Shorter results stay as they are.
const RESULT_MIN: Tokens = Tokens(40);
/// Shorter calls, thoughts and answers stay as they are.
const OWN_MIN: Tokens = Tokens(60);
/// The same with fewer lines that could go.
const LOOSE_LINES_MIN: usize = 4;
/// An excerpt with more than this share of the whole, in percent, is not worth a gap.
const SHARE_MAX: u64 = 90;
/// A gap that would save no more bytes than this is filled.
const GAP_BYTES_MIN: usize = 9;
/// The share of a result that goes, on average, in percent: a guess to wait by.
const RESULT_GUESS: u64 = 70;
/// The same of what the agent itself said.
const OWN_GUESS: u64 = 35;
/// What the mark of a gap costs, about.
const MARK_GUESS: Tokens = Tokens(20);

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Excerpt {
    /// What is older than this many of the reader's acknowledged calls may be cut.
    pub after: u32,
    /// What a line must be worth per token, in thousandths: more leaves less. A content that the agent is sure to use
    /// again is worth about one.
    pub worth: f64,
    /// Whether long arguments of the agent's calls are cut too.
    pub arguments: bool,
    /// Whether what the agent thought is cut too, where the provider has not sealed it.
    pub reasoning: bool,
    /// Whether the agent's long answers are cut too.
    pub answers: bool,
}

impl Default for Excerpt {
    fn default() -> Excerpt {
        Excerpt { after: 5, worth: 8.0, arguments: true, reasoning: true, answers: true }
    }
}

impl Reduce for Excerpt {
    fn name(&self) -> &str {
        "excerpt"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let targets = self.targets(view, request);
        if targets.is_empty() {
            return Vec::new();
        }
        let cut: Vec<Cut> = targets.iter().map(Cut::of).collect();
        let mut reading = Reading::default();
        view.items().iter().filter(|item| item.is_shown()).for_each(|item| reading.item(item, &targets, &cut, request));
        let now = request.reader.turn().0;
        let (mut units, mut places) = (Vec::new(), Vec::new());
        for (at, (target, cut)) in targets.iter().zip(&cut).enumerate() {
            let per_byte = target.cost.0 as f64 / target.text.len().max(1) as f64;
            let came = request.reader.turn_at_age(target.at.seq, 0).0;
            let source = target.origin.source();
            for line in (0..cut.lines.len()).filter(|line| cut.lines[*line].is_loose) {
                let worth = |content: &u64| reading.known.worth(*content, source, target.size.0, came, now);
                let new = cut.says(line).iter().filter(|content| !reading.said.contains(content));
                let says = new.map(|content| (*content, worth(content))).collect();
                let bytes = cut.lines[line].at.len() + 1;
                units.push(Unit { cost: bytes as f64 * per_byte + 1.0, says });
                places.push((at, line));
            }
        }
        let stays = cover(&units, reading.said, self.worth / 1_000.0);
        let mut keep: Vec<Vec<bool>> =
            cut.iter().map(|cut| cut.lines.iter().map(|it| !it.is_loose).collect()).collect();
        for ((at, line), stays) in places.into_iter().zip(stays) {
            keep[at][line] |= stays;
        }
        let edits = targets.iter().zip(&cut).zip(keep);
        edits.filter_map(|((target, cut), keep)| target.edit(cut, keep, view, request)).collect()
    }

    fn foresee(&self, view: &View<'_>, request: &Request<'_>) -> Option<Vec<Candidate>> {
        let (cuts, mut candidates) = (request.reader.cuts(), Vec::new());
        self.find(view, request, |target| {
            let share = if target.origin.is_own() { OWN_GUESS } else { RESULT_GUESS };
            let saves = Tokens(target.cost.0 * share / 100) - MARK_GUESS;
            let due = target.due;
            if due.0 < request.reader.unread_turns() {
                request.reader.needs_all();
            }
            // What was due at an earlier cut and stayed was worth it.
            let was_left = cuts.iter().any(|cut| cut.turn >= due && cut.from <= target.at.seq);
            if saves > Tokens(0) && !was_left {
                candidates.push(Candidate { seq: target.at.seq, saves, due });
            }
        });
        // Results may stand before what was said later; the parts of one entry are found in their order.
        candidates.sort_by_key(|it| it.seq);
        Some(candidates)
    }

    fn check(&self) -> Result<(), Error> {
        if self.worth.is_finite() && self.worth >= 0.0 {
            return Ok(());
        }
        Err(Error::settings("excerpt: worth is no number from 0 up", "1 keeps much, 10 keeps little"))
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Excerpt(self.clone()))
    }
}

impl Excerpt {
    /// What it would propose at most beside what was proposed for other entries: nothing is left of any part.
    pub(crate) fn at_most(&self, view: &View<'_>, request: &Request<'_>, before: &[Candidate]) -> Vec<Candidate> {
        let is_before = |seq: Seq| before.binary_search_by_key(&seq, |it| it.seq).is_ok();
        let targets = self.targets(view, request).into_iter().filter(|target| !is_before(target.at.seq));
        targets.map(|it| Candidate { seq: it.at.seq, saves: it.cost, due: it.due }).collect()
    }

    /// The parts that may be cut now, in the order of the log.
    fn targets<'v>(&self, view: &'v View<'_>, request: &Request<'_>) -> Vec<Target<'v>> {
        let mut targets = Vec::new();
        self.find(view, request, |target| targets.push(target));
        // Results may stand before what was said later.
        targets.sort_by_key(|target| target.at);
        targets
    }

    /// Finds the parts that may be cut now, in the order of the page.
    fn find<'v>(&self, view: &'v View<'_>, request: &Request<'_>, mut found: impl FnMut(Target<'v>)) {
        let decided = Decided { reader: request.reader, more: &[] };
        let now = request.reader.turn();
        let mut near = 0;
        let mut due = |at: PartAt| {
            let due = Turn(request.reader.since_near(at, &mut near).0 + u64::from(self.after) + 1);
            (due <= now && !decided.touched(at)).then_some(due)
        };
        if is_done(request) || request.expiry.is_some_and(|over| over.disable) {
            return;
        }
        let all = view.items().iter().enumerate().skip(view.cut);
        let is_free = |at: usize, item: &Item<'_>| item.seqs().any(|seq| view.may_change(at, seq));
        let all = all.filter(|(at, item)| view.spared.is_none() || is_free(*at, item));
        let editable = all.map(|(_, item)| item).filter(|item| item.is_shown() && item.keep().is_none());
        for item in editable.filter(|item| item.kind() != Kind::Late && item.role() == Role::Assistant) {
            for (part, said) in item.parts().iter().enumerate() {
                let at = PartAt { seq: item.seq(), part };
                let cost = item.entry.part_cost(part);
                if cost < OWN_MIN || item.is_changed(part) || item.entry.original().expiry.is_some() {
                    continue;
                }
                let (form, origin, text) = match said {
                    Part::Call(call) if self.arguments => (Form::Json, Origin::Own, call.arguments.as_str()),
                    Part::Text { text } if self.answers => (Form::Plain, Origin::Own, &**text),
                    Part::Reasoning(it) if self.reasoning && !it.is_sealed() => {
                        (Form::Plain, Origin::Thought, &*it.text)
                    }
                    _ => continue,
                };
                if let Some(due) = due(at) {
                    let is_answer = matches!(said, Part::Text { .. });
                    found(Target { at, form, origin, text, cost, size: item.entry.cost, is_answer, due });
                }
            }
            for answer in item.answers.iter() {
                let Some(entry) = answer.result else { continue };
                let (at, changed) = (PartAt { seq: entry.seq, part: 0 }, answer.changed.as_deref());
                let cost = changed.map_or(entry.cost, |changed| changed.cost);
                // What an entry says of its own expiry is for another pass to heed.
                let is_free = cost >= RESULT_MIN && entry.original().expiry.is_none();
                if !is_free || changed.is_some_and(|changed| changed.is_edit) {
                    continue;
                }
                let [Piece::Text { text }] = &*as_result(entry).content else { continue };
                let Some(due) = due(at) else { continue };
                let (form, origin, is_answer) = (Form::Plain, Origin::Result(item.call(answer)), false);
                found(Target { at, form, origin, text, cost, size: cost, is_answer, due });
            }
        }
    }
}

/// Whether a batch was made for this call already. What that left would count otherwise now: lines that went say nothing
/// any more, and lines that stay stay whatever else goes.
fn is_done(request: &Request<'_>) -> bool {
    let now = request.reader.turn();
    let mut made = request.reader.decisions().iter().rev().take_while(|it| it.turn == now);
    made.any(|it| match it.edit.change {
        Change::Hide(_) | Change::Omit(_) | Change::Replace { .. } | Change::Floor(_) | Change::Cut { .. } => true,
        Change::Settle { .. } | Change::Pin(_) | Change::Expand { .. } => false,
    })
}

/// Where a part comes from.
#[derive(Clone, Copy, Debug)]
enum Origin<'v> {
    /// The agent's own words or calls.
    Own,
    /// What the agent thought.
    Thought,
    /// The result of a call.
    Result(&'v Call),
}

impl Origin<'_> {
    fn is_own(self) -> bool {
        !matches!(self, Origin::Result(_))
    }

    /// Reads the arguments of a call, so that nobody asks who only waits.
    fn source(self) -> Source {
        match self {
            Origin::Own => Source::Own,
            Origin::Thought => Source::Thought,
            Origin::Result(call) => match recognise(call, &[]).map(|it| it.deed) {
                Some(Deed::Read) => Source::Read,
                Some(Deed::Search) => Source::Searched,
                _ => Source::Told,
            },
        }
    }
}

/// A part that may be cut.
#[derive(Debug)]
struct Target<'v> {
    at: PartAt,
    form: Form,
    origin: Origin<'v>,
    text: &'v str,
    cost: Tokens,
    /// What the message costs that it stands in.
    size: Tokens,
    is_answer: bool,
    /// The call from which on it may be cut.
    due: Turn,
}

impl Target<'_> {
    fn edit(&self, cut: &Cut, mut keep: Vec<bool>, view: &View<'_>, request: &Request<'_>) -> Option<Edit> {
        fill_small_gaps(&cut.lines, &mut keep);
        let of = keep.len();
        let kept = keep.iter().filter(|keep| **keep).count();
        if kept == of {
            return None;
        }
        let text = without(self.text, &cut.lines, &keep, self.form, self.at);
        if self.form == Form::Json && serde_json::from_str::<IgnoredAny>(&text).is_err() {
            return None;
        }
        let gone = view.count(self.text) - view.count(&text);
        let after = self.cost - gone;
        let age = request.reader.age_of(self.at);
        let change = Change::Replace { at: self.at, text: text.into() };
        let why = Reason::Excerpted { age, kept, of };
        let is_less = after.0 * 100 < self.cost.0 * SHARE_MAX;
        is_less.then(|| Edit { change, by: "excerpt".into(), why, before: self.cost, after, due: Some(self.due) })
    }
}

/// A mark costs as much as a few letters.
fn fill_small_gaps(lines: &[Line], keep: &mut [bool]) {
    let mut at = 0;
    while at < keep.len() {
        let gap = keep[at..].iter().take_while(|keep| !**keep).count();
        let bytes: usize = lines[at..at + gap].iter().map(|line| line.at.len() + 1).sum();
        if gap > 0 && at > 0 && at + gap < keep.len() && bytes < GAP_BYTES_MIN {
            keep[at..at + gap].fill(true);
        }
        at += gap.max(1);
    }
}

/// A target in lines, with what each of them says.
#[derive(Debug)]
struct Cut {
    lines: Vec<Line>,
    contents: Vec<u64>,
    /// Where the contents of each line end.
    ends: Vec<usize>,
}

impl Cut {
    fn of(target: &Target<'_>) -> Cut {
        let mut cut = Cut::read(target.text, target.form);
        let own = target.origin.is_own();
        if own && cut.lines.iter().filter(|line| line.is_loose).count() < LOOSE_LINES_MIN {
            cut.lines.iter_mut().for_each(|line| line.is_loose = false);
        }
        // An answer begins with what it is about.
        if target.is_answer
            && let Some(first) = cut.lines.first_mut()
        {
            first.is_loose = false;
        }
        cut
    }

    fn read(text: &str, form: Form) -> Cut {
        let lines = lines(text, form);
        let (mut contents, mut ends) = (Vec::new(), Vec::with_capacity(lines.len()));
        for line in &lines {
            content::read(&text[line.at.clone()], &mut contents);
            ends.push(contents.len());
        }
        Cut { lines, contents, ends }
    }

    fn says(&self, line: usize) -> &[u64] {
        let start = line.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.contents[start..self.ends[line]]
    }
}

/// What a whole page says.
#[derive(Debug, Default)]
struct Reading {
    known: Knowledge,
    /// What stands on the page whatever is cut.
    said: Contents,
}

impl Reading {
    fn item(&mut self, item: &Item<'_>, targets: &[Target<'_>], cut: &[Cut], request: &Request<'_>) {
        let mut used = Contents::default();
        let is_agents = item.role() == Role::Assistant;
        for (part, said) in item.parts().iter().enumerate() {
            let text = match (item.changed_part(part), said) {
                (Some(changed), _) => changed.text.as_deref(),
                (None, Part::Text { text }) => Some(&**text),
                (None, Part::Reasoning(it)) => Some(&*it.text),
                (None, Part::Call(call)) => Some(call.arguments.as_str()),
                (None, _) => None,
            };
            let at = PartAt { seq: item.seq(), part };
            if let Some(text) = text {
                self.text(at, text, targets, cut, is_agents.then_some(&mut used));
            }
        }
        if is_agents {
            self.known.used(&used, request.reader.turn_at_age(item.seq(), 0).0);
        }
        for answer in item.answers.iter() {
            let Some(entry) = answer.result else { continue };
            let at = PartAt { seq: entry.seq, part: 0 };
            match &answer.changed {
                Some(changed) => self.text(at, changed.text.as_deref().unwrap_or_default(), targets, cut, None),
                None => {
                    let text: Text = crate::item::result_text(crate::item::as_result(entry));
                    self.text(at, &text, targets, cut, None);
                }
            }
        }
    }

    /// Learns a text; what of it can't go is said.
    fn text(&mut self, at: PartAt, text: &str, targets: &[Target<'_>], cut: &[Cut], mut used: Option<&mut Contents>) {
        let target = targets.binary_search_by_key(&at, |target| target.at).ok();
        let read;
        let (cut, is_target) = match target {
            Some(target) => (&cut[target], true),
            None => {
                read = Cut::read(text, Form::Plain);
                (&read, false)
            }
        };
        for line in 0..cut.lines.len() {
            let says = cut.says(line);
            self.known.line(says);
            if let Some(used) = &mut used {
                used.extend(says);
            }
            if !is_target || !cut.lines[line].is_loose {
                self.said.extend(says);
            }
        }
    }
}
