//! What the index costs and brings, as ratios within one run: `cargo bench -p recto-engine --bench recall` prints them
//! and fails if one is out of bounds.
//!
//! - a question to a log of a hundred thousand entries against one of ten thousand;
//! - a turn that is appended and made findable against one that is only appended;
//! - erasing an entry with an index against without.

use recto::recall::Query;
use recto::{Entry, Seq, Tokenizer, Tokens};
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Append, At, Engine, Opening, Tenant};
use std::path::Path;
use std::time::{Duration, Instant};

const LONG_ENTRIES: u64 = 100_000;
const SHORT_ENTRIES: u64 = 10_000;
const ROUNDS: usize = 21;
const TURNS: u64 = 300;
const ERASES: u64 = 31;
const QUERY_RATIO_MAX: f64 = 3.0;
/// What an append, and an erase, may cost where there is an index.
const WRITE_RATIO_MAX: f64 = 1.5;
/// What asking may bring back.
const BUDGET: Tokens = Tokens(2_000);

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is there to print")]
fn main() {
    let folder = std::env::temp_dir().join(format!("recto-bench-recall-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written to");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (text, is_met) = runtime.block_on(queries(&folder.join("queries.db")));
    println!("{text}");
    let (written, is_cheap) = runtime.block_on(writes(&folder.join("writes.db")));
    println!("{written}");
    drop(std::fs::remove_dir_all(&folder));
    if !(is_met && is_cheap) {
        eprintln!("out of bounds");
        std::process::exit(1);
    }
}

fn at(name: &str) -> At {
    At::new(&Tenant::default(), name)
}

/// Words as people use them: a few often, most of them rarely.
fn said(number: u64) -> Entry {
    let word = |nth: u64| {
        let dice = (number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(nth * 1_442_695_040_888_963_407)) >> 33;
        format!("word{}", (dice % 20_000) * (dice % 97) / 97)
    };
    let words: Vec<String> = (0..24).map(word).collect();
    let text = format!("Topic {} of the day: {}.", number % 50, words.join(" "));
    if number.is_multiple_of(2) { Entry::user(text) } else { Entry::assistant(text) }
}

async fn filled(engine: &Engine<Sqlite>, name: &str, entries: u64) {
    let opening = Opening { tokenizer: Some(Tokenizer::Bytes4), ..Opening::default() };
    engine.open(&at(name), opening).await.expect("it is new");
    for from in (0..entries).step_by(5_000) {
        let batch: Vec<Entry> = (from..(from + 5_000).min(entries)).map(said).collect();
        engine.append(&at(name), Append::any(batch)).await.expect("it is appended");
    }
}

/// A question to a long log against a short one.
async fn queries(file: &Path) -> (String, bool) {
    let engine = Engine::over(Sqlite::open(file).expect("a new store"));
    let mut built = Vec::new();
    for (name, entries) in [("short", SHORT_ENTRIES), ("long", LONG_ENTRIES)] {
        filled(&engine, name, entries).await;
        let start = Instant::now();
        engine.index(&at(name)).await.expect("it can be indexed");
        built.push(start.elapsed());
    }
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS as u64 {
        let query = Query::saying(format!("What about topic {round} and word{} of word17 that day?", round * 31));
        for (name, times) in ["short", "long"].into_iter().zip(&mut times) {
            let start = Instant::now();
            let found = engine.search(&at(name), &query, BUDGET).await.expect("it can be asked");
            times.push(start.elapsed());
            assert!(!found.hits.is_empty(), "nothing was found");
        }
    }
    let [short, long] = times.map(median);
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    let text = format!(
        "a question, {LONG_ENTRIES} entries against {SHORT_ENTRIES}: {ratio:.2} x, at most {QUERY_RATIO_MAX} ({long:.1?}, {short:.1?}); \
         making all of them findable took {:.1?} and {:.1?}",
        built[1], built[0]
    );
    (text, ratio <= QUERY_RATIO_MAX)
}

/// Turns of two entries that are appended, and made findable or not; and an erase.
async fn writes(file: &Path) -> (String, bool) {
    let engine = Engine::over(Sqlite::open(file).expect("a new store"));
    for name in ["plain", "indexed"] {
        filled(&engine, name, 2_000).await;
    }
    engine.index(&at("indexed")).await.expect("it can be indexed");
    let (mut times, mut until) = ([Vec::new(), Vec::new()], Vec::new());
    for number in 0..TURNS {
        for (nth, name) in ["plain", "indexed"].into_iter().enumerate() {
            let start = Instant::now();
            let turn = [said(2 * number), said(2 * number + 1)];
            engine.append(&at(name), Append::any(turn)).await.expect("it is appended");
            times[nth].push(start.elapsed());
            if nth == 1 {
                engine.index(&at(name)).await.expect("it can be indexed");
                until.push(start.elapsed());
            }
        }
    }
    let [plain, indexed] = times.map(median);
    let until = median(until);
    let mut erased = [Vec::new(), Vec::new()];
    for number in 0..ERASES {
        // Whoever comes first also brings what the index has written into the file.
        let turns = if number % 2 == 0 { [(0, "plain"), (1, "indexed")] } else { [(1, "indexed"), (0, "plain")] };
        for (nth, name) in turns {
            let start = Instant::now();
            engine.erase_entries(&at(name), vec![Seq(7 * number)]).await.expect("it can be erased");
            erased[nth].push(start.elapsed());
        }
        // An erase takes the index away; the next one has to meet one again.
        engine.index(&at("indexed")).await.expect("it can be indexed");
    }
    let [erased_plain, erased_indexed] = erased.map(median);
    let ratio = |with: Duration, without: Duration| with.as_secs_f64() / without.as_secs_f64();
    let (appending, erasing) = (ratio(indexed, plain), ratio(erased_indexed, erased_plain));
    let text = format!(
        "with an index against without, at most {WRITE_RATIO_MAX}: an append of 2 entries {appending:.2} x ({indexed:.1?}, \
         {plain:.1?}), an erase of an entry {erasing:.2} x ({erased_indexed:.1?}, {erased_plain:.1?}); until entries are \
         findable {:.2} x ({until:.1?})",
        ratio(until, plain)
    );
    (text, appending <= WRITE_RATIO_MAX && erasing <= WRITE_RATIO_MAX)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
