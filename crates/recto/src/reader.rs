//! A reader: a named lens over a log, with the calls it has made and the decisions it goes by.

mod partial;

use crate::digest::Digest;
use crate::edit::{Change, Decision, Edit, Floor, Handle, PartAt, Reason, Reverted, Turn};
use crate::entry::{CallId, Seq, Span, Text};
use crate::error::Error;
use crate::pays::Made;
use crate::receipt::Ticket;
use crate::tokens::{Count, Tokens};
use crate::view::Known;
pub use partial::{Came, KnownReader, MissingReader};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The most entries that are read again below the floor because somebody asked for them.
const RESTORED_ENTRIES_MAX: usize = 1_000;
/// Among how many calls the one that had an entry in view is looked for, one after the other.
const NEAR_CALLS: usize = 3;

/// An agent's perspective on a conversation.
///
/// Decisions are only ever added, or marked as reverted, so that the page of any past turn can be compiled
/// again with [`as_of`](Reader::as_of).
#[derive(Clone, Debug)]
pub struct Reader {
    name: Text,
    /// The log's head at each acknowledged call; never falls.
    heads: Vec<Option<Seq>>,
    decisions: Vec<Decision>,
    /// What the text of each decision costs, as far as somebody has asked.
    costs: Vec<TextCost>,
    ordinal: u64,
    /// Which decisions speak of an entry, so that those below the floor are not walked.
    by_seq: BTreeMap<Seq, Vec<usize>>,
    floors: Vec<usize>,
    /// Pins may reach over any floor, so they are always looked at.
    pins: Vec<usize>,
    /// Expansions may bring back what lies below the floor.
    expansions: Vec<usize>,
    /// Where and when the provider's cache was broken.
    cuts: Vec<Made>,
    /// How many tokens less than all that was said the acknowledged calls have sent, added up call by call.
    spared: Vec<Tokens>,
    /// Of a part of a reader, what is known of the rest.
    unread: Option<Arc<partial::Unread>>,
}

