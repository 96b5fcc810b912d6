//! How the answer is to be made: its form is a part of the page, everything else is the client's own.

use super::contents::object;
use crate::entry::Text;
use crate::error::Error;
use crate::format::ResponseFormat;
use crate::wire::json::Source;
use crate::wire::write::{extra, raw};
use serde_json::Value;
use serde_json::value::RawValue;

const JSON: &str = "\"application/json\"";
/// What says which form an answer has.
const FORM: [&str; 3] = ["responseMimeType", "responseSchema", "responseJsonSchema"];

/// Reads the form of the answer, in this wire's own shape, and all that is said beside it.
pub(super) fn read<'t>(source: &Source<'t>, raw: &'t RawValue) -> Result<(Option<Text>, Option<Value>), Error> {
    if raw.get() == "null" {
        return Ok((None, None));
    }
    let mut config = object(source, raw, "generationConfig")?;
    let is_json = config.fields.get("responseMimeType").is_some_and(|kind| kind.get() == JSON);
    let mut form = Vec::new();
    for name in FORM.into_iter().filter(|_| is_json) {
        let given = config.fields.remove(name).filter(|raw| raw.get() != "null");
        form.extend(given.map(|raw| format!("\"{name}\":{}", raw.get())));
    }
    let rest: serde_json::Map<String, Value> = config
        .fields
        .into_iter()
        .map(|(name, raw)| Ok((name.clone(), source.read(raw, &format!("generationConfig.{name}"))?)))
        .collect::<Result<_, Error>>()?;
    let format = (!form.is_empty()).then(|| Text::from(format!("{{{}}}", form.join(","))));
    Ok((format, (!rest.is_empty()).then_some(Value::Object(rest))))
}

/// Writes it, behind what is there already, if there is anything to say.
pub(super) fn write(out: &mut Vec<u8>, format: Option<&ResponseFormat>, given: Option<&Value>) {
    let given = given.and_then(Value::as_object).filter(|given| !given.is_empty());
    if format.is_none() && given.is_none() {
        return;
    }
    raw(out, r#","generationConfig":{"#);
    let mut own = Vec::new();
    if let Some(format) = format {
        raw(&mut own, r#","responseMimeType":"application/json""#);
        if let ResponseFormat::Schema { schema, .. } = format {
            raw(&mut own, r#","responseJsonSchema":"#);
            raw(&mut own, schema);
        }
    }
    let written: &[&str] = if format.is_some() { &FORM } else { &[] };
    given.into_iter().for_each(|given| extra(&mut own, given, written));
    // The first has no comma before it.
    out.extend_from_slice(own.get(1..).unwrap_or_default());
    out.push(b'}');
}
