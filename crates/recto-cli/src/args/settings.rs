//! For which model, by which policy, and from which files.

use super::stored::StoreArgs;
use super::values::{tokens, wire_names};
use clap::{Args, Subcommand, ValueHint};
use recto::Tokens;
use recto::wire::Wire;
use std::path::PathBuf;

pub(super) const CONFIG_AFTER_HELP: &str = "\
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

  [store]
  path = \"recto.db\"         # as --store; relative to this file

  [server]                  # `recto serve`
  listen = \"127.0.0.1:7676\" # as --listen
  hosts = [\"recto.test\"]    # names it is reached under, besides those of this machine
  shutdown_seconds = 30     # how long requests may go on after it was told to end
  body_mib = 64             # the largest request
  requests_per_tenant = 256 # how many of a tenant are answered at once

  [log]                     # what `recto serve` says on stderr
  format = \"text\"           # as --log-format; json: one object a line
  level = \"info\"            # as --log-level
  requests = false          # true: as --verbose

  [retention]               # without days, nothing is erased by itself
  days = 90                 # so long after something was last written to it, a conversation goes
  keep = [\"audit-*\"]        # names that stay

  [tracing]                 # needs the feature otel; OTEL_EXPORTER_OTLP_ENDPOINT wins
  endpoint = \"http://127.0.0.1:4318\"

  [output]
  color = \"auto\"            # auto: on a terminal; always: also elsewhere; never

  [upstream.openai]         # built in: openai, anthropic, google, ollama; others need url and wire
  url = \"https://api.openai.com/v1\"   # what the provider documents as its base URL
  wire = \"openai_responses\" # the format it is spoken to in
  key_env = \"OPENAI_API_KEY\"          # the NAME of the variable that holds the key
  client_key = \"replace\"   # whose key goes with a request to `recto serve`: the one of key_env, or
                            # pass: the client's; without it, that of key_env where it is set
  remember = \"no\"           # openai_responses: the provider keeps each response, or a conversation
  models = [\"gpt-*\"]        # which models go there; without it, those of the provider of its name
  ca = \"own.pem\"            # certificates to trust besides the system's; relative to this file
  plain_http = false        # true: also beyond this machine it may go unencrypted
  timeout_seconds = 600     # for a whole answer; to a client of `recto serve`, until it begins, and
                            # then between two pieces
  forward_timeout_seconds = 21600       # for a whole answer to a client of `recto serve`
  retries = 2               # how often a request is sent again, where that is safe
  [upstream.openai.headers] # what goes with every request, and wins over a client's; never shown
  openai-organization = \"org-1\"

  [summarizer]              # who makes the summaries that policies want; without it, nobody
  upstream = \"openai\"       # an [upstream.NAME]; or url and wire, and key_env
  models = [\"gpt-6-luna\"]   # the preferred one first; the next is asked where one fails
  mode = \"separate\"         # same: the conversation's own model, by its provider's cache
  wait_seconds = 20         # how long a call waits for a summary that its page needs
  timeout_seconds = 120     # for one summary, all models and tries together
  background = 4            # how many are made at once behind calls
  output_tokens = 4096      # the longest answer
  [summarizer.prompts]      # by name; a value that ends in .md or .txt is a file
  brief = \"brief.md\"

  [programs.codex]          # and [programs.claude_code]
  path = \"bin/codex\"        # relative to this file; without it, looked for on PATH
  model = \"gpt-5.5\"         # without it, the program's own choice
  arguments = [\"-c\", \"a=1\"] # before all others
  turn_limit_seconds = 3600
  silence_limit_seconds = 900

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
  store       path, likewise (null: nothing says where the user's data folder is)
  server      listen, hosts, shutdown_seconds, body_mib, requests_per_tenant
  log         format, level, requests: whether each is told of
  retention   days (null: nothing is erased by itself), keep: patterns of names that stay
  tracing     endpoint (null: none)
  output      color, likewise
  upstream    for each provider, in the order they are asked for a model: name, url, wire, key_env,
              client_key (null: see above), headers (their names), remember, ca, models, plain_http,
              timeout_seconds, forward_timeout_seconds, retries, and its origin
  summarizer  null: nobody; else upstream, url, models, mode, wait_seconds, timeout_seconds,
              background, output_tokens, prompts (their names)
  programs    for each: name, path, model, arguments, turn_limit_seconds, silence_limit_seconds
  models      own: for each model that files speak of, its name and where the nearest speaks of it
  chosen_by   what decided which files are read: search, option or environment
  files       for each, the nearest first: path, and found: whether it was there";

pub(super) const MODELS_AFTER_HELP: &str = "\
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

pub(super) const POLICY_AFTER_HELP: &str = "\
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

/// Which settings to show.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

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

/// What `--policy` takes where several can be compared.
pub(super) fn policies_help() -> String {
    format!("{}; given again, or with commas between, several are compared", policy_help())
}

/// What `--policy` takes, with the policies that there are.
pub(super) fn policy_help() -> String {
    let presets = recto::Policy::presets();
    let names: Vec<&str> = presets.iter().map(|policy| &*policy.name).collect();
    let default = crate::settings::POLICY;
    format!("A built-in policy ({}), or a TOML or JSON file that holds one [default: {default}]", names.join(", "))
}
