//! The receipt: every entry's fate, where the tokens go, what the cache still holds, and the ticket.

mod explain;
mod fates;
mod redacted;
mod savings;

use crate::cache::Money;
use crate::calibration::Calibration;
use crate::digest::Digest;
use crate::edit::{PassName, Reason, Turn};
use crate::entry::{CallId, Part, Role, Seq, Span, Text};
use crate::fragment::Lifecycle;
use crate::holding::Holding;
use crate::log::Scope;
use crate::page::{CONTINUE, Message, Mode, Page};
use crate::request::{Budget, Request};
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

pub use crate::holding::Full;
pub use redacted::Redacted;
pub use savings::Savings;

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
    /// Why it carries everything, where the provider remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<Full>,
    /// Where the tokens go.
    pub ledger: Ledger,
    /// What of the previous page stands unchanged.
    pub prefix: Prefix,
    /// How the provider's count relates to ours, where its vocabulary is not published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibrated>,
    /// What the input costs.
    pub money: Money,
    /// What was saved, and what waits to be.
    pub savings: Savings,
    /// What became of every fragment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fragments: Vec<FragmentRow>,
    /// One row for every entry, or for a run of entries that were not read; together they cover the whole log.
    pub fates: Vec<FateRow>,
    /// What is shown as placeholders.
    #[serde(skip_serializing_if = "Redacted::is_empty")]
    pub redacted: Redacted,
    /// What the host should know.
    pub warnings: Vec<Warning>,
    /// For acknowledging the call, and for compiling this page again.
    pub ticket: Ticket,
}

/// What the provider is expected to count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// What our count is multiplied by.
    pub factor: f64,
    /// How many calls it was learned from.
    pub calls: u32,
    /// What the provider will most likely count for the input.
    pub expected: Tokens,
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
    /// The provider holds it as it was before; it is sent once more.
    StaticChanged,
    /// Nothing is new, so nothing is sent.
    Unsent,
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
    /// How much input the provider takes, where that is less than the window leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_max: Option<Tokens>,
    /// Kept free because the provider's count may exceed ours.
    #[serde(default, skip_serializing_if = "is_none")]
    pub allowance: Tokens,
    /// What the provider holds already beside all this, by our count.
    #[serde(default, skip_serializing_if = "is_none")]
    pub held: Tokens,
}

fn is_none(tokens: &Tokens) -> bool {
    tokens.0 == 0
}

