//! Places of logs that are found by what identifies everything up to them.

use super::make::*;
use recto::Seq;
use recto::digest::Digest;
use recto_engine::store::{Batch, Forks, LINKS_MAX, Link, NewConversation, Store};
use recto_engine::{ConversationId, Tenant};

fn prefix(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn beginning(id: &str, links: &[&str], rows: &[&str]) -> Batch {
    let create = Some(Box::new(NewConversation { id: id.into(), ..new(id) }));
    let links = links.iter().map(|text| prefix(text)).collect();
    Batch { create, links, ..batch(rows.iter().map(|text| user(text)).collect()) }
}

fn found(links: &[Link]) -> Vec<(&str, u64, Option<u64>)> {
    links.iter().map(|it| (it.conversation.as_str(), it.seq.0, it.head.map(|head| head.0))).collect()
}

/// A batch can make its conversation, all of it or nothing.
pub(super) async fn a_conversation_can_begin_with_its_first_entries<S: Store>(store: S) {
    let tenant = Tenant::default();
    let id = ConversationId::from("new");
    let refused = Batch { expect: recto_engine::Expect::Head(Some(Seq(3))), ..beginning("new", &["a"], &["one"]) };
    assert!(store.append(&tenant, &id, refused).await.unwrap_err().is_head_moved());
    assert!(store.conversation(&tenant, &id).await.is_err(), "nothing was made");
    assert_eq!(store.linked(&tenant, vec![prefix("a")]).await.unwrap(), []);
    store.append(&tenant, &id, beginning("new", &["a"], &["one", "two"])).await.unwrap();
    assert_eq!(store.conversation(&tenant, &id).await.unwrap().tally.head(), Some(Seq(1)));
    assert!(store.append(&tenant, &id, beginning("new", &[], &["again"])).await.is_err(), "it exists");
    assert_eq!(store.conversation(&tenant, &id).await.unwrap().tally.head(), Some(Seq(1)));
}

/// A place is found by its prefix within its tenant, until its conversation is erased.
pub(super) async fn places_are_found_by_what_stands_before_them<S: Store>(store: S) {
    let (tenant, other) = (Tenant::default(), Tenant::from("other"));
    let id = ConversationId::from("c");
    store.append(&tenant, &id, beginning("c", &["a", "also a"], &["one"])).await.unwrap();
    let more = Batch { links: vec![prefix("b")], ..batch(vec![user("two"), user("three")]) };
    store.append(&tenant, &id, more).await.unwrap();
    let links = store.linked(&tenant, vec![prefix("none"), prefix("b"), prefix("a")]).await.unwrap();
    assert_eq!(found(&links), [("c", 2, Some(2))], "the first that is known");
    assert_eq!(links[0].prefix, prefix("b"));
    for other in ["a", "also a"] {
        let links = store.linked(&tenant, vec![prefix(other)]).await.unwrap();
        assert_eq!(found(&links), [("c", 0, Some(2))], "{other}");
    }
    assert_eq!(store.linked(&other, vec![prefix("a")]).await.unwrap(), [], "another tenant finds nothing");
    store.erase(&tenant, &id, Forks::Refuse).await.unwrap();
    assert_eq!(store.linked(&tenant, vec![prefix("a"), prefix("b")]).await.unwrap(), []);
}

/// Of conversations that share a prefix, those come first that nobody has carried on.
pub(super) async fn free_places_are_found_first_and_never_too_many<S: Store>(store: S) {
    let tenant = Tenant::default();
    for number in 0..LINKS_MAX + 3 {
        let name = format!("c{number:02}");
        store.append(&tenant, &name.as_str().into(), beginning(&name, &["same"], &["one"])).await.unwrap();
        if number != 5 {
            store.append(&tenant, &name.as_str().into(), batch(vec![user("gone on")])).await.unwrap();
        }
    }
    let links = store.linked(&tenant, vec![prefix("same")]).await.unwrap();
    assert_eq!(links.len(), LINKS_MAX);
    assert_eq!((links[0].conversation.as_str(), links[0].head), ("c05", Some(Seq(0))));
    assert!(links[1..].iter().all(|link| link.head == Some(Seq(1))));
}
