//! `recto policy`: the built-in policies, and policy files.

use crate::args::PolicyCommand;
use crate::config::{Origin, Set};
use crate::failure::Failure;
use crate::settings::{self, POLICY};
use crate::table::{self, Side};
use crate::{source, talk};
use recto::Policy;
use serde::Serialize;
use std::path::Path;

/// Lists, shows or checks policies.
pub(crate) fn run(command: &PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::List { json } => list(*json),
        PolicyCommand::Show { name, json } => show(name, *json),
        PolicyCommand::Check { file } => check(file),
    }
}

/// What `--json` prints; `recto policy --help` tells its shape.
#[derive(Serialize)]
struct Listed {
    policies: Vec<Preset>,
    default: &'static str,
}

#[derive(Serialize)]
struct Preset {
    name: &'static str,
    about: &'static str,
}

fn list(json: bool) -> Result<(), Failure> {
    if json {
        let policies = Policy::preset_names().map(|(name, about)| Preset { name, about }).collect();
        return talk::json(&Listed { policies, default: POLICY });
    }
    let mut rows = vec![["policy", "what it does"].map(String::from)];
    rows.extend(Policy::preset_names().map(|(name, about)| [name, about].map(String::from)));
    let lines = table::aligned(&rows, [Side::Left; 2]);
    talk::text(&format!("{lines}\n\n{POLICY} is used if none is named; `recto policy show NAME` prints one."))
}

fn show(name: &str, json: bool) -> Result<(), Failure> {
    let policy = settings::policy(&Set { value: name.into(), origin: Origin::Default })?;
    if json { talk::json(&policy) } else { talk::data(policy.to_toml().as_bytes()) }
}

fn check(file: &Path) -> Result<(), Failure> {
    settings::policy_at(file)?;
    talk::text(&format!("{}: ok", source::shown(file)))
}
