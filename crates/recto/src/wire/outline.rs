//! A request body in outline: where its messages begin and end, and the few words that say what is wanted. What was
//! said is not decoded, so that a body whose messages are known costs no more than walking over it once.

mod layout; // where things stand, for bodies that begin the same

use crate::entry::{Entry, Part, Reasoning};
use crate::error::Error;
use crate::wire::json::{Source, place_of, without_lone_surrogates, without_position};
use crate::wire::{Decoded, Wire, openai_chat};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

pub use layout::{Ending, Layout};

/// How many fields of a body are looked for.
const FIELDS: usize = 13;
/// Where among them the tools stand, as they are given, be it as `null`.
const TOOLS: usize = 3;
/// What stands between elements that are read only for what they say about later ones, and those.
const SEPARATOR: &str = r#"{"role":"user","content":"-"}"#;

/// A request body whose messages were found but not read.
#[derive(Clone, Debug)]
pub struct Outline<'b> {
    /// The model it names.
    pub model: Option<Cow<'b, str>>,
    /// Whether the answer is wanted as a stream.
    pub is_streaming: bool,
    /// The instructions beside the messages, as JSON text.
    pub instructions: Option<&'b str>,
    /// The messages or items in order, each as JSON text; an input that is a string is one element.
    pub elements: Vec<&'b str>,
    /// How many of the first elements are instructions.
    pub leading: usize,
    /// The tools, as JSON text.
    pub tools: Option<&'b str>,
    /// The client's own name of its session.
    pub session: Option<Cow<'b, str>>,
    /// The response of the provider that it goes on from.
    pub previous: Option<Cow<'b, str>>,
    /// The conversation at the provider that holds what was said before.
    pub held_by: Option<Cow<'b, str>>,
    /// Whether a tool that somebody else answers can be offered beside the client's own.
    is_open: bool,
    /// The fields that were looked for.
    fields: Values<'b>,
    /// Those of them that stand before the list of messages, if there is one.
    before_list: Option<Values<'b>>,
    wire: Wire,
    body: &'b str,
}

/// The values of the fields of a body that are looked for, each as JSON text.
type Values<'b> = [Option<&'b str>; FIELDS];

