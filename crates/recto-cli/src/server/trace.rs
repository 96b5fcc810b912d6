//! Traces for a collector of OpenTelemetry: of each request, and of each call of a model that is made for it. With the
//! feature `otel`, and where the configuration or the environment names a collector. Nothing that was said is in them.

#[cfg(feature = "otel")]
mod otel; // spans by the conventions for generative AI, in a bounded queue
#[cfg(not(feature = "otel"))]
mod silent; // nothing
#[cfg(feature = "otel")]
mod span; // how a span is written

#[cfg(feature = "otel")]
pub(super) use otel::Trace;
#[cfg(feature = "otel")]
pub(crate) use otel::Tracer;
#[cfg(not(feature = "otel"))]
pub(super) use silent::Trace;
#[cfg(not(feature = "otel"))]
pub(crate) use silent::Tracer;
