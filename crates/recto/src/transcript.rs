//! Transcripts: somebody else's files, read as conversations.

mod deepchat;

use crate::entry::{Entry, Text};
use crate::error::{Error, Place, places};
use crate::log::Log;
use crate::tokens::Count;
use crate::wire::json::{Fields, Source, place_of, without_lone_surrogates, without_position};
use crate::wire::openai_chat;
use serde_json::value::RawValue;

/// The largest record that is read, in bytes.
pub const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A conversation as it was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// Its name, if the file gives one.
    pub id: Option<Text>,
    /// What was said.
    pub entries: Vec<Entry>,
    /// The tools that were offered, each as JSON text.
    pub tools: Vec<Text>,
    /// Where escapes of lone surrogates were replaced, because no text can hold them.
    pub replaced: Vec<Place>,
    /// What else was not taken as it was found.
    pub notes: Vec<String>,
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
}

/// Reads a file of OpenAI-chat conversations: a request body, a bare array of messages, or one conversation a line
/// with `id` and `messages`. The messages may be DeepChat's records instead, which may also stand one a line; they
/// are known by what they hold. Nothing is returned unless all of it can be read.
pub fn read(text: &str) -> Result<Vec<Conversation>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (text, offsets) = without_lone_surrogates(text);
    let found = places(&text, &offsets);
    let mut replaced = offsets.into_iter().zip(found).peekable();
    let source = Source { text: &text };
    if let Some(conversation) = deepchat::lines(&source)? {
        return Ok(vec![Conversation { replaced: replaced.map(|(_, place)| place).collect(), ..conversation }]);
    }
    let mut conversations = Vec::new();
    let mut records = serde_json::Deserializer::from_str(&text).into_iter::<&RawValue>();
    loop {
        let record = match records.next() {
            None => break,
            Some(Ok(record)) => record,
            Some(Err(error)) => return Err(malformed(&text, &error)),
        };
        let mut conversation = conversation(&source, record)?;
        while let Some((_, place)) = replaced.next_if(|(at, _)| *at < records.byte_offset()) {
            conversation.replaced.push(place);
        }
        conversations.push(conversation);
    }
    if conversations.is_empty() {
        return Err(
            Error::input("no conversation in it").hinting("expected a JSON object with \"messages\", or one a line")
        );
    }
    Ok(conversations)
}

fn conversation(source: &Source<'_>, record: &RawValue) -> Result<Conversation, Error> {
    if record.get().len() > RECORD_BYTES_MAX {
        let (size, most) = (record.get().len() >> 20, RECORD_BYTES_MAX >> 20);
        return Err(source.refuse(record, format!("a record of {size} MiB; at most {most} MiB are read")));
    }
    if record.get().starts_with('[') {
        if deepchat::is_list(record) {
            return deepchat::conversation(source, record);
        }
        return Ok(Conversation { entries: openai_chat::messages(source, record)?, ..Conversation::default() });
    }
    let fields: Fields<'_> = source.read(record, "record")?;
    let Some(messages) = fields.get("messages") else {
        return Err(source
            .refuse(record, "a record without \"messages\"")
            .hinting("expected OpenAI-chat JSON: {\"messages\": [{\"role\": …, \"content\": …}, …]}"));
    };
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

/// An error at the place in the whole text, not in the record that could not be read.
fn malformed(text: &str, error: &serde_json::Error) -> Error {
    let at = place_of(text, error);
    let hint =
        if error.is_eof() { "the file ends in the middle of a record" } else { "the file is not valid JSON here" };
    Error::input(without_position(error)).at(at).hinting(hint)
}
