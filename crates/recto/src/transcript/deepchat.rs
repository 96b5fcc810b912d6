//! DeepChat's message records. The `content` of each is a string that holds JSON: a user's an object with `text` and
//! `files`, an assistant's a list of blocks. Blocks are text, tool calls with their responses, and images. A record with
//! tool calls becomes several entries: a step with its calls, their results, and what the model said afterwards. What has
//! no place in an entry is kept in `extra`, and counted in a note.

use super::lines::counted;
use super::{Conversation, bounded, malformed};
use crate::entry::{Arguments, Call, Entry, Media, Millis, Part, Role, Status, Text, ToolResult};
use crate::error::{Error, Place};
use crate::wire::json::{Fields, Source, without_lone_surrogates};
use crate::wire::media::{base64_of, is_address};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The names under which a record may give its session.
const SESSION: &[&str] = &["sessionId", "session_id", "conversationId", "conversation_id"];

/// Reads one record a line as one conversation; `None` if these are no such records.
pub(super) fn lines(source: &Source<'_>) -> Result<Option<Conversation>, Error> {
    let mut records = serde_json::Deserializer::from_str(source.text).into_iter::<&RawValue>();
    let is_one = |raw: &RawValue| {
        let fields: Fields<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        fields.contains_key("role") && fields.contains_key("status") && !fields.contains_key("messages")
    };
    let Some(Ok(first)) = records.next() else { return Ok(None) };
    if !first.get().contains("\"status\"") || !is_one(first) {
        return Ok(None);
    }
    let mut list = vec![first];
    for record in records {
        list.push(record.map_err(|error| malformed(source.text, &error))?);
    }
    if !list.iter().any(|raw| is_record(raw)) {
        return Ok(None);
    }
    read(source, list).map(Some)
}

/// Returns whether a list of messages holds such records.
pub(super) fn is_list(raw: &RawValue) -> bool {
    // Within a string the quotes would be escaped, so this finds a field, and most files have none.
    if !raw.get().contains("\"status\"") {
        return false;
    }
    let list: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    list.into_iter().any(is_record)
}

/// Reads a list of records as one conversation.
pub(super) fn conversation(source: &Source<'_>, raw: &RawValue) -> Result<Conversation, Error> {
    read(source, source.read(raw, "messages")?)
}

/// Returns whether a record shows beyond doubt whose it is: it has a status, and its content is JSON in a string.
fn is_record(raw: &RawValue) -> bool {
    let fields: Fields<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
    let text = |name: &str| -> Option<String> { serde_json::from_str(fields.get(name)?.get()).ok() };
    let Some(content) = text("content").filter(|_| text("status").is_some()) else { return false };
    let (content, _) = without_lone_surrogates(&content);
    match text("role").as_deref() {
        Some("assistant") => blocks(&content).is_some(),
        Some("user" | "system") => words(&content).is_some(),
        _ => false,
    }
}

fn read(source: &Source<'_>, list: Vec<&RawValue>) -> Result<Conversation, Error> {
    let mut reading = Reading { source, session: None, notes: Notes::default() };
    let mut records = Vec::with_capacity(list.len());
    for (at, raw) in list.into_iter().enumerate() {
        records.push(reading.record(raw, at)?);
    }
    let unordered = records.iter().filter(|(order, _)| order.is_none()).count();
    match unordered {
        0 => records.sort_by_key(|(order, _)| *order),
        _ => reading.notes.unordered = (unordered < records.len()).then_some((unordered, records.len())),
    }
    Ok(Conversation {
        id: reading.session,
        entries: records.into_iter().flat_map(|(_, entries)| entries).collect(),
        notes: reading.notes.told(),
        ..Conversation::default()
    })
}

struct Reading<'s, 't> {
    source: &'s Source<'t>,
    session: Option<Text>,
    notes: Notes,
}

