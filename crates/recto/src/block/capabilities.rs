//! The tools, told.

use super::lists::moved_in;
use super::{Given, Render};
use crate::entry::Text;
use crate::error::Error;
use crate::forging::Woven;
use crate::note::one_line;
use crate::tool::Function;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// How deep parameters of parameters are told.
const DEPTH_MAX: usize = 4;
/// How many parameters of one thing are told.
const PARAMETERS_MAX: usize = 200;
/// How many values a parameter may be one of are told.
const CHOICES_MAX: usize = 50;

/// The tools that the model may call, from the ones that are offered at this call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capabilities {
    /// What stands above them.
    pub heading: Text,
    /// What stands there if none is offered.
    pub empty: Text,
    /// How parameters are told.
    pub detail: Detail,
}

/// How parameters are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// With parameters of parameters, what values they may have, and what they are if they are left out.
    #[default]
    Nested,
    /// `- query (string, required): what it is`
    Plain,
    /// ``- `query` (string) (required): what it is``, below an empty line.
    Quoted,
}

impl Default for Capabilities {
    fn default() -> Capabilities {
        Capabilities { heading: "Tools that you may call:".into(), empty: "(None.)".into(), detail: Detail::Nested }
    }
}

impl Render for Capabilities {
    fn name(&self) -> &str {
        "capabilities"
    }

    fn explained(&self) -> Option<&str> {
        Some("the tools that you may call. It describes them; calls are made the usual way.")
    }

    fn render(&self, given: &Given<'_>) -> Result<Option<Woven>, Error> {
        let tools = given.tools.map(|tools| tools.list()).unwrap_or_default();
        let mut woven = Woven::default();
        woven.ours(&format!("{}\n\n", self.heading));
        let mut functions = tools.iter().filter_map(|tool| tool.function.as_ref()).peekable();
        if functions.peek().is_none() {
            woven.ours(&self.empty);
        }
        while let Some(function) = functions.next() {
            self.function(&mut woven, function);
            // As it was in the code: a line behind every tool, the last one included.
            if functions.peek().is_some() || self.detail == Detail::Quoted {
                woven.ours("\n");
            }
            woven.ours(if functions.peek().is_some() { "\n" } else { "" });
        }
        Ok(Some(woven))
    }
}

impl Capabilities {
    fn function(&self, woven: &mut Woven, function: &Function) {
        woven.ours("### ");
        woven.theirs(&one_line(&function.name));
        woven.ours("\n");
        moved_in(woven, function.description.as_deref().unwrap_or("No description"));
        let schema: Schema<'_> = read(function.parameters.as_deref());
        if !schema.properties.0.is_empty() {
            woven.ours(if self.detail == Detail::Quoted { "\n\nParameters:" } else { "\nParameters:" });
            self.parameters(woven, &schema, 0);
        }
    }

    fn parameters(&self, woven: &mut Woven, schema: &Schema<'_>, depth: usize) {
        let left_out = schema.properties.0.len().saturating_sub(PARAMETERS_MAX);
        for (name, raw) in schema.properties.0.iter().take(PARAMETERS_MAX) {
            let own: Schema<'_> = read(Some(raw.get()));
            let (kind, is_required) = (own.kind(), schema.required.iter().any(|it| it == name));
            let needed = if is_required { "required" } else { "optional" };
            let indent = "  ".repeat(depth);
            woven.ours(&format!("\n{indent}- "));
            let (quote, between) = if self.detail == Detail::Quoted { ("`", ") (") } else { ("", ", ") };
            woven.ours(quote);
            woven.theirs(&one_line(name));
            woven.ours(&format!("{quote} ("));
            woven.theirs(&one_line(&kind));
            woven.ours(&format!("{between}{needed})"));
            let about = own.description.as_deref().map(one_line).unwrap_or_default();
            if !about.is_empty() || self.detail == Detail::Quoted {
                woven.ours(": ");
                woven.theirs(&about);
            }
            if self.detail == Detail::Nested {
                own.values(woven);
                let inner = own.inner();
                if let Some(inner) = inner.filter(|it| !it.properties.0.is_empty() && depth + 1 < DEPTH_MAX) {
                    self.parameters(woven, &inner, depth + 1);
                }
            }
        }
        if left_out > 0 {
            woven.ours(&format!("\n{}- … and {left_out} more", "  ".repeat(depth)));
        }
    }
}

/// As much of a JSON schema as is told, in the order it is written in.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Schema<'t> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'t RawValue>,
    description: Option<String>,
    #[serde(borrow)]
    properties: Ordered<'t>,
    required: Vec<String>,
    #[serde(borrow, rename = "enum")]
    choices: Vec<&'t RawValue>,
    #[serde(borrow)]
    default: Option<&'t RawValue>,
    #[serde(borrow)]
    items: Option<&'t RawValue>,
}

impl<'t> Schema<'t> {
    fn kind(&self) -> String {
        let Some(raw) = self.kind else { return "any".into() };
        let one: Option<String> = serde_json::from_str(raw.get()).ok();
        let several = || serde_json::from_str::<Vec<String>>(raw.get()).unwrap_or_default().join(" or ");
        let kind = one.unwrap_or_else(several);
        match kind.as_str() {
            "" => "any".into(),
            "array" if self.items.is_some() => {
                format!("array of {}", read::<Schema<'_>>(self.items.map(RawValue::get)).kind())
            }
            _ => kind,
        }
    }

    /// What it may be, and what it is if it is left out.
    fn values(&self, woven: &mut Woven) {
        for (at, choice) in self.choices.iter().take(CHOICES_MAX).enumerate() {
            woven.ours(if at == 0 { " One of: " } else { ", " });
            woven.theirs(&one_line(choice.get()));
        }
        if !self.choices.is_empty() {
            woven.ours(if self.choices.len() > CHOICES_MAX { ", …" } else { "." });
        }
        if let Some(default) = self.default {
            woven.ours(" Default: ");
            woven.theirs(&one_line(default.get()));
            woven.ours(".");
        }
    }

    /// What its own parameters stand in: itself, or what it lists.
    fn inner(&self) -> Option<Schema<'t>> {
        let items = self.items.map(|items| read(Some(items.get())));
        let own = Schema {
            properties: Ordered(self.properties.0.clone()),
            required: self.required.clone(),
            ..Schema::default()
        };
        if own.properties.0.is_empty() { items } else { Some(own) }
    }
}

/// Reads what can be read; what can't is as if it were not there.
fn read<'t, T: Default + Deserialize<'t>>(json: Option<&'t str>) -> T {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// The fields of an object in the order they are written in.
#[derive(Default)]
pub(super) struct Ordered<'t>(pub(super) Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Ordered<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ordered<'t>, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        Ok(Ordered(deserializer.deserialize_map(Fields)?))
    }
}
