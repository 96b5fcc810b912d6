//! Expiry: when an entry may leave the page, and what stays of it.
//!
//! Only what has a [kind](crate::entry::EntryKind) grows old by rule: results, and what the host put in. A person's
//! words, a model's and instructions have none; words expire only if their own entry says so, instructions never.
//!
//! **Which settings hold.** Each setting is taken from the first of these that says it:
//!
//! 1. the [override](ExpiryOverride) of the request; if it disables expiry, nothing else is asked,
//! 2. the entry's own [`Expiry`],
//! 3. the first [rule](ExpiryRule) of the pass that names the tool,
//! 4. the first rule of the pass that names only the kind,
//! 5. the pass's own numbers.
//!
//! An entry that holds results of several actions takes 3 to 5 for each of them, and of these what goes
//! [first](Expiry::of_batch).

use crate::entry::{Entry, EntryKind, Text};
use crate::error::Error;
use crate::tool_use::matches;
use crate::wire::json::{place_of, without_position};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many characters stay where something is to be shortened and nobody says to how many.
pub const CHARS_USUAL: u32 = 500;

/// When an entry may leave the page, and what stays of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expiry {
    /// It expires when it is older than this many of the reader's acknowledged calls.
    pub after: u32,
    /// What stays.
    pub action: ExpiryAction,
}

/// What stays of an entry that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ExpiryAction {
    /// Everything: it never expires.
    Never,
    /// Nothing; of a tool result a marker, since a call must have a result.
    Remove,
    /// The first characters (Unicode scalar values), and a marker.
    FirstChars(u32),
    /// The first and the last characters, and a marker between them.
    HeadTail {
        /// How many stay of the beginning.
        head: u32,
        /// How many stay of the end.
        tail: u32,
    },
    /// A model's summary, and a marker. Until there is one everything stays; where none can be made, the first
    /// characters.
    Summary {
        /// About how many characters the summary has.
        #[serde(default = "chars_usual")]
        chars: u32,
    },
}

fn chars_usual() -> u32 {
    CHARS_USUAL
}

impl Expiry {
    /// An expiry that never comes.
    pub const NEVER: Expiry = Expiry { after: 0, action: ExpiryAction::Never };

    /// Returns what holds for one entry with several results: the earliest of those that expire at all; of equally
    /// early ones what leaves least. It is better to append every result as an entry of its own.
    pub fn of_batch(members: impl IntoIterator<Item = Expiry>) -> Option<Expiry> {
        let expiring = members.into_iter().filter(|it| it.action != ExpiryAction::Never);
        expiring
            .min_by_key(|it| (it.after, it.action.mode() != ExpiryMode::Remove, it.action.chars(), it.action.compact()))
    }
}

impl ExpiryAction {
    /// Returns whether something stays, nothing, or all.
    pub fn mode(self) -> ExpiryMode {
        match self {
            ExpiryAction::Never => ExpiryMode::Never,
            ExpiryAction::Remove => ExpiryMode::Remove,
            ExpiryAction::FirstChars(_) | ExpiryAction::HeadTail { .. } | ExpiryAction::Summary { .. } => {
                ExpiryMode::Compact
            }
        }
    }

    /// How many characters stay, where it shortens.
    fn chars(self) -> u32 {
        match self {
            ExpiryAction::Never | ExpiryAction::Remove => 0,
            ExpiryAction::FirstChars(chars) | ExpiryAction::Summary { chars } => chars,
            ExpiryAction::HeadTail { head, tail } => head.saturating_add(tail),
        }
    }

    /// How it shortens, where it does.
    fn compact(self) -> Option<CompactMode> {
        match self {
            ExpiryAction::Never | ExpiryAction::Remove => None,
            ExpiryAction::FirstChars(_) => Some(CompactMode::FirstChars),
            ExpiryAction::HeadTail { .. } => Some(CompactMode::HeadTail),
            ExpiryAction::Summary { .. } => Some(CompactMode::Summary),
        }
    }

    /// Returns what is wrong with it, and what to say instead.
    pub(crate) fn mistake(self) -> Option<(&'static str, &'static str)> {
        const INSTEAD: &str = "say \"remove\", or how many characters stay";
        match self {
            ExpiryAction::FirstChars(0) => Some(("first_chars is 0", INSTEAD)),
            ExpiryAction::HeadTail { head: 0, tail: 0 } => Some(("head_tail has head 0 and tail 0", INSTEAD)),
            ExpiryAction::Summary { chars: 0 } => Some(("summary has 0 characters", INSTEAD)),
            _ => None,
        }
    }
}

