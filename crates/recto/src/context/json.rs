//! Contexts in files: an export that is read back byte for byte, and says which records could not be.

use super::Context;
use crate::entry::{Entry, Seq, Text};
use crate::error::{Error, Place};
use crate::log::{Counted, Log, SEQ_MAX};
use crate::tokens::Count;
use crate::wire::json::{Fields, Source, offset_in, without_position};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The version of the export format that is read and written.
pub const EXPORT_VERSION: u64 = 1;

/// The fields of a record that have a place of their own; `extra` holds all others.
const FIELDS: [&str; 20] = [
    "seq",
    "id",
    "section",
    "lane",
    "role",
    "parts",
    "status",
    "author",
    "run",
    "at",
    "edge",
    "origin",
    "kind",
    "tools",
    "expiry",
    "covers",
    "redactions",
    "erased",
    "meta",
    "extra",
];

/// A context that was read back.
#[derive(Debug)]
pub struct Imported {
    /// What could be read.
    pub context: Context,
    /// The name of what counted it before; it is counted anew.
    pub tokenizer: Option<Text>,
    /// What could not be read, in the order of the file. A new export has none of it.
    pub quarantined: Vec<Quarantined>,
}

/// A record that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its number among the records of the file, from 0.
    pub index: usize,
    /// Where in the file the reading failed.
    pub place: Place,
    /// Why.
    pub why: String,
    /// The record, exactly as it stands in the file.
    pub raw: Text,
}

impl Context {
    /// Writes the context as JSON, one entry on each line. It holds every entry as it was appended, secrets included.
    ///
    /// Fields of [`Entry::extra`] stand in the record itself, where they came from; only those that share a name with
    /// a field of an entry stand in its `extra`.
    pub fn to_json(&self) -> String {
        let mut entries: Vec<String> = self.log.back().map(|entry| format!("\n{}", record(entry))).collect();
        entries.reverse();
        let metadata = text_of(&*self.metadata);
        let (prompt, format) = (text_of(&self.system_prompt), self.response_format().unwrap_or("null"));
        let (tokenizer, next) = (text_of(self.log.counter().name()), self.next.0);
        let entries = entries.join(",");
        format!(
            "{{\"recto\":{EXPORT_VERSION},\n\"metadata\":{metadata},\n\"systemPrompt\":{prompt},\n\
             \"responseFormat\":{format},\n\"messageStore\":{{\"tokenizer\":{tokenizer},\"next\":{next},\
             \"entries\":[{entries}\n]}}}}\n"
        )
    }

    /// Reads a context from JSON, counted by this tokenizer. A record that can't be an entry is quarantined and all
    /// others load, each at its own place; a file that is no export of this version is an error.
    ///
    /// Fields that an entry has no place for are kept in its [`extra`](Entry::extra): those of the record by their
    /// names, those further in by their paths, such as `/parts/0/cached`.
    pub fn from_json(text: &str, counter: impl Count + 'static) -> Result<Imported, Error> {
        let raw: &RawValue = whole(text, "export")?;
        let source = Source { text };
        check_version(source, raw)?;
        let document: Document<'_> = source.read(raw, "export")?;
        let store = document.message_store.unwrap_or_default();
        let Records { log, next, quarantined } = records(text, &store.entries, Log::counted_by(counter));
        let context = Context {
            log,
            next: next.max(store.next),
            metadata: Arc::new(document.metadata.unwrap_or_default()),
            system_prompt: document.system_prompt.unwrap_or_else(|| "".into()),
            response_format: document.response_format.map(|format| format.get().into()),
        };
        Ok(Imported { context, tokenizer: store.tokenizer, quarantined })
    }
}

/// An export, but for its version. What is missing is empty.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Document<'t> {
    #[serde(rename = "recto")]
    _version: IgnoredAny,
    metadata: Option<Map<String, Value>>,
    system_prompt: Option<Text>,
    #[serde(borrow)]
    response_format: Option<&'t RawValue>,
    #[serde(borrow)]
    message_store: Option<Store<'t>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Store<'t> {
    tokenizer: Option<Text>,
    next: Seq,
    #[serde(borrow)]
    entries: Vec<&'t RawValue>,
}

/// The JSON text that a text consists of.
pub(super) fn whole<'t>(text: &'t str, what: &str) -> Result<&'t RawValue, Error> {
    serde_json::from_str(text).map_err(|error| {
        let at = offset_in(text, error.line(), error.column());
        Error::input(format!("{what}: {}", without_position(&error))).at(Place::at(text, at))
    })
}

/// A file of another version may look like anything, so its number is looked at first.
fn check_version<'t>(source: Source<'t>, raw: &'t RawValue) -> Result<(), Error> {
    let foreign = |error: Error| error.hinting("is it an export of Recto?");
    let fields: Fields<'_> = source.read(raw, "export").map_err(foreign)?;
    let Some(field) = fields.get("recto") else {
        return Err(foreign(source.refuse(raw, "export: no version, since there is no field `recto`")));
    };
    let version: u64 = source.read(field, "export: recto").map_err(foreign)?;
    if version == EXPORT_VERSION {
        return Ok(());
    }
    let what = format!("export: version {version}; this version of Recto reads version {EXPORT_VERSION}");
    Err(source.refuse(field, what).hinting("use the version of Recto that wrote it, or a newer one"))
}

