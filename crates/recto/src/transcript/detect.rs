//! What a record holds, seen by its fields: nobody has to say which format a file is in.

use super::{deepchat, inspect, swe_agent, tau_bench};
use crate::error::Error;
use crate::wire::Wire;
use crate::wire::json::{Fields, Source};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Messages in a wire's form: a bare array of them, or an object that holds them.
    Messages(Wire),
    /// A client's request.
    Request(Wire),
    /// Records of DeepChat.
    DeepChat,
    /// A trajectory of SWE-agent.
    SweAgent,
    /// A run of tau-bench, or a list of them.
    TauBench,
    /// A log of Inspect.
    InspectLog,
    /// A sample of such a log.
    InspectSample,
    /// An export of Recto.
    Export,
    /// Nothing that is known.
    Unknown,
}

/// Block types that only Anthropic's messages have.
const ANTHROPIC_BLOCKS: [&str; 5] = ["tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"];
/// Fields that only requests to Anthropic have.
const ANTHROPIC_FIELDS: [&str; 3] = ["system", "thinking", "anthropic_version"];
/// Fields that only requests to Ollama have.
const OLLAMA_FIELDS: [&str; 4] = ["options", "truncate", "keep_alive", "think"];
/// How many messages are looked at.
const LOOKED_AT_MAX: usize = 200;

pub(super) fn shape(source: &Source<'_>, record: &RawValue) -> Result<Shape, Error> {
    if record.get().starts_with('[') {
        if deepchat::is_list(record) {
            return Ok(Shape::DeepChat);
        }
        if tau_bench::is_list(record) {
            return Ok(Shape::TauBench);
        }
        return Ok(Shape::Messages(wire_of(record)));
    }
    let fields: Fields<'_> = source.read(record, "record")?;
    let has = |name: &str| fields.contains_key(name);
    match fields.get("messages") {
        _ if swe_agent::is_record(&fields) => Ok(Shape::SweAgent),
        _ if tau_bench::is_record(&fields) => Ok(Shape::TauBench),
        _ if inspect::is_log(&fields) => Ok(Shape::InspectLog),
        _ if inspect::is_sample(&fields) => Ok(Shape::InspectSample),
        Some(messages) if deepchat::is_list(messages) => Ok(Shape::DeepChat),
        Some(messages) => {
            let is_claude = fields.get("model").is_some_and(|model| model.get().starts_with("\"claude"));
            let is_anthropic = ANTHROPIC_FIELDS.iter().any(|name| has(name))
                || wire_of(messages) == Wire::Anthropic
                || (is_claude && !has_roles_of_chat(messages));
            let is_ollama = OLLAMA_FIELDS.iter().any(|name| has(name)) || wire_of(messages) == Wire::Ollama;
            Ok(match (is_anthropic, has("model")) {
                (true, _) => Shape::Request(Wire::Anthropic),
                (false, true) if is_ollama => Shape::Request(Wire::Ollama),
                (false, true) => Shape::Request(Wire::OpenaiChat),
                (false, false) => Shape::Messages(Wire::OpenaiChat),
            })
        }
        None if has("contents") => Ok(Shape::Request(Wire::Gemini)),
        None if has("input") => Ok(Shape::Request(Wire::OpenaiResponses)),
        None if has("recto") && has("messageStore") => Ok(Shape::Export),
        None => Ok(Shape::Unknown),
    }
}

#[derive(Deserialize)]
struct Peek<'t> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(borrow, default)]
    content: Option<&'t RawValue>,
    #[serde(default)]
    role: Option<String>,
    /// What a content of Gemini has.
    #[serde(borrow, default)]
    parts: Option<&'t RawValue>,
    /// What messages of Ollama have.
    #[serde(borrow, default)]
    images: Option<&'t RawValue>,
    #[serde(borrow, default)]
    tool_name: Option<&'t RawValue>,
}

/// Whether somebody speaks who has no place in Anthropic's messages.
fn has_roles_of_chat(list: &RawValue) -> bool {
    let messages: Vec<Peek<'_>> = serde_json::from_str(list.get()).unwrap_or_default();
    let is_chats = |role: &str| ["system", "developer", "tool"].contains(&role);
    messages.iter().any(|message| message.role.as_deref().is_some_and(is_chats))
}

/// Which wire's messages a list holds.
fn wire_of(list: &RawValue) -> Wire {
    let messages: Vec<Peek<'_>> = serde_json::from_str(list.get()).unwrap_or_default();
    for message in messages.iter().take(LOOKED_AT_MAX) {
        if message.kind.is_some() && (message.role.is_none() || message.kind.as_deref() == Some("message")) {
            return Wire::OpenaiResponses;
        }
        if message.parts.is_some_and(|parts| parts.get().starts_with('[')) {
            return Wire::Gemini;
        }
        if message.role.is_some() && (message.images.is_some() || message.tool_name.is_some()) {
            return Wire::Ollama;
        }
        let blocks: Vec<Peek<'_>> =
            message.content.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let mut kinds = blocks.iter().filter_map(|block| block.kind.as_deref());
        if kinds.any(|kind| ANTHROPIC_BLOCKS.contains(&kind)) {
            return Wire::Anthropic;
        }
    }
    Wire::OpenaiChat
}
