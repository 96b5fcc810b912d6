//! What the head of a request said, before anybody interpreted it.
//!
//! Two servers in a row that disagree about where a request ends can be made to see different requests. A head that says
//! its length twice, or as a length and as chunks, is therefore refused. By the time a request is handed on, the HTTP
//! library has settled such a question and left no trace of it; so the bytes of a head are kept as they come in.

use super::error::{Envelope, refusal};
use axum::http::StatusCode;
use axum::http::header::TRANSFER_ENCODING;
use axum::http::request::Parts;
use axum::response::Response;
use memchr::memmem;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The longest head of a request, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// The head that came in last on a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Heads(Arc<Mutex<Head>>);

#[derive(Debug, Default)]
struct Head {
    bytes: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// A head is coming in.
    #[default]
    Open,
    /// It has come to its end, and what comes now is a body.
    Whole,
}

impl Heads {
    /// Returns the refusal of a request that says more than once how long it is. One whose body comes in chunks must be
    /// known not to.
    pub(super) fn refused(parts: &Parts) -> Option<Response> {
        let heads = parts.extensions.get::<Heads>()?;
        let head = heads.head(|head| std::mem::take(&mut head.bytes));
        let is_chunked = parts.headers.contains_key(TRANSFER_ENCODING);
        // Of a request that came together with the one before there is only a part, or nothing.
        let is_known = head.ends_with(END) && head.starts_with(format!("{} ", parts.method).as_bytes());
        let lengths = head.split(|byte| *byte == b'\n').filter(|line| is_length(line)).count();
        match (is_chunked, is_known) {
            (true, true) if lengths == 0 => None,
            (false, _) if lengths < 2 => None,
            _ => {
                let message = "the request says in more than one way how long it is";
                Some(refusal(Envelope::of_path(parts.uri.path()), StatusCode::BAD_REQUEST, "length", message))
            }
        }
    }

    /// Says that the body has come to its end: what comes now is another head.
    pub(super) fn expect(parts: &Parts) {
        if let Some(heads) = parts.extensions.get::<Heads>() {
            heads.head(|head| head.state = State::Open);
        }
    }

    fn head<T>(&self, act: impl FnOnce(&mut Head) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Head {
    fn heard(&mut self, new: &[u8]) {
        if self.state == State::Whole || self.bytes.len() > HEAD_BYTES_MAX {
            return;
        }
        // Empty lines before a request count for nothing.
        let empty =
            if self.bytes.is_empty() { new.iter().take_while(|byte| b"\r\n".contains(byte)).count() } else { 0 };
        let new = &new[empty..];
        let from = self.bytes.len().saturating_sub(END.len() - 1);
        let end = memmem::find(new, END).map_or(new.len(), |at| at + END.len());
        self.bytes.extend_from_slice(&new[..end]);
        // The end may also have come in two pieces.
        if let Some(at) = memmem::find(&self.bytes[from..], END) {
            self.bytes.truncate(from + at + END.len());
            self.state = State::Whole;
        }
    }
}

fn is_length(line: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length";
    line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME)
}

/// A connection whose heads are kept.
pub(super) struct Heard {
    stream: TcpStream,
    heads: Heads,
}

impl Heard {
    /// Returns a connection and the heads that come in on it.
    pub(super) fn of(stream: TcpStream) -> (Heard, Heads) {
        let heads = Heads::default();
        (Heard { stream, heads: heads.clone() }, heads)
    }
}

impl AsyncRead for Heard {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if let Poll::Ready(Ok(())) = read {
            self.heads.head(|head| head.heard(&into.filled()[before..]));
        }
        read
    }
}

impl AsyncWrite for Heard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    /// Returns the status of a request whose head comes in pieces of a size.
    fn status(head: &str, size: usize) -> u16 {
        let heads = Heads::default();
        for piece in head.as_bytes().chunks(size) {
            heads.head(|head| head.heard(piece));
        }
        let mut request = Request::builder().method("POST").uri("/v1/messages");
        if head.to_lowercase().contains("transfer-encoding") {
            request = request.header("transfer-encoding", "chunked");
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(heads);
        Heads::refused(&parts).map_or(200, |refused| refused.status().as_u16())
    }

    #[test]
    fn a_length_is_said_once_however_the_head_comes_in() {
        let (line, body) = ("POST /v1/messages HTTP/1.1\r\nHost: a\r\n", "{}\r\n\r\nContent-Length: 3\r\n\r\n");
        let cases = [
            (200, "Content-Length: 2\r\n"),
            (200, "X-Content-Length: 2\r\nContent-Length: 2\r\n"),
            (200, "Transfer-Encoding: chunked\r\n"),
            (400, "Content-Length: 2\r\ncontent-length: 2\r\n"),
            (400, "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
            (400, "Transfer-Encoding: chunked\r\nCONTENT-LENGTH: 2\r\n"),
            (400, "Transfer-Encoding: chunked\r\nA: b\nContent-Length: 2\r\n"),
        ];
        for (expected, more) in cases {
            let head = format!("{line}{more}\r\n{body}");
            for size in [1, 2, 3, 7, head.len()] {
                assert_eq!(status(&head, size), expected, "{more:?} in pieces of {size}");
            }
            assert_eq!(status(&format!("\r\n\r\n{head}"), head.len() + 4), expected, "{more:?} after empty lines");
        }
    }

    #[test]
    fn chunks_are_not_taken_where_the_head_is_not_known() {
        assert_eq!(status("Host: a\r\nTransfer-Encoding: chunked\r\n\r\n", 1_000), 400);
        assert_eq!(status("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n", 1_000), 400);
        assert_eq!(status("", 1), 200);
    }
}
