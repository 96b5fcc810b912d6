//! How the server listens, and what it takes.

use super::{Config, Set};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Where the server listens, if nothing says so.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7676);
/// How long requests may go on after the server was told to end.
const SHUTDOWN: Duration = Duration::from_secs(30);
/// The largest body of a request.
const BODY_MIB: u32 = 64;
/// How many requests of one tenant run at once.
const REQUESTS_PER_TENANT: u32 = 256;

/// What is said about the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerLayer {
    pub(crate) listen: Option<Set<SocketAddr>>,
    pub(crate) hosts: Option<Set<Vec<String>>>,
    pub(crate) shutdown_seconds: Option<Set<u32>>,
    pub(crate) body_mib: Option<Set<u32>>,
    pub(crate) requests_per_tenant: Option<Set<u32>>,
}

/// How the server is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    /// The address, with a port; port 0 is any that is free.
    pub(crate) listen: SocketAddr,
    /// Names under which it is reached, besides those of this machine.
    pub(crate) hosts: Vec<String>,
    /// How long requests may go on after the server was told to end.
    pub(crate) shutdown: Duration,
    /// The largest body of a request.
    pub(crate) body_bytes_max: usize,
    /// How many requests of one tenant run at once.
    pub(crate) requests_per_tenant: usize,
}

impl ServerLayer {
    /// Returns what holds when this layer lies over another.
    pub(super) fn over(self, lower: ServerLayer) -> ServerLayer {
        ServerLayer {
            listen: self.listen.or(lower.listen),
            hosts: self.hosts.or(lower.hosts),
            shutdown_seconds: self.shutdown_seconds.or(lower.shutdown_seconds),
            body_mib: self.body_mib.or(lower.body_mib),
            requests_per_tenant: self.requests_per_tenant.or(lower.requests_per_tenant),
        }
    }
}

impl Config {
    /// Returns how the server is to be.
    pub(crate) fn server(&self) -> ServerSettings {
        let layer = self.layer.server.clone();
        let number = |set: Option<Set<u32>>, usual: u32| set.map_or(usual, |set| set.value);
        ServerSettings {
            listen: layer.listen.map_or(LISTEN, |set| set.value),
            hosts: layer.hosts.map(|set| set.value).unwrap_or_default(),
            shutdown: layer.shutdown_seconds.map_or(SHUTDOWN, |set| Duration::from_secs(set.value.into())),
            body_bytes_max: (number(layer.body_mib, BODY_MIB) as usize) << 20,
            requests_per_tenant: number(layer.requests_per_tenant, REQUESTS_PER_TENANT) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_server_is_as_the_files_say() {
        let text = "[server]\nlisten = '0.0.0.0:80'\nhosts = ['recto.test']\nshutdown_seconds = 0\nbody_mib = 2\n\
                    requests_per_tenant = 3";
        let of = |text: &str| super::super::file::of(Path::new("recto.toml"), text).map(|content| content.layer);
        let config = Config { layer: of(text).unwrap(), ..Config::default() };
        let expected = ServerSettings {
            listen: ([0, 0, 0, 0], 80).into(),
            hosts: vec!["recto.test".into()],
            shutdown: Duration::ZERO,
            body_bytes_max: 2 << 20,
            requests_per_tenant: 3,
        };
        assert_eq!(config.server(), expected);
        let usual = Config::default().server();
        assert_eq!((usual.listen, usual.body_bytes_max), (LISTEN, 64 << 20));
        for wrong in ["listen = 'somewhere'", "listen = 7676", "body_mib = 0", "hosts = 'a'", "port = 1"] {
            assert!(of(&format!("[server]\n{wrong}")).is_err(), "{wrong}");
        }
    }
}
