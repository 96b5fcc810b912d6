//! Fold: a model's note stands for the oldest exchanges.
//!
//! Long before history must be cut, the plan names a want: a note on the oldest exchanges. Once history is longer than
//! it may be, the note stands on the page in their place, as a message that says that it is one; they go below the
//! floor, and any of them can still be asked for. The next note goes on from this one and takes its place, so that there
//! is never more than one. Where no note was made, nothing is done here, and the passes behind do their work.
//!
//! A range ends where an exchange begins, at fixed steps of the log: so it is the same range whenever and by whomever it
//! is planned, and its note is made once. The newest exchanges stay, and so do instructions, pins, the policy's rules, and
//! the first request if that is asked for. It must not run where nothing behind it can make a page fit.

use super::Reduce;
use super::floor::{End, Ends};
use crate::digest::Digest;
use crate::edit::{Change, Edit, PartAt, Reason};
use crate::entry::{Lane, Role, Seq, Span, Status, Text};
use crate::error::Error;
use crate::item::Item;
use crate::log::Counted;
use crate::note::{Earlier, Material, Note, Want};
use crate::plan::READ_ROOMS_MAX;
use crate::policy::{Apply, Pass, TraceRule};
use crate::reader::Decided;
use crate::receipt::Warning;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::{Purpose, View};
use serde::{Deserialize, Serialize};

const NAME: &str = "fold";
/// How many characters of a note are taken to cost a token, before there is one.
const CHARS_PER_TOKEN: u64 = 3;

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fold {
    /// It acts when history takes more than this share of its room.
    pub over_percent: u32,
    /// It acts when history costs more than this, if that is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Tokens>,
    /// It wants a note from this share of that on.
    pub want_percent: u32,
    /// It goes down to this share of that.
    pub target_percent: u32,
    /// A range ends where the first exchange begins after so many entries.
    pub step: u64,
    /// How many of the newest exchanges stay.
    pub keep_last: usize,
    /// About how many characters a note has; rules that users have stated come on top.
    pub chars: u32,
    /// The name of the prompt that notes are made with; none is the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text>,
    /// Whether the first request stays.
    pub keep_first_request: bool,
}

impl Default for Fold {
    fn default() -> Fold {
        Fold {
            over_percent: 80,
            over: None,
            want_percent: 75,
            target_percent: 50,
            step: 20,
            keep_last: 2,
            chars: 4_000,
            prompt: None,
            keep_first_request: true,
        }
    }
}

impl Reduce for Fold {
    fn name(&self) -> &str {
        NAME
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let level = Level::of(self, view, request).filter(|level| level.is_over);
        let Some(level) = level.filter(|_| request.notes.is_some()) else { return Vec::new() };
        let ranges = Ranges::of(self, view, request);
        let Some((range, text, model)) = ranges.made(&level, view) else { return Vec::new() };
        let after = cost(range, text, view);
        let why = Reason::TooLong { cost: level.cost, room: level.room, target: level.target };
        let change = Change::Floor(ranges.ends.floor(&range.end, view));
        let floor = Edit { change, by: NAME.into(), why, before: level.cost, after, due: None };
        std::iter::once(floor).chain(placed(range, text, model, view)).collect()
    }

    fn wants(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Want> {
        let Some(level) = Level::of(self, view, request).filter(|_| request.notes.is_some()) else { return Vec::new() };
        if !level.is_wanted {
            return Vec::new();
        }
        let ranges = Ranges::of(self, view, request);
        let is_done = level.is_over && ranges.made(&level, view).is_some();
        let best = ranges.best(&level).filter(|_| !is_done);
        let missing = best.filter(|range| matches!(ranges.note(range), Some(None)));
        // Where a note could not be made, no call waits for another.
        let is_urgent = level.is_over && !ranges.any_failed();
        missing.map(|range| Want { is_urgent, ..range.want.clone() }).into_iter().collect()
    }

    fn check(&self) -> Result<(), Error> {
        let Fold { over_percent: over, want_percent: want, target_percent: target, step, keep_last, chars, .. } = self;
        let mistakes = [
            (*over > 100, format!("over_percent {over}"), "it is at most 100"),
            (*want > 100 || *target >= 100, format!("want_percent {want}, target_percent {target}"), "they are shares"),
            (*step == 0, "step is 0".to_string(), "say after how many entries a range may end"),
            (*keep_last == 0, "keep_last is 0".to_string(), "the newest exchange always stays: say 1 or more"),
            (*chars == 0, "chars is 0".to_string(), "say how many characters a note has"),
        ];
        let found = mistakes.into_iter().find(|(is_wrong, _, _)| *is_wrong);
        found.map_or(Ok(()), |(_, what, instead)| Err(Error::settings(format!("fold: {what}"), instead)))
    }

    fn unmet(&self, view: &View<'_>, _: &Request<'_>) -> Option<Warning> {
        let room = view.room?;
        let (cost, trigger) = (view.cost(), self.trigger(room));
        let target = share(trigger, self.target_percent);
        (cost > trigger).then_some(Warning::TargetUnmet { cost, target })
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Fold(self.clone()))
    }
}

