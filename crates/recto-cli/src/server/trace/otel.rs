//! Spans by the conventions for generative AI, sent to a collector over HTTP as protobuf.
//!
//! They wait in a bounded queue for one task that sends them. A collector that is slow or dead costs spans, which are
//! counted, and never a request.

use super::span::{Stand, failed, number, text, texts};
use crate::config::Config;
use crate::failure::Failure;
use crate::server::metrics::{End, Metrics};
use crate::talk;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use recto::wire::{Reply, Stop, Wire};
use recto_engine::upstream::{Credential, Forward, Repeat, Settings, Upstream};
use recto_engine::{ConversationId, Tenant};
use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

/// The most spans that wait; those for which there is no place are dropped, and counted.
const QUEUE_MAX: usize = 2_048;
/// The most spans that are sent at once, and how long the first of them waits for others.
const BATCH_MAX: usize = 512;
const GATHER_TIME: Duration = Duration::from_millis(500);
/// How long a collector may take.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);
/// How long what waits may take when the server ends.
const REST_TIME_MAX: Duration = Duration::from_secs(5);
/// What a service is called, and what goes with each request to a collector, as OpenTelemetry has it.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// The places of their counts.
const SENT: usize = 0;
const DROPPED: usize = 1;
const FAILED: usize = 2;

/// What makes traces, where a collector is named.
#[derive(Default)]
pub(crate) struct Tracer {
    queue: Option<Arc<Queue>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Spans that wait.
struct Queue {
    spans: mpsc::Sender<Span>,
    metrics: Arc<Metrics>,
}

/// What is traced of one request; nothing, if it isn't.
pub(in crate::server) struct Trace(Option<Traced>);

struct Traced {
    queue: Arc<Queue>,
    stand: Stand,
    since: SystemTime,
    method: Method,
    route: &'static str,
    /// The call of a model that runs.
    call: Mutex<Option<Calling>>,
    /// Those that have ended wait for the request: by then its conversation is known.
    calls: Mutex<Vec<Span>>,
}

struct Calling {
    stand: Stand,
    since: SystemTime,
    attributes: Vec<KeyValue>,
    status: u16,
}

impl Tracer {
    /// Begins to send, if a collector is named. Needs a runtime.
    pub(crate) fn start(config: &Config, metrics: &Arc<Metrics>) -> Result<Tracer, Failure> {
        let Some(url) = config.collector() else { return Ok(Tracer::default()) };
        let collector = collector(&url).map_err(|failure| failure.during("traces can't be sent"))?;
        let (spans, waiting) = mpsc::channel(QUEUE_MAX);
        let task = tokio::spawn(send_all(collector, waiting, metrics.clone()));
        talk::note(&format!("traces: {url}"));
        let queue = Some(Arc::new(Queue { spans, metrics: metrics.clone() }));
        Ok(Tracer { queue, task: Mutex::new(Some(task)) })
    }

    /// Waits until what is queued is sent, but not for long. Nobody else may hold it any more.
    pub(crate) async fn rest(self: Arc<Tracer>) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(self);
        if let Some(task) = task {
            drop(timeout(REST_TIME_MAX, task).await);
        }
    }

    /// Begins to trace a request.
    pub(in crate::server) fn begun(&self, method: &Method, route: &'static str, headers: &HeaderMap) -> Trace {
        let Some(queue) = &self.queue else { return Trace(None) };
        let only = |name: &HeaderName| {
            let mut values = headers.get_all(name).into_iter();
            values.next().filter(|_| values.next().is_none()).and_then(|value| value.to_str().ok())
        };
        Trace(Stand::of(only(&TRACEPARENT), only(&TRACESTATE)).map(|stand| Traced {
            queue: queue.clone(),
            stand,
            since: SystemTime::now(),
            method: method.clone(),
            route,
            call: Mutex::default(),
            calls: Mutex::default(),
        }))
    }
}