/// What expiry does, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryMode {
    /// Nothing: it never comes.
    Never,
    /// All goes.
    Remove,
    /// Something stays.
    Compact,
}

/// How something is shortened, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactMode {
    /// Its beginning stays.
    FirstChars,
    /// Its beginning and its end stay.
    HeadTail,
    /// A model's summary stands for it.
    Summary,
}

/// A setting that may be left to whoever comes next. In JSON, `null` and nothing at all both inherit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Setting<T> {
    /// It is as it would be otherwise.
    #[default]
    Inherit,
    /// It is this.
    Set(T),
}

impl<T> Setting<T> {
    /// Returns what it is set to, or what it inherits.
    pub fn or(self, inherited: T) -> T {
        match self {
            Setting::Inherit => inherited,
            Setting::Set(value) => value,
        }
    }

    /// Returns what it is set to, if it is.
    pub fn set(&self) -> Option<&T> {
        match self {
            Setting::Inherit => None,
            Setting::Set(value) => Some(value),
        }
    }

    /// Returns whether it is left to whoever comes next.
    pub fn is_inherit(&self) -> bool {
        matches!(self, Setting::Inherit)
    }
}

impl<T: Serialize> Serialize for Setting<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Setting::Inherit => serializer.serialize_none(),
            Setting::Set(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Setting<T>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Setting::Inherit, Setting::Set))
    }
}

/// What a pass does with the results of some tools, or with some kinds of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RuleData")]
pub struct ExpiryRule {
    /// The tool or action, as it is called; `*` stands for anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Text>,
    /// The kind of entry. With a tool, both must agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    /// How old it may get, in acknowledged calls.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub after: Setting<u32>,
    /// What stays.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub action: Setting<ExpiryAction>,
    /// The name of the prompt that summaries are made with, where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text>,
}

/// A rule as it stands in a file, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleData {
    tool: Option<Text>,
    kind: Option<EntryKind>,
    #[serde(default)]
    after: Setting<u32>,
    #[serde(default)]
    action: Setting<ExpiryAction>,
    prompt: Option<Text>,
}

impl TryFrom<RuleData> for ExpiryRule {
    type Error = String;

    fn try_from(RuleData { tool, kind, after, action, prompt }: RuleData) -> Result<ExpiryRule, String> {
        let rule = ExpiryRule { tool, kind, after, action, prompt };
        match rule.mistake() {
            Some((what, instead)) => Err(format!("a rule of `expire`{}: {what}; {instead}", rule.about())),
            None => Ok(rule),
        }
    }
}

impl ExpiryRule {
    /// Returns a rule about a tool.
    pub fn of_tool(tool: impl Into<Text>, expiry: Expiry) -> ExpiryRule {
        ExpiryRule { tool: Some(tool.into()), ..ExpiryRule::from(expiry) }
    }

    /// Returns a rule about a kind of entries.
    pub fn of_kind(kind: EntryKind, expiry: Expiry) -> ExpiryRule {
        ExpiryRule { kind: Some(kind), ..ExpiryRule::from(expiry) }
    }

    /// Returns what it is about, for errors.
    pub(crate) fn about(&self) -> String {
        let tool = self.tool.as_ref().map(|tool| format!(" for {tool:?}"));
        tool.or_else(|| self.kind.map(|kind| format!(" for {kind}s"))).unwrap_or_default()
    }

    /// Returns what is wrong with it, and what to say instead.
    pub(crate) fn mistake(&self) -> Option<(&'static str, &'static str)> {
        if self.tool.is_none() && self.kind.is_none() {
            return Some(("it names no tool and no kind", "say what it is about, or use the numbers of the pass"));
        }
        if self.tool.as_ref().is_some_and(|tool| tool.is_empty()) {
            return Some(("its tool has no name", "name the tool; \"*\" stands for all"));
        }
        match (self.after, self.action) {
            (Setting::Inherit, Setting::Inherit) if self.prompt.is_none() => {
                Some(("it sets nothing", "say `after`, `action` or both"))
            }
            (_, Setting::Set(action)) => action.mistake(),
            _ => None,
        }
    }

    fn over(&self, under: Expiry) -> Expiry {
        Expiry { after: self.after.or(under.after), action: self.action.or(under.action) }
    }
}

impl From<Expiry> for ExpiryRule {
    fn from(expiry: Expiry) -> ExpiryRule {
        let (after, action) = (Setting::Set(expiry.after), Setting::Set(expiry.action));
        ExpiryRule { tool: None, kind: None, after, action, prompt: None }
    }
}

