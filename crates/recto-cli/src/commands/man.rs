//! `recto man`: manual pages, made from the same words as `--help`.

use crate::args::Cli;
use crate::draft::Draft;
use crate::failure::{Failure, cannot_write};
use crate::talk;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::path::Path;

/// Prints the main page, or writes all pages to a folder.
pub(crate) fn run(dir: Option<&Path>) -> Result<(), Failure> {
    let Some(dir) = dir else { return talk::data(&page(Cli::command())?) };
    fs::create_dir_all(dir).map_err(|error| cannot_write(dir.display(), &error))?;
    let mut all = Cli::command();
    // It hands global options down, and gives every command its whole name.
    all.build();
    let mut commands = Vec::new();
    gather(&all, &mut commands);
    for command in &commands {
        let name = command.get_display_name().unwrap_or("recto");
        let mut draft = Draft::of(&dir.join(format!("{name}.1")))?;
        draft.write(&page((*command).clone())?)?;
        draft.finish()?;
    }
    talk::note(&format!("{} pages written to {}", commands.len(), dir.display()));
    Ok(())
}

/// A command, and those below it.
fn gather<'c>(command: &'c Command, commands: &mut Vec<&'c Command>) {
    commands.push(command);
    command.get_subcommands().for_each(|below| gather(below, commands));
}

/// A page whose prepared text keeps its lines, which a manual would otherwise fill.
fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let prepared = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut page = Vec::new();
    let man =
        Man::new(command.after_help(None::<&str>)).manual("Recto").source(concat!("recto ", env!("CARGO_PKG_VERSION")));
    man.render(&mut page).map_err(|error| Failure::stdout(&error))?;
    if !prepared.is_empty() {
        let lines: Vec<String> = prepared.lines().map(escaped).collect();
        page.extend(format!(".SH NOTES\n.nf\n{}\n.fi\n", lines.join("\n")).into_bytes());
    }
    Ok(page)
}

/// A line that says in roff what it says in text.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    if line.starts_with('.') { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_line_is_taken_for_roff() {
        assert_eq!(escaped(".config 'a' --b \\n `c`"), "\\&.config \\(aqa\\(aq \\-\\-b \\en \\(gac\\(ga");
    }
}
