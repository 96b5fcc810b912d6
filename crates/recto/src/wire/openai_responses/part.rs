//! The parts of a message's content, and of a tool's output.

use super::record::Record;
use super::{PRIVATE, PROVIDER};
use crate::entry::{Media, Part, Piece, Role, Text};
use crate::error::Error;
use crate::wire::json::Source;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The mark behind which a prompt should be cached.
pub(super) const MARK: &str = "prompt_cache_breakpoint";

/// A part of a content, with what has no place in it.
pub(super) struct Read {
    pub(super) part: Part,
    /// Fields that only this wire understands.
    pub(super) rest: Map<String, Value>,
    pub(super) mark: Option<Text>,
}

/// Reads a content: a string, or a list of parts.
pub(super) fn contents(source: &Source<'_>, raw: &RawValue, role: Role) -> Result<Vec<Read>, Error> {
    match raw.get().as_bytes().first() {
        Some(b'n') => Ok(Vec::new()),
        Some(b'"') => {
            let text: Text = source.read(raw, "content")?;
            let part = (!text.is_empty()).then_some(Part::Text { text });
            Ok(part.into_iter().map(|part| Read { part, rest: Map::new(), mark: None }).collect())
        }
        Some(b'[') => {
            let parts: Vec<&RawValue> = source.read(raw, "content")?;
            parts.into_iter().map(|raw| part(source, raw, role)).collect()
        }
        _ => Err(source.refuse(raw, "content is neither a string, a list of parts, nor null")),
    }
}

#[derive(Deserialize)]
struct Recording {
    data: String,
    format: String,
}

fn part(source: &Source<'_>, raw: &RawValue, role: Role) -> Result<Read, Error> {
    let fields: Record<'_> = source.read(raw, "content part")?;
    let field = |name: &str| fields.get(name).ok_or_else(|| source.refuse(raw, format!("a part without {name:?}")));
    let text =
        |name: &str| -> Result<Option<Text>, Error> { fields.get(name).map_or(Ok(None), |raw| source.read(raw, name)) };
    let kind: String = source.read(field("type")?, "type")?;
    let mut known = vec!["type", MARK, PRIVATE];
    let mut rest = Map::new();
    let part = match kind.as_str() {
        "input_text" | "output_text" | "text" => {
            known.push("text");
            Part::Text { text: source.read(field("text")?, "text")? }
        }
        "input_image" => {
            known.extend(["image_url", "detail", "file_id"]);
            let detail = text("detail")?;
            match (text("image_url")?, text("file_id")?) {
                (Some(url), _) => Part::Image(Media { url, name: None, detail }),
                (None, Some(id)) => {
                    rest.insert("type".into(), kind.as_str().into());
                    rest.extend(detail.map(|detail| ("detail".to_string(), Value::from(&*detail))));
                    Part::File { id }
                }
                (None, None) => return Err(source.refuse(raw, "a picture with neither image_url nor file_id")),
            }
        }
        "input_file" => {
            known.extend(["file_id", "file_url", "file_data", "filename", "detail"]);
            let (name, detail) = (text("filename")?, text("detail")?);
            match (text("file_data")?.or(text("file_url")?), text("file_id")?) {
                (Some(url), _) => Part::Document(Media { url, name, detail }),
                (None, Some(id)) => Part::File { id },
                (None, None) => {
                    return Err(source.refuse(raw, "a file with neither file_id, file_url nor file_data"));
                }
            }
        }
        "input_audio" => {
            known.push("input_audio");
            let Recording { data, format } = source.read(field("input_audio")?, "input_audio")?;
            let url = format!("data:audio/{format};base64,{data}").into();
            Part::Audio(Media { url, name: None, detail: None })
        }
        "refusal" => {
            let payload = fields.without(&[MARK, PRIVATE]).into();
            return Ok(Read { part: Part::Opaque { provider: PROVIDER.into(), payload }, rest, mark: None });
        }
        _ => return Ok(unknown(raw, role)),
    };
    for (name, raw) in fields.others(&known) {
        let value: Value = source.read(raw, name)?;
        let says_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !says_nothing {
            rest.insert(name.into(), value);
        }
    }
    let mark = fields.get(MARK).filter(|raw| raw.get() != "null").map(|raw| raw.get().into());
    Ok(Read { part, rest, mark })
}

/// A part that nothing is known about goes back as a message of its own.
fn unknown(raw: &RawValue, role: Role) -> Read {
    let role = if role == Role::System { "developer" } else { role_name(role) };
    let payload = format!(r#"{{"type":"message","role":"{role}","content":[{}]}}"#, raw.get());
    Read { part: Part::Opaque { provider: PROVIDER.into(), payload: payload.into() }, rest: Map::new(), mark: None }
}

fn role_name(role: Role) -> &'static str {
    if role == Role::Assistant { "assistant" } else { "user" }
}

/// What a tool gave: its pieces, its mark, and the whole of it where pieces can't hold it.
pub(super) struct Output {
    pub(super) pieces: Vec<Piece>,
    pub(super) mark: Option<Text>,
    pub(super) whole: Option<Value>,
}

/// Reads the output of a tool.
pub(super) fn output(source: &Source<'_>, raw: &RawValue) -> Result<Output, Error> {
    let is_text = !matches!(raw.get().as_bytes().first(), Some(b'[' | b'"' | b'n'));
    if is_text {
        // Some clients write an object here; its text is what the tool said.
        let pieces = vec![Piece::Text { text: raw.get().into() }];
        return Ok(Output { pieces, mark: None, whole: None });
    }
    let read = contents(source, raw, Role::Tool)?;
    let mark = read.iter().filter_map(|it| it.mark.clone()).next_back();
    let is_held = |it: &Read| matches!(it.part, Part::Text { .. } | Part::Image(_)) && it.rest.is_empty();
    let whole = match read.iter().all(is_held) {
        true => None,
        false => Some(unmarked(source.read(raw, "output")?)),
    };
    let piece = |it: Read| match it.part {
        Part::Text { text } => Piece::Text { text },
        Part::Image(media) => Piece::Image(media),
        Part::Document(Media { name: Some(name), .. }) => Piece::Text { text: format!("[file {name}]").into() },
        _ => Piece::Text { text: "[file]".into() },
    };
    Ok(Output { pieces: read.into_iter().map(piece).collect(), mark, whole })
}

fn unmarked(mut output: Value) -> Value {
    for part in output.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        part.remove(MARK);
        part.remove(PRIVATE);
    }
    output
}
