//! The `recto` command: compiles, explains and replays agent histories.

// In the order the data flows.
mod args; // what can be asked for
mod settings; // the model, its window and the policy, by name
mod source; // files and stdin, read as named conversations
mod subject; // one conversation, counted, and the page that was asked for

mod commands; // one file each: arguments, one call, print

mod draft; // a file that is there whole or not at all
mod interrupt; // Ctrl-C
mod nearest; // what was probably meant
mod talk; // stdout is data, stderr is talk

mod failure; // what went wrong, and the exit code

use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    match interrupt::watch().and_then(|()| run(&cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            talk::note(&failure.to_string());
            failure.exit_code()
        }
    }
}

fn run(command: &args::Command) -> Result<(), Failure> {
    match command {
        args::Command::Compile(args) => commands::compile::run(args),
        args::Command::Explain(args) => commands::explain::run(args),
        args::Command::Replay(args) => commands::replay::run(args),
        args::Command::Demo => commands::demo::run(),
    }
}
