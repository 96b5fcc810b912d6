//! Recall: what has left the page, found again for what is said now.
//!
//! A [`Shelf`] holds the entries that may come back, a [`Query`] says what is asked, and [`Shelf::find`] answers with
//! [`Pick`]s: stretches of entries that are not on the page, as many as a budget has room for. [`fragment`] makes a
//! prompt piece of them: fenced as nobody's orders, with who said it and when, behind everything that a provider's cache
//! holds, and the first to go. It is sent with one call and is no part of the log.
//!
//! No model is asked. Talk and work are told apart, and each has its own recipe; both are made of words, and come out the
//! same on every machine.
//!
//! ```
//! use recto::recall::{OnPage, Query, Shelf, fragment};
//! # use recto::{Entry, Log, Tokenizer, Tokens};
//! # let mut log = Log::counted_by(Tokenizer::Bytes4);
//! # log.append(Entry::user("My sister Ann moved to Lisbon last week."))?;
//! # log.append(Entry::assistant("How nice!"))?;
//! let mut shelf = Shelf::default();
//! # let entries: Vec<_> = (0..2).filter_map(|seq| log.get(recto::Seq(seq))).collect();
//! entries.iter().for_each(|entry| shelf.add(entry));
//! let found = shelf.find(&Query::saying("Where does my sister live?"), &OnPage::default(), Tokens(60), log.counter());
//! let fragment = fragment(&found.resolve(&entries)).expect("it was found");
//! assert!(fragment.content.contains("user: My sister Ann moved to Lisbon last week."));
//! # Ok::<(), recto::Error>(())
//! ```

mod commonness;
mod dates;
mod kin;
mod numbers;
mod pack;
mod page;
mod query;
mod shelf;
mod shortlist;
mod source;
mod stem;
mod talk;
pub mod terms;
mod work;

use crate::compile::Compiled;
use crate::entry::{Seq, Text};
use crate::fragment::Fragment;
use crate::log::Counted;
use crate::request::Request;
use crate::tokens::{Count, Tokens};
pub use commonness::Commonness;
use pack::{Offer, choose, written};
pub use page::OnPage;
pub use query::Query;
use serde::{Deserialize, Serialize};
use shelf::{Passage, Pile};
pub use shelf::{Shelf, terms_of};
pub use shortlist::{Shortlist, Sought, Standing, shortlist};
pub use source::{Document, Documents, Source, retrieved};
use std::collections::HashMap;
use talk::Question;

/// The id of the fragment that holds what came back.
pub const FRAGMENT: &str = "recto.recalled";
/// Less room than this is not worth looking for anything.
const BUDGET_MIN: Tokens = Tokens(48);
/// How many bytes are taken for a token where nothing is counted yet.
const BYTES_PER_TOKEN: usize = 4;

/// What may come back that has left the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recall {
    /// How many tokens may come back with each call. History has the room before them.
    pub budget: Tokens,
    /// From where.
    pub within: Within,
}

impl Default for Recall {
    fn default() -> Recall {
        Recall { budget: Tokens(2_000), within: Within::Conversation }
    }
}

/// Where recall looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// In the conversation itself.
    #[default]
    Conversation,
    /// In all conversations of its tenant, where a store keeps several.
    Tenant,
}

/// A stretch of an entry's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The entry.
    pub seq: Seq,
    /// Which of its parts.
    pub part: usize,
    /// Which piece of a tool result; 0 for every other part.
    pub piece: usize,
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Place {
    /// Returns whether another stretch goes on where this one ends.
    fn is_followed_by(self, other: Place) -> bool {
        (self.seq, self.part, self.piece, self.end) == (other.seq, other.part, other.piece, other.start)
    }
}

/// Something that comes back: which stretch, and what stands above it. It holds none of its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// The stretch.
    #[serde(flatten)]
    pub place: Place,
    /// The day when it was said, or the tool that it is about; empty where nobody knows.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub above: Text,
    /// The conversation that it is from, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Text>,
}

/// What was found, in the order of the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The stretches that come back.
    pub picks: Vec<Pick>,
}

impl Found {
    /// Returns each pick with the entry that it points into.
    pub fn resolve<'e>(&self, entries: &[&'e Counted]) -> Vec<(Pick, &'e Counted)> {
        let by_seq: HashMap<Seq, &'e Counted> = entries.iter().map(|entry| (entry.seq, *entry)).collect();
        let of = |pick: &Pick| Some((pick.clone(), *by_seq.get(&pick.place.seq)?));
        self.picks.iter().filter_map(of).collect()
    }
}

/// Returns what comes back beside a page, under its request's policy, of what stands on a shelf; nothing where nothing
/// has left the page, or no user has said anything.
pub fn beside(shelf: &Shelf<'_>, request: &Request<'_>, compiled: &Compiled) -> Found {
    let Some(asked) = asked(request, compiled) else { return Found::default() };
    shelf.find(&asked.query, &asked.on_page, asked.budget, request.log.counter())
}

