//! What `recto doctor` asks: whether the file is whole, and whether what is in it agrees with itself.

use super::db::Db;
use super::found::{Found, integer, place};
use super::{Sqlite, lens, read, schema, upkeep};
use crate::error::{Error, Kind};
use crate::store::{ConversationId, ReaderName, Row, State};
use recto::Seq;
use recto::digest::Digest;
use recto::log::Tally;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How many entries are looked at before the caller hears how far it has come.
const PAGE_ROWS: usize = 500;
/// The most findings that are reported; a store with more is beyond repair anyway.
const FINDINGS_MAX: usize = 1_000;

const NEXT: &str = "SELECT n, id FROM conversation WHERE n > ?1 ORDER BY n LIMIT 1";
const PARENT: &str = "
    SELECT p.state, h.seq FROM conversation c LEFT JOIN conversation p ON p.n = c.parent
    LEFT JOIN head h ON h.n = p.n WHERE c.n = ?1 AND c.parent IS NOT NULL";
const REFS: &str = "SELECT hash, refs, kept FROM content WHERE n = ?1";
const DECISIONS: &str = "
    SELECT count(*), min(d.ordinal), max(d.ordinal) FROM decision d JOIN text t ON t.id = d.body WHERE d.r = ?1";
const TURNS: &str = "
    SELECT count(*), min(c.turn), max(c.turn) FROM turn c JOIN text t ON t.id = c.receipt WHERE c.r = ?1";
const FALLING: &str = "
    SELECT count(*) FROM turn a JOIN turn b ON b.r = a.r AND b.turn = a.turn + 1 WHERE a.r = ?1 AND b.head < a.head";

/// What a check of a store has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The version of its schema.
    pub schema: i64,
    /// How many conversations there are, erased ones included.
    pub conversations: u64,
    /// How many entries.
    pub entries: u64,
    /// How many decisions.
    pub decisions: u64,
    /// How many acknowledged calls.
    pub calls: u64,
    /// How many conversations are being erased: by somebody else right now, or, if that one was killed, by whoever opens
    /// the store next.
    pub erasing: u64,
    /// The length of the file, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// The length of its write-ahead log, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// What is wrong; nothing, if all is well.
    pub findings: Vec<Finding>,
    /// Whether there were more findings than are told.
    pub is_cut: bool,
}

/// Something that is wrong in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The conversation, if it is about one.
    pub conversation: Option<ConversationId>,
    /// What is wrong.
    pub what: String,
}

impl Report {
    pub(in crate::store) fn find(&mut self, conversation: Option<&ConversationId>, what: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { conversation: conversation.cloned(), what: what.into() });
        } else {
            self.is_cut = true;
        }
    }
}

impl Sqlite {
    /// Checks the whole file. `hash` says what identifies an entry's body, or what is left of it: it must be the row's own
    /// hash. `progress` hears how many entries were checked.
    pub async fn check(
        &self,
        hash: impl Fn(&Row) -> Digest + Send + 'static,
        mut progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<Report, Error> {
        let (path, is_read_only) = (self.path.clone(), self.writer.is_none());
        let task = tokio::task::spawn_blocking(move || {
            let connection = if is_read_only { schema::read_only(&path)? } else { schema::reader(&path)? };
            check(&Db::over(&connection), &path, &hash, &mut progress)
        });
        task.await.unwrap_or_else(|error| Err(Kind::Defect { what: format!("a check failed: {error}") }.into()))
    }
}

type Hash<'a> = &'a dyn Fn(&Row) -> Digest;

fn check(db: &Db<'_>, path: &Path, hash: Hash<'_>, progress: &mut dyn FnMut(u64)) -> Result<Report, Error> {
    let length = |path: &Path| Some(fs::metadata(path).map_or(0, |file| file.len()));
    let log_bytes = length(&schema::beside(path, "-wal"));
    let schema = schema::number(db, "PRAGMA user_version")?;
    let mut report = Report { schema, file_bytes: length(path), log_bytes, ..Report::default() };
    // A file may be too damaged for its own check to come to an end; that is a finding too.
    match upkeep::damages(db) {
        Ok(damages) => damages.into_iter().for_each(|damage| report.find(None, damage)),
        Err(error) if error.is_busy() => return Err(error),
        Err(error) => report.find(None, error.to_string()),
    }
    let mut last = i64::MIN;
    loop {
        let (n, id) = match next(db, last) {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(error) if error.is_busy() => return Err(error),
            Err(error) => {
                report.find(None, format!("the conversations can't be listed to the end: {error}"));
                break;
            }
        };
        last = n;
        report.conversations += 1;
        // One moment for each conversation, so that what is appended meanwhile is no finding.
        db.execute_batch("BEGIN")?;
        let checked = conversation(db, n, &id, hash, &mut report, progress);
        db.execute_batch("ROLLBACK")?;
        match checked {
            Err(error) if error.is_busy() => return Err(error),
            Err(error) => report.find(Some(&id), error.to_string()),
            Ok(()) => {}
        }
    }
    Ok(report)
}

fn next(db: &Db<'_>, last: i64) -> Result<Option<(i64, ConversationId)>, Error> {
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?.into()));
    Ok(db.prepare_cached(NEXT)?.query_row([last], row).optional()?)
}

