//! A writer that is killed again and again, at any moment: whatever it said was written must be there.

use crate::child::{Running, setting, tell};
use crate::contract::make::{Told, appended, batch, keyed, name, new, tenant, user};
use crate::folder::TempFolder;
use recto::Seq;
use recto::digest::Digest;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::store::{Appended, Batch, NewRow, Store};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const KILLS: u64 = 100;
const KILLS_LONG: u64 = 1_000;
const KILLS_OF_CONTROL: u64 = 10;
const CALLERS: u64 = 6;
const CONVERSATIONS: u64 = 3;
const ENTRIES_MAX: u64 = 5;
/// After so many appends a caller stops by itself.
const APPENDS_MAX: u64 = 10_000;
const LINES_MAX: u64 = 40;
const PAGE_ROWS: usize = 5_000;
/// Every so many rounds, what was under way is tried again.
const RETRY_ROUNDS: u64 = 5;
const MOMENT_MICROS_MAX: u64 = 3_000;
const START_MICROS_MAX: u64 = 40_000;

/// When a writer says that a batch was written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    After,
    /// A lie, and the verifier must find it out.
    Before,
}

#[test]
fn a_killed_writer_loses_nothing_that_it_acknowledged() {
    let kills = if std::env::var_os("RECTO_LONG").is_some() { KILLS_LONG } else { KILLS };
    let (acknowledged, found) = kill_again_and_again(kills, Says::After);
    assert!(acknowledged > kills, "a kill that finds nobody at work shows nothing: {acknowledged} batches");
    assert_eq!(found, Found::default(), "of {acknowledged} batches");
}

#[test]
fn a_writer_that_acknowledges_too_early_is_found_losing() {
    let (acknowledged, found) = kill_again_and_again(KILLS_OF_CONTROL, Says::Before);
    assert!(found.lost > 0, "of {acknowledged} batches none was lost");
    assert_eq!(Found { lost: 0, ..found }, Found::default(), "the store itself keeps its promises");
}

/// The writer; only for a parent that says where.
#[test]
fn child() {
    let (Some(store), Some(round)) = (setting("RECTO_KILL_STORE"), setting("RECTO_KILL_ROUND")) else { return };
    let round = round.parse().expect("a number");
    let says = if setting("RECTO_KILL_SAYS").is_some() { Says::Before } else { Says::After };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = Sqlite::open(store).unwrap();
    runtime.block_on(async {
        let callers: Vec<_> =
            (0..CALLERS).map(|caller| tokio::spawn(write(store.clone(), round, caller, says))).collect();
        for caller in callers {
            caller.await.unwrap();
        }
    });
}

async fn write(store: Sqlite, round: u64, caller: u64, says: Says) {
    let id = conversation(caller);
    if let Err(error) = store.create(&tenant(), new(&id)).await {
        assert!(error.is_exists(), "{error}");
    }
    for number in 0..APPENDS_MAX {
        let batch = made(round, caller, number);
        let hash = hash_of(&batch.rows);
        if says == Says::Before {
            tell(&format!("{caller} {number} - - {hash}"));
        }
        let Appended { first, last, .. } = store.append(&tenant(), &name(&id), batch).await.unwrap();
        if says == Says::After {
            tell(&format!("{caller} {number} {} {} {hash}", first.unwrap().0, last.unwrap().0));
        }
    }
}

fn conversation(caller: u64) -> String {
    format!("c{}", caller % CONVERSATIONS)
}

/// Returns a batch; the same again for the same numbers. Every second one has a key.
fn made(round: u64, caller: u64, number: u64) -> Batch {
    let parts = 1 + mixed(round ^ (caller << 20) ^ (number << 40)) % ENTRIES_MAX;
    let rows = (0..parts).map(|part| user(&format!("{round} {caller} {number} {part} {parts}"))).collect();
    if number.is_multiple_of(2) { keyed(&format!("{round} {caller} {number}"), rows) } else { batch(rows) }
}

fn hash_of(rows: &[NewRow]) -> Digest {
    Digest::of(rows.iter().map(|row| row.hash.to_string()).collect::<String>().as_bytes())
}

/// Returns a number that looks random, and is the same for the same number.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A batch that a writer said was written.
struct Acknowledged {
    round: u64,
    caller: u64,
    number: u64,
    places: Option<(u64, u64)>,
    hash: Digest,
}

impl Acknowledged {
    fn read(round: u64, line: &str) -> Acknowledged {
        let fields: Vec<&str> = line.split(' ').collect();
        let [caller, number, first, last, hash] = fields[..] else { panic!("{line:?} is no acknowledgement") };
        let places = first.parse().ok().zip(last.parse().ok());
        let hash = Digest::try_from(hash.to_string()).unwrap();
        Acknowledged { round, caller: caller.parse().unwrap(), number: number.parse().unwrap(), places, hash }
    }
}

/// What is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Found {
    /// Batches that were acknowledged, and are not there, or not as they were.
    lost: usize,
    /// Places without an entry.
    gaps: usize,
    /// Entries that are there twice.
    duplicates: usize,
    /// Batches of which only a part is there.
    torn: usize,
}

