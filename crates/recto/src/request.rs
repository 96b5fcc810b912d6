//! Everything that plan and compile may look at.

use crate::block::Facts;
use crate::calibration::{Seen, scale};
use crate::digest::{Digest, Hasher};
use crate::entry::{Role, RunId, Seq, Span, Text};
use crate::error::Error;
use crate::expiry::ExpiryOverride;
use crate::format::ResponseFormat;
use crate::fragment::{Fragment, Fragments, Lifecycle, Placement, Priority, Rendered};
use crate::holding::Full;
use crate::log::{Counted, Log};
use crate::note::Notes;
use crate::page::Page;
use crate::policy::{Policy, Resumed, StaticChange};
use crate::reader::Reader;
use crate::receipt::Ledger;
use crate::session::Session;
use crate::target::{LateSystem, Memory, Target};
use crate::tokens::Tokens;
use crate::tool::Tools;
use crate::view::shape::LATE_SYSTEM;

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
    /// What the host knows at this call, for blocks to be made from.
    pub facts: Option<&'a Facts>,
    /// The tools offered.
    pub tools: Option<&'a Tools>,
    /// What holds for this run instead of what was configured about expiry.
    pub expiry: Option<&'a ExpiryOverride>,
    /// Summaries that a model has made; `None` where nobody makes any.
    pub notes: Option<&'a Notes>,
    /// The form that the answer must have.
    pub format: Option<&'a ResponseFormat>,
    /// Where a client marked the end of what should be cached: by entry, with the mark as JSON text. Where there are
    /// any, no others are set.
    pub marks: &'a [(Seq, Text)],
    /// What is said now, if it is not in the log; made by [`Log::draft`].
    pub input: Option<&'a Counted>,
    /// How many tokens stay free for the answer; `None` is the target's longest, at most a quarter of its window.
    pub reserve: Option<Tokens>,
    /// What a provider that remembers already holds.
    pub session: Option<&'a Session>,
    /// The page of the previous call, to tell how much of it the provider's cache still holds.
    pub previous: Option<&'a Page>,
    /// How many tokens of input its provider reported for it.
    pub reported: Option<Tokens>,
    /// The call before this one, to tell whether the provider's cache can still be warm; `None` is warm.
    pub last_call: Option<LastCall<'a>>,
    /// What identifies policy and target, where a host makes many requests with the same; `None` is worked out.
    pub settled: Option<&'a Settled>,
}

/// What identifies a policy and a target, worked out once for many requests with just these.
#[derive(Clone, Debug)]
pub struct Settled {
    policy: Digest,
    target: Text,
    /// The beginning of what identifies all inputs: these two.
    inputs: Hasher,
}

impl Settled {
    /// Works it out.
    pub fn of(policy: &Policy, target: &Target) -> Settled {
        let (policy, target, mut inputs) = (policy.digest(), format!("{target:?}"), Hasher::new());
        inputs.digest(policy);
        inputs.text(&target);
        Settled { policy, target: target.into(), inputs }
    }
}

impl PartialEq for Settled {
    fn eq(&self, other: &Settled) -> bool {
        (self.policy, &self.target) == (other.policy, &other.target)
    }
}

impl Eq for Settled {}

