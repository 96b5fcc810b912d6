//! The form that an answer must have.

use crate::entry::Text;
use crate::error::Error;
use crate::redact::Screen;
use crate::wire::json::Fields;
use crate::wire::{Wire, accepted, gemini};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The form that an answer must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseFormat {
    /// Some JSON object.
    Json,
    /// JSON that fits a schema.
    Schema {
        /// What the schema is called.
        name: Text,
        /// The schema, as JSON text, kept byte for byte.
        schema: Text,
        /// Whether the provider must hold to it in every detail, where it can be told to.
        strict: Option<bool>,
    },
}

/// What a schema is called if it has no name.
const SCHEMA: &str = "answer";
/// How Ollama is told that some JSON object is wanted.
const OLLAMA_JSON: &str = "\"json\"";

#[derive(Deserialize)]
struct Named<'t> {
    name: Option<Text>,
    #[serde(borrow)]
    schema: Option<&'t RawValue>,
    strict: Option<bool>,
}

impl ResponseFormat {
    /// Reads a format in any wire's shape, or a bare JSON schema; plain text is no format.
    pub fn parse(json: &str) -> Result<Option<ResponseFormat>, Error> {
        let wrong = |what: String| {
            let hint = "expected {\"type\": \"json_object\"}, {\"type\": \"json_schema\", …}, or a JSON schema";
            Error::settings(format!("response format: {what}"), hint)
        };
        if json.trim() == OLLAMA_JSON {
            return Ok(Some(ResponseFormat::Json));
        }
        let fields: Fields<'_> = serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
        if fields.contains_key("responseMimeType") {
            return Ok(Some(ResponseFormat::of_gemini(&fields)));
        }
        let kind: Option<String> = fields.get("type").and_then(|raw| serde_json::from_str(raw.get()).ok());
        match kind.as_deref() {
            Some("text") => Ok(None),
            Some("json_object") => Ok(Some(ResponseFormat::Json)),
            Some("json_schema") => {
                let inner = fields.get("json_schema").map_or(json, |raw| raw.get());
                let named: Named<'_> = serde_json::from_str(inner).map_err(|error| wrong(error.to_string()))?;
                let schema = named.schema.ok_or_else(|| wrong("json_schema without a schema".into()))?;
                let name = named.name.unwrap_or_else(|| SCHEMA.into());
                Ok(Some(ResponseFormat::Schema { name, schema: schema.get().into(), strict: named.strict }))
            }
            _ if ["type", "properties", "$ref", "anyOf", "oneOf", "allOf"]
                .iter()
                .any(|it| fields.contains_key(*it)) =>
            {
                Ok(Some(ResponseFormat::Schema { name: SCHEMA.into(), schema: json.into(), strict: None }))
            }
            _ => Err(wrong("neither a known type nor a schema".into())),
        }
    }

    /// What is said of an answer that must be JSON; an older kind of schema has words of its own.
    fn of_gemini(fields: &Fields<'_>) -> ResponseFormat {
        let given = |name: &str| fields.get(name).map(|raw| raw.get());
        let schema = given("responseJsonSchema").map(Text::from);
        let schema = schema.or_else(|| given("responseSchema").map(|it| gemini::schema::json_schema(it).into()));
        let named = |schema| ResponseFormat::Schema { name: SCHEMA.into(), schema, strict: None };
        schema.map_or(ResponseFormat::Json, named)
    }

    /// Returns it as it is seen through a screen; `None` where that is no other.
    pub(crate) fn through(&self, screen: &Screen) -> Option<ResponseFormat> {
        let ResponseFormat::Schema { name, schema, strict } = self else { return None };
        match screen.json(schema) {
            std::borrow::Cow::Borrowed(_) => None,
            std::borrow::Cow::Owned(shown) => {
                Some(ResponseFormat::Schema { name: name.clone(), schema: shown.into(), strict: *strict })
            }
        }
    }

    /// Returns whether a wire has a way to say it.
    pub fn is_taken_by(&self, wire: Wire) -> bool {
        !matches!((self, wire), (ResponseFormat::Json, Wire::Anthropic))
    }

    /// Returns the name of its schema as every provider takes it.
    pub(crate) fn accepted_name(name: &str) -> std::borrow::Cow<'_, str> {
        accepted(name, 64, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_format_in_every_wires_shape() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        let shapes = [
            format!(r#"{{"type":"json_schema","json_schema":{{"name":"n","schema":{schema},"strict":true}}}}"#),
            format!(r#"{{"type":"json_schema","name":"n","schema":{schema},"strict":true}}"#),
        ];
        let expected = ResponseFormat::Schema { name: "n".into(), schema: schema.into(), strict: Some(true) };
        for shape in shapes {
            assert_eq!(ResponseFormat::parse(&shape).unwrap(), Some(expected.clone()), "{shape}");
        }
        let bare = ResponseFormat::Schema { name: SCHEMA.into(), schema: schema.into(), strict: None };
        assert_eq!(ResponseFormat::parse(schema).unwrap(), Some(bare.clone()));
        let anthropic = format!(r#"{{"type":"json_schema","schema":{schema}}}"#);
        assert_eq!(ResponseFormat::parse(&anthropic).unwrap(), Some(bare.clone()));
        let gemini = |more: &str| format!(r#"{{"responseMimeType":"application/json"{more}}}"#);
        let told = gemini(&format!(r#","responseJsonSchema":{schema}"#));
        assert_eq!(ResponseFormat::parse(&told).unwrap(), Some(bare));
        for json in [gemini(""), "\"json\"".to_string()] {
            assert_eq!(ResponseFormat::parse(&json).unwrap(), Some(ResponseFormat::Json), "{json}");
        }
        assert_eq!(ResponseFormat::parse(r#"{"type":"json_object"}"#).unwrap(), Some(ResponseFormat::Json));
        assert_eq!(ResponseFormat::parse(r#"{"type":"text"}"#).unwrap(), None);
        for wrong in ["", "[]", "{}", r#"{"type":"json_schema"}"#] {
            assert!(ResponseFormat::parse(wrong).is_err(), "{wrong}");
        }
    }
}
