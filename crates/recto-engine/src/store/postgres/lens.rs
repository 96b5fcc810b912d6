//! Readers: their rows, decisions and calls, their own and those of the conversation that a fork goes on from.

use super::fault;
use super::found::{BY_NAME as CONVERSATION, Found, Link, with};
use super::pool::{Db, Statement};
use super::value::{Value, maybe_text, number, shared, text, values, whole};
use super::write::record_kind;
use crate::error::Error;
use crate::store::rows::remove_old_cuts;
use crate::store::sqlite::found::{integer, name_key, place};
use crate::store::sqlite::lens::{KINDS, kind_number};
use crate::store::{
    ConversationId, DecisionKind, DecisionRow, Decisions, OpenCall, ROWS_MAX, ReaderName, ReaderRow, Record,
    RecordKind, Tenant, TurnRow, Turns, Upto,
};
use recto::digest::Digest;
use recto::entry::Millis;
use recto::{Seq, Tokens};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;

const BY_NAME: &str = "
    SELECT turns, ordinal, base_turn, base_ordinal FROM reader
    WHERE tenant = $1 AND conversation = $2 AND reader = $3";
const ALL: &str = "
    SELECT name, turns, ordinal FROM reader WHERE tenant = $1 AND conversation = $2 ORDER BY name";
const OPEN: &str = "
    SELECT turn, receipt, input FROM open_call
    WHERE tenant = $1 AND conversation = $2 AND reader = $3 AND ticket = $4";
const KEPT: &str = "
    SELECT key, version, body FROM record WHERE tenant = $1 AND conversation = $2 AND kind = $3 ORDER BY key";

/// Selects decisions of a stretch.
macro_rules! decisions {
    ($which:literal) => {
        concat!(
            "SELECT ordinal, turn, kind, about, body FROM decision WHERE tenant = $1 AND conversation = $2 \
             AND reader = $3 AND ordinal > $4 AND ordinal <= $5 ",
            $which
        )
    };
}

const IN_ORDER: &str = decisions!("ORDER BY ordinal LIMIT $6");
const NEWEST_OF_KIND: &str = decisions!("AND kind = $6 ORDER BY ordinal DESC LIMIT $7");
const OF_KIND: &str = decisions!("AND kind = $6");
const OF_KIND_SINCE: &str = decisions!("AND kind = $6 AND turn >= $7");
const FROM_PLACE: &str = decisions!("AND kind = $6 AND about >= $7");
const ABOUT: &str = decisions!("AND kind = ANY($6) AND about = ANY($7)");
const BEFORE_TURN: &str = "
    SELECT ordinal FROM decision WHERE tenant = $1 AND conversation = $2 AND reader = $3
    AND ordinal > $4 AND ordinal <= $5 AND turn < $6 ORDER BY ordinal DESC LIMIT 1";

const FIRST_WITH: &str = "
    SELECT turn FROM turn WHERE tenant = $1 AND conversation = $2 AND reader = $3 AND head >= $4
    ORDER BY head, turn LIMIT 1";
const TURNS: &str = "
    SELECT turn, head, spared, receipt, at FROM turn WHERE tenant = $1 AND conversation = $2 AND reader = $3
    AND turn >= $4 AND turn < $5 ORDER BY turn LIMIT $6";

/// A reader of one conversation.
#[derive(Clone, Copy)]
pub(super) struct Lens {
    pub(super) key: [u8; 16],
    pub(super) row: ReaderRow,
    /// Up to here its decisions and calls are those of the conversation that this one goes on from.
    pub(super) start: ReaderRow,
}

impl Lens {
    /// Returns a reader that has seen nothing.
    pub(super) fn new(name: &ReaderName) -> Lens {
        Lens::from(name, ReaderRow::default())
    }

    /// Returns a reader of a fork.
    pub(super) fn from(name: &ReaderName, start: ReaderRow) -> Lens {
        Lens { key: name_key(name.as_str()), row: start, start }
    }

    /// Reads the answer to the question for a reader.
    pub(super) fn read(row: Option<&Row>, name: &ReaderName) -> Result<Option<Lens>, Error> {
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Lens {
            key: name_key(name.as_str()),
            row: ReaderRow { turns: whole(row, 0)?, ordinal: whole(row, 1)? },
            start: ReaderRow { turns: whole(row, 2)?, ordinal: whole(row, 3)? },
        }))
    }
}

/// Asks for a reader.
pub(super) fn question<'v>(own: Vec<Value<'v>>, name: &ReaderName) -> Statement<'v> {
    Statement::new(BY_NAME, with(own, values![name_key(name.as_str())]))
}

