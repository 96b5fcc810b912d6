//! The body that is sent: the client's own, byte for byte, unless its page says something otherwise. Then only its
//! messages are written anew; everything around them stays as it came.

use super::incoming::Incoming;
use super::which::Found;
use axum::body::Bytes;
use recto::page::{After, Mark, Page};
use recto::{Role, Target};
use recto_engine::Call;
use recto_engine::engine::Begun;
use serde_json::Map;

/// Returns the body of a request with its page, or why it can't be used.
pub(super) fn sent(
    came: &Bytes,
    incoming: &Incoming<'_>,
    found: &Found,
    begun: &Begun,
    call: &Call,
) -> Result<(Bytes, &'static str), &'static str> {
    let is_needed = begun.is_reduced || found.is_rest_known;
    if !is_needed || incoming.held.is_some() {
        return Ok((came.clone(), "as_sent"));
    }
    let written = written(incoming, &begun.compiled.page, call).ok_or("as_sent; its page could not be put in place")?;
    // What a provider would refuse is no better than what the client wrote.
    match incoming.wire.validate(&written).is_empty() {
        true => Ok((written.into(), "compiled")),
        false => Err("as_sent; its page breaks rules of the provider"),
    }
}

/// Puts the messages of a page in place of those that came.
fn written(incoming: &Incoming<'_>, page: &Page, call: &Call) -> Option<Vec<u8>> {
    let history = messages(incoming, &without_beside(incoming, page, call), &call.target)?;
    let outline = &incoming.outline;
    let said = outline.elements.get(outline.leading..).filter(|said| !said.is_empty())?;
    let offset = |text: &str| text.as_ptr() as usize - incoming.text.as_ptr() as usize;
    let (first, last) = (said.first()?, said.last()?);
    let (start, end) = (offset(first), offset(last) + last.len());
    // An input that is a text becomes a list.
    let (open, close) = if first.starts_with('"') { ("[", "]") } else { ("", "") };
    Some([&incoming.text[..start], open, &history, close, &incoming.text[end..]].concat().into_bytes())
}

/// A page without what the client's body says around its messages.
fn without_beside(incoming: &Incoming<'_>, page: &Page, call: &Call) -> Page {
    let is_beside = |at: usize| {
        let message = &page.messages[at];
        at < call.fragments.len() && message.role == Role::System && message.seq.is_none()
    };
    let beside = (0..page.messages.len()).take_while(|at| is_beside(*at)).count();
    let has_marks = incoming.text.contains("\"cache_control\"");
    let marks = page.marks.iter().filter(|mark| !has_marks || mark.given.is_some());
    let marks = marks.filter_map(|mark| match mark.after {
        After::Message(at) => Some(Mark { after: After::Message(at.checked_sub(beside)?), given: mark.given.clone() }),
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
fn messages(incoming: &Incoming<'_>, page: &Page, target: &Target) -> Option<String> {
    let encoded = incoming.wire.encode_with(page, target, &Map::new());
    let encoded = String::from_utf8(encoded).ok()?;
    let outline = incoming.wire.outline(&encoded).ok()?;
    (!outline.elements.is_empty()).then(|| outline.elements.join(","))
}
