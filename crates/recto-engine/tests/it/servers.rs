//! Many servers on one database of PostgreSQL: processes that share it, and a database that fails under them.

mod crowd; // several processes, heard at once
mod erased; // what is gone is gone for all
mod failover; // a primary that is lost
mod hot; // all at once, on one conversation and on many
mod restarted; // a primary that comes back before its standbys
mod told; // what one server does, and another sees

use recto_engine::store::postgres::Postgres;
use recto_testkit::postgres::Server;

/// Opens a store, as one of many servers on it.
async fn open(address: &str) -> Postgres {
    Postgres::open(address.parse().expect("the address is well formed")).await.expect("the store can be opened")
}

/// Returns the address of a database that nobody else uses.
fn address() -> String {
    format!("{}?sslmode=disable", Server::shared().database())
}

/// Opens a store that nobody else uses.
pub(crate) async fn store() -> Postgres {
    open(&address()).await
}