impl Outline<'_> {
    /// Reads the elements from this one on, with what earlier ones say about them. Sealed reasoning in them is bound to
    /// nothing; where all elements are wanted, [`Wire::decode`] binds it.
    pub fn read_from(&self, at: usize) -> Result<Decoded, Error> {
        let (before, elements) = self.elements.split_at(at.min(self.elements.len()));
        self.read_behind(before, elements).map_err(|error| {
            // The whole body knows where in it the mistake is.
            self.wire.decode(self.body).err().unwrap_or(error)
        })
    }

    /// Returns where in the body something must stand, and what, for a tool to be offered behind the client's own;
    /// everything else stays as it is. There is no such place where the client has a tool of this name, where several
    /// answers are wanted at once, and where the provider keeps the answer for the client to go on from.
    pub fn offering(&self, name: &str, definition: &str) -> Option<(Range<usize>, String)> {
        if !self.is_open {
            return None;
        }
        let group = format!(r#"{{"functionDeclarations":[{definition}]}}"#);
        let definition = if self.wire == Wire::Gemini { &group } else { definition };
        let Some(given) = self.fields[TOOLS] else {
            let end = self.body.trim_end().strip_suffix('}')?.len();
            return Some((end..end, format!(r#","tools":[{definition}]"#)));
        };
        let start = given.as_ptr() as usize - self.body.as_ptr() as usize;
        if given == "null" {
            return Some((start..start + given.len(), format!("[{definition}]")));
        }
        let listed = given.strip_prefix('[')?.strip_suffix(']')?.trim_end();
        if listed.contains(name) {
            return None;
        }
        let (end, comma) = (start + 1 + listed.len(), if listed.is_empty() { "" } else { "," });
        Some((end..end, format!("{comma}{definition}")))
    }

    fn read_behind(&self, before: &[&str], elements: &[&str]) -> Result<Decoded, Error> {
        let model = self.model.as_deref();
        let step = self.wire.step_before(before, elements);
        if !step.is_empty() {
            let known = self.wire.read_elements(step, model)?.entries.len();
            let mut decoded = self.wire.read_elements(&[step, elements].concat(), model)?;
            decoded.entries.drain(..known);
            return Ok(decoded);
        }
        let decoded = self.wire.read_elements(elements, model)?;
        let mut needed = match self.wire {
            Wire::OpenaiResponses => opaque_calls(before, &decoded.entries),
            Wire::OpenaiChat | Wire::Anthropic | Wire::Gemini | Wire::Ollama => Vec::new(),
        };
        if needed.is_empty() {
            return Ok(decoded);
        }
        needed.push(SEPARATOR);
        needed.extend(elements);
        let mut decoded = self.wire.read_elements(&needed, self.model.as_deref())?;
        // The calls are one entry, and the separator another.
        decoded.entries.drain(..2);
        decoded.marks.iter_mut().for_each(|mark| mark.entry -= 2);
        Ok(decoded)
    }
}

impl Wire {
    /// Finds the messages of a request body, and what it says beside them. What [`decode`](Wire::decode) reads, this
    /// finds; of fields given twice, the last counts.
    pub fn outline(self, body: &str) -> Result<Outline<'_>, Error> {
        let (names, list) = (self.names(), self.list());
        // Almost every body has a list there. Anything else is looked at once more, to tell what it is.
        let found = walk(body, Walk { names, list: Some(list) })
            .or_else(|_| walk(body, Walk { names, list: None }))
            .map_err(|error| Error::input(without_position(&error)).at(place_of(body, &error)))?;
        let (elements, before_list) = match (found.list, found.fields[0]) {
            (Some((elements, before)), _) => (elements, Some(before)),
            (None, Some(raw)) => (self.elements(&Source { text: body }, raw)?, None),
            (None, None) => (Vec::new(), None),
        };
        let leading = elements.iter().take_while(|element| self.is_instruction(element)).count();
        self.outlined(body, found.fields, before_list, elements, leading)
    }

    /// The names of the fields that are looked for; the list of messages is the first, and tools stand at [`TOOLS`].
    fn names(self) -> [&'static str; FIELDS] {
        [
            self.list(),
            "model",
            "stream",
            "tools",
            self.beside(),
            self.session(),
            "previous_response_id",
            "conversation",
            "functions",
            "n",
            "store",
            "background",
            // How a client of Gemini may spell where its instructions stand.
            "system_instruction",
        ]
    }

    /// Says what the fields of a body mean.
    fn outlined<'b>(
        self,
        body: &'b str,
        fields: Values<'b>,
        before_list: Option<Values<'b>>,
        elements: Vec<&'b str>,
        leading: usize,
    ) -> Result<Outline<'b>, Error> {
        let [_, model, stream, tools, beside, session, previous, conversation, functions, n, store, background, other] =
            fields;
        let beside = other.filter(|_| self == Wire::Gemini).or(beside);
        let source = Source { text: body };
        let is_responses = self == Wire::OpenaiResponses;
        let session = session.and_then(|raw| self.session_of(raw));
        let conversation = conversation.and_then(|raw| inner(raw, "id").or(Some(raw)));
        Ok(Outline {
            model: model.map_or(Ok(None), |raw| model_of(&source, raw))?.map(|model| self.bare(model)),
            is_streaming: if self == Wire::Ollama { !is(stream, "false") } else { is(stream, "true") },
            instructions: beside.filter(|_| !matches!(self, Wire::OpenaiChat | Wire::Ollama)).and_then(given),
            leading,
            elements,
            tools: tools.and_then(given),
            session: session.and_then(text),
            previous: previous.filter(|_| is_responses).and_then(text),
            held_by: conversation.filter(|_| is_responses).and_then(text),
            is_open: match self {
                Wire::OpenaiChat => is_one_answer(functions, n),
                // What the provider keeps, it would keep with calls that the client knows nothing of.
                Wire::OpenaiResponses => is(store, "false") && !is(background, "true"),
                Wire::Anthropic | Wire::Gemini | Wire::Ollama => true,
            },
            fields,
            before_list,
            wire: self,
            body,
        })
    }

    /// Reads elements of an [`Outline`] as if they were all of a body. Sealed reasoning in them is bound to nothing.
    pub fn read_elements(self, elements: &[&str], model: Option<&str>) -> Result<Decoded, Error> {
        if self == Wire::OpenaiChat
            && let Some(decoded) = openai_chat::decode_plain(elements, model)
        {
            return Ok(decoded);
        }
        let is_plain = |element: &&str| matches!(without_lone_surrogates(element), (Cow::Borrowed(_), _));
        if self == Wire::OpenaiChat && elements.iter().all(is_plain) {
            return openai_chat::decode_elements(elements, model);
        }
        let model = model.map_or(Value::Null, Value::from);
        let list = match elements {
            [text] if text.starts_with('"') => (*text).to_string(),
            elements => format!("[{}]", elements.join(",")),
        };
        let mut decoded = self.decode(&format!(r#"{{"model":{model},"{}":{list}}}"#, self.list()))?;
        decoded.entries.iter_mut().for_each(unbind);
        Ok(decoded)
    }

    /// Reads the instructions that an [`Outline`] found beside the messages.
    pub fn read_instructions(self, raw: &str) -> Result<Decoded, Error> {
        self.decode(&format!(r#"{{"{}":{raw}}}"#, self.beside()))
    }

    /// The name of the field that holds the messages.
    fn list(self) -> &'static str {
        match self {
            Wire::OpenaiChat | Wire::Anthropic | Wire::Ollama => "messages",
            Wire::OpenaiResponses => "input",
            Wire::Gemini => "contents",
        }
    }

    /// The name of the field that holds instructions; one that nobody uses where they are messages.
    fn beside(self) -> &'static str {
        match self {
            Wire::OpenaiChat | Wire::OpenaiResponses | Wire::Ollama => "instructions",
            Wire::Anthropic => "system",
            Wire::Gemini => "systemInstruction",
        }
    }

    /// The name of the field in which a client says which session it is.
    fn session(self) -> &'static str {
        match self {
            Wire::OpenaiChat | Wire::OpenaiResponses | Wire::Gemini | Wire::Ollama => "prompt_cache_key",
            Wire::Anthropic => "metadata",
        }
    }

    fn elements<'b>(self, source: &Source<'b>, raw: &'b str) -> Result<Vec<&'b str>, Error> {
        let is_responses = self == Wire::OpenaiResponses;
        match raw.as_bytes().first() {
            Some(b'n') if is_responses => Ok(Vec::new()),
            Some(b'"') if is_responses => Ok(vec![raw]),
            _ => Ok(source.read_text::<Vec<&RawValue>>(raw, self.list())?.into_iter().map(RawValue::get).collect()),
        }
    }

    /// Whether an element holds instructions, by nothing but its type and role.
    fn is_instruction(self, element: &str) -> bool {
        // Most say neither word, nor a letter of it by its number.
        if !["system", "developer", "\\u"].iter().any(|piece| element.contains(piece)) {
            return false;
        }
        let Some([kind, role]) = fields_of(element, ["type", "role"]) else { return false };
        let is_message = match self {
            Wire::OpenaiChat | Wire::Ollama => true,
            Wire::OpenaiResponses => kind.and_then(text).is_none_or(|kind| kind == "message"),
            Wire::Anthropic | Wire::Gemini => false,
        };
        is_message && role.and_then(text).is_some_and(|role| role == "system" || role == "developer")
    }
}

impl Wire {
    /// The elements that say which calls the first results among these belong to, where results need no id.
    fn step_before<'e, 'b>(self, before: &'e [&'b str], elements: &[&'b str]) -> &'e [&'b str] {
        let Some(first) = elements.first() else { return &[] };
        let is_result = |element: &&str| {
            let found = fields_of(element, ["role"]).and_then(|[role]| role);
            found.and_then(text).is_some_and(|role| role.eq_ignore_ascii_case("tool"))
        };
        let length = match self {
            Wire::Gemini if first.contains("functionResponse") || first.contains("function_response") => 1,
            Wire::Ollama if is_result(first) => 1 + before.iter().rev().take_while(|it| is_result(it)).count(),
            _ => 0,
        };
        &before[before.len().saturating_sub(length)..]
    }

    /// What a client says which session it is with, in the field that it says so in.
    fn session_of(self, raw: &str) -> Option<&str> {
        match self {
            Wire::Anthropic => inner(raw, "user_id"),
            Wire::OpenaiChat | Wire::OpenaiResponses => Some(raw),
            Wire::Gemini | Wire::Ollama => None,
        }
    }

    /// The name of a model without what one provider writes before it.
    fn bare(self, model: Cow<'_, str>) -> Cow<'_, str> {
        match model.strip_prefix("models/").filter(|_| self == Wire::Gemini) {
            Some(bare) => Cow::Owned(bare.to_string()),
            None => model,
        }
    }
}

/// The calls before that have no part of their own, but outputs among these entries, which go with them.
fn opaque_calls<'b>(before: &[&'b str], entries: &[Entry]) -> Vec<&'b str> {
    let (mut called, mut open) = (HashSet::new(), HashSet::new());
    for part in entries.iter().flat_map(|entry| entry.parts.iter()) {
        match part {
            Part::Call(call) => drop(called.insert(call.id.as_str())),
            Part::Result(result) if !called.contains(result.call.as_str()) => drop(open.insert(result.call.as_str())),
            _ => {}
        }
    }
    let mut calls = Vec::new();
    for element in before.iter().rev() {
        if open.is_empty() {
            break;
        }
        let Some([kind, id]) = fields_of(element, ["type", "call_id"]) else { continue };
        let Some(kind) = kind.and_then(text).filter(|kind| kind.ends_with("_call")) else { continue };
        let is_open = id.and_then(text).is_some_and(|id| open.remove(&*id));
        if is_open && kind != "function_call" && kind != "custom_tool_call" {
            calls.push(*element);
        }
    }
    calls.reverse();
    calls
}

