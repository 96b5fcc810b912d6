//! Which pages: of one conversation, of many, or in another format.

use super::settings::{SettingsArgs, TargetArgs, policies_help};
use super::stored::StoreArgs;
use super::values::{format_names, tokens, uuid, wire_names};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};
use recto::Tokens;
use recto::transcript::Format;
use recto::wire::Wire;
use std::path::PathBuf;

pub(super) const COMPILE_AFTER_HELP: &str = "\
Examples:
  recto compile chat.json                         the page for what comes next
  recto compile chat.json --input 'Thanks. Why?'  the same, with the user's next words
  recto compile chat.json --turn 7                the page that led to assistant message 7
  cat chat.json | recto compile - --for gpt-4.1 --window 200k
  recto compile monday --input 'And now?'         of a conversation that `recto import` has kept
  recto compile chat.json --for claude-sonnet-5   in the format of Anthropic
  recto compile chat.json --for gpt-5.2 --wire openai_chat
  recto compile chat.json --policy blocks --facts facts.json   laid out in tagged blocks

Files: a request body of any of the three formats, a bare array of its messages, records of
DeepChat, one such record a line, a session of Claude Code, Codex or pi, a trajectory of SWE-agent,
results of tau-bench, a log of Inspect (JSON), or an export of Recto. What kind it is shows in what
it holds.

Kept conversations are named as `recto list` lists them. Their pages are previews: nothing is
decided or recorded. Where nothing was recorded for a reader yet, the calls that led to the
conversation are gone through as for a file, so that both give the same page; beyond 1000 entries
the page is made as if it were the first.

A request's other fields, such as its temperature, pass through if the page goes out in the same
format. A body that breaks a rule of its provider is never printed.

With --json one object is printed:
  conversation  its id, or a name made from the file's
  turn          which assistant message the page leads to, from 0; null for one that is yet to come
  page          mode: \"full\" (other modes are for providers that remember), and messages: for each
                message of the body its role, the entry it shows (seq, from 0; null for
                --input), its cost in tokens and a digest of its content
  body          the request body, as it is printed without --json
  receipt       as `recto explain --json` prints it";

pub(super) const EXPLAIN_AFTER_HELP: &str = "\
Examples:
  recto explain chat.json
  recto explain chat.json --window 32k --policy first_chars
  recto explain chat.json --turn 7 --json
  recto explain monday                            of a conversation that `recto import` has kept

The receipt says where the tokens go, what the provider's cache still holds, what the input costs,
and for every entry of the conversation whether it is shown, changed or not shown, by which pass
and why.

With --json the receipt is one object: target, policy, mode, ledger, prefix, money, fates, warnings,
ticket, and where tokens are estimated calibration.";

pub(super) const REPLAY_AFTER_HELP: &str = "\
Examples:
  recto replay chat.json
  recto replay transcripts/ --policy first_chars --window 32k --pages pages.jsonl
  recto replay transcripts/ --policy none,safe,mine.toml --min-tokens 30k --plot costs.svg
  recto replay chat.json --policy default,careful,frugal --html report.html
  recto replay chat.json --pages - | head -1
  recto replay --questions talks.jsonl --for eval --budget 4000 --budget 8000 --pages found.jsonl
  recto replay chat.json --policy folding --summarizer http://127.0.0.1:11434/v1 \\
      --summarizer-model qwen3

