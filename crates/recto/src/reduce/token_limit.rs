//! Token limit: history is never longer than so many tokens.
//!
//! When it is longer than the limit and the slack, its oldest part goes until it is within the limit: a contiguous
//! tail, steps whole. With slack it is a sliding window that moves in strides instead of at every turn.

use super::Reduce;
use super::floor::{Aim, Grain, Lower, lower};
use crate::edit::Edit;
use crate::policy::Pass;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenLimit {
    /// What history may cost.
    pub tokens: Tokens,
    /// By how much it may outgrow that before anything goes.
    #[serde(default)]
    pub slack: Tokens,
    /// Where it is cut.
    #[serde(default)]
    pub grain: Grain,
}

impl Reduce for TokenLimit {
    fn name(&self) -> &str {
        "token-limit"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let cost = view.cost();
        if cost <= self.tokens + self.slack {
            return Vec::new();
        }
        let aim = Aim::Tokens { target: self.tokens, room: self.tokens + self.slack, must: true };
        let how = Lower { by: "token-limit", aim, grain: self.grain, keep_first_request: false, minimum: Tokens(0) };
        lower(&how, view, request)
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::TokenLimit(self.clone()))
    }
}