/// Takes off what reasoning is bound to: what really stands before it was not read.
fn unbind(entry: &mut Entry) {
    let is_bound = |part: &Part| matches!(part, Part::Reasoning(Reasoning { prefix: Some(_), .. }));
    if entry.parts.iter().any(is_bound) {
        let unbound = |part: &Part| match part {
            Part::Reasoning(it) => Part::Reasoning(Reasoning { prefix: None, ..it.clone() }),
            part => part.clone(),
        };
        entry.parts = entry.parts.iter().map(unbound).collect();
    }
}

/// Whether one answer is wanted, by somebody who knows of tools.
fn is_one_answer(functions: Option<&str>, n: Option<&str>) -> bool {
    functions.and_then(given).is_none() && n.and_then(given).is_none_or(|n| n == "1")
}

/// Whether a value is there, and is this.
fn is(raw: Option<&str>, value: &str) -> bool {
    raw == Some(value)
}

/// A value that says something.
fn given(raw: &str) -> Option<&str> {
    Some(raw).filter(|text| *text != "null")
}

/// A string that says something.
fn text(raw: &str) -> Option<Cow<'_, str>> {
    let quoted = raw.strip_prefix('"')?.strip_suffix('"')?;
    let text = match quoted.contains('\\') {
        false => Cow::Borrowed(quoted),
        true => Cow::Owned(serde_json::from_str(&without_lone_surrogates(raw).0).ok()?),
    };
    Some(text).filter(|text| !text.is_empty())
}

