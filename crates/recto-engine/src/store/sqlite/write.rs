//! Writing: each function is one job of the thread that writes, within a transaction.

use super::db::Db;
use super::found::{
    Found, blob, digest, empty_text, integer, integer_or_none, name_key, place, put_text, whole, write_tally,
};
use super::head::wrote;
use super::{erase, fork, head, lens};
use crate::error::{Error, Kind};
use crate::store::bounds::{check_batch, check_dense, check_name, check_receipt, check_version, next_place};
use crate::store::{
    Acknowledge, Appended, Batch, Commit, ConversationId, DecisionRow, Expect, NewRow, OpenCall, ReaderName, ReaderRow,
    Record, Tenant, TurnRow,
};
use recto::Seq;
use recto::digest::Digest;
use recto::entry::Millis;
use rusqlite::{OptionalExtension, params};

const READ_AGAIN: &str = "another call came first; read again, then plan again";

const KNOWN_KEY: &str = "SELECT hash, first, last FROM append_key WHERE n = ?1 AND key = ?2";
const PUT_KEY: &str = "INSERT INTO append_key (n, key, hash, first, last) VALUES (?1, ?2, ?3, ?4, ?5)";
const PUT_ENTRY: &str = "
    INSERT INTO entry (n, seq, strand, cost, tally, erased, hash, bytes, large, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
const REFER: &str = "UPDATE content SET refs = refs + ?3, kept = max(kept, ?4) WHERE n = ?1 AND hash = ?2";
const IS_KEPT: &str = "SELECT kept FROM content WHERE n = ?1 AND hash = ?2";
const PUT_CONTENT: &str = "INSERT INTO content (n, hash, refs, kept, body) VALUES (?1, ?2, ?3, ?4, ?5)";
const PUT_DECISION: &str = "
    INSERT INTO decision (r, ordinal, turn, kind, about, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const PUT_TURN: &str = "INSERT INTO turn (r, turn, head, spared, receipt, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const PUT_OPEN: &str = "
    INSERT OR REPLACE INTO open_call (r, ticket, turn, receipt, input) VALUES (?1, ?2, ?3, ?4, ?5)";
const IS_OPEN: &str = "SELECT 1 FROM open_call WHERE r = ?1 AND ticket = ?2";
const DROP_OPEN: &str = "DELETE FROM open_call WHERE r = ?1 AND ticket = ?2";
const DROP_SAME_TURN: &str = "DELETE FROM open_call WHERE r = ?1 AND (turn = ?2 OR ticket = ?3)";
const ANY_OPEN: &str = "SELECT 1 FROM open_call WHERE r = ?1";
const ABOUT: &str = "SELECT about FROM conversation WHERE n = ?1";
const PUT_ABOUT: &str = "UPDATE conversation SET about = ?2 WHERE n = ?1";
const RECORD_VERSION: &str = "SELECT version FROM record WHERE n = ?1 AND kind = ?2 AND key = ?3";
const PUT_RECORD: &str = "
    INSERT OR REPLACE INTO record (n, kind, key, version, body) VALUES (?1, ?2, ?3, ?4, ?5)";
const PUT_LINK: &str = "INSERT OR REPLACE INTO link (tenant, prefix, n, seq) VALUES (?1, ?2, ?3, ?4)";

/// Appends entries.
pub(super) fn append(db: &Db<'_>, tenant: &Tenant, id: &ConversationId, batch: &Batch) -> Result<Appended, Error> {
    let mut found = match &batch.create {
        Some(new) => fork::begin(db, tenant, new)?,
        None => Found::live(db, tenant, id)?,
    };
    check_batch(batch)?;
    if let Some(first) = repeated(db, &found, batch)? {
        return Ok(first);
    }
    let appended = add(db, tenant, &mut found, batch, batch.at)?;
    db.leave(tenant, found);
    Ok(appended)
}

/// Returns the first result of a batch that was written before.
fn repeated(db: &Db<'_>, found: &Found, batch: &Batch) -> Result<Option<Appended>, Error> {
    let Some((key, hash)) = batch.key.as_ref().filter(|_| !found.is_new) else { return Ok(None) };
    let known: Option<(Vec<u8>, i64, i64)> = db
        .prepare_cached(KNOWN_KEY)?
        .query_row(params![found.n, name_key(key)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    match known {
        None => Ok(None),
        Some((known, first, last)) if digest(&known)? == *hash => {
            Ok(Some(Appended { first: place(first), last: place(last), is_repeated: true }))
        }
        Some(_) => Err(Kind::KeyReused { key: key.to_string() }.into()),
    }
}

fn add(db: &Db<'_>, tenant: &Tenant, found: &mut Found, batch: &Batch, at: Millis) -> Result<Appended, Error> {
    let head = found.conversation.tally.head();
    check_version(batch, found.conversation.version)?;
    if let Expect::Head(expected) = batch.expect
        && expected != head
    {
        return Err(Kind::HeadMoved { expected, head }.into());
    }
    let strands = found.conversation.tally.strands().len();
    let (mut first, mut last, mut tally) = (None, head, None);
    for row in &batch.rows {
        let seq = next_place(last, row.seq)?;
        tally = Some(put_entry(db, found, seq, row)?);
        first = first.or(Some(seq));
        last = Some(seq);
    }
    let head = integer_or_none(last);
    let tally = tally.unwrap_or_else(|| write_tally(&found.conversation.tally, head));
    head::put(db, found, strands, &tally, at)?;
    if let Some((key, hash)) = &batch.key {
        let first = integer_or_none(first);
        db.prepare_cached(PUT_KEY)?.execute(params![found.n, name_key(key), blob(*hash), first, head])?;
    }
    for record in &batch.records {
        put_record(db, found.n, record)?;
    }
    for prefix in batch.links.iter().filter(|_| last.is_some()) {
        db.prepare_cached(PUT_LINK)?.execute(params![tenant.as_str(), blob(*prefix), found.n, head])?;
    }
    Ok(Appended { first, last, is_repeated: false })
}

/// Writes an entry, and returns what the log holds with it, as its row spells that.
fn put_entry(db: &Db<'_>, found: &mut Found, seq: Seq, row: &NewRow) -> Result<String, Error> {
    let strand = found.conversation.tally.add(seq, &row.entry, row.cost);
    let seq = integer(seq.0);
    for (digest, text) in &row.large {
        put_content(db, found, *digest, text, Holder::Entry)?;
    }
    let large: Vec<u8> = row.large.iter().flat_map(|(digest, _)| blob(*digest)).collect();
    let body = put_text(db, &row.body, &row.counts)?;
    let tally = write_tally(&found.conversation.tally, seq);
    db.prepare_cached(PUT_ENTRY)?.execute(params![
        found.n,
        seq,
        strand,
        integer(row.cost.0),
        tally,
        row.is_erased,
        blob(row.hash),
        integer(row.bytes),
        (!large.is_empty()).then_some(large),
        body,
    ])?;
    Ok(tally)
}

/// What holds on to a text.
#[derive(Clone, Copy)]
enum Holder {
    /// An entry; once the last one is gone, so is the text.
    Entry,
    /// A call, for good.
    Call,
}

fn put_content(db: &Db<'_>, found: &mut Found, digest: Digest, text: &str, holder: Holder) -> Result<(), Error> {
    let (refs, kept) = match holder {
        Holder::Entry => (1, 0),
        Holder::Call => (0, 1),
    };
    let (n, hash) = (found.n, blob(digest));
    let there: Option<i64> = match found.has_contents {
        true => db.prepare_cached(IS_KEPT)?.query_row(params![n, hash], |row| row.get(0)).optional()?,
        false => None,
    };
    found.has_contents = true;
    match there {
        // What a call refers to is mostly there already, and is not written again.
        Some(1) if matches!(holder, Holder::Call) => {}
        Some(_) => drop(db.prepare_cached(REFER)?.execute(params![n, hash, refs, kept])?),
        None => {
            let body = put_text(db, text, "")?;
            db.prepare_cached(PUT_CONTENT)?.execute(params![n, hash, refs, kept, body])?;
        }
    }
    Ok(())
}

/// Records decisions, and that a call is open.
pub(super) fn commit(
    db: &Db<'_>,
    tenant: &Tenant,
    id: &ConversationId,
    name: &ReaderName,
    commit: &Commit,
) -> Result<(), Error> {
    let mut found = Found::live(db, tenant, id)?;
    check_name("reader", name.as_str())?;
    let receipts = commit.turns.iter().map(|it| &it.receipt).chain(commit.open.iter().map(|it| &it.receipt));
    receipts.into_iter().try_for_each(|receipt| check_receipt(receipt))?;
    let known = found.reader(db, name)?;
    let row = known.map_or_else(ReaderRow::default, |lens| lens.row);
    if row != commit.expect {
        let what = format!("reader {:?} has changed since its page was planned", name.as_str());
        return Err(Kind::Conflict { what, hint: READ_AGAIN.into() }.into());
    }
    check_dense("decision", row.ordinal + 1, commit.decisions.iter().map(|it| it.ordinal))?;
    check_dense("call", row.turns, commit.turns.iter().map(|it| it.turn))?;
    for remains in &commit.erase {
        let gone = || Kind::NotFound { what: format!("entry {} in conversation {:?}", remains.seq, id.as_str()) };
        erase::entry(db, found.n, remains)?.ok_or_else(gone)?;
    }
    let (turns, decisions) = (commit.turns.len() as u64, commit.decisions.len() as u64);
    let row = ReaderRow { turns: row.turns + turns, ordinal: row.ordinal + decisions };
    let mut lens = lens::put(db, found.n, name, known, row)?;
    for (digest, text) in &commit.contents {
        put_content(db, &mut found, *digest, text, Holder::Call)?;
    }
    for decision in &commit.decisions {
        put_decision(db, lens.r, decision)?;
    }
    for turn in &commit.turns {
        put_turn(db, lens.r, turn)?;
    }
    if let Some(OpenCall { ticket, turn, receipt, input }) = &commit.open {
        db.prepare_cached(PUT_OPEN)?.execute(params![lens.r, blob(*ticket), integer(*turn), receipt, input])?;
        lens.may_wait = true;
    }
    for record in &commit.records {
        put_record(db, found.n, record)?;
    }
    wrote(db, found.n, Some(commit.at))?;
    // An erase writes to the conversation on its own account.
    if commit.erase.is_empty() {
        found.conversation.version += 1;
        found.conversation.updated = commit.at;
        found.read_by(name, lens);
        db.leave(tenant, found);
    }
    Ok(())
}

/// Records that an open call was answered.
pub(super) fn acknowledge(
    db: &Db<'_>,
    tenant: &Tenant,
    id: &ConversationId,
    name: &ReaderName,
    acknowledge: &Acknowledge,
) -> Result<Appended, Error> {
    let mut found = Found::live(db, tenant, id)?;
    let Acknowledge { ticket, unopened, turn, produced } = acknowledge;
    check_batch(produced)?;
    check_receipt(&turn.receipt)?;
    if let Some(first) = repeated(db, &found, produced)? {
        return Ok(first);
    }
    let conflict = |what: String| Error::from(Kind::Conflict { what, hint: READ_AGAIN.into() });
    let not_open = || conflict(format!("no open call {ticket} of reader {:?}", name.as_str()));
    let mut known = found.reader(db, name)?;
    let row = known.map_or_else(ReaderRow::default, |lens| lens.row);
    match unopened {
        Some(unopened) if row != unopened.expect => {
            return Err(conflict(format!("reader {:?} is not at {:?}", name.as_str(), unopened.expect)));
        }
        Some(_) => {}
        None => {
            let lens = known.ok_or_else(not_open)?;
            if !db.prepare_cached(IS_OPEN)?.exists(params![lens.r, blob(*ticket)])? {
                return Err(not_open());
            }
        }
    }
    if turn.turn != row.turns {
        let what = format!("call {} is not the next one: {} were acknowledged", turn.turn, row.turns);
        return Err(conflict(what));
    }
    for (digest, text) in unopened.iter().flat_map(|unopened| &unopened.contents) {
        put_content(db, &mut found, *digest, text, Holder::Call)?;
    }
    if let Some(lens) = known.as_mut().filter(|lens| lens.may_wait) {
        db.prepare_cached(DROP_SAME_TURN)?.execute(params![lens.r, integer(turn.turn), blob(*ticket)])?;
        // Who opens calls will open the next one too; who doesn't need not look again.
        lens.may_wait = unopened.is_none() || db.prepare_cached(ANY_OPEN)?.exists([lens.r])?;
    }
    let lens = lens::put(db, found.n, name, known, ReaderRow { turns: row.turns + 1, ..row })?;
    put_turn(db, lens.r, turn)?;
    let appended = add(db, tenant, &mut found, produced, turn.at)?;
    found.read_by(name, lens);
    db.leave(tenant, found);
    Ok(appended)
}

/// Forgets an open call; whether there was one.
pub(super) fn abandon(
    db: &Db<'_>,
    tenant: &Tenant,
    id: &ConversationId,
    name: &ReaderName,
    ticket: Digest,
) -> Result<bool, Error> {
    let found = Found::live(db, tenant, id)?;
    let Some(lens) = found.reader(db, name)? else { return Ok(false) };
    let is_dropped = db.prepare_cached(DROP_OPEN)?.execute(params![lens.r, blob(ticket)])? > 0;
    if is_dropped {
        wrote(db, found.n, None)?;
    }
    Ok(is_dropped)
}

/// Says anew what a conversation is about.
pub(super) fn describe(
    db: &Db<'_>,
    tenant: &Tenant,
    id: &ConversationId,
    title: &str,
    meta: &str,
) -> Result<(), Error> {
    let found = Found::live(db, tenant, id)?;
    let old = db.prepare_cached(ABOUT)?.query_row([found.n], |row| row.get(0))?;
    empty_text(db, old)?;
    db.prepare_cached(PUT_ABOUT)?.execute([found.n, put_text(db, title, meta)?])?;
    wrote(db, found.n, None)
}

/// Writes a record.
pub(super) fn keep(db: &Db<'_>, tenant: &Tenant, id: &ConversationId, record: &Record) -> Result<(), Error> {
    let found = Found::live(db, tenant, id)?;
    put_record(db, found.n, record)?;
    wrote(db, found.n, None)
}

/// Writes a record as it was kept elsewhere.
pub(super) fn adopt(db: &Db<'_>, tenant: &Tenant, id: &ConversationId, record: &Record) -> Result<(), Error> {
    let found = Found::live(db, tenant, id)?;
    if record_version(db, found.n, record)? >= record.version {
        return Ok(());
    }
    replace_record(db, found.n, record)?;
    wrote(db, found.n, None)
}

fn put_record(db: &Db<'_>, n: i64, record: &Record) -> Result<(), Error> {
    let there = record_version(db, n, record)?;
    if record.version != there + 1 {
        let what = format!("record {:?} has version {there}, not the one before this", &*record.key);
        return Err(Kind::Conflict { what, hint: "read it again, then write again".into() }.into());
    }
    replace_record(db, n, record)
}

/// The version of a record that is there; 0 if there is none.
fn record_version(db: &Db<'_>, n: i64, record: &Record) -> Result<u64, Error> {
    check_name("record", &record.key)?;
    let mut statement = db.prepare_cached(RECORD_VERSION)?;
    let key = params![n, lens::record_number(record.kind), &*record.key];
    whole(statement.query_row(key, |row| row.get::<_, i64>(0)).optional()?.unwrap_or(0))
}

fn replace_record(db: &Db<'_>, n: i64, record: &Record) -> Result<(), Error> {
    let (kind, version) = (lens::record_number(record.kind), integer(record.version));
    db.prepare_cached(PUT_RECORD)?.execute(params![n, kind, &*record.key, version, &*record.body])?;
    Ok(())
}

fn put_decision(db: &Db<'_>, r: i64, decision: &DecisionRow) -> Result<(), Error> {
    let body = put_text(db, &decision.body, "")?;
    db.prepare_cached(PUT_DECISION)?.execute(params![
        r,
        integer(decision.ordinal),
        integer(decision.turn),
        lens::kind_number(decision.kind),
        integer(decision.about),
        body,
    ])?;
    Ok(())
}

fn put_turn(db: &Db<'_>, r: i64, turn: &TurnRow) -> Result<(), Error> {
    let receipt = put_text(db, &turn.receipt, "")?;
    db.prepare_cached(PUT_TURN)?.execute(params![
        r,
        integer(turn.turn),
        integer_or_none(turn.head),
        integer(turn.spared.0),
        receipt,
        turn.at.0,
    ])?;
    Ok(())
}
