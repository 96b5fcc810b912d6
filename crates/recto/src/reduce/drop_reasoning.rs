//! Drop reasoning: what the model thought before earlier answers goes.
//!
//! It leaves out the reasoning of all but the newest item. It must not run on targets that bind reasoning to its
//! prefix while a tool round is open.

use super::Reduce;
use crate::edit::{Change, Edit, PartAt, Reason};
use crate::entry::Part;
use crate::policy::Pass;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

/// The pass; it has no numbers. `keep_last` spares the newest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropReasoning {}

impl Reduce for DropReasoning {
    fn name(&self) -> &str {
        "drop-reasoning"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let decided = Decided { reader: request.reader, more: &[] };
        let mut edits = Vec::new();
        for item in view.editable() {
            let thoughts = item.parts().iter().enumerate().filter(|(_, part)| matches!(part, Part::Reasoning(_)));
            for (part, _) in thoughts.filter(|(part, _)| item.changed_part(*part).is_none()) {
                let at = PartAt { seq: item.seq(), part };
                if !decided.touched(at) {
                    let (change, why) = (Change::Omit(at), Reason::NotNewest { keep: 1 });
                    let before = item.part_cost(part);
                    edits.push(Edit { change, by: "drop-reasoning".into(), why, before, after: Tokens(0), due: None });
                }
            }
        }
        edits
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::DropReasoning(self.clone()))
    }
}
