//! What a target takes, and how it is told what its format has no field for.

use crate::edit::Reason;
use crate::entry::{Part, Piece, Role, Text, ToolResult};
use crate::item::{Changed, result_text};
use crate::target::{Reasoned, Target};
use crate::tokens::Tokens;
use crate::wire::Wire;

/// What stands before an instruction in the user's place.
pub(crate) const LATE_SYSTEM: &str = "[System Context]: ";
/// What stands before the text of a result that failed.
const ERROR: &str = "Error: ";

/// What the target does not take of a part in this role.
pub(crate) fn refused(part: &Part, role: Role, target: &Target) -> Option<&'static str> {
    match part {
        Part::Text { text } if target.wire == Wire::Anthropic && text.trim().is_empty() => Some("text without words"),
        Part::Opaque { provider, .. } if *provider != target.provider => Some("content of another provider"),
        Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::File { .. } if role != Role::User => {
            Some("media that isn't the user's")
        }
        _ => None,
    }
}

/// What stands for a picture that no provider can look at.
pub(crate) fn told(part: &Part) -> Option<Text> {
    match part {
        Part::Image(media) => unseen(&media.url),
        _ => None,
    }
}

/// Pictures that are sent along must be of a kind that every provider knows.
fn unseen(url: &str) -> Option<Text> {
    let kind = url.strip_prefix("data:")?.split([';', ',']).next().unwrap_or_default();
    let is_known = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&kind);
    (!is_known).then(|| format!("[image of a kind that can't be shown: {kind}]").into())
}

/// Why a step's reasoning can't go to the target. It goes whole or not at all: what a provider sealed counts only
/// together, and in front of what it led to.
pub(super) fn reasoning_refused(parts: &[Part], target: &Target) -> Option<&'static str> {
    let last = parts.iter().rposition(|part| matches!(part, Part::Reasoning(_)))?;
    match target.reasoning {
        Reasoned::Dropped => return Some("reasoning from earlier turns"),
        Reasoned::Text => return None,
        Reasoned::Sealed => {}
    }
    let mut thoughts = parts.iter().filter_map(|part| if let Part::Reasoning(it) = part { Some(it) } else { None });
    let has_seal = |it: &&crate::entry::Reasoning| match target.wire {
        Wire::Anthropic => it.signature.is_some() || it.encrypted.is_some(),
        Wire::OpenaiResponses => it.item.is_some(),
        Wire::OpenaiChat => false,
    };
    if thoughts.clone().any(|it| !target.reads_reasoning_of(it.provider.as_deref(), it.model.as_deref())) {
        Some("reasoning of another provider or model")
    } else if !thoughts.all(|it| has_seal(&it)) {
        Some("reasoning without its seal")
    } else if !parts[last..].iter().any(Part::is_content) {
        Some("reasoning that led to nothing")
    } else {
        None
    }
}

/// A result as text, where the target takes it no other way.
pub(super) fn result_told(result: &ToolResult, target: &Target) -> Option<(&'static str, Text)> {
    let has_images = result.content.iter().any(|piece| matches!(piece, Piece::Image(_)));
    let is_unseen = |piece: &Piece| matches!(piece, Piece::Image(media) if unseen(&media.url).is_some());
    let has_images_to_tell = has_images && (!target.result_images || result.content.iter().any(is_unseen));
    let is_told = result.is_error && target.tells_errors;
    match (has_images_to_tell, is_told) {
        (true, false) => Some(("pictures in tool results", result_text(result))),
        (true, true) => Some(("pictures in tool results", told_error(&result_text(result)))),
        (false, true) if !has_images => {
            let text = result_text(result);
            let told = told_error(&text);
            (told != text).then_some(("error flags", told))
        }
        _ => None,
    }
}

/// The text of a failed result, which says that it failed.
pub(super) fn told_error(text: &Text) -> Text {
    let start = text.trim_start().as_bytes();
    match start.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"error")) {
        true => text.clone(),
        false => format!("{ERROR}{text}").into(),
    }
}

pub(super) fn not_taken(what: &'static str, text: Option<Text>, cost: Tokens) -> Changed {
    Changed { text, cost, by: "shape".into(), why: Reason::NotTaken { what: what.into() }, is_edit: false }
}
