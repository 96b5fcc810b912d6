//! Live changes: what has happened to a conversation, told in order, also what other processes did.

use super::{At, Engine, TRIES_MAX, counter, too_busy};
use crate::body;
use crate::error::Error;
use crate::lens;
use crate::store::{
    Conversation, DecisionKind, DecisionRow, Decisions, ReaderName, ReaderRow, Row, Store, TurnRow, Turns, Upto,
};
use recto::edit::Turn;
use recto::event::{Event, Since, events};
use recto::log::{Known, Newest, Tally};
use recto::reader::KnownReader;
use recto::redact::Screen;
use recto::{Log, Reader, Seq};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most entries, decisions or calls that are told at once.
const ROWS_MAX: usize = 1_000;
/// How long a subscription rests that was woken for somebody else's change: others may change all the time.
const REST: Duration = Duration::from_millis(50);

/// What has happened, and how much is told with it.
#[derive(Clone, Debug)]
pub struct Told {
    /// The events, in order.
    pub events: Vec<Event>,
    /// Where to go on from.
    pub since: Since,
}

/// Tells what happens to a conversation as one reader sees it.
pub struct Subscription<S> {
    engine: Engine<S>,
    at: At,
    reader: ReaderName,
    since: Since,
    version: Option<u64>,
    poll: Duration,
}

impl<S> std::fmt::Debug for Subscription<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subscription({:?}, {:?})", self.at, self.since)
    }
}

impl<S: Store> Engine<S> {
    /// Tells what has happened since a mark, in order; a long past is told in pages.
    pub async fn events(&self, at: &At, reader: &ReaderName, since: Since) -> Result<Told, Error> {
        let (tenant, id) = (&at.tenant, &at.conversation);
        let mut row = self.store().reader(tenant, id, reader).await?;
        for _ in 0..TRIES_MAX {
            let conversation = self.conversation(at).await?;
            let after = self.store().reader(tenant, id, reader).await?;
            // A reader that is the same before and after was so at the conversation's moment, too. Whatever others go on to
            // write lies beyond both, so nobody has to stop for this.
            if after == row {
                return self.events_of(at, reader, since, &conversation, row).await;
            }
            row = after;
        }
        Err(too_busy())
    }

    /// Tells what has happened up to the moment of a conversation and a reader.
    async fn events_of(
        &self,
        at: &At,
        reader: &ReaderName,
        since: Since,
        conversation: &Conversation,
        row: ReaderRow,
    ) -> Result<Told, Error> {
        let (tenant, id) = (&at.tenant, &at.conversation);
        let upto = Upto { turn: row.turns, ordinal: row.ordinal };
        let first = since.turn.0.saturating_sub(1);
        let which = Turns::Since { turn: first, rows: ROWS_MAX };
        let turns = self.store().turns(tenant, id, reader, upto, which).await?;
        let mut rows = self.store().forth(tenant, id, since.next, ROWS_MAX).await?;
        rows.retain(|row| Some(row.seq) <= conversation.tally.head());
        // A call is told once all that it had in view is, and of the next one what has come so far.
        let last_row = rows.last().map(|row| row.seq);
        let is_all = rows.len() < ROWS_MAX;
        let which = Decisions::After { ordinal: since.ordinal, rows: ROWS_MAX };
        let decided = self.store().decisions(tenant, id, reader, upto, which).await?;
        let is_all_decided = decided.len() < ROWS_MAX;
        // Of the call to which the last one of a page belongs, more may follow.
        let decided_upto = decided.last().filter(|_| !is_all_decided).map_or(u64::MAX, |row| row.turn);
        let is_whole = |turn: &&TurnRow| (is_all || turn.head <= last_row) && turn.turn < decided_upto;
        let whole = turns.iter().take_while(is_whole).count();
        let upto_turn = first + whole as u64;
        // Of the next call, what was decided is told once all is that it has in view; it may take several pages.
        let is_next_seen = match turns.get(whole) {
            Some(turn) => is_all || turn.head <= last_row,
            None => is_all && upto_turn == row.turns,
        };
        let is_told = |row: &DecisionRow| row.turn < upto_turn || row.turn == upto_turn && is_next_seen;
        let decided: Vec<DecisionRow> = decided.into_iter().take_while(is_told).collect();
        let ordinal = decided.last().map_or(since.ordinal, |row| row.ordinal);
        let decisions = self.with_reverted(at, reader, decided).await?;

        // What came after the last call of a page may belong to one that was not read.
        let told_head = match turns.get(whole) {
            Some(next) => last_row.min(next.head),
            None if turns.len() < ROWS_MAX => last_row,
            None => turns.last().and_then(|turn| turn.head),
        };
        let new: Vec<&Row> = rows.iter().filter(|row| Some(row.seq) <= told_head).collect();
        let next = new.last().map_or(since.next, |row| row.seq.next());
        let tally = new.last().map_or_else(Tally::default, |row| row.tally.clone());
        let is_new = |seq: &Seq| new.iter().any(|row| row.seq == *seq);
        let old: Vec<Seq> = decisions.iter().map(|it| it.edit.change.seq()).filter(|seq| !is_new(seq)).collect();
        let old = self.store().rows(tenant, id, old).await?;
        // Events tell no words.
        let (screen, counter) = (Screen::default(), counter(conversation)?);
        let entries = new.into_iter().chain(&old).map(|row| Ok((row.seq, body::read(row, &screen, &*counter)?)));
        let log = log_of(tally, entries.collect::<Result<_, Error>>()?, counter.clone());
        let calls = turns[..whole].iter().map(|turn| (turn.head, turn.spared)).collect();
        let (below, known) = (Seq(0), BTreeMap::new());
        let name = reader.text().clone();
        let reader = Reader::partial(KnownReader { name, ordinal, turns: first, calls, below, decisions, known });
        let end = Since { ordinal, turn: Turn(upto_turn), next };
        let events = events(&reader, &log, since).collect();
        Ok(Told { events, since: end })
    }

