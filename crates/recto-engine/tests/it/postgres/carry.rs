//! A whole store, carried over to PostgreSQL: everything is there as it was, also if it took several goes.

use super::{asked, opened, place};
use crate::contract::make::*;
use crate::folder::TempFolder;
use recto::Seq;
use recto::digest::Digest;
use recto::entry::Millis;
use recto_engine::store::any::Any;
use recto_engine::store::carry::{Carried, carry};
use recto_engine::store::postgres::Postgres;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::store::{
    AccessKey, Batch, DecisionKind, Decisions, EraseEntries, FORK_DEPTH_MAX, Forks, ReaderRow, RecordKind, Remains,
    Store, Tenant, Turns, Upto,
};

/// A store with something of everything.
async fn filled(folder: &TempFolder) -> Sqlite {
    let store = Sqlite::open(folder.file("store.db")).unwrap();
    let tenant = tenant();
    store.make(new("z")).await;
    for number in 0..1_200 {
        let row = if number % 300 == 7 { long('l') } else { user(&format!("entry {number}\0")) };
        let links = vec![Digest::of(format!("prefix {number}").as_bytes())];
        let said = Batch { links, ..keyed(&format!("key {number}"), vec![row]) };
        store.append(&tenant, &name("z"), said).await.unwrap();
        if number % 10 == 0 {
            let row = store.reader(&tenant, &name("z"), &reader()).await.unwrap();
            let ordinal = row.ordinal + 1;
            let mut commit = opening(row, &format!("call {number}"));
            commit.decisions = vec![decision(ordinal, row.turns, DecisionKind::Entry, number)];
            commit.contents = vec![(Digest::of(b"kept"), "kept".into())];
            store.commit(&tenant, &name("z"), &reader(), commit).await.unwrap();
            let answered = answer(&format!("call {number}"), row.turns, Some(number), batch(Vec::new()));
            store.acknowledge(&tenant, &name("z"), &reader(), answered).await.unwrap();
        }
    }
    store.keep(&tenant, &name("z"), record(RecordKind::Session, "s\0", 1)).await.unwrap();
    store.commit(&tenant, &name("z"), &"other".into(), opening(ReaderRow::default(), "open")).await.unwrap();
    // Forks whose names come before that of what they go on from, deeper than what is shared.
    let mut below = "z".to_string();
    for depth in 0..=FORK_DEPTH_MAX + 1 {
        let id = format!("fork {:02}", 50 - depth);
        store.create(&tenant, fork(&id, &below, Some(700 + depth as u64))).await.unwrap();
        store.say(&id, vec![user(&format!("of {id}")), long('f')]).await;
        below = id;
    }
    store.make(new("gone")).await;
    store.say("gone", vec![user("secret")]).await;
    store.erase(&tenant, &name("gone"), Forks::Refuse).await.unwrap();
    let remains = vec![Remains { seq: Seq(3), body: "{}".into(), counts: "[]".into() }];
    store.erase_entries(&tenant, &name("z"), EraseEntries { remains, decisions: Vec::new() }).await.unwrap();
    store.create(&Tenant::from("other"), new("z")).await.unwrap();
    for (at, key) in ["one", "two"].into_iter().enumerate() {
        let (hash, revoked) = (Digest::of(key.as_bytes()), (at == 1).then_some(Millis(9)));
        let key = AccessKey { hash, name: key.into(), tenant: tenant.clone(), policy: None, at: NOW, revoked };
        store.add_key(key).await.unwrap();
    }
    store
}

/// All that can be read of both, compared.
async fn compare(one: &impl Store, other: &impl Store) {
    for tenant in [tenant(), Tenant::from("other")] {
        let told = one.list(&tenant, None, 999).await.unwrap();
        assert_eq!(told, other.list(&tenant, None, 999).await.unwrap());
        for it in told {
            let id = &it.id;
            assert_eq!(
                one.forth(&tenant, id, Seq(0), 9_999).await.unwrap(),
                other.forth(&tenant, id, Seq(0), 9_999).await.unwrap()
            );
            assert_eq!(one.forks(&tenant, id).await.unwrap(), other.forks(&tenant, id).await.unwrap());
            let readers = one.readers(&tenant, id).await.unwrap();
            assert_eq!(readers, other.readers(&tenant, id).await.unwrap());
            for (reader, _) in readers {
                let which = || Decisions::After { ordinal: 0, rows: 9_999 };
                let decisions = one.decisions(&tenant, id, &reader, Upto::NOW, which()).await.unwrap();
                assert_eq!(decisions, other.decisions(&tenant, id, &reader, Upto::NOW, which()).await.unwrap());
                let which = || Turns::Since { turn: 0, rows: 9_999 };
                let turns = one.turns(&tenant, id, &reader, Upto::NOW, which()).await.unwrap();
                assert_eq!(turns, other.turns(&tenant, id, &reader, Upto::NOW, which()).await.unwrap());
                let open = one.open(&tenant, id, &reader, ticket("open")).await.unwrap();
                assert_eq!(open, other.open(&tenant, id, &reader, ticket("open")).await.unwrap());
            }
            for kind in [RecordKind::Session, RecordKind::Note, RecordKind::Want] {
                assert_eq!(one.kept(&tenant, id, kind).await.unwrap(), other.kept(&tenant, id, kind).await.unwrap());
            }
            let kept = vec![Digest::of(b"kept")];
            assert_eq!(
                one.contents(&tenant, id, kept.clone()).await.unwrap(),
                other.contents(&tenant, id, kept).await.unwrap()
            );
        }
        let prefixes = || vec![Digest::of(b"prefix 800")];
        assert_eq!(one.linked(&tenant, prefixes()).await.unwrap(), other.linked(&tenant, prefixes()).await.unwrap());
    }
    assert_eq!(one.keys().await.unwrap(), other.keys().await.unwrap());
}

