//! Summaries by a model: what would help is a want, and what came of it is a note.
//!
//! Planning asks nobody. Where a pass would rather show a summary, [`plan`](crate::plan()) names it as a [`Want`]; the
//! host has it made, keeps what came of it under the want's key, and hands it to the next plan as [`Notes`]. The same
//! words under the same prompt have the same key, so a summary is paid for once. Nothing waits for one: a page without
//! its notes is a page all the same.

use crate::digest::Digest;
use crate::edit::PartAt;
use crate::entry::{Span, Text};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What a summary stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// One part of one entry, mostly a long tool result.
    Part(PartAt),
    /// Whole exchanges.
    Range(Span),
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
