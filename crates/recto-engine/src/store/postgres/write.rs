//! Writing: each function looks, with the conversation locked, and returns what is to be written in one go.

use super::erase;
use super::fork;
use super::found::{BY_NAME_LOCKED, Found, with};
use super::insert::{ChunkByBytes, Content, Entries, put_contents};
use super::lens::{self, Lens};
use super::pool::{Db, Statement};
use super::transaction::Plan;
use super::value::{Value, digest, number, text, values, whole};
use crate::error::{Error, Kind};
use crate::store::bounds::{check_batch, check_dense, check_name, check_receipt, check_version, next_place};
use crate::store::sqlite::found::{integer, integer_or_none, name_key, place, write_strands, write_tally};
use crate::store::sqlite::lens::{kind_number, record_number};
use crate::store::{
    Acknowledge, Appended, Batch, Commit, ConversationId, DecisionRow, Expect, OpenCall, ReaderName, Record,
    RecordKind, Tenant, TurnRow,
};
use recto::digest::Digest;
use recto::entry::{Millis, Text};
use std::collections::BTreeMap;
use tokio_postgres::Row;

const READ_AGAIN: &str = "another call came first; read again, then plan again";

const KNOWN_KEY: &str = "
    SELECT hash, first, last FROM append_key WHERE tenant = $1 AND conversation = $2 AND key = $3";
const PUT_KEY: &str = "
    INSERT INTO append_key (tenant, conversation, key, hash, first, last) VALUES ($1, $2, $3, $4, $5, $6)";
const PUT_HEAD: &str = "
    UPDATE conversation SET seq = $3, tally = $4, strands = $5, version = $6, updated = $7
    WHERE tenant = $1 AND conversation = $2";
const WROTE: &str = "
    UPDATE conversation SET version = $3, updated = coalesce($4, updated) WHERE tenant = $1 AND conversation = $2";
const ARE_KEPT: &str = "SELECT hash FROM content WHERE tenant = $1 AND conversation = $2 AND hash = ANY($3)";
const PUT_DECISIONS: &str = "
    INSERT INTO decision (tenant, conversation, reader, ordinal, turn, kind, about, body)
    SELECT $1, $2, $3, d.* FROM unnest($4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::TEXT[]) AS d";
const PUT_TURNS: &str = "
    INSERT INTO turn (tenant, conversation, reader, turn, head, spared, receipt, at)
    SELECT $1, $2, $3, t.* FROM unnest($4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[], $8::BIGINT[]) AS t";
const PUT_OPEN: &str = "
    INSERT INTO open_call (tenant, conversation, reader, ticket, turn, receipt, input)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (tenant, conversation, reader, ticket)
    DO UPDATE SET turn = excluded.turn, receipt = excluded.receipt, input = excluded.input";
const IS_OPEN: &str = "
    SELECT 1::BIGINT FROM open_call WHERE tenant = $1 AND conversation = $2 AND reader = $3 AND ticket = $4";
const DROP_OPEN: &str = "
    DELETE FROM open_call WHERE tenant = $1 AND conversation = $2 AND reader = $3 AND ticket = $4";
const DROP_SAME_TURN: &str = "
    DELETE FROM open_call WHERE tenant = $1 AND conversation = $2 AND reader = $3 AND (turn = $4 OR ticket = $5)";
const PUT_READER: &str = "
    INSERT INTO reader (tenant, conversation, reader, name, turns, ordinal, base_turn, base_ordinal)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (tenant, conversation, reader) DO UPDATE SET turns = excluded.turns, ordinal = excluded.ordinal";
const PUT_ABOUT: &str = "UPDATE conversation SET title = $3, meta = $4 WHERE tenant = $1 AND conversation = $2";
const RECORD_VERSIONS: &str = "
    SELECT kind, key, version FROM record WHERE tenant = $1 AND conversation = $2
    AND kind = ANY($3) AND key = ANY($4)";
