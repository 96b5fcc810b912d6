//! The only place that prints: stdout is data, stderr is talk.

use crate::codes::Code;
use crate::failure::Failure;
use crate::paint::Colour;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use terminal_size::{Width, terminal_size_of};

/// How many columns a terminal has that doesn't say.
const WIDTH_USUAL: usize = 80;

/// Writes data to stdout, byte for byte.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// Writes a value to stdout as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    data(format!("{}\n", as_json(value)?).as_bytes())
}

/// Returns a value as one line of JSON, without a line end.
pub(crate) fn as_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::of(Code::Defect, "cannot be written as JSON").because(error.to_string()))
}

/// Writes text for people to stdout, with a line end after it.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    data(format!("{}\n", harmless(text)).as_bytes())
}

/// Writes text of a conversation to stdout, with a line end after it: as it is, but where a terminal would heed it.
pub(crate) fn content(content: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() { text(content) } else { data(format!("{content}\n").as_bytes()) }
}

/// Returns how many columns stdout has, if it is a terminal.
pub(crate) fn width() -> Option<usize> {
    io::stdout()
        .is_terminal()
        .then(|| terminal_size_of(io::stdout()).map_or(WIDTH_USUAL, |(Width(columns), _)| columns.into()))
}

/// Says something on stderr. That nobody listens is no reason to stop.
pub(crate) fn note(text: &str) {
    told(&harmless(text));
}

/// Tells on stderr why a command ends.
pub(crate) fn failure(failure: &Failure, colour: Colour) {
    told(&failure.told(colour.on_stderr()));
}

/// Says on stderr what is safe for a terminal already.
pub(crate) fn told(text: &str) {
    if !text.is_empty() {
        let mut err = io::stderr().lock();
        drop(writeln!(err, "{text}"));
    }
}

/// Returns a text whose control characters are spelled out: names and contents come from files, and must not
/// steer a terminal.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            _ if c.is_control() => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out
}
