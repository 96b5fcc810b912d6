//! The model, its window and the policy, as a request names them; what it doesn't name is configured.

use super::asked::{Asked, checked_name};
use super::problem::Problem;
use super::shape::{Shape, Shapes};
use crate::config::{Config, Origin, Set};
use crate::settings::{self, MODEL, POLICY};
use recto::target::{Instructions, Memory};
use recto::wire::Wire;
use recto::{Policy, Target, Tokens};
use recto_engine::Store;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A policy by its name, or as data.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct PolicyGiven(Box<RawValue>);

impl Shape for PolicyGiven {
    fn shape(shapes: &mut Shapes) -> Value {
        json!({"oneOf": [{"type": "string"}, Policy::shape(shapes)]})
    }
}

/// What a request says of its settings.
#[derive(Debug, Default)]
pub(super) struct SettingsGiven<'g> {
    pub(super) policy: Option<&'g PolicyGiven>,
    pub(super) model: Option<&'g str>,
    pub(super) wire: Option<Wire>,
    pub(super) window: Option<Tokens>,
    pub(super) reserve: Option<Tokens>,
}

/// What holds for a call.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) policy: Policy,
    pub(super) target: Target,
    pub(super) reserve: Option<Tokens>,
}

impl SettingsGiven<'_> {
    /// Returns what holds where what is not given is configured.
    pub(super) fn settled<S: Store>(&self, asked: &Asked<S>) -> Result<Settings, Problem> {
        let layer = &asked.setup.config.layer;
        let model =
            self.model.map(|model| checked_name("model", model)).transpose()?.unwrap_or(model(&asked.setup.config));
        let target = target(&asked.setup.config, model)?;
        let wire = self.wire.or(layer.wire.as_ref().map(|set| set.value));
        let window = self.window.or(layer.window.as_ref().map(|set| set.value));
        let reserve = self.reserve.or(layer.reserve.as_ref().map(|set| set.value));
        let policy = match self.policy {
            Some(policy) => policy.read(&asked.setup.config)?,
            None => usual(asked)?,
        };
        Ok(Settings { policy, target: shaped(target, wire, window), reserve })
    }

    /// Returns what holds where what is not given is as it was.
    pub(super) fn over<S: Store>(&self, asked: &Asked<S>, was: Settings) -> Result<Settings, Problem> {
        let target = match self.model {
            Some(model) => {
                let other = target(&asked.setup.config, checked_name("model", model)?)?;
                if was.target.memory == Memory::Session { remembering(&asked.setup.config, other)? } else { other }
            }
            None => was.target,
        };
        let policy = match self.policy {
            Some(policy) => policy.read(&asked.setup.config)?,
            None => was.policy,
        };
        Ok(Settings { policy, target: shaped(target, self.wire, self.window), reserve: self.reserve.or(was.reserve) })
    }
}

impl PolicyGiven {
    /// Returns a policy by its name.
    pub(super) fn named(name: &str) -> PolicyGiven {
        PolicyGiven(serde_json::value::to_raw_value(name).expect("a text is JSON"))
    }

    fn read(&self, config: &Config) -> Result<Policy, Problem> {
        let text = self.0.get();
        if text.starts_with('"') {
            let name: String = serde_json::from_str(text).map_err(|error| Problem::bad(format!("policy: {error}")))?;
            return named(config, &name).map_err(|_| {
                let known: Vec<&str> = Policy::preset_names().map(|(name, _)| name).collect();
                Problem::bad(format!("unknown policy {name:?}")).hinting(format!("there are: {}", known.join(", ")))
            });
        }
        Policy::from_json(text).map_err(|error| match error.is_settings() {
            true => Problem::from(error),
            false => Problem::bad(format!("policy: {error}")),
        })
    }
}

/// Returns a policy by its name: a built-in one, or that of the configuration. Other files are nobody's to name.
pub(super) fn named(config: &Config, name: &str) -> Result<Policy, Problem> {
    match Policy::preset(name) {
        Ok(policy) => Ok(policy),
        Err(_) => configured(config)
            .filter(|policy| *policy.name == *name)
            .ok_or_else(|| Problem::not_found(format!("no policy {name:?}"))),
    }
}

/// Returns the policy of the configuration, if it names one that is not built in.
pub(super) fn configured(config: &Config) -> Option<Policy> {
    let named = config.layer.policy.as_ref()?;
    let policy = settings::policy(named).ok()?;
    Policy::preset(&policy.name).is_err().then_some(policy)
}

/// Returns the policy of those who name none: that of their key, else the configured one.
pub(super) fn usual<S: Store>(asked: &Asked<S>) -> Result<Policy, Problem> {
    if let Some(name) = &asked.caller.policy {
        return named(&asked.setup.config, name);
    }
    let builtin = || Set { value: POLICY.to_string(), origin: Origin::Default };
    let set = asked.setup.config.layer.policy.clone().unwrap_or_else(builtin);
    Ok(settings::policy(&set)?)
}

/// Returns the name of the model of those who name none.
pub(super) fn model(config: &Config) -> &str {
    config.layer.model.as_ref().map_or(MODEL, |set| set.value.as_str())
}

fn target(config: &Config, model: &str) -> Result<Target, Problem> {
    let name = Set { value: model.to_string(), origin: Origin::Default };
    Ok(settings::target(&name, config)?.target)
}

/// Returns a target of a call that names a session: one that remembers what it was sent.
///
/// # Errors
///
/// If the configuration states that the model is stateless.
pub(super) fn remembering(config: &Config, target: Target) -> Result<Target, Problem> {
    match config.models.catalogue().stated_memory(&target.name) {
        Some(Memory::Session) => Ok(target),
        None => Ok(target.remembering(Instructions::Kept)),
        Some(Memory::Stateless) => {
            let name = &*target.name;
            let detail = format!("session: the configuration says that model {name:?} is stateless");
            let hint =
                format!("leave `session` out, or set memory = \"session\" under [models.{name:?}] in recto.toml");
            Err(Problem::bad(detail).hinting(hint))
        }
    }
}

fn shaped(target: Target, wire: Option<Wire>, window: Option<Tokens>) -> Target {
    let target = match wire {
        Some(wire) => settings::over(target, wire),
        None => target,
    };
    match window {
        Some(window) => target.with_window((window > Tokens(0)).then_some(window)),
        None => target,
    }
}
