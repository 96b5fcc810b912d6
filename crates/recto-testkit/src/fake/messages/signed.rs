//! Thinking blocks that the provider gave out: who made them, and behind what.

use super::super::chain::{chain, plain_numbers};
use super::super::model::Claude;
use super::super::node::{Checked, Node};
use super::super::{Api, Refusal};
use super::blocks::invalid_signature;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Every signature that was given out, by its text.
#[derive(Debug, Default)]
pub(in super::super) struct Signed {
    issued: HashMap<String, Issued>,
    steps: Vec<Vec<String>>, // the signatures of one answer, in order
}

#[derive(Debug)]
struct Issued {
    model: String,
    thinking: String,
    step: usize,
    prefix: u128,
    earlier: Vec<String>, // the thinking that was read when this was made
}

/// What the model reads of a request's thinking.
#[derive(Debug, Default)]
pub(in super::super) struct Kept {
    /// Message and block of each thinking block that is left out, and why.
    pub(in super::super) dropped: Vec<(usize, usize, &'static str)>,
    signatures: Vec<String>,
    end: Prefix,
}

/// Everything before a place, in the form that counts for a signature.
#[derive(Debug, Default, Clone)]
struct Prefix {
    name: u128,
    deferred: Vec<(String, String)>, // tools that count only once something refers to them
}

impl Prefix {
    fn of(body: &Value) -> Prefix {
        let mut name = chain(0, &canonical_content(&body["system"]).to_string());
        let mut deferred = Vec::new();
        let mut tools: Vec<&Value> = body["tools"].as_array().into_iter().flatten().collect();
        tools.sort_by_key(|tool| tool["name"].as_str().unwrap_or_default());
        for tool in tools {
            let text = plain_numbers(&without_mark(tool)).to_string();
            if tool["defer_loading"] == true {
                deferred.push((tool["name"].as_str().unwrap_or_default().to_owned(), text));
            } else {
                name = chain(name, &text);
            }
        }
        Prefix { name, deferred }
    }

