//! A primary that starts again: it has what its standbys were never told, and nobody may be told of it before they are.

use super::open;
use crate::engine::block_on;
use recto::{Entry, Seq};
use recto_engine::store::postgres::Postgres;
use recto_engine::{Append, At, Engine, Opening, Tenant};
use recto_testkit::postgres::Cluster;
use std::sync::Arc;

const WAIT_MS: u64 = 1_500;
const WAITING: &str = "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')";
const BOTH_HAVE_ALL: &str = "(SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= pg_current_wal_lsn()) = 2";

fn at() -> At {
    At::new(&Tenant::default(), "talk")
}

fn append() -> Append {
    Append::any([Entry::user("once")]).keyed("once")
}

async fn entries(engine: &Engine<Postgres>) -> usize {
    engine.read(&at(), Seq(0), 10).await.unwrap().len()
}

#[test]
fn what_only_a_restarted_primary_has_is_acknowledged_once_a_standby_has_it_too() {
    let cluster = Arc::new(Cluster::start(2));
    cluster.wait_for_any(0, &[1, 2]);
    let address = format!("{}&sslmode=disable&wait_ms={WAIT_MS}", cluster.url("postgres"));
    block_on(async {
        let engine = Engine::over(open(&address).await);
        engine.open(&at(), Opening::default()).await.unwrap();
        // One standby was enough for that; it may have been the other.
        cluster.node(0).wait_until(BOTH_HAVE_ALL);
        cluster.node(1).freeze();
        cluster.node(2).freeze();
        let writing = tokio::spawn({
            let engine = engine.clone();
            async move { engine.append(&at(), append()).await }
        });
        // The writer goes on while this thread waits.
        tokio::task::spawn_blocking({
            let cluster = cluster.clone();
            move || {
                cluster.node(0).wait_until(WAITING);
                cluster.node(0).restart();
            }
        })
        .await
        .unwrap();
        let unknown = writing.await.unwrap().expect_err("no standby has it");
        assert!(unknown.is_indeterminate(), "{unknown}");
        assert_eq!(entries(&engine).await, 1, "the primary itself has it");
        let unknown = engine.append(&at(), append()).await.expect_err("still no standby has it");
        assert!(unknown.is_indeterminate(), "{unknown}");
        // So nothing that was acknowledged is lost with the primary.
        cluster.node(0).kill();
        cluster.node(1).restart();
        cluster.promote(1);
        assert_eq!(entries(&engine).await, 0);
        assert!(!engine.append(&at(), append()).await.unwrap().is_repeated);
        assert!(engine.append(&at(), append()).await.unwrap().is_repeated);
        assert_eq!(entries(&engine).await, 1);
    });
}
