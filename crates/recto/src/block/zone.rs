//! Time zones: by name or by offset, and how times are told in them. The rules of all zones are part of the program.

use crate::entry::{Millis, Text};
use crate::error::Error;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// No place on earth is further from UTC, in minutes.
const OFFSET_MINUTES_MAX: i64 = 26 * 60;
/// The same in hours: a larger number is one of minutes.
const OFFSET_HOURS_MAX: i64 = OFFSET_MINUTES_MAX / 60;
/// The longest name of a zone.
const NAME_BYTES_MAX: usize = 100;

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Minutes to the east.
    East(i32),
    /// A name of the IANA database, as it is spelled there.
    Named(Text),
}

impl Default for Zone {
    /// Returns UTC.
    fn default() -> Zone {
        Zone { place: Place::East(0) }
    }
}

impl Zone {
    /// Returns the zone with a name of the IANA database, such as `Asia/Kolkata`.
    pub fn named(name: &str) -> Result<Zone, Error> {
        let found = Some(name).filter(|name| name.len() <= NAME_BYTES_MAX).and_then(rules);
        let spelled = found.as_ref().and_then(|zone| zone.iana_name());
        match spelled {
            Some(spelled) => Ok(Zone { place: Place::Named(spelled.into()) }),
            None => {
                Err(Error::input(format!("no time zone is called {:?}", name.chars().take(40).collect::<String>()))
                    .hinting("use a name like Europe/Berlin, or an offset like +05:30"))
            }
        }
    }

    /// Returns the zone that is so many minutes ahead of UTC: east is positive.
    pub fn east_minutes(minutes: i64) -> Result<Zone, Error> {
        match i32::try_from(minutes).ok().filter(|_| minutes.abs() < OFFSET_MINUTES_MAX) {
            Some(minutes) => Ok(Zone { place: Place::East(minutes) }),
            None => Err(Error::input(format!("no time zone is {minutes} minutes from UTC"))
                .hinting("give minutes, not seconds or hours")),
        }
    }

    /// Returns the zone for what JavaScript's `getTimezoneOffset` says: minutes, and west is positive.
    pub fn js_minutes(minutes: i64) -> Result<Zone, Error> {
        Zone::east_minutes(minutes.checked_neg().unwrap_or(i64::MAX))
    }

    /// Returns the zone for what JavaScript's `getTimezoneOffset` says, where it came as text.
    pub fn js_text(minutes: &str) -> Result<Zone, Error> {
        let plain = minutes.trim().replace('\u{2212}', "-");
        let number = plain.parse::<i64>().map_err(|_| Error::input(format!("{minutes:?} is no number of minutes")));
        number.and_then(Zone::js_minutes)
    }

    /// Reads a name like `Europe/Berlin`, or an offset like `+05:30`; `UTC` and `Z` are the same. A plain number without
    /// a plus sign that is too large for hours, such as `-480`, is an offset in minutes as
    /// [`js_minutes`](Zone::js_minutes) takes it.
    pub fn parse(text: &str) -> Result<Zone, Error> {
        let text = text.trim();
        if let Some(minutes) = js_offset(text) {
            return Zone::js_minutes(minutes);
        }
        let (sign, digits) = match text {
            "Z" | "UTC" => return Ok(Zone::default()),
            text if text.starts_with('+') => (1, &text[1..]),
            text if text.starts_with('-') => (-1, &text[1..]),
            text => return Zone::named(text),
        };
        let refused = || Error::input(format!("{text:?} is no offset")).hinting("write it like +05:30");
        let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
        let number = |digits: &str| digits.parse::<i64>().ok().filter(|_| digits.len() <= 2 && !digits.is_empty());
        let (hours, minutes) = number(hours).zip(number(minutes)).ok_or_else(refused)?;
        if minutes >= 60 { Err(refused()) } else { Zone::east_minutes(sign * (60 * hours + minutes)) }
    }

