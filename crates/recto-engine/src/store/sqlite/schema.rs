//! The tables, how they came about, and how a file is opened.
//!
//! Every word that somebody said stands in `text`, whose rows are only ever appended or emptied. SQLite moves such rows
//! never from one page to another, so zeroing what is erased leaves no copy behind; `secure_delete` alone would, in the
//! unused middle of pages that were split. All other tables hold numbers and digests, but for `record` and `open_call`,
//! which are small and are rebuilt by an erase.

use super::db::Db;
use super::fault;
use crate::error::{Error, Kind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Marks a file as a store of Recto: `Rcto`.
pub(super) const APPLICATION_ID: i64 = 0x5263_746f;
/// How long a reader waits for somebody else.
const READ_WAIT: Duration = Duration::from_secs(10);
/// How long a writer waits before it asks once more; short, so that of many processes none is passed over for long.
const WRITE_WAIT: Duration = Duration::from_millis(20);
/// How long a writer asks in all.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How much of the file the writer keeps in memory, in KiB: places of logs are found by digests, which lie anywhere. More
/// is not better: SQLite walks over all of it at a commit after a page was split.
const WRITER_CACHE_KIB: i64 = 2 * 1_024;
/// How many prepared statements a connection keeps.
const STATEMENTS_MAX: usize = 128;
/// The size of a page in bytes. A turn is a few thousand bytes, and every page that it touches is written whole.
const PAGE_BYTES: i64 = 1_024;
/// How many pages wait in the write-ahead log before they are written to the file; a page that changes often is
/// written once for all of them.
const LOG_PAGES: i64 = 16_000;

/// The schema, step by step; a released step is never changed.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE text (id INTEGER PRIMARY KEY, body TEXT NOT NULL, counts TEXT NOT NULL);
    CREATE TABLE conversation (
        n INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, state INTEGER NOT NULL, epoch INTEGER NOT NULL,
        tokenizer TEXT NOT NULL, about INTEGER NOT NULL, parent INTEGER, upto INTEGER NOT NULL, copied INTEGER NOT NULL,
        depth INTEGER NOT NULL, created INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX conversation_name ON conversation (tenant, id);
    CREATE INDEX conversation_parent ON conversation (parent);
    CREATE INDEX conversation_state ON conversation (state) WHERE state = 1;
    CREATE TABLE head (
        n INTEGER PRIMARY KEY, seq INTEGER NOT NULL, strands INTEGER NOT NULL, tally TEXT NOT NULL,
        version INTEGER NOT NULL, updated INTEGER NOT NULL
    );
    CREATE TABLE entry (
        n INTEGER NOT NULL, seq INTEGER NOT NULL, strand INTEGER NOT NULL, cost INTEGER NOT NULL, tally TEXT NOT NULL,
        erased INTEGER NOT NULL, hash BLOB NOT NULL, bytes INTEGER NOT NULL, large BLOB, body INTEGER NOT NULL,
        PRIMARY KEY (n, seq)
    ) WITHOUT ROWID;
    CREATE TABLE append_key (
        n INTEGER NOT NULL, key BLOB NOT NULL, hash BLOB NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        PRIMARY KEY (n, key)
    ) WITHOUT ROWID;
    CREATE TABLE content (
        n INTEGER NOT NULL, hash BLOB NOT NULL, refs INTEGER NOT NULL, kept INTEGER NOT NULL, body INTEGER NOT NULL,
        PRIMARY KEY (n, hash)
    ) WITHOUT ROWID;
    CREATE TABLE reader (
        r INTEGER PRIMARY KEY, n INTEGER NOT NULL, key BLOB NOT NULL, name INTEGER NOT NULL, turns INTEGER NOT NULL,
        ordinal INTEGER NOT NULL, base_turn INTEGER NOT NULL, base_ordinal INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX reader_name ON reader (n, key);
    CREATE TABLE decision (
        r INTEGER NOT NULL, ordinal INTEGER NOT NULL, turn INTEGER NOT NULL, kind INTEGER NOT NULL,
        about INTEGER NOT NULL, body INTEGER NOT NULL,
        PRIMARY KEY (r, ordinal)
    ) WITHOUT ROWID;
    CREATE INDEX decision_about ON decision (r, kind, about);
    CREATE INDEX decision_kind ON decision (r, kind, ordinal);
    CREATE TABLE turn (
        r INTEGER NOT NULL, turn INTEGER NOT NULL, head INTEGER NOT NULL, spared INTEGER NOT NULL,
        receipt INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (r, turn)
    ) WITHOUT ROWID;
    CREATE TABLE open_call (
        r INTEGER NOT NULL, ticket BLOB NOT NULL, turn INTEGER NOT NULL, receipt TEXT NOT NULL, input TEXT,
        PRIMARY KEY (r, ticket)
    ) WITHOUT ROWID;
    CREATE TABLE record (
        n INTEGER NOT NULL, kind INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (n, kind, key)
    ) WITHOUT ROWID;
",
    "
    CREATE TABLE link (
        tenant TEXT NOT NULL, prefix BLOB NOT NULL, n INTEGER NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY (tenant, prefix, n)
    ) WITHOUT ROWID;
    CREATE INDEX link_conversation ON link (n);
    CREATE TABLE access_key (
        hash BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, policy TEXT, at INTEGER NOT NULL,
        revoked INTEGER
    ) WITHOUT ROWID;
",
    "
    CREATE TABLE secret (id INTEGER PRIMARY KEY, value BLOB NOT NULL);
    INSERT INTO secret (id, value) VALUES (1, randomblob(16));
",
    "
    CREATE TABLE word_index (
        i INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER NOT NULL, salt INTEGER NOT NULL, upto INTEGER NOT NULL,
        texts INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX word_index_conversation ON word_index (n);
    CREATE TABLE posting (
        i INTEGER NOT NULL, term INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (i, term, seq)
    ) WITHOUT ROWID;
    CREATE TABLE dead_index (i INTEGER PRIMARY KEY, n INTEGER NOT NULL);
",
    // The names of strands stand in the head's own row where they are none of the host's words. A conversation that goes
    // on from no other need not be found by the one that it goes on from.
    "
    ALTER TABLE head ADD COLUMN names TEXT;
    DROP INDEX conversation_parent;
    CREATE INDEX conversation_parent ON conversation (parent) WHERE parent IS NOT NULL;
",
];

/// The newest schema that is known.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Refuses a file that is no store, or that a newer version wrote, before anything is changed.
pub(super) fn refuse_others(path: &Path) -> Result<(), Error> {
    let length = fs::metadata(path).map_err(|error| fault::file(path.display().to_string(), &error))?.len();
    let is_being_made = fs::metadata(beside(path, "-journal")).is_ok_and(|journal| journal.len() > 0);
    // An empty file is a new store; one with a journal was left while it was made, and SQLite takes that back.
    if length == 0 || is_being_made {
        return Ok(());
    }
    let connection = immutable(path)?;
    let not_ours = |error: rusqlite::Error| match fault::kind(&error) {
        Kind::Foreign { .. } => Kind::Foreign { what: path.display().to_string() }.into(),
        kind => Error::from(kind),
    };
    let application = match number(&connection, "PRAGMA application_id").map_err(not_ours) {
        // While its log is being written into it, or could not be for want of room, the file alone is not whole. Then
        // whoever opens it with its log finds out what it is.
        Err(error) if error.is_corrupt() && has_log(path) => return Ok(()),
        application => application?,
    };
    let version = number(&connection, "PRAGMA user_version").map_err(not_ours)?;
    refuse_numbers(path, application, version)
}

/// Whether something stands in the log beside a file.
fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

fn refuse_numbers(path: &Path, application: i64, version: i64) -> Result<(), Error> {
    if application != APPLICATION_ID {
        return Err(Kind::Foreign { what: path.display().to_string() }.into());
    }
    if version > VERSION {
        return Err(Kind::Newer { found: version, known: VERSION }.into());
    }
    Ok(())
}

/// Opens a file for writing and brings its schema up to date.
pub(super) fn writer(path: &Path) -> Result<Connection, Error> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(READ_WAIT)?;
    plan_once(&connection)?;
    // The size of pages holds for a file that is still empty; others keep theirs.
    connection.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES}; PRAGMA foreign_keys = OFF; PRAGMA cell_size_check = ON; \
         PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{WRITER_CACHE_KIB}"
    ))?;
    if patiently(|| Ok(number(&connection, "PRAGMA application_id")?))? == 0 {
        // The first schema is written before there is a write-ahead log, so that the file alone says what it is.
        patiently(|| migrate(&connection, path))?;
    }
    patiently(|| Ok(connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))?))?;
    connection.execute_batch(&format!("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = {LOG_PAGES}"))?;
    patiently(|| migrate(&connection, path))?;
    connection.busy_timeout(WRITE_WAIT)?;
    Ok(connection)
}

