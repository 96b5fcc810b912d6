//! Stubs: what stands in the place of what has expired. Each tells its handle, its size, what it was, and how to ask.

use crate::edit::PartAt;
use crate::entry::{EntryKind, Text};
use crate::expand::TOOL_NAME;
use crate::expiry::Held;
use crate::reduce::stub::tool_name;
use serde::{Deserialize, Serialize};

/// What a stub says beside what stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Marker {
    /// Handle, size, what it was, and the tool that shows more.
    #[default]
    Recto,
    /// What MemberJunction's agents know. It has no handle: they ask by the place of a message on the page.
    Mj,
}

impl Marker {
    pub(crate) fn is_usual(&self) -> bool {
        *self == Marker::Recto
    }
}

/// What a stub tells of what it stands for.
pub(super) struct Stub<'h> {
    pub(super) at: PartAt,
    pub(super) held: Held<'h>,
    pub(super) marker: Marker,
    /// The name of the prompt that a summary of it is made with.
    pub(super) prompt: Option<Text>,
}

impl Stub<'_> {
    /// What stands for a text of which nothing stays.
    pub(super) fn removed(&self, text: &str) -> String {
        format!("[removed: {} characters of {}; {}]", text.chars().count(), self.what(), self.ask())
    }

    /// The beginning of a text, and how many characters the text has; nothing if it has no more.
    pub(super) fn first(&self, text: &str, chars: usize) -> Option<(String, usize)> {
        // Most texts are shorter than the limit; only a longer one is worth counting to its end.
        let (cut, _) = text.char_indices().nth(chars)?;
        let (first, of) = (&text[..cut], text.chars().count());
        let stub = match self.marker {
            Marker::Recto => {
                format!("{first}\n[… first {chars} of {of} characters of {}; {}]", self.what(), self.ask())
            }
            Marker::Mj => format!(
                "{first}...\n\n[Compacted: showing first {chars} of {of} characters. Agent can request expansion if needed.]"
            ),
        };
        Some((stub, of))
    }

    /// Both ends of a text, and how many characters the text has; nothing if it has no more than these.
    pub(super) fn ends(&self, text: &str, head: usize, tail: usize) -> Option<(String, usize)> {
        let kept = head.saturating_add(tail);
        text.char_indices().nth(kept)?;
        let of = text.chars().count();
        let place = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
        let (first, last) = (&text[..place(head)], &text[place(of - tail)..]);
        let (left_out, what, ask) = (of - kept, self.what(), self.ask());
        Some((format!("{first}\n[… {left_out} of {of} characters of {what} left out; {ask} …]\n{last}"), of))
    }

    /// A summary of a text of so many characters.
    pub(super) fn summary(&self, summary: &str, of: usize) -> String {
        match self.marker {
            Marker::Recto => {
                format!("{summary}\n[… a model's summary of {of} characters of {}; {}]", self.what(), self.ask())
            }
            Marker::Mj => {
                format!("[AI Summary of {of} chars. Agent can request full expansion if needed.]\n\n{summary}")
            }
        }
    }

    /// How to ask for it.
    fn ask(&self) -> String {
        format!("{TOOL_NAME} {}", self.at)
    }

    /// What it was.
    fn what(&self) -> String {
        let named = self.held.tools.first().map(|tool| &**tool).filter(|_| self.held.tools.len() == 1);
        match (self.held.tool.or(named), self.held.kind) {
            (Some(name), Some(EntryKind::ToolResult | EntryKind::ActionResult)) => {
                format!("{} result", tool_name(name))
            }
            (_, Some(kind)) => kind.to_string(),
            (_, None) => "words".to_string(),
        }
    }
}
