//! Who asks, and whether they may from where they are. A [`Caller`] can be had here alone, so nothing behind it can
//! forget to ask.
//!
//! Without keys only this machine is listened to, and everybody on it is the tenant `local`. With keys, each says whose
//! conversations it opens; nothing else in a request does, but for who only looks: there a browser's session stands for
//! the key that it was begun with. Pages in a browser are kept out in both cases: by `Host`, so that no foreign name can be
//! made to mean this machine, and by `Origin`.

use super::Server;
use super::error::{Envelope, REFUSED, refusal};
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use recto::digest::Digest;
use recto::entry::Text;
use recto_engine::engine::KEY_PREFIX;
use recto_engine::store::AccessKey;
use recto_engine::upstream::Credential;
use recto_engine::{Engine, Error, Store, Tenant};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// For how long an answer of the store about keys holds: so late may a revoked key stop to open anything.
const FRESH: Duration = Duration::from_secs(1);
/// How many keys are remembered.
const REMEMBERED_MAX: usize = 1_024;
/// The longest credential that is looked at.
const CREDENTIAL_BYTES_MAX: usize = 512;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_RECTO_KEY: HeaderName = HeaderName::from_static("x-recto-key");
/// Where a credential may stand. One in the last is for Recto alone, and leaves the others to the provider.
const CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, X_API_KEY, X_RECTO_KEY];

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Whose conversations are meant.
    pub(super) tenant: Tenant,
    /// The policy that goes with the key.
    pub(super) policy: Option<Text>,
    /// Whether the request's credentials are meant for the provider.
    pub(super) credential: Credential,
    access: Access,
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    All,
    Looking,
}

/// From where the server can be reached, and what is known of its keys.
#[derive(Debug)]
pub(super) struct Doors {
    is_local: bool,
    hosts: RwLock<Vec<String>>,
    keys: Mutex<Remembered>,
}

/// What the store said of late. Unknown keys are not remembered: there is no end to them.
#[derive(Debug, Default)]
struct Remembered {
    known: HashMap<Digest, (AccessKey, Instant)>,
    has_keys: Option<(bool, Instant)>,
}

/// Why somebody is not let in.
struct Refused {
    status: StatusCode,
    kind: &'static str,
    message: &'static str,
}

/// What a request's headers hold for Recto.
struct Presented<'h> {
    /// What was presented as a key of Recto.
    key: Option<&'h str>,
    credential: Credential,
}

impl Caller {
    /// Says who asks, or why they are not let in.
    pub(super) async fn of<S: Store>(server: &Server<S>, parts: &Parts) -> Result<Caller, Response> {
        let found = match server.doors.check(parts) {
            Ok(()) => server.doors.caller(&server.engine, &parts.headers).await,
            Err(refused) => Err(refused),
        };
        found.map_err(|refused| refused.response(parts))
    }

    /// Says who asks where the one who started this process does: they have the store already.
    #[cfg(feature = "mcp")]
    pub(super) fn of_this_process() -> Caller {
        Caller { tenant: Tenant::default(), policy: None, credential: Credential::Withheld, access: Access::All }
    }

    /// The same for requests that a browser may make, too: its session is heeded where no key is presented.
    pub(super) async fn looking<S: Store>(server: &Server<S>, parts: &Parts) -> Result<Caller, Response> {
        let refused = match Caller::of(server, parts).await {
            Ok(caller) => return Ok(caller),
            Err(refused) => refused,
        };
        let is_without_key = refused.headers().get(REFUSED).is_some_and(|why| why == NO_KEY.kind);
        match server.sessions.key(&parts.headers).filter(|_| is_without_key) {
            Some(key) => {
                let caller = Caller::of_key(server, parts, &key).await?;
                Ok(Caller { access: Access::Looking, ..caller })
            }
            None => Err(refused),
        }
    }

