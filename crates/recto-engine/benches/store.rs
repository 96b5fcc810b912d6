//! What durability costs, as ratios within one run: `cargo bench -p recto-engine` prints them and fails if one is out of
//! bounds.
//!
//! - durable appends with many callers against one: what group commit brings;
//! - the newest window of a log of a million entries against one of a thousand;
//! - bytes written for a turn of three entries, at a short and at a long history;
//! - a whole process from its start to the first page, with a long and a short conversation. It runs the command
//!   `recto`, which `cargo build --release -p recto-cli` makes.

use recto::entry::CallId;
use recto::{Entry, Policy, Seq, Target, Tokens};
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Tenant};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LONG_ENTRIES: u64 = 1_000_000;
const SHORT_ENTRIES: u64 = 1_000;
const TINY_ENTRIES: u64 = 100;
/// The window whose page is made, in tokens.
const WINDOW: u64 = 100_000;
const ROUNDS: usize = 21;
const CALLERS: usize = 64;
const APPENDS: usize = 2_000;
const TURNS: u64 = 1_000;

const CALLERS_RATIO_MIN: f64 = 8.0;
const WINDOW_RATIO_MAX: f64 = 1.5;
const PROCESS_RATIO_MAX: f64 = 3.0;
const TURN_BYTES_MAX: u64 = 36 * 1024;
/// How much more a turn may write at the end of a long history, for noise.
const TURN_GROWTH_MAX: f64 = 1.1;

/// A figure, and whether it is within bounds.
struct Figure {
    text: String,
    is_met: bool,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is there to print")]
fn main() {
    let folder = std::env::temp_dir().join(format!("recto-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written to");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let mut figures = vec![runtime.block_on(callers(&folder))];
    println!("{}", figures[0].text);
    figures.push(runtime.block_on(bytes(&folder)));
    println!("{}", figures[1].text);
    eprintln!("writing {LONG_ENTRIES} entries …");
    let file = folder.join("logs.db");
    runtime.block_on(fill(&file));
    figures.push(runtime.block_on(windows(&file)));
    println!("{}", figures[2].text);
    match command() {
        Some(command) => {
            figures.push(processes(&command, &file));
            println!("{}", figures[3].text);
        }
        None => eprintln!("SKIPPED: a whole process: build it first with `cargo build --release -p recto-cli`"),
    }
    drop(std::fs::remove_dir_all(&folder));
    if figures.iter().any(|figure| !figure.is_met) {
        eprintln!("out of bounds");
        std::process::exit(1);
    }
}

fn at(name: &str) -> At {
    At::new(&Tenant::default(), name)
}

/// A turn of three entries of about a thousand bytes each.
fn turn(number: u64) -> Vec<Entry> {
    let words = |what: &str| format!("{what} {number} {}", "lorem ipsum ".repeat(75));
    let id = format!("call_{number}");
    let call = recto::entry::Call::new(id.as_str(), "read_file", r#"{"path":"src/main.rs"}"#);
    let step = Entry::step(words("I look at"), [call]);
    vec![Entry::user(words("Please see to")), step, Entry::result(CallId::from(id.as_str()), words("Found"))]
}

/// Durable appends of one entry: many callers against one.
async fn callers(folder: &Path) -> Figure {
    let engine = Engine::over(Sqlite::open(folder.join("callers.db")).expect("a new store"));
    engine.open(&at("one"), Opening::default()).await.expect("it is new");
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..5 {
        for (callers, rates) in [1, CALLERS].into_iter().zip(&mut rates) {
            let each = if callers == 1 { APPENDS / 10 } else { APPENDS / callers };
            let start = Instant::now();
            let work = (0..callers).map(|caller| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    for number in 0..each {
                        let key = format!("{round}-{callers}-{caller}-{number}");
                        let append = Append::any([Entry::user("a few words of a user")]).keyed(key);
                        engine.append(&at("one"), append).await.expect("it is appended");
                    }
                })
            });
            for work in work.collect::<Vec<_>>() {
                work.await.expect("a caller finishes");
            }
            rates.push((callers * each) as f64 / start.elapsed().as_secs_f64());
        }
    }
    let [one, many] = rates.map(|mut rates| median_of(&mut rates));
    let (ratio, bound) = (many / one, CALLERS_RATIO_MIN);
    let text = format!(
        "durable appends, {CALLERS} callers against one: {ratio:.1} x, at least {bound} ({many:.0}/s, {one:.0}/s)"
    );
    Figure { text, is_met: ratio >= bound }
}

