//! `recto completions`: scripts that complete commands and options in a shell.

use crate::args::Cli;
use crate::failure::Failure;
use crate::talk;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the script for a shell.
pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "recto", &mut script);
    talk::data(&script)
}
