//! Reduce: passes that propose edits with reasons. They run only in `plan`, and change nothing themselves.

mod cap_output;
mod drop_images;
mod drop_reasoning;
mod excerpt;
mod expire;
mod fit_window;
mod fold;
mod floor; // where a floor may lie: shared by the passes that lower history
pub(crate) mod identical;
mod irrelevant;
mod recent;
mod similar;
mod stub; // what stands in a result's place: shared by the passes that look for repeats
mod superseded;
mod token_limit;
mod words; // how much texts have in common

use crate::edit::{Edit, Turn};
use crate::entry::Seq;
use crate::error::Error;
use crate::note::Want;
use crate::policy::Pass;
use crate::receipt::Warning;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use std::fmt::Debug;

pub use cap_output::CapOutput;
pub use drop_images::DropImages;
pub use drop_reasoning::DropReasoning;
pub use excerpt::Excerpt;
pub use expire::{Expire, Marker};
pub use fit_window::FitWindow;
pub use floor::Grain;
pub use fold::Fold;
pub(crate) use fold::material;
pub use identical::Identical;
pub use irrelevant::Irrelevant;
pub use recent::Recent;
pub use similar::Similar;
pub use superseded::Superseded;
pub use token_limit::TokenLimit;

/// Something that could be said shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The entry.
    pub seq: Seq,
    /// What that would save at every call.
    pub saves: Tokens,
    /// The call from which on it could have been done.
    pub due: Turn,
}

/// A pass that proposes what a page need not say any more.
pub trait Reduce: Debug + Send + Sync {
    /// Returns its name on receipts.
    fn name(&self) -> &str;

    /// Proposes edits on a view; proposing again on the result must propose nothing. A part that an edit has changed
    /// already is not changed again: such proposals are not taken.
    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit>;

    /// Returns what it could propose, by a guess that costs less than proposing: plans wait by it. `None` is what
    /// `propose` says.
    fn foresee(&self, _view: &View<'_>, _request: &Request<'_>) -> Option<Vec<Candidate>> {
        None
    }

    /// Returns the summaries that would help it, on the view that it proposes on: with one of them it would propose more.
    fn wants(&self, _view: &View<'_>, _request: &Request<'_>) -> Vec<Want> {
        Vec::new()
    }

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
