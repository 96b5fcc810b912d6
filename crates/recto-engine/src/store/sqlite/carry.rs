//! Reading rows as they are, for another store to keep.

use super::db::Db;
use super::lens::reader_name;
use super::{Sqlite, fault};
use crate::error::Error;
use crate::store::carry::{Cell, Header, Table};
use crate::store::{ConversationId, Tenant};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

const EVERYTHING: &str = "
    SELECT tenant, id FROM conversation WHERE ?1 IS NULL OR (tenant, id) > (?1, ?2) ORDER BY tenant, id LIMIT ?3";
const HEADER: &str = "
    SELECT c.state, c.epoch, h.version, h.seq, h.tally, coalesce(h.names, s.body, ''), c.tokenizer, a.body, a.counts, p.id, c.upto,
    c.copied, c.created, h.updated
    FROM conversation c JOIN head h ON h.n = c.n JOIN text a ON a.id = c.about
    LEFT JOIN text s ON s.id = h.strands LEFT JOIN conversation p ON p.n = c.parent
    WHERE c.tenant = ?1 AND c.id = ?2";
const NUMBER: &str = "SELECT n FROM conversation WHERE tenant = ?1 AND id = ?2";

/// Returns the rows of a table: all columns, from where, and what tells them apart.
fn question(table: Table) -> (&'static str, &'static str) {
    match table {
        Table::Entry => (
            "SELECT e.seq, e.strand, e.cost, e.tally, e.erased, e.hash, e.bytes, coalesce(e.large, x''), t.body, \
             t.counts FROM entry e CROSS JOIN text t ON t.id = e.body WHERE e.n = ?1",
            "e.seq",
        ),
        Table::Content => (
            "SELECT c.hash, c.refs, c.kept, t.body FROM content c CROSS JOIN text t ON t.id = c.body WHERE c.n = ?1",
            "c.hash",
        ),
        Table::Reader => (
            concat!(
                "SELECT r.key, ",
                reader_name!(),
                ", r.turns, r.ordinal, r.base_turn, r.base_ordinal \
                 FROM reader r LEFT JOIN text t ON t.id = r.name WHERE r.n = ?1"
            ),
            "r.key",
        ),
        Table::Decision => (
            "SELECT r.key, d.ordinal, d.turn, d.kind, d.about, t.body FROM reader r \
             CROSS JOIN decision d ON d.r = r.r CROSS JOIN text t ON t.id = d.body WHERE r.n = ?1",
            "r.key, d.ordinal",
        ),
        Table::Turn => (
            "SELECT r.key, c.turn, c.head, c.spared, t.body, c.at FROM reader r \
             CROSS JOIN turn c ON c.r = r.r CROSS JOIN text t ON t.id = c.receipt WHERE r.n = ?1",
            "r.key, c.turn",
        ),
        Table::OpenCall => (
            "SELECT r.key, o.ticket, o.turn, o.receipt, o.input FROM reader r \
             CROSS JOIN open_call o ON o.r = r.r WHERE r.n = ?1",
            "r.key, o.ticket",
        ),
        Table::Record => ("SELECT kind, key, version, body FROM record WHERE n = ?1", "kind, key"),
        Table::Link => ("SELECT prefix, seq FROM link WHERE n = ?1", "prefix"),
        Table::AppendKey => ("SELECT key, hash, first, last FROM append_key WHERE n = ?1", "key"),
    }
}

impl Sqlite {
    /// Lists all conversations of all tenants, erased ones too.
    pub(in crate::store) async fn everything(
        &self,
        after: Option<&(Tenant, ConversationId)>,
        rows: usize,
    ) -> Result<Vec<(Tenant, ConversationId)>, Error> {
        let after = after.cloned();
        let work = move |db: &Db<'_>| {
            let (tenant, id) = (after.as_ref().map(|it| it.0.as_str()), after.as_ref().map(|it| it.1.as_str()));
            let rows = i64::try_from(rows).unwrap_or(i64::MAX);
            let mut statement = db.prepare_cached(EVERYTHING)?;
            let key = |row: &Row<'_>| Ok((row.get::<_, String>(0)?.into(), row.get::<_, String>(1)?.into()));
            let found = statement.query_map(rusqlite::params![tenant, id, rows], key)?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        };
        self.readers.read(work).await
    }

    /// Returns what the row of a conversation says.
    pub(in crate::store) async fn header(&self, key: &(Tenant, ConversationId)) -> Result<Option<Header>, Error> {
        let (tenant, id) = key.clone();
        let work = move |db: &Db<'_>| {
            let mut statement = db.prepare_cached(HEADER)?;
            Ok(statement.query_row([tenant.as_str(), id.as_str()], header).optional()?)
        };
        self.readers.read(work).await
    }

    /// Returns rows of a conversation after one, in order.
    pub(in crate::store) async fn page(
        &self,
        key: &(Tenant, ConversationId),
        table: Table,
        after: Option<Vec<Cell>>,
        rows: usize,
    ) -> Result<Vec<Vec<Cell>>, Error> {
        let (tenant, id) = key.clone();
        self.readers.read(move |db| page(db, (&tenant, &id), table, after, rows)).await
    }
}

fn header(row: &Row<'_>) -> rusqlite::Result<Header> {
    let strands: String = row.get(5)?;
    Ok(Header {
        state: row.get(0)?,
        epoch: row.get(1)?,
        version: row.get(2)?,
        seq: row.get(3)?,
        tally: row.get(4)?,
        strands: if strands == "[]" { String::new() } else { strands },
        tokenizer: row.get(6)?,
        title: row.get(7)?,
        meta: row.get(8)?,
        parent: row.get(9)?,
        upto: row.get(10)?,
        is_copied: row.get(11)?,
        created: row.get(12)?,
        updated: row.get(13)?,
    })
}

fn page(
    db: &Db<'_>,
    (tenant, id): (&Tenant, &ConversationId),
    table: Table,
    after: Option<Vec<Cell>>,
    rows: usize,
) -> Result<Vec<Vec<Cell>>, Error> {
    let n: i64 = db.prepare_cached(NUMBER)?.query_row([tenant.as_str(), id.as_str()], |row| row.get(0))?;
    let (select, key) = question(table);
    let places: Vec<String> = (0..table.keys()).map(|at| format!("?{}", at + 2)).collect();
    let behind = if after.is_some() { format!("AND ({key}) > ({})", places.join(", ")) } else { String::new() };
    let mut statement = Connection::prepare_cached(db, &format!("{select} {behind} ORDER BY {key} LIMIT {rows}"))?;
    let columns = statement.column_count();
    let values = std::iter::once(rusqlite::types::Value::Integer(n)).chain(after.into_iter().flatten().map(value));
    let mut found = statement.query(params_from_iter(values))?;
    let mut page = Vec::new();
    while let Some(row) = found.next()? {
        page.push((0..columns).map(|at| cell(row, at)).collect::<Result<_, Error>>()?);
    }
    Ok(page)
}

fn value(cell: Cell) -> rusqlite::types::Value {
    match cell {
        Cell::Null => rusqlite::types::Value::Null,
        Cell::Number(number) => rusqlite::types::Value::Integer(number),
        Cell::Text(text) => rusqlite::types::Value::Text(text),
        Cell::Bytes(bytes) => rusqlite::types::Value::Blob(bytes),
    }
}

fn cell(row: &Row<'_>, at: usize) -> Result<Cell, Error> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Number(number),
        ValueRef::Text(_) => Cell::Text(row.get(at)?),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(fault::corrupt("a number with a fraction, where none can be")),
    })
}
