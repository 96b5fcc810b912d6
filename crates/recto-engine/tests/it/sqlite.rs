//! What SQLite's store promises beyond the contract: its file, its failures, its upkeep.

use crate::contract::make::*;
use crate::folder::TempFolder;
use recto::digest::Digest;
use recto::{Entry, Role, Seq};
use recto_engine::store::sqlite::{Existing, Limits, Report, Sqlite};
use recto_engine::store::{
    Back, DecisionKind, Decisions, EraseEntries, FORK_DEPTH_MAX, Forks, LARGE_BYTES_MIN, NewConversation, NewRow,
    Record, RecordKind, Remains, Row, State, Store, Turns, Upto,
};
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};

const CANARY: &str = "CANARY-7f3a";

fn store(folder: &TempFolder) -> Sqlite {
    Sqlite::open(folder.file("store.db")).expect("a store can be opened")
}

fn words(count: usize) -> Vec<NewRow> {
    (0..count).map(|at| user(&format!("words {at} {}", "x".repeat(500)))).collect()
}

fn hash(row: &Row) -> Digest {
    // Rows with large texts, and what is left of erased ones, are made up by hand here.
    let is_plain = row.large.is_empty() && !row.is_erased;
    if is_plain { Digest::of(row.body.as_bytes()) } else { row.hash }
}

