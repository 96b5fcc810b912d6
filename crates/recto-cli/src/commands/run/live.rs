//! What is heard while an answer comes: its words on stdout, everything else on stderr.

use crate::failure::Failure;
use crate::talk;
use recto_engine::drive::Heard;
use std::io::{self, IsTerminal};

/// How much of a call or a result is shown.
const SHOWN_CHARS_MAX: usize = 200;

/// Prints what is heard.
pub(super) struct Live {
    is_quiet: bool,
    is_terminal: bool,
    /// Whether the last word was printed without a line end.
    is_midline: bool,
    /// Why nothing can be printed any more.
    failure: Option<Failure>,
}

impl Live {
    /// Returns one that prints the answer's words, or nothing but notes.
    pub(super) fn new(is_quiet: bool) -> Live {
        Live { is_quiet, is_terminal: io::stdout().is_terminal(), is_midline: false, failure: None }
    }

    /// Prints what is heard.
    pub(super) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Text(text) if !self.is_quiet => self.words(&text),
            Heard::Text(_) | Heard::Reasoning(_) | Heard::Session(_) => {}
            Heard::Call { name, arguments } => self.aside(&format!("calls {name} {}", short(&arguments))),
            Heard::Result { text, is_error } => {
                let what = if is_error { "failed" } else { "came back" };
                self.aside(&format!("{what}: {}", short(&text)));
            }
            Heard::Note(note) => self.aside(&note),
        }
    }

    /// Ends the last line; fails if the answer could not be printed.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.line_end();
        self.failure.map_or(Ok(()), Err)
    }

    fn words(&mut self, text: &str) {
        if self.failure.is_some() || text.is_empty() {
            return;
        }
        let shown = if self.is_terminal { talk::harmless(text) } else { text.to_string() };
        self.is_midline = !text.ends_with('\n');
        self.failure = talk::data(shown.as_bytes()).err();
    }

    /// Says something that is not part of the answer; what comes after it begins a new line.
    fn aside(&mut self, text: &str) {
        self.line_end();
        talk::note(text);
    }

    fn line_end(&mut self) {
        if self.is_midline && self.failure.is_none() {
            self.is_midline = false;
            self.failure = talk::data(b"\n").err();
        }
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
