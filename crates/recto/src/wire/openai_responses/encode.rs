//! From page to body: written straight into bytes, in a fixed order of keys.

use super::content::{Extra, content_part, pieces};
use super::items::{Written, written_as};
use super::part::MARK;
use super::record::{Record, kind_of};
use super::{ID_MAX, PROVIDER};
use crate::entry::{Arguments, Call, Part, Piece, Reasoning, Role, Text, ToolResult};
use crate::format::ResponseFormat;
use crate::page::{After, Message, Page};
use crate::target::{Caching, Reasoned, Target};
use crate::wire::write::{extra, field, raw, room, separated, string};
use crate::wire::{Ids, Wire, tool_name};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What is asked for so that reasoning can go back.
const SEALED: &str = "reasoning.encrypted_content";
/// What is said where there is nothing else to say.
const NOTHING: &str = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"[Continue.]"}]}"#;
/// A mark that nobody gave.
const OWN_MARK: &str = r#"{"mode":"explicit"}"#;
/// The fields that are written at a place of their own.
const PLACED: &[&str] = &["model", "store", "include", "instructions", "input", "tools", "text"];
/// The fields that name what the provider holds already.
const HELD: &[&str] = &["previous_response_id", "conversation"];

/// Writes the body of a request for a page.
pub fn encode(page: &Page, target: &Target) -> Vec<u8> {
    encode_with(page, target, &Map::new())
}

