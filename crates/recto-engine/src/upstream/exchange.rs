//! One request: sent, sent again where that is safe, and its answer in chunks.

use super::{Upstream, connect, refusal};
use crate::drive::{Heard, Listen};
use crate::error::{Error, Kind};
use bytes::Bytes;
use recto::wire::Wire;
use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Url};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep, timeout_at};

/// The most bytes of an answer that are taken: one that is kept, and one that only passes through.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const FORWARDED_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// The most bytes of a refusal that are read.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// The most times that a request is sent again, whatever the settings say.
const RETRIES_MAX: u32 = 10;
/// The longest that is waited because a provider says so.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The waits that nobody asked for: the first, each twice the one before, up to the longest.
const WAIT_FIRST: Duration = Duration::from_millis(500);
const WAIT_UNASKED_MAX: Duration = Duration::from_secs(8);

/// What is asked of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An answer: `chat/completions`, `responses`, `messages`, `models/…:streamGenerateContent` or `chat`, as the wire has
    /// it.
    Answer,
    /// A new conversation that the provider keeps (Responses only).
    Conversations,
}

/// When a request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Whenever no answer has begun: the provider keeps nothing of it that would then stand twice.
    WhenUnanswered,
    /// Only if the provider has not heard it, or says that it did nothing.
    WhenUnheard,
    /// Only if the provider could not be connected to; whatever it says is for somebody else to judge.
    WhenUnreached,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Post<'a> {
    /// Its body.
    pub body: Vec<u8>,
    /// The model that is asked, where the address names it (Gemini only).
    pub model: &'a str,
    /// Headers of this request, which win over those of the settings.
    pub headers: &'a [(&'a str, &'a str)],
    /// When it may be sent again.
    pub repeat: Repeat,
}

/// Who reads an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadBy {
    Us,
    /// A client, in its own time: it is not for us to say how long an answer may be that goes well.
    Client,
}

/// An answer that is coming. Who drops it hangs up.
#[derive(Debug)]
pub struct Response {
    upstream: Upstream,
    inner: reqwest::Response,
    read_by: ReadBy,
    deadline: Instant,
    bytes_left: usize,
    /// The client's keys that went with the request; no error shows them.
    pub(super) passed: Vec<HeaderValue>,
}

impl<'a> Post<'a> {
    /// Returns a request without headers of its own.
    pub fn new(body: Vec<u8>, repeat: Repeat) -> Post<'a> {
        Post { body, model: "", headers: &[], repeat }
    }

    /// Returns the same for a model, which need not be named where the body does it.
    #[must_use]
    pub fn to(self, model: &'a str) -> Post<'a> {
        Post { model, ..self }
    }
}

impl Upstream {
    /// Sends a request, again where that is safe, and returns what was answered at last, be it good or bad. Each time
    /// that it is sent again, the listener is told why.
    pub async fn send(&self, endpoint: Endpoint, post: Post<'_>, listen: Listen<'_>) -> Result<Response, Error> {
        let url = match endpoint {
            Endpoint::Conversations => self.url("conversations"),
            Endpoint::Answer => self.answers(post.model)?,
        };
        let mut request = reqwest::Request::new(Method::POST, url);
        *request.headers_mut() = self.0.headers.clone();
        connect::extend(request.headers_mut(), post.headers.iter().copied())?;
        *request.body_mut() = Some(post.body.into());
        self.exchange(request, post.repeat, ReadBy::Us, listen).await
    }

