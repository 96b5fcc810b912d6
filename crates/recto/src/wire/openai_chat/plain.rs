//! Messages and responses that hold nothing but what most do, read in one go. Everything else, and every mistake, is
//! read field by field: what is read here comes out the same there.

use super::reply::{Reported, ended};
use crate::entry::{Call, Entry, Part, Piece, Reasoning, Role, Text, ToolResult};
use crate::wire::Reply;
use crate::wire::json::{Object, Said, Word};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use std::fmt;

/// Reads a message, if it is a plain one.
pub(super) fn entry(message: &str) -> Option<Entry> {
    let Object(message): Object<Message<'_>> = serde_json::from_str(message).ok()?;
    message.entry()
}

/// Reads the body of a response that was not streamed, if it is a plain one.
pub(super) fn reply(body: &str) -> Option<Reply> {
    let Object(response): Object<Response<'_>> = serde_json::from_str(body).ok()?;
    let Object(choice) = response.choices.into_iter().next()?;
    let Object(message) = choice.message;
    let entry = message.entry().filter(|entry| entry.role == Role::Assistant)?;
    let mut reply = ended(entry, choice.finish_reason.as_ref().map(|Word(reason)| &**reason));
    (reply.id, reply.model) = (text(response.id), text(response.model));
    reply.usage = response.usage.map(Reported::normalised);
    Some(reply)
}

#[derive(Deserialize)]
struct Response<'t> {
    #[serde(borrow)]
    choices: Vec<Object<Choice<'t>>>,
    id: Option<Said>,
    model: Option<Said>,
    usage: Option<Reported>,
    #[serde(rename = "error")]
    _error: Option<Never>,
}

#[derive(Deserialize)]
struct Choice<'t> {
    #[serde(borrow)]
    message: Object<Message<'t>>,
    #[serde(borrow)]
    finish_reason: Option<Word<'t>>,
}

/// Fields that say nothing are read for nothing to be passed over that says something.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'t> {
    #[serde(borrow)]
    role: Word<'t>,
    content: Option<Content>,
    name: Option<Said>,
    reasoning_content: Option<Said>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Object<Called<'t>>>>,
    tool_call_id: Option<Said>,
    #[serde(borrow)]
    refusal: Option<Word<'t>>,
    #[serde(rename = "reasoning")]
    _reasoning: Option<Nothing>,
    #[serde(rename = "annotations")]
    _annotations: Option<Nothing>,
    #[serde(rename = "audio")]
    _audio: Option<Nothing>,
    #[serde(rename = "function_call")]
    _function_call: Option<Nothing>,
}

/// A piece of a streamed response, if it is a plain one.
#[derive(Deserialize)]
pub(super) struct Chunk<'t> {
    #[serde(borrow)]
    pub(super) choices: Vec<Object<Grown<'t>>>,
    #[serde(borrow)]
    pub(super) id: Option<Word<'t>>,
    #[serde(borrow)]
    pub(super) model: Option<Word<'t>>,
    #[serde(rename = "usage")]
    _usage: Option<Never>,
    #[serde(rename = "error")]
    _error: Option<Never>,
}

#[derive(Deserialize)]
pub(super) struct Grown<'t> {
    #[serde(default)]
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: Option<Object<Delta<'t>>>,
    pub(super) finish_reason: Option<Said>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delta<'t> {
    #[serde(rename = "role")]
    _role: Option<IgnoredAny>,
    #[serde(borrow)]
    pub(super) content: Option<Word<'t>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Word<'t>>,
    #[serde(rename = "refusal")]
    _refusal: Option<Never>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Object<Calling<'t>>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calling<'t> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Word<'t>>,
    #[serde(borrow)]
    pub(super) function: Option<Object<Told<'t>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Told<'t> {
    #[serde(borrow)]
    pub(super) name: Option<Word<'t>>,
    #[serde(borrow)]
    pub(super) arguments: Option<Word<'t>>,
}

/// Reads a piece of a streamed response, if it is a plain one.
pub(super) fn chunk(data: &str) -> Option<Chunk<'_>> {
    serde_json::from_str(data).ok().map(|Object(chunk)| chunk)
}

/// What can't be there.
#[derive(Deserialize)]
enum Never {}

/// An empty list.
type Nothing = [(); 0];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called<'t> {
    id: Said,
    #[serde(rename = "type", borrow)]
    kind: Option<Word<'t>>,
    function: Object<Function>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Function {
    name: Said,
    arguments: Option<Said>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextPart<'t> {
    #[serde(rename = "type", borrow)]
    kind: Word<'t>,
    text: Said,
}

/// The texts of a message: one that is a string says nothing if it is empty.
struct Content(Vec<Text>);

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_any(Texts)
    }
}

struct Texts;

impl<'de> Visitor<'de> for Texts {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content(if text.is_empty() { Vec::new() } else { vec![text.into()] }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut texts = Vec::new();
        while let Some(Object(part)) = list.next_element::<Object<TextPart<'de>>>()? {
            if part.kind.0 != "text" {
                return Err(A::Error::custom("no text"));
            }
            texts.push(part.text.0);
        }
        Ok(Content(texts))
    }
}

impl Message<'_> {
    fn entry(self) -> Option<Entry> {
        let role = match &*self.role.0 {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => return None,
        };
        let (name, calls) = (text(self.name), self.tool_calls.unwrap_or_default());
        let texts = self.content.map_or(Vec::new(), |Content(texts)| texts);
        let is_refusal = self.refusal.is_some_and(|Word(refusal)| !refusal.is_empty());
        if is_refusal || (role == Role::Tool) != self.tool_call_id.is_some() {
            return None;
        }
        if let Some(Said(id)) = self.tool_call_id {
            let content = texts.into_iter().map(|text| Piece::Text { text }).collect();
            let result = ToolResult { call: id.into(), content, is_error: false };
            return (name.is_none() && calls.is_empty()).then(|| Entry::new(role, [Part::Result(result)]));
        }
        let mut parts = Vec::with_capacity(1 + texts.len() + calls.len());
        let thought = text(self.reasoning_content).filter(|text| !text.is_empty() && role == Role::Assistant);
        parts.extend(thought.map(|text| Part::Reasoning(Reasoning { text, ..Reasoning::default() })));
        parts.extend(texts.into_iter().map(|text| Part::Text { text }));
        for Object(called) in calls {
            if called.kind.is_some_and(|Word(kind)| kind != "function") {
                return None;
            }
            let Object(Function { name: Said(name), arguments }) = called.function;
            let arguments = text(arguments).unwrap_or_else(|| "{}".into());
            parts.push(Part::Call(Call::new(called.id.0, name, arguments)));
        }
        Some(Entry { author: name, ..Entry::new(role, parts) })
    }
}

fn text(said: Option<Said>) -> Option<Text> {
    said.map(|Said(text)| text)
}
