//! Fit window: the oldest exchanges go below the floor.
//!
//! When the history has grown past the trigger, whole exchanges go, oldest first, until it is down at the target; if
//! the newest exchange alone is too long, its oldest steps go. Steps stay whole. Instructions, pins, the input, the
//! last user words and the newest item never go; the first request can be kept. The target lies well below the
//! trigger, so that the next turns break nothing.

use super::Reduce;
use crate::edit::{Change, Edit, Floor, Reason};
use crate::entry::{CallId, Role, Seq};
use crate::error::Error;
use crate::item::Item;
use crate::receipt::Warning;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

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
        let Some(cut) = Cuts::of(self, view, request).best(target, room, must) else { return Vec::new() };
        let gain = cost - cut.after;
        let is_worth_it = must || gain >= self.minimum;
        let is_idle = view.window.is_complete && gain == Tokens(0);
        if !is_worth_it || is_idle {
            return Vec::new();
        }
        let why = Reason::TooLong { cost, room, target };
        let change = Change::Floor(self.floor(cut, view, request));
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
    /// Whether an item stays wherever the floor is.
    fn protects(&self, item: &Item<'_>, first: Option<Seq>) -> bool {
        item.keep().is_some() || (self.keep_first_request && Some(item.seq()) == first)
    }

    fn floor(&self, cut: Cut, view: &View<'_>, request: &Request<'_>) -> Floor {
        let first = first_request(view, request);
        let below = &view.items()[..cut.at];
        // Instructions are read from below anyway.
        let kept = below.iter().filter(|it| it.is_shown() && it.role() != Role::System && self.protects(it, first));
        let mut keeps: Vec<Seq> = kept.flat_map(Item::seqs).filter(|&seq| seq < cut.seq).collect();
        keeps.sort_unstable();
        keeps.dedup();
        let was_open = view.window.floor.into_iter().flat_map(|floor| floor.open.iter().cloned());
        let gone = below.iter().filter(|item| !self.protects(item, first));
        let unanswered = gone.flat_map(Item::unanswered).cloned();
        // A late note that stays must not look like an answer to nothing.
        let noted = below.iter().filter(|item| self.protects(item, first)).filter_map(Item::late_call).cloned();
        let unread = view.unread_calls.iter().cloned();
        let mut open: Vec<CallId> = was_open.chain(unread).chain(noted).chain(unanswered).collect();
        open.drain(..open.len().saturating_sub(OPEN_CALLS_MAX));
        Floor { at: cut.seq, keeps, open }
    }
}

fn share(room: Tokens, percent: u32) -> Tokens {
    Tokens((u128::from(room.0) * u128::from(percent) / 100) as u64)
}

fn first_request(view: &View<'_>, request: &Request<'_>) -> Option<Seq> {
    let from = view.window.edge.unwrap_or_default();
    request.log.first_by(Role::User, from).map(|entry| entry.seq)
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
}

/// The places where a floor may lie, oldest first.
struct Cuts(Vec<Cut>);

impl Cuts {
    fn of(pass: &FitWindow, view: &View<'_>, request: &Request<'_>) -> Cuts {
        let items = view.items();
        let first = first_request(view, request);
        let last_exchange = items.iter().rposition(|item| item.is_shown() && item.opens_exchange()).unwrap_or(0);
        let (mut above, mut kept, mut reach) = (view.cost(), Tokens(0), None);
        let mut cuts = Vec::new();
        for (at, item) in items.iter().enumerate() {
            // No item may reach over the floor: its results would stand above it without their call.
            let is_clear = reach < Some(item.seq()) && item.seq() >= view.window.start;
            let is_exchange = item.is_shown() && item.opens_exchange();
            if is_clear && (is_exchange || at > last_exchange) {
                cuts.push(Cut { at, seq: item.seq(), after: above + kept, is_exchange });
            }
            above -= item.cost();
            if pass.protects(item, first) {
                kept += item.cost();
            } else {
                reach = reach.max(Some(item.last_seq()));
            }
        }
        let end = request.log.head().map(Seq::next).unwrap_or_default();
        cuts.push(Cut { at: items.len(), seq: end, after: above + kept, is_exchange: true });
        Cuts(cuts)
    }

    /// The oldest whole exchange that reaches the target, else the oldest step; what can't reach it is cut as deep as
    /// possible, but only if the page doesn't fit otherwise, and only if that makes it fit.
    fn best(&self, target: Tokens, room: Tokens, must: bool) -> Option<Cut> {
        let reaching = || self.0.iter().filter(|cut| cut.after <= target);
        let exchange = reaching().find(|cut| cut.is_exchange && cut.at > 0);
        let last = self.0.last().map_or(0, |cut| cut.at);
        match (exchange, reaching().find(|cut| !cut.is_exchange)) {
            // Dropping every exchange is worse than keeping the newest steps of the last one.
            (Some(exchange), Some(step)) if exchange.at == last => Some(*step),
            (Some(exchange), _) => Some(*exchange),
            (None, Some(step)) => Some(*step),
            (None, None) => {
                let deepest = self.0.iter().min_by_key(|cut| (cut.after, cut.at))?;
                (must && deepest.after <= room).then_some(*deepest)
            }
        }
    }
}