/// Opens a file for reading.
pub(super) fn reader(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    ready_to_read(&connection)?;
    Ok(connection)
}

/// Opens a file that can't be, or must not be, written to.
pub(super) fn read_only(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    });
    let connection = match opened {
        Ok(connection) => connection,
        // Where no file can be made beside it, it can still be read as it is, unless some of it stands in the log.
        Err(_) if !has_log(path) => immutable(path)?,
        Err(error) => return Err(error.into()),
    };
    ready_to_read(&connection)?;
    let application = number(&connection, "PRAGMA application_id")?;
    let version = number(&connection, "PRAGMA user_version")?;
    refuse_numbers(path, application, version)?;
    if version < VERSION {
        let what = format!("it has schema {version}, and must be brought to {VERSION} before it can be read");
        return Err(Kind::ReadOnly { what }.into());
    }
    Ok(connection)
}

fn ready_to_read(connection: &Connection) -> Result<(), Error> {
    connection.busy_timeout(READ_WAIT)?;
    plan_once(connection)?;
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA cell_size_check = ON")?;
    Ok(())
}

/// Sees to it that a statement is planned once. SQLite would else plan one with a bound limit anew whenever it is run.
fn plan_once(connection: &Connection) -> Result<(), Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Opens a file as it is, without its log, and leaves no trace beside it.
pub(super) fn immutable(path: &Path) -> Result<Connection, Error> {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02x}")),
        }
    }
    address.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(address, flags)?)
}

