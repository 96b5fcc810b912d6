//! Questions asked after a finished conversation, answered from what comes back alone.

use super::recalled;
use crate::compile::{Compiled, compile};
use crate::entry::Entry;
use crate::error::Error;
use crate::log::{Counted, Log};
use crate::plan::plan;
use crate::policy::Policy;
use crate::reader::Reader;
use crate::recall::{Recall, Shelf, Within};
use crate::reduce::{Grain, TokenLimit};
use crate::request::Request;
use crate::target::Target;
use crate::tokens::Tokens;

/// A finished conversation of which nothing is on the page but what a question brings back: a measure of recall alone.
#[derive(Debug)]
pub struct Questions<'a> {
    log: &'a Log,
    target: &'a Target,
    entries: Vec<&'a Counted>,
    shelf: Shelf<'a>,
}

impl<'a> Questions<'a> {
    /// Returns a conversation that can be asked.
    pub fn about(log: &'a Log, target: &'a Target) -> Questions<'a> {
        let mut entries: Vec<&Counted> = log.back().collect();
        entries.reverse();
        let mut shelf = Shelf::default();
        entries.iter().for_each(|entry| shelf.add(entry));
        Questions { log, target, entries, shelf }
    }

    /// Returns the page for a question: instructions, what comes back within the budget, and the question.
    pub fn page(&self, question: &str, budget: Tokens) -> Result<Compiled, Error> {
        let nothing = TokenLimit { tokens: Tokens(0), slack: Tokens(0), grain: Grain::Message };
        let recall = Recall { budget, within: Within::Conversation };
        let policy = Policy::named("questions").then(nothing).recalling(recall).immediately();
        let target = self.target.clone().with_window(None);
        let input = self.log.draft(Entry::user(question))?;
        let fresh = Reader::new("main");
        let request = Request { input: Some(&input), ..Request::new(self.log, &fresh, &policy, &target) };
        let mut reader = fresh.clone();
        reader.commit(plan(&request)?.edits, policy.digest());
        let request = Request { reader: &reader, ..request };
        recalled(&self.shelf, &self.entries, &request, compile(&request)?)
    }
}
