//! From page to body: written straight into bytes, in a fixed order of keys.

use crate::entry::{Call, Part, Role, ToolResult};
use crate::format::ResponseFormat;
use crate::item::result_text;
use crate::page::{CONTINUE, Message, Page};
use crate::target::{Reasoned, Target};
use crate::tokens::Tokens;
use crate::tool::arguments_object;
use crate::wire::ids::are_made;
use crate::wire::media::{base64_of, named, shortened};
use crate::wire::write::{extra, field, raw, room, separated, string};
use crate::wire::{Ids, Wire, kept, tool_name};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;

/// What stands between texts that become one.
const BLANK_LINE: &str = "\n\n";

/// Writes the body of a request for a page.
pub fn encode(page: &Page, target: &Target) -> Vec<u8> {
    encode_with(page, target, &Map::new())
}

/// Writes the body of a request for a page, with fields of the host's own.
///
/// A server that is told nothing else drops the oldest messages without a word when they don't fit the window that it
/// has by default. So it is told the window, and to say so instead.
pub fn encode_with(page: &Page, target: &Target, fields: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(page));
    field(&mut out, r#"{"model":"#, &target.name);
    raw(&mut out, r#","messages":["#);
    let before = out.len();
    Writer { page, has_reasoning: target.reasoning == Reasoned::Text }.messages(&mut out);
    if out.len() == before {
        field(&mut out, r#"{"role":"user","content":"#, CONTINUE);
        out.push(b'}');
    }
    out.push(b']');
    if let Some(tools) = page.tools.as_ref().filter(|tools| tools.taken(Wire::Ollama).next().is_some()) {
        raw(&mut out, r#","tools":"#);
        tools.write(&mut out, Wire::Ollama, None);
    }
    let mut written = vec!["model", "messages", "tools", "options"];
    if let Some(format) = &page.format {
        written.push("format");
        raw(&mut out, r#","format":"#);
        match format {
            ResponseFormat::Json => raw(&mut out, "\"json\""),
            ResponseFormat::Schema { schema, .. } => raw(&mut out, schema),
        }
    }
    options(&mut out, page, target, fields.get("options"));
    if !fields.contains_key("truncate") {
        raw(&mut out, r#","truncate":false"#);
    }
    extra(&mut out, fields, &written);
    out.push(b'}');
    out
}

/// Writes how large the window is, and how long the answer may be; what the host says instead counts.
fn options(out: &mut Vec<u8>, page: &Page, target: &Target, given: Option<&Value>) {
    let given = given.and_then(Value::as_object);
    let window = target.window.filter(|window| *window > Tokens(0));
    let own = [("num_ctx", window), ("num_predict", Some(page.output).filter(|most| *most > Tokens(0)))];
    let own = own.into_iter().filter(|(name, _)| given.is_none_or(|given| !given.contains_key(*name)));
    let mut options: Map<String, Value> =
        own.filter_map(|(name, tokens)| Some((name.to_string(), Value::from(tokens?.0)))).collect();
    options.extend(given.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
    if !options.is_empty() {
        raw(out, r#","options":"#);
        serde_json::to_writer(&mut *out, &options).expect("writing a value into memory can't fail");
    }
}

struct Writer<'p> {
    page: &'p Page,
    has_reasoning: bool,
}

/// What results are told by: the call's name, and its id if its provider gave it one.
type Called<'p> = HashMap<&'p str, (usize, &'p str, Option<Cow<'p, str>>)>;

impl<'p> Writer<'p> {
    fn messages(&self, out: &mut Vec<u8>) {
        let list = &self.page.messages;
        let mut at = 0;
        while at < list.len() {
            let message = &list[at];
            at += 1;
            if message.role == Role::Tool {
                self.result(out, message, &Called::new());
                continue;
            }
            let calls: Vec<(usize, &Call)> = calls_of(message);
            let mut ids = Ids::default();
            ids.begin(&message.parts);
            let made = are_made(calls.iter().map(|(_, call)| *call));
            let mut called = Called::new();
            for (nth, ((_, call), is_made)) in calls.iter().zip(made).enumerate() {
                let id = (!is_made).then(|| ids.of(call.id.as_str()));
                called.entry(call.id.as_str()).or_insert((nth, &call.name, id));
            }
            self.message(out, message, &calls, &called);
            // Results without an id are told apart by their order alone.
            let end = at + list[at..].iter().take_while(|it| it.role == Role::Tool).count();
            let mut results: Vec<&Message> = list[at..end].iter().collect();
            results.sort_by_key(|it| {
                answered(it).and_then(|it| called.get(it.call.as_str())).map_or(calls.len(), |it| it.0)
            });
            results.into_iter().for_each(|result| self.result(out, result, &called));
            at = end;
        }
    }

    /// Writes what somebody says, unless that is nothing.
    fn message(&self, out: &mut Vec<u8>, message: &'p Message, calls: &[(usize, &'p Call)], called: &Called<'p>) {
        let is_assistant = message.role == Role::Assistant;
        let (mut texts, mut images): (Vec<Cow<'_, str>>, Vec<&str>) = (Vec::new(), Vec::new());
        for part in message.parts.iter() {
            match part {
                Part::Image(media) => match base64_of(&media.url).filter(|_| message.role == Role::User) {
                    Some((_, data)) => images.push(data),
                    None => texts.push(named("image", media).into()),
                },
                part => texts.extend(said(part)),
            }
        }
        let thought: String =
            message.parts.iter().filter(|_| is_assistant && self.has_reasoning).filter_map(thought).collect();
        if texts.is_empty() && images.is_empty() && thought.is_empty() && calls.is_empty() {
            return;
        }
        begin(
            out,
            match message.role {
                Role::System => r#"{"role":"system","content":"#,
                Role::User => r#"{"role":"user","content":"#,
                Role::Assistant => r#"{"role":"assistant","content":"#,
                Role::Tool => r#"{"role":"tool","content":"#,
            },
        );
        string(out, &texts.join(BLANK_LINE));
        if !thought.is_empty() {
            field(out, r#","thinking":"#, &thought);
        }
        if !images.is_empty() {
            raw(out, r#","images":["#);
            separated(out, images, string);
            out.push(b']');
        }
        if !calls.is_empty() {
            raw(out, r#","tool_calls":["#);
            separated(out, calls.iter().enumerate(), |out, (index, (nth, call))| {
                let id = called.get(call.id.as_str()).and_then(|(_, _, id)| id.as_deref());
                self::call(out, index, call, id, kept::of_part(message, Wire::Ollama, *nth));
            });
            out.push(b']');
        }
        if let Some(fields) = kept::of_message(message, Wire::Ollama) {
            extra(out, fields, &["role", "content", "thinking", "images", "tool_calls"]);
        }
        out.push(b'}');
    }

    fn result(&self, out: &mut Vec<u8>, message: &'p Message, called: &Called<'p>) {
        let Some(result) = answered(message) else { return };
        begin(out, r#"{"role":"tool""#);
        match called.get(result.call.as_str()) {
            Some((_, name, id)) => {
                field(out, r#","tool_name":"#, &tool_name(name));
                id.iter().for_each(|id| field(out, r#","tool_call_id":"#, id));
            }
            None => field(out, r#","tool_call_id":"#, &crate::wire::call_id(result.call.as_str())),
        }
        field(out, r#","content":"#, &result_text(result));
        if let Some(fields) = kept::of_message(message, Wire::Ollama) {
            extra(out, fields, &["role", "content", "images", "tool_name", "tool_call_id"]);
        }
        out.push(b'}');
    }
}

/// Begins a message behind those that are there.
fn begin(out: &mut Vec<u8>, start: &str) {
    if !out.ends_with(b"[") {
        out.push(b',');
    }
    raw(out, start);
}

fn call(out: &mut Vec<u8>, index: usize, call: &Call, id: Option<&str>, fields: Option<&Map<String, Value>>) {
    out.push(b'{');
    if let Some(id) = id {
        field(out, r#""id":"#, id);
        out.push(b',');
    }
    raw(out, &format!(r#""function":{{"index":{index}"#));
    field(out, r#","name":"#, &tool_name(&call.name));
    raw(out, r#","arguments":"#);
    arguments_object(out, call.arguments.as_str());
    let inner = fields.and_then(|fields| fields.get("function")).and_then(Value::as_object);
    inner.into_iter().for_each(|fields| extra(out, fields, &["index", "name", "arguments"]));
    out.push(b'}');
    fields.into_iter().for_each(|fields| extra(out, fields, &["id", "type", "function"]));
    out.push(b'}');
}

fn calls_of(message: &Message) -> Vec<(usize, &Call)> {
    let parts = message.parts.iter().enumerate().filter(|_| message.role == Role::Assistant);
    parts.filter_map(|(at, part)| if let Part::Call(call) = part { Some((at, call)) } else { None }).collect()
}

fn answered(message: &Message) -> Option<&ToolResult> {
    message.parts.iter().find_map(|part| if let Part::Result(result) = part { Some(result) } else { None })
}

fn thought(part: &Part) -> Option<&str> {
    if let Part::Reasoning(it) = part { Some(&it.text) } else { None }
}

/// The words of a part, or those that stand for it.
fn said(part: &Part) -> Option<Cow<'_, str>> {
    match part {
        Part::Text { text } => (!text.is_empty()).then_some((&**text).into()),
        Part::Image(media) => Some(named("image", media).into()),
        Part::Audio(media) => Some(named("audio", media).into()),
        Part::Document(media) => Some(named("document", media).into()),
        Part::File { id } => Some(format!("[file: {}]", shortened(id)).into()),
        Part::Opaque { .. } | Part::Reasoning(_) | Part::Call(_) | Part::Result(_) => None,
    }
}
