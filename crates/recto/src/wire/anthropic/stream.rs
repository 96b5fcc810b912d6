//! A streamed response: events are put together to the blocks that an unstreamed one would have had.

use super::blocks::{Read, Reading, with_field};
use super::decode::{Reported, error_text, stop, top};
use crate::entry::{Arguments, Call, Part, Role, Status, Text};
use crate::error::Error;
use crate::wire::json::{Fields, Object, Source, Word};
use crate::wire::{Reply, Stop};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Reads a streamed response event by event.
#[derive(Debug, Default)]
pub struct Stream {
    id: Option<Text>,
    model: Option<Text>,
    blocks: BTreeMap<u64, Growing>,
    stop: Option<Stop>,
    usage: Option<Reported>,
    error: Option<String>,
    has_begun: bool,
    has_ended: bool,
}

/// A block that grows.
#[derive(Debug, Default)]
struct Growing {
    /// As it began, JSON text.
    start: String,
    /// What was added to its texts, by field.
    texts: BTreeMap<&'static str, String>,
    /// What was added to its input, JSON text in pieces.
    input: String,
    /// What was added to its citations, JSON texts.
    citations: Vec<String>,
}

#[derive(Deserialize)]
struct Delta<'t> {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    content: Option<String>,
    #[serde(borrow)]
    citation: Option<&'t RawValue>,
}

/// An event that says no more than that a block grows, as almost all do.
#[derive(Deserialize)]
struct Grown<'t> {
    #[serde(rename = "type", borrow)]
    kind: Word<'t>,
    index: u64,
    #[serde(borrow)]
    delta: Delta<'t>,
}

#[derive(Deserialize)]
struct Message {
    id: Option<Text>,
    model: Option<Text>,
    stop_reason: Option<String>,
    usage: Option<Reported>,
}

#[derive(Deserialize)]
struct Ending {
    stop_reason: Option<String>,
}

impl Stream {
    /// Takes the data of one event; kinds of events that are not known are passed over.
    pub fn event(&mut self, data: &str) -> Result<(), Error> {
        if data.trim().is_empty() {
            return Ok(());
        }
        if let Ok(Object(grown)) = serde_json::from_str::<Object<Grown<'_>>>(data)
            && grown.kind.0 == "content_block_delta"
            && let Some(block) = self.blocks.get_mut(&grown.index)
        {
            block.grow(grown.delta);
            return Ok(());
        }
        let source = Source { text: data };
        let fields = top(data)?;
        let field = |name: &str| {
            let missing = || Error::input(format!("an event without {name:?}"));
            fields.get(name).copied().ok_or_else(missing)
        };
        let kind: String = source.read(field("type")?, "type")?;
        match kind.as_str() {
            "message_start" => {
                let message: Message = source.read(field("message")?, "message")?;
                (self.id, self.model) = (message.id, message.model);
                self.usage = message.usage;
                self.stop = message.stop_reason.as_deref().and_then(stop);
                self.has_begun = true;
            }
            "content_block_start" => {
                let start = field("content_block")?.get().to_string();
                let growing = Growing { start, ..Growing::default() };
                self.blocks.insert(source.read(field("index")?, "index")?, growing);
                self.has_begun = true;
            }
            "content_block_delta" => {
                let index: u64 = source.read(field("index")?, "index")?;
                let Some(block) = self.blocks.get_mut(&index) else {
                    return Err(source.refuse(field("index")?, format!("more of block {index}, which has not begun")));
                };
                block.grow(source.read(field("delta")?, "delta")?);
            }
            "message_delta" => {
                let ending: Ending = source.read(field("delta")?, "delta")?;
                self.stop = ending.stop_reason.as_deref().and_then(stop).or(self.stop);
                let later: Option<Reported> =
                    fields.get("usage").map(|raw| source.read(raw, "usage")).transpose()?.flatten();
                if let Some(later) = later {
                    self.usage.get_or_insert_default().update(later);
                }
            }
            "message_stop" => self.has_ended = true,
            "error" => self.error = Some(error_text(field("error")?.get())),
            _ => {}
        }
        Ok(())
    }

    /// Returns what was said; without the event that ends a response, the entry's status is an error.
    pub fn finish(self) -> Result<Reply, Error> {
        if !self.has_begun && self.error.is_none() {
            return Err(Error::input("the stream ended before it said anything").hinting("ask again"));
        }
        let mut read = Read::new(Role::Assistant);
        for block in self.blocks.values() {
            block.read(self.model.clone())?.into_iter().for_each(|later| read.append(later));
        }
        let mut entry = read.into_entry(Map::new());
        if !self.has_ended || self.error.is_some() {
            entry.status = Status::Error;
        }
        if let Some(error) = self.error {
            entry.meta.insert("error".into(), Value::String(error));
        }
        let usage = self.usage.map(Reported::normalised);
        Ok(Reply { entry, id: self.id, model: self.model, stop: self.stop, usage })
    }
}

impl Growing {
    fn grow(&mut self, delta: Delta<'_>) {
        let mut add = |field, text: Option<String>| {
            self.texts.entry(field).or_default().push_str(&text.unwrap_or_default());
        };
        match delta.kind.as_str() {
            "text_delta" => add("text", delta.text),
            "thinking_delta" => add("thinking", delta.thinking),
            "signature_delta" => add("signature", delta.signature),
            "compaction_delta" if delta.content.is_some() => add("content", delta.content),
            "input_json_delta" => self.input.push_str(&delta.partial_json.unwrap_or_default()),
            "citations_delta" => self.citations.extend(delta.citation.map(|raw| raw.get().to_string())),
            _ => {}
        }
    }

    /// Reads the block as far as it came.
    fn read(&self, model: Option<Text>) -> Result<Vec<Read>, Error> {
        let start: Fields<'_> = top(&self.start)?;
        let mut block = self.start.clone();
        for (field, added) in &self.texts {
            let begun: Option<String> = start.get(*field).and_then(|raw| serde_json::from_str(raw.get()).ok());
            let whole = Value::String(begun.unwrap_or_default() + added);
            block = with_field(&block, field, &whole.to_string());
        }
        if !self.citations.is_empty() {
            let begun: Option<Vec<&RawValue>> =
                start.get("citations").and_then(|raw| serde_json::from_str(raw.get()).ok());
            let begun = begun.unwrap_or_default().into_iter().map(|raw| raw.get().to_string());
            let all: Vec<String> = begun.chain(self.citations.iter().cloned()).collect();
            block = with_field(&block, "citations", &format!("[{}]", all.join(",")));
        }
        let is_whole = serde_json::from_str::<&RawValue>(&self.input).is_ok();
        if is_whole {
            block = with_field(&block, "input", self.input.trim());
        }
        let source = Source { text: &block };
        let raw: &RawValue = serde_json::from_str(&block).map_err(|error| Error::input(error.to_string()))?;
        let mut read = Reading { source: &source, model }.one(raw, Role::Assistant, "block")?;
        if !is_whole && !self.input.is_empty() {
            // Arguments that were cut off are no JSON, and are kept as they are.
            for part in read.iter_mut().flat_map(|it| &mut it.parts) {
                if let Part::Call(Call { arguments, .. }) = part {
                    *arguments = Arguments::String(self.input.as_str().into());
                }
            }
        }
        Ok(read)
    }
}