/// Starts writers and kills them, on one file; returns how many batches were acknowledged, and what is wrong.
fn kill_again_and_again(kills: u64, says: Says) -> (u64, Found) {
    let folder = TempFolder::new();
    let path = folder.path().join("store.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut all = Vec::new();
    for round in 0..kills {
        let told = run_and_kill(&path, round, says);
        let acknowledged = told.iter().map(|line| Acknowledged::read(round, line));
        all.extend(acknowledged);
        if says == Says::After && round.is_multiple_of(RETRY_ROUNDS) {
            runtime.block_on(retry(&path, round, &mut all));
        }
    }
    let intact: String = rusqlite::Connection::open(&path)
        .and_then(|db| db.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
        .unwrap();
    assert_eq!(intact, "ok");
    (all.len() as u64, runtime.block_on(verify(&path, &all)))
}

fn run_and_kill(path: &Path, round: u64, says: Says) -> Vec<String> {
    let mut settings = vec![("RECTO_KILL_STORE", path.display().to_string()), ("RECTO_KILL_ROUND", round.to_string())];
    if says == Says::Before {
        settings.push(("RECTO_KILL_SAYS", "before".into()));
    }
    let random = mixed(round + 1);
    let mut writer = Running::start("kill::child", &settings);
    // Some are killed while they start, most while they write.
    let lines = if random.is_multiple_of(8) { 0 } else { 1 + random / 8 % LINES_MAX };
    let mut told: Vec<String> = (0..lines).map_while(|_| writer.line()).collect();
    let micros_max = if lines == 0 { START_MICROS_MAX } else { MOMENT_MICROS_MAX };
    let (start, moment) = (Instant::now(), Duration::from_micros(mixed(random) % micros_max));
    while start.elapsed() < moment {
        std::hint::spin_loop();
    }
    told.extend(writer.kill());
    told
}

/// Repeats, for each caller, the last keyed batch that was acknowledged, and the one that may have been under way.
async fn retry(path: &Path, round: u64, all: &mut Vec<Acknowledged>) {
    let store = Sqlite::open(path).unwrap();
    for caller in 0..CALLERS {
        let known = all.iter().rev().find(|it| it.round == round && it.caller == caller && it.number.is_multiple_of(2));
        if let Some((known, (first, last))) = known.and_then(|it| Some((it, it.places?))) {
            let again = store.put(&conversation(caller), made(round, caller, known.number)).await.unwrap();
            assert_eq!(again, Appended { is_repeated: true, ..appended(first, last) });
        }
        let next = all.iter().filter(|it| it.round == round && it.caller == caller).count() as u64;
        if next == 0 || !next.is_multiple_of(2) {
            continue;
        }
        let batch = made(round, caller, next);
        let hash = hash_of(&batch.rows);
        let once = store.put(&conversation(caller), batch.clone()).await.unwrap();
        let again = store.put(&conversation(caller), batch).await.unwrap();
        assert_eq!(again, Appended { is_repeated: true, ..once });
        let places = once.first.zip(once.last).map(|(first, last)| (first.0, last.0));
        all.push(Acknowledged { round, caller, number: next, places, hash });
    }
}

async fn verify(path: &Path, all: &[Acknowledged]) -> Found {
    let store = Sqlite::open(path).unwrap();
    let mut found = Found::default();
    for number in 0..CONVERSATIONS {
        let hashes = hashes(&store, &conversation(number), &mut found).await;
        let places: BTreeMap<Digest, u64> = hashes.iter().map(|(seq, hash)| (*hash, *seq)).collect();
        found.duplicates += hashes.len() - places.len();
        for it in all.iter().filter(|it| it.caller % CONVERSATIONS == number) {
            let rows = made(it.round, it.caller, it.number).rows;
            assert_eq!(it.hash, hash_of(&rows), "the verifier knows what was written");
            let there: Vec<u64> = rows.iter().filter_map(|row| places.get(&row.hash)).copied().collect();
            let in_a_row = there.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            let told = it.places.is_none_or(|told| Some(told) == there.first().copied().zip(there.last().copied()));
            found.torn += usize::from(!there.is_empty() && (there.len() != rows.len() || !in_a_row));
            found.lost += usize::from(there.len() != rows.len() || !told);
        }
    }
    found
}

/// Returns what a conversation holds, and counts places without an entry and batches without an end.
async fn hashes(store: &Sqlite, id: &str, found: &mut Found) -> BTreeMap<u64, Digest> {
    let mut hashes = BTreeMap::new();
    let mut expected: Option<String> = None;
    loop {
        let page = store.forth(&tenant(), &name(id), Seq(hashes.len() as u64), PAGE_ROWS).await.unwrap();
        for row in &page {
            found.gaps += usize::from(row.seq.0 != hashes.len() as u64);
            assert_eq!(Digest::of(row.body.as_bytes()), row.hash, "{}", row.body);
            assert_eq!(row.tally.sums().entries, hashes.len() as u64 + 1);
            let (said, next) = said(&row.body);
            found.torn += usize::from(expected.is_some_and(|expected| expected != said));
            expected = next;
            hashes.insert(row.seq.0, row.hash);
        }
        if page.len() < PAGE_ROWS {
            found.torn += usize::from(expected.is_some());
            return hashes;
        }
    }
}

/// Returns what an entry says, and what the one behind it must say if its batch goes on.
fn said(body: &str) -> (String, Option<String>) {
    let entry: recto::Entry = serde_json::from_str(body).unwrap();
    let [recto::entry::Part::Text { text }] = &entry.parts[..] else { panic!("{body}") };
    let fields: Vec<u64> = text.split(' ').map(|field| field.parse().unwrap()).collect();
    let [round, caller, number, part, parts] = fields[..] else { panic!("{body}") };
    let next = (part + 1 < parts).then(|| format!("{round} {caller} {number} {} {parts}", part + 1));
    (text.to_string(), next)
}
