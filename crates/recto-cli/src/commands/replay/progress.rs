//! How far a replay is, for whoever watches.

use crate::talk;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};

/// A bar on stderr, if that is a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Returns a bar that expects nothing yet.
    pub(super) fn on_stderr() -> Progress {
        if !io::stderr().is_terminal() {
            return Progress::hidden();
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} turns  {msg}");
        Progress { bar: ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())) }
    }

    /// Returns a bar that is never seen.
    pub(super) fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden() }
    }

    /// Adds the turns of a conversation that begins now; files are read one by one, so the end moves.
    pub(super) fn expect(&self, turns: usize, name: &str) {
        self.bar.inc_length(turns as u64);
        self.bar.set_message(talk::harmless(name));
    }

    /// Counts one turn.
    pub(super) fn step(&self) {
        self.bar.inc(1);
    }

    /// Says something beside the bar.
    pub(super) fn note(&self, text: &str) {
        self.bar.suspend(|| talk::note(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