const PUT_RECORD: &str = "
    INSERT INTO record (tenant, conversation, kind, key, version, body) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant, conversation, kind, key) DO UPDATE SET version = excluded.version, body = excluded.body";
const PUT_LINKS: &str = "
    INSERT INTO link (tenant, conversation, prefix, made, seq)
    SELECT $1, $2, l.prefix, $4, $5 FROM unnest($3::BYTEA[]) AS l (prefix)
    ON CONFLICT (tenant, conversation, prefix) DO UPDATE SET seq = excluded.seq";

/// Appends entries.
pub(super) async fn append<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    batch: &'v Batch,
) -> Result<Plan<'v, Appended>, Error> {
    if let Some(new) = &batch.create {
        let (mut made, mut statements) = fork::create(&db, tenant, new).await?;
        check_batch(batch)?;
        let looked = Looked::of(&db, (tenant, &new.id), batch, Vec::new()).await?;
        let appended = add(&mut made, tenant, &new.id, batch, batch.at, &looked, &mut statements)?;
        return Ok(Plan::writes(appended, made.next_version(), statements));
    }
    let (mut found, mut looked, _) = look(&db, (tenant, id), batch, Vec::new(), Vec::new()).await?;
    check_batch(batch)?;
    if let Some(first) = looked.repeated.take() {
        return first.map(Plan::confirms);
    }
    let mut statements = Vec::new();
    let appended = add(&mut found, tenant, id, batch, batch.at, &looked, &mut statements)?;
    Ok(Plan::writes(appended, found.next_version(), statements))
}

/// What a batch meets where it goes.
#[derive(Default)]
struct Looked {
    repeated: Option<Result<Appended, Error>>,
    records: BTreeMap<(i64, String), u64>,
    contents: BTreeMap<Digest, Content>,
    there: Vec<Digest>,
}

impl Looked {
    async fn of(
        db: &Db,
        key: (&Tenant, &ConversationId),
        batch: &Batch,
        kept: Vec<(Digest, Text)>,
    ) -> Result<Looked, Error> {
        let contents = contents_of(batch, kept);
        let answers = db.all(questions(key, batch, &contents)).await?;
        Looked::read(batch, contents, &answers)
    }

    fn read(batch: &Batch, contents: BTreeMap<Digest, Content>, answers: &[Vec<Row>]) -> Result<Looked, Error> {
        let mut answers = answers.iter();
        let mut rows_if = |is_asked: bool| is_asked.then(|| answers.next()).flatten().map_or(&[][..], Vec::as_slice);
        let known = rows_if(batch.key.is_some());
        let (records, there) = (rows_if(!batch.records.is_empty()), rows_if(!contents.is_empty()));
        let repeated = match (&batch.key, known.first()) {
            (Some((_, hash)), Some(row)) if digest(row, 0)? == *hash => {
                let (first, last) = (place(number(row, 1)?), place(number(row, 2)?));
                Some(Ok(Appended { first, last, is_repeated: true }))
            }
            (Some((key, _)), Some(_)) => Some(Err(Kind::KeyReused { key: key.to_string() }.into())),
            _ => None,
        };
        let records = versions(records)?;
        let there = there.iter().map(|row| digest(row, 0)).collect::<Result<_, Error>>()?;
        Ok(Looked { repeated, records, contents, there })
    }
}

fn contents_of(batch: &Batch, kept: Vec<(Digest, Text)>) -> BTreeMap<Digest, Content> {
    let mut contents: BTreeMap<Digest, Content> = BTreeMap::new();
    for (digest, text) in batch.rows.iter().flat_map(|row| &row.large) {
        let content = contents.entry(*digest).or_default();
        content.refs += 1;
        content.text = text.clone();
    }
    for (digest, text) in kept {
        let content = contents.entry(digest).or_default();
        content.kept = 1;
        content.text = text;
    }
    contents
}

