//! Erasing: a fence, deletes in small transactions, and a tombstone.
//!
//! What is deleted is gone for everybody who asks the server. When it leaves the server's own files is up to its vacuum,
//! its archives and its backups.

use super::Postgres;
use super::fork;
use super::found::{BY_NAME_LOCKED, Found, with};
use super::lens;
use super::pool::{Db, Statement};
use super::transaction::Plan;
use super::value::{maybe_text, number, shared, values};
use super::write::wrote;
use crate::error::{Error, Kind};
use crate::store::sqlite::found::{digest as read_digest, integer};
use crate::store::sqlite::lens::kind_number;
use crate::store::{ConversationId, DecisionRow, EraseEntries, Forks, ReaderName, Remains, State, Tenant, Upto};
use recto::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// How many rows of each table one transaction deletes.
const STEP_ROWS: i64 = 500;
/// How many generations of forks an erase follows; no chain of parents is longer without having been copied more often
/// than anybody forks.
const GENERATIONS_MAX: usize = 10_000;
/// How many interrupted erases are finished when a store is opened; others are finished the next time.
const INTERRUPTED_MAX: i64 = 1_000;

const FENCE: &str = "
    UPDATE conversation SET state = 1, epoch = epoch + 1 WHERE tenant = $1 AND conversation = $2 AND state = 0";
const NOTE: &str = "
    INSERT INTO erasing (tenant, conversation) VALUES ($1, $2) ON CONFLICT (tenant, conversation) DO NOTHING";
const INTERRUPTED: &str = "SELECT tenant, conversation FROM erasing LIMIT $1";
const HELD: &str = "SELECT count(*) FROM entry WHERE tenant = $1 AND conversation = $2";
const TOMB: &str = "
    UPDATE conversation SET state = 2, parent = NULL, upto = -1, chain = '', title = '', meta = '', strands = '',
        tally = '', seq = -1, version = version + 1
    WHERE tenant = $1 AND conversation = $2 AND state = 1";
const DROP_NOTE: &str = "DELETE FROM erasing WHERE tenant = $1 AND conversation = $2";

/// Deletes some rows of a table, by what tells them apart within a conversation.
macro_rules! some_of {
    ($table:literal, $key:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE tenant = $1 AND conversation = $2 AND (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE tenant = $1 AND conversation = $2 LIMIT $3) RETURNING 1::BIGINT"
        )
    };
}

/// One for each table that holds rows of a conversation.
pub(super) const DROPS: [&str; 12] = [
    some_of!("entry", "seq"),
    some_of!("content", "hash"),
    some_of!("decision", "reader, ordinal"),
    some_of!("turn", "reader, turn"),
    some_of!("open_call", "reader, ticket"),
    some_of!("reader", "reader"),
    some_of!("append_key", "key"),
    some_of!("link", "prefix"),
    some_of!("record", "kind, key"),
    some_of!("written", "version"),
    some_of!("posting", "term, seq"),
    some_of!("word_index", "upto"),
];

const ENTRY: &str = "
    SELECT erased, large FROM entry WHERE tenant = $1 AND conversation = $2 AND seq = $3 FOR UPDATE";
const REMAIN: &str = "
    UPDATE entry SET erased = 1, large = $6, body = $4, counts = $5
    WHERE tenant = $1 AND conversation = $2 AND seq = $3";
const UNREFER: &str = "
    UPDATE content SET refs = refs - c.less FROM unnest($3::BYTEA[], $4::BIGINT[]) AS c (digest, less)
    WHERE tenant = $1 AND conversation = $2 AND hash = c.digest";
const DROP_UNUSED: &str = "
    DELETE FROM content WHERE tenant = $1 AND conversation = $2 AND hash = ANY($3) AND refs <= 0 AND kept = 0";
const FAMILY: &str = "
    SELECT conversation, upto FROM conversation WHERE tenant = $1 AND parent = $2 AND state = 0";
const PARENT: &str = "
    SELECT parent, upto FROM conversation WHERE tenant = $1 AND conversation = $2 FOR UPDATE";
const PUT_DECISION: &str = "
    UPDATE decision SET turn = $5, kind = $6, about = $7, body = $8
    WHERE tenant = $1 AND conversation = $2 AND reader = $3 AND ordinal = $4";
const WROTE_ALL: &str = "
    UPDATE conversation SET version = version + 1 WHERE tenant = $1 AND conversation = ANY($2)";

