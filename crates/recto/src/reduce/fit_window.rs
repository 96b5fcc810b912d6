//! Fit window: the oldest exchanges go below the floor when the window would overflow.
//!
//! When the history has grown past the trigger, it goes down to the target, which lies well below the trigger, so that
//! the next turns break nothing. It must not be the only pass where old tool results are most of the history: shorten
//! those first.

use super::Reduce;
use super::floor::{Aim, Grain, Lower, lower};
use crate::edit::Edit;
use crate::error::Error;
use crate::policy::Pass;
use crate::receipt::Warning;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FitWindow {
    /// It acts when history takes more than this share of its room.
    pub trigger_percent: u32,
    /// It goes down to this share.
    pub target_percent: u32,
    /// It acts only if this much can go; a page that doesn't fit needs no minimum.
    pub minimum: Tokens,
    /// Whether the first request stays.
    pub keep_first_request: bool,
    /// Where it is cut.
    pub grain: Grain,
}

impl Default for FitWindow {
    fn default() -> FitWindow {
        let (trigger_percent, target_percent, minimum) = (100, 60, Tokens(1_000));
        FitWindow { trigger_percent, target_percent, minimum, keep_first_request: true, grain: Grain::Exchange }
    }
}

impl Reduce for FitWindow {
    fn name(&self) -> &str {
        "fit-window"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let Some(room) = view.room else { return Vec::new() };
        let (cost, target) = (view.cost(), share(room, self.target_percent));
        let must = cost > room || view.is_cut_short();
        if cost <= share(room, self.trigger_percent) && !must {
            return Vec::new();
        }
        let aim = Aim::Tokens { target, room, must };
        let &FitWindow { minimum, keep_first_request, grain, .. } = self;
        lower(&Lower { by: "fit-window", aim, grain, keep_first_request, minimum }, view, request)
    }

    fn check(&self) -> Result<(), Error> {
        let (trigger, target) = (self.trigger_percent, self.target_percent);
        if target <= trigger && trigger <= 100 {
            return Ok(());
        }
        let what = format!("fit_window: trigger_percent {trigger}, target_percent {target}");
        Err(Error::settings(what, "the target must not lie above the trigger, and the trigger is at most 100"))
    }

    fn unmet(&self, view: &View<'_>, _: &Request<'_>) -> Option<Warning> {
        let room = view.room?;
        let cost = view.cost();
        let target = share(room, self.target_percent);
        (cost > share(room, self.trigger_percent)).then_some(Warning::TargetUnmet { cost, target })
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::FitWindow(self.clone()))
    }
}

fn share(room: Tokens, percent: u32) -> Tokens {
    Tokens((u128::from(room.0) * u128::from(percent) / 100) as u64)
}
