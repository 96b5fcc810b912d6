//! A part of a log: what was read of it, and what is known of the rest.
//!
//! A log of a million entries is not read to make one page. A part holds the newest entries of each strand, some single
//! ones below, and sums at some places. When something else is asked of it, it says so: the answer is then worth nothing,
//! and whoever holds the whole log reads what was [missing](Log::missing) and asks again. So plan and compile stay
//! pure, and what they read is what there is to read.

use super::counted::Lens;
use super::{Counted, Log, Node, Strand, StrandTally, Sums, Tally};
use crate::entry::Seq;
use crate::redact::{Screen, Secrets};
use crate::tokens::Count;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// The most gaps that are remembered of one reading.
const MISSING_MAX: usize = 4_096;

/// What was read of a log.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// What the whole log holds.
    pub tally: Tally,
    /// The newest entries of each strand, in the order of the tally.
    pub strands: Vec<Newest>,
    /// Single entries below.
    pub entries: BTreeMap<Seq, Arc<Counted>>,
    /// Places below where there is no entry.
    pub absent: BTreeSet<Seq>,
    /// What the log held at some places below.
    pub tallies: BTreeMap<Seq, Tally>,
    /// Oldest entries of a strand at or after a place.
    pub firsts: BTreeMap<(usize, Seq), Seq>,
}

/// The newest entries of a strand, and what lies below them.
#[derive(Clone, Debug, Default)]
pub struct Newest {
    /// What the strand holds below the oldest of these entries; `None` is nothing.
    pub below: Option<StrandTally>,
    /// The entries, in order, without a gap up to the newest.
    pub entries: Vec<Arc<Counted>>,
}

/// Something that was asked of a part of a log, and was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missing {
    /// More of a strand, below a place.
    Back {
        /// The strand, by its number in the tally.
        strand: usize,
        /// The place.
        below: Seq,
    },
    /// One entry.
    Entry(Seq),
    /// What the log held up to a place.
    Tally(Seq),
    /// The oldest entry of a strand at or after a place.
    First {
        /// The strand, by its number in the tally.
        strand: usize,
        /// The place.
        from: Seq,
    },
}

/// What is known of that which was not read, and what was asked of it in vain.
#[derive(Debug, Default)]
pub(super) struct Unread {
    entries: BTreeMap<Seq, Arc<Counted>>,
    absent: BTreeSet<Seq>,
    tallies: BTreeMap<Seq, Tally>,
    firsts: BTreeMap<(usize, Seq), Seq>,
    missing: Arc<Notes<Missing>>,
}

impl Unread {
    /// The same, with its entries shown through another screen.
    pub(super) fn through(&self, lens: &Lens<'_>) -> Unread {
        let Unread { entries, absent, tallies, firsts, missing } = self;
        let (absent, tallies, firsts) = (absent.clone(), tallies.clone(), firsts.clone());
        let entries = entries.iter().map(|(seq, entry)| (*seq, Arc::new(entry.through(lens)))).collect();
        Unread { entries, absent, tallies, firsts, missing: missing.clone() }
    }
}

/// What was noted on the way, by a reader that only has shared access: a list that grows at its end.
#[derive(Debug)]
pub(crate) struct Notes<T> {
    first: OnceLock<Box<Note<T>>>,
}

#[derive(Debug)]
struct Note<T> {
    what: T,
    next: OnceLock<Box<Note<T>>>,
}

impl<T> Default for Notes<T> {
    fn default() -> Notes<T> {
        Notes { first: OnceLock::new() }
    }
}

impl<T: Copy + PartialEq> Notes<T> {
    /// Notes something, once, unless there are too many notes already.
    pub(crate) fn add(&self, what: T) {
        let mut end = &self.first;
        for _ in 0..MISSING_MAX {
            let note = end.get_or_init(|| Box::new(Note { what, next: OnceLock::new() }));
            if note.what == what {
                return;
            }
            end = &note.next;
        }
    }

