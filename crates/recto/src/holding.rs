//! What a provider that remembers holds of a view: whether it is told only what is new, and what it reads otherwise than
//! was decided since.

use crate::edit::{Change, Edit, Handle, PartAt, Reason, Turn};
use crate::entry::{Seq, Span, Text};
use crate::expand;
use crate::item::Item;
use crate::policy::Stale;
use crate::reader::{Decided, Reader};
use crate::request::{Budget, Request};
use crate::session::{Lost, Session};
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Why a provider that remembers is sent everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Full {
    /// It holds nothing yet.
    NoSession,
    /// The session claims more than the log holds.
    CursorBeyondLog {
        /// What it claims.
        acked: Seq,
    },
    /// A static fragment is not as it holds it.
    StaticChanged,
    /// It reads in full what was decided shorter.
    Stale {
        /// How many entries.
        entries: u64,
        /// How much more than the page shows, by our count.
        tokens: Tokens,
    },
    /// What it was sent shortened, or not at all, is shown again.
    Restored,
    /// The session was given up.
    Lost {
        /// Why.
        lost: Lost,
    },
}

/// What the provider holds of a view.
#[derive(Debug, Default)]
pub(crate) struct Holding<'a> {
    /// The session that is used, if the page says only what is new.
    pub(crate) session: Option<&'a Session>,
    /// Why it says everything, though the provider remembers.
    pub(crate) full: Option<Full>,
    /// Entries that the provider reads in full, and how much more than was decided that is.
    pub(crate) stale: BTreeMap<Seq, Tokens>,
    /// The newest floor that it was never told of, and how much lies below.
    pub(crate) floor: Option<(Seq, Tokens)>,
    /// What it was sent shortened and is asked for now: the entry, and the text that it is sent.
    pub(crate) notes: BTreeMap<Seq, Text>,
    /// What is told in a block, whatever of it the provider holds.
    pub(crate) told: BTreeSet<Seq>,
}

impl<'a> Holding<'a> {
    pub(crate) fn of(view: &View<'a>, request: &Request<'a>, decided: Decided<'a>, budget: &Budget) -> Holding<'a> {
        let session = match request.usable_session() {
            Ok(session) => session,
            Err(full) => return Holding { full, ..Holding::default() },
        };
        let told = Told { session, reader: request.reader };
        let floor = told.floor(decided).map(|at| (at, went_below(view, session.floor(), at)));
        let mut holding = Holding { session: Some(session), floor, ..Holding::default() };
        let mut is_restored = false;
        for item in &view.items {
            is_restored |= item.seqs().any(|seq| told.has_back(seq));
            holding.stale.extend(told.stale(item, decided));
            holding.notes.extend(told.note(item, decided));
            is_restored |= told.is_shown_at_last(item) && !item.seqs().any(|seq| holding.notes.contains_key(&seq));
        }
        let notes: Tokens = holding.notes.values().map(|text| view.count(text) + view.overhead).sum();
        let stale = holding.stale_tokens();
        let is_over = |more: Tokens| more > Tokens(0) && budget.over(view.cost() + more) > Tokens(0);
        let is_stale = !holding.stale.is_empty() || holding.floor.is_some();
        let full = if is_restored {
            Some(Full::Restored)
        } else if is_stale && (request.policy.stale == Stale::Reseed || is_over(stale)) {
            Some(Full::Stale { entries: holding.stale_entries(view), tokens: stale })
        } else {
            // Where there is no room for the text beside what is held, it stands in its place.
            is_over(stale + notes).then_some(Full::Restored)
        };
        match full {
            Some(_) => Holding { full, ..Holding::default() },
            None => holding,
        }
    }

    /// Whether the provider holds an entry.
    pub(crate) fn holds(&self, seq: Seq) -> bool {
        self.session.is_some_and(|session| session.holds(seq))
    }

    /// How much more the provider reads than was decided.
    pub(crate) fn stale_tokens(&self) -> Tokens {
        self.stale.values().copied().sum::<Tokens>() + self.floor.map_or(Tokens(0), |(_, tokens)| tokens)
    }

    fn stale_entries(&self, view: &View<'_>) -> u64 {
        let below = crate::view::below(&view.window).into_iter().filter(|row| self.is_stale_below(&row.why));
        self.stale.len() as u64 + below.map(|row| row.entries).sum::<u64>()
    }

    /// Whether a run of entries lies below a floor that the provider was never told of.
    pub(crate) fn is_stale_below(&self, why: &Reason) -> bool {
        matches!((why, self.floor), (Reason::BelowFloor { floor }, Some((at, _))) if *floor == at)
    }
}

/// What lies between two floors, as it was said.
fn went_below(view: &View<'_>, from: Option<Seq>, to: Seq) -> Tokens {
    let first = from.max(view.window.edge).unwrap_or_default();
    let last = to.0.checked_sub(1).map(Seq).filter(|last| *last >= first);
    last.map_or(Tokens(0), |last| view.window.log.sums(Span { first, last }, &view.window.scope).tokens)
}

/// What a provider was told, and when.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) session: &'a Session,
    pub(crate) reader: &'a Reader,
}

