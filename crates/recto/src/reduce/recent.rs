//! Recent: only the newest messages stay.
//!
//! When there are more than so many, and some slack, the oldest go. A step and its results count as they stand on the
//! page, one message each, and stay or go together.

use super::Reduce;
use super::floor::{Aim, Grain, Lower, lower};
use crate::edit::Edit;
use crate::error::Error;
use crate::item::Item;
use crate::policy::Pass;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recent {
    /// How many messages stay.
    pub messages: usize,
    /// How many more there may be before any go.
    #[serde(default)]
    pub slack: usize,
    /// Where it is cut.
    #[serde(default = "at_messages")]
    pub grain: Grain,
}

fn at_messages() -> Grain {
    Grain::Message
}

impl Recent {
    /// Returns the pass that keeps so many messages.
    pub fn messages(messages: usize) -> Recent {
        Recent { messages, slack: 0, grain: Grain::Message }
    }
}

impl Reduce for Recent {
    fn name(&self) -> &str {
        "recent"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let messages: usize = view.items().iter().filter(|it| it.is_counted()).map(Item::messages).sum();
        if messages <= self.messages + self.slack {
            return Vec::new();
        }
        let aim = Aim::Messages(self.messages);
        let how = Lower { by: "recent", aim, grain: self.grain, keep_first_request: false, minimum: Tokens(0) };
        lower(&how, view, request)
    }

    fn check(&self) -> Result<(), Error> {
        match self.messages {
            0 => Err(Error::settings("recent: messages is 0", "say how many messages stay")),
            _ => Ok(()),
        }
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Recent(self.clone()))
    }
}
