//! A part of a reader: the calls and decisions that the next page may ask about.
//!
//! Like a part of a log, it says when something else was asked of it; the answer is then worth nothing.

use super::Reader;
use crate::edit::{Decision, Turn};
use crate::entry::{Seq, Text};
use crate::log::Notes;
use crate::tokens::Tokens;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was read of a reader.
#[derive(Clone, Debug)]
pub struct KnownReader {
    /// Its name.
    pub name: Text,
    /// The number of its newest decision or revert.
    pub ordinal: u64,
    /// How many of its calls were not read.
    pub turns: u64,
    /// The log's head at each of the calls after these, and how many tokens less than all that was said the calls up to
    /// and with it have sent.
    pub calls: Vec<(Option<Seq>, Tokens)>,
    /// Nothing was read of calls before which this entry came, and of decisions about entries before it.
    pub below: Seq,
    /// Decisions, in the order of their numbers: all about entries from `below` up and about those that are known, all
    /// pins, all cuts that were made before calls that were read or later, the newest floor, and all expansions since.
    pub decisions: Vec<Decision>,
    /// Entries below about which everything was read, each with the call that first had it in view, and the log's head
    /// then.
    pub known: BTreeMap<Seq, Came>,
}

/// The call that first had an entry in view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Its number.
    pub turn: Turn,
    /// The log's head then; `None` if no call had it in view yet.
    pub head: Option<Seq>,
}

/// Something that was asked of a part of a reader, and was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MissingReader {
    /// What was decided about an entry, and when it came.
    About(Seq),
    /// All its calls and decisions.
    All,
}

/// What is known of that which was not read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    pub(super) turns: u64,
    below: Seq,
    known: BTreeMap<Seq, Came>,
    missing: Notes<MissingReader>,
}

impl Reader {
    /// Returns a part of a reader.
    pub fn partial(known: KnownReader) -> Reader {
        let mut reader = Reader::new(known.name);
        (reader.heads, reader.spared) = known.calls.into_iter().unzip();
        known.decisions.into_iter().for_each(|decision| reader.record(decision));
        reader.ordinal = known.ordinal;
        let unread = Unread { turns: known.turns, below: known.below, known: known.known, missing: Notes::default() };
        reader.unread = Some(Arc::new(unread));
        reader
    }

    /// Returns what was asked of it and was not read. If there is anything, nothing that was made with this reader counts:
    /// read it, and ask again.
    pub fn missing(&self) -> Vec<MissingReader> {
        self.unread.as_ref().map_or(Vec::new(), |unread| unread.missing.list())
    }

    /// How many of its calls were not read.
    pub(crate) fn unread_turns(&self) -> u64 {
        self.unread.as_ref().map_or(0, |unread| unread.turns)
    }

    /// Notes that all calls and decisions must be known, if they are not.
    pub(crate) fn needs_all(&self) {
        if let Some(unread) = self.unread.as_ref().filter(|unread| unread.turns > 0 || unread.below > Seq(0)) {
            unread.missing.add(MissingReader::All);
        }
    }

    /// Notes that decisions about entries from a place up must be known, if they are not.
    pub(crate) fn needs_from(&self, from: Seq) {
        if self.unread.as_ref().is_some_and(|unread| from < unread.below) {
            self.needs_all();
        }
    }

    /// The call that first had an entry in view, if the entry lies below what was read.
    pub(super) fn came_unread(&self, seq: Seq) -> Option<Came> {
        let unread = self.unread.as_ref().filter(|unread| seq < unread.below)?;
        let known = unread.known.get(&seq).copied();
        if known.is_none() {
            unread.missing.add(MissingReader::About(seq));
        }
        Some(known.unwrap_or_default())
    }
}