async fn checked(store: &Sqlite) -> Report {
    store.check(hash, |_| {}).await.expect("a store can be checked")
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempFolder::new();
    let path = folder.path().join("deep/er/store.db");
    let store = Sqlite::open(&path).unwrap();
    store.make(new("a")).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&path.with_file_name("store.db-wal")), 0o600);
    assert_eq!(mode(&path.with_file_name("store.db-shm")), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    store.backup(&folder.file("backup.db"), Existing::Refuse).await.unwrap();
    assert_eq!(mode(&folder.file("backup.db")), 0o600);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let folder = TempFolder::new();
    drop(store(&folder));
    let path = folder.file("store.db");
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 9999").unwrap();
    let before = fs::read(&path).unwrap();
    let error = Sqlite::open(&path).err().unwrap();
    assert!(error.is_newer(), "{error}");
    assert!(Sqlite::open_read_only(&path).err().unwrap().is_newer());
    assert!(error.hint().is_some());
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let folder = TempFolder::new();
    let [text, other] = ["notes.txt", "other.db"].map(|name| folder.file(name));
    fs::write(&text, "dear diary, ".repeat(1_000)).unwrap();
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE mine (a); INSERT INTO mine VALUES (1)").unwrap();
    drop(connection);
    for path in [text, other] {
        let before = fs::read(&path).unwrap();
        let error = Sqlite::open(&path).err().unwrap();
        assert!(error.is_corrupt(), "{error}");
        assert!(error.to_string().contains("not a store"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert!(!fs::exists(format!("{}-wal", path.display())).unwrap());
    }
}

#[tokio::test]
async fn a_damaged_page_is_told_and_never_shown() {
    let folder = TempFolder::new();
    let filled = store(&folder);
    filled.make(new("a")).await;
    for _ in 0..20 {
        filled.say("a", words(20)).await;
    }
    filled.checkpoint().await.unwrap();
    assert_eq!(checked(&filled).await.findings, []);
    drop(filled);
    let path = folder.file("store.db");
    let mut bytes = fs::read(&path).unwrap();
    let (first, last) = (bytes.len() / 3 / 4096 * 4096, bytes.len() / 3 / 4096 * 4096 + 16 * 4096);
    bytes[first..last].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let damaged = store(&folder);
    let error = damaged.forth(&tenant(), &name("a"), Seq(0), usize::MAX).await.unwrap_err();
    assert!(error.is_corrupt(), "{error}");
    assert!(!checked(&damaged).await.findings.is_empty());
    assert!(Sqlite::restore(&path, &folder.file("again.db"), Existing::Refuse).unwrap_err().is_corrupt());
}

#[tokio::test]
async fn of_a_log_that_was_cut_off_elsewhere_what_is_left_is_whole() {
    // Who cuts off the log takes the newest commits with it. What is promised is that the rest is a state that was.
    let folder = TempFolder::new();
    let filled = store(&folder);
    filled.make(new("a")).await;
    filled.checkpoint().await.unwrap();
    for _ in 0..10 {
        filled.say("a", words(3)).await;
    }
    let copy = TempFolder::new();
    let log = fs::read(folder.file("store.db-wal")).unwrap();
    fs::copy(folder.file("store.db"), copy.file("store.db")).unwrap();
    fs::write(copy.file("store.db-wal"), &log[..log.len() * 2 / 3]).unwrap();
    let rest = store(&copy);
    let entries = rest.told("a").await.tally.sums().entries;
    assert!(entries > 0 && entries < 30 && entries.is_multiple_of(3), "{entries}");
    assert_eq!(rest.all("a").await.len() as u64, entries);
    assert_eq!(checked(&rest).await.findings, []);
    rest.say("a", words(1)).await;
}

#[tokio::test]
async fn a_file_that_may_only_be_read_is_read_and_not_written() {
    let folder = TempFolder::new();
    let filled = store(&folder);
    filled.make(new("a")).await;
    filled.say("a", words(3)).await;
    let beside = Sqlite::open_read_only(filled.path()).unwrap();
    assert_eq!(beside.all("a").await.len(), 3);
    drop(filled);
    let path = folder.file("store.db");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    // Whoever runs as root may write to it all the same, so both ways are taken.
    let mut stores = vec![beside, Sqlite::open_read_only(&path).unwrap()];
    if fs::OpenOptions::new().write(true).open(&path).is_err() {
        stores.push(Sqlite::open(&path).unwrap());
    }
    for store in stores {
        assert_eq!(store.all("a").await.len(), 3);
        let error = store.put("a", batch(words(1))).await.unwrap_err();
        assert!(error.is_read_only(), "{error}");
        assert!(store.create(&tenant(), new("b")).await.unwrap_err().is_read_only());
        assert_eq!(checked(&store).await.entries, 3);
    }
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_acknowledged_that_is_not_there() {
    let folder = TempFolder::new();
    let path = folder.file("store.db");
    let full = Sqlite::open_with(&path, Limits { pages_max: Some(120) }).unwrap();
    full.make(new("a")).await;
    let mut acknowledged = 0;
    let error = loop {
        match full.put("a", batch(words(5))).await {
            Ok(_) => acknowledged += 5,
            Err(error) => break error,
        }
        assert!(acknowledged < 10_000, "the limit has no effect");
    };
    assert!(error.is_full(), "{error}");
    assert!(acknowledged > 0);
    assert_eq!(full.all("a").await.len(), acknowledged);
    assert!(full.put("a", batch(words(100))).await.unwrap_err().is_full());
    drop(full);
    let roomy = store(&folder);
    assert_eq!(roomy.all("a").await.len(), acknowledged);
    roomy.say("a", words(5)).await;
    assert_eq!(checked(&roomy).await.findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_half_way_leaves_nothing_and_those_it_shares_a_commit_with_stay() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("a")).await;
    store.say("a", words(1)).await;
    let tasks: Vec<_> = (0..200)
        .map(|at| {
            let store = store.clone();
            let mut batch = batch(words(2));
            if at % 20 == 0 {
                // Its second entry claims a place that is taken, when the first one is written already.
                batch.rows[1].seq = Some(Seq(0));
            }
            tokio::spawn(async move { (at % 20 != 0, store.put("a", batch).await) })
        })
        .collect();
    for task in tasks {
        let (is_good, done) = task.await.unwrap();
        assert_eq!(is_good, done.is_ok(), "{done:?}");
    }
    assert_eq!(store.all("a").await.len(), 1 + 190 * 2);
    assert_eq!(checked(&store).await.findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_does_not_hurt_those_it_shares_a_commit_with() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("a")).await;
    store.say("a", words(1)).await;
    let tasks: Vec<_> = (0..200)
        .map(|at| {
            let store = store.clone();
            // Every other one expects a head that is long gone.
            let batch = if at % 2 == 0 { batch(words(2)) } else { expecting(None, words(2)) };
            tokio::spawn(async move { (at % 2 == 0, store.put("a", batch).await) })
        })
        .collect();
    for task in tasks {
        let (is_good, done) = task.await.unwrap();
        match is_good {
            true => assert!(done.is_ok(), "{done:?}"),
            false => assert!(done.unwrap_err().is_conflict()),
        }
    }
    assert_eq!(store.all("a").await.len(), 201);
    assert_eq!(checked(&store).await.findings, []);
}

#[tokio::test]
async fn what_is_queued_when_the_last_handle_goes_is_written() {
    let folder = TempFolder::new();
    let short = store(&folder);
    short.make(new("a")).await;
    let mut appends = Box::pin(short.put("a", batch(words(3))));
    // Polled once: the job is in the queue, and nobody waits for it any more.
    let waker = std::task::Context::from_waker(std::task::Waker::noop());
    let mut context = waker;
    let _ = appends.as_mut().poll(&mut context);
    drop(appends);
    drop(short);
    assert_eq!(store(&folder).all("a").await.len(), 3);
}

#[tokio::test]
async fn two_stores_on_one_file_see_each_other() {
    let folder = TempFolder::new();
    let (one, two) = (store(&folder), store(&folder));
    one.make(new("a")).await;
    for _ in 0..20 {
        one.say("a", words(1)).await;
        two.say("a", words(1)).await;
    }
    assert_eq!(one.all("a").await, two.all("a").await);
    assert_eq!(one.told("a").await.tally.sums().entries, 40);
}

#[tokio::test]
async fn a_new_store_may_be_opened_by_many_at_once() {
    let folder = TempFolder::new();
    let path = folder.file("store.db");
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || Sqlite::open(path).map(drop))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
    store(&folder).make(new("a")).await;
}

/// Writes the canary wherever words can stand in a conversation.
async fn sing(store: &Sqlite, id: &str, word: &str) {
    let named =
        NewConversation { title: format!("{word} title").into(), meta: format!("\"{word}\"").into(), ..new(id) };
    store.make(named).await;
    let section = Entry { section: format!("{word}-section").into(), ..Entry::user("in a section of its own") };
    let large = format!("{word} ").repeat(LARGE_BYTES_MIN / word.len() + 1);
    store.put(id, keyed(&format!("{word} key"), vec![user(word), user(&large), row(section)])).await.unwrap();
    let mut deciding = commit(row_of(0, 0), vec![decision(1, 0, DecisionKind::Entry, 0)]);
    deciding.decisions[0].body = format!("\"{word} decided\"");
    deciding.contents = vec![(Digest::of(word.as_bytes()), format!("{word} content").into())];
    deciding.open = Some(recto_engine::store::OpenCall { input: Some(format!("{word} input")), ..call("one", 0) });
    let reader = format!("{word} reader").as_str().into();
    store.commit(&tenant(), &name(id), &reader, deciding).await.unwrap();
    let mut answered = answer("one", 0, Some(2), batch(vec![assistant(&format!("{word} answer"))]));
    answered.turn.receipt = format!("\"{word} receipt\"");
    store.acknowledge(&tenant(), &name(id), &reader, answered).await.unwrap();
    let body = format!("\"{word} note\"").into();
    let note = Record { kind: RecordKind::Note, key: format!("{word} key").into(), version: 1, body };
    store.keep(&tenant(), &name(id), note).await.unwrap();
    let open = recto_engine::store::OpenCall { input: Some(format!("{word} waiting")), ..call("two", 1) };
    let opening = recto_engine::store::Commit { open: Some(open), ..commit(row_of(1, 1), Vec::new()) };
    store.commit(&tenant(), &name(id), &reader, opening).await.unwrap();
}

#[tokio::test]
async fn no_byte_is_left_of_an_erased_conversation() {
    let folder = TempFolder::new();
    let store = store(&folder);
    sing(&store, "a", CANARY).await;
    sing(&store, "b", "WREN").await;
    assert!(folder.count(CANARY) > LARGE_BYTES_MIN / CANARY.len() / 2, "it must be there before");
    store.checkpoint().await.unwrap();
    assert!(folder.count(CANARY) > 10, "also in the file itself");
    let erased = store.erase(&tenant(), &name("a"), Forks::Refuse).await.unwrap();
    assert_eq!((erased.conversations, erased.entries), (vec![name("a")], 4));
    assert_eq!(folder.count(CANARY), 0);
    assert!(folder.count("WREN") > 10);
    let tomb = store.told("a").await;
    assert_eq!((tomb.state, &*tomb.title, &*tomb.meta), (State::Erased, "", ""));
    assert!(store.erase(&tenant(), &name("a"), Forks::Refuse).await.unwrap_err().is_erased());
    assert_eq!(store.all("b").await.len(), 4);
    assert_eq!(checked(&store).await.findings, []);
}

#[tokio::test]
async fn no_byte_is_left_among_many_conversations_that_grew_together() {
    // Rows of all tables interleave, so that pages are split and merged: SQLite leaves copies of rows in such pages.
    let folder = TempFolder::new();
    let store = store(&folder);
    let ids: Vec<String> = (0..12).map(|at| format!("c{at}")).collect();
    for id in &ids {
        store.make(new(id)).await;
    }
    let mut random: u64 = 7;
    for round in 0..60_u64 {
        for id in &ids {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let word = if id == "c5" || id == "c8" { CANARY } else { "sparrow" };
            let text = format!("{word} {round} ").repeat(1 + (random >> 33) as usize % 90);
            store.put(id, keyed(&format!("{word} {round}"), vec![user(&text)])).await.unwrap();
            let mut deciding =
                commit(row_of(round, round), vec![decision(round + 1, round, DecisionKind::Entry, round)]);
            deciding.decisions[0].body = text.clone();
            let receipt = text.chars().take(2_000).collect();
            deciding.turns = vec![recto_engine::store::TurnRow { receipt, ..turn(round, Some(round)) }];
            deciding.open = Some(recto_engine::store::OpenCall { input: Some(text.clone()), ..call(id, round) });
            store.decide(id, deciding).await.unwrap();
            let note =
                Record { kind: RecordKind::Note, key: format!("{word} {round}").into(), version: 1, body: text.into() };
            store.keep(&tenant(), &name(id), note).await.unwrap();
        }
    }
    assert!(folder.count(CANARY) > 1_000);
    for id in ["c5", "c8"] {
        store.erase(&tenant(), &name(id), Forks::Refuse).await.unwrap();
    }
    assert_eq!(folder.count(CANARY), 0);
    assert_eq!(checked(&store).await.findings, []);
    let before = fs::metadata(store.path()).unwrap().len();
    store.compact().await.unwrap();
    assert!(fs::metadata(store.path()).unwrap().len() < before);
    assert_eq!(checked(&store).await.findings, []);
}

#[tokio::test]
async fn no_byte_is_left_of_an_erased_entry_in_any_fork() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("c0")).await;
    let large = format!("{CANARY} ").repeat(LARGE_BYTES_MIN / CANARY.len() + 1);
    store.say("c0", vec![user("before"), user(&large), user("after")]).await;
    for depth in 1..=FORK_DEPTH_MAX + 2 {
        store.make(fork(&format!("c{depth}"), &format!("c{}", depth - 1), Some(2))).await;
    }
    assert!(folder.count(CANARY) > 0);
    let last = format!("c{}", FORK_DEPTH_MAX + 2);
    let remains = Remains { seq: Seq(1), body: "{}".into(), counts: "[0]".into() };
    let erase = EraseEntries { remains: vec![remains], decisions: Vec::new() };
    let erased = store.erase_entries(&tenant(), &name(&last), erase).await.unwrap();
    assert_eq!(erased.entries, 1);
    assert_eq!(folder.count(CANARY), 0);
    for depth in [0, 3, FORK_DEPTH_MAX + 1, FORK_DEPTH_MAX + 2] {
        let rows = store.all(&format!("c{depth}")).await;
        assert!(rows[1].is_erased && rows[1].body == "{}" && rows[1].large.is_empty());
        assert!(rows[1].bytes > LARGE_BYTES_MIN as u64);
    }
    assert_eq!(checked(&store).await.findings, []);
}

