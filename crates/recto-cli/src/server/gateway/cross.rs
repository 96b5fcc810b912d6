//! Models that are spoken to in another format than their client speaks: the page is written in theirs, and the answer
//! told in the client's. How that is done is `recto::wire::across`; here is when, and what goes with it.

use super::incoming::Incoming;
use super::relay::{Relay, text_of};
use super::{Asked, Refused};
use crate::clock;
use crate::config::is_alike;
use crate::server::error::refusal;
use crate::server::metrics::End;
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use recto::entry::Text;
use recto::page::Page;
use recto::redact::Screen;
use recto::tool::Tool;
use recto::wire::across::{self, Across, Telling, Wishes};
use recto::wire::{Reply, Wire};
use recto::{Entry, Target};
use recto_engine::engine::Begun;
use recto_engine::upstream::{self, Credential, Forward, Repeat, Upstream};
use recto_engine::{Call, Error, Store};
use serde_json::value::RawValue;
use std::borrow::Cow;
use tokio::sync::oneshot;

/// The header that names the format in which a model was asked, if that is not the client's.
const WIRE: HeaderName = HeaderName::from_static("x-recto-wire");
/// The header that names what could not be carried over.
const LEFT_OUT: HeaderName = HeaderName::from_static("x-recto-left-out");
/// How much of a refusal is read to be told in other words.
const REFUSAL_BYTES_MAX: usize = 256 * 1024;
/// Headers of a client that mean the same to every provider.
const COMMON: [HeaderName; 3] =
    [USER_AGENT, HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")];
/// Where Anthropic looks for a key, and which version of its format we write.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
/// Where providers name a request, each in its own header.
const REQUEST_IDS: [HeaderName; 2] = [HeaderName::from_static("request-id"), HeaderName::from_static("x-request-id")];
/// Words of a recording, which can't be told in other words.
const AUDIO: &str = "\"input_audio\"";
/// What is said of a page that the provider would not take.
const BROKEN: &str = "its page breaks rules of the provider";

/// What a request needs whose model is spoken to in another format.
pub(super) struct Cross {
    /// The format of the model's provider.
    pub(super) spoken: Wire,
    /// The format of the client.
    told: Wire,
    wishes: Wishes,
    across: Across,
}

impl<S: Store> Asked<S> {
    /// Returns what is needed to carry a request over, if its model is spoken to in another format; or why it can't be.
    pub(super) fn crossing(&self, incoming: &Incoming<'_>, upstream: &Upstream) -> Result<Option<Box<Cross>>, Refused> {
        let (told, spoken) = (self.wire, upstream.wire());
        if is_alike(told, spoken) {
            return Ok(None);
        }
        if let Some(variable) = upstream.missing_key() {
            let name = upstream.name();
            let message = format!(
                "the key of a client of another format is not sent to {name:?}; hint: set {variable} where recto serve \
                 runs, or say client_key = \"pass\" under [upstream.{name}] if clients have keys for it"
            );
            return Err(Refused { status: StatusCode::FORBIDDEN, kind: "upstream_key", message });
        }
        let refused = |why: &recto::Error| {
            let hint = why.hint().map_or(String::new(), |hint| format!("; hint: {hint}"));
            let message = format!("{} speaks {spoken}, and this request {told}: {why}{hint}", upstream.name());
            Refused { status: StatusCode::BAD_REQUEST, kind: "other_format", message }
        };
        if incoming.text.contains(AUDIO) && told != spoken {
            let why = recto::Error::input("recordings can't be carried over").hinting("say it in words");
            return Err(refused(&why));
        }
        let target = self.setup.known.target(incoming.model().unwrap_or_default(), spoken, &self.setup.config);
        let wishes = Wishes::of(told, incoming.text, &target).map_err(|why| refused(&why))?;
        let telling = Telling { created: clock::now().0 / 1000, has_usage: wishes.has_usage };
        let tools: Vec<&RawValue> =
            incoming.outline.tools.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
        let tools: Vec<Tool> = tools.into_iter().map(|tool| Tool::parse(tool.get())).collect();
        let across = Across::new(spoken, told, telling, tools.iter().map(Tool::name)).map_err(|why| refused(&why))?;
        let metrics = &self.server.metrics;
        metrics.crossed.count();
        wishes.dropped.iter().for_each(|_| metrics.left_out.count());
        Ok(Some(Box::new(Cross { spoken, told, wishes, across })))
    }

    /// The model that a request names whose messages can't be read.
    pub(super) fn model(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.body).ok()?;
        self.wire.outline(text).ok()?.model.map(Cow::into_owned)
    }

    /// Refuses what can't be read where it can't go on as it came.
    pub(super) fn readable(&self, upstream: &Upstream) -> Result<(), Refused> {
        if is_alike(self.wire, upstream.wire()) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.body);
        let why = self.wire.decode(&text).err().map_or_else(|| "no messages are in it".into(), |why| why.to_string());
        let message =
            format!("can't read the request, which has to be told to {} in other words: {why}", upstream.name());
        Err(Refused { status: StatusCode::BAD_REQUEST, kind: "body", message })
    }

    /// Asks a model: in the client's own words, or in those of its provider.
    pub(super) async fn ask(
        &self,
        upstream: &Upstream,
        cross: Option<&Cross>,
        body: Bytes,
        repeat: Repeat,
    ) -> Result<upstream::Response, Error> {
        let Some(cross) = cross else {
            return self.send(upstream, path(self.wire), Method::POST, body, repeat).await;
        };
        let passes = upstream.takes_clients_keys() && self.caller.credential == Credential::Client;
        let credential = if passes { Credential::Client } else { Credential::Withheld };
        let (headers, method) = (cross.headers(&self.headers, passes), Method::POST);
        let forward = Forward { method, path: path(cross.spoken), query: None, headers, body, credential, repeat };
        self.forward(upstream, forward).await
    }
}

