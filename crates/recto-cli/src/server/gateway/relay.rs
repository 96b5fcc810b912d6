//! The answer: passed on as it comes, and recorded before the client hears its end.

use super::cross::Cross;
use super::flight::Flight;
use super::rounds::{Going, Stuck, Went};
use super::which::{answered, fork_id, held_digest};
use super::{Asked, CONVERSATION, PAGE, Record, Recorded, failed};
use crate::server::Server;
use crate::server::error::refusal;
use crate::server::metrics::End;
use crate::{clock, talk};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use http_body::Frame;
use recto::Entry;
use recto::digest::Digest;
use recto::entry::{Part, Seq, Status};
use recto::target::Prices;
use recto::wire::hidden::Round;
use recto::wire::{self, Reply, Wire, sse};
use recto_engine::engine::{Behind, Saying};
use recto_engine::{Answer, At, Error, Store, upstream};
use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// How many pieces of an answer wait for a client that is slow.
const PIECES_MAX: usize = 4;
/// Why an answer breaks off when the server ends.
const ENDING: &str = "the server ends";

/// How a stream broke off, and what is told of that, if anybody hears it.
type Early = (End, Option<String>);

/// An answer that is coming, and what is recorded of it.
pub(super) struct Relay<S> {
    pub(super) asked: Box<Asked<S>>,
    pub(super) record: Record,
    pub(super) page: &'static str,
    /// What its model may ask back, if it may.
    pub(super) going: Option<Box<Going>>,
    /// How it is told, if its provider speaks another format.
    pub(super) cross: Option<Box<Cross>>,
}

