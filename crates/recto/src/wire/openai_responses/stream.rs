//! A streamed response: items are taken when they are done; of those that never were, what there is.

use super::PROVIDER;
use super::items::Items;
use super::reply::{End, message};
use crate::entry::{Call, Part, Reasoning};
use crate::error::Error;
use crate::wire::Reply;
use crate::wire::json::{Fields, Source, place_of, without_position};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The most items of an answer, and pieces of an item, that are put together.
const PIECES_MAX: u64 = 100_000;

/// Reads a streamed response event by event.
#[derive(Debug, Default)]
pub struct Stream {
    end: End,
    items: BTreeMap<u64, Item>,
    /// The output of the last event, for servers that tell of items only there.
    output: Option<String>,
    has_begun: bool,
    has_ended: bool,
}

/// An item that is being told.
#[derive(Debug, Default)]
struct Item {
    /// All of it, as it was told when it was done.
    done: Option<String>,
    kind: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    /// What was told of it piece by piece, by the number of the piece.
    texts: BTreeMap<u64, String>,
    refusals: BTreeMap<u64, String>,
    thoughts: BTreeMap<u64, String>,
    arguments: String,
}

#[derive(Deserialize)]
struct Event<'t> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default, alias = "summary_index")]
    content_index: Option<u64>,
    #[serde(default)]
    delta: Option<Value>,
    #[serde(default, alias = "arguments", alias = "input", alias = "refusal")]
    text: Option<Value>,
    #[serde(default, borrow)]
    item: Option<&'t RawValue>,
    #[serde(default, borrow)]
    response: Option<&'t RawValue>,
    #[serde(default, borrow)]
    error: Option<&'t RawValue>,
    #[serde(default)]
    message: Option<String>,
}

impl Stream {
    /// Takes the data of one event.
    pub fn event(&mut self, data: &str) -> Result<(), Error> {
        if data.trim() == "[DONE]" || self.has_ended {
            return Ok(());
        }
        let wrong = |error: serde_json::Error| Error::input(without_position(&error)).at(place_of(data, &error));
        let source = Source { text: data };
        let event: Event<'_> = serde_json::from_str(data).map_err(wrong)?;
        let Some(kind) = event.kind.as_deref() else { return Ok(()) };
        match kind.strip_prefix("response.") {
            Some("created" | "in_progress" | "queued") => self.head(&source, event.response)?,
            Some("completed" | "incomplete" | "failed" | "cancelled") => {
                self.head(&source, event.response)?;
                let told = kind.strip_prefix("response.").map(str::to_string);
                self.end.status = self.end.status.take().filter(|it| it != "in_progress").or(told);
                self.has_ended = true;
            }
            Some(told) => self.piece(&source, told, &event)?,
            None if kind == "error" => {
                let why = event.error.and_then(message).or(event.message);
                self.end.error = Some(why.unwrap_or_else(|| "the provider reported an error".into()));
                self.has_begun = true;
            }
            None => {}
        }
        Ok(())
    }

    fn head(&mut self, source: &Source<'_>, raw: Option<&RawValue>) -> Result<(), Error> {
        self.has_begun = true;
        let Some(raw) = raw else { return Ok(()) };
        let fields: Fields<'_> = source.read(raw, "response")?;
        let told = End::of(source, &fields)?;
        self.end = End {
            id: told.id.or(self.end.id.take()),
            model: told.model.or(self.end.model.take()),
            error: told.error.or(self.end.error.take()),
            ..told
        };
        self.output = fields.get("output").map(|raw| raw.get().to_string());
        Ok(())
    }

