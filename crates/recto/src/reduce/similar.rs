//! Similar: a tool said nearly the same again; the earlier one goes.
//!
//! Two results of the same tool are compared by the runs of three words that they share: how many of all their runs
//! stand in both. Of long results only a sample is compared, always the same one, and only the newest results are
//! compared at all, so it costs no more than the page. The later result must have been seen once, and stays whole.
//!
//! It must not run where small differences matter, such as between the outputs of two test runs: those are better left
//! to `superseded`, which knows what was asked.

use super::Reduce;
use super::stub::{MINIMUM, Stub, What, Whole, by_run, whole};
use super::words::runs;
use crate::edit::{Edit, Reason};
use crate::entry::Seq;
use crate::error::Error;
use crate::item::result_text;
use crate::policy::Pass;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

const NAME: &str = "similar";
/// How many words make a run.
const RUN_WORDS: usize = 3;
/// How many runs of a result are compared.
const SAMPLE_MAX: usize = 256;

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Similar {
    /// How much of two results must be the same: 1 is all of it.
    pub threshold: f64,
    /// How many of a tool's newest results are compared with each other.
    pub newest: usize,
    /// Results that cost less are left alone.
    pub minimum: Tokens,
}

impl Default for Similar {
    fn default() -> Similar {
        Similar { threshold: 0.9, newest: 32, minimum: MINIMUM }
    }
}

impl Reduce for Similar {
    fn name(&self) -> &str {
        NAME
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let newest = self.newest(view);
        let is_seen = |it: &Whole<'_, '_>| newest.contains(&it.entry.seq) && request.reader.has_seen(it.entry.seq);
        let mut results: Vec<Whole<'_, '_>> = whole(view).into_iter().filter(is_seen).collect();
        let groups = by_run(&mut results).flat_map(|results| self.by_tool(results));
        let mut edits: Vec<Edit> = groups.flat_map(|group| self.repeats(&group, view, request)).collect();
        edits.sort_by_key(|edit| edit.change.seq());
        edits
    }

    fn check(&self) -> Result<(), Error> {
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            let what = format!("similar: threshold is {}", self.threshold);
            return Err(Error::settings(what, "a number above 0 and up to 1: how much must be the same"));
        }
        match self.newest {
            0 | 1 => Err(Error::settings(
                format!("similar: newest is {}", self.newest),
                "at least 2 results can be compared with each other",
            )),
            _ => Ok(()),
        }
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Similar(self.clone()))
    }
}

impl Similar {
    /// The newest results of each tool, those that are reduced already included, so that it looks no further back when
    /// more of them are.
    fn newest(&self, view: &View<'_>) -> HashSet<Seq> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let results = view.items().iter().rev().filter(|item| item.is_main()).flat_map(|item| item.results());
        let newest = results.filter(|it| {
            let count = counts.entry(&it.call.name).or_default();
            *count += 1;
            *count <= self.newest
        });
        newest.map(|it| it.at.seq).collect()
    }

    /// The results of each tool that are worth a look, newest first.
    fn by_tool<'v, 'a>(&self, results: &[Whole<'v, 'a>]) -> Vec<Vec<Whole<'v, 'a>>> {
        let mut by_tool: BTreeMap<(&str, bool), Vec<Whole<'v, 'a>>> = BTreeMap::new();
        for it in results.iter().rev().filter(|it| it.cost >= self.minimum) {
            by_tool.entry((&it.call().name, it.result().is_error)).or_default().push(*it);
        }
        by_tool.into_values().collect()
    }

    fn repeats(&self, newest_first: &[Whole<'_, '_>], view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        // What is much longer can't be the same; without anything of its length a result needs no look.
        let is_near = |one: Tokens, other: Tokens| {
            let (less, more) = (one.0.min(other.0) as f64, one.0.max(other.0) as f64);
            less >= more * self.threshold * LENGTH_SLACK
        };
        let has_partner = |at: usize| {
            (0..newest_first.len()).any(|it| it != at && is_near(cost(newest_first, at), cost(newest_first, it)))
        };
        let samples: Vec<Option<Vec<u64>>> =
            (0..newest_first.len()).map(|at| has_partner(at).then(|| sample(&newest_first[at]))).collect();
        let (mut stays, mut edits): (Vec<usize>, Vec<Edit>) = (Vec::new(), Vec::new());
        for (at, it) in newest_first.iter().enumerate() {
            let near = stays.iter().filter(|other| is_near(cost(newest_first, at), cost(newest_first, **other)));
            let shares =
                near.filter_map(|other| Some((*other, shared(samples[at].as_ref()?, samples[*other].as_ref()?))));
            let like = shares.into_iter().find(|(_, share)| *share >= self.threshold);
            let edit = like.filter(|_| it.may_change(request)).and_then(|(other, share)| {
                let to = newest_first[other].entry.seq;
                let percent = (share * 100.0) as u32;
                let (why, due) = (Reason::Similar { to, percent }, Some(request.reader.turn_at_age(to, 1)));
                let what = What("nearly the same as ", Some((to, " below")));
                it.stub(Stub { by: NAME.into(), why, what, head: 0, due }, view)
            });
            match edit {
                Some(edit) => edits.push(edit),
                None => stays.push(at),
            }
        }
        edits
    }
}

/// How much shorter a similar result may be than its share of words tells.
const LENGTH_SLACK: f64 = 0.8;

fn cost(results: &[Whole<'_, '_>], at: usize) -> Tokens {
    results[at].cost
}

/// The smallest runs of words of a result, as numbers: a fair sample that is the same for the same words.
fn sample(of: &Whole<'_, '_>) -> Vec<u64> {
    let mut runs = runs(&result_text(of.result()), RUN_WORDS);
    runs.truncate(SAMPLE_MAX);
    runs
}

/// Which share of all runs stands in both, told from the smallest of them.
fn shared(one: &[u64], other: &[u64]) -> f64 {
    let (mut at, mut nth, mut both, mut all) = (0, 0, 0u32, 0u32);
    // Beyond the end of a full sample nobody knows what the other holds; a sample that isn't full is all there is.
    while (all as usize) < SAMPLE_MAX && at < one.len() && nth < other.len() {
        let (a, b) = (one[at], other[nth]);
        both += u32::from(a == b);
        all += 1;
        at += usize::from(a <= b);
        nth += usize::from(b <= a);
    }
    let rest = one.len() - at + other.len() - nth;
    let all = (all as usize + rest).min(SAMPLE_MAX) as u32;
    f64::from(both) / f64::from(all.max(1))
}
