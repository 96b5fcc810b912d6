//! Colour, where it is wanted: it repeats what the words say, and never stands alone.

use recto::receipt::Fate;
use std::env;
use std::io::{self, IsTerminal};

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const CYAN: &str = "\u{1b}[36m";
const FAINT: &str = "\u{1b}[2m";
const BOLD_RED: &str = "\u{1b}[1;31m";
const PLAIN: &str = "\u{1b}[0m";

/// Words for the fate of an entry in a receipt.
pub(crate) const FATES: [(&str, Fate); 3] =
    [("shown", Fate::Shown), ("changed", Fate::Changed), ("not shown", Fate::NotShown)];

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colour {
    /// On a terminal.
    #[default]
    Auto,
    /// In pipes and files, too.
    Always,
    Never,
}

/// Whether to colour what goes to one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Colour {
    /// The spellings in a configuration file.
    pub(crate) const NAMES: [(&str, Colour); 3] =
        [("auto", Colour::Auto), ("always", Colour::Always), ("never", Colour::Never)];

    /// Returns how it is spelled.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Colour::Auto => "auto",
            Colour::Always => "always",
            Colour::Never => "never",
        }
    }

    /// Returns whether to colour stdout.
    pub(crate) fn on_stdout(self) -> Paint {
        self.on(io::stdout().is_terminal())
    }

    /// Returns whether to colour stderr.
    pub(crate) fn on_stderr(self) -> Paint {
        self.on(io::stderr().is_terminal())
    }

    fn on(self, is_terminal: bool) -> Paint {
        let is_wanted = match self {
            Colour::Auto => is_terminal,
            Colour::Always => true,
            Colour::Never => false,
        };
        Paint { is_on: is_wanted && forbidden_by().is_none() }
    }
}

/// Returns the variable that forbids colour, if one does.
pub(crate) fn forbidden_by() -> Option<&'static str> {
    if env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return Some("NO_COLOR");
    }
    env::var_os("TERM").is_some_and(|value| value == "dumb").then_some("TERM")
}

impl Paint {
    /// Returns whether there is any colour.
    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    /// Colours the label of an error.
    pub(crate) fn error(self, label: &str) -> String {
        self.with(BOLD_RED, label)
    }

    /// Colours the label of a hint.
    pub(crate) fn hint(self, label: &str) -> String {
        self.with(CYAN, label)
    }

    /// Colours what is in one of three states, as the fates of entries are.
    pub(crate) fn state(self, state: Fate, text: &str) -> String {
        let colour = match state {
            Fate::Shown => GREEN,
            Fate::Changed => YELLOW,
            Fate::NotShown => RED,
        };
        self.with(colour, text)
    }

    /// Colours what only carries words.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with(FAINT, text)
    }

    /// Colours what a number is drawn as.
    pub(crate) fn number(self, text: &str) -> String {
        self.with(CYAN, text)
    }

    /// Colours the words under `fate` in the table of a receipt; `fold` makes the lines of a line.
    pub(crate) fn fates(self, receipt: &str, fold: impl Fn(&str) -> Vec<String>) -> String {
        let mut at = None;
        let mut lines = Vec::new();
        for line in receipt.lines() {
            let mut folded = fold(line);
            if let (Some(column), Some(first)) = (at, folded.first_mut()) {
                *first = self.fate(first, column);
            }
            lines.append(&mut folded);
            if at.is_none() && line.trim_start().starts_with("entries ") {
                at = line.find(" fate ").map(|space| space + 1);
            }
        }
        lines.join("\n")
    }

    fn fate(self, line: &str, column: usize) -> String {
        let Some((start, _)) = line.char_indices().nth(column) else { return line.into() };
        let (before, rest) = line.split_at(start);
        let told = FATES
            .iter()
            .find(|(word, _)| rest.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')));
        match told {
            Some((word, fate)) => format!("{before}{}{}", self.state(*fate, word), &rest[word.len()..]),
            None => line.into(),
        }
    }

    fn with(self, colour: &str, text: &str) -> String {
        if self.is_on { format!("{colour}{text}{PLAIN}") } else { text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_under_fate_are_coloured() {
        let receipt = "page  shown\n  entries   fate       tokens  why\n  #0–9      not shown       1  shown \n  \
                       #10       shown           2  changed \n  page 1";
        let as_it_is = |line: &str| vec![line.to_string()];
        let painted = Paint { is_on: true }.fates(receipt, as_it_is);
        let expected = receipt.replacen("not shown ", "\u{1b}[31mnot shown\u{1b}[0m ", 1).replacen(
            "  shown           2",
            "  \u{1b}[32mshown\u{1b}[0m           2",
            1,
        );
        assert_eq!(painted, expected);
        assert_eq!(Paint { is_on: false }.fates(receipt, as_it_is), receipt);
    }
}
