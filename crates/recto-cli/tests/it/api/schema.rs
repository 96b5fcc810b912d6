//! Whether a value is what a schema says: as much of JSON Schema as the description of the API uses.

use serde_json::Value;

/// Returns what is wrong with a value, and where.
pub(super) fn wrong(schema: &Value, value: &Value, document: &Value, at: &str) -> Option<String> {
    let known = [
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "description",
        "enum",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "oneOf",
        "pattern",
        "prefixItems",
        "properties",
        "required",
        "type",
    ];
    let unknown = schema.as_object().and_then(|it| it.keys().find(|key| !known.contains(&key.as_str())));
    assert!(unknown.is_none(), "{unknown:?} at {at} is not understood");
    if let Some(name) = schema["$ref"].as_str() {
        let referred = document.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("no {name}"));
        return wrong(referred, value, document, at);
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(all) = schema[choice].as_array() {
            let each: Vec<_> = all.iter().filter_map(|it| wrong(it, value, document, at)).collect();
            let fitting = all.len() - each.len();
            let is_right = if choice == "anyOf" { fitting > 0 } else { fitting == 1 };
            return (!is_right).then(|| format!("{at}: {fitting} of {choice} fit {value}: {each:?}"));
        }
    }
    let told = |what: &str| Some(format!("{at}: {what}: {value} for {schema}"));
    if schema.get("const").is_some_and(|it| it != value) {
        return told("another value");
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        return told("none of the words");
    }
    let is_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    if schema["type"].as_str().is_some_and(|name| !is_type(name)) {
        return told("another type");
    }
    if schema["pattern"].is_string() {
        let is_digest = value.as_str().is_some_and(|it| it.len() == 32 && it.bytes().all(|b| b.is_ascii_hexdigit()));
        return if is_digest { None } else { told("no digest") };
    }
    of_object(schema, value, document, at).or_else(|| of_array(schema, value, document, at))
}

fn of_object(schema: &Value, value: &Value, document: &Value, at: &str) -> Option<String> {
    let fields = value.as_object()?;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if !fields.contains_key(name) {
            return Some(format!("{at}: no {name:?} in {value}"));
        }
    }
    fields.iter().find_map(|(name, value)| {
        let at = format!("{at}.{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => wrong(schema, value, document, &at),
            (None, Value::Bool(false)) => Some(format!("{at}: an unknown field")),
            (None, schema @ Value::Object(_)) => wrong(schema, value, document, &at),
            _ => None,
        }
    })
}

fn of_array(schema: &Value, value: &Value, document: &Value, at: &str) -> Option<String> {
    let items = value.as_array()?;
    let first = schema["prefixItems"].as_array();
    items.iter().enumerate().find_map(|(index, item)| {
        let schema = first.and_then(|first| first.get(index)).or(schema.get("items"))?;
        wrong(schema, item, document, &format!("{at}[{index}]"))
    })
}

#[test]
fn what_is_not_as_described_is_found() {
    let document = serde_json::json!({"components": {"schemas": {"A": {
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false,
    }}}});
    let schema = serde_json::json!({"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}]});
    let is_right = |text: &str| wrong(&schema, &serde_json::from_str(text).unwrap(), &document, "").is_none();
    assert!(is_right(r#"{"a":1}"#) && is_right("null"));
    for text in ["1", "{}", r#"{"a":"1"}"#, r#"{"a":1,"b":2}"#, "[]"] {
        assert!(!is_right(text), "{text}");
    }
}