fn conversation(
    db: &Db<'_>,
    n: i64,
    id: &ConversationId,
    hash: Hash<'_>,
    report: &mut Report,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let found = Found::numbered(db, n)?;
    match found.conversation.state {
        State::Live => {}
        State::Erased => return Ok(()),
        State::Erasing => {
            report.erasing += 1;
            return Ok(());
        }
    }
    let mut statement = db.prepare_cached(PARENT)?;
    let parent: Option<(Option<i64>, Option<i64>)> =
        statement.query_row([n], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let upto = found.conversation.from.as_ref().and_then(|from| from.upto);
    match parent {
        Some((None | Some(2), _)) => report.find(Some(id), "the conversation that it goes on from is gone"),
        Some((_, head)) if head.and_then(place) < upto => {
            report.find(Some(id), "it goes on from an entry that is not there");
        }
        _ => {}
    }
    let refs = entries(db, found, id, hash, report, progress)?;
    contents(db, n, id, &refs, report)?;
    let found = Found::numbered(db, n)?;
    for (name, _) in lens::all(db, &found)? {
        reader(db, n, id, &name, report)?;
    }
    Ok(())
}

/// Checks entries against the running sums, and returns how often each large text is referred to.
fn entries(
    db: &Db<'_>,
    mut found: Found,
    id: &ConversationId,
    hash: Hash<'_>,
    report: &mut Report,
    progress: &mut dyn FnMut(u64),
) -> Result<BTreeMap<Digest, i64>, Error> {
    let upto = found.conversation.from.as_ref().map_or(Some(-1), |from| from.upto.map(|seq| integer(seq.0)));
    let mut tally = match (found.chain.len(), upto) {
        (1, _) | (_, None) => Tally::default(),
        (_, Some(upto)) => {
            let own = found.chain.remove(0);
            let shared = read::tally(db, &found, upto)?;
            found.chain.insert(0, own);
            shared
        }
    };
    found.chain.truncate(1);
    let mut refs = BTreeMap::new();
    let mut from = Seq(0);
    loop {
        let rows = read::forth(db, &found, from, PAGE_ROWS)?;
        let Some(last) = rows.last() else { break };
        from = last.seq.next();
        for row in &rows {
            if !follows(&tally, row) {
                report.find(Some(id), format!("the sums of entry {} do not follow from those before it", row.seq));
            }
            if hash(row) != row.hash {
                report.find(Some(id), format!("the body of entry {} is not the one that was appended", row.seq));
            }
            for (digest, text) in &row.large {
                *refs.entry(*digest).or_insert(0) += 1;
                if Digest::of(text.as_bytes()) != *digest {
                    report.find(Some(id), format!("text {digest} of entry {} is another one", row.seq));
                }
            }
            tally = row.tally.clone();
        }
        report.entries += rows.len() as u64;
        progress(report.entries);
    }
    if tally != found.conversation.tally {
        report.find(Some(id), "its sums are not those of its newest entry");
    }
    Ok(refs)
}

/// Returns whether a row's tally is the one before it and the row itself.
pub(in crate::store) fn follows(before: &Tally, row: &Row) -> bool {
    let (old, new) = (before.strands(), row.tally.strands());
    let is_new = row.strand == old.len();
    let others = old.iter().enumerate().filter(|(at, _)| *at != row.strand).all(|(at, it)| new.get(at) == Some(it));
    let Some(strand) = new.get(row.strand) else { return false };
    let entries = old.get(row.strand).map_or(0, |it| it.sums.entries);
    let tokens = old.get(row.strand).map_or(0, |it| it.sums.tokens.0);
    let sums = strand.sums.entries == entries + 1 && strand.sums.tokens.0 >= tokens;
    let edge = strand.edge == Some(row.seq) || strand.edge == old.get(row.strand).and_then(|it| it.edge);
    others && sums && edge && strand.last == row.seq && new.len() == old.len() + usize::from(is_new)
}

fn contents(
    db: &Db<'_>,
    n: i64,
    id: &ConversationId,
    refs: &BTreeMap<Digest, i64>,
    report: &mut Report,
) -> Result<(), Error> {
    let mut statement = db.prepare_cached(REFS)?;
    let mut rows = statement.query([n])?;
    while let Some(row) = rows.next()? {
        let digest = super::found::digest(&row.get::<_, Vec<u8>>(0)?)?;
        let (told, is_kept): (i64, bool) = (row.get(1)?, row.get(2)?);
        let counted = refs.get(&digest).copied().unwrap_or(0);
        if told != counted || told == 0 && !is_kept {
            report.find(Some(id), format!("text {digest} is referred to {counted} times, and {told} are told"));
        }
    }
    Ok(())
}

fn reader(db: &Db<'_>, n: i64, id: &ConversationId, name: &ReaderName, report: &mut Report) -> Result<(), Error> {
    let Some(lens) = lens::Lens::of(db, n, name)? else { return Ok(()) };
    let count = |sql: &'static str| -> Result<(u64, Option<u64>, Option<u64>), Error> {
        Ok(db.prepare_cached(sql)?.query_row(params![lens.r], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
    };
    let (decisions, first, last) = count(DECISIONS)?;
    let is_dense = first.is_none_or(|it| it == lens.start.ordinal + 1) && last.is_none_or(|it| it == lens.row.ordinal);
    if !is_dense || decisions != lens.row.ordinal.saturating_sub(lens.start.ordinal) {
        report.find(Some(id), format!("decisions of reader {:?} are missing", name.as_str()));
    }
    let (calls, first, last) = count(TURNS)?;
    let is_dense = first.is_none_or(|it| it == lens.start.turns) && last.is_none_or(|it| it + 1 == lens.row.turns);
    if !is_dense || calls != lens.row.turns.saturating_sub(lens.start.turns) {
        report.find(Some(id), format!("calls of reader {:?} are missing", name.as_str()));
    }
    if db.prepare_cached(FALLING)?.query_row([lens.r], |row| row.get::<_, i64>(0))? > 0 {
        report.find(Some(id), format!("calls of reader {:?} are out of order", name.as_str()));
    }
    report.decisions += decisions;
    report.calls += calls;
    Ok(())
}