/// The name of a model, which must be one.
fn model_of<'b>(source: &Source<'b>, raw: &'b str) -> Result<Option<Cow<'b, str>>, Error> {
    match raw.as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'"') => Ok(Some(text(raw).unwrap_or_default())),
        _ => source.read_text::<Option<String>>(raw, "model").map(|model| model.map(Cow::Owned)),
    }
}

/// A field of a value that is an object.
fn inner<'b>(raw: &'b str, name: &str) -> Option<&'b str> {
    fields_of(raw, [name]).and_then(|[field]| field)
}

/// Some fields of a value that is an object.
fn fields_of<'b, const N: usize>(raw: &'b str, names: [&str; N]) -> Option<[Option<&'b str>; N]> {
    walk(raw, Walk { names, list: None }).ok().map(|found| found.fields)
}

/// What was found in an object.
struct Found<'b, const N: usize> {
    /// The values of some fields.
    fields: [Option<&'b str>; N],
    /// The elements of the one that is a list, and which fields had been found before it.
    list: Option<(Vec<&'b str>, [Option<&'b str>; N])>,
}

/// Walks over an object once.
fn walk<'b, const N: usize>(object: &'b str, walk: Walk<'_, N>) -> Result<Found<'b, N>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(object);
    let found = walk.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(found)
}

/// Which fields of an object to find, and which of them to take apart on the way: it must be a list.
#[derive(Clone, Copy)]
struct Walk<'n, const N: usize> {
    names: [&'n str; N],
    list: Option<&'n str>,
}

impl<'de, const N: usize> DeserializeSeed<'de> for Walk<'_, N> {
    type Value = Found<'de, N>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Walk<'_, N> {
    type Value = Found<'de, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Found { fields: [None; N], list: None };
        // Names are read raw too, since one that no text can hold is no mistake of the body's.
        while let Some(key) = map.next_key::<&RawValue>()? {
            let name = text(key.get()).unwrap_or_default();
            if self.list == Some(&*name) {
                let elements: Vec<&RawValue> = map.next_value()?;
                found.list = Some((elements.into_iter().map(RawValue::get).collect(), found.fields));
            } else if let Some(at) = self.names.iter().position(|own| *own == name) {
                found.fields[at] = Some(map.next_value::<&RawValue>()?.get());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}
