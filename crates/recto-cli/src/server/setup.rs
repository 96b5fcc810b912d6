//! What the configuration makes of a server, and how it is read again. A request holds the setup that it began with, so
//! that it ends as it began.

use super::gateway::{Known, Upstreams};
use super::{Server, no_blocks};
use crate::codes::Code;
use crate::config::{Config, Layer, Origin, ServerSettings};
use crate::failure::Failure;
use crate::{settings, talk};
use recto_engine::Store;
use recto_engine::upstream::Upstream;
use std::sync::{Arc, PoisonError};

/// What holds until the configuration is read again.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) settings: ServerSettings,
    /// Models, policies and prompts that were looked up.
    pub(super) known: Known,
    /// Providers that were prepared.
    pub(super) upstreams: Upstreams,
}

impl Setup {
    /// Returns what a configuration makes of a server.
    pub(crate) fn of(config: Config) -> Setup {
        let settings = config.server();
        Setup { config, settings, known: Known::default(), upstreams: Upstreams::default() }
    }

    /// Fails if the gateway can't take the policy.
    pub(crate) fn check_policy(&self) -> Result<(), Failure> {
        let Some(policy) = &self.config.layer.policy else { return Ok(()) };
        let found = settings::policy(policy)?;
        if found.blocks.is_empty() {
            return Ok(());
        }
        Err(Failure::of(Code::BadSettings, no_blocks(&found))
            .hinting("blocks are for hosts that make their own pages: `recto compile`, or the library"))
    }

    /// Fails if a provider that the files name can't be asked: there would be nobody to tell but its clients.
    fn check_upstreams(&self) -> Result<(), Failure> {
        for layer in self.config.upstreams() {
            if !matches!(layer.name.origin, Origin::Default) {
                Upstream::of(layer.forwarding()).map_err(|error| layer.name.blamed(error.into()))?;
            }
        }
        Ok(())
    }
}

impl<S: Store> Server<S> {
    /// Returns what holds now.
    pub(super) fn setup(&self) -> Arc<Setup> {
        self.setup.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the configuration again, below what the options say. What can't be used changes nothing, and is told.
    pub(crate) fn reload(&self, options: &Layer) {
        let before = self.setup();
        let read = before.config.again().and_then(|mut config| {
            config.layer = options.clone().over(config.layer);
            let setup = Setup::of(config);
            setup.check_policy()?;
            setup.check_upstreams()?;
            Ok(setup)
        });
        let setup = match read {
            Ok(setup) => Arc::new(setup),
            Err(failure) => {
                let (_, why, hints) = failure.parts();
                let hints: String = hints.iter().map(|hint| format!("; {hint}")).collect();
                self.metrics.reloaded(false);
                return talk::warn(&format!("not read again, the old configuration holds: {why}{hints}"));
            }
        };
        self.crowd.allow(setup.settings.requests_per_tenant);
        self.doors.open_for(&setup.settings.hosts);
        setup.config.speak_as_configured();
        let unchanged = unchanged(&before.config, &setup.config);
        *self.setup.write().unwrap_or_else(PoisonError::into_inner) = setup;
        self.metrics.reloaded(true);
        self.reloaded.notify_one();
        talk::note("the configuration was read again; requests that run keep the one before");
        if !unchanged.is_empty() {
            talk::warn(&format!("changed, and holds only after a restart: {}", unchanged.join(", ")));
        }
    }
}

/// What was set anew and can't be changed while the server runs.
fn unchanged(before: &Config, after: &Config) -> Vec<&'static str> {
    let (one, other) = (&before.layer, &after.layer);
    let all = [
        ("[server] listen", one.server.listen != other.server.listen),
        ("[store] path", one.store != other.store),
        ("[store] redact_at_rest", one.redact_at_rest != other.redact_at_rest),
        ("[summarizer]", one.summarizer != other.summarizer),
        ("[tracing]", one.tracing != other.tracing),
    ];
    all.into_iter().filter(|(_, is_changed)| *is_changed).map(|(what, _)| what).collect()
}
