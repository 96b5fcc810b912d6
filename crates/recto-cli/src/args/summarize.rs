//! `recto summarize`.

use super::settings::SettingsArgs;
use super::stored::{OutputArgs, ReaderArgs, StoreArgs};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

pub(super) const SUMMARIZE_AFTER_HELP: &str = "\
Examples:
  recto summarize monday --policy folding
  recto summarize monday --policy folding --dry-run
  recto summarize monday --model gpt-4o-mini --model gpt-4o
  recto summarize monday --retry

Has a model make the summaries that would help the next page: those that the policy wants for what
has expired, and for exchanges that it would rather fold. [summarizer] in recto.toml says who is
asked; `recto config --help` shows its keys. Each is paid for once: what was made is kept with the
conversation, and stands on the pages of `recto serve` and `recto run` from then on.

With --json one object is printed:
  conversation   its name
  summaries      for each: of (its handles), prompt (null: the usual one), chars (about how long it
                 should be), urgent, and
                 state: made, known (it was there), failed, unmade (it may be tried again) or
                 elsewhere (somebody else makes it); model, text, why; calls, input, cached, output
                 and usd: what it cost
                 with --dry-run instead: instructions and text, if it can be asked for
  usd            what all of them cost together";

/// What to summarize.
#[derive(Debug, Args)]
pub(crate) struct SummarizeArgs {
    /// The conversation.
    pub(crate) name: String,

    /// A model that makes summaries, instead of those of [summarizer]; several are asked in this order.
    #[arg(long = "model", value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) models: Vec<String>,

    /// Ask nobody, and print what would be asked.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Try once more what has failed.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) retry: bool,

    #[command(flatten)]
    pub(crate) reader: ReaderArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