Every line of OUT is one page: {\"conversation\": ID, \"turn\": K, \"messages\": [...]}, with messages as
OpenAI chat has them, whatever the wire; with several policies \"policy\" stands behind the id. OUT
appears when all pages are written; after an error or Ctrl-C it is as it was before. (A device or
pipe is written directly.)

Tokens are the whole input of all calls, as the model's provider would count it; cached is what of
it stood unchanged at the beginning of the page of the call before.

USD is money, at the prices of the model that --for names: what that input costs, if the provider's
cache holds all it can. Cost is no money but a share of the full history, sent at every call: 0.7
saves 30 %. It is the same for every model, so that policies can be compared: a token is four bytes,
a cached one counts 0.1 and any other 1.25. Recall says how much of what the agent took up again
stood on the page that led to it: names, numbers, quoted texts, phrases of four words, and whole
lines; it is the mean of these five, and 1 with the full history.

With --summarizer the summaries that a policy wants are made by a model, each once; without it a
policy goes on as if they could not be made. What they cost is part of USD, and told apart; it is no
part of cost, which is about pages alone. A key, if one is needed, is the one that key_env of
[summarizer] in recto.toml names.

With --questions every line of OUT is {\"conversation\": ID, \"question\": K, \"budget\": N,
\"messages\": [...]}, where K counts the questions in the conversation's \"meta\":
{\"qa\": [{\"question\": ...}]} from 0; a table says how many tokens the pages have. Policies
play no part.

With --json one object is printed:
  target, wire, window, reserve, min_tokens, policy
                  the settings; a window of null is unbounded, a reserve of null the model's own
  left_out        how many conversations are shorter than --min-tokens
  full            calls, tokens, cached, peak and references of the full history, by four bytes
  conversations   for each: conversation, file, calls, tokens, cached, usd, peak (the longest page),
                  measured, and overflows: the turns whose page doesn't fit, each with its breakdown
                  and a hint
  total           conversations, calls, tokens, cached, usd, peak, measured, overflows: all together
  summaries       of each and of the total, with --summarizer: made, failed, calls, input, cached,
                  output, and usd, which is part of the other
  measured        cost and recall; score: calls, tokens, cached and peak by four bytes, references:
                  for each kind how many were kept, of all
  dearest, most_forgetful
                  the conversations with the highest cost and the lowest recall
With several policies `policies` has an object for each, with policy, conversations, total, dearest
and most_forgetful.";

pub(super) const CONVERT_AFTER_HELP: &str = "\
Examples:
  recto convert session.jsonl --to openai_responses --for gpt-5.2 > body.json
  recto convert body.json --to claude_code -o session.jsonl --cwd ~/work
  recto convert chat.json --to recto        every entry with all its fields

IN is what `recto compile` reads. Nothing is shortened, whatever the window; what FORMAT can't hold
is told on stderr.

To go on with a session in another program, write it where that looks for it; stderr tells the path:
  claude_code  ~/.claude/projects/FOLDER/ID.jsonl, where FOLDER is the path of the folder in which
               the session is to go on, with `-` for everything but letters and digits. Then, in
               that folder: claude --resume ID
  codex        ~/.codex/sessions/YEAR/MONTH/DAY/rollout-YEAR-MONTH-DAYThh-mm-ss-ID.jsonl. Then:
               codex resume ID
CLAUDE_CONFIG_DIR and CODEX_HOME stand for ~/.claude and ~/.codex where they are set.";

pub(super) const VALIDATE_AFTER_HELP: &str = "\
Examples:
  recto validate body.json
  recto compile chat.json --for claude-sonnet-5 | recto validate --wire anthropic -

Prints every rule that the body breaks, each with its place as the provider names it. What only the
provider can know, such as whether a file id exists, is not checked.

Without --wire: a body with `input` is taken for openai_responses, one with `contents` for gemini;
one with `system`, `thinking`, `max_tokens` or content that only Anthropic has for anthropic, unless
its model or a message is OpenAI's; one with `options`, `truncate`, `keep_alive` or `think` for
ollama; all others for openai_chat. Stderr tells which it was.

With --json one object is printed:
  file, wire   what was looked at, and by which provider's rules
  guessed      whether the wire was guessed
  valid        whether no rule is broken
  violations   for each broken rule: at (where) and what";

/// Which page of which conversation.
#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    /// A request body, messages, a session file or an export, in JSON or JSONL; `-` reads stdin. If there is no such
    /// file, or with --store, the name of a conversation that is kept.
    #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The conversation with this id, if the file has several; those without an id are called FILE#1, FILE#2, …
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// The user's next words, said after the whole conversation.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) input: Option<String>,

    /// What the host knows, in JSON, for a policy that lays its page out in blocks; docs/blocks.md tells the keys.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) facts: Option<PathBuf>,

    /// The page before the K-th assistant message, from 0, exactly as `recto replay` makes it.
    ///
    /// Without --turn and --input it is the page for whatever answers the end of the conversation; if that is an
    /// assistant message, the page before it. Where a reader of a kept conversation has recorded calls, it is the page of
    /// its call K again, as it was then.
    #[arg(long, value_name = "K", conflicts_with = "input")]
    pub(crate) turn: Option<usize>,

    /// The reader of a kept conversation whose page it is [default: main]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reader: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which conversations to replay.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Files as `recto compile` reads them, folders of such files (*.json, *.jsonl and *.traj), or `-` for
    /// stdin.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,

    /// Write every page to this file, one JSON object a line; `-` writes to stdout, and the table to stderr.
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) pages: Option<PathBuf>,

    /// Instead of the calls, ask the questions that the files give in meta.qa: each page has what a question brings
    /// back, and nothing else of the conversation.
    #[arg(long, requires = "pages", requires = "budget")]
    #[arg(conflicts_with_all = ["policy", "plot", "html", "each", "json", "summarizer", "min_tokens"])]
    pub(crate) questions: bool,

    /// With --questions: how many tokens may come back; several are tried one after the other.
    #[arg(long, value_name = "N", value_parser = tokens, requires = "questions")]
    pub(crate) budget: Vec<Tokens>,

    /// Only the conversation with this id.
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,

    /// Leave out conversations of fewer tokens, four bytes each.
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) min_tokens: Option<Tokens>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath, help = policies_help())]
    #[arg(value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(crate) policy: Vec<String>,

    /// With several policies, also compare them for each conversation.
    #[arg(long)]
    pub(crate) each: bool,

    /// Draw cost and recall of the policies, as an SVG picture.
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub(crate) plot: Option<PathBuf>,

    /// Write a report to look at: one HTML file that needs nothing else, with cost and recall, what was left out, and tokens
    /// and money over the calls beside those of the whole history.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Have the summaries that policies want made by whoever answers at this base URL.
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) summarizer: Option<String>,

    /// The model that makes them; several are asked in this order [default: those of recto.toml, else gpt-4o].
    #[arg(long, value_name = "MODEL", requires = "summarizer", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) summarizer_model: Vec<String>,

    /// The format in which it is asked [default: openai_chat].
    #[arg(long, value_name = "WIRE", requires = "summarizer", value_parser = wire_names())]
    pub(crate) summarizer_wire: Option<Wire>,

    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to write in which format.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// A file as `recto compile` reads it; `-` reads stdin.
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The format to write.
    #[arg(long, value_name = "FORMAT", value_parser = format_names())]
    pub(crate) to: Format,

    /// Write to this file instead of stdout.
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// The conversation with this id, if the file has several.
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,

    /// The model that a request is for [default: one that FORMAT is the format of]
    #[arg(long = "for", value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// The id of the session [default: made from what the conversation says]
    #[arg(long, value_name = "UUID", value_parser = uuid)]
    pub(crate) session_id: Option<String>,

    /// The folder in which the session is to go on [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
}

/// Which body to check, by which rules.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// A request body, in JSON; `-` reads stdin.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Whose rules they are [default: guessed from the body]
    #[arg(long, value_name = "W", value_parser = wire_names())]
    pub(crate) wire: Option<Wire>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
