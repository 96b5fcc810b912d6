//! From body to entries: every mistake is named with its position, and nothing is half-read.

use super::{Decoded, Reply};
use crate::entry::{Call, Entry, Media, Part, Piece, Reasoning, Role, Text, ToolResult};
use crate::error::Error;
use crate::tokens::Tokens;
use crate::wire::Usage;
use crate::wire::json::{Fields, Source, place_of, without_position};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a request body.
pub fn decode(body: &str) -> Result<Decoded, Error> {
    let source = Source { text: body };
    let fields: Fields<'_> = top(body)?;
    let mut decoded = Decoded::default();
    for (name, raw) in fields {
        match name.as_str() {
            "model" => decoded.model = source.read(raw, "model")?,
            "messages" => decoded.entries = messages(&source, raw)?,
            "tools" => {
                let tools: Vec<&RawValue> = source.read(raw, "tools")?;
                decoded.tools = tools.into_iter().map(|tool| tool.get().into()).collect();
            }
            _ => drop(decoded.extra.insert(name, source.read(raw, "field")?)),
        }
    }
    Ok(decoded)
}

/// Reads a response body that was not streamed.
pub fn decode_reply(body: &str) -> Result<Reply, Error> {
    let source = Source { text: body };
    let fields: Fields<'_> = top(body)?;
    let Some(choices) = fields.get("choices") else {
        return Err(Error::input("no \"choices\" in it").hinting("is this a Chat Completions response?"));
    };
    let choices: Vec<Fields<'_>> = source.read(choices, "choices")?;
    let Some(message) = choices.first().and_then(|choice| choice.get("message")) else {
        return Err(Error::input("no message in its first choice"));
    };
    let entry = entry(&source, message, 0)?;
    if entry.role != Role::Assistant {
        return Err(source.refuse(message, "the reply is not an assistant's"));
    }
    let usage = fields.get("usage").map(|raw| usage(&source, raw)).transpose()?.flatten();
    Ok(Reply { entry, usage })
}

fn top(body: &str) -> Result<Fields<'_>, Error> {
    serde_json::from_str(body).map_err(|error| Error::input(without_position(&error)).at(place_of(body, &error)))
}

/// Reads an array of messages that is part of a larger text.
pub(crate) fn messages(source: &Source<'_>, raw: &RawValue) -> Result<Vec<Entry>, Error> {
    // The lifetime of `raw` is that of the text, but a field of a map can't say so.
    let list: Vec<&RawValue> = source.read(raw, "messages")?;
    list.into_iter().enumerate().map(|(at, message)| entry(source, message, at)).collect()
}

fn entry(source: &Source<'_>, raw: &RawValue, at: usize) -> Result<Entry, Error> {
    let mut fields: Fields<'_> = source.read(raw, &format!("messages[{at}]"))?;
    let role = role(source, raw, &mut fields, at)?;
    let content = fields.remove("content");
    let mut parts = Vec::new();
    if let Some(raw) = fields.remove("reasoning_content") {
        let text: Option<Text> = source.read(raw, "reasoning_content")?;
        let thought = text.filter(|text| !text.is_empty() && role == Role::Assistant);
        parts.extend(thought.map(|text| Part::Reasoning(Reasoning { text, ..Reasoning::default() })));
    }
    if role == Role::Tool {
        parts.push(Part::Result(result(source, raw, &mut fields, content, at)?));
    } else if let Some(raw) = content {
        parts.extend(contents(source, raw)?);
    }
    if let Some(raw) = fields.remove("tool_calls") {
        let calls: Option<Vec<&RawValue>> = source.read(raw, "tool_calls")?;
        for raw in calls.unwrap_or_default() {
            parts.push(Part::Call(call(source, raw)?));
        }
    }
    let mut entry = Entry::new(role, parts);
    if role != Role::Tool {
        entry.author = fields.remove("name").map(|raw| source.read(raw, "name")).transpose()?.flatten();
    }
    for (name, raw) in fields {
        let value: Value = source.read(raw, &name)?;
        entry.extra.insert(name, value);
    }
    Ok(entry)
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
    at: usize,
) -> Result<ToolResult, Error> {
    let Some(id) = fields.remove("tool_call_id") else {
        return Err(source.refuse(raw, format!("messages[{at}]: a tool message without tool_call_id")));
    };
    let call: Text = source.read(id, "tool_call_id")?;
    let is_error = fields.remove("is_error").map(|raw| source.read(raw, "is_error")).transpose()?.unwrap_or(false);
    let parts = content.map(|raw| contents(source, raw)).transpose()?.unwrap_or_default();
    let pieces = parts.into_iter().map(|part| match part {
        Part::Text { text } => Ok(Piece::Text { text }),
        Part::Image(media) => Ok(Piece::Image(media)),
        _ => Err(source.refuse(raw, format!("messages[{at}]: a tool result holds text and pictures only"))),
    });
    Ok(ToolResult { call: call.into(), content: pieces.collect::<Result<_, _>>()?, is_error })
}

