//! A store that is chosen at run time: which one it is matters to nobody who asks it.

#[cfg(feature = "postgres")]
use super::carry::{Cell, Header, Key, Table};
use super::memory::Memory;
#[cfg(feature = "postgres")]
use super::postgres::Postgres;
use super::sqlite::{Report, Sqlite};
use super::*;
use crate::error::Kind;

/// A store of any kind.
#[derive(Clone)]
pub enum Any {
    /// In a file.
    Sqlite(Sqlite),
    /// In a database.
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
    /// In memory: it ends with the process.
    Memory(Memory),
}

/// Hands a verb on; where what is in memory has no such verb, it says so instead.
macro_rules! on {
    ($any:ident, $verb:ident($($argument:ident),*)) => {
        on!($any, $verb($($argument),*), Any::Memory(store) => store.$verb($($argument),*).await)
    };
    ($any:ident, $verb:ident($($argument:ident),*), $memory:pat => $instead:expr) => {
        match $any {
            Any::Sqlite(store) => store.$verb($($argument),*).await,
            #[cfg(feature = "postgres")]
            Any::Postgres(store) => store.$verb($($argument),*).await,
            $memory => $instead,
        }
    };
}

fn in_memory() -> Error {
    Kind::NotFound { what: "anything on disk: the store is in memory".into() }.into()
}

impl Any {
    /// Checks everything that is stored; see [`Sqlite::check`].
    pub async fn check(
        &self,
        hash: impl Fn(&Row) -> Digest + Send + Sync + 'static,
        progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<Report, Error> {
        on!(self, check(hash, progress), Any::Memory(_) => Err(in_memory()))
    }
}

/// What carries a store over.
#[cfg(feature = "postgres")]
impl Any {
    pub(super) async fn everything(&self, after: Option<&Key>, rows: usize) -> Result<Vec<Key>, Error> {
        on!(self, everything(after, rows), Any::Memory(_) => Err(in_memory()))
    }

    pub(super) async fn header(&self, key: &Key) -> Result<Option<Header>, Error> {
        on!(self, header(key), Any::Memory(_) => Err(in_memory()))
    }

    pub(super) async fn page(
        &self,
        key: &Key,
        table: Table,
        after: Option<Vec<Cell>>,
        rows: usize,
    ) -> Result<Vec<Vec<Cell>>, Error> {
        on!(self, page(key, table, after, rows), Any::Memory(_) => Err(in_memory()))
    }
}

impl std::fmt::Display for Any {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Any::Sqlite(store) => write!(f, "{}", store.path().display()),
            #[cfg(feature = "postgres")]
            Any::Postgres(store) => write!(f, "{}", store.settings()),
            Any::Memory(_) => write!(f, "memory"),
        }
    }
}

impl Store for Any {
    async fn create(&self, tenant: &Tenant, new: NewConversation) -> Result<Conversation, Error> {
        on!(self, create(tenant, new))
    }

    async fn conversation(&self, tenant: &Tenant, id: &ConversationId) -> Result<Conversation, Error> {
        on!(self, conversation(tenant, id))
    }

    async fn describe(&self, tenant: &Tenant, id: &ConversationId, title: Text, meta: Text) -> Result<(), Error> {
        on!(self, describe(tenant, id, title, meta))
    }

    async fn list(
        &self,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        rows: usize,
    ) -> Result<Vec<Conversation>, Error> {
        on!(self, list(tenant, after, rows))
    }

    async fn append(&self, tenant: &Tenant, id: &ConversationId, batch: Batch) -> Result<Appended, Error> {
        on!(self, append(tenant, id, batch))
    }

    async fn back(&self, tenant: &Tenant, id: &ConversationId, back: Back) -> Result<Vec<Row>, Error> {
        on!(self, back(tenant, id, back))
    }

    async fn forth(&self, tenant: &Tenant, id: &ConversationId, from: Seq, rows: usize) -> Result<Vec<Row>, Error> {
        on!(self, forth(tenant, id, from, rows))
    }

    async fn rows(&self, tenant: &Tenant, id: &ConversationId, seqs: Vec<Seq>) -> Result<Vec<Row>, Error> {
        on!(self, rows(tenant, id, seqs))
    }

    async fn tallies(&self, tenant: &Tenant, id: &ConversationId, at: Vec<Seq>) -> Result<Vec<Tally>, Error> {
        on!(self, tallies(tenant, id, at))
    }

