use super::{Found, Kind, kind};
use crate::digest::{Digest, Hasher};
use std::ops::Range;

const OPENINGS: [&str; 2] = ["[secret:", "[personal:"];
/// How many letters and digits the tag of a placeholder may have, and how many ours has: some thirty million are enough
/// for the values of a conversation to be told apart.
const TAG_LETTERS_MAX: usize = 10;
const TAG_LETTERS: usize = 5;
/// Without vowels, so that no tag is a word.
const LETTERS: &[u8; 31] = b"0123456789bcdfghjklmnpqrstvwxyz";

/// Returns what stands for a value, such as `[secret:jwt#k7q2m]`: the same for the same value under the same key. The tag
/// tells nothing to whoever doesn't know the key. Phone and card numbers are few enough to try them all: the key must stay
/// as secret as the log.
pub(super) fn of(key: Digest, kind: &Kind, value: &str) -> String {
    let mut hasher = Hasher::new();
    hasher.digest(key);
    hasher.text(kind.name());
    hasher.text(value);
    let [first, second, third, fourth, ..] = hasher.finish().to_bytes();
    let mut bits = u32::from_be_bytes([first, second, third, fourth]);
    let mut tag = String::with_capacity(TAG_LETTERS);
    for _ in 0..TAG_LETTERS {
        tag.push(char::from(LETTERS[bits as usize % LETTERS.len()]));
        bits /= LETTERS.len() as u32;
    }
    let group = if kind.is_personal() { "personal" } else { "secret" };
    format!("[{group}:{}#{tag}]", kind.name())
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
    let is_tag = |it: &&u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let tag = rest.iter().take(TAG_LETTERS_MAX + 1).take_while(is_tag).count();
    let is_whole = (1..=kind::NAME_BYTES_MAX).contains(&name)
        && (1..=TAG_LETTERS_MAX).contains(&tag)
        && rest.get(tag) == Some(&b']');
    is_whole.then(|| at..at + opening.len() + name + 1 + tag + 1)
}
