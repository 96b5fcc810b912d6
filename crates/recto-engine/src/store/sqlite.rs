//! Conversations in one SQLite file: one writer with group commit, readers beside it, other processes welcome.
//!
//! What was acknowledged is on disk: a write is answered after its commit, and a commit waits for the disk. What is kept in
//! memory between transactions counts only while nobody else has written, so several processes may use one file.

#[cfg(feature = "postgres")]
mod carry;
pub(super) mod check;
mod db;
mod erase;
mod fault;
mod fork;
pub(super) mod found;
mod head;
mod index;
mod keys;
mod known;
pub(super) mod lens;
mod links;
mod read;
mod schema;
mod threads;
mod upgrade;
mod upkeep;
mod write;

pub use check::{Finding, Report};
pub use upgrade::Copied;
pub use upkeep::Existing;

use super::*;
use crate::error::Kind;
use crate::timing::Timing;
use db::Db;
use found::{Found, integer};
use lens::Lens;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use threads::{Readers, Writer};

/// A store in an SQLite file. Clones share everything; when the last one goes, what is queued is finished first.
#[derive(Clone)]
pub struct Sqlite {
    path: PathBuf,
    readers: Arc<Readers>,
    /// Gone, if the file can only be read.
    writer: Option<Arc<Writer>>,
    writes: Arc<Timing>,
}

/// What a store may use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The most pages of the file; `None` is as many as SQLite takes.
    pub pages_max: Option<u32>,
}

impl Sqlite {
    /// Opens a store, and makes it if there is none. A file that can't be written to is opened for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Sqlite, Error> {
        Sqlite::open_with(path, Limits::default())
    }

    /// Opens a store that may use no more than this.
    pub fn open_with(path: impl AsRef<Path>, limits: Limits) -> Result<Sqlite, Error> {
        let path = path.as_ref();
        make_file(path)?;
        schema::refuse_others(path)?;
        let connection = match schema::writer(path) {
            Err(error) if error.is_read_only() => return Sqlite::open_read_only(path),
            opened => opened?,
        };
        if let Some(pages) = limits.pages_max {
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        }
        erase::finish_interrupted(&Db::over(&connection))?;
        let writer = Some(Arc::new(Writer::start(connection)?));
        Ok(Sqlite { path: path.into(), readers: Readers::of(path.into(), false), writer, writes: Arc::default() })
    }

    /// Opens a store for reading alone; writes are refused.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Sqlite, Error> {
        let path = path.as_ref();
        schema::refuse_others(path)?;
        schema::read_only(path)?;
        let readers = Readers::of(path.into(), true);
        Ok(Sqlite { path: path.into(), readers, writer: None, writes: Arc::default() })
    }

    /// Returns the path of its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes everything from the write-ahead log to the file itself.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        self.writer()?.alone(erase::cut_log).await
    }

    fn writer(&self) -> Result<&Writer, Error> {
        let refused = || Kind::ReadOnly { what: self.path.display().to_string() };
        Ok(self.writer.as_deref().ok_or_else(refused)?)
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&Db<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _running = self.writes.running();
        self.writer()?.write(work).await
    }

    /// Reads a conversation that was not erased.
    async fn read<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        work: impl FnOnce(&Db<'_>, &Found) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.readers.read(move |db| work(db, &Found::live(db, &tenant, &id)?)).await
    }
}

/// Makes the folder of a file, for its owner alone, if it isn't there.
fn make_folder(path: &Path) -> Result<(), Error> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| fault::file(folder.display().to_string(), &error))
}

/// Makes the file, for its owner alone, if it isn't there. SQLite gives the files beside it the same permissions.
fn make_file(path: &Path) -> Result<(), Error> {
    make_folder(path)?;
    // An existing file is not opened here: to close it again would let go of the locks that SQLite holds on it.
    match new_file(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(fault::file(path.display().to_string(), &error))
        }
        _ => Ok(()),
    }
}

