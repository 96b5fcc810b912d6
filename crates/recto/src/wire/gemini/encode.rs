//! From page to body: written straight into bytes, in a fixed order of keys.

use super::generation;
use super::media::Source;
use super::model::Model;
use super::turns::{Block, Layout, STAND_IN, Speaker, Turn, What};
use crate::entry::{Piece, ToolResult};
use crate::page::Page;
use crate::target::Target;
use crate::tool::arguments_object;
use crate::wire::media::named;
use crate::wire::write::{extra, field, raw, room, separated};
use crate::wire::{Wire, tool_name};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What the fields of a client's record may not say again.
const WRITTEN: [&str; 12] = [
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "mimeType",
    "call",
    "data",
    "response",
    "blocks",
];

/// Writes the body of a request for a page.
pub fn encode(page: &Page, target: &Target) -> Vec<u8> {
    encode_with(page, target, &Map::new())
}

/// Writes the body of a request for a page, with fields of the host's own.
pub fn encode_with(page: &Page, target: &Target, fields: &Map<String, Value>) -> Vec<u8> {
    let layout = Layout::of(page, Model::named(&target.name));
    let mut out = Vec::with_capacity(room(page));
    out.push(b'{');
    if !layout.system.is_empty() {
        raw(&mut out, r#""systemInstruction":{"parts":["#);
        separated(&mut out, &layout.system, block);
        raw(&mut out, "]},");
    }
    raw(&mut out, r#""contents":["#);
    separated(&mut out, &layout.turns, turn);
    out.push(b']');
    let mut written = vec!["model", "contents", "systemInstruction", "tools", "generationConfig"];
    match page.tools.as_ref().filter(|tools| tools.taken(Wire::Gemini).next().is_some()) {
        Some(tools) => {
            raw(&mut out, r#","tools":"#);
            tools.write(&mut out, Wire::Gemini, None);
        }
        // Without tools it is refused.
        None => written.push("toolConfig"),
    }
    generation::write(&mut out, page.format.as_ref(), fields.get("generationConfig"));
    extra(&mut out, fields, &written);
    out.push(b'}');
    out
}

fn turn(out: &mut Vec<u8>, turn: &Turn<'_>) {
    raw(
        out,
        match turn.speaker {
            Speaker::User => r#"{"role":"user","parts":["#,
            Speaker::Model => r#"{"role":"model","parts":["#,
        },
    );
    separated(out, &turn.blocks, block);
    out.push(b']');
    extra(out, &turn.fields, &["role", "parts"]);
    out.push(b'}');
}

fn block(out: &mut Vec<u8>, block: &Block<'_>) {
    let inner = |name: &str| block.fields.and_then(|fields| fields.get(name)).and_then(Value::as_object);
    match &block.what {
        What::Text(text) => field(out, r#"{"text":"#, text),
        What::Thought(text) => {
            field(out, r#"{"text":"#, text);
            raw(out, r#","thought":true"#);
        }
        What::Call { id, call } => {
            raw(out, r#"{"functionCall":{"#);
            if let Some(id) = id {
                field(out, r#""id":"#, id);
                out.push(b',');
            }
            field(out, r#""name":"#, &tool_name(&call.name));
            raw(out, r#","args":"#);
            arguments_object(out, call.arguments.as_str());
            inner("call").into_iter().for_each(|fields| extra(out, fields, &["id", "name", "args"]));
            out.push(b'}');
        }
        What::Result { id, name, result } => {
            raw(out, r#"{"functionResponse":{"#);
            if let Some(id) = id {
                field(out, r#""id":"#, id);
                out.push(b',');
            }
            field(out, r#""name":"#, &tool_name(name));
            match result {
                Some(result) => outcome(out, result, block.fields),
                None => {
                    field(out, r#","response":{"output":"#, STAND_IN);
                    out.push(b'}');
                }
            }
            let own = ["id", "name", "response", "parts"];
            inner("call").into_iter().for_each(|fields| extra(out, fields, &own));
            out.push(b'}');
        }
        What::Data(source) => {
            source.write(out);
            if let Some(fields) = inner("data") {
                // Within the object that holds the data.
                out.pop();
                extra(out, fields, &["mimeType", "data", "fileUri"]);
                out.push(b'}');
            }
        }
        What::Opaque(payload) => return raw(out, payload),
    }
    if let Some(fields) = block.fields {
        extra(out, fields, &WRITTEN);
    }
    if let Some(signature) = &block.signature {
        field(out, r#","thoughtSignature":"#, signature);
    }
    out.push(b'}');
}

/// Writes what a call came to: an object, and pictures beside it.
fn outcome(out: &mut Vec<u8>, result: &ToolResult, fields: Option<&Map<String, Value>>) {
    let blocks = fields.and_then(|fields| fields.get("blocks"));
    let is_object = fields.is_some_and(|fields| fields.get("response").is_some_and(|it| it == "object"));
    let (mut texts, mut parts): (Vec<Cow<'_, str>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    for (nth, piece) in result.content.iter().enumerate() {
        if let Some(block) = blocks.and_then(|blocks| blocks.get(nth.to_string())) {
            parts.push(block.to_string().into_bytes());
            continue;
        }
        match piece {
            Piece::Text { text } => texts.push((&**text).into()),
            Piece::Image(media) => match Source::of_result(media) {
                Some(source) => {
                    let mut part = Vec::new();
                    source.write(&mut part);
                    part.push(b'}');
                    parts.push(part);
                }
                None => texts.push(named("image", media).into()),
            },
        }
    }
    raw(out, r#","response":"#);
    match &texts[..] {
        [] if is_object => raw(out, "{}"),
        [text] if is_object && serde_json::from_str::<Map<String, Value>>(text).is_ok() => raw(out, text),
        texts => {
            field(out, if result.is_error { r#"{"error":"# } else { r#"{"output":"# }, &texts.join("\n"));
            out.push(b'}');
        }
    }
    if !parts.is_empty() {
        raw(out, r#","parts":["#);
        separated(out, parts, |out, part| out.extend(part));
        out.push(b']');
    }
}