/// Bytes that a turn writes, at the beginning and at the end of a history, checkpoints included.
async fn bytes(folder: &Path) -> Figure {
    let file = folder.join("bytes.db");
    let engine = Engine::over(Sqlite::open(&file).expect("a new store"));
    engine.open(&at("one"), Opening::default()).await.expect("it is new");
    let mut figures = Vec::new();
    for part in 0..10 {
        let before = written();
        for number in 0..TURNS {
            let append = Append::any(turn(number)).keyed(format!("{part}-{number}"));
            engine.append(&at("one"), append).await.expect("it is appended");
        }
        figures.push((written() - before) / TURNS);
    }
    let (first, last) = (figures[0].max(figures[1]), figures[9]);
    let most = figures.iter().copied().max().unwrap_or_default();
    let growth = last as f64 / first as f64;
    let text = format!(
        "bytes written per turn of 3 entries of 1 KB: {first} in the first of {}, {last} in the last ({growth:.2} x), at most {TURN_BYTES_MAX}",
        10 * TURNS
    );
    Figure { text, is_met: most <= TURN_BYTES_MAX && growth <= TURN_GROWTH_MAX }
}

/// What this process has handed to the system to write.
fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").expect("Linux tells what a process writes");
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: ")).expect("it tells the bytes");
    line.parse().expect("a number")
}

async fn fill(file: &Path) {
    let engine = Engine::over(Sqlite::open(file).expect("a new store"));
    for (name, entries) in [("tiny", TINY_ENTRIES), ("short", SHORT_ENTRIES), ("long", LONG_ENTRIES)] {
        engine.open(&at(name), Opening::default()).await.expect("it is new");
        let mut next = 0;
        while next < entries {
            let many = (entries - next).min(6_000);
            let batch: Vec<Entry> = (next / 3..(next + many).div_ceil(3)).flat_map(turn).take(many as usize).collect();
            engine.append(&at(name), Append::any(batch)).await.expect("it is appended");
            next += many;
        }
        // One call is recorded, so that the command goes on from it and doesn't go through all that were made before.
        let compiled = engine.compile(&at(name), &call()).await.expect("it fits");
        let answer = Answer { entries: turn(entries).split_off(1), ..Answer::default() };
        engine.acknowledge(&at(name), &compiled.receipt.ticket, answer).await.expect("the call is open");
    }
}

fn call() -> Call {
    let target = Target::named("gpt-4o").expect("built in").with_window(Some(Tokens(WINDOW)));
    let mut call = Call::new("main", Policy::safe(), target);
    call.reserve = Some(Tokens(4_000));
    call
}

/// The first page of a long log against that of a short one, read from the store each time.
async fn windows(file: &Path) -> Figure {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (name, times) in ["short", "long"].into_iter().zip(&mut times) {
            let engine = Engine::over(Sqlite::open(file).expect("the store"));
            let start = Instant::now();
            let compiled = engine.preview(&at(name), &call()).await.expect("it fits");
            times.push(start.elapsed());
            assert!(compiled.page.messages.iter().any(|message| message.seq > Some(Seq(500))), "the newest are shown");
        }
    }
    let [short, long] = times.map(median);
    let ratio = long.as_secs_f64() / short.as_secs_f64();
    let text = format!(
        "newest window of {WINDOW} tokens, {LONG_ENTRIES} entries against {SHORT_ENTRIES}: {ratio:.2} x, at most {WINDOW_RATIO_MAX} ({long:.1?}, {short:.1?})"
    );
    Figure { text, is_met: ratio <= WINDOW_RATIO_MAX }
}

fn command() -> Option<PathBuf> {
    let built = std::env::current_exe().ok()?;
    // …/release/deps/store-HASH stands beside …/release/recto.
    let command = built.parent()?.parent()?.join("recto");
    command.is_file().then_some(command)
}

/// A whole process from its start to the first page.
fn processes(command: &Path, file: &Path) -> Figure {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (name, times) in ["tiny", "long"].into_iter().zip(&mut times) {
            let start = Instant::now();
            let mut process = Command::new(command);
            process.args(["--config", "/dev/null", "compile", name, "--for", "gpt-4o", "--window", "100000"]);
            process.args(["--reserve", "4000", "--policy", "safe", "--store"]).arg(file);
            let status = process.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the command runs");
            times.push(start.elapsed());
            assert!(status.success(), "recto compile {name} failed");
        }
    }
    let [tiny, long] = times.map(median);
    let ratio = long.as_secs_f64() / tiny.as_secs_f64();
    let text = format!(
        "a whole process to its first page, {LONG_ENTRIES} entries against {TINY_ENTRIES}: {ratio:.2} x, at most {PROCESS_RATIO_MAX} ({long:.1?}, {tiny:.1?})"
    );
    Figure { text, is_met: ratio <= PROCESS_RATIO_MAX }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn median_of(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
