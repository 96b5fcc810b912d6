//! Tools as they are offered to a model: kept byte for byte in the form they came in, and told in any wire's.

use crate::digest::{Digest, Hasher};
use crate::entry::Text;
use crate::error::Error;
use crate::redact::Screen;
use crate::tokens::{Count, Tokens};
use crate::wire::gemini::schema::json_schema;
use crate::wire::json::{Fields, without_lone_surrogates};
use crate::wire::write::{field, raw, separated, string};
use crate::wire::{TOOLS_MAX, Wire, tool_name};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// What Gemini offers beside functions, by names without capitals and underscores.
const GEMINIS: [&str; 8] = [
    "googlesearch",
    "googlesearchretrieval",
    "codeexecution",
    "urlcontext",
    "googlemaps",
    "computeruse",
    "filesearch",
    "mcpservers",
];
/// A schema for tools that take nothing.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// The tools offered to a model, counted once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    list: Arc<[Tool]>,
    /// What they cost on every call.
    pub cost: Tokens,
    /// What identifies them.
    pub digest: Digest,
    /// What they are seen through, and how many of them hold placeholders.
    screen: Option<(Arc<Screen>, usize)>,
}

/// A tool definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// JSON text, exactly as it was given.
    pub json: Text,
    /// Whose form it is in; `None` if it can't be told.
    pub wire: Option<Wire>,
    /// What it says, if it is a function; others are the provider's own and can't be told to another.
    pub function: Option<Function>,
    /// Whether it is a JSON object at all.
    is_object: bool,
}

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: Text,
    /// What it is for.
    pub description: Option<Text>,
    /// The JSON schema of its arguments, as JSON text.
    pub parameters: Option<Text>,
    /// Whether arguments must fit the schema in every detail.
    pub strict: Option<bool>,
}

#[derive(Deserialize)]
struct Record<'t> {
    name: Option<Text>,
    description: Option<Text>,
    #[serde(borrow, alias = "input_schema", alias = "parametersJsonSchema", alias = "parameters_json_schema")]
    parameters: Option<&'t RawValue>,
    strict: Option<bool>,
}