fn contents(source: &Source<'_>, raw: &RawValue) -> Result<Vec<Part>, Error> {
    match raw.get().as_bytes().first() {
        Some(b'n') => Ok(Vec::new()),
        Some(b'"') => {
            let text: Text = source.read(raw, "content")?;
            Ok(if text.is_empty() { Vec::new() } else { vec![Part::Text { text }] })
        }
        Some(b'[') => {
            let parts: Vec<&RawValue> = source.read(raw, "content")?;
            parts.into_iter().map(|raw| part(source, raw)).collect()
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

fn part(source: &Source<'_>, raw: &RawValue) -> Result<Part, Error> {
    let fields: Fields<'_> = source.read(raw, "content part")?;
    let field =
        |name: &str| fields.get(name).copied().ok_or_else(|| source.refuse(raw, format!("a part without {name:?}")));
    let kind: String = source.read(field("type")?, "type")?;
    match kind.as_str() {
        "text" => Ok(Part::Text { text: source.read(field("text")?, "text")? }),
        "image_url" => {
            let Image { url, detail } = source.read(field("image_url")?, "image_url")?;
            Ok(Part::Image(Media { url, name: None, detail }))
        }
        "input_audio" => {
            let Audio { data, format } = source.read(field("input_audio")?, "input_audio")?;
            Ok(Part::Audio(Media {
                url: format!("data:audio/{format};base64,{data}").into(),
                name: None,
                detail: None,
            }))
        }
        "file" => match source.read(field("file")?, "file")? {
            File { file_id: Some(id), .. } => Ok(Part::File { id }),
            File { file_data: Some(url), filename: name, .. } => Ok(Part::Document(Media { url, name, detail: None })),
            _ => Err(source.refuse(raw, "a file with neither file_id nor file_data")),
        },
        "refusal" => Ok(Part::Opaque { provider: "openai".into(), payload: raw.get().into() }),
        _ => Err(source
            .refuse(raw, format!("unknown part type {kind:?}"))
            .hinting("known types: text, image_url, input_audio, file, refusal")),
    }
}

#[derive(Deserialize)]
struct Function {
    name: Text,
    #[serde(default)]
    arguments: Option<Value>,
}

fn call(source: &Source<'_>, raw: &RawValue) -> Result<Call, Error> {
    let fields: Fields<'_> = source.read(raw, "tool call")?;
    let field = |name: &str| {
        fields.get(name).copied().ok_or_else(|| source.refuse(raw, format!("a tool call without {name:?}")))
    };
    let kind: Option<String> = fields.get("type").map(|raw| source.read(raw, "type")).transpose()?;
    if let Some(kind) = kind.filter(|kind| kind != "function") {
        return Err(source.refuse(raw, format!("unknown kind of tool call {kind:?}")).hinting("known: function"));
    }
    let id: Text = source.read(field("id")?, "id")?;
    let Function { name, arguments } = source.read(field("function")?, "function")?;
    // Some servers spell arguments as an object, or leave them out.
    let arguments = match arguments {
        Some(Value::String(text)) => text,
        Some(Value::Null) | None => "{}".into(),
        Some(other) => other.to_string(),
    };
    Ok(Call::new(id, name, arguments))
}

fn usage(source: &Source<'_>, raw: &RawValue) -> Result<Option<Usage>, Error> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Details {
        cached_tokens: u64,
        cache_write_tokens: u64,
    }
    #[derive(Deserialize)]
    struct Reported {
        prompt_tokens: u64,
        completion_tokens: u64,
        #[serde(default)]
        prompt_tokens_details: Option<Details>,
    }
    let reported: Option<Reported> = source.read(raw, "usage")?;
    Ok(reported.map(|it| {
        let details = it.prompt_tokens_details.unwrap_or_default();
        Usage {
            input: Tokens(it.prompt_tokens),
            cached: Tokens(details.cached_tokens),
            written: Tokens(details.cache_write_tokens),
            output: Tokens(it.completion_tokens),
        }
    }))
}
