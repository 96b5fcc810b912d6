//! Why something can't be shown again, told to the model.

use super::Handle;
use crate::edit::{Reason, Turn};
use crate::entry::Text;
use crate::tokens::Tokens;
use std::fmt;

/// How every refusal ends: a model that asks again for the same would ask forever.
const NOT_AGAIN: &str = "Do not request this expansion again.";

/// Why an ask was refused. `Display` is a sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing has this handle.
    UnknownHandle {
        /// The handle as it was given.
        handle: Text,
    },
    /// An index was given, and there is no page that it could count in.
    IndexWithoutPage {
        /// The index.
        index: usize,
    },
    /// No entry stands at this index of the previous page.
    UnknownIndex {
        /// The index.
        index: usize,
        /// How many messages that page has.
        messages: usize,
    },
    /// It stands on the page as it was said.
    NeverReduced {
        /// What was asked for.
        handle: Handle,
    },
    /// It was expanded, and stands on the page.
    AlreadyExpanded {
        /// What was asked for.
        handle: Handle,
        /// The call before which it was expanded.
        turn: Turn,
    },
    /// Nothing of it is kept.
    Erased {
        /// What was asked for.
        handle: Handle,
    },
    /// It has no such lines or items.
    OutOfRange {
        /// What was asked for.
        handle: Handle,
        /// What is counted: lines or items.
        of: &'static str,
        /// The first that was asked for.
        first: usize,
        /// The last.
        last: usize,
        /// How many there are.
        total: usize,
    },
    /// Items were asked for, and it is no JSON array.
    NotAnArray {
        /// What was asked for.
        handle: Handle,
    },
    /// A range was asked for, and it has no text.
    NotText {
        /// What was asked for.
        handle: Handle,
    },
    /// Nothing in it holds the text that was searched for.
    NoMatch {
        /// What was asked for.
        handle: Handle,
        /// What was searched for.
        text: Text,
    },
    /// There is not enough room.
    TooLarge {
        /// What was asked for.
        handle: Handle,
        /// What it costs.
        tokens: Tokens,
        /// What there is room for.
        room: Tokens,
    },
    /// The provider was sent the original, and remembers it.
    Held {
        /// What was asked for.
        handle: Handle,
    },
    /// This reader is not shown it, whatever was reduced.
    NotShown {
        /// What was asked for.
        handle: Handle,
        /// Why.
        why: Reason,
    },
    /// The ask could not be read.
    BadArguments {
        /// What is wrong with it.
        what: Text,
    },
}

impl Refusal {
    /// Returns its name, which stays the same from version to version.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::UnknownHandle { .. } => "unknown_handle",
            Refusal::IndexWithoutPage { .. } => "index_without_page",
            Refusal::UnknownIndex { .. } => "unknown_index",
            Refusal::NeverReduced { .. } => "never_reduced",
            Refusal::AlreadyExpanded { .. } => "already_expanded",
            Refusal::Erased { .. } => "erased",
            Refusal::OutOfRange { .. } => "out_of_range",
            Refusal::NotAnArray { .. } => "not_an_array",
            Refusal::NotText { .. } => "not_text",
            Refusal::NoMatch { .. } => "no_match",
            Refusal::TooLarge { .. } => "too_large",
            Refusal::Held { .. } => "held",
            Refusal::NotShown { .. } => "not_shown",
            Refusal::BadArguments { .. } => "bad_arguments",
        }
    }

    pub(super) fn bad(what: impl Into<Text>) -> Refusal {
        Refusal::BadArguments { what: what.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::UnknownHandle { handle } => {
                write!(f, "There is no message {handle:?}; use a handle that a marker names, such as m42.")
            }
            Refusal::IndexWithoutPage { index } => {
                write!(f, "Message {index} is not known by its number; use the handle that its marker names.")
            }
            Refusal::UnknownIndex { index, messages } => {
                write!(f, "Message {index} of {messages} is none that can be expanded; use a handle instead.")
            }
            Refusal::NeverReduced { handle } => write!(f, "{handle} stands above in full: it was never shortened."),
            Refusal::AlreadyExpanded { handle, turn } => {
                write!(f, "{handle} was expanded before call {} and stands above as asked.", turn.0)
            }
            Refusal::Erased { handle } => write!(f, "Nothing of {handle} is kept: its original was erased."),
            Refusal::OutOfRange { handle, of, first, last, total } => {
                write!(f, "{handle} has no {of} {first} to {last}: there are {total}.")
            }
            Refusal::NotAnArray { handle } => {
                write!(f, "{handle} is no JSON array; ask for lines of it, or search it.")
            }
            Refusal::NotText { handle } => write!(f, "{handle} is no text; it can only be expanded whole."),
            Refusal::NoMatch { handle, text } => write!(f, "No line of {handle} holds {text:?}."),
            Refusal::TooLarge { handle, tokens, room } => write!(
                f,
                "{handle} has {tokens} tokens, and there is room for {room}; ask for some of its lines or items, or \
                 search it."
            ),
            Refusal::Held { handle } => {
                write!(f, "You were given {handle} in full: the provider already holds the full text.")
            }
            Refusal::NotShown { handle, why } => write!(f, "{handle} can't be shown here: {why}."),
            Refusal::BadArguments { what } => write!(f, "The request can't be read: {what}."),
        }?;
        write!(f, " {NOT_AGAIN}")
    }
}

impl std::error::Error for Refusal {}
