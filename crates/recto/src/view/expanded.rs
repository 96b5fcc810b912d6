//! The expansions among some edits, and what they undo of the edits before them.

use crate::edit::{Change, Edit, Handle, PartAt};
use crate::entry::Seq;
use crate::item::Item;
use std::collections::HashMap;

/// The expansions among some edits: for each entry, their places among the edits and what they ask for.
pub(super) struct Expanded(HashMap<Seq, Vec<(usize, Handle)>>);

/// The expansions behind one of the edits.
pub(super) struct Later<'x> {
    of: &'x Expanded,
    nth: usize,
}

impl Expanded {
    pub(super) fn among<'e>(edits: impl Iterator<Item = &'e Edit>) -> Expanded {
        let mut expanded: HashMap<Seq, Vec<(usize, Handle)>> = HashMap::new();
        for (nth, edit) in edits.enumerate() {
            if let Change::Expand { at, .. } = edit.change {
                expanded.entry(at.seq).or_default().push((nth, at));
            }
        }
        Expanded(expanded)
    }

    pub(super) fn after(&self, nth: usize) -> Later<'_> {
        Later { of: self, nth }
    }
}

impl Later<'_> {
    fn of_entry(&self, seq: Seq) -> impl Iterator<Item = Handle> {
        let all = self.of.0.get(&seq).into_iter().flatten();
        all.filter(|(nth, _)| *nth > self.nth).map(|(_, at)| *at)
    }

    /// Whether one asks for a part.
    pub(super) fn any_of(&self, part: PartAt) -> bool {
        self.of_entry(part.seq).any(|at| at.covers(part))
    }

    /// Whether one asks for anything of an item: nothing of it can be shown without the item.
    pub(super) fn any_in(&self, item: &Item<'_>) -> bool {
        !self.of.0.is_empty() && item.seqs().any(|seq| self.of_entry(seq).next().is_some())
    }
}
