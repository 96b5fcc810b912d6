//! Wires: providers' formats. Every wire has `encode`, `decode` and `validate`.

pub mod across;
pub mod anthropic;
pub(crate) mod base64;
pub mod gemini;
pub mod hidden;
pub(crate) mod ids;
pub(crate) mod json;
pub(crate) mod kept;
pub(crate) mod media;
pub mod ndjson;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod outline;
pub mod sse;
pub(crate) mod write;

use crate::entry::{Entry, Text};
use crate::error::{Error, Place, places};
use crate::nearest::probably;
use crate::page::Page;
use crate::target::Target;
use crate::tokens::Tokens;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

pub use ids::{CALL_ID_MAX, TOOL_NAME_MAX, call_id, tool_name};
pub(crate) use ids::{Ids, accepted};
pub use outline::{Ending, Layout, Outline};

/// The most tools in a request to OpenAI, and the most calls in one of its messages.
pub const TOOLS_MAX: usize = 128;

/// A provider's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// OpenAI Chat Completions, which many servers speak.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Wire {
    /// All wires there are.
    pub const ALL: [Wire; 5] = [Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic, Wire::Gemini, Wire::Ollama];

    /// Those that agents can be heard in, whoever they talk to: [`hidden`] knows them.
    pub const CLIENTS: [Wire; 3] = [Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic];

    /// Returns its name, as it is spelled in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Wire::OpenaiChat => "openai_chat",
            Wire::OpenaiResponses => "openai_responses",
            Wire::Anthropic => "anthropic",
            Wire::Gemini => "gemini",
            Wire::Ollama => "ollama",
        }
    }

    /// Writes the body of a request for a page.
    pub fn encode(self, page: &Page, target: &Target) -> Vec<u8> {
        self.encode_with(page, target, &Map::new())
    }

    /// Writes the body of a request for a page, with fields of the host's own. They win over what a page brings on its
    /// own account, such as the longest answer; what the page holds can't be overridden.
    pub fn encode_with(self, page: &Page, target: &Target, extra: &Map<String, Value>) -> Vec<u8> {
        match self {
            Wire::OpenaiChat => openai_chat::encode_with(page, target, extra),
            Wire::OpenaiResponses => openai_responses::encode_with(page, target, extra),
            Wire::Anthropic => anthropic::encode_with(page, target, extra),
            Wire::Gemini => gemini::encode_with(page, target, extra),
            Wire::Ollama => ollama::encode_with(page, target, extra),
        }
    }

    /// Reads the body of a request. Escapes of lone surrogates, which no text can hold, are replaced and named.
    pub fn decode(self, body: &str) -> Result<Decoded, Error> {
        let (body, lone) = json::without_lone_surrogates(body);
        let decoded = match self {
            Wire::OpenaiChat => openai_chat::decode(&body),
            Wire::OpenaiResponses => openai_responses::decode(&body),
            Wire::Anthropic => anthropic::decode(&body),
            Wire::Gemini => gemini::decode(&body),
            Wire::Ollama => ollama::decode(&body),
        }?;
        Ok(Decoded { replaced: places(&body, &lone), ..decoded })
    }

    /// Reads the body of a response that was not streamed.
    pub fn decode_reply(self, body: &str) -> Result<Reply, Error> {
        let (body, _) = json::without_lone_surrogates(body);
        match self {
            Wire::OpenaiChat => openai_chat::decode_reply(&body),
            Wire::OpenaiResponses => openai_responses::decode_reply(&body),
            Wire::Anthropic => anthropic::decode_reply(&body),
            Wire::Gemini => gemini::decode_reply(&body),
            Wire::Ollama => ollama::decode_reply(&body),
        }
    }

    /// Returns a reader of a streamed response.
    pub fn stream(self) -> Stream {
        match self {
            Wire::OpenaiChat => Stream::OpenaiChat(Box::default()),
            Wire::OpenaiResponses => Stream::OpenaiResponses(Box::default()),
            Wire::Anthropic => Stream::Anthropic(Box::default()),
            Wire::Gemini => Stream::Gemini(Box::default()),
            Wire::Ollama => Stream::Ollama(Box::default()),
        }
    }

    /// Returns whether a user must have the first word and the last.
    pub(crate) fn wants_user_words(self) -> bool {
        matches!(self, Wire::Anthropic | Wire::Gemini)
    }

    /// Returns every rule that a body breaks; none means that the provider takes its form.
    pub fn validate(self, body: &[u8]) -> Vec<Violation> {
        match self {
            Wire::OpenaiChat => openai_chat::validate(body),
            Wire::OpenaiResponses => openai_responses::validate(body),
            Wire::Anthropic => anthropic::validate(body),
            Wire::Gemini => gemini::validate(body),
            Wire::Ollama => ollama::validate(body),
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Wire {
    type Err = Error;

    fn from_str(name: &str) -> Result<Wire, Error> {
        let names = Wire::ALL.map(Wire::name);
        Wire::ALL.into_iter().find(|wire| wire.name() == name).ok_or_else(|| {
            let meant = probably(name, names).map_or(String::new(), |near| format!("did you mean {near:?}? "));
            Error::settings(format!("unknown wire {name:?}"), format!("{meant}known wires: {}", names.join(", ")))
        })
    }
}

/// A request body, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The model it names.
    pub model: Option<Text>,
    /// The messages, as entries. Reasoning that a provider sealed is bound to what stands before it here.
    pub entries: Vec<Entry>,
    /// The tools, each as JSON text, exactly as given.
    pub tools: Vec<Text>,
    /// The form the answer must have, as JSON text in this wire's own shape.
    pub format: Option<Text>,
    /// Where the client marked the end of what should be cached.
    pub marks: Vec<GivenMark>,
    /// Where escapes of lone surrogates were replaced.
    pub replaced: Vec<Place>,
    /// All other fields.
    pub extra: Map<String, Value>,
}

/// A cache mark that a client set on a part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenMark {
    /// Which of the entries.
    pub entry: usize,
    /// The mark itself, as JSON text.
    pub mark: Text,
}

