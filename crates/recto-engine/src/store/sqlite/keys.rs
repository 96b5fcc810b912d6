//! Keys, whoever they belong to.

use super::db::Db;
use super::found::{blob, digest};
use crate::error::{Error, Kind};
use crate::store::AccessKey;
use crate::store::bounds::{self, KEYS_MAX};
use recto::digest::Digest;
use recto::entry::Millis;
use rusqlite::{OptionalExtension, Row, params};

const COUNT: &str = "SELECT count(*) FROM access_key";
const KNOWN: &str = "SELECT 1 FROM access_key WHERE name = ?1 OR hash = ?2";
const ADD: &str = "INSERT INTO access_key (hash, name, tenant, policy, at, revoked) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const ALL: &str = "SELECT hash, name, tenant, policy, at, revoked FROM access_key ORDER BY name LIMIT ?1";
const ONE: &str = "SELECT hash, name, tenant, policy, at, revoked FROM access_key WHERE hash = ?1";
const SECRET: &str = "SELECT value FROM secret WHERE id = 1";
const REVOKE: &str = "UPDATE access_key SET revoked = ?2 WHERE name = ?1 AND revoked IS NULL";

pub(super) fn add(db: &Db<'_>, key: &AccessKey) -> Result<(), Error> {
    let there: i64 = db.prepare_cached(COUNT)?.query_row([], |row| row.get(0))?;
    bounds::check_key(key, usize::try_from(there).unwrap_or(usize::MAX))?;
    if db.prepare_cached(KNOWN)?.exists(params![&*key.name, blob(key.hash)])? {
        return Err(Kind::Exists { what: format!("key {:?}", key.name) }.into());
    }
    let revoked = key.revoked.map(|at| at.0);
    let columns = params![blob(key.hash), &*key.name, key.tenant.as_str(), key.policy.as_deref(), key.at.0, revoked];
    db.prepare_cached(ADD)?.execute(columns)?;
    Ok(())
}

pub(super) fn all(db: &Db<'_>) -> Result<Vec<AccessKey>, Error> {
    let mut statement = db.prepare_cached(ALL)?;
    let limit = i64::try_from(KEYS_MAX).unwrap_or(i64::MAX);
    let found: Vec<Raw> = statement.query_map([limit], raw)?.collect::<rusqlite::Result<_>>()?;
    found.into_iter().map(Raw::key).collect()
}

pub(super) fn find(db: &Db<'_>, hash: Digest) -> Result<Option<AccessKey>, Error> {
    db.prepare_cached(ONE)?.query_row([blob(hash)], raw).optional()?.map(Raw::key).transpose()
}

pub(super) fn revoke(db: &Db<'_>, name: &str, at: Millis) -> Result<bool, Error> {
    Ok(db.prepare_cached(REVOKE)?.execute(params![name, at.0])? > 0)
}

/// Returns what was drawn when the store was made.
pub(super) fn secret(db: &Db<'_>) -> Result<Digest, Error> {
    let value: Vec<u8> = db.prepare_cached(SECRET)?.query_row([], |row| row.get(0))?;
    digest(&value)
}

/// A row as SQLite hands it out.
struct Raw {
    hash: Vec<u8>,
    name: String,
    tenant: String,
    policy: Option<String>,
    at: i64,
    revoked: Option<i64>,
}

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        hash: row.get(0)?,
        name: row.get(1)?,
        tenant: row.get(2)?,
        policy: row.get(3)?,
        at: row.get(4)?,
        revoked: row.get(5)?,
    })
}

impl Raw {
    fn key(self) -> Result<AccessKey, Error> {
        Ok(AccessKey {
            hash: digest(&self.hash)?,
            name: self.name.into(),
            tenant: self.tenant.into(),
            policy: self.policy.map(Into::into),
            at: Millis(self.at),
            revoked: self.revoked.map(Millis),
        })
    }
}
