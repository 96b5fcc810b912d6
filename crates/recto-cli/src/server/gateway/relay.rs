//! The answer: passed on as it comes, and recorded before the client hears its end.

use super::which::{answered, fork_id, held_digest};
use super::{CONVERSATION, PAGE, Record, Recorded};
use crate::server::Server;
use crate::server::error::refusal;
use crate::server::metrics::End;
use crate::{clock, talk};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use http_body::Frame;
use recto::Entry;
use recto::digest::Digest;
use recto::entry::{Part, Status};
use recto::wire::{self, Reply, Wire, sse};
use recto_engine::engine::{Behind, Saying};
use recto_engine::{Answer, At, Error, Store, upstream};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// How many pieces of an answer wait for a client that is slow.
const PIECES_MAX: usize = 4;

/// An answer that is coming, and what is recorded of it.
pub(super) struct Relay<S> {
    pub(super) server: Arc<Server<S>>,
    pub(super) wire: Wire,
    pub(super) record: Record,
    pub(super) page: &'static str,
}

/// A piece of an answer; an error breaks the connection, as it was broken behind us.
type Piece = Result<Bytes, io::Error>;

/// What comes next while an answer is passed on.
enum Next {
    Piece(Bytes),
    End,
    Broken(Error),
    ClientLeft,
    Cut,
}