/// What is asked before a batch is written: its key, its records, its large texts.
fn questions<'v>(
    (tenant, id): (&'v Tenant, &'v ConversationId),
    batch: &'v Batch,
    contents: &BTreeMap<Digest, Content>,
) -> Vec<Statement<'v>> {
    let key = || values![tenant.as_str(), id.as_str()];
    let name = batch.key.as_ref().map(|(name, _)| name_key(name));
    let known = name.map(|name| Statement::new(KNOWN_KEY, with(key(), values![name])));
    let records = (!batch.records.is_empty()).then(|| about_records(key(), &batch.records));
    let digests: Vec<Digest> = contents.keys().copied().collect();
    let there = (!digests.is_empty()).then(|| Statement::new(ARE_KEPT, with(key(), values![digests])));
    known.into_iter().chain(records).chain(there).collect()
}

fn about_records<'v>(key: Vec<Value<'v>>, records: &'v [Record]) -> Statement<'v> {
    let kinds: Vec<i64> = records.iter().map(|record| record_kind(record.kind)).collect();
    let keys: Vec<&str> = records.iter().map(|record| &*record.key).collect();
    Statement::new(RECORD_VERSIONS, with(key, values![kinds, keys]))
}

fn versions(rows: &[Row]) -> Result<BTreeMap<(i64, String), u64>, Error> {
    rows.iter().map(|row| Ok(((number(row, 0)?, text(row, 1)?), whole(row, 2)?))).collect()
}

pub(super) fn record_kind(kind: RecordKind) -> i64 {
    integer(record_number(kind) as u64)
}

/// Finds a conversation and what a batch meets in it, in one go, with other questions behind.
async fn look(
    db: &Db,
    key: (&Tenant, &ConversationId),
    batch: &Batch,
    kept: Vec<(Digest, Text)>,
    more: Vec<Statement<'_>>,
) -> Result<(Found, Looked, Vec<Vec<Row>>), Error> {
    let contents = contents_of(batch, kept);
    let mut asked = questions(key, batch, &contents);
    let own = asked.len();
    asked.extend(more);
    let (found, mut answers) = Found::live_and(db, BY_NAME_LOCKED, key, asked).await?;
    let more = answers.split_off(own);
    Ok((found, Looked::read(batch, contents, &answers)?, more))
}

fn add<'v>(
    found: &mut Found,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    batch: &'v Batch,
    at: Millis,
    looked: &Looked,
    statements: &mut Vec<Statement<'v>>,
) -> Result<Appended, Error> {
    let head = found.conversation.tally.head();
    check_version(batch, found.conversation.version)?;
    if let Expect::Head(expected) = batch.expect
        && expected != head
    {
        return Err(Kind::HeadMoved { expected, head }.into());
    }
    let key = || values![tenant.as_str(), id.as_str()];
    let (mut first, mut last) = (None, head);
    let mut entries = Entries::default();
    for row in &batch.rows {
        let seq = next_place(last, row.seq)?;
        entries.push(found, seq, row);
        first = first.or(Some(seq));
        last = Some(seq);
        if entries.is_full() {
            statements.push(std::mem::take(&mut entries).statement(key()));
        }
    }
    if !entries.seqs.is_empty() {
        statements.push(entries.statement(key()));
    }
    put_contents(key, &looked.contents, &looked.there, statements);
    let tally = &found.conversation.tally;
    let head = integer_or_none(last);
    let head_values = values![head, write_tally(tally, head), write_strands(tally)?, found.next_version(), at.0];
    statements.push(Statement::new(PUT_HEAD, with(key(), head_values)));
    if let Some((name, hash)) = &batch.key {
        let row = values![name_key(name), *hash, integer_or_none(first), head];
        statements.push(Statement::new(PUT_KEY, with(key(), row)));
    }
    put_records(key, &batch.records, &looked.records, statements)?;
    if last.is_some() && !batch.links.is_empty() {
        let mut links = batch.links.clone();
        links.sort();
        links.dedup();
        let row = values![links, found.conversation.created.0, head];
        statements.push(Statement::new(PUT_LINKS, with(key(), row)));
    }
    Ok(Appended { first, last, is_repeated: false })
}

