//! Anything else, from a template: the syntax of Jinja, without its filters, and with bounds.

use super::{Given, Render};
use crate::entry::Text;
use crate::error::{Error, Place};
use crate::forging::Woven;
use minijinja::value::Value as Told;
use minijinja::{Environment, ErrorKind, Output, State, UndefinedBehavior};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io;

/// The longest template.
const TEMPLATE_BYTES_MAX: usize = 16_000;
/// The most that a template may make.
const OUTPUT_BYTES_MAX: usize = 256_000;
/// The longest text that is handed to a template.
const VALUE_CHARS_MAX: usize = 64_000;
/// How much work a template may do.
const FUEL: u64 = 100_000;
/// How deep templates and expressions may be nested.
const RECURSION_MAX: usize = 32;
/// Around what was put in. No text can hold these: they are not characters.
const OPENS: char = '\u{fdd0}';
const CLOSES: char = '\u{fdd1}';

/// A block that a policy file writes itself. Everything that is put in with `{{ }}` counts as said by others; what is not
/// there is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// What the block is called.
    pub name: Text,
    /// The template: what stands under the tag.
    pub text: Text,
    /// What the model is told of it beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Text>,
}

impl Render for Template {
    fn name(&self) -> &str {
        &self.name
    }

    fn explained(&self) -> Option<&str> {
        self.about.as_deref()
    }

    fn check(&self) -> Result<(), Error> {
        let hint = "templates are written as for Jinja: {{ value }}, {% if %}, {% for %}; docs/blocks.md says more";
        let refused = |what: String| Err(Error::settings(format!("block {}: text: {what}", self.name), hint));
        if self.name.is_empty() || !self.name.chars().all(|it| it.is_alphanumeric() || matches!(it, '_' | '-')) {
            return Err(Error::settings(format!("block {:?}: name", &*self.name), "letters, digits, `_` and `-`"));
        }
        if self.text.len() > TEMPLATE_BYTES_MAX {
            return refused(format!("{} bytes, at most {TEMPLATE_BYTES_MAX} are taken", self.text.len()));
        }
        if let Some(at) = sets(&self.text) {
            let Place { line, column } = Place::at(&self.text, at);
            return refused(format!("line {line}, column {column} of the template: nothing can be set"));
        }
        match environment().template_from_str(&self.text) {
            Ok(_) => Ok(()),
            Err(error) => refused(self.told(&error)),
        }
    }

    fn render(&self, given: &Given<'_>) -> Result<Option<Woven>, Error> {
        let failed = |what: String| {
            let hint = "give the template what it names, among the facts of the call";
            Error::settings(format!("block {}: {what}", self.name), hint)
        };
        let environment = environment();
        let template = environment.template_from_str(&self.text).map_err(|error| failed(self.told(&error)))?;
        let mut out = Bounded { bytes: Vec::new() };
        template.render_captured_to(context(given), &mut out).map_err(|error| failed(self.told(&error)))?;
        let woven = unwoven(&String::from_utf8_lossy(&out.bytes));
        Ok(Some(woven).filter(|woven| !woven.as_str().trim().is_empty()))
    }
}

impl Template {
    /// An error with where in the template it happened.
    fn told(&self, error: &minijinja::Error) -> String {
        let what = error.detail().map_or_else(|| error.kind().to_string(), String::from);
        let place = match (error.range(), error.line()) {
            (Some(range), _) => Place::at(&self.text, range.start),
            (None, line) => Place { line: line.unwrap_or(1), column: 1 },
        };
        format!("line {}, column {} of the template: {what}", place.line, place.column)
    }
}

/// Where a template sets a value: that could double a text again and again, and needs no fuel to speak of.
fn sets(text: &str) -> Option<usize> {
    let mut tags = text.match_indices("{%");
    let is_set = |at: usize| {
        let inside = text[at + 2..].trim_start_matches(['-', '+']).trim_start();
        inside.strip_prefix("set").is_some_and(|rest| rest.starts_with(|it: char| it.is_whitespace() || it == '%'))
    };
    tags.find(|(at, _)| is_set(*at)).map(|(at, _)| at)
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_debug(true);
    environment.set_formatter(put_in);
    environment.add_filter("join", join);
    environment.add_filter("default", default);
    environment.add_test("defined", |value: &Told| !value.is_undefined());
    environment
}

/// Marks what is put in as the words of others.
fn put_in(out: &mut Output<'_>, _: &State<'_, '_>, value: &Told) -> Result<(), minijinja::Error> {
    if value.is_undefined() {
        return Err(ErrorKind::UndefinedError.into());
    }
    let text = if value.is_none() { String::new() } else { value.to_string() };
    let plain: String = text.chars().filter(|letter| ![OPENS, CLOSES].contains(letter)).collect();
    out.write_str(&format!("{OPENS}{plain}{CLOSES}")).map_err(|_| too_long())
}

fn join(values: Vec<Told>, between: &str) -> String {
    values.iter().map(Told::to_string).collect::<Vec<_>>().join(between)
}

fn default(value: Told, other: Told) -> Told {
    if value.is_undefined() || value.is_none() { other } else { value }
}

fn too_long() -> minijinja::Error {
    minijinja::Error::new(ErrorKind::WriteFailure, format!("it makes more than {OUTPUT_BYTES_MAX} bytes"))
}

/// What a template is told: the host's own values, and what else it knows.
fn context(given: &Given<'_>) -> Value {
    let facts = given.facts;
    let time = given.now().and_then(|now| facts.zone.second(now));
    let known = json!({
        "time": time,
        "zone": facts.zone.to_string(),
        "profile": facts.profile,
        "mood": facts.mood,
        "constraints": facts.constraints,
        "todos": facts.todos,
        "responding_to": facts.responding_to,
        "delegations": facts.delegations,
        "nudges": facts.nudges,
    });
    let own = facts.values.clone().into_iter();
    let all: Map<String, Value> = known.as_object().cloned().into_iter().flatten().chain(own).collect();
    bounded(Value::Object(all))
}

/// Cuts all texts at what a template may be handed.
fn bounded(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > VALUE_CHARS_MAX => {
            Value::String(text.chars().take(VALUE_CHARS_MAX).collect())
        }
        Value::Array(items) => items.into_iter().map(bounded).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, bounded(value))).collect(),
        value => value,
    }
}

/// Tells our words from those that were put in.
fn unwoven(text: &str) -> Woven {
    let mut woven = Woven::default();
    for piece in text.split_inclusive(CLOSES) {
        let (ours, theirs) = piece.split_once(OPENS).unwrap_or((piece, ""));
        woven.ours(&ours.replace(CLOSES, ""));
        woven.theirs(theirs.trim_end_matches(CLOSES));
    }
    woven
}

/// Takes as much as a template may make.
struct Bounded {
    bytes: Vec<u8>,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(io::Error::other("too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
