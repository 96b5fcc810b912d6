use super::bytes::{run, unescaped};
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
        match STEPS[usize::from(bytes[at])] {
            Step::Pass => {}
            Step::Word => {
                let end = at + bytes[at..].iter().take_while(|it| STEPS[usize::from(**it)] == Step::Word).count();
                at = word(bytes, at..end, is_personal, &mut found);
                continue;
            }
            Step::Assign => {
                found.add(assigned::at(bytes, at));
                found.add(web::password(bytes, at));
            }
            Step::At if is_personal => found.add(web::email(bytes, at)),
            Step::Phone if is_personal => found.add(number::at(bytes, at)),
            Step::At | Step::Phone => {}
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
    fn add(&mut self, hit: Option<(Range<usize>, Kind)>) {
        let Some((range, kind)) = hit.filter(|(_, kind)| self.kinds.contains(kind)) else { return };
        // Detectors look at bytes; here it is made sure that no character is split, whatever they say.
        let range = self.text.floor_char_boundary(range.start)..self.text.ceil_char_boundary(range.end);
        self.found.push(Found { range, kind });
    }
}

/// Looks at a word, and returns where to go on.
fn word(bytes: &[u8], range: Range<usize>, is_personal: bool, found: &mut Hits<'_>) -> usize {
    let whole = &bytes[range.clone()];
    if whole.starts_with(b"-----BEGIN") {
        if let Some(block) = pem::block(bytes, range.start) {
            let end = block.end;
            found.add(Some((block, Kind::PrivateKey)));
            return end;
        }
    } else if whole.starts_with(b"--") {
        found.add(assigned::option(bytes, range.clone()));
    } else {
        found.add(assigned::scheme(bytes, range.clone()));
    }
    if whole.len() >= KEY_BYTES_MIN {
        keys_in(bytes, range.clone(), found);
    }
    if is_personal {
        let start = unescaped(bytes, range.start);
        found.add(number::at(bytes, start));
        found.add(number::iban(bytes, start));
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
