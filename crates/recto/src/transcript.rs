//! Transcripts: somebody else's files, read as conversations, and conversations written as such files.

pub mod claude_code;
pub mod codex;
mod content;
mod deepchat;
mod detect;
mod inspect;
mod lines;
mod pi;
mod responses;
mod stream_json;
mod swe_agent;
mod tau_bench;
pub mod time;
mod write;

use crate::context::Context;
use crate::entry::{Entry, Seq, Text};
use crate::error::{Error, Place, places};
use crate::log::Log;
use crate::tokens::{Count, Tokenizer};
use crate::wire::json::{Fields, Source, place_of, without_lone_surrogates, without_position};
use crate::wire::{Decoded, Wire, openai_chat};
use detect::Shape;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use write::{Format, Session, Written};

/// The largest record that is read, in bytes.
pub const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A conversation as it was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// Its name, if the file gives one.
    pub id: Option<Text>,
    /// What it is called among those of its file. Unlike an id, another file may call another one so.
    pub within: Option<Text>,
    /// What was said.
    pub entries: Vec<Entry>,
    /// The tools that were offered, each as JSON text.
    pub tools: Vec<Text>,
    /// Where it is a client's request: what else that asked for.
    pub asked: Option<Asked>,
    /// Where escapes of lone surrogates were replaced, because no text can hold them.
    pub replaced: Vec<Place>,
    /// What else was not taken as it was found.
    pub notes: Vec<String>,
}

/// What a client's request asked for beside its messages and tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The format it was in.
    pub wire: Wire,
    /// The form the answer must have, as JSON text.
    pub format: Option<Text>,
    /// Where it marked the end of what should be cached: by the place that the entry gets in a log of its own.
    pub marks: Vec<(Seq, Text)>,
    /// All fields that have no place of their own; they pass through to the same wire.
    pub extra: Map<String, Value>,
}

impl Conversation {
    /// Returns its log; a record that no page could hold is an error that names it.
    pub fn into_log(self, counter: impl Count + 'static) -> Result<Log, Error> {
        let mut log = Log::counted_by(counter);
        for (at, entry) in self.entries.into_iter().enumerate() {
            log.append(entry).map_err(|error| Error::input(format!("messages[{at}]: {error}")))?;
        }
        Ok(log)
    }

    fn of_request(decoded: Decoded, wire: Wire) -> Conversation {
        let Decoded { entries, tools, format, marks, extra, .. } = decoded;
        let marks = marks.into_iter().map(|it| (Seq(it.entry as u64), it.mark)).collect();
        Conversation { entries, tools, asked: Some(Asked { wire, format, marks, extra }), ..Conversation::default() }
    }
}

/// Reads a file of conversations; what kind of file it is shows in what it holds. One conversation each: a session of
/// Claude Code, the stream that it prints, a rollout of Codex, a session of pi, an export of Recto. One for each agent: a
/// trajectory of SWE-agent. One for each run or sample: results of tau-bench, a log of Inspect. One or, one after the
/// other, several: requests to OpenAI (Chat Completions or Responses) and Anthropic, bare arrays of their messages,
/// records with `id` and `messages`, and records of DeepChat. Nothing is returned unless all of it can be read.
pub fn read(text: &str) -> Result<Vec<Conversation>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (text, offsets) = without_lone_surrogates(text);
    let found = places(&text, &offsets);
    let mut replaced = offsets.into_iter().zip(found).peekable();
    let source = Source { text: &text };
    let whole = match deepchat::lines(&source)? {
        Some(conversation) => Some(vec![conversation]),
        None if claude_code::is_session(&text) => Some(claude_code::read(&source)?),
        None if stream_json::is_stream(&text) => Some(stream_json::read(&source)?),
        None if codex::is_rollout(&text) => Some(codex::read(&source)?),
        None if pi::is_session(&text) => Some(pi::read(&source)?),
        None => None,
    };
    if let Some(mut conversations) = whole {
        if let Some(first) = conversations.first_mut() {
            first.replaced = replaced.map(|(_, place)| place).collect();
        }
        return Ok(conversations);
    }
    let mut conversations = Vec::new();
    let mut records = serde_json::Deserializer::from_str(&text).into_iter::<&RawValue>();
    loop {
        let record = match records.next() {
            None => break,
            Some(Ok(record)) => record,
            Some(Err(error)) => return Err(malformed(&text, &error)),
        };
        let mut found = self::conversations(&source, record)?;
        while let Some((_, place)) = replaced.next_if(|(at, _)| *at < records.byte_offset()) {
            found.first_mut().into_iter().for_each(|first| first.replaced.push(place));
        }
        conversations.extend(found);
    }
    if conversations.is_empty() {
        return Err(
            Error::input("no conversation in it").hinting("expected a JSON object with \"messages\", or one a line")
        );
    }
    Ok(conversations)
}

/// Refuses what is larger than a record may be.
fn bounded(source: &Source<'_>, raw: &RawValue) -> Result<(), Error> {
    if raw.get().len() <= RECORD_BYTES_MAX {
        return Ok(());
    }
    let (size, most) = (raw.get().len() >> 20, RECORD_BYTES_MAX >> 20);
    Err(source.refuse(raw, format!("a record of {size} MiB; at most {most} MiB are read")))
}

