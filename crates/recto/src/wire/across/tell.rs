//! What was heard, told in a client's format: event by event, or whole.

mod chat;
mod messages;
mod responses;

use super::{Telling, Told};
use crate::error::Error;
use crate::tokens::Tokens;
use crate::wire::{Reply, Usage, Wire};
use serde_json::{Value, json};

/// How an answer is told, by the wire it is told in.
#[derive(Debug)]
pub(super) enum Tell {
    Chat(chat::Chat),
    Responses(responses::Responses),
    Messages(messages::Messages),
}

impl Tell {
    pub(super) fn of(wire: Wire, telling: Telling) -> Option<Tell> {
        match wire {
            Wire::OpenaiChat => Some(Tell::Chat(chat::Chat::new(telling))),
            Wire::OpenaiResponses => Some(Tell::Responses(responses::Responses::new(telling))),
            Wire::Anthropic => Some(Tell::Messages(messages::Messages::default())),
            Wire::Gemini | Wire::Ollama => None,
        }
    }

    /// Returns the body of an answer that is no stream.
    pub(super) fn whole(&self, telling: Telling, reply: &Reply) -> Vec<u8> {
        let body = match self {
            Tell::Chat(_) => chat::whole(telling, reply),
            Tell::Responses(_) => responses::whole(telling, reply),
            Tell::Messages(_) => messages::whole(reply),
        };
        body.to_string().into_bytes()
    }

    /// Writes what a client gets of something; returns what it doesn't get.
    pub(super) fn tell(&mut self, told: Told, out: &mut Vec<u8>) -> Result<Option<&'static str>, Error> {
        if let Told::LeftOut(what) = told {
            return Ok(Some(what));
        }
        match self {
            Tell::Chat(chat) => chat.tell(told, out),
            Tell::Responses(responses) => responses.tell(told, out),
            Tell::Messages(messages) => messages.tell(told, out),
        }
    }
}

/// Writes an event.
fn event(out: &mut Vec<u8>, name: Option<&str>, data: &Value) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

/// Returns the name of an answer as a provider would call it, whoever named it.
fn named(id: Option<&str>, prefix: &str) -> String {
    let id = id.unwrap_or("0");
    let known = ["chatcmpl-", "msg_", "resp_"];
    format!("{prefix}{}", known.iter().find_map(|known| id.strip_prefix(known)).unwrap_or(id))
}

/// Usage as OpenAI's Chat Completions spell it.
fn chat_usage(usage: &Usage) -> Value {
    let Usage { input, cached, written, output } = usage;
    json!({"prompt_tokens": input.0, "completion_tokens": output.0, "total_tokens": (*input + *output).0,
        "prompt_tokens_details": {"cached_tokens": cached.0, "cache_write_tokens": written.0}})
}

/// Usage as OpenAI's Responses spell it.
fn responses_usage(usage: &Usage) -> Value {
    let Usage { input, cached, written, output } = usage;
    json!({"input_tokens": input.0, "output_tokens": output.0, "total_tokens": (*input + *output).0,
        "input_tokens_details": {"cached_tokens": cached.0, "cache_write_tokens": written.0},
        "output_tokens_details": {"reasoning_tokens": 0}})
}

/// Usage as Anthropic spells it: what is cached stands beside the input, not within it.
fn messages_usage(usage: &Usage) -> Value {
    let Usage { input, cached, written, output } = usage;
    let plain: Tokens = *input - *cached - *written;
    json!({"input_tokens": plain.0, "cache_read_input_tokens": cached.0, "cache_creation_input_tokens": written.0,
        "output_tokens": output.0})
}
