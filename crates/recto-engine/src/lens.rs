//! Reads as much of a stored reader as is asked of it: what stands above its floor, and what else turns out to matter.

use crate::body;
use crate::error::{Error, Kind};
use crate::store::{
    ConversationId, DecisionKind, DecisionRow, Decisions, ReaderName, ReaderRow, Store, Tenant, TurnRow, Turns, Upto,
};
use recto::digest::Digest;
use recto::edit::{Change, Decision, Edit, Reverted, Turn};
use recto::reader::{Came, KnownReader, MissingReader};
use recto::{Reader, Seq, Tokens};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How many of its last calls are read in any case: a page marks where earlier ones ended.
const LAST_CALLS: u64 = 8;
/// How many floors are looked at for one that was not taken back; if there is none among them, all is read.
const FLOORS_MAX: usize = 8;
/// How many entries below the floor are read before they are asked for.
const KEPT_MAX: usize = 64;
/// How many rows are read at once where all are wanted.
const PAGE_ROWS: usize = 10_000;

/// A decision as it is stored; what number it has and when it was made stands beside it.
#[derive(Serialize, Deserialize)]
struct Body {
    edit: Edit,
    policy: Digest,
}

/// What was read of a stored reader so far.
pub(crate) struct Lens<'s, S> {
    store: &'s S,
    tenant: &'s Tenant,
    id: &'s ConversationId,
    name: &'s ReaderName,
    upto: Upto,
    /// Its row as it is, or as it was at the point up to which it is read.
    pub(crate) row: ReaderRow,
    known: KnownReader,
}

impl<'s, S: Store> Lens<'s, S> {
    /// Reads what stands above the floor.
    pub(crate) async fn open(
        store: &'s S,
        tenant: &'s Tenant,
        id: &'s ConversationId,
        name: &'s ReaderName,
        upto: Upto,
    ) -> Result<Lens<'s, S>, Error> {
        let now = store.reader(tenant, id, name).await?;
        let row = ReaderRow { turns: now.turns.min(upto.turn), ordinal: now.ordinal.min(upto.ordinal) };
        // What comes in meanwhile is left out, so that all of it is of one moment.
        let upto = Upto { turn: row.turns, ordinal: row.ordinal };
        let known = KnownReader {
            name: name.text().clone(),
            ordinal: row.ordinal,
            turns: 0,
            calls: Vec::new(),
            below: Seq(0),
            decisions: Vec::new(),
            known: BTreeMap::new(),
        };
        let mut lens = Lens { store, tenant, id, name, upto, row, known };
        let floors = if row.ordinal == 0 { Vec::new() } else { lens.decisions(Decisions::Floors(FLOORS_MAX)).await? };
        match made(floors)?.into_iter().rfind(|it| it.reverted.is_none()) {
            Some(floor) => lens.read_above(floor).await?,
            None => lens.read_all().await?,
        }
        Ok(lens)
    }

    /// Returns the part of the reader that was read so far.
    pub(crate) fn reader(&self) -> Reader {
        Reader::partial(self.known.clone())
    }

    /// Returns the places below the floor that a page will most likely ask for: what the floor names, and its edge.
    pub(crate) fn kept_below(&self) -> Vec<Seq> {
        let live = self.known.decisions.iter().rev().filter(|it| it.reverted.is_none());
        let floor = live.into_iter().find_map(|it| match &it.edit.change {
            Change::Floor(floor) => Some(floor),
            _ => None,
        });
        let edge = floor.and_then(|floor| body::before(floor.at));
        floor.into_iter().flat_map(|floor| floor.keeps.iter().copied()).chain(edge).take(KEPT_MAX).collect()
    }

    /// Returns its newest acknowledged call, if it has one.
    pub(crate) async fn last_call(&self) -> Result<Option<TurnRow>, Error> {
        let Some(last) = self.row.turns.checked_sub(1) else { return Ok(None) };
        Ok(self.turns(Turns::One(last)).await?.into_iter().next())
    }

    /// Reads what was missing.
    pub(crate) async fn fetch(&mut self, missing: &[MissingReader]) -> Result<(), Error> {
        if missing.contains(&MissingReader::All) {
            return self.read_all().await;
        }
        let about = missing.iter().filter_map(|it| match it {
            MissingReader::About(seq) => Some(*seq),
            MissingReader::All => None,
        });
        let about: Vec<Seq> = about.collect();
        if about.is_empty() {
            return Ok(());
        }
        let rows = self.decisions(Decisions::About(about.clone())).await?;
        self.add(made(rows)?);
        let turns = self.turns(Turns::FirstWith(about.clone())).await?;
        for seq in about {
            let first = turns.iter().filter(|turn| turn.head >= Some(seq)).min_by_key(|turn| turn.turn);
            let came = match first {
                Some(turn) => Came { turn: Turn(turn.turn), head: turn.head },
                None => Came { turn: Turn(self.row.turns), head: None },
            };
            self.known.known.insert(seq, came);
        }
        Ok(())
    }

    async fn read_above(&mut self, floor: Decision) -> Result<(), Error> {
        let (from, since) = (floor.edit.change.seq(), floor.ordinal);
        let mut turns = self.turns(Turns::From(from)).await?;
        let last = self.row.turns.saturating_sub(LAST_CALLS);
        if turns.first().is_none_or(|first| first.turn > last) {
            turns = self.turns(Turns::Since { turn: last, rows: PAGE_ROWS }).await?;
        }
        let turn = turns.first().map_or(self.row.turns, |first| first.turn);
        let rows = self.decisions(Decisions::Standing { from, turn, since }).await?;
        self.add(made(rows)?);
        self.add(vec![floor]);
        (self.known.below, self.known.turns) = (from, turn);
        self.known.calls = turns.into_iter().map(|turn| (turn.head, turn.spared)).collect();
        Ok(())
    }

    async fn read_all(&mut self) -> Result<(), Error> {
        let mut rows: Vec<DecisionRow> = Vec::new();
        while rows.last().map_or(0, |row| row.ordinal) < self.row.ordinal {
            let ordinal = rows.last().map_or(0, |row| row.ordinal);
            let page = self.decisions(Decisions::After { ordinal, rows: PAGE_ROWS }).await?;
            if page.is_empty() {
                break;
            }
            rows.extend(page);
        }
        let mut calls: Vec<(Option<Seq>, Tokens)> = Vec::new();
        while (calls.len() as u64) < self.row.turns {
            let page = self.turns(Turns::Since { turn: calls.len() as u64, rows: PAGE_ROWS }).await?;
            if page.is_empty() {
                break;
            }
            calls.extend(page.into_iter().map(|turn| (turn.head, turn.spared)));
        }
        (self.known.decisions, self.known.calls) = (made(rows)?, calls);
        (self.known.turns, self.known.below) = (0, Seq(0));
        self.known.known.clear();
        Ok(())
    }

    fn add(&mut self, more: Vec<Decision>) {
        let known: BTreeSet<u64> = self.known.decisions.iter().map(|it| it.ordinal).collect();
        self.known.decisions.extend(more.into_iter().filter(|it| !known.contains(&it.ordinal)));
        self.known.decisions.sort_by_key(|it| it.ordinal);
    }

    async fn decisions(&self, which: Decisions) -> Result<Vec<DecisionRow>, Error> {
        self.store.decisions(self.tenant, self.id, self.name, self.upto, which).await
    }

    async fn turns(&self, which: Turns) -> Result<Vec<TurnRow>, Error> {
        self.store.turns(self.tenant, self.id, self.name, self.upto, which).await
    }
}

