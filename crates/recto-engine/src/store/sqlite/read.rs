//! Reading entries: newest first, in order, one by one, and sums without reading.

use super::db::Db;
use super::fault;
use super::found::{Found, Link, digest, integer, place, shared, whole};
use crate::error::Error;
use crate::store::{Back, ROWS_MAX, Row};
use recto::digest::Digest;
use recto::entry::Text;
use recto::log::Tally;
use recto::{Seq, Tokens};
use rusqlite::{OptionalExtension, params};
use std::collections::BTreeSet;

/// How many entries of other strands are passed one by one before a tally says where to go on.
const SCAN_ROWS: i64 = 64;
/// How often a binary search over places asks: once for each bit of a place, and a few more.
const SEARCH_STEPS_MAX: usize = 64;

/// Selects all that is told of entries.
macro_rules! entries {
    ($which:literal) => {
        concat!(
            "SELECT e.seq, e.strand, e.tally, e.cost, e.hash, e.bytes, e.large, e.erased, t.body, t.counts \
             FROM entry e CROSS JOIN text t ON t.id = e.body ",
            $which
        )
    };
}

const BACK: &str = entries!("WHERE e.n = ?1 AND e.seq <= ?2 ORDER BY e.seq DESC LIMIT ?3");
const FORTH: &str = entries!("WHERE e.n = ?1 AND e.seq BETWEEN ?2 AND ?3 ORDER BY e.seq LIMIT ?4");
const ONE: &str = entries!("WHERE e.n = ?1 AND e.seq = ?2");
const OUTLINE: &str = "
    SELECT seq, strand, tally FROM entry WHERE n = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT ?3";
const CONTENT: &str = "
    SELECT t.body FROM content c CROSS JOIN text t ON t.id = c.body WHERE c.n = ?1 AND c.hash = ?2";

/// What an entry's row says without its words.
struct Outline {
    n: i64,
    seq: i64,
    strand: usize,
    tally: String,
}

/// Reads rows from the newest back.
pub(super) fn back(db: &Db<'_>, found: &Found, back: &Back) -> Result<Vec<Row>, Error> {
    let newest = back.below.map_or(i64::MAX, |below| integer(below.0)).saturating_sub(1);
    let mut taken = Taken { rows: Vec::new(), rows_max: back.rows.min(ROWS_MAX), left: back.tokens };
    if back.strands.is_empty() {
        for link in &found.chain {
            let mut statement = db.prepare_cached(BACK)?;
            let mut rows = statement.query(params![link.n, link.upto.min(newest), taken.room()])?;
            while !taken.is_full() {
                let Some(row) = rows.next()? else { break };
                taken.take(full(db, found, link.n, row)?);
            }
        }
        return Ok(taken.rows);
    }
    let mut at = newest;
    while !taken.is_full() {
        let outlines = outlines(db, &found.chain, at)?;
        let Some(last) = outlines.last() else { break };
        at = last.seq - 1;
        let mut wanted = outlines.iter().filter(|it| back.strands.contains(&it.strand)).peekable();
        if wanted.peek().is_none() {
            let tally = found.tally(&last.tally, last.seq)?;
            let next = back.strands.iter().filter_map(|&strand| tally.strands().get(strand)).map(|it| it.last).max();
            let Some(next) = next else { break };
            at = integer(next.0);
            continue;
        }
        for outline in wanted {
            if taken.is_full() {
                break;
            }
            taken.take(one(db, found, outline.n, outline.seq)?.ok_or_else(|| lost(outline.seq))?);
        }
    }
    Ok(taken.rows)
}

/// The rows that were read, and how many more may be.
struct Taken {
    rows: Vec<Row>,
    rows_max: usize,
    left: Tokens,
}

impl Taken {
    fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_max || self.left == Tokens(0)
    }

    fn room(&self) -> i64 {
        i64::try_from(self.rows_max - self.rows.len()).unwrap_or(i64::MAX)
    }

    fn take(&mut self, (row, cost): (Row, Tokens)) {
        self.left = Tokens(self.left.0.saturating_sub(cost.0));
        self.rows.push(row);
    }
}

/// Reads rows in order.
pub(super) fn forth(db: &Db<'_>, found: &Found, from: Seq, rows: usize) -> Result<Vec<Row>, Error> {
    let rows_max = rows.min(ROWS_MAX);
    let mut read = Vec::new();
    // The oldest first: those furthest down the chain.
    for link in found.chain.iter().rev() {
        let room = i64::try_from(rows_max - read.len()).unwrap_or(i64::MAX);
        let mut statement = db.prepare_cached(FORTH)?;
        let mut rows = statement.query(params![link.n, integer(from.0), link.upto, room])?;
        while let Some(row) = rows.next()? {
            read.push(full(db, found, link.n, row)?.0);
        }
    }
    Ok(read)
}

/// Reads single rows.
pub(super) fn rows(db: &Db<'_>, found: &Found, seqs: &[Seq]) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for seq in BTreeSet::from_iter(seqs) {
        let seq = integer(seq.0);
        for link in found.chain.iter().filter(|link| seq <= link.upto) {
            if let Some((row, _)) = one(db, found, link.n, seq)? {
                rows.push(row);
                break;
            }
        }
    }
    Ok(rows)
}