/// What rules look at: what an entry holds, and whose results they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<'e> {
    /// The kind; words have none.
    pub kind: Option<EntryKind>,
    /// The tool of the call that it answers.
    pub tool: Option<&'e str>,
    /// The tools or actions that the entry itself names.
    pub tools: &'e [Text],
    /// What the entry itself says.
    pub own: Option<Expiry>,
    /// The name of the prompt that a summary of it is made with, if the entry itself says one.
    pub prompt: Option<&'e str>,
}

/// Under which name an entry's metadata say the prompt that a summary of it is made with.
pub const PROMPT_KEY: &str = "compactPromptId";

impl<'e> Held<'e> {
    /// Returns what an entry holds; the tool is the one of the call that it answers, if it answers one.
    pub fn of(entry: &'e Entry, tool: Option<&'e str>) -> Held<'e> {
        let prompt = entry.meta.get(PROMPT_KEY).and_then(|name| name.as_str());
        Held { kind: entry.kind_held(), tool, tools: &entry.tools, own: entry.expiry, prompt }
    }

    /// Returns the name of the prompt that a summary of it is made with: what the override says, else the entry itself,
    /// else the first rule that names its tool or kind and says one. `None` is the usual prompt.
    pub fn prompt(&self, rules: &[ExpiryRule], over: Option<&ExpiryOverride>) -> Option<Text> {
        let overridden = over.and_then(|over| over.prompt.set()).cloned();
        let own = || self.prompt.map(Text::from);
        let ruled = || {
            let fits = |rule: &&ExpiryRule| rule.kind.is_none() || rule.kind == self.kind;
            let names = || self.tool.into_iter().chain(self.tools.iter().map(|tool| &**tool));
            let of_tool =
                |rule: &&ExpiryRule| rule.tool.as_ref().is_some_and(|tool| names().any(|name| matches(tool, name)));
            let by_tool = rules.iter().filter(fits).filter(of_tool).find_map(|rule| rule.prompt.clone());
            let of_kind = rules.iter().filter(fits).filter(|rule| rule.tool.is_none());
            by_tool.or_else(|| of_kind.into_iter().find_map(|rule| rule.prompt.clone()))
        };
        overridden.or_else(own).or_else(ruled)
    }

    /// Returns what holds under a pass's numbers and rules, and the override of a request.
    pub fn expiry(&self, pass: Expiry, rules: &[ExpiryRule], over: Option<&ExpiryOverride>) -> Expiry {
        if over.is_some_and(|over| over.disable) {
            return Expiry::NEVER;
        }
        let by_rule = || self.kind.map(|kind| self.ruled(kind, pass, rules));
        match (self.own.or_else(by_rule), over) {
            (None, _) => Expiry::NEVER,
            (Some(under), Some(over)) => over.over(under),
            (Some(under), None) => under,
        }
    }

    /// What the rules say of each tool, and together.
    fn ruled(&self, kind: EntryKind, pass: Expiry, rules: &[ExpiryRule]) -> Expiry {
        let fits = |rule: &ExpiryRule| rule.kind.is_none_or(|it| it == kind);
        let by_kind = rules.iter().find(|rule| rule.tool.is_none() && fits(rule)).map_or(pass, |rule| rule.over(pass));
        let by_tool = |name: &str| {
            let named = |rule: &&ExpiryRule| rule.tool.as_ref().is_some_and(|tool| matches(tool, name)) && fits(rule);
            rules.iter().find(named).map_or(by_kind, |rule| rule.over(by_kind))
        };
        let mut tools = self.tool.into_iter().chain(self.tools.iter().map(|tool| &**tool)).peekable();
        match tools.peek() {
            None => by_kind,
            Some(_) => Expiry::of_batch(tools.map(by_tool)).unwrap_or(Expiry::NEVER),
        }
    }
}

/// What a request says of expiry, for this run: it goes before everything that was configured.
///
/// Stubs that were made before stay as they are, whatever it says, until they are expanded or reverted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExpiryOverride {
    /// Nothing expires.
    pub disable: bool,
    /// How old something may get, in acknowledged calls.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub after: Setting<u32>,
    /// Whether something stays. "Compact" over something that was not shortened keeps its first 500 characters, unless
    /// the next two settings say otherwise.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub mode: Setting<ExpiryMode>,
    /// How things are shortened, where they are.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub compact: Setting<CompactMode>,
    /// To how many characters things are shortened, where they are.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub chars: Setting<u32>,
    /// The name of the prompt that summaries are made with, where they are.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub prompt: Setting<Text>,
    /// Whether what is shortened can be asked for again. If not, a store erases its body once it was shortened; it has
    /// no effect on a log in memory.
    pub keep_originals: bool,
}

