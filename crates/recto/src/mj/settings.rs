//! When results of actions expire, under the names of MemberJunction's tables and parameters.

use crate::entry::Text;
use crate::error::Error;
use crate::expiry::{self, Expiry, ExpiryAction, ExpiryMode, ExpiryOverride, ExpiryRule, Setting};
use crate::policy::Policy;
use crate::reduce::Expire;
use crate::wire::json::{Fields, Source, place_of, without_position};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const DESCRIBED: &str = "docs/formats.md describes these settings";

/// What becomes of a result that has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExpirationMode {
    /// It never expires.
    #[default]
    None,
    /// It goes.
    Remove,
    /// It is shortened.
    Compact,
}

/// How a result is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CompactMode {
    /// Its beginning stays.
    #[serde(rename = "First N Chars")]
    FirstNChars,
    /// A model's summary stands for it.
    #[serde(rename = "AI Summary")]
    AiSummary,
}

/// When the results of one action expire. What is null or left out is not set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields, default)]
pub struct AgentAction {
    /// How many turns a result lives; not set, it lives for ever.
    pub result_expiration_turns: Option<u32>,
    /// What becomes of it then.
    pub result_expiration_mode: ExpirationMode,
    /// How it is shortened.
    pub compact_mode: Option<CompactMode>,
    /// How many characters stay.
    pub compact_length: Option<u32>,
    /// The prompt that summaries are made with.
    #[serde(rename = "CompactPromptID")]
    pub compact_prompt_id: Option<Text>,
    /// The prompt where the one above is not set.
    #[serde(rename = "DefaultCompactPromptID")]
    pub default_compact_prompt_id: Option<Text>,
}

impl AgentAction {
    /// Returns the expiry it asks for; settings that don't go together are refused.
    pub fn expiry(&self) -> Result<Expiry, Error> {
        let shortens = self.compact_mode.is_some() || self.compact_length.is_some() || self.compact_prompt_id.is_some();
        let refuse = |what: &str, instead: &str| Err(Error::settings(what, instead));
        let action = match (self.result_expiration_mode, self.compact_mode, self.compact_length) {
            (ExpirationMode::None | ExpirationMode::Remove, _, _) if shortens => {
                return refuse(
                    "CompactMode, CompactLength or CompactPromptID is set where nothing is shortened",
                    "set ResultExpirationMode to \"Compact\", or leave them out",
                );
            }
            (ExpirationMode::None, _, _) => ExpiryAction::Never,
            (ExpirationMode::Remove, _, _) => ExpiryAction::Remove,
            (ExpirationMode::Compact, None, _) => {
                return refuse("ResultExpirationMode is \"Compact\" without a CompactMode", "say \"First N Chars\"");
            }
            (_, Some(CompactMode::AiSummary), chars) => {
                ExpiryAction::Summary { chars: chars.filter(|chars| *chars > 0).unwrap_or(expiry::CHARS_USUAL) }
            }
            (_, Some(CompactMode::FirstNChars), None | Some(0)) => {
                return refuse(
                    "CompactMode is \"First N Chars\" without a CompactLength",
                    "say how many stay, above 0",
                );
            }
            (_, Some(CompactMode::FirstNChars), Some(chars)) => ExpiryAction::FirstChars(chars),
        };
        Ok(self.result_expiration_turns.map_or(Expiry::NEVER, |after| Expiry { after, action }))
    }

    /// Returns the name of the prompt that summaries are made with; `None` is the usual one.
    pub fn prompt(&self) -> Option<&Text> {
        self.compact_prompt_id.as_ref().or(self.default_compact_prompt_id.as_ref())
    }
}

/// When the results of actions expire, by the action's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentActions {
    /// What is set for each action.
    pub list: BTreeMap<Text, AgentAction>,
}

