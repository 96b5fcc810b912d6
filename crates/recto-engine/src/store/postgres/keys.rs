//! Keys, whoever they belong to.

use super::pool::{Db, Statement};
use super::transaction::Plan;
use super::value::{digest, maybe_text, number, shared, values};
use crate::error::{Error, Kind};
use crate::store::AccessKey;
use crate::store::bounds::{self, KEYS_MAX};
use recto::digest::Digest;
use recto::entry::Millis;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::Row;

const COUNT: &str = "SELECT count(*) FROM access_key";
const KNOWN: &str = "
    SELECT hash, name, tenant, policy, at, revoked FROM access_key WHERE name = $1 OR hash = $2";
const ADD: &str = "INSERT INTO access_key (hash, name, tenant, policy, at, revoked) VALUES ($1, $2, $3, $4, $5, $6)";
const ALL: &str = "SELECT hash, name, tenant, policy, at, revoked FROM access_key ORDER BY name LIMIT $1";
const ONE: &str = "SELECT hash, name, tenant, policy, at, revoked FROM access_key WHERE hash = $1";
const SECRET: &str = "SELECT value FROM secret WHERE one = 1";
const PUT_SECRET: &str = "INSERT INTO secret (one, value) VALUES (1, $1) ON CONFLICT (one) DO NOTHING";
const REVOKED: &str = "SELECT revoked FROM access_key WHERE name = $1 FOR UPDATE";
const REVOKE: &str = "UPDATE access_key SET revoked = $2 WHERE name = $1 AND revoked IS NULL";

/// Adds a key. Once it was sent, the same key may be there because the answer was lost.
pub(super) async fn add<'v>(db: Db, key: &'v AccessKey, is_sent: &AtomicBool) -> Result<Plan<'v, ()>, Error> {
    let asked = vec![Statement::new(COUNT, values![]), Statement::new(KNOWN, values![&*key.name, key.hash])];
    let answers = db.all(asked).await?;
    let count = answers.first().and_then(|rows| rows.first()).map(|row| number(row, 0)).transpose()?;
    if let Some(row) = answers.last().and_then(|rows| rows.first()) {
        return match is_sent.load(Ordering::Relaxed) && access_key(row)? == *key {
            true => Ok(Plan::nothing(())),
            false => Err(Kind::Exists { what: format!("key {:?}", key.name) }.into()),
        };
    }
    bounds::check_key(key, usize::try_from(count.unwrap_or(0)).unwrap_or(usize::MAX))?;
    let revoked = key.revoked.map(|at| at.0);
    let row = values![key.hash, &*key.name, key.tenant.as_str(), key.policy.as_deref(), key.at.0, revoked];
    is_sent.store(true, Ordering::Relaxed);
    Ok(Plan::repeats((), vec![Statement::new(ADD, row)]))
}

pub(super) async fn all(db: Db) -> Result<Vec<AccessKey>, Error> {
    db.rows(ALL, values![KEYS_MAX]).await?.iter().map(access_key).collect()
}

pub(super) async fn find(db: Db, hash: Digest) -> Result<Option<AccessKey>, Error> {
    db.row(ONE, values![hash]).await?.as_ref().map(access_key).transpose()
}

/// Returns what was drawn for this store, if anything was.
pub(super) async fn secret(db: Db) -> Result<Option<Digest>, Error> {
    db.row(SECRET, values![]).await?.map(|row| digest(&row, 0)).transpose()
}

/// Puts it down, unless somebody else was quicker.
pub(super) async fn put_secret<'v>(drawn: Digest) -> Result<Plan<'v, ()>, Error> {
    Ok(Plan::repeats((), vec![Statement::new(PUT_SECRET, values![drawn])]))
}

/// Revokes a key. Once it was sent, it may be revoked because the answer was lost.
pub(super) async fn revoke<'v>(
    db: Db,
    name: &'v str,
    at: Millis,
    is_sent: &AtomicBool,
) -> Result<Plan<'v, bool>, Error> {
    let Some(row) = db.row(REVOKED, values![name]).await? else { return Ok(Plan::nothing(false)) };
    match row.try_get::<_, Option<i64>>(0)? {
        Some(revoked) => Ok(Plan::nothing(is_sent.load(Ordering::Relaxed) && revoked == at.0)),
        None => {
            is_sent.store(true, Ordering::Relaxed);
            Ok(Plan::repeats(true, vec![Statement::new(REVOKE, values![name, at.0])]))
        }
    }
}

fn access_key(row: &Row) -> Result<AccessKey, Error> {
    Ok(AccessKey {
        hash: digest(row, 0)?,
        name: shared(row, 1)?,
        tenant: shared(row, 2)?.into(),
        policy: maybe_text(row, 3)?.map(Into::into),
        at: Millis(number(row, 4)?),
        revoked: row.try_get::<_, Option<i64>>(5)?.map(Millis),
    })
}
