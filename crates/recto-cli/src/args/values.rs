//! How values are spelled on the command line.

use crate::talk::{Level, Spelling};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use recto::entry::Seq;
use recto::transcript::Format;
use recto::wire::Wire;
use recto::{Span, Tokenizer, Tokens};
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// The wires, by name.
pub(super) fn wire_names() -> impl TypedValueParser<Value = Wire> {
    PossibleValuesParser::new(Wire::ALL.map(Wire::name)).try_map(|name| name.parse::<Wire>())
}

/// The formats, by name.
pub(super) fn format_names() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

/// How a log is spelled, by name.
pub(super) fn spellings() -> impl TypedValueParser<Value = Spelling> {
    one_of(Spelling::NAMES)
}

/// How much is told, by name.
pub(super) fn levels() -> impl TypedValueParser<Value = Level> {
    one_of(Level::NAMES)
}

fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    names: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names.map(|(name, _)| name))
        .try_map(move |name| names.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or("unknown"))
}

/// Reads an age such as `90d`, `12w` or `36h`, and returns it in milliseconds.
pub(super) fn age(text: &str) -> Result<i64, String> {
    const HOUR_MS: i64 = 60 * 60 * 1_000;
    let units = [('h', HOUR_MS), ('d', 24 * HOUR_MS), ('w', 7 * 24 * HOUR_MS)];
    let read = || {
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let (_, unit) = units.iter().find(|(name, _)| unit.starts_with(*name))?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i64>().ok().filter(|number| is_number && *number > 0)?.checked_mul(*unit)
    };
    read().ok_or_else(|| "expected an age such as 90d, 12w or 36h".into())
}

/// Reads a UUID, in any case.
pub(super) fn uuid(text: &str) -> Result<String, String> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = groups.iter().map(|group| group.len()).eq(GROUPS) && groups.iter().all(|group| is_hex(group));
    is_uuid
        .then(|| text.to_lowercase())
        .ok_or_else(|| "expected a UUID such as 0f8fad5b-d9cb-469f-a165-70867728950e".into())
}

/// Reads a number of tokens: digits, `_` between them, and `k` or `m` for thousands or millions.
pub(crate) fn tokens(text: &str) -> Result<Tokens, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        _ => (text, 1),
    };
    let is_spelled = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '_');
    let number = is_spelled.then(|| digits.replace('_', "").parse::<u64>().ok()?.checked_mul(unit)).flatten();
    number.map(Tokens).ok_or_else(|| "expected a number of tokens such as 32000, 32_000, 32k or 1m".into())
}

/// The tokenizers, by name.
pub(super) fn tokenizer_names() -> impl TypedValueParser<Value = Tokenizer> {
    let names: Vec<&str> = Tokenizer::ALL.iter().map(|it| it.as_str()).collect();
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Tokenizer>())
}

/// Reads the place of an entry: `42`, `#42` or `m42`.
pub(super) fn seq(text: &str) -> Result<Seq, String> {
    let digits = text.strip_prefix(['m', 'M', '#']).unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number);
    number.map(Seq).ok_or_else(|| "expected the place of an entry such as 42".into())
}

/// Reads one entry or a stretch of them: `42`, `5-9`.
pub(super) fn span(text: &str) -> Result<Span, String> {
    let wrong = || "expected entries such as 42 or 5-9".to_string();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let span = Span { first: seq(first).map_err(|_| wrong())?, last: seq(last).map_err(|_| wrong())? };
    if span.first > span.last { Err(wrong()) } else { Ok(span) }
}

/// Reads a range of numbers, both ends included: `10-20`, or `10` alone.
pub(super) fn range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
    range.map(|(first, last)| first..=last).ok_or_else(|| "expected a range such as 10-20".into())
}

/// Reads an address to listen at: `127.0.0.1:7676`, `[::1]:7676`, or `localhost:7676`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let wrong = |_| "expected an address and a port such as 127.0.0.1:7676 or [::1]:7676".to_string();
    numeric.as_deref().unwrap_or(text).parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_several_spellings() {
        let good =
            [("0", 0), ("32000", 32_000), ("32_000", 32_000), ("8k", 8_000), ("128K", 128_000), ("1m", 1_000_000)];
        for (text, number) in good {
            assert_eq!(tokens(text), Ok(Tokens(number)), "{text}");
        }
        for text in
            ["", "k", "-1", "+1", "1.5k", "_1", "1_", "8kb", "8 k", "99999999999999999999", "99999999999999999m"]
        {
            assert!(tokens(text).is_err(), "{text}");
        }
    }

    #[test]
    fn uuids_are_told_from_other_texts() {
        let good = "0F8FAD5B-d9cb-469f-a165-70867728950e";
        assert_eq!(uuid(good), Ok(good.to_lowercase()));
        for text in ["", "0f8fad5b", &good[1..], &format!("{good}0"), &good.replace('5', "g"), &good.replace('-', "")] {
            assert!(uuid(text).is_err(), "{text}");
        }
    }

    #[test]
    fn places_and_stretches_of_entries_are_told_from_other_texts() {
        assert_eq!((seq("42"), seq("#42"), seq("m42")), (Ok(Seq(42)), Ok(Seq(42)), Ok(Seq(42))));
        assert_eq!(span("7"), Ok(Span::one(Seq(7))));
        assert_eq!(span("m5-9"), Ok(Span { first: Seq(5), last: Seq(9) }));
        assert_eq!((range("3"), range("10-20")), (Ok(3..=3), Ok(10..=20)));
        for text in ["", "-", "x", "9-5", "1-", "-1", "1-2-3", "+1", "99999999999999999999"] {
            assert!(span(text).is_err() && range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_age_has_a_unit() {
        assert_eq!((age("36h"), age("1d"), age("2w")), (Ok(129_600_000), Ok(86_400_000), Ok(1_209_600_000)));
        for text in ["", "d", "90", "0d", "-1d", "+1d", "1.5d", "90 d", "90m", "1dd", "99999999999999999d", "9ä"] {
            assert!(age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_have_a_port() {
        assert_eq!(address("localhost:80"), Ok(([127, 0, 0, 1], 80).into()));
        assert_eq!(address("[::1]:0").map(|it| it.port()), Ok(0));
        for text in ["", "7676", ":7676", "127.0.0.1", "localhost", "::1:80", "recto.test:80", "127.0.0.1:70000"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
