//! Entries: read in pages, appended, erased.

use super::asked::{Asked, json, limited};
use super::problem::Problem;
use crate::codes::Code;
use axum::response::Response;
use recto::entry::{EntryKind, Expiry, Millis, Origin, Part, Redaction, Status, Text};
use recto::log::Counted;
use recto::wire::Wire;
use recto::{Entry, Lane, Role, Seq, Span, Tokens};
use recto_engine::{Append, ConversationId, Expect, Store};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;

/// How many entries one page holds.
const ENTRIES_USUAL: usize = 100;
const ENTRIES_MAX: usize = 1_000;
/// How many entries one append takes.
const APPEND_MAX: usize = 1_000;
/// How many entries are erased at once.
const ERASE_MAX: u64 = 1_000;

words! {
    /// Where reading goes.
    enum Direction {
        /// Towards the newest.
        #[default]
        Forward = "forward",
        /// Towards the first.
        Back = "back",
    }
}

given! {
    /// Which entries.
    struct EntriesGiven {
        /// The first that is read: 0, or backwards the newest.
        from: Option<u64>,
        /// At most so many: 100, up to 1000.
        limit: Option<u64>,
        /// `forward` or `back`.
        order: Option<Direction>,
    }
}

told! {
    /// Entries.
    struct EntriesTold {
        /// The conversation.
        conversation: ConversationId,
        /// The entries, in the order in which they were asked for.
        entries: Vec<Row>,
        /// Where to go on, if there are more.
        next: Option<Seq>,
    }
}

told! {
    /// An entry and its place.
    struct Row {
        /// Its place.
        seq: Seq,
        /// What it costs.
        tokens: Tokens,
        /// The entry.
        entry: Entry,
    }
}

given! {
    /// An entry that is said. What is left out is as usual for its role.
    struct EntryGiven {
        /// The host's name of it.
        id: Option<String>,
        /// The section it stands in.
        section: Option<String>,
        /// Talk or trace.
        lane: Option<Lane>,
        /// Who speaks.
        role: Role,
        /// What is said, if it is nothing but text.
        text: Option<String>,
        /// What is said, part by part.
        parts: Option<Vec<Part>>,
        /// How it ended.
        status: Option<Status>,
        /// Which agent or person, where there are several.
        author: Option<String>,
        /// The execution it belongs to.
        run: Option<String>,
        /// When it happened.
        at: Option<Millis>,
        /// Whether nothing before it is shown any more.
        edge: Option<bool>,
        /// Where it came from.
        origin: Option<Origin>,
        /// What it holds, where its role doesn't tell.
        kind: Option<EntryKind>,
        /// The tools or actions whose results it holds, where it answers no call.
        tools: Option<Vec<Text>>,
        /// When it may leave the page.
        expiry: Option<Expiry>,
        /// The entries that a summary of the host's stands for.
        covers: Option<Span>,
        /// What no view may show.
        redactions: Option<Vec<Redaction>>,
        /// The host's own data.
        meta: Option<Map<String, Value>>,
        /// Fields of an imported record that have no place here.
        extra: Option<Map<String, Value>>,
    }
}

given! {
    /// What is appended: entries, or messages in a provider's words.
    struct AppendGiven {
        /// Entries, at most 1000.
        entries: Option<Vec<EntryGiven>>,
        /// Messages in the format of `wire`, at most 1000.
        messages: Option<Vec<Box<RawValue>>>,
        /// The format of `messages`: `openai_chat` if it is left out.
        wire: Option<Wire>,
        /// The newest entry that there must be; `null` for an empty log. Left out, any will do.
        #[serde(default, deserialize_with = "present")]
        after: Option<Option<Seq>>,
    }
}

told! {
    /// Where entries have gone.
    struct Appended {
        /// The conversation.
        conversation: ConversationId,
        /// The first of them.
        first: Option<Seq>,
        /// The last of them, or the newest one before if there were none.
        last: Option<Seq>,
        /// Whether they were there already, by their key.
        is_repeated: bool,
    }
}

given! {
    /// Entries whose words are erased.
    struct EraseGiven {
        /// Stretches of them, at most 1000 entries together.
        entries: Vec<SpanGiven>,
    }
}

given! {
    /// A stretch of entries.
    struct SpanGiven {
        /// The first.
        first: Seq,
        /// The last.
        last: Seq,
    }
}

impl EntryGiven {
    /// Returns the entry.
    pub(super) fn read(self) -> Result<Entry, Problem> {
        let parts = match (self.text, self.parts) {
            (Some(text), None) if self.role != Role::Tool => vec![Part::text(text)],
            (None, Some(parts)) => parts,
            (Some(_), None) => return Err(Problem::bad("an entry of role \"tool\" needs `parts` with its one result")),
            (Some(_), Some(_)) => return Err(Problem::bad("an entry has either `text` or `parts`")),
            (None, None) => return Err(Problem::bad("an entry needs `text` or `parts`")),
        };
        let usual = Entry::new(self.role, parts);
        Ok(Entry {
            id: self.id.map(Into::into),
            section: self.section.map_or_else(|| usual.section.clone(), Into::into),
            lane: self.lane.unwrap_or(usual.lane),
            status: self.status.unwrap_or(usual.status),
            author: self.author.map(Into::into),
            run: self.run.map(Into::into),
            at: self.at,
            edge: self.edge.unwrap_or(usual.edge),
            origin: self.origin.unwrap_or(usual.origin),
            kind: self.kind,
            tools: self.tools.unwrap_or_default(),
            expiry: self.expiry,
            covers: self.covers,
            redactions: self.redactions.unwrap_or_default(),
            meta: self.meta.unwrap_or_default(),
            extra: self.extra.unwrap_or_default(),
            ..usual
        })
    }
}