impl Fold {
    /// How much history there may be, in so much room.
    pub(crate) fn trigger(&self, room: Tokens) -> Tokens {
        let trigger = share(room, self.over_percent);
        self.over.map_or(trigger, |over| over.min(trigger))
    }
}

fn share(of: Tokens, percent: u32) -> Tokens {
    Tokens((u128::from(of.0) * u128::from(percent) / 100) as u64)
}

/// How long the history is, and how long it may be.
struct Level {
    cost: Tokens,
    room: Tokens,
    trigger: Tokens,
    target: Tokens,
    /// Whether there is no page unless something goes.
    must: bool,
    is_over: bool,
    is_wanted: bool,
}

impl Level {
    /// Nothing where not all was read, or what there is must stay as it is.
    fn of(fold: &Fold, view: &View<'_>, request: &Request<'_>) -> Option<Level> {
        let room = view.room?;
        let (cost, trigger) = (view.cost(), fold.trigger(room));
        let target = share(trigger, fold.target_percent);
        let must = cost > room;
        let may = must || (request.policy.apply != Apply::Never && view.spared.is_none());
        let is_wanted = cost > share(trigger, fold.want_percent) || must;
        let level = Level { cost, room, trigger, target, must, is_over: cost > trigger || must, is_wanted };
        (view.window.is_complete && !view.window.is_cut && may).then_some(level)
    }
}

/// The ranges that a note could stand for, shortest first.
struct Ranges<'r, 'a> {
    ends: Ends<'r, 'a>,
    list: Vec<Range>,
    request: &'r Request<'a>,
    /// What a note is taken to cost before there is one.
    note_cost: Tokens,
}

struct Range {
    end: End,
    span: Span,
    words: Digest,
    want: Want,
}

impl<'r, 'a> Ranges<'r, 'a> {
    fn of(fold: &Fold, view: &View<'_>, request: &'r Request<'a>) -> Ranges<'r, 'a> {
        let ends = Ends::new(fold.keep_first_request, view, request);
        let material = of_view(view, request);
        let from = material.earlier.as_ref().map_or(Seq(0), |earlier| earlier.span.last);
        let boundaries = boundaries(&view.window.entries, fold.step);
        let is_one = |end: &End| {
            let is_new = view.items()[end.opening].seq() > from && boundaries.binary_search(&end.seq()).is_ok();
            is_new && end.exchanges >= fold.keep_last
        };
        let found: Vec<End> = ends.list(view).into_iter().filter(is_one).collect();
        let words = material.upto_each(found.iter().map(End::seq));
        let list = found.iter().zip(words).filter_map(|(end, words)| {
            let (span, words) = words?;
            Some(Range { end: *end, span, words, want: Want::of_range(span, words, fold.prompt.clone(), fold.chars) })
        });
        let note_cost = Tokens(u64::from(fold.chars) / CHARS_PER_TOKEN) + view.overhead;
        Ranges { list: list.collect(), ends, request, note_cost }
    }

