//! What a provider that remembers holds of a conversation.

use crate::compile::Compiled;
use crate::digest::Digest;
use crate::edit::{Reason, Turn};
use crate::entry::{Seq, Span, Text};
use crate::fragment::Lifecycle;
use crate::page::Mode;
use crate::receipt::{Fate, FateRow, FragmentFate, FragmentRow};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most calls after calls elsewhere that are told apart.
const CAUGHT_UP_MAX: usize = 256;
/// The most entries of which it is known that the provider made them whole.
const WHOLE_MAX: usize = 4_096;
/// The most separate spans of unsent entries. Beyond it the two oldest are joined, which may cost a full page, and
/// never an entry.
const UNSENT_SPANS_MAX: usize = 4_096;

/// What a stateful provider already has: everything up to `acked`, and what it produced since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    acked: Option<Seq>,
    known: BTreeSet<Seq>,
    /// What identifies the static fragments that it holds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fixed: BTreeMap<Text, Digest>,
    /// The call that told it everything: what was decided later, it doesn't know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seeded: Option<Turn>,
    /// The floor of the page that told it everything: nothing below was sent, but what the floor names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<Seq>,
    /// Its newest call, and the newest entry then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<(Turn, Option<Seq>)>,
    /// Calls of its own that came after calls elsewhere: what had come in between was sent with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    caught_up: Vec<CaughtUp>,
    /// What it made itself, and was decided shorter before the next call.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    whole: BTreeSet<Seq>,
    /// Entries up to `acked` that no page has shown to the provider, in order. If one is shown later, because a floor
    /// was reverted or another policy selects it, the provider is sent everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unsent: Vec<Span>,
    /// Why it holds nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<Lost>,
}

/// A call that told a provider what had come while others were called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CaughtUp {
    turn: Turn,
    after: Option<Seq>,
    upto: Option<Seq>,
}

/// Why a session counts for nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// It belongs to another workspace than the call does.
    WorkspaceChanged,
    /// The entry up to which it had everything is not in the log any more, or was erased.
    EntryGone,
    /// The provider doesn't know it, or holds something else than it did.
    Forgotten,
    /// The conversation went on elsewhere, with steps that it can't be told one by one.
    WentOn,
    /// Nobody can say what the provider made of the last call.
    InDoubt,
    /// The host said so.
    Told,
}

impl Session {
    /// Returns the last entry up to which the provider has everything.
    pub fn acked(&self) -> Option<Seq> {
        self.acked
    }

    /// Returns the call that told it everything, where that is known.
    pub fn seeded(&self) -> Option<Turn> {
        self.seeded
    }

    /// Returns why it holds nothing any more, if it was given up.
    pub fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// Gives it up: it holds nothing any more, and the next page says everything, and why.
    pub fn invalidate(&mut self, why: Lost) {
        *self = Session { lost: Some(why), ..Session::default() };
    }

    /// Returns whether the provider has an entry.
    pub fn holds(&self, seq: Seq) -> bool {
        Some(seq) <= self.acked || self.known.contains(&seq)
    }

    /// Returns whether the provider holds a static fragment as it is now; of a session that was never told what its
    /// calls sent, all is taken to be held.
    pub(crate) fn holds_fixed(&self, id: &str, fingerprint: Digest) -> bool {
        self.fixed.is_empty() || self.fixed.get(id) == Some(&fingerprint)
    }

    /// The floor of the page that told it everything, if it had one.
    pub(crate) fn floor(&self) -> Option<Seq> {
        self.floor
    }

    /// The call that sent it an entry, where that is later than the first that had it in view.
    pub(crate) fn sent_since(&self, seq: Seq) -> Option<Turn> {
        let is_within = |it: &&CaughtUp| it.after < Some(seq) && Some(seq) <= it.upto;
        self.caught_up.iter().rev().find(is_within).map(|it| it.turn).max(self.seeded)
    }

    /// Whether it made an entry itself that was decided shorter before the next call.
    pub(crate) fn made_whole(&self, seq: Seq) -> bool {
        self.whole.contains(&seq)
    }

    /// Whether no page has shown an entry to the provider, though it has everything else up to there.
    pub(crate) fn is_unsent(&self, seq: Seq) -> bool {
        let at = self.unsent.partition_point(|span| span.last < seq);
        self.unsent.get(at).is_some_and(|span| span.contains(seq))
    }

