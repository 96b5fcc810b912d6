//! Keys for the server.

use super::settings::policy_help;
use super::stored::{OutputArgs, StoreArgs};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueHint};

pub(super) const KEYS_AFTER_HELP: &str = "\
Examples:
  recto keys add laptop
  recto keys add ci --tenant team --policy safe
  recto keys list
  recto keys revoke laptop

A key opens the conversations of one tenant to whoever has it, by way of `recto serve`. It is shown
once, when it is made; the store has only what identifies it. Names are given once, also after a key
was revoked. A server that runs heeds new and revoked keys within a second.

With --json one object is printed:
  add      name, tenant, policy, key
  list     keys: for each name, tenant, policy, at and revoked (milliseconds since 1970, or null)
  revoke   revoked: the name";

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key and print it; it is not shown again.
    Add(AddKeyArgs),
    /// List all keys, without the keys themselves.
    List(ListKeysArgs),
    /// Make a key open nothing any more.
    Revoke(RevokeKeyArgs),
}

/// A key to make.
#[derive(Debug, Args)]
pub(crate) struct AddKeyArgs {
    /// What to call it.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,

    /// Whose conversations it opens; those of the other commands are `local`.
    #[arg(long, value_name = "NAME", default_value = "local", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tenant: String,

    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath, help = policy_help())]
    pub(crate) policy: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which keys to list.
#[derive(Debug, Args)]
pub(crate) struct ListKeysArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A key to revoke.
#[derive(Debug, Args)]
pub(crate) struct RevokeKeyArgs {
    /// Its name.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
