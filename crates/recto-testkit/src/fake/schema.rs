//! Schemas of tools and answers.

use super::node::{Checked, Node};
use super::{Api, Refusal};
use serde_json::{Map, Value};

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
const MAPS_OF_SCHEMAS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const LISTS_OF_SCHEMAS: [&str; 4] = ["anyOf", "allOf", "oneOf", "prefixItems"];
const SCHEMAS: [&str; 6] = ["items", "additionalProperties", "not", "if", "then", "else"];

/// Checks the parameters of an OpenAI function: an object schema; with `strict`, closed at every level (C11).
pub(super) fn parameters(function: &Node<'_>, label: &str) -> Checked {
    let strict = function.get("strict").map(|strict| strict.flag()).transpose()?.unwrap_or(false);
    let Some(parameters) = function.get("parameters") else { return Ok(()) };
    let kind = parameters.object()?.get("type").and_then(Value::as_str).unwrap_or("None");
    if kind != "object" {
        let text = format!(
            "Invalid schema for {label}: schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
        );
        return Err(parameters.refuse("shape", &text).coded("invalid_function_parameters"));
    }
    if strict { closed(&parameters, label) } else { Ok(()) }
}

/// Checks that every object in the schema is closed and requires all of its properties.
pub(super) fn closed(schema: &Node<'_>, label: &str) -> Checked {
    let mut context = Vec::new();
    closed_inside(schema.value, &mut context).map_err(|problem| {
        schema.refuse("C11", &format!("Invalid schema for {label}: {problem}")).coded("invalid_function_parameters")
    })
}

fn closed_inside(schema: &Value, context: &mut Vec<String>) -> Result<(), String> {
    let Some(object) = schema.as_object() else { return Ok(()) };
    let place = || {
        let parts: Vec<String> = context.iter().map(|part| format!("'{part}'")).collect();
        format!("In context=({})", parts.join(", "))
    };
    let properties = object.get("properties").and_then(Value::as_object);
    if object.get("type").is_some_and(is_object_type) || properties.is_some() {
        if object.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Err(format!("{}, 'additionalProperties' is required to be supplied and to be false.", place()));
        }
        let required: Vec<&str> =
            object.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let missing = properties.into_iter().flat_map(Map::keys).find(|name| !required.contains(&name.as_str()));
        if let Some(name) = missing {
            return Err(format!(
                "{}, 'required' is required to be supplied and to be an array including every key in properties. \
                 Missing '{name}'.",
                place()
            ));
        }
    }
    for (step, inner) in inner_schemas(object) {
        context.push(step);
        closed_inside(inner, context)?;
        context.pop();
    }
    Ok(())
}

fn is_object_type(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

fn inner_schemas(object: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut inner = Vec::new();
    for (key, value) in object {
        match value {
            Value::Object(schemas) if MAPS_OF_SCHEMAS.contains(&key.as_str()) => {
                inner.extend(schemas.iter().map(|(name, schema)| (name.clone(), schema)));
            }
            Value::Array(schemas) if LISTS_OF_SCHEMAS.contains(&key.as_str()) => {
                inner.extend(schemas.iter().enumerate().map(|(at, schema)| (format!("{key}.{at}"), schema)));
            }
            _ if SCHEMAS.contains(&key.as_str()) => inner.push((key.clone(), value)),
            _ => {}
        }
    }
    inner
}

/// Checks that a schema is one of JSON Schema 2020-12, as far as its own keywords go.
pub(super) fn draft_2020(schema: &Value) -> Result<(), String> {
    let object = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(object) => object,
        other => return Err(format!("{other} is no schema")),
    };
    let wrong = |key: &str| Err(format!("'{key}' has the wrong form"));
    let is_type = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    for (key, value) in object {
        let strings = || value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
        let fits = match key.as_str() {
            "type" => is_type(value) || value.as_array().is_some_and(|kinds| kinds.iter().all(is_type)),
            "required" => strings(),
            "enum" => value.is_array(),
            "description" | "title" | "pattern" | "$ref" => value.is_string(),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
            key if MAPS_OF_SCHEMAS.contains(&key) => value.is_object(),
            key if LISTS_OF_SCHEMAS.contains(&key) => value.as_array().is_some_and(|list| !list.is_empty()),
            _ => true,
        };
        if !fits {
            return wrong(key);
        }
    }
    inner_schemas(object).into_iter().try_for_each(|(_, inner)| draft_2020(inner))
}

/// Checks a schema that answers must follow, as OpenAI names it: `name`, `schema`, and `strict` if closed.
pub(super) fn answer_format(format: &Node<'_>, extra: &[&str]) -> Checked {
    let fields: Vec<&str> = ["name", "schema", "strict", "description"].iter().chain(extra).copied().collect();
    format.only(&fields)?;
    let name = format.need("name")?;
    name.named("shape", 64)?;
    let schema = format.need("schema")?;
    schema.object()?;
    let strict = format.get("strict").map(|strict| strict.flag()).transpose()?.unwrap_or(false);
    if strict { closed(&schema, &format!("response_format '{}'", name.text()?)) } else { Ok(()) }
}

/// Checks the schema of an Anthropic tool (A9).
pub(super) fn tool_input(schema: &Node<'_>) -> Checked {
    let object = schema.object()?;
    if object.get("type").and_then(Value::as_str) != Some("object") {
        return Err(Refusal::new(Api::Messages, "A9", format!("{}.type: Input should be 'object'", schema.path)));
    }
    draft_2020(schema.value)
        .map_err(|_| schema.refuse("A9", "JSON schema is invalid. It must match JSON Schema draft 2020-12."))
}
