//! Transactions: one for each verb, tried again where that is safe, and resolved where the answer to a commit was lost.
//!
//! A write looks first, with the conversation's row locked; what it has to write is sent in one go with the commit. With
//! it goes a row that says which write made which version of the conversation. If the connection is lost when the commit
//! was sent, the next transaction finds that row or not, and nobody can write it any more: whoever would, holds the
//! lock.

use super::pool::{Db, Lease, Pool, Statement};
use super::read::Alone;
use super::value::{number, values};
use crate::error::{Error, Kind};
use crate::store::{ConversationId, Tenant};
use crate::timing::Timing;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, timeout_at};

/// How often a verb is tried again because somebody else was quicker.
const TRIES_MAX: usize = 64;
/// So many versions back it is known which write made them, and at least for so long. Nobody waits longer for a commit.
const WRITTEN_VERSIONS: i64 = 64;
const WRITTEN_AGE: Duration = Duration::from_secs(3_600);

const PUT_WRITTEN: &str = "
    INSERT INTO written (tenant, conversation, version, writer, at) VALUES ($1, $2, $3, $4, $5)";
const WRITTEN: &str = "SELECT version FROM written WHERE tenant = $1 AND conversation = $2 AND writer = $3";
const DROP_WRITTEN: &str = "
    DELETE FROM written WHERE tenant = $1 AND conversation = $2 AND version <= $3 AND at < $4";
const CONFIRM: &str = "UPDATE conversation SET version = version WHERE tenant = $1 AND conversation = $2";
const LOCK: &str = "SELECT version FROM conversation WHERE tenant = $1 AND conversation = $2 FOR UPDATE";

/// What a write has to write once it has looked.
pub(super) struct Plan<'v, T> {
    pub(super) answer: T,
    pub(super) does: Does<'v>,
}

/// What is to be done.
pub(super) enum Does<'v> {
    /// Nothing: the answer is known.
    Nothing,
    /// Nothing new: this version was written before. That it is there may be known to this server alone; a commit behind
    /// it is answered once the standbys have both.
    Confirms(Option<i64>),
    /// These, which make this version of the conversation.
    Writes(i64, Vec<Statement<'v>>),
    /// These, which can be done twice.
    Repeats(Vec<Statement<'v>>),
}

impl<'v, T> Plan<'v, T> {
    pub(super) fn nothing(answer: T) -> Plan<'v, T> {
        Plan { answer, does: Does::Nothing }
    }

    pub(super) fn confirms(answer: T) -> Plan<'v, T> {
        Plan { answer, does: Does::Confirms(None) }
    }

    pub(super) fn writes(answer: T, version: i64, statements: Vec<Statement<'v>>) -> Plan<'v, T> {
        Plan { answer, does: Does::Writes(version, statements) }
    }

    pub(super) fn repeats(answer: T, statements: Vec<Statement<'v>>) -> Plan<'v, T> {
        Plan { answer, does: Does::Repeats(statements) }
    }
}

/// What became of a transaction.
enum Outcome<T> {
    /// It is done; the connection was given back.
    Done(T),
    /// It was refused, for good.
    Refused(Error),
    /// Nothing was written, and it may be tried again.
    Again(Error),
    /// The connection was lost when the commit was sent, which would have made this version.
    Lost(Option<i64>, T, Error),
}

/// What a reader's statements stand in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Transaction,
    Statements,
}

/// Commits whose answer was lost, since the store was opened, and what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doubts {
    /// Commits that were sent and not answered.
    pub unanswered: u64,
    /// Of these, those that were found to have been done; nothing was written again.
    pub done: u64,
    /// Verbs whose caller was told that nobody knows. All others were written again.
    pub unknown: u64,
}

/// The same while it is counted.
#[derive(Default)]
struct Doubted {
    unanswered: AtomicU64,
    done: AtomicU64,
    unknown: AtomicU64,
}

/// What is the same for all transactions of a store.
pub(super) struct Transactions {
    pub(super) pool: Arc<Pool>,
    pub(super) begin_reading: String,
    begin_writing: String,
    pub(super) alone: Alone,
    doubted: Doubted,
    pub(super) writes: Arc<Timing>,
}

