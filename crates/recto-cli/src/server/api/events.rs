//! What happens, as it happens: server-sent events, of one reader or of all conversations of a tenant.
//!
//! A stream ends when the server does, when its client leaves or reads no more, and when its key opens nothing any more.

use super::asked::Asked;
use super::conversations::{LOOKED_AT_MAX, LOOKED_AT_ONCE};
use super::problem::Problem;
use crate::codes::Code;
use crate::server::Server;
use crate::server::auth::Caller;
use crate::server::limits::{Crowd, Seat};
use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame};
use recto::Seq;
use recto::edit::Turn;
use recto::event::{Event, Since};
use recto_engine::engine::Subscription;
use recto_engine::store::ReaderRow;
use recto_engine::{ConversationId, Error, Store};
use serde_json::json;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// How many streams of one tenant there are at once.
const STREAMS_PER_TENANT: usize = 64;
/// How often the store is looked at for what other processes did.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often all conversations are looked at; where that takes long, it is done less often, by this factor.
const LOOK_AT_ALL_EVERY: Duration = Duration::from_secs(2);
const LOOK_AT_ALL_SHARE: u32 = 20;
/// How often something is said where nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client may take to read what it is told.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many pieces may wait for a client that reads slowly.
const PIECES_MAX: usize = 4;
/// The header in which a client that comes again says what it heard last.
const LAST_EVENT_ID: &str = "last-event-id";
/// The word for everything from the beginning.
const START: &str = "start";

/// Who listens.
#[derive(Debug)]
pub(in crate::server) struct Streams(Crowd);

impl Default for Streams {
    fn default() -> Streams {
        Streams(Crowd::of(STREAMS_PER_TENANT))
    }
}

given! {
    /// From where on.
    struct SinceGiven {
        /// A mark, or `start` for everything; left out, what comes next.
        since: Option<String>,
    }
}

/// Tells what happens to a conversation as a reader sees it.
pub(super) async fn of_reader<S: Store>(asked: Asked<S>) -> Result<Response, Problem> {
    let SinceGiven { since } = asked.query()?;
    let ((at, row), reader) = (asked.conversation().await?, asked.reader()?);
    let readers = asked.engine().readers(&at).await?;
    let own = readers.into_iter().find(|(name, _)| *name == reader).map(|(_, row)| row).unwrap_or_default();
    let now = mark_of(own, row.tally.head());
    let heard = asked.parts.headers.get(LAST_EVENT_ID).map(|it| it.to_str().unwrap_or("?").to_string());
    let since = match heard.or(since).as_deref() {
        None => now,
        Some(START) => Since::START,
        Some(mark) => read_mark(mark).filter(|it| is_past(it, &now)).ok_or_else(|| {
            Problem::bad(format!("{mark:?} is no mark of this reader")).hinting("`readers` tells the newest one")
        })?,
    };
    let subscription = asked.engine().subscribe(&at, &reader, since, LOOK_EVERY);
    let (stream, response) = Stream::open(asked, format!("retry: 1000\nid: {}\n\n", spelled(since)))?;
    tokio::spawn(stream.tell_reader(subscription));
    Ok(response)
}

/// Tells which conversations of a tenant change.
pub(super) async fn of_tenant<S: Store>(asked: Asked<S>) -> Result<Response, Problem> {
    let known = all(&asked).await?;
    let (stream, response) = Stream::open(asked, "retry: 1000\n\n".into())?;
    tokio::spawn(stream.tell_tenant(known));
    Ok(response)
}

/// A stream, and who listens.
struct Stream<S> {
    asked: Asked<S>,
    pieces: mpsc::Sender<Bytes>,
    _seat: Seat,
}

/// Why a stream ends.
struct Over;

impl<S: Store> Stream<S> {
    /// Begins a stream, if the tenant has not too many.
    fn open(asked: Asked<S>, first: String) -> Result<(Stream<S>, Response), Problem> {
        let seat = asked.server.streams.0.seat(&asked.caller.tenant);
        let crowded = || Problem::of(Code::Crowded, "too many streams of this tenant; end one");
        let seat = seat.ok_or_else(crowded)?;
        let (pieces, received) = mpsc::channel(PIECES_MAX);
        // There is room for the first.
        let _ = pieces.try_send(first.into());
        let mut response = Response::new(Body::new(Pieces(received)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok((Stream { asked, pieces, _seat: seat }, response))
    }

    async fn tell_reader(self, mut subscription: Subscription<S>) {
        while let Ok(events) = self.next(subscription.next()).await {
            let text = match events {
                Ok(events) => told(&events, subscription.since()),
                Err(error) if error.is_gone() => return self.end("erased").await,
                Err(_) => return self.end("lagging").await,
            };
            if self.say(text).await.is_err() {
                return;
            }
        }
    }

    async fn tell_tenant(self, mut known: HashMap<ConversationId, Seen>) {
        let mut pause = LOOK_AT_ALL_EVERY;
        loop {
            if self.next(sleep(pause)).await.is_err() {
                return;
            }
            let since = Instant::now();
            let Ok(all) = all(&self.asked).await else { return self.end("lagging").await };
            pause = LOOK_AT_ALL_EVERY.max(since.elapsed() * LOOK_AT_ALL_SHARE);
            let text = differences(&known, &all);
            known = all;
            if !text.is_empty() && self.say(text).await.is_err() {
                return;
            }
        }
    }

    /// Waits for something, and says meanwhile that the stream still stands.
    async fn next<T>(&self, work: impl Future<Output = T>) -> Result<T, Over> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                () = sleep(HEARTBEAT) => self.say(": still here\n\n".into()).await?,
                () = self.pieces.closed() => return Err(Over),
                () = self.server().closing.begun() => {
                    self.end("closing").await;
                    return Err(Over);
                }
            }
        }
    }

    /// Says something, if who listens may still hear it, and does.
    async fn say(&self, text: String) -> Result<(), Over> {
        if Caller::of(self.server(), &self.asked.parts).await.is_err() {
            self.end("closing").await;
            return Err(Over);
        }
        tokio::select! {
            sent = timeout(PATIENCE, self.pieces.send(text.into())) => match sent {
                Ok(Ok(())) => Ok(()),
                _ => Err(Over),
            },
            () = self.server().closing.begun() => Err(Over),
        }
    }

    /// Says in a word why it ends. Whoever does not read that is not waited for.
    async fn end(&self, why: &str) {
        let _ = self.pieces.try_send(format!("event: {why}\ndata: {{}}\n\n").into());
    }

    fn server(&self) -> &Arc<Server<S>> {
        &self.asked.server
    }
}

