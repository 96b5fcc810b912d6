use super::bytes::before;
use crate::error::Error;
use std::ops::Range;

/// How long the text of a pattern may be.
const SOURCE_BYTES_MAX: usize = 256;
/// How many bytes a pattern may read in vain at one place of a text.
const LENGTH_MAX: usize = 256;

/// What a secret of the host's own looks like: letters as they are, and classes with a length.
///
/// A small part of regular expressions, so small that it can't be slow: letters that stand for themselves, `\` in front
/// of a mark; `[A-Z0-9_]`, `\d` for digits and `\w` for letters, digits and `_`, all of ASCII; behind these `{20}`,
/// `{8,40}`, `+`, and `{20,}` or `+` only at the end. There is nothing to choose between: what follows a length that may
/// vary can't begin with what it repeats.
///
/// ```
/// use recto::redact::Pattern;
///
/// assert!(Pattern::new(r"acme_[A-Za-z0-9]{32}").is_ok());
/// assert!(Pattern::new(r"\d{3}-\d{2}-\d{4}").is_ok());
/// assert!(Pattern::new(r"(a+)+b").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    source: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    class: [bool; 256],
    min: usize,
    max: usize,
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(source: &str) -> Result<Pattern, Error> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(refused(source, "too long", &format!("at most {SOURCE_BYTES_MAX} bytes")));
        }
        let mut reader = Reader { source, bytes: source.as_bytes(), at: 0 };
        let mut pieces = Vec::new();
        while reader.at < source.len() {
            pieces.push(reader.piece()?);
        }
        let pattern = Pattern { source: source.to_owned(), pieces };
        pattern.check()?;
        Ok(pattern)
    }

    /// Returns the text it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |what: &str, hint: &str| Err(refused(&self.source, what, hint));
        let Some((last, others)) = self.pieces.split_last() else {
            return refuse("it is empty", "say what to find, such as `acme_[A-Za-z0-9]{32}`");
        };
        if self.pieces.iter().map(|piece| piece.min).sum::<usize>() < LITTLE {
            return refuse("it fits almost anything", "it must ask for at least four characters");
        }
        if others.iter().any(|piece| piece.max == usize::MAX) {
            return refuse("`+` and `{n,}` can only be the last", "say how long it may be, such as `{8,40}`");
        }
        if others.iter().map(|piece| piece.max).sum::<usize>() + last.min > LENGTH_MAX {
            return refuse("it may be too long", &format!("at most {LENGTH_MAX} characters in all"));
        }
        let overlaps = |pair: &[Piece]| {
            let both = (0..256).any(|byte| pair[0].class[byte] && pair[1].class[byte]);
            pair[0].min < pair[0].max && both
        };
        if self.pieces.windows(2).any(overlaps) {
            return refuse(
                "where one part ends can't be told",
                "what follows a length that may vary must begin with something else",
            );
        }
        Ok(())
    }

    /// Returns where it stands in a text, from left to right.
    pub(super) fn matches<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        let bytes = text.as_bytes();
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < bytes.len() {
                if let Some(end) = self.end(bytes, at) {
                    let start = at;
                    at = end;
                    return Some(start..end);
                }
                at += 1;
            }
            None
        })
    }

    fn end(&self, bytes: &[u8], start: usize) -> Option<usize> {
        let mut at = start;
        for Piece { class, min, max } in &self.pieces {
            let length = bytes[at..].iter().take(*max).take_while(|byte| class[usize::from(**byte)]).count();
            if length < *min {
                return None;
            }
            at += length;
        }
        Some(at)
    }
}

/// How many characters a pattern must ask for.
const LITTLE: usize = 4;
const MARKS: &[u8] = br".^$|()*?+{}[]\";

struct Reader<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
}