impl AgentActions {
    /// Reads the settings of some actions from a JSON object, each under its action's name.
    pub fn from_json(text: &str) -> Result<AgentActions, Error> {
        let fields: Fields<'_> = serde_json::from_str(text).map_err(|error| unread(text, "actions", &error))?;
        let source = Source { text };
        let mut list = BTreeMap::new();
        for (name, raw) in fields {
            let what = format!("action {name:?}");
            let action: AgentAction = source.read(raw, &what).map_err(|error| error.hinting(DESCRIBED))?;
            action.expiry().map_err(|error| {
                source.refuse(raw, format!("{what}: {error}")).hinting(error.hint().unwrap_or_default())
            })?;
            list.insert(name.into(), action);
        }
        Ok(AgentActions { list })
    }

    /// Returns the rules they make.
    pub fn rules(&self) -> Result<Vec<ExpiryRule>, Error> {
        let rule = |(name, action): (&Text, &AgentAction)| {
            let prompt = action.prompt().cloned();
            Ok(ExpiryRule { prompt, ..ExpiryRule::of_tool(name.clone(), action.expiry()?) })
        };
        self.list.iter().map(rule).collect()
    }

    /// Returns the policy [`mj_doc`](Policy::mj_doc) with these rules.
    pub fn policy(&self) -> Result<Policy, Error> {
        let rules = self.rules()?;
        Ok(Policy::mj_doc().decorated(|_| vec![Expire { rules, ..Policy::mj_expire() }.into()]))
    }
}

/// What holds for a run instead of the settings of its actions. What is null or left out holds as it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MessageExpirationOverride {
    /// How many turns every result lives.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub expiration_turns: Setting<u32>,
    /// What becomes of it then.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub expiration_mode: Setting<ExpirationMode>,
    /// How it is shortened.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub compact_mode: Setting<CompactMode>,
    /// How many characters stay.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub compact_length: Setting<u32>,
    /// The prompt that summaries are made with.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub compact_prompt_id: Setting<Text>,
    /// Nothing expires.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub disable_expiration: Setting<bool>,
    /// Whether what is shortened can be asked for again; it can, unless this says no. It takes effect in a store.
    #[serde(skip_serializing_if = "Setting::is_inherit")]
    pub preserve_original_content: Setting<bool>,
}

impl MessageExpirationOverride {
    /// Reads an override from JSON.
    pub fn from_json(text: &str) -> Result<MessageExpirationOverride, Error> {
        let over: MessageExpirationOverride =
            serde_json::from_str(text).map_err(|error| unread(text, "messageExpirationOverride", &error))?;
        over.to_override()?;
        Ok(over)
    }

    /// Returns it for a [request](crate::Request::expiry); settings that don't go together are refused.
    pub fn to_override(&self) -> Result<ExpiryOverride, Error> {
        let mode = match self.expiration_mode {
            Setting::Inherit => Setting::Inherit,
            Setting::Set(ExpirationMode::None) => Setting::Set(ExpiryMode::Never),
            Setting::Set(ExpirationMode::Remove) => Setting::Set(ExpiryMode::Remove),
            Setting::Set(ExpirationMode::Compact) => Setting::Set(ExpiryMode::Compact),
        };
        let compact = match self.compact_mode {
            Setting::Inherit => Setting::Inherit,
            Setting::Set(CompactMode::FirstNChars) => Setting::Set(expiry::CompactMode::FirstChars),
            Setting::Set(CompactMode::AiSummary) => Setting::Set(expiry::CompactMode::Summary),
        };
        let over = ExpiryOverride {
            disable: self.disable_expiration.or(false),
            after: self.expiration_turns,
            mode,
            compact,
            chars: self.compact_length,
            prompt: self.compact_prompt_id.clone(),
            keep_originals: self.preserve_original_content.or(true),
        };
        over.check()?;
        Ok(over)
    }
}

fn unread(text: &str, what: &str, error: &serde_json::Error) -> Error {
    Error::input(format!("{what}: {}", without_position(error))).at(place_of(text, error)).hinting(DESCRIBED)
}
