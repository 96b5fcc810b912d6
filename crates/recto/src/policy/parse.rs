//! Policies in files: TOML or JSON, every mistake with its position and what was probably meant.

mod outline; // where keys and values stand

use super::{Policy, SCHEMA_VERSION, Sections};
use crate::block::Block;
use crate::entry::Section;
use crate::error::{Error, Place};
use crate::nearest::probably;
use crate::wire::json::{offset_in, place_of, without_position};
use outline::Outline;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;

/// What a step may say beside its pass.
const DECORATORS: [&str; 4] = ["when", "sparing", "keep_last", "until_fits"];
/// What a block may say beside its kind.
const BESIDE: [&str; 5] = ["tag", "role", "stability", "priority", "chars"];
/// How the message begins about a step that doesn't name one pass.
const STEP: &str = "a step of `reduce`";

impl Policy {
    /// Reads a policy from JSON.
    pub fn from_json(text: &str) -> Result<Policy, Error> {
        let policy: Policy = serde_json::from_str(text).map_err(|error| refused_json(text, &error))?;
        policy.check().map_err(|error| unworkable(&policy, &error, Some(&Outline::of_json(text)), text))?;
        Ok(policy)
    }

    /// Reads a policy from TOML.
    pub fn from_toml(text: &str) -> Result<Policy, Error> {
        let policy: Policy = toml::from_str(text).map_err(|error| refused_toml(text, &error))?;
        policy.check().map_err(|error| unworkable(&policy, &error, Outline::of_toml(text).as_ref(), text))?;
        Ok(policy)
    }

    /// Writes the policy as TOML; passes of the host's own are named, but can't be read again.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a policy has only tables, lists, texts and numbers")
    }
}

fn refused_json(text: &str, error: &serde_json::Error) -> Error {
    let message = without_position(error);
    if !error.is_data() {
        return refused(&message, place_of(text, error));
    }
    let outline = Outline::of_json(text);
    // How far it was read; a line break ends a line that has no column yet.
    let read = offset_in(text, error.line(), error.column()) + usize::from(error.column() > 0);
    let is_container = message.starts_with("invalid type: map") || message.starts_with("invalid type: sequence");
    let found = if is_container { outline.container(read, text) } else { outline.last_read(read) };
    refused_in(&outline, text, &message, found.unwrap_or(read))
}

fn refused_toml(text: &str, error: &toml::de::Error) -> Error {
    let at = error.span().map_or(0, |span| span.start);
    let message = error.message().trim().replace('\n', ", ");
    match Outline::of_toml(text) {
        Some(outline) => refused_in(&outline, text, &message, at),
        None => refused(&message, Place::at(text, at)),
    }
}

/// An error about a document that is well-formed. One of another version may look like anything, so that comes first.
fn refused_in(outline: &Outline, text: &str, message: &str, at: usize) -> Error {
    let version = outline.get(&["schema_version"]);
    let other =
        version.filter(|it| outline.text(*it, text).parse().is_ok_and(|it: u64| it != u64::from(SCHEMA_VERSION)));
    if let Some(version) = other {
        let what = format!("schema_version {}", outline.text(version, text));
        return refused(&what, Place::at(text, outline.place(version)));
    }
    let step = if message.starts_with(STEP) { odd_step(outline) } else { None };
    refused(message, Place::at(text, step.map_or(at, |step| outline.place(step))))
}

/// The step that names no pass, or the second pass of one that names several.
fn odd_step(outline: &Outline) -> Option<usize> {
    outline.children(outline.get(&["reduce"])?).find_map(|step| {
        let is_pass = |key: &usize| outline.name(*key).is_some_and(|name| !DECORATORS.contains(&name));
        let mut passes = outline.children(step).filter(is_pass);
        if passes.next().is_none() { Some(step) } else { passes.next() }
    })
}

/// An error with what to do about it: what was probably meant, if a name was wrong.
fn refused(message: &str, place: Place) -> Error {
    let error = Error::input(format!("policy: {}", message.trim())).at(place);
    if let Some(near) = suggestion(message) {
        return error.hinting(format!("did you mean `{near}`?"));
    }
    match message.split(' ').next() {
        Some("schema_version") => error.hinting(format!("this version of Recto reads schema_version {SCHEMA_VERSION}")),
        Some("duplicate") => error.hinting("say it once"),
        _ if message.starts_with(STEP) => {
            error.hinting("every step names one pass; docs/formats.md lists them, with their keys")
        }
        _ => error.hinting("docs/formats.md describes the format; `recto policy show safe` prints an example"),
    }
}

/// An error about values that can't work, at the first of them that the error speaks of.
fn unworkable(policy: &Policy, error: &Error, outline: Option<&Outline>, text: &str) -> Error {
    let what = error.to_string();
    let found = outline.and_then(|outline| {
        let is_it = |step: &super::Step| step.check().is_err_and(|error| error.to_string() == what);
        let is_block = |block: &Block| block.check().is_err_and(|error| error.to_string() == what);
        let node = match policy.reduce.iter().position(is_it) {
            _ if policy.schema_version != SCHEMA_VERSION => outline.get(&["schema_version"]),
            Some(step) => {
                let step = outline.children(outline.get(&["reduce"])?).nth(step)?;
                let pass = outline.children(step).find(|key| !DECORATORS.contains(&outline.name(*key).unwrap_or("")));
                pass.map(|pass| outline.mentioned(pass, &what).unwrap_or(pass))
            }
            None if policy.blocks.iter().any(is_block) => {
                let at = policy.blocks.iter().position(is_block)?;
                let block = outline.children(outline.get(&["blocks"])?).nth(at)?;
                let settings = outline.children(block).find(|key| !BESIDE.contains(&outline.name(*key).unwrap_or("")));
                let inside = settings.and_then(|settings| outline.mentioned(settings, &what));
                inside.or_else(|| outline.mentioned(block, &what)).or(settings)
            }
            None if policy.redact.redactor().is_err_and(|error| error.to_string() == what) => {
                let redact = outline.get(&["redact"])?;
                Some(outline.mentioned(redact, &what).unwrap_or(redact))
            }
            None => {
                let sections = outline.get(&["select", "sections"])?;
                let mut seen = BTreeSet::new();
                let twice = outline.children(sections).find(|it| !seen.insert(outline.text(*it, text)));
                Some(twice.unwrap_or(sections))
            }
        };
        node.map(|node| Place::at(text, outline.place(node)))
    });
    let told = Error::input(what).hinting(error.hint().unwrap_or_default());
    match found {
        Some(place) => told.at(place),
        None => told,
    }
}

/// Serde names a wrong word and the right ones in backticks; the nearest right one was probably meant.
fn suggestion(message: &str) -> Option<&str> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    probably(wrong, quoted)
}

impl Serialize for Sections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Sections::Ranked => serializer.serialize_str("ranked"),
            Sections::All => serializer.serialize_str("all"),
            Sections::Only(sections) => sections.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Sections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sections, D::Error> {
        deserializer.deserialize_any(SectionsVisitor)
    }
}

struct SectionsVisitor;

impl<'de> Visitor<'de> for SectionsVisitor {
    type Value = Sections;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"ranked\", \"all\", or a list of sections")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Sections, E> {
        match text {
            "ranked" => Ok(Sections::Ranked),
            "all" => Ok(Sections::All),
            _ => Err(E::unknown_variant(text, &["ranked", "all"])),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sections, A::Error> {
        let mut sections = Vec::new();
        while let Some(section) = list.next_element::<Section>()? {
            sections.push(section);
        }
        Ok(Sections::Only(sections))
    }
}
