//! What pays: when that which may be reduced is reduced.
//!
//! Changing something old makes the provider write everything behind it again. Waiting costs too: what could go is read
//! again at every call. That rent is computed from turn numbers, nothing is stored: a candidate that would save so many
//! tokens, and has been due for so many calls, has cost their product at the price of a cached read. Once the rent of
//! everything behind a place is more than what it costs to break the cache there, all of it goes at once.
//!
//! Everything is counted in tokens at the price of plain input.

use crate::edit::{Change, Edit, Reason, Turn};
use crate::entry::{Part, Role, Seq, Span};
use crate::fragment::{Fragments, Placement, Priority};
use crate::item::Item;
use crate::page::{Message, Page};
use crate::policy::Stale;
use crate::reader::Reader;
use crate::reduce::Candidate;
use crate::request::Request;
use crate::session::Session;
use crate::target::{Caching, EditsPast, Target};
use crate::tokens::Tokens;
use crate::view::{Places, View};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The numbers by which a policy waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patience {
    /// Nothing is touched while the page is smaller than this: short conversations are over before it pays.
    pub start: Tokens,
    /// The rent must be this many percent of what the cut costs.
    pub percent: u32,
    /// By how many tokens, at the price of plain input, the rent must be more than that.
    pub margin: Tokens,
    /// What was spent on breaking, less what was saved, must stay below this share of what the full history would have
    /// cost so far, in percent. It costs a good part of the gain; none is the usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brake: Option<u32>,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { start: Tokens(20_000), percent: 118, margin: Tokens(500), brake: None }
    }
}

/// By how much sums may differ that were added up in another order; they never do by nearly as much.
const ROUNDING: f64 = 1.0;

/// What waits for its moment, on a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// How many parts could be said shorter.
    pub candidates: usize,
    /// What they would save at every call.
    pub saves: Tokens,
    /// What waiting has cost so far.
    pub rent: Tokens,
    /// What it would cost to cut where it is nearest to paying.
    pub cost: Tokens,
}

/// What a token costs, where plain input costs one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    /// Read from the cache.
    pub(crate) read: f64,
    /// Written again.
    pub(crate) write: f64,
    /// Thought again.
    pub(crate) output: f64,
}

impl Rates {
    pub(crate) fn of(target: &Target) -> Rates {
        let prices = &target.prices;
        let share = |price: f64| if prices.input > 0.0 { price / prices.input } else { 0.0 };
        if target.cache.kind == Caching::Off {
            return Rates { read: 1.0, write: 1.0, output: share(prices.output) };
        }
        if prices.input <= 0.0 {
            // Nobody knows the prices; these are the usual ones where a cache must be written.
            return Rates { read: 0.1, write: 1.25, output: 5.0 };
        }
        let write = prices.write.unwrap_or(prices.input);
        Rates { read: share(prices.cached), write: share(write), output: share(prices.output) }
    }
}

/// Where the page may be changed now.
#[derive(Debug)]
pub(crate) struct Moment {
    /// The first item that may be changed.
    pub(crate) from: usize,
    /// Why what the cache holds may be changed, if it may.
    pub(crate) why: Option<Reason>,
    /// What waits, if something does.
    pub(crate) waiting: Option<Waiting>,
    /// Whether what a session of the provider holds stays as it is.
    pub(crate) spares_held: bool,
}

impl Moment {
    /// Everything from an item on may be changed.
    pub(crate) fn from(from: usize) -> Moment {
        Moment { from, why: None, waiting: None, spares_held: false }
    }
}

/// What could go, by a guess.
#[derive(Debug, Default)]
pub(crate) struct Foreseen {
    /// What all passes of a policy foresee, one after the other.
    pub(crate) all: Vec<Candidate>,
    /// Where what each of them foresees ends.
    pub(crate) ends: Vec<usize>,
}

/// The items of a view as the provider's cache sees them.
#[derive(Debug)]
pub(crate) struct Cached<'a> {
    request: &'a Request<'a>,
    rates: Rates,
    /// What each item costs, and what reasoning of it goes when something before it changes.
    items: Vec<CachedItem>,
    places: Places,
    cost: Tokens,
    /// The session whose provider holds the page: to change anything of it, everything must be sent again.
    session: Option<&'a Session>,
    /// The first item that the provider's cache doesn't hold; behind it everything is free to change.
    end: usize,
    is_cold: bool,
}

#[derive(Clone, Copy, Debug)]
struct CachedItem {
    seq: Seq,
    cost: Tokens,
    bound: Tokens,
}

