//! How long things took, as numbers that cost little to keep: two atomic additions each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The bounds of the classes that lengths are counted in.
const BOUNDS: [Duration; 13] = [
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(300),
];

/// How often something took how long.
#[derive(Debug, Default)]
pub struct Timing {
    /// One class for each bound, and one for what lies beyond.
    classes: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// What a [`Timing`] has counted up to a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Bounds in seconds, and how often it took no longer.
    pub upto: Vec<(f64, u64)>,
    /// How often it was, in all.
    pub count: u64,
    /// How long it took, in all, in seconds.
    pub seconds: f64,
}

impl Timing {
    /// Counts one more.
    pub fn took(&self, length: Duration) {
        let class = BOUNDS.partition_point(|bound| *bound < length);
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(length.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Counts how long it takes until what is returned is dropped.
    pub fn running(&self) -> Running<'_> {
        Running { timing: self, since: Instant::now() }
    }

    /// Returns what was counted so far. All numbers are of the same classes, so they agree with each other.
    pub fn counted(&self) -> Timed {
        let mut count = 0;
        let mut sums = self.classes.iter().map(|class| {
            count += class.load(Ordering::Relaxed);
            count
        });
        let upto = BOUNDS.iter().map(|bound| bound.as_secs_f64()).zip(sums.by_ref()).collect();
        let count = sums.next().unwrap_or_default();
        Timed { upto, count, seconds: Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64() }
    }
}

/// Something that goes on; when it is dropped, it has ended.
#[derive(Debug)]
pub struct Running<'t> {
    timing: &'t Timing,
    since: Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.timing.took(self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_up_to_their_bounds() {
        let timing = Timing::default();
        for length in [Duration::ZERO, BOUNDS[1], BOUNDS[1] + Duration::from_nanos(1), Duration::from_secs(301)] {
            timing.took(length);
        }
        let timed = timing.counted();
        assert_eq!(timed.upto[..3], [(0.0005, 1), (0.001, 2), (0.005, 3)]);
        assert_eq!((timed.upto.last(), timed.count), (Some(&(300.0, 3)), 4));
        assert_eq!(timed.seconds, 301.002);
    }
}
