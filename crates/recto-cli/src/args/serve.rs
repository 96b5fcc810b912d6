//! The server.

use super::settings::policy_help;
use super::stored::StoreArgs;
use super::values::{address, levels, spellings};
use crate::talk::{Level, Spelling};
use clap::{Args, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(super) const SERVE_AFTER_HELP: &str = "\
Examples:
  recto serve
  recto serve --demo                      with the bundled conversation, and nothing is kept
  ANTHROPIC_BASE_URL=http://127.0.0.1:7676 claude
  recto keys add ci && recto serve --listen 0.0.0.0:7676

Takes the requests of OpenAI's and Anthropic's clients, records what was said, sends the page to the
provider, and gives its answer back as it comes:
  POST /v1/chat/completions, /v1/responses, /v1/messages, /v1/messages/count_tokens
  GET  /v1/models, /v1/models/{*id}
  GET  / (the inspector), /assets/{file}; GET, POST /session (signing in to it)
  /api/v1/…, GET /openapi.json: everything else, for programs; docs/api.md describes it
  POST /mcp: some of that as tools for agents' programs (Model Context Protocol); docs/mcp.md
  GET  /health (it lives), /ready (it can work), /metrics (for Prometheus)
[upstream.NAME] in the configuration says where requests go; see `recto help config`.

Its URL goes to stdout once it listens. Without keys only this machine is listened to, and everybody
on it may ask. With keys (`recto keys add`), each request but /health and /ready needs one, and sees
only what belongs to its tenant; any other address than this machine's needs them. A key is sent as
`Authorization: Bearer`, `x-api-key` or `x-recto-key`; the last leaves the others to the provider.

Host must be this machine, or listed as `hosts` under [server]; behind keys on another address, any
name does unless some are listed. A request with an Origin is refused unless that is the server.

SIGHUP: the configuration is read again; one that can't be used changes nothing. What needs a
restart is named on stderr. docs/operate.md tells of logs, numbers, traces, reloading and retention.

Ctrl-C or SIGTERM: nothing new is taken, and what runs has `shutdown_seconds` to end; a second one
cuts it at once. What was said until then is kept.";

/// Where to listen, and to whom.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The address to listen at; port 0 is any that is free [default: 127.0.0.1:7676]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Open the server's page in the browser.
    #[arg(long)]
    pub(crate) open: bool,

    /// Keep nothing, and begin with the bundled conversation.
    #[arg(long, conflicts_with = "store")]
    pub(crate) demo: bool,

    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath, help = policy_help())]
    pub(crate) policy: Option<String>,

    /// Take the files of the inspector from this folder instead of the program.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) web_dir: Option<PathBuf>,

    /// Tell of each request on stderr: its route, status, time, tenant, conversation, model and tokens.
    #[arg(long)]
    pub(crate) verbose: bool,

    /// How stderr is written: for people, or one JSON object a line [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = spellings())]
    pub(crate) log_format: Option<Spelling>,

    /// What is said on stderr at least: error, warn or info [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = levels())]
    pub(crate) log_level: Option<Level>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
