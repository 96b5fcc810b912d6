//! Events: what has happened to a log and its reader, told in order.
//!
//! Nothing is stored for them: they are read off the log, the reader's decisions and its acknowledged calls. For each
//! call they tell the entries that came, then what was decided before it, in the order of the decisions, then that it
//! was answered. An expiry is told twice: that something has expired, and what became of it; if there should have been a
//! summary and is none, that is told between the two.
//!
//! ```
//! use recto::event::{Since, events};
//! use recto::{Entry, Log, Reader, Tokenizer};
//!
//! let (mut log, reader) = (Log::counted_by(Tokenizer::Chars4), Reader::new("main"));
//! log.append(Entry::user("Hello?"))?;
//! let told: Vec<String> = events(&reader, &log, Since::START).map(|event| event.to_string()).collect();
//! assert_eq!(told, ["[Turn 0] added: user message"]);
//! # Ok::<(), recto::Error>(())
//! ```

use crate::edit::{Change, Decision, Reason, Turn};
use crate::entry::{EntryId, EntryKind, Role, Seq, Text};
use crate::log::Log;
use crate::reader::Reader;
use crate::tokens::Tokens;
use serde::Serialize;
use std::fmt;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// What.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// The call before which it happened; of an answer, the call itself.
    pub turn: Turn,
    /// The entry it is about, or of a floor the first one above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// The host's name of that entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<EntryId>,
    /// The number of the decision or revert among the reader's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<u64>,
    /// Why.
    pub why: Why,
    /// What it cost before.
    pub before: Tokens,
    /// What it costs now.
    pub after: Tokens,
    /// Whether the original can be asked for.
    pub can_expand: bool,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// An entry was appended.
    Added,
    /// An entry grew too old; what became of it comes next.
    Expired,
    /// Less of an entry is shown.
    Compacted,
    /// An entry, or a part of it, is not shown any more.
    Removed,
    /// Nothing below a place is shown but what is named.
    Floor,
    /// What waited behind a place was reduced at once; each of these changes is told by itself.
    Cut,
    /// A call that was shown unanswered stays so.
    Settled,
    /// A stretch is never to be reduced.
    Pinned,
    /// An original is shown again, on request.
    Expanded,
    /// A request for an original was refused.
    ExpandRefused,
    /// Something could not be shortened as it was meant to be.
    CompactionFailed,
    /// A decision was taken back.
    Reverted,
    /// A call was answered.
    Acked,
    /// What a provider held can't be built upon any more.
    SessionInvalidated,
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EventKind::Added => "added",
            EventKind::Expired => "expired",
            EventKind::Compacted => "compacted",
            EventKind::Removed => "removed",
            EventKind::Floor => "floor",
            EventKind::Cut => "cut",
            EventKind::Settled => "settled",
            EventKind::Pinned => "pinned",
            EventKind::Expanded => "expanded",
            EventKind::ExpandRefused => "expand_refused",
            EventKind::CompactionFailed => "compaction_failed",
            EventKind::Reverted => "reverted",
            EventKind::Acked => "acked",
            EventKind::SessionInvalidated => "session_invalidated",
        })
    }
}

/// Why something has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "because", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// Somebody said something, or something came.
    Appended {
        /// Who speaks.
        role: Role,
        /// What it holds, if it is no words.
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<EntryKind>,
        /// How many results it holds.
        results: usize,
    },
    /// It was decided so, for this reason.
    Decided {
        /// The reason.
        reason: Reason,
    },
    /// A model has answered.
    Answered,
    /// A host says so.
    Told {
        /// What it says.
        what: Text,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Appended { kind: Some(kind), results, .. } if *results > 1 => write!(f, "{results} {kind}s"),
            Why::Appended { kind: Some(kind), .. } => write!(f, "{kind}"),
            Why::Appended { kind: None, role, .. } => write!(f, "{role} message"),
            Why::Decided { reason } => write!(f, "{reason}"),
            Why::Answered => write!(f, "the call was answered"),
            Why::Told { what } => write!(f, "{what}"),
        }
    }
}

