//! The command line, read: what was asked for, or the answer to `--help`, `--version` and wrong usage.

use crate::args::Cli;
use crate::codes::Code;
use crate::config::Config;
use crate::paint::Paint;
use crate::talk;
use clap::builder::StyledStr;
use clap::error::ErrorKind;
use clap::{Error, Parser};
use std::process::ExitCode;

/// Returns what was asked for, or the exit code if that is answered already.
pub(crate) fn parsed() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| answered(&error))
}

fn answered(error: &Error) -> ExitCode {
    // A broken configuration must not stand in the way of an answer.
    let colour = Config::load(None).unwrap_or_default().colour().value;
    if !error.use_stderr() {
        let text = shown(&error.render(), colour.on_stdout());
        return match talk::data(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                talk::failure(&failure, colour);
                failure.exit_code()
            }
        };
    }
    let code = code(error.kind());
    let paint = colour.on_stderr();
    let text = shown(&error.render(), paint);
    let told = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("{}\n\n{} no command was given", text.trim_end(), paint.error(&format!("error[{code}]:")))
        }
        _ => text.trim_end().replacen("error:", &format!("error[{code}]:"), 1),
    };
    talk::told(&told);
    ExitCode::from(code.exit_code())
}

fn code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::TooFewValues
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Code::MissingArgument,
        ErrorKind::ArgumentConflict => Code::Conflict,
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => Code::UnknownArgument,
        _ => Code::BadValue,
    }
}

/// Returns a prepared text, with its colours if they are wanted.
pub(crate) fn shown(text: &StyledStr, paint: Paint) -> String {
    if paint.is_on() { text.ansi().to_string() } else { text.to_string() }
}
