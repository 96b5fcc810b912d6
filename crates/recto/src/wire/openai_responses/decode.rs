//! From body to entries: every mistake is named with its position, and nothing is half-read.

use super::items::Items;
use crate::binding::bind;
use crate::entry::{Entry, Text};
use crate::error::Error;
use crate::wire::Decoded;
use crate::wire::json::{Fields, Source, place_of, without_position};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a request body.
pub fn decode(body: &str) -> Result<Decoded, Error> {
    let source = Source { text: body };
    let mut fields = top(body)?;
    let mut decoded = Decoded::default();
    if let Some(raw) = fields.remove("model") {
        decoded.model = source.read(raw, "model")?;
    }
    if let Some(raw) = fields.remove("tools") {
        let tools: Option<Vec<&RawValue>> = source.read(raw, "tools")?;
        decoded.tools = tools.unwrap_or_default().into_iter().map(|tool| tool.get().into()).collect();
    }
    let mut items = Items::of(decoded.model.clone());
    if let Some(raw) = fields.remove("instructions") {
        let text: Option<Text> = source.read(raw, "instructions")?;
        items.entries.extend(text.filter(|text| !text.is_empty()).map(Entry::system));
    }
    if let Some(raw) = fields.remove("input") {
        input(&source, raw, &mut items)?;
    }
    (decoded.entries, decoded.marks) = (items.entries, items.marks);
    if let Some(raw) = fields.remove("text") {
        text(&source, raw, &mut decoded)?;
    }
    for (name, raw) in fields {
        let value: Value = source.read(raw, &name)?;
        decoded.extra.insert(name, value);
    }
    bind(&mut decoded.entries, decoded.tools.iter().map(|tool| &**tool));
    Ok(decoded)
}

pub(super) fn top(body: &str) -> Result<Fields<'_>, Error> {
    serde_json::from_str(body).map_err(|error| Error::input(without_position(&error)).at(place_of(body, &error)))
}

/// Reads the input of a request: a text, or a list of items.
pub(super) fn input(source: &Source<'_>, raw: &RawValue, items: &mut Items) -> Result<(), Error> {
    match raw.get().as_bytes().first() {
        Some(b'n') => {}
        Some(b'"') => {
            let text: Text = source.read(raw, "input")?;
            items.entries.push(Entry::user(text));
        }
        Some(b'[') => {
            let list: Vec<&RawValue> = source.read(raw, "input")?;
            for (at, raw) in list.into_iter().enumerate() {
                items.take(source, raw, &format!("input[{at}]"))?;
            }
            items.close();
        }
        _ => return Err(source.refuse(raw, "input is neither a string nor a list of items")),
    }
    Ok(())
}

/// The form of the answer is a part of the page; what else is said about its text is not.
fn text(source: &Source<'_>, raw: &RawValue, decoded: &mut Decoded) -> Result<(), Error> {
    let fields: Option<Fields<'_>> = source.read(raw, "text")?;
    let format = fields.as_ref().and_then(|fields| fields.get("format").copied());
    let mut value: Value = source.read(raw, "text")?;
    if let (Some(format), Value::Object(rest)) = (format, &mut value) {
        // Plain text is what an answer is anyway.
        let is_form = rest["format"].is_object() && rest["format"]["type"] != "text";
        if is_form {
            rest.remove("format");
            decoded.format = Some(format.get().into());
        }
        if is_form && rest.is_empty() {
            return Ok(());
        }
    }
    if !value.is_null() {
        decoded.extra.insert("text".into(), value);
    }
    Ok(())
}
