//! The `recto` command: compiles, explains, replays and keeps agent histories.

// In the order the data flows.
mod args; // what can be asked for
mod usage; // reads the command line, and answers --help, --version and wrong usage
mod config; // recto.toml: what need not be asked for each time
mod models; // what is known about models
mod settings; // the model, its window and the policy, by name
mod source; // files and stdin, read as named conversations
mod kept; // the store, opened in one place
mod beside; // what a transcript has beside its entries
mod programs; // programs that keep conversations of their own
mod aging; // what is too old
mod subject; // one conversation, counted, and the page that was asked for

mod body; // request bodies, checked before anybody sees them

mod server; // the gateway over HTTP

mod commands; // one file each: arguments, one call, print

mod entries; // what entries say, for people
mod clock; // what time it is, and dates
mod draft; // a file that is there whole or not at all
mod interrupt; // Ctrl-C
mod progress; // how far the work is
mod paint; // colour, where it is wanted
mod table; // text in columns
mod talk; // stdout is data, stderr is talk

mod codes; // what can go wrong, with codes that stay
mod failure; // what went wrong, and the exit code

use args::{Cli, Command};
use config::Config;
use failure::Failure;
use paint::Colour;
use std::process::ExitCode;

/// A server allocates all the time, on several threads at once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match usage::parsed() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let config = match interrupt::watch().and_then(|()| configured(&cli)) {
        Ok(config) => config,
        Err(failure) => return ended(&failure, Colour::Auto),
    };
    match run(&cli.command, &config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ended(&failure, config.colour().value),
    }
}

/// Reads the configuration. Commands that need nothing of it but its colour must work when it is broken: they tell how
/// to mend it.
fn configured(cli: &Cli) -> Result<Config, Failure> {
    match cli.command {
        Command::Compile(_)
        | Command::Explain(_)
        | Command::Replay(_)
        | Command::Convert(_)
        | Command::Run(_)
        | Command::Serve(_)
        | Command::Keys { .. }
        | Command::Import(_)
        | Command::List(_)
        | Command::Search(_)
        | Command::Show(_)
        | Command::Turns(_)
        | Command::Summarize(_)
        | Command::Expand(_)
        | Command::Pin(_)
        | Command::Decisions(_)
        | Command::Revert(_)
        | Command::Fork(_)
        | Command::Export(_)
        | Command::Erase(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Doctor(_)
        | Command::Migrate(_)
        | Command::Models(_)
        | Command::Config(_) => Config::load(cli.config.as_deref()),
        #[cfg(feature = "mcp")]
        Command::Mcp(_) => Config::load(cli.config.as_deref()),
        Command::Validate(_)
        | Command::Demo
        | Command::Policy { .. }
        | Command::Completions { .. }
        | Command::Man { .. }
        | Command::Help { .. } => Ok(Config::load(cli.config.as_deref()).unwrap_or_default()),
    }
}

fn run(command: &Command, config: &Config) -> Result<(), Failure> {
    match command {
        Command::Compile(args) => commands::compile::run(args, config),
        Command::Explain(args) => commands::explain::run(args, config),
        Command::Replay(args) => commands::replay::run(args, config),
        Command::Convert(args) => commands::convert::run(args, config),
        Command::Validate(args) => commands::validate::run(args),
        Command::Run(args) => commands::run::run(args, config),
        Command::Serve(args) => commands::serve::run(args, config),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => commands::mcp::run(args, config),
        Command::Keys { command } => commands::keys::run(command, config),
        Command::Import(args) => commands::import::run(args, config),
        Command::List(args) => commands::list::run(args, config),
        Command::Search(args) => commands::search::run(args, config),
        Command::Show(args) => commands::show::run(args, config),
        Command::Turns(args) => commands::turns::run(args, config),
        Command::Summarize(args) => commands::summarize::run(args, config),
        Command::Expand(args) => commands::expand::run(args, config),
        Command::Pin(args) => commands::pin::run(args, config),
        Command::Decisions(args) => commands::decisions::run(args, config),
        Command::Revert(args) => commands::revert::run(args, config),
        Command::Fork(args) => commands::fork::run(args, config),
        Command::Export(args) => commands::export::run(args, config),
        Command::Erase(args) => commands::erase::run(args, config),
        Command::Backup(args) => commands::backup::run(args, config),
        Command::Restore(args) => commands::restore::run(args, config),
        Command::Doctor(args) => commands::doctor::run(args, config),
        Command::Migrate(args) => commands::migrate::run(args),
        Command::Models(args) => commands::models::run(args, config),
        Command::Demo => commands::demo::run(),
        Command::Config(args) => commands::config::run(args, config),
        Command::Policy { command } => commands::policy::run(command),
        Command::Completions { shell } => commands::completions::run(*shell),
        Command::Man { dir } => commands::man::run(dir.as_deref()),
        Command::Help { topic } => commands::help::run(topic.as_deref(), config),
    }
}

fn ended(failure: &Failure, colour: Colour) -> ExitCode {
    talk::failure(failure, colour);
    failure.exit_code()
}
