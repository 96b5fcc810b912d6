//! The head of a conversation: how far it has come, in a row of its own that every append writes anew.

use super::db::Db;
use super::found::{Found, NO_TEXT, empty_text, integer, integer_or_none, put_text, write_strands, write_tally};
use crate::error::Error;
use recto::entry::{Millis, Section};
use recto::log::Tally;
use rusqlite::params;

const MAKE: &str = "
    INSERT INTO head (n, seq, tally, version, updated, strands, names) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const PUT: &str = "UPDATE head SET seq = ?2, tally = ?3, version = version + 1, updated = ?4 WHERE n = ?1";
const PUT_STRANDS: &str = "
    UPDATE head SET seq = ?2, tally = ?3, version = version + 1, updated = ?4, strands = ?5, names = ?6 WHERE n = ?1";
const WROTE: &str = "UPDATE head SET version = version + 1, updated = coalesce(?2, updated) WHERE n = ?1";

/// Writes the head of a conversation that was made just now.
pub(super) fn make(db: &Db<'_>, found: &mut Found) -> Result<(), Error> {
    let tally = &found.conversation.tally;
    let tally = write_tally(tally, integer_or_none(tally.head()));
    make_with(db, found, &tally)
}

fn make_with(db: &Db<'_>, found: &mut Found, tally: &str) -> Result<(), Error> {
    let names = names(db, found)?;
    let told = &found.conversation;
    let (head, version) = (integer_or_none(told.tally.head()), integer(told.version));
    db.prepare_cached(MAKE)?.execute(params![found.n, head, tally, version, told.updated.0, found.strands, names])?;
    found.is_new = false;
    Ok(())
}

/// Writes how far a conversation has come that had so many strands before; `tally` is how that is spelled.
pub(super) fn put(db: &Db<'_>, found: &mut Found, strands: usize, tally: &str, at: Millis) -> Result<(), Error> {
    found.conversation.version += 1;
    found.conversation.updated = at;
    if found.is_new {
        return make_with(db, found, tally);
    }
    let head = integer_or_none(found.conversation.tally.head());
    if found.conversation.tally.strands().len() == strands {
        db.prepare_cached(PUT)?.execute(params![found.n, head, tally, at.0])?;
        return Ok(());
    }
    let names = names(db, found)?;
    db.prepare_cached(PUT_STRANDS)?.execute(params![found.n, head, tally, at.0, found.strands, names])?;
    Ok(())
}

/// Notes that something was written.
pub(super) fn wrote(db: &Db<'_>, n: i64, at: Option<Millis>) -> Result<(), Error> {
    db.prepare_cached(WROTE)?.execute(params![n, at.map(|at| at.0)])?;
    Ok(())
}

/// Returns the names of the strands if they can stand in the head's row, and else puts them where all words are.
fn names(db: &Db<'_>, found: &mut Found) -> Result<Option<String>, Error> {
    empty_text(db, found.strands)?;
    found.strands = NO_TEXT;
    let tally = &found.conversation.tally;
    let names = write_strands(tally)?;
    if is_without_words(tally) {
        return Ok(Some(names));
    }
    found.strands = put_text(db, &names, "")?;
    Ok(None)
}

/// Whether no strand has a name that a host gave it.
fn is_without_words(tally: &Tally) -> bool {
    tally.strands().iter().all(|it| Section::RANKED.contains(&it.section.as_str()))
}
