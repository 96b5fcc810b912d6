//! What a store keeps, as rows: conversations, entries, readers, decisions, calls, records; and what can be asked of it.

use recto::digest::Digest;
use recto::entry::{Millis, Text};
use recto::log::Tally;
use recto::{Entry, Seq, Tokens};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Text);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the name as shared text.
            pub fn text(&self) -> &Text {
                &self.0
            }
        }

        impl<T: Into<Text>> From<T> for $name {
            fn from(text: T) -> $name {
                $name(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type! {
    /// Whose data it is; nothing of one tenant can be reached by another.
    Tenant
}
name_type! {
    /// The name of a conversation within its tenant.
    ConversationId
}
name_type! {
    /// The name of a reader within its conversation.
    ReaderName
}

impl Default for Tenant {
    /// Returns the tenant of a store that has only one.
    fn default() -> Tenant {
        Tenant::from("local")
    }
}

/// What becomes of a conversation's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It takes entries.
    Live,
    /// Its rows are being erased; nothing can be written any more.
    Erasing,
    /// Nothing is left but its name.
    Erased,
}

/// A conversation that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewConversation {
    /// Its name.
    pub id: ConversationId,
    /// The name of what counts its entries.
    pub tokenizer: Text,
    /// What a person calls it.
    pub title: Text,
    /// The host's own data, as JSON text.
    pub meta: Text,
    /// When it was made.
    pub at: Millis,
    /// Where it goes on from, if it is a fork.
    pub from: Option<ForkPoint>,
}

/// Where a fork leaves the conversation that it goes on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// The other conversation.
    pub conversation: ConversationId,
    /// The last entry that both have; `None` is none. Of a place where there is no entry, it is the one before.
    pub upto: Option<Seq>,
}

/// A conversation as its row tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Its name.
    pub id: ConversationId,
    /// What became of it.
    pub state: State,
    /// The name of what counts its entries.
    pub tokenizer: Text,
    /// What a person calls it.
    pub title: Text,
    /// The host's own data, as JSON text.
    pub meta: Text,
    /// Where it goes on from, if it is a fork.
    pub from: Option<ForkPoint>,
    /// What it holds; its head is the tally's.
    pub tally: Tally,
    /// Rises with everything that is written to it: entries, decisions, calls, records.
    pub version: u64,
    /// When it was made.
    pub created: Millis,
    /// When something was last written.
    pub updated: Millis,
}

/// An entry that is to be appended.
#[derive(Clone, Debug)]
pub struct NewRow {
    /// Its place, if the caller has one: behind all others. The places between stay free for good.
    pub seq: Option<Seq>,
    /// The fact itself, for its section, lane, role and edge.
    pub entry: Entry,
    /// What it costs in all.
    pub cost: Tokens,
    /// What was worked out about it, as text.
    pub counts: String,
    /// What identifies its body.
    pub hash: Digest,
    /// How long its body is, in bytes, large texts included.
    pub bytes: u64,
    /// Its body as JSON text, without large texts.
    pub body: String,
    /// Large texts that it refers to by their digests.
    pub large: Vec<(Digest, Text)>,
    /// Whether its body was erased before it came here; hash and length are those it had.
    pub is_erased: bool,
}

/// A stored entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its place.
    pub seq: Seq,
    /// The number of its strand in the tally.
    pub strand: usize,
    /// What the log holds up to and with it.
    pub tally: Tally,
    /// What was worked out about it, as text.
    pub counts: String,
    /// What identifies its body as it was appended.
    pub hash: Digest,
    /// How long its body was, in bytes.
    pub bytes: u64,
    /// Its body as JSON text, without large texts; what is left of it, if it was erased.
    pub body: String,
    /// The large texts that it refers to.
    pub large: Vec<(Digest, Text)>,
    /// Whether its body was erased.
    pub is_erased: bool,
}

/// What must hold for an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// This is the newest entry.
    Head(Option<Seq>),
    /// Nothing: it goes behind whatever is there.
    Any,
}

/// Entries that are appended at once, or not at all.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What must hold.
    pub expect: Expect,
    /// The caller's name for this append, and what identifies it: the same again is answered with the first result,
    /// another body under the same key is a conflict.
    pub key: Option<(Text, Digest)>,
    /// The entries, in order; an append of none is one.
    pub rows: Vec<NewRow>,
    /// When it happens.
    pub at: Millis,
    /// What goes with it, such as what a provider holds now; one that has changed is a conflict.
    pub records: Vec<Record>,
    /// The version that the conversation must have, if its writer goes by what it knows of it.
    pub version: Option<u64>,
    /// What identifies, to somebody who knows only what was said, the log up to and with the last of these entries.
    pub links: Vec<Digest>,
    /// The conversation that is made first, if it is to begin with this batch.
    pub create: Option<Box<NewConversation>>,
}