impl Reader {
    /// Returns a reader that has seen nothing yet.
    pub fn new(name: impl Into<Text>) -> Reader {
        let (heads, decisions, by_seq) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (floors, pins, expansions) = (Vec::new(), Vec::new(), Vec::new());
        Reader {
            name: name.into(),
            heads,
            decisions,
            costs: Vec::new(),
            ordinal: 0,
            by_seq,
            floors,
            pins,
            expansions,
            cuts: Vec::new(),
            spared: Vec::new(),
            unread: None,
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &Text {
        &self.name
    }

    /// Returns the number of the call it makes next, which is the number of calls it has acknowledged.
    pub fn turn(&self) -> Turn {
        Turn(self.unread_turns() + self.heads.len() as u64)
    }

    /// Returns the number of its newest decision or revert.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Returns all its decisions, reverted ones included, in the order they were made.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// The log's head at each acknowledged call that was read: all of them, but in a part of a reader.
    pub(crate) fn heads(&self) -> &[Option<Seq>] {
        &self.heads
    }

    /// The log's head at an acknowledged call.
    pub(crate) fn head_at(&self, turn: Turn) -> Option<Option<Seq>> {
        match turn.0.checked_sub(self.unread_turns()) {
            Some(at) => self.heads.get(usize::try_from(at).ok()?).copied(),
            None => {
                self.needs_all();
                None
            }
        }
    }

    /// The call that first had an entry in view, and the log's head then.
    fn came(&self, seq: Seq) -> Came {
        self.came_unread(seq).unwrap_or_else(|| {
            let at = self.heads.partition_point(|&head| head < Some(seq));
            Came { turn: Turn(self.unread_turns() + at as u64), head: self.heads.get(at).copied().flatten() }
        })
    }

    /// The same for one entry after the other: most came with the call that the one before came with, or with the next.
    fn came_near(&self, seq: Seq, near: &mut usize) -> Came {
        let (before, from) = self.heads.split_at((*near).min(self.heads.len()));
        let had = |head: &Option<Seq>| head.is_some_and(|head| head >= seq);
        let next = from.iter().take(NEAR_CALLS).position(had).filter(|_| !before.last().is_some_and(had));
        let Some(at) = next.map(|next| before.len() + next).filter(|_| self.unread.is_none()) else {
            let came = self.came(seq);
            *near = came.turn.0.saturating_sub(self.unread_turns()) as usize;
            return came;
        };
        *near = at;
        Came { turn: Turn(at as u64), head: self.heads[at] }
    }

    /// Where and when the provider's cache was broken, oldest first.
    pub(crate) fn cuts(&self) -> &[Made] {
        &self.cuts
    }

    /// Returns how many tokens less than all that was said its acknowledged calls have sent, in sum.
    pub fn spared(&self) -> Tokens {
        self.spared.last().copied().unwrap_or_default()
    }

    /// Returns how many acknowledged calls have had an entry in view.
    pub fn age(&self, seq: Seq) -> u64 {
        self.turn().0.saturating_sub(self.came(seq).turn.0)
    }

    /// Returns whether an acknowledged call has had an entry in view.
    pub(crate) fn has_seen(&self, seq: Seq) -> bool {
        match self.came_unread(seq) {
            Some(came) => came.turn < self.turn(),
            // Heads never fall.
            None => self.heads.last().copied().flatten() >= Some(seq),
        }
    }

    /// Returns the call at which an entry is so many calls old.
    pub fn turn_at_age(&self, seq: Seq, age: u64) -> Turn {
        Turn(self.came(seq).turn.0 + age)
    }

    /// Returns the call from which on the age of a part counts: the one that first had it in view, or the first one
    /// after it was last expanded.
    pub fn since(&self, at: PartAt) -> Turn {
        self.since_came(at, self.came(at.seq))
    }

    /// The same for one part after the other, as `near` goes on from where the one before was found.
    pub(crate) fn since_near(&self, at: PartAt, near: &mut usize) -> Turn {
        self.since_came(at, self.came_near(at.seq, near))
    }

    fn since_came(&self, at: PartAt, Came { turn, .. }: Came) -> Turn {
        self.expansion(at).map_or(turn, |decision| decision.turn.max(turn))
    }

    /// Returns how many acknowledged calls have had a part in view since it came, or since it was last expanded. This
    /// is the age that passes compare with a limit; [`age`](Reader::age) counts from the beginning.
    pub fn age_of(&self, at: PartAt) -> u64 {
        self.turn().0.saturating_sub(self.since(at).0)
    }

    /// The newest expansion of a part that was not taken back.
    pub(crate) fn expansion(&self, part: PartAt) -> Option<&Decision> {
        let expands = |change: &Change| matches!(change, Change::Expand { at, .. } if at.covers(part));
        self.live(part.seq).rfind(|decision| expands(&decision.edit.change))
    }

    /// Returns the decisions about one entry that were not taken back, oldest first; pins and floors speak of more than
    /// one entry, and are not among them.
    pub fn live(&self, seq: Seq) -> impl DoubleEndedIterator<Item = &Decision> {
        self.about(seq).filter(|decision| decision.reverted.is_none())
    }

    /// All decisions about one entry, reverted ones included.
    pub(crate) fn about(&self, seq: Seq) -> impl DoubleEndedIterator<Item = &Decision> {
        self.came_unread(seq);
        self.by_seq.get(&seq).into_iter().flatten().map(|&at| &self.decisions[at])
    }

    /// Its floors, newest first, those that were taken back included.
    pub(crate) fn floors_back(&self) -> impl Iterator<Item = &Decision> {
        self.floors.iter().rev().map(|&at| &self.decisions[at])
    }

    /// Returns whether some acknowledged call saw an entry before another one had come; asked for one entry after the
    /// other, as `near` goes on from where the one before was found.
    pub(crate) fn saw_without(&self, seq: Seq, other: Seq, near: &mut usize) -> bool {
        self.came_near(seq, near).head.is_some_and(|head| head < other)
    }

    /// Records the edits of a plan as decisions, made before the next call under a policy.
    pub fn commit(&mut self, edits: impl IntoIterator<Item = Edit>, policy: Digest) {
        for edit in edits {
            self.ordinal += 1;
            let (ordinal, turn) = (self.ordinal, self.turn());
            self.record(Decision { ordinal, turn, edit, policy, reverted: None });
        }
    }

    fn record(&mut self, decision: Decision) {
        let at = self.decisions.len();
        match &decision.edit.change {
            Change::Floor(_) => self.floors.push(at),
            Change::Pin(_) => self.pins.push(at),
            Change::Cut { from, written_before } => {
                let written = *written_before + decision.edit.after;
                self.cuts.push(Made { turn: decision.turn, from: *from, written });
            }
            Change::Expand { at: handle, .. } => {
                self.expansions.push(at);
                self.by_seq.entry(handle.seq).or_default().push(at);
            }
            change => self.by_seq.entry(change.seq()).or_default().push(at),
        }
        self.decisions.push(decision);
        self.costs.push(TextCost::default());
    }

    /// Records that a span is never to be reduced.
    pub fn pin(&mut self, span: Span) {
        let edit = Edit {
            change: Change::Pin(span),
            by: "pin".into(),
            why: Reason::Pinned,
            before: Tokens(0),
            after: Tokens(0),
            due: None,
        };
        self.commit([edit], Digest::default());
    }

    /// Takes back every pin that touches a span, and returns how many there were.
    pub fn unpin(&mut self, span: Span) -> usize {
        let touches = |change: &Change| matches!(change, Change::Pin(pinned) if pinned.first <= span.last && span.first <= pinned.last);
        let pins = self.pins.iter().map(|&at| &self.decisions[at]);
        let live = pins.filter(|it| it.reverted.is_none() && touches(&it.edit.change)).map(|it| it.ordinal);
        let ordinals: Vec<u64> = live.collect();
        ordinals.iter().filter(|&&ordinal| self.revert(ordinal).is_ok()).count()
    }

    /// Takes a decision back; it stays on record, and what it touched is not reduced again.
    pub fn revert(&mut self, ordinal: u64) -> Result<(), Error> {
        let turn = self.turn();
        let Ok(at) = self.decisions.binary_search_by_key(&ordinal, |decision| decision.ordinal) else {
            return Err(Error::input(format!("reader {:?} has no decision {ordinal}", &*self.name)));
        };
        let decision = &mut self.decisions[at];
        if decision.reverted.is_some() {
            return Err(Error::input(format!("decision {ordinal} was reverted already")));
        }
        self.ordinal += 1;
        decision.reverted = Some(Reverted { ordinal: self.ordinal, turn });
        Ok(())
    }

    /// Records that the call of this ticket was made and answered.
    pub fn acknowledge(&mut self, ticket: &Ticket) -> Result<(), Error> {
        if ticket.reader != self.name || ticket.turn != self.turn() {
            let (turn, name) = (self.turn().0, &*self.name);
            let what = format!(
                "ticket of reader {:?}, turn {}: reader {name:?} is at turn {turn}",
                &*ticket.reader, ticket.turn.0
            );
            return Err(Error::input(what).hinting("another call was acknowledged first; compile again"));
        }
        // A log only grows, but a host may hold tickets of older heads; ages must not run backwards.
        let head = ticket.head.max(self.heads.last().copied().flatten());
        self.heads.push(head);
        self.spared.push(self.spared() + ticket.less);
        Ok(())
    }

    /// Returns the reader as it was when a ticket was made.
    pub fn as_of(&self, ticket: &Ticket) -> Reader {
        self.needs_all();
        let mut past = Reader::new(self.name.clone());
        past.heads = self.heads[..self.heads.len().min(ticket.turn.0 as usize)].to_vec();
        past.spared = self.spared[..past.heads.len()].to_vec();
        let known = self.decisions.iter().take_while(|decision| decision.ordinal <= ticket.ordinal);
        for decision in known {
            let reverted = decision.reverted.filter(|revert| revert.ordinal <= ticket.ordinal);
            past.record(Decision { reverted, ..decision.clone() });
        }
        past.ordinal = ticket.ordinal.min(self.ordinal);
        past
    }
}

/// What the text of a decision costs: counted when it is first shown, since it is shown again at every call.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextCost(OnceLock<(Text, Tokens)>);

impl TextCost {
    /// Returns what it costs by a counter; one reader may read logs that are counted otherwise.
    pub(crate) fn of(&self, text: &str, counter: &dyn Count) -> Tokens {
        let (by, cost) = self.0.get_or_init(|| (counter.name().into(), counter.count(text)));
        if **by == *counter.name() { *cost } else { counter.count(text) }
    }
}

/// What applies to a view: a reader's decisions, and edits that are about to become decisions.
#[derive(Clone, Copy)]
pub(crate) struct Decided<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) more: &'a [Edit],
}

