//! Who answers: providers from the configuration, prepared once.

use super::{Asked, Refused};
use crate::config::UpstreamLayer;
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
    /// Returns who answers for a model: in the format of the request, or in another.
    pub(super) fn upstream(&self, model: Option<&str>) -> Result<Upstream, Refused> {
        let Setup { config, known, upstreams, .. } = &*self.setup;
        self.about.asks(model);
        let key = (self.wire, model.unwrap_or_default().to_string());
        if let Some(upstream) = upstreams.found.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            self.about.goes_to(&self.server, upstream.name());
            return Ok(upstream.clone());
        }
        let target = known.target(&key.1, self.wire, config);
        let upstream = upstreams.prepared(config.upstream_asked(self.wire, &target), self.wire)?;
        self.about.goes_to(&self.server, upstream.name());
        let mut found = upstreams.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() < REMEMBERED_MAX && key.1.len() <= NAME_BYTES_MAX {
            found.insert(key, upstream.clone());
        }
        Ok(upstream)
    }

    /// Returns who knows about a model, in the format of the request.
    pub(super) fn upstream_alike(&self, model: Option<&str>) -> Result<Upstream, Refused> {
        let Setup { config, known, upstreams, .. } = &*self.setup;
        let target = known.target(model.unwrap_or_default(), self.wire, config);
        let upstream = upstreams.prepared(config.upstream_speaking(self.wire, &target), self.wire)?;
        self.about.goes_to(&self.server, upstream.name());
        Ok(upstream)
    }
}

impl Upstreams {
    /// Returns a provider that was found, prepared; or why there is none.
    fn prepared(&self, layer: Option<UpstreamLayer>, wire: Wire) -> Result<Upstream, Refused> {
        let refused = |message: String| Refused { status: StatusCode::NOT_FOUND, kind: "no_upstream", message };
        let settings = layer.ok_or_else(|| refused(format!("no upstream speaks {wire}")))?.forwarding();
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(upstream) = prepared.get(&*settings.name) {
            return Ok(upstream.clone());
        }
        let name = settings.name.to_string();
        let upstream = Upstream::of(settings).map_err(|error| refused(error.to_string()))?;
        prepared.insert(name, upstream.clone());
        Ok(upstream)
    }
}
