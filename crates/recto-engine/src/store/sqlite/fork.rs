//! Making conversations, and forks that share the past of another instead of copying it.

use super::db::Db;
use super::found::{Found, Link, integer_or_none, put_text};
use super::head;
use super::lens::{self, Lens};
use super::read;
use crate::error::{Error, Kind};
use crate::store::bounds::check_name;
use crate::store::{
    Conversation, ConversationId, FORK_DEPTH_MAX, ForkPoint, NewConversation, ReaderName, ReaderRow, Tenant, Upto,
};
use recto::Seq;
use rusqlite::params;

/// The version of a conversation that was just made.
const FIRST_VERSION: u64 = 1;

const EXISTS: &str = "SELECT state FROM conversation WHERE tenant = ?1 AND id = ?2";
const MAKE: &str = "
    INSERT INTO conversation (tenant, id, state, epoch, tokenizer, about, parent, upto, copied, depth, created)
    VALUES (?1, ?2, 0, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const FORKS: &str = "SELECT n, id FROM conversation WHERE parent = ?1 AND state <> 2 ORDER BY id";

const SHARED_ENTRIES: &str = "
    SELECT e.seq, e.strand, e.cost, e.tally, e.erased, e.hash, e.bytes, e.large, t.body, t.counts
    FROM entry e CROSS JOIN text t ON t.id = e.body WHERE e.n = ?1 AND e.seq <= ?2";
const COPY_ENTRY: &str = "
    INSERT INTO entry (n, seq, strand, cost, tally, erased, hash, bytes, large, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
const KEPT_CONTENTS: &str = "
    SELECT c.hash, t.body FROM content c CROSS JOIN text t ON t.id = c.body WHERE c.n = ?1 AND c.kept = 1";
const ONE_CONTENT: &str = "
    SELECT t.body FROM content c CROSS JOIN text t ON t.id = c.body WHERE c.n = ?1 AND c.hash = ?2";
const REFER: &str = "UPDATE content SET refs = refs + ?3, kept = max(kept, ?4) WHERE n = ?1 AND hash = ?2";
const PUT_CONTENT: &str = "INSERT INTO content (n, hash, refs, kept, body) VALUES (?1, ?2, ?3, ?4, ?5)";
const SHARED_DECISIONS: &str = "
    SELECT d.ordinal, d.turn, d.kind, d.about, t.body FROM decision d CROSS JOIN text t ON t.id = d.body
    WHERE d.r = ?1 AND d.ordinal > ?2 AND d.ordinal <= ?3";
const COPY_DECISION: &str = "
    INSERT INTO decision (r, ordinal, turn, kind, about, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const SHARED_TURNS: &str = "
    SELECT c.turn, c.head, c.spared, t.body, c.at FROM turn c CROSS JOIN text t ON t.id = c.receipt
    WHERE c.r = ?1 AND c.turn >= ?2 AND c.turn < ?3";
const COPY_TURN: &str = "INSERT INTO turn (r, turn, head, spared, receipt, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const OWN_ALL: &str = "UPDATE reader SET base_turn = 0, base_ordinal = 0 WHERE r = ?1";

/// Makes a conversation.
pub(super) fn create(db: &Db<'_>, tenant: &Tenant, new: &NewConversation) -> Result<Conversation, Error> {
    let mut found = begin(db, tenant, new)?;
    if found.is_new {
        head::make(db, &mut found)?;
    }
    let made = found.conversation.clone();
    db.leave(tenant, found);
    Ok(made)
}

/// Makes a conversation that is written to at once; unless it is a fork, its head is still to be written.
pub(super) fn begin(db: &Db<'_>, tenant: &Tenant, new: &NewConversation) -> Result<Found, Error> {
    check_name("tenant", tenant.as_str())?;
    check_name("conversation", new.id.as_str())?;
    match &new.from {
        None => Ok(Found::made(make(db, tenant, new, None)?, new, FIRST_VERSION)),
        Some(from) => {
            refuse_known(db, tenant, new)?;
            fork(db, tenant, new, from)
        }
    }
}

/// Fails if there is, or was, a conversation of this name.
fn refuse_known(db: &Db<'_>, tenant: &Tenant, new: &NewConversation) -> Result<(), Error> {
    let mut statement = db.prepare_cached(EXISTS)?;
    let mut rows = statement.query(params![tenant.as_str(), new.id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    let was = if row.get::<_, i64>(0)? == 0 { "" } else { ", though erased," };
    Err(Kind::Exists { what: format!("conversation {:?}{was}", new.id.as_str()) }.into())
}

/// What a fork stands on.
struct Stand<'a> {
    parent: &'a Found,
    upto: i64,
    is_copied: bool,
}

fn make(db: &Db<'_>, tenant: &Tenant, new: &NewConversation, stand: Option<&Stand<'_>>) -> Result<i64, Error> {
    let about = put_text(db, &new.title, &new.meta)?;
    let depth = stand.filter(|it| !it.is_copied).map_or(0, |it| it.parent.depth + 1);
    let made = db.prepare_cached(MAKE)?.execute(params![
        tenant.as_str(),
        new.id.as_str(),
        &*new.tokenizer,
        about,
        stand.map(|it| it.parent.n),
        stand.map_or(-1, |it| it.upto),
        stand.is_some_and(|it| it.is_copied),
        depth,
        new.at.0,
    ]);
    // A name that is taken is refused by the table; that is rare, so nobody looks first.
    if let Err(error) = made {
        refuse_known(db, tenant, new)?;
        return Err(error.into());
    }
    Ok(db.last_insert_rowid())
}

fn fork(db: &Db<'_>, tenant: &Tenant, new: &NewConversation, from: &ForkPoint) -> Result<Found, Error> {
    let parent = Found::live(db, tenant, &from.conversation)?;
    let head = parent.conversation.tally.head();
    if let Some(upto) = from.upto.filter(|upto| Some(*upto) > head) {
        let what = format!("entry {upto} in conversation {:?}", from.conversation.as_str());
        return Err(Kind::NotFound { what }.into());
    }
    let tally = read::tally(db, &parent, integer_or_none(from.upto))?;
    // A free place is nobody's: the fork may fill it itself.
    let upto = integer_or_none(tally.head());
    let is_copied = parent.depth >= FORK_DEPTH_MAX;
    let stand = Stand { parent: &parent, upto, is_copied };
    let n = make(db, tenant, new, Some(&stand))?;
    let mut made = Found::made(n, new, FIRST_VERSION);
    made.conversation.tally = tally;
    head::make(db, &mut made)?;
    if is_copied {
        copy_entries(db, &stand, n)?;
    }
    for (name, row) in lens::all(db, &parent)? {
        let start = start(db, &parent, &name, row, from.upto)?;
        let lens = lens::make_from(db, n, &name, start)?;
        if is_copied {
            copy_reader(db, &parent, &name, lens)?;
        }
    }
    Found::numbered(db, n)
}

/// Returns where a reader stands when its conversation is forked: after the calls that saw no more than is shared.
fn start(
    db: &Db<'_>,
    parent: &Found,
    name: &ReaderName,
    row: ReaderRow,
    upto: Option<Seq>,
) -> Result<ReaderRow, Error> {
    let stretches = lens::stretches(db, parent, name, Upto::NOW)?;
    let beyond = upto.map_or(Seq(0), Seq::next);
    let turns = lens::first_with(db, &stretches, row.turns, beyond)?;
    let ordinal = match upto == parent.conversation.tally.head() {
        true => row.ordinal,
        false => lens::newest_before(db, &stretches, turns)?,
    };
    Ok(ReaderRow { turns, ordinal })
}

/// Returns the conversations that go on from one, with their numbers.
pub(super) fn forks(db: &Db<'_>, n: i64) -> Result<Vec<(i64, ConversationId)>, Error> {
    let mut statement = db.prepare_cached(FORKS)?;
    let rows = statement.query_map([n], |row| Ok((row.get(0)?, row.get::<_, String>(1)?.into())))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn copy_entries(db: &Db<'_>, stand: &Stand<'_>, n: i64) -> Result<(), Error> {
    for link in &stand.parent.chain {
        let mut statement = db.prepare_cached(SHARED_ENTRIES)?;
        let mut rows = statement.query(params![link.n, link.upto.min(stand.upto)])?;
        while let Some(row) = rows.next()? {
            let large: Option<Vec<u8>> = row.get(7)?;
            for hash in large.as_deref().unwrap_or_default().chunks(16) {
                let text: String = db.prepare_cached(ONE_CONTENT)?.query_row(params![link.n, hash], |it| it.get(0))?;
                copy_content(db, n, hash, &text, (1, 0))?;
            }
            let body = put_text(db, &row.get::<_, String>(8)?, &row.get::<_, String>(9)?)?;
            db.prepare_cached(COPY_ENTRY)?.execute(params![
                n,
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, String>(3)?,
                row.get::<_, i64>(4)?,
                row.get::<_, Vec<u8>>(5)?,
                row.get::<_, i64>(6)?,
                large,
                body,
            ])?;
        }
        copy_kept(db, *link, n)?;
    }
    Ok(())
}

fn copy_kept(db: &Db<'_>, link: Link, n: i64) -> Result<(), Error> {
    let mut statement = db.prepare_cached(KEPT_CONTENTS)?;
    let mut rows = statement.query([link.n])?;
    while let Some(row) = rows.next()? {
        copy_content(db, n, &row.get::<_, Vec<u8>>(0)?, &row.get::<_, String>(1)?, (0, 1))?;
    }
    Ok(())
}

fn copy_content(db: &Db<'_>, n: i64, hash: &[u8], text: &str, (refs, kept): (i64, i64)) -> Result<(), Error> {
    if db.prepare_cached(REFER)?.execute(params![n, hash, refs, kept])? == 0 {
        let body = put_text(db, text, "")?;
        db.prepare_cached(PUT_CONTENT)?.execute(params![n, hash, refs, kept, body])?;
    }
    Ok(())
}

fn copy_reader(db: &Db<'_>, parent: &Found, name: &ReaderName, lens: Lens) -> Result<(), Error> {
    let upto = Upto { turn: lens.start.turns, ordinal: lens.start.ordinal };
    for it in lens::stretches(db, parent, name, upto)? {
        let mut statement = db.prepare_cached(SHARED_DECISIONS)?;
        let mut rows = statement.query(params![it.r, it.ordinals.0, it.ordinals.1])?;
        while let Some(row) = rows.next()? {
            let numbers: [i64; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
            let body = put_text(db, &row.get::<_, String>(4)?, "")?;
            let [ordinal, turn, kind, about] = numbers;
            db.prepare_cached(COPY_DECISION)?.execute(params![lens.r, ordinal, turn, kind, about, body])?;
        }
        let mut statement = db.prepare_cached(SHARED_TURNS)?;
        let mut rows = statement.query(params![it.r, it.turns.0, it.turns.1])?;
        while let Some(row) = rows.next()? {
            let numbers: [i64; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(4)?];
            let receipt = put_text(db, &row.get::<_, String>(3)?, "")?;
            let [turn, head, spared, at] = numbers;
            db.prepare_cached(COPY_TURN)?.execute(params![lens.r, turn, head, spared, receipt, at])?;
        }
    }
    db.prepare_cached(OWN_ALL)?.execute([lens.r])?;
    Ok(())
}