impl Trace {
    pub(in crate::server) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// A model is called; whoever answers learns of which trace that is part.
    pub(in crate::server) fn calling(&self, upstream: &Upstream, headers: &mut HeaderMap) {
        let Some(traced) = &self.0 else { return };
        let Some(stand) = traced.stand.within() else { return };
        if let Ok(parent) = HeaderValue::from_str(&stand.traceparent()) {
            headers.insert(TRACEPARENT, parent);
        }
        let provider = match upstream.wire() {
            Wire::Anthropic => "anthropic",
            Wire::OpenaiChat | Wire::OpenaiResponses => "openai",
            Wire::Gemini => "gcp.gemini",
            Wire::Ollama => "ollama",
        };
        let mut attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.provider.name", provider),
            text("recto.upstream", upstream.name()),
        ];
        if let Some((host, port)) = address(upstream.address()) {
            attributes.extend([text("server.address", &host), number("server.port", port.into())]);
        }
        let calling = Calling { stand, since: SystemTime::now(), attributes, status: 0 };
        *traced.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(calling);
    }

    /// The answer begins.
    pub(in crate::server) fn answered(&self, status: u16) {
        self.call(|call| call.status = status);
    }

    /// The answer was read.
    pub(in crate::server) fn replied(&self, reply: &Reply) {
        self.call(|call| {
            let attributes = &mut call.attributes;
            attributes.extend(reply.model.as_ref().map(|model| text("gen_ai.response.model", model)));
            attributes.extend(reply.id.as_ref().map(|id| text("gen_ai.response.id", id)));
            attributes.extend(reply.stop.map(|stop| texts("gen_ai.response.finish_reasons", &[finish(stop)])));
            if let Some(usage) = reply.usage {
                attributes.extend([
                    number("gen_ai.usage.input_tokens", usage.input.0),
                    number("gen_ai.usage.output_tokens", usage.output.0),
                    number("gen_ai.usage.cache_read.input_tokens", usage.cached.0),
                    number("gen_ai.usage.cache_creation.input_tokens", usage.written.0),
                ]);
            }
        });
    }

    /// The call is over.
    pub(in crate::server) fn call_ended(&self, end: End) {
        let Some(traced) = &self.0 else { return };
        let call = traced.call.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(call) = call {
            traced.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call.span(Some(end)));
        }
    }

    /// The request is over.
    pub(in crate::server) fn ended(
        &self,
        status: u16,
        tenant: Option<&Tenant>,
        conversation: Option<&ConversationId>,
        model: Option<&str>,
    ) {
        let Some(traced) = &self.0 else { return };
        let mut calls = std::mem::take(&mut *traced.calls.lock().unwrap_or_else(PoisonError::into_inner));
        calls.extend(traced.call.lock().unwrap_or_else(PoisonError::into_inner).take().map(|call| call.span(None)));
        for mut span in calls {
            if let Some(model) = model {
                span.name = format!("chat {model}");
                span.attributes.push(text("gen_ai.request.model", model));
            }
            span.attributes.extend(conversation.map(|id| text("gen_ai.conversation.id", id.as_str())));
            traced.queue.put(span);
        }
        let name = format!("{} {}", traced.method, traced.route);
        let mut span = traced.stand.span(name, SpanKind::Server.into(), traced.since);
        span.attributes.extend([text("http.request.method", traced.method.as_str()), text("http.route", traced.route)]);
        span.attributes.extend(tenant.map(|tenant| text("recto.tenant", tenant.as_str())));
        match status {
            0 => failed(&mut span, "client_left"),
            _ => span.attributes.push(number("http.response.status_code", status.into())),
        }
        if status >= 500 {
            failed(&mut span, &status.to_string());
        }
        traced.queue.put(span);
    }

    fn call(&self, learn: impl FnOnce(&mut Calling)) {
        let Some(traced) = &self.0 else { return };
        if let Some(call) = traced.call.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            learn(call);
        }
    }
}

