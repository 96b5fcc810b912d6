use super::Kind;
use super::bytes::{after, before, is_word, run, run_back, unescaped};
use std::ops::Range;

/// How many groups of digits are read as one number.
const GROUPS_MAX: usize = 8;
const DIGITS_MAX: usize = 24;
/// Card numbers in one group have at least so many digits.
const PLAIN_CARD_DIGITS: usize = 14;
/// How many digits a phone number has, with the code of its country.
const INTERNATIONAL_DIGITS: Range<usize> = 8..16;
/// The same without groups: shorter ones are any numbers with a sign.
const PLAIN_DIGITS: Range<usize> = 10..16;
/// How many digits a phone number has that begins with a zero.
const NATIONAL_DIGITS: Range<usize> = 9..13;

/// Digits in groups, as they stand in a text.
struct Number {
    start: usize,
    has_plus: bool,
    has_bracket: bool,
    digits: Vec<u8>,
    groups: Vec<Group>,
    lengths: Vec<usize>,
}

struct Group {
    /// What stands in front of it; for the first one nothing.
    gap: u8,
    length: usize,
    end: usize,
}

/// Returns the card or phone number that begins at a place.
pub(super) fn at(bytes: &[u8], at: usize) -> Option<(Range<usize>, Kind)> {
    let first = after(bytes, at);
    let is_begin = match first {
        b'+' | b'(' => after(bytes, at + 1).is_ascii_digit() || after(bytes, at + 1) == b'(',
        _ => first.is_ascii_digit(),
    };
    if !is_begin || !stands_free(bytes, at) {
        return None;
    }
    // Most numbers of a text are done with one look.
    let digits = run(bytes, at, DIGITS_MAX, |it| it.is_ascii_digit());
    let is_more = matches!(after(bytes, at + digits), b' ' | b'-' | b'.' | b'/' | b')' | b'(');
    let is_alone = digits < PLAIN_CARD_DIGITS && !is_more || digits == 1 && first != b'1';
    if digits > 0 && is_alone {
        return None;
    }
    let number = Number::read(bytes, at);
    let found = number.card(bytes).map(|end| (end, Kind::Card));
    let (end, kind) = found.or_else(|| number.phone(bytes).map(|end| (end, Kind::Phone)))?;
    Some((number.start..end, kind))
}

/// Whether what begins here is no part of something longer. A placeholder counts as a word that was there.
fn stands_free(bytes: &[u8], at: usize) -> bool {
    let last = before(bytes, at);
    let is_escape = |back: usize| at >= back && unescaped(bytes, at - back) == at;
    let is_part = is_word(last) && !(is_escape(1) || is_escape(2) || is_escape(3) || is_escape(5));
    !is_part && !b".,/:]+#$@*^\\".contains(&last) || is_label(bytes, at)
}

/// Whether a colon behind a word stands here, as in `tel:` or `"phone":`.
fn is_label(bytes: &[u8], at: usize) -> bool {
    let last = || before(bytes, at - 1);
    before(bytes, at) == b':' && (last().is_ascii_alphabetic() || last() == b'"')
}

impl Number {
    fn read(bytes: &[u8], start: usize) -> Number {
        let has_plus = bytes[start] == b'+';
        let digits = Vec::with_capacity(2 * DIGITS_MAX);
        let (groups, lengths) = (Vec::with_capacity(GROUPS_MAX), Vec::with_capacity(GROUPS_MAX));
        let mut number = Number { start, has_plus, has_bracket: false, digits, groups, lengths };
        let mut at = start + usize::from(has_plus);
        while number.groups.len() < GROUPS_MAX && number.digits.len() < DIGITS_MAX {
            let marks = run(bytes, at, 3, |it| b" -./()".contains(&it));
            let gap = &bytes[at..at + marks];
            let is_gap = matches!(gap, b"" | b" " | b"-" | b"." | b"/" | b"(" | b") " | b")" | b" (" | b")-" | b"-(");
            let length = run(bytes, at + marks, DIGITS_MAX, |it| it.is_ascii_digit());
            let is_closed = !gap.contains(&b'(') || after(bytes, at + marks + length) == b')';
            if !is_gap || length == 0 || !is_closed {
                break;
            }
            number.has_bracket |= gap.contains(&b'(');
            number.digits.extend_from_slice(&bytes[at + marks..at + marks + length]);
            at += marks + length;
            let mark = gap.iter().find(|it| **it != b' ').or(gap.first());
            number.lengths.push(length);
            number.groups.push(Group { gap: mark.copied().unwrap_or(0), length, end: at });
        }
        number
    }