#[tokio::test]
async fn everything_arrives_as_it_was_and_a_second_time_nothing_does() {
    let folder = TempFolder::new();
    let (from, (_, to)) = (filled(&folder).await, opened());
    let carried = carry(&Any::Sqlite(from.clone()), &to, |_| {}).await.unwrap();
    assert_eq!((carried.conversations, carried.known, carried.keys), (FORK_DEPTH_MAX as u64 + 5, 0, 2));
    compare(&from, &to).await;
    let again = carry(&Any::Sqlite(from.clone()), &to, |_| {}).await.unwrap();
    assert_eq!(again, Carried { known: carried.conversations, ..Carried::default() });
    // A retry that was sent to the old store is answered by the new one.
    let retried = to.append(&tenant(), &name("z"), keyed("key 5", vec![user("entry 5\0")])).await.unwrap();
    assert!(retried.is_repeated, "{retried:?}");
    // What was erased stays so, and an erase of a shared entry still reaches the forks.
    assert!(to.append(&tenant(), &name("gone"), batch(Vec::new())).await.unwrap_err().is_erased());
    let remains = vec![Remains { seq: Seq(5), body: "{}".into(), counts: "[]".into() }];
    to.erase_entries(&tenant(), &name("z"), EraseEntries { remains, decisions: Vec::new() }).await.unwrap();
    for id in ["fork 50", "fork 34", "fork 33"] {
        assert!(to.rows(&tenant(), &name(id), vec![Seq(5)]).await.unwrap()[0].is_erased, "{id}");
    }
    // From one database to another it is the same.
    let (_, third) = opened();
    let onward = carry(&Any::Postgres(to.clone()), &third, |_| {}).await.unwrap();
    assert_eq!(onward.conversations, carried.conversations);
    compare(&to, &third).await;
    // Something else under the same name is left alone.
    let error = carry(&Any::Sqlite(from), &to, |_| {}).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("is another one"), "{error}");
}

#[tokio::test]
async fn a_run_that_broke_off_anywhere_is_repeated_with_the_same_result() {
    let folder = TempFolder::new();
    let (from, settings) = (filled(&folder).await, place());
    let any = Any::Sqlite(from.clone());
    for pages in [0, 1, 3, 4, 9, 15, 40] {
        let to = Postgres::open(settings.clone()).await.unwrap();
        let mut left = pages;
        let stopped = std::cell::RefCell::new(None);
        {
            let (stop, heard) = tokio::sync::oneshot::channel::<()>();
            *stopped.borrow_mut() = Some(stop);
            let run = carry(&any, &to, |_| {
                left -= 1;
                if left <= 0 {
                    drop(stopped.borrow_mut().take());
                }
            });
            // Dropped in the middle, like a process that was killed.
            tokio::select! { biased; _ = heard => {}, done = run => drop(done.unwrap()) }
        }
        let orphans = "SELECT count(*) FROM entry e WHERE NOT EXISTS
            (SELECT 1 FROM conversation c WHERE c.tenant = e.tenant AND c.conversation = e.conversation)";
        let rows: i64 = asked(&to, orphans).parse().unwrap();
        assert!(pages != 1 || rows > 0, "it broke off in the middle of a conversation: {rows}");
    }
    let to = Postgres::open(settings).await.unwrap();
    carry(&any, &to, |_| {}).await.unwrap();
    compare(&from, &to).await;
    assert_eq!(asked(&to, "SELECT count(*) FROM entry"), asked_of(&from).await.to_string());
}

async fn asked_of(store: &Sqlite) -> u64 {
    store.check(|row| row.hash, |_| {}).await.unwrap().entries
}
