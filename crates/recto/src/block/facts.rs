//! What a host knows at a call, for blocks to be made from.

use super::zone::{Zone, instant};
use crate::entry::{Millis, Text};
use crate::error::Error;
use crate::redact::Screen;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// What a host knows at a call, beside log, tools and input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Facts {
    /// What time it is: when the words were said that are to be answered. Without it, what the log says of them counts.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "time", alias = "client_timestamp_utc")]
    pub now: Option<Millis>,
    /// Where the human is: every time is told in this zone. JSON has a name, an offset like `+05:30`, or minutes as
    /// [`Zone::js_minutes`] takes them.
    #[serde(skip_serializing_if = "is_usual", alias = "client_timezone_offset")]
    pub zone: Zone,
    /// What is known of the human.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub profile: Map<String, Value>,
    /// How the human seems to feel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mood: Option<Text>,
    /// What the answer must keep to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Text>,
    /// What is to be done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<Todo>,
    /// To whom the answer goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responding_to: Option<Text>,
    /// Agents that work on something for this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Text>,
    /// What somebody wants the model to mind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nudges: Vec<Text>,
    /// Anything else, for templates.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

impl Facts {
    /// Returns them as they are seen through a screen; `None` where that is no other.
    pub(crate) fn through(&self, screen: &Screen) -> Result<Option<Facts>, Error> {
        let text = serde_json::to_string(self).expect("facts are plain data");
        let Cow::Owned(seen) = screen.json(&text) else { return Ok(None) };
        serde_json::from_str(&seen).map(Some).map_err(|error| {
            let what = format!("facts can't be read with placeholders in them: {error}");
            Error::settings(what, "spare what `redact` takes for a secret there")
        })
    }
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    /// What.
    pub text: Text,
    /// How far it is.
    #[serde(default)]
    pub state: TodoState,
}

/// How far something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// Nobody has begun.
    #[default]
    Open,
    /// Somebody works on it.
    Started,
    /// It is done.
    Done,
}

fn is_usual(zone: &Zone) -> bool {
    *zone == Zone::default()
}

/// Reads a time: milliseconds since 1970, or as text.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    deserializer.deserialize_any(Time)
}

struct Time;

impl de::Visitor<'_> for Time {
    type Value = Option<Millis>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time like \"2025-12-10T08:00:00Z\", or milliseconds")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<Millis>, E> {
        Ok(None)
    }

    fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Option<Millis>, E> {
        Ok(Some(Millis(millis)))
    }

    fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Option<Millis>, E> {
        i64::try_from(millis).map(|it| Some(Millis(it))).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<Millis>, E> {
        instant(text).map(Some).map_err(E::custom)
    }
}
