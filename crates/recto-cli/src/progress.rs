//! How far the work is, for whoever watches.

use crate::talk;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};

/// A bar on stderr, if that is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Returns a bar that expects nothing yet, and counts something.
    pub(crate) fn on_stderr(unit: &str) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress::hidden();
        }
        let style = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {unit}  {{msg}}"));
        Progress { bar: ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())) }
    }

    /// Returns a bar that is never seen.
    pub(crate) fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden() }
    }

    /// Adds what is expected of something that begins now; files are read one by one, so the end moves.
    pub(crate) fn expect(&self, steps: usize, name: &str) {
        self.bar.inc_length(steps as u64);
        self.bar.set_message(talk::harmless(name));
    }

    /// Says how far it is, where the end is not known.
    pub(crate) fn at(&self, steps: u64) {
        self.bar.set_length(steps);
        self.bar.set_position(steps);
    }

    /// Counts one step.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Says something beside the bar.
    pub(crate) fn note(&self, text: &str) {
        self.bar.suspend(|| talk::note(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
