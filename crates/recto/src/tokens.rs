//! Counts of tokens, exact for two vocabularies and estimated by simpler rules.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tiktoken_fast::CoreBPE;
use tiktoken_fast::scan::{Kind, scan};

mod tokenx;

/// A number of tokens.
///
/// Arithmetic saturates, since a count below zero or beyond `u64` has no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Add for Tokens {
    type Output = Tokens;

    fn add(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

impl Sub for Tokens {
    type Output = Tokens;

    fn sub(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Tokens {
    fn sub_assign(&mut self, other: Tokens) {
        *self = *self - other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(counts: I) -> Tokens {
        counts.fold(Tokens::default(), Add::add)
    }
}

impl<'a> Sum<&'a Tokens> for Tokens {
    fn sum<I: Iterator<Item = &'a Tokens>>(counts: I) -> Tokens {
        counts.copied().sum()
    }
}

impl fmt::Display for Tokens {
    /// Writes the number in groups of three digits, as in `12 345`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push(' ');
            }
            grouped.push(digit);
        }
        formatter.pad(&grouped)
    }
}

/// Counts the tokens of a text.
pub trait Count: fmt::Debug + Send + Sync {
    /// Returns the name recorded on receipts.
    fn name(&self) -> &str;

    /// Returns the number of tokens in a text; an empty text has none.
    fn count(&self, text: &str) -> Tokens;
}

/// A built-in way to count tokens.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tokenizer {
    /// Counts exactly by the vocabulary `o200k_base`.
    #[serde(rename = "o200k")]
    O200k,
    /// Counts exactly by the vocabulary `cl100k_base`.
    #[serde(rename = "cl100k")]
    Cl100k,
    /// Estimates one token for every four Unicode scalar values begun.
    #[serde(rename = "chars4")]
    Chars4,
    /// Estimates one token for every four bytes of UTF-8 begun.
    #[serde(rename = "bytes4")]
    Bytes4,
    /// Estimates one token for every four UTF-16 code units begun.
    #[serde(rename = "utf16_4")]
    Utf16x4,
    /// Estimates as the npm package `tokenx` 2.2.0 does with its default options.
    #[serde(rename = "tokenx")]
    Tokenx,
}

impl Tokenizer {
    /// All built-in tokenizers, the exact ones first.
    pub const ALL: &'static [Tokenizer] = &[
        Tokenizer::O200k,
        Tokenizer::Cl100k,
        Tokenizer::Chars4,
        Tokenizer::Bytes4,
        Tokenizer::Utf16x4,
        Tokenizer::Tokenx,
    ];

    /// Returns the name by which the tokenizer is written and parsed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Tokenizer::O200k => "o200k",
            Tokenizer::Cl100k => "cl100k",
            Tokenizer::Chars4 => "chars4",
            Tokenizer::Bytes4 => "bytes4",
            Tokenizer::Utf16x4 => "utf16_4",
            Tokenizer::Tokenx => "tokenx",
        }
    }

    /// Returns the token ids of a text, or `None` for a tokenizer that only estimates.
    #[doc(hidden)]
    pub fn ids(self, text: &str) -> Option<Vec<u32>> {
        Encoding::of(self).map(|encoding| encoding.ids(text))
    }
}

impl Count for Tokenizer {
    fn name(&self) -> &str {
        self.as_str()
    }

    fn count(&self, text: &str) -> Tokens {
        let quarters = |length: usize| length.div_ceil(4) as u64;
        Tokens(match self {
            Tokenizer::O200k => Encoding::o200k().ids(text).len() as u64,
            Tokenizer::Cl100k => Encoding::cl100k().ids(text).len() as u64,
            Tokenizer::Chars4 => quarters(text.chars().count()),
            Tokenizer::Bytes4 => quarters(text.len()),
            Tokenizer::Utf16x4 => quarters(text.chars().map(char::len_utf16).sum()),
            Tokenizer::Tokenx => tokenx::estimate(text),
        })
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Tokenizer {
    type Err = UnknownTokenizer;

    fn from_str(name: &str) -> Result<Tokenizer, UnknownTokenizer> {
        let known = Tokenizer::ALL.iter().find(|tokenizer| tokenizer.as_str() == name);
        known.copied().ok_or_else(|| UnknownTokenizer { name: name.to_owned() })
    }
}

/// The error of parsing a name that no [`Tokenizer`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTokenizer {
    name: String,
}

impl fmt::Display for UnknownTokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = Tokenizer::ALL.iter().map(|known| known.as_str()).collect();
        write!(formatter, "unknown tokenizer {:?}; known: {}", self.name, known.join(", "))
    }
}