impl Event {
    /// Returns an event that no log or reader tells of, such as a refusal.
    pub fn told(kind: EventKind, turn: Turn, seq: Option<Seq>, what: impl Into<Text>) -> Event {
        let why = Why::Told { what: what.into() };
        Event { seq, ..Event::of(kind, turn, why) }
    }

    /// Returns how many tokens it saves in every call from then on.
    pub fn saved(&self) -> Tokens {
        self.before - self.after
    }

    fn of(kind: EventKind, turn: Turn, why: Why) -> Event {
        let (before, after) = (Tokens(0), Tokens(0));
        Event { kind, turn, seq: None, id: None, ordinal: None, why, before, after, can_expand: false }
    }
}

impl fmt::Display for Event {
    /// Writes the turn, what has happened, and why.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[Turn {}] {}: {}", self.turn.0, self.kind, self.why)
    }
}

/// How much has been told already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// Decisions and reverts up to this one.
    pub ordinal: u64,
    /// Answers to all calls before this one.
    pub turn: Turn,
    /// Entries below this one.
    pub next: Seq,
}

impl Since {
    /// Nothing has been told.
    pub const START: Since = Since { ordinal: 0, turn: Turn(0), next: Seq(0) };

    /// Returns the mark at which all that has happened so far is told.
    pub fn now(reader: &Reader, log: &Log) -> Since {
        Since { ordinal: reader.ordinal(), turn: reader.turn(), next: log.head().map_or(Seq(0), Seq::next) }
    }
}

/// The first entry that no call before this one had in view.
fn first_unseen(reader: &Reader, turn: Turn) -> Seq {
    let before = turn.0.checked_sub(1).and_then(|call| reader.head_at(Turn(call))?);
    before.map_or(Seq(0), Seq::next)
}

/// Returns what has happened since a mark, in order.
pub fn events<'a>(reader: &'a Reader, log: &'a Log, since: Since) -> impl Iterator<Item = Event> + 'a {
    let rows = rows(reader, since.ordinal);
    (since.turn.0..=reader.turn().0).flat_map(move |turn| {
        let answered = reader.head_at(Turn(turn));
        let last = answered.unwrap_or_else(|| log.head());
        let came = added(log, first_unseen(reader, Turn(turn)).max(since.next), last, Turn(turn));
        let from = rows.partition_point(|row| row.turn.0 < turn);
        let upto = rows.partition_point(|row| row.turn.0 <= turn);
        let decided: Vec<Event> = rows[from..upto].iter().flat_map(|row| told(row, reader, log)).collect();
        let acked = answered.map(|_| Event::of(EventKind::Acked, Turn(turn), Why::Answered));
        came.chain(decided).chain(acked)
    })
}

/// The entries of a stretch, as they came.
fn added(log: &Log, first: Seq, last: Option<Seq>, turn: Turn) -> impl Iterator<Item = Event> + '_ {
    let end = last.map_or(first.0, |last| last.0.saturating_add(1));
    (first.0..end).filter_map(move |seq| {
        let entry = log.get(Seq(seq))?;
        let (role, kind) = (entry.role(), entry.original().kind_held());
        let results = if kind.is_some() { entry.original().tools.len().max(1) } else { 0 };
        let event = Event::of(EventKind::Added, turn, Why::Appended { role, kind, results });
        Some(Event { seq: Some(entry.seq), id: entry.original().id.clone(), after: entry.cost, ..event })
    })
}

/// A decision, or the revert of one.
struct Row<'a> {
    ordinal: u64,
    turn: Turn,
    decision: &'a Decision,
    is_revert: bool,
}

/// What was decided and taken back since, in that order.
fn rows(reader: &Reader, since: u64) -> Vec<Row<'_>> {
    let made = reader.decisions().iter().map(|decision| Row {
        ordinal: decision.ordinal,
        turn: decision.turn,
        decision,
        is_revert: false,
    });
    let reverts = reader.decisions().iter().filter_map(|decision| {
        let revert = decision.reverted?;
        Some(Row { ordinal: revert.ordinal, turn: revert.turn, decision, is_revert: true })
    });
    let mut rows: Vec<Row<'_>> = made.chain(reverts).filter(|row| row.ordinal > since).collect();
    rows.sort_by_key(|row| row.ordinal);
    rows
}

