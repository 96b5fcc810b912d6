//! From body to entries: every mistake is named with its position, and nothing is half-read.

use super::plain;
use crate::entry::{Call, Entry, Media, Part, Piece, Reasoning, Role, Text, ToolResult};
use crate::error::Error;
use crate::wire::json::{Fields, Source, place_of, without_position};
use crate::wire::{Decoded, GivenMark, Wire, kept};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// What cache marks are called: by OpenAI itself, and by a router to several providers.
const MARKS: [&str; 2] = ["prompt_cache_breakpoint", "cache_control"];

/// Reads a request body.
pub fn decode(body: &str) -> Result<Decoded, Error> {
    let source = Source { text: body };
    let fields: Fields<'_> = top(body)?;
    let mut decoded = Decoded::default();
    for (name, raw) in fields {
        match name.as_str() {
            "model" => decoded.model = source.read(raw, "model")?,
            "messages" => {
                let list: Vec<&RawValue> = source.read(raw, "messages")?;
                for (at, message) in list.into_iter().enumerate() {
                    let read = record(&source, message, at)?;
                    decoded.marks.extend(read.mark.map(|mark| GivenMark { entry: at, mark }));
                    decoded.entries.push(read.entry);
                }
            }
            "tools" => {
                let tools: Option<Vec<&RawValue>> = source.read(raw, "tools")?;
                decoded.tools = tools.unwrap_or_default().into_iter().map(|tool| tool.get().into()).collect();
            }
            "response_format" => decoded.format = (raw.get() != "null").then(|| raw.get().into()),
            _ => drop(decoded.extra.insert(name, source.read(raw, "field")?)),
        }
    }
    Ok(decoded)
}

/// Reads messages that were found one by one, if all of them are plain.
pub(crate) fn decode_plain(elements: &[&str], model: Option<&str>) -> Option<Decoded> {
    let entries = elements.iter().map(|element| plain::entry(element)).collect::<Option<_>>()?;
    Some(Decoded { model: model.map(Text::from), entries, ..Decoded::default() })
}

/// Reads messages that were found one by one.
pub(crate) fn decode_elements(elements: &[&str], model: Option<&str>) -> Result<Decoded, Error> {
    let mut decoded = Decoded { model: model.map(Text::from), ..Decoded::default() };
    for (at, element) in elements.iter().enumerate() {
        let source = Source { text: element };
        let raw: &RawValue = serde_json::from_str(element)
            .map_err(|error| Error::input(without_position(&error)).at(place_of(element, &error)))?;
        let read = record(&source, raw, at)?;
        decoded.marks.extend(read.mark.map(|mark| GivenMark { entry: at, mark }));
        decoded.entries.push(read.entry);
    }
    Ok(decoded)
}

pub(super) fn top(body: &str) -> Result<Fields<'_>, Error> {
    serde_json::from_str(body).map_err(|error| Error::input(without_position(&error)).at(place_of(body, &error)))
}

/// Reads an array of messages that is part of somebody's file. Fields that have no place here are kept beside the
/// entry, and are never sent to a provider.
pub(crate) fn messages(source: &Source<'_>, raw: &RawValue) -> Result<Vec<Entry>, Error> {
    // The lifetime of `raw` is that of the text, but a field of a map can't say so.
    let list: Vec<&RawValue> = source.read(raw, "messages")?;
    list.into_iter().enumerate().map(|(at, message)| Ok(entry(source, message, at, For::File)?.entry)).collect()
}

/// Reads a message of a request or a response: fields that have no place here go back to the provider.
pub(super) fn record(source: &Source<'_>, raw: &RawValue, at: usize) -> Result<Read, Error> {
    entry(source, raw, at, For::Provider)
}

/// A message, read.
pub(super) struct Read {
    pub(super) entry: Entry,
    /// The cache mark behind its content, as JSON text.
    mark: Option<Text>,
}

