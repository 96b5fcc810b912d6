//! Times as files spell them: `2026-11-15T08:30:00.250Z`.

use crate::entry::Millis;

pub(crate) const DAY: i64 = 86_400_000;

/// Returns the time that a text spells; `None` if it spells none.
pub fn parsed(text: &str) -> Option<Millis> {
    let (date, clock) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, offset) = match clock.find(['Z', 'z', '+', '-']) {
        Some(at) => (&clock[..at], offset(&clock[at..])?),
        None => (clock, 0),
    };
    let mut clock = clock.splitn(3, ':');
    let (hour, minute): (i64, i64) = (clock.next()?.parse().ok()?, clock.next()?.parse().ok()?);
    let second = clock.next().unwrap_or("0");
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    let second: i64 = second.parse().ok()?;
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let is_date = (0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..61).contains(&second) {
        return None;
    }
    let seconds = hour * 3600 + minute * 60 + second;
    Some(Millis(days(year, month, day) * DAY + seconds * 1000 + digits.parse::<i64>().ok()? - offset))
}

/// How far a clock is ahead, in milliseconds.
fn offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' => return Some(0),
        b'-' => -1,
        _ => 1,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) =
        (digits.get(..2)?.parse::<i64>().ok()?, digits.get(2..4).unwrap_or("0").parse::<i64>().ok()?);
    Some(sign * (hours * 60 + minutes) * 60_000)
}

/// Returns a time as text.
pub fn written(at: Millis) -> String {
    // Years beyond four digits have another spelling, and nobody lived there.
    let millis = at.0.clamp(days(0, 1, 1) * DAY, days(10_000, 1, 1) * DAY - 1);
    let (day, rest) = (millis.div_euclid(DAY), millis.rem_euclid(DAY));
    let (year, month, day) = date(day);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

/// The number of a day, from 1970-01-01, in the Gregorian calendar; years are counted from March.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let of_era = year.rem_euclid(400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468
}

pub(crate) fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        assert_eq!(parsed("1970-01-01T00:00:00Z"), Some(Millis(0)));
        assert_eq!(parsed("2026-11-15T08:30:00.250Z"), Some(Millis(1_794_731_400_250)));
        assert_eq!(parsed("2026-11-15T10:30:00.25+02:00"), Some(Millis(1_794_731_400_250)));
        for text in ["2000-02-29T23:59:59.999Z", "1969-12-31T23:59:59.999Z", "2100-03-01T00:00:00.000Z"] {
            assert_eq!(written(parsed(text).unwrap()), text);
        }
        for day in (-800_000..800_000).step_by(97) {
            assert_eq!(
                parsed(&written(Millis(day * DAY / 2))).map(|it| it.0),
                Some(day * DAY / 2).filter(|_| day > -1_400_000)
            );
        }
        for wrong in ["", "T", "2026-13-01T00:00:00Z", "2026-11-15", "2026-11-15T25:00:00Z", "x-y-zTa:b:c"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        assert!(written(Millis(i64::MAX)).starts_with("9999-12-31T"));
        assert!(written(Millis(i64::MIN)).starts_with("0000-01-01T"));
    }
}
