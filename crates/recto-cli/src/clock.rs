//! The clock, and dates as people write them. Only `now` looks at a clock; everything else is handed what it says.

use recto::entry::Millis;
use recto::transcript::time;
use std::env;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// A day to take for today, as year-month-day, so that what is printed can be compared with what was printed before.
const VARIABLE: &str = "RECTO_TODAY";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns what time it is.
pub(crate) fn now() -> Millis {
    // A server asks several times a request.
    static SET: OnceLock<Option<i64>> = OnceLock::new();
    let set = *SET.get_or_init(|| env::var(VARIABLE).ok().and_then(|day| day_of(&day)));
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Millis(set.map_or_else(|| i64::try_from(clock()).unwrap_or(0), |day| day * DAY_MS))
}

/// Returns how many days have passed since a date, if it is one.
pub(crate) fn days_since(date: &str, now: Millis) -> Option<i64> {
    Some(now.0.div_euclid(DAY_MS) - day_of(date)?)
}

/// A moment, in parts (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

impl Moment {
    /// Returns the parts of a moment.
    pub(crate) fn of(at: Millis) -> Moment {
        let written = time::written(at);
        let mut numbers = written.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Moment { year: next(), month: next(), day: next(), hour: next(), minute: next(), second: next() }
    }
}

/// Returns a moment as tables show it, to the minute.
pub(crate) fn minute(at: Millis) -> String {
    let Moment { year, month, day, hour, minute, .. } = Moment::of(at);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// The number of a day, written as year-month-day, from the first of January 1970.
fn day_of(date: &str) -> Option<i64> {
    let is_number = |part: &str| part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
    let at = time::parsed(&format!("{date}T00:00:00Z")).filter(|_| date.split('-').all(is_number))?;
    Some(at.0.div_euclid(DAY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_across_months_and_leap_years() {
        let now = |date: &str| Millis(day_of(date).unwrap() * DAY_MS + 7);
        assert_eq!(day_of("1970-01-01"), Some(0));
        assert_eq!(days_since("2024-02-28", now("2024-03-01")), Some(2));
        assert_eq!(days_since("2023-02-28", now("2023-03-01")), Some(1));
        assert_eq!(days_since("2026-11-15", now("2027-11-15")), Some(365));
        assert_eq!(days_since("2026-11-16", now("2026-11-15")), Some(-1));
        for wrong in ["", "2026", "2026-11", "2026-13-01", "2026-00-01", "2026-01-32", "2026-1-1-1", "+026-01-01"] {
            assert_eq!(days_since(wrong, Millis(0)), None, "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_told_in_parts() {
        for (date, parts) in
            [("1970-01-01", (1970, 1, 1)), ("2024-02-29", (2024, 2, 29)), ("2026-12-31", (2026, 12, 31))]
        {
            let at = Millis(day_of(date).unwrap() * DAY_MS + ((23 * 60 + 4) * 60 + 5) * 1000 + 678);
            let Moment { year, month, day, hour, minute, second } = Moment::of(at);
            assert_eq!(((year, month, day), (hour, minute, second)), (parts, (23, 4, 5)));
        }
    }
}
