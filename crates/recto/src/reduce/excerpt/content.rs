//! What a line says: the things in it that somebody could mention again, as numbers.
//!
//! Five kinds: names (paths, identifiers, long words), numbers, strings in quotes, three words in a row, and the line
//! itself, which is what an exact edit copies. Nothing is weighed by how rare it is: what stands elsewhere on the page
//! counts nothing anyway, so common words vanish by themselves.

use crate::reduce::words::mixed;

/// The kinds, in the low bits of every content.
pub(super) const KINDS: usize = 5;
const NAME: u64 = 0;
const NUMBER: u64 = 1;
const QUOTED: u64 = 2;
const WORDS: u64 = 3;
const LINE: u64 = 4;
/// How many bits tell the kind.
const KIND_BITS: u32 = 3;

/// Words of this many letters count as names whatever they are made of.
const LONG_WORD: usize = 12;
/// The shortest run of three words, in bytes, that says something.
const WORDS_MIN: usize = 12;
/// The shortest line that is worth copying, in bytes.
const LINE_MIN: usize = 12;
/// The longest name, in bytes; what is longer is data.
const NAME_MAX: usize = 160;
/// How long a string in quotes may be, in bytes.
const QUOTED_LENGTH: std::ops::RangeInclusive<usize> = 3..=120;
/// Of a longer line only this much is looked at, in bytes: minified code, data.
const LINE_BYTES_MAX: usize = 4_096;

/// Returns the kind of a content.
pub(super) fn kind(content: u64) -> usize {
    (content & ((1 << KIND_BITS) - 1)) as usize
}

/// Adds what a line says, each thing once.
pub(super) fn read(line: &str, found: &mut Vec<u64>) {
    let line = line.trim();
    let start = found.len();
    if line.len() >= LINE_MIN {
        found.push(number(LINE, line.as_bytes()));
    }
    let line = &line[..line.floor_char_boundary(LINE_BYTES_MAX)];
    names(line, found);
    numbers(line, found);
    quoted(line, found);
    words(line, found);
    found[start..].sort_unstable();
    let mut kept = start;
    for at in start..found.len() {
        if at == start || found[at] != found[kept - 1] {
            found[kept] = found[at];
            kept += 1;
        }
    }
    found.truncate(kept);
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_joint(byte: u8) -> bool {
    matches!(byte, b'.' | b'/' | b':' | b'@' | b'#' | b'-')
}

fn names(line: &str, found: &mut Vec<u64>) {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let run = bytes[at..].iter().take_while(|byte| is_word(**byte) || is_joint(**byte)).count();
        let trailing = bytes[at..at + run].iter().rev().take_while(|byte| !is_word(**byte)).count();
        let name = &bytes[at..at + run - trailing];
        if is_name(name) {
            found.push(number(NAME, name));
        }
        at += run;
    }
}

/// Whether a word is more than a word: it has a joint, digits among letters, capitals inside, or great length.
fn is_name(word: &[u8]) -> bool {
    let has = |is: fn(u8) -> bool| word.iter().any(|byte| is(*byte));
    let has_joint = has(|byte| byte == b'_' || is_joint(byte));
    let is_mixed = has(|byte| byte.is_ascii_digit()) && has(|byte| byte.is_ascii_alphabetic());
    let has_hump = word.iter().skip(1).any(u8::is_ascii_uppercase) && has(|byte| byte.is_ascii_lowercase());
    let length = word.len();
    length <= NAME_MAX && (length >= LONG_WORD || (length >= 4 && (has_joint || is_mixed)) || (length >= 5 && has_hump))
}

fn numbers(line: &str, found: &mut Vec<u64>) {
    for run in line.split(|letter: char| !letter.is_ascii_digit() && letter != '.') {
        let digits = run.trim_matches('.');
        if digits.len() >= 2 {
            found.push(number(NUMBER, digits.as_bytes()));
        }
    }
}

fn quoted(line: &str, found: &mut Vec<u64>) {
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`');
    let bytes = line.as_bytes();
    let mut at = 0;
    while let Some(open) = bytes[at..].iter().position(|byte| is_quote(*byte)).map(|found| at + found) {
        let inside = bytes[open + 1..].iter().take(QUOTED_LENGTH.end() + 1).position(|byte| is_quote(*byte));
        at = match inside {
            Some(length) if QUOTED_LENGTH.contains(&length) => {
                found.push(number(QUOTED, &bytes[open + 1..open + 1 + length]));
                open + length + 2
            }
            _ => open + 1,
        };
    }
}

fn words(line: &str, found: &mut Vec<u64>) {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut last: [&[u8]; 3] = [&[]; 3];
    for word in line.split(|letter| !is_part(letter)).filter(|word| !word.is_empty()) {
        last = [last[1], last[2], word.as_bytes()];
        let length: usize = last.iter().map(|word| word.len()).sum::<usize>() + 2;
        if !last[0].is_empty() && length >= WORDS_MIN {
            let joined = last.iter().fold(OFFSET, |sum, word| sum.rotate_left(7) ^ hash(OFFSET, word));
            found.push(marked(WORDS, joined));
        }
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Eight bytes at a time: a page has millions of them, and no adversary gains by a collision but a line more or less.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    let mut sum = seed ^ bytes.len() as u64;
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("a chunk has eight bytes"));
        sum = (sum ^ word).wrapping_mul(PRIME).rotate_left(29);
    }
    for byte in chunks.remainder() {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
    sum
}

fn number(kind: u64, bytes: &[u8]) -> u64 {
    marked(kind, hash(OFFSET, bytes))
}

/// Spreads a hash over all bits, and puts the kind into the lowest.
fn marked(kind: u64, sum: u64) -> u64 {
    (mixed(sum) << KIND_BITS) | kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(line: &str) -> [usize; KINDS] {
        let mut found = Vec::new();
        read(line, &mut found);
        let mut count = [0; KINDS];
        found.iter().for_each(|content| count[kind(*content)] += 1);
        count
    }

    #[test]
    fn every_kind_is_found() {
        assert_eq!(kinds("see src/view.rs"), [1, 0, 0, 1, 1]);
        assert_eq!(kinds("port 8080, 3.14 and 7"), [1, 2, 0, 0, 1]);
        assert_eq!(kinds("say \"hello you\""), [0, 0, 1, 1, 1]);
        assert_eq!(kinds("return x"), [0, 0, 0, 0, 0]);
        assert_eq!(kinds("HashMap"), [1, 0, 0, 0, 0]);
        assert_eq!(kinds(""), [0; KINDS]);
    }

    #[test]
    fn the_same_thing_twice_is_one_and_spaces_around_a_line_are_none_of_it() {
        assert_eq!(kinds("a_b_c a_b_c").to_vec()[0], 1);
        let of = |line: &str| {
            let mut found = Vec::new();
            read(line, &mut found);
            found
        };
        assert_eq!(of("   let total = 1;\t"), of("let total = 1;"));
        assert_ne!(of("let total = 1;"), of("let total = 2;"));
    }

    #[test]
    fn odd_lines_are_read_without_harm() {
        for line in ["'", "\"\"", "\u{feff}…", "'é'é'é'", "a.b.c.", "....", "\\\\\\", "字字字字字字字字字字字字字"]
        {
            kinds(line);
        }
        let long = "x".repeat(LINE_BYTES_MAX - 1) + "é and more";
        assert_eq!(kinds(&long)[4], 1);
    }
}
