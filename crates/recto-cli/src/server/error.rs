//! How a refusal of ours is spelled: as the provider would, with a header that says it was Recto.

use super::api;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use recto::wire::Wire;
use recto::wire::across::kind_of_error;
use serde_json::json;

/// The header of answers that no provider gave; its value says in a word why.
pub(super) const REFUSED: HeaderName = HeaderName::from_static("x-recto-refused");

/// Whose errors a client can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    Openai,
    Anthropic,
    /// Nobody's but ours.
    Problem,
}

impl Envelope {
    /// Returns the one that clients of a path expect.
    pub(super) fn of_path(path: &str) -> Envelope {
        match path.strip_prefix("/v1/messages") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Envelope::Anthropic,
            _ if api::is_ours(path) => Envelope::Problem,
            _ => Envelope::Openai,
        }
    }
}

impl From<Wire> for Envelope {
    fn from(wire: Wire) -> Envelope {
        match wire {
            Wire::Anthropic => Envelope::Anthropic,
            Wire::OpenaiChat | Wire::OpenaiResponses | Wire::Gemini | Wire::Ollama => Envelope::Openai,
        }
    }
}

/// Returns an answer that says why a request is not done. The kind is one word, such as `unknown_key`; neither it nor
/// the message may hold anything of a credential.
pub(super) fn refusal(
    envelope: impl Into<Envelope>,
    status: StatusCode,
    kind: &'static str,
    message: &str,
) -> Response {
    let body = match envelope.into() {
        Envelope::Openai => {
            let told = kind_of_error(Wire::OpenaiChat, status.as_u16());
            json!({"error": {"message": message, "type": told, "param": null, "code": kind}})
        }
        Envelope::Anthropic => {
            let told = kind_of_error(Wire::Anthropic, status.as_u16());
            json!({"type": "error", "error": {"type": told, "message": message}})
        }
        Envelope::Problem => return api::problem(status, kind, message),
    };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(REFUSED, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_answered_as_its_provider_would() {
        let anthropic = ["/v1/messages", "/v1/messages/count_tokens", "/v1/messages/unknown"];
        let openai = ["/v1/messages_of_all", "/v1/chat/completions", "/v1/responses", "/", "/nowhere", "/apiary"];
        assert!(anthropic.into_iter().all(|path| Envelope::of_path(path) == Envelope::Anthropic));
        let ours = ["/api", "/api/v1/conversations", "/openapi.json"];
        assert!(ours.into_iter().all(|path| Envelope::of_path(path) == Envelope::Problem));
        assert!(openai.into_iter().all(|path| Envelope::of_path(path) == Envelope::Openai));
    }
}