impl Batch {
    /// Returns a batch of entries with nothing optional in it.
    pub fn new(expect: Expect, rows: Vec<NewRow>, at: Millis) -> Batch {
        Batch { expect, key: None, rows, at, records: Vec::new(), version: None, links: Vec::new(), create: None }
    }
}

/// A place of a log that was found by what identifies everything up to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What identifies it.
    pub prefix: Digest,
    /// The conversation.
    pub conversation: ConversationId,
    /// The last entry that it stands for.
    pub seq: Seq,
    /// The newest entry of the conversation now.
    pub head: Option<Seq>,
}

/// A key that lets somebody in; the key itself is nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    /// What identifies the key.
    pub hash: Digest,
    /// What a person calls it; no two keys ever have the same name.
    pub name: Text,
    /// Whose conversations it opens.
    pub tenant: Tenant,
    /// The policy of its requests, by name, if it has one.
    pub policy: Option<Text>,
    /// When it was made.
    pub at: Millis,
    /// Since when it opens nothing any more.
    pub revoked: Option<Millis>,
}

/// Where a batch has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Appended {
    /// Its first entry; `None` if it had none.
    pub first: Option<Seq>,
    /// Its last entry, or the newest one before it if it had none.
    pub last: Option<Seq>,
    /// Whether it was there already, by its key.
    pub is_repeated: bool,
}

/// A stretch of rows to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Back {
    /// The strands, by their numbers; empty is all.
    pub strands: Vec<usize>,
    /// Only rows before this place; `None` is from the newest.
    pub below: Option<Seq>,
    /// At most so many rows.
    pub rows: usize,
    /// No further once so many tokens were read.
    pub tokens: Tokens,
}

/// A decision, or the taking back of one, as a row of its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRow {
    /// Its number among the reader's, from 1.
    pub ordinal: u64,
    /// The call before which it was made.
    pub turn: u64,
    /// What kind of change it is.
    pub kind: DecisionKind,
    /// The first entry it speaks of; of a revert, the decision's number.
    pub about: u64,
    /// The decision as JSON text; empty for a revert.
    pub body: String,
}

/// What a decision does, as far as reading needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecisionKind {
    /// It speaks of one entry or part.
    Entry,
    /// A floor.
    Floor,
    /// A pin.
    Pin,
    /// A cut.
    Cut,
    /// An expansion.
    Expand,
    /// Another decision is taken back.
    Revert,
}

/// A reader's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderRow {
    /// How many calls were acknowledged.
    pub turns: u64,
    /// The number of its newest decision or revert.
    pub ordinal: u64,
}

/// Up to which point a reader is read: how it was when a ticket was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upto {
    /// Calls before this one.
    pub turn: u64,
    /// Decisions and reverts up to this one.
    pub ordinal: u64,
}

impl Upto {
    /// As it is.
    pub const NOW: Upto = Upto { turn: i64::MAX as u64, ordinal: i64::MAX as u64 };
}

/// Removes the cuts that were made before a call, except the newest of all cuts.
pub(crate) fn remove_old_cuts(chosen: &mut BTreeMap<u64, DecisionRow>, turn: u64) {
    let newest = chosen.values().rev().find(|row| row.kind == DecisionKind::Cut).map(|row| row.ordinal);
    chosen.retain(|ordinal, row| row.kind != DecisionKind::Cut || row.turn >= turn || Some(*ordinal) == newest);
}

/// Which decisions to read. Reverts are always among them, as far as they take back one that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decisions {
    /// The newest floors, at most so many, and the reverts of them.
    Floors(usize),
    /// Those of kind *entry* and expansions about a place or a later one, all pins, cuts from a call on and the newest
    /// before it, all expansions after a decision, and the reverts of all these. Floors are not among them.
    Standing {
        /// The place.
        from: Seq,
        /// The call.
        turn: u64,
        /// The decision.
        since: u64,
    },
    /// Those of any kind that are about these entries.
    About(Vec<Seq>),
    /// All after this one, in order, reverts as rows of their own; at most so many.
    After {
        /// The last one that is known.
        ordinal: u64,
        /// How many.
        rows: usize,
    },
}

