//! A connection that is lost at a commit: the write is done once, whatever the server made of it.

use super::cut::{Cut, Proxy};
use super::{asked, open, place};
use crate::contract::make::*;
use recto::entry::Millis;
use recto::{Seq, digest::Digest};
use recto_engine::store::postgres::{Doubts, Postgres, Settings};
use recto_engine::store::{AccessKey, EraseEntries, Forks, ReaderRow, RecordKind, Remains, Store, Tenant};
use recto_testkit::postgres::{Pooler, Server};
use std::cell::Cell;
use std::time::Duration;

/// A store, and the same one seen through something that cuts.
fn behind(cut: Cut) -> (Proxy, Postgres, Postgres) {
    let server = super::database().split_once('@').unwrap().1.split_once('/').unwrap().0;
    behind_what_leads_to(server, cut)
}

fn behind_what_leads_to(server: &str, cut: Cut) -> (Proxy, Postgres, Postgres) {
    let settings = place();
    let direct = open(settings.clone()).expect("a new store can be opened");
    let rest = super::database().rsplit('/').next().unwrap();
    let proxy = Proxy::before(server, cut);
    let schema = settings.to_string();
    let schema = schema.rsplit('=').next().unwrap();
    let address = format!("postgres://recto@127.0.0.1:{}/{rest}?schema={schema}&sslmode=disable", proxy.port());
    let through: Settings = address.parse().expect("the address is well formed");
    let through = open(through).expect("it can be opened through the proxy");
    (proxy, direct, through)
}

/// Every verb that writes, each with its commit cut once; and that it was done once.
async fn every_verb_writes_once((proxy, direct, through): (Proxy, Postgres, Postgres)) -> Doubts {
    let tenant = tenant();
    let cuts = Cell::new(0);
    let next = || {
        assert_eq!(proxy.count(), cuts.replace(cuts.get() + 1), "every commit was cut");
        proxy.cut_next(1);
    };
    next();
    assert_eq!(through.create(&tenant, new("a")).await.unwrap().version, 1);
    next();
    assert_eq!(
        through.append(&tenant, &name("a"), batch(vec![user("one"), user("two")])).await.unwrap(),
        appended(0, 1)
    );
    next();
    assert_eq!(through.append(&tenant, &name("a"), keyed("k", vec![user("three")])).await.unwrap(), appended(2, 2));
    next();
    through.describe(&tenant, &name("a"), "title".into(), "{}".into()).await.unwrap();
    next();
    through.commit(&tenant, &name("a"), &reader(), opening(ReaderRow::default(), "first")).await.unwrap();
    next();
    let answered = answer("first", 0, Some(2), batch(vec![assistant("four")]));
    assert_eq!(through.acknowledge(&tenant, &name("a"), &reader(), answered).await.unwrap(), appended(3, 3));
    next();
    let row = direct.reader(&tenant, &name("a"), &reader()).await.unwrap();
    through.commit(&tenant, &name("a"), &reader(), opening(row, "second")).await.unwrap();
    next();
    assert!(through.abandon(&tenant, &name("a"), &reader(), ticket("second")).await.unwrap());
    next();
    through.keep(&tenant, &name("a"), record(RecordKind::Note, "r", 1)).await.unwrap();
    next();
    through.adopt(&tenant, &name("a"), record(RecordKind::Note, "r", 5)).await.unwrap();
    next();
    through.create(&tenant, fork("b", "a", Some(2))).await.unwrap();
    next();
    let remains = vec![Remains { seq: Seq(0), body: "{}".into(), counts: "[]".into() }];
    let erase = EraseEntries { remains, decisions: Vec::new() };
    assert_eq!(through.erase_entries(&tenant, &name("a"), erase).await.unwrap().entries, 1);
    next();
    let key = AccessKey {
        hash: Digest::of(b"key"),
        name: "key".into(),
        tenant: Tenant::default(),
        policy: None,
        at: NOW,
        revoked: None,
    };
    through.add_key(key.clone()).await.unwrap();
    next();
    assert!(through.revoke_key("key", Millis(7)).await.unwrap());
    assert!(!through.revoke_key("key", Millis(8)).await.unwrap());
    assert_eq!(proxy.count(), cuts.get());

    let told = direct.told("a").await;
    // One version for each write: made, two appends, described, two commits, answered, abandoned, two records, erased.
    assert_eq!((told.version, told.tally.head()), (11, Some(Seq(3))));
    assert_eq!(places(&direct.all("a").await), [0, 1, 2, 3]);
    assert_eq!(asked(&direct, "SELECT count(*) FROM turn"), "1");
    assert_eq!(direct.keys().await.unwrap()[0].revoked, Some(Millis(7)));
    next();
    let erased = through.erase(&tenant, &name("a"), Forks::Erase).await.unwrap();
    assert_eq!((erased.entries, erased.conversations), (4, vec![name("a"), name("b")]));
    assert_eq!(proxy.count(), cuts.get());
    through.doubts()
}

