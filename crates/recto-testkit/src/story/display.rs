//! A story as text: its settings, its policy as a file, then one line for each event.

use super::{Event, Story, Words};
use std::fmt::{Display, Formatter, Result};

const TEXT_CHARS_MAX: usize = 40;

impl Display for Story {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let Story { window, reserve, overhead, remembers, takes_reasoning, has_fragments, .. } = self;
        writeln!(out, "window {window}, reserve {reserve}, overhead {overhead} a message, {:?}", self.manner)?;
        writeln!(out, "remembers {remembers} ({:?}), reasoning {takes_reasoning}", self.instructions)?;
        writeln!(out, "fragments {has_fragments}")?;
        for line in self.policy.to_toml().lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            writeln!(out, "  {line}")?;
        }
        for (nth, event) in self.events.iter().enumerate() {
            writeln!(out, "{nth:>3}  {event}")?;
        }
        Ok(())
    }
}

impl Display for Event {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Event::System(words) => write!(out, "system {words}"),
            Event::User(words) => write!(out, "user {words}"),
            Event::Say { words, thought, status } => {
                write!(out, "assistant {words}")?;
                thought.iter().try_for_each(|thought| write!(out, ", reasoning {thought}"))?;
                write!(out, ", {status:?}")
            }
            Event::Step { words, calls, status, trace } => {
                write!(out, "assistant {words} calls tools with")?;
                calls.iter().try_for_each(|arguments| write!(out, " {arguments}"))?;
                write!(out, ", {status:?}")?;
                trace.iter().try_for_each(|run| write!(out, ", trace of run {run}"))
            }
            Event::Result { back, words, is_error, with_another } => {
                let kind = if *is_error { "error" } else { "result" };
                let times = if *with_another { ", twice" } else { "" };
                write!(out, "{kind} of the newest call but {back}: {words}{times}")
            }
            Event::AllResults(words) => write!(out, "results of all open calls: {words}"),
            Event::Orphan(words) => write!(out, "result without a call: {words}"),
            Event::Edge(words) => write!(out, "user starts over: {words}"),
            Event::Aside { section, words, covers } => {
                write!(out, "section {section}: {words}")?;
                covers.iter().try_for_each(|back| write!(out, ", covers all but the newest {back}"))
            }
            Event::Picture => write!(out, "user sends an image"),
            Event::Pin { back } => write!(out, "pin the newest entry but {back}"),
            Event::Revert => write!(out, "revert the newest decision"),
            Event::Call { input, succeeds } => {
                write!(out, "call the model")?;
                input.iter().try_for_each(|input| write!(out, " with input {input}"))?;
                if *succeeds { Ok(()) } else { write!(out, ", which fails") }
            }
        }
    }
}

impl Display for Words {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let chars = self.text.chars().count();
        let start: String = self.text.chars().take(TEXT_CHARS_MAX).collect();
        let rest = if chars > TEXT_CHARS_MAX { format!("… ({chars} characters)") } else { String::new() };
        let secret = if self.has_secret { " + secret" } else { "" };
        write!(out, "{start:?}{rest}{secret}")
    }
}
