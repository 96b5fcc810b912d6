//! An error of one provider, in the words of another.

use crate::wire::Wire;
use serde_json::{Value, json};

/// How OpenAI calls a request that is longer than the window.
const TOO_LONG: &str = "context_length_exceeded";
/// How Anthropic begins to say that; clients look for these words.
const TOO_LONG_TOLD: &str = "prompt is too long";
/// How much is told of an error that is in nobody's form.
const ODD_CHARS_MAX: usize = 500;

/// Returns the body of an error in a client's format, from the status and the body of another provider's. Its words stay,
/// and where clients act on how one is spelled (a request that is longer than the window), so does what it means.
pub fn refusal(to: Wire, status: u16, body: &str) -> Vec<u8> {
    let told: Value = serde_json::from_str(body).unwrap_or_default();
    let error = told.get("error").unwrap_or(&told);
    let odd = || match body.trim() {
        "" => format!("the provider answered {status}, and nothing else"),
        body => body.chars().take(ODD_CHARS_MAX).collect(),
    };
    let message = error.as_str().or(error["message"].as_str()).map_or_else(odd, str::to_string);
    let code = error["code"].as_str().map(str::to_string);
    let is_long = code.as_deref() == Some(TOO_LONG) || message.starts_with(TOO_LONG_TOLD);
    let kind = kind_of_error(to, status);
    let body = match to {
        Wire::OpenaiChat | Wire::OpenaiResponses => {
            let code =
                if is_long { Some(TOO_LONG.to_string()) } else { code.or(error["type"].as_str().map(Into::into)) };
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
        Wire::Anthropic => {
            let is_said = !is_long || message.starts_with(TOO_LONG_TOLD);
            let message = if is_said { message } else { format!("{TOO_LONG_TOLD}: {message}") };
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Wire::Gemini => json!({"error": {"code": status, "message": message, "status": kind}}),
        Wire::Ollama => json!({"error": message}),
    };
    body.to_string().into_bytes()
}

/// Returns what a provider calls errors of a status.
pub fn kind_of_error(wire: Wire, status: u16) -> &'static str {
    match (wire, status) {
        (Wire::OpenaiChat | Wire::OpenaiResponses, 401 | 403) | (Wire::Anthropic, 401) => "authentication_error",
        (Wire::Anthropic, 403) => "permission_error",
        (Wire::Anthropic, 404) => "not_found_error",
        (Wire::Anthropic, 413) => "request_too_large",
        (_, 429) => "rate_limit_error",
        (Wire::Anthropic, 504) => "timeout_error",
        (Wire::Anthropic, 529) => "overloaded_error",
        (Wire::Anthropic, 500..) => "api_error",
        (Wire::OpenaiChat | Wire::OpenaiResponses, 500..) => "server_error",
        _ => "invalid_request_error",
    }
}
