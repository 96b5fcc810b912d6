//! The body that is sent: the client's own, byte for byte, unless its page says something otherwise. Then only its
//! messages are written anew; everything around them stays as it came, but for the tool that is offered.

use super::incoming::Incoming;
use super::offer::{self, Offer};
use super::which::Found;
use axum::body::Bytes;
use recto::page::{After, Mark, Page};
use recto::redact::Screen;
use recto::wire::{Outline, Wire};
use recto::{Role, Target};
use recto_engine::Call;
use recto_engine::engine::Begun;
use serde_json::Map;
use std::borrow::Cow;
use std::ops::Range;

/// What a page is put into: a body as its client sent it, what is offered beside the client's tools, and what is not
/// shown of all that stands around its messages.
#[derive(Clone, Copy)]
pub(super) struct Around<'b> {
    pub(super) wire: Wire,
    pub(super) text: &'b str,
    pub(super) outline: &'b Outline<'b>,
    pub(super) offer: Option<&'b Offer>,
    pub(super) screen: Option<&'b Screen>,
}

/// What is said of a body whose secrets are placeholders, though no page could be put into it.
pub(super) const REDACTED: &str = "redacted";

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
    let is_redacted = !begun.compiled.receipt.redacted.is_empty();
    let screen = Some(begun.screen()).filter(|screen| screen.is_over_prompts());
    let is_asked = || offer.is_some() && offer::is_asked_on(page);
    let is_needed = begun.is_reduced || found.is_rest_known || is_redacted || is_asked();
    if incoming.held.is_some() && (is_redacted || screen.is_some()) {
        // The rest is with the provider, so there is no page to be put in place.
        return Ok(whole(incoming.text, begun.screen()).map_or((came.clone(), "as_sent"), |body| (body, REDACTED)));
    }
    let around = Around { wire: incoming.wire, text: incoming.text, outline: &incoming.outline, offer, screen };
    if !is_needed || incoming.held.is_some() {
        return Ok(match (offer, around.without_page()) {
            (_, Some(seen)) => (seen.into(), REDACTED),
            (Some(offer), None) => (offer.put(incoming.text).into(), "offered"),
            (None, None) => (came.clone(), "as_sent"),
        });
    }
    Ok((around.with(page, call)?, "compiled"))
}

/// Returns a body of which all that is said goes through a screen; nothing, if that is no other.
pub(super) fn whole(text: &str, screen: &Screen) -> Option<Bytes> {
    match screen.json(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(seen) => Some(seen.into()),
    }
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
        self.replacing(offset(first)..offset(last) + last.len(), &history)
    }

    /// The body as it came but for what is not shown of what stands around its messages; nothing, if that is no other.
    fn without_page(&self) -> Option<String> {
        let screen = self.screen?;
        let said = self.outline.elements.get(self.outline.leading..).filter(|said| !said.is_empty());
        let offset = |text: &str| text.as_ptr() as usize - self.text.as_ptr() as usize;
        let ends = said.and_then(|said| Some((said.first()?, said.last()?)));
        let (start, end) = ends.map_or((0, 0), |(first, last)| (offset(first), offset(last) + last.len()));
        let is_seen = |piece: &str| matches!(screen.json(piece), Cow::Borrowed(_));
        if is_seen(&self.text[..start]) && is_seen(&self.text[end..]) {
            return None;
        }
        self.replacing(start..end, &self.text[start..end])
    }

    /// The body with other messages and the tool that is offered, and without what is not shown of the rest.
    fn replacing(&self, messages: Range<usize>, history: &str) -> Option<String> {
        let mut changes = vec![(messages, history)];
        changes.extend(self.offer.map(|offer| (offer.at.clone(), offer.text.as_str())));
        changes.sort_unstable_by_key(|(at, _)| at.start);
        let (mut written, mut done) = (String::with_capacity(self.text.len()), 0);
        for (at, text) in changes {
            written.push_str(&self.seen(self.text.get(done..at.start)?));
            written.push_str(text);
            done = at.end;
        }
        written.push_str(&self.seen(&self.text[done..]));
        Some(written)
    }

    fn seen<'t>(&self, piece: &'t str) -> Cow<'t, str> {
        self.screen.map_or(Cow::Borrowed(piece), |screen| screen.json(piece))
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