/// Where models are asked, in the words of a provider.
pub(super) fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat => "chat/completions",
        Wire::OpenaiResponses => "responses",
        Wire::Anthropic => "messages",
        // What is wished for can't be told in these; see `Wishes`.
        Wire::Gemini | Wire::Ollama => "",
    }
}

impl Cross {
    /// The form that the answer must have, if it must have one.
    pub(super) fn format(&self) -> Option<Text> {
        self.wishes.format.clone()
    }

    /// Returns the body of a request with its page, or why it can't be used.
    pub(super) fn sent(&self, begun: &Begun, call: &Call) -> Result<(Bytes, &'static str), &'static str> {
        Ok((self.body(&begun.compiled.page, &call.target, begun.screen())?, "compiled"))
    }

    /// Returns the body that asks for an answer to a page, or why there is none.
    pub(super) fn body(&self, page: &Page, target: &Target, screen: &Screen) -> Result<Bytes, &'static str> {
        let fields = serde_json::to_string(&self.wishes.fields).unwrap_or_default();
        let seen = if screen.is_over_prompts() { screen.json(&fields) } else { Cow::Borrowed(fields.as_str()) };
        let fields = serde_json::from_str(&seen).map_err(|_| BROKEN)?;
        let body = self.spoken.encode_with(page, target, &fields);
        if self.spoken.validate(&body).is_empty() { Ok(body.into()) } else { Err(BROKEN) }
    }

    /// The headers that go with a request: what means the same to everybody, and the client's key as this provider wants
    /// it, where it is meant for it.
    fn headers(&self, given: &HeaderMap, passes: bool) -> HeaderMap {
        let common = COMMON.into_iter().filter_map(|name| Some((name.clone(), given.get(name)?.clone())));
        let mut headers: HeaderMap = common.collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.spoken == Wire::Anthropic {
            headers.extend([ANTHROPIC_VERSION]);
        }
        let bearer = given.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let key = given.get(API_KEY).and_then(|value| value.to_str().ok()).or(bearer).filter(|_| passes);
        let (name, key) = match self.spoken {
            Wire::Anthropic => (API_KEY, key.map(str::to_string)),
            Wire::OpenaiChat | Wire::OpenaiResponses | Wire::Gemini | Wire::Ollama => {
                (AUTHORIZATION, key.map(|key| format!("Bearer {key}")))
            }
        };
        if let Some(mut value) = key.and_then(|key| HeaderValue::try_from(key).ok()) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers
    }

