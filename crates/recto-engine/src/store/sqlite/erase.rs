//! Erasing: a fence, deletes in small transactions, a tombstone, and a write-ahead log that is cut to nothing.
//!
//! Words are overwritten where they stand (see `schema.rs` for why that is enough); tables that words may have moved
//! about in are written anew.

use super::db::Db;
use super::fault;
use super::found::{Found, empty_text, integer, put_text};
use super::head::wrote;
use super::{fork, index, lens, schema};
use crate::error::{Error, Kind};
use crate::store::{ConversationId, EraseEntries, Forks, ReaderName, Remains, State, Tenant, Upto};
use rusqlite::{Connection, OptionalExtension, params};
use std::time::{Duration, Instant};

/// How many rows of each table one transaction deletes.
const STEP_ROWS: i64 = 500;
/// How many generations of forks an erase follows; no chain of parents is longer without having been copied more often
/// than anybody forks.
const GENERATIONS_MAX: usize = 10_000;
/// How long an erase waits for those who still read the write-ahead log.
const LOG_PATIENCE: Duration = Duration::from_secs(5);

const FENCE: &str = "UPDATE conversation SET state = 1, epoch = epoch + 1 WHERE n = ?1 AND state = 0";
const INTERRUPTED: &str = "SELECT n FROM conversation WHERE state = 1 ORDER BY depth DESC LIMIT ?1";
const TOMB: &str = "
    UPDATE conversation SET state = 2, parent = NULL, upto = -1, copied = 0, depth = 0 WHERE n = ?1";
const TOMB_HEAD: &str = "
    UPDATE head SET seq = -1, strands = 0, names = NULL, tally = '', version = version + 1 WHERE n = ?1";
const WORDS_OF: &str = "SELECT c.about, h.strands FROM conversation c JOIN head h ON h.n = c.n WHERE c.n = ?1";
const READERS: &str = "SELECT r, name FROM reader WHERE n = ?1 LIMIT ?2";
const DROP_READER: &str = "DELETE FROM reader WHERE r = ?1";
const DROP_OPEN: &str = "DELETE FROM open_call WHERE r = ?1";
const DROP_RECORDS: &str = "DELETE FROM record WHERE n = ?1";
const DROP_KEYS: &str = "
    DELETE FROM append_key WHERE n = ?1 AND key IN (SELECT key FROM append_key WHERE n = ?1 LIMIT ?2)";
const DROP_LINKS: &str = "
    DELETE FROM link WHERE (tenant, prefix, n) IN (SELECT tenant, prefix, n FROM link WHERE n = ?1 LIMIT ?2)";

/// Tables whose rows have words in `text`: which rows, and how one is deleted.
const ENTRIES: Worded = Worded {
    some: "SELECT seq, body FROM entry WHERE n = ?1 LIMIT ?2",
    delete: "DELETE FROM entry WHERE n = ?1 AND seq = ?2",
};
const CONTENTS: Worded = Worded {
    some: "SELECT hash, body FROM content WHERE n = ?1 LIMIT ?2",
    delete: "DELETE FROM content WHERE n = ?1 AND hash = ?2",
};
const DECISIONS: Worded = Worded {
    some: "SELECT ordinal, body FROM decision WHERE r = ?1 LIMIT ?2",
    delete: "DELETE FROM decision WHERE r = ?1 AND ordinal = ?2",
};
const TURNS: Worded = Worded {
    some: "SELECT turn, receipt FROM turn WHERE r = ?1 LIMIT ?2",
    delete: "DELETE FROM turn WHERE r = ?1 AND turn = ?2",
};

/// Writes the tables that hold words themselves anew, in pages that were zeroed before.
const REBUILD: &str = "
    CREATE TEMP TABLE old_open AS SELECT * FROM open_call;
    CREATE TEMP TABLE old_record AS SELECT * FROM record;
    DELETE FROM open_call;
    DELETE FROM record;
    INSERT INTO open_call SELECT * FROM old_open;
    INSERT INTO record SELECT * FROM old_record;
    DROP TABLE old_open;
    DROP TABLE old_record;";

