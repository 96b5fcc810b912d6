//! Pictures and documents: as sources where the provider takes them, else as a text that names them.

use super::{IMAGE_CHARS_MAX, IMAGE_TYPES, base64};
use crate::entry::Media;
use crate::wire::write::{field, raw, string};

/// How much of an address a text that stands for something names, in characters.
const NAMED_CHARS_MAX: usize = 200;

/// Where a picture or document is, as the provider is told.
pub(super) enum Source<'p> {
    /// Its bytes.
    Base64 { kind: &'p str, data: &'p str },
    /// Its text.
    Plain(String),
    /// Its address.
    Url(&'p str),
}

impl<'p> Source<'p> {
    /// The source of a picture, if it is of a kind that is taken.
    pub(super) fn of_image(media: &'p Media) -> Option<Source<'p>> {
        if is_address(&media.url) {
            return Some(Source::Url(&media.url));
        }
        let (kind, data) = base64_of(&media.url)?;
        let kind = if kind == "image/jpg" { "image/jpeg" } else { kind };
        let is_taken = IMAGE_TYPES.contains(&kind) && data.len() <= IMAGE_CHARS_MAX;
        is_taken.then_some(Source::Base64 { kind, data })
    }

    /// The source of a document, if it is of a kind that is taken.
    pub(super) fn of_document(media: &'p Media) -> Option<Source<'p>> {
        if is_address(&media.url) {
            return Some(Source::Url(&media.url));
        }
        let (head, data) = media.url.strip_prefix("data:")?.split_once(',')?;
        let kind = head.split(';').next().unwrap_or_default();
        let is_base64 = head.ends_with(";base64");
        match kind {
            "application/pdf" if is_base64 && !data.is_empty() => Some(Source::Base64 { kind, data }),
            "text/plain" => {
                let bytes = if is_base64 { base64::decoded(data)? } else { unescaped(data) };
                let text = String::from_utf8(bytes).ok()?;
                (!text.trim().is_empty()).then_some(Source::Plain(text))
            }
            _ => None,
        }
    }

    /// Writes it as the value of `source`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Source::Base64 { kind, data } => {
                field(out, r#"{"type":"base64","media_type":"#, kind);
                field(out, r#","data":"#, data);
            }
            Source::Plain(text) => field(out, r#"{"type":"text","media_type":"text/plain","data":"#, text),
            Source::Url(url) => field(out, r#"{"type":"url","url":"#, url),
        }
        out.push(b'}');
    }
}

/// The text that stands for something the provider doesn't take.
pub(super) fn named(what: &str, media: &Media) -> String {
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

pub(super) fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(NAMED_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Writes a picture's block up to its closing brace.
pub(super) fn image(out: &mut Vec<u8>, source: &Source<'_>) {
    raw(out, r#"{"type":"image","source":"#);
    source.write(out);
}

/// Writes a document's block up to its closing brace.
pub(super) fn document(out: &mut Vec<u8>, source: &Source<'_>, name: Option<&str>) {
    raw(out, r#"{"type":"document","source":"#);
    source.write(out);
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        raw(out, r#","title":"#);
        string(out, name);
    }
}

fn is_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// The media type and data of a `data:` URL in base64.
fn base64_of(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = head.strip_suffix(";base64")?.split(';').next()?;
    (!data.is_empty()).then_some((kind, data))
}

/// The bytes of a text whose odd characters are spelled `%20`.
fn unescaped(text: &str) -> Vec<u8> {
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
