//! The store in memory: nothing lasts, and everything is simple enough to be seen to be right. Other stores are measured
//! against it.

mod held;
mod index;
mod keys;
mod read;
mod write;

use super::*;
use held::Tenancy;
use keys::Keys;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A store that lasts as long as its process. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    tenants: Arc<Mutex<BTreeMap<Tenant, Tenancy>>>,
    keys: Arc<Mutex<Keys>>,
}

impl Memory {
    /// Does something with all conversations of a tenant, while nobody else does. What fails must not have written.
    fn within<T>(&self, tenant: &Tenant, act: impl FnOnce(&mut Tenancy) -> Result<T, Error>) -> Result<T, Error> {
        // A panic elsewhere can't have left half a write: every verb checks first, and then writes.
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        match tenants.get_mut(tenant) {
            Some(tenancy) => act(tenancy),
            None => {
                let mut tenancy = Tenancy::default();
                let done = act(&mut tenancy)?;
                // Who only asks leaves nothing behind.
                if !tenancy.conversations.is_empty() {
                    tenants.insert(tenant.clone(), tenancy);
                }
                Ok(done)
            }
        }
    }

    fn with_keys<T>(&self, act: impl FnOnce(&mut Keys) -> T) -> T {
        act(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for Memory {
    async fn create(&self, tenant: &Tenant, new: NewConversation) -> Result<Conversation, Error> {
        bounds::check_name("tenant", tenant.as_str())?;
        self.within(tenant, |it| it.create(new))
    }

    async fn conversation(&self, tenant: &Tenant, id: &ConversationId) -> Result<Conversation, Error> {
        self.within(tenant, |it| Ok(it.known(id)?.row(id)))
    }

    async fn list(
        &self,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        rows: usize,
    ) -> Result<Vec<Conversation>, Error> {
        self.within(tenant, |it| Ok(it.list(after, rows)))
    }

    async fn append(&self, tenant: &Tenant, id: &ConversationId, batch: Batch) -> Result<Appended, Error> {
        self.within(tenant, |it| it.append(id, batch))
    }

    async fn linked(&self, tenant: &Tenant, prefixes: Vec<Digest>) -> Result<Vec<Link>, Error> {
        self.within(tenant, |it| Ok(it.linked(prefixes)))
    }

    async fn back(&self, tenant: &Tenant, id: &ConversationId, back: Back) -> Result<Vec<Row>, Error> {
        self.within(tenant, |it| it.back(id, &back))
    }

    async fn forth(&self, tenant: &Tenant, id: &ConversationId, from: Seq, rows: usize) -> Result<Vec<Row>, Error> {
        self.within(tenant, |it| it.forth(id, from, rows))
    }

    async fn rows(&self, tenant: &Tenant, id: &ConversationId, seqs: Vec<Seq>) -> Result<Vec<Row>, Error> {
        self.within(tenant, |it| it.rows(id, seqs))
    }

    async fn tallies(&self, tenant: &Tenant, id: &ConversationId, at: Vec<Seq>) -> Result<Vec<Tally>, Error> {
        self.within(tenant, |it| it.tallies(id, &at))
    }

    async fn first(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        strand: usize,
        from: Seq,
    ) -> Result<Option<Seq>, Error> {
        self.within(tenant, |it| it.first(id, strand, from))
    }

    async fn reader(&self, tenant: &Tenant, id: &ConversationId, reader: &ReaderName) -> Result<ReaderRow, Error> {
        self.within(tenant, |it| Ok(it.live(id)?.reader(reader)))
    }

    async fn readers(&self, tenant: &Tenant, id: &ConversationId) -> Result<Vec<(ReaderName, ReaderRow)>, Error> {
        self.within(tenant, |it| {
            Ok(it.live(id)?.readers.iter().map(|(name, reader)| (name.clone(), reader.row)).collect())
        })
    }

    async fn decisions(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Decisions,
    ) -> Result<Vec<DecisionRow>, Error> {
        self.within(tenant, |it| it.decisions(id, reader, upto, &which))
    }

    async fn turns(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Turns,
    ) -> Result<Vec<TurnRow>, Error> {
        self.within(tenant, |it| it.turns(id, reader, upto, &which))
    }

    async fn commit(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        commit: Commit,
    ) -> Result<(), Error> {
        self.within(tenant, |it| it.commit(id, reader, commit))
    }

    async fn open(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> Result<Option<OpenCall>, Error> {
        self.within(tenant, |it| {
            Ok(it.live(id)?.readers.get(reader).and_then(|reader| reader.open.get(&ticket)).cloned())
        })
    }

    async fn acknowledge(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        acknowledge: Acknowledge,
    ) -> Result<Appended, Error> {
        self.within(tenant, |it| it.acknowledge(id, reader, acknowledge))
    }

    async fn abandon(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> Result<bool, Error> {
        self.within(tenant, |it| it.abandon(id, reader, ticket))
    }

    async fn contents(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        digests: Vec<Digest>,
    ) -> Result<Vec<(Digest, Text)>, Error> {
        self.within(tenant, |it| it.contents(id, digests))
    }

    async fn describe(&self, tenant: &Tenant, id: &ConversationId, title: Text, meta: Text) -> Result<(), Error> {
        self.within(tenant, |it| it.describe(id, title, meta))
    }

    async fn keep(&self, tenant: &Tenant, id: &ConversationId, record: Record) -> Result<(), Error> {
        self.within(tenant, |it| it.keep(id, record))
    }

    async fn adopt(&self, tenant: &Tenant, id: &ConversationId, record: Record) -> Result<(), Error> {
        self.within(tenant, |it| it.adopt(id, record))
    }

    async fn kept(&self, tenant: &Tenant, id: &ConversationId, kind: RecordKind) -> Result<Vec<Record>, Error> {
        self.within(tenant, |it| {
            Ok(it.live(id)?.records.values().filter(|record| record.kind == kind).cloned().collect())
        })
    }

    async fn forks(&self, tenant: &Tenant, id: &ConversationId) -> Result<Vec<ConversationId>, Error> {
        self.within(tenant, |it| it.live(id).map(|_| it.forks(id)))
    }

    async fn erase(&self, tenant: &Tenant, id: &ConversationId, forks: Forks) -> Result<Erased, Error> {
        self.within(tenant, |it| it.erase(id, forks))
    }

    async fn erase_entries(&self, tenant: &Tenant, id: &ConversationId, erase: EraseEntries) -> Result<Erased, Error> {
        self.within(tenant, |it| it.erase_entries(id, erase))
    }

    async fn index(&self, tenant: &Tenant, id: &ConversationId, texts: Vec<Termed>) -> Result<Indexed, Error> {
        self.within(tenant, |it| it.index(id, texts))
    }

    async fn indexed(&self, tenant: &Tenant, id: &ConversationId) -> Result<Indexed, Error> {
        self.within(tenant, |it| it.indexed(id))
    }

    async fn postings(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        terms: Vec<Text>,
        most: usize,
    ) -> Result<Vec<Posting>, Error> {
        self.within(tenant, |it| it.postings(id, &terms, most))
    }

    async fn add_key(&self, key: AccessKey) -> Result<(), Error> {
        self.with_keys(|keys| keys.add(key))
    }

    async fn keys(&self) -> Result<Vec<AccessKey>, Error> {
        Ok(self.with_keys(|keys| keys.all()))
    }

    async fn secret(&self) -> Result<Digest, Error> {
        self.with_keys(Keys::secret)
    }

    async fn key(&self, hash: Digest) -> Result<Option<AccessKey>, Error> {
        Ok(self.with_keys(|keys| keys.find(hash)))
    }

    async fn revoke_key(&self, name: &str, at: Millis) -> Result<bool, Error> {
        Ok(self.with_keys(|keys| keys.revoke(name, at)))
    }
}