fn migrate(connection: &Connection, path: &Path) -> Result<(), Error> {
    let from = number(connection, "PRAGMA user_version")?;
    if from == VERSION {
        return refuse_numbers(path, number(connection, "PRAGMA application_id")?, from);
    }
    for _ in 0..=MIGRATIONS.len() {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let done = step(connection, path);
        match &done {
            Ok(_) => connection.execute_batch("COMMIT")?,
            Err(_) => connection.execute_batch("ROLLBACK")?,
        }
        if done? == VERSION {
            break;
        }
    }
    Ok(())
}

/// Takes one step; another process may have taken it in the meantime, so the version is read within the transaction.
fn step(connection: &Connection, path: &Path) -> Result<i64, Error> {
    let version = number(connection, "PRAGMA user_version")?;
    let application = number(connection, "PRAGMA application_id")?;
    let is_new = application == 0 && number(connection, "SELECT count(*) FROM sqlite_schema")? == 0;
    if !is_new {
        refuse_numbers(path, application, version)?;
    }
    let Some(sql) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version)) else {
        return Ok(version);
    };
    connection.execute_batch(sql)?;
    let next = version + 1;
    connection.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {next}"))?;
    Ok(next)
}

/// Does something until nobody else is in the way, within bounds.
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let deadline = Instant::now() + WRITE_PATIENCE;
    loop {
        match attempt() {
            // SQLite has waited already, unless two were about to wait for each other.
            Err(error) if error.is_busy() && Instant::now() < deadline => std::thread::yield_now(),
            done => return done,
        }
    }
}

/// Begins a transaction that writes, as soon as nobody else is in the way.
pub(super) fn begin(connection: &Db<'_>) -> rusqlite::Result<()> {
    let deadline = Instant::now() + WRITE_PATIENCE;
    loop {
        match connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut it| it.execute([])).map(drop) {
            Err(error) if matches!(fault::kind(&error), Kind::Busy { .. }) && Instant::now() < deadline => {
                std::thread::yield_now();
            }
            done => return done,
        }
    }
}

/// Returns the one number that a statement answers with.
pub(super) fn number(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(0))
}

/// Returns the path of a file that SQLite keeps beside the store.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