impl Ledger {
    pub(crate) fn of(budget: &Budget) -> Ledger {
        let &Budget { window, reserve_out, tools, framing, .. } = budget;
        let input_max = budget.input_max.filter(|most| window.is_some_and(|window| *most < window - reserve_out));
        Ledger { window, reserve_out, tools, framing, input_max, ..Ledger::default() }
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

    /// Returns what the request costs, by what it is for; each with its name.
    pub fn kinds(&self) -> [(&'static str, Tokens); 11] {
        [
            ("tools", self.tools),
            ("static", self.fixed),
            ("dynamic", self.dynamic),
            ("system", self.system),
            ("user", self.user),
            ("assistant", self.assistant),
            ("reasoning", self.reasoning),
            ("calls", self.calls),
            ("results", self.results),
            ("input", self.input),
            ("framing", self.framing),
        ]
    }

    /// Returns what the request costs.
    pub fn used(&self) -> Tokens {
        self.kinds().into_iter().map(|(_, cost)| cost).sum()
    }

    /// Returns what is left of the window; `None` where it is unbounded.
    pub fn left(&self) -> Option<Tokens> {
        let most = |window: Tokens| (window - self.reserve_out).min(self.input_max.unwrap_or(window));
        self.window.map(|window| most(window) - self.used() - self.held - self.allowance)
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
    /// How many tokens less it has than all that was said, by what was decided.
    #[serde(default)]
    pub less: Tokens,
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
    /// A static fragment is not as the session's provider holds it; everything is sent.
    StaticChanged,
    /// The target can't offer a tool.
    ToolNotTaken {
        /// The tool.
        tool: Text,
    },
    /// The target can't be told the form that the answer must have.
    FormatNotTaken,
    /// A format wants the user's words at a place where there were none, so a line was added.
    LineAdded {
        /// What it says.
        text: Text,
    },
    /// History was changed while calls were open, because it would not have fitted: the step's own reasoning went.
    CutInOpenRound,
    /// A block was longer than it may be.
    BlockCut {
        /// The block.
        block: Text,
        /// How many characters are shown.
        shown: usize,
        /// How many there were.
        of: usize,
    },
    /// A word stands at more places than were looked at for what comes back; the newest were.
    RecallBound {
        /// How many such words there are.
        terms: usize,
    },
    /// The index is behind the log: what was said since can't come back yet.
    RecallBehind {
        /// How many entries it lacks.
        entries: u64,
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
        let &Budget { reserve_out, tools, input, fragments, .. } = budget;
        let framing = budget.framing + budget.padding;
        let history = match request.log.head().filter(|_| !view.window.is_complete) {
            None => view.cost(),
            Some(last) => {
                let first = view.window.floor.map(|floor| floor.at).max(view.window.edge).unwrap_or_default();
                let sums = request.log.total(Span { first, last });
                sums.tokens + Tokens(sums.entries * view.overhead.0)
            }
        };
        let kept = view.items.iter().filter(|item| item.is_message());
        let mut largest: Vec<Protected> = kept
            .filter_map(|item| Some(Protected { seq: item.seq(), cost: item.cost(), why: item.keep()?.clone() }))
            .collect();
        let protected = largest.iter().map(|item| item.cost).sum();
        largest.sort_by_key(|item| (std::cmp::Reverse(item.cost), item.seq));
        largest.truncate(LARGEST_MAX);
        let window = budget.counted_window();
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
            let is_expanded = self.largest.iter().any(|item| matches!(item.why, Reason::Expanded { .. }));
            let unpin = if is_pinned { ", unpin something" } else { "" };
            let revert = if is_expanded { ", revert an expansion" } else { "" };
            format!(
                "it would not fit even without all history that may go: shorten the input{unpin}{revert}, or take a larger window"
            )
        } else {
            "a policy that can reduce makes it fit: try `safe`".into()
        }
    }
}

impl Calibrated {
    fn of(ledger: &Ledger, prefix: &Prefix, request: &Request<'_>) -> Option<Calibrated> {
        let calibration = &request.target.calibration;
        let &Calibration { factor, calls, .. } = calibration;
        let expected = calibration.predict(ledger.used(), prefix.tokens, request.seen());
        (!calibration.is_exact()).then_some(Calibrated { factor, calls, expected })
    }
}

impl Receipt {
    pub(crate) fn of(
        view: &View<'_>,
        page: &Page,
        ledger: Ledger,
        fragments: Vec<FragmentRow>,
        request: &Request<'_>,
        holding: &Holding<'_>,
    ) -> Receipt {
        let prefix = Prefix::of(page, request);
        let calibration = Calibrated::of(&ledger, &prefix, request);
        let same = (!prefix.tools_changed).then_some(prefix.messages);
        let expected = calibration.map_or(ledger.used(), |it| it.expected);
        let fates = fates::rows(view, holding);
        let money = Money::of(page, ledger.used(), expected, same, request);
        let savings = Savings::of(&fates, expected, &money, &prefix, request);
        Receipt {
            target: request.target.name.clone(),
            policy: request.policy.name.clone(),
            mode: page.mode,
            full: holding.full,
            money,
            calibration,
            prefix,
            ledger,
            fragments,
            savings,
            fates,
            redacted: Redacted::of(view, request),
            warnings: warnings(view, page, request, holding),
            ticket: Ticket {
                reader: request.reader.name().clone(),
                turn: request.reader.turn(),
                head: request.log.head(),
                ordinal: request.reader.ordinal(),
                less: savings.less,
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
        let own = self.fates.iter().find(|row| row.span == Span::one(seq));
        let run = || self.fates.iter().filter(|row| row.scope.is_none()).find(of);
        own.or_else(run).or_else(|| self.fates.iter().find(of))
    }
}

fn warnings(view: &View<'_>, page: &Page, request: &Request<'_>, holding: &Holding<'_>) -> Vec<Warning> {
    let mut warnings = view.warnings.clone();
    for item in view.items.iter().filter(|item| item.is_message()) {
        let missing = item.unanswered().map(|call| Warning::MissingResult { step: item.seq(), call: call.id.clone() });
        warnings.extend(missing);
    }
    let (counter, own) = (request.log.counter().name(), request.target.tokenizer.as_str());
    if counter != own || !request.target.is_counted_exactly {
        let own = if request.target.is_counted_exactly { own } else { "not published" };
        warnings.push(Warning::CountedBy { counter: counter.into(), target: own.into() });
    }
    match holding.full {
        Some(Full::CursorBeyondLog { acked }) => warnings.push(Warning::CursorBeyondLog { acked }),
        Some(Full::StaticChanged) => warnings.push(Warning::StaticChanged),
        _ => {}
    }
    let is_added = |message: &Message| {
        message.seq.is_none() && matches!(&*message.parts, [Part::Text { text }] if **text == *CONTINUE)
    };
    if page.messages.iter().any(is_added) {
        warnings.push(Warning::LineAdded { text: CONTINUE.into() });
    }
    let wire = request.target.wire;
    let tools = request.tools.into_iter().flat_map(|tools| tools.list()).filter(|tool| !tool.is_taken_by(wire));
    warnings.extend(tools.map(|tool| Warning::ToolNotTaken { tool: tool.name().into() }));
    if request.format.is_some_and(|format| !format.is_taken_by(wire)) {
        warnings.push(Warning::FormatNotTaken);
    }
    warnings
}
