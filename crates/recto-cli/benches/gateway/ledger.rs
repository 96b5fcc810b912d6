//! The least that a durable record takes: each body a row, on disk before anybody hears of it, with those that come at the
//! same time in one transaction. Nothing is read, counted or found again.

use axum::body::Bytes;
use rusqlite::Connection;
use std::path::Path;
use tokio::sync::{mpsc, oneshot};

const QUEUE_MAX: usize = 1_024;

#[derive(Clone)]
pub(crate) struct Ledger(mpsc::Sender<(Bytes, oneshot::Sender<()>)>);

impl Ledger {
    pub(crate) fn open(path: &Path) -> Ledger {
        let (bodies, queue) = mpsc::channel(QUEUE_MAX);
        let db = Connection::open(path).expect("the file can be made");
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
             CREATE TABLE body (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)",
        )
        .expect("an empty file takes a table");
        std::thread::spawn(move || write_all(&db, queue));
        Ledger(bodies)
    }

    /// Returns when it is on disk.
    pub(crate) async fn write(&self, body: Bytes) {
        let (done, is_done) = oneshot::channel();
        self.0.send((body, done)).await.expect("the thread runs as long as this process");
        is_done.await.expect("it answers everybody");
    }
}

fn write_all(db: &Connection, mut queue: mpsc::Receiver<(Bytes, oneshot::Sender<()>)>) {
    let run = |sql: &str| db.prepare_cached(sql).and_then(|mut it| it.execute([])).expect("nobody else writes");
    while let Some(first) = queue.blocking_recv() {
        run("BEGIN IMMEDIATE");
        let mut waiting = Vec::new();
        let mut next = Some(first);
        while let Some((body, done)) = next {
            let mut put = db.prepare_cached("INSERT INTO body (bytes) VALUES (?1)").expect("it is SQL");
            put.execute([&body[..]]).expect("nobody else writes");
            waiting.push(done);
            next = queue.try_recv().ok();
        }
        run("COMMIT");
        for done in waiting {
            // A client that has gone away doesn't wait for it.
            let _ = done.send(());
        }
    }
}
