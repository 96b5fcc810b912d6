//! The tool by which a model asks back what its page leaves out: offered behind the client's own, from the first request
//! on and always in the same words, so that the provider's cache holds from there on.

use recto::Policy;
use recto::entry::{Part, Text};
use recto::expand::{self, TOOL_NAME};
use recto::page::Page;
use recto::wire::{Outline, TOOLS_MAX, Wire};
use std::ops::Range;
use std::sync::LazyLock;

/// The definition in each wire's own form.
static DEFINITIONS: LazyLock<[Text; 5]> = LazyLock::new(|| Wire::ALL.map(|wire| expand::tool().told(wire)));

/// What is put into a body for the tool to be offered.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// Where in the body.
    pub(super) at: Range<usize>,
    /// What stands there instead.
    pub(super) text: String,
    /// The definition itself.
    pub(super) definition: Text,
}

impl Offer {
    /// Returns the offer that goes with a request beside so many tools of the client's, if one does: where the policy may
    /// leave something out, and we would be the ones who are asked.
    pub(super) fn of(wire: Wire, outline: &Outline<'_>, policy: &Policy, tools: usize) -> Option<Offer> {
        let is_held = outline.previous.is_some() || outline.held_by.is_some();
        let has_room = wire == Wire::Anthropic || tools < TOOLS_MAX;
        if policy.reduce.is_empty() || is_held || !has_room {
            return None;
        }
        let definition = definition(wire).clone();
        let (at, text) = outline.offering(TOOL_NAME, &definition)?;
        Some(Offer { at, text, definition })
    }

    /// Returns a body with the offer in it.
    pub(super) fn put(&self, body: &str) -> String {
        [&body[..self.at.start], &self.text, &body[self.at.end..]].concat()
    }
}

/// The definition in a wire's form.
fn definition(wire: Wire) -> &'static Text {
    let at = Wire::ALL.iter().position(|it| *it == wire).unwrap_or_default();
    &DEFINITIONS[at]
}

/// Whether something was asked back on a page: its client doesn't know of that, so what it sends lacks it.
pub(super) fn is_asked_on(page: &Page) -> bool {
    let mut parts = page.messages.iter().flat_map(|message| message.parts.iter());
    parts.any(|part| matches!(part, Part::Call(call) if *call.name == *TOOL_NAME))
}