    /// Sends a request until it is answered, or must not be sent again.
    pub(super) async fn exchange(
        &self,
        request: reqwest::Request,
        repeat: Repeat,
        read_by: ReadBy,
        listen: Listen<'_>,
    ) -> Result<Response, Error> {
        let settings = &self.0.settings;
        let deadline = Instant::now() + settings.limits.whole;
        let retries_max = settings.retries_max.min(RETRIES_MAX);
        let mut retries = 0;
        loop {
            let request = request.try_clone().expect("a body that is no stream can be had again");
            let sending = self.0.client.execute(request);
            let until = deadline.min(Instant::now() + settings.limits.first_byte);
            let (why, wait) = match timeout_at(until, sending).await {
                Err(_) => return Err(self.too_slow("has not begun to answer", ReadBy::Us)),
                Ok(Ok(inner)) => {
                    let response = Response::begun(self, inner, read_by, deadline);
                    match response.asks_for_patience(repeat, retries) {
                        Some(wait) if retries < retries_max && Instant::now() + wait < deadline => {
                            (format!("answered {}", response.status()), wait)
                        }
                        _ => return Ok(response),
                    }
                }
                Ok(Err(error)) => {
                    // Whoever could not even connect has said nothing.
                    let is_safe = error.is_connect() || repeat == Repeat::WhenUnanswered;
                    let wait = unasked(retries);
                    if !is_safe || retries >= retries_max || Instant::now() + wait >= deadline {
                        return Err(self.unreachable(&error));
                    }
                    (format!("can't be reached ({})", cause(&error)), wait)
                }
            };
            retries += 1;
            let told = format!("{} {why}; trying again ({retries} of {retries_max})", settings.name);
            listen(Heard::Note(self.without_key(&told).into()));
            sleep(wait).await;
        }
    }

    /// Returns where a path stands.
    pub(super) fn url(&self, path: &str) -> Url {
        let (usual, url) = &self.0.asked;
        if path == *usual { url.clone() } else { under(&self.0.base, path) }
    }

    /// Returns where answers are asked for.
    fn answers(&self, model: &str) -> Result<Url, Error> {
        Ok(match self.wire() {
            Wire::OpenaiChat | Wire::OpenaiResponses | Wire::Anthropic | Wire::Ollama => self.url(path(self.wire())),
            Wire::Gemini => {
                // Anything else might lead to another place.
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
                if model.is_empty() || model.starts_with('.') || !model.chars().all(is_plain) {
                    let what = format!("{model:?} can't be asked of {}: no address can name it", self.name());
                    return Err(recto::Error::settings(what, "name a model as its provider does").into());
                }
                let mut url = self.url(&format!("models/{model}:streamGenerateContent"));
                url.set_query(Some("alt=sse"));
                url
            }
        })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        let (name, cause) = (&self.0.settings.name, cause(error));
        if error.is_timeout() {
            return self.too_slow("could not be connected to", ReadBy::Us);
        }
        let hint = match cause.contains("certificate") {
            true => "if its certificate is your own, name the authority's file with `ca`",
            false => "check `url`, the network, and HTTPS_PROXY",
        };
        let what = format!("can't reach {name} at {}: {cause}", self.0.settings.url);
        self.refused(None, None, what, hint.into())
    }

    fn too_slow(&self, what: &str, read_by: ReadBy) -> Error {
        let hint = match read_by {
            ReadBy::Us => "ask again, or raise `timeout_seconds`",
            ReadBy::Client => "ask again, or raise `timeout_seconds` and `forward_timeout_seconds`",
        };
        Kind::TimedOut { what: format!("{} {what} in time", self.0.settings.name), hint: hint.into() }.into()
    }
}

/// Returns where a path stands under an address.
pub(super) fn under(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path()));
    url
}

/// Returns the path under which answers are asked for; where it names the model, only how it begins.
pub(super) fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat => "chat/completions",
        Wire::OpenaiResponses => "responses",
        Wire::Anthropic => "messages",
        Wire::Ollama => "chat",
        Wire::Gemini => "models",
    }
}

impl Response {
    fn begun(upstream: &Upstream, inner: reqwest::Response, read_by: ReadBy, deadline: Instant) -> Response {
        let (deadline, bytes_left) = match read_by {
            ReadBy::Us => (deadline, ANSWER_BYTES_MAX),
            ReadBy::Client => (Instant::now() + upstream.0.settings.limits.forwarded, FORWARDED_BYTES_MAX),
        };
        Response { upstream: upstream.clone(), inner, read_by, deadline, bytes_left, passed: Vec::new() }
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// Returns whether the request was taken.
    pub fn is_success(&self) -> bool {
        self.inner.status().is_success()
    }

    /// Returns the headers, as they came.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns a header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// Returns the next piece of the body, or nothing at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let until = self.deadline.min(Instant::now() + self.upstream.0.settings.limits.silence);
        let upstream = &self.upstream;
        let name = &upstream.0.settings.name;
        let piece = match timeout_at(until, self.inner.chunk()).await {
            Err(_) => return Err(upstream.too_slow("has not come to the end of its answer", self.read_by)),
            Ok(Err(error)) => {
                let what = format!("the answer of {name} broke off: {}", cause(&error));
                return Err(upstream.refused(None, None, what, "ask again".into()));
            }
            Ok(Ok(piece)) => piece,
        };
        let Some(piece) = piece else { return Ok(None) };
        if piece.len() > self.bytes_left {
            let most = if self.read_by == ReadBy::Us { ANSWER_BYTES_MAX } else { FORWARDED_BYTES_MAX };
            let what = format!("{name} answers more than {} MiB", most >> 20);
            return Err(Kind::TooLarge { what }.into());
        }
        self.bytes_left -= piece.len();
        Ok(Some(piece))
    }

