//! Places of logs that were written a moment ago: where the next request of a client most likely goes on. Each is taken
//! once, and whoever writes there says what must be the newest entry; so one that is out of date does no harm.

use recto::Seq;
use recto::digest::Digest;
use recto_engine::store::Link;
use recto_engine::{ConversationId, Tenant};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most places that are kept.
const PLACES_MAX: usize = 8_192;

/// Places by what identifies everything up to them.
#[derive(Default)]
pub(super) struct Places {
    kept: Mutex<HashMap<(Tenant, Digest), (ConversationId, Seq)>>,
}

impl Places {
    /// Keeps a place.
    pub(super) fn put(&self, tenant: &Tenant, prefixes: &[Digest], id: &ConversationId, seq: Option<Seq>) {
        let Some(seq) = seq else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The store has all of them.
        if kept.len() + prefixes.len() > PLACES_MAX {
            kept.clear();
        }
        kept.extend(prefixes.iter().map(|prefix| ((tenant.clone(), *prefix), (id.clone(), seq))));
    }

    /// Takes a place, as it was when it was written.
    pub(super) fn take(&self, tenant: &Tenant, prefix: Digest) -> Option<Link> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (conversation, seq) = kept.remove(&(tenant.clone(), prefix))?;
        Some(Link { prefix, conversation, seq, head: Some(seq) })
    }
}
