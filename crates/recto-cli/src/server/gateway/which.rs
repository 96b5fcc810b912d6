//! Which conversation a request goes on from.
//!
//! The conversation that the client names; else the one that its provider holds; else the one whose beginning it sends,
//! by the longest that was recorded: with the client's own session mark any beginning counts, without one only a
//! beginning with a reply of ours in it, so that two clients that begin alike stay apart. What is found and was carried
//! on by somebody else, or in another way, is forked.

use super::flight::{Awaited, Flight};
use super::incoming::Incoming;
use crate::clock;
use crate::server::Server;
use crate::server::auth::Caller;
use recto::Tokenizer;
use recto::chain::{Chain, atoms};
use recto::digest::Digest;
use recto::entry::{Entry, Part, Role, Seq, Text};
use recto::wire::{Decoded, GivenMark, Wire};
use recto_engine::engine::Behind;
use recto_engine::store::Link;
use recto_engine::{At, ConversationId, Error, Opening, Store};
use serde_json::{Map, Value};
use std::hash::{BuildHasher, RandomState};

/// How many of the newest elements are looked up first; nearly always one of them is known.
const LOOKED_UP_FIRST: usize = 8;
/// How many are looked up at once after these.
const LOOKED_UP_NEXT: usize = 64;
/// How many are looked up at most.
const LOOKED_UP_MAX: usize = 4_096;
/// How much of the first words of the user is the title.
const TITLE_CHARS_MAX: usize = 80;

/// What is noted of a conversation in its client's words.
pub(super) const SAID_BY_CLIENT: [&str; 2] = ["model", "session"];

/// What came of looking.
pub(super) enum Which {
    Found(Box<Found>),
    /// An answer is coming for it that the client has heard already.
    Wait(Awaited),
    /// Somebody else is about to carry it on.
    Taken(Awaited),
    /// Something in it can't be read.
    Unreadable,
}

/// The conversation, and what of the request is new to it.
pub(super) struct Found {
    pub(super) at: At,
    pub(super) behind: Behind,
    pub(super) entries: Vec<Entry>,
    /// What will identify the log with these entries.
    pub(super) links: Vec<Digest>,
    /// Where the client marked the end of what should be cached.
    pub(super) marks: Vec<(Seq, Text)>,
    /// Whether its past was changed.
    pub(super) is_fork: bool,
    /// Whether the client has sent only what is new, and the rest is known here alone.
    pub(super) is_rest_known: bool,
    /// Nobody else carries it on meanwhile.
    pub(super) flight: Option<Flight>,
}

/// A place in a conversation that stands for the beginning of a request.
struct Hit {
    /// How many elements behind the instructions it stands for.
    elements: usize,
    links: Vec<Link>,
    /// Whether a reply of ours is among them.
    has_reply: bool,
}

/// Finds the conversation of a request that goes on from none of the [recent](recent) ones.
pub(super) async fn find<S: Store>(
    server: &Server<S>,
    caller: &Caller,
    incoming: &Incoming<'_>,
    tokenizer: Tokenizer,
) -> Result<Which, Error> {
    let hit = match &incoming.held {
        Some(held) => held_hit(server, caller, held).await?,
        // A beginning without a mark must have a reply in it, and here there can't be one.
        None if incoming.mark.is_none() && incoming.chains.len() == 1 => None,
        None => longest(server, caller, incoming, incoming.chains.len()).await?,
    };
    let named = hit.and_then(|hit| {
        let first = hit.links.iter().find(|link| is_named(incoming, link))?.clone();
        Some((hit, first))
    });
    let Some((hit, first)) = named else { return unheard(server, caller, incoming, tokenizer).await };
    let Ok(new) = incoming.read_behind(hit.elements) else {
        return Ok(Which::Unreadable);
    };
    if let Some(which) = free(server, caller, incoming, &hit, &new) {
        return Ok(which);
    }
    // All that say the same were carried on. One that lacks only the client's last words may be left.
    if incoming.held.is_none()
        && let Some(shorter) = longest(server, caller, incoming, hit.elements - 1).await?
        && let Ok(new) = incoming.read_behind(shorter.elements)
        && new.entries.iter().all(|entry| entry.role != Role::Assistant)
        && let Some(which) = free(server, caller, incoming, &shorter, &new)
    {
        return Ok(which);
    }
    let behind = Behind::Fork { of: first.conversation.clone(), upto: Some(first.seq) };
    let at = At { tenant: caller.tenant.clone(), conversation: fork_id(&first.conversation) };
    Ok(Which::Found(found(incoming, at, behind, new, Some(&hit), first.seq.next())))
}

