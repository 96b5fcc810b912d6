//! Whether a value looks random, or as if it stood for one. With whole numbers alone: the same on every machine.

use super::placeholders;

/// How much of a value is looked at.
const LOOK_BYTES_MAX: usize = 256;
/// Random values have more different characters than this.
const DISTINCT_MIN: usize = 8;

/// What says that a value is there to be replaced by a real one, in small letters.
const MADE_UP: [&str; 14] = [
    "example",
    "placeholder",
    "your",
    "xxxx",
    "changeme",
    "change_me",
    "change-me",
    "dummy",
    "redacted",
    "sample",
    "insert",
    "fake",
    "****",
    "...",
];

/// What a value is made of.
struct Traits {
    length: usize,
    distinct: usize,
    letters: usize,
    digits: usize,
    /// Marks that names don't have.
    marks: usize,
    /// How often letters, digits, or small and large letters take turns. A large letter that begins a word is no turn.
    turns: usize,
}

impl Traits {
    fn of(value: &[u8]) -> Traits {
        let value = &value[..value.len().min(LOOK_BYTES_MAX)];
        let mut seen = [false; 256];
        let mut traits = Traits { length: value.len(), distinct: 0, letters: 0, digits: 0, marks: 0, turns: 0 };
        let mut last = Class::Other;
        for &byte in value {
            traits.distinct += usize::from(!std::mem::replace(&mut seen[usize::from(byte)], true));
            let class = Class::of(byte);
            traits.letters += usize::from(matches!(class, Class::Small | Class::Large));
            traits.digits += usize::from(class == Class::Digit);
            traits.marks += usize::from(class == Class::Other && !b"_-.".contains(&byte));
            let is_turn = class != last
                && class != Class::Other
                && last != Class::Other
                && (last, class) != (Class::Large, Class::Small);
            traits.turns += usize::from(is_turn);
            last = class;
        }
        traits
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Small,
    Large,
    Digit,
    Other,
}

impl Class {
    fn of(byte: u8) -> Class {
        match byte {
            b'a'..=b'z' => Class::Small,
            b'A'..=b'Z' => Class::Large,
            b'0'..=b'9' => Class::Digit,
            _ => Class::Other,
        }
    }
}

/// Returns whether a value is random by itself: names, paths, dates and versions are not.
pub(super) fn is_random(value: &[u8]) -> bool {
    let traits = Traits::of(value);
    traits.distinct >= DISTINCT_MIN && traits.digits > 0 && traits.turns * 5 >= traits.length && !is_made_up(value)
}

/// Returns whether a value is random enough where its first letters say that it is a key.
pub(super) fn is_key_like(value: &[u8]) -> bool {
    let traits = Traits::of(value);
    traits.distinct >= DISTINCT_MIN && traits.turns * 8 >= traits.length && !is_made_up(value)
}

/// Returns whether a value has many different characters, where its first letters leave no doubt.
pub(super) fn is_varied(value: &[u8]) -> bool {
    Traits::of(value).distinct >= DISTINCT_MIN && !is_made_up(value)
}

/// Returns whether somebody may have chosen the value for a password: letters and digits, no word or name.
pub(super) fn is_password_like(value: &[u8], length_min: usize) -> bool {
    let traits = Traits::of(value);
    let is_mixed = traits.letters > 0 && traits.digits + traits.marks > 0;
    traits.length >= length_min && traits.distinct * 2 > length_min && is_mixed && !is_made_up(value)
}

/// Returns whether a value is an id of the form 8-4-4-4-12.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Returns whether a value stands for another: a variable, a placeholder, an example.
pub(super) fn is_made_up(value: &[u8]) -> bool {
    let value = &value[..value.len().min(LOOK_BYTES_MAX)];
    let is_escape = value.get(1..3).is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit));
    let stands_for = value.first().is_none_or(|first| b"$<{*".contains(first) || *first == b'%' && !is_escape)
        || value.windows(2).any(|two| matches!(two, b"${" | b"{{" | b"$(" | b"<%"));
    stands_for
        || placeholders::opens(value)
        || MADE_UP.iter().any(|word| value.windows(word.len()).any(|it| it.eq_ignore_ascii_case(word.as_bytes())))
}

/// Returns the bytes that base64 stands for, in either alphabet; `None` if it isn't any.
pub(super) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let text = &text[..text.len() - padding];
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for four in text.chunks(4) {
        let mut bits = 0u32;
        for &byte in four {
            let six = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(six);
        }
        let [_, first, second, third] = (bits << (6 * (4 - four.len()))).to_be_bytes();
        bytes.extend_from_slice(&[first, second, third][..four.len() - 1]);
    }
    Some(bytes)
}