#[tokio::test]
async fn an_interrupted_erase_goes_on_when_the_store_is_opened() {
    let folder = TempFolder::new();
    let interrupted = store(&folder);
    sing(&interrupted, "a", CANARY).await;
    drop(interrupted);
    let connection = Connection::open(folder.file("store.db")).unwrap();
    connection.execute_batch("UPDATE conversation SET state = 1").unwrap();
    drop(connection);
    assert!(folder.count(CANARY) > 0);
    let found = Sqlite::open_read_only(folder.file("store.db")).unwrap();
    assert_eq!(found.told("a").await.state, State::Erasing);
    let report = checked(&found).await;
    assert_eq!((report.erasing, report.findings), (1, vec![]), "it is no damage");
    drop(found);
    let opened = store(&folder);
    assert_eq!(opened.told("a").await.state, State::Erased);
    assert!(opened.put("a", batch(words(1))).await.unwrap_err().is_erased());
    assert_eq!(folder.count(CANARY), 0);
}

#[tokio::test]
async fn a_reader_that_stays_in_the_way_of_an_erase_is_told() {
    let folder = TempFolder::new();
    let store = store(&folder);
    sing(&store, "a", CANARY).await;
    let reading = Connection::open(store.path()).unwrap();
    reading.execute_batch("BEGIN; SELECT count(*) FROM entry").unwrap();
    let error = store.erase(&tenant(), &name("a"), Forks::Refuse).await.unwrap_err();
    assert!(error.is_busy() && error.to_string().contains("traces"), "{error}");
    assert!(folder.count(CANARY) > 0, "the old state is still in use");
    drop(reading);
    assert!(store.erase(&tenant(), &name("a"), Forks::Refuse).await.unwrap_err().is_erased());
    assert_eq!(folder.count(CANARY), 0);
}