/// Reads all conversations of a record. Where it holds several, each is bounded by itself.
fn conversations(source: &Source<'_>, record: &RawValue) -> Result<Vec<Conversation>, Error> {
    let shape = detect::shape(source, record)?;
    match shape {
        Shape::TauBench => return tau_bench::read(source, record),
        Shape::InspectLog => return inspect::log(source, record),
        Shape::InspectSample => return inspect::one(source, record),
        _ => bounded(source, record)?,
    }
    match shape {
        Shape::SweAgent => swe_agent::read(source, record),
        _ => Ok(vec![conversation(source, record, shape)?]),
    }
}

fn conversation(source: &Source<'_>, record: &RawValue, shape: Shape) -> Result<Conversation, Error> {
    match shape {
        Shape::DeepChat if record.get().starts_with('[') => return deepchat::conversation(source, record),
        Shape::Messages(wire) if record.get().starts_with('[') => return list(source, record, wire),
        Shape::Request(wire) => return request(source, record, wire),
        Shape::Export => return export(source, record),
        Shape::Unknown => {
            return Err(source.refuse(record, "a record without \"messages\"").hinting(
                "expected JSON such as {\"messages\": [{\"role\": …, \"content\": …}, …]}, a session of Claude Code, Codex \
                 or pi, a trajectory of SWE-agent, results of tau-bench, a log of Inspect, or an export of Recto",
            ));
        }
        _ => {}
    }
    let fields: Fields<'_> = source.read(record, "record")?;
    let Some(messages) = fields.get("messages") else { return Err(source.refuse(record, "a record without messages")) };
    let tools: Option<Vec<&RawValue>> = fields.get("tools").map(|raw| source.read(raw, "tools")).transpose()?.flatten();
    let id: Option<Text> = fields.get("id").map(|raw| source.read(raw, "id")).transpose()?.flatten();
    let found = if deepchat::is_list(messages) {
        deepchat::conversation(source, messages)?
    } else {
        Conversation { entries: openai_chat::messages(source, messages)?, ..Conversation::default() }
    };
    let tools = tools.unwrap_or_default().into_iter().map(|tool| tool.get().into()).collect();
    Ok(Conversation { id: id.or(found.id), tools, ..found })
}

/// A bare array of messages.
fn list(source: &Source<'_>, record: &RawValue, wire: Wire) -> Result<Conversation, Error> {
    match wire {
        Wire::OpenaiChat => {
            Ok(Conversation { entries: openai_chat::messages(source, record)?, ..Conversation::default() })
        }
        Wire::OpenaiResponses => within(source, record, "{\"input\":", wire),
        Wire::Anthropic | Wire::Ollama => within(source, record, "{\"messages\":", wire),
        Wire::Gemini => within(source, record, "{\"contents\":", wire),
    }
}

/// Reads a list as the one field of a request; errors point into the whole text.
fn within(source: &Source<'_>, record: &RawValue, before: &str, wire: Wire) -> Result<Conversation, Error> {
    let body = format!("{before}{}}}", record.get());
    let decoded = wire.decode(&body).map_err(|error| moved(source, record, error, before.len()))?;
    Ok(Conversation { asked: None, ..Conversation::of_request(decoded, wire) })
}

/// A request body; its messages keep what only their provider understands.
fn request(source: &Source<'_>, record: &RawValue, wire: Wire) -> Result<Conversation, Error> {
    let decoded = wire.decode(record.get()).map_err(|error| moved(source, record, error, 0))?;
    Ok(Conversation::of_request(decoded, wire))
}

/// An error about a record, placed in the whole text.
fn moved(source: &Source<'_>, record: &RawValue, error: Error, before: usize) -> Error {
    error.shifted(source.place(record), before)
}

/// An export of Recto: its conversation, and the system prompt in front of it.
fn export(source: &Source<'_>, record: &RawValue) -> Result<Conversation, Error> {
    let imported =
        Context::from_json(record.get(), Tokenizer::Bytes4).map_err(|error| moved(source, record, error, 0))?;
    let context = imported.context;
    let mut entries: Vec<Entry> = context.store().back().map(|counted| counted.original().clone()).collect();
    if !context.system_prompt().is_empty() {
        entries.push(Entry::system(context.system_prompt()));
    }
    entries.reverse();
    let left_out = imported.quarantined.len();
    let notes = (left_out > 0).then(|| format!("{left_out} records that can't be entries were left out"));
    Ok(Conversation { entries, notes: notes.into_iter().collect(), ..Conversation::default() })
}

/// An error at the place in the whole text, not in the record that could not be read.
fn malformed(text: &str, error: &serde_json::Error) -> Error {
    let at = place_of(text, error);
    let hint =
        if error.is_eof() { "the file ends in the middle of a record" } else { "the file is not valid JSON here" };
    Error::input(without_position(error)).at(at).hinting(hint)
}
