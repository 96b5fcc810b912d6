//! How a provider's count of tokens relates to ours, where its vocabulary is not published.
//!
//! Every entry is counted once, by a published vocabulary. What the provider will count is that times one factor, kept
//! for each tenant and model and learned from the usage that calls report. What a provider has counted before is not
//! guessed again: a page that goes on from one whose usage was reported is that, and the factor for what is new.
//! A page is said to fit only if it fits at the worst that text can do.

use crate::tokens::Tokens;
use serde::{Deserialize, Serialize};

/// How much the newest call counts against all before it.
const NEWEST: f64 = 0.3;
/// How much of the distance to the usual factor the highest falls with every call.
const FORGETS: f64 = 0.05;
/// By how much a provider may count the same text otherwise from one call to the next.
const DRIFT: f64 = 0.02;
/// The least that text takes, by our count.
const BEST: f64 = 0.5;
/// Factors beyond these are taken for mistakes of a report.
const FACTOR_MIN: f64 = BEST;
const FACTOR_MAX: f64 = 3.0;

/// One factor between our count and a provider's, with what is known of its reliability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// What our count must be multiplied by.
    pub factor: f64,
    /// The highest that whole pages took lately, for conversations of which nothing was reported yet.
    pub high: f64,
    /// What any text may take at worst.
    pub worst: f64,
    /// How many calls it was learned from.
    #[serde(default)]
    pub calls: u32,
}

/// What was counted of the page before: by us, and by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) counted: Tokens,
    pub(crate) reported: Tokens,
}

impl Calibration {
    /// Returns the calibration of a model whose own vocabulary counts.
    pub fn exact() -> Calibration {
        Calibration::starting_at(1.0, 1.0)
    }

    /// Returns a starting point, with what is the worst to be expected of any text.
    pub fn starting_at(factor: f64, worst: f64) -> Calibration {
        Calibration { factor, high: factor, worst, calls: 0 }
    }

    /// Returns the starting point for a model of which nothing is known.
    pub fn unknown() -> Calibration {
        Calibration::starting_at(1.2, 2.0)
    }

    /// Returns whether nothing has to be learned.
    pub fn is_exact(&self) -> bool {
        self.factor == 1.0 && self.worst == 1.0
    }

    /// Learns from a call: what we had counted, and what the provider reports. What can't be true is not learned.
    pub fn observe(&mut self, counted: Tokens, reported: Tokens) {
        let factor = reported.0 as f64 / counted.0.max(1) as f64;
        if self.is_exact() || counted.0 == 0 || !(FACTOR_MIN..=FACTOR_MAX).contains(&factor) {
            return;
        }
        let weight = if self.calls == 0 { 1.0 } else { NEWEST };
        self.factor += (factor - self.factor) * weight;
        self.high = if self.calls == 0 { factor } else { self.high + (self.factor - self.high) * FORGETS };
        self.high = self.high.max(factor);
        self.worst = self.worst.max(factor * (1.0 + DRIFT)).min(FACTOR_MAX);
        self.calls = self.calls.saturating_add(1);
    }

    /// Returns what the provider will most likely count for a page, of which so much stood on the page before.
    pub(crate) fn predict(&self, used: Tokens, same: Tokens, seen: Option<Seen>) -> Tokens {
        match seen.filter(|_| !self.is_exact()) {
            Some(Seen { counted, reported }) if counted > Tokens(0) => {
                let share = same.min(used).0 as f64 / counted.0 as f64;
                let known = reported.0 as f64 * share.min(1.0);
                Tokens(known.ceil() as u64) + scale(used - same, self.factor)
            }
            _ => scale(used, if self.calls == 0 { self.factor } else { self.high }),
        }
    }

    /// Returns how much may stand on a page, by our count, so that the provider surely counts no more than a limit:
    /// what is new may take the worst, and what goes from the page before may have been what took least.
    pub(crate) fn capacity(&self, limit: Tokens, new: Tokens, seen: Option<Seen>) -> Tokens {
        if self.is_exact() {
            return limit;
        }
        let (limit, new, worst) = (limit.0 as f64, new.0 as f64, self.worst);
        let plain = limit / worst;
        let Some(Seen { counted, reported }) = seen else { return Tokens(plain as u64) };
        let (counted, reported) = (counted.0 as f64, reported.0 as f64 * (1.0 + DRIFT));
        let left = limit - worst * new;
        let capacity = match left - reported {
            spare if spare >= 0.0 => new + counted + spare / worst,
            missing => new + counted + missing / BEST,
        };
        Tokens(capacity.max(plain) as u64)
    }
}

/// Returns a count times a factor, rounded up.
pub(crate) fn scale(counted: Tokens, factor: f64) -> Tokens {
    if factor == 1.0 { counted } else { Tokens((counted.0 as f64 * factor).ceil() as u64) }
}