#[tokio::test]
async fn a_backup_of_one_moment_is_made_while_others_write_and_can_be_put_back() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("a")).await;
    store.say("a", words(30)).await;
    let (backup, other) = (folder.file("backup.db"), folder.file("new/store.db"));
    let writing = {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..100 {
                store.say("a", words(2)).await;
            }
        })
    };
    store.backup(&backup, Existing::Refuse).await.unwrap();
    writing.await.unwrap();
    assert!(store.backup(&backup, Existing::Refuse).await.unwrap_err().is_exists());
    fs::create_dir(folder.path().join("new")).unwrap();
    Sqlite::restore(&backup, &other, Existing::Refuse).unwrap();
    let deep = folder.path().join("a/new/folder/store.db");
    Sqlite::restore(&backup, &deep, Existing::Refuse).unwrap();
    let same = Sqlite::open(&other).unwrap().all("a").await;
    assert_eq!(Sqlite::open(&deep).unwrap().all("a").await, same);
    assert!(Sqlite::restore(&backup, &other, Existing::Refuse).unwrap_err().is_exists());
    let restored = Sqlite::open(&other).unwrap();
    let (rows, all) = (restored.all("a").await, store.all("a").await);
    assert!(rows.len() >= 30 && rows.len().is_multiple_of(2));
    assert_eq!(rows[..], all[..rows.len()]);
    assert_eq!(checked(&restored).await.findings, []);
    restored.say("a", words(1)).await;
    assert!(Sqlite::restore(&backup, &other, Existing::Replace).unwrap_err().is_busy(), "it is in use");
    drop(restored);
    Sqlite::restore(&backup, &other, Existing::Replace).unwrap();
    assert_eq!(Sqlite::open(&other).unwrap().all("a").await, rows);
}

