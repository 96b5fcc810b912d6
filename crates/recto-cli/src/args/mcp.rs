//! The store for agents' programs.

use super::stored::StoreArgs;
use clap::Args;

pub(super) const MCP_AFTER_HELP: &str = "\
Examples:
  claude mcp add recto -- recto mcp
  codex mcp add recto -- recto mcp
  recto mcp --store team.db

It speaks the Model Context Protocol on stdin and stdout, until stdin ends. An agent's program starts
it; docs/mcp.md has the lines for its configuration. `recto serve` offers the same at /mcp.

Its tools change nothing, and their answers hold no secrets:
  list     the conversations that are kept
  read     entries of a conversation, or the page that a model was sent
  search   what was said about something, in one conversation or in all
  expand   what a page shortened or left out, by its handle
  explain  the receipt of a call: what was shown, shortened or left out, why, and what it cost

What others said stands between <untrusted> and </untrusted>. A longer answer says how to go on.
Messages that can't be read are refused, and told on stderr.";

/// Which store.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
