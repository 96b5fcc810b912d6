//! Conversations in PostgreSQL: many servers, one truth.
//!
//! A verb is one short transaction. A conversation's row is the only thing that writers wait for, and only those of the
//! same conversation: it is locked first, and what is written goes with the commit in one go. Nothing is kept in memory
//! between transactions, or in a connection, so any number of processes may use one database, with a pooler between.

mod carry;
mod check;
mod erase;
mod fault;
mod fork;
mod found;
mod hosts;
mod index;
mod insert;
mod keys;
mod lens;
mod links;
mod pool;
mod prepared;
mod read;
mod schema;
mod settings;
mod tls;
mod transaction;
mod value;
mod write;

pub use schema::Warning;
pub use settings::Settings;
pub use transaction::Doubts;

use super::sqlite::found::integer;
use super::*;
use crate::error::Kind;
use found::Found;
use pool::{Db, Pool};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use transaction::Transactions;
use write::Over;

/// A store in a PostgreSQL database. Clones share everything.
#[derive(Clone)]
pub struct Postgres {
    transactions: Arc<Transactions>,
    warnings: Arc<[Warning]>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Postgres({})", self.settings())
    }
}

impl Postgres {
    /// Opens a store, and makes its tables if there are none.
    pub async fn open(settings: Settings) -> Result<Postgres, Error> {
        let warnings = schema::prepare(&settings).await?.into();
        let transactions = Arc::new(Transactions::over(Arc::new(Pool::of(settings))));
        let store = Postgres { transactions, warnings };
        erase::finish_interrupted(&store).await?;
        Ok(store)
    }

    /// Returns where it is; shown, it has no password.
    pub fn settings(&self) -> &Settings {
        &self.transactions.pool.settings
    }

    /// Returns what about the server puts at risk what was acknowledged.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns how many commits were not answered, and what came of them.
    pub fn doubts(&self) -> Doubts {
        self.transactions.doubts()
    }

    /// Takes something that was drawn at random as the secret of this store unless it has one; returns the one that holds.
    pub(super) async fn take_secret(&self, drawn: Digest) -> Result<Digest, Error> {
        let (anybody, nobody) = (&Tenant::default(), &ConversationId::from(""));
        self.transactions.write(anybody, nobody, |_| keys::put_secret(drawn)).await?;
        let missing = || Kind::Corrupt { what: "the store has no secret".into() };
        Ok(self.transactions.read(keys::secret).await?.ok_or_else(missing)?)
    }

    /// Deletes what a fenced conversation still holds.
    async fn erase_rows(&self, tenant: &Tenant, id: &ConversationId) -> Result<(), Error> {
        // It ends: nothing is added behind the fence, and each step deletes something or is the last.
        while !self.transactions.write(tenant, id, |db| erase::step(db, tenant, id)).await? {}
        Ok(())
    }
}

/// Reads a conversation that was not erased.
macro_rules! read {
    ($store:ident, $tenant:ident, $id:ident, |$db:ident, $found:ident| $work:expr) => {
        $store
            .transactions
            .read(|$db: Db| async move {
                let $found = Found::live(&$db, $tenant, $id).await?;
                $work.await
            })
            .await
    };
}

impl Store for Postgres {
    async fn create(&self, tenant: &Tenant, new: NewConversation) -> Result<Conversation, Error> {
        let new = &new;
        self.transactions.write(tenant, &new.id, |db| fork::make(db, tenant, new)).await
    }

    async fn conversation(&self, tenant: &Tenant, id: &ConversationId) -> Result<Conversation, Error> {
        self.transactions.read(|db| async move { Ok(Found::any(&db, tenant, id).await?.conversation) }).await
    }

    async fn describe(&self, tenant: &Tenant, id: &ConversationId, title: Text, meta: Text) -> Result<(), Error> {
        let (title, meta) = (&title, &meta);
        self.transactions.write(tenant, id, |db| write::describe(db, tenant, id, title, meta)).await
    }

