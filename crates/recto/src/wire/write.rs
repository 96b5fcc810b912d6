//! Writing JSON straight into bytes, in a fixed order of keys.

use crate::entry::{Part, Piece};
use crate::page::{Message, Page};
use serde_json::{Map, Value};

/// What a message costs at most beside its texts, before escapes, when its body is written.
const ROOM_PER_MESSAGE: usize = 160;

/// How many bytes a page is likely to take.
pub(crate) fn room(page: &Page) -> usize {
    let text = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::Reasoning(it) => {
            it.text.len()
                + [&it.signature, &it.encrypted, &it.item].into_iter().flatten().map(|it| it.len()).sum::<usize>()
        }
        Part::Call(call) => call.arguments.as_str().len(),
        Part::Result(result) => {
            let pieces = result.content.iter();
            pieces.map(|piece| if let Piece::Text { text } = piece { text.len() } else { 0 }).sum()
        }
        _ => 0,
    };
    let of = |message: &Message| ROOM_PER_MESSAGE + message.parts.iter().map(text).sum::<usize>();
    let bytes: usize = page.messages.iter().map(of).sum();
    1024 + bytes + bytes / 8
}

pub(crate) fn raw(out: &mut Vec<u8>, json: &str) {
    out.extend_from_slice(json.as_bytes());
}

pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing a string into memory can't fail");
}

/// Writes `key` (with its punctuation) and a string.
pub(crate) fn field(out: &mut Vec<u8>, key: &str, text: &str) {
    raw(out, key);
    string(out, text);
}

pub(crate) fn separated<T>(
    out: &mut Vec<u8>,
    list: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    for (at, it) in list.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, it);
    }
}

/// Writes the host's own fields behind those that are there, each with a comma before it.
pub(crate) fn extra(out: &mut Vec<u8>, fields: &Map<String, Value>, but: &[&str]) {
    for (name, value) in fields.iter().filter(|(name, _)| !but.contains(&name.as_str())) {
        out.push(b',');
        string(out, name);
        out.push(b':');
        serde_json::to_writer(&mut *out, value).expect("writing a value into memory can't fail");
    }
}
