//! What an event of a stream says, for somebody who listens. What it means for the answer, the wire knows.

use super::refusal::Told;
use crate::drive::Heard;
use recto::wire::Wire;
use serde_json::Value;

/// Returns the words that an event brings.
pub(super) fn heard(wire: Wire, event: &Value) -> Vec<Heard> {
    let parts = event["candidates"][0]["content"]["parts"].as_array();
    let pieces: Vec<Piece<'_>> = match wire {
        Wire::OpenaiChat => vec![chat(&event["choices"][0]["delta"])],
        Wire::OpenaiResponses => vec![responses(event)],
        Wire::Anthropic => vec![messages(&event["delta"])],
        Wire::Gemini => parts.into_iter().flatten().map(gemini).collect(),
        Wire::Ollama => ollama(&event["message"]).into(),
    };
    let pieces = pieces.into_iter().flatten().filter(|(_, text)| !text.is_empty());
    pieces.map(|(of, text)| of(text.into())).collect()
}

/// Returns what a provider says has gone wrong, if it does.
pub(super) fn failure(event: &Value) -> Option<Told> {
    [&event["error"], &event["response"]["error"]].into_iter().find(|error| !error.is_null()).map(Told::of_error)
}

type Piece<'e> = Option<(fn(recto::entry::Text) -> Heard, &'e str)>;

fn chat(delta: &Value) -> Piece<'_> {
    let text = |key: &str| delta[key].as_str();
    let said = text("content").filter(|text| !text.is_empty()).or(text("refusal"));
    let thought = text("reasoning_content").or(text("reasoning"));
    let said = said.filter(|text| !text.is_empty()).map(|text| (Heard::Text as _, text));
    said.or(thought.map(|text| (Heard::Reasoning as _, text)))
}

fn responses(event: &Value) -> Piece<'_> {
    let delta = event["delta"].as_str()?;
    match event["type"].as_str()? {
        "response.output_text.delta" | "response.refusal.delta" => Some((Heard::Text, delta)),
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => Some((Heard::Reasoning, delta)),
        _ => None,
    }
}

fn gemini(part: &Value) -> Piece<'_> {
    let text = part["text"].as_str()?;
    match part["thought"] == true {
        true => Some((Heard::Reasoning, text)),
        false => Some((Heard::Text, text)),
    }
}

fn ollama(message: &Value) -> [Piece<'_>; 2] {
    let thought = message["thinking"].as_str().map(|text| (Heard::Reasoning as _, text));
    [thought, message["content"].as_str().map(|text| (Heard::Text as _, text))]
}

fn messages(delta: &Value) -> Piece<'_> {
    match delta["type"].as_str()? {
        "text_delta" => Some((Heard::Text, delta["text"].as_str()?)),
        "thinking_delta" => Some((Heard::Reasoning, delta["thinking"].as_str()?)),
        _ => None,
    }
}