#[tokio::test]
async fn a_damaged_store_can_be_replaced_by_its_backup() {
    let folder = TempFolder::new();
    let good = store(&folder);
    good.make(new("a")).await;
    good.say("a", words(3)).await;
    good.backup(&folder.file("backup.db"), Existing::Refuse).await.unwrap();
    drop(good);
    fs::write(folder.file("store.db"), "nothing that SQLite can read").unwrap();
    assert!(Sqlite::open(folder.file("store.db")).err().unwrap().is_corrupt());
    Sqlite::restore(&folder.file("backup.db"), &folder.file("store.db"), Existing::Replace).unwrap();
    assert_eq!(store(&folder).all("a").await.len(), 3);
}

#[tokio::test]
async fn a_check_finds_what_does_not_agree() {
    let cases = [
        ("DELETE FROM entry WHERE seq = 1", "do not follow"),
        ("UPDATE entry SET tally = '7 7 0' WHERE seq = 1", "do not follow"),
        ("UPDATE head SET tally = '9 9 0'", "newest entry"),
        ("UPDATE text SET body = '{}' WHERE id = (SELECT body FROM entry WHERE seq = 2)", "not the one"),
        ("DELETE FROM content", "gone"),
        ("UPDATE content SET refs = 7", "referred to"),
        ("DELETE FROM decision", "decisions"),
        ("DELETE FROM turn", "calls"),
        ("UPDATE conversation SET parent = 77", "gone"),
    ];
    for (damage, finding) in cases {
        let folder = TempFolder::new();
        let whole = store(&folder);
        whole.make(new("a")).await;
        whole.say("a", vec![user("one"), user("two"), user("three"), long('x')]).await;
        let mut deciding = commit(row_of(0, 0), vec![decision(1, 0, DecisionKind::Pin, 0)]);
        deciding.turns = vec![turn(0, Some(1))];
        whole.decide("a", deciding).await.unwrap();
        assert_eq!(checked(&whole).await.findings, [], "before {damage}");
        drop(whole);
        Connection::open(folder.file("store.db")).unwrap().execute_batch(damage).unwrap();
        let report = checked(&store(&folder)).await;
        assert!(report.findings.iter().any(|it| it.what.contains(finding)), "{damage}: {:?}", report.findings);
    }
}

