//! `recto help`: help on a command, or on an error code.

use crate::args::Cli;
use crate::codes::{Code, Meaning, TABLE};
use crate::config::Config;
use crate::failure::Failure;
use crate::table::{self, Side};
use crate::{talk, usage};
use clap::{CommandFactory, Parser};

/// Prints help on what was asked for, or on everything.
pub(crate) fn run(topic: Option<&str>, config: &Config) -> Result<(), Failure> {
    match topic {
        None => command_help(&["recto", "--help"], config),
        Some("errors") => talk::text(&errors()),
        Some(topic) => match Meaning::of(topic) {
            Some(meaning) => talk::text(&meaning.to_string()),
            None => on_command(topic, config),
        },
    }
}

fn on_command(topic: &str, config: &Config) -> Result<(), Failure> {
    let all = Cli::command();
    if all.find_subcommand(topic).is_some() {
        return command_help(&["recto", topic, "--help"], config);
    }
    let codes: Vec<String> = TABLE.iter().map(Meaning::code).collect();
    let names = all.get_subcommands().map(clap::Command::get_name).chain(["errors"]);
    let known: Vec<&str> = names.chain(codes.iter().map(String::as_str)).collect();
    Err(Failure::of(Code::UnknownArgument, format!("no help on {topic:?}"))
        .suggesting(topic, known)
        .hinting("`recto help` lists the commands, `recto help errors` the error codes"))
}

/// Prints what a command line that asks for help is answered with.
fn command_help(line: &[&str], config: &Config) -> Result<(), Failure> {
    match Cli::try_parse_from(line) {
        Ok(_) => Ok(()),
        Err(answer) => talk::data(usage::shown(&answer.render(), config.colour().value.on_stdout()).as_bytes()),
    }
}

fn errors() -> String {
    let mut rows = vec![["code", "exit", "title"].map(String::from)];
    rows.extend(TABLE.iter().map(|it| [it.code(), it.exit_code().to_string(), it.title.into()]));
    let lines = table::aligned(&rows, [Side::Left, Side::Right, Side::Left]);
    format!("{lines}\n\n`recto help CODE` explains one, with an example and what to do.")
}
