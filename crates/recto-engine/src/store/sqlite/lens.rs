//! Readers: their rows, decisions and calls, their own and those of the conversation that a fork goes on from.

use super::db::Db;
use super::fault;
use super::found::{Found, NO_TEXT, blob, integer, name_key, place, put_text, shared, whole};
use crate::error::Error;
use crate::store::rows::remove_old_cuts;
use crate::store::{
    DecisionKind, DecisionRow, Decisions, OpenCall, ROWS_MAX, ReaderName, ReaderRow, Record, RecordKind, TurnRow,
    Turns, Upto,
};
use recto::digest::Digest;
use recto::entry::Millis;
use recto::{Seq, Tokens};
use rusqlite::{OptionalExtension, Params, Row, params};
use std::collections::{BTreeMap, BTreeSet};

/// The name of nearly every reader. It is nobody's words, and stands nowhere.
pub(super) const USUAL_NAME: &str = "main";

/// Selects the name of reader `r`, whose text is `t`.
macro_rules! reader_name {
    () => {
        "CASE r.name WHEN 0 THEN 'main' ELSE t.body END"
    };
}
#[cfg(feature = "postgres")]
pub(super) use reader_name;

const BY_NAME: &str = "SELECT r, turns, ordinal, base_turn, base_ordinal FROM reader WHERE n = ?1 AND key = ?2";
const MAKE: &str = "
    INSERT INTO reader (n, key, name, turns, ordinal, base_turn, base_ordinal) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const PUT: &str = "UPDATE reader SET turns = ?2, ordinal = ?3 WHERE r = ?1";
const ALL: &str = concat!(
    "SELECT ",
    reader_name!(),
    ", r.turns, r.ordinal FROM reader r LEFT JOIN text t ON t.id = r.name WHERE r.n = ?1 ORDER BY 1"
);
const OPEN: &str = "SELECT turn, receipt, input FROM open_call WHERE r = ?1 AND ticket = ?2";
const KEPT: &str = "SELECT key, version, body FROM record WHERE n = ?1 AND kind = ?2 ORDER BY key";

/// Selects all that is told of a reader's decisions.
macro_rules! decisions {
    ($which:literal) => {
        concat!(
            "SELECT d.ordinal, d.turn, d.kind, d.about, t.body FROM decision d CROSS JOIN text t ON t.id = d.body \
             WHERE d.r = ?1 AND ",
            $which
        )
    };
}

const IN_ORDER: &str = decisions!("d.ordinal > ?2 AND d.ordinal <= ?3 ORDER BY d.ordinal LIMIT ?4");
const NEWEST_OF_KIND: &str =
    decisions!("d.ordinal > ?2 AND d.ordinal <= ?3 AND d.kind = ?4 ORDER BY d.ordinal DESC LIMIT ?5");
const OF_KIND: &str = decisions!("d.ordinal > ?2 AND d.ordinal <= ?3 AND d.kind = ?4");
// The sign keeps SQLite from walking all of a kind by their numbers.
const FROM_PLACE: &str = decisions!("+d.ordinal > ?2 AND +d.ordinal <= ?3 AND d.kind = ?4 AND d.about >= ?5");
const ABOUT: &str = decisions!("+d.ordinal > ?2 AND +d.ordinal <= ?3 AND d.kind = ?4 AND d.about = ?5");
const NEWEST: &str = "SELECT max(ordinal) FROM decision WHERE r = ?1";
const TURN_OF: &str = "SELECT turn FROM decision WHERE r = ?1 AND ordinal = ?2";
const BEFORE_TURN: &str = "
    SELECT ordinal FROM decision WHERE r = ?1 AND ordinal > ?2 AND ordinal <= ?3 AND turn < ?4
    ORDER BY ordinal DESC LIMIT 1";

const TURN_HEAD: &str = "SELECT head FROM turn WHERE r = ?1 AND turn = ?2";
const TURNS: &str = "
    SELECT c.turn, c.head, c.spared, t.body, c.at FROM turn c CROSS JOIN text t ON t.id = c.receipt
    WHERE c.r = ?1 AND c.turn >= ?2 AND c.turn < ?3 ORDER BY c.turn LIMIT ?4";

pub(in crate::store) const KINDS: [DecisionKind; 6] = [
    DecisionKind::Entry,
    DecisionKind::Floor,
    DecisionKind::Pin,
    DecisionKind::Cut,
    DecisionKind::Expand,
    DecisionKind::Revert,
];
const RECORD_KINDS: [RecordKind; 4] = [RecordKind::Session, RecordKind::Note, RecordKind::Want, RecordKind::Secrets];

