//! Where a floor may lie, and which place is best.
//!
//! Whole exchanges go, oldest first; if the newest exchange alone is too long, its oldest steps go. Steps stay whole.
//! Instructions, pins, the policy's rules, the input, the last user words and the newest item never go; the first
//! request can be kept.

use super::fold::note_in;
use crate::edit::{Answered, Change, Edit, Floor, OpenCall, PartAt, Reason};
use crate::entry::{Call, Role, Section, Seq};
use crate::item::{Item, ResultOf, late_note};
use crate::log::Scope;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The most unanswered calls that a floor remembers.
const OPEN_CALLS_MAX: usize = 1_000;

/// Where history may be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grain {
    /// Before a user's words; within the newest exchange, before any step.
    #[default]
    Exchange,
    /// Before any message or step.
    Message,
}

/// How history is lowered.
pub(super) struct Lower {
    pub(super) by: &'static str,
    pub(super) aim: Aim,
    pub(super) grain: Grain,
    pub(super) keep_first_request: bool,
    /// How much must go for it to be worth while; what must go needs no minimum.
    pub(super) minimum: Tokens,
}

/// What a floor is to reach.
#[derive(Clone, Copy)]
pub(super) enum Aim {
    /// So many tokens.
    Tokens {
        target: Tokens,
        room: Tokens,
        /// Whether there is no page without it.
        must: bool,
    },
    /// So many messages.
    Messages(usize),
}

/// Proposes the floor that reaches the aim, if there is one.
pub(super) fn lower(how: &Lower, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
    let first = how.keep_first_request.then(|| first_request(view, request)).flatten();
    let must = !matches!(how.aim, Aim::Tokens { must: false, .. });
    let place = |first, rules| {
        let keep = Keep { first, rules, notes: rules, request };
        best(&keep, how, view).map(|cut| (cut, keep))
    };
    // The first request goes only if nothing fits with it, and then messages that a rule would keep, and notes.
    let without_first = || must.then(|| place(None, true)).flatten();
    let without_rules = || must.then(|| place(None, false)).flatten();
    let found = place(first, true).or_else(without_first).or_else(without_rules);
    let Some((cut, keep)) = found else { return Vec::new() };
    let cost = view.cost();
    let gain = cost - cut.after;
    let is_idle = !view.is_cut_short() && gain == Tokens(0);
    if is_idle || !(must || gain >= how.minimum) {
        return Vec::new();
    }
    let why = match how.aim {
        Aim::Tokens { target, room, .. } => Reason::TooLong { cost, room, target },
        Aim::Messages(keep) => Reason::NotNewest { keep },
    };
    let change = Change::Floor(keep.floor(cut, view));
    vec![Edit { change, by: how.by.into(), why, before: cost, after: cut.after, due: None }]
}

/// A place where whole exchanges end.
#[derive(Clone, Copy)]
pub(super) struct End {
    cut: Cut,
    /// The user's words that opened the exchange before it.
    pub(super) opening: usize,
    /// How many exchanges begin there or behind it.
    pub(super) exchanges: usize,
}

impl End {
    /// The first entry behind it.
    pub(super) fn seq(&self) -> Seq {
        self.cut.seq
    }

    /// What the page costs without all that may go before it.
    pub(super) fn after(&self) -> Tokens {
        self.cut.after
    }
}

/// Where exchanges end and something else could stand for all of them, in place of the words that opened the last:
/// no call is open there, and no result stands behind it whose call lies before.
pub(super) struct Ends<'r, 'a> {
    keep: Keep<'r, 'a>,
}

impl<'r, 'a> Ends<'r, 'a> {
    pub(super) fn new(keep_first_request: bool, view: &View<'_>, request: &'r Request<'a>) -> Ends<'r, 'a> {
        let first = keep_first_request.then(|| first_request(view, request)).flatten();
        Ends { keep: Keep { first, rules: true, notes: false, request } }
    }

