//! Reading and writing rows as they are.

use super::Postgres;
use super::erase::DROPS;
use super::fault;
use super::found::{Found, Link, read_chain, with, write_chain};
use super::pool::{Db, Statement};
use super::transaction::Plan;
use super::value::{Value, maybe_text, number, shared, text, values};
use crate::error::{Error, Kind};
use crate::store::carry::{Cell, Header, Table};
use crate::store::{ConversationId, Tenant};
use std::borrow::Cow;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How many rows of each table are cleared at once.
const CLEAR_ROWS: i64 = 500;

const EVERYTHING: &str = "
    SELECT tenant, conversation FROM conversation WHERE tenant > $1 OR tenant = $1 AND conversation > $2
    ORDER BY tenant, conversation LIMIT $3";
const EVERYTHING_FIRST: &str = "SELECT tenant, conversation FROM conversation ORDER BY tenant, conversation LIMIT $1";
const HEADER: &str = "
    SELECT state, epoch, version, seq, tally, strands, tokenizer, title, meta, parent, upto, chain, created, updated
    FROM conversation WHERE tenant = $1 AND conversation = $2";
const PUT_HEADER: &str = "
    INSERT INTO conversation
        (tenant, conversation, state, epoch, version, seq, tally, strands, tokenizer, title, meta, parent, upto, chain,
        created, updated)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    ON CONFLICT (tenant, conversation) DO NOTHING";

/// What is read and written of a table.
struct Columns {
    table: &'static str,
    key: &'static str,
    all: &'static str,
    /// The types of all columns, as lists.
    kinds: &'static [&'static str],
}

const NUMBERS: &str = "BIGINT[]";
const TEXTS: &str = "TEXT[]";
const BLOBS: &str = "BYTEA[]";

fn columns(table: Table) -> Columns {
    let (table, key, all, kinds): (_, _, _, &[&str]) = match table {
        Table::Entry => (
            "entry",
            "seq",
            "seq, strand, cost, tally, erased, hash, bytes, large, body, counts",
            &[NUMBERS, NUMBERS, NUMBERS, TEXTS, NUMBERS, BLOBS, NUMBERS, BLOBS, TEXTS, TEXTS],
        ),
        Table::Content => ("content", "hash", "hash, refs, kept, body", &[BLOBS, NUMBERS, NUMBERS, TEXTS]),
        Table::Reader => (
            "reader",
            "reader",
            "reader, name, turns, ordinal, base_turn, base_ordinal",
            &[BLOBS, TEXTS, NUMBERS, NUMBERS, NUMBERS, NUMBERS],
        ),
        Table::Decision => (
            "decision",
            "reader, ordinal",
            "reader, ordinal, turn, kind, about, body",
            &[BLOBS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, TEXTS],
        ),
        Table::Turn => (
            "turn",
            "reader, turn",
            "reader, turn, head, spared, receipt, at",
            &[BLOBS, NUMBERS, NUMBERS, NUMBERS, TEXTS, NUMBERS],
        ),
        Table::OpenCall => (
            "open_call",
            "reader, ticket",
            "reader, ticket, turn, receipt, input",
            &[BLOBS, BLOBS, NUMBERS, TEXTS, TEXTS],
        ),
        Table::Record => ("record", "kind, key", "kind, key, version, body", &[NUMBERS, TEXTS, NUMBERS, TEXTS]),
        Table::Link => ("link", "prefix", "prefix, seq", &[BLOBS, NUMBERS]),
        Table::AppendKey => ("append_key", "key", "key, hash, first, last", &[BLOBS, BLOBS, NUMBERS, NUMBERS]),
    };
    Columns { table, key, all, kinds }
}

type Key = (Tenant, ConversationId);

