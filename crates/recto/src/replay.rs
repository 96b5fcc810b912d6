//! Replay: a finished conversation, walked as its agent did, call by call.

mod features; // what a line holds that can be taken up later
mod questions; // what comes back for questions asked afterwards
pub mod recall; // what pages cost, and what they forget

use crate::block::Facts;
use crate::compile::{Compiled, compile};
use crate::entry::{Role, Seq, Text};
use crate::error::Error;
use crate::format::ResponseFormat;
use crate::fragment::Fragments;
use crate::log::{Counted, Log};
use crate::note::{Note, Notes, Want};
use crate::page::Page;
use crate::plan::{Plan, plan};
use crate::policy::Policy;
use crate::reader::Reader;
use crate::recall::{Shelf, beside, fragment};
use crate::receipt::Ticket;
use crate::redact::Screen;
use crate::request::Request;
use crate::target::Target;
use crate::tokens::Tokens;
use crate::tool::Tools;
pub use questions::Questions;
use std::fmt;

/// How often a page is planned anew because a summary that it needs was made.
const ROUNDS_MAX: usize = 8;

/// Makes the summaries that plans want: what came of one, or nothing.
pub type Summarize<'s> = dyn Fn(&Want, &Request<'_>) -> Option<Note> + Send + Sync + 's;

/// Who makes summaries, and what came of them.
struct Summaries<'a> {
    make: &'a Summarize<'a>,
    notes: Notes,
}

impl fmt::Debug for Summaries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summaries").field("notes", &self.notes).finish_non_exhaustive()
    }
}

/// The calls of a finished conversation: before each assistant message the page is planned, committed, compiled and
/// acknowledged, as a host would have done it.
#[derive(Debug)]
pub struct Replay<'a> {
    /// As the policy shows it, once for all calls.
    log: Log,
    policy: &'a Policy,
    target: &'a Target,
    tools: Option<&'a Tools>,
    facts: Option<&'a Facts>,
    format: Option<&'a ResponseFormat>,
    marks: &'a [(Seq, Text)],
    reserve: Option<Tokens>,
    summaries: Option<Summaries<'a>>,
    reader: Reader,
    previous: Option<Page>,
    /// What may come back; nothing where its words are shown otherwise than they were given.
    shelved: Option<Shelved<'a>>,
    /// Where the assistant messages stand.
    replies: Vec<Seq>,
    next: usize,
}

/// What may come back, as far as the calls have come.
#[derive(Debug)]
struct Shelved<'l> {
    shelf: Shelf<'l>,
    /// All entries, in order.
    entries: Vec<&'l Counted>,
    /// How many of them are on the shelf.
    count: usize,
}

impl<'l> Shelved<'l> {
    fn of(log: &'l Log) -> Shelved<'l> {
        let mut entries: Vec<&Counted> = log.back().collect();
        entries.reverse();
        Shelved { shelf: Shelf::default(), entries, count: 0 }
    }

    /// Goes on to this place.
    fn reach(&mut self, head: Option<Seq>) {
        let new = self.entries[self.count..].iter().take_while(|entry| Some(entry.seq) <= head);
        for entry in new {
            self.shelf.add(entry);
            self.count += 1;
        }
    }
}

/// One call of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// Which assistant message of the conversation it leads to, from 0.
    pub turn: usize,
    /// Where that message stands.
    pub reply: Seq,
    /// The page and its receipt, or why there is none; the next calls go on as if it had not been made.
    pub compiled: Result<Compiled, Error>,
}

