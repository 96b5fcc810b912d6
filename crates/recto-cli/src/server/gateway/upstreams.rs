//! Who answers: providers from the configuration, prepared once.

use super::{Asked, Refused};
use crate::config::Config;
use crate::server::setup::Setup;
use axum::http::StatusCode;
use recto::wire::Wire;
use recto_engine::Store;
use recto_engine::upstream::Upstream;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Providers that were prepared, by their names.
#[derive(Default)]
pub(in crate::server) struct Upstreams {
    prepared: Mutex<HashMap<String, Upstream>>,
    /// Who answers for a model, as it was found out before.
    found: Mutex<HashMap<(Wire, String), Upstream>>,
}

/// How many models are remembered, and how long their names may be for that.
const REMEMBERED_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 200;

impl<S: Store> Asked<S> {
    /// Returns who answers for a model: in the format of the request.
    pub(super) fn upstream(&self, model: Option<&str>) -> Result<Upstream, Refused> {
        let Setup { config, known, upstreams, .. } = &*self.setup;
        self.about.asks(model);
        let key = (self.wire, model.unwrap_or_default().to_string());
        if let Some(upstream) = upstreams.found.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            self.about.goes_to(&self.server, upstream.name());
            return Ok(upstream.clone());
        }
        let target = known.target(&key.1, self.wire, config);
        let upstream = upstreams.of(config, &target, self.wire).map_err(|message| Refused {
            status: StatusCode::NOT_FOUND,
            kind: "no_upstream",
            message,
        })?;
        self.about.goes_to(&self.server, upstream.name());
        let mut found = upstreams.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() < REMEMBERED_MAX && key.1.len() <= NAME_BYTES_MAX {
            found.insert(key, upstream.clone());
        }
        Ok(upstream)
    }
}

impl Upstreams {
    /// Returns who answers for a model, or why nobody does.
    pub(super) fn of(&self, config: &Config, target: &recto::Target, wire: Wire) -> Result<Upstream, String> {
        let layer = config.upstream_speaking(wire, target);
        let settings = layer.ok_or_else(|| format!("no upstream speaks {wire}"))?.forwarding();
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(upstream) = prepared.get(&*settings.name) {
            return Ok(upstream.clone());
        }
        let name = settings.name.to_string();
        let upstream = Upstream::of(settings).map_err(|error| error.to_string())?;
        prepared.insert(name, upstream.clone());
        Ok(upstream)
    }
}
