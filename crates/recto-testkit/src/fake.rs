//! A provider for tests that takes nothing the real ones would refuse.
//!
//! It is written from the providers' rules alone, apart from the code that it checks: [`check`] judges a body,
//! [`Provider`] also remembers what it gave out, and [`Server`] speaks HTTP.

mod node; // a place in a body
mod refusal; // what is said to a body that is not taken
mod model; // rules that depend on the model
mod media; // images and files
mod schema; // schemas of tools and answers
mod chat; // rules of each API
mod responses;
mod messages;
mod gemini;
mod ollama;
mod chain; // names of prefixes, ids
mod prompt; // a request as the cache sees it
mod cache; // what is read and written
mod reply; // scripted answers
mod speak; // answers in each provider's words
mod provider; // all of it in one place, with memory
mod http; // requests and answers as bytes
mod server; // on a port

pub use prompt::Count;
pub use provider::{Answer, Exchange, Incoming, Provider, Settings};
pub use refusal::Refusal;
pub use reply::{Gate, Reply};
pub use server::Server;

use messages::Betas;
use node::{Checked, Node};
use recto::Wire;
use serde_json::Value;

/// The APIs that the fake speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI `POST /v1/chat/completions`.
    Chat,
    /// OpenAI `POST /v1/responses`.
    Responses,
    /// Anthropic `POST /v1/messages`.
    Messages,
    /// Google `POST /v1beta/models/{model}:generateContent`.
    Gemini,
    /// Ollama `POST /api/chat`.
    Ollama,
}

impl Api {
    /// Returns the one that speaks a format.
    pub fn of(wire: Wire) -> Api {
        match wire {
            Wire::OpenaiChat => Api::Chat,
            Wire::OpenaiResponses => Api::Responses,
            Wire::Anthropic => Api::Messages,
            Wire::Gemini => Api::Gemini,
            Wire::Ollama => Api::Ollama,
        }
    }

    /// Returns where a model is asked, and where it is asked for a stream.
    pub fn path(self, model: &str, streams: bool) -> String {
        match (self, streams) {
            (Api::Chat, _) => "/v1/chat/completions".into(),
            (Api::Responses, _) => "/v1/responses".into(),
            (Api::Messages, _) => "/v1/messages".into(),
            (Api::Gemini, false) => format!("/v1beta/models/{model}:generateContent"),
            (Api::Gemini, true) => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
            (Api::Ollama, _) => "/api/chat".into(),
        }
    }

    /// Says in a body whether a stream is wanted, where that is said in a body.
    pub fn ask_for(self, body: &mut Value, streams: bool) {
        if self != Api::Gemini {
            body["stream"] = Value::Bool(streams);
        }
    }
}

/// Judges a body by itself. What needs memory is left to [`Provider::check`]: signatures and encrypted contents are
/// looked at for their form only.
pub fn check(api: Api, body: &[u8]) -> Result<(), Refusal> {
    let value = parse(api, body)?;
    check_parsed(&Node::root(api, &value), Betas::Unseen)
}

fn check_parsed(body: &Node<'_>, betas: Betas<'_>) -> Checked {
    match body.api {
        Api::Chat => chat::check(body),
        Api::Responses => responses::check(body),
        Api::Messages => messages::check(body, betas),
        Api::Gemini => gemini::check(body),
        Api::Ollama => ollama::check(body),
    }
}

/// Reads JSON. Lone surrogates and bytes that are no UTF-8 are refused with it.
fn parse(api: Api, body: &[u8]) -> Result<Value, Refusal> {
    let refused = |problem: String| match api {
        Api::Messages => Refusal::new(api, "json", format!("The request body is not valid JSON: {problem}")),
        Api::Gemini => Refusal::new(api, "json", format!("Invalid JSON payload received. {problem}")),
        Api::Ollama => Refusal::new(api, "json", problem),
        _ => Refusal::new(api, "json", format!("We could not parse the JSON body of your request. ({problem})")),
    };
    let value: Value = serde_json::from_slice(body).map_err(|error| refused(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(refused("the body must be an object".to_owned())) }
}