/// Returns a reader's row.
pub(super) async fn reader(
    db: Db,
    tenant: &Tenant,
    id: &ConversationId,
    name: &ReaderName,
) -> Result<ReaderRow, Error> {
    let asked = vec![question(values![tenant.as_str(), id.as_str()], name)];
    let (_, answers) = Found::live_and(&db, CONVERSATION, (tenant, id), asked).await?;
    let lens = Lens::read(answers.first().and_then(|rows| rows.first()), name)?;
    Ok(lens.map(|lens| lens.row).unwrap_or_default())
}

/// Lists the readers of a conversation.
pub(super) async fn all(db: &Db, found: &Found) -> Result<Vec<(ReaderName, ReaderRow)>, Error> {
    let rows = db.rows(ALL, found.key()).await?;
    let reader = |row: &Row| {
        Ok((ReaderName::from(shared(row, 0)?), ReaderRow { turns: whole(row, 1)?, ordinal: whole(row, 2)? }))
    };
    rows.iter().map(reader).collect()
}

/// Returns an open call.
pub(super) async fn open(
    db: Db,
    tenant: &Tenant,
    id: &ConversationId,
    name: &ReaderName,
    ticket: Digest,
) -> Result<Option<OpenCall>, Error> {
    let which = values![tenant.as_str(), id.as_str(), name_key(name.as_str()), ticket];
    let asked = vec![Statement::new(OPEN, which)];
    let (_, answers) = Found::live_and(&db, CONVERSATION, (tenant, id), asked).await?;
    let Some(row) = answers.first().and_then(|rows| rows.first()) else { return Ok(None) };
    Ok(Some(OpenCall { ticket, turn: whole(row, 0)?, receipt: text(row, 1)?, input: maybe_text(row, 2)? }))
}

/// Reads all records of a kind.
pub(super) async fn kept(db: Db, tenant: &Tenant, id: &ConversationId, kind: RecordKind) -> Result<Vec<Record>, Error> {
    let asked = vec![Statement::new(KEPT, values![tenant.as_str(), id.as_str(), record_kind(kind)])];
    let (_, answers) = Found::live_and(&db, CONVERSATION, (tenant, id), asked).await?;
    let record = |row: &Row| Ok(Record { kind, key: shared(row, 0)?, version: whole(row, 1)?, body: shared(row, 2)? });
    answers.iter().flatten().map(record).collect()
}

/// A stretch of a reader's past that is kept in one conversation.
pub(super) struct Stretch {
    link: Link,
    pub(super) lens: Lens,
    /// Decisions after the first, up to and with the second.
    pub(super) ordinals: (i64, i64),
    /// Calls from the first on, before the second.
    pub(super) turns: (i64, i64),
}

impl Stretch {
    pub(super) fn id(&self) -> &ConversationId {
        &self.link.id
    }

    fn key<'v>(&'v self, found: &'v Found) -> Vec<Value<'v>> {
        with(found.key_of(&self.link), values![self.lens.key])
    }

    /// Begins the values of a question about its decisions.
    fn between<'v>(&'v self, found: &'v Found, low: i64, more: Vec<Value<'v>>) -> Vec<Value<'v>> {
        let bounds = values![self.ordinals.0.max(low), self.ordinals.1];
        with(with(self.key(found), bounds), more)
    }
}

/// Returns where a reader's decisions and calls are kept, the newest first.
pub(super) async fn stretches(db: &Db, found: &Found, name: &ReaderName, upto: Upto) -> Result<Vec<Stretch>, Error> {
    let asked = found.chain.iter().map(|link| question(found.key_of(link), name)).collect();
    of_chain(found, name, upto, &db.all(asked).await?)
}

/// Finds a conversation, and where a reader's decisions and calls are kept: in one go, unless it is a fork.
async fn found_with_stretches(
    db: &Db,
    (tenant, id): (&Tenant, &ConversationId),
    name: &ReaderName,
    upto: Upto,
) -> Result<(Found, Vec<Stretch>), Error> {
    let asked = vec![question(values![tenant.as_str(), id.as_str()], name)];
    let (found, mut answers) = Found::live_and(db, CONVERSATION, (tenant, id), asked).await?;
    let shared = found.chain[1..].iter().map(|link| question(found.key_of(link), name)).collect();
    answers.extend(db.all(shared).await?);
    let stretches = of_chain(&found, name, upto, &answers)?;
    Ok((found, stretches))
}

