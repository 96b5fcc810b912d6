//! Entries as people read them: on one line, or whole.

use recto::Part;
use recto::entry::Piece;

/// Returns what parts say, on one line.
pub(crate) fn line_of(parts: &[Part]) -> String {
    text_of(parts).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what parts say.
pub(crate) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => text.to_string(),
        Part::Call(call) => format!("[calls {}]", call.name),
        Part::Result(result) => result.content.iter().filter_map(piece_text).collect(),
        _ => String::new(),
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns everything that parts say, each on lines of its own; what is no text is named.
pub(crate) fn whole(parts: &[Part]) -> String {
    let told = parts.iter().map(|part| match part {
        Part::Text { text } => text.to_string(),
        Part::Call(call) => format!("[calls {} {}: {}]", call.id, call.name, call.arguments.as_str()),
        Part::Result(result) => {
            let pieces = result.content.iter().map(|it| piece_text(it).unwrap_or("[picture]"));
            format!("[result of {}{}]\n{}", result.call, failed(result.is_error), pieces.collect::<Vec<_>>().join("\n"))
        }
        Part::Reasoning(reasoning) if reasoning.text.is_empty() => "[sealed reasoning]".into(),
        Part::Reasoning(reasoning) => format!("[reasoning]\n{}", reasoning.text),
        Part::Image(_) => "[picture]".into(),
        Part::Audio(_) => "[recording]".into(),
        Part::Document(_) => "[document]".into(),
        Part::File { id } => format!("[file {id}]"),
        Part::Opaque { provider, .. } => format!("[something that only {provider} reads]"),
        _ => "[something else]".into(),
    });
    told.collect::<Vec<_>>().join("\n")
}

fn failed(is_error: bool) -> &'static str {
    if is_error { ", an error" } else { "" }
}

fn piece_text(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text { text } => Some(text),
        Piece::Image(_) => None,
    }
}
