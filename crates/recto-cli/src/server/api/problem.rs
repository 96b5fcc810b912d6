//! Why something could not be done: `application/problem+json`, with the codes of the command.

use crate::codes::{Code, Meaning};
use crate::failure::Failure;
use crate::server::error::REFUSED;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What a problem is told as.
const CONTENT: HeaderValue = HeaderValue::from_static("application/problem+json");
/// When to come again, in seconds, where waiting may help.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Why something could not be done.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: Code,
    /// One word for programs.
    kind: &'static str,
    detail: String,
    hints: Vec<String>,
    more: Map<String, Value>,
    /// What is for the server's own log, because it may name files.
    log: Option<String>,
}

impl Problem {
    /// Returns that a request can't be taken as it is.
    pub(super) fn bad(detail: impl Into<String>) -> Problem {
        Problem::of(Code::BadRequest, detail)
    }

    /// Returns that there is no such thing.
    pub(super) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::of(Code::NotFound, detail)
    }

    /// Returns a problem with a code.
    pub(super) fn of(code: Code, detail: impl Into<String>) -> Problem {
        Problem::from(Failure::of(code, detail))
    }

    /// Adds a field.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: &impl Serialize) -> Problem {
        self.more.insert(name.into(), serde_json::to_value(value).unwrap_or_default());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub(super) fn hinting(mut self, hint: impl Into<String>) -> Problem {
        self.hints.push(hint.into());
        self
    }

    /// Returns whether what the request was built on has changed.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self.status, StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED)
    }

    /// Returns what is to be told to whom the server belongs to.
    pub(super) fn for_log(&self) -> Option<&str> {
        self.log.as_deref()
    }

    /// Returns its code, its word for programs, and what it says to a model, with hints.
    #[cfg(feature = "mcp")]
    pub(super) fn for_model(&self) -> (String, &'static str, String) {
        let Problem { code, kind, detail, hints, .. } = self;
        let hints: String = hints.iter().map(|hint| format!("\nhint: {hint}")).collect();
        (code.to_string(), kind, format!("error[{code}]: {detail}{hints}"))
    }

    /// Returns whether it is of a kind.
    #[cfg(feature = "mcp")]
    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// Returns it as an answer.
    pub(super) fn response(self) -> Response {
        let Problem { status, code, kind, detail, hints, more, .. } = self;
        written(status, code, kind, &detail, &hints, more)
    }
}

/// Returns the answer to something that was refused before anybody looked at what it asks.
pub(in crate::server) fn problem(status: StatusCode, kind: &'static str, detail: &str) -> Response {
    let code = match kind {
        "not_found" => Code::NotFound,
        "too_large" => Code::TooMuch,
        "crowded" => Code::Crowded,
        "store" | "closing" => Code::StoreFailed,
        "no_key" | "unknown_key" | "two_credentials" | "host" | "origin" | "read_only" => Code::NotLetIn,
        _ => Code::BadRequest,
    };
    written(status, code, kind, detail, &[], Map::new())
}

/// Returns the answer where there should be one, and is none.
pub(super) fn defect() -> Response {
    Problem::of(Code::Defect, "the request came to nothing").response()
}

fn written(
    status: StatusCode,
    code: Code,
    kind: &'static str,
    detail: &str,
    hints: &[String],
    more: Map<String, Value>,
) -> Response {
    let code = code.to_string();
    let title = Meaning::of(&code).map_or("", |meaning| meaning.title);
    let mut body = json!({
        "type": format!("urn:recto:{code}"), "title": title, "status": status.as_u16(), "code": code, "kind": kind,
        "detail": detail, "hints": hints,
    });
    if let Some(body) = body.as_object_mut() {
        body.extend(more);
    }
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, CONTENT);
    headers.insert(REFUSED, HeaderValue::from_static(kind));
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        headers.insert(RETRY_AFTER, RETRY_SECONDS);
    }
    response
}

/// The status that goes with a code, and its word for programs.
fn spelled(code: Code) -> (u16, &'static str) {
    match code {
        Code::NotFound => (404, "not_found"),
        Code::Exists => (409, "exists"),
        Code::Differs => (409, "conflict"),
        Code::InUse => (409, "in_use"),
        Code::HasForks => (409, "has_forks"),
        Code::Erased => (410, "erased"),
        Code::TooMuch => (413, "too_much"),
        Code::Overflow | Code::SomeOverflow => (422, "overflow"),
        Code::BadSettings | Code::BadPolicy => (422, "settings"),
        Code::Refused => (422, "not_expanded"),
        Code::BadConversation => (422, "not_taken"),
        Code::Crowded => (429, "crowded"),
        Code::StoreBusy => (503, "busy"),
        Code::StoreFull | Code::StoreReadOnly | Code::StoreUnusable | Code::StoreNewer | Code::StoreFailed => {
            (503, "store")
        }
        Code::Defect => (500, "defect"),
        _ => (400, "bad_request"),
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let code = failure.code().unwrap_or(Code::Defect);
        let (status, kind) = spelled(code);
        let (_, detail, hints) = failure.parts();
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // What a store says may name files; that is for the log.
        let (detail, log) = match (kind, code) {
            ("store" | "defect", _) => ("the store or the server failed; its log says more".into(), Some(detail)),
            _ => (detail, None),
        };
        let hints = if log.is_some() { Vec::new() } else { hints.to_vec() };
        Problem { status, code, kind, detail, hints, more: Map::new(), log }
    }
}

impl From<recto::Error> for Problem {
    fn from(error: recto::Error) -> Problem {
        let overflow = error.overflow().map(|overflow| serde_json::to_value(overflow).unwrap_or_default());
        let problem = Problem::from(Failure::from(error));
        match overflow {
            Some(overflow) => problem.with("overflow", &overflow),
            None => problem,
        }
    }
}

impl From<recto_engine::Error> for Problem {
    fn from(error: recto_engine::Error) -> Problem {
        let overflow =
            error.core().and_then(recto::Error::overflow).map(|it| serde_json::to_value(it).unwrap_or_default());
        let forks = error.forks().to_vec();
        let (is_head_moved, is_key_reused) = (error.is_head_moved(), error.is_key_reused());
        let mut problem = Problem::from(Failure::from(error));
        if is_head_moved {
            (problem.status, problem.kind) = (StatusCode::PRECONDITION_FAILED, "head_moved");
        }
        if is_key_reused {
            problem.kind = "key_reused";
        }
        if !forks.is_empty() {
            problem = problem.with("forks", &forks);
        }
        match overflow {
            Some(overflow) => problem.with("overflow", &overflow),
            None => problem,
        }
    }
}
