//! What is said now, and when.

use super::{Given, Render};
use crate::error::Error;
use crate::forging::{Delimiters, Woven};
use serde::{Deserialize, Serialize};

/// What is said now, and when: the input, or the last words of the log that wait for an answer. It is never cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {}

impl Render for Moment {
    fn name(&self) -> &str {
        "this_moment"
    }

    fn explained(&self) -> Option<&str> {
        Some("what time it is for the person, and in <human_input> what they say now. Answer that.")
    }

    fn delimiters(&self, known: Delimiters) -> Delimiters {
        known.with_fence("current_time").with_fence("human_input")
    }

    fn render(&self, given: &Given<'_>) -> Result<Option<Woven>, Error> {
        let mut woven = Woven::default();
        if let Some(time) = given.now().and_then(|now| given.facts.zone.second(now)) {
            woven.ours(&format!("<current_time>{time}</current_time>\n"));
        }
        woven.ours("<human_input>\n");
        woven.theirs(given.asked.map_or("", |asked| &asked.text));
        woven.ours("\n</human_input>");
        Ok(Some(woven))
    }
}
