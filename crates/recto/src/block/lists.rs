//! Blocks that list what the host knows.

use super::{Facts, Given, Render, TodoState};
use crate::entry::Text;
use crate::error::Error;
use crate::forging::Woven;
use serde::{Deserialize, Serialize};

/// Defines a block with a heading, over a function from facts to what stands below it.
macro_rules! listed {
    ($kind:ident, $name:literal, $about:literal, $heading:literal, $explained:literal, $body:ident) => {
        #[doc = $about]
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $kind {
            /// What stands above it.
            pub heading: Text,
        }

        impl Default for $kind {
            fn default() -> $kind {
                $kind { heading: $heading.into() }
            }
        }

        impl Render for $kind {
            fn name(&self) -> &str {
                $name
            }

            fn explained(&self) -> Option<&str> {
                Some($explained)
            }

            fn render(&self, given: &Given<'_>) -> Result<Option<Woven>, Error> {
                let Some(body) = $body(given.facts) else { return Ok(None) };
                let mut woven = Woven::default();
                woven.ours(&self.heading);
                woven.add(&body);
                Ok(Some(woven))
            }
        }
    };
}

listed!(
    Mood,
    "mood",
    "How the human seems to feel.",
    "How this person seems to feel:",
    "how the person seems to feel. It is a guess.",
    mood
);
listed!(
    Constraints,
    "constraints",
    "What the answer must keep to.",
    "Your answer keeps to all of these:",
    "what your answer must keep to.",
    constraints
);
listed!(
    Todos,
    "todos",
    "What is to be done.",
    "What is to be done ([ ] open, [~] under way, [x] done):",
    "what is to be done, and how far it is.",
    todos
);
listed!(
    ResponseContext,
    "response_context",
    "To whom the answer goes.",
    "Your response will be sent to ",
    "to whom your answer goes.",
    responding_to
);
listed!(
    Delegations,
    "delegations",
    "Who works on something for this agent.",
    "You have delegations to ",
    "agents that work on something for you.",
    delegations
);
listed!(
    Nudge,
    "nudge",
    "What somebody wants the model to mind.",
    "Please mind:",
    "a reminder for this answer.",
    nudges
);

fn mood(facts: &Facts) -> Option<Woven> {
    let mood = facts.mood.as_deref().filter(|mood| !mood.trim().is_empty())?;
    Some(below([("", mood)]))
}

fn constraints(facts: &Facts) -> Option<Woven> {
    (!facts.constraints.is_empty()).then(|| below(facts.constraints.iter().map(|it| ("- ", &**it))))
}

fn todos(facts: &Facts) -> Option<Woven> {
    let mark = |state| match state {
        TodoState::Open => "- [ ] ",
        TodoState::Started => "- [~] ",
        TodoState::Done => "- [x] ",
    };
    (!facts.todos.is_empty()).then(|| below(facts.todos.iter().map(|it| (mark(it.state), &*it.text))))
}

fn nudges(facts: &Facts) -> Option<Woven> {
    (!facts.nudges.is_empty()).then(|| below(facts.nudges.iter().map(|it| ("- ", &**it))))
}

fn responding_to(facts: &Facts) -> Option<Woven> {
    let to = facts.responding_to.as_ref().filter(|to| !to.trim().is_empty())?;
    Some(in_line(std::slice::from_ref(to)))
}

fn delegations(facts: &Facts) -> Option<Woven> {
    (!facts.delegations.is_empty()).then(|| in_line(&facts.delegations))
}

/// One below the other; what has several lines is moved in, so that it can't begin an item.
fn below<'t>(items: impl IntoIterator<Item = (&'static str, &'t str)>) -> Woven {
    let mut woven = Woven::default();
    woven.ours("\n");
    for (mark, text) in items {
        woven.ours("\n");
        woven.ours(mark);
        moved_in(&mut woven, text);
    }
    woven
}

/// One behind the other.
fn in_line(items: &[Text]) -> Woven {
    let mut woven = Woven::default();
    for (at, item) in items.iter().enumerate() {
        woven.ours(if at == 0 { "" } else { ", " });
        woven.theirs(&crate::note::one_line(item));
    }
    woven
}

/// Adds a text whose lines, but for the first, begin with two spaces.
pub(super) fn moved_in(woven: &mut Woven, text: &str) {
    for (at, line) in text.trim().lines().enumerate() {
        woven.ours(if at == 0 { "" } else { "\n  " });
        woven.theirs(line);
    }
}
