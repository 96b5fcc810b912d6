//! Further rounds: what the model asks back is answered here, and it goes on in the same response, unseen by the client.
//!
//! Each round is a call of its own: the model's step is recorded together with the answers to what it asked back, then
//! the next page is made, which shows both. The client's history lacks them, so its later requests get them put back
//! from the log.

use super::body::Around;
use super::offer::Offer;
use super::relay::{Kept, Relay, kept, unrecorded};
use super::{Record, Recorded, failed};
use crate::server::Server;
use crate::server::error::refusal;
use crate::server::metrics::End;
use crate::{clock, talk};
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::Response;
use memchr::memmem;
use recto::chain::atoms;
use recto::entry::{Call as ToolCall, Part, Status, Text};
use recto::expand::{Ask, Refusal, TOOL_NAME};
use recto::page::Page;
use recto::redact::Screen;
use recto::tokens::Count;
use recto::wire::across::one_message;
use recto::wire::hidden::{Hiding, Round};
use recto::wire::{Reply, Wire};
use recto::{Entry, Tokens};
use recto_engine::engine::{Beginning, Behind, Give, Saying};
use recto_engine::upstream::{self, Repeat, Upstream};
use recto_engine::{At, Call, Store};
use std::borrow::Cow;
use std::future::Future;

/// In how many rounds of one response a model may ask something back. In the last it is told so, and whoever asks all the
/// same has had its say.
const ROUNDS_MAX: usize = 8;
/// How many calls of one response are answered.
const CALLS_MAX: usize = 64;
/// How much is given back in one response, in tokens.
const TOKENS_MAX: u64 = 100_000;
/// What a call is answered with that comes too late in a response.
const NO_MORE: &str = "Nothing more can be expanded in this answer. Go on with what stands above. \
                       Do not request this expansion again.";
/// What a call is answered with whose original can't be read.
const UNREAD: &str = "The original can't be read now. Go on without it. Do not request this expansion again.";

/// What further rounds of a response need, and how far they have come.
pub(super) struct Going {
    pub(super) hiding: Hiding,
    call: Call,
    offer: Offer,
    upstream: Upstream,
    /// What the client was shown in the rounds before.
    shown: Vec<Part>,
    rounds: usize,
    calls: usize,
    tokens: u64,
    /// Whether the model was told that it can ask no more.
    is_told: bool,
}

/// Where a response goes after a round.
pub(super) enum Went {
    /// It is over, once the client has these bytes.
    Over(Vec<u8>),
    /// The next round has begun.
    On(Box<upstream::Response>),
    /// There should be another round, and there is none.
    Nowhere(Stuck),
}

/// Why there is no further round.
pub(super) enum Stuck {
    /// Nobody waits for it any more.
    ClientLeft,
    /// The server ends.
    Cut,
    /// The provider refuses it.
    Refused(Box<upstream::Response>),
    /// It could not be had.
    Failed {
        why: String,
        /// The same, for a client that has heard nothing yet.
        answer: Response,
    },
}

impl Stuck {
    pub(super) fn failed(wire: Wire, why: &str) -> Stuck {
        let why = format!("what the model asked back could not be given to it: {why}");
        Stuck::Failed { answer: refusal(wire, StatusCode::BAD_GATEWAY, "expansion", &why), why }
    }
}

impl Going {
    pub(super) fn new(call: Call, offer: Offer, upstream: Upstream) -> Going {
        let hiding = Hiding::new(call.target.wire, TOOL_NAME);
        let (rounds, calls, tokens) = (0, 0, 0);
        Going { hiding, call, offer, upstream, shown: Vec::new(), rounds, calls, tokens, is_told: false }
    }

    /// Begins to answer a round, the last of them by saying so. Returns whether that was said before.
    fn tells_enough(&mut self) -> bool {
        self.rounds += 1;
        let was_told = self.is_told;
        self.is_told |= self.rounds >= ROUNDS_MAX;
        was_told
    }

    /// Whether the client has been kept from seeing something.
    pub(super) fn is_hiding(&self) -> bool {
        self.calls > 0
    }

    /// Whether something of a whole body may have to be kept from the client, or put behind what it was shown before. One
    /// that doesn't name the tool, in whatever spelling, need not be taken apart to be passed on as it came.
    pub(super) fn may_hide(&self, body: &[u8]) -> bool {
        self.rounds > 0 || may_name_tool(body)
    }

