//! What is kept under a key, and what is found by its digest.

use super::make::*;
use recto_engine::store::{Batch, Commit, Expect, Record, RecordKind, Store};

pub(super) async fn a_record_is_replaced_by_the_next_version_only<S: Store>(store: S) {
    let a = name("a");
    store.make(new("a")).await;
    let keep = async |version: u64| store.keep(&tenant(), &a, record(RecordKind::Session, "s", version)).await;
    for wrong in [0, 2] {
        assert!(keep(wrong).await.unwrap_err().is_conflict());
    }
    keep(1).await.unwrap();
    for wrong in [0, 1, 3] {
        assert!(keep(wrong).await.unwrap_err().is_conflict());
    }
    keep(2).await.unwrap();
    let kept = store.kept(&tenant(), &a, RecordKind::Session).await.unwrap();
    assert_eq!(kept, [record(RecordKind::Session, "s", 2)]);
}

pub(super) async fn what_goes_with_an_append_is_written_with_it_or_not_at_all<S: Store>(store: S) {
    store.make(new("a")).await;
    let with = |version: u64, rows| Batch { records: vec![record(RecordKind::Session, "s", version)], ..batch(rows) };
    store.put("a", with(1, vec![user("one")])).await.unwrap();
    // An append of nothing is one, too.
    store.put("a", with(2, Vec::new())).await.unwrap();
    let stale = store.put("a", with(2, vec![user("lost")])).await.unwrap_err();
    assert!(stale.is_conflict(), "{stale}");
    let moved = Batch { expect: Expect::Head(None), ..with(3, vec![user("lost")]) };
    assert!(store.put("a", moved).await.unwrap_err().is_head_moved());
    assert_eq!(store.all("a").await.len(), 1);
    let kept = store.kept(&tenant(), &name("a"), RecordKind::Session).await.unwrap();
    assert_eq!(kept, [record(RecordKind::Session, "s", 2)]);
}

pub(super) async fn a_record_from_elsewhere_keeps_its_version_and_replaces_no_newer_one<S: Store>(store: S) {
    let a = name("a");
    store.make(new("a")).await;
    let adopt = async |version: u64| store.adopt(&tenant(), &a, record(RecordKind::Session, "s", version)).await;
    let version = async || store.kept(&tenant(), &a, RecordKind::Session).await.unwrap()[0].version;
    adopt(1_000_000).await.unwrap();
    assert_eq!(version().await, 1_000_000);
    for older in [7, 1_000_000] {
        adopt(older).await.unwrap();
        assert_eq!(version().await, 1_000_000);
    }
    adopt(1_000_007).await.unwrap();
    store.keep(&tenant(), &a, record(RecordKind::Session, "s", 1_000_008)).await.unwrap();
    assert_eq!(version().await, 1_000_008);
    assert!(store.adopt(&tenant(), &name("b"), record(RecordKind::Note, "n", 1)).await.unwrap_err().is_not_found());
}

pub(super) async fn records_are_listed_by_kind_in_the_order_of_their_keys<S: Store>(store: S) {
    let a = name("a");
    store.make(new("a")).await;
    for (kind, key) in
        [(RecordKind::Note, "b"), (RecordKind::Want, "b"), (RecordKind::Note, "a"), (RecordKind::Note, "B")]
    {
        store.keep(&tenant(), &a, record(kind, key, 1)).await.unwrap();
    }
    let keys = async |kind| {
        let kept: Vec<Record> = store.kept(&tenant(), &a, kind).await.unwrap();
        kept.iter().map(|it| it.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(RecordKind::Note).await, ["B", "a", "b"]);
    assert_eq!(keys(RecordKind::Want).await, ["b"]);
    assert!(keys(RecordKind::Session).await.is_empty());
}

pub(super) async fn contents_are_found_by_digest<S: Store>(store: S) {
    let a = name("a");
    store.make(new("a")).await;
    store.say("a", vec![long('x'), user("short")]).await;
    let tools = (ticket("tools"), "[{\"name\":\"read\"}]".into());
    store.decide("a", Commit { contents: vec![tools.clone()], ..commit(row_of(0, 0), vec![]) }).await.unwrap();
    // To bring it once more does no harm.
    let again = vec![tools.clone(), long('x').large[0].clone()];
    store.decide("a", Commit { contents: again, ..commit(row_of(0, 0), vec![]) }).await.unwrap();
    let digests = vec![tools.0, ticket("nothing"), long('x').hash, tools.0];
    let mut found = store.contents(&tenant(), &a, digests).await.unwrap();
    found.sort_by_key(|(_, text)| text.len());
    assert_eq!(found, [tools, long('x').large[0].clone()], "each once, and none that isn't there");
    assert!(store.contents(&tenant(), &a, vec![user("short").hash]).await.unwrap().is_empty());
}
