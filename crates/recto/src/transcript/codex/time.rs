//! Moments as rollouts spell them, such as `2026-06-26T12:24:12.748Z`.

use crate::entry::Millis;

const DAY_MS: i64 = 86_400_000;

/// Reads a moment; `None` if it is spelled in another way.
pub(super) fn parse(text: &str) -> Option<Millis> {
    let (date, rest) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(|it| it.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone = rest.find(['Z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(|it| it.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let ms: i64 = thousandths.parse().ok()?;
    let east = match zone.strip_prefix('Z') {
        Some(_) => 0,
        None => {
            let (hours, minutes) = zone[1..].split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let is_sane = (0..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && east.abs() < 24 * 60;
    let of_day = ((hour * 60 + minute - east) * 60 + second) * 1000 + ms;
    is_sane.then(|| Millis(days(year, month, day) * DAY_MS + of_day))
}

/// Writes a moment.
pub(super) fn format(at: Millis) -> String {
    // Beyond these years there is no agreed spelling.
    let ms = at.0.clamp(days(0, 1, 1) * DAY_MS, days(10_000, 1, 1) * DAY_MS - 1);
    let (year, month, day) = date(ms.div_euclid(DAY_MS));
    let of_day = ms.rem_euclid(DAY_MS);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", of_day % 1000)
}

/// The days from 1970 to a date. Years are counted from March, so that the odd day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// The date of a day since 1970.
fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year, if month < 10 { month + 3 } else { month - 9 });
    (if month <= 2 { year + 1 } else { year }, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_written_alike() {
        assert_eq!(parse("1970-01-01T00:00:00.000Z"), Some(Millis(0)));
        assert_eq!(parse("2026-06-26T12:24:12.748Z"), Some(Millis(1_782_476_652_748)));
        assert_eq!(parse("2026-06-26T14:24:12.748123+02:00"), Some(Millis(1_782_476_652_748)));
        assert_eq!(parse("2026-06-26T12:24:12Z"), Some(Millis(1_782_476_652_000)));
        for wrong in ["", "2026-06-26", "2026-13-26T12:24:12Z", "2026-06-26T12:24:12", "2026-06-26T12:24:12+", "x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        for ms in (-62_167_219_200_000..253_402_300_800_000i64).step_by(86_399_999_777) {
            assert_eq!(parse(&format(Millis(ms))), Some(Millis(ms)), "{ms}");
        }
        assert_eq!(format(Millis(i64::MIN)), "0000-01-01T00:00:00.000Z");
        assert_eq!(format(Millis(i64::MAX)), "9999-12-31T23:59:59.999Z");
    }
}
