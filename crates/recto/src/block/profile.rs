//! Who the human is.

use super::{Given, Render};
use crate::entry::{Millis, Text};
use crate::error::Error;
use crate::forging::Woven;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who the human is, as far as [`Facts::profile`](super::Facts::profile) says: the first of several keys that holds
/// something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Where to look, in this order; a point leads into an object.
    pub keys: Vec<Text>,
    /// What stands above it.
    pub heading: Text,
    /// What stands there if nothing is known at all.
    pub empty: Text,
    /// What stands there if something is known, but nothing under these keys; without it, `empty` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unset: Option<Text>,
    /// A key that says since when the human is known; told where nothing else is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Text>,
    /// Whether a model may be asked what the conversation says of the human, where no key holds anything: a
    /// [want](crate::note::Want) of every plan until the host puts the answer under the first key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub learn: bool,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            keys: ["profile", "about"].map(Into::into).into(),
            heading: "About this person:".into(),
            empty: "(Nothing is known yet.)".into(),
            unset: None,
            since: None,
            learn: false,
        }
    }
}

impl Profile {
    /// Returns what is known of the human.
    pub fn found(&self, profile: &Map<String, Value>) -> Option<Text> {
        self.keys.iter().find_map(|key| text_of(at(profile, key)?))
    }
}

impl Render for Profile {
    fn name(&self) -> &str {
        "profile"
    }

    fn explained(&self) -> Option<&str> {
        Some("what is known of the person you talk with.")
    }

    fn check(&self) -> Result<(), Error> {
        if self.keys.is_empty() {
            let what = "block profile: keys names no key";
            return Err(Error::settings(what, "say where the profile stands among the facts"));
        }
        Ok(())
    }

    fn render(&self, given: &Given<'_>) -> Result<Option<Woven>, Error> {
        let profile = &given.facts.profile;
        let mut woven = Woven::default();
        woven.ours(&format!("{}\n\n", self.heading));
        if let Some(found) = self.found(profile) {
            woven.theirs(&found);
            return Ok(Some(woven));
        }
        let since = self.since.as_deref().and_then(|key| at(profile, key)).and_then(|since| match since {
            Value::String(text) => super::instant(text).ok(),
            since => since.as_i64().map(Millis),
        });
        if let Some(day) = since.and_then(|since| given.facts.zone.day(since)) {
            woven.ours(&format!("Member since: {day}\n"));
        }
        let unset = self.unset.as_ref().filter(|_| !profile.is_empty());
        woven.ours(unset.unwrap_or(&self.empty));
        Ok(Some(woven))
    }
}

/// What stands under a key, where a point leads into an object.
fn at<'v>(profile: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    if let Some(found) = profile.get(key) {
        return Some(found);
    }
    let (first, rest) = key.split_once('.')?;
    at(profile.get(first)?.as_object()?, rest)
}

/// A value as text; `None` if it says nothing.
fn text_of(value: &Value) -> Option<Text> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.trim().to_string(),
        Value::Object(fields) => {
            let lines = fields.iter().filter_map(|(key, value)| Some(format!("{key}: {}", text_of(value)?)));
            lines.collect::<Vec<_>>().join("\n")
        }
        Value::Array(items) => items.iter().filter_map(text_of).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    };
    (!text.is_empty()).then(|| text.into())
}
