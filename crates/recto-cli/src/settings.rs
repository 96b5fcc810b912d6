//! The model, its window and the policy, from the names they are given by.

use crate::args::{SettingsArgs, TargetArgs};
use crate::clock;
use crate::codes::Code;
use crate::config::{Config, Layer, Origin, Set};
use crate::failure::Failure;
use crate::models::{self, Assumed};
use crate::{source, talk};
use recto::block::Facts;
use recto::wire::Wire;
use recto::{Policy, Target, Tokens};
use std::path::Path;

/// The model, if none is named.
pub(crate) const MODEL: &str = "gpt-4o";
/// The policy, if none is named.
pub(crate) const POLICY: &str = "default";

/// For which model pages are made, and by which policy.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) target: Target,
    pub(crate) policy: Policy,
    pub(crate) reserve: Option<Tokens>,
    /// What blocks are told.
    pub(crate) facts: Option<Facts>,
}

impl Settings {
    /// Returns the settings that the options name, else the configuration, else the built-in ones. What had to be
    /// assumed is said on stderr.
    pub(crate) fn of(args: &SettingsArgs, config: &Config) -> Result<Settings, Failure> {
        let layer = Layer::of(args).over(config.layer.clone());
        let named = |set: Option<Set<String>>, name: &str| {
            set.unwrap_or_else(|| Set { value: name.into(), origin: Origin::Default })
        };
        let model = named(layer.model, MODEL);
        let policy = policy(&named(layer.policy, POLICY))?;
        let Found { mut target, is_known } = target(&model, config)?;
        let assumed = Assumed { window: layer.window.is_none(), wire: layer.wire.is_none() };
        if let Some(Set { value: wire, .. }) = layer.wire {
            target = over(target, wire);
        }
        if let Some(Set { value: window, .. }) = layer.window {
            target = target.with_window((window > Tokens(0)).then_some(window));
        }
        if !is_known {
            note_unknown(&model, &target, assumed, config);
        }
        models::note_stale(&target, clock::now());
        Ok(Settings { target, policy, reserve: layer.reserve.map(|set| set.value), facts: None })
    }

    /// Returns the same settings, with what a file says for blocks to be made from.
    pub(crate) fn knowing(self, facts: Option<&Path>) -> Result<Settings, Failure> {
        let facts = facts.map(facts_at).transpose()?;
        Ok(Settings { facts, ..self })
    }

    /// Returns the same settings for each of these policies; without any, for the one that [`of`](Settings::of) takes.
    pub(crate) fn each(target: &TargetArgs, policies: &[String], config: &Config) -> Result<Vec<Settings>, Failure> {
        let args = SettingsArgs { target: target.clone(), policy: policies.first().cloned() };
        let mut each = vec![Settings::of(&args, config)?];
        for name in policies.iter().skip(1) {
            let policy = policy(&Set { value: name.clone(), origin: Origin::Option("--policy") })?;
            let Settings { target, reserve, .. } = &each[0];
            each.push(Settings { target: target.clone(), policy, reserve: *reserve, facts: None });
        }
        Ok(each)
    }
}

/// A target, and whether anything was known about it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) target: Target,
    pub(crate) is_known: bool,
}

/// Returns what is known about a model, else what is safe to take for granted.
pub(crate) fn target(name: &Set<String>, config: &Config) -> Result<Found, Failure> {
    if name.value.trim().is_empty() {
        let failure = Failure::of(Code::UnknownModel, format!("unknown model {:?}", name.value));
        return Err(failure.hinting("name a model; `recto models` lists those that are known"));
    }
    Ok(match config.models.catalogue().target(&name.value) {
        Some(target) => Found { target, is_known: true },
        None => Found { target: Target::unknown(&name.value), is_known: false },
    })
}

/// Returns a target in the format of a wire; in its own it is as it is known.
pub(crate) fn over(target: Target, wire: Wire) -> Target {
    if target.wire == wire { target } else { target.over(wire) }
}

/// Says on stderr what was assumed about a model of which nothing is known.
pub(crate) fn note_unknown(name: &Set<String>, target: &Target, assumed: Assumed, config: &Config) {
    let mut lines = models::unknown(target, assumed, config.models.catalogue());
    if let (Some(first), Some(place)) = (lines.first_mut(), name.place_told()) {
        first.push_str(&format!(" ({place})"));
    }
    talk::note(&lines.join("\n"));
}

/// Returns the policy that a name or a path stands for.
pub(crate) fn policy(name: &Set<String>) -> Result<Policy, Failure> {
    let presets = Policy::presets();
    if let Some(preset) = presets.iter().find(|preset| *preset.name == *name.value) {
        return Ok(preset.clone());
    }
    let path = name.as_path();
    let is_path = path.extension().is_some_and(|extension| extension == "json" || extension == "toml")
        || Path::new(&name.value).components().count() > 1
        || path.is_file();
    if is_path {
        return policy_at(&path).map_err(|failure| name.blamed(failure));
    }
    let known: Vec<&str> = presets.iter().map(|preset| &*preset.name).collect();
    let unknown = name.blamed(Failure::of(Code::UnknownPolicy, format!("unknown policy {:?}", name.value)));
    let failure = unknown.suggesting(&name.value, known.iter().copied());
    Err(failure.hinting(format!("built-in policies: {}; or name a TOML or JSON file", known.join(", "))))
}

/// Returns the facts that a file holds, in JSON.
fn facts_at(path: &Path) -> Result<Facts, Failure> {
    let text = source::text(path, &source::FACTS)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::of(Code::BadSettings, format!("cannot use facts of {}", source::shown(path)))
            .because(error.to_string())
            .hinting("docs/blocks.md tells which facts there are")
    })
}

/// Returns the policy that a file holds: TOML or JSON, by its name, else by how it begins.
pub(crate) fn policy_at(path: &Path) -> Result<Policy, Failure> {
    let text = source::text(path, &source::POLICY)?;
    let is_json = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => true,
        Some("toml") => false,
        _ => text.trim_start().starts_with('{'),
    };
    let read = if is_json { Policy::from_json(&text) } else { Policy::from_toml(&text) };
    read.map_err(|error| {
        let what = format!("cannot use policy {}", source::shown(path));
        Failure::of_core(Code::BadPolicy, &error).during(what)
    })
}
