//! The store: conversations, their readers and what goes with them, kept durably.
//!
//! A handful of verbs, each one transaction, each within one tenant. A store keeps rows and knows nothing of pages: it
//! assigns places, keeps running sums, and refuses what was built on something that has changed. What the rows mean is
//! the engine's matter.

pub mod any;
pub(crate) mod bounds;
#[cfg(feature = "postgres")]
pub mod carry;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
mod rows;
pub mod sqlite;
mod vitals;

use crate::error::Error;
pub use bounds::{
    BATCH_ENTRIES_MAX, FORK_DEPTH_MAX, KEYS_MAX, LARGE_BYTES_MIN, LINKS_MAX, NAME_BYTES_MAX, RECEIPT_BYTES_MAX,
    ROWS_MAX,
};
use recto::Seq;
use recto::digest::Digest;
use recto::entry::{Millis, Text};
use recto::log::Tally;
pub use rows::{
    AccessKey, Acknowledge, Appended, Back, Batch, Commit, Conversation, ConversationId, DecisionKind, DecisionRow,
    Decisions, EraseEntries, Erased, Expect, ForkPoint, Forks, Indexed, Link, NewConversation, NewRow, OpenCall,
    Posting, ReaderName, ReaderRow, Record, RecordKind, Remains, Row, State, Tenant, Termed, TurnRow, Turns, Unopened,
    Upto,
};
use std::future::Future;
pub use vitals::{Connections, Vitals};