    fn piece(&mut self, source: &Source<'_>, told: &str, event: &Event<'_>) -> Result<(), Error> {
        const TOLD: &[&str] = &[
            "output_item.added",
            "output_item.done",
            "output_text.delta",
            "output_text.done",
            "refusal.delta",
            "refusal.done",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "custom_tool_call_input.delta",
            "custom_tool_call_input.done",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_text.delta",
            "reasoning_text.done",
        ];
        let newest = self.items.keys().next_back().copied().unwrap_or(0);
        let (at, nth) = (event.output_index.unwrap_or(newest), event.content_index.unwrap_or(0));
        if !TOLD.contains(&told) || at > PIECES_MAX || nth > PIECES_MAX {
            return Ok(());
        }
        self.has_begun = true;
        let item = self.items.entry(at).or_default();
        if let Some(raw) = event.item {
            let fields: Fields<'_> = source.read(raw, "item")?;
            let text = |name: &str| -> Option<String> { serde_json::from_str(fields.get(name)?.get()).ok() };
            (item.kind, item.call_id, item.name) = (text("type"), text("call_id"), text("name"));
            if told == "output_item.done" {
                item.done = Some(raw.get().to_string());
            }
        }
        let (whose, is_whole) = match told.rsplit_once('.') {
            Some((whose, "done")) => (whose, true),
            Some((whose, _)) => (whose, false),
            None => return Ok(()),
        };
        let piece = match whose {
            "output_text" => item.texts.entry(nth).or_default(),
            "refusal" => item.refusals.entry(nth).or_default(),
            "reasoning_summary_text" | "reasoning_text" => item.thoughts.entry(nth).or_default(),
            "function_call_arguments" | "custom_tool_call_input" => &mut item.arguments,
            _ => return Ok(()),
        };
        match (event.text.as_ref().and_then(Value::as_str), event.delta.as_ref().and_then(Value::as_str)) {
            (Some(text), _) if is_whole => *piece = text.into(),
            (_, Some(delta)) if !is_whole => piece.push_str(delta),
            _ => {}
        }
        Ok(())
    }

    /// Returns what was said. A stream without its proper end is an answer that was broken off.
    pub fn finish(mut self) -> Result<Reply, Error> {
        if !self.has_begun {
            return Err(Error::input("the stream ended before it began").hinting("ask again"));
        }
        if !self.has_ended {
            self.end.status = None;
        }
        let mut items = Items::answer_of(self.end.model.clone());
        for (at, item) in std::mem::take(&mut self.items) {
            match &item.done {
                Some(text) => {
                    let raw: &RawValue = serde_json::from_str(text)
                        .map_err(|error| Error::input(without_position(&error)).at(place_of(text, &error)))?;
                    items.take(&Source { text }, raw, &format!("output[{at}]"))?;
                }
                None => item.tell(&mut items),
            }
        }
        if items.is_empty() && self.has_ended {
            self.whole(&mut items)?;
        }
        Ok(self.end.reply(items))
    }

    fn whole(&self, items: &mut Items) -> Result<(), Error> {
        let Some(text) = &self.output else { return Ok(()) };
        let list: Option<Vec<&RawValue>> = serde_json::from_str(text).unwrap_or_default();
        for (at, raw) in list.unwrap_or_default().into_iter().enumerate() {
            items.take(&Source { text }, raw, &format!("output[{at}]"))?;
        }
        Ok(())
    }
}

impl Item {
    /// Tells what there is of an item that was never done. What sealed its reasoning came to no end, and is no use.
    fn tell(self, items: &mut Items) {
        let thought = self.thoughts.into_values().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n\n");
        if !thought.is_empty() {
            let (provider, model) = (Some(PROVIDER.into()), items.model.clone());
            items.say(Part::Reasoning(Reasoning { text: thought.into(), provider, model, ..Reasoning::default() }));
        }
        for text in self.texts.into_values().filter(|text| !text.is_empty()) {
            items.say(Part::text(text));
        }
        for refusal in self.refusals.into_values().filter(|text| !text.is_empty()) {
            let payload = serde_json::json!({"type": "refusal", "refusal": refusal}).to_string();
            items.say(Part::Opaque { provider: PROVIDER.into(), payload: payload.into() });
        }
        let is_custom = self.kind.as_deref() == Some("custom_tool_call");
        if let (Some(id), Some(name), true) =
            (self.call_id, self.name, is_custom || self.kind.as_deref() == Some("function_call"))
        {
            items.say_call(Call::new(id, name, self.arguments), is_custom);
        }
    }
}
