//! `recto mcp`: the store, for an agent's program that speaks the Model Context Protocol.

use crate::args::McpArgs;
use crate::config::Config;
use crate::failure::{Failure, cannot_start};
use crate::kept::Kept;
use crate::server;
use std::time::Duration;
use tokio::runtime::Builder;

/// How long reading from stdin may take to end.
const LEFTOVERS_TIME_MAX: Duration = Duration::from_millis(100);

/// Answers messages on stdin until there are no more.
pub(crate) fn run(args: &McpArgs, config: &Config) -> Result<(), Failure> {
    let engine = Kept::open(&args.store, config)?.showing_summaries(config).engine;
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(|error| cannot_start(&error))?;
    let done = runtime.block_on(server::converse(engine, config.clone()));
    runtime.shutdown_timeout(LEFTOVERS_TIME_MAX);
    done
}
