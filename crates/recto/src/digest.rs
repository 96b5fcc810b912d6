//! What identifies a text, an entry or a page: 128 bits of BLAKE3.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash};

/// Identifies a piece of content; equal digests mean equal bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest([u8; 16]);

impl Digest {
    /// Returns the digest of some bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new();
        hasher.bytes(bytes);
        hasher.finish()
    }

    /// Returns its bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Returns the digest that has these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Digest {
        Digest(bytes)
    }

    /// Its digits; they are written often enough that formatting a number would be felt.
    fn digits<T>(self, told: impl FnOnce(&str) -> T) -> T {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        told(str::from_utf8(&digits).expect("digits are text"))
    }
}

// All are as long, so there is no length to tell.
impl Hash for Digest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digits(|digits| f.write_str(digits))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.digits(|digits| serializer.serialize_str(digits))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.digits(str::to_string)
    }
}

impl TryFrom<String> for Digest {
    type Error = String;
    fn try_from(text: String) -> Result<Digest, String> {
        let refuse = || format!("{text:?} is not a digest: expected 32 hexadecimal digits");
        if text.len() != 32 || !text.is_ascii() {
            return Err(refuse());
        }
        let mut bytes = [0; 16];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| refuse())?;
        }
        Ok(Digest(bytes))
    }
}

/// A map by digests, which are as good as random by themselves.
pub(crate) type DigestMap<V> = HashMap<Digest, V, BuildHasherDefault<FirstBytes>>;

/// Hashes a digest to its first bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstBytes(u64);

impl std::hash::Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// How much is gathered before anything is hashed.
const SHORT_BYTES_MAX: usize = 256;

/// Builds a digest from fields; each is length-prefixed, so that fields can't run into each other. Most are a few short
/// fields, which are hashed at once.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    short: [u8; SHORT_BYTES_MAX],
    length: usize,
    /// What goes on where there is more.
    long: Option<Box<blake3::Hasher>>,
}

impl Hasher {
    pub(crate) fn new() -> Hasher {
        Hasher { short: [0; SHORT_BYTES_MAX], length: 0, long: None }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.add(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn maybe(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    pub(crate) fn digest(&mut self, digest: Digest) {
        self.add(&digest.0);
    }

    pub(crate) fn digests(&mut self, digests: impl Iterator<Item = Digest>) {
        // All at once: the hash works by blocks of several.
        let mut bytes = Vec::with_capacity(digests.size_hint().0 * 16);
        digests.for_each(|digest| bytes.extend_from_slice(&digest.0));
        self.add(&bytes);
    }

    /// Adds texts that are one field together.
    pub(crate) fn joined(&mut self, texts: &[&str]) {
        self.number(texts.iter().map(|text| text.len() as u64).sum());
        for text in texts {
            self.add(text.as_bytes());
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(long) = &mut self.long {
            long.update(bytes);
        } else if let Some(room) = self.short.get_mut(self.length..self.length + bytes.len()) {
            room.copy_from_slice(bytes);
            self.length += bytes.len();
        } else {
            let mut long = Box::new(blake3::Hasher::new());
            long.update(&self.short[..self.length]);
            long.update(bytes);
            self.long = Some(long);
        }
    }

    pub(crate) fn finish(&self) -> Digest {
        let hash = match &self.long {
            Some(long) => long.finalize(),
            None => blake3::hash(&self.short[..self.length]),
        };
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        Digest(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_all_fields_in_a_row_however_long_they_are() {
        for first in [0, 1, 239, 240, 241, 300, 5_000] {
            for second in [0, 1, 8, 255, 256, 257, 2_000] {
                let (one, other) = (vec![1; first], vec![2; second]);
                let mut hasher = Hasher::new();
                hasher.bytes(&one);
                hasher.number(7);
                hasher.bytes(&other);
                let lengths = [first, second].map(|length| (length as u64).to_le_bytes());
                let all = [&lengths[0][..], &one, &7_u64.to_le_bytes(), &lengths[1], &other].concat();
                assert_eq!(hasher.finish().to_bytes(), blake3::hash(&all).as_bytes()[..16]);
            }
        }
    }
}
