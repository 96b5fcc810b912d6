//! What can be asked for on the command line.

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use recto::Tokens;
use recto::transcript::Format;
use recto::wire::Wire;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  recto demo
  recto explain chat.json --window 32k
  recto compile chat.json --input 'And in March?' > body.json
  recto replay transcripts/ --policy safe,first_chars --plot costs.svg
  recto convert session.jsonl --to openai_responses > body.json

Data goes to stdout, everything else to stderr. After an error stdout is empty, except for what
`replay` could do before it (pages that `--pages -` wrote, and the table if some pages don't fit)
and for the violations that `validate` prints.

Configuration: `recto.toml` in the current folder and in those around it, and in the user's folder
($XDG_CONFIG_HOME/recto, else ~/.config/recto), are read by compile, explain, replay, convert,
models and config; the other commands heed only its colour. The nearer file wins key by key, options
win over all files. RECTO_CONFIG names a file to read instead of all these. See `recto help config`.

Recto works on files: it opens no connections and reports nothing to anybody.

Every error has a code: `recto help R0301` explains one, `recto help errors` lists them.

Exit codes:
    0  done; also if whoever read the output went away early
    1  something else failed, such as reading or writing a file, or a defect in Recto
    2  wrong usage of the command line
    3  bad input or settings: a malformed file, an unknown policy, a turn that doesn't exist
    4  the page does not fit; of `replay`: some pages don't, the others were written
  130  interrupted";

const COMPILE_AFTER_HELP: &str = "\
Examples:
  recto compile chat.json                         the page for what comes next
  recto compile chat.json --input 'Thanks. Why?'  the same, with the user's next words
  recto compile chat.json --turn 7                the page that led to assistant message 7
  cat chat.json | recto compile - --for gpt-4.1 --window 200k
  recto compile chat.json --for claude-sonnet-5   in the format of Anthropic
  recto compile chat.json --for gpt-5.2 --wire openai_chat

Files: a request body of any of the three formats, a bare array of its messages, records of
DeepChat, one such record a line, a session of Claude Code or Codex, or an export of Recto. What
kind it is shows in what it holds.

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

const EXPLAIN_AFTER_HELP: &str = "\
Examples:
  recto explain chat.json
  recto explain chat.json --window 32k --policy first_chars
  recto explain chat.json --turn 7 --json

The receipt says where the tokens go, what the provider's cache still holds, what the input costs,
and for every entry of the conversation whether it is shown, changed or not shown, by which pass
and why.

With --json the receipt is one object: target, policy, mode, ledger, prefix, money, fates, warnings,
ticket, and where tokens are estimated calibration.";

const REPLAY_AFTER_HELP: &str = "\
Examples:
  recto replay chat.json
  recto replay transcripts/ --policy first_chars --window 32k --pages pages.jsonl
  recto replay transcripts/ --policy none,safe,mine.toml --min-tokens 30k --plot costs.svg
  recto replay chat.json --pages - | head -1

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

With --json one object is printed:
  target, wire, window, reserve, min_tokens, policy
                  the settings; a window of null is unbounded, a reserve of null the model's own
  left_out        how many conversations are shorter than --min-tokens
  full            calls, tokens, cached, peak and references of the full history, by four bytes
  conversations   for each: conversation, file, calls, tokens, cached, usd, peak (the longest page),
                  measured, and overflows: the turns whose page doesn't fit, each with its breakdown
                  and a hint
  total           conversations, calls, tokens, cached, usd, peak, measured, overflows: all together
  measured        cost and recall; score: calls, tokens, cached and peak by four bytes, references:
                  for each kind how many were kept, of all
  dearest, most_forgetful
                  the conversations with the highest cost and the lowest recall
With several policies `policies` has an object for each, with policy, conversations, total, dearest
and most_forgetful.";

const CONFIG_AFTER_HELP: &str = "\
Examples:
  recto config
  recto config --window 8k                the same, with what an option would change
  RECTO_CONFIG=/dev/null recto config     the built-in settings

A configuration file, with every key there is:
  [defaults]
  for = \"gpt-4.1\"           # as --for
  wire = \"openai_chat\"      # as --wire
  window = \"200k\"           # as --window; a number or a string
  reserve = 8000            # as --reserve; a number or a string
  policy = \"mine.toml\"      # as --policy; a path is relative to this file

  [output]
  color = \"auto\"            # auto: on a terminal; always: also elsewhere; never

  [models.\"my-model\"]       # a model of your own, or facts that correct a known one:
  like = \"gpt-4.1\"          # `recto help models` lists them; [profiles.NAME] likewise

Which files count:
  --config FILE, else RECTO_CONFIG: that file alone, which must be there
  else recto.toml in the current folder, in every folder around it, and in the user's folder
  ($XDG_CONFIG_HOME/recto, else ~/.config/recto): all that are found, the nearer wins key by key
Options win over files. Unknown keys and wrong values are refused, with their place. If NO_COLOR is
set, or TERM is dumb, there is no colour.

With --json one object is printed:
  defaults    for, wire, window, reserve, policy, each with its value (null: the model's own) and
              its origin: default, file (with file and line), environment (with variable) or option
              (with option)
  output      color, likewise
  models      own: for each model that files speak of, its name and where the nearest speaks of it
  chosen_by   what decided which files are read: search, option or environment
  files       for each, the nearest first: path, and found: whether it was there";

const CONVERT_AFTER_HELP: &str = "\
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

const VALIDATE_AFTER_HELP: &str = "\
Examples:
  recto validate body.json
  recto compile chat.json --for claude-sonnet-5 | recto validate --wire anthropic -

Prints every rule that the body breaks, each with its place as the provider names it. What only the
provider can know, such as whether a file id exists, is not checked.

Without --wire: a body with `input` is taken for openai_responses; one with `system`, `thinking`,
`max_tokens` or content that only Anthropic has for anthropic, unless its model or a message is
OpenAI's; all others for openai_chat. Stderr tells which it was.

With --json one object is printed:
  file, wire   what was looked at, and by which provider's rules
  guessed      whether the wire was guessed
  valid        whether no rule is broken
  violations   for each broken rule: at (where) and what";

const MODELS_AFTER_HELP: &str = "\
Examples:
  recto models
  recto models claude-sonnet-5            all that is known about one
  recto models --from mine.toml           with a file's models, and what it changes
  recto models --json

Prices are US dollars for a million tokens. A count is exact where the model's vocabulary is
published; else it is multiplied by a factor that is learned from call to call, and a page must fit
by the worst. `eval` is for comparing policies: a token is four bytes.

A file of models is TOML, or JSON of the same shape; recto.toml takes the same tables:
  as_of = \"2026-11-15\"                    # when its prices were read off

  [models.\"my-model\"]
  like = \"gpt-4.1\"                        # a model or profile; it has all facts that aren't here
  window = 200_000                        # input and output together
  output_max = 8_000                      # the longest answer
  prices = { input = 2, cached = 0.5, write = 2.5, output = 8 }
docs/formats.md describes every key. What a file says about a known model corrects it fact by fact.

With --json one object is printed:
  as_of     when the built-in prices were read off
  models    for each: all its facts; known; stale_days: how many days ago its prices were read off,
            if that is more than 90, else null; and origin: built_in, or file (with file)
  changes   for each file of --from: file, and models: for each that differs its name, is_new, and
            facts: for each fact that differs its name, before and after
With a name it is the object of that model alone.";

const POLICY_AFTER_HELP: &str = "\
Examples:
  recto policy list
  recto policy show safe > mine.toml      a policy to start from
  recto policy check mine.toml            every mistake with its line and column
  recto explain chat.json --policy mine.toml

A policy file is TOML or JSON: *.toml and *.json are what their names say, others are JSON if they
begin with `{`, else TOML. docs/formats.md describes every key.

With --json one object is printed:
  list    policies: for each its name and what it is about; and default: the name of the one that
          is used if none is named
  show    the policy, as a JSON policy file holds it; what a file leaves out is filled in";

const COMPLETIONS_AFTER_HELP: &str = "\
Examples:
  recto completions bash > ~/.local/share/bash-completion/completions/recto
  recto completions zsh > ~/.zfunc/_recto       with ~/.zfunc in $fpath
  recto completions fish > ~/.config/fish/completions/recto.fish";

const MAN_AFTER_HELP: &str = "\
Examples:
  recto man | man -l -
  recto man ~/.local/share/man/man1";

/// Compiles an agent's history into the page its model reads, and says what was left out and why.
#[derive(Debug, Parser)]
#[command(name = "recto", version, after_help = AFTER_HELP, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Read this configuration file, and no other; /dev/null is none.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the request body of the next model call, or of a past one.
    #[command(after_help = COMPILE_AFTER_HELP)]
    Compile(PageArgs),
    /// Print the receipt of a page: what is shown, changed or left out, why, and what it costs.
    #[command(after_help = EXPLAIN_AFTER_HELP)]
    Explain(PageArgs),
    /// Walk through conversations call by call, and sum up what their pages cost and forget.
    #[command(after_help = REPLAY_AFTER_HELP)]
    Replay(ReplayArgs),
    /// Write a conversation in another format: a request body, or a session that another program resumes.
    #[command(after_help = CONVERT_AFTER_HELP)]
    Convert(ConvertArgs),
    /// Say whether a request body keeps its provider's rules, or which ones it breaks, and where.
    #[command(after_help = VALIDATE_AFTER_HELP)]
    Validate(ValidateArgs),
    /// List the known models, or tell everything about one.
    #[command(after_help = MODELS_AFTER_HELP)]
    Models(ModelsArgs),
    /// Show on a bundled conversation what pages and receipts look like.
    Demo,
    /// Print the settings that hold here, where each comes from, and which files were looked for.
    #[command(after_help = CONFIG_AFTER_HELP)]
    Config(ConfigArgs),
    /// List the built-in policies, show one, or check a policy file.
    #[command(after_help = POLICY_AFTER_HELP, disable_help_subcommand = true)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Print a script that completes commands and options in a shell.
    #[command(after_help = COMPLETIONS_AFTER_HELP)]
    Completions {
        /// The shell that reads the script.
        shell: Shell,
    },
    /// Print the manual page of `recto`, or write the pages of all commands to a folder.
    #[command(after_help = MAN_AFTER_HELP)]
    Man {
        /// Write recto.1 and recto-COMMAND.1 to this folder instead; it is made if it isn't there.
        #[arg(value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
    /// Print help on a command or an error code, or list all error codes.
    Help {
        /// A command, an error code such as R0301, or `errors` for the list of codes.
        topic: Option<String>,
    },
}

/// What to do with policies.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// List the built-in policies, and what each is for.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a policy as TOML, with everything that a file may leave out.
    Show {
        /// A built-in policy, or a file.
        #[arg(value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
        name: String,

        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say whether a policy file can be used, or what is wrong with it, and where.
    Check {
        /// A policy file, in TOML or JSON; `-` reads stdin.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

/// Which page of which conversation.
#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    /// A request body, messages, a session file or an export, in JSON or JSONL; `-` reads stdin.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The conversation with this id, if the file has several; those without an id are called FILE#1, FILE#2, …
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// The user's next words, said after the whole conversation.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) input: Option<String>,

    /// The page before the K-th assistant message, from 0, exactly as `recto replay` makes it.
    ///
    /// Without --turn and --input it is the page for whatever answers the end of the conversation; if that is an
    /// assistant message, the page before it.
    #[arg(long, value_name = "K", conflicts_with = "input")]
    pub(crate) turn: Option<usize>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which conversations to replay.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Files as `recto compile` reads them, folders of such files (*.json and *.jsonl), or `-` for stdin.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<PathBuf>,

    /// Write every page to this file, one JSON object a line; `-` writes to stdout, and the table to stderr.
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) pages: Option<PathBuf>,

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

/// Which models to tell about.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Everything about this model.
    pub(crate) name: Option<String>,

    /// With the models of this file, in TOML or JSON, and what it changes; may be given again, the last one wins.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Vec<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which settings to show.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// For which model, and by which policy. What is left out here is taken from the configuration, then the default.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath, help = policy_help())]
    pub(crate) policy: Option<String>,
}

/// For which model.
#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArgs {
    /// The model that reads the page; `recto models` lists those that are known [default: gpt-4o]
    #[arg(long = "for", value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// The format that the model is spoken to in [default: the model's]
    #[arg(long, value_name = "W", value_parser = wire_names())]
    pub(crate) wire: Option<Wire>,

    /// Tokens of input and output together, such as 32000, 32_000, 32k or 1m; 0 is unbounded [default: the model's]
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) window: Option<Tokens>,

    /// Tokens kept free for the answer [default: the model's longest, at most a quarter of the window]
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) reserve: Option<Tokens>,
}

/// What `--policy` takes where several can be compared.
fn policies_help() -> String {
    format!("{}; given again, or with commas between, several are compared", policy_help())
}

/// What `--policy` takes, with the policies that there are.
fn policy_help() -> String {
    let presets = recto::Policy::presets();
    let names: Vec<&str> = presets.iter().map(|policy| &*policy.name).collect();
    let default = crate::settings::POLICY;
    format!("A built-in policy ({}), or a TOML or JSON file that holds one [default: {default}]", names.join(", "))
}

/// The wires, by name.
fn wire_names() -> impl TypedValueParser<Value = Wire> {
    PossibleValuesParser::new(Wire::ALL.map(Wire::name)).try_map(|name| name.parse::<Wire>())
}

/// The formats, by name.
fn format_names() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

/// Reads a UUID, in any case.
fn uuid(text: &str) -> Result<String, String> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = groups.iter().map(|group| group.len()).eq(GROUPS) && groups.iter().all(|group| is_hex(group));
    is_uuid
        .then(|| text.to_lowercase())
        .ok_or_else(|| "expected a UUID such as 0f8fad5b-d9cb-469f-a165-70867728950e".into())
}