    /// Says whom a key belongs to that came otherwise than in a header of its own.
    pub(super) async fn of_key<S: Store>(server: &Server<S>, parts: &Parts, key: &str) -> Result<Caller, Response> {
        let known = match key.len() {
            ..=CREDENTIAL_BYTES_MAX => server.doors.known(&server.engine, key).await.map_err(|_| NO_STORE),
            _ => Ok(None),
        };
        let known = known.and_then(|known| known.ok_or(UNKNOWN_KEY)).map_err(|refused| refused.response(parts))?;
        let (credential, access) = (Credential::Withheld, Access::All);
        Ok(Caller { tenant: known.tenant, policy: known.policy, credential, access })
    }

    /// Returns whether they may change something.
    pub(super) fn may_change(&self) -> bool {
        self.access == Access::All
    }
}

impl Refused {
    fn response(self, parts: &Parts) -> Response {
        refusal(Envelope::of_path(parts.uri.path()), self.status, self.kind, self.message)
    }
}

impl Doors {
    /// Returns those of a server that listens at an address.
    pub(super) fn at(address: SocketAddr, hosts: Vec<String>) -> Doors {
        Doors { is_local: is_loopback(address.ip()), hosts: RwLock::new(hosts), keys: Mutex::default() }
    }

    /// Takes other names for those of this server from now on.
    pub(super) fn open_for(&self, hosts: &[String]) {
        *self.hosts.write().unwrap_or_else(PoisonError::into_inner) = hosts.to_vec();
    }

    /// Returns the refusal of whoever may not even see what is there for everybody.
    pub(super) fn refusal(&self, parts: &Parts) -> Option<Response> {
        self.check(parts).err().map(|refused| refused.response(parts))
    }

    /// Returns whether everybody on this machine may ask. Where the store does not say, nobody may.
    pub(super) async fn is_open<S: Store>(&self, engine: &Engine<S>) -> bool {
        self.is_local && self.has_keys(engine).await.is_ok_and(|has_keys| !has_keys)
    }

    /// Refuses requests for another host, and those that a page of another host makes in a browser.
    fn check(&self, parts: &Parts) -> Result<(), Refused> {
        let named = single(&parts.headers, &HOST).map_err(|()| TWO_HOSTS)?.unwrap_or_default();
        let meant = parts.uri.authority().map(Authority::as_str);
        if ![Some(named), meant].into_iter().flatten().all(|host| self.is_ours(host)) {
            return Err(OTHER_HOST);
        }
        let mut origins = parts.headers.get_all(ORIGIN).into_iter();
        let is_own = |origin: &[u8]| {
            ["http://", "https://"].iter().any(|it| [it.as_bytes(), named.as_bytes()].concat() == origin)
        };
        match origins.all(|origin| is_own(origin.as_bytes())) {
            true => Ok(()),
            false => Err(OTHER_ORIGIN),
        }
    }

