//! OpenAI Chat Completions: `POST /v1/chat/completions`, and the many servers that speak it.

mod decode;
mod encode;
mod validate;

use crate::entry::{Entry, Text};
use crate::wire::{Usage, accepted};
use serde_json::{Map, Value};
use std::borrow::Cow;

pub(crate) use decode::messages;
pub use decode::{decode, decode_reply};
pub use encode::{encode, encode_messages};
pub use validate::validate;

/// The most tools in a request, and the most calls in a message.
pub const TOOLS_MAX: usize = 128;
/// The longest id of a call.
pub const CALL_ID_MAX: usize = 40;
/// The longest name of a tool.
pub const TOOL_NAME_MAX: usize = 64;

/// A request body, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The model it names.
    pub model: Option<Text>,
    /// The messages, as entries.
    pub entries: Vec<Entry>,
    /// The tools, each as JSON text, exactly as given.
    pub tools: Vec<Text>,
    /// All other fields.
    pub extra: Map<String, Value>,
}

/// A response body, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The model's message.
    pub entry: Entry,
    /// What it used, if the provider says so.
    pub usage: Option<Usage>,
}

/// Returns the id of a call as this wire takes it; the same for call and result.
fn call_id(id: &str) -> Cow<'_, str> {
    accepted(id, CALL_ID_MAX, |c| c.is_ascii() && !c.is_ascii_control())
}

/// Returns the name of a tool as this wire takes it.
fn tool_name(name: &str) -> Cow<'_, str> {
    accepted(name, TOOL_NAME_MAX, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
