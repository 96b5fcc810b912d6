//! What was said before.

use super::{Given, Past, Render, Said, Used, Who, Zone};
use crate::entry::Text;
use crate::error::Error;
use crate::forging::{DOTS, Delimiters, Woven};
use crate::note::one_line;
use serde::{Deserialize, Serialize};

/// What the words of the host are called among the others.
pub(super) const HOST: &str = "Note";
/// What a call is called.
const TOOL_USE: &str = "tool_use";
/// The most entries that a block may show.
const ENTRIES_MAX: usize = 10_000;

/// What was said before, as one text, from what this reader would see: after decisions, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SharedMemory {
    /// How many entries are shown, once what belongs together is one; what is pinned, and what the host wrote, stands
    /// beside them.
    pub limit: usize,
    /// How many characters an entry may have; dots stand for the rest.
    pub chars: usize,
    /// What belongs together.
    pub merge: Merge,
    /// What the human is called.
    pub human: Text,
    /// What the model is called.
    pub model: Text,
    /// What stands above it.
    pub heading: Text,
    /// What stands there if nothing was said.
    pub empty: Text,
    /// Whether the tag says how many entries there are. Then the block changes from its first line on at every call.
    pub counts: bool,
    /// What stands for a time that nobody knows; without it, nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_time: Option<Text>,
}

/// What of a model's words is one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// What it said in one run; what has no run is an entry of its own.
    Run,
    /// The same; and of what has no run, what it said to one message of the human.
    #[default]
    Exchange,
}

impl Default for SharedMemory {
    fn default() -> SharedMemory {
        SharedMemory {
            limit: 40,
            chars: 2_000,
            merge: Merge::Exchange,
            human: "Human".into(),
            model: "Assistant".into(),
            heading: "What was said before:".into(),
            empty: "(Nothing yet.)".into(),
            counts: false,
            unknown_time: None,
        }
    }
}

impl Render for SharedMemory {
    fn name(&self) -> &str {
        "shared_memory"
    }

    fn explained(&self) -> Option<&str> {
        Some("what was said before, oldest first, and which tools you used. It is over; answer what is said now.")
    }

    fn attributes(&self, given: &Given<'_>) -> String {
        if self.counts { format!(" count={}", given.past.len()) } else { String::new() }
    }

    fn delimiters(&self, known: Delimiters) -> Delimiters {
        known.with_speaker(&self.human).with_speaker(&self.model).with_speaker(HOST).with_word(TOOL_USE)
    }

    fn check(&self) -> Result<(), Error> {
        let refused = |what: String, hint: &str| Err(Error::settings(format!("block shared_memory: {what}"), hint));
        if self.limit == 0 || self.limit > ENTRIES_MAX {
            return refused(format!("limit is {}", self.limit), "show at least one entry, and at most 10000");
        }
        if self.chars <= DOTS.len() {
            return refused(format!("chars is {}", self.chars), "an entry needs room for more than three dots");
        }
        let is_name = |name: &str| !name.trim().is_empty() && !name.contains(['\n', ':', '[']);
        if !is_name(&self.human) || !is_name(&self.model) || self.human == self.model {
            return refused(
                "human and model".into(),
                "give the two names of their own, on one line and without a colon",
            );
        }
        Ok(())
    }

    fn render(&self, given: &Given<'_>) -> Result<Option<Woven>, Error> {
        let mut woven = Woven::default();
        woven.ours(&format!("{}\n\n", self.heading));
        if given.past.is_empty() {
            woven.ours(&self.empty);
        }
        let mut before = None;
        for (at, past) in given.past.iter().enumerate() {
            woven.ours(if at == 0 { "" } else { "\n" });
            self.entry(&mut woven, past, before, &given.facts.zone);
            before = Some(past.who);
        }
        Ok(Some(woven))
    }
}

impl SharedMemory {
    fn entry(&self, woven: &mut Woven, past: &Past, before: Option<Who>, zone: &Zone) {
        let name = match past.who {
            Who::Human => &*self.human,
            Who::Model => &*self.model,
            Who::Host => HOST,
        };
        if past.who == Who::Model && before == Some(Who::Human) {
            woven.ours(&format!("  {name}: "));
        } else {
            let time = past.at.and_then(|at| zone.minute(at));
            match time.as_deref().or(self.unknown_time.as_deref()) {
                Some(time) => woven.ours(&format!("[{time}] {name}: ")),
                None => woven.ours(&format!("{name}: ")),
            }
        }
        let pieces: Vec<Woven> = past.said.iter().map(|said| self.piece(said)).collect();
        let lengths: Vec<usize> = pieces.iter().map(|piece| piece.as_str().chars().count()).collect();
        let whole = lengths.iter().sum::<usize>() + lengths.len().saturating_sub(1);
        let mut left = if whole > self.chars { self.chars - DOTS.len() } else { usize::MAX };
        for (at, (piece, length)) in pieces.iter().zip(&lengths).enumerate() {
            let between = usize::from(at > 0);
            if length + between <= left {
                woven.ours(if at > 0 { "\n" } else { "" });
                woven.add(piece);
                left = left.saturating_sub(length + between);
                continue;
            }
            // Words are cut where they are; a call is told, or it isn't.
            if let (Said::Words(text), true) = (&past.said[at], left > between) {
                woven.ours(if at > 0 { "\n" } else { "" });
                woven.theirs(&text.chars().take(left - between).collect::<String>());
            }
            woven.ours(DOTS);
            break;
        }
    }

    fn piece(&self, said: &Said) -> Woven {
        let mut woven = Woven::default();
        match said {
            Said::Words(text) => woven.theirs(text),
            Said::Calls(used) => {
                for (at, Used { name, argument }) in used.iter().enumerate() {
                    woven.ours(if at == 0 { "[" } else { "; " });
                    woven.ours(&format!("{TOOL_USE}:"));
                    woven.theirs(&one_line(name));
                    if let Some((key, value)) = argument {
                        woven.ours(", ");
                        woven.theirs(&one_line(key));
                        woven.ours(":");
                        woven.theirs(&one_line(value).chars().take(self.chars).collect::<String>());
                    }
                }
                woven.ours("]");
            }
        }
        woven
    }
}