/// The call before this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastCall<'a> {
    /// The model that was called.
    pub model: &'a str,
    /// How long ago.
    pub idle_seconds: u64,
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
            facts: None,
            tools: None,
            expiry: None,
            notes: None,
            format: None,
            marks: &[],
            input: None,
            reserve: None,
            session: None,
            previous: None,
            reported: None,
            last_call: None,
            settled: None,
        }
    }

    /// Returns what goes beside the history, and what is left for it.
    pub(crate) fn budget(&self) -> Result<Budget, Error> {
        let target = self.target;
        // A window of nothing is one that nobody knows.
        let window = target.window.filter(|window| *window > Tokens(0));
        let longest = target.output_max;
        let usual = || window.map_or(longest, |window| longest.min(Tokens(window.0 / 4)));
        let reserve_out = self.reserve.unwrap_or_else(usual);
        let has_tools = self.tools.is_some_and(|tools| !tools.list().is_empty());
        let fragment = |it: &Rendered| it.cost + target.message_overhead + self.mark_cost(it);
        // Only where something was reported there is a page to go on from.
        let seen = if target.calibration.is_exact() { None } else { self.seen() };
        let new = self.previous.filter(|_| seen.is_some()).map_or(Tokens(0), |previous| self.new_since(previous));
        let input_max = window.map(|window| target.input_max.unwrap_or(window).min(window - reserve_out));
        let budget = Budget {
            window,
            reserve_out,
            input_max,
            limit: input_max.map(|most| target.calibration.capacity(most, new, seen)),
            tools: self.tools.map_or(Tokens(0), |tools| tools.cost),
            input: self.input.map_or(Tokens(0), |input| input.cost + target.message_overhead),
            framing: target.request_overhead + if has_tools { target.tools_overhead } else { Tokens(0) },
            padding: if target.wire.wants_user_words() {
                Tokens(2 * (6 + target.message_overhead.0))
            } else {
                Tokens(0)
            },
            fragments: self.required().map(fragment).sum(),
        };
        match window {
            Some(window) if budget.reserve_out >= window => Err(Error::settings(
                format!("a reserve of {} tokens leaves nothing of a window of {window}", budget.reserve_out),
                "give a larger window or a smaller reserve",
            )),
            _ => Ok(budget),
        }
    }

    /// What is left of the window beside a page; unbounded windows have room for everything.
    pub(crate) fn room_left(&self, ledger: &Ledger) -> Tokens {
        let Ok(budget) = self.budget() else { return Tokens(0) };
        budget.room() + budget.beside() - budget.padding - ledger.used()
    }

    /// What was counted of the page before, if its provider has reported it.
    pub(crate) fn seen(&self) -> Option<Seen> {
        let (previous, reported) = (self.previous?, self.reported?);
        let tools = previous.tools.as_ref().map_or(Tokens(0), |tools| tools.cost);
        let counted = previous.messages.iter().map(|message| message.cost).sum::<Tokens>() + tools;
        Some(Seen { counted, reported })
    }

    /// What has come since the page before, at most.
    pub(crate) fn new_since(&self, previous: &Page) -> Tokens {
        let newest = previous.messages.iter().filter_map(|message| message.seq).max();
        let first = newest.map_or(Seq(0), Seq::next);
        let since = self.log.head().filter(|head| *head >= first);
        let entries = since.map_or(Tokens(0), |last| {
            let sums = self.log.total(Span { first, last });
            sums.tokens + Tokens(sums.entries * self.target.message_overhead.0)
        });
        let fragments: Tokens = self.fragments.into_iter().flat_map(Fragments::list).map(|it| it.cost).sum();
        let input = self.input.map_or(Tokens(0), |input| input.cost);
        entries + fragments + input
    }

    /// What it costs to say that an instruction is one, where the target takes it in the user's place.
    pub(crate) fn late_system_cost(&self) -> Tokens {
        match self.target.late_system {
            LateSystem::Keep => Tokens(0),
            LateSystem::ToUser => self.log.counter().count(LATE_SYSTEM),
        }
    }

    /// What it costs at most to say of a fragment that it is an instruction.
    pub(crate) fn mark_cost(&self, it: &Rendered) -> Tokens {
        let remembers = self.target.memory == Memory::Session;
        if it.fragment.role != Role::System {
            Tokens(0)
        } else if remembers && self.is_resumed_as_user(it) {
            self.log.counter().count(LATE_SYSTEM)
        } else if self.target.forgets_instructions() || self.opens_page(it) {
            Tokens(0)
        } else {
            self.late_system_cost()
        }
    }

    /// Whether only instructions come before a fragment, on a page that says everything.
    fn opens_page(&self, it: &Rendered) -> bool {
        let list = self.fragments.map(Fragments::list).unwrap_or_default();
        let mut before = list.iter().take_while(|other| !std::ptr::eq(*other, it));
        let remembers = self.target.memory == Memory::Session;
        !remembers && self.placement(it) == Placement::Head && !before.any(|other| self.opens_with_user(other))
    }

    /// Whether a fragment that is no instruction comes before the history, so that no instruction of the history opens
    /// the page.
    pub(crate) fn has_user_head(&self) -> bool {
        self.fragments.map(Fragments::list).unwrap_or_default().iter().any(|it| self.opens_with_user(it))
    }

    fn opens_with_user(&self, it: &Rendered) -> bool {
        !it.is_empty() && it.fragment.role != Role::System && self.placement(it) == Placement::Head
    }

    /// Where a fragment stands on a page that says everything.
    pub(crate) fn placement(&self, it: &Rendered) -> Placement {
        let Fragment { role, lifecycle, placement, .. } = it.fragment;
        let ruled = self.policy.prompts.full.filter(|_| role == Role::System && lifecycle == Lifecycle::Dynamic);
        match role == Role::System && self.target.forgets_instructions() {
            true => Placement::Head,
            false => ruled.unwrap_or(placement),
        }
    }

    /// Whether the policy puts an instruction in the user's place, on a page that says what is new.
    pub(crate) fn is_resumed_as_user(&self, it: &Rendered) -> bool {
        let is_dynamic = it.fragment.role == Role::System && it.fragment.lifecycle == Lifecycle::Dynamic;
        is_dynamic && self.policy.prompts.resumed == Resumed::UserFirst
    }

    /// Whether a fragment is one that a provider which remembers is told once.
    pub(crate) fn is_told_once(&self, it: &Rendered) -> bool {
        let is_forgotten = it.fragment.role == Role::System && self.target.forgets_instructions();
        it.fragment.lifecycle == Lifecycle::Static && !is_forgotten
    }

    /// The session whose provider holds what this page need not say again; or why there is none, if the target
    /// remembers.
    pub(crate) fn usable_session(&self) -> Result<&'a Session, Option<Full>> {
        if self.target.memory == Memory::Stateless {
            return Err(None);
        }
        let Some(session) = self.session else { return Err(Some(Full::NoSession)) };
        let Some(acked) = session.acked() else {
            return Err(Some(session.lost().map_or(Full::NoSession, |lost| Full::Lost { lost })));
        };
        if Some(acked) > self.log.head() {
            Err(Some(Full::CursorBeyondLog { acked }))
        } else if self.policy.static_change == StaticChange::Reseed && self.has_changed_fixed(session) {
            Err(Some(Full::StaticChanged))
        } else {
            Ok(session)
        }
    }

    /// The session whose provider holds what this page need not say again.
    pub(crate) fn held(&self) -> Option<&'a Session> {
        self.usable_session().ok()
    }

    /// Whether a static fragment is not as the provider holds it.
    fn has_changed_fixed(&self, session: &Session) -> bool {
        let all = self.fragments.into_iter().flat_map(Fragments::list);
        let mut fixed = all.filter(|it| self.is_told_once(it) && !it.is_empty());
        fixed.any(|it| !session.holds_fixed(&it.fragment.id, it.fingerprint))
    }

    /// The fragments that can't be left out.
    fn required(&self) -> impl Iterator<Item = &'a Rendered> {
        let all = self.fragments.into_iter().flat_map(Fragments::list);
        all.filter(|it| it.fragment.priority == Priority::Required && !it.is_empty())
    }

    /// Returns what identifies the policy.
    pub(crate) fn policy_digest(&self) -> Digest {
        self.settled.map_or_else(|| self.policy.digest(), |settled| settled.policy)
    }

    /// Returns what identifies everything but log, reader and previous page.
    pub(crate) fn inputs(&self) -> Digest {
        let own = self.settled.is_none().then(|| Settled::of(self.policy, self.target));
        let settled = self.settled.or(own.as_ref()).expect("it was just worked out");
        debug_assert_eq!(*settled, Settled::of(self.policy, self.target), "it is that of another policy or target");
        let mut hasher = settled.inputs.clone();
        hasher.digest(self.fragments.map_or(Digest::default(), Fragments::digest));
        hasher.maybe(self.run.map(RunId::as_str));
        hasher.digest(self.tools.map_or(Digest::default(), |tools| tools.digest));
        match (self.format, self.marks) {
            (None, []) => hasher.text("None []"),
            (format, marks) => hasher.text(&format!("{format:?} {marks:?}")),
        }
        hasher.digest(self.input.map_or(Digest::default(), |input| input.digest));
        self.facts.into_iter().for_each(|facts| hasher.text(&format!("{facts:?}")));
        self.expiry.into_iter().for_each(|over| hasher.text(&format!("{over:?}")));
        let counter = self.log.counter().name();
        match (self.reserve, self.session) {
            (None, None) => hasher.joined(&["None None ", counter]),
            (reserve, session) => hasher.text(&format!("{reserve:?} {session:?} {counter}")),
        }
        hasher.finish()
    }
}

