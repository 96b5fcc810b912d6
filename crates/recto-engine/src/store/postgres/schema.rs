//! The tables, how they came about, and how a store is opened.
//!
//! Every key begins with tenant and conversation, so that a cluster can keep a conversation on one of its servers. The
//! statements are plain: no sequence, trigger, foreign key, partial index or advisory lock, no clock of the server's.
//! Numbers are 64 bits wide, times are milliseconds, JSON is text. All words that somebody said stand in rows of their
//! conversation.

use super::pool::{Db, connect};
use super::settings::Settings;
use super::value::{number, text, values};
use crate::error::{Error, Kind};
use serde::Serialize;
use std::fmt;
use tokio::time::{Instant, timeout_at};

/// Marks a schema as a store of Recto.
const APPLICATION: &str = "recto";
/// How often another process that makes the same tables is waited for.
const TRIES_MAX: usize = 64;

/// The schema, step by step; a released step is never changed.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE conversation (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, state BIGINT NOT NULL,
        epoch BIGINT NOT NULL, version BIGINT NOT NULL, seq BIGINT NOT NULL, tally TEXT NOT NULL, strands TEXT NOT NULL,
        tokenizer TEXT NOT NULL, title TEXT NOT NULL, meta TEXT NOT NULL, parent TEXT COLLATE \"C\",
        upto BIGINT NOT NULL, chain TEXT NOT NULL, created BIGINT NOT NULL, updated BIGINT NOT NULL,
        PRIMARY KEY (tenant, conversation)
    );
    CREATE INDEX conversation_parent ON conversation (tenant, parent);
    CREATE TABLE erasing (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL,
        PRIMARY KEY (tenant, conversation)
    );
    CREATE TABLE written (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, version BIGINT NOT NULL,
        writer BYTEA NOT NULL, at BIGINT NOT NULL,
        PRIMARY KEY (tenant, conversation, version)
    );
    CREATE TABLE entry (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, seq BIGINT NOT NULL,
        strand BIGINT NOT NULL, cost BIGINT NOT NULL, tally TEXT NOT NULL, erased BIGINT NOT NULL, hash BYTEA NOT NULL,
        bytes BIGINT NOT NULL, large BYTEA NOT NULL, body TEXT NOT NULL, counts TEXT NOT NULL,
        PRIMARY KEY (tenant, conversation, seq)
    );
    CREATE TABLE append_key (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, key BYTEA NOT NULL,
        hash BYTEA NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
        PRIMARY KEY (tenant, conversation, key)
    );
    CREATE TABLE content (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, hash BYTEA NOT NULL,
        refs BIGINT NOT NULL, kept BIGINT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (tenant, conversation, hash)
    );
    CREATE TABLE reader (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, reader BYTEA NOT NULL,
        name TEXT COLLATE \"C\" NOT NULL, turns BIGINT NOT NULL, ordinal BIGINT NOT NULL, base_turn BIGINT NOT NULL,
        base_ordinal BIGINT NOT NULL,
        PRIMARY KEY (tenant, conversation, reader)
    );
    CREATE TABLE decision (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, reader BYTEA NOT NULL,
        ordinal BIGINT NOT NULL, turn BIGINT NOT NULL, kind BIGINT NOT NULL, about BIGINT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (tenant, conversation, reader, ordinal)
    );
    CREATE INDEX decision_about ON decision (tenant, conversation, reader, kind, about);
    CREATE INDEX decision_kind ON decision (tenant, conversation, reader, kind, ordinal);
    CREATE TABLE turn (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, reader BYTEA NOT NULL,
        turn BIGINT NOT NULL, head BIGINT NOT NULL, spared BIGINT NOT NULL, receipt TEXT NOT NULL, at BIGINT NOT NULL,
        PRIMARY KEY (tenant, conversation, reader, turn)
    );
    CREATE INDEX turn_head ON turn (tenant, conversation, reader, head, turn);
    CREATE TABLE open_call (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, reader BYTEA NOT NULL,
        ticket BYTEA NOT NULL, turn BIGINT NOT NULL, receipt TEXT NOT NULL, input TEXT,
        PRIMARY KEY (tenant, conversation, reader, ticket)
    );
    CREATE TABLE record (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, kind BIGINT NOT NULL,
        key TEXT COLLATE \"C\" NOT NULL, version BIGINT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (tenant, conversation, kind, key)
    );
    CREATE TABLE link (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, prefix BYTEA NOT NULL,
        made BIGINT NOT NULL, seq BIGINT NOT NULL,
        PRIMARY KEY (tenant, conversation, prefix)
    );
    CREATE INDEX link_prefix ON link (tenant, prefix, made, conversation);
    CREATE TABLE access_key (
        hash BYTEA PRIMARY KEY, name TEXT COLLATE \"C\" NOT NULL UNIQUE, tenant TEXT NOT NULL, policy TEXT,
        at BIGINT NOT NULL, revoked BIGINT
    );
    CREATE TABLE secret (one BIGINT PRIMARY KEY, value BYTEA NOT NULL);
    CREATE TABLE word_index (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, upto BIGINT NOT NULL,
        texts BIGINT NOT NULL,
        PRIMARY KEY (tenant, conversation)
    );
    CREATE TABLE posting (
        tenant TEXT COLLATE \"C\" NOT NULL, conversation TEXT COLLATE \"C\" NOT NULL, term BIGINT NOT NULL,
        seq BIGINT NOT NULL,
        PRIMARY KEY (tenant, conversation, term, seq)
    );
