//! The model, its window and the policy, from the names they are given by.

use crate::args::SettingsArgs;
use crate::failure::Failure;
use crate::nearest::probably;
use crate::source;
use recto::{Policy, Target, Tokens};
use std::path::Path;

/// For which model pages are made, and by which policy.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) target: Target,
    pub(crate) policy: Policy,
    pub(crate) reserve: Option<Tokens>,
}

impl Settings {
    /// Returns the settings that the arguments name.
    pub(crate) fn of(args: &SettingsArgs) -> Result<Settings, Failure> {
        let mut target = target(&args.model)?;
        if let Some(window) = args.window {
            target = target.with_window((window > Tokens(0)).then_some(window));
        }
        Ok(Settings { target, policy: policy(&args.policy)?, reserve: args.reserve })
    }
}

fn target(name: &str) -> Result<Target, Failure> {
    Target::named(name).ok_or_else(|| {
        let known: Vec<&str> = Target::names().collect();
        let failure = meaning(Failure::refused(format!("unknown model {name:?}")), name, &known);
        failure.hinting(format!("known models: {}", known.join(", ")))
    })
}

fn policy(name: &str) -> Result<Policy, Failure> {
    let presets = Policy::presets();
    if let Some(preset) = presets.iter().find(|preset| &*preset.name == name) {
        return Ok(preset.clone());
    }
    let path = Path::new(name);
    let is_path = path.extension().is_some_and(|extension| extension == "json")
        || path.components().count() > 1
        || path.is_file();
    if is_path {
        let text = source::text(path, source::POLICY_BYTES_MAX)?;
        return Policy::from_json(&text)
            .map_err(|error| Failure::from(error).during(format!("cannot use policy {name}")));
    }
    let known: Vec<&str> = presets.iter().map(|preset| &*preset.name).collect();
    let failure = meaning(Failure::refused(format!("unknown policy {name:?}")), name, &known);
    Err(failure.hinting(format!("built-in policies: {}; or name a JSON file", known.join(", "))))
}

fn meaning(failure: Failure, wrong: &str, known: &[&str]) -> Failure {
    match probably(wrong, known.iter().copied()) {
        Some(name) => failure.hinting(format!("did you mean {name:?}?")),
        None => failure,
    }
}
