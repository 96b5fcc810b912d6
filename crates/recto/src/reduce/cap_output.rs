//! Cap output: long tool results keep head and tail, from the start.
//!
//! It shortens what a tool said to so many characters, two thirds from the beginning and one third from the end, with
//! a marker between them. It must not run where a tool's whole output is needed once: it acts before the model has
//! seen any of it.

use super::Reduce;
use crate::edit::{Change, Edit, Reason};
use crate::error::Error;
use crate::item::result_text;
use crate::policy::Pass;
use crate::reader::Decided;
use crate::request::Request;
use crate::view::View;
use serde::{Deserialize, Serialize};

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapOutput {
    /// How many characters of a result are shown.
    pub chars: usize,
}

impl CapOutput {
    /// Returns the pass that shows so many characters.
    pub fn to(chars: usize) -> CapOutput {
        CapOutput { chars }
    }
}

impl Reduce for CapOutput {
    fn name(&self) -> &str {
        "cap-output"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let decided = Decided { reader: request.reader, more: &[] };
        // Unlike passes that wait for age, this one caps the newest results too; only pins are left alone.
        let items = view.items().iter().filter(|it| it.is_shown() && !matches!(it.keep(), Some(Reason::Pinned)));
        let results = items.flat_map(|item| item.results().filter(|it| !it.is_changed).collect::<Vec<_>>());
        let long = results.filter(|it| it.result.chars() > self.chars && !decided.touched(it.at));
        let capped = long.filter_map(|it| {
            let text = result_text(it.result);
            let (chars, cap) = (text.chars().count(), self.chars);
            let short = head_and_tail(&text, chars, cap, &it.at.to_string());
            let (before, after) = (it.cost, view.count(&short));
            let change = Change::Replace { at: it.at, text: short.into() };
            let edit =
                Edit { change, by: "cap-output".into(), why: Reason::OverCap { chars, cap }, before, after, due: None };
            (after < before).then_some(edit)
        });
        capped.collect()
    }

    fn check(&self) -> Result<(), Error> {
        match self.chars {
            0 => Err(Error::settings("cap_output: chars is 0", "say how many characters of a result are shown")),
            _ => Ok(()),
        }
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::CapOutput(self.clone()))
    }
}

fn head_and_tail(text: &str, chars: usize, cap: usize, handle: &str) -> String {
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let tail = cap / 3;
    let (head_end, tail_start) = (at(cap - tail), at(chars - tail));
    let left_out = chars - cap;
    format!(
        "{}\n[… {left_out} of {chars} characters left out, handle {handle} …]\n{}",
        &text[..head_end],
        &text[tail_start..]
    )
}
