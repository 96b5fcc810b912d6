//! The receipt: every entry's fate, where the tokens go, what the cache still holds, and the ticket.

mod explain;
mod fates;

use crate::digest::Digest;
use crate::edit::{PassName, Reason, Turn};
use crate::entry::{CallId, Part, Role, Seq, Span, Text};
use crate::fragment::Lifecycle;
use crate::log::Scope;
use crate::page::{Mode, Page};
use crate::request::{Budget, Request};
use crate::target::{Memory, Prices};
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

/// How many of the costliest items that can't go an overflow names.
const LARGEST_MAX: usize = 5;

/// The explanation of one compile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Receipt {
    /// The model the page is for.
    pub target: Text,
    /// The policy in force.
    pub policy: Text,
    /// How much of the conversation the page carries.
    pub mode: Mode,
    /// Where the tokens go.
    pub ledger: Ledger,
    /// What of the previous page stands unchanged.
    pub prefix: Prefix,
    /// What the input costs.
    pub money: Money,
    /// What became of every fragment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fragments: Vec<FragmentRow>,
    /// One row for every entry, or for a run of entries that were not read; together they cover the whole log.
    pub fates: Vec<FateRow>,
    /// What the host should know.
    pub warnings: Vec<Warning>,
    /// For acknowledging the call, and for compiling this page again.
    pub ticket: Ticket,
}

/// What became of a fragment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentRow {
    /// Its name.
    pub id: Text,
    /// Whether it stays the same from call to call.
    pub lifecycle: Lifecycle,
    /// What became of it.
    pub fate: FragmentFate,
    /// What it costs.
    pub cost: Tokens,
    /// What identifies its content.
    pub fingerprint: Digest,
}

/// What became of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FragmentFate {
    /// It stands on the page.
    Shown,
    /// It says nothing.
    Empty,
    /// There was no room for it beside the history.
    Shed,
    /// The provider holds it already.
    Held,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It stands on the page as it was said.
    Shown,
    /// It stands on the page otherwise than it was said.
    Changed,
    /// It doesn't stand on the page.
    NotShown,
}

/// The fate of an entry, or of a run of entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FateRow {
    /// Which entries.
    pub span: Span,
    /// How many.
    pub entries: u64,
    /// Of a run of entries: only those that lie within this part of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// What became of them.
    pub fate: Fate,
    /// The pass that saw to it.
    pub by: PassName,
    /// Why.
    #[serde(flatten)]
    pub why: Reason,
    /// What they cost as they were said.
    pub before: Tokens,
    /// What they cost on the page.
    pub after: Tokens,
}

/// Where the tokens of a window go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The whole window; `None` is unbounded.
    pub window: Option<Tokens>,
    /// Kept free for the answer.
    pub reserve_out: Tokens,
    /// Tool definitions.
    pub tools: Tokens,
    /// Fragments that stay the same.
    pub fixed: Tokens,
    /// Fragments that are new at every call.
    pub dynamic: Tokens,
    /// Instructions.
    pub system: Tokens,
    /// The user's words.
    pub user: Tokens,
    /// The model's words.
    pub assistant: Tokens,
    /// The model's reasoning.
    pub reasoning: Tokens,
    /// Tool calls.
    pub calls: Tokens,
    /// Tool results.
    pub results: Tokens,
    /// What is said now.
    pub input: Tokens,
    /// What the format costs beside the content.
    pub framing: Tokens,
}

impl Ledger {
    pub(crate) fn of(budget: &Budget) -> Ledger {
        let &Budget { window, reserve_out, tools, framing, .. } = budget;
        Ledger { window, reserve_out, tools, framing, ..Ledger::default() }
    }

    pub(crate) fn add(&mut self, role: Role, part: &Part, cost: Tokens) {
        *match (part, role) {
            (Part::Reasoning(_), _) => &mut self.reasoning,
            (Part::Call(_), _) => &mut self.calls,
            (Part::Result(_), _) | (_, Role::Tool) => &mut self.results,
            (_, Role::System) => &mut self.system,
            (_, Role::User) => &mut self.user,
            (_, Role::Assistant) => &mut self.assistant,
        } += cost;
    }

    pub(crate) fn fragment(&mut self, lifecycle: Lifecycle, cost: Tokens) {
        *match lifecycle {
            Lifecycle::Static => &mut self.fixed,
            Lifecycle::Dynamic => &mut self.dynamic,
        } += cost;
    }

    /// Returns what the request costs.
    pub fn used(&self) -> Tokens {
        let history = self.system + self.user + self.assistant + self.reasoning + self.calls + self.results;
        history + self.tools + self.fixed + self.dynamic + self.input + self.framing
    }

