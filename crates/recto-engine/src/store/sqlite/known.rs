//! Conversations as the last write has left them.
//!
//! Who writes to a conversation has mostly written to it before, and nobody else has since. Then what stands in its row
//! need not be read again.

use super::found::Found;
use crate::store::{ConversationId, Tenant};
use std::collections::HashMap;

/// How many conversations are known in each of two generations.
const GENERATION_MAX: usize = 512;

/// What is known of conversations. One is taken out to be written to, and put back when that is done: a write that fails
/// on its way leaves nothing here.
#[derive(Default)]
pub(super) struct Known {
    /// What SQLite says of the commits of others.
    data_version: i64,
    young: Generation,
    old: Generation,
}

type Generation = HashMap<(Tenant, ConversationId), Found>;

impl Known {
    /// Forgets everything, if others have written since.
    pub(super) fn see(&mut self, data_version: i64) {
        if self.data_version != data_version {
            self.data_version = data_version;
            self.forget();
        }
    }

    /// Takes a conversation out.
    pub(super) fn take(&mut self, tenant: &Tenant, id: &ConversationId) -> Option<Found> {
        let key = (tenant.clone(), id.clone());
        self.young.remove(&key).or_else(|| self.old.remove(&key))
    }

    /// Puts a conversation in; those that nobody has asked for longest go.
    pub(super) fn leave(&mut self, tenant: &Tenant, found: Found) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert((tenant.clone(), found.conversation.id.clone()), found);
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}