#[tokio::test]
async fn a_strand_is_read_back_without_reading_what_lies_between() {
    let folder = TempFolder::new();
    let store = store(&folder);
    store.make(new("a")).await;
    for at in 0..5 {
        let mut rows = vec![user(&format!("talk {at}"))];
        rows.extend((0..700).map(|_| trace("work")));
        store.say("a", rows).await;
    }
    let tally = store.told("a").await.tally;
    let strand = tally.strands().iter().position(|it| it.role == Role::User).unwrap();
    let talk = Back { strands: vec![strand], ..all_back() };
    let rows = store.back(&tenant(), &name("a"), talk).await.unwrap();
    assert_eq!(places(&rows), [2804, 2103, 1402, 701, 0]);
    for (from, expected) in [(0, Some(0)), (1, Some(701)), (701, Some(701)), (1500, Some(2103)), (2805, None)] {
        let first = store.first(&tenant(), &name("a"), strand, Seq(from)).await.unwrap();
        assert_eq!(first, expected.map(Seq), "from {from}");
    }
}

/// Fills a store with something of everything that a schema holds.
async fn fill(store: &Sqlite) {
    store.make(new("talk")).await;
    store
        .put("talk", keyed("first", vec![user("hello"), trace("thinking"), summary("so far"), long('x')]))
        .await
        .unwrap();
    let mut deciding = opening(row_of(0, 0), "one");
    deciding.decisions = vec![decision(1, 0, DecisionKind::Floor, 1), decision(2, 0, DecisionKind::Entry, 0)];
    deciding.contents = vec![(Digest::of(b"tools"), "tools".into())];
    store.decide("talk", deciding).await.unwrap();
    let mut answered = answer("one", 0, Some(3), keyed("second", vec![assistant("hi")]));
    answered.produced.records = vec![record(RecordKind::Session, "s", 1)];
    store.answered("talk", answered).await.unwrap();
    store.decide("talk", commit(row_of(1, 2), vec![decision(3, 1, DecisionKind::Revert, 2)])).await.unwrap();
    store.make(fork("other", "talk", Some(3))).await;
    store.say("other", vec![at(9, user("another way"))]).await;
    store.keep(&tenant(), &name("other"), record(RecordKind::Note, "n", 1)).await.unwrap();
    store.make(new("gone")).await;
    store.erase(&tenant(), &name("gone"), Forks::Refuse).await.unwrap();
}