impl<'a> Cached<'a> {
    pub(crate) fn of(view: &View<'_>, request: &'a Request<'a>) -> Cached<'a> {
        let items = view.items();
        let is_seen = |seq: Seq| request.reader.has_seen(seq);
        let session = request.held();
        let end = items.iter().position(|item| item.is_shown() && !is_seen(item.last_seq())).unwrap_or(items.len());
        let binds = request.target.edits_past == EditsPast::DropsLaterReasoning;
        let thinks = |message: &Message| message.parts.iter().any(|part| matches!(part, Part::Reasoning(_)));
        let previous = request.previous.filter(|_| binds);
        let thoughts = previous.map(|page| page.messages.iter().filter(|it| thinks(it)).map(|it| it.seq));
        let thoughts: Option<HashSet<Option<Seq>>> = thoughts.map(Iterator::collect);
        let held = |item: &Item<'_>| {
            let bound = if binds { bound_reasoning(item) } else { Tokens(0) };
            // What an earlier cut has cost is not held any more, and not lost again.
            let is_gone = thoughts.as_ref().is_some_and(|it| is_seen(item.seq()) && !it.contains(&Some(item.seq())));
            let (gone, bound) = if is_gone { (bound, Tokens(0)) } else { (Tokens(0), bound) };
            CachedItem { seq: item.seq(), cost: item.cost() - gone, bound }
        };
        Cached {
            request,
            rates: Rates::of(request.target),
            items: items.iter().map(held).collect(),
            places: view.places(),
            cost: view.cost(),
            session,
            end: if session.is_some() { items.len() } else { end },
            is_cold: is_cold(request),
        }
    }

    /// Returns where the page may be changed now, given what could go, and what can go at most, if that is known; both are
    /// asked for only where they count.
    pub(crate) fn moment(
        &self,
        foreseen: impl FnOnce() -> Foreseen,
        at_most: impl FnOnce(&Foreseen) -> Option<Vec<Candidate>>,
        was_reduced_now: impl FnOnce() -> bool,
        must_fit: bool,
    ) -> Moment {
        let (patience, reader) = (self.request.policy.patience, self.request.reader);
        let at = |from, why| Moment { why, ..Moment::from(from) };
        // What the provider holds can't be changed, unless it is told everything again.
        if self.session.is_some() && self.request.policy.stale == Stale::Keep {
            return self.unpaid();
        }
        if must_fit {
            return at(0, Some(Reason::MustFit));
        }
        // One batch a call: planning again on its own result plans nothing.
        let is_done = reader.cuts().last().is_some_and(|cut| cut.turn == reader.turn());
        let holds_nothing = self.session.is_none() && self.end == 0;
        if is_done || holds_nothing {
            return self.unpaid();
        }
        let foreseen = foreseen();
        let placed = self.placed(&foreseen.all);
        let Some(best) = self.best(&placed) else { return self.unpaid() };
        if self.cost >= patience.start {
            if self.is_cold {
                return at(0, Some(Reason::CacheIsCold));
            }
            if best.pays(patience) && !self.brakes(&best) && !was_reduced_now() {
                // Nobody need propose what can't pay, and take it back.
                return match at_most(&foreseen).is_none_or(|most| self.could_pay(&most)) {
                    true => at(best.from, Some(best.why())),
                    false => self.unpaid(),
                };
            }
        }
        let waiting = Waiting {
            candidates: placed.len(),
            saves: placed.iter().map(|it| it.saves).sum(),
            rent: whole(best.rent),
            cost: whole(best.cost),
        };
        Moment { waiting: Some(waiting), ..self.unpaid() }
    }

    /// Whether a cut could pay with edits that save no more than this.
    fn could_pay(&self, most: &[Candidate]) -> bool {
        // Whatever is edited of it and wherever that begins, the best cut with all of it brings as much. For a provider
        // that remembers it may not: there it counts what comes first.
        let patience = self.request.policy.patience;
        let best = self.best(&self.placed(most)).map_or(0.0, |best| best.surplus(patience));
        self.session.is_some() || best > patience.margin.0 as f64 - ROUNDING
    }

    /// Returns the moment at which nothing that the cache holds may be changed.
    pub(crate) fn unpaid(&self) -> Moment {
        let spares_held = self.session.is_some();
        Moment { spares_held, ..Moment::from(if spares_held { 0 } else { self.end }) }
    }

