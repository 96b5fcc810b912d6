//! Cover: which lines stay, chosen over a whole batch at once.
//!
//! Greedy: the line whose contents are worth most per token comes first; what it says counts nothing for the others from
//! then on. A line stays while what only it says is worth its tokens.

use super::worth::Contents;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A line that may go, with what its contents are worth.
#[derive(Debug)]
pub(super) struct Unit {
    /// What it costs to keep it.
    pub(super) cost: f64,
    /// Contents and their worth.
    pub(super) says: Vec<(u64, f64)>,
}

impl Unit {
    /// What it says that nothing else does, per token.
    fn gain(&self, said: &Contents) -> f64 {
        let new = self.says.iter().filter(|(content, _)| !said.contains(content));
        new.map(|(_, worth)| worth).sum::<f64>() / self.cost
    }
}

/// Returns which units stay: each is worth `least` per token for what nothing else says; `said` is what stands anyway.
pub(super) fn cover(units: &[Unit], mut said: Contents, least: f64) -> Vec<bool> {
    let mut stays = vec![false; units.len()];
    let gains = units.iter().enumerate().map(|(at, unit)| Next { gain: unit.gain(&said), at });
    let mut queue: BinaryHeap<Next> = gains.filter(|next| next.gain >= least).collect();
    // What a unit is worth only falls, so it is counted again only when its turn comes.
    while let Some(next) = queue.pop() {
        let gain = units[next.at].gain(&said);
        if gain < next.gain {
            if gain >= least {
                queue.push(Next { gain, at: next.at });
            }
            continue;
        }
        stays[next.at] = true;
        said.extend(units[next.at].says.iter().map(|(content, _)| *content));
    }
    stays
}

#[derive(PartialEq)]
struct Next {
    gain: f64,
    at: usize,
}

impl Eq for Next {}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Next) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Next {
    /// Of two that are worth the same the earlier comes first.
    fn cmp(&self, other: &Next) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.at.cmp(&self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(cost: f64, says: &[(u64, f64)]) -> Unit {
        Unit { cost, says: says.to_vec() }
    }

    #[test]
    fn what_is_said_twice_stays_once() {
        let units = [unit(4.0, &[(1, 2.0), (2, 2.0)]), unit(2.0, &[(1, 2.0), (2, 2.0)]), unit(1.0, &[(3, 0.1)])];
        assert_eq!(cover(&units, Contents::default(), 0.2), [false, true, false]);
        assert_eq!(cover(&units, Contents::from_iter([1, 2]), 0.2), [false, false, false]);
        assert_eq!(cover(&units, Contents::default(), 0.05), [false, true, true]);
    }

    #[test]
    fn of_equals_the_earlier_stays() {
        let units = [unit(1.0, &[(1, 1.0)]), unit(1.0, &[(1, 1.0)])];
        assert_eq!(cover(&units, Contents::default(), 0.5), [true, false]);
    }
}