#[tokio::test]
async fn a_write_whose_commit_was_done_and_not_heard_of_is_not_done_again() {
    let Doubts { unanswered, done, unknown, .. } = every_verb_writes_once(behind(Cut::After)).await;
    // What can be done twice is not looked up, so not all of them are found done; that each was done once is seen above.
    assert_eq!((unanswered, unknown), (15, 0));
    assert!(done > 0, "some were found done");
}

#[tokio::test]
async fn a_write_whose_commit_never_arrived_is_done_again() {
    let Doubts { unanswered, done, unknown, .. } = every_verb_writes_once(behind(Cut::Before)).await;
    assert_eq!((unanswered, done, unknown), (15, 0, 0));
}

#[tokio::test]
async fn behind_a_pooler_each_write_is_done_once_as_well() {
    let pooler = Pooler::before(Server::shared());
    for cut in [Cut::After, Cut::Before] {
        let doubts = every_verb_writes_once(behind_what_leads_to(&pooler.address(), cut)).await;
        // What became of it is the pooler's choice: it may drop what a client that is gone has sent.
        assert_eq!((doubts.unanswered, doubts.unknown), (15, 0));
    }
}

#[tokio::test]
async fn of_many_writers_whose_commits_are_cut_each_writes_once() {
    for cut in [Cut::After, Cut::Before] {
        let (proxy, direct, through) = behind(cut);
        direct.make(new("a")).await;
        proxy.cut_next(20);
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..8 {
            let through = through.clone();
            writers.spawn(async move {
                for at in 0..5 {
                    let said = batch(vec![user(&format!("{number} says {at}"))]);
                    through.append(&tenant(), &name("a"), said).await.unwrap();
                }
            });
        }
        writers.join_all().await;
        assert!(proxy.count() >= 20, "{}", proxy.count());
        let mut said: Vec<String> = direct.all("a").await.into_iter().map(|row| row.body).collect();
        assert_eq!(said.len(), 40);
        said.sort();
        said.dedup();
        assert_eq!(said.len(), 40);
    }
}

#[tokio::test]
async fn what_cannot_be_found_out_in_time_is_told_as_neither() {
    let (proxy, direct, through) = behind(Cut::AfterAndForGood);
    direct.make(new("a")).await;
    let impatient = through.settings().clone().waiting(Duration::from_millis(500));
    let through = Postgres::open(impatient).await.unwrap();
    proxy.cut_next(1);
    let error = through.append(&tenant(), &name("a"), batch(vec![user("one")])).await.unwrap_err();
    assert!(error.is_indeterminate() && !error.is_busy(), "{error}");
    // It may have been done, or not: the server may have noticed first that nobody listens any more.
    assert!(matches!(places(&direct.all("a").await)[..], [] | [0]));
    let error = through.append(&tenant(), &name("a"), batch(vec![user("two")])).await.unwrap_err();
    assert!(error.is_unreachable() && !error.is_indeterminate(), "{error}");
}
