//! Which entries are selected, which passes run and with which numbers, as data.

mod parse;
mod presets;
mod step;

use crate::block::{self, Block, Forged};
use crate::digest::{Digest, Hasher};
use crate::entry::{Role, Section, Text};
use crate::error::Error;
use crate::fragment::Placement;
use crate::item::Item;
use crate::pays::Patience;
use crate::recall::Recall;
use crate::redact::Redact;
use crate::select::Select;
use crate::tokens::Tokens;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use step::{Decorate, Pass, Spare, Step, When};

/// The version of the policy format that is read and written.
pub const SCHEMA_VERSION: u32 = 1;
/// What a section other than the conversation may show, unless the policy says otherwise.
pub const SECTION_CAP: Tokens = Tokens(16_000);

/// What a page selects, and the passes that may shorten it, in the order they run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The version of the format.
    pub schema_version: u32,
    /// Its name on receipts.
    pub name: Text,
    /// What is selected.
    #[serde(default)]
    pub select: Selection,
    /// What stays.
    #[serde(default)]
    pub pins: PinRules,
    /// What becomes of a session when something changes that its provider was told once.
    #[serde(default, skip_serializing_if = "StaticChange::is_usual")]
    pub static_change: StaticChange,
    /// What becomes of a session whose provider reads in full what was decided shorter.
    #[serde(default, skip_serializing_if = "Stale::is_usual")]
    pub stale: Stale,
    /// Where dynamic instructions stand, instead of where they say themselves.
    #[serde(default, skip_serializing_if = "Prompts::is_usual")]
    pub prompts: Prompts,
    /// Whether what others wrote can look like a block.
    #[serde(default, skip_serializing_if = "Forged::is_usual")]
    pub forged: Forged,
    /// What may come back that has left the page; nothing does without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Recall>,
    /// What of secrets and personal data is shown as placeholders.
    #[serde(default, skip_serializing_if = "Redact::is_default")]
    pub redact: Redact,
    /// When what may be reduced is reduced.
    #[serde(default)]
    pub apply: Apply,
    /// By which numbers it waits for that.
    #[serde(default)]
    pub patience: Patience,
    /// Passes that propose edits, cheap ones first.
    #[serde(default)]
    pub reduce: Vec<Step>,
    /// The blocks that a page is laid out in; without any it is a conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// The host's own select passes; they run after the built-in ones, and are no part of the data.
    #[serde(skip)]
    own: OwnSelects,
}

#[derive(Clone, Debug, Default)]
struct OwnSelects(Vec<Arc<dyn Select>>);

impl PartialEq for OwnSelects {
    fn eq(&self, other: &OwnSelects) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

/// What a page selects from log and request alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// Which sections, in which order.
    pub sections: Sections,
    /// How many tokens of its newest a section other than `messages` may show.
    pub caps: BTreeMap<Text, Tokens>,
    /// What becomes of entries that were broken off.
    pub status: StatusRule,
    /// Which traces are shown.
    pub trace: TraceRule,
    /// How other agents' words are marked.
    pub authors: AuthorRule,
}

/// Which sections a page shows, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sections {
    /// `summary`, `buffer`, `messages`, as far as they exist.
    #[default]
    Ranked,
    /// Every section: the ranked ones, then all others in the order they came.
    All,
    /// These; none at all means `messages`.
    Only(Vec<Section>),
}

/// What becomes of entries that ended in an error, or were cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusRule {
    /// They are left out.
    #[default]
    Exclude,
    /// The assistant's are shown, with a note of what happened.
    Note,
}

/// Which traces are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceRule {
    /// All; what grows old is for the passes to shorten.
    #[default]
    All,
    /// Only those of the current run.
    CurrentRun,
    /// None.
    None,
}

/// How the words of other agents are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorRule {
    /// Not at all; a wire that has a field for names uses it.
    #[default]
    Plain,
    /// Their text begins with `[name]`.
    Named,
}

/// What becomes of a session whose provider holds a static fragment that has changed since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StaticChange {
    /// The fragment is sent once more, as it is now.
    #[default]
    Resend,
    /// The session is not used any more: everything is sent.
    Reseed,
}

impl StaticChange {
    fn is_usual(&self) -> bool {
        *self == StaticChange::Resend
    }
}

/// What becomes of a session whose provider reads in full what was decided shorter: it can't be made to forget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stale {
    /// It goes on, as long as what the provider holds fits.
    Keep,
    /// It is not used any more: everything is sent. Edits of what the provider holds wait until that pays.
    #[default]
    Reseed,
}

impl Stale {
    fn is_usual(&self) -> bool {
        *self == Stale::Reseed
    }
}

/// Where dynamic instructions stand, instead of where they say themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prompts {
    /// On a page that says everything; none is where they say themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<Placement>,
    /// On a page that says what is new.
    pub resumed: Resumed,
}