impl std::error::Error for UnknownTokenizer {}

/// A loaded vocabulary with the rules by which its texts are cut into pieces.
struct Encoding {
    kind: Kind,
    core: CoreBPE,
}

impl Encoding {
    fn of(tokenizer: Tokenizer) -> Option<&'static Encoding> {
        match tokenizer {
            Tokenizer::O200k => Some(Encoding::o200k()),
            Tokenizer::Cl100k => Some(Encoding::cl100k()),
            _ => None,
        }
    }

    fn o200k() -> &'static Encoding {
        static ENCODING: OnceLock<Encoding> = OnceLock::new();
        ENCODING.get_or_init(|| Encoding {
            kind: Kind::O200k,
            core: tiktoken_fast::o200k_base().expect("the vocabulary built into the crate loads"),
        })
    }

    fn cl100k() -> &'static Encoding {
        static ENCODING: OnceLock<Encoding> = OnceLock::new();
        ENCODING.get_or_init(|| Encoding {
            kind: Kind::Cl100k,
            core: tiktoken_fast::cl100k_base().expect("the vocabulary built into the crate loads"),
        })
    }

    /// Returns the token ids of a text; text that spells a special token is plain text.
    fn ids(&self, text: &str) -> Vec<u32> {
        let has_long_s = self.kind == Kind::O200k && text.contains(LONG_S_CONTRACTION);
        if has_long_s || has_long_three_byte_run(text.as_bytes()) {
            self.ids_piece_by_piece(text)
        } else {
            self.core.encode_ordinary(text)
        }
    }

    /// Returns the token ids of a text that the encoder must not be given whole.
    ///
    /// The encoder has two flaws, both out of reach of ordinary text. At every piece that starts
    /// in a run of three-byte characters it may measure the rest of that run, which is quadratic
    /// in the length of the run. And it misses a contraction spelled with a long s, which moves
    /// the start of the next piece. So the text is handed over in parts, cut at the ends of
    /// pieces. A piece depends on the text after it only if it is whitespace, hence no part ends
    /// in whitespace, except where the next piece starts with the last space of its run.
    fn ids_piece_by_piece(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut part = 0;
        let mut piece = 0;
        while piece < text.len() {
            let end = scan(self.kind, text.as_bytes(), piece);
            let word = &text[piece..end];
            if self.kind == Kind::O200k && takes_long_s_contraction(word, &text[end..]) {
                let next = end + LONG_S_CONTRACTION.len();
                if word == " I" {
                    // The only token in which a letter is joined to the apostrophe alone.
                    ids.extend(self.core.encode_ordinary(&text[part..piece]));
                    ids.extend([O200K_SPACE_I_APOSTROPHE, O200K_LONG_S]);
                } else {
                    ids.extend(self.core.encode_ordinary(&text[part..next]));
                }
                (part, piece) = (next, next);
                continue;
            }
            if end - part >= LONG_RUN && !word.ends_with(char::is_whitespace) {
                ids.extend(self.core.encode_ordinary(&text[part..end]));
                part = end;
            }
            piece = end;
        }
        ids.extend(self.core.encode_ordinary(&text[part..]));
        ids
    }
}

/// How many bytes of three-byte characters in a row the encoder may be given at once.
const LONG_RUN: usize = 4096;

/// The contraction that only case folding reveals: U+017F is a form of the letter s.
const LONG_S_CONTRACTION: &str = "'\u{17F}";
const O200K_LONG_S: u32 = 70_067;
const O200K_SPACE_I_APOSTROPHE: u32 = 3_413;

/// Whether a text has a run of three-byte characters that is too long for the encoder.
fn has_long_three_byte_run(text: &[u8]) -> bool {
    let mut start = 0;
    // Looking from the back of each window skips most of a text that has no such run.
    while let Some(window) = text.get(start..start + LONG_RUN) {
        match window.iter().rposition(|byte| !matches!(byte, 0x80..=0xBF | 0xE0..=0xEF)) {
            Some(other) => start += other + 1,
            None => return true,
        }
    }
    false
}

/// Whether a piece is a word that a following contraction with a long s belongs to.
fn takes_long_s_contraction(piece: &str, rest: &str) -> bool {
    let is_word = |last: char| !last.is_whitespace() && !last.is_numeric() && last != '/';
    // Only the first character may be an apostrophe, unless the word has its contraction already.
    let has_contraction = piece.rfind('\'').is_some_and(|position| position > 0);
    rest.starts_with(LONG_S_CONTRACTION) && piece.ends_with(is_word) && !has_contraction
}
