//! Which entries of a long log are worth reading for a query, by where its terms stand and who speaks.

use super::kin::{self, AKIN};
use super::shelf::spoken_by;
use super::stem::stem;
use super::talk::{COVERED, NEAR, SPEAKER};
use super::{Commonness, Query};
use crate::entry::{Role, Seq};
use std::collections::{HashMap, HashSet};

/// The most terms of a query that an index is asked for.
const TERMS_MAX: usize = 64;
/// The most terms that are only akin to these.
const AKIN_MAX: usize = 32;
/// The most words of a question that are taken for somebody's name.
const NAMES_MAX: usize = 32;

/// What an index is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sought {
    /// The terms of the query, the user's own first.
    own: Vec<String>,
    /// How many of these are the user's.
    said: usize,
    akin: Vec<String>,
    /// Words of the question that may be somebody's name.
    names: Vec<String>,
    /// The role that the question is about, if it names nobody.
    role: Option<String>,
}

/// Where a term stands in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Where, the newest first.
    pub seqs: Vec<Seq>,
    /// Whether it stands at more places than these.
    pub is_cut: bool,
}

/// What is worth reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortlist {
    /// The entries, in order.
    pub seqs: Vec<Seq>,
    /// How common terms are in all of the log.
    pub common: Commonness,
    /// How many terms of the query stand at more places than were told.
    pub cut_terms: usize,
}

impl Query {
    /// Returns what to ask an index for.
    pub fn sought(&self) -> Sought {
        let (mut own, exchange) = self.terms();
        own.truncate(TERMS_MAX);
        let said = own.len();
        let mut known: HashSet<String> = own.iter().cloned().collect();
        let akin = own.iter().flat_map(|term| kin::of(term)).filter(|term| known.insert((*term).clone()));
        let akin: Vec<String> = akin.take(AKIN_MAX).cloned().collect();
        let more = exchange.into_iter().filter(|term| !own.contains(term)).take(TERMS_MAX - said).collect::<Vec<_>>();
        own.extend(more);
        let mut names = self.spelled();
        let mut seen = HashSet::new();
        names.retain(|word| seen.insert(word.clone()));
        names.truncate(NAMES_MAX);
        let role = match (self.persons(), &self.asker) {
            ((true, false), None) => Some(Role::User.to_string()),
            ((false, true), None) => Some(Role::Assistant.to_string()),
            _ => None,
        };
        Sought { own, said, akin, names, role }
    }
}

impl Sought {
    /// Returns the terms to look up.
    pub fn terms(&self) -> Vec<String> {
        let speakers = self.names.iter().chain(&self.role).map(|name| spoken_by(name));
        self.own.iter().chain(&self.akin).cloned().chain(speakers).collect()
    }
}

/// Returns the entries that are worth reading, at most so many, of a log of so many texts up to a place: those that the
/// terms cover best, with what stands around them, and what the one says who is asked about. `standing` answers to
/// [`Sought::terms`].
pub fn shortlist(sought: &Sought, standing: &[Standing], texts: u64, head: Seq, most: usize) -> Shortlist {
    let of: HashMap<String, &Standing> = sought.terms().into_iter().zip(standing).collect();
    let speaker = speaker(sought, &of);
    let is_name =
        |term: &String| sought.names.iter().any(|name| is_there(&of, &spoken_by(name)) && stem(name) == *term);
    let common = commonness(&of, texts, head);
    let mut covered: HashMap<u64, f64> = HashMap::new();
    let mut total = 0.0;
    for (nth, term) in sought.own.iter().enumerate().filter(|(_, term)| !is_name(term)) {
        let Some(weight) = common.weight(term) else { continue };
        let akin = if nth < sought.said { kin::of(term) } else { &[] };
        total += weight;
        cover(&of, term, akin, weight, &mut covered);
    }
    // Who speaks counts as much as when passages are weighed.
    let by_speaker = 2.0 * SPEAKER / COVERED * total;
    if let Some(Standing { seqs, is_cut }) = speaker {
        let theirs: HashSet<u64> = seqs.iter().map(|seq| seq.0).collect();
        // Before the oldest place that was told, nobody knows who speaks.
        let known = seqs.last().filter(|_| *is_cut).map_or(0, |oldest| oldest.0);
        covered.iter_mut().filter(|(at, _)| **at < known).for_each(|(_, worth)| *worth += by_speaker);
        theirs.iter().for_each(|at| *covered.entry(*at).or_default() += by_speaker);
    }
    covered.retain(|at, _| *at <= head.0);
    let mut best: Vec<(u64, f64)> = covered.into_iter().collect();
    best.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    best.truncate(most);
    let mut seqs: Vec<Seq> = best.into_iter().map(|(seq, _)| Seq(seq)).collect();
    seqs.sort_unstable();
    let cut_terms = sought.own.iter().filter(|term| of.get(*term).is_some_and(|it| it.is_cut)).count();
    Shortlist { seqs, common, cut_terms }
}

fn is_there(of: &HashMap<String, &Standing>, term: &str) -> bool {
    of.get(term).is_some_and(|it| !it.seqs.is_empty())
}

/// Where the one speaks who is asked about: the only one whose name stands in the question, or else a role.
fn speaker<'s>(sought: &Sought, of: &HashMap<String, &'s Standing>) -> Option<&'s Standing> {
    let mut named = sought.names.iter().filter_map(|name| of.get(&spoken_by(name))).filter(|it| !it.seqs.is_empty());
    match (named.next(), &sought.role) {
        // Two words may be one name.
        (Some(one), _) => named.all(|other| other == one).then_some(*one),
        (None, Some(role)) => of.get(&spoken_by(role)).copied(),
        (None, None) => None,
    }
}

/// How common terms are. Of one whose places were not all told, the newest tell how dense it is.
fn commonness(of: &HashMap<String, &Standing>, texts: u64, head: Seq) -> Commonness {
    let having = of.iter().map(|(term, it)| {
        let known = it.seqs.len() as u64;
        let reach = it.seqs.last().map_or(1, |oldest| head.0.saturating_sub(oldest.0) + 1);
        let all = if it.is_cut { known.saturating_mul(texts.max(reach)) / reach.max(1) } else { known };
        (term.clone(), all.clamp(known, texts.max(known)))
    });
    Commonness { texts, having: having.collect() }
}

/// Adds what a term covers, or those akin to it: of each place the best that stands around it.
fn cover(of: &HashMap<String, &Standing>, term: &str, akin: &[String], weight: f64, covered: &mut HashMap<u64, f64>) {
    let mut nearest: HashMap<u64, f64> = HashMap::new();
    let akin = akin.iter().map(|akin| (&**akin, AKIN));
    for (term, counts) in std::iter::once((term, 1.0)).chain(akin) {
        for seq in of.get(term).into_iter().flat_map(|it| &it.seqs).map(|seq| seq.0) {
            for at in seq.saturating_sub(NEAR.len() as u64 - 1)..seq + NEAR.len() as u64 {
                let worth = counts * NEAR[at.abs_diff(seq) as usize];
                nearest.entry(at).and_modify(|best| *best = best.max(worth)).or_insert(worth);
            }
        }
    }
    nearest.iter().for_each(|(at, worth)| *covered.entry(*at).or_default() += weight * worth);
}