    /// Returns the decision that tells of the edits that were made; `Err` if they don't pay with what they really save.
    pub(crate) fn confirm(&self, moment: &Moment, edits: &[Edit]) -> Result<Option<Edit>, NotPaid> {
        let now = self.request.reader.turn();
        let made = edits.iter().map(|edit| {
            let saves = edit.before - edit.after;
            Candidate { seq: edit.change.seq(), saves, due: edit.due.unwrap_or(now) }
        });
        let placed = self.placed(&made.collect::<Vec<_>>());
        let (Some(why), Some(first)) = (&moment.why, placed.first()) else {
            return if matches!(moment.why, Some(Reason::Pays { .. })) { Err(NotPaid) } else { Ok(None) };
        };
        let cut = match self.session {
            Some(_) => self.reseed(&placed),
            None => {
                let held = &self.items[first.item..self.end];
                let (behind, bound) = (held.iter().map(|it| it.cost).sum(), held.iter().map(|it| it.bound).sum());
                let (saves, rent) = (placed.iter().map(|it| it.saves).sum(), placed.iter().map(|it| it.rent).sum());
                self.priced(first.item, behind, bound, saves, rent)
            }
        };
        let is_wager = matches!(why, Reason::Pays { .. });
        if is_wager && !cut.pays(self.request.policy.patience) {
            return Err(NotPaid);
        }
        let why = if is_wager { cut.why() } else { why.clone() };
        let (before, after) = if self.is_cold { (Tokens(0), Tokens(0)) } else { (cut.behind, cut.behind - cut.saves) };
        let change =
            Change::Cut { from: self.items[first.item].seq, written_before: self.request.reader.written_again() };
        Ok(Some(Edit { change, by: "pays".into(), why, before, after, due: None }))
    }

    /// The candidates among what the cache holds, by item, oldest first.
    fn placed(&self, candidates: &[Candidate]) -> Vec<Placed> {
        if candidates.is_empty() {
            return Vec::new();
        }
        let (now, unread) = (self.request.reader.turn(), self.request.reader.unread_turns());
        // No rent is counted before there was enough to wait for.
        let started = started(self.request);
        let (mut near, mut placed) = (0, Vec::with_capacity(candidates.len()));
        for it in candidates {
            let Some((item, _)) = self.places.get_near(it.seq, &mut near) else { continue };
            // When the history was large enough may lie among the calls that were not read.
            if it.due.0 < unread && started.0 <= unread {
                self.request.reader.needs_all();
            }
            let calls = now.0.saturating_sub(it.due.max(started).0) as f64;
            let rent = it.saves.0 as f64 * self.rates.read * calls;
            if self.session.map_or(item < self.end, |session| session.holds(it.seq)) {
                placed.push(Placed { item, saves: it.saves, rent });
            }
        }
        placed.sort_by_key(|it| it.item);
        placed
    }

    /// The cut with the largest surplus.
    fn best(&self, placed: &[Placed]) -> Option<Cut> {
        if self.session.is_some() {
            return (!placed.is_empty()).then(|| self.reseed(placed));
        }
        let patience = self.request.policy.patience;
        let (mut best, mut saves, mut rent): (Option<Cut>, Tokens, f64) = (None, Tokens(0), 0.0);
        let (mut behind, mut bound, mut at) = (Tokens(0), Tokens(0), self.end);
        for it in placed.iter().rev() {
            while at > it.item {
                at -= 1;
                behind += self.items[at].cost;
                bound += self.items[at].bound;
            }
            saves += it.saves;
            rent += it.rent;
            let cut = self.priced(it.item, behind, bound, saves, rent);
            if best.as_ref().is_none_or(|best| cut.surplus(patience) > best.surplus(patience)) {
                best = Some(cut);
            }
        }
        best
    }

    /// The cut that sends everything again to a provider that remembers: all of it is written anew.
    fn reseed(&self, placed: &[Placed]) -> Cut {
        let (saves, rent) = (placed.iter().map(|it| it.saves).sum(), placed.iter().map(|it| it.rent).sum());
        let changed = placed.first().map_or(self.items.len(), |it| it.item);
        let bound = self.items[changed..].iter().map(|it| it.bound).sum();
        self.priced(0, self.cost, bound, saves, rent)
    }

    fn priced(&self, from: usize, behind: Tokens, bound: Tokens, saves: Tokens, rent: f64) -> Cut {
        let Rates { read, write, output } = self.rates;
        // What was thought is thought again, at worst, and paid for as output.
        let cost = (behind - saves).0 as f64 * (write - read).max(0.0) + bound.0 as f64 * output;
        Cut { from, behind, saves, rent, cost }
    }

    /// Whether a cut would take what was spent on cuts too far beyond what they have saved.
    fn brakes(&self, cut: &Cut) -> bool {
        let Some(percent) = self.request.policy.patience.brake else { return false };
        let spent = self.request.reader.balance(self.rates) + cut.cost;
        spent > self.full_so_far() * f64::from(percent) / 100.0
    }