/// Returns what the log held up to and with a place.
pub(super) fn tally(db: &Db<'_>, found: &Found, at: i64) -> Result<Tally, Error> {
    match newest(db, &found.chain, at)? {
        None => Ok(Tally::default()),
        Some(outline) => found.tally(&outline.tally, outline.seq),
    }
}

/// Returns a strand's oldest entry at or after a place.
pub(super) fn first(db: &Db<'_>, found: &Found, strand: usize, from: Seq) -> Result<Option<Seq>, Error> {
    let from = integer(from.0);
    let Some(whole) = found.conversation.tally.strands().get(strand) else { return Ok(None) };
    let before = tally(db, found, from - 1)?.strands().get(strand).map_or(0, |it| it.sums.entries);
    let wanted = before + 1;
    if whole.sums.entries < wanted {
        return Ok(None);
    }
    // At `high` there are enough entries, below `low` there are too few.
    let (mut low, mut high) = (from, integer(whole.last.0));
    for _ in 0..SEARCH_STEPS_MAX {
        if low >= high {
            break;
        }
        let middle = low + (high - low) / 2;
        let tally = tally(db, found, middle)?;
        match tally.strands().get(strand) {
            Some(it) if it.sums.entries == wanted => return Ok(Some(it.last)),
            Some(it) if it.sums.entries > wanted => high = integer(it.last.0) - 1,
            _ => low = middle + 1,
        }
    }
    Ok(place(high))
}

/// Reads texts by their digests, of this conversation or of one that it goes on from.
pub(super) fn contents(db: &Db<'_>, found: &Found, digests: &[Digest]) -> Result<Vec<(Digest, Text)>, Error> {
    let mut contents = Vec::new();
    for digest in BTreeSet::from_iter(digests) {
        for link in &found.chain {
            if let Some(text) = content(db, link.n, *digest)? {
                contents.push((*digest, text));
                break;
            }
        }
    }
    Ok(contents)
}

fn content(db: &Db<'_>, n: i64, digest: Digest) -> Result<Option<Text>, Error> {
    let hash = super::found::blob(digest);
    Ok(db.prepare_cached(CONTENT)?.query_row(params![n, hash], |row| row.get(0)).optional()?.map(shared))
}

fn newest(db: &Db<'_>, chain: &[Link], at: i64) -> Result<Option<Outline>, Error> {
    for link in chain {
        let mut statement = db.prepare_cached(OUTLINE)?;
        let found =
            statement.query_row(params![link.n, link.upto.min(at), 1], |row| outline(link.n, row)).optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Reads the next few outlines back from a place, of one conversation of the chain.
fn outlines(db: &Db<'_>, chain: &[Link], at: i64) -> Result<Vec<Outline>, Error> {
    for link in chain {
        let mut statement = db.prepare_cached(OUTLINE)?;
        let rows = statement.query_map(params![link.n, link.upto.min(at), SCAN_ROWS], |row| outline(link.n, row))?;
        let outlines: Vec<Outline> = rows.collect::<rusqlite::Result<_>>()?;
        if !outlines.is_empty() {
            return Ok(outlines);
        }
    }
    Ok(Vec::new())
}

fn outline(n: i64, row: &rusqlite::Row<'_>) -> rusqlite::Result<Outline> {
    Ok(Outline { n, seq: row.get(0)?, strand: row.get(1)?, tally: row.get(2)? })
}

fn one(db: &Db<'_>, found: &Found, n: i64, seq: i64) -> Result<Option<(Row, Tokens)>, Error> {
    let mut statement = db.prepare_cached(ONE)?;
    let mut rows = statement.query(params![n, seq])?;
    rows.next()?.map(|row| full(db, found, n, row)).transpose()
}

fn full(db: &Db<'_>, found: &Found, n: i64, row: &rusqlite::Row<'_>) -> Result<(Row, Tokens), Error> {
    let seq: i64 = row.get(0)?;
    let mut large = Vec::new();
    for hash in row.get_ref(6)?.as_blob_or_null().map_err(|_| lost(seq))?.unwrap_or_default().chunks(16) {
        let hash = digest(hash)?;
        let missing = || fault::corrupt(format!("entry #{seq} refers to text {hash}, which is gone"));
        large.push((hash, content(db, n, hash)?.ok_or_else(missing)?));
    }
    let cost = Tokens(whole(row.get(3)?)?);
    let stored = Row {
        seq: place(seq).ok_or_else(|| lost(seq))?,
        strand: row.get(1)?,
        tally: found.tally(row.get_ref(2)?.as_str().map_err(|_| lost(seq))?, seq)?,
        hash: digest(row.get_ref(4)?.as_blob().map_err(|_| lost(seq))?)?,
        bytes: whole(row.get(5)?)?,
        large,
        is_erased: row.get(7)?,
        body: row.get(8)?,
        counts: row.get(9)?,
    };
    Ok((stored, cost))
}

fn lost(seq: i64) -> Error {
    fault::corrupt(format!("entry #{seq} can't be read back"))
}