    /// What came of the want for a range; nothing where nobody makes notes.
    fn note(&self, range: &Range) -> Option<Option<&'a Note>> {
        self.request.notes.map(|notes| notes.get(range.want.key))
    }

    fn any_failed(&self) -> bool {
        self.list.iter().any(|range| matches!(self.note(range), Some(Some(Note::Failed { .. }))))
    }

    /// The longest range that has a note which helps.
    fn made(&self, level: &Level, view: &View<'_>) -> Option<(&Range, &'a Text, &'a Text)> {
        self.list.iter().rev().find_map(|range| {
            let Some(Some(Note::Made { text, model })) = self.note(range) else { return None };
            let after = cost(range, text, view);
            let helps = after <= level.trigger || (level.must && after < level.cost);
            helps.then_some((range, text, model))
        })
    }

    /// The range that a note would help most on: the shortest that reaches the target once history has grown up to its
    /// trigger, so that it is the same until then. Where history is over it and none does, the longest that helps.
    fn best(&self, level: &Level) -> Option<&Range> {
        let can_be = |range: &&Range| !matches!(self.note(range), Some(Some(Note::Failed { .. })));
        let grown = level.trigger - level.cost;
        let after = |range: &Range| range.end.after() + self.note_cost + grown;
        let reaches = self.list.iter().filter(can_be).find(|range| after(range) <= level.target);
        let helps = |range: &&Range| after(range) <= level.trigger || (level.must && after(range) < level.cost);
        reaches.or_else(|| self.list.iter().rev().filter(|_| level.is_over).filter(can_be).find(helps))
    }
}

/// What the page costs with a note in the place of a range.
fn cost(range: &Range, text: &str, view: &View<'_>) -> Tokens {
    range.end.after() + view.count(text) + view.overhead
}

/// The edits that put a note in the place of the words that opened the last exchange of a range.
fn placed(range: &Range, text: &Text, model: &Text, view: &View<'_>) -> Vec<Edit> {
    let item = &view.items()[range.end.opening];
    let at = |part| PartAt { seq: item.seq(), part };
    let why = Reason::Summarized { span: range.span, words: range.words, model: model.clone() };
    let edit = |change, after| {
        let before = if after > Tokens(0) { item.cost() } else { Tokens(0) };
        Edit { change, by: NAME.into(), why: why.clone(), before, after, due: None }
    };
    let note = edit(Change::Replace { at: at(0), text: text.clone() }, view.count(text));
    let others = (1..item.parts().len()).map(|part| edit(Change::Omit(at(part)), Tokens(0)));
    std::iter::once(note).chain(others).collect()
}

/// Where a range may end: where an exchange begins, the first one at or behind every step. It goes by the log alone, so
/// that it is the same for everyone.
fn boundaries(entries: &[&Counted], step: u64) -> Vec<Seq> {
    let opens = |entry: &&&Counted| entry.original().is_user_words() && entry.original().section.is_messages();
    let starts: Vec<Seq> = entries.iter().filter(opens).map(|entry| entry.seq).collect();
    let is_first = |pair: &&[Seq]| pair[1].0 / step > pair[0].0 / step;
    starts.windows(2).filter(is_first).map(|pair| pair[1]).collect()
}

/// Returns what the next note of a reader would be made of, if all of it can be read.
pub(crate) fn material<'a>(request: &Request<'a>) -> Option<Material<'a>> {
    let bound = request.target.window.map_or(Tokens(u64::MAX), |it| Tokens(it.0.saturating_mul(READ_ROOMS_MAX)));
    let view = View::of(request, Decided { reader: request.reader, more: &[] }, bound, Purpose::Plan);
    view.window.is_complete.then(|| of_view(&view, request))
}

/// What the next note would be made of, as far as a view shows it.
fn of_view<'a>(view: &View<'a>, request: &Request<'_>) -> Material<'a> {
    let earlier = earlier(view);
    let from = earlier.as_ref().map_or(Seq(0), |it| it.span.last.next());
    let is_read = |entry: &&&Counted| entry.seq >= from && is_told(entry, request);
    Material { earlier, entries: view.window.entries.iter().filter(is_read).copied().collect() }
}

/// Whether an entry belongs to what a note is made of: it goes by the log alone, so that a range has the same words
/// whenever it is planned.
fn is_told(entry: &Counted, request: &Request<'_>) -> bool {
    let fact = entry.original();
    let is_talk = request.policy.select.trace == TraceRule::All || fact.lane == Lane::Talk;
    is_talk && fact.section.is_messages() && fact.role != Role::System && fact.status == Status::Sent
}

/// The note that stands on the page.
fn earlier(view: &View<'_>) -> Option<Earlier> {
    let shown = view.items().iter().filter(|item| item.is_shown());
    shown.filter_map(note_in).max_by_key(|it| it.span.last)
}

/// The note that an item shows.
pub(super) fn note_in(item: &Item<'_>) -> Option<Earlier> {
    item.changed.iter().find_map(|(_, changed)| match (&changed.why, &changed.text) {
        (Reason::Summarized { span, words, .. }, Some(text)) => {
            Some(Earlier { span: *span, words: *words, text: text.clone() })
        }
        _ => None,
    })
}