",
    // Bodies of entries are spelled shorter from here on, which versions before this can't read.
    "SELECT 1",
];

/// Every table, but for the one that says that these are ours.
const TABLES: [&str; 16] = [
    "conversation",
    "erasing",
    "written",
    "entry",
    "append_key",
    "content",
    "reader",
    "decision",
    "turn",
    "open_call",
    "record",
    "link",
    "access_key",
    "secret",
    "word_index",
    "posting",
];

/// The newest schema that is known.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

const SERVER: &str = "
    SELECT current_setting('server_encoding'), current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names'), current_setting('fsync')";
const HAS_SCHEMA: &str = "SELECT 1 FROM information_schema.schemata WHERE schema_name = $1";
const FOUND_TABLES: &str = "
    SELECT table_name::TEXT FROM information_schema.tables
    WHERE table_schema = $1 AND (table_name = ANY($2) OR table_name = 'recto_store')";
const MAKE: &str = "
    CREATE TABLE IF NOT EXISTS recto_store (
        one BIGINT PRIMARY KEY, application TEXT NOT NULL, version BIGINT NOT NULL
    )";
const MAKE_ROW: &str = "
    INSERT INTO recto_store (one, application, version) VALUES (1, $1, 0) ON CONFLICT (one) DO NOTHING";
const STANDING: &str = "SELECT application, version FROM recto_store WHERE one = 1";
const STANDING_LOCKED: &str = "SELECT application, version FROM recto_store WHERE one = 1 FOR UPDATE";
const PUT_VERSION: &str = "UPDATE recto_store SET version = $1 WHERE one = 1";

/// Something about a server that puts what was acknowledged at risk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// A commit waits for no other server: what was acknowledged is lost if this one is lost.
    Asynchronous {
        /// What `synchronous_commit` says.
        synchronous_commit: String,
        /// What `synchronous_standby_names` says.
        synchronous_standby_names: String,
    },
    /// A commit doesn't wait for the disk.
    NoFsync,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Asynchronous { synchronous_commit, synchronous_standby_names } => write!(
                f,
                "PostgreSQL commits without waiting for a standby (synchronous_commit = {synchronous_commit}, \
                 synchronous_standby_names = {synchronous_standby_names:?}): if the server is lost, so may be the \
                 newest that was acknowledged"
            ),
            Warning::NoFsync => {
                f.write_str("PostgreSQL commits without waiting for the disk (fsync = off): a crash may damage it")
            }
        }
    }
}

/// Makes the tables or brings them up to date, and returns what is to be said about the server.
pub(super) async fn prepare(settings: &Settings) -> Result<Vec<Warning>, Error> {
    let deadline = Instant::now() + settings.wait;
    let late = || Error::from(Kind::Unreachable { what: format!("{settings}: no answer in time") });
    let connected = timeout_at(deadline, connect(settings)).await.map_err(|_| late())?;
    let db = connected.map_err(|why| why.error)?;
    timeout_at(deadline, prepare_with(&db, settings)).await.map_err(|_| late())?
}

