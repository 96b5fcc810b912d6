//! What a provider answers to a request that it does not take.

use super::Api;
use serde_json::{Value, json};
use std::fmt;

/// A refused request: which rule it broke, and what the provider says about it.
///
/// The rule is one of `C1`–`C13`, `R1`–`R13`, `A1`–`A25`, `G1`–`G8`, or `json`, `shape`, `thinking`, `system`, `cache`, `context`,
/// `account`, `path` for what has no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Whose words and envelope it takes.
    pub api: Api,
    /// The HTTP status.
    pub status: u16,
    /// The rule that was broken.
    pub rule: &'static str,
    /// The provider's text.
    pub message: String,
    /// OpenAI: the place in the body. Anthropic has it in the text.
    pub param: Option<String>,
    /// OpenAI: `error.code`; Anthropic: `error.details.error_code`.
    pub code: Option<String>,
}

impl Refusal {
    pub(super) fn new(api: Api, rule: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { api, status: 400, rule, message: message.into(), param: None, code: None }
    }

    pub(super) fn at(self, param: impl Into<String>) -> Refusal {
        Refusal { param: Some(param.into()), ..self }
    }

    pub(super) fn coded(self, code: &str) -> Refusal {
        Refusal { code: Some(code.to_owned()), ..self }
    }

    pub(super) fn with_status(self, status: u16) -> Refusal {
        Refusal { status, ..self }
    }

    /// Returns the provider's error envelope.
    pub fn to_body(&self) -> Value {
        match self.api {
            Api::Chat | Api::Responses => json!({"error": {
                "message": self.message, "type": "invalid_request_error", "param": self.param, "code": self.code,
            }}),
            Api::Messages => {
                let kind = match self.status {
                    401 => "authentication_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    _ => "invalid_request_error",
                };
                let mut error = json!({"type": kind, "message": self.message});
                if let Some(code) = &self.code {
                    error["details"] = json!({"error_code": code});
                }
                json!({"type": "error", "error": error, "request_id": "req_011FakeRefusal"})
            }
            Api::Gemini => {
                let status = match self.status {
                    404 => "NOT_FOUND",
                    _ => "INVALID_ARGUMENT",
                };
                json!({"error": {"code": self.status, "message": self.message, "status": status}})
            }
            Api::Ollama => json!({"error": self.message}),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status, self.rule, self.message)
    }
}

impl std::error::Error for Refusal {}