    /// Decisions, with those that were taken back by one of them.
    async fn with_reverted(
        &self,
        at: &At,
        reader: &ReaderName,
        mut rows: Vec<DecisionRow>,
    ) -> Result<Vec<recto::edit::Decision>, Error> {
        let missing = rows.iter().filter(|row| row.kind == DecisionKind::Revert).map(|row| row.about);
        let missing: Vec<u64> = missing.filter(|about| !rows.iter().any(|row| row.ordinal == *about)).collect();
        for ordinal in missing {
            let which = Decisions::After { ordinal: ordinal.saturating_sub(1), rows: 1 };
            rows.extend(self.store().decisions(&at.tenant, &at.conversation, reader, Upto::NOW, which).await?);
        }
        lens::made(rows)
    }

    /// Returns a subscription that tells what happens from a mark on. Changes of this process are told at once, those of
    /// others when the store is next looked at.
    pub fn subscribe(&self, at: &At, reader: &ReaderName, since: Since, poll: Duration) -> Subscription<S> {
        let (engine, at, reader) = (self.clone(), at.clone(), reader.clone());
        Subscription { engine, at, reader, since, version: None, poll }
    }
}

impl<S: Store> Subscription<S> {
    /// Waits until something has happened, and tells it in order.
    pub async fn next(&mut self) -> Result<Vec<Event>, Error> {
        let mut is_woken = false;
        loop {
            let changed = self.engine.inner.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let version = self.engine.conversation(&self.at).await?.version;
            if self.version != Some(version) {
                let told = self.engine.events(&self.at, &self.reader, self.since).await?;
                if told.since == self.since {
                    self.version = Some(version);
                }
                self.since = told.since;
                if !told.events.is_empty() {
                    return Ok(told.events);
                }
                continue;
            }
            if is_woken {
                tokio::time::sleep(REST).await;
            }
            // Whether it was woken or the time is over, it looks again.
            is_woken = tokio::time::timeout(self.poll, changed).await.is_ok();
        }
    }

    /// Returns the mark up to which everything was told.
    pub fn since(&self) -> Since {
        self.since
    }
}

/// A log of which single entries are known.
fn log_of(
    tally: Tally,
    entries: BTreeMap<Seq, std::sync::Arc<recto::log::Counted>>,
    counter: std::sync::Arc<dyn recto::Count>,
) -> Log {
    let strands = vec![Newest::default(); tally.strands().len()];
    Log::partial(counter, std::sync::Arc::default(), Known { tally, strands, entries, ..Known::default() })
}