    /// Returns what is left of the window; `None` where it is unbounded.
    pub fn left(&self) -> Option<Tokens> {
        self.window.map(|window| window - self.reserve_out - self.used())
    }
}

/// What of the previous page stands unchanged at the beginning of this one: what a prompt cache still holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// How many messages.
    pub messages: usize,
    /// What they cost, with the tools before them.
    pub tokens: Tokens,
    /// How many messages the previous page had; `None` if there was none.
    pub previous: Option<usize>,
    /// The first entry that stands otherwise than on the previous page, if that page was not just carried on.
    pub broken_at: Option<Seq>,
    /// Whether other tools were offered, so that nothing is held.
    pub tools_changed: bool,
}

impl Prefix {
    fn of(page: &Page, request: &Request<'_>) -> Prefix {
        let Some(previous) = request.previous else { return Prefix::default() };
        let digest = |page: &Page| page.tools.as_ref().map(|tools| tools.digest);
        let len = Some(previous.messages.len());
        if digest(page) != digest(previous) {
            return Prefix { previous: len, tools_changed: true, ..Prefix::default() };
        }
        let pairs = page.messages.iter().zip(&previous.messages);
        let same = pairs.take_while(|(new, old)| new.digest == old.digest).count();
        let tools = page.tools.as_ref().map_or(Tokens(0), |tools| tools.cost);
        let tokens = page.messages[..same].iter().map(|message| message.cost).sum::<Tokens>() + tools;
        let broken_at = previous.messages.get(same).and_then(|old| old.seq);
        Prefix { messages: same, tokens, previous: len, broken_at, tools_changed: false }
    }
}

/// What the input of this call costs, if the provider's cache holds what it could.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Money {
    /// Tokens read from the cache.
    pub cached: Tokens,
    /// All others.
    pub fresh: Tokens,
    /// US dollars.
    pub usd: f64,
}

impl Money {
    fn of(prices: &Prices, ledger: &Ledger, prefix: &Prefix) -> Money {
        let cached = prefix.tokens;
        let fresh = ledger.used() - cached;
        let price = prices.write.unwrap_or(prices.input);
        let usd = (cached.0 as f64 * prices.cached + fresh.0 as f64 * price) / 1e6;
        Money { cached, fresh, usd }
    }
}

/// What is needed to acknowledge a call, and to compile its page again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Who read.
    pub reader: Text,
    /// The number of the call.
    pub turn: Turn,
    /// The newest entry of the log.
    pub head: Option<Seq>,
    /// The newest decision or revert.
    pub ordinal: u64,
    /// What identifies everything else that went in.
    pub inputs: Digest,
    /// What identifies the page.
    pub page: Digest,
    /// The version that compiled it.
    pub version: Text,
}

/// Something the host should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "warning", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// A call has no result; a stand-in is shown.
    MissingResult {
        /// The step.
        step: Seq,
        /// The call.
        call: CallId,
    },
    /// A pin speaks of something that had gone below the floor before; it does not bring it back.
    PinBelowFloor {
        /// What was pinned.
        at: Span,
        /// The floor.
        floor: Seq,
    },
    /// An edit was not applied.
    EditSkipped {
        /// The pass that proposed it.
        by: PassName,
        /// What it spoke of.
        at: Span,
        /// Why not.
        why: Text,
    },
    /// The log was counted by another tokenizer than the target's.
    CountedBy {
        /// What counted.
        counter: Text,
        /// The target's own.
        target: Text,
    },
    /// A session claims more than the log holds; everything is sent.
    CursorBeyondLog {
        /// What it claims.
        acked: Seq,
    },
    /// A policy could not reach its target.
    TargetUnmet {
        /// What the history costs now.
        cost: Tokens,
        /// What it should cost.
        target: Tokens,
    },
    /// There is more of something below than is ever read; the oldest are left out.
    TooMany {
        /// Of what.
        what: Text,
    },
    /// A plan stopped reading before it had filled the page.
    ReadBound {
        /// How far it read.
        from: Seq,
    },
}

/// Why a page doesn't fit, and by how much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overflow {
    /// The whole window.
    pub window: Tokens,
    /// Kept free for the answer.
    pub reserve_out: Tokens,
    /// Tool definitions.
    pub tools: Tokens,
    /// What is said now.
    pub input: Tokens,
    /// What the format costs for the request.
    pub framing: Tokens,
    /// Fragments that can't be left out.
    pub fragments: Tokens,
    /// The history; where not all of it was read, as much as it costs in the log.
    pub history: Tokens,
    /// Of that, what may never go: instructions, pins, the last user words, the newest item.
    pub protected: Tokens,
    /// By how much it is too long.
    pub over: Tokens,
    /// The costliest of what may never go.
    pub largest: Vec<Protected>,
    /// Whether the whole history was read.
    pub is_complete: bool,
}

