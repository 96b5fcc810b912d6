//! What a content is worth: how likely the next mention of it is the agent's own.
//!
//! One row of numbers for all kinds, and one for whole lines, found by trying them on recorded sessions of coding
//! agents and rounded until rounding further hurt. What the agent has used before it uses again; what it read from a
//! file it uses more often than what it searched for; of its own words it copies whole lines; the longer ago, the less.
//! Everything here is done with additions and multiplications alone, so that it comes out the same on every machine.

use super::content::{self, KINDS};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How much more a kind counts than a name, so that every kind counts the same in total though some are rare.
const WEIGHT: [f64; KINDS] = [1.0, 8.0, 1.7, 0.42, 20.0];
/// The logarithm of the odds that a content is used at all, by kind.
const START: [f64; KINDS] = [-2.6, -3.6, -2.4, -3.8, -4.4];

/// What is added to the odds' logarithm: where a content stands, how large that is, and how it was used.
struct Row {
    searched: f64,
    read: f64,
    own: f64,
    thought: f64,
    size: f64,
    lines: f64,
    used: f64,
    uses: f64,
    since: f64,
}

const OF_CONTENT: Row = Row {
    searched: -0.5,
    read: 0.9,
    own: 1.2,
    thought: 0.0,
    size: -0.2,
    lines: 0.7,
    used: 0.8,
    uses: 0.6,
    since: -0.2,
};
/// Whole lines are copied from the agent's own calls above all, and hardly ever from what it thought.
const OF_LINE: Row = Row { searched: -1.5, read: -0.3, own: 1.3, thought: -1.5, lines: 1.2, ..OF_CONTENT };
/// The kind of whole lines.
const LINE: usize = KINDS - 1;

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A result of a tool that showed a file.
    Read,
    /// A result of a tool that looked for something.
    Searched,
    /// Another result.
    Told,
    /// The agent's own words or calls.
    Own,
    /// What the agent thought.
    Thought,
}

/// What is known of a content from the whole page.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// How many lines hold it.
    lines: u32,
    /// In how many of its messages the agent used it.
    uses: u32,
    /// The call before which it did so last.
    last: u64,
}

/// What is known of every content on a page.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    known: HashMap<u64, Known, BuildHasherDefault<AsItIs>>,
}

/// Contents are hashes already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        // The lowest bits are the kind; a table goes by them and by the highest.
        self.0 = number.rotate_right(3);
    }
}

/// A set of contents.
pub(super) type Contents = std::collections::HashSet<u64, BuildHasherDefault<AsItIs>>;

impl Knowledge {
    /// Learns a line.
    pub(super) fn line(&mut self, contents: &[u64]) {
        for content in contents {
            self.known.entry(*content).or_default().lines += 1;
        }
    }

    /// Learns what the agent used in one message, each thing once, before a call.
    pub(super) fn used(&mut self, contents: &Contents, turn: u64) {
        for content in contents {
            let known = self.known.entry(*content).or_default();
            known.uses += 1;
            known.last = known.last.max(turn);
        }
    }

    /// Returns what a content is worth that stands in a message of so many tokens, which came before a call.
    pub(super) fn worth(&self, content: u64, source: Source, size: u64, came: u64, now: u64) -> f64 {
        let kind = content::kind(content);
        let row = if kind == LINE { &OF_LINE } else { &OF_CONTENT };
        let known = self.known.get(&content).copied().unwrap_or_default();
        let since = now.saturating_sub(if known.uses > 0 { known.last } else { came });
        let place = match source {
            Source::Read => row.read,
            Source::Searched => row.searched,
            Source::Told => 0.0,
            Source::Own => row.own,
            Source::Thought => row.own + row.thought,
        };
        let used = if known.uses > 0 { row.used } else { 0.0 };
        let odds = START[kind]
            + place
            + used
            + row.size * ln(size.saturating_add(1))
            + row.lines * ln(u64::from(known.lines.max(1)))
            + row.uses * ln(u64::from(known.uses) + 1)
            + row.since * ln(since.saturating_add(1));
        let odds = exp(odds);
        WEIGHT[kind] * odds / (1.0 + odds)
    }
}

/// The natural logarithm of a whole number, straight between powers of two.
fn ln(number: u64) -> f64 {
    let number = number.max(1);
    let power = number.ilog2();
    let beyond = number as f64 / (1_u64 << power) as f64 - 1.0;
    (f64::from(power) + beyond) * std::f64::consts::LN_2
}

/// The exponential of a number, straight between powers of two.
fn exp(number: f64) -> f64 {
    let powers = (number * std::f64::consts::LOG2_E).clamp(-60.0, 60.0);
    let whole = powers.floor();
    let power = whole as i32;
    let scale = if power >= 0 { (1_u64 << power) as f64 } else { 1.0 / (1_u64 << -power) as f64 };
    scale * (1.0 + (powers - whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_are_near_enough() {
        for number in [1_u64, 2, 3, 7, 100, 12_345, 1 << 40] {
            assert!((ln(number) - (number as f64).ln()).abs() < 0.07, "{number}");
        }
        for number in [-30.0, -2.5, 0.0, 0.1, 3.3, 20.0_f64] {
            let (ours, exact) = (exp(number), number.exp());
            assert!((ours / exact - 1.0).abs() < 0.07, "{number}: {ours} {exact}");
        }
        assert!(exp(-1e9) > 0.0 && exp(1e9).is_finite());
    }

    #[test]
    fn what_was_used_is_worth_more_and_what_is_long_ago_less() {
        let mut knowledge = Knowledge::default();
        let (used, unused) = (1 << 3, 2 << 3);
        knowledge.line(&[used, unused]);
        knowledge.used(&Contents::from_iter([used]), 4);
        let worth = |content, now| knowledge.worth(content, Source::Read, 500, 3, now);
        assert!(worth(used, 10) > worth(unused, 10));
        assert!(worth(used, 100) < worth(used, 10));
        assert!(worth(unused, 10) > knowledge.worth(unused, Source::Searched, 500, 3, 10));
        assert!(worth(unused, 10) > knowledge.worth(unused, Source::Read, 50_000, 3, 10));
    }
}