/// What is asked for beside a page.
#[derive(Clone, Debug)]
pub struct Asked<'r> {
    /// What is asked.
    pub query: Query,
    /// What need not come back.
    pub on_page: OnPage<'r>,
    /// How many tokens may come back.
    pub budget: Tokens,
}

/// Returns what is asked for beside a page; nothing where its policy recalls nothing, nothing has left the page, no user
/// has said anything, or history has all the room.
pub fn asked<'r>(request: &Request<'r>, compiled: &Compiled) -> Option<Asked<'r>> {
    let recall = request.policy.recall?;
    let on_page = OnPage::of(request, compiled);
    let left = request.room_left(&compiled.receipt.ledger) - request.target.message_overhead;
    let budget = recall.budget.min(left);
    if on_page.is_everything() && recall.within == Within::Conversation || budget < BUDGET_MIN {
        return None;
    }
    Some(Asked { query: Query::of(request.log, request.input)?, on_page, budget })
}

/// Returns the prompt piece that shows what came back; none where nothing is left of it.
pub fn fragment(picks: &[(Pick, &Counted)]) -> Option<Fragment> {
    written(picks).map(|text| Fragment::retrieved(FRAGMENT, text))
}

impl<'a> Shelf<'a> {
    /// Returns what answers a query and is not on the page, within so many tokens.
    pub fn find(&self, query: &Query, on_page: &OnPage<'_>, budget: Tokens, counter: &dyn Count) -> Found {
        self.find_among(query, on_page, budget, counter, None)
    }

    /// Returns the same where the shelf holds only some of the entries, and it is known how common terms are in all.
    pub fn find_among(
        &self,
        query: &Query,
        on_page: &OnPage<'_>,
        budget: Tokens,
        counter: &dyn Count,
        common: Option<&Commonness>,
    ) -> Found {
        let (mut said, exchange) = query.terms();
        let names: Vec<String> = self.names.iter().map(|(name, _)| stem::stem(name)).collect();
        said.retain(|term| !names.contains(term));
        let about = self.about(query);
        let question = Question { terms: &said, dates: dates::named(&query.words), about };
        let own =
            |pile: &Pile<'_>, terms: &[String]| common.cloned().unwrap_or_else(|| Commonness::within(pile, terms));
        let talk = talk::worth(&self.talk, &question, &own(&self.talk, &said)).unwrap_or_default();
        let work = work::worth(&self.work, &exchange, &own(&self.work, &exchange)).unwrap_or_default();
        let talk = offered(&self.talk, &talk, on_page);
        let work = offered(&self.work, &work, on_page);
        // Each kind has the part of the budget that it is of what has left the page.
        let (of_talk, of_work) = (bytes(&talk), bytes(&work));
        let share = Tokens(budget.0.saturating_mul(of_talk) / (of_talk + of_work).max(1));
        let mut picked = take(&talk, share, counter);
        picked.extend(take(&work, budget - share, counter));
        picked.sort_by_key(|pick| pick.place);
        Found { picks: picked }
    }

    /// The one person that a query is about.
    fn about(&self, query: &Query) -> Option<usize> {
        let words = query.spelled();
        let mut named: Vec<usize> =
            self.names.iter().filter(|(name, _)| words.contains(name)).map(|(_, speaker)| *speaker).collect();
        if named.is_empty() {
            let own = self.speakers.iter().position(|speaker| *speaker == query.asker());
            let other = (0..self.speakers.len()).find(|at| self.speakers.len() == 2 && Some(*at) != own);
            let (is_own, is_others) = query.persons();
            named.extend(own.filter(|_| is_own));
            named.extend(other.filter(|_| is_others));
        }
        named.dedup();
        if let [one] = *named { Some(one) } else { None }
    }
}

/// Passages that may come back, with what each is worth.
type Offered<'p, 'a> = Vec<(&'p Passage<'a>, f64)>;

fn offered<'p, 'a>(pile: &'p Pile<'a>, worth: &[f64], on_page: &OnPage<'_>) -> Offered<'p, 'a> {
    let worthy = pile.passages.iter().zip(worth).filter(|(_, worth)| **worth != 0.0);
    worthy.filter(|(passage, _)| !on_page.has(passage)).map(|(passage, worth)| (passage, *worth)).collect()
}

fn bytes(offered: &Offered<'_, '_>) -> u64 {
    offered.iter().map(|(passage, _)| passage.text.len() as u64).sum()
}

fn take(offered: &Offered<'_, '_>, budget: Tokens, counter: &dyn Count) -> Vec<Pick> {
    let passages: Vec<&Passage<'_>> = offered.iter().map(|(passage, _)| *passage).collect();
    let offers = offered.iter().enumerate().map(|(at, (_, worth))| Offer { at, worth: *worth }).collect();
    choose(&passages, offers, budget, counter).into_iter().map(|at| Pick::of(passages[at])).collect()
}
