//! Carrying a whole store over to a database: conversation by conversation, row by row, as they are.
//!
//! Rows are put first, and the row that makes a conversation be there last; so one that is there is whole, and what an
//! interrupted run has left of another is cleared and carried again. At the end of each, both sides are read once more and
//! must have the same digest.

use super::any::Any;
use super::postgres::Postgres;
use super::{ConversationId, Store, Tenant};
use crate::error::{Error, Kind};
use recto::digest::Digest;
use serde::Serialize;
use std::collections::BTreeSet;

/// How many rows go at once.
const PAGE_ROWS: usize = 500;
/// How many generations of forks are followed to the one that stands on no other.
const GENERATIONS_MAX: usize = 100_000;

/// What one column of a row holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A kind of rows that belong to a conversation. The columns that tell its rows apart come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// seq; strand, cost, tally, erased, hash, bytes, large, body, counts
    Entry,
    /// hash; refs, kept, body
    Content,
    /// reader; name, turns, ordinal, base_turn, base_ordinal
    Reader,
    /// reader, ordinal; turn, kind, about, body
    Decision,
    /// reader, turn; head, spared, receipt, at
    Turn,
    /// reader, ticket; turn, receipt, input
    OpenCall,
    /// kind, key; version, body
    Record,
    /// prefix; seq
    Link,
    /// key; hash, first, last
    AppendKey,
}

impl Table {
    pub(super) const ALL: [Table; 9] = [
        Table::Entry,
        Table::Content,
        Table::Reader,
        Table::Decision,
        Table::Turn,
        Table::OpenCall,
        Table::Record,
        Table::Link,
        Table::AppendKey,
    ];

    /// Returns how many columns tell its rows apart.
    pub(super) fn keys(self) -> usize {
        match self {
            Table::Decision | Table::Turn | Table::OpenCall | Table::Record => 2,
            _ => 1,
        }
    }
}

/// What the row of a conversation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) state: i64,
    pub(super) epoch: i64,
    pub(super) version: i64,
    pub(super) seq: i64,
    pub(super) tally: String,
    pub(super) strands: String,
    pub(super) tokenizer: String,
    pub(super) title: String,
    pub(super) meta: String,
    pub(super) parent: Option<String>,
    pub(super) upto: i64,
    pub(super) is_copied: bool,
    pub(super) created: i64,
    pub(super) updated: i64,
}

/// Whose a conversation is, and what it is called.
pub(super) type Key = (Tenant, ConversationId);

/// What was carried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Carried {
    /// How many conversations were carried, erased ones included.
    pub conversations: u64,
    /// How many were there already, and are the same.
    pub known: u64,
    /// How many rows were carried.
    pub rows: u64,
    /// How many access keys were carried.
    pub keys: u64,
}

/// Carries everything of a store over to a database. What is there already must be the same; a run that broke off is
/// repeated. Nobody may write to either meanwhile. `progress` hears how far it is, after each page.
pub async fn carry(from: &Any, to: &Postgres, mut progress: impl FnMut(&Carried)) -> Result<Carried, Error> {
    let mut carried = Carried::default();
    // Placeholders of secrets stay the same, and so do the pages that show them.
    let secret = from.secret().await?;
    if to.take_secret(secret).await? != secret {
        return Err(differs("what placeholders of secrets are made with"));
    }
    carry_keys(from, to, &mut carried).await?;
    let mut done = BTreeSet::new();
    let mut after: Option<Key> = None;
    loop {
        let some = from.everything(after.as_ref(), PAGE_ROWS).await?;
        let Some(last) = some.last() else { return Ok(carried) };
        after = Some(last.clone());
        for key in some {
            for key in family(from, to, key, &done).await? {
                carry_one(from, to, &key, &mut carried, &mut progress).await?;
                done.insert(key);
            }
        }
    }
}

async fn carry_keys(from: &Any, to: &Postgres, carried: &mut Carried) -> Result<(), Error> {
    let there = to.keys().await?;
    for key in from.keys().await? {
        match there.iter().find(|known| known.name == key.name || known.hash == key.hash) {
            None => {
                to.add_key(key).await?;
                carried.keys += 1;
            }
            Some(known) if *known == key => {}
            Some(_) => return Err(differs(&format!("key {:?}", key.name))),
        }
    }
    Ok(())
}

