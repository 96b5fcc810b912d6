//! Erasing conversations and entries.

use super::conversations::refusals;
use super::make::*;
use recto::Seq;
use recto::log::Tally;
use recto_engine::store::{
    Commit, DecisionKind, DecisionRow, Decisions, EraseEntries, Erased, Forks, RecordKind, Remains, State, Store, Upto,
};

fn remains(seq: u64) -> Remains {
    Remains { seq: Seq(seq), body: "{\"erased\":true}".into(), counts: "[7]".into() }
}

fn erasing(seqs: &[u64]) -> EraseEntries {
    EraseEntries { remains: seqs.iter().map(|&seq| remains(seq)).collect(), decisions: Vec::new() }
}

pub(super) async fn an_erased_conversation_leaves_its_name_and_nothing_else<S: Store>(store: S) {
    let (tenant, a) = (tenant(), name("a"));
    store.make(new("a")).await;
    store.put("a", keyed("k", vec![user("one"), long('x')])).await.unwrap();
    store.decide("a", opening(row_of(0, 0), "call")).await.unwrap();
    store.keep(&tenant, &a, record(RecordKind::Note, "n", 1)).await.unwrap();
    let erased = store.erase(&tenant, &a, Forks::Refuse).await.unwrap();
    assert_eq!(erased, Erased { conversations: vec![name("a")], entries: 2 });
    let left = store.told("a").await;
    assert_eq!((left.state, left.tally, &*left.title, &*left.meta), (State::Erased, Tally::default(), "", ""));
    for error in refusals(&store, &tenant, &a).await {
        assert!(error.is_erased(), "{error}");
    }
    assert!(store.list(&tenant, None, 9).await.unwrap().is_empty());
    let error = store.create(&tenant, new("a")).await.unwrap_err();
    assert!(error.is_exists() && error.to_string().contains("erased"), "{error}");
    assert!(store.create(&tenant, fork("b", "a", None)).await.unwrap_err().is_erased());
}

pub(super) async fn a_conversation_with_forks_is_not_erased_without_a_word<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), user("two")]).await;
    for id in ["c", "b"] {
        store.make(fork(id, "a", Some(0))).await;
    }
    store.make(fork("d", "b", Some(0))).await;
    let error = store.erase(&tenant(), &name("a"), Forks::Refuse).await.unwrap_err();
    assert_eq!((error.forks(), error.is_input()), (&[name("b"), name("c")][..], true), "{error}");
    assert_eq!(places(&store.all("a").await), [0, 1]);
    // A fork may go without the one it goes on from.
    for id in ["d", "b", "c"] {
        store.erase(&tenant(), &name(id), Forks::Refuse).await.unwrap();
    }
    assert_eq!(places(&store.all("a").await), [0, 1]);
    assert!(store.forks(&tenant(), &name("a")).await.unwrap().is_empty());
    store.erase(&tenant(), &name("a"), Forks::Refuse).await.unwrap();
}

pub(super) async fn forks_are_erased_with_it_when_told<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), user("two")]).await;
    store.make(fork("b", "a", Some(0))).await;
    store.say("b", vec![user("other")]).await;
    store.make(fork("c", "b", Some(1))).await;
    store.make(new("z")).await;
    let mut erased = store.erase(&tenant(), &name("a"), Forks::Erase).await.unwrap();
    erased.conversations.sort();
    assert_eq!(erased, Erased { conversations: ["a", "b", "c"].map(name).to_vec(), entries: 3 });
    for id in ["a", "b", "c"] {
        assert_eq!(store.told(id).await.state, State::Erased);
        assert!(store.put(id, batch(vec![user("late")])).await.unwrap_err().is_erased());
    }
    store.say("z", vec![user("still here")]).await;
}

pub(super) async fn an_erased_entry_keeps_its_place_size_and_hash<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), long('x'), user("three")]).await;
    let before = store.all("a").await;
    let erased = store.erase_entries(&tenant(), &name("a"), erasing(&[0, 1])).await.unwrap();
    assert_eq!(erased.entries, 2);
    let after = store.all("a").await;
    for (row, was) in after.iter().zip(&before) {
        assert_eq!((row.seq, row.strand, &row.tally), (was.seq, was.strand, &was.tally));
        assert_eq!((row.hash, row.bytes), (was.hash, was.bytes));
    }
    for row in &after[..2] {
        assert_eq!((&*row.body, &*row.counts, row.is_erased), ("{\"erased\":true}", "[7]", true));
        assert!(row.large.is_empty());
    }
    assert_eq!(after[2], before[2]);
    assert!(store.contents(&tenant(), &name("a"), vec![long('x').hash]).await.unwrap().is_empty());
    assert_eq!(store.told("a").await.tally, before[2].tally);
    let again = store.erase_entries(&tenant(), &name("a"), erasing(&[0])).await.unwrap();
    assert_eq!(again.entries, 0, "what is gone is gone");
    assert_eq!(store.say("a", vec![user("four")]).await, appended(3, 3));
}