/// Returns the number of a kind of decision.
pub(in crate::store) fn kind_number(kind: DecisionKind) -> usize {
    KINDS.iter().position(|it| *it == kind).expect("every kind is listed")
}

/// Returns the number of a kind of record.
pub(in crate::store) fn record_number(kind: RecordKind) -> usize {
    RECORD_KINDS.iter().position(|it| *it == kind).expect("every kind is listed")
}

/// A reader of one conversation.
#[derive(Clone, Copy)]
pub(super) struct Lens {
    pub(super) r: i64,
    pub(super) row: ReaderRow,
    /// Up to here its decisions and calls are those of the conversation that this one goes on from.
    pub(super) start: ReaderRow,
    /// Whether calls of it may be open.
    pub(super) may_wait: bool,
}

impl Lens {
    /// Finds a reader.
    pub(super) fn of(db: &Db<'_>, n: i64, name: &ReaderName) -> Result<Option<Lens>, Error> {
        let mut statement = db.prepare_cached(BY_NAME)?;
        let mut rows = statement.query(params![n, name_key(name.as_str())])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(Lens {
            r: row.get(0)?,
            row: ReaderRow { turns: whole(row.get(1)?)?, ordinal: whole(row.get(2)?)? },
            start: ReaderRow { turns: whole(row.get(3)?)?, ordinal: whole(row.get(4)?)? },
            may_wait: true,
        }))
    }
}

/// Makes a reader of a fork.
pub(super) fn make_from(db: &Db<'_>, n: i64, name: &ReaderName, start: ReaderRow) -> Result<Lens, Error> {
    make(db, n, name, start, start)
}

/// Writes how far a reader has come; one that is not there yet is made.
pub(super) fn put(db: &Db<'_>, n: i64, name: &ReaderName, known: Option<Lens>, row: ReaderRow) -> Result<Lens, Error> {
    let Some(lens) = known else { return make(db, n, name, ReaderRow::default(), row) };
    db.prepare_cached(PUT)?.execute(params![lens.r, integer(row.turns), integer(row.ordinal)])?;
    Ok(Lens { row, ..lens })
}

fn make(db: &Db<'_>, n: i64, name: &ReaderName, start: ReaderRow, row: ReaderRow) -> Result<Lens, Error> {
    let text = if name.as_str() == USUAL_NAME { NO_TEXT } else { put_text(db, name.as_str(), "")? };
    let key = name_key(name.as_str());
    let (turns, ordinal) = (integer(row.turns), integer(row.ordinal));
    let (base_turn, base_ordinal) = (integer(start.turns), integer(start.ordinal));
    db.prepare_cached(MAKE)?.execute(params![n, key, text, turns, ordinal, base_turn, base_ordinal])?;
    Ok(Lens { r: db.last_insert_rowid(), row, start, may_wait: false })
}

/// Lists the readers of a conversation.
pub(super) fn all(db: &Db<'_>, found: &Found) -> Result<Vec<(ReaderName, ReaderRow)>, Error> {
    let mut statement = db.prepare_cached(ALL)?;
    let mut rows = statement.query([found.n])?;
    let mut readers = Vec::new();
    while let Some(row) = rows.next()? {
        let turns = whole(row.get(1)?)?;
        readers.push((row.get::<_, String>(0)?.into(), ReaderRow { turns, ordinal: whole(row.get(2)?)? }));
    }
    Ok(readers)
}

/// Returns an open call.
pub(super) fn open(db: &Db<'_>, found: &Found, name: &ReaderName, ticket: Digest) -> Result<Option<OpenCall>, Error> {
    let Some(lens) = Lens::of(db, found.n, name)? else { return Ok(None) };
    let mut statement = db.prepare_cached(OPEN)?;
    let mut rows = statement.query(params![lens.r, blob(ticket)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(OpenCall { ticket, turn: whole(row.get(0)?)?, receipt: row.get(1)?, input: row.get(2)? }))
}

/// Reads all records of a kind.
pub(super) fn kept(db: &Db<'_>, found: &Found, kind: RecordKind) -> Result<Vec<Record>, Error> {
    let mut statement = db.prepare_cached(KEPT)?;
    let mut rows = statement.query(params![found.n, record_number(kind)])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let (key, body) = (shared(row.get(0)?), shared(row.get(2)?));
        records.push(Record { kind, key, version: whole(row.get(1)?)?, body });
    }
    Ok(records)
}

/// A stretch of a reader's past that is kept in one conversation.
pub(super) struct Stretch {
    pub(super) r: i64,
    /// Decisions after the first, up to and with the second.
    pub(super) ordinals: (i64, i64),
    /// Calls from the first on, before the second.
    pub(super) turns: (i64, i64),
}

