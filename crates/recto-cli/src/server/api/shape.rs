//! Shapes: types of requests and answers that describe themselves, so that what is documented is what is taken and told.
//!
//! [`given!`] makes a type that is read from a request: what is no `Option` must be there, and unknown fields are
//! refused. [`told!`] makes one that is written: every field is always there, and an `Option` may be `null`. Types of the
//! core are described in `core.json`, which the tests hold against what the server really says.

use recto::digest::Digest;
use recto::entry::{Expiry, Media, Millis, Part, Text};
use recto::{Seq, Tokens};
use recto_engine::{ConversationId, ReaderName};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The schemas that others refer to, by name.
pub(super) type Shapes = BTreeMap<&'static str, Value>;

/// A type that can say what it looks like as JSON.
pub(super) trait Shape {
    /// Returns its schema, and adds those that it refers to.
    fn shape(shapes: &mut Shapes) -> Value;
}

/// Makes a type that is read from a request. A field that JSON spells otherwise is written `field as "itsName": Type`.
macro_rules! given {
    ($(#[doc = $doc:literal])+ struct $name:ident {
        $($(#[doc = $about:literal])+ $(#[serde($($attribute:tt)+)])? $field:ident $(as $spelled:literal)?: $type:ty,)*
    }) => {
        $(#[doc = $doc])+
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[doc = $about])+ $(#[serde($($attribute)+)])? $(#[serde(rename = $spelled)])? pub(super) $field: $type,)*
        }
        described!($name, [$($doc),+], required_where_not_optional, $($field $(as $spelled)?: $type = [$($about),+],)*);
    };
}

/// Makes a type that is written as an answer.
macro_rules! told {
    ($(#[doc = $doc:literal])+ struct $name:ident {
        $($(#[doc = $about:literal])+ $field:ident: $type:ty,)*
    }) => {
        $(#[doc = $doc])+
        #[derive(Debug, serde::Serialize)]
        pub(super) struct $name {
            $($(#[doc = $about])+ pub(super) $field: $type,)*
        }
        described!($name, [$($doc),+], always_required, $($field: $type = [$($about),+],)*);
    };
}

/// Returns the name of a field as JSON has it.
macro_rules! spelling {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $spelled:literal) => {
        $spelled
    };
}

macro_rules! described {
    ($name:ident, [$($doc:literal),+], $required:ident, $($field:ident $(as $spelled:literal)?: $type:ty = [$($about:literal),+],)*) => {
        impl $crate::server::api::shape::Shape for $name {
            fn shape(shapes: &mut $crate::server::api::shape::Shapes) -> serde_json::Value {
                let name = stringify!($name);
                if !shapes.contains_key(name) {
                    // A type that holds itself finds its name taken.
                    shapes.insert(name, serde_json::Value::Null);
                    let fields = vec![$((
                        spelling!($field $($spelled)?),
                        <$type as $crate::server::api::shape::Shape>::shape(shapes),
                        concat!($($about),+).trim(),
                    ),)*];
                    let about = concat!($($doc),+).trim();
                    shapes.insert(name, $crate::server::api::shape::$required(about, fields));
                }
                $crate::server::api::shape::reference(name)
            }
        }
    };
}

/// Makes a choice between words.
macro_rules! words {
    ($(#[doc = $doc:literal])+ enum $name:ident { $($(#[doc = $about:literal])+ $(#[$default:meta])? $word:ident = $spelled:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub(super) enum $name {
            $($(#[doc = $about])+ $(#[$default])? #[serde(rename = $spelled)] $word,)+
        }
        impl $crate::server::api::shape::Shape for $name {
            fn shape(_: &mut $crate::server::api::shape::Shapes) -> serde_json::Value {
                serde_json::json!({"type": "string", "enum": [$($spelled),+]})
            }
        }
    };
}

/// Types of the core, described in `core.json` under their own names.
macro_rules! core_shapes {
    ($($type:ty = $name:literal,)*) => {
        $(impl Shape for $type {
            fn shape(shapes: &mut Shapes) -> Value {
                core(shapes, $name)
            }
        })*
    };
}

/// Types that are one plain value.
macro_rules! plain_shapes {
    ($($type:ty = $schema:tt,)*) => {
        $(impl Shape for $type {
            fn shape(_: &mut Shapes) -> Value {
                json!($schema)
            }
        })*
    };
}

core_shapes! {
    recto::Entry = "Entry",
    Part = "Part",
    Media = "Media",
    Expiry = "Expiry",
    recto::Role = "Role",
    recto::entry::Status = "Status",
    recto::entry::Origin = "Origin",
    recto::entry::EntryKind = "EntryKind",
    recto::Lane = "Lane",
    recto::Span = "Span",
    recto::entry::Redaction = "Redaction",
    recto::wire::Wire = "Wire",
    recto::wire::Usage = "Usage",
    recto::Tokenizer = "Tokenizer",
    recto::fragment::Lifecycle = "Lifecycle",
    recto::fragment::Placement = "Placement",
    recto::fragment::Trust = "Trust",
    recto::fragment::Priority = "Priority",
    recto::expiry::ExpiryOverride = "ExpiryOverride",
    recto::mj::MessageExpirationOverride = "MessageExpirationOverride",
    recto::block::Facts = "Facts",
    recto::receipt::Receipt = "Receipt",
    recto::receipt::Ticket = "Ticket",
    recto::receipt::Overflow = "Overflow",
    recto::page::Mode = "Mode",
    recto::page::Mark = "Mark",
    recto::edit::Decision = "Decision",
    recto::session::Lost = "Lost",
    recto::note::Want = "Want",
    recto::Policy = "Policy",
    recto::Target = "Target",
    recto_engine::store::ForkPoint = "ForkPoint",
    recto_engine::engine::Turned = "Call",
    recto_engine::engine::Gone = "Gone",
    recto_engine::call::Totals = "Totals",
    recto_engine::summarize::Noted = "Noted",
}

plain_shapes! {
    String = {"type": "string"},
    Text = {"type": "string"},
    bool = {"type": "boolean"},
    u32 = {"type": "integer", "minimum": 0},
    u64 = {"type": "integer", "minimum": 0},
    usize = {"type": "integer", "minimum": 0},
    i64 = {"type": "integer"},
    f64 = {"type": "number"},
    Seq = {"type": "integer", "minimum": 0},
    Tokens = {"type": "integer", "minimum": 0},
    Millis = {"type": "integer"},
    Digest = {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    ConversationId = {"type": "string"},
    ReaderName = {"type": "string"},
    Value = {},
    Box<RawValue> = {},
    Map<String, Value> = {"type": "object"},
}

impl<T: Shape> Shape for Vec<T> {
    fn shape(shapes: &mut Shapes) -> Value {
        json!({"type": "array", "items": T::shape(shapes)})
    }
}

impl<T: Shape> Shape for Box<T> {
    fn shape(shapes: &mut Shapes) -> Value {
        T::shape(shapes)
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn shape(shapes: &mut Shapes) -> Value {
        json!({"type": "object", "additionalProperties": T::shape(shapes)})
    }
}

impl<T: Shape> Shape for [T; 2] {
    fn shape(shapes: &mut Shapes) -> Value {
        json!({"type": "array", "items": T::shape(shapes), "minItems": 2, "maxItems": 2})
    }
}

impl<T: Shape> Shape for Option<T> {
    fn shape(shapes: &mut Shapes) -> Value {
        match T::shape(shapes) {
            any if any == json!({}) => any,
            some => json!({"anyOf": [some, {"type": "null"}]}),
        }
    }
}

/// Returns the schema of a type that has every field.
pub(super) fn always_required(about: &str, fields: Vec<(&'static str, Value, &str)>) -> Value {
    object(about, &fields, |_| true)
}

/// Returns the schema of a type of which some fields may be left out.
pub(super) fn required_where_not_optional(about: &str, fields: Vec<(&'static str, Value, &str)>) -> Value {
    // What takes anything takes nothing as well.
    object(about, &fields, |schema| schema.get("anyOf").is_none() && *schema != json!({}))
}

fn object(about: &str, fields: &[(&'static str, Value, &str)], is_required: impl Fn(&Value) -> bool) -> Value {
    let required: Vec<&str> =
        fields.iter().filter(|(_, schema, _)| is_required(schema)).map(|(name, ..)| *name).collect();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, schema, about)| {
            let mut schema = schema.clone();
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".into(), (*about).into());
            }
            ((*name).to_string(), schema)
        })
        .collect();
    json!({
        "type": "object", "description": about, "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

/// Returns the schema of an object that nobody refers to, and adds those that it refers to. What may be left out of it is
/// left out, and never `null`.
pub(super) fn alone(shape: fn(&mut Shapes) -> Value, shapes: &mut Shapes) -> Value {
    let mut own = Shapes::new();
    let schema = shape(&mut own);
    let name = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
    let mut object = own.remove(name).unwrap_or_default();
    shapes.extend(own);
    for property in object["properties"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(mut some) = property.get("anyOf").and_then(|any| any.get(0)).cloned() {
            some["description"] = property["description"].clone();
            *property = some;
        }
    }
    object
}

/// Returns what refers to a schema by its name.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Adds the schema of a type of the core, and those that it refers to.
fn core(shapes: &mut Shapes, name: &'static str) -> Value {
    if !shapes.contains_key(name) {
        for (known, schema) in core_all() {
            shapes.entry(known).or_insert(schema);
        }
    }
    debug_assert!(shapes.contains_key(name), "{name} is described in core.json");
    reference(name)
}

/// All schemas of types of the core.
fn core_all() -> Vec<(&'static str, Value)> {
    let all: BTreeMap<&'static str, Value> =
        serde_json::from_str(include_str!("core.json")).expect("a file of ours that tests read");
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    given! {
        /// Something.
        struct Some {
            /// Needed.
            one: u64,
            /// Not needed.
            two: Option<String>,
        }
    }

    #[test]
    fn what_is_no_option_must_be_given_and_nothing_else_may() {
        let mut shapes = Shapes::new();
        assert_eq!(Some::shape(&mut shapes), reference("Some"));
        let shape = &shapes["Some"];
        assert_eq!((&shape["required"], &shape["additionalProperties"]), (&json!(["one"]), &json!(false)));
        assert_eq!(shape["properties"]["one"]["description"], "Needed.");
        let read: Some = serde_json::from_str(r#"{"one":1}"#).unwrap();
        assert_eq!((read.one, read.two), (1, None));
        for wrong in [r#"{}"#, r#"{"one":1,"three":2}"#, r#"{"one":-1}"#, r#"{"one":1,"two":2}"#] {
            assert!(serde_json::from_str::<Some>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_type_of_the_core_is_described() {
        let names: Vec<&str> = core_all().into_iter().map(|(name, _)| name).collect();
        let text = include_str!("core.json");
        for found in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(names.contains(&found), "{found} is referred to and not described");
        }
    }
}