impl Transactions {
    pub(super) fn over(pool: Arc<Pool>) -> Transactions {
        let (schema, wait) = (&pool.settings.schema, pool.settings.wait.as_millis());
        let local = format!(
            "SET LOCAL search_path = {schema}; SET LOCAL statement_timeout = {wait}; \
             SET LOCAL lock_timeout = {lock}; SET LOCAL idle_in_transaction_session_timeout = {wait}",
            lock = wait.div_ceil(2)
        );
        let begin_reading = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {local}");
        let begin_writing = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {local}");
        let alone = Alone::of(schema);
        Transactions { pool, begin_reading, begin_writing, alone, doubted: Doubted::default(), writes: Arc::default() }
    }

    pub(super) fn doubts(&self) -> Doubts {
        let [unanswered, done, unknown] = [&self.doubted.unanswered, &self.doubted.done, &self.doubted.unknown]
            .map(|count| count.load(Ordering::Relaxed));
        Doubts { unanswered, done, unknown }
    }

    /// Reads within one transaction, so that all of it is of the same moment.
    pub(super) async fn read<T, F>(&self, work: impl Fn(Db) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.read_as(Reading::Transaction, work).await
    }

    /// Reads with statements that stand alone, each of its own moment. That is for what is asked most: nothing is sent
    /// before and behind them, so they find no settings of a transaction, and name the schema themselves.
    pub(super) async fn ask<T, F>(&self, work: impl Fn(Db) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.read_as(Reading::Statements, work).await
    }

    async fn read_as<T, F>(&self, reading: Reading, work: impl Fn(Db) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let deadline = Instant::now() + self.pool.settings.wait;
        let end = |lease: Lease| match reading {
            Reading::Transaction => lease.undo(),
            Reading::Statements => lease.give_back(),
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let lease = self.pool.lease(deadline).await?;
            if reading == Reading::Transaction {
                lease.db.fire(&self.begin_reading);
            }
            let Ok(done) = timeout_at(deadline, work(lease.db.clone())).await else {
                if reading == Reading::Statements {
                    lease.cancel();
                }
                return Err(silent());
            };
            match done {
                Err(error) if error.is_busy() && tries < TRIES_MAX && Instant::now() < deadline => {
                    if !error.is_unreachable() {
                        end(lease);
                    }
                }
                Err(error) if error.is_unreachable() => return Err(error),
                done => {
                    end(lease);
                    return done;
                }
            }
        }
    }

    /// Writes within one transaction. The work looks, and returns what is to be written; it may be done more than once.
    pub(super) async fn write<'v, T, F>(
        &self,
        tenant: &'v Tenant,
        id: &'v ConversationId,
        work: impl Fn(Db) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<Plan<'v, T>, Error>>,
    {
        let _running = self.writes.running();
        let writer = random()?;
        let mut deadline = Instant::now() + self.pool.settings.wait;
        // Commits that nobody has answered, by the version that they would have made.
        let mut sent: Vec<(Option<i64>, T)> = Vec::new();
        let mut is_in_doubt = false;
        let mut tries = 0;
        loop {
            tries += 1;
            let in_doubt = sent.len();
            let tried = match self.pool.lease(deadline).await {
                Ok(lease) => self.attempt(lease, deadline, (tenant, id, writer), &mut sent, &work).await,
                Err(error) if error.is_busy() || !sent.is_empty() => Outcome::Again(error),
                Err(error) => Outcome::Refused(error),
            };
            let error = match tried {
                Outcome::Done(answer) => {
                    self.doubted.done.fetch_add(u64::from(sent.len() < in_doubt), Ordering::Relaxed);
                    return Ok(answer);
                }
                Outcome::Refused(error) => return Err(error),
                Outcome::Again(error) => error,
                Outcome::Lost(version, answer, error) => {
                    if !is_in_doubt {
                        // To find out what became of it takes time of its own.
                        deadline = Instant::now() + self.pool.settings.wait;
                    }
                    is_in_doubt = true;
                    self.doubted.unanswered.fetch_add(1, Ordering::Relaxed);
                    sent.push((version, answer));
                    error
                }
            };
            if tries >= TRIES_MAX || Instant::now() >= deadline {
                if sent.is_empty() {
                    return Err(error);
                }
                self.doubted.unknown.fetch_add(1, Ordering::Relaxed);
                return Err(Kind::Indeterminate { what: format!("the answer to a commit was lost; {error}") }.into());
            }
        }
    }