    async fn first(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        strand: usize,
        from: Seq,
    ) -> Result<Option<Seq>, Error> {
        on!(self, first(tenant, id, strand, from))
    }

    async fn reader(&self, tenant: &Tenant, id: &ConversationId, reader: &ReaderName) -> Result<ReaderRow, Error> {
        on!(self, reader(tenant, id, reader))
    }

    async fn readers(&self, tenant: &Tenant, id: &ConversationId) -> Result<Vec<(ReaderName, ReaderRow)>, Error> {
        on!(self, readers(tenant, id))
    }

    async fn decisions(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Decisions,
    ) -> Result<Vec<DecisionRow>, Error> {
        on!(self, decisions(tenant, id, reader, upto, which))
    }

    async fn turns(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Turns,
    ) -> Result<Vec<TurnRow>, Error> {
        on!(self, turns(tenant, id, reader, upto, which))
    }

    async fn commit(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        commit: Commit,
    ) -> Result<(), Error> {
        on!(self, commit(tenant, id, reader, commit))
    }

    async fn open(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> Result<Option<OpenCall>, Error> {
        on!(self, open(tenant, id, reader, ticket))
    }

    async fn acknowledge(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        acknowledge: Acknowledge,
    ) -> Result<Appended, Error> {
        on!(self, acknowledge(tenant, id, reader, acknowledge))
    }

    async fn abandon(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> Result<bool, Error> {
        on!(self, abandon(tenant, id, reader, ticket))
    }

    async fn contents(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        digests: Vec<Digest>,
    ) -> Result<Vec<(Digest, Text)>, Error> {
        on!(self, contents(tenant, id, digests))
    }

    async fn keep(&self, tenant: &Tenant, id: &ConversationId, record: Record) -> Result<(), Error> {
        on!(self, keep(tenant, id, record))
    }

    async fn adopt(&self, tenant: &Tenant, id: &ConversationId, record: Record) -> Result<(), Error> {
        on!(self, adopt(tenant, id, record))
    }

    async fn kept(&self, tenant: &Tenant, id: &ConversationId, kind: RecordKind) -> Result<Vec<Record>, Error> {
        on!(self, kept(tenant, id, kind))
    }

    async fn forks(&self, tenant: &Tenant, id: &ConversationId) -> Result<Vec<ConversationId>, Error> {
        on!(self, forks(tenant, id))
    }

    async fn erase(&self, tenant: &Tenant, id: &ConversationId, forks: Forks) -> Result<Erased, Error> {
        on!(self, erase(tenant, id, forks))
    }

    async fn erase_entries(&self, tenant: &Tenant, id: &ConversationId, erase: EraseEntries) -> Result<Erased, Error> {
        on!(self, erase_entries(tenant, id, erase))
    }

    async fn linked(&self, tenant: &Tenant, prefixes: Vec<Digest>) -> Result<Vec<Link>, Error> {
        on!(self, linked(tenant, prefixes))
    }

    async fn index(&self, tenant: &Tenant, id: &ConversationId, texts: Vec<Termed>) -> Result<Indexed, Error> {
        on!(self, index(tenant, id, texts))
    }

    async fn indexed(&self, tenant: &Tenant, id: &ConversationId) -> Result<Indexed, Error> {
        on!(self, indexed(tenant, id))
    }

    async fn postings(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        terms: Vec<Text>,
        most: usize,
    ) -> Result<Vec<Posting>, Error> {
        on!(self, postings(tenant, id, terms, most))
    }

    async fn secret(&self) -> Result<Digest, Error> {
        on!(self, secret())
    }

    async fn add_key(&self, key: AccessKey) -> Result<(), Error> {
        on!(self, add_key(key))
    }

    async fn keys(&self) -> Result<Vec<AccessKey>, Error> {
        on!(self, keys())
    }

    async fn key(&self, hash: Digest) -> Result<Option<AccessKey>, Error> {
        on!(self, key(hash))
    }

    async fn revoke_key(&self, name: &str, at: Millis) -> Result<bool, Error> {
        on!(self, revoke_key(name, at))
    }

    fn vitals(&self) -> Vitals {
        match self {
            Any::Sqlite(store) => store.vitals(),
            #[cfg(feature = "postgres")]
            Any::Postgres(store) => store.vitals(),
            Any::Memory(store) => store.vitals(),
        }
    }
}
