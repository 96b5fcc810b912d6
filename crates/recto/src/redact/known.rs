use super::{Found, Kind};

/// Shorter values may be words that stand anywhere.
const VALUE_BYTES_MIN: usize = 8;
/// Bits of the filter that most places of a text don't pass.
const FILTER_BITS: usize = 1 << 15;

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
fn bit(bytes: &[u8]) -> usize {
    let head = bytes[..VALUE_BYTES_MIN].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    (head.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize
}