/// Where conversations are kept. Every call stays within one tenant.
pub trait Store: Send + Sync + 'static {
    /// Makes a conversation. The same name once more is an error of kind *exists*, also after an erase.
    ///
    /// A fork sees the other's rows up to its place, the contents, and of each reader the calls whose head is not
    /// beyond it. Of the decisions it sees all if the place is the other's head, else those made up to the last of
    /// these calls. Records and keys are not inherited. A place beyond the other's head is not found.
    fn create(&self, tenant: &Tenant, new: NewConversation)
    -> impl Future<Output = Result<Conversation, Error>> + Send;

    /// Returns a conversation's row; one that was erased says so in its state.
    fn conversation(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
    ) -> impl Future<Output = Result<Conversation, Error>> + Send;

    /// Says anew what a person calls a conversation, and what data of the host's goes with it.
    fn describe(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        title: Text,
        meta: Text,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Lists conversations in the order of their names, after one of them, without those that were erased.
    fn list(
        &self,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        rows: usize,
    ) -> impl Future<Output = Result<Vec<Conversation>, Error>> + Send;

    /// Appends entries, and makes the conversation first where the batch says so; one of this name that exists is an
    /// error then. A known key is answered before anything else is looked at; a place that is not behind all
    /// others is a conflict. The first place is 0.
    fn append(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        batch: Batch,
    ) -> impl Future<Output = Result<Appended, Error>> + Send;

    /// Reads rows from the newest back; the row that reaches the tokens is the last one.
    fn back(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        back: Back,
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send;

    /// Reads rows in order, from a place on.
    fn forth(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        from: Seq,
        rows: usize,
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send;

    /// Reads single rows, each once, in the order of their places; those that don't exist are left out.
    fn rows(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        seqs: Vec<Seq>,
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send;

    /// Returns, for each place, what the log held up to and with it: nothing before the first row, all from the head
    /// on.
    fn tallies(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        at: Vec<Seq>,
    ) -> impl Future<Output = Result<Vec<Tally>, Error>> + Send;

    /// Returns the place of a strand's oldest entry at or after a place, in logarithmic time.
    fn first(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        strand: usize,
        from: Seq,
    ) -> impl Future<Output = Result<Option<Seq>, Error>> + Send;

    /// Returns a reader's row; one that nobody wrote to has made no calls.
    fn reader(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
    ) -> impl Future<Output = Result<ReaderRow, Error>> + Send;

    /// Lists the readers of a conversation, in the order of their names.
    fn readers(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
    ) -> impl Future<Output = Result<Vec<(ReaderName, ReaderRow)>, Error>> + Send;

    /// Reads decisions, in the order of their numbers.
    fn decisions(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Decisions,
    ) -> impl Future<Output = Result<Vec<DecisionRow>, Error>> + Send;

    /// Reads acknowledged calls, in order.
    fn turns(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Turns,
    ) -> impl Future<Output = Result<Vec<TurnRow>, Error>> + Send;

    /// Records decisions, and that a call is open. If the reader's row is not as expected, that is a conflict; numbers
    /// that don't go on from there are a defect.
    fn commit(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        commit: Commit,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Returns an open call.
    fn open(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> impl Future<Output = Result<Option<OpenCall>, Error>> + Send;

    /// Records that an open call was answered, or one that needed no opening: its turn, what was said, what a provider holds; all of it or nothing.
    /// Other open calls of that turn are dropped. A retry with the same key is answered with the first result.
    fn acknowledge(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        acknowledge: Acknowledge,
    ) -> impl Future<Output = Result<Appended, Error>> + Send;

    /// Forgets an open call; whether there was one.
    fn abandon(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Reads what is referred to by digest; what doesn't exist is left out.
    fn contents(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        digests: Vec<Digest>,
    ) -> impl Future<Output = Result<Vec<(Digest, Text)>, Error>> + Send;

    /// Writes a record; if its version is not the next one, that is a conflict.
    fn keep(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        record: Record,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Writes a record as it was kept elsewhere, unless that version or a newer one is there; for an import.
    fn adopt(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        record: Record,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Reads all records of a kind, in the order of their keys.
    fn kept(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        kind: RecordKind,
    ) -> impl Future<Output = Result<Vec<Record>, Error>> + Send;

    /// Returns the conversations that go on from this one directly and are not erased, in the order of their names.
    fn forks(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
    ) -> impl Future<Output = Result<Vec<ConversationId>, Error>> + Send;

    /// Erases a conversation: fences late writers, deletes everything, and leaves its name.
    fn erase(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        forks: Forks,
    ) -> impl Future<Output = Result<Erased, Error>> + Send;

    /// Erases the bodies of entries, and what decisions quote of them. An entry that a fork shares goes for all; a
    /// place or decision that doesn't exist is not found, and nothing changes. Entries that were erased before don't
    /// count.
    fn erase_entries(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        erase: EraseEntries,
    ) -> impl Future<Output = Result<Erased, Error>> + Send;

    /// Finds places of logs by the first of these prefixes that is known, each of which identifies everything up to its
    /// place: at most [`LINKS_MAX`], in conversations that are not erased, those where it is the newest entry first.
    fn linked(&self, tenant: &Tenant, prefixes: Vec<Digest>) -> impl Future<Output = Result<Vec<Link>, Error>> + Send;

    /// Makes entries findable by their terms, in the order of their places, and returns how far that has come; those up to
    /// there are passed over, so that it can be done again. It is no change of the conversation. An erase of an entry may
    /// undo all of it.
    fn index(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        texts: Vec<Termed>,
    ) -> impl Future<Output = Result<Indexed, Error>> + Send;

    /// Returns how far the index has come.
    fn indexed(&self, tenant: &Tenant, id: &ConversationId) -> impl Future<Output = Result<Indexed, Error>> + Send;

    /// Finds entries by terms, for each the newest first and at most so many.
    fn postings(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        terms: Vec<Text>,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Posting>, Error>> + Send;

    /// Returns something that was drawn at random when the store was made, and that stays: nobody outside can know it.
    fn secret(&self) -> impl Future<Output = Result<Digest, Error>> + Send;

    /// Adds a key. One of this name is an error of kind *exists*, also after it was revoked.
    fn add_key(&self, key: AccessKey) -> impl Future<Output = Result<(), Error>> + Send;

    /// Lists all keys of all tenants, in the order of their names.
    fn keys(&self) -> impl Future<Output = Result<Vec<AccessKey>, Error>> + Send;

    /// Returns a key by what identifies it, also one that was revoked.
    fn key(&self, hash: Digest) -> impl Future<Output = Result<Option<AccessKey>, Error>> + Send;

    /// Revokes a key by its name, for good; whether there was one that still opened something.
    fn revoke_key(&self, name: &str, at: Millis) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Returns what is measured of it, for whoever looks after it.
    fn vitals(&self) -> Vitals {
        Vitals::default()
    }
}
