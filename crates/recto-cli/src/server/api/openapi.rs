//! The whole API, described: OpenAPI 3.1, made from the table of routes and the types they name.

use super::asked::{Asked, json};
use super::problem::Problem;
use super::shape::{Shapes, alone, reference};
use super::table::{Answer, Asks, Given, Repeats, Route, TABLE};
use axum::response::Response;
use recto_engine::Store;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// Names in paths that are numbers.
const NUMBERS: [&str; 3] = ["seq", "turn", "ordinal"];

/// Answers with the description.
pub(super) fn document<S: Store>(_: &Asked<S>) -> Result<Response, Problem> {
    static DESCRIBED: OnceLock<Value> = OnceLock::new();
    json(DESCRIBED.get_or_init(described))
}

/// Returns the description.
fn described() -> Value {
    let (mut shapes, mut paths) = (Shapes::new(), Map::new());
    for route in &TABLE {
        let operation = operation(route, &mut shapes);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[method(route.method)] = operation;
    }
    let mut schemas: Map<String, Value> = shapes.into_iter().map(|(name, schema)| (name.to_string(), schema)).collect();
    schemas.insert("Problem".into(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Recto", "version": env!("CARGO_PKG_VERSION"), "license": {"name": "MIT OR Apache-2.0"},
            "description": "Append what was said, compile the page, acknowledge the call; and everything that explains it.",
        },
        "security": [{}, {"bearer": []}, {"header": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-recto-key"},
            },
        },
    })
}

fn method(asks: Asks) -> &'static str {
    match asks {
        Asks::Get => "get",
        Asks::Post => "post",
        Asks::Patch => "patch",
        Asks::Delete => "delete",
    }
}

fn operation(route: &Route, shapes: &mut Shapes) -> Value {
    let mut parameters: Vec<Value> = names(route.path).map(in_path).collect();
    parameters.extend(in_query(route.query, shapes));
    if route.repeats == Repeats::ByKey {
        let about = "Names this request: the same once more is answered with the first result.";
        parameters.push(json!({
            "name": "idempotency-key", "in": "header", "required": false, "description": about, "schema": {"type": "string"},
        }));
    }
    let (status, content) = match route.answer {
        Answer::Json(status, shape) => (status, json!({"application/json": {"schema": shape(shapes)}})),
        Answer::Bytes => (200, json!({"application/json": {"schema": {"type": "object"}}})),
        Answer::Events => (200, json!({"text/event-stream": {"schema": {"type": "string"}}})),
    };
    let refused = json!({"application/problem+json": {"schema": reference("Problem")}});
    let mut operation = json!({
        "operationId": id(route), "summary": route.about, "parameters": parameters,
        "responses": {
            status.to_string(): {"description": route.about, "content": content},
            "4XX": {"description": "Why it can't be done.", "content": refused.clone()},
            "503": {"description": "The store can't now: try again.", "content": refused},
        },
    });
    if let Given::Shape(shape) = route.body {
        let schema = shape(shapes);
        operation["requestBody"] = json!({"required": false, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

/// What an operation is called: its verb, in the spelling of most languages.
fn id(route: &Route) -> String {
    let verb = format!("{:?}", route.verb);
    let (first, rest) = verb.split_at(1);
    first.to_lowercase() + rest
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

fn in_path(name: &str) -> Value {
    let kind = if NUMBERS.contains(&name) { "integer" } else { "string" };
    json!({"name": name, "in": "path", "required": true, "schema": {"type": kind}})
}

fn in_query(query: Given, shapes: &mut Shapes) -> Vec<Value> {
    let Given::Shape(shape) = query else { return Vec::new() };
    // The fields stand beside each other here, so nobody refers to the object that they make.
    let object = alone(shape, shapes);
    let is_required = |name: &str| object["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name));
    let properties = object["properties"].as_object().into_iter().flatten();
    let described = properties.map(|(name, schema)| {
        let mut schema = schema.clone();
        let about = schema.as_object_mut().and_then(|it| it.remove("description"));
        json!({"name": name, "in": "query", "required": is_required(name), "description": about, "schema": schema})
    });
    described.collect()
}

/// The shape of every refusal.
fn problem() -> Value {
    json!({
        "type": "object",
        "description": "Why something could not be done (RFC 9457).",
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string", "description": "The code of the command, as `recto help CODE` explains it."},
            "kind": {"type": "string", "description": "One word for programs."},
            "detail": {"type": "string"},
            "hints": {"type": "array", "items": {"type": "string"}},
            "head": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "The newest entry, at a conflict."},
            "forks": {"type": "array", "items": {"type": "string"}},
            "overflow": reference("Overflow"),
            "refusal": {"type": "string"},
        },
        "required": ["type", "title", "status", "code", "kind", "detail", "hints"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_description_lists_exactly_the_routes_of_the_table() {
        let described = described();
        let paths = described["paths"].as_object().unwrap();
        let listed: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, all)| all.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())))
            .collect();
        let routed: BTreeSet<(String, String)> =
            TABLE.iter().map(|route| (route.path.to_string(), method(route.method).to_string())).collect();
        assert_eq!(listed, routed);
        assert_eq!(routed.len(), TABLE.len(), "a route is listed twice");
        let ids: BTreeSet<String> = TABLE.iter().map(id).collect();
        assert_eq!(ids.len(), TABLE.len(), "a verb is listed twice");
    }

    #[test]
    fn whatever_is_referred_to_is_described() {
        let described = described();
        let schemas = described["components"]["schemas"].as_object().unwrap();
        let text = described.to_string();
        for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(schemas.get(name).is_some_and(Value::is_object), "{name}");
        }
    }
}
