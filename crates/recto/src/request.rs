//! Everything that plan and compile may look at.

use crate::digest::{Digest, Hasher};
use crate::entry::{RunId, Text};
use crate::error::Error;
use crate::fragment::{Fragments, Priority, Rendered};
use crate::log::{Counted, Log};
use crate::page::Page;
use crate::policy::Policy;
use crate::reader::Reader;
use crate::session::Session;
use crate::target::Target;
use crate::tokens::{Count, Tokens};
use std::sync::Arc;

/// The one input of [`plan`](crate::plan()) and [`compile`](crate::compile()).
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What was said.
    pub log: &'a Log,
    /// Who reads, with which decisions.
    pub reader: &'a Reader,
    /// Which passes run.
    pub policy: &'a Policy,
    /// Which model reads.
    pub target: &'a Target,
    /// The execution that is under way, if one is.
    pub run: Option<&'a RunId>,
    /// Prompt pieces that go with this call.
    pub fragments: Option<&'a Fragments>,
    /// The tools offered.
    pub tools: Option<&'a Tools>,
    /// What is said now, if it is not in the log; made by [`Log::draft`].
    pub input: Option<&'a Counted>,
    /// How many tokens stay free for the answer; `None` is the target's longest, at most a quarter of its window.
    pub reserve: Option<Tokens>,
    /// What a provider that remembers already holds.
    pub session: Option<&'a Session>,
    /// The page of the previous call, to tell how much of it the provider's cache still holds.
    pub previous: Option<&'a Page>,
}

impl<'a> Request<'a> {
    /// Returns a request with nothing optional in it.
    pub fn new(log: &'a Log, reader: &'a Reader, policy: &'a Policy, target: &'a Target) -> Request<'a> {
        Request {
            log,
            reader,
            policy,
            target,
            run: None,
            fragments: None,
            tools: None,
            input: None,
            reserve: None,
            session: None,
            previous: None,
        }
    }

    /// Returns what goes beside the history, and what is left for it.
    pub(crate) fn budget(&self) -> Result<Budget, Error> {
        // A window of nothing is one that nobody knows.
        let window = self.target.window.filter(|window| *window > Tokens(0));
        let longest = self.target.output_max;
        let usual = || window.map_or(longest, |window| longest.min(Tokens(window.0 / 4)));
        let budget = Budget {
            window,
            reserve_out: self.reserve.unwrap_or_else(usual),
            tools: self.tools.map_or(Tokens(0), |tools| tools.cost),
            input: self.input.map_or(Tokens(0), |input| input.cost + self.target.message_overhead),
            framing: self.target.request_overhead,
            fragments: self.required().map(|it| it.cost + self.target.message_overhead).sum(),
        };
        match window {
            Some(window) if budget.reserve_out >= window => Err(Error::settings(
                format!("a reserve of {} tokens leaves nothing of a window of {window}", budget.reserve_out),
                "give a larger window or a smaller reserve",
            )),
            _ => Ok(budget),
        }
    }

    /// The fragments that can't be left out.
    fn required(&self) -> impl Iterator<Item = &'a Rendered> {
        let all = self.fragments.into_iter().flat_map(Fragments::list);
        all.filter(|it| it.fragment.priority == Priority::Required && !it.is_empty())
    }

    /// Returns what identifies everything but log, reader and previous page.
    pub(crate) fn inputs(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.digest(self.policy.digest());
        hasher.text(&format!("{:?}", self.target));
        hasher.digest(self.fragments.map_or(Digest::default(), Fragments::digest));
        hasher.maybe(self.run.map(RunId::as_str));
        hasher.digest(self.tools.map_or(Digest::default(), |tools| tools.digest));
        hasher.digest(self.input.map_or(Digest::default(), |input| input.digest));
        hasher.text(&format!("{:?} {:?} {}", self.reserve, self.session, self.log.counter().name()));
        hasher.finish()
    }
}

/// How the window is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) window: Option<Tokens>,
    pub(crate) reserve_out: Tokens,
    pub(crate) tools: Tokens,
    pub(crate) input: Tokens,
    pub(crate) framing: Tokens,
    /// Fragments that can't be left out.
    pub(crate) fragments: Tokens,
}

impl Budget {
    /// What is left for history; unbounded windows have room for everything.
    pub(crate) fn room(&self) -> Tokens {
        self.window.unwrap_or(Tokens(u64::MAX / 4)) - self.beside()
    }

    /// By how much a history of this cost is too long.
    pub(crate) fn over(&self, history: Tokens) -> Tokens {
        self.window.map_or(Tokens(0), |window| self.beside() + history - window)
    }

    /// What goes beside the history.
    fn beside(&self) -> Tokens {
        self.reserve_out + self.tools + self.input + self.framing + self.fragments
    }
}

/// The tools offered to a model, counted once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    list: Arc<[Text]>,
    /// What they cost on every call.
    pub cost: Tokens,
    /// What identifies them.
    pub digest: Digest,
}

impl Tools {
    /// Counts the definitions: each is JSON text in the wire's own form, kept byte for byte.
    pub fn counted(definitions: impl IntoIterator<Item = Text>, counter: &dyn Count) -> Tools {
        let list: Arc<[Text]> = definitions.into_iter().collect();
        let mut hasher = Hasher::new();
        list.iter().for_each(|definition| hasher.text(definition));
        Tools { cost: list.iter().map(|definition| counter.count(definition)).sum(), digest: hasher.finish(), list }
    }

    /// Returns the definitions.
    pub fn list(&self) -> &[Text] {
        &self.list
    }
}
