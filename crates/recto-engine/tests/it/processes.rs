//! Several processes on one file: each gets through, and nothing of any is lost.

use crate::child::{Running, setting, tell};
use crate::contract::make::{Told, expecting, new, tenant, user};
use crate::folder::TempFolder;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::store::{Row, Store};
use std::collections::BTreeMap;

const PROCESSES: u64 = 4;
const APPENDS: u64 = 40;
/// So often a process may find that another came first.
const RETRIES_MAX: u64 = 10_000;

#[test]
fn four_processes_on_one_file_lose_nothing() {
    let folder = TempFolder::new();
    let path = folder.path().join("store.db");
    let start = |number: u64| {
        let settings = [("RECTO_PROCESS_STORE", path.display().to_string()), ("RECTO_PROCESS", number.to_string())];
        Running::start("processes::child", &settings)
    };
    let mut running: Vec<Running> = (0..PROCESSES).map(start).collect();
    // Nobody has made the file before them; when all have it open, they begin.
    for process in &mut running {
        assert_eq!(process.line().as_deref(), Some("ready"));
    }
    running.iter_mut().for_each(|process| process.say("go"));
    for process in running {
        assert!(process.end(), "every append of every process gets through");
    }
    let store = Sqlite::open(&path).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        check_any(&store.all("any").await);
        check_expected(&store.all("expected").await);
        for number in 0..PROCESSES {
            let own = said(&store.all(&format!("own {number}")).await);
            let expected: Vec<Vec<u64>> = (0..APPENDS).map(|append| vec![number, append]).collect();
            assert_eq!(own, expected);
        }
    });
}

/// One of the processes; only for a parent that says where.
#[test]
fn child() {
    let (Some(store), Some(number)) = (setting("RECTO_PROCESS_STORE"), setting("RECTO_PROCESS")) else { return };
    let number: u64 = number.parse().expect("a number");
    let store = Sqlite::open(store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tell("ready");
    let mut go = String::new();
    std::io::stdin().read_line(&mut go).unwrap();
    runtime.block_on(async {
        let own = format!("own {number}");
        for id in ["any", "expected", &own] {
            if let Err(error) = store.create(&tenant(), new(id)).await {
                assert!(error.is_exists(), "{error}");
            }
        }
        for append in 0..APPENDS {
            let parts = 1 + append % 3;
            let rows = (0..parts).map(|part| user(&format!("{number} {append} {part} {parts}"))).collect();
            store.say("any", rows).await;
            store.say(&own, vec![user(&format!("{number} {append}"))]).await;
            append_expected(&store, number, append).await;
        }
    });
}

/// Appends behind the head that it has read, and reads again when another process came first. No other error may come.
async fn append_expected(store: &Sqlite, number: u64, append: u64) {
    for _ in 0..RETRIES_MAX {
        let head = store.told("expected").await.tally.head().map(|head| head.0);
        let place = head.map_or(0, |head| head + 1);
        let rows = vec![user(&format!("{number} {append} {place}")), user(&format!("{number} {append} {}", place + 1))];
        match store.put("expected", expecting(head, rows)).await {
            Ok(appended) => return assert_eq!(appended.first.map(|first| first.0), Some(place)),
            Err(error) => assert!(error.is_conflict(), "{error}"),
        }
    }
    panic!("another process came first {RETRIES_MAX} times");
}

/// Returns the numbers that each entry says.
fn said(rows: &[Row]) -> Vec<Vec<u64>> {
    let text = |row: &Row| {
        let entry: recto::Entry = serde_json::from_str(&row.body).unwrap();
        let [recto::entry::Part::Text { text }] = &entry.parts[..] else { panic!("{}", row.body) };
        text.split(' ').map(|field| field.parse().unwrap()).collect()
    };
    rows.iter().map(text).collect()
}

fn check_dense(rows: &[Row]) {
    for (place, row) in (0..).zip(rows) {
        assert_eq!((row.seq.0, row.tally.sums().entries), (place, place + 1));
    }
}

fn check_any(rows: &[Row]) {
    check_dense(rows);
    let said = said(rows);
    let mut next: BTreeMap<u64, u64> = BTreeMap::new();
    let mut at = 0;
    while at < said.len() {
        let [process, append, _, parts] = said[at][..] else { panic!("{:?}", said[at]) };
        for part in 0..parts {
            assert_eq!(said[at + part as usize], [process, append, part, parts], "a batch stays whole");
        }
        at += parts as usize;
        let number = next.entry(process).or_default();
        assert_eq!(*number, append, "in the order in which process {process} has appended them");
        *number += 1;
    }
    assert_eq!(next, (0..PROCESSES).map(|process| (process, APPENDS)).collect());
}

fn check_expected(rows: &[Row]) {
    check_dense(rows);
    for (place, numbers) in (0..).zip(said(rows)) {
        assert_eq!(numbers[2], place, "it stands where its process expected it");
    }
    let mut count: BTreeMap<u64, u64> = BTreeMap::new();
    said(rows).iter().for_each(|numbers| *count.entry(numbers[0]).or_default() += 1);
    assert_eq!(count, (0..PROCESSES).map(|process| (process, 2 * APPENDS)).collect());
}
