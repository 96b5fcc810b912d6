//! What a line of text holds that a later message may take up: names, numbers, quotations, phrases, and itself.

use std::hash::{DefaultHasher, Hasher};

/// The shortest name, in characters.
const NAME_CHARS_MIN: usize = 5;
/// Longer words are data, not names.
const NAME_CHARS_MAX: usize = 120;
/// A word that is this long is a name, whatever it looks like.
const LONG_WORD_CHARS: usize = 12;
/// The fewest digits of a number without a point, so that small counts are left out.
const DIGITS_MIN: usize = 3;
/// How long a quotation may be, in characters.
const QUOTED_CHARS: std::ops::RangeInclusive<usize> = 4..=60;
/// How many words in a row are a phrase.
const PHRASE_WORDS: usize = 4;
/// The shortest phrase, in characters, with one space between words.
const PHRASE_CHARS_MIN: usize = 16;
/// The shortest line that counts as a whole, in characters.
const LINE_CHARS_MIN: usize = 20;

/// What kind of thing a message took from the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Paths, identifiers, and other words that are no plain prose.
    Names,
    /// Numbers of three digits or more, or with a point.
    Numbers,
    /// What stood between quotation marks.
    Quoted,
    /// Four words in a row.
    Phrases,
    /// Whole lines, as an exact edit needs them.
    Lines,
}

impl Kind {
    /// All kinds, in the order they are told.
    pub const ALL: [Kind; 5] = [Kind::Names, Kind::Numbers, Kind::Quoted, Kind::Phrases, Kind::Lines];

    /// Returns its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Names => "names",
            Kind::Numbers => "numbers",
            Kind::Quoted => "quoted",
            Kind::Phrases => "phrases",
            Kind::Lines => "lines",
        }
    }
}

/// One thing that a line holds: a hash of its kind and its text, with the kind in the lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Feature(u64);

impl Feature {
    const KIND_BITS: u32 = 3;

    fn of(kind: Kind, words: &[&str]) -> Feature {
        Feature(hash_of(words) << Feature::KIND_BITS | kind as u64)
    }

    /// Returns where its kind stands in [`Kind::ALL`].
    pub(super) fn kind(self) -> usize {
        (self.0 & ((1 << Feature::KIND_BITS) - 1)) as usize
    }
}