impl Postgres {
    /// Lists all conversations of all tenants, erased ones too.
    pub(in crate::store) async fn everything(&self, after: Option<&Key>, rows: usize) -> Result<Vec<Key>, Error> {
        let work = |db: Db| async move {
            let rows = match after {
                Some((tenant, id)) => db.rows(EVERYTHING, values![tenant.as_str(), id.as_str(), rows]).await?,
                None => db.rows(EVERYTHING_FIRST, values![rows]).await?,
            };
            rows.iter().map(|row| Ok((shared(row, 0)?.into(), shared(row, 1)?.into()))).collect()
        };
        self.transactions.read(work).await
    }

    /// Returns what the row of a conversation says.
    pub(in crate::store) async fn header(&self, key: &Key) -> Result<Option<Header>, Error> {
        let work = |db: Db| async move { db.row(HEADER, own(key)).await?.as_ref().map(header).transpose() };
        self.transactions.read(work).await
    }

    /// Returns rows of a conversation after one, in order.
    pub(in crate::store) async fn page(
        &self,
        key: &Key,
        table: Table,
        after: Option<Vec<Cell>>,
        rows: usize,
    ) -> Result<Vec<Vec<Cell>>, Error> {
        let Columns { table: name, key: apart, all, .. } = columns(table);
        let places: Vec<String> = (0..table.keys()).map(|at| format!("${}", at + 3)).collect();
        let behind = if after.is_some() { format!("AND ({apart}) > ({})", places.join(", ")) } else { String::new() };
        let sql = format!(
            "SELECT {all} FROM {name} WHERE tenant = $1 AND conversation = $2 {behind} ORDER BY {apart} LIMIT {rows}"
        );
        let (sql, after) = (&sql, &after);
        let work = |db: Db| async move {
            let after = after.iter().flatten().map(value).collect();
            db.rows(sql, with(own(key), after)).await?.iter().map(cells).collect()
        };
        self.transactions.read(work).await
    }

    /// Clears what an interrupted run has left of a conversation that is not there.
    pub(in crate::store) async fn clear(&self, key: &Key) -> Result<(), Error> {
        let step = |db: Db| async move {
            let drops = DROPS.iter().map(|sql| Statement::new(sql, with(own(key), values![CLEAR_ROWS])));
            let is_clear = db.all(drops.collect()).await?.iter().all(Vec::is_empty);
            Ok(Plan::repeats(is_clear, Vec::new()))
        };
        // It ends: each step deletes something or is the last.
        while !self.transactions.write(&key.0, &key.1, step).await? {}
        Ok(())
    }

    /// Puts rows of a conversation that is not there yet.
    pub(in crate::store) async fn put(
        &self,
        key: &Key,
        told: &Header,
        table: Table,
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), Error> {
        let Columns { table: name, all, kinds, .. } = columns(table);
        let lists: Vec<String> = kinds.iter().enumerate().map(|(at, kind)| format!("${}::{kind}", at + 4)).collect();
        // When a conversation was made stands with its links, in this kind of store.
        let (more, made) = if table == Table::Link { (", made", ", $3") } else { ("", "") };
        let sql = format!(
            "INSERT INTO {name} (tenant, conversation, {all}{more}) SELECT $1, $2, u.*{made} FROM unnest({}) AS u \
             WHERE $3::BIGINT IS NOT NULL ON CONFLICT DO NOTHING",
            lists.join(", ")
        );
        let (sql, rows) = (&sql, &rows);
        let work = |_: Db| async move {
            let lists = kinds.iter().enumerate().map(|(at, kind)| list(kind, rows.iter().map(|row| row.get(at))));
            let lists = lists.collect::<Result<Vec<_>, Error>>()?;
            let values = with(with(own(key), values![told.created]), lists);
            Ok(Plan::repeats((), vec![Statement::new(sql, values)]))
        };
        self.transactions.write(&key.0, &key.1, work).await
    }