/// How the window is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Budget {
    pub(crate) window: Option<Tokens>,
    pub(crate) reserve_out: Tokens,
    /// How much input the provider takes, by its own count.
    pub(crate) input_max: Option<Tokens>,
    /// How much input there may be, by our count.
    limit: Option<Tokens>,
    pub(crate) tools: Tokens,
    pub(crate) input: Tokens,
    pub(crate) framing: Tokens,
    /// Kept for what a format may need around a conversation, such as a first word of the user's.
    pub(crate) padding: Tokens,
    /// Fragments that can't be left out.
    pub(crate) fragments: Tokens,
}

impl Budget {
    /// What is left for history; unbounded windows have room for everything.
    pub(crate) fn room(&self) -> Tokens {
        self.limit.unwrap_or(Tokens(u64::MAX / 4)) - self.beside()
    }

    /// By how much a history of this cost is too long.
    pub(crate) fn over(&self, history: Tokens) -> Tokens {
        self.limit.map_or(Tokens(0), |limit| self.beside() + history - limit)
    }

    /// The window by our count: what there is for input and answer.
    pub(crate) fn counted_window(&self) -> Tokens {
        self.limit.map_or(Tokens(u64::MAX), |limit| limit + self.reserve_out)
    }

    /// What must stay free for the provider's count to exceed ours, when this much is used.
    pub(crate) fn allowance(&self, used: Tokens) -> Tokens {
        match (self.input_max, self.limit) {
            (Some(most), Some(limit)) if most > limit => {
                scale(used, most.0 as f64 / limit.0.max(1) as f64).min(most) - used
            }
            _ => Tokens(0),
        }
    }

    /// What goes beside the history.
    fn beside(&self) -> Tokens {
        self.tools + self.input + self.framing + self.fragments + self.padding
    }
}
