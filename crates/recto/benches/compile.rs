//! Plan and compile against the least anybody could do: choose the window from the end and write its JSON.
//!
//! Counts are known, the window is 100,000 tokens, entries have 800 characters. All figures are ratios of medians taken
//! in turns within one run. `cargo bench -p recto` prints them and fails if one is out of bounds.

use recto::{Entry, Log, Policy, Reader, Request, Role, Target, Tokenizer, Tokens, compile_once, wire};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

const SIZES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
const WINDOW: u64 = 100_000;
const ROUNDS: usize = 61;
/// Plan and compile may take this many times as long as the floor.
const FLOOR_RATIO_MAX: f64 = 3.0;
/// A million entries may take this many times as long as a thousand.
const GROWTH_MAX: f64 = 1.5;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is there to print")]
fn main() {
    let logs: Vec<Log> = SIZES.iter().map(|&size| log(size)).collect();
    let target = Target::eval().with_window(Some(Tokens(WINDOW)));
    let (reader, policy) = (Reader::new("bench"), Policy::safe());
    let request = |log| Request { reserve: Some(Tokens(4_000)), ..Request::new(log, &reader, &policy, &target) };

    // In turns, so that whatever else the machine does meets all of them alike.
    let mut times: Vec<[Vec<Duration>; 3]> = logs.iter().map(|_| [vec![], vec![], vec![]]).collect();
    for _ in 0..ROUNDS {
        for (log, times) in logs.iter().zip(&mut times) {
            times[0].push(time(|| drop(black_box(least(log, WINDOW - 4_000)))));
            times[1].push(time(|| drop(black_box(compile_once(&request(log)).expect("it fits")))));
            times[2].push(time(|| {
                let compiled = compile_once(&request(log)).expect("it fits");
                drop(black_box(wire::openai_chat::encode(&compiled.page, &target)));
            }));
        }
    }
    let medians: Vec<[Duration; 3]> = times.into_iter().map(|it| it.map(median)).collect();
    let mut table =
        String::from("   entries |  window + JSON | plan + compile | ratio | with encode | ratio | to 1k\n");
    let mut failures = Vec::new();
    for (&size, &[least, compile, encode]) in SIZES.iter().zip(&medians) {
        let ratio = compile.as_secs_f64() / least.as_secs_f64();
        let growth = compile.as_secs_f64() / medians[0][1].as_secs_f64();
        let whole = encode.as_secs_f64() / least.as_secs_f64();
        writeln!(table, "{size:>10} | {least:>14.1?} | {compile:>14.1?} | {ratio:>5.2} | {encode:>11.1?} | {whole:>5.2} | {growth:>5.2}")
            .expect("writing to a string can't fail");
        if ratio > FLOOR_RATIO_MAX {
            failures.push(format!(
                "{size} entries: plan + compile takes {ratio:.2} times the floor, at most {FLOOR_RATIO_MAX}"
            ));
        }
        if growth > GROWTH_MAX {
            failures.push(format!("{size} entries take {growth:.2} times what 1,000 take, at most {GROWTH_MAX}"));
        }
    }
    print!("{table}");
    if !failures.is_empty() {
        eprintln!("out of bounds:\n{}", failures.join("\n"));
        std::process::exit(1);
    }
}

/// A log of plain talk; 800 characters are 200 tokens.
fn log(size: u64) -> Log {
    let mut log = Log::counted_by(Tokenizer::Bytes4);
    for at in 0..size {
        let text = format!(
            "{at:>10} {}",
            "lorem ipsum dolor sit amet, consetetur \"sadipscing\" elitr, sed diam\n".repeat(12)
        );
        let role = if at % 2 == 0 { Role::User } else { Role::Assistant };
        log.append(Entry::new(role, [recto::Part::text(&text[..800])])).expect("plain text can be appended");
    }
    log
}

/// The floor: walk back until the budget is spent, then write the messages as JSON.
fn least(log: &Log, budget: u64) -> Vec<u8> {
    let (mut chosen, mut spent) = (Vec::new(), 0);
    for entry in log.back() {
        spent += entry.cost.0 + 4;
        if spent > budget {
            break;
        }
        chosen.push(entry);
    }
    let mut out = Vec::with_capacity(budget as usize * 5);
    out.push(b'[');
    for (at, entry) in chosen.iter().rev().enumerate() {
        out.extend_from_slice(if at > 0 { b",{\"role\":" } else { b"{\"role\":" });
        let role = if entry.role() == Role::User { "\"user\"" } else { "\"assistant\"" };
        out.extend_from_slice(role.as_bytes());
        out.extend_from_slice(b",\"content\":");
        if let [recto::Part::Text { text }] = &**entry.shown() {
            serde_json::to_writer(&mut out, &**text).expect("writing into memory can't fail");
        }
        out.push(b'}');
    }
    out.push(b']');
    out
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
