//! The gateway: a client's request becomes a page, the page goes to its provider, and the answer comes back.
//!
//! What a client says anew is on disk before anything is sent, and the answer before the client hears its end. Where
//! nothing was decided, bytes go through as they came, both ways.

// In the order a request goes through them.
mod incoming; // a request, as far as it has to be read
mod seen; // what was read of the requests before
mod which; // the conversation that it goes on from
mod places; // where conversations were written to a moment ago
mod flight; // conversations that an answer is coming for
mod call; // the call that it is: model, policy, what goes beside
mod offer; // the tool by which its model asks back what is left out
mod body; // the body that is sent
mod cross; // models that are spoken to in another format
mod relay; // the answer, passed on and recorded while it comes
mod rounds; // what the model asks back, answered unseen by the client
mod count; // tokens, counted by the provider or by us
mod upstreams; // who answers

use super::Server;
use super::auth::Caller;
use super::error::refusal;
use super::metrics::End;
use super::setup::Setup;
use super::visit::About;
use axum::body::Bytes;
use axum::http::header::{HeaderName, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use cross::Cross;
use flight::{Flight, Flights};
use incoming::Incoming;
use places::Places;
use recto::target::Prices;
use recto::wire::Wire;
use recto::{Policy, Seq};
use recto_engine::engine::{Beginning, Begun, Behind, Saying};
use recto_engine::store::BATCH_ENTRIES_MAX;
use recto_engine::upstream::{self, Credential, Forward, Repeat, Upstream};
use recto_engine::{At, Call, Error, Opening, Store};
use relay::{Relay, Said};
use rounds::Going;
use seen::Seen;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::oneshot;
use which::{Found, Which};

pub(super) use call::Known;
pub(super) use count::{count_tokens, models, wire_of};
pub(super) use seen::Glance;
pub(super) use upstreams::Upstreams;

/// The header in which a client names its conversation, and in which it is told.
const CONVERSATION: HeaderName = HeaderName::from_static("x-recto-conversation");
/// The header in which a client names the reader that it is.
const READER: HeaderName = HeaderName::from_static("x-recto-reader");
/// The header in which a client names a policy.
const POLICY: HeaderName = HeaderName::from_static("x-recto-policy");
/// The header that tells what became of the page: `as_sent`, `offered`, `compiled`, or why it was not looked at.
const PAGE: HeaderName = HeaderName::from_static("x-recto-page");
/// What is said of a conversation that is still being answered.
const BUSY: &str = "busy";
/// How often it is looked for the conversation of a request, because others carry it on at the same time.
const TRIES_MAX: usize = 8;

/// What a gateway knows from one request to the next. All of it can be found out again.
#[derive(Default)]
pub(super) struct Gateway {
    seen: Seen,
    places: Places,
    flights: Arc<Flights>,
}

/// A request of a client.
pub(super) struct Asked<S> {
    pub(super) server: Arc<Server<S>>,
    /// What held when it came.
    pub(super) setup: Arc<Setup>,
    /// What is told of it.
    pub(super) about: Arc<About>,
    pub(super) caller: Caller,
    pub(super) wire: Wire,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The body beside those before.
    pub(super) glance: Glance,
}

/// A request that is about to be sent.
struct Ready {
    upstream: Upstream,
    body: Bytes,
    record: Record,
    /// What became of its page.
    page: &'static str,
    /// What its model may ask back.
    going: Option<Box<Going>>,
    /// How it is carried over, if its model is spoken to in another format.
    cross: Option<Box<Cross>>,
}

/// Why a request is not passed on.
struct Refused {
    status: StatusCode,
    /// One word for programs.
    kind: &'static str,
    message: String,
}

/// What is recorded of the answer.
enum Record {
    /// Nothing: the request could not be understood.
    Nothing,
    /// The answer, and the call.
    Call(Box<Recorded>),
}

impl Record {
    /// The conversation, if it is known.
    fn at(&self) -> Option<&At> {
        match self {
            Record::Nothing => None,
            Record::Call(recorded) => Some(recorded.at()),
        }
    }
}

/// A call that is under way.
struct Recorded {
    /// The call, unless no page could be made for it.
    begun: Result<Box<Begun>, (At, Option<Seq>)>,
    prices: Prices,
    said: Said,
    flight: Flight,
}

/// Answers a request in a provider's format.
pub(super) async fn answer<S: Store>(asked: Asked<S>) -> Response {
    let (head, answered) = oneshot::channel();
    let (hold, wire) = (asked.server.closing.hold(), asked.wire);
    let asked = Box::new(asked);
    // On its own, so that a client who leaves doesn't leave half a record behind.
    tokio::spawn(async move {
        asked.run(head).await;
        drop(hold);
    });
    answered.await.unwrap_or_else(|_| {
        refusal(
            wire,
            StatusCode::INTERNAL_SERVER_ERROR,
            "defect",
            "the request came to nothing; this is a defect in Recto",
        )
    })
}

impl<S: Store> Asked<S> {
    /// What few requests need is boxed here and below: a future is as large as the largest thing that it may wait for, and
    /// is moved whole.
    async fn run(self: Box<Self>, mut head: oneshot::Sender<Response>) {
        let preparing = self.server.metrics.prepared.running();
        let ready = match self.ready().await {
            Ok(ready) => ready,
            Err(refused) => return drop(head.send(refused.told(self.wire))),
        };
        drop(preparing);
        let Ready { upstream, body, record, page, going, cross } = ready;
        self.server.metrics.page(page);
        self.about.continues(record.at(), page);
        // A provider that has refused for now is for the client to ask again, as it would be without us.
        let sending = self.ask(&upstream, cross.as_deref(), body, Repeat::WhenUnreached);
        let sent = tokio::select! {
            sent = sending => Some(sent),
            () = head.closed() => None,
            () = self.server.closing.cut() => None,
        };
        let wire = self.wire;
        let mut relay = Relay { asked: self, record, page, going, cross };
        match sent {
            Some(Ok(response)) => relay.pass(response, head).await,
            Some(Err(error)) => {
                Box::pin(relay.unanswered(End::Unanswered)).await;
                drop(head.send(failed(wire, &error)));
            }
            None => {
                let end = if head.is_closed() { End::ClientLeft } else { End::Cut };
                Box::pin(relay.unanswered(end)).await;
                drop(head.send(relay::closing(wire)));
            }
        }
    }

    /// Records what is said, and makes the body that is sent.
    async fn ready(&self) -> Result<Ready, Refused> {
        let server = &self.server;
        let (seen, tenant) = (&server.gateway.seen, &self.caller.tenant);
        let incoming = Incoming::read(seen, tenant, self.wire, &self.headers, &self.body, &self.glance);
        let Ok(incoming) = incoming else { return Box::pin(self.unreadable(self.model().as_deref())).await };
        if incoming.chains.is_empty() {
            return Box::pin(self.unreadable(incoming.model())).await;
        }
        if let Some(refused) = incoming.refused() {
            return Err(refused);
        }
        let upstream = self.upstream(incoming.model())?;
        let cross = self.crossing(&incoming, &upstream)?;
        let (mut call, offer) = self.call(&incoming, cross.as_deref())?;
        let Some((beginning, found, flight)) = self.begun(&incoming, &mut call).await? else {
            return Box::pin(self.unreadable(incoming.model())).await;
        };
        if found.is_fork {
            server.metrics.forks.count();
        }
        let (begun, sent, why) = match beginning {
            Beginning::Made(begun) => {
                let sent = match &cross {
                    Some(cross) => cross.sent(&begun, &call),
                    None => body::sent(&self.body, &incoming, &found, &begun, &call, offer.as_ref()),
                };
                (Ok(begun), sent, None)
            }
            Beginning::Unmade { head, why } => {
                (Err((found.at.clone(), head)), Err("as_sent; no page could be made"), Some(why))
            }
        };
        let prices = call.target.prices.clone();
        let (body, page, going) = match sent {
            Ok((body, page)) => {
                if begun.as_ref().is_ok_and(|begun| !begun.compiled.receipt.redacted.is_empty()) {
                    server.metrics.redacted.count();
                }
                let going = offer.map(|offer| Box::new(Going::new(call, offer, upstream.clone())));
                (body, page, going)
            }
            Err(page) => {
                let why = why.map_or_else(|| page.to_string(), |why| why.to_string());
                if cross.is_some() {
                    let what = "its model is spoken to in another format, and no page can be made for it";
                    return Err(Box::pin(self.pageless(begun.ok(), what, &why)).await);
                }
                if found.is_rest_known {
                    let what = "only what is new was sent, and no page can be made of the rest";
                    return Err(Box::pin(self.pageless(begun.ok(), what, &why)).await);
                }
                server.metrics.fallbacks.count();
                server.tell(|| format!("{}: sent without a page: {why}", found.at.conversation));
                let (body, page) = Box::pin(self.without_secrets(&call.policy, page)).await?;
                (body, page, None)
            }
        };
        let chain = (!found.is_rest_known).then(|| incoming.chain());
        let said = Said { wire: self.wire, chain, held: incoming.held.clone() };
        let recorded = Recorded { begun, prices, said, flight };
        Ok(Ready { upstream, body, record: Record::Call(Box::new(recorded)), page, going, cross })
    }

    /// Refuses a request that can't be sent without a page: where the client has sent only what is new, the model would
    /// not know the rest, and where it is spoken to in another format, would not understand it.
    async fn pageless(&self, begun: Option<Box<Begun>>, what: &str, why: &str) -> Refused {
        if let Some(begun) = begun
            && let Err(error) = self.server.engine.leave(begun).await
        {
            return store_failed(&error);
        }
        Refused { status: StatusCode::BAD_REQUEST, kind: "page", message: format!("{what}: {why}") }
    }

    /// Finds the conversation, appends what is new, and makes the page; nothing, if it can't be understood.
    async fn begun(
        &self,
        incoming: &Incoming<'_>,
        call: &mut Call,
    ) -> Result<Option<(Beginning, Box<Found>, Flight)>, Refused> {
        let server = &self.server;
        // Whoever names a conversation is told that it is gone; for others it is looked again, and it is found no more.
        let is_gone = |error: &Error| error.is_erased() && incoming.named.is_none();
        for _ in 0..TRIES_MAX {
            let which = match which::recent(server, &self.caller, incoming) {
                Some(found) => Ok(Which::Found(found)),
                None => Box::pin(which::find(server, &self.caller, incoming, call.target.tokenizer)).await,
            };
            let mut found = match which {
                Ok(Which::Found(found)) if found.entries.len() > BATCH_ENTRIES_MAX => return Ok(None),
                Ok(Which::Found(found)) => found,
                Ok(Which::Wait(flight)) => {
                    flight.landed().await;
                    continue;
                }
                Ok(Which::Taken(flight)) => {
                    flight.written().await;
                    continue;
                }
                Ok(Which::Unreadable) => return Ok(None),
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(store_failed(&error)),
            };
            let flight = found.flight.take().unwrap_or_else(|| server.gateway.flights.begin(&found.at));
            match self.begin(&mut found, call).await {
                Ok(begun) => {
                    flight.written();
                    let head = match &begun {
                        Beginning::Made(begun) => begun.head,
                        Beginning::Unmade { head, .. } => *head,
                    };
                    let At { tenant, conversation } = &found.at;
                    server.gateway.places.put(tenant, &found.links, conversation, head);
                    return Ok(Some((begun, found, flight)));
                }
                // Somebody else was quicker: it is looked for again, and a fork is found.
                Err(error) if error.is_head_moved() || error.is_exists() || is_gone(&error) => continue,
                Err(error) if error.is_input() => return Ok(None),
                Err(error) => return Err(store_failed(&error)),
            }
        }
        Err(busy())
    }

    /// Appends what is new, and makes the page. What was found is used up by that, and is looked for again if it fails.
    async fn begin(&self, found: &mut Found, call: &mut Call) -> Result<Beginning, Error> {
        let entries = std::mem::take(&mut found.entries);
        let behind = std::mem::replace(&mut found.behind, Behind::Head(None));
        let behind = match behind {
            Behind::Nothing(opening) => Behind::Nothing(self.described(opening, call).await?),
            behind => behind,
        };
        let saying = Saying { entries, behind, links: found.links.clone() };
        call.marks = std::mem::take(&mut found.marks);
        Box::pin(self.server.engine.begin(&found.at, saying, call)).await
    }

    /// What a conversation is called, and what is said about it, is read by many.
    async fn described(&self, opening: Opening, call: &Call) -> Result<Opening, Error> {
        let screen = self.server.engine.strict_screen(&self.caller.tenant, &call.policy.redact).await?;
        let Opening { title, mut meta, tokenizer } = opening;
        for name in which::SAID_BY_CLIENT {
            if let Some(Value::String(text)) = meta.get_mut(name)
                && let Cow::Owned(shown) = screen.text(text)
            {
                *text = shown;
            }
        }
        Ok(Opening { title: screen.text(&title).into_owned(), meta, tokenizer })
    }

    /// A body that can't be understood goes on as it came: its provider says what is wrong with it.
    async fn unreadable(&self, model: Option<&str>) -> Result<Ready, Refused> {
        self.server.metrics.unreadable.count();
        let upstream = self.upstream(model)?;
        self.readable(&upstream)?;
        let (body, page) = self.without_secrets(&self.policy()?, "as_sent; not understood").await?;
        Ok(Ready { upstream, body, record: Record::Nothing, page, going: None, cross: None })
    }

    /// The body as it came, but for what the policy redacts: where there is no page, everything is looked through as text.
    async fn without_secrets(&self, policy: &Policy, page: &'static str) -> Result<(Bytes, &'static str), Refused> {
        if policy.redact.is_nothing() {
            return Ok((self.body.clone(), page));
        }
        let Ok(text) = std::str::from_utf8(&self.body) else {
            let message = "the body is no text, so that nothing can be redacted in it".into();
            return Err(Refused { status: StatusCode::BAD_REQUEST, kind: "body", message });
        };
        let screen = self.server.engine.screen(&self.caller.tenant, &policy.redact).await;
        let screen = screen.map_err(|error| store_failed(&error))?;
        Ok(body::whole(text, &screen).map_or((self.body.clone(), page), |body| (body, body::REDACTED)))
    }

    async fn send(
        &self,
        upstream: &Upstream,
        path: &str,
        method: Method,
        body: Bytes,
        repeat: Repeat,
    ) -> Result<upstream::Response, Error> {
        let (query, headers) = (self.uri.query(), self.headers.clone());
        let credential: Credential = self.caller.credential;
        let forward = Forward { method, path, query, headers, body, credential, repeat };
        self.forward(upstream, forward).await
    }

    /// Sends something to a provider; that, and how long it takes, is counted.
    async fn forward(&self, upstream: &Upstream, mut forward: Forward<'_>) -> Result<upstream::Response, Error> {
        if Wire::ALL.into_iter().any(|wire| forward.path == cross::path(wire)) {
            self.about.trace.calling(upstream, &mut forward.headers);
        }
        let numbers = self.server.metrics.upstream(upstream.name());
        numbers.request_bytes.add(forward.body.len() as u64);
        let waiting = numbers.waited.running();
        let sent = upstream.forward(forward, &mut |_| self.server.metrics.retries.count()).await;
        drop(waiting);
        let status = sent.as_ref().map_or(0, upstream::Response::status);
        numbers.answered(status);
        self.about.trace.answered(status);
        sent
    }
}

/// Why nothing came back from a provider.
fn failed(wire: Wire, error: &Error) -> Response {
    match error.is_timed_out() {
        true => refusal(wire, StatusCode::GATEWAY_TIMEOUT, "upstream_timeout", &error.to_string()),
        false => refusal(wire, StatusCode::BAD_GATEWAY, "upstream", &error.to_string()),
    }
}

/// Nothing is sent that could not be recorded.
fn store_failed(error: &Error) -> Refused {
    if error.is_erased() {
        let message = format!("nothing was sent: {error}, and its name is not given again; name another, or none");
        return Refused { status: StatusCode::GONE, kind: "erased", message };
    }
    let status = match error.is_busy() || error.is_full() || error.is_read_only() || error.is_indeterminate() {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let message = format!("nothing was sent, because it could not be recorded: {error}");
    Refused { status, kind: "store", message }
}

fn busy() -> Refused {
    let message = "another request of this conversation is still being answered; ask again".into();
    Refused { status: StatusCode::CONFLICT, kind: BUSY, message }
}

impl Refused {
    /// Returns it as an answer.
    fn told(self, wire: Wire) -> Response {
        let mut response = refusal(wire, self.status, self.kind, &self.message);
        if self.kind == BUSY {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
