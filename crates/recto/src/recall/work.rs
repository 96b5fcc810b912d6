//! Which results and steps bear on what an agent is about.
//!
//! The words of the whole last exchange, by BM25; of two that are as good, the newer one is taken. What stands around a
//! passage says little here.

use super::Commonness;
use super::shelf::Pile;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// How much the newest passage is better than the oldest, against the best match.
const NEWER: f64 = 0.3;
/// The rarest so many terms of an exchange are looked for.
const TERMS_MAX: usize = 256;

/// Returns how well each passage answers, from 0 to a little over 1; 0 is not at all. Nothing, if none does.
pub(super) fn worth(pile: &Pile<'_>, terms: &[String], common: &Commonness) -> Option<Vec<f64>> {
    let passages = &*pile.passages;
    let average = pile.terms as f64 / (passages.len() as f64).max(1.0);
    let mut scores = vec![0.0; passages.len()];
    for (term, weight) in common.rarest(terms, TERMS_MAX) {
        for &(at, times) in pile.holding.get(term).into_iter().flatten() {
            let length = f64::from(passages[at].terms) / average.max(1.0);
            let times = f64::from(times);
            scores[at] += weight * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length));
        }
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    let newest = passages.len().max(2) as f64 - 1.0;
    let worth = |(at, score): (usize, f64)| if score > 0.0 { score / best + NEWER * at as f64 / newest } else { 0.0 };
    (best > 0.0).then(|| scores.into_iter().enumerate().map(worth).collect())
}
