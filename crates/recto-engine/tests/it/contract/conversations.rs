//! Making, listing, and whose is whose.

use super::make::*;
use recto::log::Tally;
use recto::{Entry, Seq};
use recto_engine::Error;
use recto_engine::store::{
    ConversationId, Decisions, EraseEntries, Forks, NAME_BYTES_MAX, ReaderName, RecordKind, State, Store, Tenant,
    Turns, Upto,
};

pub(super) async fn a_new_conversation_is_empty_and_told_as_it_was_made<S: Store>(store: S) {
    let made = store.make(new("a")).await;
    assert_eq!(made, store.told("a").await);
    assert_eq!((made.state, &made.tally, made.from), (State::Live, &Tally::default(), None));
    assert_eq!((&*made.title, &*made.meta, &*made.tokenizer), ("about a", "{\"k\":1}", "o200k_base"));
    assert_eq!((made.created, made.updated), (NOW, NOW));
    assert!(store.all("a").await.is_empty());
    assert!(store.back(&tenant(), &name("a"), all_back()).await.unwrap().is_empty());
    assert!(store.readers(&tenant(), &name("a")).await.unwrap().is_empty());
}

pub(super) async fn a_name_is_given_once<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one")]).await;
    let error = store.create(&tenant(), new("a")).await.unwrap_err();
    assert!(error.is_exists(), "{error}");
    assert_eq!(places(&store.all("a").await), [0]);
}

pub(super) async fn names_are_listed_in_order_and_in_pages<S: Store>(store: S) {
    let tenant = tenant();
    for id in ["b", "ä", "a", "B", "c", "a b"] {
        store.make(new(id)).await;
    }
    let ids = |list: Vec<recto_engine::store::Conversation>| list.into_iter().map(|it| it.id).collect::<Vec<_>>();
    let all = ids(store.list(&tenant, None, usize::MAX).await.unwrap());
    assert_eq!(all, ["B", "a", "a b", "b", "c", "ä"].map(name));
    assert_eq!(ids(store.list(&tenant, None, 2).await.unwrap()), all[..2]);
    assert_eq!(ids(store.list(&tenant, Some(&name("a")), 2).await.unwrap()), all[2..4]);
    // It needn't be there itself.
    assert_eq!(ids(store.list(&tenant, Some(&name("bb")), 9).await.unwrap()), all[4..]);
    store.erase(&tenant, &name("b"), Forks::Refuse).await.unwrap();
    assert_eq!(ids(store.list(&tenant, None, 9).await.unwrap()), ["B", "a", "a b", "c", "ä"].map(name));
}

pub(super) async fn tenants_never_see_each_other<S: Store>(store: S) {
    let other = Tenant::from("other");
    store.make(new("a")).await;
    store.say("a", vec![user("one"), long('x')]).await;
    for error in refusals(&store, &other, &name("a")).await {
        assert!(error.is_not_found(), "{error}");
    }
    assert!(store.list(&other, None, 9).await.unwrap().is_empty());
    let error = store.create(&other, fork("b", "a", Some(0))).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    store.create(&other, new("a")).await.unwrap();
    assert_eq!(store.append(&other, &name("a"), batch(vec![user("theirs")])).await.unwrap(), appended(0, 0));
    assert!(store.contents(&other, &name("a"), vec![long('x').hash]).await.unwrap().is_empty());
    store.erase(&other, &name("a"), Forks::Erase).await.unwrap();
    assert_eq!(places(&store.all("a").await), [0, 1]);
}

pub(super) async fn every_verb_says_that_a_conversation_is_unknown<S: Store>(store: S) {
    store.make(new("a")).await;
    let error = store.conversation(&tenant(), &name("b")).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    for error in refusals(&store, &tenant(), &name("b")).await {
        assert!(error.is_not_found(), "{error}");
    }
}

pub(super) async fn names_that_are_too_long_are_refused<S: Store>(store: S) {
    let (fits, long) = ("n".repeat(NAME_BYTES_MAX), "n".repeat(NAME_BYTES_MAX + 1));
    store.make(new(&fits)).await;
    store.put(&fits, keyed(&fits, vec![user("one")])).await.unwrap();
    store.keep(&tenant(), &name(&fits), record(RecordKind::Note, &fits, 1)).await.unwrap();
    let errors = [
        store.create(&tenant(), new(&long)).await.unwrap_err(),
        store.create(&Tenant::from(long.as_str()), new("a")).await.unwrap_err(),
        store.put(&fits, keyed(&long, vec![user("one")])).await.unwrap_err(),
        store.keep(&tenant(), &name(&fits), record(RecordKind::Note, &long, 1)).await.unwrap_err(),
        store
            .commit(&tenant(), &name(&fits), &ReaderName::from(long.as_str()), commit(row_of(0, 0), vec![]))
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert!(error.is_input(), "{error}");
    }
    assert_eq!(places(&store.all(&fits).await), [0]);
}

