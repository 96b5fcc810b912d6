//! What was said so far, however a client spells it.
//!
//! Clients send a conversation again at every call, and not always in the same words of JSON: a text as a string or as
//! a list, arguments serialised anew, cache marks moved on, reasoning left out. An *atom* identifies one part of what
//! was said by what a model reads of it, and a [`Chain`] everything up to an atom. Where messages begin and end doesn't
//! matter beyond who speaks.
//!
//! ```
//! use recto::Entry;
//! use recto::chain::{Chain, atoms};
//!
//! let said = |text: &str| atoms(&Entry::user(text)).fold(Chain::default(), Chain::then);
//! assert_eq!(said("hello"), said("hello\n"));
//! assert_ne!(said("hello"), said("hello!"));
//! ```

use crate::digest::{Digest, Hasher};
use crate::entry::{Entry, Part, Piece, Role, ToolResult};
use crate::wire::Wire;
use crate::wire::json::without_lone_surrogates;
use serde_json::{Map, Value};

/// Whose items say by their type alone who speaks.
const OPENAI: &str = "openai";
/// The outputs of calls, which are results where the call is one of ours, and stay as they are where it is not.
const OUTPUTS: [&str; 2] = ["function_call_output", "custom_tool_call_output"];
/// Cache marks, as providers call them.
const MARKS: [&str; 2] = ["cache_control", "prompt_cache_breakpoint"];
/// Parts of a tool's output that pieces hold as they are.
const HELD: [&str; 4] = ["input_text", "output_text", "text", "input_image"];

/// Identifies everything that was said up to some atom; the default is that nothing was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain(Digest);

impl Chain {
    /// Returns the chain that goes on with an atom.
    #[must_use]
    pub fn then(self, atom: Digest) -> Chain {
        let mut hasher = Hasher::new();
        hasher.digest(self.0);
        hasher.digest(atom);
        Chain(hasher.finish())
    }

    /// Returns what identifies everything so far.
    pub fn digest(self) -> Digest {
        self.0
    }

    /// Returns what identifies everything so far to those alone who name the same session.
    pub fn marked(self, mark: &str) -> Digest {
        let mut hasher = Hasher::new();
        hasher.digest(self.0);
        hasher.text("marked");
        hasher.text(mark);
        hasher.finish()
    }
}

/// Returns what identifies each part that says something, in order; reasoning and blank texts have no atom.
pub fn atoms(entry: &Entry) -> impl Iterator<Item = Digest> + '_ {
    entry.parts.iter().filter_map(|part| atom(entry, part))
}

fn atom(entry: &Entry, part: &Part) -> Option<Digest> {
    let mut hasher = Hasher::new();
    match part {
        Part::Reasoning(_) => return None,
        Part::Text { text } => {
            let text = said(text)?;
            begin(&mut hasher, entry.role, "text");
            hasher.text(text);
        }
        Part::Call(call) => {
            begin(&mut hasher, entry.role, "call");
            hasher.text(call.id.as_str());
            hasher.text(&call.name);
            arguments(&mut hasher, call.arguments.as_str());
        }
        Part::Result(result) => {
            begin(&mut hasher, entry.role, "result");
            answer(&mut hasher, result, &entry.extra);
        }
        Part::Image(media) => {
            begin(&mut hasher, entry.role, "image");
            hasher.text(&media.url);
        }
        Part::Audio(media) => {
            begin(&mut hasher, entry.role, "audio");
            hasher.text(&media.url);
        }
        Part::Document(media) => {
            begin(&mut hasher, entry.role, "document");
            hasher.text(&media.url);
        }
        Part::File { id } => {
            begin(&mut hasher, entry.role, "file");
            hasher.text(id);
        }
        Part::Opaque { provider, payload } => return Some(opaque(entry.role, provider, payload)),
    }
    Some(hasher.finish())
}

fn begin(hasher: &mut Hasher, role: Role, kind: &str) {
    hasher.number(role as u64);
    hasher.text(kind);
}

