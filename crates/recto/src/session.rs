//! What a provider that remembers holds of a conversation.

use crate::entry::Seq;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a stateful provider already has: everything up to `acked`, and what it produced since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    acked: Option<Seq>,
    known: BTreeSet<Seq>,
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
