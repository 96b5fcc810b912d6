//! The parts of a message's content and of a tool's output, as they are written.

use super::NAME;
use super::part::MARK;
use crate::entry::{Media, Part, Piece};
use crate::page::Message;
use crate::wire::write::{extra, field, raw, separated};
use serde_json::{Map, Value};

/// What a file is called if it has no name.
const DOCUMENT: &str = "document";

/// What a message keeps for this wire.
pub(super) struct Extra<'p> {
    message: Option<&'p Map<String, Value>>,
    parts: Option<&'p Map<String, Value>>,
}

impl<'p> Extra<'p> {
    pub(super) fn of(message: &'p Message) -> Extra<'p> {
        let own = message.extra.get(NAME);
        let fields = |name: &str| own.and_then(|own| own.get(name)).and_then(Value::as_object);
        Extra { message: fields("message"), parts: fields("parts") }
    }

    /// Returns what it keeps of a part.
    pub(super) fn part(&self, at: usize) -> Option<&'p Map<String, Value>> {
        self.parts?.get(&at.to_string())?.as_object()
    }

    /// Writes what it keeps of the message itself.
    pub(super) fn message(&self, out: &mut Vec<u8>, but: &[&str]) {
        if let Some(fields) = self.message {
            extra(out, fields, but);
        }
    }

    /// Writes what it keeps of the message that a part was in.
    pub(super) fn message_of(&self, out: &mut Vec<u8>, at: usize, but: &[&str]) {
        let own = self.part(at).and_then(|own| own.get("message")).and_then(Value::as_object);
        if let Some(fields) = own.or(self.message) {
            extra(out, fields, but);
        }
    }
}

/// Writes a part of what somebody else than the model said.
pub(super) fn content_part(out: &mut Vec<u8>, part: &Part, own: Option<&Map<String, Value>>, mark: Option<&str>) {
    match part {
        Part::Text { text } => field(out, r#"{"type":"input_text","text":"#, text),
        Part::Image(media) => image(out, media),
        Part::Audio(media) => audio(out, media),
        Part::Document(media) => document(out, media),
        Part::File { id } => match own.is_some_and(|own| own.get("type").is_some_and(|kind| kind == "input_image")) {
            true => {
                field(out, r#"{"type":"input_image","file_id":"#, id);
                let given = own.and_then(|own| own.get("detail")).and_then(Value::as_str);
                detail(out, given, &["auto", "low", "high", "original"]);
            }
            false => field(out, r#"{"type":"input_file","file_id":"#, id),
        },
        _ => return,
    }
    if let Some(own) = own {
        const WRITTEN: &[&str] = &[
            "type",
            "text",
            "image_url",
            "file_id",
            "file_url",
            "file_data",
            "filename",
            "detail",
            "input_audio",
            "message",
            MARK,
        ];
        extra(out, own, WRITTEN);
    }
    end(out, mark);
}

/// Writes the pieces of a tool's output.
pub(super) fn pieces(out: &mut Vec<u8>, pieces: &[&Piece], mark: Option<&str>) {
    let last = pieces.len().saturating_sub(1);
    out.push(b'[');
    separated(out, pieces.iter().enumerate(), |out, (at, piece)| {
        match piece {
            Piece::Text { text } => field(out, r#"{"type":"input_text","text":"#, text),
            Piece::Image(media) => image(out, media),
        }
        end(out, mark.filter(|_| at == last));
    });
    out.push(b']');
}

fn end(out: &mut Vec<u8>, mark: Option<&str>) {
    if let Some(mark) = mark {
        raw(out, r#",""#);
        raw(out, MARK);
        raw(out, r#"":"#);
        raw(out, mark);
    }
    out.push(b'}');
}

fn image(out: &mut Vec<u8>, media: &Media) {
    field(out, r#"{"type":"input_image","image_url":"#, &media.url);
    detail(out, media.detail.as_deref(), &["auto", "low", "high", "original"]);
}

/// A picture must say how closely to look at it.
fn detail(out: &mut Vec<u8>, given: Option<&str>, known: &[&str]) {
    let given = given.filter(|it| known.contains(it)).unwrap_or("auto");
    field(out, r#","detail":"#, given);
}

fn audio(out: &mut Vec<u8>, media: &Media) {
    let held = media.url.strip_prefix("data:audio/").and_then(|rest| rest.split_once(";base64,"));
    match held {
        Some((kind, data)) => {
            field(out, r#"{"type":"input_audio","input_audio":{"data":"#, data);
            let format = match kind {
                "mpeg" => "mp3",
                "x-wav" | "wave" => "wav",
                other => other,
            };
            field(out, r#","format":"#, format);
            out.push(b'}');
        }
        // Only what the request itself holds can be listened to.
        None => field(out, r#"{"type":"input_text","text":"#, &format!("[audio: {}]", media.url)),
    }
}

fn document(out: &mut Vec<u8>, media: &Media) {
    let is_address = media.url.starts_with("http://") || media.url.starts_with("https://");
    let name = media.name.as_deref().filter(|name| !name.is_empty());
    match (is_address, name) {
        (true, None) => field(out, r#"{"type":"input_file","file_url":"#, &media.url),
        (_, name) => {
            field(out, r#"{"type":"input_file","filename":"#, name.unwrap_or(DOCUMENT));
            field(out, if is_address { r#","file_url":"# } else { r#","file_data":"# }, &media.url);
        }
    }
    if let Some(given) = media.detail.as_deref().filter(|it| ["auto", "low", "high"].contains(it)) {
        field(out, r#","detail":"#, given);
    }
}
