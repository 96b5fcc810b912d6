//! The content of a message: a string where it is one plain text, else a list of parts.

use super::TEXT_MAX;
use crate::entry::{Media, Part, Piece, Role};
use crate::page::Message;
use crate::wire::json::Fields;
use crate::wire::write::{extra, field, raw, separated, string};
use crate::wire::{Wire, accepted};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What stands between texts that become one.
const BLANK_LINE: &str = "\n\n";
/// How closely the provider may be asked to look.
const DETAILS: [&str; 4] = ["auto", "low", "high", "original"];

/// A piece of a message's content, and what goes with it.
pub(super) struct Chunk<'p> {
    said: Said<'p>,
    /// The cache mark behind it, as JSON text.
    mark: Option<&'p str>,
    /// Fields of the client's own.
    fields: Option<&'p Map<String, Value>>,
}

enum Said<'p> {
    Text(Cow<'p, str>),
    Media(&'p Part),
    /// JSON text.
    Opaque(&'p str),
}

/// Adds the content of a message; a mark goes on its last piece.
pub(super) fn add<'p>(chunks: &mut Vec<Chunk<'p>>, message: &'p Message, mark: Option<&'p str>) {
    let (before, fields) = (chunks.len(), fields_of(message));
    match (message.role, &*message.parts) {
        (Role::Tool, [Part::Result(result)]) => {
            for (at, piece) in result.content.iter().enumerate() {
                let text: &str = if let Piece::Text { text } = piece { text } else { "[image]" };
                add_text(chunks, text, part_fields(fields, at));
            }
        }
        (role, parts) => {
            for (at, part) in parts.iter().enumerate() {
                add_part(chunks, part, role, part_fields(fields, at));
            }
        }
    }
    if let Some(last) = chunks[before..].last_mut() {
        last.mark = mark.filter(|_| message.role != Role::Assistant);
    }
}

/// What a client's record of the message held beyond parts.
fn fields_of(message: &Message) -> Option<&Map<String, Value>> {
    message.extra.get(Wire::OpenaiChat.name())?.as_object()
}

/// The client's own fields of the message itself.
pub(super) fn message_fields(message: &Message) -> Option<&Map<String, Value>> {
    fields_of(message)?.get("message")?.as_object()
}

/// The client's own fields of a part.
pub(super) fn fields_of_part(message: &Message, at: usize) -> Option<&Map<String, Value>> {
    part_fields(fields_of(message), at)
}

fn part_fields(fields: Option<&Map<String, Value>>, at: usize) -> Option<&Map<String, Value>> {
    fields?.get("parts")?.get(at.to_string())?.as_object().filter(|fields| !fields.is_empty())
}

fn add_part<'p>(chunks: &mut Vec<Chunk<'p>>, part: &'p Part, role: Role, fields: Option<&'p Map<String, Value>>) {
    let said = match part {
        Part::Text { text } => return add_text(chunks, text, fields),
        Part::Reasoning(_) | Part::Call(_) | Part::Result(_) => return,
        Part::Opaque { payload, .. } if role == Role::Assistant && is_refusal(payload) => Said::Opaque(payload),
        // Other items of this provider belong to another of its formats.
        Part::Opaque { .. } => return,
        _ if role != Role::User => return,
        // Only what is in the request itself can be heard or read.
        Part::Audio(it) if base64(it).is_none() => Said::Text(format!("[audio: {}]", it.url).into()),
        Part::Document(it) if !it.url.starts_with("data:") => Said::Text(format!("[document: {}]", it.url).into()),
        Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::File { .. } => Said::Media(part),
    };
    chunks.push(Chunk { said, mark: None, fields });
}

/// Adds a text, in several pieces if it is longer than the provider takes.
fn add_text<'p>(chunks: &mut Vec<Chunk<'p>>, text: &'p str, fields: Option<&'p Map<String, Value>>) {
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.len() > TEXT_MAX {
            true => rest.char_indices().nth(TEXT_MAX).map_or(rest.len(), |(at, _)| at),
            false => rest.len(),
        };
        let (piece, after) = rest.split_at(end);
        chunks.push(Chunk { said: Said::Text(piece.into()), mark: None, fields });
        rest = after;
    }
}

