//! Numbers that only rise.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only rises.
#[derive(Debug, Default)]
pub(in crate::server) struct Counter(AtomicU64);

impl Counter {
    /// Counts one more.
    pub(in crate::server) fn count(&self) {
        self.add(1);
    }

    /// Counts so many more.
    pub(in crate::server) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many of the units in which money is kept are a US dollar.
const UNITS: f64 = 1e9;

/// US dollars that only become more, kept as billionths: a token costs thousands of them.
#[derive(Debug, Default)]
pub(super) struct Money(Counter);

impl Money {
    pub(super) fn add(&self, usd: f64) {
        // What is no amount, or less than nothing, counts as nothing.
        self.0.add((usd * UNITS).round() as u64);
    }

    pub(super) fn value(&self) -> f64 {
        self.0.value() as f64 / UNITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_becomes_only_more() {
        let money = Money::default();
        for usd in [0.000_000_15, 1.25, -3.0, f64::NAN, 0.0] {
            money.add(usd);
        }
        assert_eq!(money.value(), 1.250_000_15);
    }
}