    /// Records a page that was sent, once its call has gone well: everything up to its head, and its static fragments.
    /// A page that says everything begins anew.
    pub fn sent(&mut self, compiled: &Compiled) {
        let ticket = &compiled.receipt.ticket;
        if compiled.page.mode == Mode::Full {
            let floor = compiled.receipt.fates.iter().find_map(|row| match row.why {
                Reason::BelowFloor { floor } | Reason::KeptByFloor { floor } => Some(floor),
                _ => None,
            });
            *self = Session { seeded: Some(ticket.turn), floor, ..Session::default() };
        }
        self.record_unsent(&compiled.receipt.fates, ticket.head);
        if let Some((turn, after)) = self.last {
            if ticket.turn.0 > turn.0 + 1 {
                self.caught_up.push(CaughtUp { turn: ticket.turn, after, upto: ticket.head });
            }
            let is_stale = |row: &&FateRow| matches!(row.why, Reason::RemoteStale { .. }) && row.entries == 1;
            let rows = compiled.receipt.fates.iter().filter(is_stale).map(|row| row.span.first);
            self.whole.extend(rows.filter(|seq| Some(*seq) > after));
            self.forget_oldest();
        }
        self.last = Some((ticket.turn, ticket.head));
        let is_there = |row: &&FragmentRow| {
            let was_sent = matches!(row.fate, FragmentFate::Shown | FragmentFate::StaticChanged | FragmentFate::Held);
            row.lifecycle == Lifecycle::Static && was_sent
        };
        let fixed = compiled.receipt.fragments.iter().filter(is_there);
        self.fixed.extend(fixed.map(|row| (row.id.clone(), row.fingerprint)));
        self.acknowledge(ticket.head, []);
    }

    /// Records the entries that a page leaves out up to `head`, and those that it shows at last.
    fn record_unsent(&mut self, fates: &[FateRow], head: Option<Seq>) {
        let shown: BTreeSet<Seq> =
            fates.iter().filter(|row| row.fate != Fate::NotShown).map(|row| row.span.first).collect();
        let unsent = std::mem::take(&mut self.unsent);
        let new = head.map(|last| Span { first: self.acked.map_or(Seq(0), Seq::next), last });
        for span in unsent.into_iter().chain(new) {
            let has_it = shown.range(span.first..).chain(self.known.range(span.first..));
            let mut has_it: Vec<Seq> = has_it.copied().take_while(|seq| *seq <= span.last).collect();
            has_it.sort_unstable();
            let mut first = span.first;
            for seq in has_it {
                self.push_unsent(first, seq);
                first = seq.next();
            }
            self.push_unsent(first, span.last.next());
        }
        while self.unsent.len() > UNSENT_SPANS_MAX {
            self.unsent[1].first = self.unsent.remove(0).first;
        }
    }

    /// Adds the entries from `first` to just before `end`, which come after all that were added before.
    fn push_unsent(&mut self, first: Seq, end: Seq) {
        let Some(last) = end.0.checked_sub(1).map(Seq).filter(|last| *last >= first) else { return };
        match self.unsent.last_mut() {
            Some(before) if before.last.next() == first => before.last = last,
            _ => self.unsent.push(Span { first, last }),
        }
    }

    /// Keeps what is told at each call from growing with the conversation. Of what is longest ago it is known less well
    /// when it was sent, and so whether it is stale; what is held stays exact.
    fn forget_oldest(&mut self) {
        while self.caught_up.len() > CAUGHT_UP_MAX {
            let oldest = self.caught_up.remove(0);
            self.caught_up[0].after = oldest.after;
        }
        while self.whole.len() > WHOLE_MAX {
            self.whole.pop_first();
        }
    }

    /// Records a call that went well: `head` was the newest entry when its page was made, `produced` are the
    /// entries the provider itself made. It never advances past somebody else's entry.
    pub fn acknowledge(&mut self, head: Option<Seq>, produced: impl IntoIterator<Item = Seq>) {
        self.acked = self.acked.max(head);
        self.known.extend(produced);
        while let Some(next) = self.known.pop_first() {
            let expected = self.acked.map_or(Seq(0), Seq::next);
            if next == expected {
                self.acked = Some(next);
            } else if next > expected {
                self.known.insert(next);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_grow_with_the_calls_that_others_answer() {
        let mut session = Session::default();
        for nth in 0..1_000 {
            let (turn, after, upto) = (Turn(2 * nth), nth.checked_sub(1).map(Seq), Some(Seq(nth)));
            session.caught_up.push(CaughtUp { turn, after, upto });
            session.whole.insert(Seq(nth * 10));
            session.forget_oldest();
        }
        assert_eq!(session.caught_up.len(), CAUGHT_UP_MAX);
        assert_eq!(session.sent_since(Seq(999)), Some(Turn(1_998)), "the newest are known as they were");
        assert_eq!(session.sent_since(Seq(0)), Some(Turn(2 * 744)), "the oldest at the latest moment that is possible");
    }

    #[test]
    fn never_advances_past_a_foreign_entry() {
        let mut session = Session::default();
        session.acknowledge(Some(Seq(4)), [Seq(6)]);
        assert_eq!(session.acked(), Some(Seq(4)));
        assert!(session.holds(Seq(6)) && !session.holds(Seq(5)));
        session.acknowledge(Some(Seq(6)), [Seq(7)]);
        assert_eq!(session.acked(), Some(Seq(7)));
    }
}
