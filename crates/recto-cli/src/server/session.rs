//! Who looks at the inspector. A key is shown once; from then on a cookie stands for it that no script can read. It opens
//! what there is to see, and changes nothing.
//!
//! Sessions are in memory alone: they end with the server. A key that is revoked ends those that were begun with it.

use super::Server;
use super::auth::Caller;
use super::error::{Envelope, refusal};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, COOKIE, HeaderName, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use recto::digest::Digest;
use recto_engine::Store;
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many sessions there are at most; the oldest goes first.
const SESSIONS_MAX: usize = 1_024;
/// How long a session lasts.
const LASTS: Duration = Duration::from_secs(12 * 60 * 60);
/// How random a token is.
const RANDOM_BYTES: usize = 32;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Everybody who is signed in.
pub(super) struct Sessions {
    /// What the cookie is called. Servers on other ports of a machine share its cookies, so each has a name of its own.
    name: String,
    held: Mutex<Vec<Session>>,
}

struct Session {
    /// What identifies its token, which is nowhere but in the browser.
    token: Digest,
    key: String,
    since: Instant,
}

/// What a browser sends to sign in; without a key it signs out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default)]
    key: Option<String>,
}

impl Sessions {
    /// Returns those of a server that listens at an address.
    pub(super) fn at(address: SocketAddr) -> Sessions {
        Sessions { name: format!("recto_session_{}", address.port()), held: Mutex::default() }
    }

    /// Returns the key that a request's cookie stands for.
    pub(super) fn key(&self, headers: &HeaderMap) -> Option<String> {
        // Cookies are shared between the ports of a machine; what another page there asks for is not answered.
        let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
        if !site.is_none_or(|site| site == b"same-origin" || site == b"none") {
            return None;
        }
        let token = self.token(headers)?;
        self.held(|held| {
            held.retain(|session| session.since.elapsed() < LASTS);
            held.iter().find(|session| session.token == token).map(|session| session.key.clone())
        })
    }

    fn token(&self, headers: &HeaderMap) -> Option<Digest> {
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.name).map(|(_, token)| Digest::of(token.as_bytes()))
    }

    /// Begins a session, and returns the cookie of it.
    fn begin(&self, key: String) -> Result<HeaderValue, ()> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|_| ())?;
        let mut token = String::with_capacity(2 * RANDOM_BYTES);
        for byte in bytes {
            let _ = write!(token, "{byte:02x}");
        }
        let session = Session { token: Digest::of(token.as_bytes()), key, since: Instant::now() };
        self.held(|held| {
            if held.len() >= SESSIONS_MAX {
                held.remove(0);
            }
            held.push(session);
        });
        self.cookie(&token, LASTS.as_secs()).ok_or(())
    }

    /// Ends the session of a request.
    fn end(&self, headers: &HeaderMap) {
        if let Some(token) = self.token(headers) {
            self.held(|held| held.retain(|session| session.token != token));
        }
    }

    fn cookie(&self, token: &str, seconds: u64) -> Option<HeaderValue> {
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}", self.name);
        HeaderValue::try_from(cookie).ok()
    }

    fn held<T>(&self, act: impl FnOnce(&mut Vec<Session>) -> T) -> T {
        act(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Tells who is signed in; signs in or out.
pub(super) async fn answer<S: Store>(server: &Server<S>, parts: &Parts, body: &[u8]) -> Response {
    if parts.method != Method::POST {
        return told(server, parts, None).await;
    }
    let Ok(given) = serde_json::from_slice::<Given>(body) else {
        let message = "the body is {\"key\": \"…\"} to sign in, and {} to sign out";
        return refusal(Envelope::Problem, StatusCode::BAD_REQUEST, "bad_request", message);
    };
    let sessions = &server.sessions;
    sessions.end(&parts.headers);
    let Some(key) = given.key else { return told(server, parts, sessions.cookie("", 0)).await };
    if let Err(refused) = Caller::of_key(server, parts, &key).await {
        return refused;
    }
    match sessions.begin(key) {
        Ok(cookie) => told(server, parts, Some(cookie)).await,
        Err(()) => refusal(Envelope::Problem, StatusCode::SERVICE_UNAVAILABLE, "store", "there is no randomness"),
    }
}

async fn told<S: Store>(server: &Server<S>, parts: &Parts, cookie: Option<HeaderValue>) -> Response {
    let needs_key = !server.doors.is_open(&server.engine).await;
    let caller = Caller::looking(server, parts).await.ok();
    let tenant = caller.as_ref().map(|caller| caller.tenant.to_string());
    let can_change = caller.is_some_and(|caller| caller.may_change());
    let body = json!({"needs_key": needs_key, "tenant": tenant, "can_change": can_change});
    let mut response = Response::new(Body::from(body.to_string()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(cookie) = cookie {
        headers.insert(SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_cookie_stands_for_the_key_it_was_begun_with() {
        let sessions = Sessions::at(([127, 0, 0, 1], 7676).into());
        let [one, other] = ["recto_one", "recto_other"].map(|key| sessions.begin(key.into()).unwrap());
        let pair = |cookie: &HeaderValue| cookie.to_str().unwrap().split(';').next().unwrap().to_string();
        assert_ne!(pair(&one), pair(&other));
        for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(one.to_str().unwrap().contains(attribute), "{one:?}");
        }
        let cookies = format!("theme=dark; {}", pair(&other));
        assert_eq!(sessions.key(&with(&[("cookie", &cookies)])).as_deref(), Some("recto_other"));
        assert_eq!(sessions.key(&with(&[("cookie", "recto_session_7676=0")])), None);
        assert_eq!(sessions.key(&with(&[("cookie", &pair(&one).replace("7676", "7677"))])), None);
        assert_eq!(sessions.key(&HeaderMap::new()), None);
        sessions.end(&with(&[("cookie", &cookies)]));
        assert_eq!(sessions.key(&with(&[("cookie", &cookies)])), None);
        assert_eq!(sessions.key(&with(&[("cookie", &pair(&one))])).as_deref(), Some("recto_one"));
    }

    #[test]
    fn a_page_of_another_port_is_not_answered() {
        let sessions = Sessions::at(([127, 0, 0, 1], 7676).into());
        let cookie = sessions.begin("recto_one".into()).unwrap();
        let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
        for (site, is_let_in) in [("same-origin", true), ("none", true), ("same-site", false), ("cross-site", false)] {
            let found = sessions.key(&with(&[("cookie", cookie), ("sec-fetch-site", site)]));
            assert_eq!(found.is_some(), is_let_in, "{site}");
        }
    }

    #[test]
    fn the_oldest_session_goes_first() {
        let sessions = Sessions::at(([127, 0, 0, 1], 7676).into());
        let begun: Vec<HeaderValue> =
            (0..=SESSIONS_MAX).map(|number| sessions.begin(format!("recto_{number}")).unwrap()).collect();
        let key = |at: usize| sessions.key(&with(&[("cookie", begun[at].to_str().unwrap())]));
        assert_eq!((key(0), key(1).as_deref()), (None, Some("recto_1")));
    }
}