/// Spells events out. The mark stands at the last, so that nobody who was cut off between them misses one.
fn told(events: &[Event], since: Since) -> String {
    let mut text = String::new();
    for (at, event) in events.iter().enumerate() {
        let data = serde_json::to_string(event).unwrap_or_default();
        let _ = write!(text, "event: {}\ndata: {data}\n", event.kind);
        if at + 1 == events.len() {
            let _ = writeln!(text, "id: {}", spelled(since));
        }
        text.push('\n');
    }
    text
}

fn mark_of(row: ReaderRow, head: Option<Seq>) -> Since {
    Since { ordinal: row.ordinal, turn: Turn(row.turns), next: head.map_or(Seq(0), Seq::next) }
}

fn spelled(since: Since) -> String {
    format!("{}.{}.{}", since.ordinal, since.turn.0, since.next.0)
}

fn read_mark(mark: &str) -> Option<Since> {
    let mut numbers = mark.split('.').map(|it| it.parse::<u64>().ok());
    let (ordinal, turn, next) = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(Since { ordinal, turn: Turn(turn), next: Seq(next) })
}

fn is_past(since: &Since, now: &Since) -> bool {
    since.ordinal <= now.ordinal && since.turn <= now.turn && since.next <= now.next
}

/// What is known of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    version: u64,
    entries: u64,
    updated: i64,
}

/// All conversations of a tenant, as many as are looked through.
async fn all<S: Store>(asked: &Asked<S>) -> Result<HashMap<ConversationId, Seen>, Error> {
    let (mut all, mut after) = (HashMap::new(), None);
    for _ in 0..LOOKED_AT_MAX / LOOKED_AT_ONCE {
        let page = asked.engine().list(&asked.caller.tenant, after.as_ref(), LOOKED_AT_ONCE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        all.extend(page.into_iter().map(|it| {
            let seen = Seen { version: it.version, entries: it.tally.sums().entries, updated: it.updated.0 };
            (it.id, seen)
        }));
    }
    Ok(all)
}

fn differences(before: &HashMap<ConversationId, Seen>, now: &HashMap<ConversationId, Seen>) -> String {
    let mut text = String::new();
    let mut changed: Vec<_> = now.iter().filter(|(id, seen)| before.get(*id) != Some(seen)).collect();
    changed.sort_by_key(|(id, seen)| (seen.updated, *id));
    for (id, Seen { version, entries, updated }) in changed {
        let data = json!({"conversation": id, "version": version, "entries": entries, "updated": updated});
        let _ = write!(text, "event: changed\ndata: {data}\n\n");
    }
    let mut gone: Vec<_> = before.keys().filter(|id| !now.contains_key(*id)).collect();
    gone.sort();
    for id in gone {
        let _ = write!(text, "event: gone\ndata: {}\n\n", json!({"conversation": id}));
    }
    text
}

/// A body that comes piece by piece.
struct Pieces(mpsc::Receiver<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_and_nothing_else_does() {
        let since = Since { ordinal: 3, turn: Turn(4), next: Seq(5) };
        assert_eq!(read_mark(&spelled(since)), Some(since));
        assert!(is_past(&Since::START, &since) && is_past(&since, &since) && !is_past(&since, &Since::START));
        for wrong in ["", "1", "1.2", "1.2.3.4", "a.b.c", "1.2.", "-1.2.3"] {
            assert_eq!(read_mark(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_changed_and_what_is_gone_is_told_once() {
        let seen = |version: u64| Seen { version, entries: version, updated: version as i64 };
        let of = |all: &[(&str, u64)]| -> HashMap<ConversationId, Seen> {
            all.iter().map(|(id, version)| (ConversationId::from(*id), seen(*version))).collect()
        };
        let (before, now) = (of(&[("a", 1), ("b", 1), ("c", 1)]), of(&[("a", 1), ("b", 2), ("d", 1)]));
        let text = differences(&before, &now);
        let names: Vec<&str> = text.lines().filter(|line| line.starts_with("event")).collect();
        assert_eq!(names, ["event: changed", "event: changed", "event: gone"]);
        assert!(text.contains("\"d\"") && text.contains("\"b\"") && text.contains("\"c\"") && !text.contains("\"a\""));
        assert_eq!(differences(&now, &now), "");
    }
}