    /// Puts the row that makes a conversation be there; the one that it goes on from must be.
    pub(in crate::store) async fn finish(&self, key: &Key, told: &Header) -> Result<(), Error> {
        let work = |db: Db| async move {
            let chain = match told.parent.as_ref().filter(|_| !told.is_copied) {
                None => String::new(),
                Some(parent) => {
                    let parent = Found::any(&db, &key.0, &ConversationId::from(parent.as_str())).await?;
                    let upto = |link: &Link| Link { id: link.id.clone(), upto: link.upto.min(told.upto) };
                    write_chain(&parent.chain.iter().map(upto).collect::<Vec<_>>())?
                }
            };
            let Header { state, epoch, version, seq, created, updated, upto, .. } = *told;
            let mut row = with(own(key), values![state, epoch, version, seq, &*told.tally, &*told.strands]);
            row.extend(values![&*told.tokenizer, &*told.title, &*told.meta, told.parent.as_deref(), upto, chain]);
            row.extend(values![created, updated]);
            Ok(Plan::repeats((), vec![Statement::new(PUT_HEADER, row)]))
        };
        self.transactions.write(&key.0, &key.1, work).await
    }
}

fn own(key: &Key) -> Vec<Value<'_>> {
    values![key.0.as_str(), key.1.as_str()]
}

fn header(row: &Row) -> Result<Header, Error> {
    let (strands, parent) = (text(row, 5)?, maybe_text(row, 9)?);
    Ok(Header {
        state: number(row, 0)?,
        epoch: number(row, 1)?,
        version: number(row, 2)?,
        seq: number(row, 3)?,
        tally: text(row, 4)?,
        strands: if strands == "[]" { String::new() } else { strands },
        tokenizer: text(row, 6)?,
        title: text(row, 7)?,
        meta: text(row, 8)?,
        upto: number(row, 10)?,
        is_copied: parent.is_some() && read_chain(&text(row, 11)?)?.is_empty(),
        parent,
        created: number(row, 12)?,
        updated: number(row, 13)?,
    })
}

fn cells(row: &Row) -> Result<Vec<Cell>, Error> {
    let cell = |at: usize| -> Result<Cell, Error> {
        let kind = row.columns().get(at).map(tokio_postgres::Column::type_);
        Ok(match kind {
            Some(&Type::INT8) => row.try_get::<_, Option<i64>>(at)?.map_or(Cell::Null, Cell::Number),
            Some(&Type::TEXT) => maybe_text(row, at)?.map_or(Cell::Null, Cell::Text),
            Some(&Type::BYTEA) => row.try_get::<_, Option<Vec<u8>>>(at)?.map_or(Cell::Null, Cell::Bytes),
            kind => return Err(fault::corrupt(format!("a column of type {kind:?}"))),
        })
    };
    (0..row.len()).map(cell).collect()
}

fn value(cell: &Cell) -> Value<'_> {
    match cell {
        Cell::Null => Value::MaybeText(None),
        Cell::Number(number) => Value::Number(*number),
        Cell::Text(text) => Value::Text(Cow::Borrowed(text)),
        Cell::Bytes(bytes) => Value::Bytes(bytes.clone()),
    }
}

/// Returns one column of some rows.
fn list<'v>(kind: &str, cells: impl Iterator<Item = Option<&'v Cell>>) -> Result<Value<'v>, Error> {
    let wrong = || Error::from(Kind::Corrupt { what: format!("a row with something else than {kind} in a column") });
    match kind {
        NUMBERS => {
            let numbers = cells.map(|cell| match cell {
                Some(Cell::Number(number)) => Ok(*number),
                _ => Err(wrong()),
            });
            Ok(Value::Numbers(numbers.collect::<Result<_, Error>>()?))
        }
        TEXTS => {
            let texts = cells.map(|cell| match cell {
                Some(Cell::Text(text)) => Ok(Some(text.as_str())),
                Some(Cell::Null) => Ok(None),
                _ => Err(wrong()),
            });
            Ok(Value::MaybeTexts(texts.collect::<Result<_, Error>>()?))
        }
        _ => {
            let blobs = cells.map(|cell| match cell {
                Some(Cell::Bytes(bytes)) => Ok(bytes.clone()),
                _ => Err(wrong()),
            });
            Ok(Value::Blobs(blobs.collect::<Result<_, Error>>()?))
        }
    }
}
