//! What of a page is placeholders.

use crate::entry::Text;
use crate::fragment::Fragments;
use crate::log::Counted;
use crate::request::Request;
use crate::tool::Tools;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What of secrets and personal data a page shows as placeholders, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redacted {
    /// How many places of each kind, in entries that are shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<Text, u64>,
    /// How many entries they stand in.
    #[serde(default)]
    pub entries: u64,
    /// Of these, how many were looked through only for this page: they are older than the detectors.
    #[serde(default, skip_serializing_if = "is_none")]
    pub late: u64,
    /// How many prompt pieces and tools hold placeholders.
    #[serde(default, skip_serializing_if = "is_none")]
    pub prompts: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Redacted {
    pub(super) fn of(view: &View<'_>, request: &Request<'_>) -> Redacted {
        let mut redacted = Redacted::default();
        if request.policy.redact.is_nothing() {
            return redacted;
        }
        for item in view.items.iter().filter(|item| item.is_shown()) {
            redacted.add(item.entry);
            item.answers.iter().filter_map(|answer| answer.result).for_each(|entry| redacted.add(entry));
        }
        request.input.into_iter().for_each(|input| redacted.add(input));
        let prompts = request.fragments.map_or(0, Fragments::redacted) + request.tools.map_or(0, Tools::redacted);
        redacted.prompts = prompts as u64;
        redacted
    }

    fn add(&mut self, entry: &Counted) {
        if !entry.is_redacted() {
            return;
        }
        self.entries += 1;
        self.late += u64::from(entry.is_found_late());
        for (kind, places) in entry.redacted() {
            *self.kinds.entry(kind.name().into()).or_default() += *places as u64;
        }
    }

    /// Returns whether nothing is redacted.
    pub fn is_empty(&self) -> bool {
        *self == Redacted::default()
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, places)| format!("{places} {kind}")).collect();
        let kinds = if kinds.is_empty() { "names and fields".into() } else { kinds.join(", ") };
        write!(f, "{kinds} in {} entries", self.entries)?;
        if self.prompts > 0 {
            write!(f, ", and in {} prompts and tools", self.prompts)?;
        }
        match self.late {
            0 => Ok(()),
            late => write!(f, "; {late} were looked through only now"),
        }
    }
}
