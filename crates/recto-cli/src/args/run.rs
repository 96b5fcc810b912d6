//! Carrying a conversation on.

use super::settings::policy_help;
use super::stored::{OutputArgs, ReaderArgs, StoreArgs};
use super::values::tokens;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};
use recto::Tokens;
use std::path::PathBuf;

pub(super) const RUN_AFTER_HELP: &str = "\
Examples:
  recto run --with claude-code monday 'Read a.txt and sum it up.'
  recto run --with codex monday 'Now write the tests.'
  recto run --with gpt-5.5 monday 'What is still open?'
  git diff | recto run --with claude-sonnet-5-5 review -

Carries a kept conversation on, and begins one of that name if there is none. The answer goes to
stdout as it comes, everything else to stderr; what was said is in the store, whoever said it, so
every turn can be taken by somebody else.

Claude Code and Codex keep a history of their own: they are told only what they don't hold yet. If
their session is gone, or they were not the last to answer, one is written for them that holds the
conversation. They are found on PATH, or where [programs.claude_code] and [programs.codex] in the
configuration say; they work in the current folder, or in --in, with your own login and settings.
After a turn that failed or was killed the same command can be given again: what a program holds is
read from its own file first, and nothing is told twice.

Any other name is a model. [upstream.NAME] in the configuration says who answers for it; without
any, OpenAI's with OPENAI_API_KEY, Anthropic's with ANTHROPIC_API_KEY, Google's with GEMINI_API_KEY,
and models that are `like = \"ollama\"` at localhost:11434. With `remember` set there, the provider
keeps the history and is sent only what is new. Tools of a conversation are offered,
but nobody runs them here.

Without TEXT, what was added to the conversation since is told, if there is anything.

With --json one object is printed at the end:
  conversation, with, session   what was carried on, by whom, and what they call it
  how      told, asked_to_go_on (it held the message already), had_answered (nobody had heard the
           end of an earlier turn), or nothing_new
  mode     full, delta or nothing_new; full_because: why everything was sent, if the provider
           remembers
  sent     tokens that were sent, by our count
  usage    what the provider reports: input, cached, written, output
  text     the last words of the answer
  entries  how many were added after what was said";

/// What to carry on, and with whom.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The conversation.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) conversation: String,

    /// What to say; `-` is stdin.
    pub(crate) text: Option<String>,

    /// Who carries it on: claude-code, codex, or a model.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) with: String,

    /// The model that Claude Code or Codex is to ask [default: what it would ask by itself]
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,

    /// The folder in which Claude Code or Codex works [default: the current one]
    #[arg(long = "in", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,

    /// Instructions that hold for the conversation, from a file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) system: Option<PathBuf>,

    /// Instructions that hold for this turn alone; may be given several times.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) note: Vec<String>,

    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath, help = policy_help())]
    pub(crate) policy: Option<String>,

    /// Tokens of input and output together, such as 32000 or 32k; 0 is unbounded [default: the model's]
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) window: Option<Tokens>,

    /// Tokens kept free for the answer [default: the model's longest, at most a quarter of the window]
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) reserve: Option<Tokens>,

    #[command(flatten)]
    pub(crate) reader: ReaderArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