/// An acknowledged call.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRow {
    /// Its number.
    pub turn: u64,
    /// The newest entry when its page was made, or that of the call before if that was newer.
    pub head: Option<Seq>,
    /// How many tokens less than all that was said the calls up to and with it have sent.
    pub spared: Tokens,
    /// What its page was made from, as JSON text of at most [`RECEIPT_BYTES_MAX`](super::RECEIPT_BYTES_MAX) bytes.
    pub receipt: String,
    /// When it was acknowledged.
    pub at: Millis,
}

/// Which acknowledged calls to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Those whose head is this entry or a newer one.
    From(Seq),
    /// The first of each whose head is this entry or a newer one; calls that don't exist are left out.
    FirstWith(Vec<Seq>),
    /// One call.
    One(u64),
    /// All from this one on, at most so many.
    Since {
        /// The first.
        turn: u64,
        /// How many.
        rows: usize,
    },
}

/// What a call leaves behind when its page is made.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The reader's row as it was when the plan was made; if it has changed, nothing is written.
    pub expect: ReaderRow,
    /// What was decided, numbered on from there.
    pub decisions: Vec<DecisionRow>,
    /// What is referred to by digest, and not known to be there.
    pub contents: Vec<(Digest, Text)>,
    /// Calls that were acknowledged elsewhere, numbered on from there; for an import.
    pub turns: Vec<TurnRow>,
    /// Entries whose bodies go with it, because what was decided is all that is to be kept of them; none that another
    /// conversation shares.
    pub erase: Vec<Remains>,
    /// The call that is open now.
    pub open: Option<OpenCall>,
    /// What goes with it, such as the session that it goes on with; one that has changed is a conflict.
    pub records: Vec<Record>,
    /// When it happens.
    pub at: Millis,
}

/// A call whose page was made, and that was not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The digest of its ticket.
    pub ticket: Digest,
    /// Its number.
    pub turn: u64,
    /// What its page was made from, as JSON text of at most [`RECEIPT_BYTES_MAX`](super::RECEIPT_BYTES_MAX) bytes.
    pub receipt: String,
    /// What is said with it, as JSON text, if it isn't in the log yet.
    pub input: Option<String>,
}

/// A call that was answered.
#[derive(Clone, Debug)]
pub struct Acknowledge {
    /// The digest of its ticket, as it was opened; of a call that never was, it counts for nothing.
    pub ticket: Digest,
    /// What goes with a call that was never opened.
    pub unopened: Option<Unopened>,
    /// The call itself; its number must be the reader's next.
    pub turn: TurnRow,
    /// What was said and answered, and what a provider holds now.
    pub produced: Batch,
}

/// A call that is recorded only when it is answered, because nothing was decided for it.
#[derive(Clone, Debug)]
pub struct Unopened {
    /// What the reader's row must be.
    pub expect: ReaderRow,
    /// What the receipt refers to by digest.
    pub contents: Vec<(Digest, Text)>,
}

/// Something that is kept under a key and replaced as a whole: a session, a note, a want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is.
    pub kind: RecordKind,
    /// Its key.
    pub key: Text,
    /// How often it was written. To replace one, its version must be one more than what is there; 1 makes one.
    pub version: u64,
    /// JSON text.
    pub body: Text,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// What a provider that remembers holds.
    Session,
    /// A summary that was made.
    Note,
    /// A summary that would have helped.
    Want,
    /// What a conversation remembers of the secrets that it was told.
    Secrets,
}

/// What an erase of a conversation has to do with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forks {
    /// Refuse, with their names, if others go on from it.
    Refuse,
    /// Erase them too.
    Erase,
}

/// How much was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Erased {
    /// The conversations.
    pub conversations: Vec<ConversationId>,
    /// How many entries.
    pub entries: u64,
}

/// An erase of single entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EraseEntries {
    /// What stays of each.
    pub remains: Vec<Remains>,
    /// Decisions that quote them, also those of forks, as they are to read from now on.
    pub decisions: Vec<(ConversationId, ReaderName, DecisionRow)>,
}

/// What is left of an entry whose body is erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    /// Its place.
    pub seq: Seq,
    /// The body that stays: its shape without its words.
    pub body: String,
    /// What was worked out about it.
    pub counts: String,
}

/// An entry, and the terms that it can be found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termed {
    /// Its place.
    pub seq: Seq,
    /// The terms, each once; none where it is not to be found.
    pub terms: Vec<Text>,
}

/// How far the index of a conversation has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// The last entry that can be found; for a fork, those of the conversation that it goes on from count.
    pub upto: Option<Seq>,
    /// How many entries of its own can be found.
    pub texts: u64,
}

/// The entries that hold a term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posting {
    /// Where they stand, the newest first.
    pub seqs: Vec<Seq>,
    /// Whether there are more.
    pub is_cut: bool,
}
