//! Reduce: passes that propose edits with reasons. They run only in `plan`, and change nothing themselves.

mod expire;
mod fit_window;

use crate::edit::Edit;
use crate::error::Error;
use crate::receipt::Warning;
use crate::request::Request;
use crate::view::View;

pub use expire::Expire;
pub use fit_window::FitWindow;

/// A pass that proposes what a page need not say any more.
pub trait Reduce {
    /// Returns its name on receipts.
    fn name(&self) -> &'static str;

    /// Proposes edits on a view; proposing again on the result must propose nothing.
    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit>;

    /// Checks its own numbers.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns what it could not reach on the view that its own edits made.
    fn unmet(&self, _view: &View<'_>, _request: &Request<'_>) -> Option<Warning> {
        None
    }
}
