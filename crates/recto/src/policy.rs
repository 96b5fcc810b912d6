//! Which passes run and with which numbers, as data.

use crate::digest::Digest;
use crate::entry::{ExpiryAction, Text};
use crate::error::{Error, Place};
use crate::reduce::{Expire, FitWindow, Reduce};
use crate::tokens::Tokens;
use crate::wire::json::without_position;
use serde::{Deserialize, Serialize};

/// The passes that may shorten a page, in the order they run, and their numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Its name on receipts.
    pub name: Text,
    /// Passes that propose edits, cheap ones first.
    pub reduce: Vec<Pass>,
}

/// A built-in pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pass {
    /// Old tool results go, or keep their beginning.
    Expire(Expire),
    /// The oldest exchanges go below the floor.
    FitWindow(FitWindow),
}

impl Pass {
    pub(crate) fn as_reduce(&self) -> &dyn Reduce {
        match self {
            Pass::Expire(pass) => pass,
            Pass::FitWindow(pass) => pass,
        }
    }
}

impl Policy {
    /// Returns the policy that changes nothing: what doesn't fit is an error.
    pub fn none() -> Policy {
        Policy { name: "none".into(), reduce: Vec::new() }
    }

    /// Returns the policy that only drops the oldest exchanges, and only when the window would overflow.
    pub fn safe() -> Policy {
        Policy { name: "safe".into(), reduce: vec![Pass::FitWindow(FitWindow::default())] }
    }

    /// Returns the policy that shortens old tool results first, in batches, and drops exchanges last.
    pub fn first_chars() -> Policy {
        let expire = Expire { after: 4, action: ExpiryAction::FirstChars(500), minimum: Tokens(4_000) };
        let reduce = vec![Pass::Expire(expire), Pass::FitWindow(FitWindow::default())];
        Policy { name: "first_chars".into(), reduce }
    }

    /// Returns the built-in policies.
    pub fn presets() -> [Policy; 3] {
        [Policy::none(), Policy::safe(), Policy::first_chars()]
    }

    /// Reads a policy from JSON; mistakes come with their position.
    pub fn from_json(text: &str) -> Result<Policy, Error> {
        let policy: Policy = serde_json::from_str(text).map_err(|error| {
            let place = Place { line: error.line(), column: error.column() };
            Error::input(format!("policy: {}", without_position(&error)))
                .at(place)
                .hinting("`recto compile --policy safe` uses a built-in one")
        })?;
        policy.check()?;
        Ok(policy)
    }

    /// Checks the numbers of every pass.
    pub fn check(&self) -> Result<(), Error> {
        self.reduce.iter().try_for_each(|pass| pass.as_reduce().check())
    }

    /// Returns what identifies the policy.
    pub fn digest(&self) -> Digest {
        Digest::of(&serde_json::to_vec(self).expect("a policy has no map with keys that aren't text"))
    }
}