impl<S: Store> Relay<S> {
    /// Passes an answer on.
    pub(super) async fn pass(self, response: upstream::Response, head: oneshot::Sender<Response>) {
        let kind = response.header("content-type").unwrap_or_default();
        if !response.is_success() {
            self.refused(response, head).await;
        } else if kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            self.streamed(response, head).await;
        } else {
            self.whole(response, head).await;
        }
    }

    /// Nothing came of it; what was said stays on record.
    pub(super) async fn unanswered(self, end: End) {
        if let Record::Call(recorded) = self.record
            && let Ok(begun) = recorded.begun
            && let Err(error) = self.server.engine.leave(begun).await
        {
            talk::note(&format!("a call that came to nothing could not be closed: {error}"));
        }
        self.server.metrics.reply(end);
    }

    /// Passes a refusal on, as it came.
    async fn refused(self, mut response: upstream::Response, head: oneshot::Sender<Response>) {
        let mut answer = self.head(&response);
        let server = self.server.clone();
        self.unanswered(End::Refused).await;
        let (pieces, body) = channel();
        *answer.body_mut() = body;
        if head.send(answer).is_err() {
            return;
        }
        loop {
            match next(&server, &mut response, &pieces).await {
                Next::Piece(piece) => {
                    if pieces.send(Ok(piece)).await.is_err() {
                        return;
                    }
                }
                Next::Broken(error) => return drop(pieces.send(Err(io::Error::other(error.to_string()))).await),
                Next::End | Next::ClientLeft | Next::Cut => return,
            }
        }
    }

    /// Reads an answer that is no stream, records it, and passes it on.
    async fn whole(mut self, mut response: upstream::Response, mut head: oneshot::Sender<Response>) {
        let mut body = Vec::new();
        let end = loop {
            let piece = tokio::select! {
                piece = response.chunk() => piece,
                () = head.closed() => break Some(End::ClientLeft),
                () = self.server.closing.cut() => break Some(End::Cut),
            };
            match piece {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => break None,
                Err(error) => {
                    let answer = super::failed(self.wire, &error);
                    self.unanswered(End::BrokenOff).await;
                    return drop(head.send(answer));
                }
            }
        };
        if let Some(end) = end {
            let answer = closing(self.wire);
            self.unanswered(end).await;
            return drop(head.send(answer));
        }
        let mut answer = self.head(&response);
        match self.wire.decode_reply(&String::from_utf8_lossy(&body)) {
            Ok(reply) => {
                let end = if reply.entry.status == Status::Sent { End::Whole } else { End::BrokenOff };
                self.keep(reply, &mut answer).await;
                self.server.metrics.reply(end);
            }
            Err(_) => self.unanswered(End::BrokenOff).await,
        }
        *answer.body_mut() = Body::from(body);
        drop(head.send(answer));
    }

    /// Passes a stream on piece by piece. The piece in which the answer ends goes on when it is recorded: a client that
    /// has heard it may ask again at once.
    async fn streamed(mut self, mut response: upstream::Response, head: oneshot::Sender<Response>) {
        let mut answer = self.head(&response);
        let (pieces, body) = channel();
        *answer.body_mut() = body;
        let server = self.server.clone();
        let mut heard = match self.record {
            Record::Call(_) => Some(Heard::of(self.wire)),
            Record::Nothing => None,
        };
        let mut end = if head.send(answer).is_err() { Some(End::ClientLeft) } else { None };
        while end.is_none() {
            match next(&server, &mut response, &pieces).await {
                Next::Piece(piece) => {
                    if let Some(done) = heard.take_if(|heard| heard.push(&piece)) {
                        self.ended(done, None).await;
                    }
                    if pieces.send(Ok(piece)).await.is_err() {
                        end = Some(End::ClientLeft);
                    }
                }
                Next::End => break,
                Next::ClientLeft => end = Some(End::ClientLeft),
                Next::Cut => end = Some(End::Cut),
                Next::Broken(error) => {
                    if let Some(heard) = heard.take() {
                        self.ended(heard, Some(End::BrokenOff)).await;
                    }
                    return drop(pieces.send(Err(io::Error::other(error.to_string()))).await);
                }
            }
        }
        // Nobody waits for the rest.
        drop(response);
        if let Some(heard) = heard {
            self.ended(heard, end).await;
        }
        if end == Some(End::Cut) {
            drop(pieces.send(Err(io::Error::other("the server ends"))).await);
        }
    }

    /// Records what was heard of a stream.
    async fn ended(&mut self, heard: Heard, early: Option<End>) {
        let reply = heard.stream.finish();
        let Ok(mut reply) = reply else {
            let record = std::mem::replace(&mut self.record, Record::Nothing);
            let relay = Relay { server: self.server.clone(), wire: self.wire, record, page: self.page };
            return relay.unanswered(early.unwrap_or(End::BrokenOff)).await;
        };
        let is_whole = reply.entry.status == Status::Sent;
        if early == Some(End::ClientLeft) && !is_whole {
            reply.entry.status = Status::Cancelled;
        }
        let end = if is_whole { End::Whole } else { early.unwrap_or(End::BrokenOff) };
        self.keep(reply, &mut Response::default()).await;
        self.server.metrics.reply(end);
    }

    /// Records a reply. The client has its answer in any case, so a failure is told here.
    async fn keep(&mut self, reply: Reply, answer: &mut Response) {
        let Record::Call(recorded) = std::mem::replace(&mut self.record, Record::Nothing) else { return };
        match kept(&self.server, *recorded, reply).await {
            Ok((at, is_fork)) => {
                if is_fork {
                    self.server.metrics.forks.count();
                }
                told(answer, &at);
            }
            Err(error) => {
                self.server.metrics.unrecorded.count();
                talk::note(&format!("an answer could not be recorded: {error}"));
            }
        }
    }

    /// The status and headers of an answer, with what became of its page.
    fn head(&self, response: &upstream::Response) -> Response {
        let mut answer = Response::default();
        *answer.status_mut() = StatusCode::from_u16(response.status()).unwrap_or(StatusCode::BAD_GATEWAY);
        *answer.headers_mut() = response.headers_for_client();
        answer.headers_mut().insert(PAGE, HeaderValue::from_static(self.page));
        if let Record::Call(recorded) = &self.record {
            told(&mut answer, recorded.at());
        }
        answer
    }
}

impl Recorded {
    fn at(&self) -> &At {
        match &self.begun {
            Ok(begun) => &begun.at,
            Err((at, _)) => at,
        }
    }
}

/// Tells the client which conversation it is.
fn told(answer: &mut Response, at: &At) {
    if let Ok(name) = HeaderValue::from_str(at.conversation.as_str()) {
        answer.headers_mut().insert(CONVERSATION, name);
    }
}