pub(super) async fn the_version_rises_with_everything_that_is_written<S: Store>(store: S) {
    let (tenant, a) = (tenant(), name("a"));
    let mut before = store.make(new("a")).await.version;
    let mut rose = async |what: &str| {
        let version = store.told("a").await.version;
        assert!(version > before, "{what}");
        // So a writer can tell whether it was alone.
        assert!(version == before + 1 || what == "an erased entry", "{what}: by one");
        before = version;
    };
    store.say("a", vec![user("one")]).await;
    rose("entries").await;
    store.decide("a", opening(row_of(0, 0), "first")).await.unwrap();
    rose("an open call").await;
    store.answered("a", answer("first", 0, Some(0), batch(vec![]))).await.unwrap();
    rose("an answer").await;
    store.decide("a", opening(row_of(1, 0), "second")).await.unwrap();
    rose("another open call").await;
    store.abandon(&tenant, &a, &reader(), ticket("second")).await.unwrap();
    rose("an abandoned call").await;
    store.keep(&tenant, &a, record(RecordKind::Want, "w", 1)).await.unwrap();
    rose("a record").await;
    let remains = recto_engine::store::Remains { seq: Seq(0), body: "{}".into(), counts: String::new() };
    let erase = EraseEntries { remains: vec![remains], decisions: Vec::new() };
    store.erase_entries(&tenant, &a, erase).await.unwrap();
    rose("an erased entry").await;
    store.put("a", expecting(None, vec![user("two")])).await.unwrap_err();
    assert_eq!(store.told("a").await.version, before, "what is refused writes nothing");
}

/// Asks everything of a conversation that can't be had, but for its row, and returns the errors.
pub(super) async fn refusals<S: Store>(store: &S, tenant: &Tenant, id: &ConversationId) -> Vec<Error> {
    let (reader, digest) = (reader(), ticket("none"));
    let remains = recto_engine::store::Remains { seq: Seq(0), body: "{}".into(), counts: String::new() };
    vec![
        store.append(tenant, id, batch(vec![row(Entry::user("late"))])).await.map(|_| ()).unwrap_err(),
        store.append(tenant, id, batch(vec![])).await.map(|_| ()).unwrap_err(),
        store.back(tenant, id, all_back()).await.map(|_| ()).unwrap_err(),
        store.forth(tenant, id, Seq(0), 9).await.map(|_| ()).unwrap_err(),
        store.rows(tenant, id, vec![Seq(0)]).await.map(|_| ()).unwrap_err(),
        store.rows(tenant, id, vec![]).await.map(|_| ()).unwrap_err(),
        store.tallies(tenant, id, vec![Seq(0)]).await.map(|_| ()).unwrap_err(),
        store.first(tenant, id, 0, Seq(0)).await.map(|_| ()).unwrap_err(),
        store.reader(tenant, id, &reader).await.map(|_| ()).unwrap_err(),
        store.readers(tenant, id).await.map(|_| ()).unwrap_err(),
        store.decisions(tenant, id, &reader, Upto::NOW, Decisions::Floors(1)).await.map(|_| ()).unwrap_err(),
        store.turns(tenant, id, &reader, Upto::NOW, Turns::One(0)).await.map(|_| ()).unwrap_err(),
        store.commit(tenant, id, &reader, commit(row_of(0, 0), vec![])).await.unwrap_err(),
        store.open(tenant, id, &reader, digest).await.map(|_| ()).unwrap_err(),
        store.acknowledge(tenant, id, &reader, answer("none", 0, None, batch(vec![]))).await.map(|_| ()).unwrap_err(),
        store.abandon(tenant, id, &reader, digest).await.map(|_| ()).unwrap_err(),
        store.contents(tenant, id, vec![digest]).await.map(|_| ()).unwrap_err(),
        store.keep(tenant, id, record(RecordKind::Note, "n", 1)).await.unwrap_err(),
        store.kept(tenant, id, RecordKind::Note).await.map(|_| ()).unwrap_err(),
        store.forks(tenant, id).await.map(|_| ()).unwrap_err(),
        store.erase(tenant, id, Forks::Erase).await.map(|_| ()).unwrap_err(),
        store
            .erase_entries(tenant, id, EraseEntries { remains: vec![remains], decisions: Vec::new() })
            .await
            .map(|_| ())
            .unwrap_err(),
    ]
}