/// Tells everything that `fill` has written.
async fn tell(store: &Sqlite) -> String {
    let mut told = String::new();
    for id in ["gone", "other", "talk"] {
        let it = store.told(id).await;
        let head = it.tally.head();
        told += &format!("{id}: {:?} {:?} {:?} v{} {:?}\n", it.state, it.title, it.from, it.version, head);
        if it.state != State::Live {
            continue;
        }
        for row in store.all(id).await {
            let (tally, large) = (row.tally.sums(), row.large.len());
            told += &format!("  {} {} {tally:?} {} {large} {}\n", row.seq, row.strand, row.hash, row.counts);
        }
        let (tenant, id) = (tenant(), name(id));
        let after = Decisions::After { ordinal: 0, rows: 99 };
        let decisions = store.decisions(&tenant, &id, &reader(), Upto::NOW, after).await.unwrap();
        let turns = Turns::Since { turn: 0, rows: 99 };
        let turns = store.turns(&tenant, &id, &reader(), Upto::NOW, turns).await.unwrap();
        told += &format!("  {:?}\n  {decisions:?}\n  {turns:?}\n", store.who(id.as_str()).await);
        for kind in [RecordKind::Session, RecordKind::Note, RecordKind::Want] {
            told += &format!("  {:?}\n", store.kept(&tenant, &id, kind).await.unwrap());
        }
        told += &format!("  {:?}\n", store.contents(&tenant, &id, vec![Digest::of(b"tools")]).await.unwrap());
    }
    told
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

#[tokio::test]
async fn a_store_of_every_released_schema_is_brought_up_to_date_and_read() {
    let folder = TempFolder::new();
    let fresh = store(&folder);
    fill(&fresh).await;
    let expected = tell(&fresh).await;
    let newest = checked(&fresh).await.schema;
    // With RECTO_BLESS set, a fixture of the newest schema is written; once released, it stays as it is.
    let blessed = fixtures().join(format!("schema-{newest}.db"));
    if std::env::var_os("RECTO_BLESS").is_some() && !blessed.exists() {
        fresh.backup(&blessed, Existing::Refuse).await.unwrap();
    }
    for schema in 1..=newest {
        let copy = folder.file(&format!("schema-{schema}.db"));
        fs::copy(fixtures().join(format!("schema-{schema}.db")), &copy).unwrap();
        let old = Sqlite::open(&copy).unwrap();
        assert_eq!(tell(&old).await, expected, "schema {schema}");
        let report = checked(&old).await;
        assert_eq!((report.schema, report.findings), (newest, Vec::new()));
        let again = old.put("talk", keyed("second", vec![assistant("hi")])).await.unwrap();
        assert!(again.is_repeated);
        old.say("talk", words(1)).await;
    }
}
