//! Which records are on the branch that goes on, and which of them the model reads.

use super::{KEY, TOLD};
use crate::transcript::lines::Line;
use std::collections::{HashMap, HashSet};

/// The records of the branch, in order.
pub(super) struct Branch {
    /// What the newest compaction left behind.
    pub(super) older: Vec<usize>,
    /// That compaction.
    pub(super) compaction: Option<usize>,
    /// What it kept, and what was said since; everything, if there was none.
    pub(super) shown: Vec<usize>,
    /// How many records of other branches say something.
    pub(super) others: usize,
    /// How many hang on something that is not in the file.
    pub(super) lost: usize,
}

impl Branch {
    /// Finds the branch that ends with the last record, or with the one that this names.
    pub(super) fn of(lines: &[Line<'_>]) -> Branch {
        let places: HashMap<String, usize> =
            lines.iter().enumerate().filter_map(|(at, line)| Some((line.text(KEY)?, at))).collect();
        let parents = Parents::of(lines, &places);
        let last = lines.len().checked_sub(1).filter(|at| lines[*at].kind != "session");
        let leaf = match last.map(|at| (at, &lines[at])) {
            Some((_, line)) if line.kind == "leaf" => line.text("targetId").and_then(|id| places.get(&id).copied()),
            Some((at, _)) => Some(at),
            None => None,
        };
        let mut branch: Vec<usize> = leaf.into_iter().flat_map(|leaf| parents.back_from(leaf)).collect();
        branch.reverse();
        let taken: HashSet<usize> = branch.iter().copied().collect();
        let is_told = |at: &usize| TOLD.contains(&lines[*at].kind.as_str());
        let others = (0..lines.len()).filter(is_told).filter(|at| !taken.contains(at)).count();
        let lost = branch.iter().filter(|at| parents.is_lost[**at]).count();
        let Some(nth) = branch.iter().rposition(|at| lines[*at].kind == "compaction") else {
            return Branch { older: Vec::new(), compaction: None, shown: branch, others, lost };
        };
        let first = first_kept(&lines[branch[nth]], &places);
        let kept = first.and_then(|first| branch[..nth].iter().position(|at| *at == first)).unwrap_or(nth);
        let shown = [&branch[kept..nth], &branch[nth + 1..]].concat();
        Branch { older: branch[..kept].to_vec(), compaction: Some(branch[nth]), shown, others, lost }
    }
}

/// The first record that a compaction kept. Older versions count records, the head of the file included.
fn first_kept(compaction: &Line<'_>, places: &HashMap<String, usize>) -> Option<usize> {
    let named = compaction.text("firstKeptEntryId").and_then(|id| places.get(&id).copied());
    named.or_else(|| compaction.value("firstKeptEntryIndex"))
}

struct Parents {
    /// The line before each on its branch.
    of: Vec<Option<usize>>,
    /// Whether it hangs on something that is not in the file; the line before it is taken for that.
    is_lost: Vec<bool>,
}

impl Parents {
    fn of(lines: &[Line<'_>], places: &HashMap<String, usize>) -> Parents {
        let mut parents = Parents { of: Vec::with_capacity(lines.len()), is_lost: Vec::with_capacity(lines.len()) };
        let mut before = None;
        for (at, line) in lines.iter().enumerate() {
            let named = line.text("parentId");
            let found = named.as_ref().and_then(|id| places.get(id).copied());
            let is_root = line.kind == "session" || (named.is_none() && line.fields.contains_key("parentId"));
            parents.is_lost.push(named.is_some() && found.is_none() && before.is_some());
            parents.of.push(if is_root { None } else { found.or(before) });
            if !matches!(line.kind.as_str(), "session" | "leaf") {
                before = Some(at);
            }
        }
        parents
    }

    /// A line and those before it on its branch; a circle ends it.
    fn back_from(&self, leaf: usize) -> impl Iterator<Item = usize> {
        let mut seen = HashSet::new();
        let back = std::iter::successors(Some(leaf), |at| self.of[*at]);
        back.take_while(move |at| seen.insert(*at))
    }
}