/// Takes the conversation that was written to a moment ago, if the request goes on right there: behind the last answer
/// that is in it.
pub(super) fn recent<S: Store>(server: &Server<S>, caller: &Caller, incoming: &Incoming<'_>) -> Option<Box<Found>> {
    if incoming.held.is_some() {
        return None;
    }
    let last = incoming.chains.iter().enumerate().rev().take(LOOKED_UP_FIRST);
    let hit = last.into_iter().find_map(|(at, chain)| {
        let marked = incoming.mark.as_ref().map(|mark| chain.marked(mark));
        let take = |prefix: Digest| server.gateway.places.take(&caller.tenant, prefix);
        let plain = take(chain.digest());
        let has_reply = plain.is_some();
        let link = plain.or_else(|| marked.and_then(take))?;
        Some(Hit { elements: at + 1, links: vec![link], has_reply })
    })?;
    let new = incoming.read_behind(hit.elements).ok()?;
    if new.entries.iter().any(|entry| entry.role == Role::Assistant) {
        return None;
    }
    match free(server, caller, incoming, &hit, &new)? {
        Which::Found(found) => Some(found),
        Which::Wait(_) | Which::Taken(_) | Which::Unreadable => None,
    }
}

/// Takes a conversation that ends where the hit does, if there is one that nobody carries on.
fn free<S: Store>(
    server: &Server<S>,
    caller: &Caller,
    incoming: &Incoming<'_>,
    hit: &Hit,
    new: &Decoded,
) -> Option<Which> {
    let echoes = new.entries.first().is_some_and(|entry| entry.role == Role::Assistant);
    let mut taken = None;
    for link in hit.links.iter().filter(|link| link.head == Some(link.seq) && is_named(incoming, link)) {
        let at = At { tenant: caller.tenant.clone(), conversation: link.conversation.clone() };
        match server.gateway.flights.claim(&at) {
            // The client has the answer, and we are about to.
            Err(flight) if echoes => return Some(Which::Wait(flight)),
            Err(flight) if !flight.is_written() => taken = Some(flight),
            Err(_) => continue,
            Ok(flight) => {
                let behind = Behind::Head(Some(link.seq));
                let mut found = found(incoming, at, behind, new.clone(), Some(hit), link.seq.next());
                found.flight = Some(flight);
                return Some(Which::Found(found));
            }
        }
    }
    // Whoever takes it may be too late, and leave it for us.
    taken.map(Which::Taken)
}

/// Whether a place may be the one that is meant, by the name that the client gives.
fn is_named(incoming: &Incoming<'_>, link: &Link) -> bool {
    incoming.named.as_ref().is_none_or(|named| belongs(named, &link.conversation))
}

