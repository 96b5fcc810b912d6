//! Fit window: the oldest exchanges go below the floor.
//!
//! When the history has grown past the trigger, whole exchanges go, oldest first, until it is down at the target; if
//! the newest exchange alone is too long, its oldest steps go. Steps stay whole. Instructions, pins, the input, the
//! last user words and the newest item never go; the first request can be kept. The target lies well below the
//! trigger, so that the next turns break nothing.

use super::Reduce;
use crate::edit::{Change, Edit, Floor, OpenCall, Reason};
use crate::entry::{Call, Role, Seq};
use crate::error::Error;
use crate::item::{Item, ResultOf, late_note};
use crate::receipt::Warning;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The most unanswered calls that a floor remembers.
const OPEN_CALLS_MAX: usize = 1_000;

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FitWindow {
    /// It acts when history takes more than this share of its room.
    pub trigger_percent: u32,
    /// It goes down to this share.
    pub target_percent: u32,
    /// It acts only if this much can go; a page that doesn't fit needs no minimum.
    pub minimum: Tokens,
    /// Whether the first request stays.
    pub keep_first_request: bool,
}

impl Default for FitWindow {
    fn default() -> FitWindow {
        FitWindow { trigger_percent: 100, target_percent: 60, minimum: Tokens(1_000), keep_first_request: true }
    }
}

impl Reduce for FitWindow {
    fn name(&self) -> &'static str {
        "fit-window"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let Ok(room) = request.budget().map(|budget| budget.room()) else { return Vec::new() };
        let (cost, target) = (view.cost(), share(room, self.target_percent));
        let must = cost > room || !view.window.is_complete;
        if cost <= share(room, self.trigger_percent) && !must {
            return Vec::new();
        }
        let first = self.first_request(view, request);
        let aim = Aim { target, room, must };
        let cut = |first| best(first, view, request, aim).map(|cut| (cut, first));
        // The first request goes only if nothing fits with it.
        let without_first = || must.then(|| cut(None)).flatten();
        let Some((cut, first)) = cut(first).or_else(without_first) else { return Vec::new() };
        let gain = cost - cut.after;
        let is_worth_it = must || gain >= self.minimum;
        let is_idle = view.window.is_complete && gain == Tokens(0);
        if !is_worth_it || is_idle {
            return Vec::new();
        }
        let why = Reason::TooLong { cost, room, target };
        let change = Change::Floor(floor(cut, first, view));
        vec![Edit { change, by: self.name().into(), why, before: cost, after: cut.after }]
    }

    fn check(&self) -> Result<(), Error> {
        let (trigger, target) = (self.trigger_percent, self.target_percent);
        if target < trigger && trigger <= 100 {
            return Ok(());
        }
        let what = format!("fit_window: trigger {trigger} %, target {target} %");
        Err(Error::settings(what, "the target must lie below the trigger, and the trigger is at most 100"))
    }

    fn unmet(&self, view: &View<'_>, request: &Request<'_>) -> Option<Warning> {
        let room = request.budget().ok()?.room();
        let cost = view.cost();
        let target = share(room, self.target_percent);
        (cost > share(room, self.trigger_percent)).then_some(Warning::TargetUnmet { cost, target })
    }
}

impl FitWindow {
    /// Where the first request stands, if it is to stay.
    fn first_request(&self, view: &View<'_>, request: &Request<'_>) -> Option<Seq> {
        let from = view.window.edge.unwrap_or_default();
        let first = request.log.first_by(Role::User, from).map(|entry| entry.seq);
        first.filter(|_| self.keep_first_request)
    }
}

/// Whether an item stays wherever the floor is.
fn stays(item: &Item<'_>, first: Option<Seq>) -> bool {
    item.keep().is_some() || Some(item.seq()) == first
}

fn floor(cut: Cut, first: Option<Seq>, view: &View<'_>) -> Floor {
    let below = &view.items()[..cut.at];
    let (kept, gone): (Vec<_>, Vec<_>) = below.iter().partition(|item| stays(item, first));
    // Instructions are read from below anyway.
    let named = kept.iter().copied().filter(|item| item.is_shown() && item.role() != Role::System);
    let mut keeps: Vec<Seq> = named.flat_map(|item| item.seqs()).filter(|&seq| seq < cut.seq).collect();
    keeps.sort_unstable();
    keeps.dedup();
    let was_open = view.window.floor.into_iter().flat_map(|floor| floor.open.iter().cloned());
    // A late note that stays must not look like an answer to nothing.
    let noted = kept.into_iter().chain(&view.items()[cut.at..]).filter_map(Item::late_call).cloned();
    let open = |call: &Call| OpenCall { call: call.id.clone(), tool: Some(call.name.clone()), answered: None };
    let unanswered = gone.iter().flat_map(|item| item.unanswered()).map(open);
    let above = gone.iter().flat_map(|item| item.results()).filter(|it| it.at.seq >= cut.seq).map(|it| open(it.call));
    let unread = view.unread_calls.iter().cloned();
    let mut seen = HashSet::new();
    let all = was_open.chain(unread).chain(noted).chain(unanswered).chain(above);
    let open = all.filter(|call| seen.insert(call.clone()));
    let mut open: Vec<OpenCall> = open.collect();
    open.drain(..open.len().saturating_sub(OPEN_CALLS_MAX));
    Floor { at: cut.seq, keeps, open }
}

