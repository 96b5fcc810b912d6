//! Keys, whoever they belong to.

use crate::error::{Error, Kind};
use crate::store::AccessKey;
use crate::store::bounds::{self, KEYS_MAX};
use recto::digest::Digest;
use recto::entry::{Millis, Text};
use std::collections::BTreeMap;

/// All keys, by name.
#[derive(Debug, Default)]
pub(super) struct Keys {
    by_name: BTreeMap<Text, AccessKey>,
    secret: Option<Digest>,
}

impl Keys {
    pub(super) fn add(&mut self, key: AccessKey) -> Result<(), Error> {
        bounds::check_key(&key, self.by_name.len())?;
        if self.by_name.contains_key(&key.name) || self.find(key.hash).is_some() {
            return Err(Kind::Exists { what: format!("key {:?}", key.name) }.into());
        }
        self.by_name.insert(key.name.clone(), key);
        Ok(())
    }

    /// Returns what is drawn once for all.
    pub(super) fn secret(&mut self) -> Result<Digest, Error> {
        if let Some(secret) = self.secret {
            return Ok(secret);
        }
        let mut bytes = [0; 16];
        let refused = |error: getrandom::Error| Kind::Io { what: "a random key".into(), why: error.to_string() };
        getrandom::fill(&mut bytes).map_err(refused)?;
        Ok(*self.secret.insert(Digest::from_bytes(bytes)))
    }

    pub(super) fn all(&self) -> Vec<AccessKey> {
        self.by_name.values().take(KEYS_MAX).cloned().collect()
    }

    pub(super) fn find(&self, hash: Digest) -> Option<AccessKey> {
        self.by_name.values().find(|key| key.hash == hash).cloned()
    }

    pub(super) fn revoke(&mut self, name: &str, at: Millis) -> bool {
        match self.by_name.get_mut(name).filter(|key| key.revoked.is_none()) {
            Some(key) => {
                key.revoked = Some(at);
                true
            }
            None => false,
        }
    }
}
