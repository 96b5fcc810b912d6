//! From page to body: written straight into bytes, in a fixed order of keys.

use super::marks::place;
use super::media::{Source, document, image};
use super::model::Model;
use super::turns::{Block, Layout, STAND_IN, Speaker, Turn, What};
use crate::entry::{Piece, ToolResult};
use crate::format::ResponseFormat;
use crate::page::Page;
use crate::target::Target;
use crate::tool::arguments_object;
use crate::wire::media::named;
use crate::wire::write::{extra, field, raw, room, separated, string};
use crate::wire::{Wire, tool_name};
use serde_json::{Map, Value};

/// What the fields of a client's record may not say again.
const WRITTEN: [&str; 15] = [
    "type",
    "text",
    "source",
    "title",
    "thinking",
    "signature",
    "data",
    "id",
    "name",
    "input",
    "tool_use_id",
    "content",
    "is_error",
    "cache_control",
    "blocks",
];

/// Writes the body of a request for a page.
pub fn encode(page: &Page, target: &Target) -> Vec<u8> {
    encode_with(page, target, &Map::new())
}

/// Writes the body of a request for a page, with fields of the host's own.
pub fn encode_with(page: &Page, target: &Target, fields: &Map<String, Value>) -> Vec<u8> {
    let mut layout = Layout::of(page, Model::named(&target.name));
    let tools_mark = place(page, &mut layout, fields);
    let mut out = Vec::with_capacity(room(page));
    field(&mut out, r#"{"model":"#, &target.name);
    raw(&mut out, r#","max_tokens":"#);
    match fields.get("max_tokens").filter(|most| !most.is_null()) {
        Some(most) => value(&mut out, most),
        None => raw(&mut out, &page.output.0.max(1).to_string()),
    }
    if !layout.system.is_empty() {
        raw(&mut out, r#","system":["#);
        separated(&mut out, &layout.system, block);
        out.push(b']');
    }
    raw(&mut out, r#","messages":["#);
    separated(&mut out, &layout.turns, turn);
    out.push(b']');
    if let Some(tools) = page.tools.as_ref().filter(|tools| tools.taken(Wire::Anthropic).next().is_some()) {
        raw(&mut out, r#","tools":"#);
        tools.write(&mut out, Wire::Anthropic, tools_mark.as_deref());
    }
    output_config(&mut out, page, fields.get("output_config"));
    extra(&mut out, fields, &["model", "max_tokens", "system", "messages", "tools", "output_config"]);
    out.push(b'}');
    out
}

/// Writes the messages of a page alone, without leading instructions, as a JSON array.
pub fn encode_messages(page: &Page) -> Vec<u8> {
    let layout = Layout::of(page, None);
    let mut out = Vec::with_capacity(room(page));
    out.push(b'[');
    separated(&mut out, &layout.turns, turn);
    out.push(b']');
    out
}

/// A message of a conversation that is no request yet.
pub(crate) struct Unasked {
    /// Which message of the page it comes from.
    pub(crate) message: usize,
    pub(crate) is_assistant: bool,
    /// The blocks of its content, as a JSON array.
    pub(crate) content: String,
}

/// Writes the messages of a page one by one, neighbours of one role apart and every result alone.
pub(crate) fn encode_unasked(page: &Page) -> Vec<Unasked> {
    let layout = Layout::unasked(page);
    let mut messages = Vec::new();
    for turn in &layout.turns {
        let is_one = |one: &Block<'_>, next: &Block<'_>| {
            one.message == next.message && !one.what.is_result() && !next.what.is_result()
        };
        for blocks in turn.blocks.chunk_by(is_one) {
            let mut out = vec![b'['];
            separated(&mut out, blocks, block);
            out.push(b']');
            let content = String::from_utf8(out).expect("JSON is written as UTF-8");
            let is_assistant = turn.speaker == Speaker::Assistant;
            messages.extend(blocks.first().map(|first| Unasked { message: first.message, is_assistant, content }));
        }
    }
    messages
}

fn value(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("writing a value into memory can't fail");
}

fn output_config(out: &mut Vec<u8>, page: &Page, given: Option<&Value>) {
    let schema = match &page.format {
        Some(ResponseFormat::Schema { schema, .. }) => Some(schema),
        _ => None,
    };
    let Some(schema) = schema else {
        if let Some(given) = given {
            raw(out, r#","output_config":"#);
            value(out, given);
        }
        return;
    };
    raw(out, r#","output_config":{"format":{"type":"json_schema","schema":"#);
    raw(out, schema);
    out.push(b'}');
    if let Some(Value::Object(given)) = given {
        extra(out, given, &["format"]);
    }
    out.push(b'}');
}

fn turn(out: &mut Vec<u8>, turn: &Turn<'_>) {
    raw(
        out,
        match turn.speaker {
            Speaker::User => r#"{"role":"user","content":"#,
            Speaker::Assistant => r#"{"role":"assistant","content":"#,
            Speaker::System => r#"{"role":"system","content":"#,
        },
    );
    match &turn.blocks[..] {
        [Block { what: What::Text(text), mark: None, fields: None, .. }] => string(out, text),
        blocks => {
            out.push(b'[');
            separated(out, blocks, block);
            out.push(b']');
        }
    }
    extra(out, &turn.fields, &[]);
    out.push(b'}');
}

fn block(out: &mut Vec<u8>, block: &Block<'_>) {
    match &block.what {
        What::Text(text) => field(out, r#"{"type":"text","text":"#, text),
        What::Thinking { text, signature } => {
            field(out, r#"{"type":"thinking","thinking":"#, text);
            field(out, r#","signature":"#, signature);
        }
        What::Redacted(data) => field(out, r#"{"type":"redacted_thinking","data":"#, data),
        What::Call { id, call } => {
            field(out, r#"{"type":"tool_use","id":"#, id);
            field(out, r#","name":"#, &tool_name(&call.name));
            raw(out, r#","input":"#);
            arguments_object(out, call.arguments.as_str());
        }
        What::Result { id, result, unseen } => {
            field(out, r#"{"type":"tool_result","tool_use_id":"#, id);
            result_content(out, result, *unseen, block.fields);
        }
        What::StandIn { id } => {
            field(out, r#"{"type":"tool_result","tool_use_id":"#, id);
            field(out, r#","content":"#, STAND_IN);
        }
        What::Image(source) => image(out, source),
        What::Document(source, name) => document(out, source, *name),
        What::File(id) => {
            field(out, r#"{"type":"document","source":{"type":"file","file_id":"#, id);
            out.push(b'}');
        }
        What::Opaque(payload) => return raw(out, payload),
    }
    if let Some(fields) = block.fields {
        extra(out, fields, &WRITTEN);
    }
    if let Some(mark) = &block.mark {
        raw(out, r#","cache_control":"#);
        raw(out, mark);
    }
    out.push(b'}');
}

/// A piece of a result as it is written.
enum Shown<'p> {
    Text(std::borrow::Cow<'p, str>),
    Image(Source<'p>),
    /// A client's block that no piece can hold.
    Block(&'p Value),
}

fn result_content(out: &mut Vec<u8>, result: &ToolResult, unseen: usize, fields: Option<&Map<String, Value>>) {
    let blocks = fields.and_then(|fields| fields.get("blocks"));
    let mut unseen = unseen;
    let shown = result.content.iter().enumerate().filter_map(|(nth, piece)| {
        if let Some(block) = blocks.and_then(|blocks| blocks.get(nth.to_string())) {
            return Some(Shown::Block(block));
        }
        match piece {
            Piece::Text { text } => (!text.trim().is_empty()).then(|| Shown::Text((&**text).into())),
            Piece::Image(media) => {
                let source = Source::of_image(media).filter(|_| unseen == 0);
                unseen = unseen.saturating_sub(1);
                Some(source.map_or_else(|| Shown::Text(named("image", media).into()), Shown::Image))
            }
        }
    });
    let shown: Vec<Shown<'_>> = shown.collect();
    match &shown[..] {
        [] => {}
        [Shown::Text(text)] => field(out, r#","content":"#, text),
        shown => {
            raw(out, r#","content":["#);
            separated(out, shown, |out, piece| {
                match piece {
                    Shown::Text(text) => field(out, r#"{"type":"text","text":"#, text),
                    Shown::Image(source) => image(out, source),
                    Shown::Block(block) => return value(out, block),
                }
                out.push(b'}');
            });
            out.push(b']');
        }
    }
    if result.is_error {
        raw(out, r#","is_error":true"#);
    }
}