    /// What the calls so far would have cost with the full history.
    fn full_so_far(&self) -> f64 {
        let (mut cost, mut held) = (0.0, 0);
        self.request.reader.needs_all();
        for head in self.request.reader.heads().iter().copied().chain([self.request.log.head()]) {
            let all = said(self.request, head).0;
            cost += held as f64 * self.rates.read + all.saturating_sub(held) as f64 * self.rates.write;
            held = all;
        }
        cost
    }
}

/// What all that was said up to an entry costs.
fn said(request: &Request<'_>, upto: Option<Seq>) -> Tokens {
    let sums = upto.map(|last| request.log.total(Span { first: Seq(0), last }));
    sums.map_or(Tokens(0), |it| it.tokens + Tokens(it.entries * request.target.message_overhead.0))
}

/// The first call whose history was large enough.
fn started(request: &Request<'_>) -> Turn {
    let (start, reader) = (request.policy.patience.start, request.reader);
    // Most histories never are.
    if reader.heads().last().is_some_and(|head| said(request, *head) < start) {
        return reader.turn();
    }
    Turn(reader.unread_turns() + reader.heads().partition_point(|head| said(request, *head) < start) as u64)
}

/// What was to be cut saves less than was guessed, and doesn't pay yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotPaid;

/// What an item holds of reasoning that goes when something before it changes.
fn bound_reasoning(item: &Item<'_>) -> Tokens {
    let sealed = item.parts().iter().enumerate().filter(|(part, it)| match it {
        Part::Reasoning(it) => it.is_sealed() && !item.is_changed(*part),
        _ => false,
    });
    sealed.map(|(part, _)| item.entry.part_cost(part)).sum()
}

struct Placed {
    item: usize,
    saves: Tokens,
    rent: f64,
}

/// A place where the cache could be broken, and what that costs and brings.
#[derive(Debug)]
struct Cut {
    from: usize,
    /// What the cache holds behind it.
    behind: Tokens,
    saves: Tokens,
    rent: f64,
    cost: f64,
}

impl Cut {
    fn surplus(&self, patience: Patience) -> f64 {
        self.rent - self.cost * f64::from(patience.percent) / 100.0
    }

    fn pays(&self, patience: Patience) -> bool {
        self.surplus(patience) > patience.margin.0 as f64
    }

    fn why(&self) -> Reason {
        Reason::Pays { rent: whole(self.rent), cost: whole(self.cost) }
    }
}

fn whole(tokens: f64) -> Tokens {
    Tokens(tokens.max(0.0).round() as u64)
}

/// Whether the provider's cache can hold nothing of the history: it has lived its time, or what stands before has
/// changed anyway.
fn is_cold(request: &Request<'_>) -> bool {
    let target = request.target;
    if target.cache.kind == Caching::Off {
        return true;
    }
    let last = request.last_call;
    if last.is_some_and(|last| last.model != &*target.name || last.idle_seconds > u64::from(target.cache.life_seconds))
    {
        return true;
    }
    let Some(previous) = request.previous else { return false };
    let tools = |tools: Option<&crate::tool::Tools>| tools.map(|tools| tools.digest);
    let has_other_tools = tools(request.tools) != tools(previous.tools.as_ref());
    // What is told anew at every call stands before nothing that a provider remembers.
    has_other_tools || (request.held().is_none() && has_other_head(request, previous))
}

/// Whether other fragments stand at the head than on the page before.
fn has_other_head(request: &Request<'_>, previous: &Page) -> bool {
    let list = request.fragments.map(Fragments::list).unwrap_or_default();
    let mut old = previous.messages.iter().take_while(|message| message.seq.is_none()).peekable();
    for new in list.iter().filter(|it| it.fragment.placement == Placement::Head && !it.is_empty()) {
        let stands = old.next_if(|old| *old.parts == [new.part.clone()]).is_some();
        // One that may be left out had no room then, and has none now.
        if !stands && new.fragment.priority == Priority::Required {
            return true;
        }
    }
    old.next().is_some_and(|message| message.role == Role::System)
}

/// A cut that was made: what was due behind it and stayed, stayed because it was worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) turn: Turn,
    pub(crate) from: Seq,
    /// What the provider had to write again, for this one and all before.
    pub(crate) written: Tokens,
}

impl Reader {
    /// The tokens that the provider had to write again for all cuts so far.
    pub(crate) fn written_again(&self) -> Tokens {
        self.cuts().last().map_or(Tokens(0), |cut| cut.written)
    }

    /// What the cuts have cost so far, less what they have saved; in tokens at the price of plain input.
    pub(crate) fn balance(&self, rates: Rates) -> f64 {
        self.written_again().0 as f64 * (rates.write - rates.read).max(0.0) - self.spared().0 as f64 * rates.read
    }
}
