//! What a target takes, and how it is told what its format has no field for.

use crate::edit::Reason;
use crate::entry::{Part, Piece, Role, Text, ToolResult};
use crate::item::{Changed, result_text};
use crate::target::{Reasoned, Target};
use crate::tokens::Tokens;
use crate::wire::json::Fields;
use crate::wire::{Wire, gemini};

/// What stands before an instruction in the user's place.
pub const LATE_SYSTEM: &str = "[System Context]: ";
/// What stands before the text of a result that failed.
const ERROR: &str = "Error: ";

/// What the target does not take of a part in this role.
pub(crate) fn refused(part: &Part, role: Role, target: &Target) -> Option<&'static str> {
    match part {
        Part::Text { text } if target.wire.wants_user_words() && text.trim().is_empty() => Some("text without words"),
        Part::Opaque { provider, .. } if *provider != target.provider => Some("content of another provider"),
        Part::Opaque { .. } if target.wire == Wire::Ollama => Some("content of another provider"),
        Part::Opaque { payload, .. } if target.wire == Wire::OpenaiChat && !is_refusal(payload) => {
            Some("content of another of its provider's formats")
        }
        Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::File { .. } if role != Role::User => {
            Some("media that isn't the user's")
        }
        _ => None,
    }
}

/// Whether something opaque is the one thing that Chat's messages can hold of it.
fn is_refusal(payload: &str) -> bool {
    let fields: Fields<'_> = serde_json::from_str(payload).unwrap_or_default();
    fields.get("type").is_some_and(|kind| kind.get() == "\"refusal\"")
}

/// What stands for a picture, recording or document that the target can't be shown.
pub(crate) fn told(part: &Part, target: &Target) -> Option<Text> {
    let (what, url) = match part {
        Part::Image(media) => return unseen(&media.url, target.wire),
        Part::Audio(media) => ("recording", &*media.url),
        Part::Document(media) => ("document", &*media.url),
        Part::File { id } if !is_file(id, target.wire) => ("file", &**id),
        _ => return None,
    };
    let kind = kind_of(url);
    let is_taken = match (target.wire, part) {
        (_, Part::File { .. }) | (Wire::Anthropic, Part::Audio(_)) | (Wire::Ollama, _) => false,
        (Wire::Gemini, _) => true,
        (Wire::Anthropic, _) => kind.is_none_or(|kind| ["application/pdf", "text/plain"].contains(&kind)),
        (Wire::OpenaiResponses, Part::Document(_)) => true,
        _ => kind.is_some(),
    };
    let name: String = kind.unwrap_or(url).chars().take(NAMED_CHARS_MAX).collect();
    (!is_taken).then(|| format!("[{what} that can't be shown: {name}]").into())
}

/// How much of an address is named.
const NAMED_CHARS_MAX: usize = 200;

/// What kind of data a `data:` URL holds.
fn kind_of(url: &str) -> Option<&str> {
    url.strip_prefix("data:").map(|rest| rest.split([';', ',']).next().unwrap_or_default())
}

/// Whether a name can be that of a file that the provider holds.
fn is_file(id: &str, wire: Wire) -> bool {
    match wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => true,
        Wire::Anthropic => id.starts_with("file_"),
        Wire::Gemini => gemini::is_held(id),
        Wire::Ollama => false,
    }
}

/// Pictures that are sent along must be of a kind that every provider knows; one looks at nothing else.
fn unseen(url: &str, wire: Wire) -> Option<Text> {
    let Some(kind) = kind_of(url) else {
        let name: String = url.chars().take(NAMED_CHARS_MAX).collect();
        return (wire == Wire::Ollama).then(|| format!("[image that can't be shown: {name}]").into());
    };
    let is_known = match kind {
        "image/png" | "image/jpeg" | "image/webp" => true,
        "image/gif" => wire != Wire::Gemini,
        _ => false,
    };
    (!is_known).then(|| format!("[image of a kind that can't be shown: {kind}]").into())
}

/// Pictures in results: one provider looks at those alone that are sent along.
fn unseen_in_result(url: &str, wire: Wire) -> bool {
    unseen(url, wire).is_some() || (wire == Wire::Gemini && kind_of(url).is_none())
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
        Wire::Gemini => {
            let is_own = it.provider.as_deref() == Some(gemini::PROVIDER);
            is_own && (it.signature.is_some() || it.encrypted.is_some())
        }
        Wire::OpenaiChat | Wire::Ollama => false,
    };
    // Of what one provider's model thought, only the last word may be sealed, and it stands on what follows or alone.
    let is_loose = target.wire == Wire::Gemini;
    let is_sealed =
        if is_loose { thoughts.clone().any(|it| has_seal(&it)) } else { thoughts.clone().all(|it| has_seal(&it)) };
    let led_to = if is_loose { parts } else { &parts[last..] };
    if thoughts.any(|it| !target.reads_reasoning_of(it.provider.as_deref(), it.model.as_deref())) {
        Some("reasoning of another provider or model")
    } else if !is_sealed {
        Some("reasoning without its seal")
    } else if !led_to.iter().any(Part::is_content) {
        Some("reasoning that led to nothing")
    } else {
        None
    }
}

/// A result as text, where the target takes it no other way.
pub(super) fn result_told(result: &ToolResult, target: &Target) -> Option<(&'static str, Text)> {
    let has_images = result.content.iter().any(|piece| matches!(piece, Piece::Image(_)));
    let is_unseen = |piece: &Piece| matches!(piece, Piece::Image(it) if unseen_in_result(&it.url, target.wire));
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