/// Writes the body of a request for a page, with fields of the host's own.
pub fn encode_with(page: &Page, target: &Target, fields: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(page));
    field(&mut out, r#"{"model":"#, &target.name);
    let is_held = HELD.iter().any(|name| fields.get(*name).is_some_and(|it| !it.is_null()));
    let remembers = is_held || target.forgets_instructions();
    raw(&mut out, r#","store":"#);
    value(&mut out, fields.get("store").unwrap_or(&Value::Bool(remembers)));
    include(&mut out, target, fields.get("include"));
    // Instructions of this call alone: as items they would stay.
    let is_passing = |message: &&Message| remembers && message.role == Role::System && message.seq.is_none();
    let passing = page.messages.iter().take_while(is_passing).count();
    instructions(&mut out, &page.messages[..passing], fields.get("instructions"));
    raw(&mut out, r#","input":["#);
    let before = out.len();
    Input::of(page, target).write(&mut out, page, passing);
    if out.len() == before {
        raw(&mut out, NOTHING);
    }
    out.push(b']');
    if let Some(tools) = page.tools.as_ref().filter(|tools| tools.taken(Wire::OpenaiResponses).next().is_some()) {
        raw(&mut out, r#","tools":"#);
        tools.write(&mut out, Wire::OpenaiResponses, None);
    }
    text(&mut out, page.format.as_ref(), fields.get("text"));
    extra(&mut out, fields, PLACED);
    out.push(b'}');
    out
}

fn value(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("writing a value into memory can't fail");
}

fn instructions(out: &mut Vec<u8>, messages: &[Message], given: Option<&Value>) {
    let texts = messages.iter().flat_map(|message| message.parts.iter()).filter_map(|part| match part {
        Part::Text { text } => Some(&**text),
        _ => None,
    });
    let texts: Vec<&str> = given.and_then(Value::as_str).into_iter().chain(texts).collect();
    match (messages.is_empty(), given) {
        (true, None) => {}
        (true, Some(given)) => {
            raw(out, r#","instructions":"#);
            value(out, given);
        }
        (false, _) => field(out, r#","instructions":"#, &texts.join("\n\n")),
    }
}

fn include(out: &mut Vec<u8>, target: &Target, given: Option<&Value>) {
    let is_sealed = target.reasoning == Reasoned::Sealed;
    let list = given.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let ours = (is_sealed && !list.iter().any(|it| it == SEALED)).then(|| Value::from(SEALED));
    if given.is_none() && ours.is_none() {
        return;
    }
    raw(out, r#","include":["#);
    separated(out, list.iter().chain(&ours), value);
    out.push(b']');
}

fn text(out: &mut Vec<u8>, format: Option<&ResponseFormat>, given: Option<&Value>) {
    let Some(format) = format else {
        if let Some(given) = given {
            raw(out, r#","text":"#);
            value(out, given);
        }
        return;
    };
    raw(out, r#","text":{"format":{"type":"#);
    match format {
        ResponseFormat::Json => raw(out, r#""json_object""#),
        ResponseFormat::Schema { name, schema, strict } => {
            field(out, r#""json_schema","name":"#, &ResponseFormat::accepted_name(name));
            raw(out, r#","schema":"#);
            raw(out, schema);
            if let Some(strict) = strict {
                raw(out, if *strict { r#","strict":true"# } else { r#","strict":false"# });
            }
        }
    }
    out.push(b'}');
    if let Some(Value::Object(given)) = given {
        extra(out, given, &["format"]);
    }
    out.push(b'}');
}

/// The list of items that is being written.
struct Input<'p> {
    target: &'p Target,
    ids: Ids<'p>,
    /// How the calls of the newest step are spelled.
    kinds: HashMap<&'p str, Written>,
    /// The calls that went back as they came.
    opaque_calls: HashSet<String>,
    /// The marks, by the number of the message.
    marks: HashMap<usize, &'p str>,
    is_first: bool,
}

impl<'p> Input<'p> {
    fn of(page: &'p Page, target: &'p Target) -> Input<'p> {
        let takes_marks = target.cache.kind == Caching::MarksAndEnd;
        let marks = page.marks.iter().filter(|_| takes_marks).filter_map(|mark| {
            let After::Message(at) = mark.after else { return None };
            let is_object = |it: &&Text| it.starts_with('{') && serde_json::from_str::<&RawValue>(it).is_ok();
            Some((at, mark.given.as_ref().filter(is_object).map_or(OWN_MARK, |it| it)))
        });
        Input {
            target,
            ids: Ids::default(),
            kinds: HashMap::new(),
            opaque_calls: HashSet::new(),
            marks: marks.collect(),
            is_first: true,
        }
    }

    fn write(mut self, out: &mut Vec<u8>, page: &'p Page, passing: usize) {
        for (at, message) in page.messages.iter().enumerate().skip(passing) {
            let mark = self.marks.get(&at).copied();
            match message.role {
                Role::System => self.said(out, message, "developer", mark),
                Role::User => self.said(out, message, "user", mark),
                Role::Assistant => self.step(out, message),
                Role::Tool => self.results(out, message, mark),
            }
        }
    }

    /// Begins an item.
    fn item(&mut self, out: &mut Vec<u8>, head: &str) {
        if !std::mem::take(&mut self.is_first) {
            out.push(b',');
        }
        raw(out, head);
    }

    /// Writes what somebody else than the model said: a message, cut where items stand between its parts.
    fn said(&mut self, out: &mut Vec<u8>, message: &'p Message, role: &str, mark: Option<&str>) {
        let own = Extra::of(message);
        let parts: Vec<(usize, &Part)> = message.parts.iter().enumerate().filter(|(_, it)| it.is_content()).collect();
        let is_inside = |part: &Part| !matches!(part, Part::Opaque { .. } | Part::Call(_) | Part::Result(_));
        let marked = parts.iter().rev().find(|(_, part)| is_inside(part)).map(|(at, _)| *at);
        for group in parts.chunk_by(|(_, one), (_, other)| is_inside(one) && is_inside(other)) {
            match group {
                [(_, Part::Opaque { provider, payload })] => self.opaque(out, provider, payload, false),
                [(_, Part::Call(_) | Part::Result(_))] => {}
                group => {
                    self.item(out, r#"{"type":"message","role":""#);
                    raw(out, role);
                    raw(out, r#"","content":["#);
                    separated(out, group, |out, (at, part)| {
                        content_part(out, part, own.part(*at), mark.filter(|_| marked == Some(*at)));
                    });
                    out.push(b']');
                    own.message(out, &["type", "role", "content"]);
                    out.push(b'}');
                }
            }
        }
    }

    /// Writes what the model said, thought and called.
    fn step(&mut self, out: &mut Vec<u8>, message: &'p Message) {
        self.ids.begin(&message.parts);
        self.kinds.clear();
        let own = Extra::of(message);
        let is_sent = |part: &Part| match part {
            Part::Text { .. } => part.is_content(),
            Part::Call(_) => true,
            Part::Opaque { provider, payload } => is_item(provider, payload),
            _ => false,
        };
        let last = message.parts.iter().rposition(is_sent).unwrap_or(0);
        let mut thoughts = message.parts.iter().filter_map(|part| match part {
            Part::Reasoning(it) if it.is_sealed() => Some(it),
            _ => None,
        });
        // One answer's reasoning goes back all or none.
        let thinks = self.target.reasoning == Reasoned::Sealed && thoughts.all(|it| self.takes(it));
        let mut has_thought = false;
        for (at, part) in message.parts.iter().enumerate() {
            match part {
                Part::Reasoning(Reasoning { item: Some(item), .. }) if thinks && at < last => {
                    has_thought = true;
                    self.item(out, item);
                }
                Part::Text { text } if part.is_content() => {
                    self.item(out, "");
                    assistant_text(out, text, &own, at);
                }
                Part::Call(call) => self.call(out, call, written_as(&message.extra, at), own.part(at)),
                Part::Opaque { provider, payload } => self.opaque(out, provider, payload, !has_thought),
                _ => {}
            }
        }
    }

    fn takes(&self, thought: &Reasoning) -> bool {
        let is_own = thought.provider.as_deref() == Some(&*self.target.provider);
        let Some(item) = thought.item.as_deref().filter(|_| is_own) else { return false };
        let Ok(fields) = serde_json::from_str::<Record<'_>>(item) else { return false };
        let id = fields.get("id").map(|_| fields.text("id").unwrap_or_default());
        fields.text("type").as_deref() == Some("reasoning")
            && fields.text("encrypted_content").is_some_and(|it| !it.is_empty())
            && id.is_none_or(|id| id.starts_with("rs") && id.len() <= ID_MAX)
    }

    fn call(&mut self, out: &mut Vec<u8>, call: &'p Call, written: Written, own: Option<&Map<String, Value>>) {
        self.kinds.insert(call.id.as_str(), written);
        let (kind, spelled) = match written {
            Written::Function => ("function_call", r#","arguments":"#),
            Written::Custom => ("custom_tool_call", r#","input":"#),
        };
        self.item(out, r#"{"type":""#);
        raw(out, kind);
        field(out, r#"","call_id":"#, &self.ids.of(call.id.as_str()));
        field(out, r#","name":"#, &tool_name(&call.name));
        raw(out, spelled);
        match written {
            Written::Function => string(out, &object(&call.arguments)),
            Written::Custom => string(out, call.arguments.as_str()),
        }
        if let Some(own) = own {
            extra(out, own, &["type", "id", "call_id", "name", "arguments", "input", "status", "message"]);
        }
        out.push(b'}');
    }

    fn results(&mut self, out: &mut Vec<u8>, message: &'p Message, mark: Option<&str>) {
        let own = Extra::of(message);
        for (at, part) in message.parts.iter().enumerate() {
            let Part::Result(ToolResult { call, content, .. }) = part else { continue };
            let kind = match self.kinds.get(call.as_str()) {
                Some(Written::Custom) => "custom_tool_call_output",
                _ => "function_call_output",
            };
            self.item(out, r#"{"type":""#);
            raw(out, kind);
            field(out, r#"","call_id":"#, &self.ids.of(call.as_str()));
            raw(out, r#","output":"#);
            match own.part(at).and_then(|own| own.get("output")) {
                Some(whole) => value(out, whole),
                None => output(out, content, mark),
            }
            own.message(out, &["type", "id", "call_id", "output"]);
            out.push(b'}');
        }
    }

    /// Writes an item that only this provider understands, as it came; but an id could name reasoning that is gone.
    fn opaque(&mut self, out: &mut Vec<u8>, provider: &str, payload: &str, is_alone: bool) {
        let Ok(fields) = serde_json::from_str::<Record<'_>>(payload) else { return };
        let Some(kind) = kind_of(&fields).filter(|_| is_item(provider, payload)) else { return };
        if kind == "refusal" {
            self.item(out, r#"{"type":"message","role":"assistant","content":["#);
            raw(out, payload);
            return raw(out, "]}");
        }
        let call = fields.text("call_id");
        if kind.ends_with("_call") {
            self.opaque_calls.extend(call);
        } else if kind.ends_with("_output") && call.is_some_and(|id| !self.opaque_calls.contains(&id)) {
            return;
        }
        let is_long = fields.text("id").is_some_and(|id| id.chars().count() > ID_MAX);
        let names_gone = is_alone && kind.ends_with("_call");
        match fields.get("id").is_some() && (is_long || names_gone) {
            true => self.item(out, &fields.without(&["id"])),
            false => self.item(out, payload),
        }
    }
}

/// Returns whether something opaque can stand in a list of items.
fn is_item(provider: &str, payload: &str) -> bool {
    const OTHERS: &[&str] = &[
        "text",
        "image_url",
        "input_audio",
        "file",
        "custom",
        "function",
        "reasoning",
        "function_call",
        "custom_tool_call",
    ];
    let Ok(fields) = serde_json::from_str::<Record<'_>>(payload) else { return false };
    provider == PROVIDER && kind_of(&fields).is_some_and(|kind| !OTHERS.contains(&kind.as_str()))
}

fn assistant_text(out: &mut Vec<u8>, text: &str, own: &Extra<'_>, at: usize) {
    let of_part = own.part(at).filter(|own| own.keys().any(|name| name != "message" && name != "type"));
    match of_part {
        None => field(out, r#"{"role":"assistant","content":"#, text),
        Some(fields) => {
            field(out, r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"#, text);
            extra(out, fields, &["type", "text", "message", MARK]);
            raw(out, "}]");
        }
    }
    own.message_of(out, at, &["type", "role", "content", "id", "status"]);
    out.push(b'}');
}

/// The arguments of a function as a JSON object; what is none is its only field.
fn object(arguments: &Arguments) -> Cow<'_, str> {
    let text = arguments.as_str();
    let is_object = text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    match (is_object, text.trim().is_empty()) {
        (true, _) => Cow::Borrowed(text),
        (false, true) => Cow::Borrowed("{}"),
        (false, false) => {
            let mut wrapped = Vec::with_capacity(text.len() + 16);
            field(&mut wrapped, r#"{"input":"#, text);
            wrapped.push(b'}');
            Cow::Owned(String::from_utf8(wrapped).expect("a text was written"))
        }
    }
}

fn output(out: &mut Vec<u8>, content: &[Piece], mark: Option<&str>) {
    let is_said = |piece: &&Piece| !matches!(piece, Piece::Text { text } if text.is_empty());
    let said: Vec<&Piece> = content.iter().filter(is_said).collect();
    match (&*said, mark) {
        ([], _) => raw(out, r#""""#),
        ([Piece::Text { text }], None) => string(out, text),
        (said, mark) => pieces(out, said, mark),
    }
}