pub(super) async fn a_large_text_stays_while_another_entry_refers_to_it<S: Store>(store: S) {
    let a = name("a");
    store.make(new("a")).await;
    store.say("a", vec![long('x'), long('x'), long('y')]).await;
    let kept = Commit { contents: long('y').large, ..commit(row_of(0, 0), vec![]) };
    store.decide("a", kept).await.unwrap();
    let is_there =
        async |letter: char| !store.contents(&tenant(), &a, vec![long(letter).hash]).await.unwrap().is_empty();
    store.erase_entries(&tenant(), &a, erasing(&[0])).await.unwrap();
    assert!(is_there('x').await);
    assert_eq!(store.all("a").await[1].large, long('x').large);
    store.erase_entries(&tenant(), &a, erasing(&[0, 1])).await.unwrap();
    assert!(!is_there('x').await);
    store.erase_entries(&tenant(), &a, erasing(&[2])).await.unwrap();
    assert!(is_there('y').await, "a call refers to it as well");
}

pub(super) async fn a_shared_entry_is_erased_for_all<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), user("two"), user("three")]).await;
    store.make(fork("b", "a", Some(1))).await;
    store.say("b", vec![user("other")]).await;
    store.make(fork("c", "b", Some(2))).await;
    assert_eq!(store.erase_entries(&tenant(), &name("c"), erasing(&[0, 2])).await.unwrap().entries, 2);
    assert_eq!(store.erase_entries(&tenant(), &name("a"), erasing(&[1])).await.unwrap().entries, 1);
    let erased = async |id: &str| store.all(id).await.iter().map(|row| row.is_erased).collect::<Vec<_>>();
    assert_eq!(erased("a").await, [true, true, false], "the fork's #2 is another one");
    assert_eq!(erased("b").await, [true, true, true]);
    assert_eq!(erased("c").await, [true, true, true]);
}

pub(super) async fn decisions_that_quote_an_erased_entry_are_rewritten<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), user("two")]).await;
    let stub = |ordinal| decision(ordinal, 0, DecisionKind::Entry, 0);
    store.decide("a", commit(row_of(0, 0), vec![stub(1), stub(2)])).await.unwrap();
    store.make(fork("b", "a", Some(1))).await;
    store.decide("b", commit(row_of(0, 2), vec![stub(3)])).await.unwrap();
    let blank = |ordinal| DecisionRow { body: "{}".into(), ..stub(ordinal) };
    // The second is the first one's owner's, though it is named by the fork.
    let decisions =
        vec![(name("a"), reader(), blank(1)), (name("b"), reader(), blank(2)), (name("b"), reader(), blank(3))];
    store.erase_entries(&tenant(), &name("a"), EraseEntries { decisions, ..erasing(&[0]) }).await.unwrap();
    let all = Decisions::About(vec![Seq(0)]);
    let read = async |id: &str| store.decisions(&tenant(), &name(id), &reader(), Upto::NOW, all.clone()).await.unwrap();
    assert_eq!(read("a").await, [blank(1), blank(2)]);
    assert_eq!(read("b").await, [blank(1), blank(2), blank(3)]);
}

pub(super) async fn an_erase_of_what_does_not_exist_changes_nothing<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), at(4, user("two"))]).await;
    let before = store.all("a").await;
    for wrong in [2, 5] {
        let error = store.erase_entries(&tenant(), &name("a"), erasing(&[0, wrong])).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
    }
    let quoted = (name("a"), reader(), decision(1, 0, DecisionKind::Entry, 0));
    let erase = EraseEntries { decisions: vec![quoted], ..erasing(&[0]) };
    assert!(store.erase_entries(&tenant(), &name("a"), erase).await.unwrap_err().is_not_found());
    assert_eq!(store.all("a").await, before);
}

pub(super) async fn a_place_that_a_fork_has_filled_is_its_own<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![at(2, user("one")), at(5, user("two"))]).await;
    let made = store.make(fork("b", "a", Some(4))).await;
    assert_eq!(made.from.and_then(|from| from.upto), Some(Seq(2)));
    store.say("b", vec![user("between")]).await;
    let error = store.erase_entries(&tenant(), &name("a"), erasing(&[3])).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(store.all("b").await[1].hash, user("between").hash);
    assert!(!store.all("b").await[1].is_erased);
}

pub(super) async fn bodies_may_go_with_the_decision_that_replaces_them_or_not_at_all<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), long('x'), user("three")]).await;
    let going = |seqs: &[u64], expect| Commit {
        erase: seqs.iter().map(|&seq| remains(seq)).collect(),
        ..commit(expect, vec![decision(1, 0, DecisionKind::Entry, 1)])
    };
    let stale = store.decide("a", going(&[1], row_of(0, 7))).await.unwrap_err();
    assert!(stale.is_conflict(), "{stale}");
    assert!(store.decide("a", going(&[1, 9], row_of(0, 0))).await.unwrap_err().is_not_found());
    assert!(store.all("a").await.iter().all(|row| !row.is_erased));
    store.decide("a", going(&[1], row_of(0, 0))).await.unwrap();
    let rows = store.all("a").await;
    assert_eq!(rows.iter().map(|row| row.is_erased).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!((rows[1].hash, rows[1].large.len()), (long('x').hash, 0));
    // What a fork shares with another is not its own to erase this way.
    store.make(fork("b", "a", Some(2))).await;
    let shared = store.decide("b", Commit { decisions: Vec::new(), ..going(&[0], row_of(0, 1)) }).await.unwrap_err();
    assert!(shared.is_not_found(), "{shared}");
    assert!(!store.all("a").await[0].is_erased);
}
