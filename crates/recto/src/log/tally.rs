//! What a log holds up to some place, strand by strand: enough to know sums below without reading there.

use super::Sums;
use crate::entry::{Entry, Lane, Role, Section, Seq};
use crate::tokens::Tokens;

/// What a log holds up to some place, strand by strand, in the order in which the strands begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    strands: Vec<StrandTally>,
}

/// What one strand holds up to some place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrandTally {
    /// The strand's section.
    pub section: Section,
    /// The strand's lane.
    pub lane: Lane,
    /// The strand's role.
    pub role: Role,
    /// Its first entry.
    pub first: Seq,
    /// Its newest entry.
    pub last: Seq,
    /// How much it holds.
    pub sums: Sums,
    /// Its newest edge.
    pub edge: Option<Seq>,
}

impl Tally {
    /// Returns a tally of strands as a store kept them, in the order in which they begin.
    pub fn of(strands: Vec<StrandTally>) -> Tally {
        Tally { strands }
    }

    /// Returns its strands, in the order in which they begin.
    pub fn strands(&self) -> &[StrandTally] {
        &self.strands
    }

    /// Returns the place of the newest entry.
    pub fn head(&self) -> Option<Seq> {
        self.strands.iter().map(|strand| strand.last).max()
    }

    /// Returns how much there is in all.
    pub fn sums(&self) -> Sums {
        self.strands.iter().fold(Sums::default(), |sums, strand| sums + strand.sums)
    }

    /// Adds an entry behind all others, and returns the number of its strand.
    pub fn add(&mut self, seq: Seq, entry: &Entry, cost: Tokens) -> usize {
        let (section, lane, role) = (&entry.section, entry.lane, entry.role);
        let known = self.strands.iter().position(|it| it.role == role && it.lane == lane && it.section == *section);
        let at = known.unwrap_or_else(|| {
            let (section, sums) = (section.clone(), Sums::default());
            self.strands.push(StrandTally { section, lane, role, first: seq, last: seq, sums, edge: None });
            self.strands.len() - 1
        });
        let strand = &mut self.strands[at];
        strand.last = seq;
        strand.sums += Sums { entries: 1, tokens: cost };
        strand.edge = if entry.edge { Some(seq) } else { strand.edge };
        at
    }
}