fn share(room: Tokens, percent: u32) -> Tokens {
    Tokens((u128::from(room.0) * u128::from(percent) / 100) as u64)
}

/// A place where the floor may lie.
#[derive(Clone, Copy)]
struct Cut {
    /// The first item above it.
    at: usize,
    seq: Seq,
    /// What the page costs then.
    after: Tokens,
    /// Whether a whole exchange begins there.
    is_exchange: bool,
    /// Whether no item reaches over it: no result stands above it whose call lies below.
    is_clear: bool,
}

/// The places where a floor may lie, oldest first.
fn cuts(first: Option<Seq>, view: &View<'_>, request: &Request<'_>) -> Vec<Cut> {
    let items = view.items();
    let last_exchange = items.iter().rposition(|item| item.is_shown() && item.opens_exchange()).unwrap_or(0);
    let (mut above, mut kept, mut reach) = (view.cost(), Tokens(0), None);
    let mut cuts = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let is_exchange = item.is_shown() && item.opens_exchange();
        if item.seq() >= view.window.start && (is_exchange || at > last_exchange) {
            let is_clear = reach < Some(item.seq());
            cuts.push(Cut { at, seq: item.seq(), after: above + kept, is_exchange, is_clear });
        }
        above -= item.cost();
        if stays(item, first) {
            kept += item.cost();
        } else {
            reach = reach.max(Some(item.last_seq()));
        }
    }
    let seq = request.log.head().map(Seq::next).unwrap_or_default();
    cuts.push(Cut { at: items.len(), seq, after: above + kept, is_exchange: true, is_clear: true });
    cuts
}

/// What results cost that stand above a cut while their calls lie below: they become late notes.
fn notes(cut: &Cut, first: Option<Seq>, view: &View<'_>) -> Tokens {
    let gone = view.items()[..cut.at].iter().filter(|item| item.is_shown() && !stays(item, first));
    let over = gone.flat_map(Item::results).filter(|it| it.at.seq >= cut.seq);
    let note = |it: ResultOf<'_>| {
        let text = if it.is_changed { it.cost } else { view.count(&late_note(it.result, Some(&it.call.name))) };
        text + view.overhead
    };
    over.map(note).sum()
}

/// The place for the floor: a clear one if there is one; else one where late notes tell what reaches over it.
fn best(first: Option<Seq>, view: &View<'_>, request: &Request<'_>, aim: Aim) -> Option<Cut> {
    let all = cuts(first, view, request);
    let clear: Vec<Cut> = all.iter().copied().filter(|cut| cut.is_clear).collect();
    pick(&clear, aim).or_else(|| {
        let with_notes = |cut: Cut| Cut { after: cut.after + notes(&cut, first, view), ..cut };
        let unclear: Vec<Cut> = all.into_iter().filter(|_| aim.must).map(with_notes).collect();
        pick(&unclear, aim)
    })
}

/// What a floor is to reach.
#[derive(Clone, Copy)]
struct Aim {
    target: Tokens,
    room: Tokens,
    /// Whether the page has none without it.
    must: bool,
}

/// The oldest whole exchange that reaches the target, else the oldest step; what can't reach it is cut as deep as
/// possible, but only if there is no page otherwise, and only if that makes it fit.
fn pick(cuts: &[Cut], aim: Aim) -> Option<Cut> {
    let reaching = || cuts.iter().filter(|cut| cut.after <= aim.target);
    let exchange = reaching().find(|cut| cut.is_exchange && cut.at > 0);
    let last = cuts.last().map_or(0, |cut| cut.at);
    match (exchange, reaching().find(|cut| !cut.is_exchange)) {
        // Dropping every exchange is worse than keeping the newest steps of the last one.
        (Some(exchange), Some(step)) if exchange.at == last => Some(*step),
        (Some(exchange), _) => Some(*exchange),
        (None, Some(step)) => Some(*step),
        (None, None) => {
            let deepest = cuts.iter().min_by_key(|cut| (cut.after, cut.at))?;
            (aim.must && deepest.after <= aim.room).then_some(*deepest)
        }
    }
}
