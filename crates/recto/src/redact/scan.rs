use super::bytes::{after, run, unescaped};
use super::kind::Kinds;
use super::{Found, Kind, assigned, keys, number, pem, web};
use std::ops::Range;

/// No key is shorter than this, with its first letters.
const KEY_BYTES_MIN: usize = 15;

/// What is to be known of a byte. Letters, digits, `_`, `-` and `.` are read as words.
const WORD: u8 = 1;
/// Something may begin or stand at it.
const LOOK: u8 = 2;

/// Most bytes of a text are passed over with one look.
const fn looks(is_personal: bool) -> [u8; 256] {
    let mut looks = [0; 256];
    let mut at = 0;
    while at < 256 {
        looks[at] = match at as u8 {
            // `--option`, a block of lines; `Bearer`, `Basic`.
            b'-' | b'b' | b'B' => WORD | LOOK,
            b'0'..=b'9' if is_personal => WORD | LOOK,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'.' => WORD,
            b'=' | b':' => LOOK,
            b'@' | b'+' | b'(' if is_personal => LOOK,
            _ => 0,
        };
        at += 1;
    }
    looks
}

static SECRETS: [u8; 256] = looks(false);
static ALL: [u8; 256] = looks(true);

/// Returns what detectors of these kinds find; spans may overlap.
///
/// Where a word ends can't be foreseen, and a processor that guesses wrong at each of them does little else. So the walk
/// goes byte by byte, and turns aside only where something may be, or when a word gets as long as a key.
pub(super) fn scan(text: &str, kinds: Kinds) -> Vec<Found> {
    let bytes = text.as_bytes();
    let is_personal = kinds.meets(Kinds::PERSONAL);
    let mut found = Hits { text, kinds, found: Vec::new() };
    if kinds.is_empty() {
        return found.found;
    }
    let looks = if is_personal { &ALL } else { &SECRETS };
    // Where the word begins that is being read.
    let (mut at, mut start) = (0, 0);
    while at < bytes.len() {
        let look = looks[usize::from(bytes[at])];
        start = if look & WORD == 0 { at + 1 } else { start };
        // Behind a word it is negative, and so larger than anything.
        let is_long = at.wrapping_sub(start) == KEY_BYTES_MIN - 1;
        if (look & LOOK != 0 || is_long)
            && let Some(next) = turn_aside(bytes, start, at, look, is_long, &mut found)
        {
            (at, start) = (next, next);
            continue;
        }
        at += 1;
    }
    found.found
}

/// Looks at a place, and returns where to go on if that isn't behind it.
fn turn_aside(bytes: &[u8], start: usize, at: usize, look: u8, is_long: bool, found: &mut Hits<'_>) -> Option<usize> {
    if look & LOOK != 0 {
        match bytes[at] {
            b'=' | b':' => {
                found.add(assigned::at(bytes, at));
                found.add(web::password(bytes, at));
            }
            b'@' => found.add(web::email(bytes, at)),
            b'+' | b'(' => found.add(number::at(bytes, at)),
            // The first letters of a word may belong to an escape in front of it.
            b'-' if after(bytes, at + 1) == b'-' && unescaped(bytes, start) == at => {
                let word = at..word_end(bytes, at);
                if let Some(block) = pem::block(bytes, word.clone()) {
                    let end = block.end;
                    found.add(Some((block, Kind::PrivateKey)));
                    return Some(end);
                }
                found.add(assigned::option(bytes, word));
            }
            b'0'..=b'9' => digit(bytes, start, at, found),
            b'b' | b'B' if unescaped(bytes, start) == at => scheme(bytes, start, at, found),
            _ => {}
        }
    }
    if !is_long {
        return None;
    }
    let end = word_end(bytes, at);
    keys_in(bytes, start..end, found);
    Some(end)
}

/// Looks at a digit: a number may begin with it, or an account number have it behind the letters of its country. The first
/// letters of a word may belong to an escape in front of it.
fn digit(bytes: &[u8], start: usize, at: usize, found: &mut Hits<'_>) {
    match at.checked_sub(unescaped(bytes, start)) {
        Some(0) => found.add(number::at(bytes, at)),
        Some(2) => found.add(number::iban(bytes, at - 2)),
        _ => {}
    }
}

/// Looks at the first letter of a word that may be `Bearer` or `Basic`.
fn scheme(bytes: &[u8], start: usize, at: usize, found: &mut Hits<'_>) {
    let rest = &bytes[at + 1..];
    let goes_on = |name: &[u8]| rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name);
    if goes_on(b"earer ") || goes_on(b"asic ") {
        found.add(assigned::scheme(bytes, start..word_end(bytes, at)));
    }
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    at + run(bytes, at, usize::MAX, |byte| SECRETS[usize::from(byte)] & WORD != 0)
}

struct Hits<'t> {
    text: &'t str,
    kinds: Kinds,
    found: Vec<Found>,
}

impl Hits<'_> {
    #[inline]
    fn add(&mut self, hit: Option<(Range<usize>, Kind)>) {
        if let Some((range, kind)) = hit {
            self.add_if_wanted(range, kind);
        }
    }

    fn add_if_wanted(&mut self, range: Range<usize>, kind: Kind) {
        if !self.kinds.contains(&kind) {
            return;
        }
        // Detectors look at bytes; here it is made sure that no character is split, whatever they say.
        let range = self.text.floor_char_boundary(range.start)..self.text.ceil_char_boundary(range.end);
        self.found.push(Found { range, kind });
    }
}

/// Tries each place of a word where a key may begin: no letter or digit stands in front of it.
fn keys_in(bytes: &[u8], word: Range<usize>, found: &mut Hits<'_>) {
    let mut at = unescaped(bytes, word.start);
    while at + KEY_BYTES_MIN <= word.end {
        match keys::at(bytes, at, word.end) {
            Some((range, kind)) => {
                at = range.end;
                let secret = (kind == Kind::AwsKeyId).then(|| keys::aws_secret(bytes, at)).flatten();
                found.add(Some((range, kind)));
                found.add(secret);
            }
            None => at += run(bytes, at, word.end - at, |it| it.is_ascii_alphanumeric()),
        }
        at += run(bytes, at, word.end.saturating_sub(at), |it| !it.is_ascii_alphanumeric());
    }
}
