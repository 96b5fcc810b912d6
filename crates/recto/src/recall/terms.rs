//! Terms: what a text can be found by.
//!
//! Words by their stems, without the commonest; identifiers whole and in their parts; Chinese, Japanese and Korean, which
//! has no spaces or little use for them, by each two characters in a row. A query and a text are read the same way.

use super::stem::stem;

/// Longer words are taken for data; they are found by their first so many characters.
const WORD_CHARS_MAX: usize = 64;
/// Words that say nothing of what a text is about.
const STOP: [&str; 56] = [
    "a", "an", "and", "are", "as", "at", "be", "been", "by", "can", "could", "d", "did", "do", "does", "for", "from",
    "had", "has", "have", "he", "how", "i", "in", "is", "it", "may", "might", "no", "not", "of", "on", "or", "s",
    "she", "should", "t", "that", "the", "they", "this", "to", "was", "we", "were", "what", "when", "where", "which",
    "who", "whom", "why", "will", "with", "would", "you",
];

/// Calls a function with every term of a text, in order.
pub fn each(text: &str, mut take: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if run.chars().any(is_unspaced) {
            mixed(run, &mut take)
        } else {
            identifier(run, &mut take)
        }
        rest = after;
    }
}

/// Returns the terms of a text, in order.
pub fn of(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each(text, |term| terms.push(term.to_string()));
    terms
}

/// Returns the words of a text as they are written, with where each begins.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(char::is_alphanumeric)?;
        let end = text[start..].find(|c: char| !c.is_alphanumeric()).map_or(text.len(), |end| start + end);
        at = end;
        Some((start, &text[start..end]))
    })
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a script writes words without spaces, or a word is too long a unit in it.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c), 0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3040..=0x30ff | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0xff66..=0xff9d | 0x20000..=0x3ffff)
}

/// A run in which a script without spaces stands: beside others, perhaps.
fn mixed(run: &str, take: &mut impl FnMut(&str)) {
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let is_same = is_unspaced(first);
        let end = rest.find(|c| is_unspaced(c) != is_same).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        if is_same {
            pairs(piece, take)
        } else {
            identifier(piece, take)
        }
        rest = after;
    }
}

fn pairs(run: &str, take: &mut impl FnMut(&str)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    if starts.len() == 2 {
        take(run);
    }
    starts.windows(3).for_each(|pair| take(&run[pair[0]..pair[2]]));
}

/// A word, or an identifier of several.
fn identifier(run: &str, take: &mut impl FnMut(&str)) {
    let run = run.trim_matches('_');
    if run.is_empty() {
        return;
    }
    let run = run.char_indices().nth(WORD_CHARS_MAX).map_or(run, |(end, _)| &run[..end]);
    let parts = parts(run);
    if parts.len() > 1 {
        take(&run.to_lowercase());
    }
    parts.into_iter().for_each(|part| word(part, take));
}

fn word(word: &str, take: &mut impl FnMut(&str)) {
    let word = word.to_lowercase();
    if STOP.binary_search(&&*word).is_err() {
        take(&stem(&word));
    }
}

/// The parts of an identifier: `max_tokens`, `maxTokens` and `HTTPServer` have two each.
fn parts(run: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = run.char_indices().collect();
    let (mut parts, mut start) = (Vec::new(), 0);
    for (nth, &(at, c)) in letters.iter().enumerate().skip(1) {
        let before = letters[nth - 1].1;
        let ends_capitals = || c.is_uppercase() && letters.get(nth + 1).is_some_and(|(_, next)| next.is_lowercase());
        let is_border =
            (before.is_lowercase() && c.is_uppercase()) || (before.is_uppercase() && ends_capitals()) || c == '_';
        if is_border {
            parts.push(&run[start..at]);
            start = at;
        }
    }
    parts.push(&run[start..]);
    parts.iter_mut().for_each(|part| *part = part.trim_matches('_'));
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(of(text).join(" "), expected);
    }

    #[test]
    fn words_are_found_by_their_stems_and_the_commonest_by_nothing() {
        assert!(STOP.is_sorted());
        check("What did the painters paint?", "painter paint");
        check("Überraschung, naïve CAFÉ", "überraschung naïve café");
    }

    #[test]
    fn identifiers_are_found_whole_and_by_their_parts() {
        check("max_tokens", "max_tokens max token");
        check("parseHTTPRequest()", "parsehttprequest pars http request");
        check("__init__ src/main.rs", "init src main rs");
        check("sha256 v1.2", "sha256 v1 2");
    }

    #[test]
    fn scripts_without_spaces_are_found_by_pairs() {
        check("東京都へ", "東京 京都 都へ");
        check("我喜欢Rust语言", "我喜 喜欢 rust 语言");
        check("猫", "猫");
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(of(&"x".repeat(500))[0].len(), WORD_CHARS_MAX);
    }
}
