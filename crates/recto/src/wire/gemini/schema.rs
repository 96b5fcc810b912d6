//! Schemas in the provider's older words, told in those of JSON Schema.

use serde_json::Value;

/// How deep a schema is looked into.
const DEPTH_MAX: usize = 64;
const MAPS: [&str; 3] = ["properties", "$defs", "defs"];
const LISTS: [&str; 2] = ["anyOf", "any_of"];

/// Returns a schema in the words of JSON Schema: types in small letters, and what may be nothing says so by its type.
pub(crate) fn json_schema(schema: &str) -> String {
    match serde_json::from_str::<Value>(schema) {
        Ok(mut value) if has_capitals(&value, 0) => {
            respell(&mut value, 0);
            value.to_string()
        }
        _ => schema.to_string(),
    }
}

fn has_capitals(schema: &Value, depth: usize) -> bool {
    let is_capital =
        |kind: &Value| kind.as_str().is_some_and(|kind| kind.starts_with(|c: char| c.is_ascii_uppercase()));
    depth < DEPTH_MAX && (is_capital(&schema["type"]) || inner(schema).any(|schema| has_capitals(schema, depth + 1)))
}

/// The schemas within a schema.
fn inner(schema: &Value) -> impl Iterator<Item = &Value> {
    let maps = MAPS.iter().filter_map(|name| schema[*name].as_object()).flat_map(|map| map.values());
    let lists = LISTS.iter().filter_map(|name| schema[*name].as_array()).flatten();
    maps.chain(lists).chain(schema.get("items"))
}

fn respell(schema: &mut Value, depth: usize) {
    let Some(fields) = schema.as_object_mut().filter(|_| depth < DEPTH_MAX) else { return };
    let kind = fields.get("type").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let is_nullable = fields.remove("nullable").is_some_and(|it| it == true);
    match kind {
        Some(kind) if is_nullable => drop(fields.insert("type".into(), vec![kind, "null".into()].into())),
        Some(kind) => drop(fields.insert("type".into(), kind.into())),
        None => {}
    }
    for name in MAPS {
        let map = fields.get_mut(name).and_then(Value::as_object_mut);
        map.into_iter().flat_map(|map| map.values_mut()).for_each(|inner| respell(inner, depth + 1));
    }
    for name in LISTS {
        let list = fields.get_mut(name).and_then(Value::as_array_mut);
        list.into_iter().flatten().for_each(|inner| respell(inner, depth + 1));
    }
    fields.get_mut("items").into_iter().for_each(|inner| respell(inner, depth + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_become_small_and_nothing_else_changes() {
        let old = r#"{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"STRING","nullable":true}},"TYPE":{"type":"INTEGER"}}}"#;
        let new = r#"{"properties":{"TYPE":{"type":"integer"},"a":{"items":{"type":["string","null"]},"type":"array"}},"type":"object"}"#;
        assert_eq!(json_schema(old), new);
        let plain = r#"{ "type": "object",  "properties": {} }"#;
        assert_eq!(json_schema(plain), plain);
        assert_eq!(json_schema("nonsense"), "nonsense");
    }
}
