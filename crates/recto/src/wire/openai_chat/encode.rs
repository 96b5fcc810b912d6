//! From page to body: written straight into bytes, in a fixed order of keys.

use super::{call_id, tool_name};
use crate::entry::{Media, Part, Piece, Role};
use crate::page::{Message, Page};
use crate::target::Target;
use crate::wire::accepted;

/// What a byte of a page costs at most, before escapes, when its body is written.
const ROOM_PER_MESSAGE: usize = 128;

/// Writes the body of a request for a page.
pub fn encode(page: &Page, target: &Target) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024 + room(page));
    out.extend_from_slice(b"{\"model\":");
    string(&mut out, &target.name);
    out.extend_from_slice(b",\"messages\":");
    messages(&mut out, page);
    if let Some(tools) = page.tools.as_ref().filter(|tools| !tools.list().is_empty()) {
        out.extend_from_slice(b",\"tools\":[");
        separated(&mut out, tools.list(), |out, tool| out.extend_from_slice(tool.as_bytes()));
        out.push(b']');
    }
    out.push(b'}');
    out
}

/// Writes the messages of a page alone, as a JSON array.
pub fn encode_messages(page: &Page) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(page));
    messages(&mut out, page);
    out
}

/// How many bytes a page is likely to take.
fn room(page: &Page) -> usize {
    let text = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::Reasoning(reasoning) => reasoning.text.len(),
        Part::Call(call) => call.arguments.as_str().len(),
        Part::Result(result) => {
            result.content.iter().map(|piece| if let Piece::Text { text } = piece { text.len() } else { 0 }).sum()
        }
        _ => 0,
    };
    let of = |message: &Message| ROOM_PER_MESSAGE + message.parts.iter().map(text).sum::<usize>();
    let bytes: usize = page.messages.iter().map(of).sum();
    bytes + bytes / 8
}

fn messages(out: &mut Vec<u8>, page: &Page) {
    out.push(b'[');
    separated(out, &page.messages, message);
    out.push(b']');
}

fn message(out: &mut Vec<u8>, message: &Message) {
    out.extend_from_slice(match message.role {
        Role::System => b"{\"role\":\"system\"",
        Role::User => b"{\"role\":\"user\"",
        Role::Assistant => b"{\"role\":\"assistant\"",
        Role::Tool => b"{\"role\":\"tool\"",
    });
    if let Some(author) = message.author.as_ref().filter(|_| message.role != Role::Tool) {
        out.extend_from_slice(b",\"name\":");
        string(out, &accepted(author, 64, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    }
    match (message.role, &*message.parts) {
        (Role::Tool, [Part::Result(result)]) => {
            out.extend_from_slice(b",\"tool_call_id\":");
            string(out, &call_id(result.call.as_str()));
            out.extend_from_slice(b",\"content\":");
            result_content(out, &result.content);
        }
        _ => said(out, &message.parts),
    }
    out.push(b'}');
}

fn said(out: &mut Vec<u8>, parts: &[Part]) {
    let is_content = |part: &&Part| match part {
        Part::Reasoning(_) | Part::Call(_) | Part::Result(_) => false,
        Part::Text { text } => !text.is_empty(),
        _ => true,
    };
    let has_calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
    let mut content = parts.iter().filter(is_content);
    out.extend_from_slice(b",\"content\":");
    match (content.next(), content.next()) {
        (None, _) if has_calls => out.extend_from_slice(b"null"),
        (None, _) => out.extend_from_slice(b"\"\""),
        (Some(Part::Text { text }), None) => string(out, text),
        _ => {
            let parts: Vec<&Part> = parts.iter().filter(is_content).collect();
            out.push(b'[');
            separated(out, &parts, |out, part| content_part(out, part));
            out.push(b']');
        }
    }
    let thought: String =
        parts.iter().filter_map(|part| if let Part::Reasoning(it) = part { Some(&*it.text) } else { None }).collect();
    if !thought.is_empty() {
        out.extend_from_slice(b",\"reasoning_content\":");
        string(out, &thought);
    }
    if has_calls {
        let calls: Vec<_> =
            parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None }).collect();
        out.extend_from_slice(b",\"tool_calls\":[");
        separated(out, &calls, |out, call| {
            out.extend_from_slice(b"{\"id\":");
            string(out, &call_id(call.id.as_str()));
            out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
            string(out, &tool_name(&call.name));
            out.extend_from_slice(b",\"arguments\":");
            string(out, call.arguments.as_str());
            out.extend_from_slice(b"}}");
        });
        out.push(b']');
    }
}

fn content_part(out: &mut Vec<u8>, part: &Part) {
    match part {
        Part::Text { text } => {
            out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            string(out, text);
            out.push(b'}');
        }
        Part::Image(media) => {
            out.extend_from_slice(b"{\"type\":\"image_url\",\"image_url\":{\"url\":");
            string(out, &media.url);
            if let Some(detail) = &media.detail {
                out.extend_from_slice(b",\"detail\":");
                string(out, detail);
            }
            out.extend_from_slice(b"}}");
        }
        Part::Audio(media) => audio(out, media),
        Part::Document(media) => {
            out.extend_from_slice(b"{\"type\":\"file\",\"file\":{\"filename\":");
            string(out, media.name.as_deref().unwrap_or("document"));
            out.extend_from_slice(b",\"file_data\":");
            string(out, &media.url);
            out.extend_from_slice(b"}}");
        }
        Part::File { id } => {
            out.extend_from_slice(b"{\"type\":\"file\",\"file\":{\"file_id\":");
            string(out, id);
            out.extend_from_slice(b"}}");
        }
        // The view lets through only what this provider made itself.
        Part::Opaque { payload, .. } => out.extend_from_slice(payload.as_bytes()),
        Part::Reasoning(_) | Part::Call(_) | Part::Result(_) => {}
    }
}

fn audio(out: &mut Vec<u8>, media: &Media) {
    let (head, data) = media.url.split_once(";base64,").unwrap_or(("data:audio/wav", &media.url));
    out.extend_from_slice(b"{\"type\":\"input_audio\",\"input_audio\":{\"data\":");
    string(out, data);
    out.extend_from_slice(b",\"format\":");
    string(out, head.rsplit('/').next().unwrap_or("wav"));
    out.extend_from_slice(b"}}");
}

fn result_content(out: &mut Vec<u8>, pieces: &[Piece]) {
    let text = |piece: &Piece| match piece {
        Piece::Text { text } => text.clone(),
        Piece::Image(_) => "[image]".into(),
    };
    match pieces {
        [] => out.extend_from_slice(b"\"\""),
        [piece] => string(out, &text(piece)),
        pieces => {
            out.push(b'[');
            separated(out, pieces, |out, piece| {
                out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                string(out, &text(piece));
                out.push(b'}');
            });
            out.push(b']');
        }
    }
}

fn separated<T>(out: &mut Vec<u8>, list: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    for (at, it) in list.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, it);
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing a string into memory can't fail");
}