/// A response, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The model's message; if it was broken off, its status says so.
    pub entry: Entry,
    /// The provider's name of the response.
    pub id: Option<Text>,
    /// The model that answered.
    pub model: Option<Text>,
    /// Why it ended, if the provider says so.
    pub stop: Option<Stop>,
    /// What it used, if the provider says so.
    pub usage: Option<Usage>,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model was done.
    End,
    /// It had reached the longest answer that was allowed.
    Length,
    /// It calls tools.
    Calls,
    /// It refused, or was filtered.
    Refused,
    /// It waits to be asked to go on.
    Paused,
    /// The window was full.
    Window,
}

/// What a provider reports a call to have used, with one meaning for all providers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input, cached or not.
    pub input: Tokens,
    /// Of that, what was read from the cache.
    pub cached: Tokens,
    /// Of that, what was written to the cache.
    pub written: Tokens,
    /// Output, reasoning included.
    pub output: Tokens,
}

/// Reads a streamed response event by event. What is there when the stream ends is never lost: without its proper end
/// the entry's status is an error.
#[derive(Debug)]
pub enum Stream {
    /// OpenAI Chat Completions.
    OpenaiChat(Box<openai_chat::Stream>),
    /// OpenAI Responses.
    OpenaiResponses(Box<openai_responses::Stream>),
    /// Anthropic Messages.
    Anthropic(Box<anthropic::Stream>),
    /// Google Gemini.
    Gemini(Box<gemini::Stream>),
    /// Ollama's own.
    Ollama(Box<ollama::Stream>),
}

impl Stream {
    /// Takes the data of one event, or one line where a response comes in lines.
    pub fn event(&mut self, data: &str) -> Result<(), Error> {
        match self {
            Stream::OpenaiChat(stream) => stream.event(data),
            Stream::OpenaiResponses(stream) => stream.event(data),
            Stream::Anthropic(stream) => stream.event(data),
            Stream::Gemini(stream) => stream.event(data),
            Stream::Ollama(stream) => stream.event(data),
        }
    }

    /// Returns what was said.
    pub fn finish(self) -> Result<Reply, Error> {
        match self {
            Stream::OpenaiChat(stream) => stream.finish(),
            Stream::OpenaiResponses(stream) => stream.finish(),
            Stream::Anthropic(stream) => stream.finish(),
            Stream::Gemini(stream) => stream.finish(),
            Stream::Ollama(stream) => stream.finish(),
        }
    }
}

/// A rule that a body breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where, such as `messages[3].tool_calls`.
    pub at: String,
    /// What is wrong.
    pub what: Text,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}
