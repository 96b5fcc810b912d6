//! Which entries hold a term.
//!
//! No word stands in this index, only numbers made of a word and the conversation's salt; and the salt stands in `text`,
//! where it is overwritten by an erase. So nothing that a page of the file may still hold can be tried against a word.
//! An erased entry makes its conversation's index void: it is built anew with another salt, and the old one is swept
//! away bit by bit.

use super::db::Db;
use super::found::{Found, empty_text, integer, place, put_text, whole};
use crate::error::Error;
use crate::store::{ConversationId, Indexed, Posting, Tenant, Termed};
use recto::digest::Digest;
use recto::entry::Text;
use rusqlite::{OptionalExtension, params};
use std::collections::BTreeSet;

/// How many numbers of void indexes are deleted at once.
const SWEEP_ROWS: i64 = 5_000;

const STATE: &str = "
    SELECT w.i, t.body, w.upto, w.texts FROM word_index w JOIN text t ON t.id = w.salt WHERE w.n = ?1";
const SALT: &str = "SELECT lower(hex(randomblob(16)))";
const MAKE: &str = "INSERT INTO word_index (n, salt, upto, texts) VALUES (?1, ?2, ?3, 0)";
const PUT: &str = "INSERT OR IGNORE INTO posting (i, term, seq) VALUES (?1, ?2, ?3)";
const GO_ON: &str = "UPDATE word_index SET upto = ?2, texts = texts + ?3 WHERE i = ?1";
const FIND: &str = "
    SELECT seq FROM posting WHERE i = ?1 AND term = ?2 AND seq <= ?3 ORDER BY seq DESC LIMIT ?4";
const VOID: &str = "SELECT i, salt FROM word_index WHERE n = ?1";
const DROP: &str = "DELETE FROM word_index WHERE i = ?1";
const DIE: &str = "INSERT INTO dead_index (i, n) VALUES (?1, ?2)";
const DEAD: &str = "SELECT i FROM dead_index ORDER BY i LIMIT 1";
const DEAD_OF: &str = "SELECT i FROM dead_index WHERE n = ?1 LIMIT 1";
const SWEEP: &str = "
    DELETE FROM posting WHERE i = ?1
    AND (term, seq) IN (SELECT term, seq FROM posting WHERE i = ?1 LIMIT ?2)";
const SWEPT: &str = "DELETE FROM dead_index WHERE i = ?1";

struct State {
    i: i64,
    salt: String,
    upto: i64,
    texts: i64,
}

fn state(db: &Db<'_>, n: i64) -> Result<Option<State>, Error> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(State { i: row.get(0)?, salt: row.get(1)?, upto: row.get(2)?, texts: row.get(3)? })
    };
    Ok(db.prepare_cached(STATE)?.query_row([n], read).optional()?)
}

/// What stands for a term.
fn number(salt: &str, term: &str) -> i64 {
    let digest = Digest::of(format!("{salt}\0{term}").as_bytes());
    let bytes = super::found::blob(digest);
    i64::from_le_bytes(bytes[..8].try_into().expect("a digest has 16 bytes"))
}

/// The last place that is another conversation's.
fn shared(found: &Found) -> i64 {
    found.chain.get(1).map_or(-1, |link| link.upto)
}

/// Adds entries that follow those which are there; others are passed over.
pub(super) fn add(db: &Db<'_>, tenant: &Tenant, id: &ConversationId, texts: &[Termed]) -> Result<Indexed, Error> {
    let found = Found::live(db, tenant, id)?;
    sweep(db, None)?;
    let state = match state(db, found.n)? {
        Some(state) => state,
        None => {
            let salt: String = db.prepare_cached(SALT)?.query_row([], |row| row.get(0))?;
            let at = put_text(db, &salt, "")?;
            let upto = shared(&found);
            db.prepare_cached(MAKE)?.execute(params![found.n, at, upto])?;
            State { i: db.last_insert_rowid(), salt, upto, texts: 0 }
        }
    };
    let (mut upto, mut added) = (state.upto, 0);
    for it in texts.iter().filter(|it| integer(it.seq.0) > state.upto) {
        let mut put = db.prepare_cached(PUT)?;
        let seq = integer(it.seq.0);
        for term in it.terms.iter().map(|term| number(&state.salt, term)).collect::<BTreeSet<_>>() {
            put.execute([state.i, term, seq])?;
        }
        (upto, added) = (upto.max(seq), added + i64::from(!it.terms.is_empty()));
    }
    db.prepare_cached(GO_ON)?.execute([state.i, upto, added])?;
    db.leave(tenant, found);
    Ok(Indexed { upto: place(upto), texts: whole(state.texts + added)? })
}

/// Returns how far the index has come.
pub(super) fn reached(db: &Db<'_>, found: &Found) -> Result<Indexed, Error> {
    Ok(match state(db, found.n)? {
        Some(state) => Indexed { upto: place(state.upto), texts: whole(state.texts)? },
        None => Indexed { upto: place(shared(found)), texts: 0 },
    })
}

/// Finds entries by terms, the newest first.
pub(super) fn postings(db: &Db<'_>, found: &Found, terms: &[Text], most: usize) -> Result<Vec<Posting>, Error> {
    let mut postings: Vec<Posting> = terms.iter().map(|_| Posting::default()).collect();
    for link in &found.chain {
        let Some(state) = state(db, link.n)? else { continue };
        for (term, posting) in terms.iter().zip(&mut postings) {
            let room = most - posting.seqs.len();
            let mut statement = db.prepare_cached(FIND)?;
            let wanted = params![state.i, number(&state.salt, term), link.upto, integer(room as u64 + 1)];
            let found = statement.query_map(wanted, |row| row.get(0))?;
            for seq in found.collect::<rusqlite::Result<Vec<i64>>>()? {
                if posting.seqs.len() == most {
                    posting.is_cut = true;
                } else {
                    posting.seqs.extend(place(seq));
                }
            }
        }
    }
    Ok(postings)
}

/// Makes the index of a conversation void.
pub(super) fn void(db: &Db<'_>, n: i64) -> Result<(), Error> {
    let mut statement = db.prepare_cached(VOID)?;
    let found = statement.query_row([n], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional()?;
    if let Some((i, salt)) = found {
        empty_text(db, salt)?;
        db.prepare_cached(DROP)?.execute([i])?;
        db.prepare_cached(DIE)?.execute([i, n])?;
    }
    Ok(())
}

/// Deletes some of what void indexes hold, of one conversation or of any; returns how many rows.
pub(super) fn sweep(db: &Db<'_>, n: Option<i64>) -> Result<u64, Error> {
    let dead: Option<i64> = match n {
        Some(n) => db.prepare_cached(DEAD_OF)?.query_row([n], |row| row.get(0)).optional()?,
        None => db.prepare_cached(DEAD)?.query_row([], |row| row.get(0)).optional()?,
    };
    let Some(i) = dead else { return Ok(0) };
    let rows = db.prepare_cached(SWEEP)?.execute([i, SWEEP_ROWS])?;
    if rows == 0 {
        db.prepare_cached(SWEPT)?.execute([i])?;
        return Ok(1);
    }
    Ok(rows as u64)
}