/// Returns a conversation behind all that it stands on and that are not there yet.
async fn family(from: &Any, to: &Postgres, key: Key, done: &BTreeSet<Key>) -> Result<Vec<Key>, Error> {
    let mut family = Vec::new();
    let mut next = Some(key);
    while let Some(key) = next.take().filter(|key| !done.contains(key)) {
        if family.len() > GENERATIONS_MAX {
            return Err(Kind::Corrupt { what: format!("conversation {:?} stands on itself", key.1.as_str()) }.into());
        }
        let parent = header(from, &key).await?.parent.map(|parent| (key.0.clone(), parent.into()));
        family.push(key);
        if let Some(parent) = parent
            && to.header(&parent).await?.is_none()
        {
            next = Some(parent);
        }
    }
    family.reverse();
    Ok(family)
}

async fn carry_one(
    from: &Any,
    to: &Postgres,
    key: &Key,
    carried: &mut Carried,
    progress: &mut impl FnMut(&Carried),
) -> Result<(), Error> {
    let told = header(from, key).await?;
    let is_there = to.header(key).await?.is_some();
    if !is_there {
        to.clear(key).await?;
    }
    let mut digest = Sum::of(&told);
    for table in Table::ALL {
        let mut after = None;
        loop {
            let rows = from.page(key, table, after.take(), PAGE_ROWS).await?;
            let Some(last) = rows.last() else { break };
            after = Some(last[..table.keys()].to_vec());
            digest.add(&rows);
            if !is_there {
                carried.rows += rows.len() as u64;
                to.put(key, &told, table, rows).await?;
            }
            progress(carried);
        }
    }
    if header(from, key).await? != told {
        let what = format!("conversation {:?} was written to while it was carried", key.1.as_str());
        return Err(Kind::Busy { what }.into());
    }
    if !is_there {
        to.finish(key, &told).await?;
    }
    let arrived = sum(to, key).await?;
    match (arrived == digest.0, is_there) {
        (true, true) => carried.known += 1,
        (true, false) => carried.conversations += 1,
        (false, true) => return Err(differs(&format!("conversation {:?}", key.1.as_str()))),
        (false, false) => {
            let what = format!("conversation {:?} did not arrive as it was sent", key.1.as_str());
            return Err(Kind::Corrupt { what }.into());
        }
    }
    progress(carried);
    Ok(())
}

async fn header(from: &Any, key: &Key) -> Result<Header, Error> {
    let gone = || Kind::NotFound { what: format!("conversation {:?}", key.1.as_str()) };
    Ok(from.header(key).await?.ok_or_else(gone)?)
}

/// Returns what identifies a conversation that has arrived.
async fn sum(to: &Postgres, key: &Key) -> Result<Digest, Error> {
    let gone = || Kind::NotFound { what: format!("conversation {:?}", key.1.as_str()) };
    let mut digest = Sum::of(&to.header(key).await?.ok_or_else(gone)?);
    for table in Table::ALL {
        let mut after = None;
        loop {
            let rows = to.page(key, table, after.take(), PAGE_ROWS).await?;
            let Some(last) = rows.last() else { break };
            after = Some(last[..table.keys()].to_vec());
            digest.add(&rows);
        }
    }
    Ok(digest.0)
}

/// What identifies rows up to here, each with its place.
struct Sum(Digest);

impl Sum {
    fn of(header: &Header) -> Sum {
        Sum(Digest::of(format!("{header:?}").as_bytes()))
    }

    fn add(&mut self, rows: &[Vec<Cell>]) {
        for row in rows {
            let mut bytes = self.0.to_bytes().to_vec();
            for cell in row {
                let (kind, content): (u8, &[u8]) = match cell {
                    Cell::Null => (0, &[]),
                    Cell::Number(number) => (1, &number.to_le_bytes()),
                    Cell::Text(text) => (2, text.as_bytes()),
                    Cell::Bytes(bytes) => (3, bytes),
                };
                bytes.push(kind);
                bytes.extend((content.len() as u64).to_le_bytes());
                bytes.extend(content);
            }
            self.0 = Digest::of(&bytes);
        }
    }
}

fn differs(what: &str) -> Error {
    let what = format!("{what} is there already, and is another one");
    Kind::Conflict { what, hint: "carry into an empty database, or into another schema".into() }.into()
}
