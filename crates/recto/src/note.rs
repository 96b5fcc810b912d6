//! Summaries by a model: what would help is a want, and what came of it is a note.
//!
//! Planning asks nobody. Where a pass would rather show a summary, [`plan`](crate::plan()) names it as a [`Want`]; the
//! host has it made, keeps what came of it under the want's key, and hands it to the next plan as [`Notes`]. The same
//! words under the same prompt have the same key, so a summary is paid for once. Nothing waits for one: a page without
//! its notes is a page all the same.
//!
//! [`Want::input`] says what a summarizer is told, [`Want::accept`] what is taken from its answer. Between the two
//! stands whoever asks a model.

mod accept; // what is taken from an answer
mod input; // what a summarizer is told
mod page; // how a note on a range reads
mod rules; // sentences in which a user states a rule

use crate::digest::{Digest, Hasher};
use crate::edit::PartAt;
use crate::entry::{Part, Span, Text};
use crate::item::result_text;
use crate::log::Counted;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

pub use accept::Rejected;
pub(crate) use input::{Earlier, Material};
pub use input::{Input, Redact};

/// What a summary stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// One part of one entry, mostly a long tool result; the first part of a message stands for all of it.
    Part(PartAt),
    /// Whole exchanges.
    Range(Span),
    /// The human, by what they said in a stretch.
    Human(Span),
}

/// Returns the prompt that a summary is made with where nobody names another: it demands the form of answer that
/// [`Want::accept`] reads, and so must every other prompt.
pub fn default_prompt(subject: Subject) -> &'static str {
    match subject {
        Subject::Part(_) => include_str!("note/prompts/entry.md"),
        Subject::Range(_) => include_str!("note/prompts/fold.md"),
        Subject::Human(_) => include_str!("note/prompts/human.md"),
    }
}

/// A summary that would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// What identifies the words it is of, the prompt's name and the length.
    pub key: Digest,
    /// What it is of.
    pub subject: Subject,
    /// The name of the prompt that it is to be made with; `None` is the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text>,
    /// About how many characters it should have.
    pub chars: u32,
    /// Whether the next page needs it.
    pub is_urgent: bool,
}

impl Want {
    /// The want for a summary of one part that says these words.
    pub(crate) fn of_part(at: PartAt, words: &str, prompt: Option<Text>, chars: u32) -> Want {
        let mut hasher = Hasher::new();
        hasher.number(0);
        hasher.text(words);
        Want::keyed(hasher, Subject::Part(at), prompt, chars)
    }

    /// The want for a note on a range whose words have this digest.
    pub(crate) fn of_range(span: Span, words: Digest, prompt: Option<Text>, chars: u32) -> Want {
        let mut hasher = Hasher::new();
        hasher.number(1);
        hasher.digest(words);
        Want::keyed(hasher, Subject::Range(span), prompt, chars)
    }

    /// The want for what is worth knowing of a human whose words have this digest.
    pub(crate) fn of_human(span: Span, words: Digest, chars: u32) -> Want {
        let mut hasher = Hasher::new();
        hasher.number(2);
        hasher.digest(words);
        Want::keyed(hasher, Subject::Human(span), None, chars)
    }

    fn keyed(mut hasher: Hasher, subject: Subject, prompt: Option<Text>, chars: u32) -> Want {
        hasher.maybe(prompt.as_deref());
        hasher.number(u64::from(chars));
        Want { key: hasher.finish(), subject, prompt, chars, is_urgent: false }
    }
}

/// What came of a want.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// A summary.
    Made {
        /// Its text.
        text: Text,
        /// The model that made it.
        model: Text,
    },
    /// It could not be made, and is not asked for again.
    Failed {
        /// Why.
        why: Text,
    },
}

/// What came of the wants of a conversation.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    of: HashMap<Digest, Note>,
}

impl Notes {
    /// Returns what came of a want.
    pub fn get(&self, key: Digest) -> Option<&Note> {
        self.of.get(&key)
    }

    /// Keeps what came of a want.
    pub fn put(&mut self, key: Digest, note: Note) {
        self.of.insert(key, note);
    }
}

/// An entry as one text: its texts as they are, everything else by name, a provider's own data as JSON. Nothing of one
/// that thinks or makes calls, or that has no words.
pub(crate) fn words_of(entry: &Counted) -> Option<Text> {
    let mut texts: Vec<Text> = Vec::new();
    for part in entry.shown().iter() {
        texts.push(match part {
            Part::Text { text } => text.clone(),
            Part::Result(result) => result_text(result),
            Part::Image(_) => "[image]".into(),
            Part::Audio(_) => "[audio]".into(),
            Part::Document(_) => "[document]".into(),
            Part::File { .. } => "[file]".into(),
            Part::Opaque { payload, .. } => canonical_json(payload),
            Part::Reasoning(_) | Part::Call(_) => return None,
        });
    }
    match &*texts {
        [] => None,
        [text] => Some(text.clone()),
        _ => Some(texts.join("\n").into()),
    }
}

pub(crate) fn canonical_json(payload: &Text) -> Text {
    let value = serde_json::from_str::<serde_json::Value>(payload);
    value.map_or_else(|_| payload.clone(), |value| value.to_string().into())
}

/// A text on one line, without what can't be seen.
pub(crate) fn one_line(text: &str) -> String {
    let is_unseen = |letter: char| letter.is_whitespace() || letter.is_control();
    text.split(is_unseen).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The beginning of a text, and a sign if there is more.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
