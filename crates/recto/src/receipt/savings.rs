//! Savings: what this call would cost without what was decided, and what the decisions have brought so far.

use super::{Fate, FateRow, Prefix};
use crate::cache::Money;
use crate::edit::Reason;
use crate::fragment::{Fragments, Placement};
use crate::pays::{Rates, Waiting};
use crate::request::Request;
use crate::tokens::Tokens;
use serde::{Deserialize, Serialize};

/// What was saved, and what waits to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Savings {
    /// How many tokens less the page has than all that was said, by what was decided.
    pub less: Tokens,
    /// What this call would cost in US dollars with all of it, if the provider's cache held what it should.
    pub usd_without: f64,
    /// What was saved up to this call in US dollars, less what it cost to break the cache; below zero while it has not
    /// paid yet.
    pub usd_so_far: f64,
    /// What could be said shorter, and waits until that pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
}

impl Savings {
    /// Works out what the rows of a receipt save, on a page that costs so much.
    pub(super) fn of(rows: &[FateRow], used: Tokens, money: &Money, prefix: &Prefix, request: &Request<'_>) -> Savings {
        let less = less(rows);
        let rates = Rates::of(request.target);
        let usd = |tokens: f64| tokens * request.target.prices.input / 1e6;
        let usd_without = match request.previous.filter(|_| !prefix.tools_changed) {
            None => money.usd + usd(less.0 as f64 * rates.write),
            Some(_) if prefix.broken_at.is_none() => money.usd + usd(less.0 as f64 * rates.read),
            // Without what was decided it would not have broken.
            Some(previous) => {
                let whole = used + less;
                let new = (request.new_since(previous) - heads(request)).min(whole);
                usd((whole - new).0 as f64 * rates.read + new.0 as f64 * rates.write)
            }
        };
        Savings { less, usd_without, usd_so_far: usd(0.0 - request.reader.balance(rates)), waiting: None }
    }
}

/// What the fragments cost that stand before the history, and are there at every call.
fn heads(request: &Request<'_>) -> Tokens {
    let all = request.fragments.into_iter().flat_map(Fragments::list);
    all.filter(|it| it.fragment.placement == Placement::Head).map(|it| it.cost).sum()
}

fn less(rows: &[FateRow]) -> Tokens {
    let decided = rows.iter().filter(|row| row.fate != Fate::Shown && &*row.by != "blocks" && is_decided(&row.why));
    decided.map(|row| row.before - row.after).sum()
}

/// Whether a fate comes of a decision, and not of log and request alone.
fn is_decided(why: &Reason) -> bool {
    !matches!(
        why,
        Reason::OtherSection { .. }
            | Reason::SectionCap { .. }
            | Reason::Trace
            | Reason::Folded { .. }
            | Reason::Status { .. }
            | Reason::Named { .. }
            | Reason::BeforeEdge { .. }
            | Reason::BeforeCursor { .. }
            | Reason::RemoteStale { .. }
            | Reason::OrphanResult { .. }
            | Reason::LateResult { .. }
            | Reason::Empty
            | Reason::DuplicateInput
            | Reason::PrefixChanged
            | Reason::PrefixUnknown
            | Reason::NotTaken { .. }
    )
}
