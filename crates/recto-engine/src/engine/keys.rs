//! Keys that let somebody in: made at random, shown once, and kept as what identifies them.

use super::{Engine, now};
use crate::error::{Error, Kind};
use crate::store::{AccessKey, Store, Tenant};
use recto::digest::Digest;
use recto::entry::Text;
use std::fmt::Write;

/// How every key begins, so that it is told from those of providers.
pub const KEY_PREFIX: &str = "recto_";
/// How much chance is in a key.
const RANDOM_BYTES: usize = 32;

impl<S: Store> Engine<S> {
    /// Makes a key, and returns it with its row. It can't be had again: the store holds only what identifies it.
    pub async fn add_key(
        &self,
        name: &str,
        tenant: &Tenant,
        policy: Option<&str>,
    ) -> Result<(AccessKey, String), Error> {
        let secret = secret()?;
        let (hash, policy) = (Digest::of(secret.as_bytes()), policy.map(Text::from));
        let key = AccessKey { hash, name: name.into(), tenant: tenant.clone(), policy, at: now(), revoked: None };
        self.store().add_key(key.clone()).await?;
        Ok((key, secret))
    }

    /// Lists all keys of all tenants, also those that were revoked, in the order of their names.
    pub async fn keys(&self) -> Result<Vec<AccessKey>, Error> {
        self.store().keys().await
    }

    /// Returns whether there is a key that was not revoked.
    pub async fn has_keys(&self) -> Result<bool, Error> {
        Ok(self.keys().await?.iter().any(|key| key.revoked.is_none()))
    }

    /// Revokes a key by its name, for good. One that opens nothing is not found.
    pub async fn revoke_key(&self, name: &str) -> Result<(), Error> {
        match self.store().revoke_key(name, now()).await? {
            true => Ok(()),
            false => Err(Kind::NotFound { what: format!("key {name:?} that is in force") }.into()),
        }
    }

    /// Returns the row of a key, unless it is unknown or was revoked.
    pub async fn authenticate(&self, secret: &str) -> Result<Option<AccessKey>, Error> {
        let found = self.store().key(Digest::of(secret.as_bytes())).await?;
        Ok(found.filter(|key| key.revoked.is_none()))
    }
}

fn secret() -> Result<String, Error> {
    let mut bytes = [0; RANDOM_BYTES];
    let refused = |error: getrandom::Error| Kind::Io { what: "a random key".into(), why: error.to_string() };
    getrandom::fill(&mut bytes).map_err(refused)?;
    let mut secret = String::with_capacity(KEY_PREFIX.len() + 2 * RANDOM_BYTES);
    secret.push_str(KEY_PREFIX);
    for byte in bytes {
        let _ = write!(secret, "{byte:02x}");
    }
    Ok(secret)
}