impl<'a> Decided<'a> {
    pub(crate) fn floor(&self) -> Option<&'a Floor> {
        let fresh = self.more.iter().rev().find_map(|edit| as_floor(&edit.change));
        fresh.or_else(|| {
            let recorded = self.reader.floors.iter().rev().map(|&at| &self.reader.decisions[at]);
            recorded.filter(|decision| decision.reverted.is_none()).find_map(|decision| as_floor(&decision.edit.change))
        })
    }

    /// The edits that speak of entries from a place up, or of one of the entries named.
    pub(crate) fn edits(&self, from: Seq, named: &[Seq]) -> impl Iterator<Item = (&'a Edit, Known<'a>)> {
        self.reader.needs_from(from);
        let within = self.reader.by_seq.range(from..);
        let below = named.iter().filter(move |&&seq| seq < from).filter_map(|seq| {
            self.reader.came_unread(*seq);
            self.reader.by_seq.get_key_value(seq)
        });
        let spoken = within.chain(below).flat_map(|(_, at)| at.iter().copied());
        let mut at: Vec<usize> = spoken.chain(self.reader.pins.iter().copied()).collect();
        at.sort_unstable();
        let recorded = at.into_iter().map(|at| (&self.reader.decisions[at], &self.reader.costs[at]));
        let recorded = recorded.filter(|(it, _)| it.reverted.is_none()).map(|(it, cost)| (&it.edit, Known::Once(cost)));
        recorded.chain(self.more.iter().map(|edit| (edit, Known::No)))
    }

    /// Whether a part is not to be reduced: it was since it was last expanded, also if that was taken back, or what was
    /// expanded is exempt for some more calls.
    pub(crate) fn touched(&self, part: PartAt) -> bool {
        let mut touched = false;
        for decision in self.reader.about(part.seq) {
            match &decision.edit.change {
                // It goes by where it is recorded: what else it hides has no record of its own.
                change if change.reduces(part) => touched = true,
                Change::Expand { at, until, .. } if at.covers(part) && decision.reverted.is_none() => {
                    touched = self.reader.turn() < *until;
                }
                _ => {}
            }
        }
        touched
    }

    /// How much less an entry costs for what was decided about it.
    pub(crate) fn saved(&self, seq: Seq) -> Tokens {
        let live: Vec<&Decision> = self.reader.live(seq).collect();
        let is_undone = |nth: usize, change: &Change| {
            let asked = live[nth + 1..].iter().filter_map(|it| as_expanded(&it.edit.change));
            asked.into_iter().any(|at| match change {
                Change::Omit(part) | Change::Replace { at: part, .. } => at.covers(*part),
                _ => true,
            })
        };
        let reducing = live.iter().enumerate().filter(|(nth, it)| {
            let change = &it.edit.change;
            let reduces = matches!(change, Change::Hide(_) | Change::Omit(_) | Change::Replace { .. });
            reduces && !is_undone(*nth, change)
        });
        reducing.map(|(_, it)| it.edit.before - it.edit.after).sum()
    }

    /// Entries that were asked back since they went below the floor. The next floor is set without regard to them,
    /// unless they are still exempt.
    pub(crate) fn restored(&self) -> Vec<Seq> {
        let fresh = self.more.iter().filter_map(|edit| as_expanded(&edit.change)).map(|at| at.seq);
        let is_lowered = self.more.iter().any(|edit| as_floor(&edit.change).is_some());
        let floors = self.reader.floors.iter().rev().map(|&at| &self.reader.decisions[at]);
        let floor = floors.filter(|_| !is_lowered).find(|it| it.reverted.is_none());
        let since = floor.map(|floor| {
            let asked = self.reader.expansions.iter().rev().map(|&at| &self.reader.decisions[at]);
            let since = asked.take_while(|it| it.ordinal > floor.ordinal).filter(|it| it.reverted.is_none());
            since
                .filter_map(|it| as_expanded(&it.edit.change))
                .map(|at| at.seq)
                .filter(|seq| *seq < floor.edit.change.seq())
        });
        fresh.chain(since.into_iter().flatten()).take(RESTORED_ENTRIES_MAX).collect()
    }

    pub(crate) fn pins(&self) -> impl Iterator<Item = Span> {
        let recorded = self.reader.pins.iter().map(|&at| &self.reader.decisions[at]);
        recorded.filter(|it| it.reverted.is_none()).filter_map(|it| match it.edit.change {
            Change::Pin(span) => Some(span),
            _ => None,
        })
    }

    pub(crate) fn has_none(&self) -> bool {
        self.reader.ordinal == 0
    }

    pub(crate) fn settled(&self, step: Seq, call: &CallId) -> bool {
        let settles =
            |change: &Change| matches!(change, Change::Settle { step: s, call: c } if *s == step && c == call);
        let mut live = self.reader.live(step);
        live.any(|it| settles(&it.edit.change)) || self.more.iter().any(|edit| settles(&edit.change))
    }
}

fn as_expanded(change: &Change) -> Option<Handle> {
    match change {
        Change::Expand { at, .. } => Some(*at),
        _ => None,
    }
}

fn as_floor(change: &Change) -> Option<&Floor> {
    match change {
        Change::Floor(floor) => Some(floor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_from_wherever_one_looks() {
        let mut reader = Reader::new("reader");
        for head in [None, Some(0), Some(0), Some(3), Some(4), Some(4), Some(4), Some(9), Some(30), Some(31)] {
            reader.heads.push(head.map(Seq));
        }
        for seq in (0..34).map(Seq) {
            for from in 0..=reader.heads.len() {
                let mut near = from;
                assert_eq!(reader.came_near(seq, &mut near), reader.came(seq), "{seq} from {from}");
                assert_eq!(near as u64, reader.came(seq).turn.0);
            }
        }
    }
}