    /// Returns what the client is shown of a reply, as it will send it back.
    pub(super) fn shown(&self, reply: &Entry) -> Entry {
        across::shown(self.told, reply).0
    }

    /// Tells in the headers of an answer what became of it.
    pub(super) fn head(&self, headers: &mut HeaderMap) {
        headers.remove(CONTENT_LENGTH);
        if let Some(id) = REQUEST_IDS.iter().find_map(|name| headers.get(name).cloned()) {
            for name in REQUEST_IDS {
                headers.insert(name, id.clone());
            }
        }
        headers.insert(WIRE, HeaderValue::from_static(self.spoken.name()));
        let mut names = self.wishes.dropped.clone();
        names.extend(self.across.left_out().map(str::to_string));
        if let Ok(names) = HeaderValue::from_str(&names.join(", "))
            && !names.is_empty()
        {
            headers.insert(LEFT_OUT, names);
        }
    }
}

impl<S: Store> Relay<S> {
    /// The format in which the provider answers.
    pub(super) fn spoken(&self) -> Wire {
        self.cross.as_ref().map_or(self.asked.wire, |cross| cross.spoken)
    }

    /// Returns a reply with its tools called as the client calls them.
    pub(super) fn named(&self, reply: Reply) -> Reply {
        match &self.cross {
            Some(cross) => cross.across.named(reply),
            None => reply,
        }
    }

    /// Returns a piece of a stream in the client's format.
    pub(super) fn told(&mut self, bytes: Bytes) -> Result<Bytes, recto::Error> {
        match &mut self.cross {
            Some(cross) => cross.across.push(&bytes).map(Bytes::from),
            None => Ok(bytes),
        }
    }

    /// Returns the last piece of a stream in the client's format.
    pub(super) fn told_last(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(cross) = &mut self.cross else { return bytes };
        let before = cross.across.push(&bytes).unwrap_or_default();
        let last = [before, cross.across.close().unwrap_or_default()].concat();
        self.count_left_out();
        last
    }

    /// Returns a whole answer in the client's format, and says in its headers what that lacks; nothing, if it can't be
    /// read.
    pub(super) fn told_whole(&mut self, body: Vec<u8>, answer: &mut Response) -> Option<Vec<u8>> {
        let Some(cross) = &mut self.cross else { return Some(body) };
        let reply = cross.spoken.decode_reply(&text_of(&body)).ok()?;
        let reply = cross.across.named(reply);
        let body = cross.across.whole(&reply);
        cross.head(answer.headers_mut());
        self.count_left_out();
        Some(body)
    }

    fn count_left_out(&self) {
        let left_out = self.cross.iter().flat_map(|cross| cross.across.left_out());
        left_out.for_each(|_| self.asked.server.metrics.left_out.count());
    }

    /// Tells a refusal in the client's words.
    pub(super) async fn refused_across(&mut self, mut response: upstream::Response, head: oneshot::Sender<Response>) {
        let (mut answer, status) = (self.head(&response), response.status());
        self.unanswered(End::Refused).await;
        let mut body = Vec::new();
        // What doesn't come, or comes too late, isn't told.
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() > REFUSAL_BYTES_MAX {
                break;
            }
        }
        let told = across::refusal(self.asked.wire, status, &String::from_utf8_lossy(&body));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *answer.body_mut() = Body::from(told);
        drop(head.send(answer));
    }

    /// What is said of an answer that can't be told in the client's format.
    pub(super) fn untold(&self) -> Response {
        let what = format!("the provider answered with something that is no answer in {}", self.spoken());
        refusal(self.asked.wire, StatusCode::BAD_GATEWAY, "upstream", &what)
    }
}