/// Returns a hash of words, each ended so that they can't run into each other.
pub(super) fn hash_of(words: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for word in words {
        hasher.write(word.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

/// Returns the lines of a text, without the space around them. Line ends that JSON spells as `\n` end lines, too: the
/// strings in a call's arguments are read as what they stand for.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    // Separators of files, groups, records and units are space here, though Unicode doesn't say so.
    let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    let lines = text.split('\n').flat_map(|line| line.split("\\n"));
    lines.map(move |line| line.trim_matches(is_space)).filter(|line| !line.is_empty())
}

/// Adds what a line holds, some of it perhaps more than once.
pub(super) fn add(line: &str, out: &mut Vec<Feature>) {
    out.extend(names(line).map(|name| Feature::of(Kind::Names, &[name])));
    out.extend(numbers(line).map(|number| Feature::of(Kind::Numbers, &[number])));
    out.extend(quoted(line).map(|text| Feature::of(Kind::Quoted, &[text])));
    let words: Vec<&str> = line.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
    out.extend(words.windows(PHRASE_WORDS).filter(|words| is_phrase(words)).map(|it| Feature::of(Kind::Phrases, it)));
    if has_chars(line, LINE_CHARS_MIN) {
        out.push(Feature::of(Kind::Lines, &[line]));
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn has_chars(text: &str, least: usize) -> bool {
    text.len() >= least && text.chars().take(least).count() == least
}

/// Words of ASCII with what paths and addresses are made of, except at their ends.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let runs = line.split(move |c| !(is_plain(c) || "./:@#-".contains(c)));
    runs.map(move |run| run.trim_matches(|c| !is_plain(c))).filter(|word| is_name(word))
}

fn is_name(word: &str) -> bool {
    if !(NAME_CHARS_MIN..=NAME_CHARS_MAX).contains(&word.len()) {
        return false;
    }
    let is_camel = || {
        let has_upper = word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
        has_upper && word.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    word.len() >= LONG_WORD_CHARS || word.bytes().any(|byte| !byte.is_ascii_alphabetic()) || is_camel()
}

/// Runs of letters, digits and points that are numbers as a whole.
fn numbers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c| !(is_word(c) || c == '.')).filter(|run| is_number(run))
}

fn is_number(run: &str) -> bool {
    let is_all = |text: &str, of: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(of);
    if let Some(digits) = run.strip_prefix("0x") {
        return digits.len() >= DIGITS_MIN && is_all(digits, u8::is_ascii_hexdigit);
    }
    match run.split_once('.') {
        Some((whole, fraction)) => is_all(whole, u8::is_ascii_digit) && is_all(fraction, u8::is_ascii_digit),
        None => run.len() >= DIGITS_MIN && is_all(run, u8::is_ascii_digit),
    }
}

/// What stands between two quotation marks of any kind. A mark that ends a quotation begins no other.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let mut pieces = line.split(['"', '\'', '`']).skip(1).peekable();
    let mut is_mark_used = false;
    std::iter::from_fn(move || {
        loop {
            let piece = pieces.next()?;
            // What follows the last mark is ended by none.
            pieces.peek()?;
            is_mark_used = !is_mark_used && QUOTED_CHARS.contains(&piece.chars().take(QUOTED_CHARS.end() + 1).count());
            if is_mark_used {
                return Some(piece);
            }
        }
    })
}

fn is_phrase(words: &[&str]) -> bool {
    let spaces = words.len() - 1;
    words.iter().map(|word| word.chars().count()).sum::<usize>() + spaces >= PHRASE_CHARS_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<'a>(found: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        found.collect()
    }

    #[test]
    fn names_are_words_that_are_no_prose() {
        let line = "see ./src/main.rs: fooBar, getURL, HTTPS FOOBAR plain words a-b-c x.y. implementations (a@b.c)";
        let expected = ["src/main.rs", "fooBar", "getURL", "a-b-c", "implementations", "a@b.c"];
        assert_eq!(all(names(line)), expected);
    }

    #[test]
    fn the_ends_of_a_name_are_letters_digits_or_underscores() {
        assert_eq!(all(names("--verbose=1 //host:80/// _init_ #12345. ab-- -abcd-")), ["host:80", "_init_", "12345"]);
        assert_eq!(all(names("naïve_value")), ["ve_value"], "other letters part words");
        assert_eq!(all(names("Abcde aBcde ABCDE ABCDe Abcd1")), ["aBcde", "ABCDe", "Abcd1"]);
        let long = "a1".repeat(60);
        assert_eq!(all(names(&long)), [&long]);
        assert_eq!(all(names(&format!("{long}b"))), [""; 0]);
    }

    #[test]
    fn numbers_stand_alone() {
        let line = "12 123 1.5 1. .5 1.2.3 0x1f 0x1F3 0xfgh v123 123abc 1_000 3,000 -404 (8080) 99.125% x=512;";
        assert_eq!(all(numbers(line)), ["123", "1.5", "0x1F3", "000", "404", "8080", "99.125", "512"]);
        assert_eq!(all(numbers("123é é123 123. 123.x 2024-10-31")), ["2024"]);
    }

    #[test]
    fn a_mark_that_ends_a_quotation_begins_no_other() {
        assert_eq!(all(quoted("say \"hello\" and \"world\"")), ["hello", "world"]);
        assert_eq!(all(quoted("it's `code` isn't")), ["code"]);
        assert_eq!(all(quoted("'abc' then 'abcd'")), [" then "], "too short to be taken, so its mark begins another");
        assert_eq!(all(quoted("\"open")), [""; 0]);
        let (fits, long) = ("é".repeat(60), "é".repeat(61));
        assert_eq!(all(quoted(&format!("'{fits}' '{long}'"))), [&fits]);
    }

    #[test]
    fn lines_end_where_json_says_so_too() {
        assert_eq!(all(lines(" a \n\n\tb\\n c\\\\nd\u{1c}\r\n\u{a0}")), ["a", "b", "c\\", "d"]);
    }

    #[test]
    fn a_line_holds_phrases_and_itself() {
        let count = |line: &str, kind: Kind| {
            let mut found = Vec::new();
            add(line, &mut found);
            found.iter().filter(|feature| Kind::ALL[feature.kind()] == kind).count()
        };
        assert_eq!(count("one two three four, five six!", Kind::Phrases), 3);
        assert_eq!(count("a b c d e", Kind::Phrases), 0, "shorter than sixteen characters");
        assert_eq!(count("aaaa bbb ccc ddd", Kind::Phrases), 1);
        assert_eq!(count("aaa bbb ccc ddd", Kind::Phrases), 0);
        assert_eq!((count("x".repeat(19).as_str(), Kind::Lines), count("é".repeat(20).as_str(), Kind::Lines)), (0, 1));
        assert_eq!(count("é".repeat(19).as_str(), Kind::Lines), 0);
    }

    #[test]
    fn the_same_text_is_another_thing_as_another_kind() {
        let features = Kind::ALL.map(|kind| Feature::of(kind, &["1234"]));
        for (at, feature) in features.iter().enumerate() {
            assert_eq!(feature.kind(), at);
            assert_eq!(features.iter().filter(|other| *other == feature).count(), 1);
        }
        assert_ne!(Feature::of(Kind::Phrases, &["ab", "c"]), Feature::of(Kind::Phrases, &["a", "bc"]));
    }
}
