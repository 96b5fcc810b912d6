//! The policies that come with Recto.

use super::{Decorate, Policy, Prompts, Resumed, Sections, Stale, StatusRule, Step, TraceRule};
use crate::block::{self, Nexus};
use crate::entry::{EntryKind, Section};
use crate::error::Error;
use crate::expiry::{Expiry, ExpiryAction, ExpiryRule};
use crate::fragment::Placement;
use crate::redact::Redact;
use crate::reduce::{Excerpt, Expire, FitWindow, Fold, Grain, Identical, Marker, Superseded};
use crate::tokens::Tokens;

/// Name, what it is for, and how it is made.
type Preset = (&'static str, &'static str, fn() -> Policy);

const PRESETS: &[Preset] = &[
    ("none", "changes nothing: what doesn't fit is an error with the whole breakdown", Policy::none),
    ("safe", "drops the oldest exchanges, only when the window would overflow; rules and requests stay", Policy::safe),
    ("default", "excerpts of what is old, when that pays; then as safe", Policy::usual),
    ("careful", "the same, keeping more", Policy::careful),
    ("frugal", "the same, keeping less", Policy::frugal),
    ("first_chars", "shortens old tool results to their beginning, in batches; then as safe", Policy::first_chars),
    ("folding", "as default; a model's note stands for the oldest exchanges before any are dropped", Policy::folding),
    ("cognesy_default", "the conversation, and of traces only the current run's", Policy::cognesy_default),
    ("cognesy_selected", "the sections summary, buffer and messages, with all traces", Policy::cognesy_selected),
    (
        "deepchat_v1",
        "sent messages only; drops the oldest messages, one by one, until the rest fits",
        Policy::deepchat_v1,
    ),
    (
        "deepchat_today",
        "drops the oldest exchanges until the rest fits; failed answers stay, with a note",
        Policy::deepchat_today,
    ),
    (
        "protect_40k",
        "old results go once 20,000 tokens can, but for the newest 40,000, as opencode does; then as safe",
        Policy::protect_40k,
    ),
    (
        "clear_over_100k",
        "all results but the newest 3 go over 100,000 tokens, as Anthropic's context editing does; then as safe",
        Policy::clear_over_100k,
    ),
    ("mask_10", "all results but the newest 10 go, as SWE-agent masks observations; then as safe", Policy::mask_10),
    (
        "tenex_doc",
        "changes nothing; on resume dynamic prompts come first, as the user's, and on a whole page before history",
        Policy::tenex_doc,
    ),
    ("tenex_v1", "the same, but on a whole page dynamic prompts come behind history", Policy::tenex_v1),
    (
        "blocks",
        "a few tagged messages, what stays the same first; what was said before is one of them",
        Policy::blocks_first,
    ),
    ("nexus_doc", "five tagged messages as the NEXUS document has them, history in one of them", Policy::nexus_doc),
    ("nexus_head", "the same, as the code of NEXUS has them", Policy::nexus_head),
    ("mj_doc", "results expire at once, as set for each action; nothing does unless it is set", Policy::mj_doc),
];

impl Policy {
    /// Returns the policy that changes nothing: what doesn't fit is an error.
    pub fn none() -> Policy {
        Policy::named("none")
    }

    /// Returns the policy that only drops the oldest exchanges, and only when the window would overflow. Users' short
    /// messages that say always or never, or name a file of project rules, stay. Secrets in results are placeholders.
    pub fn safe() -> Policy {
        let mut policy = Policy::named("safe").redacting(Redact::secrets_in_results()).then(FitWindow::default());
        policy.pins.words = ["always", "never"].map(Into::into).into();
        policy.pins.names = ["AGENTS.md", "CLAUDE.md"].map(Into::into).into();
        policy
    }

    /// Returns the policy for those who have not chosen one: of what is old the lines stay that say what nothing else on
    /// the page says, and that is done when it pays. Exchanges go last, as under [`safe`](Policy::safe).
    pub fn usual() -> Policy {
        Policy::excerpting("default", Excerpt::default())
    }

    /// Returns the policy that keeps more than the usual one.
    pub fn careful() -> Policy {
        Policy::excerpting("careful", Excerpt { worth: 4.0, ..Excerpt::default() })
    }

    /// Returns the policy that keeps less than the usual one.
    pub fn frugal() -> Policy {
        let mut policy = Policy::excerpting("frugal", Excerpt { worth: 24.0, after: 4, ..Excerpt::default() });
        policy.patience.percent = 110;
        policy
    }

    /// Returns the usual policy with notes: when history grows long, a model's [note](crate::note) stands for the oldest
    /// exchanges. Exchanges go without one only where the page would not fit.
    pub fn folding() -> Policy {
        let mut policy = Policy { name: "folding".into(), ..Policy::usual() };
        policy.reduce.insert(policy.reduce.len() - 1, Fold::default().into());
        policy
    }

    fn excerpting(name: &str, excerpt: Excerpt) -> Policy {
        // Entries may say themselves when they expire.
        let expire = Expire::by_rules([]).into();
        let (identical, superseded) = (Identical::default().into(), Superseded::default().into());
        let reduce = vec![expire, identical, superseded, excerpt.into(), FitWindow::default().into()];
        Policy { reduce, name: name.into(), ..Policy::safe() }
    }

    /// Returns the policy that shortens old tool results first, in batches, and drops exchanges last.
    pub fn first_chars() -> Policy {
        let expire = Expire { finished_runs: true, minimum: Tokens(4_000), ..Expire::first_chars(4, 500) };
        let safe = Policy::safe();
        Policy { reduce: vec![expire.into(), FitWindow::default().into()], name: "first_chars".into(), ..safe }
    }