    /// Reads why the request was refused.
    pub async fn into_refusal(mut self) -> Error {
        let mut body = Vec::new();
        // What breaks off here is told as far as it came.
        while body.len() < REFUSAL_BYTES_MAX
            && let Ok(Some(piece)) = self.chunk().await
        {
            body.extend(piece);
        }
        body.truncate(REFUSAL_BYTES_MAX);
        let told = refusal::Told::of(&body).without(self.passed_keys());
        let (name, status) = (&self.upstream.0.settings.name, self.status());
        let verb = if status >= 500 { "failed" } else { "refused the request" };
        let what = format!("{name} {verb} ({status}): {}", told.message);
        let wait = wait_asked_for(self.headers(), SystemTime::now()).map(|wait| wait.as_secs());
        let hint = refusal::hint(status, wait, self.upstream.0.settings.key_env.as_deref());
        self.upstream.refused(Some(status), told.code, what, hint)
    }

    /// The keys themselves, without the scheme that stands before them.
    fn passed_keys(&self) -> impl Iterator<Item = &str> {
        self.passed.iter().filter_map(|value| value.to_str().ok()?.split_whitespace().last())
    }

    /// Returns how long to wait before the request is sent again, if it may be.
    fn asks_for_patience(&self, repeat: Repeat, retries: u32) -> Option<Duration> {
        let may_repeat = match self.status() {
            429 | 503 | 529 => repeat != Repeat::WhenUnreached,
            408 | 500 | 502 | 504 => repeat == Repeat::WhenUnanswered,
            _ => false,
        };
        let asked = wait_asked_for(self.headers(), SystemTime::now());
        let wait = asked.unwrap_or_else(|| unasked(retries));
        (may_repeat && wait <= WAIT_MAX).then_some(wait)
    }
}

/// How long a provider asks to wait: in milliseconds, in seconds, or until a date; one that has passed means now.
fn wait_asked_for(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |value: &HeaderValue| value.to_str().map(str::trim).map(str::to_owned).ok();
    let milliseconds = headers.get("retry-after-ms").and_then(text).and_then(|text| text.parse().ok());
    milliseconds.map(Duration::from_millis).or_else(|| {
        let asked = headers.get(RETRY_AFTER).and_then(text)?;
        let until = || httpdate::parse_http_date(&asked).ok().map(|date| date.duration_since(now).unwrap_or_default());
        asked.parse().ok().map(Duration::from_secs).or_else(until)
    })
}

/// How long to wait where nobody says so.
fn unasked(retries: u32) -> Duration {
    (WAIT_FIRST * 2_u32.pow(retries.min(RETRIES_MAX))).min(WAIT_UNASKED_MAX)
}

/// The innermost reason: all others only say that there is one.
fn cause(error: &reqwest::Error) -> String {
    let chain = std::iter::successors(std::error::Error::source(error), |error| error.source());
    chain.last().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderName;

    #[test]
    fn a_wait_is_read_however_it_is_spelled() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let asked = |headers: &[(&'static str, &'static str)]| {
            let header = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
            wait_asked_for(&headers.iter().map(header).collect(), now)
        };
        let seconds = |number| Some(Duration::from_secs(number));
        assert_eq!(asked(&[("retry-after", "7")]), seconds(7));
        assert_eq!(asked(&[("retry-after", "7"), ("retry-after-ms", "20")]), Some(Duration::from_millis(20)));
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), seconds(30));
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), seconds(0), "it has passed");
        for nonsense in ["", "-1", "soon", "Sun, 99 Nov 1994 08:50:07 GMT", "99999999999999999999999"] {
            assert_eq!(asked(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(asked(&[]), None);
    }
}
