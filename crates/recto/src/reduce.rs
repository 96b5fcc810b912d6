//! Reduce: passes that propose edits with reasons. They run only in `plan`, and change nothing themselves.

mod cap_output;
mod drop_images;
mod drop_reasoning;
mod expire;
mod fit_window;
mod floor; // where a floor may lie: shared by the passes that lower history
mod recent;
mod token_limit;

use crate::edit::Edit;
use crate::error::Error;
use crate::policy::Pass;
use crate::receipt::Warning;
use crate::request::Request;
use crate::view::View;
use std::fmt::Debug;

pub use cap_output::CapOutput;
pub use drop_images::DropImages;
pub use drop_reasoning::DropReasoning;
pub use expire::Expire;
pub use fit_window::FitWindow;
pub use floor::Grain;
pub use recent::Recent;
pub use token_limit::TokenLimit;

/// A pass that proposes what a page need not say any more.
pub trait Reduce: Debug + Send + Sync {
    /// Returns its name on receipts.
    fn name(&self) -> &str;

    /// Proposes edits on a view; proposing again on the result must propose nothing. A part that an edit has changed
    /// already is not changed again: such proposals are not taken.
    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit>;

    /// Checks its own numbers.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns what it could not reach on the view that its own edits made.
    fn unmet(&self, _view: &View<'_>, _request: &Request<'_>) -> Option<Warning> {
        None
    }

    /// Returns the pass as data, if it is a built-in one that a policy file can hold.
    fn data(&self) -> Option<Pass> {
        None
    }
}
