//! `recto keys`: who may ask the server.

use crate::args::{AddKeyArgs, KeysCommand, ListKeysArgs, RevokeKeyArgs};
use crate::config::{Config, Origin, Set};
use crate::failure::{Failure, cannot_read};
use crate::kept::Kept;
use crate::table::{self, Side};
use crate::{clock, settings, talk};
use recto::Policy;
use recto_engine::Tenant;
use recto_engine::store::AccessKey;
use serde_json::{Value, json};
use std::fs;

/// Adds, lists or revokes keys.
pub(crate) fn run(command: &KeysCommand, config: &Config) -> Result<(), Failure> {
    match command {
        KeysCommand::Add(args) => add(args, config),
        KeysCommand::List(args) => list(args, config),
        KeysCommand::Revoke(args) => revoke(args, config),
    }
}

fn add(args: &AddKeyArgs, config: &Config) -> Result<(), Failure> {
    let policy = args.policy.as_deref().map(lasting).transpose()?;
    let kept = Kept::open_or_make(&args.store, config)?;
    let tenant = Tenant::from(args.tenant.as_str());
    let (key, secret) = kept.run(kept.engine.add_key(&args.name, &tenant, policy.as_deref()))?;
    if args.output.json {
        let AccessKey { name, tenant, policy, .. } = key;
        return talk::json(&json!({"name": name, "tenant": tenant, "policy": policy, "key": secret}));
    }
    talk::note("this is the only time that the key is shown");
    talk::text(&secret)
}

/// Returns a policy's name as it holds wherever the server runs: a file by its whole path.
fn lasting(name: &str) -> Result<String, Failure> {
    settings::policy(&Set { value: name.into(), origin: Origin::Option("--policy") })?;
    if Policy::presets().iter().any(|preset| *preset.name == *name) {
        return Ok(name.into());
    }
    let path = fs::canonicalize(name).map_err(|error| cannot_read(name, &error))?;
    Ok(path.display().to_string())
}

fn list(args: &ListKeysArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let keys = kept.run(kept.engine.keys())?;
    if args.output.json {
        let row = |key: &AccessKey| -> Value {
            let AccessKey { name, tenant, policy, at, revoked, .. } = key;
            json!({"name": name, "tenant": tenant, "policy": policy, "at": at, "revoked": revoked})
        };
        return talk::json(&json!({"keys": keys.iter().map(row).collect::<Vec<_>>()}));
    }
    if keys.is_empty() {
        return talk::text("no keys");
    }
    let header = ["key", "tenant", "policy", "made", "revoked"].map(String::from);
    let row = |key: &AccessKey| {
        let policy = key.policy.as_deref().unwrap_or("the server's");
        let revoked = key.revoked.map_or("no".into(), clock::minute);
        [
            talk::harmless(&key.name),
            talk::harmless(key.tenant.as_str()),
            talk::harmless(policy),
            clock::minute(key.at),
            revoked,
        ]
    };
    let rows: Vec<[String; 5]> = std::iter::once(header).chain(keys.iter().map(row)).collect();
    talk::text(&table::aligned(&rows, [Side::Left; 5]))
}

fn revoke(args: &RevokeKeyArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let done = kept.run(kept.engine.revoke_key(&args.name));
    done.map_err(|failure| match failure.is_not_found() {
        true => failure.hinting("`recto keys list` lists them"),
        false => failure,
    })?;
    match args.output.json {
        true => talk::json(&json!({"revoked": args.name})),
        false => talk::text(&format!("revoked {}", args.name)),
    }
}
