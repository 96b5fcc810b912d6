//! From body to entries: every mistake is named with its position, and nothing is half-read.

use super::contents::{Contents, object};
use super::{camel, generation};
use crate::binding::bind;
use crate::entry::Text;
use crate::error::Error;
use crate::wire::Decoded;
use crate::wire::json::{Fields, Source, place_of, without_position};
use serde_json::value::RawValue;

/// Reads a request body.
pub fn decode(body: &str) -> Result<Decoded, Error> {
    let source = Source { text: body };
    let mut fields = top(body)?;
    let mut decoded = Decoded::default();
    if let Some(raw) = fields.remove("model") {
        let model: Option<Text> = source.read(raw, "model")?;
        decoded.model = model.map(|model| model.strip_prefix("models/").unwrap_or(&model).into());
    }
    if let Some(raw) = fields.remove("tools") {
        decoded.tools = tools(&source, raw)?;
    }
    let mut contents = Contents::of(&source, decoded.model.clone());
    if let Some(raw) = fields.remove("systemInstruction") {
        contents.instructions(raw)?;
    }
    if let Some(raw) = fields.remove("contents") {
        let list: Vec<&RawValue> = source.read(raw, "contents")?;
        for (at, raw) in list.into_iter().enumerate() {
            contents.take(raw, &format!("contents[{at}]"))?;
        }
    }
    decoded.entries = contents.entries;
    if let Some(raw) = fields.remove("generationConfig") {
        let (format, rest) = generation::read(&source, raw)?;
        decoded.format = format;
        decoded.extra.extend(rest.map(|rest| ("generationConfig".to_string(), rest)));
    }
    for (name, raw) in fields {
        let value = source.read(raw, &name)?;
        decoded.extra.insert(name, value);
    }
    bind(&mut decoded.entries, decoded.tools.iter().map(|tool| &**tool));
    Ok(decoded)
}

/// The fields of a body, by the names that the provider writes.
pub(super) fn top(body: &str) -> Result<Fields<'_>, Error> {
    let fields: Fields<'_> = serde_json::from_str(body)
        .map_err(|error| Error::input(without_position(&error)).at(place_of(body, &error)))?;
    Ok(fields.into_iter().map(|(name, raw)| (camel(&name), raw)).collect())
}

/// Reads tools: functions come in groups, and each is one tool; so is what else a group offers.
fn tools<'t>(source: &Source<'t>, raw: &'t RawValue) -> Result<Vec<Text>, Error> {
    let groups: Option<Vec<&RawValue>> = source.read(raw, "tools")?;
    let mut tools: Vec<Text> = Vec::new();
    for (at, raw) in groups.unwrap_or_default().into_iter().enumerate() {
        let mut group = object(source, raw, &format!("tools[{at}]"))?;
        let functions: Option<Vec<&RawValue>> = group.given("functionDeclarations")?;
        let Some(functions) = functions else {
            tools.push(raw.get().into());
            continue;
        };
        tools.extend(functions.into_iter().map(|function| Text::from(function.get())));
        let others = group.fields.into_iter().filter(|(_, raw)| raw.get() != "null");
        tools.extend(others.map(|(name, raw)| Text::from(format!("{{\"{name}\":{}}}", raw.get()))));
    }
    Ok(tools)
}
