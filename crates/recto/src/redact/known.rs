use super::{Found, Kind};
use crate::digest::{Digest, Hasher};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Shorter values may be words that stand anywhere.
const VALUE_BYTES_MIN: usize = 8;
/// Bits of the filter that most places of a text don't pass.
const FILTER_BITS: usize = 1 << 15;
/// How many secrets of a conversation are remembered.
const SECRETS_MAX: usize = 1_024;
/// How much of a long one is looked at to know it again.
const LOOK_BYTES_MAX: usize = 128;

/// Adds the other places where the same secrets stand, though nothing beside them says so.
pub(super) fn extend(text: &str, found: &mut Vec<Found>) {
    let values = values(text, found);
    if values.is_empty() {
        return;
    }
    let mut filter = vec![0u64; FILTER_BITS / 64];
    for (value, _) in &values {
        let bit = bit(value.as_bytes());
        filter[bit / 64] |= 1 << (bit % 64);
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while at + VALUE_BYTES_MIN <= bytes.len() {
        let bit = bit(&bytes[at..]);
        if filter[bit / 64] & (1 << (bit % 64)) == 0 {
            at += 1;
            continue;
        }
        // No value is the beginning of another, so only the last that isn't greater can stand here.
        let rest = &bytes[at..];
        let next = values.partition_point(|(value, _)| value.as_bytes() <= rest);
        match next.checked_sub(1).map(|last| &values[last]).filter(|(value, _)| rest.starts_with(value.as_bytes())) {
            Some((value, kind)) => {
                found.push(Found { range: at..at + value.len(), kind: kind.clone() });
                at += value.len();
            }
            None => at += 1,
        }
    }
}

/// Returns the secrets among what was found, sorted; those that begin with another one are left out.
fn values<'t>(text: &'t str, found: &[Found]) -> Vec<(&'t str, Kind)> {
    let is_secret = |it: &&Found| !it.kind.is_personal() && it.range.len() >= VALUE_BYTES_MIN;
    let mut values: Vec<(&str, Kind)> =
        found.iter().filter(is_secret).map(|it| (&text[it.range.clone()], it.kind.clone())).collect();
    values.sort_unstable();
    values.dedup_by(|next, last| next.0.starts_with(last.0));
    values
}

/// The bit of the filter for what begins with these eight bytes.
#[inline]
fn bit(bytes: &[u8]) -> usize {
    let mut head = [0; VALUE_BYTES_MIN];
    head.copy_from_slice(&bytes[..VALUE_BYTES_MIN]);
    (u64::from_be_bytes(head).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize
}

/// The secrets that a conversation has told so far, so that they are found where nothing says what they are.
///
/// They are kept as digests under a key: whoever has only these can't tell what they were, but whether a guess is right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secrets {
    list: Vec<Secret>,
}

/// One of them, as it is known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Secret {
    /// The bit of its first bytes: few enough to tell nothing of it.
    head: u16,
    bytes: usize,
    digest: Digest,
    kind: String,
}

impl Secret {
    fn of(value: &str, kind: &Kind, key: Digest) -> Secret {
        let (head, kind) = (bit(value.as_bytes()) as u16, kind.name().to_owned());
        Secret { head, bytes: value.len(), digest: digest(value.as_bytes(), key), kind }
    }

    fn kind(&self) -> Kind {
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == self.kind);
        known.unwrap_or_else(|| Kind::Own(self.kind.as_str().into()))
    }
}

fn digest(value: &[u8], key: Digest) -> Digest {
    let mut hasher = Hasher::new();
    hasher.digest(key);
    hasher.bytes(&value[..value.len().min(LOOK_BYTES_MAX)]);
    hasher.finish()
}

impl Secrets {
    /// Returns whether none is known.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns how many are known.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Remembers what others do.
    pub fn join(&mut self, others: &Secrets) {
        for other in &others.list {
            if self.list.len() < SECRETS_MAX && !self.list.contains(other) {
                self.list.push(other.clone());
            }
        }
    }

    /// Remembers the secrets among what was found in a text; what is there already, or too much, is passed over.
    pub(super) fn learn(secrets: &mut Cow<'_, Secrets>, text: &str, found: &[Found], key: Digest) {
        for (value, kind) in values(text, found) {
            let secret = Secret::of(value, &kind, key);
            let is_known = |known: &Secret| known.digest == secret.digest && known.bytes == secret.bytes;
            if secrets.list.len() < SECRETS_MAX && !secrets.list.iter().any(is_known) {
                secrets.to_mut().list.push(secret);
            }
        }
    }

    /// Returns where they stand in a text; spans may overlap.
    pub(super) fn spans(&self, text: &str, key: Digest) -> Vec<Found> {
        let (bytes, mut found, mut at) = (text.as_bytes(), Vec::new(), 0);
        if self.list.is_empty() {
            return found;
        }
        let mut filter = vec![0u64; FILTER_BITS / 64];
        for Secret { head, .. } in &self.list {
            let bit = usize::from(*head) % FILTER_BITS;
            filter[bit / 64] |= 1 << (bit % 64);
        }
        while at + VALUE_BYTES_MIN <= bytes.len() {
            let bit = bit(&bytes[at..]);
            let mut next = at + 1;
            if filter[bit / 64] & (1 << (bit % 64)) != 0 {
                for secret in self.list.iter().filter(|secret| usize::from(secret.head) == bit) {
                    let looked = bytes.get(at..at + secret.bytes.min(LOOK_BYTES_MAX));
                    if looked.is_some_and(|value| digest(value, key) == secret.digest) {
                        let (start, end) = (text.floor_char_boundary(at), (at + secret.bytes).min(bytes.len()));
                        found.push(Found { range: start..text.ceil_char_boundary(end), kind: secret.kind() });
                        next = end;
                    }
                }
            }
            at = next;
        }
        found
    }
}
