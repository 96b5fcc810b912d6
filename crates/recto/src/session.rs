//! What a provider that remembers holds of a conversation.

use crate::digest::Digest;
use crate::entry::{Seq, Text};
use crate::fragment::Lifecycle;
use crate::receipt::{FragmentFate, FragmentRow, Receipt};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a stateful provider already has: everything up to `acked`, and what it produced since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    acked: Option<Seq>,
    known: BTreeSet<Seq>,
    /// What identifies the static fragments that it holds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fixed: BTreeMap<Text, Digest>,
}

impl Session {
    /// Returns the last entry up to which the provider has everything.
    pub fn acked(&self) -> Option<Seq> {
        self.acked
    }

    /// Returns whether the provider has an entry.
    pub fn holds(&self, seq: Seq) -> bool {
        Some(seq) <= self.acked || self.known.contains(&seq)
    }

    /// Returns whether the provider holds a static fragment as it is now; of a session that was never told what its
    /// calls sent, all is taken to be held.
    pub(crate) fn holds_fixed(&self, id: &str, fingerprint: Digest) -> bool {
        self.fixed.is_empty() || self.fixed.get(id) == Some(&fingerprint)
    }

    /// Records which static fragments a call that went well has sent.
    pub fn sent(&mut self, receipt: &Receipt) {
        let is_there = |row: &&FragmentRow| {
            let was_sent = matches!(row.fate, FragmentFate::Shown | FragmentFate::StaticChanged | FragmentFate::Held);
            row.lifecycle == Lifecycle::Static && was_sent
        };
        self.fixed.extend(receipt.fragments.iter().filter(is_there).map(|row| (row.id.clone(), row.fingerprint)));
    }

    /// Records a call that went well: `head` was the newest entry when its page was made, `produced` are the
    /// entries the provider itself made. It never advances past somebody else's entry.
    pub fn acknowledge(&mut self, head: Option<Seq>, produced: impl IntoIterator<Item = Seq>) {
        self.acked = self.acked.max(head);
        self.known.extend(produced);
        while let Some(next) = self.known.pop_first() {
            let expected = self.acked.map_or(Seq(0), Seq::next);
            if next == expected {
                self.acked = Some(next);
            } else if next > expected {
                self.known.insert(next);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_advances_past_a_foreign_entry() {
        let mut session = Session::default();
        session.acknowledge(Some(Seq(4)), [Seq(6)]);
        assert_eq!(session.acked(), Some(Seq(4)));
        assert!(session.holds(Seq(6)) && !session.holds(Seq(5)));
        session.acknowledge(Some(Seq(6)), [Seq(7)]);
        assert_eq!(session.acked(), Some(Seq(7)));
    }
}