const ENTRY: &str = "SELECT erased, large, body FROM entry WHERE n = ?1 AND seq = ?2";
const REMAIN: &str = "UPDATE entry SET erased = 1, large = NULL, body = ?3 WHERE n = ?1 AND seq = ?2";
const UNREFER: &str = "UPDATE content SET refs = refs - 1 WHERE n = ?1 AND hash = ?2";
const UNUSED: &str = "SELECT body FROM content WHERE n = ?1 AND hash = ?2 AND refs <= 0 AND kept = 0";
const DROP_CONTENT: &str = "DELETE FROM content WHERE n = ?1 AND hash = ?2";
const PARENT: &str = "SELECT parent, upto FROM conversation WHERE n = ?1 AND parent IS NOT NULL";
const CHILDREN: &str = "SELECT n FROM conversation WHERE parent = ?1 AND upto >= ?2 AND state = 0";
const DECISION: &str = "SELECT body FROM decision WHERE r = ?1 AND ordinal = ?2";
const PUT_DECISION: &str = "
    UPDATE decision SET turn = ?3, kind = ?4, about = ?5, body = ?6 WHERE r = ?1 AND ordinal = ?2";

struct Worded {
    some: &'static str,
    delete: &'static str,
}

/// Fences a conversation, and its forks if they are to go too; returns all of them, the deepest first.
pub(super) fn fence(
    db: &Db<'_>,
    tenant: &Tenant,
    id: &ConversationId,
    forks: Forks,
) -> Result<Vec<(i64, ConversationId)>, Error> {
    db.forget();
    let found = Found::any(db, tenant, id)?;
    if found.conversation.state == State::Erased {
        return Ok(Vec::new());
    }
    let direct = fork::forks(db, found.n)?;
    if forks == Forks::Refuse && !direct.is_empty() {
        let forks = direct.into_iter().map(|(_, id)| id).collect();
        return Err(Kind::HasForks { conversation: id.clone(), forks }.into());
    }
    let mut family = vec![(found.n, id.clone())];
    let mut generation = direct;
    for _ in 0..GENERATIONS_MAX {
        if generation.is_empty() {
            break;
        }
        let mut next = Vec::new();
        for (n, _) in &generation {
            next.extend(fork::forks(db, *n)?);
        }
        family.append(&mut generation);
        generation = next;
    }
    for (n, _) in &family {
        db.prepare_cached(FENCE)?.execute([n])?;
    }
    family.reverse();
    Ok(family)
}

/// How far an erase has come.
pub(super) struct Step {
    pub(super) entries: u64,
    pub(super) is_done: bool,
}

/// Deletes some rows of a fenced conversation; the last step leaves the tombstone.
pub(super) fn step(db: &Db<'_>, n: i64) -> Result<Step, Error> {
    db.forget();
    index::void(db, n)?;
    let entries = wipe(db, n, &ENTRIES)?;
    let mut rows = entries + wipe(db, n, &CONTENTS)? + index::sweep(db, Some(n))?;
    let readers: Vec<(i64, i64)> = {
        let mut statement = db.prepare_cached(READERS)?;
        let readers = statement.query_map([n, STEP_ROWS], |row| Ok((row.get(0)?, row.get(1)?)))?;
        readers.collect::<rusqlite::Result<_>>()?
    };
    for (r, name) in readers {
        let of_reader = wipe(db, r, &DECISIONS)? + wipe(db, r, &TURNS)?;
        rows += of_reader;
        if of_reader == 0 {
            db.prepare_cached(DROP_OPEN)?.execute([r])?;
            empty_text(db, name)?;
            db.prepare_cached(DROP_READER)?.execute([r])?;
            rows += 1;
        }
        if rows >= STEP_ROWS.unsigned_abs() {
            break;
        }
    }
    rows += db.prepare_cached(DROP_KEYS)?.execute([n, STEP_ROWS])? as u64;
    rows += db.prepare_cached(DROP_LINKS)?.execute([n, STEP_ROWS])? as u64;
    rows += db.prepare_cached(DROP_RECORDS)?.execute([n])? as u64;
    if rows == 0 {
        bury(db, n)?;
    }
    Ok(Step { entries, is_done: rows == 0 })
}