impl<'t> Reading<'_, 't> {
    /// Reads the entries of a record, and its place in the order.
    fn record(&mut self, raw: &'t RawValue, at: usize) -> Result<(Option<i64>, Vec<Entry>), Error> {
        let source = self.source;
        bounded(source, raw)?;
        let mut fields: Fields<'t> = source.read(raw, &format!("messages[{at}]"))?;
        let mut field = |name: &str| {
            let missing = || source.refuse(raw, format!("messages[{at}] has no {name}"));
            fields.remove(name).ok_or_else(missing)
        };
        let role = role(source, field("role")?, at)?;
        let status = status(source, field("status")?, at)?;
        let Said { steps, rest, error, kinds } = self.said(field("content")?, role, at)?;
        self.one_session(&fields, at)?;
        let mut entry = Entry::new(role, Vec::new());
        entry.status = status;
        entry.id = fields.remove("id").map(|raw| source.read(raw, "id")).transpose()?.flatten();
        entry.edge = take(&mut fields, ["isContextEdge", "is_context_edge"])
            .map(|raw| edge(source, raw, at))
            .transpose()?
            .unwrap_or(false);
        let order = take(&mut fields, ["orderSeq", "order_seq"]).map(|raw| source.read(raw, "orderSeq")).transpose()?;
        for (name, raw) in fields {
            match (name.as_str(), source.read::<Value>(raw, &name)?) {
                ("createdAt" | "created_at", Value::Number(at)) if at.is_i64() => entry.at = at.as_i64().map(Millis),
                (_, value) => drop(entry.extra.insert(name, value)),
            }
        }
        let is_told = error.is_some() && status == Status::Error;
        if status == Status::Error {
            let why = error.or_else(|| entry.extra.remove("error").and_then(reason));
            let why = why.or_else(|| reason(of_metadata(&entry.extra)?));
            entry.meta.extend(why.map(|why| ("error".to_string(), Value::String(why))));
        }
        self.notes.left_out(kinds.into_iter().filter(|kind| !(is_told && kind == "error")));
        entry.extra.extend(rest.map(|(name, value)| (name.to_string(), value)));
        Ok((order.flatten(), expanded(entry, steps)))
    }

    /// What a record says; what can't be read as the JSON it should be is taken as it stands.
    fn said(&mut self, raw: &'t RawValue, role: Role, at: usize) -> Result<Said, Error> {
        if !raw.get().starts_with('"') {
            let what = format!("messages[{at}]: content is not a string");
            return Err(self.source.refuse(raw, what).hinting("it should be a string that holds JSON"));
        }
        let text: String = self.source.read(raw, "content")?;
        let (inner, lone) = without_lone_surrogates(&text);
        let said = if role == Role::Assistant { blocks(&inner) } else { words(&inner) };
        self.notes.surrogates += if said.is_some() { lone.len() } else { 0 };
        if said.is_none() && !text.is_empty() {
            self.notes.unread += 1;
            self.notes.first_unread.get_or_insert_with(|| self.source.place(raw));
        }
        Ok(said.unwrap_or_else(|| Said { steps: vec![Step::of_text(text)], ..Said::default() }))
    }

    /// Records of two sessions are no conversation.
    fn one_session(&mut self, fields: &Fields<'t>, at: usize) -> Result<(), Error> {
        let Some(raw) = SESSION.iter().find_map(|name| fields.get(*name).copied()) else { return Ok(()) };
        let Some(name) = self.source.read::<Option<Text>>(raw, "session")? else { return Ok(()) };
        let first = self.session.get_or_insert_with(|| name.clone());
        if *first == name {
            return Ok(());
        }
        let what = format!("messages[{at}] is of session {name:?}, those before of {first:?}");
        Err(self.source.refuse(raw, what).hinting("a file holds the records of one session: split it"))
    }
}

/// What a content says.
#[derive(Default)]
struct Said {
    /// At least one, in order.
    steps: Vec<Step>,
    /// What else was in it, and where to keep it.
    rest: Option<(&'static str, Value)>,
    /// Why it was broken off.
    error: Option<String>,
    /// The kinds of blocks that are not shown, one for each.
    kinds: Vec<String>,
}

/// One message with the calls at its end, and the results of these calls.
#[derive(Default)]
struct Step {
    parts: Vec<Part>,
    results: Vec<ToolResult>,
}

impl Step {
    fn of_text(text: String) -> Step {
        let parts = (!text.is_empty()).then(|| Part::text(text)).into_iter().collect();
        Step { parts, results: Vec::new() }
    }

    fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call(_)))
    }

    /// Adds a text; neighbouring texts are one.
    fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text { text: before }) => *before = format!("{before}{text}").into(),
            _ if text.is_empty() => {}
            _ => self.parts.push(Part::text(text)),
        }
    }
}

