//! What the thread that writes keeps in mind of conversations counts only while nobody else has written to the file, and
//! while what it wrote was not taken back.

use crate::contract::make::*;
use crate::folder::TempFolder;
use recto::digest::Digest;
use recto::entry::Section;
use recto::{Entry, Seq};
use recto_engine::store::sqlite::{Limits, Sqlite};
use recto_engine::store::{
    Acknowledge, Batch, EraseEntries, Forks, NewRow, ReaderName, RecordKind, Remains, Store, Turns, Unopened, Upto,
};
use rusqlite::Connection;
use std::fs;
use std::path::Path;

fn store(folder: &TempFolder) -> Sqlite {
    Sqlite::open(folder.file("store.db")).expect("a store can be opened")
}

async fn findings(store: &Sqlite) -> usize {
    store.check(|row| row.hash, |_| {}).await.expect("a store can be checked").findings.len()
}

/// A call that was never opened, and its answer.
fn unopened(number: u64, head: u64, rows: Vec<NewRow>) -> Acknowledge {
    let contents = vec![(Digest::of(b"tools"), "tools".into())];
    let unopened = Unopened { expect: row_of(number, 0), contents };
    Acknowledge { unopened: Some(unopened), ..answer("never opened", number, Some(head), batch(rows)) }
}

/// A batch that writes an entry, and then fails.
fn failing() -> Batch {
    batch(vec![user("half"), at(0, user("this place is taken"))])
}

#[tokio::test]
async fn two_stores_write_calls_to_one_conversation_in_turns() {
    let folder = TempFolder::new();
    let stores = [store(&folder), store(&folder)];
    let create = Some(Box::new(new("a")));
    stores[0].put("a", Batch { create, ..batch(vec![user("hello")]) }).await.unwrap();
    for round in 0..12 {
        // Each writes twice in a row: what it keeps in mind is used the second time, and void the time after.
        for (at, writer) in [0, 0, 1, 1].into_iter().enumerate() {
            let (number, head) = (round * 4 + at as u64, (round * 4 + at as u64) * 2);
            let answered = unopened(number, head, vec![assistant("hi"), user("and?")]);
            let appended = stores[writer].answered("a", answered).await.unwrap();
            assert_eq!((appended.first, appended.last), (Some(Seq(head + 1)), Some(Seq(head + 2))));
            let version = stores[1 - writer].told("a").await.version;
            assert_eq!(version, number + 3);
        }
    }
    let turns = Turns::Since { turn: 0, rows: 99 };
    let turns = stores[0].turns(&tenant(), &name("a"), &reader(), Upto::NOW, turns).await.unwrap();
    assert_eq!((turns.len(), stores[1].who("a").await), (48, row_of(48, 0)));
    assert_eq!(stores[0].contents(&tenant(), &name("a"), vec![Digest::of(b"tools")]).await.unwrap().len(), 1);
    assert_eq!(findings(&stores[1]).await, 0);
}

#[tokio::test]
async fn what_anybody_else_writes_to_the_file_is_read_again() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("a")).await;
    store.say("a", vec![user("one")]).await;
    let versioned = |version| Batch { version: Some(version), ..batch(vec![user("next")]) };
    assert!(store.put("a", versioned(77)).await.unwrap_err().is_conflict(), "nobody has written yet");
    store.put("a", versioned(2)).await.unwrap();
    let other = Connection::open(store.path()).unwrap();
    // Reads of others, and what they take back, change nothing.
    other.execute_batch("SELECT count(*) FROM head; BEGIN IMMEDIATE; UPDATE head SET version = 55; ROLLBACK").unwrap();
    store.put("a", versioned(3)).await.unwrap();
    other.execute_batch("UPDATE head SET version = 77").unwrap();
    store.put("a", versioned(77)).await.unwrap();
    assert_eq!(store.told("a").await.version, 78);
    other.execute_batch("UPDATE conversation SET state = 1").unwrap();
    assert!(store.put("a", versioned(78)).await.unwrap_err().is_erased());
}

#[tokio::test]
async fn a_conversation_that_another_store_has_erased_takes_nothing_more() {
    let folder = TempFolder::new();
    let (one, two) = (store(&folder), store(&folder));
    one.make(new("a")).await;
    one.say("a", vec![user("one"), user("two")]).await;
    one.answered("a", unopened(0, 1, vec![assistant("hi")])).await.unwrap();
    let remains = Remains { seq: Seq(1), body: "{}".into(), counts: "[0]".into() };
    let erase = EraseEntries { remains: vec![remains], decisions: Vec::new() };
    two.erase_entries(&tenant(), &name("a"), erase).await.unwrap();
    let version = two.told("a").await.version;
    one.put("a", Batch { version: Some(version), ..batch(vec![user("three")]) }).await.unwrap();
    two.erase(&tenant(), &name("a"), Forks::Refuse).await.unwrap();
    assert!(one.put("a", batch(vec![user("four")])).await.unwrap_err().is_erased());
    assert!(one.answered("a", unopened(1, 3, Vec::new())).await.unwrap_err().is_erased());
    assert!(one.create(&tenant(), new("a")).await.unwrap_err().is_exists());
}

