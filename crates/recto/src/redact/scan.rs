use super::bytes::{after, run, unescaped};
use super::{Found, Kind, assigned, keys, number, pem, web};
use std::collections::BTreeSet;
use std::ops::Range;

/// No key is shorter than this, with its first letters.
const KEY_BYTES_MIN: usize = 15;

/// What the walk does at a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Pass,
    /// Letters, digits, `_`, `-` and `.` are read as one word.
    Word,
    /// `=` or `:` may stand between a name and a value, and begin an address.
    Assign,
    /// `@` may stand in an e-mail address.
    At,
    /// `+` or `(` may begin a phone number.
    Phone,
}

const STEPS: [Step; 256] = {
    let mut steps = [Step::Pass; 256];
    let mut at = 0;
    while at < 256 {
        steps[at] = match at as u8 {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' | b'.' => Step::Word,
            b'=' | b':' => Step::Assign,
            b'@' => Step::At,
            b'+' | b'(' => Step::Phone,
            _ => Step::Pass,
        };
        at += 1;
    }
    steps
};

/// Returns what detectors of these kinds find; spans may overlap.
pub(super) fn scan(text: &str, kinds: &BTreeSet<Kind>) -> Vec<Found> {
    let bytes = text.as_bytes();
    let is_personal = kinds.iter().any(Kind::is_personal);
    let mut found = Hits { text, kinds, found: Vec::new() };
    if kinds.is_empty() {
        return found.found;
    }
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && STEPS[usize::from(bytes[at])] == Step::Word {
            at += 1;
        }
        if at > start {
            at = word(bytes, start..at, is_personal, &mut found);
        }
        match bytes.get(at).map_or(Step::Pass, |byte| STEPS[usize::from(*byte)]) {
            Step::Assign => {
                found.add(assigned::at(bytes, at));
                found.add(web::password(bytes, at));
            }
            Step::At if is_personal => found.add(web::email(bytes, at)),
            Step::Phone if is_personal => found.add(number::at(bytes, at)),
            // Behind a private key a word may begin.
            Step::Word => continue,
            Step::Pass | Step::At | Step::Phone => {}
        }
        at += 1;
    }
    found.found
}

struct Hits<'k> {
    text: &'k str,
    kinds: &'k BTreeSet<Kind>,
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

/// Looks at a word, and returns where to go on. Most words are neither long nor followed by what tells anything.
#[inline]
fn word(bytes: &[u8], range: Range<usize>, is_personal: bool, found: &mut Hits<'_>) -> usize {
    let (first, last) = (bytes[range.start], bytes[range.end - 1]);
    if first == b'-' && range.len() > 2 {
        if let Some(block) = pem::block(bytes, range.clone()) {
            let end = block.end;
            found.add(Some((block, Kind::PrivateKey)));
            return end;
        }
        found.add(assigned::option(bytes, range.clone()));
    }
    if matches!(last, b'r' | b'R' | b'c' | b'C') && after(bytes, range.end) == b' ' {
        found.add(assigned::scheme(bytes, range.clone()));
    }
    if range.len() >= KEY_BYTES_MIN {
        keys_in(bytes, range.clone(), found);
    }
    if is_personal {
        let start = unescaped(bytes, range.start);
        match after(bytes, start) {
            b'0'..=b'9' => found.add(number::at(bytes, start)),
            b'A'..=b'Z' => found.add(number::iban(bytes, start)),
            _ => {}
        }
    }
    range.end
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
