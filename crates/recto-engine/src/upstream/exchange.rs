//! One request: sent, sent again where that is safe, and its answer in chunks.

use super::{Upstream, connect, refusal};
use crate::drive::{Heard, Listen};
use crate::error::{Error, Kind};
use recto::wire::Wire;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// The most bytes of an answer that are taken.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
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
    /// An answer: `chat/completions`, `responses` or `messages`, as the wire has it.
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
}

/// A request.
#[derive(Clone, Debug)]
pub struct Post<'a> {
    /// Its body.
    pub body: Vec<u8>,
    /// Headers of this request, which win over those of the settings.
    pub headers: &'a [(&'a str, &'a str)],
    /// When it may be sent again.
    pub repeat: Repeat,
}

/// An answer that is coming.
#[derive(Debug)]
pub struct Response {
    upstream: Upstream,
    inner: reqwest::Response,
    deadline: Instant,
    bytes_left: usize,
}

impl<'a> Post<'a> {
    /// Returns a request without headers of its own.
    pub fn new(body: Vec<u8>, repeat: Repeat) -> Post<'a> {
        Post { body, headers: &[], repeat }
    }
}

impl Upstream {
    /// Sends a request, again where that is safe, and returns what was answered at last, be it good or bad. Each time
    /// that it is sent again, the listener is told why.
    pub async fn send(&self, endpoint: Endpoint, post: Post<'_>, listen: Listen<'_>) -> Result<Response, Error> {
        let deadline = Instant::now() + self.settings.limits.whole;
        let retries_max = self.settings.retries_max.min(RETRIES_MAX);
        let repeat = post.repeat;
        let mut retries = 0;
        loop {
            let sending = self.request(endpoint, &post)?.send();
            let limit = self.settings.limits.first_byte;
            let (why, wait) = match timeout_at(deadline.min(Instant::now() + limit), sending).await {
                Err(_) => return Err(self.too_slow("has not begun to answer")),
                Ok(Ok(inner)) => {
                    let response = Response { upstream: self.clone(), inner, deadline, bytes_left: ANSWER_BYTES_MAX };
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
            let told = format!("{} {why}; trying again ({retries} of {retries_max})", self.settings.name);
            listen(Heard::Note(self.without_key(&told).into()));
            sleep(wait).await;
        }
    }

    fn request(&self, endpoint: Endpoint, post: &Post<'_>) -> Result<reqwest::RequestBuilder, Error> {
        let path = match (endpoint, self.settings.wire) {
            (Endpoint::Conversations, _) => "conversations",
            (Endpoint::Answer, Wire::OpenaiChat) => "chat/completions",
            (Endpoint::Answer, Wire::OpenaiResponses) => "responses",
            (Endpoint::Answer, Wire::Anthropic) => "messages",
        };
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path()));
        let mut headers = self.headers.clone();
        connect::extend(&mut headers, post.headers.iter().copied())?;
        Ok(self.client.post(url).headers(headers).body(post.body.clone()))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        let (name, cause) = (&self.settings.name, cause(error));
        if error.is_timeout() {
            return self.too_slow("could not be connected to");
        }
        let hint = match cause.contains("certificate") {
            true => "if its certificate is your own, name the authority's file with `ca`",
            false => "check `url`, the network, and HTTPS_PROXY",
        };
        let what = format!("can't reach {name} at {}: {cause}", self.settings.url);
        self.refused(None, None, what, hint.into())
    }

    fn too_slow(&self, what: &str) -> Error {
        let hint = "ask again, or raise `timeout_seconds`".into();
        Kind::TimedOut { what: format!("{} {what} in time", self.settings.name), hint }.into()
    }
}

impl Response {
    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// Returns whether the request was taken.
    pub fn is_success(&self) -> bool {
        self.inner.status().is_success()
    }

    /// Returns a header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// Returns the next piece of the body, or nothing at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let until = self.deadline.min(Instant::now() + self.upstream.settings.limits.silence);
        let upstream = &self.upstream;
        let name = &upstream.settings.name;
        let piece = match timeout_at(until, self.inner.chunk()).await {
            Err(_) => return Err(upstream.too_slow("has not come to the end of its answer")),
            Ok(Err(error)) => {
                let what = format!("the answer of {name} broke off: {}", cause(&error));
                return Err(upstream.refused(None, None, what, "ask again".into()));
            }
            Ok(Ok(piece)) => piece,
        };
        let Some(piece) = piece else { return Ok(None) };
        if piece.len() > self.bytes_left {
            let what = format!("{name} answers more than {} MiB", ANSWER_BYTES_MAX >> 20);
            return Err(Kind::TooLarge { what }.into());
        }
        self.bytes_left -= piece.len();
        Ok(Some(piece.to_vec()))
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
        let told = refusal::Told::of(&body);
        let (name, status) = (&self.upstream.settings.name, self.status());
        let verb = if status >= 500 { "failed" } else { "refused the request" };
        let what = format!("{name} {verb} ({status}): {}", told.message);
        let wait = self.header("retry-after").and_then(|text| text.parse().ok());
        let hint = refusal::hint(status, wait, self.upstream.settings.key_env.as_deref());
        self.upstream.refused(Some(status), told.code, what, hint)
    }

    /// Returns how long to wait before the request is sent again, if it may be.
    fn asks_for_patience(&self, repeat: Repeat, retries: u32) -> Option<Duration> {
        let may_repeat = match self.status() {
            429 | 503 | 529 => true,
            408 | 500 | 502 | 504 => repeat == Repeat::WhenUnanswered,
            _ => false,
        };
        let number = |name: &str| self.header(name).and_then(|text| text.parse::<u64>().ok());
        let asked = number("retry-after-ms").map(Duration::from_millis);
        let asked = asked.or_else(|| number("retry-after").map(Duration::from_secs));
        let wait = asked.unwrap_or_else(|| unasked(retries));
        (may_repeat && wait <= WAIT_MAX).then_some(wait)
    }
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
