//! One request, from its head to the end of its answer: what is counted and told of it.
//!
//! What the gateway learns of a request it tells here, and here alone it is decided who hears of it: the numbers, the log,
//! a collector of traces. No words of a request or its answer are ever among it, and no credentials.

use super::limits::Keeps;
use super::metrics::{End, OfUpstream};
use super::trace::Trace;
use super::{Server, route};
use crate::talk::{self, Level};
use axum::http::Method;
use axum::http::request::Parts;
use recto::redact::{Redact, Screen};
use recto::wire::{Reply, Usage};
use recto_engine::summarize::Spent;
use recto_engine::{At, ConversationId, Store, Tenant};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The longest name of a model that is told.
const MODEL_CHARS_MAX: usize = 100;
/// What stands for one that is longer, or spelled as no model is.
const ODD: &str = "(odd)";

/// A request that is being answered; when its last piece was sent, or nobody wants it any more, it has ended.
pub(super) struct Visit<S: Store> {
    server: Arc<Server<S>>,
    pub(super) about: Arc<About>,
}

impl<S: Store> Visit<S> {
    pub(super) fn begun(server: Arc<Server<S>>, at: usize, parts: &Parts) -> Visit<S> {
        server.metrics.begun();
        let trace = server.tracer.begun(&parts.method, route::name(at), &parts.headers);
        let about = About {
            at,
            method: parts.method.clone(),
            since: Instant::now(),
            status: AtomicU16::new(0),
            is_told: server.tells_requests(),
            known: Mutex::default(),
            upstream: OnceLock::new(),
            trace,
        };
        Visit { server, about: Arc::new(about) }
    }
}

impl<S: Store> Keeps for Visit<S> {
    fn sent(&self, bytes: usize) {
        self.server.metrics.response_bytes.add(bytes as u64);
    }
}

impl<S: Store> Drop for Visit<S> {
    fn drop(&mut self) {
        self.server.metrics.ended(self.about.at, self.about.status(), self.about.since.elapsed());
    }
}

/// What is known of a request. Whoever works on it holds it; it is told when nobody does any more.
pub(super) struct About {
    at: usize,
    method: Method,
    since: Instant,
    /// 0 until there is one.
    status: AtomicU16,
    is_told: bool,
    known: Mutex<Known>,
    /// Who was asked first, and its numbers.
    upstream: OnceLock<(String, Arc<OfUpstream>)>,
    pub(super) trace: Trace,
}

/// What the gateway has learnt of a request.
#[derive(Default)]
struct Known {
    tenant: Option<Tenant>,
    conversation: Option<ConversationId>,
    model: Option<String>,
    page: Option<&'static str>,
    /// What all rounds used together.
    spent: Option<Spent>,
    end: Option<End>,
}

impl About {
    fn status(&self) -> u16 {
        self.status.load(Ordering::Relaxed)
    }

    /// Says how it is answered.
    pub(super) fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Says whose it is.
    pub(super) fn of(&self, tenant: &Tenant) {
        self.learn(|known| known.tenant = Some(tenant.clone()));
    }

    /// Says which model is asked for.
    pub(super) fn asks(&self, model: Option<&str>) {
        self.learn(|known| known.model = model.map(spelled));
    }

    /// Says who answers it.
    pub(super) fn goes_to<S: Store>(&self, server: &Server<S>, name: &str) {
        let _ = self.upstream.get_or_init(|| (name.to_string(), server.metrics.upstream(name)));
    }

    /// Says which conversation it is, and what became of its page.
    pub(super) fn continues(&self, at: Option<&At>, page: &'static str) {
        self.learn(|known| {
            known.conversation = at.map(|at| at.conversation.clone());
            known.page = Some(page);
        });
    }

    /// Says what a reply has used and what that costs.
    pub(super) fn used(&self, reply: &Reply, usd: f64) {
        self.trace.replied(reply);
        let Some(usage) = &reply.usage else { return };
        if let Some((_, numbers)) = self.upstream.get() {
            numbers.used(usage, usd);
        }
        let spent = Spent { calls: 1, usage: *usage, usd };
        self.learn(|known| known.spent = Some(known.spent.unwrap_or_default().and(spent)));
    }

    /// Says how the last reply ended.
    pub(super) fn ended(&self, end: End) {
        self.trace.call_ended(end);
        self.learn(|known| known.end = Some(end));
    }

    fn learn(&self, learn: impl FnOnce(&mut Known)) {
        if self.is_told || self.trace.is_wanted() {
            learn(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The line that is told of it, for people.
    fn line(&self, known: &Known, took: Duration) -> String {
        let (method, route) = (&self.method, route::name(self.at));
        let mut line = match self.status() {
            0 => format!("{method} {route}: the client left, {} ms", took.as_millis()),
            status => format!("{method} {route} {status}, {} ms", took.as_millis()),
        };
        for (name, value) in self.fields(known) {
            let value =
                value.as_str().map_or_else(|| value.to_string(), |text| talk::harmless(text).replace('\n', "\\n"));
            line.push_str(&format!(", {name} {value}"));
        }
        line
    }

    /// What is told of it beside its route, status and time.
    fn fields(&self, known: &Known) -> Vec<(&'static str, Value)> {
        let upstream = self.upstream.get().map(|(name, _)| json!(name));
        let tokens = |of: fn(&Usage) -> recto::Tokens| known.spent.as_ref().map(|spent| json!(of(&spent.usage).0));
        let fields = [
            ("tenant", known.tenant.as_ref().map(|it| json!(it.as_str()))),
            ("conversation", known.conversation.as_ref().map(|it| json!(it.as_str()))),
            ("upstream", upstream),
            ("model", known.model.as_ref().map(|it| json!(it))),
            ("page", known.page.map(|it| json!(it))),
            ("end", known.end.map(|it| json!(it.name()))),
            ("input_tokens", tokens(|usage| usage.input)),
            ("cached_tokens", tokens(|usage| usage.cached)),
            ("output_tokens", tokens(|usage| usage.output)),
            ("usd", known.spent.map(|spent| json!(spent.usd))),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl Drop for About {
    fn drop(&mut self) {
        let (status, took) = (self.status(), self.since.elapsed());
        let known = std::mem::take(self.known.get_mut().unwrap_or_else(PoisonError::into_inner));
        self.trace.ended(status, known.tenant.as_ref(), known.conversation.as_ref(), known.model.as_deref());
        if !self.is_told {
            return;
        }
        let level = if status >= 500 { Level::Warn } else { Level::Info };
        talk::event(level, "request", &self.line(&known, took), || {
            let mut fields = Map::new();
            fields.insert("method".into(), self.method.as_str().into());
            fields.insert("route".into(), route::name(self.at).into());
            fields.insert("status".into(), status.into());
            fields.insert("duration_ms".into(), json!(took.as_secs_f64() * 1e3));
            fields.extend(self.fields(&known).into_iter().map(|(name, value)| (name.to_string(), value)));
            fields
        });
    }
}

/// A model's name as it is told: a client may write anything there, be it a secret.
fn spelled(model: &str) -> String {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "-._:/@+".contains(c);
    let is_name = model.len() <= MODEL_CHARS_MAX && model.chars().all(is_usual);
    let is_harmless = || Screen::of(&Redact::nothing()).is_ok_and(|screen| screen.strict().text(model) == model);
    if is_name && is_harmless() { model.to_string() } else { ODD.to_string() }
}
