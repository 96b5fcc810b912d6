//! Pictures and documents: as sources where the provider takes them, else as a text that names them.

use super::{IMAGE_CHARS_MAX, IMAGE_TYPES};
use crate::entry::Media;
use crate::wire::base64;
use crate::wire::media::{base64_of, is_address, unescaped};
use crate::wire::write::{field, raw, string};

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
