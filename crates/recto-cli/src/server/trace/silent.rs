//! No traces: this program was built without them.

use crate::config::Config;
use crate::failure::Failure;
use crate::server::metrics::{End, Metrics};
use crate::talk;
use axum::http::{HeaderMap, Method};
use recto::wire::Reply;
use recto_engine::upstream::Upstream;
use recto_engine::{ConversationId, Tenant};
use std::sync::Arc;

/// What makes traces.
#[derive(Default)]
pub(crate) struct Tracer;

/// What is traced of one request.
pub(in crate::server) struct Trace;

impl Tracer {
    /// Says so where traces are wanted.
    pub(crate) fn start(config: &Config, _: &Arc<Metrics>) -> Result<Tracer, Failure> {
        if config.collector().is_some() {
            talk::warn("no traces are sent: this recto was built without the feature `otel`");
        }
        Ok(Tracer)
    }

    /// Waits for nothing.
    pub(crate) async fn rest(self: Arc<Tracer>) {}

    pub(in crate::server) fn begun(&self, _: &Method, _: &'static str, _: &HeaderMap) -> Trace {
        Trace
    }
}

impl Trace {
    pub(in crate::server) fn is_wanted(&self) -> bool {
        false
    }

    pub(in crate::server) fn calling(&self, _: &Upstream, _: &mut HeaderMap) {}

    pub(in crate::server) fn answered(&self, _: u16) {}

    pub(in crate::server) fn replied(&self, _: &Reply) {}

    pub(in crate::server) fn call_ended(&self, _: End) {}

    pub(in crate::server) fn ended(&self, _: u16, _: Option<&Tenant>, _: Option<&ConversationId>, _: Option<&str>) {}
}
