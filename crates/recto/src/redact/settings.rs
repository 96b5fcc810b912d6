use super::{Pattern, Redactor};
use crate::entry::{Entry, Text};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of secrets and personal data a page shows as placeholders, as data of a policy. By itself: nothing.
///
/// ```
/// use recto::Policy;
///
/// let policy = Policy::from_toml(r#"
///     schema_version = 1
///     name = "guarded"
///
///     [redact]
///     find = ["secrets", "email"]
///     spare = ["jwt"]
///     patterns = { badge = "ACME-[0-9]{6}" }
/// "#)?;
/// assert!(policy.redact.redactor()?.redact("badge ACME-004711").contains("[secret:badge#"));
/// # Ok::<(), recto::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Redact {
    /// What is redacted: names of kinds, or the groups `secrets`, `personal` and `all`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub find: Vec<Text>,
    /// What of that is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spare: Vec<Text>,
    /// Where it is redacted.
    #[serde(skip_serializing_if = "Within::is_usual")]
    pub within: Within,
    /// Patterns of the user's own, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub patterns: BTreeMap<Text, Text>,
}

/// Where something is redacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// In all that a model is told: messages, calls and results, prompts, tools.
    #[default]
    Everything,
    /// In what tools, actions and other runs have brought: what people and hosts say themselves, they mean.
    Results,
}

impl Within {
    fn is_usual(&self) -> bool {
        *self == Within::Everything
    }

    /// Returns whether an entry lies within.
    pub fn holds(self, entry: &Entry) -> bool {
        self == Within::Everything || entry.kind_held().is_some()
    }
}

impl Redact {
    /// Returns the settings that redact nothing.
    pub fn nothing() -> Redact {
        Redact::default()
    }

    /// Returns the settings that redact secrets of every kind in results.
    pub fn secrets_in_results() -> Redact {
        Redact { find: vec!["secrets".into()], within: Within::Results, ..Redact::default() }
    }

    /// Returns the settings that redact secrets and personal data of every kind, everywhere.
    pub fn everything() -> Redact {
        Redact { find: vec!["all".into()], ..Redact::default() }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Redact::default()
    }

    /// Returns whether nothing is redacted.
    pub fn is_nothing(&self) -> bool {
        self.find.is_empty() && self.patterns.is_empty()
    }

    /// Checks that there is everything that it names, and that its patterns can be read.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_known = |name: &Text| matches!(&**name, "secrets" | "personal" | "all");
        let is_plain = self.patterns.is_empty() && self.find.iter().chain(&self.spare).all(is_known);
        // Most name a group, and every page asks.
        if is_plain { Ok(()) } else { self.redactor().map(drop) }
    }

    /// Returns the detectors that it names; a name or a pattern that can't be read is an error.
    pub fn redactor(&self) -> Result<Redactor, Error> {
        let mut redactor = self.find.iter().try_fold(Redactor::none(), |redactor, name| redactor.with(name))?;
        for (name, source) in &self.patterns {
            redactor = redactor.finding(name, Pattern::new(source)?)?;
        }
        self.spare.iter().try_fold(redactor, |redactor, name| redactor.without(name))
    }
}