    /// Returns what was noted, in order.
    pub(crate) fn list(&self) -> Vec<T> {
        std::iter::successors(self.first.get(), |note| note.next.get()).map(|note| note.what).collect()
    }
}

impl Log {
    /// Returns a part of a log, counted by this tokenizer. Its entries were all made for this screen.
    pub fn partial(counter: Arc<dyn Count>, screen: Arc<Screen>, known: Known) -> Log {
        let Known { tally, mut strands, entries, absent, tallies, firsts } = known;
        strands.resize_with(tally.strands().len(), Newest::default);
        let head = tally.head();
        let strand = |(tally, newest): (&StrandTally, Newest)| {
            let nothing = newest.entries.is_empty() && newest.below.is_none();
            let below = if nothing { Some(tally.clone()) } else { newest.below };
            let mut strand = Strand::empty(tally.section.clone(), tally.lane, tally.role, tally.first);
            strand.below = below;
            for counted in newest.entries {
                strand.tip = Some(Arc::new(Node::on(strand.tip.take(), counted, strand.below.as_ref())));
            }
            strand
        };
        let strands = tally.strands().iter().zip(strands).map(strand).collect();
        let unread = Unread { entries, absent, tallies, firsts, missing: Arc::default() };
        let secrets = Arc::new(Secrets::default());
        Log { counter, screen, secrets, has_found: true, strands, head, unread: Some(Arc::new(unread)) }
    }

    /// Returns what was asked of it and was not read. If there is anything, nothing that was made from this log counts:
    /// read it, and ask again.
    pub fn missing(&self) -> Vec<Missing> {
        self.unread.as_ref().map_or(Vec::new(), |unread| unread.missing.list())
    }

    pub(super) fn miss(&self, what: Missing) {
        if let Some(unread) = &self.unread {
            unread.missing.add(what);
        }
    }

    /// What a strand holds up to a place that lies below all that was read of it.
    pub(super) fn unread_sums(&self, strand: usize, seq: Seq) -> Sums {
        self.unread_tally(strand, seq).map_or(Sums::default(), |tally| tally.sums)
    }

    /// The tally of a strand at a place that lies below all that was read of it; `None` also if it begins later.
    pub(super) fn unread_tally(&self, strand: usize, seq: Seq) -> Option<StrandTally> {
        let it = &self.strands[strand];
        let below = it.below.as_ref()?;
        if seq >= below.last {
            return Some(below.clone());
        }
        if seq < it.first {
            return None;
        }
        match self.unread.as_ref().and_then(|unread| unread.tallies.get(&seq)) {
            Some(tally) => tally.strands().get(strand).cloned(),
            None => {
                self.miss(Missing::Tally(seq));
                None
            }
        }
    }

    /// An entry below all that was read of its strand.
    pub(super) fn unread_entry(&self, seq: Seq) -> Option<&Counted> {
        // What is known may reach beyond a log as it was before.
        let unread = self.unread.as_ref().filter(|_| Some(seq) <= self.head)?;
        let found = unread.entries.get(&seq).map(|entry| &**entry);
        let is_below =
            |strand: &Strand| strand.below.as_ref().is_some_and(|below| strand.first <= seq && seq <= below.last);
        if found.is_none() && !unread.absent.contains(&seq) && self.strands.iter().any(is_below) {
            self.miss(Missing::Entry(seq));
        }
        found
    }

    /// The oldest entry of a strand at or after a place, where that lies below all that was read of it.
    pub(super) fn unread_first(&self, strand: usize, from: Seq) -> Option<&Counted> {
        let unread = self.unread.as_ref()?;
        let first = self.strands[strand].first;
        let seq = if from <= first { Some(first) } else { unread.firsts.get(&(strand, from)).copied() };
        if seq.is_none() {
            self.miss(Missing::First { strand, from });
        }
        self.unread_entry(seq?)
    }
}
