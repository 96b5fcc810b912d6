//! What to look for, and where.

use super::stored::{OutputArgs, StoreArgs};
use super::values::tokens;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};
use recto::Tokens;
use std::path::PathBuf;

pub(super) const SEARCH_AFTER_HELP: &str = "\
Examples:
  recto search 'where does my sister live'               in everything that is kept
  recto search parse_http_request monday --json          in one conversation that is kept
  recto search 'when was the release moved' chat.json    in a file that `recto compile` reads
  recto search 'how is a policy written' docs/*.md       in Markdown or plain text

It finds words by their stems, identifiers whole and in their parts, and Chinese and Japanese, and
prints what answers best, in the order it was said. No model is asked.

A kept conversation of more than 600 entries is searched by an index, which is made when it is first
needed and kept beside the log.

With --json one object is printed:
  words   what was looked for
  found   for each stretch: where (the conversation or file), seq, role, author, at (milliseconds
          since 1970), text; what isn't known is null
  cut     how many of the words stand at more places than were looked at";

/// What to look for, and where.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What to look for: a question, a few words, a name.
    #[arg(value_name = "WORDS", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) words: String,

    /// Files, or names of kept conversations; without any, all that are kept.
    #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub(crate) places: Vec<PathBuf>,

    /// Print at most so many tokens of each conversation or file.
    #[arg(long, value_name = "N", default_value = "300", value_parser = tokens)]
    pub(crate) budget: Tokens,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