    /// All of them, oldest first.
    pub(super) fn list(&self, view: &View<'_>) -> Vec<End> {
        let cuts = cuts(&self.keep, Grain::Exchange, view);
        let cuts: Vec<Cut> = cuts.into_iter().filter(|cut| cut.is_exchange && !cut.is_end).collect();
        let items = view.items();
        let request = self.keep.request;
        let decided = Decided { reader: request.reader, more: &[] };
        // A call that was shown unanswered stays so, and a result that comes after all is a late note.
        let is_open = |item: &Item<'_>| item.unanswered().next().is_some() && request.reader.age(item.seq()) == 0;
        let open = items.iter().position(|item| item.is_shown() && !self.keep.stays(item) && is_open(item));
        let is_free = |at: usize| {
            let item: &Item<'_> = &items[at];
            let is_edited = item.changed.iter().any(|(_, changed)| changed.is_edit);
            !is_edited && !self.keep.stays(item) && !decided.touched(PartAt { seq: item.seq(), part: 0 })
        };
        let pairs = cuts.iter().zip(cuts.iter().skip(1)).enumerate();
        let ends = pairs.filter(|(_, (_, cut))| cut.is_clear && open.is_none_or(|open| open >= cut.at));
        let ends = ends.filter(|(_, (before, _))| is_free(before.at));
        ends.map(|(nth, (before, cut))| End { cut: *cut, opening: before.at, exchanges: cuts.len() - nth - 1 })
            .collect()
    }

    /// The floor at one of them.
    pub(super) fn floor(&self, end: &End, view: &View<'_>) -> Floor {
        self.keep.floor(Cut { opening: Some(end.opening), ..end.cut }, view)
    }
}

fn first_request(view: &View<'_>, request: &Request<'_>) -> Option<Seq> {
    let from = view.window.edge.unwrap_or_default();
    let users = Scope { section: Some(Section::default()), lane: None, role: Some(Role::User) };
    request.log.first_in(&users, from).map(|entry| entry.seq)
}

/// What stays wherever the floor is.
struct Keep<'r, 'a> {
    first: Option<Seq>,
    /// Whether the policy's rules are heeded.
    rules: bool,
    /// Whether a model's note on what lies below stays.
    notes: bool,
    request: &'r Request<'a>,
}

impl Keep<'_, '_> {
    fn stays(&self, item: &Item<'_>) -> bool {
        !item.is_main()
            || item.keep().is_some()
            || Some(item.seq()) == self.first
            || (self.notes && item.is_shown() && note_in(item).is_some())
            || (self.rules && item.is_shown() && self.request.policy.pins.keeps(item).is_some())
    }

    fn floor(&self, cut: Cut, view: &View<'_>) -> Floor {
        let below = view.items()[..cut.at].iter().enumerate();
        let (kept, gone): (Vec<_>, Vec<_>) = below.partition(|(at, item)| cut.opening == Some(*at) || self.stays(item));
        let [kept, gone] = [kept, gone].map(|items| items.into_iter().map(|(_, item)| item).collect::<Vec<_>>());
        // Instructions and other sections are read anyway.
        let is_named = |item: &&Item<'_>| item.is_shown() && item.is_main() && item.role() != Role::System;
        let named = kept.iter().copied().filter(is_named);
        let mut keeps: Vec<Seq> = named.flat_map(|item| item.seqs()).filter(|&seq| seq < cut.seq).collect();
        keeps.sort_unstable();
        keeps.dedup();
        Floor { at: cut.seq, keeps, open: open_calls(cut, &kept, &gone, view) }
    }
}

/// The calls below a cut whose results would otherwise look like answers to nothing.
fn open_calls(cut: Cut, kept: &[&Item<'_>], gone: &[&Item<'_>], view: &View<'_>) -> Vec<OpenCall> {
    let was_open = view.window.floor.into_iter().flat_map(|floor| floor.open.iter().cloned());
    let late = kept.iter().copied().chain(&view.items()[cut.at..]).filter_map(Item::late_call).cloned();
    let open = |call: &Call| OpenCall { call: call.id.clone(), tool: Some(call.name.clone()), answered: None };
    let unanswered = gone.iter().flat_map(|item| item.unanswered()).map(open);
    let above = gone.iter().flat_map(|item| item.results()).filter(|it| it.at.seq >= cut.seq).map(|it| open(it.call));
    let unread = view.unread_calls.iter().cloned();
    // A late note that goes was told of, and so was the answer before it: the same once more is a duplicate.
    let told = gone.iter().filter_map(|item| {
        let answered = Some(Answered { seq: item.seq(), digest: item.entry.digest });
        let open = item.late_call()?;
        Some([open.clone(), OpenCall { answered, ..open.clone() }])
    });
    let told = told.flatten();
    let mut seen = HashSet::new();
    let all = was_open.chain(unread).chain(told).chain(late).chain(unanswered).chain(above);
    let mut open: Vec<OpenCall> = all.filter(|call| seen.insert(call.clone())).collect();
    open.drain(..open.len().saturating_sub(OPEN_CALLS_MAX));
    open
}

