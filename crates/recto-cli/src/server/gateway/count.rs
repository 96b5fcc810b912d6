//! Tokens, counted by the provider or by us; and models, as providers list them.

use super::offer::Offer;
use super::{Asked, Refused, failed, store_failed};
use crate::config::is_alike;
use crate::server::error::refusal;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use recto::tool::Tools;
use recto::wire::Wire;
use recto::{Log, Policy, Reader, Request, Target, compile_once};
use recto_engine::Store;
use recto_engine::upstream::{self, Repeat};
use serde_json::{Value, json};

/// The header of an answer that we made up ourselves, because no provider would.
const COUNTED: HeaderName = HeaderName::from_static("x-recto-counted");
/// How providers say that they don't have what was asked for.
const ABSENT: [u16; 3] = [404, 405, 501];

/// Counts the tokens of a request to Anthropic, with the tool that would be offered: by the provider, else by our own
/// count.
pub(in crate::server) async fn count_tokens<S: Store>(asked: Asked<S>) -> Response {
    let came = String::from_utf8_lossy(&asked.body);
    let outline = asked.wire.outline(&came).ok();
    let model = outline.as_ref().and_then(|outline| outline.model.as_deref()).unwrap_or_default().to_string();
    let policy = asked.policy().ok();
    let offer = outline.zip(policy).and_then(|(outline, policy)| Offer::of(asked.wire, &outline, &policy, 0));
    let text = offer.map_or_else(|| came.to_string(), |offer| offer.put(&came));
    let text = match asked.unseen(&text).await {
        Ok(seen) => seen.unwrap_or(text),
        Err(refused) => return refused.told(asked.wire),
    };
    let body = if text == came { asked.body.clone() } else { text.clone().into() };
    let answered = match asked.upstream(Some(&model)) {
        // Nobody else counts for clients of this format.
        Ok(upstream) if !is_alike(asked.wire, upstream.wire()) => None,
        Ok(upstream) => {
            Some(asked.send(&upstream, "messages/count_tokens", Method::POST, body, Repeat::WhenUnreached).await)
        }
        Err(refused) => return refused.told(asked.wire),
    };
    let error = match answered {
        Some(Ok(response)) if !ABSENT.contains(&response.status()) => return passed(asked.wire, response).await,
        Some(Ok(_)) | None => None,
        Some(Err(error)) => Some(error),
    };
    let target = asked.setup.known.target(&model, asked.wire, &asked.setup.config);
    match counted(&text, &target) {
        Ok(tokens) => ours(&json!({"input_tokens": tokens})),
        Err(wrong) => match error {
            Some(error) => failed(asked.wire, &error),
            None => refusal(asked.wire, StatusCode::BAD_REQUEST, "body", &wrong.to_string()),
        },
    }
}

impl<S: Store> Asked<S> {
    /// What is counted of a text where the policy redacts something in it.
    async fn unseen(&self, text: &str) -> Result<Option<String>, Refused> {
        let redact = self.policy()?.redact;
        let screen = self.server.engine.screen(&self.caller.tenant, &redact).await;
        let screen = screen.map_err(|error| store_failed(&error))?;
        Ok(match screen.json(text) {
            std::borrow::Cow::Borrowed(_) => None,
            std::borrow::Cow::Owned(seen) => Some(seen),
        })
    }
}

/// Returns the format of a request that has no body, by its headers.
pub(in crate::server) fn wire_of(headers: &HeaderMap) -> Wire {
    if headers.contains_key("anthropic-version") { Wire::Anthropic } else { Wire::OpenaiChat }
}

/// Lists models, or tells about one, as the provider does.
pub(in crate::server) async fn models<S: Store>(asked: Asked<S>, id: Option<String>) -> Response {
    let wire = asked.wire;
    let upstream = match asked.upstream_alike(id.as_deref()) {
        Ok(upstream) => upstream,
        Err(refused) => return refused.told(asked.wire),
    };
    let path = asked.uri.path().strip_prefix("/v1/").unwrap_or("models").to_string();
    match asked.send(&upstream, &path, Method::GET, Bytes::new(), Repeat::WhenUnreached).await {
        Ok(response) => passed(wire, response).await,
        Err(error) => failed(wire, &error),
    }
}

/// Passes an answer on that is no stream.
async fn passed(wire: Wire, mut response: upstream::Response) -> Response {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break,
            Err(error) => return failed(wire, &error),
        }
    }
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = StatusCode::from_u16(response.status()).unwrap_or(StatusCode::BAD_GATEWAY);
    *answer.headers_mut() = response.headers_for_client();
    answer
}

fn ours(body: &Value) -> Response {
    let mut answer = Response::new(Body::from(body.to_string()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(COUNTED, HeaderValue::from_static("estimate"));
    answer
}

/// What a provider will most likely count for a body.
fn counted(body: &str, target: &Target) -> Result<u64, recto::Error> {
    let decoded = Wire::Anthropic.decode(body)?;
    let mut log = Log::counted_by(target.tokenizer);
    for entry in decoded.entries {
        log.append(entry)?;
    }
    let tools = (!decoded.tools.is_empty()).then(|| Tools::counted(decoded.tools, log.counter()));
    let (reader, policy) = (Reader::new("main"), Policy::preset("none")?);
    // Whatever its size, it is counted.
    let target = target.clone().with_window(None);
    let request = Request { tools: tools.as_ref(), ..Request::new(&log, &reader, &policy, &target) };
    let receipt = compile_once(&request)?.receipt;
    Ok(receipt.calibration.map_or(receipt.ledger.used(), |it| it.expected).0)
}