/// Returns where a reader's decisions and calls are kept, the newest first.
pub(super) fn stretches(db: &Db<'_>, found: &Found, name: &ReaderName, upto: Upto) -> Result<Vec<Stretch>, Error> {
    let (mut ordinal, mut turn) = (integer(upto.ordinal), integer(upto.turn));
    let mut stretches = Vec::new();
    for link in &found.chain {
        let Some(lens) = Lens::of(db, link.n, name)? else { break };
        let start = (integer(lens.start.ordinal), integer(lens.start.turns));
        stretches.push(Stretch { r: lens.r, ordinals: (start.0, ordinal), turns: (start.1, turn) });
        (ordinal, turn) = (ordinal.min(start.0), turn.min(start.1));
    }
    Ok(stretches)
}

/// Reads decisions.
pub(super) fn decisions(
    db: &Db<'_>,
    found: &Found,
    name: &ReaderName,
    upto: Upto,
    which: &Decisions,
) -> Result<Vec<DecisionRow>, Error> {
    let stretches = stretches(db, found, name, upto)?;
    let mut chosen = BTreeMap::new();
    match which {
        Decisions::After { ordinal, rows } => return after(db, &stretches, integer(*ordinal), (*rows).min(ROWS_MAX)),
        Decisions::Floors(floors) => {
            for it in &stretches {
                let kind = kind_number(DecisionKind::Floor);
                let room = i64::try_from(floors.saturating_sub(chosen.len())).unwrap_or(i64::MAX);
                let bounds = params![it.r, it.ordinals.0, it.ordinals.1, kind, room];
                select(db, NEWEST_OF_KIND, bounds, &mut chosen)?;
            }
        }
        Decisions::Standing { from, turn, since } => {
            let (from, since) = (integer(from.0), integer(*since));
            for it in &stretches {
                let (low, high) = it.ordinals;
                let (pin, cut) = (kind_number(DecisionKind::Pin), kind_number(DecisionKind::Cut));
                select(db, OF_KIND, params![it.r, low, high, pin], &mut chosen)?;
                let first = first_of_turn(db, it, integer(*turn))?;
                select(db, OF_KIND, params![it.r, low.max(first - 1), high, cut], &mut chosen)?;
                select(db, NEWEST_OF_KIND, params![it.r, low, high, cut, 1], &mut chosen)?;
                for kind in [DecisionKind::Entry, DecisionKind::Expand] {
                    select(db, FROM_PLACE, params![it.r, low, high, kind_number(kind), from], &mut chosen)?;
                }
                let expand = kind_number(DecisionKind::Expand);
                select(db, OF_KIND, params![it.r, low.max(since), high, expand], &mut chosen)?;
            }
            remove_old_cuts(&mut chosen, *turn);
        }
        Decisions::About(seqs) => {
            for (it, seq) in stretches.iter().flat_map(|it| seqs.iter().map(move |seq| (it, seq))) {
                for kind in KINDS.into_iter().filter(|kind| *kind != DecisionKind::Revert) {
                    let bounds = params![it.r, it.ordinals.0, it.ordinals.1, kind_number(kind), integer(seq.0)];
                    select(db, ABOUT, bounds, &mut chosen)?;
                }
            }
        }
    }
    let ordinals: Vec<u64> = chosen.keys().copied().collect();
    let revert = kind_number(DecisionKind::Revert);
    for (it, ordinal) in stretches.iter().flat_map(|it| ordinals.iter().map(move |ordinal| (it, *ordinal))) {
        let bounds = params![it.r, it.ordinals.0, it.ordinals.1, revert, integer(ordinal)];
        select(db, ABOUT, bounds, &mut chosen)?;
    }
    Ok(chosen.into_values().collect())
}

