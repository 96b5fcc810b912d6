//! The connections: a bounded number, opened when they are needed and kept for the next one who asks.
//!
//! A connection carries nothing from one transaction to the next: no prepared statement, no setting, no temporary
//! table. So a pooler that hands out another server connection for each transaction may stand between. Where none does,
//! whoever runs it can say so, and statements are prepared once for each connection.

use super::hosts::{self, Unopened};
use super::prepared::Prepared;
use super::settings::Settings;
use super::value::Value;
use crate::error::{Error, Kind};
use crate::store::Connections;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::{self, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

/// How long it takes until a server that could not be reached is asked again: at first, and at most.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_MAX: Duration = Duration::from_millis(500);
/// How long a server is asked to stop something.
const CANCEL_MAX: Duration = Duration::from_secs(3);

/// The connections to one store.
pub(super) struct Pool {
    pub(super) settings: Settings,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<(runtime::Id, Db)>>,
}

impl Pool {
    pub(super) fn of(settings: Settings) -> Pool {
        let permits = Arc::new(Semaphore::new(settings.connections));
        Pool { settings, permits, idle: Mutex::new(Vec::new()) }
    }

    /// Returns a connection that nobody else uses, as soon as there is one; a server that can't be reached is asked again
    /// and again, within bounds.
    pub(super) async fn lease(self: &Arc<Pool>, deadline: Instant) -> Result<Lease, Error> {
        let busy = || {
            let (connections, wait) = (self.settings.connections, self.settings.wait.as_millis());
            Kind::Busy { what: format!("none of {connections} connections to the store became free in {wait} ms") }
        };
        let permit = timeout_at(deadline, self.permits.clone().acquire_owned()).await.map_err(|_| busy())?;
        let permit = permit.map_err(|_| Kind::Defect { what: "the store was closed".into() })?;
        let mut again = AGAIN_FIRST;
        loop {
            if let Some(db) = self.take() {
                return Ok(Lease { db, pool: Arc::clone(self), _permit: permit });
            }
            let connected = timeout_at(deadline, connect(&self.settings)).await;
            match connected {
                Ok(Ok(db)) => return Ok(Lease { db, pool: Arc::clone(self), _permit: permit }),
                Ok(Err(why)) if why.is_final || Instant::now() + again >= deadline => return Err(why.error),
                Ok(Err(_)) => sleep(again).await,
                Err(_) => return Err(Kind::Unreachable { what: format!("{}: no answer", self.settings) }.into()),
            }
            again = (again * 2).min(AGAIN_MAX);
        }
    }

    /// Returns how many connections there are.
    pub(super) fn connections(&self) -> Connections {
        let max = self.settings.connections;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        Connections { max, busy: max - self.permits.available_permits(), idle }
    }

    /// Returns an idle connection that is still open. One that another runtime looks after may never be answered.
    fn take(&self) -> Option<Db> {
        let ours = Handle::current().id();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(_, db)| !db.client.is_closed());
        let at = idle.iter().rposition(|(runtime, _)| *runtime == ours)?;
        Some(idle.swap_remove(at).1)
    }

    fn put(&self, db: Db) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.settings.connections {
            idle.push((Handle::current().id(), db));
        }
    }
}

/// Opens a connection to whichever server takes writes.
pub(super) async fn connect(settings: &Settings) -> Result<Db, Unopened> {
    let client = Arc::new(hosts::connect(settings).await?);
    Ok(Db { client, prepared: settings.is_prepared.then(Arc::default) })
}

/// A connection in use. Dropped, it is closed; given back, it is used again.
pub(super) struct Lease {
    pub(super) db: Db,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Ends a transaction that has written nothing, or whose writes are to go, and gives the connection back.
    pub(super) fn undo(self) {
        self.db.fire("ROLLBACK");
        self.give_back();
    }

    /// Closes a connection, and tells the server that nobody waits for what it does there. Only for what reads.
    pub(super) fn cancel(self) {
        let (token, tls) = (self.db.client.cancel_token(), self.pool.settings.tls.clone());
        tokio::spawn(async move { drop(timeout(CANCEL_MAX, token.cancel_query(tls)).await) });
    }

