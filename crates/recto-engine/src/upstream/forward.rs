//! A client's request as it came, and the answer as it comes back.
//!
//! Bodies go through untouched, both ways. So do headers, but for those that belong to one connection, that say who the
//! client is, or that speak to Recto itself.

use super::exchange::{ReadBy, Repeat, Response};
use super::{Settings, Upstream, connect};
use crate::drive::Listen;
use crate::error::{Error, Kind};
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, CONNECTION, HeaderMap, HeaderName, HeaderValue};

/// Headers that belong to one connection, and never go further; so do `proxy-*` and what `connection` names.
const OF_THE_CONNECTION: [&str; 7] =
    ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings"];
/// Headers of a client that stay here: what is said anew for the next connection, and what a browser tells of its user.
const OF_THE_CLIENT: [&str; 7] = ["host", "content-length", "accept-encoding", "expect", "cookie", "origin", "referer"];
/// Headers of an answer that stay here: what they say holds for the provider's address, not for ours.
const OF_THE_PROVIDER: [&str; 3] = ["set-cookie", "alt-svc", "strict-transport-security"];
/// Where clients put their keys.
const CREDENTIALS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
/// What speaks to Recto, or is said by it.
const OURS: &str = "x-recto-";

/// A client's request that is to go on.
///
/// All its headers go on but those of its connection, `cookie`, `origin`, `referer` and `x-recto-*`. Instead of its
/// `accept-encoding`, an answer without any compression is asked for: it has to be read on the way.
pub struct Forward<'a> {
    /// How it is sent.
    pub method: Method,
    /// What it is for, under the base URL and its version: `messages`, `chat/completions`, `models`.
    pub path: &'a str,
    /// What stands behind the path, as it came.
    pub query: Option<&'a str>,
    /// The client's headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// Whose the credential in its headers is.
    pub credential: Credential,
    /// When it may be sent again.
    pub repeat: Repeat,
}

/// Whom a client's credential is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The provider: it may go on.
    Client,
    /// Recto: it never goes further.
    Withheld,
}

/// Whose key goes with a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKey {
    /// The client's own, if it is meant for the provider.
    Pass,
    /// Ours. The client's is taken out.
    Replace,
}

impl ClientKey {
    /// All there are, as they are spelled in files.
    pub const NAMES: [(&'static str, ClientKey); 2] = [("pass", ClientKey::Pass), ("replace", ClientKey::Replace)];

    /// Returns how it is spelled in files.
    pub fn name(self) -> &'static str {
        match self {
            ClientKey::Pass => "pass",
            ClientKey::Replace => "replace",
        }
    }
}

/// Returns whose key goes with a client's request, from the settings and from the headers that we have of our own.
pub(super) fn client_key(settings: &Settings, own: [&HeaderMap; 2]) -> Result<ClientKey, Error> {
    let has_own = own.into_iter().any(|own| CREDENTIALS.iter().any(|name| own.contains_key(*name)));
    match settings.client_key {
        Some(ClientKey::Replace) if !has_own => {
            let what = format!("the keys of clients can't be replaced for {}: there is no other", settings.name);
            let hint = settings.key_env.as_ref().map(|variable| format!("set {variable} to the key"));
            let hint = hint.unwrap_or_else(|| "name the variable with the key in `key_env`".into());
            Err(recto::Error::settings(what, hint).into())
        }
        Some(chosen) => Ok(chosen),
        None if has_own => Ok(ClientKey::Replace),
        None => Ok(ClientKey::Pass),
    }
}

impl Upstream {
    /// Passes a client's request on, again where that is safe, and returns what was answered at last, be it good or bad.
    /// Each time that it is sent again, the listener is told why. Who drops the future or the response hangs up.
    pub async fn forward(&self, forward: Forward<'_>, listen: Listen<'_>) -> Result<Response, Error> {
        let mut url = self.url(forward.path);
        let is_within = url.path().strip_prefix(self.0.base.path()).is_some_and(|rest| rest.starts_with('/'));
        if !is_within {
            return Err(Kind::NotFound { what: format!("{:?} at {}", forward.path, self.name()) }.into());
        }
        url.set_query(forward.query);
        let mut request = reqwest::Request::new(forward.method, url);
        *request.headers_mut() = self.headers_of(forward.headers, forward.credential);
        *request.body_mut() = (!forward.body.is_empty()).then(|| forward.body.into());
        let passed = CREDENTIALS.iter().filter_map(|name| request.headers().get(*name).cloned()).collect();
        let mut response = self.exchange(request, forward.repeat, ReadBy::Client, listen).await?;
        response.passed = passed;
        Ok(response)
    }

    /// Returns the headers that go on.
    fn headers_of(&self, mut headers: HeaderMap, credential: Credential) -> HeaderMap {
        let goes_on = credential == Credential::Client && self.0.client_key == ClientKey::Pass;
        retain(&mut headers, |name| match name {
            name if CREDENTIALS.contains(&name) => goes_on,
            name => !OF_THE_CLIENT.contains(&name),
        });
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if !goes_on {
            connect::replace(&mut headers, &self.0.credential);
        }
        connect::replace(&mut headers, &self.0.extra);
        headers
    }
}

impl Response {
    /// Returns the headers that go back to the client: all but those of the connection and those that hold for the
    /// provider's address alone. The body is untouched, so its length holds.
    pub fn headers_for_client(&self) -> HeaderMap {
        let mut headers = self.headers().clone();
        retain(&mut headers, |name| !OF_THE_PROVIDER.contains(&name) && !name.starts_with("access-control-"));
        headers
    }
}

/// Takes out what never goes further, and what is not to be kept.
fn retain(headers: &mut HeaderMap, is_kept: impl Fn(&str) -> bool) {
    let named = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    let mut gone: Vec<HeaderName> = named.collect();
    gone.extend(headers.keys().filter(|name| stays(name.as_str()) || !is_kept(name.as_str())).cloned());
    for name in gone {
        headers.remove(name);
    }
}

fn stays(name: &str) -> bool {
    OF_THE_CONNECTION.contains(&name) || name.starts_with("proxy-") || name.starts_with(OURS)
}
