//! Identical: a tool said the same once more; one of the two is enough.
//!
//! A result that the model has not seen yet, and that stands whole on the page already, comes as a pointer back to the
//! earlier one. That breaks no cache, so it is done at once. The earlier one must not lie too far back, or a floor
//! might soon take it away. Where both have been seen, or the earlier one lies too far back, the newest stays and the
//! earlier ones become pointers to it, once the model has seen it.
//!
//! A pointer never leads to nothing. It tells by its own handle how its text is asked for, which stays true whatever
//! becomes of the other result. And as long as a pointer back is young, the result it names is as good as new: no pass
//! reduces that one before the pointer is as old as the result would have had to be, unless the page doesn't fit.
//!
//! Results are the same if their pieces are, and whether they failed. It must not run where the place of a repeated text
//! matters.

use super::Reduce;
use super::stub::{MINIMUM, Stub, What, Whole, by_run, whole, whole_in};
use crate::edit::{Change, Edit, PartAt, Reason, Turn};
use crate::entry::{Piece, Seq, Span};
use crate::item::{Changed, Item};
use crate::policy::Pass;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NAME: &str = "identical";
/// How far back a pointer may lead, as a share of what history may grow to: a floor usually leaves more than that.
const REACH_PERCENT: u64 = 50;
/// How much of that history may take at most, so that no floor comes with the same call.
const CALM_PERCENT: u64 = 90;

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identical {
    /// Results that cost less are left alone.
    pub minimum: Tokens,
}

impl Default for Identical {
    fn default() -> Identical {
        Identical { minimum: MINIMUM }
    }
}

impl Reduce for Identical {
    fn name(&self) -> &str {
        NAME
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let mut results = alike(view, self.minimum);
        // Where a single one is left there is nothing to compare, nor to reach for.
        if results.len() < 2 {
            return Vec::new();
        }
        let reach = Reach::of(view, request);
        let groups = by_run(&mut results).flat_map(|results| twins(results, self.minimum, view.cut));
        let mut edits: Vec<Edit> = groups.flat_map(|group| pointers(&group, &reach, view, request)).collect();
        edits.sort_by_key(|edit| edit.change.seq());
        edits
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Identical(self.clone()))
    }
}

/// The results that cost as much as one that may change: what costs something else is something else, and needs no look.
fn alike<'v, 'a>(view: &'v View<'a>, minimum: Tokens) -> Vec<Whole<'v, 'a>> {
    if view.cut == 0 {
        return whole(view);
    }
    // Where the past waits, these are the newest few.
    let may_change = (view.cut..view.items().len()).flat_map(|nth| whole_in(view, nth));
    let mut costs: Vec<Tokens> = may_change.map(|it| it.cost).filter(|cost| *cost >= minimum).collect();
    costs.sort_unstable();
    if costs.is_empty() {
        return Vec::new();
    }
    let all = (0..view.items().len()).flat_map(|nth| whole_in(view, nth));
    all.filter(|it| costs.binary_search(&it.cost).is_ok()).collect()
}

/// The results that say the same, as far as there are several and one of them may change, each group in the order of the
/// page. The items from `cut` on may.
fn twins<'v, 'a>(results: &[Whole<'v, 'a>], minimum: Tokens, cut: usize) -> Vec<Vec<Whole<'v, 'a>>> {
    let sizes = results.iter().enumerate().map(|(at, it)| (it.cost, bytes(it), at));
    let mut sizes: Vec<(Tokens, usize, usize)> = sizes.collect();
    sizes.sort_unstable();
    let may_change = |(cost, _, at): &(Tokens, usize, usize)| *cost >= minimum && results[*at].nth >= cut;
    let mut twins = Vec::new();
    for alike in sizes.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
        let is_same = |(_, _, one): &(Tokens, usize, usize), (_, _, other): &(Tokens, usize, usize)| {
            content(&results[*one]).eq(content(&results[*other]))
        };
        // Most are alone; and of two, texts that differ mostly do so at once.
        if matches!(alike, [_])
            || matches!(alike, [one, other] if !is_same(one, other))
            || !alike.iter().any(may_change)
        {
            continue;
        }
        let mut alike: Vec<&Whole<'v, 'a>> = alike.iter().map(|(_, _, at)| &results[*at]).collect();
        alike.sort_by(|one, other| content(one).cmp(content(other)));
        let groups = alike.chunk_by(|one, next| content(one).eq(content(next)));
        twins.extend(groups.filter(|group| group.len() > 1).map(|group| group.iter().map(|it| **it).collect()));
    }
    twins
}