#[tokio::test]
async fn what_was_taken_back_is_forgotten() {
    let folder = TempFolder::new();
    let store = store(&folder);
    let create = Some(Box::new(new("a")));
    // It fails when the conversation, its first entry and its head are written; then it is as if nobody had tried.
    let created = Batch { create: create.clone(), ..failing() };
    assert!(store.put("a", created).await.unwrap_err().is_conflict());
    assert!(store.put("a", batch(vec![user("nowhere")])).await.unwrap_err().is_not_found());
    store.put("a", Batch { create, ..batch(vec![user("zero")]) }).await.unwrap();
    for round in 0..5 {
        store.say("a", vec![user("good")]).await;
        assert!(store.put("a", failing()).await.unwrap_err().is_conflict());
        let failed = Acknowledge { produced: failing(), ..unopened(round, 0, Vec::new()) };
        assert!(store.answered("a", failed).await.unwrap_err().is_conflict());
        let head = store.told("a").await.tally.head().unwrap().0;
        store.answered("a", unopened(round, head, vec![assistant("answer")])).await.unwrap();
    }
    assert_eq!(places(&store.all("a").await), (0..11).collect::<Vec<_>>());
    assert_eq!((store.told("a").await.version, store.who("a").await), (12, row_of(5, 0)));
    assert_eq!(findings(&store).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_neighbour_took_back_is_written_once() {
    let folder = TempFolder::new();
    let store = store(&folder);
    let tasks: Vec<_> = (0..120)
        .map(|at| {
            let store = store.clone();
            tokio::spawn(async move {
                let id = format!("c{at}");
                let create = Some(Box::new(new(&id)));
                let mut rows = vec![user("hello")];
                if at % 15 == 7 {
                    rows = failing().rows;
                }
                let is_good = store.put(&id, Batch { create, ..batch(rows) }).await.is_ok();
                let answered = store.answered(&id, unopened(0, 0, vec![assistant("hi")])).await;
                assert_eq!((is_good, answered.is_ok()), (at % 15 != 7, at % 15 != 7), "{at}: {answered:?}");
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.list(&tenant(), None, 999).await.unwrap().len(), 112);
    assert_eq!(store.all("c3").await.len(), 2);
    assert_eq!(findings(&store).await, 0);
}

#[tokio::test]
async fn on_a_full_disk_a_conversation_goes_on_where_it_was() {
    let folder = TempFolder::new();
    let full = Sqlite::open_with(folder.file("store.db"), Limits { pages_max: Some(130) }).unwrap();
    full.make(new("a")).await;
    let mut written = 0;
    // Large ones don't fit any more when small ones still do.
    for size in [20_000, 5_000, 1_000, 200, 20] {
        while full.put("a", batch(vec![user(&"x".repeat(size))])).await.is_ok() {
            written += 1;
            assert!(written < 10_000, "the limit has no effect");
        }
    }
    assert!(written > 3);
    assert_eq!(places(&full.all("a").await), (0..written).collect::<Vec<_>>());
    assert_eq!(full.told("a").await.version, 1 + written);
    assert_eq!(findings(&full).await, 0);
}

#[tokio::test]
async fn more_conversations_than_are_kept_in_mind_go_on_all_the_same() {
    let folder = TempFolder::new();
    let store = store(&folder);
    let ids: Vec<String> = (0..1_100).map(|at| format!("c{at}")).collect();
    for round in 0..2 {
        for id in &ids {
            let create = (round == 0).then(|| Box::new(new(id)));
            store.put(id, Batch { create, version: Some(round + 1), ..batch(vec![user("hello")]) }).await.unwrap();
        }
    }
    assert_eq!(store.told("c0").await.version, 3);
    assert_eq!(findings(&store).await, 0);
}

#[tokio::test]
async fn calls_that_are_open_are_dropped_by_an_answer_that_never_was() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("a")).await;
    store.say("a", vec![user("hello")]).await;
    store.answered("a", unopened(0, 0, vec![assistant("hi")])).await.unwrap();
    store.decide("a", opening(row_of(1, 0), "one")).await.unwrap();
    store.decide("a", opening(row_of(1, 0), "two")).await.unwrap();
    store.answered("a", unopened(1, 1, vec![assistant("hi")])).await.unwrap();
    for call in ["one", "two"] {
        assert_eq!(store.open(&tenant(), &name("a"), &reader(), ticket(call)).await.unwrap(), None);
    }
    store.answered("a", unopened(2, 2, vec![assistant("hi")])).await.unwrap();
    assert_eq!(store.who("a").await, row_of(3, 0));
}

#[tokio::test]
async fn the_usual_reader_is_named_without_a_word_and_others_by_theirs() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("a")).await;
    store.say("a", vec![user("hello")]).await;
    for name_of in ["zeta", "main", "alpha"] {
        let reader = ReaderName::from(name_of);
        store.acknowledge(&tenant(), &name("a"), &reader, unopened(0, 0, Vec::new())).await.unwrap();
    }
    store.make(fork("b", "a", Some(0))).await;
    for id in ["a", "b"] {
        let readers = store.readers(&tenant(), &name(id)).await.unwrap();
        let told: Vec<_> = readers.iter().map(|(name, row)| (name.as_str(), row.turns)).collect();
        assert_eq!(told, [("alpha", 1), ("main", 1), ("zeta", 1)], "{id}");
    }
    let texts = |word: &str| -> i64 {
        let sql = "SELECT count(*) FROM text WHERE body = ?1";
        Connection::open(store.path()).unwrap().query_row(sql, [word], |row| row.get(0)).unwrap()
    };
    assert_eq!((texts("main"), texts("zeta")), (0, 2));
}

/// Tells where the names of a conversation's strands stand: in the row of its head, or as a text.
fn names(path: &Path) -> (Option<String>, i64) {
    let sql = "SELECT names, strands FROM head WHERE n = 1";
    Connection::open(path).unwrap().query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

#[tokio::test]
async fn names_of_strands_that_are_a_hosts_words_stand_where_all_words_do() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("a")).await;
    store.say("a", vec![user("hello"), summary("so far")]).await;
    let (inline, text) = names(store.path());
    assert!(inline.is_some_and(|names| names.contains(Section::SUMMARY)) && text == 0);
    let own = |section: &str| row(Entry { section: section.into(), ..Entry::user("in a section of its own") });
    store.say("a", vec![own("CANARY")]).await;
    let (inline, text) = names(store.path());
    assert!(inline.is_none() && text > 0);
    store.say("a", vec![own("SPARROW"), assistant("hi")]).await;
    let told = store.told("a").await.tally;
    let sections: Vec<_> = told.strands().iter().map(|it| it.section.as_str().to_string()).collect();
    assert_eq!(sections, ["messages", "summary", "CANARY", "SPARROW", "messages"]);
    assert_eq!(store.all("a").await.last().unwrap().tally, told);
    store.erase(&tenant(), &name("a"), Forks::Refuse).await.unwrap();
    assert_eq!((folder.count("CANARY"), folder.count("SPARROW")), (0, 0));
    assert_eq!(names(store.path()), (None, 0));
}