/// Fences a conversation, and its forks if they are to go too; returns all of them with how many entries they hold, the
/// deepest first; none, if it was erased before.
pub(super) async fn fence<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    forks: Forks,
) -> Result<Plan<'v, Vec<(ConversationId, u64)>>, Error> {
    let rows = db.rows(BY_NAME_LOCKED, values![tenant.as_str(), id.as_str()]).await?;
    if Found::of(&rows, tenant, id)?.conversation.state == State::Erased {
        return Ok(Plan::nothing(Vec::new()));
    }
    let direct = fork::forks(&db, tenant, id).await?;
    if forks == Forks::Refuse && !direct.is_empty() {
        return Err(Kind::HasForks { conversation: id.clone(), forks: direct }.into());
    }
    let mut family = Vec::new();
    let mut generation = vec![id.clone()];
    for _ in 0..GENERATIONS_MAX {
        let mut next = Vec::new();
        for id in generation {
            let key = || values![tenant.as_str(), id.as_str()];
            let asked = vec![Statement::new(FENCE, key()), Statement::new(NOTE, key()), Statement::new(HELD, key())];
            let answers = db.all(asked).await?;
            let held = answers.last().and_then(|rows| rows.first()).map(|row| number(row, 0)).transpose()?;
            // Behind the fence nobody makes another fork of it.
            next.extend(fork::forks(&db, tenant, &id).await?);
            family.push((id, held.unwrap_or(0).unsigned_abs()));
        }
        generation = next;
        if generation.is_empty() {
            break;
        }
    }
    family.reverse();
    Ok(Plan::repeats(family, Vec::new()))
}

/// Deletes some rows of a fenced conversation; the last step leaves the tombstone. Returns whether it was the last.
pub(super) async fn step<'v>(db: Db, tenant: &'v Tenant, id: &'v ConversationId) -> Result<Plan<'v, bool>, Error> {
    let key = || values![tenant.as_str(), id.as_str()];
    let rows = db.rows(BY_NAME_LOCKED, key()).await?;
    if Found::of(&rows, tenant, id)?.conversation.state != State::Erasing {
        return Ok(Plan::repeats(true, vec![Statement::new(DROP_NOTE, key())]));
    }
    let drops = DROPS.iter().map(|sql| Statement::new(sql, with(key(), values![STEP_ROWS])));
    let is_done = db.all(drops.collect()).await?.iter().all(Vec::is_empty);
    let tomb = if is_done { vec![Statement::new(TOMB, key()), Statement::new(DROP_NOTE, key())] } else { Vec::new() };
    Ok(Plan::repeats(is_done, tomb))
}

/// Finishes what interrupted erases have left.
pub(super) async fn finish_interrupted(store: &Postgres) -> Result<(), Error> {
    let interrupted = |db: Db| async move {
        let rows = db.rows(INTERRUPTED, values![INTERRUPTED_MAX]).await?;
        rows.iter()
            .map(|row| Ok((Tenant::from(shared(row, 0)?), ConversationId::from(shared(row, 1)?))))
            .collect::<Result<Vec<_>, Error>>()
    };
    for (tenant, id) in store.transactions.read(interrupted).await? {
        store.erase_rows(&tenant, &id).await?;
    }
    Ok(())
}

/// Erases the bodies of entries, and what decisions quote of them; returns how many entries had one.
pub(super) async fn entries<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    erase: &'v EraseEntries,
) -> Result<Plan<'v, u64>, Error> {
    let found = Found::locked(&db, tenant, id).await?;
    let mut erased = 0;
    let mut family = Family { tenant, known: BTreeMap::new() };
    let mut touched = BTreeSet::new();
    for remains in &erase.remains {
        let mut had_body = None;
        for holder in family.holders(&db, id, integer(remains.seq.0)).await? {
            if let Some(one) = entry(&db, tenant, &holder, remains).await? {
                had_body = Some(had_body.unwrap_or(false) || one);
            }
            // Who doesn't hold it sees it all the same, and may have been read.
            touched.insert(holder);
        }
        let missing = || Kind::NotFound { what: format!("entry {} in conversation {:?}", remains.seq, id.as_str()) };
        erased += u64::from(had_body.ok_or_else(missing)?);
    }
    for (of, name, row) in &erase.decisions {
        decision(&db, &Found::locked(&db, tenant, of).await?, name, row).await?;
        touched.insert(of.clone());
    }
    touched.remove(id);
    let touched: Vec<String> = touched.into_iter().map(|id| id.to_string()).collect();
    let own = values![tenant.as_str(), id.as_str()];
    let statements =
        vec![Statement::new(WROTE_ALL, values![tenant.as_str(), touched]), wrote(own, found.next_version(), None)];
    Ok(Plan::writes(erased, found.next_version(), statements))
}

