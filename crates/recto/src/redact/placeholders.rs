use super::{Found, Kind, kind};
use crate::digest::{Digest, Hasher};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

const OPENINGS: [&str; 2] = ["[secret:", "[personal:"];
/// How many digits the number of a placeholder may have.
const DIGITS_MAX: usize = 10;

/// Which value has which number: of each kind, in the order of first appearance.
///
/// Values are kept as digests under a key, so that the map tells nobody what they were. Phone and card numbers are few
/// enough to try them all: the key must stay as secret as the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placeholders {
    key: Digest,
    numbers: BTreeMap<String, BTreeMap<Digest, u32>>,
}

impl Placeholders {
    /// Returns a map without values; a conversation has one key for all its life.
    pub fn keyed(key: Digest) -> Placeholders {
        Placeholders { key, numbers: BTreeMap::new() }
    }

    /// Returns what stands for a value, such as `[secret:jwt#2]`; a value that is new gets the next number.
    pub fn of(&mut self, kind: &Kind, value: &str) -> String {
        let mut hasher = Hasher::new();
        hasher.digest(self.key);
        hasher.text(kind.name());
        hasher.text(value);
        let numbers = self.numbers.entry(kind.name().to_owned()).or_default();
        let next = numbers.len() as u32 + 1;
        let number = numbers.entry(hasher.finish()).or_insert(next);
        let group = if kind.is_personal() { "personal" } else { "secret" };
        format!("[{group}:{}#{number}]", kind.name())
    }
}

/// Leaves out of what was found what is a placeholder already.
pub(super) fn spare(text: &str, found: Vec<Found>) -> Vec<Found> {
    if found.is_empty() || !OPENINGS.iter().any(|opening| text.contains(opening)) {
        return found;
    }
    let mut spared = Vec::with_capacity(found.len());
    let mut placeholders = text.match_indices('[').filter_map(|(at, _)| placeholder(text, at)).peekable();
    for Found { mut range, kind } in found {
        while let Some(next) = placeholders.peek().filter(|next| next.start < range.end).cloned() {
            if next.start > range.start {
                spared.push(Found { range: range.start..next.start, kind: kind.clone() });
            }
            range.start = range.start.max(next.end);
            if next.end > range.end {
                break;
            }
            placeholders.next();
        }
        if range.start < range.end {
            spared.push(Found { range, kind });
        }
    }
    spared
}

/// Returns whether a text begins as a placeholder does.
pub(super) fn opens(text: &[u8]) -> bool {
    OPENINGS.iter().any(|opening| text.starts_with(opening.as_bytes()))
}

fn placeholder(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = &text[at..];
    let opening = OPENINGS.iter().find(|opening| rest.starts_with(**opening))?;
    let rest = &rest.as_bytes()[opening.len()..];
    let is_name = |it: &&u8| it.is_ascii_lowercase() || it.is_ascii_digit() || **it == b'_';
    let name = rest.iter().take(kind::NAME_BYTES_MAX + 1).take_while(is_name).count();
    let rest = rest.get(name..)?.strip_prefix(b"#")?;
    let digits = rest.iter().take(DIGITS_MAX + 1).take_while(|it| it.is_ascii_digit()).count();
    let is_whole = (1..=kind::NAME_BYTES_MAX).contains(&name)
        && (1..=DIGITS_MAX).contains(&digits)
        && rest.get(digits) == Some(&b']');
    is_whole.then(|| at..at + opening.len() + name + 1 + digits + 1)
}
