//! Entries that are found by their terms.

use super::make::*;
use recto::Seq;
use recto_engine::Forks;
use recto_engine::store::{EraseEntries, Remains, Store, Termed};

fn termed(seq: u64, terms: &[&str]) -> Termed {
    Termed { seq: Seq(seq), terms: terms.iter().map(|term| (*term).into()).collect() }
}

async fn places<S: Store>(store: &S, id: &str, term: &str, most: usize) -> (Vec<u64>, bool) {
    let found = store.postings(&tenant(), &name(id), vec![term.into()], most).await.unwrap();
    (found[0].seqs.iter().map(|seq| seq.0).collect(), found[0].is_cut)
}

async fn filled<S: Store>(store: &S, id: &str, rows: &[&str]) {
    store.create(&tenant(), new(id)).await.unwrap();
    store.append(&tenant(), &name(id), batch(rows.iter().map(|text| user(text)).collect())).await.unwrap();
}

/// The newest come first, and no more than asked for.
pub(super) async fn entries_are_found_by_their_terms_the_newest_first<S: Store>(store: S) {
    filled(&store, "c", &["red fox", "fox", "東京 fox", "hen"]).await;
    let before = store.conversation(&tenant(), &name("c")).await.unwrap();
    let texts = vec![termed(0, &["red", "fox"]), termed(1, &["fox"]), termed(2, &["東京", "fox"]), termed(3, &[])];
    let reached = store.index(&tenant(), &name("c"), texts.clone()).await.unwrap();
    assert_eq!((reached.upto, reached.texts), (Some(Seq(3)), 3));
    assert_eq!(places(&store, "c", "fox", 9).await, (vec![2, 1, 0], false));
    assert_eq!(places(&store, "c", "fox", 2).await, (vec![2, 1], true));
    assert_eq!(places(&store, "c", "東京", 9).await, (vec![2], false));
    assert_eq!(places(&store, "c", "wolf", 9).await, (vec![], false));
    let again = store.index(&tenant(), &name("c"), texts).await.unwrap();
    assert_eq!(again, reached, "what is there is passed over");
    assert_eq!(store.indexed(&tenant(), &name("c")).await.unwrap(), reached);
    let after = store.conversation(&tenant(), &name("c")).await.unwrap();
    assert_eq!(before.version, after.version, "it is no change of the conversation");
}

/// One conversation's terms are nobody else's.
pub(super) async fn conversations_do_not_find_each_others_entries<S: Store>(store: S) {
    for id in ["one", "other"] {
        filled(&store, id, &["fox", "hen"]).await;
    }
    store.index(&tenant(), &name("one"), vec![termed(0, &["fox"])]).await.unwrap();
    store.index(&tenant(), &name("other"), vec![termed(1, &["fox"])]).await.unwrap();
    assert_eq!(places(&store, "one", "fox", 9).await.0, [0]);
    assert_eq!(places(&store, "other", "fox", 9).await.0, [1]);
    assert!(store.indexed(&"stranger".into(), &name("one")).await.is_err(), "another tenant has no such conversation");
}

/// What a fork shares is found in the one that it goes on from, and only up to there.
pub(super) async fn a_fork_finds_what_it_shares<S: Store>(store: S) {
    filled(&store, "parent", &["fox", "fox", "fox"]).await;
    store.create(&tenant(), fork("child", "parent", Some(1))).await.unwrap();
    store.append(&tenant(), &name("child"), batch(vec![user("fox")])).await.unwrap();
    let reached = store.indexed(&tenant(), &name("child")).await.unwrap();
    assert_eq!(reached.upto, Some(Seq(1)), "its own begin behind that");
    let all = (0..3).map(|seq| termed(seq, &["fox"])).collect();
    store.index(&tenant(), &name("parent"), all).await.unwrap();
    store.index(&tenant(), &name("child"), vec![termed(2, &["fox", "new"])]).await.unwrap();
    assert_eq!(places(&store, "child", "fox", 9).await.0, [2, 1, 0]);
    assert_eq!(places(&store, "child", "new", 9).await.0, [2]);
    assert_eq!(places(&store, "parent", "new", 9).await.0, [0; 0]);
}

/// After an erase of an entry all others are found, at the latest once they were told again; after that of a conversation
/// nothing is.
pub(super) async fn what_was_erased_is_found_no_more<S: Store>(store: S) {
    filled(&store, "c", &["fox", "hen"]).await;
    store.index(&tenant(), &name("c"), vec![termed(0, &["fox"]), termed(1, &["hen"])]).await.unwrap();
    assert_eq!(places(&store, "c", "fox", 9).await.0, [0], "the control finds it");
    let remains = vec![Remains { seq: Seq(0), body: "{}".into(), counts: "[0]".into() }];
    let erase = EraseEntries { remains, decisions: Vec::new() };
    store.erase_entries(&tenant(), &name("c"), erase).await.unwrap();
    assert_eq!(places(&store, "c", "fox", 9).await.0, [0; 0]);
    store.index(&tenant(), &name("c"), vec![termed(0, &[]), termed(1, &["hen"])]).await.unwrap();
    assert_eq!(places(&store, "c", "hen", 9).await.0, [1]);
    store.erase(&tenant(), &name("c"), Forks::Refuse).await.unwrap();
    assert!(store.postings(&tenant(), &name("c"), vec!["hen".into()], 9).await.is_err());
}