/// Reads a number of tokens: digits, `_` between them, and `k` or `m` for thousands or millions.
pub(crate) fn tokens(text: &str) -> Result<Tokens, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        _ => (text, 1),
    };
    let is_spelled = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '_');
    let number = is_spelled.then(|| digits.replace('_', "").parse::<u64>().ok()?.checked_mul(unit)).flatten();
    number.map(Tokens).ok_or_else(|| "expected a number of tokens such as 32000, 32_000, 32k or 1m".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_several_spellings() {
        let good =
            [("0", 0), ("32000", 32_000), ("32_000", 32_000), ("8k", 8_000), ("128K", 128_000), ("1m", 1_000_000)];
        for (text, number) in good {
            assert_eq!(tokens(text), Ok(Tokens(number)), "{text}");
        }
        for text in
            ["", "k", "-1", "+1", "1.5k", "_1", "1_", "8kb", "8 k", "99999999999999999999", "99999999999999999m"]
        {
            assert!(tokens(text).is_err(), "{text}");
        }
    }

    #[test]
    fn uuids_are_told_from_other_texts() {
        let good = "0F8FAD5B-d9cb-469f-a165-70867728950e";
        assert_eq!(uuid(good), Ok(good.to_lowercase()));
        for text in ["", "0f8fad5b", &good[1..], &format!("{good}0"), &good.replace('5', "g"), &good.replace('-', "")] {
            assert!(uuid(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prepared_texts_are_narrow_enough_not_to_be_wrapped() {
        let pages = [AFTER_HELP, COMPILE_AFTER_HELP, EXPLAIN_AFTER_HELP, REPLAY_AFTER_HELP, CONFIG_AFTER_HELP];
        let others = [CONVERT_AFTER_HELP, VALIDATE_AFTER_HELP, MODELS_AFTER_HELP, POLICY_AFTER_HELP];
        for text in pages.into_iter().chain(others).chain([COMPLETIONS_AFTER_HELP, MAN_AFTER_HELP]) {
            let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
            assert_eq!(wide, [""; 0]);
        }
    }

    #[test]
    fn the_help_names_every_built_in_policy() {
        let help = Cli::command().find_subcommand_mut("compile").unwrap().render_long_help().to_string();
        for policy in recto::Policy::presets() {
            assert!(help.contains(&*policy.name), "{}", policy.name);
        }
        for default in [crate::settings::MODEL, crate::settings::POLICY] {
            assert!(help.contains(&format!("[default: {default}]")), "{default}");
        }
    }
}