/// A piece of an answer; an error breaks the connection, as it was broken behind us.
pub(super) type Piece = Result<Bytes, io::Error>;

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
    pub(super) async fn pass(mut self, response: upstream::Response, head: oneshot::Sender<Response>) {
        let kind = response.header("content-type").unwrap_or_default();
        if !response.is_success() {
            Box::pin(self.refused(response, head)).await;
        } else if is_stream(kind) {
            Box::pin(self.streamed(response, head)).await;
        } else {
            Box::pin(self.whole(response, head)).await;
        }
    }

    /// Nothing came of it; what was said stays on record.
    pub(super) async fn unanswered(&mut self, end: End) {
        if let Record::Call(recorded) = std::mem::replace(&mut self.record, Record::Nothing)
            && let Ok(begun) = recorded.begun
            && let Err(error) = self.asked.server.engine.leave(begun).await
        {
            talk::warn(&format!("a call that came to nothing could not be closed: {error}"));
        }
        self.over(end);
    }

    /// Counts how a reply ended.
    pub(super) fn over(&self, end: End) {
        self.asked.server.metrics.reply(end);
        self.asked.about.ended(end);
    }

    /// Counts what a reply has used, and what its page was expected to.
    pub(super) fn used(&self, recorded: &Recorded, reply: &Reply) {
        if let Ok(begun) = &recorded.begun {
            self.asked.server.metrics.expected(&begun.compiled.receipt);
        }
        self.asked.about.used(reply, reply.usage.map_or(0.0, |usage| recorded.prices.usd(&usage)));
    }

    /// Passes a refusal on, as it came.
    async fn refused(&mut self, mut response: upstream::Response, head: oneshot::Sender<Response>) {
        if self.cross.is_some() {
            return self.refused_across(response, head).await;
        }
        let mut answer = self.head(&response);
        self.unanswered(End::Refused).await;
        let (pieces, body) = channel();
        *answer.body_mut() = body;
        if head.send(answer).is_ok() {
            self.rest(&mut response, &pieces).await;
        }
    }

    /// Passes on what is left of an answer, as it comes.
    async fn rest(&self, response: &mut upstream::Response, pieces: &mpsc::Sender<Piece>) {
        loop {
            let piece = match next(&self.asked.server, response, pieces).await {
                Next::Piece(piece) => Ok(piece),
                Next::Broken(error) => Err(io::Error::other(error.to_string())),
                Next::Cut => Err(io::Error::other(ENDING)),
                Next::End | Next::ClientLeft => return,
            };
            let is_last = piece.is_err();
            if pieces.send(piece).await.is_err() || is_last {
                return;
            }
        }
    }

    /// Reads an answer that is no stream, records it, and passes it on; in as many rounds as it takes.
    async fn whole(&mut self, mut response: upstream::Response, mut head: oneshot::Sender<Response>) {
        let mut first = None;
        let (mut answer, body) = loop {
            let body = match self.read(&mut response, &mut head).await {
                Ok(body) => body,
                Err(answer) => return drop(head.send(answer)),
            };
            let Ok(reply) = self.spoken().decode_reply(&text_of(&body)) else {
                let answer = self.head(&response);
                Box::pin(self.unanswered(End::BrokenOff)).await;
                break (answer, body);
            };
            let reply = self.named(reply);
            let mut answer = first.take().unwrap_or_else(|| self.head(&response));
            let round = match self.going.as_mut().filter(|going| going.may_hide(&body)) {
                Some(going) => going.hiding.whole(&body).unwrap_or(Round::Ended { bytes: body }),
                None => Round::Ended { bytes: body },
            };
            match self.came_to(round, reply, &mut answer, head.closed()).await {
                Went::Over(bytes) => break (answer, bytes),
                Went::On(next) => (first, response) = (Some(answer), *next),
                Went::Nowhere(stuck) => return Box::pin(self.stuck_unheard(stuck, head)).await,
            }
        };
        if self.going.is_some() {
            // It is told anew, by what the body is now.
            answer.headers_mut().remove(CONTENT_LENGTH);
        }
        match self.told_whole(body, &mut answer) {
            Some(body) => *answer.body_mut() = Body::from(body),
            None => answer = self.untold(),
        }
        drop(head.send(answer));
    }

    /// Reads the body of an answer that is no stream, or returns what is said instead.
    async fn read(
        &mut self,
        response: &mut upstream::Response,
        head: &mut oneshot::Sender<Response>,
    ) -> Result<Vec<u8>, Response> {
        let mut body = Vec::new();
        let (end, answer) = loop {
            let piece = tokio::select! {
                piece = response.chunk() => piece,
                () = head.closed() => break (End::ClientLeft, closing(self.asked.wire)),
                () = self.asked.server.closing.cut() => break (End::Cut, closing(self.asked.wire)),
            };
            match piece {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => return Ok(body),
                Err(error) => break (End::BrokenOff, failed(self.asked.wire, &error)),
            }
        };
        Box::pin(self.unanswered(end)).await;
        Err(answer)
    }

    /// Says why there is no further round to a client that has heard nothing yet.
    async fn stuck_unheard(&mut self, stuck: Stuck, head: oneshot::Sender<Response>) {
        let (end, answer) = match stuck {
            Stuck::Refused(response) => return self.refused(*response, head).await,
            Stuck::Failed { answer, .. } => (End::Unanswered, answer),
            Stuck::Cut => (End::Cut, closing(self.asked.wire)),
            Stuck::ClientLeft => (End::ClientLeft, closing(self.asked.wire)),
        };
        self.unanswered(end).await;
        drop(head.send(answer));
    }

    /// Passes a stream on piece by piece, in as many rounds as it takes. The piece in which the answer ends goes on when
    /// it is recorded: a client that has heard it may ask again at once.
    async fn streamed(&mut self, mut response: upstream::Response, head: oneshot::Sender<Response>) {
        let mut answer = self.head(&response);
        if self.going.is_some() {
            answer.headers_mut().remove(CONTENT_LENGTH);
        }
        let (pieces, body) = channel();
        *answer.body_mut() = body;
        let is_recorded = matches!(self.record, Record::Call(_));
        match head.send(answer) {
            Err(_) if is_recorded => return Box::pin(self.unanswered(End::ClientLeft)).await,
            Err(_) => return,
            Ok(()) if !is_recorded => return self.rest(&mut response, &pieces).await,
            Ok(()) => {}
        }
        loop {
            let mut heard = Heard::of(self.spoken());
            let mut last = match self.hear(&mut heard, &mut response, &pieces).await {
                Ok(last) => last,
                Err(early) => {
                    // Nobody waits for the rest.
                    drop(response);
                    return Box::pin(self.broken_off(heard, early, &pieces)).await;
                }
            };
            let round = self.going.as_mut().map_or(Round::Ended { bytes: Vec::new() }, |going| going.hiding.round());
            if matches!(round, Round::Called { .. }) {
                // Only what ends an answer has to wait for the record.
                said(&pieces, std::mem::take(&mut last)).await;
            }
            let went = match heard.stream.finish() {
                Ok(reply) => {
                    let reply = self.named(reply);
                    self.came_to(round, reply, &mut Response::default(), pieces.closed()).await
                }
                Err(_) => Box::pin(self.unsaid(round)).await,
            };
            match went {
                Went::On(next) => response = *next,
                Went::Nowhere(stuck) => return Box::pin(self.stuck(stuck, &pieces)).await,
                Went::Over(bytes) => {
                    let is_heard = said(&pieces, [last, self.told_last(bytes)].concat()).await;
                    if is_heard && !self.is_hiding() && self.cross.is_none() {
                        self.rest(&mut response, &pieces).await;
                    }
                    return;
                }
            }
        }
    }

    /// Passes a round on up to its end, and returns the bytes of that.
    async fn hear(
        &mut self,
        heard: &mut Heard,
        response: &mut upstream::Response,
        pieces: &mpsc::Sender<Piece>,
    ) -> Result<Vec<u8>, Early> {
        loop {
            let piece = match next(&self.asked.server, response, pieces).await {
                Next::Piece(piece) => piece,
                Next::End => return Ok(Vec::new()),
                Next::ClientLeft => return Err((End::ClientLeft, None)),
                Next::Cut => return Err((End::Cut, Some(ENDING.into()))),
                Next::Broken(error) => return Err((End::BrokenOff, Some(error.to_string()))),
            };
            let is_over = heard.push(&piece);
            let shown = match &mut self.going {
                Some(going) => going.hiding.push(&piece).map(Bytes::from),
                None => Ok(piece),
            };
            let shown = shown.and_then(|shown| self.told(shown));
            let shown = shown.map_err(|error| (End::BrokenOff, Some(error.to_string())))?;
            if is_over {
                return Ok(shown.into());
            }
            if !shown.is_empty() && pieces.send(Ok(shown)).await.is_err() {
                return Err((End::ClientLeft, None));
            }
        }
    }

    /// A stream came to its end, and nothing was said in it.
    async fn unsaid(&mut self, round: Round) -> Went {
        match round {
            Round::Ended { bytes } | Round::Mixed { bytes, .. } if !self.is_hiding() => {
                self.unanswered(End::BrokenOff).await;
                Went::Over(bytes)
            }
            _ => Went::Nowhere(Stuck::failed(self.asked.wire, "the provider has said nothing")),
        }
    }

    /// Records what was heard of a stream that did not come to its end, and breaks the client's off as well.
    async fn broken_off(&mut self, heard: Heard, (early, error): Early, pieces: &mpsc::Sender<Piece>) {
        match heard.stream.finish() {
            Err(_) => self.unanswered(early).await,
            Ok(reply) => {
                let mut reply = self.named(reply);
                let is_whole = reply.entry.status == Status::Sent;
                if early == End::ClientLeft && !is_whole {
                    reply.entry.status = Status::Cancelled;
                }
                let end = if is_whole { End::Whole } else { early };
                self.keep(reply, Vec::new(), end, &mut Response::default()).await;
            }
        }
        let Some(error) = error else { return };
        if let Some(Round::Ended { bytes }) = self.going.as_mut().map(|going| going.hiding.round())
            && !self.is_hiding()
        {
            let bytes = self.told(bytes.into()).unwrap_or_default();
            said(pieces, bytes.into()).await;
        }
        drop(pieces.send(Err(io::Error::other(error))).await);
    }

    /// Says why there is no further round to a client that has heard the ones before, as its provider would.
    async fn stuck(&mut self, stuck: Stuck, pieces: &mpsc::Sender<Piece>) {
        let (end, why) = match stuck {
            Stuck::Refused(response) => (End::Refused, response.into_refusal().await.to_string()),
            Stuck::Failed { why, .. } => (End::Unanswered, why),
            Stuck::ClientLeft => return self.unanswered(End::ClientLeft).await,
            Stuck::Cut => {
                self.unanswered(End::Cut).await;
                return drop(pieces.send(Err(io::Error::other(ENDING))).await);
            }
        };
        self.unanswered(end).await;
        if let Some(going) = &mut self.going {
            let told = going.hiding.fail(&why);
            said(pieces, self.told_last(told)).await;
        }
    }

    /// Records a reply with the answers to what was asked back in it. The client has its answer in any case, so a failure
    /// is told here.
    pub(super) async fn keep(&mut self, reply: Reply, answers: Vec<Entry>, end: End, answer: &mut Response) {
        let Record::Call(recorded) = std::mem::replace(&mut self.record, Record::Nothing) else { return };
        let shown = match &self.going {
            Some(going) => going.shown(&reply.entry),
            None => Some(Cow::Borrowed(&reply.entry)),
        };
        let shown = match &self.cross {
            Some(cross) => shown.map(|shown| Cow::Owned(cross.shown(&shown))),
            None => shown,
        };
        let links = recorded.said.links(shown.as_deref(), &reply);
        self.used(&recorded, &reply);
        match kept(&self.asked.server, *recorded, reply, answers, links).await {
            Ok(Kept { at, is_fork, .. }) => {
                if is_fork {
                    self.asked.server.metrics.forks.count();
                }
                told(answer, &at);
            }
            Err(error) => unrecorded(&self.asked.server, &error),
        }
        self.over(end);
    }

    /// Whether the client has been kept from seeing something.
    fn is_hiding(&self) -> bool {
        self.going.as_ref().is_some_and(|going| going.is_hiding())
    }

    /// The status and headers of an answer, with what became of its page.
    pub(super) fn head(&self, response: &upstream::Response) -> Response {
        let mut answer = Response::default();
        *answer.status_mut() = StatusCode::from_u16(response.status()).unwrap_or(StatusCode::BAD_GATEWAY);
        *answer.headers_mut() = response.headers_for_client();
        answer.headers_mut().insert(PAGE, HeaderValue::from_static(self.page));
        if let Some(cross) = &self.cross {
            cross.head(answer.headers_mut());
        }
        if let Record::Call(recorded) = &self.record {
            told(&mut answer, recorded.at());
        }
        answer
    }
}