/// Reads a field that may be `null` and is there.
fn present<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Option<Seq>>, D::Error> {
    Option::<Seq>::deserialize(from).map(Some)
}

/// Reads entries.
pub(super) async fn read<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&told(asked, asked.query()?).await?)
}

/// Returns entries as pages may show them.
pub(super) async fn told<S: Store>(asked: &Asked<S>, given: EntriesGiven) -> Result<EntriesTold, Problem> {
    let EntriesGiven { from, limit, order } = given;
    let limit = limited(limit, ENTRIES_USUAL, ENTRIES_MAX)?;
    let (at, _) = asked.conversation().await?;
    let mut found = match order.unwrap_or_default() {
        Direction::Forward => asked.engine().read(&at, Seq(from.unwrap_or(0)), limit + 1).await?,
        Direction::Back => asked.engine().read_back(&at, from.map(|from| Seq(from).next()), limit + 1).await?,
    };
    // One more than is told says whether there are more.
    let next = found.get(limit).map(|entry| entry.seq);
    found.truncate(limit);
    Ok(EntriesTold { entries: found.iter().map(|entry| shown(entry)).collect(), conversation: at.conversation, next })
}

/// Returns one entry as pages may show it.
pub(super) async fn one<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&shown(&*found(asked).await?))
}

/// Returns one entry as it was said.
pub(super) async fn original<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let entry = found(asked).await?;
    json(&Row { seq: entry.seq, tokens: entry.cost, entry: entry.original().clone() })
}

async fn found<S: Store>(asked: &Asked<S>) -> Result<Arc<Counted>, Problem> {
    let seq = Seq(asked.number("seq")?);
    let (at, _) = asked.conversation().await?;
    let found = asked.engine().read(&at, seq, 1).await?.into_iter().find(|entry| entry.seq == seq);
    found.ok_or_else(|| Problem::not_found(format!("no entry {seq} in conversation {:?}", at.conversation.as_str())))
}

/// An entry without what is marked as secret. The record that it was imported from may say it as well, so that goes too.
fn shown(entry: &Counted) -> Row {
    let mut shown = Entry { parts: entry.shown().clone(), redactions: Vec::new(), ..entry.original().clone() };
    if !Arc::ptr_eq(entry.shown(), &entry.original().parts) {
        shown.extra = Map::new();
    }
    Row { seq: entry.seq, tokens: entry.cost, entry: shown }
}

/// Appends entries.
pub(super) async fn append<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let AppendGiven { entries, messages, wire, after } = asked.body()?;
    let (key, entries) = (asked.key()?, said(entries, messages, wire)?);
    if entries.is_empty() {
        return Err(Problem::bad("there is nothing to append: `entries` or `messages` must hold something"));
    }
    let (at, _) = asked.conversation().await?;
    let append = Append { entries, expect: after.map_or(Expect::Any, Expect::Head), key };
    let done = asked.engine().append(&at, append).await?;
    let (first, last, is_repeated) = (done.first, done.last, done.is_repeated);
    json(&Appended { conversation: at.conversation, first, last, is_repeated })
}

/// Returns what is said, in our words or a provider's.
pub(super) fn said(
    entries: Option<Vec<EntryGiven>>,
    messages: Option<Vec<Box<RawValue>>>,
    wire: Option<Wire>,
) -> Result<Vec<Entry>, Problem> {
    let count = entries.as_ref().map_or(0, Vec::len).max(messages.as_ref().map_or(0, Vec::len));
    if count > APPEND_MAX {
        return Err(Problem::of(
            Code::TooMuch,
            format!("{count} entries in one append; at most {APPEND_MAX} are taken"),
        ));
    }
    match (entries, messages) {
        (Some(_), Some(_)) => Err(Problem::bad("either `entries` or `messages`, not both")),
        (Some(entries), None) => entries.into_iter().map(EntryGiven::read).collect(),
        (None, Some(messages)) => {
            let elements: Vec<&str> = messages.iter().map(|it| it.get()).collect();
            let read = wire.unwrap_or(Wire::OpenaiChat).read_elements(&elements, None);
            Ok(read.map_err(|error| Problem::bad(format!("messages: {error}")))?.entries)
        }
        (None, None) => Ok(Vec::new()),
    }
}

/// Erases the words of entries.
pub(super) async fn erase<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let EraseGiven { entries } = asked.body()?;
    if entries.is_empty() || entries.iter().any(|span| span.first > span.last) {
        return Err(Problem::bad("entries: each stretch needs a `first` that is not behind its `last`"));
    }
    let counts = entries.iter().map(|span| (span.last.0 - span.first.0).saturating_add(1));
    if counts.fold(0_u64, u64::saturating_add) > ERASE_MAX {
        return Err(Problem::of(Code::TooMuch, format!("more than {ERASE_MAX} entries at once")));
    }
    let mut seqs: Vec<Seq> = entries.iter().flat_map(|span| (span.first.0..=span.last.0).map(Seq)).collect();
    seqs.sort_unstable();
    seqs.dedup();
    let (at, _) = asked.conversation().await?;
    json(&asked.engine().erase_entries(&at, seqs).await?)
}
