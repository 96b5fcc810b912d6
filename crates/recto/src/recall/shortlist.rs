//! Which entries of a long log are worth reading for a query, by where its terms stand.

use super::talk::NEAR;
use super::{Commonness, Query};
use crate::entry::Seq;
use std::collections::{HashMap, HashSet};

/// The most terms of a query that an index is asked for.
const TERMS_MAX: usize = 64;

/// Where a term stands in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The term.
    pub term: String,
    /// Where, the newest first.
    pub seqs: Vec<Seq>,
    /// Whether it stands at more places than these.
    pub is_cut: bool,
}

impl Query {
    /// Returns the terms to ask an index for, the user's own first.
    pub fn asked(&self) -> Vec<String> {
        let (mut terms, exchange) = self.terms();
        let known: HashSet<String> = terms.iter().cloned().collect();
        terms.extend(exchange.into_iter().filter(|term| !known.contains(term)));
        terms.truncate(TERMS_MAX);
        terms
    }
}

/// Returns how common terms are in a log of so many entries. Of one whose places were not all read, the newest tell how
/// dense it is.
pub fn commonness(standing: &[Standing], texts: u64, head: Option<Seq>) -> Commonness {
    let having = standing.iter().map(|it| {
        let known = it.seqs.len() as u64;
        let reach = head.zip(it.seqs.last()).map_or(1, |(head, oldest)| head.0.saturating_sub(oldest.0) + 1);
        let all = if it.is_cut { known.saturating_mul(texts.max(reach)) / reach.max(1) } else { known };
        (it.term.clone(), all.clamp(known, texts.max(known)))
    });
    Commonness { texts, having: having.collect() }
}

/// Returns the entries that are worth reading, in order: those that the terms cover best, with what stands around them.
pub fn shortlist(standing: &[Standing], common: &Commonness, most: usize) -> Vec<Seq> {
    let mut covered: HashMap<u64, f64> = HashMap::new();
    let mut away: HashMap<u64, usize> = HashMap::new();
    for it in standing {
        let Some(weight) = common.weight(&it.term) else { continue };
        away.clear();
        for seq in it.seqs.iter().map(|seq| seq.0) {
            for at in seq.saturating_sub(NEAR.len() as u64 - 1)..seq + NEAR.len() as u64 {
                let distance = at.abs_diff(seq) as usize;
                away.entry(at).and_modify(|least| *least = distance.min(*least)).or_insert(distance);
            }
        }
        away.iter().for_each(|(at, distance)| *covered.entry(*at).or_default() += weight * NEAR[*distance]);
    }
    let mut best: Vec<(u64, f64)> = covered.into_iter().collect();
    best.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    best.truncate(most);
    let mut seqs: Vec<Seq> = best.into_iter().map(|(seq, _)| Seq(seq)).collect();
    seqs.sort_unstable();
    seqs
}