    async fn attempt<'v, T, F>(
        &self,
        lease: Lease,
        deadline: Instant,
        whose: (&'v Tenant, &'v ConversationId, [u8; 16]),
        sent: &mut Vec<(Option<i64>, T)>,
        work: &impl Fn(Db) -> F,
    ) -> Outcome<T>
    where
        F: Future<Output = Result<Plan<'v, T>, Error>>,
    {
        lease.db.fire(&self.begin_writing);
        let looked = timeout_at(deadline, look(&lease.db, whose, sent, work)).await.unwrap_or_else(|_| Err(silent()));
        let Plan { answer, does } = match looked {
            Ok(plan) => plan,
            Err(error) if error.is_unreachable() => return Outcome::Again(error),
            Err(error) => {
                let is_again = error.is_busy();
                lease.undo();
                return if is_again { Outcome::Again(error) } else { Outcome::Refused(error) };
            }
        };
        let is_confirming = matches!(does, Does::Confirms(_));
        let (version, statements) = match does {
            Does::Nothing => {
                lease.undo();
                return Outcome::Done(answer);
            }
            Does::Confirms(version) => {
                (version, vec![Statement::new(CONFIRM, values![whose.0.as_str(), whose.1.as_str()])])
            }
            Does::Writes(version, statements) => (Some(version), signed(whose, version, statements)),
            Does::Repeats(statements) => (None, statements),
        };
        match timeout_at(deadline, lease.db.commit(statements)).await.unwrap_or_else(|_| Err(silent())) {
            Ok(()) => {
                lease.give_back();
                Outcome::Done(answer)
            }
            Err(error) if error.is_unreachable() => Outcome::Lost(version, answer, error),
            Err(error) if is_confirming => {
                lease.undo();
                Outcome::Lost(version, answer, error)
            }
            Err(error) => {
                let is_again = error.is_busy();
                lease.undo();
                if is_again { Outcome::Again(error) } else { Outcome::Refused(error) }
            }
        }
    }
}

/// Looks first whether a commit that nobody has answered was done after all; if not, nobody can do it any more.
async fn look<'v, T, F>(
    db: &Db,
    whose: (&'v Tenant, &'v ConversationId, [u8; 16]),
    sent: &mut Vec<(Option<i64>, T)>,
    work: &impl Fn(Db) -> F,
) -> Result<Plan<'v, T>, Error>
where
    F: Future<Output = Result<Plan<'v, T>, Error>>,
{
    if let Some((version, answer)) = committed(db, whose, sent).await? {
        return Ok(Plan { answer, does: Does::Confirms(Some(version)) });
    }
    match work(db.clone()).await {
        // A conversation that was just being made could not be locked; now it is there, and may be ours.
        Err(error) if !error.is_busy() => match committed(db, whose, sent).await? {
            Some((version, answer)) => Ok(Plan { answer, does: Does::Confirms(Some(version)) }),
            None => Err(error),
        },
        looked => looked,
    }
}

async fn committed<T>(
    db: &Db,
    (tenant, id, writer): (&Tenant, &ConversationId, [u8; 16]),
    sent: &mut Vec<(Option<i64>, T)>,
) -> Result<Option<(i64, T)>, Error> {
    if sent.iter().all(|(version, _)| version.is_none()) {
        return Ok(None);
    }
    let key = || values![tenant.as_str(), id.as_str()];
    db.row(LOCK, key()).await?;
    let Some(row) = db.row(WRITTEN, values![tenant.as_str(), id.as_str(), writer]).await? else { return Ok(None) };
    let version = number(&row, 0)?;
    let at = sent.iter().position(|(it, _)| *it == Some(version));
    Ok(at.map(|at| (version, sent.swap_remove(at).1)))
}

/// Adds who writes, and lets go of what nobody asks for any more.
fn signed<'v>(
    (tenant, id, writer): (&'v Tenant, &'v ConversationId, [u8; 16]),
    version: i64,
    mut statements: Vec<Statement<'v>>,
) -> Vec<Statement<'v>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let (tenant, id) = (tenant.as_str(), id.as_str());
    statements.push(Statement::new(PUT_WRITTEN, values![tenant, id, version, writer, millis(now)]));
    if version % WRITTEN_VERSIONS == 0 {
        let old = millis(now.saturating_sub(WRITTEN_AGE));
        statements.push(Statement::new(DROP_WRITTEN, values![tenant, id, version - WRITTEN_VERSIONS, old]));
    }
    statements
}

fn silent() -> Error {
    Kind::Unreachable { what: "no answer in time".into() }.into()
}

pub(super) fn random() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    let refused = |error: getrandom::Error| Kind::Io { what: "a random number".into(), why: error.to_string() };
    getrandom::fill(&mut bytes).map_err(refused)?;
    Ok(bytes)
}