/// Returns the entries of a record: those of its first step carry its id and its other fields.
fn expanded(first: Entry, steps: Vec<Step>) -> Vec<Entry> {
    let (status, at) = (first.status, first.at);
    let mut entries: Vec<Entry> = Vec::with_capacity(1);
    let mut first = Some(first);
    for Step { parts, results } in steps {
        let later = || Entry { status, at, ..Entry::new(Role::Assistant, Vec::new()) };
        entries.push(Entry { parts: parts.into(), ..first.take().unwrap_or_else(later) });
        entries.extend(results.into_iter().map(|it| Entry { at, ..Entry::new(Role::Tool, [Part::Result(it)]) }));
    }
    entries
}

/// A user's content: its text, and the images among its files.
fn words(content: &str) -> Option<Said> {
    let mut fields: Map<String, Value> = serde_json::from_str(content).ok()?;
    let Value::String(text) = fields.remove("text")? else { return None };
    let mut step = Step::of_text(text);
    let mut kinds = Vec::new();
    for file in fields.get_mut("files").and_then(Value::as_array_mut).into_iter().flatten() {
        match file.as_object_mut().and_then(take_image_file) {
            Some(media) => step.parts.push(Part::Image(media)),
            None => kinds.push("file".to_string()),
        }
    }
    let rest = (!fields.is_empty()).then_some(("content", Value::Object(fields)));
    Some(Said { steps: vec![step], rest, kinds, error: None })
}

/// Takes the content out of a file that is an image; its other fields stay.
fn take_image_file(file: &mut Map<String, Value>) -> Option<Media> {
    let kind = ["mimeType", "type"].iter().find_map(|name| file.get(*name)?.as_str())?.to_string();
    let url = image_url(file.get("content")?.as_str()?, &kind)?;
    file.remove("content");
    let name = file.get("name").and_then(Value::as_str).map(Into::into);
    Some(Media { url, name, detail: None })
}

/// An assistant's content: text and reasoning are one text, in order, with nothing between them. What follows a tool call
/// is a step of its own.
fn blocks(content: &str) -> Option<Said> {
    let list: Vec<Map<String, Value>> = serde_json::from_str(content).ok()?;
    let (mut said, mut others) = (Said { steps: vec![Step::default()], ..Said::default() }, Vec::new());
    for block in list {
        let kind = block.get("type")?.as_str()?;
        let text = block.get("content").and_then(Value::as_str);
        match kind {
            "content" | "reasoning_content" => {
                let text = text.unwrap_or_default();
                if !text.is_empty() {
                    said.open_step().push_text(text);
                }
                continue;
            }
            "tool_call" => {
                if let Some((call, result)) = tool_call(&block) {
                    let step = said.steps.last_mut().expect("there is always one");
                    step.parts.push(Part::Call(call));
                    step.results.extend(result);
                    continue;
                }
            }
            "image" => {
                if let Some(media) = image(&block) {
                    said.open_step().parts.push(Part::Image(media));
                    continue;
                }
            }
            "error" => said.error = text.map(String::from).or(said.error),
            _ => {}
        }
        said.kinds.push(kind.to_string());
        others.push(Value::Object(block));
    }
    said.rest = (!others.is_empty()).then_some(("blocks", Value::Array(others)));
    Some(said)
}

impl Said {
    /// Returns the step that takes more text or images: a new one behind tool calls.
    fn open_step(&mut self) -> &mut Step {
        if self.steps.last().is_none_or(Step::has_calls) {
            self.steps.push(Step::default());
        }
        self.steps.last_mut().expect("one was just added")
    }
}

/// Reads a tool call and its response; `None` if it has no id or no name.
fn tool_call(block: &Map<String, Value>) -> Option<(Call, Option<ToolResult>)> {
    let fields = block.get("tool_call")?.as_object()?;
    let named = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (id, name) = (named("id")?, named("name")?);
    let arguments = match fields.get("params") {
        Some(Value::Object(params)) => Arguments::Object(Value::Object(params.clone()).to_string().into()),
        _ => Arguments::String(named("params").unwrap_or("{}").into()),
    };
    let call = Call { id: id.into(), name: name.into(), arguments };
    let response = match fields.get("response") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    };
    let is_error = block.get("status").and_then(Value::as_str) == Some("error");
    let result = response.map(|text| ToolResult { is_error, ..ToolResult::text(id, text) });
    Some((call, result))
}