fn of_chain(found: &Found, name: &ReaderName, upto: Upto, answers: &[Vec<Row>]) -> Result<Vec<Stretch>, Error> {
    let (mut ordinal, mut turn) = (integer(upto.ordinal), integer(upto.turn));
    let mut stretches = Vec::new();
    for (link, rows) in found.chain.iter().zip(answers) {
        let Some(lens) = Lens::read(rows.first(), name)? else { break };
        let start = (integer(lens.start.ordinal), integer(lens.start.turns));
        let (ordinals, turns) = ((start.0, ordinal), (start.1, turn));
        stretches.push(Stretch { link: link.clone(), lens, ordinals, turns });
        (ordinal, turn) = (ordinal.min(start.0), turn.min(start.1));
    }
    Ok(stretches)
}

fn kind(kind: DecisionKind) -> i64 {
    integer(kind_number(kind) as u64)
}

/// Reads decisions.
pub(super) async fn decisions(
    db: &Db,
    key: (&Tenant, &ConversationId),
    name: &ReaderName,
    upto: Upto,
    which: &Decisions,
) -> Result<Vec<DecisionRow>, Error> {
    let (found, stretches) = found_with_stretches(db, key, name, upto).await?;
    let found = &found;
    let mut chosen = BTreeMap::new();
    let mut asked = Vec::new();
    match which {
        Decisions::After { ordinal, rows } => {
            return after(db, found, &stretches, integer(*ordinal), (*rows).min(ROWS_MAX)).await;
        }
        Decisions::Floors(floors) => {
            for it in &stretches {
                let room = floors.saturating_sub(chosen.len());
                let values = it.between(found, i64::MIN, values![kind(DecisionKind::Floor), room]);
                select(db, vec![Statement::new(NEWEST_OF_KIND, values)], &mut chosen).await?;
            }
        }
        Decisions::Standing { from, turn, since } => {
            for it in &stretches {
                let all = |of, low| Statement::new(OF_KIND, it.between(found, low, values![kind(of)]));
                asked.push(all(DecisionKind::Pin, i64::MIN));
                asked.push(all(DecisionKind::Expand, integer(*since)));
                let cuts = it.between(found, i64::MIN, values![kind(DecisionKind::Cut), *turn]);
                asked.push(Statement::new(OF_KIND_SINCE, cuts));
                let newest_cut = it.between(found, i64::MIN, values![kind(DecisionKind::Cut), 1_usize]);
                asked.push(Statement::new(NEWEST_OF_KIND, newest_cut));
                for of in [DecisionKind::Entry, DecisionKind::Expand] {
                    let values = it.between(found, i64::MIN, values![kind(of), from.0]);
                    asked.push(Statement::new(FROM_PLACE, values));
                }
            }
        }
        Decisions::About(seqs) => {
            let kinds: Vec<i64> = KINDS.into_iter().filter(|it| *it != DecisionKind::Revert).map(kind).collect();
            let seqs: Vec<i64> = seqs.iter().map(|seq| integer(seq.0)).collect();
            for it in &stretches {
                let values = it.between(found, i64::MIN, values![kinds.clone(), seqs.clone()]);
                asked.push(Statement::new(ABOUT, values));
            }
        }
    }
    select(db, asked, &mut chosen).await?;
    if let Decisions::Standing { turn, .. } = which {
        remove_old_cuts(&mut chosen, *turn);
    }
    let ordinals: Vec<i64> = chosen.keys().map(|ordinal| integer(*ordinal)).collect();
    if !ordinals.is_empty() {
        let revert = || values![vec![kind(DecisionKind::Revert)], ordinals.clone()];
        let reverts = stretches.iter().map(|it| Statement::new(ABOUT, it.between(found, i64::MIN, revert())));
        select(db, reverts.collect(), &mut chosen).await?;
    }
    Ok(chosen.into_values().collect())
}

async fn after(
    db: &Db,
    found: &Found,
    stretches: &[Stretch],
    ordinal: i64,
    rows_max: usize,
) -> Result<Vec<DecisionRow>, Error> {
    let mut chosen = BTreeMap::new();
    for it in stretches.iter().rev().filter(|it| it.ordinals.0.max(ordinal) < it.ordinals.1) {
        let values = it.between(found, ordinal, values![rows_max - chosen.len()]);
        select(db, vec![Statement::new(IN_ORDER, values)], &mut chosen).await?;
    }
    Ok(chosen.into_values().collect())
}

async fn select(db: &Db, asked: Vec<Statement<'_>>, chosen: &mut BTreeMap<u64, DecisionRow>) -> Result<(), Error> {
    for row in db.all(asked).await?.iter().flatten() {
        let decision = decision(row)?;
        chosen.insert(decision.ordinal, decision);
    }
    Ok(())
}

