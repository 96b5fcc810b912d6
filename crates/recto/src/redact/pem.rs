use super::bytes::{after, run};
use std::ops::Range;

/// How long the first line may be.
const TITLE_BYTES_MAX: usize = 80;
/// How long a key may be, with its first and last line: the largest that are in use have a fifth of it.
const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// How many lines such as `Proc-Type: …` may stand in front of the key.
const HEADERS_MAX: usize = 8;
const HEADER_BYTES_MAX: usize = 200;
/// A first line of the key that is shorter is an example.
const FIRST_LINE_BYTES_MIN: usize = 16;

/// Returns the private key whose first line begins with a word; without a last line, as far as it goes.
pub(super) fn block(bytes: &[u8], word: Range<usize>) -> Option<Range<usize>> {
    let at = word.start;
    if !bytes[word].starts_with(b"-----BEGIN") {
        return None;
    }
    let title = at + b"-----BEGIN".len();
    let length = run(bytes, title, TITLE_BYTES_MAX, |it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b' ');
    let title = &bytes[title..title + length];
    let is_private = title.windows(11).any(|it| it == b"PRIVATE KEY");
    let body = at + b"-----BEGIN".len() + length;
    if !is_private || !bytes[body..].starts_with(b"-----") {
        return None;
    }
    let end = past_headers(bytes, body + 5);
    if run(bytes, end, FIRST_LINE_BYTES_MIN, is_base64) < FIRST_LINE_BYTES_MIN {
        return None;
    }
    Some(at..past_lines(bytes, end, at + BLOCK_BYTES_MAX))
}

/// Where the key itself begins.
fn past_headers(bytes: &[u8], from: usize) -> usize {
    let mut at = from + gap(bytes, from);
    for _ in 0..HEADERS_MAX {
        let name = run(bytes, at, HEADER_BYTES_MAX, |it| it.is_ascii_alphabetic() || it == b'-');
        if name == 0 || !bytes[at + name..].starts_with(b": ") {
            break;
        }
        at += run(bytes, at, HEADER_BYTES_MAX, |it| it != b'\n' && it != b'\\');
        at += gap(bytes, at);
    }
    at
}

/// Where the block ends whose first line of base64 begins at a place.
fn past_lines(bytes: &[u8], from: usize, until: usize) -> usize {
    let mut end = from;
    while end < until {
        end += run(bytes, end, BLOCK_BYTES_MAX, is_base64);
        let next = end + gap(bytes, end);
        if bytes[next..].starts_with(b"-----END") {
            return past_last_line(bytes, next);
        }
        let line = run(bytes, next, FIRST_LINE_BYTES_MIN, is_base64);
        // Only the last line is short; words that follow are none.
        let past = next + line;
        let is_last = past == bytes.len() || bytes[past + gap(bytes, past)..].starts_with(b"-----END");
        if line == 0 || line < FIRST_LINE_BYTES_MIN && !is_last {
            break;
        }
        end = next;
    }
    end
}

fn past_last_line(bytes: &[u8], at: usize) -> usize {
    let end = at + b"-----END".len();
    let end = end + run(bytes, end, TITLE_BYTES_MAX, |it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b' ');
    end + run(bytes, end, 5, |it| it == b'-')
}

/// How much stands between two lines: line breaks, also escaped ones, spaces, and what quotes and comments add.
fn gap(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at - from < HEADER_BYTES_MAX {
        at += match (after(bytes, at), after(bytes, at + 1)) {
            (b'\\', b'n' | b'r') => 2,
            _ if at >= bytes.len() => break,
            (b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'+' | b'>' | b'|' | b'\\', _) => 1,
            _ => break,
        };
    }
    at - from
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
