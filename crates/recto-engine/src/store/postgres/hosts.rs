//! Several servers, asked one after the other, each for a bounded time.
//!
//! The one that took writes last is asked first. A server that takes a connection and then says nothing, because it is
//! stopped or its disk hangs, keeps nobody from the next one.

use super::fault;
use super::settings::Settings;
use crate::error::{Error, Kind};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config};

/// Where no other time is said.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Why nobody could be connected to.
pub(super) struct Unopened {
    pub(super) error: Error,
    /// Trying again can't help.
    pub(super) is_final: bool,
}

/// Opens a connection to the first server that takes writes.
pub(super) async fn connect(settings: &Settings) -> Result<Client, Unopened> {
    let config = &settings.config;
    let count = config.get_hosts().len().max(config.get_hostaddrs().len());
    let first = settings.writable.load(Ordering::Relaxed);
    let silent = Error::from(Kind::Unreachable { what: format!("{settings}: no answer") });
    let mut why = Unopened { error: silent, is_final: false };
    for at in (0..count).map(|number| (first + number) % count) {
        let longest = config.get_connect_timeout().copied().unwrap_or(ANSWER_MAX);
        let alone = alone(config, at);
        match timeout(longest, alone.connect(settings.tls.clone())).await {
            Ok(Ok((client, connection))) => {
                settings.writable.store(at, Ordering::Relaxed);
                // It ends when the client is dropped; what goes wrong is told to whoever waits for an answer.
                tokio::spawn(async move { drop(connection.await) });
                return Ok(client);
            }
            Ok(Err(error)) => {
                why = Unopened { error: named(settings, &error), is_final: fault::is_final(&error) };
            }
            Err(_) => {}
        }
    }
    Err(why)
}

/// Returns the error of a connection that could not be opened, with the place and without the password.
fn named(settings: &Settings, error: &tokio_postgres::Error) -> Error {
    match fault::kind(error) {
        Kind::Unreachable { what } => Kind::Unreachable { what: format!("{settings}: {what}") },
        Kind::Io { why, .. } => Kind::Io { what: settings.to_string(), why },
        kind => kind,
    }
    .into()
}

/// Returns the same for one of several servers.
fn alone(config: &Config, at: usize) -> Config {
    let mut one = Config::new();
    match config.get_hosts().get(at) {
        Some(Host::Tcp(name)) => {
            one.host(name);
        }
        #[cfg(unix)]
        Some(Host::Unix(path)) => {
            one.host_path(path);
        }
        None => {}
    }
    if let Some(address) = config.get_hostaddrs().get(at) {
        one.hostaddr(*address);
    }
    if let Some(port) = config.get_ports().get(at).or(config.get_ports().first()) {
        one.port(*port);
    }
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(wait) = config.get_connect_timeout() {
        one.connect_timeout(*wait);
    }
    if let Some(wait) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*wait);
    }
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding()).target_session_attrs(config.get_target_session_attrs());
    one
}