    /// Returns where a card number ends: digits in one group, or in those that cards have, with a right checksum.
    fn card(&self, bytes: &[u8]) -> Option<usize> {
        let lengths = &self.lengths;
        let groups = match lengths[..] {
            [4, 4, 4, 4, ..] => 4,
            [4, 6, 5 | 4, ..] => 3,
            [PLAIN_CARD_DIGITS..=16, ..] => 1,
            _ => return None,
        };
        let gap = self.groups.get(1).map_or(0, |group| group.gap);
        let is_even = groups == 1 || b" -".contains(&gap) && self.groups[1..groups].iter().all(|it| it.gap == gap);
        let digits = &self.digits[..lengths[..groups].iter().sum()];
        let end = self.groups[groups - 1].end;
        let is_card = is_even && !self.has_plus && is_issued(digits) && checksum(digits) && ends_free(bytes, end);
        is_card.then_some(end)
    }

    fn phone(&self, bytes: &[u8]) -> Option<usize> {
        let groups = if self.has_plus { self.international()? } else { self.national()? };
        if groups == 5 && self.is_pairs() && is_in_dump(bytes, self.start, self.groups[4].end) {
            return None;
        }
        let end = self.groups[groups - 1].end;
        let next = (after(bytes, end), after(bytes, end + 1));
        // More digits, or what was found there and is a placeholder now.
        let goes_on = !self.has_plus && b" -./".contains(&next.0) && (next.1.is_ascii_digit() || next.1 == b'[');
        (ends_free(bytes, end) && !goes_on).then_some(end)
    }

    /// How many groups belong to a number with the code of its country.
    fn international(&self) -> Option<usize> {
        let allowed = if self.groups.len() == 1 { PLAIN_DIGITS } else { INTERNATIONAL_DIGITS };
        let mut digits = 0;
        let sums = self.groups.iter().map(|group| {
            digits += group.length;
            digits
        });
        let groups = sums.take_while(|sum| *sum < allowed.end).count();
        let digits: usize = self.groups[..groups].iter().map(|group| group.length).sum();
        let is_known = match self.digits.first()? {
            b'0' => false,
            b'1' => digits == 11,
            _ => allowed.contains(&digits) && !self.is_date(),
        };
        is_known.then_some(groups)
    }

    /// How many groups belong to a number as it is dialled within a country.
    fn national(&self) -> Option<usize> {
        let lengths = &self.lengths;
        let gaps: Vec<u8> = self.groups.iter().skip(1).map(|group| group.gap).collect();
        let is_one = |gaps: &[u8], marks: &[u8]| gaps.iter().all(|gap| marks.contains(gap) && *gap == gaps[0]);
        // North America: three, three and four digits, perhaps a one in front.
        let (long, rest) = match lengths[..] {
            [3, 3, 4, ..] => (0, 3),
            [1, 3, 3, 4, ..] if self.digits[0] == b'1' => (1, 4),
            _ => (0, 0),
        };
        if rest > 0 && self.digits[long] > b'1' && self.digits[long + 3] > b'1' {
            let is_gap = self.has_bracket || is_one(&gaps[..rest - 1], b"-.");
            return is_gap.then_some(rest);
        }
        // Elsewhere: a zero, the code of a place, and one to four groups.
        let is_zero = self.digits.first() == Some(&b'0') && self.digits.get(1).is_some_and(|it| *it != b'0');
        let is_pairs = self.is_pairs() && is_one(&gaps, b" .-") && !self.counts_up();
        let is_place = (2..=5).contains(&lengths.len())
            && (2..=5).contains(&lengths[0])
            && lengths.iter().all(|length| (2..=8).contains(length))
            && !self.is_pairs()
            && b" -/)".contains(&gaps[0])
            && is_one(&gaps[1..], b" -");
        let is_long = NATIONAL_DIGITS.contains(&self.digits.len());
        (is_zero && is_long && (is_pairs || is_place)).then_some(lengths.len())
    }

    fn is_pairs(&self) -> bool {
        self.lengths == [2; 5]
    }

    /// Whether it is a year with a sign, a month and a day.
    fn is_date(&self) -> bool {
        matches!(self.lengths[..], [_, 1..=2, 1..=2]) && self.groups[1..].iter().all(|group| group.gap == b'-')
    }