async fn prepare_with(db: &Db, settings: &Settings) -> Result<Vec<Warning>, Error> {
    let warnings = server(db).await?;
    let mut tries = 0;
    loop {
        tries += 1;
        match migrate(db, settings).await {
            // Another process makes the same; what it has made is seen the next time.
            Err(error) if (error.is_busy() && !error.is_unreachable() || error.is_exists()) && tries < TRIES_MAX => {}
            done => return done.map(|()| warnings),
        }
    }
}

async fn server(db: &Db) -> Result<Vec<Warning>, Error> {
    let row = db.row(SERVER, values![]).await?;
    let row = row.ok_or_else(|| Kind::Defect { what: "PostgreSQL tells no settings".into() })?;
    let [encoding, synchronous_commit, synchronous_standby_names, fsync] =
        [text(&row, 0)?, text(&row, 1)?, text(&row, 2)?, text(&row, 3)?];
    if encoding != "UTF8" {
        let what = format!("a database in the encoding {encoding}; it must be UTF8");
        return Err(Kind::Foreign { what }.into());
    }
    let mut warnings = Vec::new();
    let is_waiting = !["off", "local"].contains(&synchronous_commit.as_str());
    if !is_waiting || synchronous_standby_names.trim().is_empty() {
        warnings.push(Warning::Asynchronous { synchronous_commit, synchronous_standby_names });
    }
    if fsync == "off" {
        warnings.push(Warning::NoFsync);
    }
    Ok(warnings)
}

async fn migrate(db: &Db, settings: &Settings) -> Result<(), Error> {
    let schema = settings.schema.as_str();
    if db.row(HAS_SCHEMA, values![schema]).await?.is_none() {
        made(db.batch(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await)?;
    }
    // The mark is made before all others, so whoever sees one of those and not the mark sees somebody else's.
    let tables = db.rows(FOUND_TABLES, values![schema, TABLES.to_vec()]).await?;
    let tables = tables.iter().map(|row| text(row, 0)).collect::<Result<Vec<_>, Error>>()?;
    if !tables.iter().any(|table| table == "recto_store") {
        if let Some(table) = tables.first() {
            let what = format!("{settings}: there is a table {table:?}, and none that says it is Recto's");
            return Err(Kind::Foreign { what }.into());
        }
        within(db, schema, async {
            made(db.batch(MAKE).await)?;
            db.run(MAKE_ROW, values![APPLICATION]).await.map(drop)
        })
        .await?;
    }
    for _ in 0..=MIGRATIONS.len() {
        let standing = within(db, schema, standing(db, STANDING, settings)).await?;
        if standing == VERSION {
            return Ok(());
        }
        within(db, schema, step(db, settings)).await?;
    }
    Err(Kind::Busy { what: "the tables are being changed by others".into() }.into())
}

/// Takes one step; another process may have taken it in the meantime, so the version is read with a lock.
async fn step(db: &Db, settings: &Settings) -> Result<(), Error> {
    let version = standing(db, STANDING_LOCKED, settings).await?;
    let Some(sql) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version)) else {
        return Ok(());
    };
    db.batch(sql).await?;
    db.run(PUT_VERSION, values![version + 1]).await.map(drop)
}

async fn standing(db: &Db, sql: &str, settings: &Settings) -> Result<i64, Error> {
    let foreign = || Error::from(Kind::Foreign { what: settings.to_string() });
    let row = db.row(sql, values![]).await?.ok_or_else(foreign)?;
    let (application, version) = (text(&row, 0)?, number(&row, 1)?);
    if application != APPLICATION {
        return Err(foreign());
    }
    if version > VERSION {
        return Err(Kind::Newer { found: version, known: VERSION }.into());
    }
    Ok(version)
}

/// Does something in a transaction, with the names of a schema.
async fn within<T>(db: &Db, schema: &str, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    db.batch(&format!("BEGIN; SET LOCAL search_path = {schema}")).await?;
    let done = work.await;
    db.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    done
}

/// What two make at once is refused to one of them, in several ways; all mean that it is there.
fn made(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(error) if error.is_defect() || error.is_busy() && !error.is_unreachable() => {
            Err(Kind::Exists { what: error.to_string() }.into())
        }
        done => done,
    }
}
