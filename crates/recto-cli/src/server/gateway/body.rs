//! The body that is sent: the client's own, byte for byte, unless its page says something otherwise. Then only its
//! messages are written anew; everything around them stays as it came, but for the tool that is offered.

use super::incoming::Incoming;
use super::offer::{self, Offer};
use super::which::Found;
use axum::body::Bytes;
use recto::page::{After, Mark, Page};
use recto::wire::{Outline, Wire};
use recto::{Role, Target};
use recto_engine::Call;
use recto_engine::engine::Begun;
use serde_json::Map;

/// What a page is put into: a body as its client sent it, and what is offered beside the client's tools.
#[derive(Clone, Copy)]
pub(super) struct Around<'b> {
    pub(super) wire: Wire,
    pub(super) text: &'b str,
    pub(super) outline: &'b Outline<'b>,
    pub(super) offer: Option<&'b Offer>,
}

/// Returns the body of a request with its page, or why it can't be used.
pub(super) fn sent(
    came: &Bytes,
    incoming: &Incoming<'_>,
    found: &Found,
    begun: &Begun,
    call: &Call,
    offer: Option<&Offer>,
) -> Result<(Bytes, &'static str), &'static str> {
    let page = &begun.compiled.page;
    let is_asked = || offer.is_some() && offer::is_asked_on(page);
    let is_needed = begun.is_reduced || found.is_rest_known || is_asked();
    if !is_needed || incoming.held.is_some() {
        return Ok(match offer {
            Some(offer) => (offer.put(incoming.text).into(), "offered"),
            None => (came.clone(), "as_sent"),
        });
    }
    let around = Around { wire: incoming.wire, text: incoming.text, outline: &incoming.outline, offer };
    Ok((around.with(page, call)?, "compiled"))
}

impl Around<'_> {
    /// Returns the body with the messages of a page, or why it can't be used.
    pub(super) fn with(&self, page: &Page, call: &Call) -> Result<Bytes, &'static str> {
        let written = self.written(page, call).ok_or("as_sent; its page could not be put in place")?;
        // What a provider would refuse is no better than what the client wrote.
        match self.wire.validate(written.as_bytes()).is_empty() {
            true => Ok(written.into()),
            false => Err("as_sent; its page breaks rules of the provider"),
        }
    }

    /// Puts the messages of a page in place of those that came.
    fn written(&self, page: &Page, call: &Call) -> Option<String> {
        let history = self.messages(&self.without_beside(page, call), &call.target)?;
        let said = self.outline.elements.get(self.outline.leading..).filter(|said| !said.is_empty())?;
        let offset = |text: &str| text.as_ptr() as usize - self.text.as_ptr() as usize;
        let (first, last) = (said.first()?, said.last()?);
        // An input that is a text becomes a list.
        let history = if first.starts_with('"') { format!("[{history}]") } else { history };
        let mut changes = vec![(offset(first)..offset(last) + last.len(), history.as_str())];
        changes.extend(self.offer.map(|offer| (offer.at.clone(), offer.text.as_str())));
        changes.sort_unstable_by_key(|(at, _)| at.start);
        let (mut written, mut done) = (String::with_capacity(self.text.len()), 0);
        for (at, text) in changes {
            written.push_str(self.text.get(done..at.start)?);
            written.push_str(text);
            done = at.end;
        }
        written.push_str(&self.text[done..]);
        Some(written)
    }

    /// A page without what the client's body says around its messages.
    fn without_beside(&self, page: &Page, call: &Call) -> Page {
        let is_beside = |at: usize| {
            let message = &page.messages[at];
            at < call.fragments.len() && message.role == Role::System && message.seq.is_none()
        };
        let beside = (0..page.messages.len()).take_while(|at| is_beside(*at)).count();
        let has_marks = self.text.contains("\"cache_control\"");
        let marks = page.marks.iter().filter(|mark| !has_marks || mark.given.is_some());
        let marks = marks.filter_map(|mark| match mark.after {
            After::Message(at) => {
                Some(Mark { after: After::Message(at.checked_sub(beside)?), given: mark.given.clone() })
            }
            After::Tools => None,
        });
        Page {
            messages: page.messages[beside..].to_vec(),
            tools: None,
            format: None,
            marks: marks.collect(),
            ..page.clone()
        }
    }

    /// The messages of a page, as they stand between the brackets of a body.
    fn messages(&self, page: &Page, target: &Target) -> Option<String> {
        let encoded = self.wire.encode_with(page, target, &Map::new());
        let encoded = String::from_utf8(encoded).ok()?;
        let outline = self.wire.outline(&encoded).ok()?;
        (!outline.elements.is_empty()).then(|| outline.elements.join(","))
    }
}