    /// Returns the policy with opencode's numbers: results go, but for the newest 40,000 tokens of them, in batches of
    /// at least 20,000. What users say stays, unless it would not fit.
    pub fn protect_40k() -> Policy {
        let (protect, minimum) = (Tokens(40_000), Tokens(20_000));
        Policy::removing("protect_40k", Expire { protect, minimum, ..seen_results() })
    }

    /// Returns the policy with the numbers of Anthropic's context editing: once history is over 100,000 tokens, results
    /// go, but for the newest three that the model has seen. What users say stays, unless it would not fit.
    pub fn clear_over_100k() -> Policy {
        Policy::removing("clear_over_100k", seen_results().keep_last(3).when_over(Tokens(100_000)))
    }

    /// Returns the policy that masks observations, as SWE-agent does: all results go but the newest ten that the model
    /// has seen. What users say stays, unless it would not fit.
    pub fn mask_10() -> Policy {
        Policy::removing("mask_10", seen_results().keep_last(10))
    }

    /// Results go as soon as they may, and leave a stub.
    fn removing(name: &str, expire: impl Into<Step>) -> Policy {
        let reduce = vec![expire.into(), FitWindow::default().into()];
        Policy { reduce, name: name.into(), ..Policy::safe() }.immediately()
    }

    /// Returns the policy that shows the conversation, and of traces only the current run's.
    pub fn cognesy_default() -> Policy {
        let mut policy = Policy::named("cognesy_default");
        policy.select.trace = TraceRule::CurrentRun;
        policy
    }

    /// Returns the policy that shows the sections in inference order, unfiltered.
    pub fn cognesy_selected() -> Policy {
        let mut policy = Policy::named("cognesy_selected");
        policy.select.sections = Sections::Only(Section::RANKED.map(Section::from).into());
        policy
    }

    /// Returns the policy that drops single messages from the front until the rest fits.
    pub fn deepchat_v1() -> Policy {
        Policy::named("deepchat_v1").then(FitWindow { grain: Grain::Message, ..exact_fit() })
    }

    /// Returns the policy that drops whole exchanges until the rest fits, and tells of failed answers.
    pub fn deepchat_today() -> Policy {
        let mut policy = Policy::named("deepchat_today").then(exact_fit());
        policy.select.status = StatusRule::Note;
        policy
    }

    /// Returns the policy that changes nothing and places prompts as the TENEX document does: all of them before the
    /// history, and on resume the dynamic ones before what is new, in the user's place.
    pub fn tenex_doc() -> Policy {
        Policy::resuming("tenex_doc", Placement::Head)
    }

    /// Returns the policy that places prompts as TENEX did when it shipped: dynamic ones behind the history.
    pub fn tenex_v1() -> Policy {
        Policy::resuming("tenex_v1", Placement::Tail)
    }

    fn resuming(name: &str, dynamic: Placement) -> Policy {
        let prompts = Prompts { full: Some(dynamic), resumed: Resumed::UserFirst };
        Policy { prompts, stale: Stale::Keep, ..Policy::named(name) }
    }

    /// Returns the policy that lays a page out in tagged messages, what stays the same first, so that a provider's cache
    /// holds it. What was said before is one of them; entries may say themselves when they expire.
    pub fn blocks_first() -> Policy {
        Policy { blocks: block::own(), ..Policy::named("blocks").then(Expire::by_rules([])).immediately() }
    }

    /// Returns the policy that lays a page out as the NEXUS document does: five messages, with its words.
    pub fn nexus_doc() -> Policy {
        Policy { blocks: block::nexus(Nexus::Document), ..Policy::named("nexus_doc") }
    }

    /// Returns the policy that lays a page out as the code of NEXUS does.
    pub fn nexus_head() -> Policy {
        Policy { blocks: block::nexus(Nexus::Code), ..Policy::named("nexus_head") }
    }

    /// Returns the policy that lets results expire by the settings of their actions, with MemberJunction's texts. By
    /// itself nothing expires; [`AgentActions::policy`](crate::mj::AgentActions::policy) adds the settings.
    pub fn mj_doc() -> Policy {
        Policy::named("mj_doc").then(Policy::mj_expire()).immediately()
    }

    pub(crate) fn mj_expire() -> Expire {
        Expire { marker: Marker::Mj, ..Expire::by_rules([]) }
    }

    /// Returns the built-in policies.
    pub fn presets() -> Vec<Policy> {
        PRESETS.iter().map(|(_, _, make)| make()).collect()
    }

    /// Returns the names of the built-in policies, and what each is for.
    pub fn preset_names() -> impl Iterator<Item = (&'static str, &'static str)> {
        PRESETS.iter().map(|(name, about, _)| (*name, *about))
    }

    /// Returns a built-in policy by name.
    pub fn preset(name: &str) -> Result<Policy, Error> {
        let found = PRESETS.iter().find(|(known, _, _)| *known == name).map(|(_, _, make)| make());
        found.ok_or_else(|| {
            let known: Vec<&str> = PRESETS.iter().map(|(name, _, _)| *name).collect();
            Error::settings(format!("unknown policy {name:?}"), format!("known policies: {}", known.join(", ")))
        })
    }
}

/// Tool results go once the model has seen them, and leave a stub; nothing else does.
fn seen_results() -> Expire {
    let remove = Expiry { after: 0, action: ExpiryAction::Remove };
    Expire::by_rules([ExpiryRule { kind: Some(EntryKind::ToolResult), ..remove.into() }])
}

/// History goes until it just fits: cheap to say, dear to cache.
fn exact_fit() -> FitWindow {
    FitWindow {
        trigger_percent: 100,
        target_percent: 100,
        minimum: Tokens(0),
        keep_first_request: false,
        grain: Grain::Exchange,
    }
}