    /// Returns a time to the minute: `2025-12-10 16:00`. `None` where there is no such time.
    pub fn minute(&self, at: Millis) -> Option<String> {
        let (local, _) = self.local(at)?;
        let (date, time) = (local.date(), local.time());
        let (year, month, day) = (date.year(), date.month(), date.day());
        Some(format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", time.hour(), time.minute()))
    }

    /// Returns a time to the second, with what it is ahead of UTC: `2025-12-10 16:00:00+08:00`.
    pub fn second(&self, at: Millis) -> Option<String> {
        let (local, offset) = self.local(at)?;
        let (sign, ahead) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
        let second = local.time().second();
        Some(format!("{}:{second:02}{sign}{:02}:{:02}", self.minute(at)?, ahead / 3_600, ahead / 60 % 60))
    }

    /// Returns a day: `2025-12-10`.
    pub fn day(&self, at: Millis) -> Option<String> {
        self.minute(at).and_then(|minute| minute.split(' ').next().map(String::from))
    }

    /// The time on the clock there, and how many seconds it is ahead of UTC.
    fn local(&self, at: Millis) -> Option<(DateTime, i32)> {
        let instant = Timestamp::from_millisecond(at.0).ok()?;
        let zone = match &self.place {
            Place::East(minutes) => TimeZone::fixed(jiff::tz::Offset::from_seconds(minutes * 60).ok()?),
            Place::Named(name) => rules(name)?,
        };
        let offset = zone.to_offset(instant);
        Some((offset.to_datetime(instant), offset.seconds()))
    }
}

/// Returns the minutes of a text that can only be an offset as JavaScript counts them. Small numbers with a sign are
/// hours, and a leading zero, as in `-0800`, is a notation of hours and minutes that is not read.
fn js_offset(text: &str) -> Option<i64> {
    let plain = text.replace('\u{2212}', "-");
    let digits = plain.strip_prefix('-').unwrap_or(&plain);
    let is_number = digits == "0" || (digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.starts_with('0'));
    let minutes = plain.parse::<i64>().ok().filter(|_| is_number)?;
    (minutes == 0 || minutes.abs() > OFFSET_HOURS_MAX).then_some(minutes)
}

/// The rules of a zone. They are compiled in, so that they are the same on every machine.
fn rules(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

/// Reads a time as JSON and JavaScript write it: `2025-12-10T08:00:00Z`, with any offset. Without one it is UTC.
pub fn instant(text: &str) -> Result<Millis, Error> {
    let text = text.trim();
    let with_offset = text.parse::<Timestamp>().ok();
    let plain = || text.parse::<DateTime>().ok().and_then(|it| TimeZone::UTC.to_timestamp(it).ok());
    match with_offset.or_else(plain) {
        Some(found) => Ok(Millis(found.as_millisecond())),
        None => Err(Error::input(format!("{:?} is no time", text.chars().take(40).collect::<String>()))
            .hinting("write it like 2025-12-10T08:00:00Z")),
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Named(name) => f.write_str(name),
            Place::East(minutes) => {
                let sign = if *minutes < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
        }
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Zone, D::Error> {
        deserializer.deserialize_any(ZoneVisitor)
    }
}

/// Reads a zone from text, or from a number of minutes as JavaScript counts them.
struct ZoneVisitor;

impl de::Visitor<'_> for ZoneVisitor {
    type Value = Zone;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time zone like \"Europe/Berlin\" or \"+05:30\", or minutes like -480, west of UTC")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Zone, E> {
        Zone::parse(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, minutes: i64) -> Result<Zone, E> {
        Zone::js_minutes(minutes).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, minutes: u64) -> Result<Zone, E> {
        Zone::js_minutes(i64::try_from(minutes).unwrap_or(i64::MAX)).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(zone: Zone, at: &str, told: &str) {
        assert_eq!(zone.second(instant(at).unwrap()).unwrap(), told);
        assert_eq!(Zone::parse(&zone.to_string()).unwrap(), zone);
    }

    #[test]
    fn offsets_of_javascript_are_west() {
        check(Zone::js_minutes(-480).unwrap(), "2025-12-10T08:00:00Z", "2025-12-10 16:00:00+08:00");
        check(Zone::js_minutes(300).unwrap(), "2025-12-10T08:00:00Z", "2025-12-10 03:00:00-05:00");
        check(Zone::js_minutes(-330).unwrap(), "2025-12-10T08:00:00Z", "2025-12-10 13:30:00+05:30");
        assert_eq!(Zone::js_text("\u{2212}480").unwrap(), Zone::js_text("-480").unwrap());
        assert!(Zone::js_minutes(i64::MIN).is_err() && Zone::js_text("eight").is_err());
    }

    /// S42: the same offsets in JSON, as a number or as text.
    #[test]
    fn s42_json_gives_an_offset_in_minutes_as_a_number_or_as_text() {
        let read = |json: &str| serde_json::from_str::<Zone>(json).map_err(|error| error.to_string());
        for (json, zone) in [
            ("-480", "+08:00"),
            ("\"-480\"", "+08:00"),
            ("\"\u{2212}480\"", "+08:00"),
            ("\" 300 \"", "-05:00"),
            ("60", "-01:00"),
            ("\"-60\"", "+01:00"),
            ("0", "+00:00"),
            ("\"0\"", "+00:00"),
            ("\"-08\"", "-08:00"),
            ("\"-8\"", "-08:00"),
            ("\"+08\"", "+08:00"),
        ] {
            assert_eq!(read(json).unwrap().to_string(), zone, "{json}");
        }
        for wrong in ["5000", "-9223372036854775808", "18446744073709551615", "\"-0800\"", "\"8\"", "1.5", "true"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_know_summer_and_half_hours() {
        let berlin = || Zone::named("europe/berlin").unwrap();
        check(berlin(), "2025-03-30T00:59:59Z", "2025-03-30 01:59:59+01:00");
        check(berlin(), "2025-03-30T01:00:00Z", "2025-03-30 03:00:00+02:00");
        check(berlin(), "2025-10-26T00:30:00Z", "2025-10-26 02:30:00+02:00");
        check(berlin(), "2025-10-26T01:30:00Z", "2025-10-26 02:30:00+01:00");
        check(Zone::named("Asia/Kathmandu").unwrap(), "2025-12-10T08:00:00Z", "2025-12-10 13:45:00+05:45");
        check(Zone::named("Australia/Lord_Howe").unwrap(), "2025-07-01T00:00:00Z", "2025-07-01 10:30:00+10:30");
        check(Zone::named("Australia/Lord_Howe").unwrap(), "2025-12-31T14:00:00Z", "2026-01-01 01:00:00+11:00");
        check(Zone::named("America/St_Johns").unwrap(), "2025-01-01T00:00:00Z", "2024-12-31 20:30:00-03:30");
        assert!(Zone::named("Middle/Earth").is_err() && Zone::named(&"x".repeat(1_000_000)).is_err());
    }

    #[test]
    fn a_time_is_read_before_it_is_told_elsewhere() {
        check(Zone::js_minutes(-480).unwrap(), "2025-12-10T16:00:00+08:00", "2025-12-10 16:00:00+08:00");
        check(Zone::parse("+08").unwrap(), "2025-12-10T08:00:00", "2025-12-10 16:00:00+08:00");
        assert!(instant("tomorrow").is_err());
        assert_eq!(Zone::default().minute(Millis(i64::MAX)), None);
        assert!(["+5:99", "+", "+123", "-x", "+99"].iter().all(|text| Zone::parse(text).is_err()));
    }
}