/// Where dynamic instructions stand on a page that says what is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumed {
    /// Where they say themselves, as the target takes them.
    #[default]
    AsPlaced,
    /// Before everything else, in the user's place, and marked.
    UserFirst,
}

impl Prompts {
    fn is_usual(&self) -> bool {
        *self == Prompts::default()
    }
}

/// When what may be reduced is reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Apply {
    /// At once.
    Immediately,
    /// When the rent that was paid for it is as much as it costs to break the provider's cache; or when that is free,
    /// or nothing else fits.
    #[default]
    WhenItPays,
    /// Never: only what would not fit goes below the floor.
    Never,
}

/// Which messages stay beside instructions, pinned entries and the last user words: as long as anything fits with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PinRules {
    /// A user's message stays if a line of it holds one of these words, in any case: `always`, `never`.
    pub words: Vec<Text>,
    /// A user's message stays if it holds one of these: names of files with a project's rules.
    pub names: Vec<Text>,
    /// Longer messages don't stay for a word or a name.
    pub longest: Tokens,
}

impl Default for PinRules {
    fn default() -> PinRules {
        PinRules { words: Vec::new(), names: Vec::new(), longest: Tokens(2_000) }
    }
}

impl PinRules {
    /// Returns the word or name for which an item stays.
    pub fn keeps(&self, item: &Item<'_>) -> Option<&Text> {
        let is_asked = !(self.words.is_empty() && self.names.is_empty());
        if !is_asked || item.role() != Role::User || !item.opens_exchange() || item.cost() > self.longest {
            return None;
        }
        self.names.iter().chain(&self.words).find(|word| item.entry.holds(word))
    }
}

impl Policy {
    /// Returns a policy that selects the usual and reduces nothing.
    pub fn named(name: impl Into<Text>) -> Policy {
        Policy {
            schema_version: SCHEMA_VERSION,
            name: name.into(),
            select: Selection::default(),
            pins: PinRules::default(),
            static_change: StaticChange::Resend,
            stale: Stale::Reseed,
            prompts: Prompts::default(),
            forged: Forged::default(),
            recall: None,
            redact: Redact::nothing(),
            apply: Apply::default(),
            patience: Patience::default(),
            reduce: Vec::new(),
            blocks: Vec::new(),
            own: OwnSelects::default(),
        }
    }

    /// Adds a pass that runs after all others: a built-in one, or the host's own.
    #[must_use]
    pub fn then(mut self, pass: impl Into<Step>) -> Policy {
        self.reduce.push(pass.into());
        self
    }

    /// Adds a block behind all others: a built-in one, or the host's own.
    #[must_use]
    pub fn block(mut self, block: impl Into<Block>) -> Policy {
        self.blocks.push(block.into());
        self
    }

    /// Reduces at once what may be reduced, whatever that costs in the provider's cache.
    #[must_use]
    pub fn immediately(mut self) -> Policy {
        self.apply = Apply::Immediately;
        self
    }

    /// Brings back what has left the page and bears on what is said now.
    #[must_use]
    pub fn recalling(mut self, recall: Recall) -> Policy {
        self.recall = Some(recall);
        self
    }

    /// Shows secrets and personal data as placeholders.
    #[must_use]
    pub fn redacting(mut self, redact: Redact) -> Policy {
        self.redact = redact;
        self
    }

    /// Adds a select pass of the host's own.
    #[must_use]
    pub fn selecting(mut self, pass: impl Select + 'static) -> Policy {
        self.own.0.push(Arc::new(pass));
        self
    }

    /// Lets a function rework the passes that are there: drop, wrap or reorder them.
    #[must_use]
    pub fn decorated(mut self, decorate: impl FnOnce(Vec<Step>) -> Vec<Step>) -> Policy {
        self.reduce = decorate(self.reduce);
        self
    }

    pub(crate) fn own_selects(&self) -> &[Arc<dyn Select>] {
        &self.own.0
    }

    /// Checks versions, sections and the numbers of every pass.
    pub fn check(&self) -> Result<(), Error> {
        if self.schema_version != SCHEMA_VERSION {
            let what = format!("policy {:?} has schema_version {}", &*self.name, self.schema_version);
            return Err(Error::settings(what, format!("this version of Recto reads schema_version {SCHEMA_VERSION}")));
        }
        if let Sections::Only(sections) = &self.select.sections {
            let twice = sections.iter().enumerate().find(|(at, section)| sections[..*at].contains(section));
            if let Some((_, section)) = twice {
                let what = format!("policy {:?} selects section {section} twice", &*self.name);
                return Err(Error::settings(what, "name every section once"));
            }
        }
        block::check(&self.blocks)?;
        self.redact.check()?;
        self.reduce.iter().try_for_each(Step::check)
    }

    /// Returns what identifies the policy; passes of the host's own count by their names.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.text(&serde_json::to_string(self).expect("a policy has no map with keys that aren't text"));
        self.own.0.iter().for_each(|pass| hasher.text(pass.name()));
        hasher.finish()
    }
}
