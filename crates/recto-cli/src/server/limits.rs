//! How much is taken: bodies up to a size and a depth, and so many requests of a tenant at once.

use super::Server;
use super::error::{Envelope, refusal};
use super::gateway::Glance;
use super::heads::Heads;
use super::metrics::Metrics;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use memchr::memchr;
use recto_engine::{Store, Tenant};
use std::collections::HashMap;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// How deep the JSON of a body may be nested.
const DEPTH_MAX: usize = 128;
/// How deep the messages of a body stand: in a list, in an object.
pub(super) const LIST_DEPTH: usize = 2;
/// How long a client may keep the next piece of its body to itself.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How much of a refused body is taken, and for how long.
const DRAIN_BYTES_MAX: usize = 64 << 20;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);
/// How much room is made for a body on its word alone.
const ROOM_ON_TRUST: usize = 1 << 20;
/// When to come again, in seconds, if too many requests run.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Who is being answered.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    seats: Arc<Mutex<HashMap<Tenant, usize>>>,
    per_tenant: Arc<AtomicUsize>,
}

/// A place among those who are being answered; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    tenant: Tenant,
    seats: Arc<Mutex<HashMap<Tenant, usize>>>,
}

impl Crowd {
    /// Returns one of at most so many requests of a tenant.
    pub(super) fn of(per_tenant: usize) -> Crowd {
        Crowd { seats: Arc::default(), per_tenant: Arc::new(per_tenant.into()) }
    }

    /// Allows so many requests of a tenant from now on; those that run stay.
    pub(super) fn allow(&self, per_tenant: usize) {
        self.per_tenant.store(per_tenant, Ordering::Relaxed);
    }

    /// Takes a seat, if one is free.
    pub(super) fn seat(&self, tenant: &Tenant) -> Option<Seat> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = seats.entry(tenant.clone()).or_default();
        if *taken >= self.per_tenant.load(Ordering::Relaxed) {
            return None;
        }
        *taken += 1;
        Some(Seat { tenant: tenant.clone(), seats: self.seats.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = seats.get_mut(&self.tenant) {
            *taken -= 1;
            // A tenant who asks nothing leaves nothing behind.
            if *taken == 0 {
                seats.remove(&self.tenant);
            }
        }
    }
}

/// Returns the refusal of one request too many.
pub(super) fn crowded(metrics: &Metrics, parts: &Parts) -> Response {
    metrics.crowded.count();
    let (status, message) =
        (StatusCode::TOO_MANY_REQUESTS, "too many requests of this tenant run at once; wait for one");
    let mut response = refusal(Envelope::of_path(parts.uri.path()), status, "crowded", message);
    response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
    response
}

/// Reads the body of a request, with what it has in common with those before; or says why it is not taken.
pub(super) async fn body<S: Store>(
    server: &Server<S>,
    tenant: Option<&Tenant>,
    bytes_max: usize,
    parts: &Parts,
    body: &mut Body,
) -> Result<(Bytes, Glance), Response> {
    let envelope = Envelope::of_path(parts.uri.path());
    let refused = |status: StatusCode, kind, message: &str| refusal(envelope, status, kind, message);
    let mut encodings = parts.headers.get_all(CONTENT_ENCODING).iter();
    if !encodings.all(|it| it.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let message = "compressed bodies are not taken; send it without content-encoding";
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_encoding", message));
    }
    let declared =
        parts.headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok()).unwrap_or(0);
    if declared > bytes_max {
        return Err(too_large(envelope, bytes_max));
    }
    let read = tokio::select! {
        read = collected(body, declared, bytes_max) => read,
        () = server.closing.cut() => Err(Unread::BrokenOff),
    };
    let bytes = read.map_err(|unread| match unread {
        Unread::TooLarge => too_large(envelope, bytes_max),
        Unread::TooSlow => refused(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body of the request did not come"),
        Unread::BrokenOff => refused(StatusCode::BAD_REQUEST, "broken_off", "the body of the request broke off"),
    })?;
    Heads::expect(parts);
    server.metrics.request_bytes.add(bytes.len() as u64);
    let glance = tenant.map(|tenant| server.gateway.glance(tenant, &bytes)).unwrap_or_default();
    let is_too_deep = match glance.new_bytes(&bytes) {
        Some(new) => is_too_deep_within(&bytes, new, LIST_DEPTH),
        None => is_too_deep(&bytes),
    };
    if is_too_deep {
        let message = format!("the body is nested more than {DEPTH_MAX} deep");
        return Err(refused(StatusCode::BAD_REQUEST, "too_deep", &message));
    }
    Ok((bytes, glance))
}

fn too_large(envelope: Envelope, bytes_max: usize) -> Response {
    let message =
        format!("the body is larger than {} MiB; `body_mib` under [server] in recto.toml allows more", bytes_max >> 20);
    refusal(envelope, StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message)
}

enum Unread {
    TooLarge,
    TooSlow,
    BrokenOff,
}

async fn collected(body: &mut Body, declared: usize, bytes_max: usize) -> Result<Bytes, Unread> {
    let Some(first) = piece(body).await? else { return Ok(Bytes::new()) };
    if first.len() == declared {
        // Most bodies come in one piece, which need not be copied. The next piece can only be the end.
        piece(body).await?;
        return if declared > bytes_max { Err(Unread::TooLarge) } else { Ok(first) };
    }
    let mut all = Vec::with_capacity(declared.clamp(first.len(), ROOM_ON_TRUST.max(first.len())));
    all.extend_from_slice(&first);
    while all.len() <= bytes_max {
        match piece(body).await? {
            Some(piece) => all.extend_from_slice(&piece),
            None => return Ok(all.into()),
        }
    }
    Err(Unread::TooLarge)
}

/// Returns the next piece of a body, if there is one.
async fn piece(body: &mut Body) -> Result<Option<Bytes>, Unread> {
    let frame = timeout(SILENCE_MAX, poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))).await;
    let frame = frame.map_err(|_| Unread::TooSlow)?.transpose().map_err(|_| Unread::BrokenOff)?;
    // What comes behind a body is nobody's concern here.
    Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