struct Records {
    log: Log,
    /// Behind all records, those that could not be read included.
    next: Seq,
    quarantined: Vec<Quarantined>,
}

/// Why a record can't be read, and how far into it the reading came.
struct Refused {
    offset: usize,
    why: String,
}

/// Takes the records into a log, in the order of their places.
fn records(text: &str, raws: &[&RawValue], mut log: Log) -> Records {
    #[derive(Deserialize)]
    struct Numbered {
        seq: Seq,
    }
    let (mut next, mut entries, mut refused) = (Seq(0), Vec::new(), Vec::new());
    for (index, raw) in raws.iter().enumerate() {
        let seq = read::<Numbered>(raw).map(|it| it.seq);
        next = next.max(seq.as_ref().ok().filter(|seq| **seq <= SEQ_MAX).map_or(Seq(0), |seq| seq.next()));
        match seq.and_then(|seq| Ok((seq, index, entry(raw)?))) {
            Ok(entry) => entries.push(entry),
            Err(why) => refused.push((index, why)),
        }
    }
    entries.sort_by_key(|&(seq, index, _)| (seq, index));
    for (seq, index, entry) in entries {
        if let Err(error) = log.append_at(seq, entry) {
            refused.push((index, Refused { offset: 0, why: error.to_string() }));
        }
    }
    refused.sort_by_key(|(index, _)| *index);
    Records { log, next, quarantined: quarantine(text, raws, refused) }
}

/// Finds the places, each from the one before, so that a file of nothing but bad records is read once.
fn quarantine(text: &str, raws: &[&RawValue], refused: Vec<(usize, Refused)>) -> Vec<Quarantined> {
    let (mut done, mut place) = (0, Place { line: 1, column: 1 });
    let quarantined = refused.into_iter().map(|(index, Refused { offset, why })| {
        let raw = raws[index].get();
        let at = text.floor_char_boundary(raw.as_ptr() as usize - text.as_ptr() as usize + offset);
        let within = Place::at(&text[done..], at - done);
        place = match within.line {
            1 => Place { line: place.line, column: place.column + within.column - 1 },
            lines => Place { line: place.line + lines - 1, column: within.column },
        };
        done = at;
        Quarantined { index, place, why, raw: raw.into() }
    });
    quarantined.collect()
}

fn read<'t, T: Deserialize<'t>>(raw: &'t RawValue) -> Result<T, Refused> {
    serde_json::from_str(raw.get()).map_err(|error| {
        let offset = offset_in(raw.get(), error.line(), error.column());
        Refused { offset, why: without_position(&error) }
    })
}

/// Reads an entry, and keeps what it has no place for.
fn entry(raw: &RawValue) -> Result<Entry, Refused> {
    let mut entry: Entry = read(raw)?;
    let fields: Map<String, Value> = read(raw)?;
    let known = value_of(&entry);
    let mut unplaced = Vec::new();
    for (name, value) in fields {
        if !FIELDS.contains(&&*name) {
            unplaced.push((name, value));
        } else if let Some(known) = known.get(&name) {
            compare(value, known, format!("/{name}"), &mut unplaced);
        }
    }
    for (name, value) in unplaced {
        if entry.extra.contains_key(&name) {
            let why = format!("`{name}` stands both in the record and in its `extra`");
            return Err(Refused { offset: 0, why });
        }
        entry.extra.insert(name, value);
    }
    Ok(entry)
}

/// Finds the fields of a value that did not become part of an entry.
fn compare(read: Value, known: &Value, path: String, unplaced: &mut Vec<(String, Value)>) {
    match (read, known) {
        (Value::Object(read), Value::Object(known)) => {
            for (name, value) in read {
                let path = format!("{path}/{name}");
                match known.get(&name) {
                    Some(known) => compare(value, known, path, unplaced),
                    None => unplaced.push((path, value)),
                }
            }
        }
        (Value::Array(read), Value::Array(known)) => {
            for (at, (value, known)) in read.into_iter().zip(known).enumerate() {
                compare(value, known, format!("{path}/{at}"), unplaced);
            }
        }
        _ => {}
    }
}

/// Writes an entry with its place.
fn record(counted: &Counted) -> String {
    #[derive(Serialize)]
    struct Record {
        seq: Seq,
        #[serde(flatten)]
        entry: Entry,
        #[serde(flatten)]
        unknown: Map<String, Value>,
    }
    let mut entry = counted.original().clone();
    let extra = std::mem::take(&mut entry.extra);
    let (taken, unknown) = extra.into_iter().partition(|(name, _)| FIELDS.contains(&&**name));
    entry.extra = taken;
    text_of(&Record { seq: counted.seq, entry, unknown })
}

fn text_of(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("an entry has no map with keys that aren't text")
}

fn value_of(entry: &Entry) -> Value {
    serde_json::to_value(entry).expect("an entry has no map with keys that aren't text")
}