    /// Returns what the client has been shown with a reply, as it will send it back; nothing, where that says nothing and
    /// the reply broke off.
    pub(super) fn shown<'r>(&self, reply: &'r Entry) -> Option<Cow<'r, Entry>> {
        if !self.is_hiding() && visible(reply).count() == reply.parts.len() {
            return Some(Cow::Borrowed(reply));
        }
        let parts: Vec<Part> = self.shown.iter().chain(visible(reply)).cloned().collect();
        let parts = one_message(self.call.target.wire, parts);
        let shown = Entry { parts: parts.into(), ..reply.clone() };
        (reply.status == Status::Sent || atoms(&shown).next().is_some()).then_some(Cow::Owned(shown))
    }

    /// Answers one call: with what was left out, or a sentence that says why it isn't.
    async fn answer<S: Store>(&mut self, server: &Server<S>, at: &At, call: &ToolCall) -> Text {
        self.calls += 1;
        let refused = |why: Text| {
            server.metrics.expansions_refused.count();
            why
        };
        if self.is_told || self.calls > CALLS_MAX {
            self.is_told = true;
            return refused(NO_MORE.into());
        }
        let ask = match Ask::from_call(call.arguments.as_str()) {
            Ok(ask) => ask,
            Err(refusal) => return refused(refusal.to_string().into()),
        };
        let expansion = match server.engine.expand(at, &self.call, &ask, Give::AsText).await {
            Ok(Ok(expansion)) => expansion,
            Ok(Err(refusal)) => return refused(refusal.to_string().into()),
            Err(error) => {
                server.tell(|| format!("{}: could not be expanded: {error}", at.conversation));
                return refused(UNREAD.into());
            }
        };
        let tokens = self.call.target.tokenizer.count(&expansion.text).0;
        if self.tokens + tokens > TOKENS_MAX {
            let (handle, room) = (expansion.handle, TOKENS_MAX - self.tokens);
            return refused(
                Refusal::TooLarge { handle, tokens: Tokens(tokens), room: Tokens(room) }.to_string().into(),
            );
        }
        self.tokens += tokens;
        server.metrics.expansions.count();
        expansion.text
    }

    /// Returns the body of a further round, or why there can be none.
    fn body(&self, came: &[u8], page: &Page, screen: &Screen) -> Result<Bytes, &'static str> {
        let text = std::str::from_utf8(came).map_err(|_| "it is no text")?;
        let wire = self.call.target.wire;
        let outline = wire.outline(text).map_err(|_| "it can't be read")?;
        let screen = Some(screen).filter(|screen| screen.is_over_prompts());
        Around { wire, text, outline: &outline, offer: Some(&self.offer), screen }.with(page, &self.call)
    }
}

/// The parts of a reply that its client sees.
fn visible(reply: &Entry) -> impl Iterator<Item = &Part> {
    reply.parts.iter().filter(|part| !matches!(part, Part::Call(call) if *call.name == *TOOL_NAME))
}

impl<S: Store> Relay<S> {
    /// Answers what the model asks back in a step, as entries that go behind it.
    pub(super) async fn answers(&mut self, calls: &[ToolCall]) -> Vec<Entry> {
        let (Some(going), Record::Call(recorded)) = (&mut self.going, &self.record) else { return Vec::new() };
        let mut entries = Vec::with_capacity(calls.len());
        for call in calls {
            let text = going.answer(&self.asked.server, recorded.at(), call).await;
            entries.push(Entry { at: Some(clock::now()), ..Entry::result(call.id.clone(), text) });
        }
        entries
    }

    /// Records what a round came to, and goes on where the model has done nothing but ask something back.
    pub(super) async fn came_to(
        &mut self,
        round: Round,
        reply: Reply,
        answer: &mut Response,
        left: impl Future<Output = ()>,
    ) -> Went {
        let end = if reply.entry.status == Status::Sent { End::Whole } else { End::BrokenOff };
        let was_told = self.going.as_mut().is_some_and(|going| going.tells_enough());
        let (bytes, answers) = match round {
            Round::Ended { bytes } => (bytes, Vec::new()),
            // What can't be read to its end is not answered.
            Round::Mixed { bytes, .. } if end == End::BrokenOff => (bytes, Vec::new()),
            Round::Called { .. } if end == End::BrokenOff => {
                Box::pin(self.keep(reply, Vec::new(), end, answer)).await;
                return Went::Nowhere(Stuck::failed(self.asked.wire, "its step can't be read"));
            }
            Round::Mixed { bytes, calls } => (bytes, Box::pin(self.answers(&calls)).await),
            Round::Called { calls } => {
                let answers = Box::pin(self.answers(&calls)).await;
                match &mut self.going {
                    Some(going) if was_told => (going.hiding.give_up(), answers),
                    _ => return Box::pin(self.go_on(reply, answers, left)).await,
                }
            }
        };
        self.keep(reply, answers, end, answer).await;
        Went::Over(bytes)
    }