/// The number of the first decision that was made before a call or a later one. Calls never fall from one decision to the
/// next, so halving finds it.
fn first_of_turn(db: &Db<'_>, it: &Stretch, turn: i64) -> Result<i64, Error> {
    let newest = db.prepare_cached(NEWEST)?.query_row([it.r], |row| row.get::<_, Option<i64>>(0))?;
    let (mut low, mut high) = (it.ordinals.0 + 1, newest.unwrap_or(0).min(it.ordinals.1) + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let made = db.prepare_cached(TURN_OF)?.query_row([it.r, middle], |row| row.get::<_, i64>(0)).optional()?;
        match made.ok_or_else(|| fault::corrupt(format!("decision {middle} is gone")))? >= turn {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(low)
}

fn after(db: &Db<'_>, stretches: &[Stretch], ordinal: i64, rows_max: usize) -> Result<Vec<DecisionRow>, Error> {
    let mut chosen = BTreeMap::new();
    for it in stretches.iter().rev() {
        let room = i64::try_from(rows_max - chosen.len()).unwrap_or(i64::MAX);
        let bounds = params![it.r, it.ordinals.0.max(ordinal), it.ordinals.1, room];
        select(db, IN_ORDER, bounds, &mut chosen)?;
    }
    Ok(chosen.into_values().collect())
}

fn select(
    db: &Db<'_>,
    which: &'static str,
    bounds: impl Params,
    chosen: &mut BTreeMap<u64, DecisionRow>,
) -> Result<(), Error> {
    let mut statement = db.prepare_cached(which)?;
    let mut rows = statement.query(bounds)?;
    while let Some(row) = rows.next()? {
        let decision = decision(row)?;
        chosen.insert(decision.ordinal, decision);
    }
    Ok(())
}

fn decision(row: &Row<'_>) -> Result<DecisionRow, Error> {
    let kind: usize = row.get(2)?;
    let kind = *KINDS.get(kind).ok_or_else(|| fault::corrupt(format!("a decision of kind {kind}")))?;
    let (ordinal, turn, about) = (whole(row.get(0)?)?, whole(row.get(1)?)?, whole(row.get(3)?)?);
    Ok(DecisionRow { ordinal, turn, kind, about, body: row.get(4)? })
}

/// Returns the newest decision that was made before a call.
pub(super) fn newest_before(db: &Db<'_>, stretches: &[Stretch], turn: u64) -> Result<u64, Error> {
    for it in stretches {
        let bounds = params![it.r, it.ordinals.0, it.ordinals.1, integer(turn)];
        if let Some(found) = db.prepare_cached(BEFORE_TURN)?.query_row(bounds, |row| row.get(0)).optional()? {
            return whole(found);
        }
    }
    Ok(0)
}

/// Reads acknowledged calls.
pub(super) fn turns(
    db: &Db<'_>,
    found: &Found,
    name: &ReaderName,
    upto: Upto,
    which: &Turns,
) -> Result<Vec<TurnRow>, Error> {
    let stretches = stretches(db, found, name, upto)?;
    let made = Lens::of(db, found.n, name)?.map_or(0, |lens| lens.row.turns).min(upto.turn);
    match which {
        Turns::From(seq) => between(db, &stretches, first_with(db, &stretches, made, *seq)?, made, usize::MAX),
        Turns::Since { turn, rows } => between(db, &stretches, *turn, made, (*rows).min(ROWS_MAX)),
        Turns::One(turn) => between(db, &stretches, *turn, made.min(turn.saturating_add(1)), 1),
        Turns::FirstWith(seqs) => {
            let firsts = seqs.iter().map(|seq| first_with(db, &stretches, made, *seq));
            let mut calls = Vec::new();
            for turn in firsts.collect::<Result<BTreeSet<u64>, Error>>()? {
                calls.extend(between(db, &stretches, turn, made.min(turn.saturating_add(1)), 1)?);
            }
            Ok(calls)
        }
    }
}

/// Returns the first call whose head is an entry or a newer one. Heads never fall, so halving finds it.
pub(super) fn first_with(db: &Db<'_>, stretches: &[Stretch], made: u64, seq: Seq) -> Result<u64, Error> {
    let (mut low, mut high) = (0, made);
    while low < high {
        let middle = low + (high - low) / 2;
        match head_of(db, stretches, integer(middle))? >= integer(seq.0) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(low)
}

fn head_of(db: &Db<'_>, stretches: &[Stretch], turn: i64) -> Result<i64, Error> {
    let gone = || fault::corrupt(format!("call {turn} is gone"));
    let it = stretches.iter().find(|it| it.turns.0 <= turn && turn < it.turns.1).ok_or_else(gone)?;
    db.prepare_cached(TURN_HEAD)?.query_row([it.r, turn], |row| row.get(0)).optional()?.ok_or_else(gone)
}

fn between(db: &Db<'_>, stretches: &[Stretch], first: u64, end: u64, rows_max: usize) -> Result<Vec<TurnRow>, Error> {
    let mut calls = Vec::new();
    for it in stretches.iter().rev() {
        let room = i64::try_from(rows_max - calls.len()).unwrap_or(i64::MAX);
        let (low, high) = (it.turns.0.max(integer(first)), it.turns.1.min(integer(end)));
        let mut statement = db.prepare_cached(TURNS)?;
        let mut rows = statement.query(params![it.r, low, high, room])?;
        while let Some(row) = rows.next()? {
            calls.push(TurnRow {
                turn: whole(row.get(0)?)?,
                head: place(row.get(1)?),
                spared: Tokens(whole(row.get(2)?)?),
                receipt: row.get(3)?,
                at: Millis(row.get(4)?),
            });
        }
    }
    Ok(calls)
}