/// Where the message comes from.
#[derive(Clone, Copy, PartialEq)]
enum For {
    File,
    Provider,
}

/// What is gathered of a message on the way.
#[derive(Default)]
struct Parts {
    list: Vec<Part>,
    /// Fields of parts that have no place, by the part's number.
    fields: Map<String, Value>,
    mark: Option<Text>,
}

impl Parts {
    /// Adds a part, and what its record held beyond it; a cache mark is taken off.
    fn push(&mut self, source: &Source<'_>, part: Part, rest: Fields<'_>) -> Result<(), Error> {
        let mut kept = Map::new();
        for (name, raw) in rest {
            if MARKS.contains(&name.as_str()) {
                self.mark = (raw.get() != "null").then(|| raw.get().into()).or(self.mark.take());
            } else if !is_nothing(raw) {
                kept.insert(name.clone(), source.read(raw, &name)?);
            }
        }
        if !kept.is_empty() {
            self.fields.insert(self.list.len().to_string(), Value::Object(kept));
        }
        self.list.push(part);
        Ok(())
    }
}

/// Whether a field says nothing.
fn is_nothing(raw: &RawValue) -> bool {
    let text = raw.get();
    text == "null"
        || ["[]", "{}"].iter().any(|it| text.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(it.bytes()))
}

fn entry(source: &Source<'_>, raw: &RawValue, at: usize, whose: For) -> Result<Read, Error> {
    if whose == For::Provider
        && let Some(entry) = plain::entry(raw.get())
    {
        return Ok(Read { entry, mark: None });
    }
    let fields: Fields<'_> = source.read(raw, &format!("messages[{at}]"))?;
    of_fields(source, raw, fields, at, whose)
}

/// Reads a message of somebody's file whose fields were put right; `raw` is all of it.
pub(crate) fn message(source: &Source<'_>, raw: &RawValue, fields: Fields<'_>, at: usize) -> Result<Entry, Error> {
    Ok(of_fields(source, raw, fields, at, For::File)?.entry)
}

fn of_fields(
    source: &Source<'_>,
    raw: &RawValue,
    mut fields: Fields<'_>,
    at: usize,
    whose: For,
) -> Result<Read, Error> {
    let role = role(source, raw, &mut fields, at)?;
    let content = fields.remove("content");
    let mut parts = Parts::default();
    thought(source, role, &mut fields, &mut parts, whose)?;
    if role == Role::Tool {
        let mut pieces = Parts::default();
        let result = result(source, raw, &mut fields, content, &mut pieces, at)?;
        parts = Parts { list: vec![Part::Result(result)], ..pieces };
    } else if let Some(raw) = content {
        contents(source, raw, &mut parts)?;
    }
    if whose == For::Provider {
        refused(source, &mut fields, &mut parts)?;
    }
    if let Some(raw) = fields.remove("tool_calls") {
        let calls: Option<Vec<&RawValue>> = source.read(raw, "tool_calls")?;
        for raw in calls.unwrap_or_default() {
            let (call, rest) = call(source, raw, whose)?;
            parts.push(source, Part::Call(call), rest)?;
        }
    }
    let author = match role {
        Role::Tool => None,
        _ => fields.remove("name").map(|raw| source.read(raw, "name")).transpose()?.flatten(),
    };
    let mut rest = Map::new();
    for (name, raw) in fields.into_iter().filter(|(_, raw)| whose == For::File || !is_nothing(raw)) {
        let value: Value = source.read(raw, &name)?;
        rest.insert(name, value);
    }
    let entry = match whose {
        For::File => Entry { extra: rest, ..Entry::new(role, parts.list) },
        For::Provider => kept::entry(Wire::OpenaiChat, role, parts.list, rest, parts.fields),
    };
    let entry = Entry { author, ..entry };
    Ok(Read { entry, mark: parts.mark })
}

