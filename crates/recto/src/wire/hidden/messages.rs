//! Anthropic Messages: one `message_start`, content blocks numbered anew, one `message_delta` with the summed usage.

use super::object::{Object, list_of, quoted};
use super::rounds::{Numbers, Ours, Rounds, Told, event};
use crate::error::Error;
use std::collections::BTreeMap;

/// The fields that are the same all over a response.
const HEAD: &[&str] = &["id", "model"];

/// The reasons to stop after which calls are answered.
const FOR_CALLS: &[&str] = &["tool_use", "end_turn"];

/// What is known of the content so far.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The blocks of this round, by the provider's number.
    blocks: BTreeMap<u64, Block>,
    numbers: Numbers,
    /// The content of the rounds so far, where they are not streamed.
    content: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Block {
    /// The client's number of it.
    Shown(u64),
    /// Which of the calls that are hidden it is.
    Hidden(usize),
}

impl Messages {
    /// Takes an event, and writes what the client gets of it.
    pub(super) fn event(&mut self, rounds: &mut Rounds, told: &Told, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(mut data) = Object::read(&told.event.data) else {
            out.extend_from_slice(&told.raw);
            return Ok(());
        };
        match data.text("type").as_deref() {
            Some("message_start") => {
                let usage = data.object("message").and_then(|message| message.value("usage"));
                rounds.usage = usage.or(rounds.usage.take());
                if !rounds.is_later {
                    out.extend_from_slice(&told.raw);
                }
            }
            Some("content_block_start" | "content_block_delta" | "content_block_stop") => {
                if self.block(rounds, &mut data)? {
                    out.extend_from_slice(&told.with(&data));
                }
            }
            Some("message_delta") => {
                rounds.sum_usage(&mut data);
                let reason = data.object("delta").and_then(|delta| delta.text("stop_reason"));
                if let Some(reason) = reason {
                    rounds.end(FOR_CALLS.contains(&reason.as_str()));
                }
                if rounds.is_called() {
                    let mut delta = data.object("delta").unwrap_or_default();
                    delta.replace("stop_reason", quoted("end_turn"));
                    let delta = delta.to_string();
                    data.replace("delta", delta);
                    rounds.withhold(&told.with(&data))?;
                } else {
                    out.extend_from_slice(&told.with(&data));
                }
            }
            Some("message_stop") if rounds.is_called() => rounds.withhold(&told.raw)?,
            _ => out.extend_from_slice(&told.raw),
        }
        Ok(())
    }

    /// Takes an event about a block, gives it the client's number, and returns whether the client gets it.
    fn block(&mut self, rounds: &mut Rounds, data: &mut Object<'_>) -> Result<bool, Error> {
        let Some(index) = data.number("index") else { return Ok(true) };
        if let Some(block) = data.object("content_block") {
            let name = block.text("name");
            let is_call = block.text("type").as_deref() == Some("tool_use");
            let place = if is_call && rounds.hides(name.as_deref()) {
                Block::Hidden(rounds.hide(call(&block)))
            } else {
                rounds.theirs += usize::from(is_call);
                Block::Shown(self.numbers.number(index, rounds))
            };
            self.blocks.insert(index, place);
        }
        match self.blocks.get(&index) {
            Some(Block::Shown(number)) => data.replace("index", number),
            Some(Block::Hidden(at)) => {
                let piece = data.object("delta").and_then(|delta| delta.text("partial_json")).unwrap_or_default();
                rounds.grow(*at, &piece)?;
                return Ok(false);
            }
            None => {}
        }
        Ok(true)
    }

    /// Ends the round.
    pub(super) fn close(&mut self) {
        self.blocks.clear();
    }

    /// Takes the body of a round that is not streamed, and returns what the client gets if it is the last.
    pub(super) fn whole(&mut self, rounds: &mut Rounds, body: &str) -> Option<String> {
        let mut message = Object::read(body)?;
        for raw in message.list("content")? {
            let block = Object::read(raw).unwrap_or_default();
            let is_call = block.text("type").as_deref() == Some("tool_use");
            if is_call && rounds.hides(block.text("name").as_deref()) {
                rounds.hide(call(&block));
            } else {
                rounds.theirs += usize::from(is_call);
                self.content.push(raw.to_string());
            }
        }
        rounds.name(&mut message, HEAD);
        rounds.sum_usage(&mut message);
        message.replace("content", list_of(&self.content));
        let reason = message.text("stop_reason");
        rounds.end(reason.is_some_and(|reason| FOR_CALLS.contains(&reason.as_str())));
        if rounds.is_called() {
            message.replace("stop_reason", quoted("end_turn"));
        }
        Some(message.to_string())
    }
}

/// Whether an event surely begins no block, and tells nothing of the message.
pub(super) fn passes(text: &str) -> bool {
    const TELLING: [&str; 4] = ["message_start", "message_delta", "content_block_start", "\"content_block\""];
    TELLING.iter().all(|word| !text.contains(word))
}

/// The call that a block is, with the input it has so far.
fn call(block: &Object<'_>) -> Ours {
    let input = block.raw("input").unwrap_or("{}").to_string();
    Ours { id: block.text("id").unwrap_or_default(), input: Some(input), ..Ours::default() }
}

/// An error in the words of the wire.
pub(super) fn error(what: &str) -> Vec<u8> {
    let error = serde_json::json!({"type": "error", "error": {"type": "api_error", "message": what}});
    event(Some("error"), error)
}
