//! What is left of a fact whose words were erased.

use super::{Arguments, Call, Entry, Part, Piece, Reasoning, Text, ToolResult};
use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Map;

/// What stands where words were erased.
pub const ERASED_WORD: &str = "[erased]";

/// What is known of a body that was erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// How long it was, in bytes.
    pub bytes: u64,
    /// What identifies it.
    pub hash: Digest,
}

impl Entry {
    /// Returns what is left of it when its words are erased: who spoke and when, and which calls it made or answered, so
    /// that the conversation around it stays whole.
    #[must_use]
    pub fn without_words(&self, erased: Erased) -> Entry {
        let word = || Text::from(ERASED_WORD);
        let shape = |part: &Part| match part {
            Part::Reasoning(_) => Part::Reasoning(Reasoning { text: word(), ..Reasoning::default() }),
            Part::Call(call) => Part::Call(Call { arguments: Arguments::Object("{}".into()), ..call.clone() }),
            Part::Result(result) => {
                Part::Result(ToolResult { content: vec![Piece::Text { text: word() }], ..result.clone() })
            }
            _ => Part::Text { text: word() },
        };
        Entry {
            parts: self.parts.iter().map(shape).collect(),
            redactions: Vec::new(),
            erased: Some(erased),
            meta: Map::new(),
            extra: Map::new(),
            ..self.clone()
        }
    }
}