/// How long a result is: one that says the same is as long.
fn bytes(of: &Whole<'_, '_>) -> usize {
    let length = |piece: &Piece| match piece {
        Piece::Text { text } => text.len(),
        Piece::Image(media) => media.url.len(),
    };
    of.result().content.iter().map(length).sum()
}

/// What a result says, to be compared: whether it failed, and its pieces.
fn content<'a>(of: &Whole<'_, 'a>) -> impl Iterator<Item = (bool, &'a str)> {
    let result = of.result();
    let said = result.content.iter().map(|piece| match piece {
        Piece::Text { text } => (true, &**text),
        Piece::Image(media) => (false, &*media.url),
    });
    std::iter::once((result.is_error, "")).chain(said)
}

/// The edits within one group of results that say the same.
fn pointers(group: &[Whole<'_, '_>], reach: &Reach<'_>, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
    let (mut edits, mut whole): (Vec<Edit>, Vec<&Whole<'_, '_>>) = (Vec::new(), Vec::new());
    for it in group {
        let before = whole.last().filter(|before| reach.holds(before) && it.may_come_changed(request));
        let back = before.and_then(|before| {
            let of = before.entry.seq;
            let (what, why) = (What("the same as ", Some((of, " above"))), Reason::Duplicate { of });
            it.stub(Stub { by: NAME.into(), why, what, head: 0, due: None }, view)
        });
        match back {
            Some(edit) => edits.push(edit),
            None => whole.push(it),
        }
    }
    let Some((newest, earlier)) = whole.split_last().filter(|(newest, _)| request.reader.has_seen(newest.entry.seq))
    else {
        return edits;
    };
    let (of, due) = (newest.entry.seq, request.reader.turn_at_age(newest.entry.seq, 1));
    let forward = earlier.iter().filter(|it| it.may_change(request)).filter_map(|it| {
        let (what, why) = (What("the same as ", Some((of, " below"))), Reason::Duplicate { of });
        it.stub(Stub { by: NAME.into(), why, what, head: 0, due: Some(due) }, view)
    });
    edits.extend(forward);
    edits
}

/// How far back a pointer may lead.
///
/// A pointer and what it names must stand on one page at least once, so none is made while a floor may come, or has
/// come before the same call. To plan the same twice, what this call's decisions have saved counts as still there.
struct Reach<'r> {
    request: &'r Request<'r>,
    most: Option<Tokens>,
}

