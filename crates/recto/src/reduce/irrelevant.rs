//! Irrelevant: old results that nobody speaks of any more go.
//!
//! A result that is older than `after` calls is compared with what was said lately: the users' last words, and the words
//! and calls of the newest messages and steps behind it. The measure is how many of the distinct longer words of the
//! shorter side stand on the other. Where that is less than the threshold, the result becomes a stub. Results of tools
//! don't count as talk, so one result can't keep another on the page. Words are compared as they are written, and all
//! count the same: it is a cheap guess, and should run behind the passes that know more.
//!
//! It must not run where the model comes back to old results without naming anything in them. An entry whose own expiry
//! says never is left alone.

use super::Reduce;
use super::stub::{MINIMUM, Stub, What, Whole, whole};
use super::words::words;
use crate::edit::{Edit, Reason, Turn};
use crate::entry::{ExpiryAction, Part, Role, Seq};
use crate::error::Error;
use crate::item::result_text;
use crate::policy::Pass;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

const NAME: &str = "irrelevant";
/// Shorter words say too little about what a text is about.
const WORD_CHARS_MIN: usize = 4;
/// How far back what was said lately may lie, in entries.
const ENTRIES_MAX: usize = 4_096;

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Irrelevant {
    /// A result is looked at when it is older than this many of the reader's acknowledged calls.
    pub after: u32,
    /// How much it must have in common with what was said lately: 1 is all of it.
    pub threshold: f64,
    /// How many of the newest messages and steps are what was said lately.
    pub recent: usize,
    /// How many of its first characters stay.
    pub first_chars: u32,
    /// Results that cost less are left alone.
    pub minimum: Tokens,
}

impl Default for Irrelevant {
    fn default() -> Irrelevant {
        Irrelevant { after: 4, threshold: 0.3, recent: 10, first_chars: 0, minimum: MINIMUM }
    }
}

impl Reduce for Irrelevant {
    fn name(&self) -> &str {
        NAME
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let candidates = whole(view).into_iter().filter(|it| {
            let never = it.entry.original().expiry.is_some_and(|own| own.action == ExpiryAction::Never);
            let is_old = request.reader.age_of(it.at()) > u64::from(self.after);
            is_old && !never && it.cost >= self.minimum && it.may_change(request)
        });
        let mut candidates = candidates.peekable();
        if candidates.peek().is_none() {
            return Vec::new();
        }
        let lately = self.lately(request);
        candidates.filter_map(|it| self.forgotten(&it, &lately, view, request)).collect()
    }

    fn check(&self) -> Result<(), Error> {
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            let what = format!("irrelevant: threshold is {}", self.threshold);
            return Err(Error::settings(what, "a number above 0 and up to 1: how much must be in common"));
        }
        match self.recent {
            0 => Err(Error::settings("irrelevant: recent is 0", "say how many messages are what was said lately")),
            _ => Ok(()),
        }
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Irrelevant(self.clone()))
    }
}

/// What was said lately: the words of each message, and where it stands.
struct Lately {
    talk: Vec<(Seq, HashSet<u64>)>,
    /// What the user wants, which counts wherever it stands.
    asked: HashSet<u64>,
}

impl Irrelevant {
    /// Reads it from the log, so that it is the same whatever of it is on the page.
    fn lately(&self, request: &Request<'_>) -> Lately {
        let words = |parts: &[Part]| parts.iter().flat_map(said).collect::<HashSet<u64>>();
        let talk = request.log.back().take(ENTRIES_MAX).filter(|entry| entry.original().section.is_messages());
        let talk = talk.filter(|entry| matches!(entry.role(), Role::User | Role::Assistant)).take(self.recent);
        let last = request.log.back_by(Role::User).next();
        let asked = last.into_iter().chain(request.input).flat_map(|entry| words(entry.shown())).collect();
        Lately { talk: talk.map(|entry| (entry.seq, words(entry.shown()))).collect(), asked }
    }

    /// The edit of a result that has too little in common with what was said lately.
    fn forgotten(&self, it: &Whole<'_, '_>, lately: &Lately, view: &View<'_>, request: &Request<'_>) -> Option<Edit> {
        let behind = lately.talk.iter().filter(|(seq, _)| *seq > it.item.seq());
        let talk: HashSet<u64> = behind.flat_map(|(_, words)| words).chain(&lately.asked).copied().collect();
        let own: HashSet<u64> = longer(&result_text(it.result())).collect();
        let both = own.intersection(&talk).count() as f64;
        let share = both / own.len().min(talk.len()).max(1) as f64;
        // Where nothing was said, or there are no words to compare, nothing follows.
        if own.is_empty() || talk.is_empty() || share >= self.threshold {
            return None;
        }
        let (age, since) = (request.reader.age_of(it.at()), request.reader.since(it.at()));
        let why = Reason::Irrelevant { age, percent: (share * 100.0) as u32 };
        let due = Some(Turn(since.0 + u64::from(self.after) + 1));
        let what = What("not spoken of lately", None);
        it.stub(Stub { by: NAME.into(), why, what, head: self.first_chars as usize, due }, view)
    }
}

/// The longer words of what a part says or asks for; of a tool's result none.
fn said(part: &Part) -> Vec<u64> {
    match part {
        Part::Text { text } => longer(text).collect(),
        Part::Reasoning(it) => longer(&it.text).collect(),
        Part::Call(call) => longer(call.arguments.as_str()).collect(),
        _ => Vec::new(),
    }
}

fn longer(text: &str) -> impl Iterator<Item = u64> {
    words(text).filter(|(_, chars)| *chars >= WORD_CHARS_MIN).map(|(word, _)| word)
}
