//! Age: which conversations nobody has written to for long, and their erasing.
//!
//! A conversation is old when nothing was written to it since a moment, nor to any that goes on from it: those share its
//! entries. What becomes of an old one is an erase like any other.

use super::{At, Engine, Gone};
use crate::error::{Error, Kind};
use crate::store::{Conversation, ConversationId, Forks, Store, Tenant};
use recto::entry::Millis;
use serde::Serialize;
use std::collections::BTreeSet;

/// How many conversations are looked at in one step.
pub const LOOKED_MAX: usize = 500;
/// The most conversations that go on from one, all generations together.
const FAMILY_MAX: usize = 10_000;

/// What one step has found.
#[derive(Clone, Debug)]
pub struct Looked {
    /// Conversations that nobody has written to since a moment.
    pub old: Vec<Conversation>,
    /// How many were looked at.
    pub looked: usize,
    /// Where the next step begins, if there is one.
    pub next: Option<ConversationId>,
}

/// What is to become of a conversation, or became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aged {
    /// It is old, with all that go on from it: these, the deepest first, and itself last.
    Old(Vec<ConversationId>),
    /// Something was written to this one, which it is or which goes on from it.
    HeldBy(ConversationId),
}

impl<S: Store> Engine<S> {
    /// Returns whose conversations there may be: those of every key, also of those that were revoked, and those of whoever
    /// needs none.
    pub async fn tenants(&self) -> Result<BTreeSet<Tenant>, Error> {
        let keys = self.keys().await?;
        Ok(keys.into_iter().map(|key| key.tenant).chain([Tenant::default()]).collect())
    }

    /// Looks at some conversations of a tenant, in the order of their names, for those that nobody has written to since a
    /// moment.
    pub async fn look_for_old(
        &self,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        since: Millis,
    ) -> Result<Looked, Error> {
        let rows = self.list(tenant, after, LOOKED_MAX).await?;
        let looked = rows.len();
        let next = rows.last().filter(|_| looked == LOOKED_MAX).map(|row| row.id.clone());
        Ok(Looked { old: rows.into_iter().filter(|row| row.updated < since).collect(), looked, next })
    }

    /// Says whether a conversation is old, with all that go on from it.
    pub async fn aged(&self, at: &At, since: Millis) -> Result<Aged, Error> {
        let mut family = vec![at.conversation.clone()];
        for next in 0..=FAMILY_MAX {
            let Some(id) = family.get(next).cloned() else {
                // Those behind go on from those before them.
                family.reverse();
                return Ok(Aged::Old(family));
            };
            match self.conversation(&At { tenant: at.tenant.clone(), conversation: id.clone() }).await {
                Ok(row) if row.updated >= since => return Ok(Aged::HeldBy(id)),
                Ok(_) => {}
                // One that goes on from it, and was erased meanwhile.
                Err(error) if error.is_erased() && next > 0 => continue,
                Err(error) => return Err(error),
            }
            family.extend(self.store().forks(&at.tenant, &id).await?);
        }
        Err(Kind::TooLarge { what: format!("more than {FAMILY_MAX} conversations go on from one") }.into())
    }

    /// Erases a conversation with all that go on from it, if it is old. Each is looked at once more before it goes.
    pub async fn erase_old(&self, at: &At, since: Millis) -> Result<(Aged, Gone), Error> {
        let mut gone = Gone { conversations: Vec::new(), entries: 0 };
        let aged = self.aged(at, since).await?;
        let Aged::Old(family) = &aged else { return Ok((aged, gone)) };
        for id in family {
            let one = At { tenant: at.tenant.clone(), conversation: id.clone() };
            match self.aged(&one, since).await {
                Ok(Aged::Old(_)) => {}
                Ok(held) => return Ok((held, gone)),
                Err(error) if error.is_erased() => continue,
                Err(error) => return Err(error),
            }
            // One that somebody forks at this moment is refused, and stays.
            match self.erase(&one, Forks::Refuse).await {
                Ok(erased) => {
                    gone.conversations.extend(erased.conversations);
                    gone.entries += erased.entries;
                }
                Err(error) if error.is_erased() => {}
                Err(error) => match error.forks().first() {
                    Some(fork) => return Ok((Aged::HeldBy(fork.clone()), gone)),
                    None => return Err(error),
                },
            }
        }
        Ok((aged, gone))
    }
}
