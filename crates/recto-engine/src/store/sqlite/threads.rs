//! Who does the work: one thread that writes, in groups that share a commit, and a few connections that read.
//!
//! A caller is answered only after the commit of its group. A job that fails is taken back alone.

use super::db::Db;
use super::{fault, schema};
use crate::error::{Error, Kind};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The most jobs that wait for the writer.
const QUEUE_MAX: usize = 1_024;
/// The most jobs that share one commit.
const GROUP_MAX: usize = 256;
/// How often the writer waits for others before it commits a group that is smaller than the one before, and how long.
const GATHER_WAITS_MAX: usize = 2;
const GATHER_WAIT: Duration = Duration::from_micros(1_000);
/// The most connections that read at once.
const READERS_MAX: usize = 4;

enum Job {
    /// Runs within a group's transaction.
    Shared(Box<dyn Shared>),
    /// Runs outside of any transaction.
    Alone(Box<dyn FnOnce(&Connection) + Send>),
}

trait Shared: Send {
    /// Does the work, and returns whether it is to be kept; again, if it was taken back.
    fn run(&mut self, db: &Db<'_>) -> bool;
    /// Tells the caller, once it is known what became of the group.
    fn answer(self: Box<Self>, committed: Result<(), Kind>);
}

struct Work<T, F> {
    work: F,
    done: Option<Result<T, Error>>,
    caller: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, F: Fn(&Db<'_>) -> Result<T, Error> + Send> Shared for Work<T, F> {
    fn run(&mut self, db: &Db<'_>) -> bool {
        self.done = Some((self.work)(db));
        matches!(self.done, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, committed: Result<(), Kind>) {
        let answer = match (self.done, committed) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(kind)) => Err(kind.into()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(stopped()),
        };
        // A caller that has gone away doesn't wait for its answer.
        let _ = self.caller.send(answer);
    }
}

/// The thread that writes.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Writer, Error> {
        let (jobs, queue) = mpsc::channel(QUEUE_MAX);
        let thread =
            std::thread::Builder::new().name("recto-store".into()).spawn(move || run(&Db::writing(&connection), queue));
        let thread = thread.map_err(|error| fault::file("a thread that writes", &error))?;
        Ok(Writer { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Does something in a transaction that it may share with others; more than once, if that was taken back.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&Db<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (caller, answer) = oneshot::channel();
        self.send(Job::Shared(Box::new(Work { work, done: None, caller }))).await?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Does something that can't be part of a transaction.
    pub(super) async fn alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (caller, answer) = oneshot::channel();
        let job = move |connection: &Connection| {
            let _ = caller.send(work(connection));
        };
        self.send(Job::Alone(Box::new(job))).await?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Returns how many jobs wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.jobs.as_ref().map_or(0, |jobs| jobs.max_capacity() - jobs.capacity())
    }

    async fn send(&self, job: Job) -> Result<(), Error> {
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).await.map_err(|_| stopped())
    }
}

impl Drop for Writer {
    // What is queued is finished: somebody may still wait for the answer.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn stopped() -> Error {
    Kind::Defect { what: "the thread that writes has stopped".into() }.into()
}

fn run(db: &Db<'_>, mut queue: mpsc::Receiver<Job>) {
    let mut expected = 0;
    while let Some(first) = queue.blocking_recv() {
        let mut group = Vec::new();
        let mut next = Some(first);
        let mut waits = 0;
        loop {
            match next.take() {
                Some(Job::Shared(job)) => group.push(job),
                Some(Job::Alone(job)) => {
                    share(db, std::mem::take(&mut group));
                    job(db);
                }
                // Those who were answered just now are about to write again: a commit with them costs no more.
                None if group.len() < expected && waits < GATHER_WAITS_MAX => {
                    waits += 1;
                    std::thread::park_timeout(GATHER_WAIT);
                }
                None => break,
            }
            if group.len() >= GROUP_MAX {
                break;
            }
            next = queue.try_recv().ok();
        }
        expected = group.len();
        share(db, group);
    }
}

/// Runs a group in one transaction, and answers when it is on disk.
fn share(db: &Db<'_>, mut group: Vec<Box<dyn Shared>>) {
    if group.is_empty() {
        return;
    }
    match together(db, &mut group) {
        Some(committed) => group.into_iter().for_each(|job| job.answer(committed.as_ref().map(|_| ()).map_err(again))),
        None => one_by_one(db, group),
    }
}

/// Runs all jobs of a group, and commits. If one of them fails when it has already written something, all is taken back.
fn together(db: &Db<'_>, group: &mut [Box<dyn Shared>]) -> Option<Result<(), Option<rusqlite::Error>>> {
    if let Err(error) = db.begin() {
        return Some(Err(Some(error)));
    }
    for job in group {
        let written = db.total_changes();
        let is_kept = job.run(db);
        let is_clean = is_kept || db.total_changes() == written;
        if db.is_autocommit() || !is_clean {
            db.roll_back("ROLLBACK");
            return None;
        }
    }
    Some(commit(db))
}

/// Runs the jobs of a group in such a way that each can be taken back by itself.
fn one_by_one(db: &Db<'_>, group: Vec<Box<dyn Shared>>) {
    let mut left = group.into_iter();
    // A failure that makes SQLite give up the transaction takes the jobs before it along; those behind get a new one.
    while left.len() > 0 {
        if let Err(error) = db.begin() {
            left.for_each(|job| job.answer(Err(fault::kind(&error))));
            return;
        }
        let mut done = Vec::new();
        for mut job in left.by_ref() {
            let is_begun = db.prepare_cached("SAVEPOINT job").and_then(|mut it| it.execute([])).is_ok();
            if is_begun && job.run(db) {
                done.push(job);
            } else {
                db.roll_back("ROLLBACK TO job");
                job.answer(Err(taken_along()));
            }
            if db.is_autocommit() {
                break;
            }
            let _ = db.prepare_cached("RELEASE job").and_then(|mut it| it.execute([]));
        }
        let committed = commit(db);
        done.into_iter().for_each(|job| job.answer(committed.as_ref().map(|_| ()).map_err(again)));
    }
}

/// Why a group was not written.
fn again(error: &Option<rusqlite::Error>) -> Kind {
    error.as_ref().map_or_else(taken_along, fault::kind)
}

/// Commits, or makes sure that nothing of the group is left; `None` if the transaction was gone already.
fn commit(db: &Db<'_>) -> Result<(), Option<rusqlite::Error>> {
    if db.is_autocommit() {
        db.forget();
        return Err(None);
    }
    db.commit().map_err(Some)
}

fn taken_along() -> Kind {
    Kind::Busy { what: "another write failed and took this one along; nothing of it was written".into() }
}

/// The connections that read, opened when they are first needed.
pub(super) struct Readers {
    path: PathBuf,
    is_read_only: bool,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn of(path: PathBuf, is_read_only: bool) -> Arc<Readers> {
        let permits = Arc::new(Semaphore::new(READERS_MAX));
        Arc::new(Readers { path, is_read_only, permits, idle: Mutex::new(Vec::new()) })
    }

    /// Reads within one transaction, so that all of it is of the same moment.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Readers>,
        work: impl FnOnce(&Db<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let closed = |_| Error::from(Kind::Defect { what: "the store was closed".into() });
        let permit = self.permits.clone().acquire_owned().await.map_err(closed)?;
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            readers.read_now(work)
        });
        task.await.unwrap_or_else(|error| Err(Kind::Defect { what: format!("a read failed: {error}") }.into()))
    }

    fn read_now<T>(&self, work: impl FnOnce(&Db<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let connection = match self.take() {
            Some(connection) => connection,
            None if self.is_read_only => schema::read_only(&self.path)?,
            None => schema::reader(&self.path)?,
        };
        connection.prepare_cached("BEGIN")?.execute([])?;
        let done = work(&Db::over(&connection));
        connection.prepare_cached("ROLLBACK")?.execute([])?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        done
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}