/// The decisions that rows tell of, with their reverts.
pub(crate) fn made(rows: Vec<DecisionRow>) -> Result<Vec<Decision>, Error> {
    let mut decisions: BTreeMap<u64, Decision> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind != DecisionKind::Revert) {
        let body: Body = serde_json::from_str(&row.body)
            .map_err(|error| Kind::Corrupt { what: format!("decision {}: {error}", row.ordinal) })?;
        let (ordinal, turn) = (row.ordinal, Turn(row.turn));
        decisions.insert(ordinal, Decision { ordinal, turn, edit: body.edit, policy: body.policy, reverted: None });
    }
    for row in rows.iter().filter(|row| row.kind == DecisionKind::Revert) {
        if let Some(decision) = decisions.get_mut(&row.about) {
            decision.reverted = Some(Reverted { ordinal: row.ordinal, turn: Turn(row.turn) });
        }
    }
    Ok(decisions.into_values().collect())
}

/// Writes decisions down, numbered on from a reader's row.
pub(crate) fn written(edits: &[Edit], policy: Digest, row: ReaderRow) -> Vec<DecisionRow> {
    let numbered = edits.iter().zip(row.ordinal + 1..);
    numbered.map(|(edit, ordinal)| rewritten(edit.clone(), policy, ordinal, row.turns)).collect()
}

/// Writes one decision down.
pub(crate) fn rewritten(edit: Edit, policy: Digest, ordinal: u64, turn: u64) -> DecisionRow {
    let kind = match &edit.change {
        Change::Floor(_) => DecisionKind::Floor,
        Change::Pin(_) => DecisionKind::Pin,
        Change::Cut { .. } => DecisionKind::Cut,
        Change::Expand { .. } => DecisionKind::Expand,
        _ => DecisionKind::Entry,
    };
    let about = edit.change.seq().0;
    let body = serde_json::to_string(&Body { edit, policy }).expect("an edit is plain data");
    DecisionRow { ordinal, turn, kind, about, body }
}

/// Writes down that a decision is taken back.
pub(crate) fn revert(of: u64, row: ReaderRow) -> DecisionRow {
    DecisionRow {
        ordinal: row.ordinal + 1,
        turn: row.turns,
        kind: DecisionKind::Revert,
        about: of,
        body: String::new(),
    }
}