impl<'r> Reach<'r> {
    fn of(view: &View<'_>, request: &'r Request<'r>) -> Reach<'r> {
        let (turn, decisions) = (request.reader.turn(), request.reader.decisions());
        let fresh: Vec<&Edit> = decisions.iter().rev().take_while(|it| it.turn == turn).map(|it| &it.edit).collect();
        let has_floor = fresh.iter().any(|edit| matches!(edit.change, Change::Floor(_)));
        let reduces = |change: &Change| matches!(change, Change::Hide(_) | Change::Omit(_) | Change::Replace { .. });
        let reducing = fresh.iter().filter(|edit| reduces(&edit.change));
        let saved: Tokens = reducing.map(|edit| edit.before - edit.after).sum();
        let limit = floor_limit(view, request).filter(|limit| {
            let is_calm = view.cost() + saved <= Tokens(limit.0 / 100 * CALM_PERCENT);
            is_calm && !has_floor
        });
        Reach { request, most: limit.map(|limit| Tokens(limit.0 / 100 * REACH_PERCENT)) }
    }

    /// Whether not too much was said since.
    fn holds(&self, it: &Whole<'_, '_>) -> bool {
        let span = Span { first: it.entry.seq.next(), last: self.request.log.head().unwrap_or_default() };
        let since = if span.first <= span.last { self.request.log.total(span).tokens } else { Tokens(0) };
        self.most.is_some_and(|most| since <= most)
    }
}

/// How much history there may be before a floor comes; `None` where one may come with every message.
fn floor_limit(view: &View<'_>, request: &Request<'_>) -> Option<Tokens> {
    let room = view.room?;
    request.policy.reduce.iter().try_fold(room, |limit, step| match step.pass() {
        Pass::FitWindow(pass) => Some(limit.min(Tokens(room.0 / 100 * u64::from(pass.trigger_percent)))),
        Pass::Fold(pass) => Some(limit.min(pass.trigger(room))),
        Pass::TokenLimit(pass) => Some(limit.min(pass.tokens)),
        Pass::Recent(_) => None,
        _ => Some(limit),
    })
}

/// Lets edits wait that would take away what a pointer back on the page still names. One that waits for an age waits
/// until the pointer has reached it too, and any other as long as the pointer stands; but what came after the pointer
/// may stand in for both.
pub(crate) fn hold(edits: &mut Vec<Edit>, view: &View<'_>, request: &Request<'_>) {
    let named = named(view);
    if named.is_empty() {
        return;
    }
    edits.retain_mut(|edit| {
        let Some((seq, pointer)) = named_by(edit, &named) else { return true };
        if let Reason::Duplicate { of: by } | Reason::Superseded { by } | Reason::Similar { to: by, .. } = edit.why {
            return by > pointer;
        }
        let Some(due) = &mut edit.due else { return false };
        let since = |seq| request.reader.since(PartAt { seq, part: 0 }).0;
        *due = Turn(due.0.saturating_sub(since(seq)) + since(pointer)).max(*due);
        *due <= request.reader.turn()
    });
}

/// Whether a pointer back on the page names a result.
pub(crate) fn names_any(view: &View<'_>) -> bool {
    pointers_back(view).next().is_some()
}

/// The results that a pointer back on the page names, each with the newest pointer.
fn named(view: &View<'_>) -> BTreeMap<Seq, Seq> {
    let mut named: BTreeMap<Seq, Seq> = BTreeMap::new();
    for (of, pointer) in pointers_back(view) {
        let newest = named.entry(of).or_insert(pointer);
        *newest = pointer.max(*newest);
    }
    named
}

/// The pointers back on the page: what each names, and where it stands.
fn pointers_back(view: &View<'_>) -> impl Iterator<Item = (Seq, Seq)> {
    let shown = view.items().iter().filter(|item| item.is_shown());
    shown.flat_map(changed_results).filter(|(_, changed)| changed.by == NAME).filter_map(|(pointer, changed)| {
        match changed.why {
            Reason::Duplicate { of } if of < pointer => Some((of, pointer)),
            _ => None,
        }
    })
}

fn changed_results<'v>(item: &'v Item<'_>) -> impl Iterator<Item = (Seq, &'v Changed)> {
    item.answers.iter().filter_map(|answer| Some((answer.result?.seq, answer.changed.as_deref()?)))
}

/// What an edit would take away of what is named, and the pointer that names it.
fn named_by(edit: &Edit, named: &BTreeMap<Seq, Seq>) -> Option<(Seq, Seq)> {
    let span = match &edit.change {
        Change::Replace { at, .. } | Change::Omit(at) => Span::one(at.seq),
        Change::Hide(span) => *span,
        _ => return None,
    };
    let within = named.range(span.first..=span.last.max(span.first));
    within.max_by_key(|(_, pointer)| **pointer).map(|(seq, pointer)| (*seq, *pointer))
}
