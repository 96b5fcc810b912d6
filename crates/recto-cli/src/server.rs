//! `recto serve`: the gateway, the API and the inspector over HTTP, and everything that stands before them.

// In the order a request goes through them.
mod listen; // connections, and how they end
mod heads; // what the head of a request said, before anybody interpreted it
mod closing; // the end of the server
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
mod error; // how a refusal is spelled

use crate::config::{Config, ServerSettings};
use crate::talk;
use auth::Doors;
use closing::Closing;
use gateway::Gateway;
use limits::Crowd;
use metrics::Metrics;
use recto::Policy;
use recto_engine::{Engine, Store};
use session::Sessions;
use std::net::SocketAddr;

pub(crate) use auth::is_loopback;
pub(crate) use listen::serve;
#[cfg(feature = "mcp")]
pub(crate) use mcp::converse;
pub(crate) use web::Web;

/// A server over a store.
pub(crate) struct Server<S> {
    engine: Engine<S>,
    config: Config,
    settings: ServerSettings,
    metrics: Metrics,
    /// Tells that the end has come; work that must not be lost is held by it.
    closing: Closing,
    doors: Doors,
    sessions: Sessions,
    web: Web,
    crowd: Crowd,
    gateway: Gateway,
    streams: api::Streams,
    replays: api::Replays,
    verbosity: Verbosity,
}

/// Whether each request is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    EachRequest,
}

impl<S: Store> Server<S> {
    /// Returns a server that is to listen at an address.
    pub(crate) fn new(engine: Engine<S>, config: Config, at: SocketAddr, verbosity: Verbosity) -> Server<S> {
        let settings = config.server();
        Server {
            engine,
            doors: Doors::at(at, settings.hosts.clone()),
            sessions: Sessions::at(at),
            web: Web::default(),
            crowd: Crowd::of(settings.requests_per_tenant),
            gateway: Gateway::default(),
            streams: api::Streams::default(),
            replays: api::Replays::default(),
            config,
            settings,
            metrics: Metrics::default(),
            closing: Closing::default(),
            verbosity,
        }
    }

    /// Returns one that takes the files of the inspector from somewhere.
    #[must_use]
    pub(crate) fn showing(self, web: Web) -> Server<S> {
        Server { web, ..self }
    }

    /// Returns what ends it.
    pub(crate) fn closing(&self) -> &Closing {
        &self.closing
    }

    /// Tells of a request, where that is wanted. No words of a request or its answer are ever in it.
    fn tell(&self, line: impl FnOnce() -> String) {
        if self.verbosity == Verbosity::EachRequest {
            talk::note(&line());
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