fn is_refusal(payload: &str) -> bool {
    let fields: Fields<'_> = serde_json::from_str(payload).unwrap_or_default();
    fields.get("type").is_some_and(|raw| raw.get() == "\"refusal\"")
        && fields.get("refusal").is_some_and(|raw| raw.get().starts_with('"'))
}

/// Writes the pieces as the value of `content`; `joins` says that several texts become one string.
pub(super) fn write(out: &mut Vec<u8>, chunks: &[Chunk<'_>], joins: bool, if_empty: &str) {
    let plain = |chunk: &Chunk<'_>| chunk.mark.is_none() && chunk.fields.is_none();
    let length = |chunk: &Chunk<'_>| if let Said::Text(text) = &chunk.said { text.len() + BLANK_LINE.len() } else { 0 };
    match chunks {
        [] => raw(out, if_empty),
        [chunk @ Chunk { said: Said::Text(text), .. }] if plain(chunk) => string(out, text),
        chunks
            if joins
                && chunks.iter().all(|chunk| plain(chunk) && matches!(chunk.said, Said::Text(_)))
                && chunks.iter().map(length).sum::<usize>() <= TEXT_MAX =>
        {
            let texts = chunks.iter().map(|chunk| if let Said::Text(text) = &chunk.said { text } else { "" });
            string(out, &texts.collect::<Vec<_>>().join(BLANK_LINE));
        }
        chunks => {
            out.push(b'[');
            separated(out, chunks, write_chunk);
            out.push(b']');
        }
    }
}

fn write_chunk(out: &mut Vec<u8>, chunk: &Chunk<'_>) {
    match &chunk.said {
        Said::Text(text) => field(out, r#"{"type":"text","text":"#, text),
        Said::Media(part) => media(out, part),
        Said::Opaque(payload) => return raw(out, payload),
    }
    if let Some(fields) = chunk.fields {
        let own = ["type", "text", "image_url", "input_audio", "file", "prompt_cache_breakpoint"];
        extra(out, fields, &own);
    }
    if let Some(mark) = chunk.mark {
        raw(out, r#","prompt_cache_breakpoint":"#);
        raw(out, mark);
    }
    out.push(b'}');
}

/// Writes a part up to its last bracket.
fn media(out: &mut Vec<u8>, part: &Part) {
    match part {
        Part::Image(media) => {
            field(out, r#"{"type":"image_url","image_url":{"url":"#, &media.url);
            if let Some(detail) = media.detail.as_deref().filter(|detail| DETAILS.contains(detail)) {
                field(out, r#","detail":"#, detail);
            }
        }
        Part::Audio(media) => {
            let (format, data) = base64(media).unwrap_or_default();
            field(out, r#"{"type":"input_audio","input_audio":{"data":"#, data);
            field(out, r#","format":"#, format);
        }
        Part::Document(media) => {
            field(out, r#"{"type":"file","file":{"filename":"#, media.name.as_deref().unwrap_or("document"));
            field(out, r#","file_data":"#, &media.url);
        }
        Part::File { id } => field(out, r#"{"type":"file","file":{"file_id":"#, id),
        Part::Text { .. } | Part::Reasoning(_) | Part::Call(_) | Part::Result(_) | Part::Opaque { .. } => {}
    }
    out.push(b'}');
}

/// The format and the data of a recording that the request itself holds.
fn base64(media: &Media) -> Option<(&str, &str)> {
    let (head, data) = media.url.strip_prefix("data:")?.split_once(";base64,")?;
    let kind = head.split(';').next().unwrap_or(head).rsplit('/').next().unwrap_or(head);
    let format = match kind {
        "mpeg" | "mpeg3" | "x-mpeg-3" | "mp3" => "mp3",
        "wav" | "wave" | "x-wav" | "vnd.wave" | "" => "wav",
        other => other,
    };
    Some((format, data))
}

/// Returns the name of a participant as the provider takes it.
pub(super) fn author(name: &str) -> Cow<'_, str> {
    accepted(name, 64, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