    /// Gives the connection back, without a transaction.
    pub(super) fn give_back(self) {
        self.pool.put(self.db.clone());
    }
}

/// A connection; clones share it.
#[derive(Clone)]
pub(super) struct Db {
    client: Arc<Client>,
    prepared: Option<Arc<Prepared>>,
}

impl Db {
    /// Sends statements without values, and doesn't wait for the answer: if they fail, so does what comes after them.
    pub(super) fn fire(&self, sql: &str) {
        let sent = pin!(self.client.batch_execute(sql));
        // The first poll sends.
        drop(sent.poll(&mut Context::from_waker(Waker::noop())));
    }

    /// Runs statements without values.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Error> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Returns the rows of one statement.
    pub(super) async fn rows(&self, sql: &str, values: Vec<Value<'_>>) -> Result<Vec<Row>, Error> {
        self.prepare(sql, &values).await?;
        self.send(sql, values).await
    }

    /// Prepares a statement, where that is wanted and not done yet.
    async fn prepare(&self, sql: &str, values: &[Value<'_>]) -> Result<(), Error> {
        match &self.prepared {
            Some(prepared) => prepared.learn(&self.client, sql, values).await,
            None => Ok(()),
        }
    }

    /// Returns the rows of one statement, which is sent when this is first polled.
    async fn send(&self, sql: &str, values: Vec<Value<'_>>) -> Result<Vec<Row>, Error> {
        if let Some(statement) = self.prepared.as_ref().and_then(|prepared| prepared.of(sql)) {
            let values: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
            return Ok(self.client.query(&statement, &values).await?);
        }
        let values: Vec<_> = values.iter().map(|value| (value as &(dyn ToSql + Sync), value.kind())).collect();
        Ok(self.client.query_typed(sql, &values).await?)
    }

    /// Returns the one row of a statement, if there is one.
    pub(super) async fn row(&self, sql: &str, values: Vec<Value<'_>>) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs a statement, and returns how many rows it is about.
    pub(super) async fn run(&self, sql: &str, values: Vec<Value<'_>>) -> Result<u64, Error> {
        let values: Vec<_> = values.iter().map(|value| (value as &(dyn ToSql + Sync), value.kind())).collect();
        Ok(self.client.execute_typed(sql, &values).await?)
    }

    /// Sends statements one behind the other without waiting between them, and returns the rows of each.
    pub(super) async fn all(&self, statements: Vec<Statement<'_>>) -> Result<Vec<Vec<Row>>, Error> {
        let sent = self.sent(statements).await?;
        together(sent).await
    }

    /// Sends statements and a commit behind them, without waiting between; the errors of both.
    pub(super) async fn commit(&self, statements: Vec<Statement<'_>>) -> Result<(), Error> {
        let mut sent = self.sent(statements).await?;
        let commit = Box::pin(async {
            self.batch("COMMIT").await?;
            Ok(Vec::new())
        });
        sent.push(commit);
        together(sent).await.map(drop)
    }

    /// Returns statements that are sent as soon as they are polled; what has to be prepared for them is.
    async fn sent<'v>(&'v self, statements: Vec<Statement<'v>>) -> Result<Vec<Answer<'v>>, Error> {
        for statement in &statements {
            self.prepare(statement.sql, &statement.values).await?;
        }
        Ok(statements.into_iter().map(|it| Box::pin(self.send(it.sql, it.values)) as Answer<'v>).collect())
    }
}

/// A statement and its values.
pub(super) struct Statement<'v> {
    pub(super) sql: &'v str,
    pub(super) values: Vec<Value<'v>>,
}

impl<'v> Statement<'v> {
    pub(super) fn new(sql: &'v str, values: Vec<Value<'v>>) -> Statement<'v> {
        Statement { sql, values }
    }
}

type Answer<'v> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'v>>;

/// Waits for all; they are polled in order, and so sent in order. If some fail, the first error is told: the others follow
/// from it.
async fn together(mut answers: Vec<Answer<'_>>) -> Result<Vec<Vec<Row>>, Error> {
    let mut done: Vec<Option<Result<Vec<Row>, Error>>> = answers.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (answer, done) in answers.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(ready) = answer.as_mut().poll(cx) {
                *done = Some(ready);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