impl<'a> Replay<'a> {
    /// Returns the replay of a log under a policy, for a target.
    pub fn new(log: &'a Log, policy: &'a Policy, target: &'a Target) -> Replay<'a> {
        let mut replies: Vec<Seq> = log.back_by(Role::Assistant).map(|entry| entry.seq).collect();
        replies.reverse();
        let reader = Reader::new("main");
        let screen = Screen::of(&policy.redact).map(|screen| screen.keyed(log.screen().key()));
        Replay {
            // A policy that names what there isn't makes no page, and says so there.
            log: screen.map_or_else(|_| log.clone(), |screen| log.clone().through(screen)),
            policy,
            target,
            tools: None,
            facts: None,
            format: None,
            marks: &[],
            reserve: None,
            summaries: None,
            reader,
            previous: None,
            shelved: log.is_the_same_to(&policy.redact).then(|| Shelved::of(log)),
            replies,
            next: 0,
        }
    }

    /// Offers these tools at every call.
    #[must_use]
    pub fn with_tools(mut self, tools: Option<&'a Tools>) -> Replay<'a> {
        self.tools = tools;
        self
    }

    /// Tells blocks what a host knows, the same at every call.
    #[must_use]
    pub fn with_facts(mut self, facts: Option<&'a Facts>) -> Replay<'a> {
        self.facts = facts;
        self
    }

    /// Asks for answers of this form at every call.
    #[must_use]
    pub fn with_format(mut self, format: Option<&'a ResponseFormat>) -> Replay<'a> {
        self.format = format;
        self
    }

    /// Sets a client's own cache marks instead of others, as far as a page holds what they stand behind.
    #[must_use]
    pub fn with_marks(mut self, marks: &'a [(Seq, Text)]) -> Replay<'a> {
        self.marks = marks;
        self
    }

    /// Keeps so much free for every answer.
    #[must_use]
    pub fn with_reserve(mut self, reserve: Option<Tokens>) -> Replay<'a> {
        self.reserve = reserve;
        self
    }

    /// Has the summaries made that plans want: those that a page needs before it, the others behind it.
    #[must_use]
    pub fn with_summaries(mut self, make: &'a Summarize<'a>) -> Replay<'a> {
        self.summaries = Some(Summaries { make, notes: Notes::default() });
        self
    }

    /// Returns how many assistant messages there are.
    pub fn turns(&self) -> usize {
        self.replies.len()
    }

    /// Returns the reader as the calls so far have left it.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the page of the last call.
    pub fn previous(&self) -> Option<&Page> {
        self.previous.as_ref()
    }

    /// Compiles the page of a past call again, from the log and the decisions as they were then.
    pub fn again(&self, ticket: &Ticket) -> Result<Page, Error> {
        let (log, reader) = (self.log.until(ticket.head), self.reader.as_of(ticket));
        let request = self.request(&log, &reader);
        let compiled = compile(&request)?;
        if self.policy.recall.is_none() {
            return Ok(compiled.page);
        }
        let mut shelved = Shelved::of(&log);
        shelved.reach(log.head());
        recalled(&shelved.shelf, &shelved.entries, &request, compiled).map(|compiled| compiled.page)
    }

    fn request<'r>(&'r self, log: &'r Log, reader: &'r Reader) -> Request<'r> {
        let (tools, format, marks, reserve) = (self.tools, self.format, self.marks, self.reserve);
        let (previous, notes) = (self.previous.as_ref(), self.summaries.as_ref().map(|it| &it.notes));
        Request {
            tools,
            facts: self.facts,
            format,
            marks,
            reserve,
            previous,
            notes,
            ..Request::new(log, reader, self.policy, self.target)
        }
    }

    /// Makes the calls that are left, then compiles the page for what comes after the conversation: the answer to
    /// its last message, or to an input.
    pub fn after_all(mut self, input: Option<&Counted>) -> Result<Compiled, Error> {
        self.by_ref().for_each(drop);
        let log = self.log.clone();
        self.page(&log, input)
    }

    /// Plans, commits and compiles one page.
    fn page(&mut self, log: &Log, input: Option<&Counted>) -> Result<Compiled, Error> {
        let mut plan = self.planned(log, input)?;
        self.reader.commit(std::mem::take(&mut plan.edits), self.policy.digest());
        let mut kept = self.shelved.take();
        let compiled = match &mut kept {
            _ if self.policy.recall.is_none() => compile(&Request { input, ..self.request(log, &self.reader) }),
            Some(shelved) => self.recalling(shelved, log, input),
            None => self.recalling(&mut Shelved::of(&self.log), log, input),
        };
        self.shelved = kept;
        Ok(compiled?.told(plan))
    }

    /// Compiles one page with what comes back beside it.
    fn recalling(&self, from: &mut Shelved<'_>, log: &Log, input: Option<&Counted>) -> Result<Compiled, Error> {
        from.reach(log.head());
        let request = Request { input, ..self.request(log, &self.reader) };
        recalled(&from.shelf, &from.entries, &request, compile(&request)?)
    }

    /// Plans one page, with the summaries that it needs.
    fn planned(&mut self, log: &Log, input: Option<&Counted>) -> Result<Plan, Error> {
        let mut planned = plan(&Request { input, ..self.request(log, &self.reader) })?;
        for _ in 0..ROUNDS_MAX {
            let request = Request { input, ..self.request(log, &self.reader) };
            let Some(Summaries { make, notes }) = &self.summaries else { break };
            let new = planned.wants.iter().filter(|want| notes.get(want.key).is_none());
            let made: Vec<_> = new.filter_map(|want| Some((want, make(want, &request)?))).collect();
            let is_needed = made.iter().any(|(want, _)| want.is_urgent);
            let made: Vec<_> = made.into_iter().map(|(want, note)| (want.key, note)).collect();
            if let Some(Summaries { notes, .. }) = &mut self.summaries {
                made.into_iter().for_each(|(key, note)| notes.put(key, note));
            }
            if !is_needed {
                break;
            }
            planned = plan(&Request { input, ..self.request(log, &self.reader) })?;
        }
        Ok(planned)
    }

    fn call(&mut self, log: &Log) -> Result<Compiled, Error> {
        let compiled = self.page(log, None)?;
        self.reader.acknowledge(&compiled.receipt.ticket)?;
        self.previous = Some(compiled.page.clone());
        Ok(compiled)
    }
}

/// Compiles a page once more with what comes back beside it, if anything does.
fn recalled(
    shelf: &Shelf<'_>,
    entries: &[&Counted],
    request: &Request<'_>,
    compiled: Compiled,
) -> Result<Compiled, Error> {
    let found = beside(shelf, request, &compiled);
    let Some(fragment) = fragment(&found.resolve(entries)) else { return Ok(compiled) };
    let fragments = Fragments::counted([fragment], request.log.counter())?;
    compile(&Request { fragments: Some(&fragments), ..*request })
}

impl Iterator for Replay<'_> {
    type Item = Replayed;

    fn next(&mut self) -> Option<Replayed> {
        loop {
            let (turn, reply) = (self.next, *self.replies.get(self.next)?);
            self.next += 1;
            // A conversation that begins with an assistant message has nothing to send for it.
            if let Some(head) = reply.0.checked_sub(1) {
                let log = self.log.until(Some(Seq(head)));
                return Some(Replayed { turn, reply, compiled: self.call(&log) });
            }
        }
    }
}
