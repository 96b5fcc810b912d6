//! A store behind PgBouncer in transaction mode: every transaction may meet another connection of the server.

use super::{NEXT, database, open};
use crate::contract::make::*;
use recto_engine::store::Store;
use recto_engine::store::postgres::Postgres;
use recto_testkit::postgres::{Pooler, Server};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use tokio_postgres::{Client, NoTls};

/// Many more than the pooler has connections.
const WRITERS: usize = 12;
const APPENDS: usize = 10;
/// After so many tries a statement has met every connection.
const TRIES: usize = 50;

static POOLER: OnceLock<Pooler> = OnceLock::new();

/// Returns where this process's database is behind its pooler.
fn behind() -> String {
    let pooler = POOLER.get_or_init(|| Pooler::before(Server::shared()));
    pooler.url(database().rsplit('/').next().expect("a URL ends with the name"))
}

/// Returns where a new store may be made behind the pooler.
pub(crate) fn address() -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}?schema=pooled_{number}&sslmode=disable", behind())
}

/// Opens a new store behind the pooler.
pub(crate) fn opened() -> ((), Postgres) {
    ((), open(address().parse().expect("the address is well formed")).expect("a new store can be opened"))
}

async fn client() -> Client {
    let (client, connection) = tokio_postgres::connect(&behind(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Has the pooler open two connections to the server, which it would not for transactions that come one by one; from then
/// on they are given out in turns. Returns somebody who can take a turn.
async fn in_turns() -> Client {
    let (one, other) = (client().await, client().await);
    for client in [&one, &other] {
        client.batch_execute("BEGIN").await.unwrap();
    }
    for client in [&one, &other] {
        client.batch_execute("COMMIT").await.unwrap();
    }
    one
}

#[tokio::test]
async fn who_leaves_something_in_a_connection_is_found_out_by_this_pooler() {
    // The control: without it, a pooler that gives everybody a connection for good would do for the other tests.
    let one = in_turns().await;
    one.batch_execute("PREPARE left_behind AS SELECT 1").await.unwrap();
    let mut refused = BTreeSet::new();
    for _ in 0..TRIES {
        if let Err(error) = one.batch_execute("EXECUTE left_behind").await {
            refused.insert(error.as_db_error().unwrap().code().code().to_string());
        }
        // The two connections are given out in turns.
        one.batch_execute("SELECT 1").await.unwrap();
    }
    assert_eq!(refused.into_iter().collect::<Vec<_>>(), ["26000"], "a statement that does not exist");
}

#[tokio::test]
async fn more_writers_than_connections_of_the_pooler_lose_nothing() {
    let (_, store) = opened();
    let beside = Postgres::open(store.settings().clone()).await.unwrap();
    store.make(new("a")).await;
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..WRITERS {
        let store = if number % 2 == 0 { store.clone() } else { beside.clone() };
        writers.spawn(async move {
            for at in 0..APPENDS {
                let said = keyed(&format!("{number} {at}"), vec![user(&format!("{number} says {at}")), long('x')]);
                assert!(!store.append(&tenant(), &name("a"), said).await.unwrap().is_repeated);
                // Whoever has written reads it, whichever connection was given to it.
                let rows = store.all("a").await;
                assert!(rows.iter().any(|row| row.body.contains(&format!("\"{number} says {at}\""))));
            }
        });
    }
    writers.join_all().await;
    let said: BTreeSet<String> = store.all("a").await.into_iter().map(|row| row.body).collect();
    assert_eq!(store.told("a").await.tally.sums().entries as usize, 2 * WRITERS * APPENDS);
    assert_eq!(said.iter().filter(|body| body.contains(" says ")).count(), WRITERS * APPENDS);
}

#[tokio::test]
async fn who_prepares_behind_a_pooler_that_keeps_nothing_is_told_what_to_change() {
    let address = address();
    let store = Postgres::open(address.parse().unwrap()).await.unwrap();
    store.make(new("a")).await;
    let prepared = format!("{address}&prepared=yes");
    let (one, mut told) = (in_turns().await, BTreeSet::new());
    match Postgres::open(prepared.parse().unwrap()).await {
        Ok(hasty) => {
            for _ in 0..TRIES {
                // Several transactions at once meet several connections of the server.
                let mut asking = tokio::task::JoinSet::new();
                for _ in 0..WRITERS {
                    let hasty = hasty.clone();
                    asking.spawn(async move { hasty.conversation(&tenant(), &name("a")).await.map(drop) });
                }
                let answers = asking.join_all().await;
                told.extend(answers.into_iter().filter_map(Result::err).map(|error| error.to_string()));
                one.batch_execute("SELECT 1").await.unwrap();
            }
        }
        Err(error) => drop(told.insert(error.to_string())),
    }
    assert!(!told.is_empty(), "no transaction met another connection");
    assert!(told.iter().all(|told| told.contains("leave `prepared=yes` out")), "{told:?}");
    // The log is as it was.
    assert_eq!(store.told("a").await.tally.sums().entries, 0);
}
