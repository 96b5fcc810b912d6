//! What identifies a text, an entry or a page: 128 bits of BLAKE3.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;

/// Identifies a piece of content; equal digests mean equal bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
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

/// Builds a digest from fields; each is length-prefixed, so that fields can't run into each other.
#[derive(Clone, Debug)]
pub(crate) struct Hasher(blake3::Hasher);

impl Hasher {
    pub(crate) fn new() -> Hasher {
        Hasher(blake3::Hasher::new())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn maybe(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    pub(crate) fn digest(&mut self, digest: Digest) {
        self.0.update(&digest.0);
    }

    pub(crate) fn digests(&mut self, digests: impl Iterator<Item = Digest>) {
        // All at once: the hash works by blocks of several.
        let mut bytes = Vec::with_capacity(digests.size_hint().0 * 16);
        digests.for_each(|digest| bytes.extend_from_slice(&digest.0));
        self.0.update(&bytes);
    }

    /// Adds texts that are one field together.
    pub(crate) fn joined(&mut self, texts: &[&str]) {
        self.number(texts.iter().map(|text| text.len() as u64).sum());
        for text in texts {
            self.0.update(text.as_bytes());
        }
    }

    pub(crate) fn finish(self) -> Digest {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        Digest(bytes)
    }
}