impl Calling {
    fn span(self, end: Option<End>) -> Span {
        let mut span = self.stand.span("chat".into(), SpanKind::Client.into(), self.since);
        span.attributes = self.attributes;
        match end {
            Some(End::Whole) | None => {}
            Some(End::Refused) => failed(&mut span, &self.status.to_string()),
            Some(end) => failed(&mut span, end.name()),
        }
        span
    }
}

impl Queue {
    fn put(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.metrics.spans[DROPPED].count();
        }
    }
}

/// How a finish is spelled.
fn finish(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "stop",
        Stop::Length => "length",
        Stop::Calls => "tool_calls",
        Stop::Refused => "content_filter",
        Stop::Paused => "paused",
        Stop::Window => "context_window",
    }
}

/// The host and the port of a URL.
fn address(url: &str) -> Option<(String, u16)> {
    let uri: axum::http::Uri = url.parse().ok()?;
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    Some((uri.host()?.to_string(), uri.port_u16().unwrap_or(usual)))
}

/// Whoever takes the spans; they go to `/v1/traces` under the URL.
fn collector(url: &str) -> Result<Upstream, Failure> {
    // This format has the version in its paths, too.
    let mut settings = Settings::new("the collector", url, Wire::Anthropic);
    settings.plain_http = true;
    settings.retries_max = 0;
    let limits = &mut settings.limits;
    (limits.first_byte, limits.silence, limits.whole) = (SEND_TIME_MAX, SEND_TIME_MAX, SEND_TIME_MAX);
    let headers = env::var(HEADERS).unwrap_or_default();
    let pairs = headers.split(',').filter_map(|pair| pair.split_once('='));
    settings.headers = pairs.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_string())).collect();
    Ok(Upstream::of(settings)?)
}

async fn send_all(collector: Upstream, mut waiting: mpsc::Receiver<Span>, metrics: Arc<Metrics>) {
    let service = env::var(SERVICE_NAME).ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "recto".into());
    let version = text("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource { attributes: vec![text("service.name", &service), version], ..Resource::default() };
    let (mut spans, mut is_well) = (Vec::new(), true);
    while waiting.recv_many(&mut spans, BATCH_MAX).await > 0 {
        let until = Instant::now() + GATHER_TIME;
        while spans.len() < BATCH_MAX {
            let room = BATCH_MAX - spans.len();
            let more = waiting.recv_many(&mut spans, room);
            if !matches!(timeout_at(until, more).await, Ok(1..)) {
                break;
            }
        }
        let count = spans.len() as u64;
        match send(&collector, &resource, std::mem::take(&mut spans)).await {
            Ok(()) => metrics.spans[SENT].add(count),
            Err(why) => {
                metrics.spans[FAILED].add(count);
                // Once, until it has worked again: the rest is counted.
                if is_well {
                    talk::warn(&format!("traces can't be sent, and are counted as recto_spans_total: {why}"));
                }
                is_well = false;
                continue;
            }
        }
        is_well = true;
    }
}

async fn send(collector: &Upstream, resource: &Resource, spans: Vec<Span>) -> Result<(), String> {
    let scope = InstrumentationScope { name: "recto".into(), ..InstrumentationScope::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
    let resource_spans =
        vec![ResourceSpans { resource: Some(resource.clone()), scope_spans, ..ResourceSpans::default() }];
    let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"))]);
    let forward = Forward {
        method: Method::POST,
        path: "traces",
        query: None,
        headers,
        body: body.into(),
        credential: Credential::Withheld,
        repeat: Repeat::WhenUnreached,
    };
    match collector.forward(forward, &mut |_| {}).await {
        Ok(response) if response.is_success() => Ok(()),
        Ok(response) => Err(format!("the collector answers {}", response.status())),
        Err(error) => Err(error.to_string()),
    }
}