    /// Returns whether a name is one of this server's. Behind keys, any is, unless some are listed.
    fn is_ours(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        let is_this_machine = name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback);
        if is_this_machine {
            return true;
        }
        let hosts = self.hosts.read().unwrap_or_else(PoisonError::into_inner);
        hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) || (!self.is_local && hosts.is_empty())
    }

    async fn caller<S: Store>(&self, engine: &Engine<S>, headers: &HeaderMap) -> Result<Caller, Refused> {
        let Presented { key, credential } = presented(headers)?;
        let access = Access::All;
        if let Some(key) = key {
            let known = self.known(engine, key).await.map_err(|_| NO_STORE)?.ok_or(UNKNOWN_KEY)?;
            return Ok(Caller { tenant: known.tenant, policy: known.policy, credential, access });
        }
        if !self.is_local || self.has_keys(engine).await.map_err(|_| NO_STORE)? {
            return Err(NO_KEY);
        }
        Ok(Caller { tenant: Tenant::default(), policy: None, credential, access })
    }

    /// Finds a key that opens something, asking the store where its last answer is not fresh any more.
    async fn known<S: Store>(&self, engine: &Engine<S>, key: &str) -> Result<Option<AccessKey>, Error> {
        let hash = Digest::of(key.as_bytes());
        let remembered = self.remembered(|it| it.known.get(&hash).cloned());
        if let Some((known, _)) = remembered.filter(|(_, since)| since.elapsed() < FRESH) {
            return Ok(Some(known));
        }
        let found = engine.authenticate(key).await?;
        self.remembered(|it| {
            if it.known.len() >= REMEMBERED_MAX {
                it.known.clear();
            }
            match &found {
                Some(found) => it.known.insert(hash, (found.clone(), Instant::now())),
                None => it.known.remove(&hash),
            }
        });
        Ok(found)
    }

    async fn has_keys<S: Store>(&self, engine: &Engine<S>) -> Result<bool, Error> {
        if let Some((known, _)) = self.remembered(|it| it.has_keys).filter(|(_, since)| since.elapsed() < FRESH) {
            return Ok(known);
        }
        let has_keys = engine.has_keys().await?;
        self.remembered(|it| it.has_keys = Some((has_keys, Instant::now())));
        Ok(has_keys)
    }

    fn remembered<T>(&self, act: impl FnOnce(&mut Remembered) -> T) -> T {
        act(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns whether an address is one of this machine alone.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Reads what is presented: at most one key of Recto, each header at most once.
fn presented(headers: &HeaderMap) -> Result<Presented<'_>, Refused> {
    let mut ours = Vec::new();
    for name in CREDENTIALS {
        let Some(value) = single(headers, &name).map_err(|()| TWO_CREDENTIALS)? else { continue };
        let value = if name == AUTHORIZATION { bearer(value) } else { value };
        let credential = if name == X_RECTO_KEY { Credential::Client } else { Credential::Withheld };
        if name == X_RECTO_KEY || value.starts_with(KEY_PREFIX) {
            ours.push((value, credential));
        }
    }
    match ours[..] {
        [] => Ok(Presented { key: None, credential: Credential::Client }),
        [(key, _)] if key.len() > CREDENTIAL_BYTES_MAX => Err(UNKNOWN_KEY),
        [(key, credential)] => Ok(Presented { key: Some(key), credential }),
        _ => Err(TWO_CREDENTIALS),
    }
}

/// Returns the one value of a header; several are an error, and so is one that is no text.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name).into_iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(|value| Some(value.trim())).map_err(|_| ()),
        _ => Err(()),
    }
}

fn bearer(value: &str) -> &str {
    const SCHEME: &str = "bearer ";
    match value.get(..SCHEME.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(SCHEME) => value[SCHEME.len()..].trim(),
        _ => value,
    }
}

const TWO_HOSTS: Refused =
    Refused { status: StatusCode::BAD_REQUEST, kind: "host", message: "the request names its host more than once" };