impl Default for ExpiryOverride {
    fn default() -> ExpiryOverride {
        let (after, mode, compact, chars) = (Setting::Inherit, Setting::Inherit, Setting::Inherit, Setting::Inherit);
        ExpiryOverride { disable: false, after, mode, compact, chars, prompt: Setting::Inherit, keep_originals: true }
    }
}

impl ExpiryOverride {
    /// Returns the override under which nothing expires.
    pub fn disabled() -> ExpiryOverride {
        ExpiryOverride { disable: true, ..ExpiryOverride::default() }
    }

    /// Reads an override from JSON.
    pub fn from_json(text: &str) -> Result<ExpiryOverride, Error> {
        let over: ExpiryOverride = serde_json::from_str(text).map_err(|error| {
            let what = format!("expiry override: {}", without_position(&error));
            Error::input(what).at(place_of(text, &error)).hinting("docs/formats.md describes it")
        })?;
        over.check()?;
        Ok(over)
    }

    /// Checks that its settings go together.
    pub fn check(&self) -> Result<(), Error> {
        let shortens = !self.compact.is_inherit() || !self.chars.is_inherit();
        match self.mode {
            Setting::Set(ExpiryMode::Never | ExpiryMode::Remove) if shortens => Err(Error::settings(
                "expiry override: compact or chars is set where nothing is shortened",
                "set mode to \"compact\", or leave them out",
            )),
            _ if self.chars == Setting::Set(0) => {
                Err(Error::settings("expiry override: chars is 0", "set mode to \"remove\", or say how many stay"))
            }
            _ => Ok(()),
        }
    }

    /// Returns what holds over what would hold otherwise.
    pub fn over(&self, under: Expiry) -> Expiry {
        let action = match self.mode.or(under.action.mode()) {
            _ if self.disable => return Expiry::NEVER,
            ExpiryMode::Never => ExpiryAction::Never,
            ExpiryMode::Remove => ExpiryAction::Remove,
            ExpiryMode::Compact => self.shortened(under.action),
        };
        Expiry { after: self.after.or(under.after), action }
    }

    fn shortened(&self, under: ExpiryAction) -> ExpiryAction {
        let usual = (ExpiryAction::FirstChars(CHARS_USUAL), CompactMode::FirstChars);
        let (was, was_mode) = under.compact().map_or(usual, |mode| (under, mode));
        let (mode, chars) = (self.compact.or(was_mode), self.chars.or(was.chars()));
        match mode {
            _ if mode == was_mode && self.chars.is_inherit() => was,
            CompactMode::FirstChars => ExpiryAction::FirstChars(chars),
            CompactMode::HeadTail => ExpiryAction::HeadTail { head: chars - chars / 3, tail: chars / 3 },
            CompactMode::Summary => ExpiryAction::Summary { chars },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_what_is_wrong_with_it() {
        let mistakes = [
            (r#"{"after":1}"#, "no tool and no kind"),
            (r#"{"tool":"","after":1}"#, "no name"),
            (r#"{"tool":"Bash"}"#, "sets nothing"),
            (r#"{"tool":"Bash","action":{"first_chars":0}}"#, "first_chars is 0"),
            (r#"{"kind":"injection","action":{"head_tail":{"head":0,"tail":0}}}"#, "head 0 and tail 0"),
            (r#"{"kind":"injections","after":1}"#, "unknown variant `injections`"),
            (r#"{"tool":"Bash","after":-1}"#, "invalid value: integer `-1`"),
            (r#"{"tool":"Bash","action":"compact"}"#, "unknown variant `compact`"),
            (r#"{"tool":"Bash","action":"first_chars"}"#, "expected newtype variant"),
            (r#"{"tool":"Bash","action":{"head_tail":{"head":1,"tial":2}}}"#, "unknown field `tial`"),
        ];
        for (text, what) in mistakes {
            let error = serde_json::from_str::<ExpiryRule>(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
        let rule: ExpiryRule = serde_json::from_str(r#"{"tool":"Bash*","after":null,"action":"remove"}"#).unwrap();
        assert_eq!(rule.over(Expiry { after: 7, action: ExpiryAction::Never }).after, 7);
        assert_eq!(serde_json::to_string(&rule).unwrap(), r#"{"tool":"Bash*","action":"remove"}"#);
    }
}
