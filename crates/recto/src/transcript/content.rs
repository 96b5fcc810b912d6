//! What a message of a program's own making says: a text, or a list of blocks. Blocks that no part can hold are kept as
//! they are, and counted.

use super::lines;
use crate::entry::{Arguments, Call, Entry, Part, Piece, Role, Text, ToolResult};
use crate::error::Error;
use crate::wire::json::{Fielded, Source};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Reads messages of one program.
pub(super) struct Contents<'s, 't> {
    pub(super) source: &'s Source<'t>,
    /// Whose messages they are: what only that program understands is kept under this name.
    pub(super) owner: &'static str,
    /// How many blocks of each kind no part can hold.
    pub(super) unheld: BTreeMap<String, usize>,
}

/// What one message says.
#[derive(Default)]
pub(super) struct Content {
    pub(super) parts: Vec<Part>,
    /// Fields without a place, by part.
    fields: Map<String, Value>,
}

impl<'s, 't> Contents<'s, 't> {
    pub(super) fn new(source: &'s Source<'t>, owner: &'static str) -> Contents<'s, 't> {
        Contents { source, owner, unheld: BTreeMap::new() }
    }

    /// Reads a text or blocks; `part` makes a part of a block, or nothing if it knows none for its kind.
    pub(super) fn read(
        &mut self,
        raw: Option<&'t RawValue>,
        here: &str,
        mut part: impl FnMut(&str, &mut Fielded<'s, 't>) -> Result<Option<Part>, Error>,
    ) -> Result<Content, Error> {
        let mut content = Content::default();
        let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(content) };
        match raw.get().as_bytes().first() {
            Some(b'"') => {
                let text: Text = self.source.read(raw, here)?;
                content.parts.extend((!text.is_empty()).then_some(Part::Text { text }));
            }
            Some(b'[') => {
                let blocks: Vec<&RawValue> = self.source.read(raw, here)?;
                for (nth, raw) in blocks.into_iter().enumerate() {
                    let mut block = Fielded::of(self.source, raw, &format!("{here}[{nth}]"))?;
                    let kind: String = block.needed("type")?;
                    match part(&kind, &mut block)? {
                        Some(part) => content.push(part, block.rest()?),
                        None => {
                            *self.unheld.entry(kind).or_default() += 1;
                            let payload = raw.get().into();
                            content.parts.push(Part::Opaque { provider: self.owner.into(), payload });
                        }
                    }
                }
            }
            _ => return Err(self.source.refuse(raw, format!("{here} is neither a string nor a list of blocks"))),
        }
        Ok(content)
    }

    /// Makes an entry of what was read; `message` are the fields of the message that have no place in it.
    pub(super) fn entry(&self, role: Role, content: Content, message: Map<String, Value>) -> Entry {
        let mut entry = Entry::new(role, content.parts);
        let kept = [("message", message), ("parts", content.fields)].into_iter().filter(|(_, kept)| !kept.is_empty());
        let kept: Map<String, Value> = kept.map(|(name, kept)| (name.to_string(), Value::Object(kept))).collect();
        if !kept.is_empty() {
            entry.extra.insert(self.owner.into(), Value::Object(kept));
        }
        entry
    }

    /// What should be told about blocks.
    pub(super) fn notes(&self) -> Option<String> {
        let all: usize = self.unheld.values().sum();
        let each: Vec<String> = self.unheld.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
        (all > 0).then(|| format!("{} kept that no model is shown: {}", lines::counted(all, "block"), each.join(", ")))
    }
}

impl Content {
    /// Puts a part behind the others, with the fields of its block that have no place in it.
    pub(super) fn push(&mut self, part: Part, fields: Map<String, Value>) {
        if !fields.is_empty() {
            self.fields.insert(self.parts.len().to_string(), Value::Object(fields));
        }
        self.parts.push(part);
    }

    /// Makes it the result of a call: what is neither text nor picture is named, and kept beside it.
    pub(super) fn into_result(mut self, call: Text, is_error: bool) -> Content {
        let mut pieces = Vec::with_capacity(self.parts.len());
        for (nth, part) in std::mem::take(&mut self.parts).into_iter().enumerate() {
            pieces.push(match part {
                Part::Text { text } => Piece::Text { text },
                Part::Image(media) => Piece::Image(media),
                other => {
                    let (kind, whole) = named(&other);
                    self.fields.insert(nth.to_string(), json!({ "block": whole }));
                    Piece::Text { text: format!("[{kind}]").into() }
                }
            });
        }
        let result = ToolResult { call: call.into(), content: pieces, is_error };
        Content { parts: vec![Part::Result(result)], fields: self.fields }
    }
}

/// What a part that no result holds is called, and all of it.
fn named(part: &Part) -> (String, Value) {
    let whole: Value = match part {
        Part::Opaque { payload, .. } => serde_json::from_str(payload).unwrap_or_default(),
        part => serde_json::to_value(part).unwrap_or_default(),
    };
    (whole["type"].as_str().unwrap_or("block").chars().take(40).collect(), whole)
}

/// Reads a call whose arguments are an object; its tool stands under `tool`.
pub(super) fn call(block: &mut Fielded<'_, '_>, tool: &str) -> Result<Call, Error> {
    let (id, name): (Text, Text) = (block.needed("id")?, block.needed(tool)?);
    let given = block.fields.remove("arguments").map_or("{}", RawValue::get);
    let arguments = match given.as_bytes().first() {
        Some(b'{') => Arguments::Object(given.into()),
        Some(b'"') => Arguments::String(serde_json::from_str(given).unwrap_or_else(|_| given.into())),
        _ => Arguments::Object("{}".into()),
    };
    Ok(Call { id: id.into(), name, arguments })
}