/// Records a reply, and returns where.
async fn kept<S: Store>(server: &Server<S>, recorded: Recorded, reply: Reply) -> Result<(At, bool), Error> {
    let Recorded { begun, prices, said, flight } = recorded;
    let links = said.links(&reply);
    let entry = Entry { at: Some(clock::now()), ..reply.entry };
    let done = match begun {
        Ok(begun) => {
            let fork = fork_id(&begun.at.conversation);
            let used = reply.usage.map(|usage| (usage, prices.usd(&usage)));
            // What stands before reasoning is only asked about where there is some.
            let has_reasoning = entry.parts.iter().any(|part| matches!(part, Part::Reasoning(_)));
            let entry = if has_reasoning { entry.bound_to(begun.compiled.page.binding()) } else { entry };
            let entries = vec![entry];
            let reported = reply.usage.map(|usage| usage.input);
            let answer = Answer { entries, reported, used, links: links.clone(), ..Answer::default() };
            let finished = server.engine.finish(begun, answer, fork).await?;
            let At { tenant, conversation } = &finished.at;
            server.gateway.places.put(tenant, &links, conversation, finished.appended.last);
            (finished.at, finished.is_fork)
        }
        Err((at, head)) => {
            let saying = Saying { entries: vec![entry], behind: Behind::Head(head), links };
            server.engine.add(&at, saying).await?;
            (at, false)
        }
    };
    drop(flight);
    Ok(done)
}

/// What a request has said, as far as its answer must know.
pub(super) struct Said {
    pub(super) wire: Wire,
    /// What identifies it all, if the client sends all of it.
    pub(super) chain: Option<recto::chain::Chain>,
    /// What a provider that remembers holds before it.
    pub(super) held: Option<String>,
}

impl Said {
    /// What identifies the log with a reply.
    fn links(&self, reply: &Reply) -> Vec<Digest> {
        let all = self.chain.filter(|_| self.held.is_none()).map(|chain| answered(chain, &reply.entry));
        let response = reply.id.as_ref().filter(|_| self.wire == Wire::OpenaiResponses);
        let response = response.map(|id| held_digest(&format!("response {id}")));
        let conversation = self.held.as_ref().filter(|held| held.starts_with("conversation "));
        all.into_iter().chain(response).chain(conversation.map(|held| held_digest(held))).collect()
    }
}

/// What was heard of a stream so far.
struct Heard {
    reader: sse::Reader,
    stream: wire::Stream,
    wire: Wire,
    is_garbled: bool,
}

impl Heard {
    fn of(wire: Wire) -> Heard {
        Heard { reader: sse::Reader::default(), stream: wire.stream(), wire, is_garbled: false }
    }

    /// Takes a piece, and returns whether the answer ends in it.
    fn push(&mut self, piece: &[u8]) -> bool {
        if self.is_garbled {
            return false;
        }
        let Ok(events) = self.reader.push(piece) else {
            self.is_garbled = true;
            return false;
        };
        let mut is_done = false;
        for event in events {
            self.is_garbled |= self.stream.event(&event.data).is_err();
            is_done |= self.ends(&event);
        }
        is_done
    }

    /// Whether an event is the last one that says something.
    fn ends(&self, event: &sse::Event) -> bool {
        let is_named = |names: &[&str]| match &event.name {
            Some(name) => names.contains(&name.as_str()),
            None => names.iter().any(|name| event.data.contains(&format!("\"type\":\"{name}\""))),
        };
        match self.wire {
            Wire::OpenaiChat => event.data.trim() == "[DONE]",
            Wire::Anthropic => is_named(&["message_stop", "error"]),
            Wire::OpenaiResponses => {
                is_named(&["response.completed", "response.incomplete", "response.failed", "error"])
            }
        }
    }
}

/// What is said to a client whose answer is cut because the server ends.
pub(super) fn closing(wire: Wire) -> Response {
    refusal(wire, StatusCode::SERVICE_UNAVAILABLE, "closing", "the server ends; ask again")
}

/// Waits for the next piece, or for somebody who wants no more.
async fn next<S>(server: &Server<S>, response: &mut upstream::Response, pieces: &mpsc::Sender<Piece>) -> Next {
    tokio::select! {
        piece = response.chunk() => match piece {
            Ok(Some(piece)) => Next::Piece(piece),
            Ok(None) => Next::End,
            Err(error) => Next::Broken(error),
        },
        () = pieces.closed() => Next::ClientLeft,
        () = server.closing.cut() => Next::Cut,
    }
}

fn channel() -> (mpsc::Sender<Piece>, Body) {
    let (pieces, received) = mpsc::channel(PIECES_MAX);
    (pieces, Body::new(Pieces(received)))
}

/// A body that comes piece by piece.
struct Pieces(mpsc::Receiver<Piece>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