/// Records decisions, and that a call is open.
pub(super) async fn commit<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    name: &'v ReaderName,
    commit: &'v Commit,
) -> Result<Plan<'v, ()>, Error> {
    let own = || values![tenant.as_str(), id.as_str()];
    let contents = kept_by_call(&commit.contents);
    let asked = vec![
        lens::question(own(), name),
        about_records(own(), &commit.records),
        Statement::new(ARE_KEPT, with(own(), values![contents.keys().copied().collect::<Vec<_>>()])),
    ];
    let (found, answers) = Found::live_and(&db, BY_NAME_LOCKED, (tenant, id), asked).await?;
    let [known, records, there] = answers.as_slice() else { return Err(unanswered()) };
    check_name("reader", name.as_str())?;
    let receipts = commit.turns.iter().map(|it| &it.receipt).chain(commit.open.iter().map(|it| &it.receipt));
    receipts.into_iter().try_for_each(|receipt| check_receipt(receipt))?;
    let mut lens = Lens::read(known.first(), name)?.unwrap_or_else(|| Lens::new(name));
    if lens.row != commit.expect {
        let what = format!("reader {:?} has changed since its page was planned", name.as_str());
        return Err(Kind::Conflict { what, hint: READ_AGAIN.into() }.into());
    }
    check_dense("decision", lens.row.ordinal + 1, commit.decisions.iter().map(|it| it.ordinal))?;
    check_dense("call", lens.row.turns, commit.turns.iter().map(|it| it.turn))?;
    for remains in &commit.erase {
        let gone = || Kind::NotFound { what: format!("entry {} in conversation {:?}", remains.seq, id.as_str()) };
        erase::entry(&db, tenant, id, remains).await?.ok_or_else(gone)?;
    }
    let there = there.iter().map(|row| digest(row, 0)).collect::<Result<Vec<_>, Error>>()?;
    let mut statements = Vec::new();
    put_contents(own, &contents, &there, &mut statements);
    put_decisions(&lens, own, &commit.decisions, &mut statements);
    put_turns(&lens, own, &commit.turns, &mut statements);
    lens.row.ordinal += commit.decisions.len() as u64;
    lens.row.turns += commit.turns.len() as u64;
    statements.push(put_reader(own(), &lens, name));
    if let Some(OpenCall { ticket, turn, receipt, input }) = &commit.open {
        let row = values![lens.key, *ticket, *turn, receipt.as_str(), input.as_deref()];
        statements.push(Statement::new(PUT_OPEN, with(own(), row)));
    }
    put_records(own, &commit.records, &versions(records)?, &mut statements)?;
    statements.push(wrote(own(), found.next_version(), Some(commit.at)));
    Ok(Plan::writes((), found.next_version(), statements))
}

fn kept_by_call(contents: &[(Digest, Text)]) -> BTreeMap<Digest, Content> {
    contents.iter().map(|(digest, text)| (*digest, Content { refs: 0, kept: 1, text: text.clone() })).collect()
}

