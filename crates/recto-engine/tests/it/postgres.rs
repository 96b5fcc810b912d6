//! What is special about the store in PostgreSQL; everything else is in the contract.

use crate::contract::make::*;
use recto_engine::Error;
use recto_engine::store::postgres::{Postgres, Settings};
use recto_testkit::postgres::Server;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

static DATABASE: OnceLock<String> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns where a new store may be made: a schema of its own in the database of this process.
pub(crate) fn place() -> Settings {
    let database = DATABASE.get_or_init(|| Server::shared().database());
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{database}?schema=test_{number}&sslmode=disable").parse().expect("the address is well formed")
}

/// Opens a store outside of any runtime, or inside of one that doesn't wait.
pub(crate) fn open(settings: Settings) -> Result<Postgres, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    std::thread::spawn(move || runtime.block_on(Postgres::open(settings))).join().expect("opening does not panic")
}

/// Opens a new store.
pub(crate) fn opened() -> ((), Postgres) {
    ((), open(place()).expect("a new store can be opened"))
}

#[tokio::test]
async fn texts_with_nul_come_back_as_they_were() {
    let (_, store) = opened();
    let texts = ["a\0b", "\0", "\u{1}", "\u{1}\u{1}", "\u{1}\u{2}\0", "x\u{1}"];
    store.make(new("a\0b")).await;
    for text in texts {
        store.say("a\0b", vec![user(text)]).await;
    }
    let rows = store.all("a\0b").await;
    assert_eq!(rows.len(), texts.len());
}
