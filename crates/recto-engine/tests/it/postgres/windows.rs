//! Windows are read with one statement where that is enough: they are of one moment all the same, and no server goes on
//! with one that nobody waits for.

use super::{address, asked, database, opened};
use crate::contract::make::*;
use recto::{Seq, Tokens};
use recto_engine::Error;
use recto_engine::store::postgres::Postgres;
use recto_engine::store::{Back, EraseEntries, Remains, Row, Store};
use recto_testkit::postgres::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const BATCHES: usize = 60;
const BATCH: usize = 3;
const LARGE: u64 = 40;

/// Reads the newest rows.
async fn window(store: &Postgres, rows: usize) -> Result<Vec<Row>, Error> {
    let back = Back { strands: Vec::new(), below: None, rows, tokens: Tokens(u64::MAX) };
    store.back(&tenant(), &name("a"), back).await
}

#[tokio::test]
async fn a_window_that_is_read_while_others_append_holds_whole_batches_and_no_gaps() {
    let (_, store) = opened();
    store.make(new("a")).await;
    let beside = Postgres::open(store.settings().clone()).await.unwrap();
    let writing = tokio::spawn(async move {
        for number in 0..BATCHES {
            let rows = (0..BATCH).map(|at| user(&format!("{number} {at}"))).collect();
            beside.append(&tenant(), &name("a"), batch(rows)).await.unwrap();
        }
    });
    let mut seen = 0;
    while seen < BATCHES * BATCH {
        let rows = window(&store, 1_000).await.unwrap();
        assert!(rows.len().is_multiple_of(BATCH) && rows.len() >= seen, "{} after {seen}", rows.len());
        seen = rows.len();
        let places: Vec<u64> = rows.iter().map(|row| row.seq.0).collect();
        assert_eq!(places, (0..seen as u64).rev().collect::<Vec<_>>());
        assert!(rows.iter().all(|row| row.tally.sums().entries == row.seq.0 + 1));
    }
    writing.await.unwrap();
}

#[tokio::test]
async fn a_window_whose_large_texts_are_being_erased_shows_each_of_them_or_that_it_is_gone() {
    let (_, store) = opened();
    store.make(new("a")).await;
    let letter = |at: u64| char::from_u32('A' as u32 + at as u32).unwrap();
    store.say("a", (0..LARGE).map(|at| long(letter(at))).collect()).await;
    let beside = Postgres::open(store.settings().clone()).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let erasing = tokio::spawn(async move {
        for at in 0..LARGE {
            let remains = vec![Remains { seq: Seq(at), body: "{}".into(), counts: "[]".into() }];
            let erase = EraseEntries { remains, decisions: Vec::new() };
            assert_eq!(beside.erase_entries(&tenant(), &name("a"), erase).await.unwrap().entries, 1);
        }
        over.store(true, Ordering::SeqCst);
    });
    let mut left = LARGE as usize;
    loop {
        let was_over = is_over.load(Ordering::SeqCst);
        let rows = window(&store, 1_000).await.unwrap();
        assert_eq!(rows.len() as u64, LARGE);
        for row in &rows {
            let texts: Vec<bool> =
                row.large.iter().map(|(_, text)| text.contains(&letter(row.seq.0).to_string().repeat(100))).collect();
            assert_eq!(texts, if row.is_erased { vec![] } else { vec![true] }, "entry {}", row.seq);
        }
        let now = rows.iter().filter(|row| !row.is_erased).count();
        assert!(now <= left, "what is gone stays gone");
        left = now;
        if was_over {
            break;
        }
    }
    erasing.await.unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_server_does_not_go_on_with_a_window_that_nobody_waits_for() {
    let store = Postgres::open(format!("{}&wait_ms=400", address()).parse().unwrap()).await.unwrap();
    store.make(new("a")).await;
    store.say("a", vec![user("one")]).await;
    let schema = store.settings().to_string();
    let schema = schema.rsplit('=').next().unwrap().to_string();
    let hold = format!("BEGIN; LOCK TABLE {schema}.entry; SELECT pg_sleep(60); ROLLBACK");
    let holder = std::thread::spawn(move || Server::shared().try_query(database(), &hold));
    let holds = "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%LOCK TABLE%')";
    let waits = "EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'recto' AND wait_event_type = 'Lock')";
    tokio::task::spawn_blocking(move || Server::shared().wait_until(holds)).await.unwrap();
    let error = window(&store, 10).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    // While the table is still locked.
    let given_up = format!("{holds} AND NOT {waits}");
    tokio::task::spawn_blocking(move || Server::shared().wait_until(&given_up)).await.unwrap();
    asked(&store, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    tokio::task::spawn_blocking(|| holder.join()).await.unwrap().unwrap().unwrap_err();
    assert_eq!(places(&window(&store, 10).await.unwrap()), [0]);
}