#[tokio::test]
async fn a_conversation_of_an_older_schema_gets_new_strands_and_readers() {
    let folder = TempFolder::new();
    let path = folder.file("old.db");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/schema-4.db"), &path).unwrap();
    let old = Sqlite::open(&path).unwrap();
    let before = old.told("talk").await.tally;
    assert!(names(&path).0.is_none(), "an older schema had them in a text");
    let tool = row(Entry::result("call", "a result"));
    let head = old.say("talk", vec![tool]).await.last.unwrap();
    let (inline, text) = names(&path);
    assert!(inline.is_some() && text == 0);
    let after = old.told("talk").await.tally;
    assert_eq!(after.strands()[..before.strands().len()], *before.strands());
    assert_eq!(after.strands().last().unwrap().first, head);
    let row = old.who("talk").await;
    let mut answered = unopened(row.turns, head.0, vec![assistant("hi")]);
    answered.unopened.as_mut().unwrap().expect = row;
    old.answered("talk", answered).await.unwrap();
    let readers = old.readers(&tenant(), &name("talk")).await.unwrap();
    assert_eq!((readers.len(), readers[0].0.as_str()), (1, "main"));
    assert_eq!(old.kept(&tenant(), &name("talk"), RecordKind::Session).await.unwrap().len(), 1);
    assert_eq!(old.forks(&tenant(), &name("talk")).await.unwrap(), [name("other")]);
    assert_eq!(findings(&old).await, 0);
}