/// Reads an image; `None` if the record does not hold its data or address.
fn image(block: &Map<String, Value>) -> Option<Media> {
    let data = block.get("image_data").and_then(Value::as_object);
    let of = |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_str);
    let content = || block.get("content").and_then(Value::as_str);
    let url = image_url(of("data").or_else(content)?, of("mimeType").unwrap_or_default())?;
    Some(Media { url, name: None, detail: None })
}

/// Returns the address of an image that is given as an address, a `data:` URL, or in base64 with its media type.
fn image_url(data: &str, kind: &str) -> Option<Text> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if base64_of(data).is_some_and(|(kind, _)| kind.starts_with("image/")) {
        Some(data.into())
    } else if is_address(data) {
        (kind.is_empty() || kind.contains("image")).then(|| data.into())
    } else {
        let is_data = kind.starts_with("image/") && !data.is_empty() && data.bytes().all(is_base64);
        is_data.then(|| format!("data:{kind};base64,{data}").into())
    }
}

fn take<'t>(fields: &mut Fields<'t>, names: [&str; 2]) -> Option<&'t RawValue> {
    names.into_iter().find_map(|name| fields.remove(name))
}

fn role(source: &Source<'_>, raw: &RawValue, at: usize) -> Result<Role, Error> {
    let name: String = source.read(raw, "role")?;
    match name.as_str() {
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "system" => Ok(Role::System),
        _ => Err(source
            .refuse(raw, format!("messages[{at}]: unknown role {name:?}"))
            .hinting("known roles: system, user, assistant")),
    }
}

fn status(source: &Source<'_>, raw: &RawValue, at: usize) -> Result<Status, Error> {
    let name: String = source.read(raw, "status")?;
    match name.as_str() {
        "sent" => Ok(Status::Sent),
        "pending" => Ok(Status::Pending),
        "error" => Ok(Status::Error),
        _ => Err(source
            .refuse(raw, format!("messages[{at}]: unknown status {name:?}"))
            .hinting("known statuses: sent, pending, error")),
    }
}

/// Databases spell it as a number.
fn edge(source: &Source<'_>, raw: &RawValue, at: usize) -> Result<bool, Error> {
    match raw.get() {
        "true" | "1" => Ok(true),
        "false" | "0" | "null" => Ok(false),
        other => Err(source
            .refuse(raw, format!("messages[{at}]: isContextEdge is {}", shortened(other)))
            .hinting("it is true, false, 1 or 0")),
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn reason(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        Value::Object(fields) if fields.get("message").is_some_and(Value::is_string) => {
            fields["message"].as_str().map(str::to_string)
        }
        other => Some(other.to_string()),
    }
}

/// The error that a record's metadata names; they may be JSON in a string, too.
fn of_metadata(extra: &Map<String, Value>) -> Option<Value> {
    let metadata = match extra.get("metadata")? {
        Value::String(text) => serde_json::from_str(text).ok()?,
        other => other.clone(),
    };
    metadata.get("error").cloned()
}

/// What the reader should be told, gathered over all records.
#[derive(Default)]
struct Notes {
    /// How many contents were taken as they stand, and where the first is.
    unread: usize,
    first_unread: Option<Place>,
    surrogates: usize,
    /// How many records have no place in the order, of how many.
    unordered: Option<(usize, usize)>,
    /// How many blocks of each kind are not shown.
    kinds: BTreeMap<String, usize>,
}

impl Notes {
    fn left_out(&mut self, kinds: impl Iterator<Item = String>) {
        kinds.for_each(|kind| *self.kinds.entry(kind).or_default() += 1);
    }

    fn told(self) -> Vec<String> {
        let mut told = Vec::new();
        if let Some(Place { line, column }) = self.first_unread {
            let first = format!("the first at line {line}, column {column}");
            told.push(format!("{} without the expected JSON, taken as text; {first}", counted(self.unread, "content")));
        }
        if self.surrogates > 0 {
            told.push(format!("{} replaced inside contents", counted(self.surrogates, "lone surrogate")));
        }
        if let Some((without, of)) = self.unordered {
            told.push(format!("{without} of {of} records have no orderSeq: the order of the file is kept"));
        }
        if !self.kinds.is_empty() {
            let all = self.kinds.values().sum();
            let each: Vec<String> = self.kinds.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
            told.push(format!("{} not shown: {}", counted(all, "block"), each.join(", ")));
        }
        told
    }
}
