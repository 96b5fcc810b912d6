//! Select: passes that depend on log and request alone. They are never recorded.

use crate::edit::Reason;
use crate::entry::Status;
use crate::item::Item;
use crate::request::Request;

/// A pass that decides, from log and request alone, whether an item is shown.
pub trait Select {
    /// Returns its name on receipts.
    fn name(&self) -> &'static str;
    /// Returns why an item is not shown, or `None` where it may be.
    fn excludes(&self, item: &Item<'_>, request: &Request<'_>) -> Option<Reason>;
}

/// The passes every view goes through, in this order.
pub(crate) const ALL: &[&dyn Select] = &[&EndedWell, &NotTheInput];

/// Excludes what was broken off: errors, cancellations, replies still in the making.
#[derive(Clone, Copy, Debug)]
pub struct EndedWell;

impl Select for EndedWell {
    fn name(&self) -> &'static str {
        "status"
    }

    fn excludes(&self, item: &Item<'_>, _: &Request<'_>) -> Option<Reason> {
        // A failed tool still answers its call; unfinished results are no answers and never get here.
        let status = item.entry.original().status;
        (status != Status::Sent && item.role() != crate::entry::Role::Tool).then_some(Reason::Status { status })
    }
}

/// Excludes the entry that is the current input, by its id, never by its text.
#[derive(Clone, Copy, Debug)]
pub struct NotTheInput;

impl Select for NotTheInput {
    fn name(&self) -> &'static str {
        "input"
    }

    fn excludes(&self, item: &Item<'_>, request: &Request<'_>) -> Option<Reason> {
        let input = request.input?.original().id.as_ref()?;
        (item.entry.original().id.as_ref() == Some(input)).then_some(Reason::DuplicateInput)
    }
}