/// Takes what is left of the body of a refused request, for a while. A client that is still sending would otherwise
/// hear of a broken connection instead of the reason.
pub(super) async fn drain(body: &mut Body) {
    let mut taken = 0;
    let all = async {
        while let Ok(Some(piece)) = piece(body).await {
            taken += piece.len();
            if taken > DRAIN_BYTES_MAX {
                break;
            }
        }
    };
    // What takes longer is left to break.
    let _ = timeout(DRAIN_TIME_MAX, all).await;
}

/// Returns whether brackets outside of strings are nested too deep. Whether it is JSON at all is seen later.
pub(super) fn is_too_deep(bytes: &[u8]) -> bool {
    is_too_deep_within(bytes, 0..bytes.len(), 0)
}

/// The same of bytes that were looked at before and were not too deep, but for some in their midst, which stand within so
/// many brackets.
pub(super) fn is_too_deep_within(bytes: &[u8], new: Range<usize>, around: usize) -> bool {
    let (mut depth, mut at) = (around, new.start);
    while let Some(byte) = bytes.get(at) {
        // The rest stands just as deep as where it was looked at.
        if at == new.end && depth == around {
            return false;
        }
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(bytes, at + 1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return true;
        }
        at += 1;
    }
    false
}

/// Returns where a string ends that goes on here. Quotes are rarer in strings than backslashes, so it is looked for those.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'"', rest)) {
        at += found;
        let escapes = bytes[start..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 0 {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Something that is kept until the last piece of a body is sent, or nobody wants it any more.
pub(super) trait Keeps: Send + Unpin + 'static {
    /// Hears how many bytes are sent.
    fn sent(&self, _bytes: usize) {}
}

impl Keeps for Option<Seat> {}

/// A body that keeps something.
pub(super) struct Keeping<T> {
    pub(super) body: Body,
    pub(super) kept: T,
}

impl<T: Keeps> HttpBody for Keeping<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.kept.sent(frame.data_ref().map_or(0, Bytes::len));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_that_of_brackets_outside_of_strings() {
        let nested = |depth: usize| format!("{}1{}", "[{\"a\":".repeat(depth / 2), "}]".repeat(depth / 2));
        assert!(!is_too_deep(nested(DEPTH_MAX).as_bytes()));
        assert!(is_too_deep(nested(DEPTH_MAX + 2).as_bytes()));
        let wide = format!("[{}1]", "[[]],".repeat(1_000));
        assert!(!is_too_deep(wide.as_bytes()));
        let quoted = format!(r#"["{}", "\\\"{}", "\\"]"#, "[".repeat(1_000), "{".repeat(1_000));
        assert!(!is_too_deep(quoted.as_bytes()));
        let behind = format!(r#"["\\",{}"#, "[".repeat(DEPTH_MAX));
        assert!(is_too_deep(behind.as_bytes()));
        for broken in ["\"", "\"\\", "]]]]", "\"\\\\\\\""] {
            assert!(!is_too_deep(broken.as_bytes()));
        }
    }

    #[test]
    fn a_seat_is_free_again_once_it_was_left() {
        let crowd = Crowd::of(2);
        let [one, other] = ["one", "other"].map(Tenant::from);
        let seats: Vec<Seat> = (0..2).map(|_| crowd.seat(&one).unwrap()).collect();
        assert!(crowd.seat(&one).is_none());
        assert!(crowd.seat(&other).is_some());
        drop(seats);
        assert!(crowd.seat(&one).is_some());
        assert!(crowd.seats.lock().unwrap().is_empty());
    }
}
