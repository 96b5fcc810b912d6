//! Select: passes that depend on log and request alone. They are never recorded.

use crate::edit::Reason;
use crate::entry::{Role, Status};
use crate::item::Item;
use crate::policy::{StatusRule, TraceRule};
use crate::request::Request;
use std::fmt::Debug;

/// A pass that decides, from log and request alone, whether an item is shown.
pub trait Select: Debug + Send + Sync {
    /// Returns its name on receipts.
    fn name(&self) -> &str;
    /// Returns why an item is not shown, or `None` where it may be.
    fn excludes(&self, item: &Item<'_>, request: &Request<'_>) -> Option<Reason>;
}

/// The passes every view goes through, in this order; the host's own follow. Sections and the edge are seen to when
/// the log is read.
pub(crate) const ALL: &[&dyn Select] = &[&EndedWell, &OfThisRun, &NotTheInput];

/// Excludes what was broken off: errors, cancellations, replies still in the making.
#[derive(Clone, Copy, Debug)]
pub struct EndedWell;

impl Select for EndedWell {
    fn name(&self) -> &str {
        "status"
    }

    fn excludes(&self, item: &Item<'_>, request: &Request<'_>) -> Option<Reason> {
        let status = item.entry.original().status;
        let is_noted = request.policy.select.status == StatusRule::Note && item.role() == Role::Assistant;
        let is_final = matches!(status, Status::Error | Status::Cancelled);
        // A failed tool still answers its call; unfinished results are no answers and never get here.
        let is_shown = status == Status::Sent || item.role() == Role::Tool || (is_noted && is_final);
        (!is_shown).then_some(Reason::Status { status })
    }
}

/// Excludes traces of other runs, if the policy says so: a trace without a run belongs to none.
#[derive(Clone, Copy, Debug)]
pub struct OfThisRun;

impl Select for OfThisRun {
    fn name(&self) -> &str {
        "trace"
    }

    fn excludes(&self, item: &Item<'_>, request: &Request<'_>) -> Option<Reason> {
        let entry = item.entry.original();
        let is_shown = entry.lane == crate::entry::Lane::Talk
            || match request.policy.select.trace {
                TraceRule::All => true,
                TraceRule::CurrentRun => request.run.is_some() && entry.run.as_ref() == request.run,
                TraceRule::None => false,
            };
        (!is_shown).then_some(Reason::Trace)
    }
}

/// Excludes the entry that is the current input, by its id, never by its text.
#[derive(Clone, Copy, Debug)]
pub struct NotTheInput;

impl Select for NotTheInput {
    fn name(&self) -> &str {
        "input"
    }

    fn excludes(&self, item: &Item<'_>, request: &Request<'_>) -> Option<Reason> {
        let input = request.input?.original().id.as_ref()?;
        (item.entry.original().id.as_ref() == Some(input)).then_some(Reason::DuplicateInput)
    }
}