    async fn list(
        &self,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        rows: usize,
    ) -> Result<Vec<Conversation>, Error> {
        let rows = rows.min(ROWS_MAX);
        self.transactions.read(|db| async move { Found::list(&db, tenant, after, rows).await }).await
    }

    async fn append(&self, tenant: &Tenant, id: &ConversationId, batch: Batch) -> Result<Appended, Error> {
        let batch = &batch;
        self.transactions.write(tenant, id, |db| write::append(db, tenant, id, batch)).await
    }

    async fn back(&self, tenant: &Tenant, id: &ConversationId, back: Back) -> Result<Vec<Row>, Error> {
        let (back, alone) = (&back, &self.transactions.alone);
        if back.strands.is_empty()
            && let Some(rows) =
                self.transactions.ask(|db| async move { read::newest(&db, alone, (tenant, id), back).await }).await?
        {
            return Ok(rows);
        }
        read!(self, tenant, id, |db, found| read::back(&db, &found, back))
    }

    async fn forth(&self, tenant: &Tenant, id: &ConversationId, from: Seq, rows: usize) -> Result<Vec<Row>, Error> {
        read!(self, tenant, id, |db, found| read::forth(&db, &found, from, rows))
    }

    async fn rows(&self, tenant: &Tenant, id: &ConversationId, seqs: Vec<Seq>) -> Result<Vec<Row>, Error> {
        let seqs = &seqs;
        read!(self, tenant, id, |db, found| read::rows(&db, &found, seqs))
    }

    async fn tallies(&self, tenant: &Tenant, id: &ConversationId, at: Vec<Seq>) -> Result<Vec<Tally>, Error> {
        let at: &Vec<i64> = &at.iter().map(|at| integer(at.0)).collect();
        read!(self, tenant, id, |db, found| read::tallies(&db, &found, at))
    }

    async fn first(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        strand: usize,
        from: Seq,
    ) -> Result<Option<Seq>, Error> {
        read!(self, tenant, id, |db, found| read::first(&db, &found, strand, from))
    }

    async fn reader(&self, tenant: &Tenant, id: &ConversationId, reader: &ReaderName) -> Result<ReaderRow, Error> {
        self.transactions.read(|db| lens::reader(db, tenant, id, reader)).await
    }

    async fn readers(&self, tenant: &Tenant, id: &ConversationId) -> Result<Vec<(ReaderName, ReaderRow)>, Error> {
        read!(self, tenant, id, |db, found| lens::all(&db, &found))
    }

    async fn decisions(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Decisions,
    ) -> Result<Vec<DecisionRow>, Error> {
        let which = &which;
        let key = (tenant, id);
        self.transactions.read(|db| async move { lens::decisions(&db, key, reader, upto, which).await }).await
    }

    async fn turns(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Turns,
    ) -> Result<Vec<TurnRow>, Error> {
        let which = &which;
        let key = (tenant, id);
        self.transactions.read(|db| async move { lens::turns(&db, key, reader, upto, which).await }).await
    }

    async fn commit(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        commit: Commit,
    ) -> Result<(), Error> {
        let commit = &commit;
        self.transactions.write(tenant, id, |db| write::commit(db, tenant, id, reader, commit)).await
    }

