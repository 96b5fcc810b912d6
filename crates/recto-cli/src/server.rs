//! `recto serve`: the gateway, the API and the inspector over HTTP, and everything that stands before them.

// In the order a request goes through them.
mod listen; // connections, and how they end
mod heads; // what the head of a request said, before anybody interpreted it
mod closing; // the end of the server
mod setup; // what the configuration makes of it, read again when asked to
mod visit; // one request, and what is counted and told of it
mod route; // which path leads where
mod auth; // who asks, and whether from here
mod session; // who looks with a browser
mod limits; // how much is taken, and from how many at once
mod gateway; // pages instead of histories
mod api; // everything else that can be done, for programs in any language
#[cfg(feature = "mcp")]
mod mcp; // some of it, for agents' programs
mod web; // the inspector
mod health; // whether it lives, and whether it can work
mod metrics; // what happened, as numbers
mod trace; // what happened, for a collector of traces
mod retention; // what is too old goes
mod error; // how a refusal is spelled

use crate::talk;
use auth::Doors;
use closing::Closing;
use gateway::Gateway;
use limits::Crowd;
use recto::Policy;
use recto_engine::{Engine, Store};
use session::Sessions;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Notify;

pub(crate) use auth::is_loopback;
pub(crate) use listen::serve;
#[cfg(feature = "mcp")]
pub(crate) use mcp::converse;
pub(crate) use metrics::Metrics;
pub(crate) use setup::Setup;
pub(crate) use trace::Tracer;
pub(crate) use web::Web;

/// A server over a store.
pub(crate) struct Server<S> {
    engine: Engine<S>,
    setup: RwLock<Arc<Setup>>,
    /// Tells that there is another setup.
    reloaded: Notify,
    metrics: Arc<Metrics>,
    tracer: Arc<Tracer>,
    /// Tells that the end has come; work that must not be lost is held by it.
    closing: Closing,
    doors: Doors,
    sessions: Sessions,
    web: Web,
    crowd: Crowd,
    gateway: Gateway,
    streams: api::Streams,
    replays: api::Replays,
}

impl<S: Store> Server<S> {
    /// Returns a server that is to listen at an address.
    pub(crate) fn new(engine: Engine<S>, setup: Setup, metrics: Arc<Metrics>, at: SocketAddr) -> Server<S> {
        Server {
            engine,
            doors: Doors::at(at, setup.settings.hosts.clone()),
            sessions: Sessions::at(at),
            web: Web::default(),
            crowd: Crowd::of(setup.settings.requests_per_tenant),
            gateway: Gateway::default(),
            streams: api::Streams::default(),
            replays: api::Replays::default(),
            tracer: Arc::default(),
            setup: RwLock::new(Arc::new(setup)),
            reloaded: Notify::new(),
            metrics,
            closing: Closing::default(),
        }
    }

    /// Returns one that takes the files of the inspector from somewhere.
    #[must_use]
    pub(crate) fn showing(self, web: Web) -> Server<S> {
        Server { web, ..self }
    }

    /// Returns one that traces its requests.
    #[must_use]
    pub(crate) fn traced_by(self, tracer: Arc<Tracer>) -> Server<S> {
        Server { tracer, ..self }
    }

    /// Returns what ends it.
    pub(crate) fn closing(&self) -> &Closing {
        &self.closing
    }

    /// Returns whether each request is told of.
    fn tells_requests(&self) -> bool {
        self.setup.read().unwrap_or_else(PoisonError::into_inner).config.tells_requests()
    }

    /// Tells what became of a request, where that is wanted. No words of a request or its answer are ever in it.
    fn tell(&self, line: impl FnOnce() -> String) {
        if self.tells_requests() {
            talk::warn(&line());
        }
    }
}

/// Why the gateway takes no policy with blocks.
pub(crate) fn no_blocks(policy: &Policy) -> String {
    format!(
        "policy {:?} lays its pages out in blocks, and the gateway sends what clients say as messages",
        &*policy.name
    )
}
