//! Pictures, recordings and documents: what an address holds, and the text that stands for what can't be shown.

use crate::entry::{Media, Piece, ToolResult};

/// How much of an address a text that stands for something names, in characters.
const NAMED_CHARS_MAX: usize = 200;

/// The text that stands for something the provider doesn't take.
pub(crate) fn named(what: &str, media: &Media) -> String {
    let kind = media.url.strip_prefix("data:").map(|rest| rest.split([';', ',']).next().unwrap_or_default());
    let name = media.name.as_deref().filter(|name| !name.trim().is_empty());
    let told = match (name, kind) {
        (Some(name), Some(kind)) if !kind.is_empty() => format!("{name}, {kind}"),
        (Some(name), _) => name.to_string(),
        (None, Some(kind)) => kind.to_string(),
        (None, None) => media.url.to_string(),
    };
    format!("[{what}: {}]", shortened(&told))
}

/// The text that stands for a result without a call.
pub(crate) fn orphan(result: &ToolResult) -> String {
    let pieces = result.content.iter().map(|piece| match piece {
        Piece::Text { text } => text.to_string(),
        Piece::Image(media) => named("image", media),
    });
    let said: Vec<String> = pieces.filter(|text| !text.trim().is_empty()).collect();
    format!("[result of call {}] {}", shortened(result.call.as_str()), said.join("\n")).trim_end().to_string()
}

pub(crate) fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(NAMED_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

pub(crate) fn is_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// The media type and data of a `data:` URL in base64.
pub(crate) fn base64_of(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = head.strip_suffix(";base64")?.split(';').next()?;
    (!data.is_empty()).then_some((kind, data))
}

/// The bytes of a text whose odd characters are spelled `%20`.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => (out.push(byte), rest = &tail[2..]).0,
            None => (out.push(*first), rest = tail).0,
        }
    }
    out
}