impl Recorded {
    pub(super) fn at(&self) -> &At {
        match &self.begun {
            Ok(begun) => &begun.at,
            Err((at, _)) => at,
        }
    }
}

/// Whether a type of content is that of a stream of events.
fn is_stream(kind: &str) -> bool {
    const EVENTS: &str = "text/event-stream";
    kind.trim_start().get(..EVENTS.len()).is_some_and(|start| start.eq_ignore_ascii_case(EVENTS))
}

/// Tells the client which conversation it is.
fn told(answer: &mut Response, at: &At) {
    if let Ok(name) = HeaderValue::from_str(at.conversation.as_str()) {
        answer.headers_mut().insert(CONVERSATION, name);
    }
}

/// Where a reply was recorded, and what a further round goes on with.
pub(super) struct Kept {
    pub(super) at: At,
    pub(super) is_fork: bool,
    /// The newest entry.
    pub(super) last: Option<Seq>,
    pub(super) prices: Prices,
    pub(super) said: Said,
    /// Nobody else carries the conversation on until this is dropped.
    pub(super) flight: Flight,
}

/// Records a reply, and what was answered to it here.
pub(super) async fn kept<S: Store>(
    server: &Server<S>,
    recorded: Recorded,
    reply: Reply,
    answers: Vec<Entry>,
    links: Vec<Digest>,
) -> Result<Kept, Error> {
    let Recorded { begun, prices, said, flight } = recorded;
    let entry = Entry { at: Some(clock::now()), ..reply.entry };
    let (at, is_fork, last) = match begun {
        Ok(begun) => {
            let fork = fork_id(&begun.at.conversation);
            let used = reply.usage.map(|usage| (usage, prices.usd(&usage)));
            // What stands before reasoning is only asked about where there is some.
            let has_reasoning = entry.parts.iter().any(|part| matches!(part, Part::Reasoning(_)));
            let entry = if has_reasoning { entry.bound_to(begun.compiled.page.binding()) } else { entry };
            let entries = std::iter::once(entry).chain(answers).collect();
            let reported = reply.usage.map(|usage| usage.input);
            let answer = Answer { entries, reported, used, links: links.clone(), ..Answer::default() };
            let finished = Box::pin(server.engine.finish(begun, answer, fork)).await?;
            let At { tenant, conversation } = &finished.at;
            server.gateway.places.put(tenant, &links, conversation, finished.appended.last);
            (finished.at, finished.is_fork, finished.appended.last)
        }
        Err((at, head)) => {
            let entries = std::iter::once(entry).chain(answers).collect();
            let saying = Saying { entries, behind: Behind::Head(head), links };
            let last = Box::pin(server.engine.add(&at, saying)).await?;
            (at, false, last)
        }
    };
    Ok(Kept { at, is_fork, last, prices, said, flight })
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
    /// What identifies the log with a reply, of which the client is shown this.
    fn links(&self, shown: Option<&Entry>, reply: &Reply) -> Vec<Digest> {
        let chain = self.chain.filter(|_| self.held.is_none());
        let all = chain.zip(shown).map(|(chain, shown)| answered(chain, shown));
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
            Wire::Gemini | Wire::Ollama => false,
        }
    }
}

/// The text that some bytes are; where they are none, as much of it as can be read.
pub(super) fn text_of(body: &[u8]) -> Cow<'_, str> {
    // Looking for what is no text takes ten times as long as seeing that there is none.
    std::str::from_utf8(body).map_or_else(|_| String::from_utf8_lossy(body), Cow::Borrowed)
}

/// Says that an answer could not be recorded, and counts it. Where its conversation was erased meanwhile, that is as it
/// should be.
pub(super) fn unrecorded<S>(server: &Server<S>, error: &Error) {
    let what = format!("an answer could not be recorded: {error}");
    if error.is_erased() {
        return talk::note(&what);
    }
    server.metrics.unrecorded.count();
    talk::warn(&what);
}

/// What is said to a client whose answer is cut because the server ends.
pub(super) fn closing(wire: Wire) -> Response {
    refusal(wire, StatusCode::SERVICE_UNAVAILABLE, "closing", "the server ends; ask again")
}

/// Passes some bytes on, and returns whether anybody hears them.
async fn said(pieces: &mpsc::Sender<Piece>, bytes: Vec<u8>) -> bool {
    bytes.is_empty() || pieces.send(Ok(bytes.into())).await.is_ok()
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