/// Makes a new file for its owner alone.
fn new_file(path: &Path) -> io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Store for Sqlite {
    async fn create(&self, tenant: &Tenant, new: NewConversation) -> Result<Conversation, Error> {
        let tenant = tenant.clone();
        self.write(move |db| fork::create(db, &tenant, &new)).await
    }

    async fn conversation(&self, tenant: &Tenant, id: &ConversationId) -> Result<Conversation, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.readers.read(move |db| Ok(Found::any(db, &tenant, &id)?.conversation)).await
    }

    async fn list(
        &self,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        rows: usize,
    ) -> Result<Vec<Conversation>, Error> {
        let (tenant, after) = (tenant.clone(), after.cloned());
        self.readers.read(move |db| Found::list(db, &tenant, after.as_ref(), rows.min(ROWS_MAX))).await
    }

    async fn append(&self, tenant: &Tenant, id: &ConversationId, batch: Batch) -> Result<Appended, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.write(move |db| write::append(db, &tenant, &id, &batch)).await
    }

    async fn linked(&self, tenant: &Tenant, prefixes: Vec<Digest>) -> Result<Vec<Link>, Error> {
        let tenant = tenant.clone();
        self.readers.read(move |db| links::linked(db, &tenant, &prefixes)).await
    }

    async fn back(&self, tenant: &Tenant, id: &ConversationId, back: Back) -> Result<Vec<Row>, Error> {
        self.read(tenant, id, move |db, found| read::back(db, found, &back)).await
    }

    async fn forth(&self, tenant: &Tenant, id: &ConversationId, from: Seq, rows: usize) -> Result<Vec<Row>, Error> {
        self.read(tenant, id, move |db, found| read::forth(db, found, from, rows)).await
    }

    async fn rows(&self, tenant: &Tenant, id: &ConversationId, seqs: Vec<Seq>) -> Result<Vec<Row>, Error> {
        self.read(tenant, id, move |db, found| read::rows(db, found, &seqs)).await
    }

    async fn tallies(&self, tenant: &Tenant, id: &ConversationId, at: Vec<Seq>) -> Result<Vec<Tally>, Error> {
        let tally = |db: &Db<'_>, found: &Found, at: &Seq| read::tally(db, found, integer(at.0));
        self.read(tenant, id, move |db, found| at.iter().map(|at| tally(db, found, at)).collect()).await
    }

    async fn first(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        strand: usize,
        from: Seq,
    ) -> Result<Option<Seq>, Error> {
        self.read(tenant, id, move |db, found| read::first(db, found, strand, from)).await
    }

    async fn reader(&self, tenant: &Tenant, id: &ConversationId, reader: &ReaderName) -> Result<ReaderRow, Error> {
        let reader = reader.clone();
        let row = move |db: &Db<'_>, found: &Found| Ok(Lens::of(db, found.n, &reader)?.map(|lens| lens.row));
        Ok(self.read(tenant, id, row).await?.unwrap_or_default())
    }

    async fn readers(&self, tenant: &Tenant, id: &ConversationId) -> Result<Vec<(ReaderName, ReaderRow)>, Error> {
        self.read(tenant, id, lens::all).await
    }

    async fn decisions(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Decisions,
    ) -> Result<Vec<DecisionRow>, Error> {
        let reader = reader.clone();
        self.read(tenant, id, move |db, found| lens::decisions(db, found, &reader, upto, &which)).await
    }

    async fn turns(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: Turns,
    ) -> Result<Vec<TurnRow>, Error> {
        let reader = reader.clone();
        self.read(tenant, id, move |db, found| lens::turns(db, found, &reader, upto, &which)).await
    }

    async fn commit(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        commit: Commit,
    ) -> Result<(), Error> {
        let (tenant, id, reader, erases) = (tenant.clone(), id.clone(), reader.clone(), !commit.erase.is_empty());
        self.write(move |db| write::commit(db, &tenant, &id, &reader, &commit)).await?;
        if erases { self.checkpoint().await } else { Ok(()) }
    }

    async fn open(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> Result<Option<OpenCall>, Error> {
        let reader = reader.clone();
        self.read(tenant, id, move |db, found| lens::open(db, found, &reader, ticket)).await
    }

    async fn acknowledge(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        acknowledge: Acknowledge,
    ) -> Result<Appended, Error> {
        let (tenant, id, reader) = (tenant.clone(), id.clone(), reader.clone());
        self.write(move |db| write::acknowledge(db, &tenant, &id, &reader, &acknowledge)).await
    }

    async fn abandon(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        reader: &ReaderName,
        ticket: Digest,
    ) -> Result<bool, Error> {
        let (tenant, id, reader) = (tenant.clone(), id.clone(), reader.clone());
        self.write(move |db| write::abandon(db, &tenant, &id, &reader, ticket)).await
    }

    async fn contents(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        digests: Vec<Digest>,
    ) -> Result<Vec<(Digest, Text)>, Error> {
        self.read(tenant, id, move |db, found| read::contents(db, found, &digests)).await
    }

    async fn describe(&self, tenant: &Tenant, id: &ConversationId, title: Text, meta: Text) -> Result<(), Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.write(move |db| write::describe(db, &tenant, &id, &title, &meta)).await
    }

    async fn keep(&self, tenant: &Tenant, id: &ConversationId, record: Record) -> Result<(), Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.write(move |db| write::keep(db, &tenant, &id, &record)).await
    }

    async fn adopt(&self, tenant: &Tenant, id: &ConversationId, record: Record) -> Result<(), Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.write(move |db| write::adopt(db, &tenant, &id, &record)).await
    }

    async fn kept(&self, tenant: &Tenant, id: &ConversationId, kind: RecordKind) -> Result<Vec<Record>, Error> {
        self.read(tenant, id, move |db, found| lens::kept(db, found, kind)).await
    }

    async fn forks(&self, tenant: &Tenant, id: &ConversationId) -> Result<Vec<ConversationId>, Error> {
        let forks = |db: &Db<'_>, found: &Found| fork::forks(db, found.n);
        Ok(self.read(tenant, id, forks).await?.into_iter().map(|(_, id)| id).collect())
    }

    async fn erase(&self, tenant: &Tenant, id: &ConversationId, forks: Forks) -> Result<Erased, Error> {
        let (tenant, name) = (tenant.clone(), id.clone());
        let family = self.write(move |db| erase::fence(db, &tenant, &name, forks)).await?;
        if family.is_empty() {
            // It was erased before; what stood in the way of its last trace may be gone now.
            self.checkpoint().await?;
            return Err(Kind::Erased { conversation: id.clone() }.into());
        }
        let mut erased = Erased::default();
        for (n, id) in family {
            // It ends: nothing is added behind the fence, and each step deletes something or is the last.
            loop {
                let step = self.write(move |db| erase::step(db, n)).await?;
                erased.entries += step.entries;
                if step.is_done {
                    break;
                }
            }
            erased.conversations.push(id);
        }
        erased.conversations.sort();
        self.write(erase::rebuild).await?;
        self.checkpoint().await?;
        Ok(erased)
    }

    async fn erase_entries(&self, tenant: &Tenant, id: &ConversationId, erase: EraseEntries) -> Result<Erased, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let entries = self.write(move |db| erase::entries(db, &tenant, &id, &erase)).await?;
        self.checkpoint().await?;
        Ok(Erased { conversations: Vec::new(), entries })
    }

    async fn index(&self, tenant: &Tenant, id: &ConversationId, texts: Vec<Termed>) -> Result<Indexed, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.write(move |db| index::add(db, &tenant, &id, &texts)).await
    }

    async fn indexed(&self, tenant: &Tenant, id: &ConversationId) -> Result<Indexed, Error> {
        self.read(tenant, id, index::reached).await
    }

    async fn postings(
        &self,
        tenant: &Tenant,
        id: &ConversationId,
        terms: Vec<Text>,
        most: usize,
    ) -> Result<Vec<Posting>, Error> {
        self.read(tenant, id, move |db, found| index::postings(db, found, &terms, most)).await
    }

    async fn secret(&self) -> Result<Digest, Error> {
        self.readers.read(keys::secret).await
    }

    async fn add_key(&self, key: AccessKey) -> Result<(), Error> {
        self.write(move |db| keys::add(db, &key)).await
    }

    async fn keys(&self) -> Result<Vec<AccessKey>, Error> {
        self.readers.read(keys::all).await
    }

    async fn key(&self, hash: Digest) -> Result<Option<AccessKey>, Error> {
        self.readers.read(move |db| keys::find(db, hash)).await
    }

    async fn revoke_key(&self, name: &str, at: Millis) -> Result<bool, Error> {
        let name = name.to_string();
        self.write(move |db| keys::revoke(db, &name, at)).await
    }

    fn vitals(&self) -> Vitals {
        let writes_waiting = self.writer.as_ref().map(|writer| writer.waiting());
        Vitals { writes: Some(self.writes.clone()), writes_waiting, ..Vitals::default() }
    }
}