    /// Whether the pairs are 01 02 03 and so on.
    fn counts_up(&self) -> bool {
        let pair = |pair: &[u8]| (pair[0] - b'0') * 10 + pair[1] - b'0';
        self.digits.chunks(2).zip(self.digits[2..].chunks(2)).all(|(one, next)| pair(one) + 1 == pair(next))
    }
}

/// Whether pairs of digits go on as hexadecimal ones, before or behind.
fn is_in_dump(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_pair = |pair: &[u8]| pair.iter().all(u8::is_ascii_hexdigit) && pair.iter().any(u8::is_ascii_digit);
    let spaces = run_back(bytes, start, GROUPS_MAX, |it| it.is_ascii_whitespace());
    let is_before = spaces > 0 && start - spaces >= 2 && is_pair(&bytes[start - spaces - 2..start - spaces]);
    let next = end + run(bytes, end, GROUPS_MAX, |it| it.is_ascii_whitespace());
    let is_behind = next > end && bytes.get(next..next + 2).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
    is_before || is_behind && !after(bytes, next + 2).is_ascii_alphanumeric()
}

fn ends_free(bytes: &[u8], end: usize) -> bool {
    let (next, second) = (after(bytes, end), after(bytes, end + 1));
    !is_word(next) && next != b'[' && !(matches!(next, b'.' | b',' | b':' | b'/') && second.is_ascii_alphanumeric())
}

/// Whether a company hands out cards whose numbers begin like that.
fn is_issued(digits: &[u8]) -> bool {
    let first = digits[..4].iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    let is_varied = digits.iter().any(|digit| *digit != digits[0]);
    let lengths = match first {
        3400..=3499 | 3700..=3799 => 15..=15,
        3000..=3059 | 3600..=3699 | 3800..=3999 => 14..=14,
        2221..=2720 | 3528..=3589 | 4000..=4999 | 5100..=5599 | 6011 | 6200..=6299 | 6440..=6599 => 16..=16,
        _ => return false,
    };
    is_varied && lengths.contains(&digits.len())
}

/// Luhn's checksum: every second digit from the right counts twice.
fn checksum(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit - b'0') * (1 + at as u32 % 2);
            digit / 10 + digit % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Countries and how long their account numbers are.
const COUNTRIES: [(&[u8; 2], usize); 46] = [
    (b"AD", 24),
    (b"AE", 23),
    (b"AT", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BR", 29),
    (b"CH", 21),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DK", 18),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"KZ", 20),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"MC", 27),
    (b"MT", 31),
    (b"NL", 18),
    (b"NO", 15),
    (b"PL", 28),
    (b"PT", 25),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"TR", 26),
    (b"UA", 29),
];

/// Returns the account number that begins at a place, in one piece or in groups of four.
pub(super) fn iban(bytes: &[u8], at: usize) -> Option<(Range<usize>, Kind)> {
    let head = bytes.get(at..at + 4)?;
    if !(head[0].is_ascii_uppercase() && head[2].is_ascii_digit() && head[3].is_ascii_digit()) {
        return None;
    }
    let (_, length) = COUNTRIES.iter().find(|(country, _)| head.starts_with(&country[..]))?;
    let (mut remainder, mut count, mut end) = (0, 0, at);
    // The first four characters count as if they stood at the end.
    let mut moved = [0; 4];
    while count < *length {
        let is_gap = count > 0 && count.is_multiple_of(4) && after(bytes, end) == b' ';
        end += usize::from(is_gap);
        let byte = *bytes.get(end).filter(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())?;
        match moved.get_mut(count) {
            Some(place) => *place = byte,
            None => remainder = appended(remainder, byte),
        }
        (count, end) = (count + 1, end + 1);
    }
    let remainder = moved.into_iter().fold(remainder, appended);
    let is_whole = !is_word(before(bytes, at)) || unescaped(bytes, at.saturating_sub(1)) == at;
    (remainder == 1 && is_whole && !is_word(after(bytes, end))).then_some((at..end, Kind::Iban))
}

/// The remainder by 97 after one more character; letters count as two digits.
fn appended(remainder: u32, byte: u8) -> u32 {
    match byte {
        b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
        _ => (remainder * 100 + u32::from(byte - b'A') + 10) % 97,
    }
}
