//! Base64, for plain texts that other providers want as data.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns bytes in base64, padded.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let value = (0..3).fold(0u32, |value, at| value << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = DIGITS[(value >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= group.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// Returns the bytes of base64, with or without padding; `None` if it is none.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        if group.len() == 1 {
            return None;
        }
        let mut value = 0u32;
        for at in 0..4 {
            value = value << 6 | group.get(at).map_or(Some(0), |digit| digit_of(*digit))?;
        }
        out.extend_from_slice(&value.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

fn digit_of(byte: u8) -> Option<u32> {
    DIGITS.iter().position(|digit| *digit == byte).and_then(|at| u32::try_from(at).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for text in ["", "f", "fo", "foo", "foob", "fooba", "foobar", "größe ✓"] {
            assert_eq!(decoded(&encoded(text.as_bytes())).unwrap(), text.as_bytes(), "{text}");
        }
        assert_eq!(encoded(b"foob"), "Zm9vYg==");
        assert_eq!((decoded("Zg"), decoded("Z"), decoded("Z!==")), (Some(b"f".to_vec()), None, None));
    }
}
