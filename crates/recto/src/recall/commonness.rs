//! How common terms are, and so how much each of them says.

use super::kin;
use super::numbers::ln;
use super::shelf::Pile;
use std::collections::HashMap;

/// In how many of how many texts terms stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commonness {
    /// How many texts there are.
    pub texts: u64,
    /// How many hold a term.
    pub having: HashMap<String, u64>,
}

impl Commonness {
    /// Counts terms in a pile, and those akin to them.
    pub(super) fn within(pile: &Pile<'_>, terms: &[String]) -> Commonness {
        let all = terms.iter().flat_map(|term| std::iter::once(term).chain(kin::of(term)));
        let having = all.filter_map(|term| Some((term.clone(), pile.holding.get(term)?.len() as u64)));
        Commonness { texts: pile.passages.len() as u64, having: having.collect() }
    }

    /// Returns how much a term says; where no text holds it, how much those say that are akin to it, if any is there.
    pub(super) fn weight(&self, term: &str) -> Option<f64> {
        let count = |term: &str| self.having.get(term).copied().unwrap_or(0);
        let akin = || kin::of(term).iter().map(|term| count(term)).sum::<u64>().min(self.texts);
        let having = Some(count(term)).filter(|own| *own > 0).unwrap_or_else(akin) as f64;
        let texts = (self.texts as f64).max(having);
        (having > 0.0).then(|| ln(1.0 + (texts - having + 0.5) / (having + 0.5)))
    }

    /// Returns the terms that any text holds, with how much they say: the rarest ones, where there are many.
    pub(super) fn rarest<'t>(&self, terms: &'t [String], most: usize) -> Vec<(&'t str, f64)> {
        let mut found: Vec<_> = terms.iter().filter_map(|term| Some((&**term, self.weight(term)?))).collect();
        if found.len() > most {
            found.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
            found.truncate(most);
        }
        found
    }
}