const OTHER_HOST: Refused = Refused {
    status: StatusCode::MISDIRECTED_REQUEST,
    kind: "host",
    message: "this server is not reached under that name; `hosts` under [server] in recto.toml lists others",
};
const OTHER_ORIGIN: Refused = Refused {
    status: StatusCode::FORBIDDEN,
    kind: "origin",
    message: "pages of other servers may not ask: the request has an Origin that is not this server",
};
const TWO_CREDENTIALS: Refused = Refused {
    status: StatusCode::BAD_REQUEST,
    kind: "two_credentials",
    message: "the request has more than one credential for Recto, or the same header twice; send one",
};
const NO_KEY: Refused = Refused {
    status: StatusCode::UNAUTHORIZED,
    kind: "no_key",
    message: "this server needs a key of Recto: send it as `Authorization: Bearer`, `x-api-key` or `x-recto-key`",
};
const UNKNOWN_KEY: Refused = Refused {
    status: StatusCode::UNAUTHORIZED,
    kind: "unknown_key",
    message: "the key is unknown or was revoked; `recto keys add` makes one",
};
const NO_STORE: Refused = Refused {
    status: StatusCode::SERVICE_UNAVAILABLE,
    kind: "store",
    message: "the store does not answer, so nobody can be let in; try again",
};

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let request =
            headers.iter().fold(Request::builder().uri("/v1/models"), |it, (name, value)| it.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    fn status(doors: &Doors, headers: &[(&str, &str)]) -> u16 {
        doors.check(&parts(headers)).map_or_else(|refused| refused.status.as_u16(), |()| 200)
    }

    #[test]
    fn on_this_machine_only_its_own_names_are_heeded() {
        let doors = Doors::at("127.0.0.1:7676".parse().unwrap(), vec!["recto.internal".into()]);
        for host in ["localhost", "LOCALHOST:7676", "127.0.0.1:1", "127.9.9.9", "[::1]:7676", "Recto.Internal:80"] {
            assert_eq!(status(&doors, &[("host", host)]), 200, "{host}");
        }
        let others = [
            "",
            "evil.test",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "10.0.0.1",
            "[::2]",
            "evil@evil.test",
            "a b",
        ];
        for host in others {
            assert_eq!(status(&doors, &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status(&doors, &[]), 421);
        assert_eq!(status(&doors, &[("host", "localhost"), ("host", "localhost")]), 400);
    }

    #[test]
    fn behind_keys_any_name_is_heeded_unless_some_are_listed() {
        let any = Doors::at("10.0.0.1:7676".parse().unwrap(), Vec::new());
        assert_eq!(status(&any, &[("host", "anything.test")]), 200);
        let listed = Doors::at("0.0.0.0:7676".parse().unwrap(), vec!["recto.test".into()]);
        assert_eq!(status(&listed, &[("host", "anything.test")]), 421);
        assert_eq!(status(&listed, &[("host", "recto.test")]), 200);
    }

    #[test]
    fn only_an_origin_of_this_server_is_heeded() {
        let doors = Doors::at("127.0.0.1:7676".parse().unwrap(), Vec::new());
        let from = |origin: &str| status(&doors, &[("host", "localhost:7676"), ("origin", origin)]);
        assert_eq!(from("http://localhost:7676"), 200);
        for origin in ["null", "http://localhost:3000", "http://localhost", "http://evil.test", "file://", ""] {
            assert_eq!(from(origin), 403, "{origin}");
        }
    }

    #[test]
    fn a_key_of_ours_is_withheld_from_providers_and_another_is_theirs() {
        let of = |headers: &[(&str, &str)]| {
            let parts = parts(headers);
            let read =
                presented(&parts.headers).map(|it| (it.key.map(String::from), it.credential == Credential::Client));
            read.map_err(|refused| refused.status.as_u16())
        };
        let ours = || Some("recto_1".to_string());
        assert_eq!(of(&[("authorization", "Bearer sk-1"), ("x-api-key", "sk-2")]), Ok((None, true)));
        assert_eq!(of(&[("authorization", "bearer  recto_1")]), Ok((ours(), false)));
        assert_eq!(of(&[("authorization", "recto_1")]), Ok((ours(), false)));
        assert_eq!(of(&[("x-api-key", "recto_1")]), Ok((ours(), false)));
        assert_eq!(of(&[("x-recto-key", "recto_1"), ("authorization", "Bearer sk-1")]), Ok((ours(), true)));
        assert_eq!(of(&[("x-recto-key", "recto_1"), ("x-api-key", "recto_1")]), Err(400));
        assert_eq!(of(&[("authorization", "Bearer recto_1"), ("x-api-key", "recto_2")]), Err(400));
        for name in ["authorization", "x-api-key", "x-recto-key"] {
            assert_eq!(of(&[(name, "sk-1"), (name, "sk-1")]), Err(400), "{name}");
        }
        assert_eq!(of(&[("x-recto-key", &format!("recto_{}", "1".repeat(600)))]), Err(401));
    }
}