/// Records that an open call was answered.
pub(super) async fn acknowledge<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    name: &'v ReaderName,
    acknowledge: &'v Acknowledge,
) -> Result<Plan<'v, Appended>, Error> {
    let Acknowledge { ticket, unopened, turn, produced } = acknowledge;
    let own = || values![tenant.as_str(), id.as_str()];
    let kept = unopened.as_ref().map(|it| it.contents.clone()).unwrap_or_default();
    let reader = name_key(name.as_str());
    let more = vec![lens::question(own(), name), Statement::new(IS_OPEN, with(own(), values![reader, *ticket]))];
    let (mut found, mut looked, answers) = look(&db, (tenant, id), produced, kept, more).await?;
    let [known, open] = answers.as_slice() else { return Err(unanswered()) };
    check_batch(produced)?;
    check_receipt(&turn.receipt)?;
    if let Some(first) = looked.repeated.take() {
        return first.map(Plan::confirms);
    }
    let conflict = |what: String| Error::from(Kind::Conflict { what, hint: READ_AGAIN.into() });
    let not_open = || conflict(format!("no open call {ticket} of reader {:?}", name.as_str()));
    let known = Lens::read(known.first(), name)?;
    let mut lens = match unopened {
        Some(unopened) => {
            let lens = known.unwrap_or_else(|| Lens::new(name));
            if lens.row != unopened.expect {
                return Err(conflict(format!("reader {:?} is not at {:?}", name.as_str(), unopened.expect)));
            }
            lens
        }
        None if open.is_empty() => return Err(not_open()),
        None => known.ok_or_else(not_open)?,
    };
    if turn.turn != lens.row.turns {
        let what = format!("call {} is not the next one: {} were acknowledged", turn.turn, lens.row.turns);
        return Err(conflict(what));
    }
    let mut statements = vec![Statement::new(DROP_SAME_TURN, with(own(), values![lens.key, turn.turn, *ticket]))];
    put_turns(&lens, own, std::slice::from_ref(turn), &mut statements);
    lens.row.turns += 1;
    statements.push(put_reader(own(), &lens, name));
    let appended = add(&mut found, tenant, id, produced, turn.at, &looked, &mut statements)?;
    Ok(Plan::writes(appended, found.next_version(), statements))
}

/// Forgets an open call; whether there was one.
pub(super) async fn abandon<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    name: &'v ReaderName,
    ticket: Digest,
) -> Result<Plan<'v, bool>, Error> {
    let own = || values![tenant.as_str(), id.as_str()];
    let which = || with(own(), values![name_key(name.as_str()), ticket]);
    let asked = vec![Statement::new(IS_OPEN, which())];
    let (found, answers) = Found::live_and(&db, BY_NAME_LOCKED, (tenant, id), asked).await?;
    if answers.iter().all(Vec::is_empty) {
        return Ok(Plan::nothing(false));
    }
    let statements = vec![Statement::new(DROP_OPEN, which()), wrote(own(), found.next_version(), None)];
    Ok(Plan::writes(true, found.next_version(), statements))
}

/// Says anew what a conversation is about.
pub(super) async fn describe<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    title: &'v str,
    meta: &'v str,
) -> Result<Plan<'v, ()>, Error> {
    let found = Found::locked(&db, tenant, id).await?;
    let own = || values![tenant.as_str(), id.as_str()];
    let put = Statement::new(PUT_ABOUT, with(own(), values![title, meta]));
    Ok(Plan::writes((), found.next_version(), vec![put, wrote(own(), found.next_version(), None)]))
}

/// What a record is written over.
#[derive(Clone, Copy)]
pub(super) enum Over {
    /// The version before it.
    TheOneBefore,
    /// Any that is older.
    AnyOlder,
}

/// Writes a record.
pub(super) async fn keep<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    record: &'v Record,
    over: Over,
) -> Result<Plan<'v, ()>, Error> {
    let own = || values![tenant.as_str(), id.as_str()];
    let asked = vec![about_records(own(), std::slice::from_ref(record))];
    let (found, answers) = Found::live_and(&db, BY_NAME_LOCKED, (tenant, id), asked).await?;
    check_name("record", &record.key)?;
    let there = versions(answers.first().map_or(&[], Vec::as_slice))?;
    let mut statements = Vec::new();
    match over {
        Over::TheOneBefore => put_records(own, std::slice::from_ref(record), &there, &mut statements)?,
        Over::AnyOlder if there.values().any(|version| *version >= record.version) => return Ok(Plan::nothing(())),
        Over::AnyOlder => statements.push(put_record(own(), record)),
    }
    statements.push(wrote(own(), found.next_version(), None));
    Ok(Plan::writes((), found.next_version(), statements))
}

