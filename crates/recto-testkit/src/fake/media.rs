//! Images and files inside a request: is it base64 at all, and how many pixels are in it.

use super::node::{Checked, Node};

const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Checks an image of an OpenAI request: a link, or a data URL with an image type and base64 behind it.
pub(super) fn image_url(url: &Node<'_>) -> Checked {
    let text = url.text()?;
    if text.starts_with("https://") || text.starts_with("http://") {
        return Ok(());
    }
    let encoded = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match encoded {
        Some((kind, data)) if IMAGE_TYPES.contains(&kind) && decoded(data).is_some() => Ok(()),
        _ => {
            let text =
                format!("Invalid '{}'. Expected a valid URL or a base64-encoded data URL of an image.", url.path);
            Err(url.refuse("shape", &text).coded("invalid_value"))
        }
    }
}

/// Checks the data of a file: base64, bare or as a data URL.
pub(super) fn file_data(data: &Node<'_>) -> Checked {
    let text = data.text()?;
    let encoded =
        text.strip_prefix("data:").map_or(Some(text), |rest| rest.split_once(";base64,").map(|(_, data)| data));
    match encoded.and_then(decoded) {
        Some(_) => Ok(()),
        None => Err(data.refuse("shape", "Invalid file data: expected base64-encoded data.").coded("invalid_value")),
    }
}

/// Returns the bytes of standard base64 with its padding, or nothing if it is empty or not that.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return None;
    }
    let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    let mut bits = 0u32;
    for (at, byte) in bytes[..bytes.len() - padding].iter().enumerate() {
        bits = bits << 6 | u32::from(sextet(*byte)?);
        if at % 4 > 0 {
            let shift = 6 - 2 * (at % 4);
            out.push((bits >> shift & 0xff) as u8);
        }
    }
    Some(out)
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Returns width and height as the header of a PNG, GIF or JPEG gives them; of anything else, nothing.
pub(super) fn pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.starts_with(b"\x89PNG") {
        return Some((big(16)?, big(20)?));
    }
    let little = |at: usize| Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    if bytes.starts_with(b"GIF8") {
        return Some((little(6)?, little(8)?));
    }
    if !bytes.starts_with(&[0xff, 0xd8]) {
        return None;
    }
    let short = |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1)?;
        // Frame headers hold the size; these three numbers in their range are tables instead.
        if (0xc0..=0xcf).contains(&marker) && ![0xc4, 0xc8, 0xcc].contains(&marker) {
            return Some((short(at + 7)?, short(at + 5)?));
        }
        at += 2 + usize::try_from(short(at + 2)?).ok()?;
    }
}

/// Returns whether Anthropic takes this media type for an image.
pub(super) fn is_image_type(media_type: &str) -> bool {
    IMAGE_TYPES.contains(&media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_its_padding() {
        assert_eq!(decoded("aGVsbG8=").as_deref(), Some(&b"hello"[..]));
        assert_eq!(decoded("aGk=").as_deref(), Some(&b"hi"[..]));
        assert_eq!(decoded("aGV5").as_deref(), Some(&b"hey"[..]));
        assert_eq!(decoded("aA==").as_deref(), Some(&b"h"[..]));
        assert!(["", "aGV", "aG?5", "====", "aG=5"].iter().all(|text| decoded(text).is_none()));
    }

    #[test]
    fn sizes_are_read_from_headers() {
        let gif = [b"GIF89a".as_slice(), &[0x20, 0x03, 0x58, 0x02]].concat();
        assert_eq!(pixels(&gif), Some((800, 600)));
        let jpeg = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 17, 8, 0x02, 0x58, 0x03, 0x20];
        assert_eq!(pixels(&jpeg), Some((800, 600)));
        assert_eq!(pixels(b"nothing"), None);
    }
}