/// A request of which no beginning is known.
async fn unheard<S: Store>(
    server: &Server<S>,
    caller: &Caller,
    incoming: &Incoming<'_>,
    tokenizer: Tokenizer,
) -> Result<Which, Error> {
    let Ok(new) = whole(incoming) else { return Ok(Which::Unreadable) };
    let place = |id: &str| At { tenant: caller.tenant.clone(), conversation: id.into() };
    let opening = || opening(incoming, &new.entries, tokenizer);
    let Some(Ok(name)) = &incoming.named else {
        let at = place(&new_id());
        let behind = Behind::Nothing(opening());
        return Ok(Which::Found(found(incoming, at, behind, new, None, Seq(0))));
    };
    let at = place(name);
    let known = match server.engine.conversation(&at).await {
        Ok(known) => Some(known.tally.head()),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    let has_answers = new.entries.iter().any(|entry| entry.role == Role::Assistant);
    match known {
        None => {
            let behind = Behind::Nothing(opening());
            Ok(Which::Found(found(incoming, at, behind, new, None, Seq(0))))
        }
        Some(None) => Ok(Which::Found(found(incoming, at, Behind::Head(None), new, None, Seq(0)))),
        // It tells a past that is not the one we know.
        Some(Some(_)) if has_answers => {
            let behind = Behind::Fork { of: at.conversation.clone(), upto: None };
            let at = place(fork_id(&at.conversation).as_str());
            Ok(Which::Found(found(incoming, at, behind, new, None, Seq(0))))
        }
        Some(head) => only_new(server, incoming, at, head, new).await,
    }
}

/// A request of a client that names its conversation and sends only what is new. Such requests come one after the other.
async fn only_new<S: Store>(
    server: &Server<S>,
    incoming: &Incoming<'_>,
    at: At,
    head: Option<Seq>,
    new: Decoded,
) -> Result<Which, Error> {
    if let Some(flight) = server.gateway.flights.of(&at) {
        return Ok(Which::Wait(flight));
    }
    let mark = format!("only new, {}", incoming.mark.as_deref().unwrap_or_default());
    let prefix = incoming.chain().marked(&mark);
    let said = server.engine.linked(&at.tenant, vec![prefix]).await?;
    // The same again, and nobody has answered: it was said already.
    let is_repeated = said.iter().any(|link| link.conversation == at.conversation && Some(link.seq) == head);
    let new = if is_repeated { Decoded::default() } else { new };
    let mut found = found(incoming, at, Behind::Head(head), new, None, head.map_or(Seq(0), Seq::next));
    found.is_rest_known = true;
    // By what the client sends alone, only this request is found again.
    found.links = if is_repeated { Vec::new() } else { vec![prefix] };
    Ok(Which::Found(found))
}

/// Reads all that a request says, but its instructions. Reasoning is bound to what stands before it.
fn whole(incoming: &Incoming<'_>) -> Result<Decoded, recto::Error> {
    let outline = &incoming.outline;
    let is_list = |raw: &str| raw.starts_with('[');
    if incoming.wire == Wire::OpenaiChat && outline.tools.is_none_or(is_list) {
        return incoming.read_behind(0);
    }
    let mut decoded = incoming.wire.decode(incoming.text)?;
    let beside = outline
        .instructions
        .map_or(Ok(0), |raw| incoming.wire.read_instructions(raw).map(|read| read.entries.len()))?;
    let leading = beside + outline.leading;
    decoded.entries.drain(..leading.min(decoded.entries.len()));
    decoded.marks.retain(|mark| mark.entry >= leading);
    decoded.marks.iter_mut().for_each(|mark| mark.entry -= leading);
    Ok(decoded)
}

fn found(incoming: &Incoming<'_>, at: At, behind: Behind, new: Decoded, hit: Option<&Hit>, next: Seq) -> Box<Found> {
    let has_reply = hit.is_some_and(|hit| hit.has_reply);
    let chain = incoming.chain();
    let mut links = Vec::new();
    if !new.entries.is_empty() && incoming.held.is_none() {
        match (&incoming.mark, has_reply) {
            (_, true) => links.push(chain.digest()),
            (Some(mark), false) => links.push(chain.marked(mark)),
            (None, false) => {}
        }
    }
    let marks = new.marks.iter().map(|GivenMark { entry, mark }| (Seq(next.0 + *entry as u64), mark.clone()));
    let marks = marks.collect();
    let now = clock::now();
    let entries = new.entries.into_iter().map(|entry| Entry { at: entry.at.or(Some(now)), ..entry }).collect();
    let is_fork = matches!(behind, Behind::Fork { .. });
    Box::new(Found { at, behind, entries, links, marks, is_fork, is_rest_known: false, flight: None })
}

/// Looks for the longest beginning of a request that was recorded, of at most so many elements.
async fn longest<S: Store>(
    server: &Server<S>,
    caller: &Caller,
    incoming: &Incoming<'_>,
    mut upto: usize,
) -> Result<Option<Hit>, Error> {
    let (chains, mut looked_up) = (&incoming.chains, 0);
    while upto > 0 && looked_up < LOOKED_UP_MAX {
        let some = if looked_up == 0 { LOOKED_UP_FIRST } else { LOOKED_UP_NEXT };
        let from = upto.saturating_sub(some);
        let keys = |chain: &Chain| {
            let marked = incoming.mark.as_ref().map(|mark| chain.marked(mark));
            std::iter::once(chain.digest()).chain(marked)
        };
        let prefixes: Vec<Digest> = chains[from..upto].iter().rev().flat_map(keys).collect();
        let links = server.engine.linked(&caller.tenant, prefixes).await?;
        if let Some(prefix) = links.first().map(|link| link.prefix) {
            let stands_for = |at: &usize| keys(&chains[*at]).any(|key| key == prefix);
            if let Some(at) = (from..upto).rev().find(stands_for) {
                let has_reply = chains[at].digest() == prefix;
                return Ok(Some(Hit { elements: at + 1, links, has_reply }));
            }
        }
        looked_up += upto - from;
        upto = from;
    }
    Ok(None)
}

/// Looks for what a provider that remembers holds.
async fn held_hit<S: Store>(server: &Server<S>, caller: &Caller, held: &str) -> Result<Option<Hit>, Error> {
    let links = server.engine.linked(&caller.tenant, vec![held_digest(held)]).await?;
    Ok((!links.is_empty()).then_some(Hit { elements: 0, links, has_reply: true }))
}

/// Returns what identifies something that a provider holds.
pub(super) fn held_digest(held: &str) -> Digest {
    Digest::of(format!("held by the provider: {held}").as_bytes())
}

/// Returns what identifies a log with a reply of ours.
pub(super) fn answered(chain: Chain, reply: &Entry) -> Digest {
    atoms(reply).fold(chain, Chain::then).digest()
}

/// Whether a conversation is the one that is named, or went its own way from it.
fn belongs(named: &Result<String, ()>, id: &ConversationId) -> bool {
    let Ok(named) = named else { return false };
    id.as_str().strip_prefix(named.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
}

/// Returns a name for a conversation that nobody has named.
fn new_id() -> String {
    format!("c{:011x}{}", clock::now().0, drawn())
}

/// Returns a name for a conversation that goes its own way from another.
pub(super) fn fork_id(of: &ConversationId) -> ConversationId {
    let stem = of.as_str().split('~').next().unwrap_or_default();
    format!("{stem}~{}", drawn()).into()
}

/// Ten digits that others hardly draw at the same time. Should names meet, the second is refused by the store, and
/// drawn again.
fn drawn() -> String {
    // Every one of these has keys of its own.
    let number: u64 = RandomState::new().hash_one(());
    format!("{:010x}", number >> 24)
}

/// Describes a conversation by what it begins with.
fn opening(incoming: &Incoming<'_>, entries: &[Entry], tokenizer: Tokenizer) -> Opening {
    let text = entries.iter().filter(|entry| entry.role == Role::User).flat_map(|entry| entry.parts.iter());
    let mut words = text.filter_map(|part| match part {
        Part::Text { text } => Some(&**text),
        _ => None,
    });
    // What programs say of the surroundings comes in tags; the user's words don't.
    let first = words.find(|text| !text.trim_start().starts_with('<')).unwrap_or_default();
    let line = first.trim().lines().next().unwrap_or_default();
    let title = line.chars().take(TITLE_CHARS_MAX).collect();
    let mut meta = Map::from_iter([
        ("via".to_string(), Value::from("gateway")),
        ("wire".to_string(), Value::from(incoming.wire.name())),
    ]);
    let said = [incoming.model(), incoming.mark.as_deref()];
    let said = SAID_BY_CLIENT.into_iter().zip(said);
    meta.extend(said.filter_map(|(name, said)| Some((name.to_string(), Value::from(said?)))));
    Opening { title, meta, tokenizer: Some(tokenizer) }
}