/// A place where the floor may lie.
#[derive(Clone, Copy)]
struct Cut {
    /// The first item above it.
    at: usize,
    seq: Seq,
    /// What the page costs then.
    after: Tokens,
    /// How many messages are left, instructions and pins aside.
    messages: usize,
    /// Whether a whole exchange begins there.
    is_exchange: bool,
    /// Whether it leaves nothing that may go.
    is_end: bool,
    /// The user's words that opened the exchange it cuts through; answers don't stay without their question.
    opening: Option<usize>,
    /// Whether no item reaches over it: no result stands above it whose call lies below.
    is_clear: bool,
}

/// The places where a floor may lie, oldest first.
fn cuts(keep: &Keep<'_, '_>, grain: Grain, view: &View<'_>) -> Vec<Cut> {
    let items = view.items();
    let opens = |item: &Item<'_>| item.is_shown() && item.is_main() && item.opens_exchange();
    let last_exchange = items.iter().rposition(opens).unwrap_or(0);
    let stays: Vec<bool> = items.iter().map(|item| keep.stays(item)).collect();
    let mut messages: usize = items.iter().filter(|item| item.is_counted()).map(Item::messages).sum();
    let (mut above, mut kept, mut reach) = (view.cost(), Tokens(0), None);
    let mut cuts = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let is_exchange = opens(item) || grain == Grain::Message;
        if item.is_main() && item.seq() >= view.lowest && (is_exchange || at > last_exchange) {
            let is_clear = reach < Some(item.seq());
            let opening =
                (!is_exchange && opens(&items[last_exchange]) && !stays[last_exchange]).then_some(last_exchange);
            let after = above + kept + opening.map_or(Tokens(0), |at| items[at].cost());
            let seq = item.seq();
            cuts.push(Cut { at, seq, after, messages, is_exchange, is_end: false, opening, is_clear });
        }
        above -= item.cost();
        if stays[at] {
            kept += item.cost();
        } else {
            reach = reach.max(Some(item.last_seq()));
            messages -= if item.is_counted() { item.messages() } else { 0 };
        }
    }
    let (at, seq) = (items.len(), view.window.log.head().map(Seq::next).unwrap_or_default());
    let after = above + kept;
    cuts.push(Cut { at, seq, after, messages, is_exchange: true, is_end: true, opening: None, is_clear: true });
    cuts
}

/// What results cost that stand above a cut while their calls lie below: they become late notes.
fn notes(cut: &Cut, keep: &Keep<'_, '_>, view: &View<'_>) -> Tokens {
    let gone = view.items()[..cut.at].iter().filter(|item| item.is_shown() && !keep.stays(item));
    let over = gone.flat_map(Item::results).filter(|it| it.at.seq >= cut.seq);
    let note = |it: ResultOf<'_>| {
        let text = if it.is_changed { it.cost } else { view.count(&late_note(it.result, Some(&it.call.name))) };
        text + view.overhead
    };
    over.map(note).sum()
}

/// The place for the floor: a clear one if there is one; else one where late notes tell what reaches over it.
fn best(keep: &Keep<'_, '_>, how: &Lower, view: &View<'_>) -> Option<Cut> {
    let all = cuts(keep, how.grain, view);
    let clear: Vec<Cut> = all.iter().copied().filter(|cut| cut.is_clear).collect();
    pick(&clear, how.aim).or_else(|| {
        let must = !matches!(how.aim, Aim::Tokens { must: false, .. });
        let with_notes = |cut: Cut| Cut { after: cut.after + notes(&cut, keep, view), ..cut };
        let unclear: Vec<Cut> = all.into_iter().filter(|_| must).map(with_notes).collect();
        pick(&unclear, how.aim)
    })
}

/// The oldest whole exchange that reaches the aim, else the oldest step. If there is no page otherwise: the deepest cut
/// that leaves something, and last of all the one that leaves nothing.
fn pick(cuts: &[Cut], aim: Aim) -> Option<Cut> {
    let reaches = |cut: &&Cut| match aim {
        Aim::Tokens { target, .. } => cut.after <= target,
        Aim::Messages(messages) => cut.messages <= messages,
    };
    let fits = |cut: &&Cut| match aim {
        Aim::Tokens { room, must, .. } => must && cut.after <= room,
        Aim::Messages(_) => true,
    };
    let some = || cuts.iter().filter(|cut| !cut.is_end);
    let exchange = some().filter(reaches).find(|cut| cut.is_exchange);
    let step = || some().filter(reaches).find(|cut| !cut.is_exchange);
    let can_stay_over = matches!(aim, Aim::Tokens { .. });
    let deepest = || some().filter(|cut| can_stay_over && fits(cut)).min_by_key(|cut| (cut.after, cut.at));
    let end = || cuts.iter().filter(|cut| cut.is_end).find(fits);
    exchange.or_else(step).or_else(deepest).or_else(end).copied()
}