    /// Records a step in which the model has asked something back, and begins the next round.
    async fn go_on(&mut self, reply: Reply, answers: Vec<Entry>, left: impl Future<Output = ()>) -> Went {
        let next = self.next(reply, answers).await;
        self.over(End::Whole);
        let (body, upstream) = match next {
            Ok(next) => next,
            Err(why) => {
                talk::warn(&format!("a response can't go on: {why}"));
                return Went::Nowhere(Stuck::failed(self.asked.wire, &why));
            }
        };
        // Its client can't ask for this round alone once more, so we do.
        let sending = self.asked.ask(&upstream, self.cross.as_deref(), body, Repeat::WhenUnheard);
        let sent = tokio::select! {
            sent = sending => sent,
            () = left => return Went::Nowhere(Stuck::ClientLeft),
            () = self.asked.server.closing.cut() => return Went::Nowhere(Stuck::Cut),
        };
        match sent {
            Ok(response) if response.is_success() => Went::On(Box::new(response)),
            Ok(response) => Went::Nowhere(Stuck::Refused(Box::new(response))),
            Err(error) => {
                let (why, answer) = (error.to_string(), failed(self.asked.wire, &error));
                Went::Nowhere(Stuck::Failed { why, answer })
            }
        }
    }

    /// Records a round and what was given back in it, and returns the body of the next and who is asked; or says why there
    /// is none.
    async fn next(&mut self, reply: Reply, answers: Vec<Entry>) -> Result<(Bytes, Upstream), String> {
        let record = std::mem::replace(&mut self.record, Record::Nothing);
        if let Record::Call(recorded) = &record {
            self.used(recorded, &reply);
        }
        let (Some(going), Record::Call(recorded)) = (&mut self.going, record) else {
            return Err("nothing is recorded of it".into());
        };
        let server = &self.asked.server;
        going.shown.extend(visible(&reply.entry).cloned());
        // What the client was shown so far is no place that it could go on from.
        let kept = kept(server, *recorded, reply, answers, Vec::new()).await;
        let Kept { at, last, is_fork, prices, said, flight } = kept.map_err(|error| {
            unrecorded(server, &error);
            error.to_string()
        })?;
        if is_fork {
            server.metrics.forks.count();
        }
        if let (Some(last), Some(mark)) = (last, going.call.marks.iter_mut().max_by_key(|(seq, _)| *seq)) {
            // The end of what the client wants cached has moved on.
            mark.0 = last;
        }
        let saying = Saying { entries: Vec::new(), behind: Behind::Head(last), links: Vec::new() };
        let begun = match server.engine.begin(&at, saying, &going.call).await {
            Ok(Beginning::Made(begun)) => begun,
            Ok(Beginning::Unmade { why, .. }) | Err(why) => return Err(why.to_string()),
        };
        let body = match &self.cross {
            Some(cross) => cross.body(&begun.compiled.page, &going.call.target, begun.screen()),
            None => going.body(&self.asked.body, &begun.compiled.page, begun.screen()),
        };
        match body {
            Ok(body) => {
                self.record = Record::Call(Box::new(Recorded { begun: Ok(begun), prices, said, flight }));
                Ok((body, going.upstream.clone()))
            }
            Err(why) => {
                let is_left = server.engine.leave(begun).await;
                Err(is_left.map_or_else(|error| error.to_string(), |()| why.to_string()))
            }
        }
    }
}

/// Whether a body may name the tool: as it is, or with some of its letters escaped, which JSON does in one way alone.
fn may_name_tool(body: &[u8]) -> bool {
    memmem::find(body, TOOL_NAME.as_bytes()).is_some() || memmem::find(body, b"\\u").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_found_however_its_name_is_spelled() {
        for escaped in 0..1_u32 << TOOL_NAME.len() {
            let letter = |(at, letter): (usize, char)| match escaped >> at & 1 {
                1 => format!("\\u{:04x}", u32::from(letter)),
                _ => letter.to_string(),
            };
            let name: String = TOOL_NAME.chars().enumerate().map(letter).collect();
            let body = format!("{{\"name\":\"{name}\"}}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap()["name"], TOOL_NAME);
            assert!(may_name_tool(body.as_bytes()), "{body}");
        }
        assert!(!may_name_tool(br#"{"name":"read_file","text":"recto expands \\ \" \n"}"#));
    }
}
