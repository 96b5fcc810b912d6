//! How the pieces of a stream are told apart.

use recto::wire::{ndjson, sse};

/// What a stream comes in.
pub(super) enum Frames {
    Events(sse::Reader),
    Lines(ndjson::Reader),
}

impl Frames {
    /// Returns what an answer of a type comes in; one that is no stream has none.
    pub(super) fn of(content_type: &str) -> Option<Frames> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "text/event-stream" => Some(Frames::Events(sse::Reader::default())),
            "application/x-ndjson" => Some(Frames::Lines(ndjson::Reader::default())),
            _ => None,
        }
    }

    /// Takes some bytes, and returns the data of what is complete now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, recto::Error> {
        match self {
            Frames::Events(reader) => Ok(reader.push(bytes)?.into_iter().map(|event| event.data).collect()),
            Frames::Lines(reader) => reader.push(bytes),
        }
    }

    /// Returns what came last, and was not ended.
    pub(super) fn finish(&mut self) -> Vec<String> {
        match self {
            Frames::Events(_) => Vec::new(),
            Frames::Lines(reader) => reader.finish().into_iter().collect(),
        }
    }
}