/// What there is to tell of a decision.
fn told(row: &Row<'_>, reader: &Reader, log: &Log) -> Vec<Event> {
    let edit = &row.decision.edit;
    let seq = edit.change.seq();
    let about = |kind: EventKind| Event {
        seq: Some(seq),
        id: log.get(seq).and_then(|entry| entry.original().id.clone()),
        ordinal: Some(row.ordinal),
        ..Event::of(kind, row.turn, Why::Decided { reason: edit.why.clone() })
    };
    if row.is_revert {
        return vec![Event { before: edit.after, after: edit.before, ..about(EventKind::Reverted) }];
    }
    // What a cut saves is told by each of its changes; of itself it costs what is written again.
    let before = if matches!(edit.change, Change::Cut { .. }) { edit.after } else { edit.before };
    let after = edit.after;
    let reduces = matches!(edit.change, Change::Hide(_) | Change::Omit(_) | Change::Replace { .. });
    let change = Event { before, after, can_expand: reduces, ..about(kind_of(&edit.change, &edit.why)) };
    let is_note = matches!(edit.why, Reason::Summarized { .. });
    if (is_note || has_expired(&edit.why)) && is_rest(row.decision, reader) {
        return Vec::new();
    }
    if !has_expired(&edit.why) {
        return vec![change];
    }
    let told = |kind: EventKind| Event { before, after: before, can_expand: true, ..about(kind) };
    let failed = matches!(edit.why, Reason::NotCondensed { .. }).then(|| told(EventKind::CompactionFailed));
    [told(EventKind::Expired)].into_iter().chain(failed).chain([change]).collect()
}

fn kind_of(change: &Change, why: &Reason) -> EventKind {
    match change {
        Change::Replace { .. } if matches!(why, Reason::Removed { .. }) => EventKind::Removed,
        Change::Replace { .. } => EventKind::Compacted,
        Change::Hide(_) | Change::Omit(_) => EventKind::Removed,
        Change::Floor(_) => EventKind::Floor,
        Change::Settle { .. } => EventKind::Settled,
        Change::Pin(_) => EventKind::Pinned,
        Change::Expand { .. } => EventKind::Expanded,
        Change::Cut { .. } => EventKind::Cut,
    }
}

fn has_expired(why: &Reason) -> bool {
    why.expiry_limit().is_some()
}

/// Whether a decision only takes out what the stub of the one before it stands for as well.
fn is_rest(decision: &Decision, reader: &Reader) -> bool {
    let all = reader.decisions();
    let at = all.binary_search_by_key(&decision.ordinal, |it| it.ordinal).unwrap_or(0);
    let is_part = matches!(&decision.edit.change, Change::Omit(at) if at.part > 0);
    let before = at.checked_sub(1).map(|at| &all[at]).filter(|_| is_part);
    before.is_some_and(|it| {
        let is_same_entry = it.edit.change.seq() == decision.edit.change.seq() && it.edit.by == decision.edit.by;
        is_same_entry && it.turn == decision.turn && it.edit.why == decision.edit.why
    })
}

/// Tells a host what is new, if it wants to know.
pub struct Listener<'f> {
    since: Since,
    tell: Option<Box<Tell<'f>>>,
}

/// The host's function.
type Tell<'f> = dyn FnMut(&Event) + Send + 'f;

impl<'f> Listener<'f> {
    /// Returns a listener that calls a function with every event, from the first on.
    pub fn new(tell: impl FnMut(&Event) + Send + 'f) -> Listener<'f> {
        Listener { since: Since::START, tell: Some(Box::new(tell)) }
    }

    /// Returns a listener that does nothing.
    pub fn none() -> Listener<'f> {
        Listener { since: Since::START, tell: None }
    }

    /// Tells what has happened since it was called last.
    pub fn hear(&mut self, reader: &Reader, log: &Log) {
        let Some(tell) = &mut self.tell else { return };
        events(reader, log, self.since).for_each(|event| tell(&event));
        self.since = Since::now(reader, log);
    }
}

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({:?})", self.tell.as_ref().map(|_| self.since))
    }
}
