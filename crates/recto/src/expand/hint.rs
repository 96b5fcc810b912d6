//! What can be known of something without expanding it.

use super::{Ask, Refusal, entry_of, excerpt, expand, part_text, tool_of, view};
use crate::edit::Handle;
use crate::entry::{Part, Piece, Text};
use crate::receipt::Fate;
use crate::request::Request;
use crate::tokens::Tokens;
use serde::{Deserialize, Serialize};

/// How much of a first line is told, in characters.
const FIRST_LINE_CHARS_MAX: usize = 200;

/// What can be known of something without expanding it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hint {
    /// What it is asked for by.
    pub handle: Text,
    /// The tool that it is the result of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Text>,
    /// What it holds.
    pub content: Content,
    /// How many characters of text.
    pub chars: usize,
    /// What it costs in full.
    pub tokens: Tokens,
    /// How many lines of text.
    pub lines: usize,
    /// How many items, if it is a JSON array or holds a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<usize>,
    /// Its first line that says something, cut if it is long.
    pub first_line: Text,
    /// Whether an ask for all of it would be granted now.
    pub can_expand: bool,
    /// How it stands on the page.
    pub shown: Fate,
}

/// What something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// A JSON array.
    JsonArray,
    /// A JSON object.
    JsonObject,
    /// Several lines of text.
    Lines,
    /// One line of text, or none.
    Text,
    /// A picture, with or without words.
    Image,
    /// Other media.
    Media,
}

/// Says what something is without showing it.
pub fn hint(request: &Request<'_>, handle: Handle) -> Result<Hint, Refusal> {
    let entry = entry_of(request, handle)?;
    let asked = |part: &usize| handle.part.is_none_or(|asked| asked == *part);
    let parts: Vec<usize> = (0..entry.shown().len()).filter(asked).collect();
    let text = parts.iter().map(|&part| part_text(&entry.shown()[part])).collect::<Vec<_>>().join("\n");
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let cut = first.char_indices().nth(FIRST_LINE_CHARS_MAX);
    let first_line = cut.map_or(first.into(), |(end, _)| format!("{}…", &first[..end]).into());
    let lines = text.lines().count();
    let whole = expand(request, &Ask::whole(handle));
    Ok(Hint {
        handle: handle.to_string().into(),
        tool: tool_of(request, entry).cloned(),
        content: content(parts.iter().map(|&part| &entry.shown()[part]), &text, lines),
        chars: text.chars().count(),
        tokens: parts.iter().map(|&part| entry.part_cost(part)).sum(),
        lines,
        items: excerpt::array(&text).map(|list| list.len()),
        first_line,
        can_expand: whole.is_ok(),
        shown: shown(request, handle),
    })
}

fn shown(request: &Request<'_>, handle: Handle) -> Fate {
    let view = view(request, &[]);
    let Some((item, answer)) = view.places().get(handle.seq) else { return Fate::NotShown };
    let item = &view.items[item];
    let is_changed = match answer {
        Some(answer) => item.answers[answer].changed.is_some(),
        None => item.changed.iter().any(|(part, _)| handle.part.is_none_or(|asked| asked == *part)),
    };
    match (item.is_shown(), is_changed) {
        (false, _) => Fate::NotShown,
        (true, true) => Fate::Changed,
        (true, false) => Fate::Shown,
    }
}

fn content<'p>(parts: impl Iterator<Item = &'p Part> + Clone, text: &str, lines: usize) -> Content {
    let has_image = |part: &Part| match part {
        Part::Image(_) => true,
        Part::Result(result) => result.content.iter().any(|piece| matches!(piece, Piece::Image(_))),
        _ => false,
    };
    let is_media = |part: &Part| matches!(part, Part::Audio(_) | Part::Document(_) | Part::File { .. });
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    match text.trim_start().as_bytes().first() {
        _ if parts.clone().any(has_image) => Content::Image,
        _ if parts.clone().any(is_media) => Content::Media,
        Some(b'[') if is_json() => Content::JsonArray,
        Some(b'{') if is_json() => Content::JsonObject,
        _ if lines > 1 => Content::Lines,
        _ => Content::Text,
    }
}