/// A text without the space around it, if anything is left.
fn said(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// Arguments are their value; what is no JSON is its text. Nothing at all is what some write for no arguments.
fn arguments(hasher: &mut Hasher, text: &str) {
    let value = match text.trim() {
        "" => Some(Value::Null),
        text => read(text),
    };
    match value {
        Some(Value::Null) => canonical(hasher, &Value::Object(Map::new())),
        Some(value) => canonical(hasher, &value),
        None => hasher.text(text.trim()),
    }
}

fn answer(hasher: &mut Hasher, result: &ToolResult, extra: &Map<String, Value>) {
    hasher.text(result.call.as_str());
    hasher.number(u64::from(result.is_error));
    let is_object = of_result(extra, Wire::Gemini, "response").is_some();
    for piece in &result.content {
        match piece {
            Piece::Text { text } => {
                let Some(text) = said(text) else { continue };
                hasher.text("text");
                // An object is its value, however its text was put together.
                match read(text).filter(|_| is_object) {
                    Some(value) => canonical(hasher, &value),
                    None => hasher.text(text),
                }
            }
            Piece::Image(media) => {
                hasher.text("image");
                hasher.text(&media.url);
            }
        }
    }
    for mut value in unheld(extra) {
        prune(&mut value);
        hasher.text("beside");
        canonical(hasher, &value);
    }
}

/// What a decoder kept beside a result.
fn of_result<'e>(extra: &'e Map<String, Value>, wire: Wire, name: &str) -> Option<&'e Value> {
    extra.get(wire.name())?.get("parts")?.get("0")?.get(name)
}

/// What a result holds that pieces can only name; decoders keep it beside the entry.
fn unheld(extra: &Map<String, Value>) -> Vec<Value> {
    let blocks =
        [Wire::Anthropic, Wire::Gemini].into_iter().filter_map(|wire| of_result(extra, wire, "blocks").cloned());
    let parts = of_result(extra, Wire::OpenaiResponses, "output").and_then(Value::as_array).into_iter().flatten();
    let is_held = |part: &Value| part["type"].as_str().is_some_and(|kind| HELD.contains(&kind));
    let is_file = |part: &Value| part.get("image_url").is_none_or(Value::is_null) && part["type"] == "input_image";
    blocks.chain(parts.filter(|part| !is_held(part) || is_file(part)).cloned()).collect()
}

/// What only its provider understands is its value, without what a provider adds and a client may leave out.
fn opaque(role: Role, provider: &str, payload: &str) -> Digest {
    let mut hasher = Hasher::new();
    let Some(mut value) = read(payload) else {
        begin(&mut hasher, role, "opaque");
        hasher.text(payload.trim());
        return hasher.finish();
    };
    let kind = value["type"].as_str().unwrap_or_default().to_string();
    if provider == OPENAI && OUTPUTS.contains(&kind.as_str()) {
        // Whether the call was read with it must not matter.
        let read = Wire::OpenaiResponses.read_elements(&[payload], None).unwrap_or_default();
        let result = read.entries.first().filter(|entry| entry.role == Role::Tool);
        if let Some(digest) = result.and_then(|entry| atoms(entry).next()) {
            return digest;
        }
    }
    prune(&mut value);
    if let Value::Object(fields) = &mut value {
        fields.remove("status");
        // A reference is nothing but its id.
        if kind != "item_reference" {
            fields.remove("id");
        }
    }
    // One item may be read as a part of an answer, and as somebody else's when it comes back.
    begin(&mut hasher, if provider == OPENAI { Role::Assistant } else { role }, "opaque");
    canonical(&mut hasher, &value);
    hasher.finish()
}

fn read(text: &str) -> Option<Value> {
    serde_json::from_str(&without_lone_surrogates(text).0).ok()
}

/// Takes out cache marks and fields that say nothing.
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| !value.is_null() && !MARKS.contains(&name.as_str()));
            fields.values_mut().for_each(prune);
        }
        Value::Array(list) => list.iter_mut().for_each(prune),
        _ => {}
    }
}

/// Adds a value, whatever the order of its keys and the spelling of its numbers and texts.
fn canonical(hasher: &mut Hasher, value: &Value) {
    match value {
        Value::Null => hasher.text("null"),
        Value::Bool(is_true) => {
            hasher.text("bool");
            hasher.number(u64::from(*is_true));
        }
        Value::Number(number) => {
            hasher.text("number");
            // Many clients know no other numbers than these. Adding zero makes the negative one the other.
            match number.as_f64() {
                Some(number) => hasher.number((number + 0.0).to_bits()),
                None => hasher.text(&number.to_string()),
            }
        }
        Value::String(text) => {
            hasher.text("string");
            hasher.text(text);
        }
        Value::Array(list) => {
            hasher.text("list");
            hasher.number(list.len() as u64);
            list.iter().for_each(|value| canonical(hasher, value));
        }
        Value::Object(fields) => {
            hasher.text("object");
            hasher.number(fields.len() as u64);
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            // A build may keep them in the order they came.
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in fields {
                hasher.text(name);
                canonical(hasher, value);
            }
        }
    }
}