/// Reads what a model thought: some servers call it by another name.
fn thought(
    source: &Source<'_>,
    role: Role,
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    whose: For,
) -> Result<(), Error> {
    let mut found: Option<Text> = None;
    if let Some(raw) = fields.remove("reasoning_content") {
        found = source.read(raw, "reasoning_content")?;
    }
    let is_text = |raw: &&RawValue| raw.get().starts_with('"') && whose == For::Provider && role == Role::Assistant;
    if fields.get("reasoning").is_some_and(is_text)
        && let Some(raw) = fields.remove("reasoning")
    {
        let text: Text = source.read(raw, "reasoning")?;
        found = found.filter(|found| !found.is_empty()).or(Some(text));
    }
    let thought = found.filter(|text| !text.is_empty() && role == Role::Assistant);
    parts.list.extend(thought.map(|text| Part::Reasoning(Reasoning { text, ..Reasoning::default() })));
    Ok(())
}

/// Reads a refusal that stands beside the content, and refuses calls of a kind that is gone.
fn refused(source: &Source<'_>, fields: &mut Fields<'_>, parts: &mut Parts) -> Result<(), Error> {
    if let Some(raw) = fields.remove("refusal") {
        let text: Option<Text> = source.read(raw, "refusal")?;
        parts.list.extend(text.filter(|text| !text.is_empty()).map(|text| Part::Opaque {
            provider: "openai".into(),
            payload: json!({"type": "refusal", "refusal": &*text}).to_string().into(),
        }));
    }
    match fields.get("function_call").filter(|raw| !is_nothing(raw)) {
        Some(raw) => Err(source
            .refuse(raw, "\"function_call\" is not taken")
            .hinting("it was replaced by \"tool_calls\", each with an id")),
        None => Ok(()),
    }
}

fn role(source: &Source<'_>, raw: &RawValue, fields: &mut Fields<'_>, at: usize) -> Result<Role, Error> {
    let Some(named) = fields.remove("role") else {
        return Err(source.refuse(raw, format!("messages[{at}] has no role")));
    };
    let name: String = source.read(named, "role")?;
    match name.as_str() {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        "function" => Err(source
            .refuse(named, format!("messages[{at}]: role \"function\" is not taken"))
            .hinting("it was replaced by \"tool\" with a tool_call_id")),
        _ => Err(source
            .refuse(named, format!("messages[{at}]: unknown role {name:?}"))
            .hinting("known roles: system, developer, user, assistant, tool")),
    }
}

fn result(
    source: &Source<'_>,
    raw: &RawValue,
    fields: &mut Fields<'_>,
    content: Option<&RawValue>,
    parts: &mut Parts,
    at: usize,
) -> Result<ToolResult, Error> {
    let Some(id) = fields.remove("tool_call_id") else {
        return Err(source.refuse(raw, format!("messages[{at}]: a tool message without tool_call_id")));
    };
    let call: Text = source.read(id, "tool_call_id")?;
    let is_error = fields.remove("is_error").map(|raw| source.read(raw, "is_error")).transpose()?.unwrap_or(false);
    content.map_or(Ok(()), |raw| contents(source, raw, parts))?;
    let pieces = std::mem::take(&mut parts.list).into_iter().map(|part| match part {
        Part::Text { text } => Ok(Piece::Text { text }),
        Part::Image(media) => Ok(Piece::Image(media)),
        _ => Err(source.refuse(raw, format!("messages[{at}]: a tool result holds text and pictures only"))),
    });
    Ok(ToolResult { call: call.into(), content: pieces.collect::<Result<_, _>>()?, is_error })
}

fn contents(source: &Source<'_>, raw: &RawValue, parts: &mut Parts) -> Result<(), Error> {
    match raw.get().as_bytes().first() {
        Some(b'n') => Ok(()),
        Some(b'"') => {
            let text: Text = source.read(raw, "content")?;
            parts.list.extend((!text.is_empty()).then_some(Part::Text { text }));
            Ok(())
        }
        Some(b'[') => {
            let list: Vec<&RawValue> = source.read(raw, "content")?;
            for raw in list {
                let (part, rest) = part(source, raw)?;
                parts.push(source, part, rest)?;
            }
            Ok(())
        }
        _ => Err(source.refuse(raw, "content is neither a string, a list of parts, nor null")),
    }
}

