//! Answers in the words of each provider: whole, and as a stream made from the whole.

pub(super) mod chat;
pub(super) mod gemini;
pub(super) mod messages;
pub(super) mod ollama;
pub(super) mod responses;

use super::cache::Served;
use super::chain::id;
use super::reply::Reply;
use serde_json::Value;

const DELTA_CHARS: usize = 12;

/// One answer on its way: what is said, and what it costs.
#[derive(Debug)]
pub(super) struct Saying<'a> {
    pub(super) body: &'a Value,
    pub(super) reply: &'a Reply,
    pub(super) served: &'a Served,
    pub(super) output_tokens: u64,
    pub(super) thinking_tokens: u64,
    pub(super) ids: Ids,
}

impl Saying<'_> {
    fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }
}

/// Ids in a provider's style, never the same twice.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ids(pub(super) u64);

impl Ids {
    pub(super) fn next(&mut self, prefix: &str, letters: usize) -> String {
        self.0 += 1;
        id(prefix, self.0, letters)
    }
}

/// Returns a server-sent event.
fn event(name: Option<&str>, data: &Value) -> String {
    let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
    format!("{name}data: {data}\n\n")
}

/// Returns a text in small pieces; an empty text has one.
fn deltas(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    if letters.is_empty() {
        return vec![String::new()];
    }
    letters.chunks(DELTA_CHARS).map(|chunk| chunk.iter().collect()).collect()
}