    async fn open(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> Result<Option<OpenCall>, Error> {
        self.transactions.read(|db| lens::open(db, tenant, id, reader, ticket)).await
    }

    async fn acknowledge(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        acknowledge: Acknowledge,
    ) -> Result<Appended, Error> {
        let acknowledge = &acknowledge;
        self.transactions.write(tenant, id, |db| write::acknowledge(db, tenant, id, reader, acknowledge)).await
    }

    async fn abandon(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> Result<bool, Error> {
        self.transactions.write(tenant, id, |db| write::abandon(db, tenant, id, reader, ticket)).await
    }

    async fn contents(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        digests: Vec<Digest>,
    ) -> Result<Vec<(Digest, Text)>, Error> {
        let digests = &digests;
        read!(self, tenant, id, |db, found| read::contents(&db, &found, digests))
    }

    async fn keep(&self, tenant: &Tenant, id: &ConversationId, record: Record) -> Result<(), Error> {
        let record = &record;
        self.transactions.write(tenant, id, |db| write::keep(db, tenant, id, record, Over::TheOneBefore)).await
    }

    async fn adopt(&self, tenant: &Tenant, id: &ConversationId, record: Record) -> Result<(), Error> {
        let record = &record;
        self.transactions.write(tenant, id, |db| write::keep(db, tenant, id, record, Over::AnyOlder)).await
    }

    async fn kept(&self, tenant: &Tenant, id: &ConversationId, kind: RecordKind) -> Result<Vec<Record>, Error> {
        self.transactions.read(|db| lens::kept(db, tenant, id, kind)).await
    }

    async fn forks(&self, tenant: &Tenant, id: &ConversationId) -> Result<Vec<ConversationId>, Error> {
        read!(self, tenant, id, |db, found| fork::forks(&db, tenant, found.id()))
    }

    async fn erase(&self, tenant: &Tenant, id: &ConversationId, forks: Forks) -> Result<Erased, Error> {
        let family = self.transactions.write(tenant, id, |db| erase::fence(db, tenant, id, forks)).await?;
        if family.is_empty() {
            return Err(Kind::Erased { conversation: id.clone() }.into());
        }
        let mut erased = Erased::default();
        for (id, entries) in family {
            self.erase_rows(tenant, &id).await?;
            erased.entries += entries;
            erased.conversations.push(id);
        }
        erased.conversations.sort();
        Ok(erased)
    }

    async fn erase_entries(&self, tenant: &Tenant, id: &ConversationId, erase: EraseEntries) -> Result<Erased, Error> {
        let erase = &erase;
        let entries = self.transactions.write(tenant, id, |db| erase::entries(db, tenant, id, erase)).await?;
        Ok(Erased { conversations: Vec::new(), entries })
    }

    async fn linked(&self, tenant: &Tenant, prefixes: Vec<Digest>) -> Result<Vec<Link>, Error> {
        let prefixes = &prefixes;
        self.transactions.read(|db| links::linked(db, tenant, prefixes)).await
    }

    async fn index(&self, tenant: &Tenant, id: &ConversationId, texts: Vec<Termed>) -> Result<Indexed, Error> {
        let texts = &texts;
        self.transactions.write(tenant, id, |db| index::add(db, tenant, id, texts)).await
    }

    async fn indexed(&self, tenant: &Tenant, id: &ConversationId) -> Result<Indexed, Error> {
        read!(self, tenant, id, |db, found| index::reached(&db, &found))
    }

    async fn postings(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        terms: Vec<Text>,
        most: usize,
    ) -> Result<Vec<Posting>, Error> {
        let terms = &terms;
        read!(self, tenant, id, |db, found| index::postings(&db, &found, terms, most))
    }

    async fn secret(&self) -> Result<Digest, Error> {
        match self.transactions.read(keys::secret).await? {
            Some(known) => Ok(known),
            None => self.take_secret(Digest::of(&transaction::random()?)).await,
        }
    }

    async fn add_key(&self, key: AccessKey) -> Result<(), Error> {
        let (key, is_sent, nobody) = (&key, &AtomicBool::new(false), &ConversationId::from(""));
        self.transactions.write(&key.tenant, nobody, |db| keys::add(db, key, is_sent)).await
    }

    async fn keys(&self) -> Result<Vec<AccessKey>, Error> {
        self.transactions.read(keys::all).await
    }

    async fn key(&self, hash: Digest) -> Result<Option<AccessKey>, Error> {
        self.transactions.read(|db| keys::find(db, hash)).await
    }

    async fn revoke_key(&self, name: &str, at: Millis) -> Result<bool, Error> {
        let (is_sent, anybody, nobody) = (&AtomicBool::new(false), &Tenant::default(), &ConversationId::from(""));
        self.transactions.write(anybody, nobody, |db| keys::revoke(db, name, at, is_sent)).await
    }

    fn vitals(&self) -> Vitals {
        let Transactions { pool, writes, .. } = &*self.transactions;
        Vitals { writes: Some(writes.clone()), writes_waiting: None, connections: Some(pool.connections()) }
    }
}