#[derive(Deserialize)]
struct Image {
    url: Text,
    detail: Option<Text>,
}

#[derive(Deserialize)]
struct Audio {
    data: String,
    format: String,
}

#[derive(Deserialize)]
struct File {
    file_id: Option<Text>,
    filename: Option<Text>,
    file_data: Option<Text>,
}

/// Reads a part, and returns it with the fields of its record that have no place in it.
fn part<'t>(source: &Source<'t>, raw: &'t RawValue) -> Result<(Part, Fields<'t>), Error> {
    let mut fields: Fields<'t> = source.read(raw, "content part")?;
    let mut field =
        |name: &str| fields.remove(name).ok_or_else(|| source.refuse(raw, format!("a part without {name:?}")));
    let kind: String = source.read(field("type")?, "type")?;
    let part = match kind.as_str() {
        "text" => Part::Text { text: source.read(field("text")?, "text")? },
        "image_url" => {
            let Image { url, detail } = source.read(field("image_url")?, "image_url")?;
            Part::Image(Media { url, name: None, detail })
        }
        "input_audio" => {
            let Audio { data, format } = source.read(field("input_audio")?, "input_audio")?;
            let url = format!("data:audio/{format};base64,{data}").into();
            Part::Audio(Media { url, name: None, detail: None })
        }
        "file" => match source.read(field("file")?, "file")? {
            File { file_id: Some(id), .. } => Part::File { id },
            File { file_data: Some(url), filename: name, .. } => Part::Document(Media { url, name, detail: None }),
            _ => return Err(source.refuse(raw, "a file with neither file_id nor file_data")),
        },
        "refusal" => {
            let payload = raw.get().into();
            return Ok((Part::Opaque { provider: "openai".into(), payload }, Fields::new()));
        }
        _ => {
            let error = source.refuse(raw, format!("unknown part type {kind:?}"));
            return Err(error.hinting("known types: text, image_url, input_audio, file, refusal"));
        }
    };
    Ok((part, fields))
}

#[derive(Deserialize)]
struct Function {
    name: Text,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Custom {
    name: Text,
    input: Text,
}

/// Reads a call, and returns it with the fields of its record that have no place in it.
fn call<'t>(source: &Source<'t>, raw: &'t RawValue, whose: For) -> Result<(Call, Fields<'t>), Error> {
    let mut fields: Fields<'t> = source.read(raw, "tool call")?;
    let kind: Option<String> = fields.get("type").map(|raw| source.read(raw, "type")).transpose()?;
    let is_custom = whose == For::Provider && kind.as_deref() == Some("custom");
    if let Some(kind) = kind.filter(|kind| kind != "function" && !is_custom) {
        return Err(source.refuse(raw, format!("unknown kind of tool call {kind:?}")).hinting("known: function"));
    }
    let mut field =
        |name: &str| fields.remove(name).ok_or_else(|| source.refuse(raw, format!("a tool call without {name:?}")));
    let id: Text = source.read(field("id")?, "id")?;
    if is_custom {
        let Custom { name, input } = source.read(field("custom")?, "custom")?;
        // The kind stays with what has no place, so that it goes back as what it was.
        return Ok((Call::new(id, name, input), fields));
    }
    let Function { name, arguments } = source.read(field("function")?, "function")?;
    fields.remove("type");
    // Some servers spell arguments as an object, or leave them out.
    let arguments = match arguments {
        Some(Value::String(text)) => text,
        Some(Value::Null) | None => "{}".into(),
        Some(other) => other.to_string(),
    };
    Ok((Call::new(id, name, arguments), fields))
}