    fn push(&mut self, role: &str, block: &Value) {
        let Some(canonical) = canonical_block(block) else { return };
        for name in referred(block) {
            if let Some(at) = self.deferred.iter().position(|(tool, _)| *tool == name) {
                let (_, text) = self.deferred.remove(at);
                self.name = chain(self.name, &text);
            }
        }
        self.name = chain(self.name, &format!("{role} {canonical}"));
    }
}

impl Signed {
    /// Checks A14, A16 and, where blocks are bound to their conversation, A17.
    pub(in super::super) fn read(&self, body: &Node<'_>, binds: bool) -> Result<Kept, Refusal> {
        let model = body.str_of("model").unwrap_or_default();
        let drops = body.value["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
        let messages = body.get("messages").map(|messages| messages.entries()).unwrap_or_default();
        let latest = latest_turn(&messages);
        let mut kept = Kept { end: Prefix::of(body.value), ..Kept::default() };
        let mut broken = false;
        for (at, message) in messages.iter().enumerate() {
            let role = message.str_of("role").unwrap_or_default();
            let content = message.get("content");
            if let Some(text) = content.as_ref().and_then(|content| content.value.as_str()) {
                kept.end.push(role, &json!({"type": "text", "text": text}));
            }
            for (inside, block) in content.map(|it| it.entries()).unwrap_or_default().iter().enumerate() {
                let Some(signature) = signature_of(block.value) else {
                    kept.end.push(role, block.value);
                    continue;
                };
                let issued = self.issued.get(signature).ok_or_else(|| invalid_signature(block))?;
                if !reads(model, &issued.model) {
                    kept.dropped.push((at, inside, "model_binding_mismatch"));
                    continue;
                }
                if block.str_of("thinking").unwrap_or_default() != issued.thinking {
                    return Err(if latest.contains(&at) { modified(block) } else { invalid_signature(block) });
                }
                broken |= binds && both_bind(model, &issued.model) && !issued.fits(&kept);
                if broken && !drops {
                    return Err(other_conversation(block));
                } else if broken {
                    kept.dropped.push((at, inside, "prefix_binding_mismatch"));
                } else {
                    kept.signatures.push(signature.to_owned());
                }
            }
        }
        for at in latest {
            self.complete(&messages, at, &kept)?;
        }
        Ok(kept)
    }

    /// A14: of each answer whose thinking stands in the latest turn, all of it stands there, in order.
    fn complete(&self, messages: &[Node<'_>], at: usize, kept: &Kept) -> Checked {
        let latest = latest_turn(messages);
        let blocks: Vec<Node<'_>> =
            messages[latest].iter().filter_map(|message| message.get("content")).flat_map(|it| it.entries()).collect();
        let sent: Vec<&str> = blocks.iter().filter_map(|block| signature_of(block.value)).collect();
        let here = messages[at].get("content").map(|content| content.entries()).unwrap_or_default();
        for block in here {
            let Some(signature) = signature_of(block.value) else { continue };
            let step = self.issued.get(signature).filter(|_| kept.signatures.iter().any(|it| it == signature));
            let Some(step) = step.map(|issued| issued.step) else { continue };
            let of_step: Vec<&str> =
                sent.iter().copied().filter(|it| self.issued.get(*it).is_some_and(|it| it.step == step)).collect();
            if of_step != self.steps[step] {
                return Err(modified(&block));
            }
        }
        Ok(())
    }

    /// Remembers the thinking of an answer to a request that was read.
    pub(in super::super) fn remember(&mut self, model: &str, kept: Kept, content: &[Value]) {
        let Kept { mut signatures, mut end, .. } = kept;
        let step = self.steps.len();
        self.steps.push(content.iter().filter_map(signature_of).map(str::to_owned).collect());
        for block in content {
            let Some(signature) = signature_of(block) else {
                end.push("assistant", block);
                continue;
            };
            let issued = Issued {
                model: model.to_owned(),
                thinking: block["thinking"].as_str().unwrap_or_default().to_owned(),
                step,
                prefix: end.name,
                earlier: signatures.clone(),
            };
            self.issued.insert(signature.to_owned(), issued);
            signatures.push(signature.to_owned());
        }
    }
}

impl Issued {
    /// Returns whether the same conversation stands before it, and the newest of the thinking that stood there.
    fn fits(&self, kept: &Kept) -> bool {
        self.prefix == kept.end.name && self.earlier.ends_with(&kept.signatures)
    }
}

fn latest_turn(messages: &[Node<'_>]) -> std::ops::Range<usize> {
    let is_assistant = |message: &Node<'_>| message.is("role", "assistant");
    let Some(last) = messages.iter().rposition(is_assistant) else { return 0..0 };
    let before = messages[..last].iter().rposition(|message| !is_assistant(message));
    before.map_or(0, |at| at + 1)..last + 1
}

fn signature_of(block: &Value) -> Option<&str> {
    match block["type"].as_str() {
        Some("thinking") => block["signature"].as_str(),
        Some("redacted_thinking") => block["data"].as_str(),
        _ => None,
    }
}

fn reads(model: &str, producer: &str) -> bool {
    match (Claude::named(model), Claude::named(producer)) {
        (Some(reader), Some(producer)) => reader.reads(producer),
        _ => model == producer,
    }
}

fn both_bind(model: &str, producer: &str) -> bool {
    [model, producer].iter().all(|name| Claude::named(name).is_some_and(Claude::binds_thinking))
}

fn modified(block: &Node<'_>) -> Refusal {
    let text = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These \
                blocks must remain as they were in the original response.";
    block.refuse("A14", text)
}

fn other_conversation(block: &Node<'_>) -> Refusal {
    let text = format!(
        "{}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the \
         block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
        block.path
    );
    Refusal::new(Api::Messages, "A17", text)
}

fn without_mark(block: &Value) -> Value {
    let mut block = block.clone();
    if let Some(fields) = block.as_object_mut() {
        fields.remove("cache_control");
    }
    block
}

fn canonical_content(content: &Value) -> Value {
    match content {
        Value::String(text) => canonical_content(&json!([{"type": "text", "text": text}])),
        Value::Array(blocks) => blocks.iter().filter_map(canonical_block).collect(),
        _ => json!([]),
    }
}

/// Returns a block without what does not count: marks, the spaces around a text, the form of numbers, the address of
/// an image. A blank text is no block at all.
fn canonical_block(block: &Value) -> Option<Value> {
    let mut block = plain_numbers(&without_mark(block));
    match block["type"].as_str() {
        Some("text") => {
            let trimmed = block["text"].as_str().unwrap_or_default().trim().to_owned();
            if trimmed.is_empty() {
                return None;
            }
            block["text"] = Value::String(trimmed);
        }
        Some("tool_result") => block["content"] = canonical_content(&block["content"]),
        Some("image" | "document") if block["source"]["type"] == "url" => block["source"]["url"] = Value::Null,
        _ => {}
    }
    Some(block)
}

/// Returns the tools that a block names: the one it calls, and those it refers to.
fn referred(block: &Value) -> Vec<String> {
    let name = |value: &Value| value.as_str().map(str::to_owned);
    match block["type"].as_str() {
        Some("tool_use") => name(&block["name"]).into_iter().collect(),
        Some("tool_reference") => name(&block["tool_name"]).or_else(|| name(&block["name"])).into_iter().collect(),
        Some("tool_addition") => referred(&block["tool"]),
        _ => match &block["content"] {
            Value::Array(inside) => inside.iter().flat_map(referred).collect(),
            inside => inside["tool_references"].as_array().into_iter().flatten().flat_map(referred).collect(),
        },
    }
}