fn wipe(db: &Db<'_>, of: i64, table: &Worded) -> Result<u64, Error> {
    let rows: Vec<(rusqlite::types::Value, i64)> = {
        let mut statement = db.prepare_cached(table.some)?;
        let rows = statement.query_map([of, STEP_ROWS], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (key, text) in &rows {
        empty_text(db, *text)?;
        db.prepare_cached(table.delete)?.execute(params![of, key])?;
    }
    Ok(rows.len() as u64)
}

fn bury(db: &Db<'_>, n: i64) -> Result<(), Error> {
    let words = db.prepare_cached(WORDS_OF)?.query_row([n], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (about, strands) = words.ok_or_else(|| fault::corrupt(format!("conversation {n} has no head")))?;
    empty_text(db, about)?;
    empty_text(db, strands)?;
    db.prepare_cached(TOMB_HEAD)?.execute([n])?;
    db.prepare_cached(TOMB)?.execute([n])?;
    Ok(())
}

/// Writes the small tables anew that words may have moved about in.
pub(super) fn rebuild(db: &Db<'_>) -> Result<(), Error> {
    db.execute_batch("SAVEPOINT rebuild")?;
    let done = db.execute_batch(REBUILD);
    // Tables that were made, and have no rows yet, don't count as something that was written.
    if done.is_err() && !db.is_autocommit() {
        db.execute_batch("ROLLBACK TO rebuild")?;
    }
    if !db.is_autocommit() {
        db.execute_batch("RELEASE rebuild")?;
    }
    Ok(done?)
}

/// Returns a conversation whose erase was interrupted.
pub(super) fn interrupted(db: &Db<'_>) -> Result<Option<i64>, Error> {
    Ok(db.prepare_cached(INTERRUPTED)?.query_row([1], |row| row.get(0)).optional()?)
}

/// Writes the write-ahead log to the file and cuts it to nothing.
pub(super) fn cut_log(db: &Connection) -> Result<(), Error> {
    let deadline = Instant::now() + LOG_PATIENCE;
    while Instant::now() < deadline {
        let is_blocked: bool = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if !is_blocked {
            return Ok(());
        }
        std::thread::yield_now();
    }
    let what = "everything is written, but somebody reads for so long that the write-ahead log can't be cut; \
                until it is, traces of what was erased may be left in it: erase again, or close all readers";
    Err(Kind::Busy { what: what.into() }.into())
}

/// Erases the bodies of entries, and what decisions quote of them; returns how many entries had one.
pub(super) fn entries(db: &Db<'_>, tenant: &Tenant, id: &ConversationId, erase: &EraseEntries) -> Result<u64, Error> {
    // Others of its family are written to as well.
    db.forget();
    let found = Found::live(db, tenant, id)?;
    let mut erased = 0;
    for remains in &erase.remains {
        let holders = holders(db, found.n, integer(remains.seq.0))?;
        let mut had_body = None;
        for n in holders {
            match entry(db, n, remains)? {
                Some(one) => had_body = Some(had_body.unwrap_or(false) || one),
                // It sees the entry all the same, and may have been read.
                None => wrote(db, n, None)?,
            }
        }
        let missing = || Kind::NotFound { what: format!("entry {} in conversation {:?}", remains.seq, id.as_str()) };
        erased += u64::from(had_body.ok_or_else(missing)?);
    }
    for (id, name, row) in &erase.decisions {
        let of = Found::live(db, tenant, id)?;
        decision(db, &of, name, row)?;
    }
    wrote(db, found.n, None)?;
    Ok(erased)
}

/// Returns every conversation of the family that shares a place and may hold it: one alone, unless some were copied.
fn holders(db: &Db<'_>, n: i64, seq: i64) -> Result<Vec<i64>, Error> {
    let mut top = n;
    for _ in 0..GENERATIONS_MAX {
        let mut statement = db.prepare_cached(PARENT)?;
        let parent = statement.query_row([top], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).optional()?;
        let Some((parent, _)) = parent.filter(|(_, upto)| *upto >= seq) else { break };
        top = parent;
    }
    let mut family = vec![top];
    let mut at = 0;
    while let Some(n) = family.get(at).copied() {
        let mut statement = db.prepare_cached(CHILDREN)?;
        let children = statement.query_map([n, seq], |row| row.get(0))?;
        family.extend(children.collect::<rusqlite::Result<Vec<i64>>>()?);
        at += 1;
    }
    Ok(family)
}

/// Erases one entry of one conversation; whether it had a body, if it is there at all.
pub(super) fn entry(db: &Db<'_>, n: i64, remains: &Remains) -> Result<Option<bool>, Error> {
    let seq = integer(remains.seq.0);
    let mut statement = db.prepare_cached(ENTRY)?;
    let found: Option<(bool, Option<Vec<u8>>, i64)> =
        statement.query_row([n, seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
    let Some((is_erased, large, old)) = found else { return Ok(None) };
    empty_text(db, old)?;
    index::void(db, n)?;
    let new = put_text(db, &remains.body, &remains.counts)?;
    db.prepare_cached(REMAIN)?.execute([n, seq, new])?;
    for hash in large.as_deref().unwrap_or_default().chunks(16) {
        db.prepare_cached(UNREFER)?.execute(params![n, hash])?;
        if let Some(text) = db.prepare_cached(UNUSED)?.query_row(params![n, hash], |row| row.get(0)).optional()? {
            empty_text(db, text)?;
            db.prepare_cached(DROP_CONTENT)?.execute(params![n, hash])?;
        }
    }
    wrote(db, n, None)?;
    Ok(Some(!is_erased))
}

fn decision(db: &Db<'_>, of: &Found, name: &ReaderName, row: &crate::store::DecisionRow) -> Result<(), Error> {
    let ordinal = integer(row.ordinal);
    for it in lens::stretches(db, of, name, Upto::NOW)? {
        if ordinal <= it.ordinals.0 || ordinal > it.ordinals.1 {
            continue;
        }
        let mut statement = db.prepare_cached(DECISION)?;
        let Some(old) = statement.query_row([it.r, ordinal], |row| row.get(0)).optional()? else { continue };
        empty_text(db, old)?;
        let body = put_text(db, &row.body, "")?;
        let (turn, kind, about) = (integer(row.turn), lens::kind_number(row.kind), integer(row.about));
        db.prepare_cached(PUT_DECISION)?.execute(params![it.r, ordinal, turn, kind, about, body])?;
        return wrote(db, of.n, None);
    }
    let what = format!("decision {ordinal} of reader {:?} in {:?}", name.as_str(), of.conversation.id.as_str());
    Err(Kind::NotFound { what }.into())
}

/// Finishes, on a connection of its own, what an interrupted erase has left.
pub(super) fn finish_interrupted(db: &Db<'_>) -> Result<(), Error> {
    let mut has_any = false;
    while let Some(n) = schema::patiently(|| interrupted(db))? {
        has_any = true;
        db.begin()?;
        let done = step(db, n);
        match &done {
            Ok(_) => db.commit()?,
            Err(_) => db.roll_back("ROLLBACK"),
        }
        done?;
    }
    if has_any {
        db.begin()?;
        rebuild(db)?;
        db.commit()?;
        cut_log(db)?;
    }
    Ok(())
}