impl Tool {
    /// Reads a definition; what is no function, or can't be read, is kept as it is.
    pub fn parse(json: impl Into<Text>) -> Tool {
        let mut json = json.into();
        if let (std::borrow::Cow::Owned(whole), _) = without_lone_surrogates(&json) {
            json = whole.into();
        }
        let fields: Fields<'_> = serde_json::from_str(&json).unwrap_or_default();
        let kind: Option<String> = fields.get("type").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let is_dated = kind
            .as_deref()
            .and_then(|it| it.rsplit_once('_'))
            .is_some_and(|(_, date)| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()));
        let (wire, record) = match kind.as_deref() {
            Some("function") => match fields.get("function") {
                Some(inner) => (Some(Wire::OpenaiChat), Some(inner.get())),
                None => (Some(Wire::OpenaiResponses), Some(&*json)),
            },
            _ if fields.contains_key("input_schema") => (Some(Wire::Anthropic), Some(&*json)),
            Some("custom") if fields.contains_key("custom") => (Some(Wire::OpenaiChat), None),
            _ if is_dated => (Some(Wire::Anthropic), None),
            Some(_) => (Some(Wire::OpenaiResponses), None),
            None if fields.contains_key("name") => (Some(Wire::Gemini), Some(&*json)),
            None if fields.keys().any(|name| GEMINIS.contains(&&*name.replace('_', "").to_lowercase())) => {
                (Some(Wire::Gemini), None)
            }
            None => (None, None),
        };
        let record: Option<Record<'_>> = record.and_then(|text| serde_json::from_str(text).ok());
        let function = record.and_then(|it| {
            let parameters = it.parameters.map(|raw| raw.get()).filter(|schema| *schema != "null");
            let parameters = parameters.map(|schema| match wire {
                Some(Wire::Gemini) => json_schema(schema).into(),
                _ => schema.into(),
            });
            Some(Function { name: it.name?, description: it.description, parameters, strict: it.strict })
        });
        let is_object = serde_json::from_str::<Map<String, Value>>(&json).is_ok();
        Tool { json, wire, function, is_object }
    }

    /// Returns whether a wire has a way to offer it.
    pub fn is_taken_by(&self, wire: Wire) -> bool {
        self.function.is_some() || self.wire.is_none_or(|own| own == wire)
    }

    /// Returns its name, or what else it is known by.
    pub fn name(&self) -> &str {
        self.function.as_ref().map_or(&self.json, |function| &function.name)
    }

    /// Returns it in a wire's form, as JSON text.
    pub fn told(&self, wire: Wire) -> Text {
        let mut out = Vec::new();
        self.write(&mut out, wire);
        String::from_utf8_lossy(&out).into()
    }

    /// Writes it in a wire's form: its own bytes where they are in that form and its name fits.
    pub(crate) fn write(&self, out: &mut Vec<u8>, wire: Wire) {
        let Some(function) = &self.function else { return raw(out, &self.json) };
        let name = tool_name(&function.name);
        // Two formats offer functions in the same form.
        let wire = if wire == Wire::Ollama { Wire::OpenaiChat } else { wire };
        if self.wire == Some(wire)
            && name == *function.name
            && (function.parameters.is_some() || wire != Wire::Anthropic)
        {
            return raw(out, &self.json);
        }
        let parameters = function.parameters.as_deref().unwrap_or(NO_PARAMETERS);
        match wire {
            Wire::OpenaiChat | Wire::Ollama => field(out, r#"{"type":"function","function":{"name":"#, &name),
            Wire::OpenaiResponses => field(out, r#"{"type":"function","name":"#, &name),
            Wire::Anthropic | Wire::Gemini => field(out, r#"{"name":"#, &name),
        }
        if let Some(description) = &function.description {
            field(out, r#","description":"#, description);
        }
        raw(
            out,
            match wire {
                Wire::Anthropic => r#","input_schema":"#,
                Wire::Gemini => r#","parametersJsonSchema":"#,
                Wire::OpenaiChat | Wire::OpenaiResponses | Wire::Ollama => r#","parameters":"#,
            },
        );
        raw(out, parameters);
        match (wire, function.strict) {
            // This wire takes no tool without it.
            (Wire::OpenaiResponses, strict) => {
                raw(out, if strict == Some(true) { r#","strict":true"# } else { r#","strict":false"# });
            }
            (Wire::OpenaiChat, Some(strict)) => raw(out, &format!(r#","strict":{strict}"#)),
            _ => {}
        }
        raw(out, if wire == Wire::OpenaiChat { "}}" } else { "}" });
    }
}

impl Tools {
    /// Counts the definitions: each is JSON text in any wire's form, kept byte for byte.
    pub fn counted(definitions: impl IntoIterator<Item = Text>, counter: &dyn Count) -> Tools {
        let list: Arc<[Tool]> = definitions.into_iter().map(Tool::parse).collect();
        let mut hasher = Hasher::new();
        list.iter().for_each(|tool| hasher.text(&tool.json));
        let cost = list.iter().map(|tool| counter.count(&tool.json)).sum();
        Tools { cost, digest: hasher.finish(), list, screen: None }
    }

    /// Returns them as they are seen through a screen; `None` where they are seen through it already.
    pub fn through(&self, screen: &Screen, counter: &dyn Count) -> Option<Tools> {
        if self.screen.as_ref().is_some_and(|(known, _)| **known == *screen) {
            return None;
        }
        let mut redacted = 0;
        let shown: Vec<Text> = self
            .list
            .iter()
            .map(|tool| match screen.json(&tool.json) {
                std::borrow::Cow::Borrowed(_) => tool.json.clone(),
                std::borrow::Cow::Owned(json) => {
                    redacted += 1;
                    json.into()
                }
            })
            .collect();
        let tools = if redacted == 0 { self.clone() } else { Tools::counted(shown, counter) };
        Some(Tools { screen: Some((Arc::new(screen.clone()), redacted)), ..tools })
    }

    pub(crate) fn redacted(&self) -> usize {
        self.screen.as_ref().map_or(0, |(_, redacted)| *redacted)
    }

    /// Returns the definitions.
    pub fn list(&self) -> &[Tool] {
        &self.list
    }

    /// Returns the name that the host gave a tool, by the name under which a provider knows it.
    pub fn original_name<'n>(&'n self, name: &'n str) -> &'n str {
        let mut functions = self.list.iter().filter_map(|tool| tool.function.as_ref());
        functions.find(|function| tool_name(&function.name) == name).map_or(name, |function| &function.name)
    }

    /// Says what keeps a wire from offering them.
    pub(crate) fn check(&self, wire: Wire) -> Result<(), Error> {
        let taken: Vec<&Tool> = self.taken(wire).collect();
        if let Some(tool) = taken.iter().find(|tool| !tool.is_object) {
            let start: String = tool.json.chars().take(40).collect();
            let what = format!("a tool definition is no JSON object: {start:?}");
            return Err(Error::settings(what, "give each tool as one JSON object, in any provider's form"));
        }
        let is_bounded = !matches!(wire, Wire::Anthropic | Wire::Ollama);
        if is_bounded && taken.len() > TOOLS_MAX {
            let what = format!("{} tools, and {wire} takes at most {TOOLS_MAX}", taken.len());
            return Err(Error::settings(what, "offer fewer tools at a call"));
        }
        let mut names = HashSet::new();
        for function in taken.iter().filter_map(|tool| tool.function.as_ref()) {
            if !names.insert(tool_name(&function.name)) {
                let what = format!("two tools are called {:?}", &*function.name);
                return Err(Error::settings(what, "give every tool a name of its own"));
            }
            let Some(parameters) = function.parameters.as_deref().filter(|_| wire == Wire::Anthropic) else { continue };
            let schema: Option<Fields<'_>> = serde_json::from_str(parameters).ok();
            let kind = schema.as_ref().and_then(|fields| fields.get("type")).map(|raw| raw.get());
            if kind != Some("\"object\"") {
                let what = format!("the parameters of tool {:?} are no object", &*function.name);
                return Err(Error::settings(what, "its schema needs \"type\": \"object\""));
            }
        }
        Ok(())
    }

    /// The tools that a wire can offer.
    pub(crate) fn taken(&self, wire: Wire) -> impl Iterator<Item = &Tool> {
        self.list.iter().filter(move |tool| tool.is_taken_by(wire))
    }

    /// Writes the array of the tools that a wire can offer; a mark is put on the last.
    pub(crate) fn write(&self, out: &mut Vec<u8>, wire: Wire, mark: Option<&str>) {
        if wire == Wire::Gemini {
            return self.write_grouped(out, wire);
        }
        let last = self.taken(wire).count().saturating_sub(1);
        out.push(b'[');
        separated(out, self.taken(wire).enumerate(), |out, (at, tool)| {
            tool.write(out, wire);
            if let Some(mark) = mark.filter(|_| at == last && out.ends_with(b"}")) {
                out.pop();
                raw(out, r#","cache_control":"#);
                raw(out, mark);
                out.push(b'}');
            }
        });
        out.push(b']');
    }
}

impl Tools {
    /// Writes functions in one group, and what else there is behind them.
    fn write_grouped(&self, out: &mut Vec<u8>, wire: Wire) {
        let (functions, others): (Vec<&Tool>, Vec<&Tool>) = self.taken(wire).partition(|tool| tool.function.is_some());
        out.push(b'[');
        if !functions.is_empty() {
            raw(out, r#"{"functionDeclarations":["#);
            separated(out, &functions, |out, tool| tool.write(out, wire));
            raw(out, "]}");
        }
        if !functions.is_empty() && !others.is_empty() {
            out.push(b',');
        }
        separated(out, others, |out, tool| tool.write(out, wire));
        out.push(b']');
    }
}

/// Writes the arguments of a call as a JSON object: as they were given where they are one, else wrapped.
pub(crate) fn arguments_object(out: &mut Vec<u8>, text: &str) {
    let text = text.trim();
    let is_object = text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok() && has_plain_numbers(text);
    match (is_object, text.is_empty()) {
        (true, _) => raw(out, &without_lone_surrogates(text).0),
        (false, true) => raw(out, "{}"),
        (false, false) => {
            raw(out, r#"{"arguments":"#);
            string(out, text);
            raw(out, "}");
        }
    }
}

/// Digits in a row that may be more than a number can have.
const LONG_NUMBER: usize = 300;

/// Whether all numbers of a JSON text are such that every reader takes them.
fn has_plain_numbers(text: &str) -> bool {
    let has_exponent = text.as_bytes().windows(2).any(|it| it[0].is_ascii_digit() && matches!(it[1], b'e' | b'E'));
    let has_long = || text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() >= LONG_NUMBER);
    // Reading it whole costs more, and is rarely needed.
    let is_plain = !has_exponent && (text.len() < LONG_NUMBER || !has_long());
    is_plain || serde_json::from_str::<Value>(text).is_ok()
}
