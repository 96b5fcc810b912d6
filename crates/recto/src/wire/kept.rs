//! What a client's record held beyond parts: it stays beside the entry, by wire, and goes back to that wire alone.

use super::Wire;
use crate::entry::{Entry, Part, Role};
use crate::page::Message;
use serde_json::{Map, Value};

/// Returns the entry of a record; `message` are fields of the record itself, `by_part` those of its parts, by number.
pub(crate) fn entry(
    wire: Wire,
    role: Role,
    parts: Vec<Part>,
    message: Map<String, Value>,
    by_part: Map<String, Value>,
) -> Entry {
    let mut entry = Entry::new(role, parts);
    let kept = [("message", message), ("parts", by_part)].into_iter().filter(|(_, kept)| !kept.is_empty());
    let kept: Map<String, Value> = kept.map(|(name, kept)| (name.to_string(), Value::Object(kept))).collect();
    if !kept.is_empty() {
        entry.extra.insert(wire.name().into(), Value::Object(kept));
    }
    entry
}

/// Returns the fields of the record itself.
pub(crate) fn of_message(message: &Message, wire: Wire) -> Option<&Map<String, Value>> {
    message.extra.get(wire.name())?.get("message")?.as_object()
}

/// Returns the fields of one of its parts.
pub(crate) fn of_part(message: &Message, wire: Wire, nth: usize) -> Option<&Map<String, Value>> {
    message.extra.get(wire.name())?.get("parts")?.get(nth.to_string())?.as_object()
}