impl Told<'_> {
    /// The call that sent an entry.
    fn sent_at(&self, seq: Seq) -> Turn {
        let first = self.reader.turn_at_age(seq, 0);
        self.session.sent_since(seq).map_or(first, |turn| turn.max(first))
    }

    /// Whether something that was decided before a call came after an entry was sent.
    fn is_later(&self, turn: Turn, seq: Seq) -> bool {
        // What is decided now was held before; what it made itself was never sent.
        turn == self.reader.turn() || turn > self.sent_at(seq) || self.session.made_whole(seq)
    }

    /// Whether the provider holds a part in full: it was sent before anything of it was reduced, or asked back since.
    pub(crate) fn holds_whole(&self, part: PartAt) -> bool {
        if !self.session.holds(part.seq) {
            return false;
        }
        let sent = self.sent_at(part.seq);
        let mut is_whole = true;
        for it in self.reader.about(part.seq) {
            let is_known = !self.is_later(it.turn, part.seq);
            let was_reverted = it.reverted.is_some_and(|reverted| reverted.turn <= sent);
            match &it.edit.change {
                change if change.reduces(part) && is_known && !was_reverted => is_whole = false,
                Change::Expand { at, text: None, .. } if at.covers(part) && it.reverted.is_none() => {
                    is_whole |= it.turn < self.reader.turn();
                }
                _ => {}
            }
        }
        is_whole
    }

    /// The entries of an item that the provider reads in full though less of them is shown, and how much that is.
    fn stale(&self, item: &Item<'_>, decided: Decided<'_>) -> Vec<(Seq, Tokens)> {
        let is_hiding = |edit: &Edit| item.hidden.as_ref().is_some_and(|(by, why)| *by == edit.by && *why == edit.why);
        let fresh = decided.more.iter().map(|edit| (self.reader.turn(), edit));
        let recorded = item.seqs().flat_map(|seq| self.reader.live(seq)).map(|it| (it.turn, &it.edit));
        let edits: Vec<(Turn, &Edit)> = recorded.chain(fresh).collect();
        let cost = |seq: Seq| {
            let own = (item.seq() == seq).then_some(item.entry);
            let entry = own.or_else(|| item.answers.iter().filter_map(|it| it.result).find(|it| it.seq == seq));
            entry.map_or(Tokens(0), |entry| entry.cost)
        };
        let stale = item.seqs().filter(|seq| self.session.holds(*seq)).filter_map(|seq| {
            if item.hidden.is_some() {
                let mut hiding = edits.iter().filter(|(_, edit)| is_hiding(edit));
                return hiding.any(|(turn, _)| self.is_later(*turn, seq)).then(|| (seq, cost(seq)));
            }
            let own = item.changed.iter().filter(|_| item.seq() == seq).map(|(part, it)| (*part, it));
            let answer = item.answers.iter().filter(|it| it.result.is_some_and(|entry| entry.seq == seq));
            let changed = own.chain(answer.filter_map(|it| it.changed.as_deref()).map(|it| (0, it)));
            let lost = changed.filter(|(_, it)| it.is_edit).filter_map(|(part, it)| {
                let at = PartAt { seq, part };
                let newest = edits.iter().rev().find(|(_, edit)| edit.change.reduces(at))?;
                let own = if item.seq() == seq { item.part_cost(part) } else { cost(seq) };
                self.is_later(newest.0, seq).then(|| own - it.cost)
            });
            let lost: Vec<Tokens> = lost.collect();
            (!lost.is_empty()).then(|| (seq, lost.into_iter().sum()))
        });
        stale.collect()
    }

    /// The newest floor, if it was raised since the provider was told everything.
    fn floor(&self, decided: Decided<'_>) -> Option<Seq> {
        let fresh = decided.more.iter().rev().find(|edit| matches!(edit.change, Change::Floor(_)));
        let recorded = || self.reader.floors_back().find(|it| it.reverted.is_none());
        let (turn, at) = match fresh {
            Some(edit) => (self.reader.turn(), edit.change.seq()),
            None => recorded().map(|it| (it.turn, it.edit.change.seq()))?,
        };
        let is_later = match self.session.seeded() {
            Some(seeded) => turn > seeded,
            None => at.0.checked_sub(1).map(Seq).is_some_and(|it| self.session.holds(it) && self.is_later(turn, it)),
        };
        // Also one at the same place or a lower one: it may name less of what lies below.
        is_later.then_some(at)
    }

    /// Whether an item is shown as a message of which the provider was never sent some entry, though the session is past
    /// it.
    fn is_shown_at_last(&self, item: &Item<'_>) -> bool {
        item.is_message() && item.seqs().any(|seq| self.session.is_unsent(seq))
    }

    /// Whether something that an entry was sent without has been taken back.
    fn has_back(&self, seq: Seq) -> bool {
        let mut about = self.reader.about(seq).filter(|it| it.reverted.is_some());
        self.session.holds(seq)
            && about.any(|it| {
                let reduces = matches!(it.edit.change, Change::Hide(_) | Change::Omit(_) | Change::Replace { .. });
                let is_back = it.reverted.is_some_and(|back| self.is_later(back.turn, seq));
                reduces && is_back && !self.is_later(it.turn, seq)
            })
    }

    /// What was asked back before this call and the provider was sent shortened.
    fn note(&self, item: &Item<'_>, decided: Decided<'_>) -> Option<(Seq, Text)> {
        let now = self.reader.turn();
        let recorded = item.seqs().flat_map(|seq| self.reader.live(seq)).filter(|it| it.turn == now).map(|it| &it.edit);
        let asked = recorded.chain(decided.more).filter_map(|edit| match &edit.change {
            Change::Expand { at, text, .. } if item.seqs().any(|seq| seq == at.seq) => Some((*at, text)),
            _ => None,
        });
        let asked: Vec<(Handle, &Option<Text>)> = asked.filter(|(at, _)| self.session.holds(at.seq)).collect();
        let first = asked.first()?.0.seq;
        if !item.is_shown() {
            return None;
        }
        // A step that was hidden is told with its results.
        let was_hidden = item.seqs().flat_map(|seq| self.reader.live(seq)).any(|it| {
            matches!(&it.edit.change, Change::Hide(span) if span.contains(item.seq())) && !self.is_later(it.turn, first)
        });
        let texts = asked.iter().filter(|(at, _)| !was_hidden || at.seq == item.seq()).filter_map(|(at, text)| {
            let part = PartAt { seq: at.seq, part: at.part.unwrap_or_default() };
            if let Some(text) = text {
                return Some(text.clone());
            }
            let is_whole = !was_hidden && self.holds_all(*at, item);
            (!is_whole).then(|| expand::told(*at, item, part.seq, was_hidden))
        });
        let texts: Vec<Text> = texts.collect();
        (!texts.is_empty()).then(|| (first, texts.join("\n").into()))
    }

    fn holds_all(&self, at: Handle, item: &Item<'_>) -> bool {
        let parts = if at.seq == item.seq() { item.parts().len() } else { 1 };
        let mut asked = (0..parts).map(|part| PartAt { seq: at.seq, part }).filter(|part| at.covers(*part));
        asked.all(|part| self.holds_whole(part))
    }
}