fn decision(row: &Row) -> Result<DecisionRow, Error> {
    let kind = number(row, 2)?;
    let known = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind)).copied();
    let kind = known.ok_or_else(|| fault::corrupt(format!("a decision of kind {kind}")))?;
    let (ordinal, turn, about) = (whole(row, 0)?, whole(row, 1)?, whole(row, 3)?);
    Ok(DecisionRow { ordinal, turn, kind, about, body: text(row, 4)? })
}

/// Returns the newest decision that was made before a call.
pub(super) async fn newest_before(db: &Db, found: &Found, stretches: &[Stretch], turn: u64) -> Result<u64, Error> {
    for it in stretches {
        if let Some(row) = db.row(BEFORE_TURN, it.between(found, i64::MIN, values![turn])).await? {
            return whole(&row, 0);
        }
    }
    Ok(0)
}

/// Reads acknowledged calls.
pub(super) async fn turns(
    db: &Db,
    key: (&Tenant, &ConversationId),
    name: &ReaderName,
    upto: Upto,
    which: &Turns,
) -> Result<Vec<TurnRow>, Error> {
    let (found, stretches) = found_with_stretches(db, key, name, upto).await?;
    let found = &found;
    let own = stretches.first().filter(|it| it.id() == found.id());
    let made = own.map_or(0, |it| it.lens.row.turns).min(upto.turn);
    let one = |turn: u64| (turn, made.min(turn.saturating_add(1)), 1);
    match which {
        Turns::From(seq) => {
            let first = first_with(db, found, &stretches, made, &[*seq]).await?;
            between(db, found, &stretches, vec![(first.first().copied().unwrap_or(made), made, usize::MAX)]).await
        }
        Turns::Since { turn, rows } => between(db, found, &stretches, vec![(*turn, made, (*rows).min(ROWS_MAX))]).await,
        Turns::One(turn) => between(db, found, &stretches, vec![one(*turn)]).await,
        Turns::FirstWith(seqs) => {
            let firsts = first_with(db, found, &stretches, made, seqs).await?;
            let firsts = BTreeSet::from_iter(firsts).into_iter().filter(|turn| *turn < made);
            between(db, found, &stretches, firsts.map(one).collect()).await
        }
    }
}

/// Returns, for each entry, the first call whose head is this entry or a newer one. Heads never fall, so it is the lowest
/// of those.
pub(super) async fn first_with(
    db: &Db,
    found: &Found,
    stretches: &[Stretch],
    made: u64,
    seqs: &[Seq],
) -> Result<Vec<u64>, Error> {
    let asked = seqs.iter().flat_map(|seq| stretches.iter().rev().map(move |it| (it, *seq)));
    let asked = asked.map(|(it, seq)| Statement::new(FIRST_WITH, with(it.key(found), values![seq.0])));
    let answers = db.all(asked.collect()).await?;
    let mut firsts = Vec::new();
    for of_seq in answers.chunks(stretches.len().max(1)) {
        let mut first = made;
        for (it, rows) in stretches.iter().rev().zip(of_seq) {
            let Some(row) = rows.first() else { continue };
            if number(row, 0)? < it.turns.1 {
                first = first.min(whole(row, 0)?);
                break;
            }
        }
        firsts.push(first);
    }
    Ok(firsts)
}

/// Reads calls from the first on, before the end, at most so many of each span.
async fn between(
    db: &Db,
    found: &Found,
    stretches: &[Stretch],
    spans: Vec<(u64, u64, usize)>,
) -> Result<Vec<TurnRow>, Error> {
    let mut asked = Vec::new();
    let mut most = 0_usize;
    for &(first, end, rows) in &spans {
        most = most.saturating_add(rows);
        for it in stretches.iter().rev() {
            let (low, high) = (it.turns.0.max(integer(first)), it.turns.1.min(integer(end)));
            if low < high {
                asked.push(Statement::new(TURNS, with(it.key(found), values![low, high, rows])));
            }
        }
    }
    let rows = db.all(asked).await?;
    rows.iter().flatten().take(most).map(turn).collect()
}

fn turn(row: &Row) -> Result<TurnRow, Error> {
    Ok(TurnRow {
        turn: whole(row, 0)?,
        head: place(number(row, 1)?),
        spared: Tokens(whole(row, 2)?),
        receipt: text(row, 3)?,
        at: Millis(number(row, 4)?),
    })
}