impl Reader<'_> {
    fn piece(&mut self) -> Result<Piece, Error> {
        let class = match self.next() {
            b'[' => self.class()?,
            b'\\' => self.escaped()?,
            mark if MARKS.contains(&mark) => return Err(self.odd(mark)),
            byte => one(byte),
        };
        if matches!(self.peek(), b'+' | b'{') && !before(self.bytes, self.at).is_ascii() {
            return Err(refused(self.source, "a length behind a character that isn't ASCII", "write it several times"));
        }
        let (min, max) = self.length()?;
        Ok(Piece { class, min, max })
    }

    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    /// The next byte; 0 at the end, which no pattern has a use for.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn escaped(&mut self) -> Result<[bool; 256], Error> {
        match self.next() {
            b'd' => Ok(class_of(|byte| byte.is_ascii_digit())),
            b'w' => Ok(class_of(|byte| byte.is_ascii_alphanumeric() || byte == b'_')),
            mark if mark.is_ascii_punctuation() || mark == b' ' => Ok(one(mark)),
            _ => Err(refused(self.source, "an unknown `\\…`", "`\\d`, `\\w`, or `\\` in front of a mark")),
        }
    }

    fn class(&mut self) -> Result<[bool; 256], Error> {
        let refuse = |what: &str, hint: &str| Err(refused(self.source, what, hint));
        let mut class = [false; 256];
        let mut is_first = true;
        loop {
            let first = match self.bytes.get(self.at) {
                None => return refuse("`[` without `]`", "close it"),
                Some(b']') if !is_first => break,
                Some(b'^') if is_first => return refuse("`[^…]` is not supported", "list what may stand there"),
                Some(byte) if !byte.is_ascii_graphic() && *byte != b' ' => {
                    return refuse("classes hold characters of ASCII alone", "write others outside of `[…]`");
                }
                Some(b'\\') => {
                    self.at += 1;
                    let escaped = self.escaped()?;
                    (0..256).for_each(|byte| class[byte] |= escaped[byte]);
                    is_first = false;
                    continue;
                }
                Some(byte) => *byte,
            };
            self.at += 1;
            is_first = false;
            let last = match (self.peek(), self.bytes.get(self.at + 1)) {
                (b'-', Some(last)) if *last != b']' && last.is_ascii_alphanumeric() => {
                    self.at += 2;
                    *last
                }
                _ => first,
            };
            if first > last {
                return Err(refused(self.source, "a range from high to low", "write the lower end first"));
            }
            (first..=last).for_each(|byte| class[usize::from(byte)] = true);
        }
        self.at += 1;
        Ok(class)
    }

    /// How often the last piece may stand there.
    fn length(&mut self) -> Result<(usize, usize), Error> {
        match self.peek() {
            b'+' => {
                self.at += 1;
                Ok((1, usize::MAX))
            }
            b'{' => {
                self.at += 1;
                let rest = &self.source[self.at..];
                let inner = rest.split_once('}').map(|(inner, _)| inner);
                let length = inner.and_then(length).filter(|(min, max)| min <= max && *max > 0);
                let Some(length) = length else {
                    return Err(refused(self.source, "a length that can't be read", "`{20}`, `{8,40}` or `{20,}`"));
                };
                self.at += inner.map_or(0, |inner| inner.len() + 1);
                Ok(length)
            }
            _ => Ok((1, 1)),
        }
    }

    fn odd(&self, mark: u8) -> Error {
        let mark = char::from(mark);
        let hint = format!("write `\\{mark}` for the character itself; there are no groups, choices or wildcards");
        refused(self.source, &format!("`{mark}` is not supported"), &hint)
    }
}

fn length(inner: &str) -> Option<(usize, usize)> {
    match inner.split_once(',') {
        None => inner.parse().ok().map(|length| (length, length)),
        Some((min, "")) => Some((min.parse().ok()?, usize::MAX)),
        Some((min, max)) => Some((min.parse().ok()?, max.parse().ok()?)),
    }
}

fn one(byte: u8) -> [bool; 256] {
    class_of(|other| other == byte)
}

fn class_of(holds: impl Fn(u8) -> bool) -> [bool; 256] {
    std::array::from_fn(|byte| holds(byte as u8))
}

fn refused(source: &str, what: &str, hint: &str) -> Error {
    Error::settings(format!("the pattern {source:?}: {what}"), hint)
}
