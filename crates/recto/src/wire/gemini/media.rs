//! Pictures, recordings and documents: as data or as an address, else as a text that names them.

use crate::entry::{Media, Part, Text};
use crate::wire::base64;
use crate::wire::media::{base64_of, is_address, unescaped};
use crate::wire::write::field;
use std::borrow::Cow;

/// Where the provider keeps what was handed to it.
const HELD: [&str; 2] = ["https://generativelanguage.googleapis.com/", "gs://"];
/// The pictures that are taken as data.
const IMAGE_TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
/// What an address ends with, and what it then leads to.
const ENDINGS: [(&str, &str); 10] = [
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".webp", "image/webp"),
    (".gif", "image/gif"),
    (".pdf", "application/pdf"),
    (".txt", "text/plain"),
    (".wav", "audio/wav"),
    (".mp3", "audio/mp3"),
    (".mp4", "video/mp4"),
];

/// Where something is, as the provider is told.
pub(super) enum Source<'p> {
    /// Its bytes.
    Data { kind: &'p str, data: Cow<'p, str> },
    /// Its address, and its type if somebody knows it.
    Address { kind: Option<&'p str>, uri: &'p str },
}

impl<'p> Source<'p> {
    /// The source of what a user shows; `kind` is the type that a client gave. `None` if it is of no kind that is taken.
    pub(super) fn of(part: &'p Part, kind: Option<&'p str>) -> Option<Source<'p>> {
        let media = match part {
            Part::Image(media) | Part::Audio(media) | Part::Document(media) => media,
            Part::File { id } => return is_held(id).then_some(Source::Address { kind, uri: id }),
            _ => return None,
        };
        let source = Source::of_media(media, kind)?;
        let is_taken = match (&source, part) {
            (Source::Data { kind, .. }, Part::Image(_)) => IMAGE_TYPES.contains(kind),
            _ => true,
        };
        is_taken.then_some(source)
    }

    /// The source of a picture in a result, which must hold it itself.
    pub(super) fn of_result(media: &'p Media) -> Option<Source<'p>> {
        let source = Source::of_media(media, None)?;
        matches!(source, Source::Data { kind, .. } if IMAGE_TYPES.contains(&kind)).then_some(source)
    }

    fn of_media(media: &'p Media, kind: Option<&'p str>) -> Option<Source<'p>> {
        if is_address(&media.url) || is_held(&media.url) {
            return Some(Source::Address { kind: kind.or_else(|| kind_of(&media.url)), uri: &media.url });
        }
        if let Some((kind, data)) = base64_of(&media.url) {
            let kind = if kind == "image/jpg" { "image/jpeg" } else { kind };
            return (!kind.is_empty()).then_some(Source::Data { kind, data: data.into() });
        }
        let (head, text) = media.url.strip_prefix("data:")?.split_once(',')?;
        let kind = head.split(';').next().filter(|kind| !kind.is_empty() && !head.ends_with(";base64"))?;
        let data = base64::encoded(&unescaped(text));
        (!data.is_empty()).then_some(Source::Data { kind, data: data.into() })
    }

    /// Writes it up to the last bracket of its part.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Source::Data { kind, data } => {
                field(out, r#"{"inlineData":{"mimeType":"#, kind);
                field(out, r#","data":"#, data);
            }
            Source::Address { kind: Some(kind), uri } => {
                field(out, r#"{"fileData":{"mimeType":"#, kind);
                field(out, r#","fileUri":"#, uri);
            }
            Source::Address { kind: None, uri } => field(out, r#"{"fileData":{"fileUri":"#, uri),
        }
        out.push(b'}');
    }
}

/// Whether an address leads to something that the provider holds.
pub(crate) fn is_held(uri: &str) -> bool {
    HELD.iter().any(|start| uri.starts_with(start))
}

fn kind_of(uri: &str) -> Option<&'static str> {
    let path = uri.split(['?', '#']).next().unwrap_or(uri).to_ascii_lowercase();
    ENDINGS.into_iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, kind)| kind)
}

/// The part that holds data of a type.
pub(super) fn part_of(kind: &str, url: Text) -> Part {
    let media = Media { url, name: None, detail: None };
    match kind.split('/').next().unwrap_or_default() {
        "image" => Part::Image(media),
        "audio" => Part::Audio(media),
        _ => Part::Document(media),
    }
}
