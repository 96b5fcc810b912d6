//! A request, as far as it has to be read to find its conversation.

use super::seen::{Glance, Read, Seen};
use super::{CONVERSATION, Refused};
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use recto::Error;
use recto::chain::Chain;
use recto::digest::Digest;
use recto::wire::{Decoded, GivenMark, Outline, Wire};
use recto_engine::Tenant;
use std::borrow::Cow;

/// The header in which Claude Code names its session.
const CLAUDE_CODE_SESSION: &str = "x-claude-code-session-id";
/// The longest name of a conversation that a client may give.
const NAME_BYTES_MAX: usize = 200;

/// The most messages of a request.
const MESSAGES_MAX: usize = 100_000;
/// The longest message of a request.
const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A request, as far as it was read.
pub(super) struct Incoming<'b> {
    pub(super) wire: Wire,
    pub(super) outline: Outline<'b>,
    /// The whole body.
    pub(super) text: &'b str,
    /// What identifies everything that was said, up to and with each element behind the instructions.
    pub(super) chains: Vec<Chain>,
    /// The last elements, each read by itself.
    unseen: Vec<Decoded>,
    /// Who the client says it is: a session of its own.
    pub(super) mark: Option<String>,
    /// The conversation that the client names.
    pub(super) named: Option<Result<String, ()>>,
    /// What a provider that remembers holds before it.
    pub(super) held: Option<String>,
}

/// A name as it is, or what identifies it, if it is long.
fn bounded(name: &str) -> Cow<'_, str> {
    match name.len() <= NAME_BYTES_MAX {
        true => Cow::Borrowed(name),
        false => Cow::Owned(Digest::of(name.as_bytes()).to_string()),
    }
}

impl<'b> Incoming<'b> {
    /// Reads what is needed to find the conversation.
    pub(super) fn read(
        seen: &Seen,
        tenant: &Tenant,
        wire: Wire,
        headers: &HeaderMap,
        body: &'b Bytes,
        glance: &Glance,
    ) -> Result<Incoming<'b>, Error> {
        let text = std::str::from_utf8(body).map_err(|error| Error::input(error.to_string()))?;
        let Read { outline, chains, unseen } = seen.read(tenant, wire, text, body, glance)?;
        let named = headers.get(CONVERSATION).map(|value| {
            let name = value.to_str().unwrap_or_default().trim();
            let is_good = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
            if is_good { Ok(name.to_string()) } else { Err(()) }
        });
        let own = headers.get(CLAUDE_CODE_SESSION).and_then(|value| value.to_str().ok());
        let mark = match (&named, own, &outline.session) {
            (Some(Ok(name)), ..) => Some(format!("recto {name}")),
            (_, Some(session), _) => Some(format!("claude_code {}", bounded(session))),
            (.., Some(session)) => Some(format!("session {}", bounded(session))),
            _ => None,
        };
        let held = match (&outline.previous, &outline.held_by) {
            (Some(response), _) => Some(format!("response {response}")),
            (None, Some(conversation)) => Some(format!("conversation {conversation}")),
            (None, None) => None,
        };
        Ok(Incoming { wire, outline, text, chains, unseen, mark, named, held })
    }

    /// Returns why it is refused, if it is.
    pub(super) fn refused(&self) -> Option<Refused> {
        let is_long = |element: &&str| element.len() > MESSAGE_BYTES_MAX;
        if self.named == Some(Err(())) {
            let message = "x-recto-conversation is empty, too long, or no text".into();
            Some(Refused { status: StatusCode::BAD_REQUEST, kind: "header", message })
        } else if self.outline.elements.len() > MESSAGES_MAX {
            let message = format!("{} messages; at most {MESSAGES_MAX} are taken", self.outline.elements.len());
            Some(Refused { status: StatusCode::PAYLOAD_TOO_LARGE, kind: "messages", message })
        } else if self.outline.elements.iter().any(is_long) {
            let message = format!("a message of more than {} MiB", MESSAGE_BYTES_MAX >> 20);
            Some(Refused { status: StatusCode::PAYLOAD_TOO_LARGE, kind: "messages", message })
        } else {
            None
        }
    }

    /// Reads what it says behind so many elements after the instructions.
    pub(super) fn read_behind(&self, elements: usize) -> Result<Decoded, Error> {
        let wanted = self.chains.len().saturating_sub(elements);
        // Only in this format every message says all of itself.
        if self.wire != Wire::OpenaiChat || wanted > self.unseen.len() {
            return self.outline.read_from(self.outline.leading + elements);
        }
        let mut behind = Decoded::default();
        for read in &self.unseen[self.unseen.len() - wanted..] {
            let before = behind.entries.len();
            behind.entries.extend(read.entries.iter().cloned());
            let mark = |mark: &GivenMark| GivenMark { entry: before + mark.entry, mark: mark.mark.clone() };
            behind.marks.extend(read.marks.iter().map(mark));
        }
        Ok(behind)
    }

    /// Returns the model that it names.
    pub(super) fn model(&self) -> Option<&str> {
        self.outline.model.as_deref()
    }

    /// Returns what identifies all that it says.
    pub(super) fn chain(&self) -> Chain {
        self.chains.last().copied().unwrap_or_default()
    }
}