fn put_records<'v>(
    own: impl Fn() -> Vec<Value<'v>>,
    records: &'v [Record],
    there: &BTreeMap<(i64, String), u64>,
    statements: &mut Vec<Statement<'v>>,
) -> Result<(), Error> {
    let mut there = there.clone();
    for record in records {
        check_name("record", &record.key)?;
        let known = there.entry((record_kind(record.kind), record.key.to_string())).or_default();
        if record.version != *known + 1 {
            let what = format!("record {:?} has version {known}, not the one before this", &*record.key);
            return Err(Kind::Conflict { what, hint: "read it again, then write again".into() }.into());
        }
        *known += 1;
        statements.push(put_record(own(), record));
    }
    Ok(())
}

fn put_record<'v>(own: Vec<Value<'v>>, record: &'v Record) -> Statement<'v> {
    let row = values![record_kind(record.kind), &*record.key, record.version, &*record.body];
    Statement::new(PUT_RECORD, with(own, row))
}

fn put_decisions<'v>(
    lens: &Lens,
    own: impl Fn() -> Vec<Value<'v>>,
    decisions: &'v [DecisionRow],
    statements: &mut Vec<Statement<'v>>,
) {
    for some in decisions.chunk_by_bytes(|it| it.body.len()) {
        let of = |number: fn(&DecisionRow) -> u64| some.iter().map(|it| integer(number(it))).collect::<Vec<_>>();
        let kinds: Vec<i64> = some.iter().map(|it| integer(kind_number(it.kind) as u64)).collect();
        let bodies: Vec<&str> = some.iter().map(|it| it.body.as_str()).collect();
        let row = values![lens.key, of(|it| it.ordinal), of(|it| it.turn), kinds, of(|it| it.about), bodies];
        statements.push(Statement::new(PUT_DECISIONS, with(own(), row)));
    }
}

fn put_turns<'v>(
    lens: &Lens,
    own: impl Fn() -> Vec<Value<'v>>,
    turns: &'v [TurnRow],
    statements: &mut Vec<Statement<'v>>,
) {
    for some in turns.chunk_by_bytes(|it| it.receipt.len()) {
        let numbers: Vec<i64> = some.iter().map(|it| integer(it.turn)).collect();
        let heads: Vec<i64> = some.iter().map(|it| integer_or_none(it.head)).collect();
        let spared: Vec<i64> = some.iter().map(|it| integer(it.spared.0)).collect();
        let receipts: Vec<&str> = some.iter().map(|it| it.receipt.as_str()).collect();
        let times: Vec<i64> = some.iter().map(|it| it.at.0).collect();
        let row = values![lens.key, numbers, heads, spared, receipts, times];
        statements.push(Statement::new(PUT_TURNS, with(own(), row)));
    }
}

/// Writes a reader's row, and makes it if there is none.
pub(super) fn put_reader<'v>(own: Vec<Value<'v>>, lens: &Lens, name: &'v ReaderName) -> Statement<'v> {
    put_reader_named(own, lens, name.to_string())
}

pub(super) fn put_reader_named<'v>(own: Vec<Value<'v>>, lens: &Lens, name: String) -> Statement<'v> {
    let (row, start) = (lens.row, lens.start);
    let row = values![lens.key, name, row.turns, row.ordinal, start.turns, start.ordinal];
    Statement::new(PUT_READER, with(own, row))
}

/// Notes that something was written.
pub(super) fn wrote<'v>(own: Vec<Value<'v>>, version: i64, at: Option<Millis>) -> Statement<'v> {
    Statement::new(WROTE, with(own, values![version, at.map(|at| at.0)]))
}

fn unanswered() -> Error {
    Kind::Defect { what: "a question was not answered".into() }.into()
}