/// An item that may never go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Protected {
    /// Where it stands.
    pub seq: Seq,
    /// What it costs.
    pub cost: Tokens,
    /// Why it may not go.
    #[serde(flatten)]
    pub why: Reason,
}

impl Overflow {
    pub(crate) fn of(view: &View<'_>, request: &Request<'_>, budget: &Budget) -> Overflow {
        let &Budget { reserve_out, tools, input, framing, fragments, .. } = budget;
        let history = match request.log.head().filter(|_| !view.window.is_complete) {
            None => view.cost(),
            Some(last) => {
                let first = view.window.floor.map(|floor| floor.at).max(view.window.edge).unwrap_or_default();
                let sums = request.log.total(Span { first, last });
                sums.tokens + Tokens(sums.entries * view.overhead.0)
            }
        };
        let kept = view.items.iter().filter(|item| item.is_shown());
        let mut largest: Vec<Protected> = kept
            .filter_map(|item| Some(Protected { seq: item.seq(), cost: item.cost(), why: item.keep()?.clone() }))
            .collect();
        let protected = largest.iter().map(|item| item.cost).sum();
        largest.sort_by_key(|item| (std::cmp::Reverse(item.cost), item.seq));
        largest.truncate(LARGEST_MAX);
        let window = budget.window.unwrap_or(Tokens(u64::MAX));
        let over = budget.over(history);
        let is_complete = view.window.is_complete;
        Overflow {
            window,
            reserve_out,
            tools,
            input,
            framing,
            fragments,
            history,
            protected,
            over,
            largest,
            is_complete,
        }
    }

    pub(crate) fn hint(&self) -> String {
        let without_history = self.reserve_out + self.tools + self.input + self.framing + self.fragments;
        if without_history + self.protected > self.window {
            let is_pinned = self.largest.iter().any(|item| item.why == Reason::Pinned);
            let unpin = if is_pinned { ", unpin something" } else { "" };
            format!(
                "it would not fit even without all history that may go: shorten the input{unpin}, or take a larger window"
            )
        } else {
            "a policy that can reduce makes it fit: try `safe`".into()
        }
    }
}

impl Receipt {
    pub(crate) fn of(
        view: &View<'_>,
        page: &Page,
        ledger: Ledger,
        fragments: Vec<FragmentRow>,
        request: &Request<'_>,
    ) -> Receipt {
        let prefix = Prefix::of(page, request);
        Receipt {
            target: request.target.name.clone(),
            policy: request.policy.name.clone(),
            mode: page.mode,
            money: Money::of(&request.target.prices, &ledger, &prefix),
            prefix,
            ledger,
            fragments,
            fates: fates::rows(view, page, request),
            warnings: warnings(view, request),
            ticket: Ticket {
                reader: request.reader.name().clone(),
                turn: request.reader.turn(),
                head: request.log.head(),
                ordinal: request.reader.ordinal(),
                inputs: request.inputs(),
                page: page.digest(),
                version: env!("CARGO_PKG_VERSION").into(),
            },
        }
    }

    /// Returns the row that speaks of an entry.
    pub fn fate(&self, seq: Seq) -> Option<&FateRow> {
        // What has a row of its own is in no run.
        let of = |row: &&FateRow| row.span.contains(seq);
        let own = self.fates.iter().filter(|row| row.scope.is_none() || row.entries == 1).find(of);
        own.or_else(|| self.fates.iter().find(of))
    }
}

fn warnings(view: &View<'_>, request: &Request<'_>) -> Vec<Warning> {
    let mut warnings = view.warnings.clone();
    for item in view.items.iter().filter(|item| item.is_shown()) {
        let missing = item.unanswered().map(|call| Warning::MissingResult { step: item.seq(), call: call.id.clone() });
        warnings.extend(missing);
    }
    let (counter, own) = (request.log.counter().name(), request.target.tokenizer.to_string());
    if counter != own || !request.target.is_counted_exactly {
        let own = if request.target.is_counted_exactly { own } else { "not published".into() };
        warnings.push(Warning::CountedBy { counter: counter.into(), target: own.into() });
    }
    let beyond = request.session.and_then(|session| session.acked()).filter(|acked| Some(*acked) > request.log.head());
    if let Some(acked) = beyond.filter(|_| request.target.memory == Memory::Session) {
        warnings.push(Warning::CursorBeyondLog { acked });
    }
    warnings
}