/// Conversations that share places, as far as they were looked at. Each is locked before its forks are listed.
struct Family<'v> {
    tenant: &'v Tenant,
    known: BTreeMap<ConversationId, Member>,
}

#[derive(Clone)]
struct Member {
    parent: Option<(ConversationId, i64)>,
    forks: Vec<(ConversationId, i64)>,
}

impl Family<'_> {
    /// Returns every conversation that shares a place and may hold it: one alone, unless some were copied.
    async fn holders(&mut self, db: &Db, id: &ConversationId, seq: i64) -> Result<Vec<ConversationId>, Error> {
        let mut top = id.clone();
        for _ in 0..GENERATIONS_MAX {
            let parent = self.member(db, &top).await?.parent;
            let Some((parent, _)) = parent.filter(|(_, upto)| *upto >= seq) else { break };
            top = parent;
        }
        let mut family = vec![top];
        let mut at = 0;
        while let Some(id) = family.get(at).cloned() {
            let forks = self.member(db, &id).await?.forks;
            family.extend(forks.into_iter().filter(|(_, upto)| *upto >= seq).map(|(id, _)| id));
            at += 1;
        }
        Ok(family)
    }

    async fn member(&mut self, db: &Db, id: &ConversationId) -> Result<Member, Error> {
        if let Some(known) = self.known.get(id) {
            return Ok(known.clone());
        }
        let key = || values![self.tenant.as_str(), id.as_str()];
        let answers = db.all(vec![Statement::new(PARENT, key()), Statement::new(FAMILY, key())]).await?;
        let mut member = Member { parent: None, forks: Vec::new() };
        if let [parents, forks] = answers.as_slice() {
            for row in parents {
                member.parent =
                    maybe_text(row, 0)?.map(|id| Ok::<_, Error>((id.into(), number(row, 1)?))).transpose()?;
            }
            for row in forks {
                member.forks.push((shared(row, 0)?.into(), number(row, 1)?));
            }
        }
        self.known.insert(id.clone(), member.clone());
        Ok(member)
    }
}

/// Erases one entry of one conversation; whether it had a body, if it is there at all.
pub(super) async fn entry(
    db: &Db,
    tenant: &Tenant,
    id: &ConversationId,
    remains: &Remains,
) -> Result<Option<bool>, Error> {
    let key = || values![tenant.as_str(), id.as_str()];
    let seq = integer(remains.seq.0);
    let Some(row) = db.row(ENTRY, with(key(), values![seq])).await? else { return Ok(None) };
    let mut less: BTreeMap<Digest, i64> = BTreeMap::new();
    for hash in row.try_get::<_, &[u8]>(1)?.chunks(16) {
        *less.entry(read_digest(hash)?).or_default() += 1;
    }
    let (digests, less): (Vec<Digest>, Vec<i64>) = less.into_iter().unzip();
    let none = super::value::Value::Bytes(Vec::new());
    let body = with(values![seq, remains.body.as_str(), remains.counts.as_str()], vec![none]);
    let forget = Statement::new(super::index::FORGET, with(key(), values![seq]));
    let mut statements = vec![Statement::new(REMAIN, with(key(), body)), forget];
    if !digests.is_empty() {
        statements.push(Statement::new(UNREFER, with(key(), values![digests.clone(), less])));
        statements.push(Statement::new(DROP_UNUSED, with(key(), values![digests])));
    }
    db.all(statements).await?;
    Ok(Some(number(&row, 0)? == 0))
}

async fn decision(db: &Db, of: &Found, name: &ReaderName, row: &DecisionRow) -> Result<(), Error> {
    let ordinal = integer(row.ordinal);
    for it in lens::stretches(db, of, name, Upto::NOW).await? {
        if ordinal <= it.ordinals.0 || ordinal > it.ordinals.1 {
            continue;
        }
        let key = values![of.tenant.as_str(), it.id().as_str(), it.lens.key, ordinal];
        let (kind, about) = (integer(kind_number(row.kind) as u64), integer(row.about));
        let values = with(key, values![row.turn, kind, about, row.body.as_str()]);
        if db.run(PUT_DECISION, values).await? > 0 {
            return Ok(());
        }
    }
    let what = format!("decision {ordinal} of reader {:?} in {:?}", name.as_str(), of.id().as_str());
    Err(Kind::NotFound { what }.into())
}
