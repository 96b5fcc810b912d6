//! Plan and compile against the least anybody could do: choose the window from the end and write its JSON.
//!
//! Counts are known, the window is 100,000 tokens, entries have 800 characters. All figures are ratios of medians taken
//! in turns within one run. `cargo bench -p recto` prints them and fails if one is out of bounds.
//!
//! Then planning against compiling alone: a coding agent that has lived through 100,000 entries goes on under the usual
//! policy, call by call. Calls that change nothing are told apart from those that do; the latter read the whole page.

use recto::edit::Turn;
use recto::entry::{Call, Text};
use recto::page::Page;
use recto::receipt::Ticket;
use recto::{Entry, Log, Policy, Reader, Request, Role, Target, Tokenizer, Tokens, compile, compile_once, plan, wire};
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
/// How long the agent's log is when it is measured, and its windows.
const LIVED_ENTRIES: u64 = 100_000;
const LIVED_WINDOWS: [u64; 2] = [200_000, 1_000_000];
/// How many calls are made before any is measured, and how many are.
const SETTLING_CALLS: u64 = 100;
const LIVED_CALLS: u64 = 150;
/// How often each of them is made; the fastest counts, since a busy machine only makes them slower.
const REPEATS: usize = 3;
/// Plan and compile may take this many times as long as compile alone, where nothing changes.
const STEADY_RATIO_MAX: f64 = 3.0;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is there to print")]
fn main() {
    let (floor, mut failures) = against_the_floor();
    print!("{floor}");
    let (lived, more) = against_compile();
    print!("\n{lived}");
    failures.extend(more);
    if !failures.is_empty() {
        eprintln!("out of bounds:\n{}", failures.join("\n"));
        std::process::exit(1);
    }
}

/// The table of plan and compile against the floor, and what is out of bounds.
fn against_the_floor() -> (String, Vec<String>) {
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
    (table, failures)
}

/// The table of plan and compile against compile alone, and what is out of bounds.
fn against_compile() -> (String, Vec<String>) {
    let mut table = String::from("    window |        calls |    compile | plan + compile | ratio\n");
    let mut failures = Vec::new();
    for window in LIVED_WINDOWS {
        let mut agent = Agent::grown_old(window);
        let (mut steady, mut changing) = ([vec![], vec![]], [vec![], vec![]]);
        for call in 0..SETTLING_CALLS + LIVED_CALLS {
            let (times, is_changing) = agent.call();
            let into = if is_changing { &mut changing } else { &mut steady };
            if call >= SETTLING_CALLS {
                into.iter_mut().zip(times).for_each(|(into, time)| into.push(time));
            }
        }
        let all =
            [0, 1].map(|at| [&steady[at][..], &changing[at]].concat().iter().sum::<Duration>() / LIVED_CALLS as u32);
        for (name, times) in [("steady", steady), ("changing", changing)] {
            let calls = times[0].len();
            if calls == 0 {
                continue;
            }
            let [compile, both] = times.map(median);
            let ratio = both.as_secs_f64() / compile.as_secs_f64();
            writeln!(table, "{window:>10} | {calls:>3} {name:>8} | {compile:>10.1?} | {both:>14.1?} | {ratio:>5.2}")
                .expect("writing to a string can't fail");
            if name == "steady" && ratio > STEADY_RATIO_MAX {
                failures.push(format!(
                    "window {window}: plan + compile takes {ratio:.2} times compile alone, at most {STEADY_RATIO_MAX}"
                ));
            }
        }
        let [compile, both] = all;
        let ratio = both.as_secs_f64() / compile.as_secs_f64();
        writeln!(table, "{window:>10} |  mean of all | {compile:>10.1?} | {both:>14.1?} | {ratio:>5.2}")
            .expect("writing to a string can't fail");
    }
    (table, failures)
}

/// A coding agent: it reads, searches, edits and runs things, and every now and then its user says something.
struct Agent {
    log: Log,
    reader: Reader,
    previous: Option<Page>,
    policy: Policy,
    target: Target,
    /// What tools say, over and over; more than any page holds.
    outputs: Vec<Text>,
    steps: usize,
}

impl Agent {
    /// Has lived through the whole log but for what is measured; its calls are acknowledged without being made.
    fn grown_old(window: u64) -> Agent {
        let mut agent = Agent {
            log: Log::counted_by(Tokenizer::Bytes4),
            reader: Reader::new("bench"),
            previous: None,
            policy: Policy::usual(),
            target: Target::eval().with_window(Some(Tokens(window))),
            outputs: (0..1_500).map(output).collect(),
            steps: 0,
        };
        agent.step();
        let first = compile_once(&agent.request()).expect("it fits").receipt.ticket;
        while agent.log.len() < LIVED_ENTRIES - 2 * (SETTLING_CALLS + LIVED_CALLS) {
            let turn = Turn(agent.reader.turn().0);
            let ticket = Ticket { turn, head: agent.log.head(), ..first.clone() };
            agent.reader.acknowledge(&ticket).expect("it is the reader's turn");
            agent.step();
        }
        agent
    }

    fn request(&self) -> Request<'_> {
        let (reserve, previous) = (Some(Tokens(4_000)), self.previous.as_ref());
        Request { reserve, previous, ..Request::new(&self.log, &self.reader, &self.policy, &self.target) }
    }

    /// Makes the next call. Returns how long compile took, and plan with it, and whether the plan changed anything.
    fn call(&mut self) -> ([Duration; 2], bool) {
        let (edits, planning) = fastest(|| plan(&self.request()).expect("the settings are right").edits);
        let is_changing = !edits.is_empty();
        self.reader.commit(edits, self.policy.digest());
        let (compiled, compiling) = fastest(|| compile(&self.request()).expect("it fits"));
        self.reader.acknowledge(&compiled.receipt.ticket).expect("it is the reader's turn");
        self.previous = Some(compiled.page);
        self.step();
        ([compiling, planning + compiling], is_changing)
    }

    /// What the model answers, and what its tool says to that.
    fn step(&mut self) {
        let at = self.steps;
        self.steps += 1;
        if at.is_multiple_of(25) {
            let text = format!("Now see to part {at}: the totals of module_{} must not be rounded twice.", at % 97);
            self.log.append(Entry::user(text)).expect("plain text can be appended");
        }
        let (id, path) = (format!("call_{at}"), format!("src/module_{}.rs", at % 97));
        let (tool, arguments) = match at % 4 {
            0 => ("Read", serde_json::json!({"file_path": path})),
            1 => ("Grep", serde_json::json!({"pattern": format!("function_{at}"), "path": path})),
            2 => ("Bash", serde_json::json!({"command": format!("cargo test module_{}", at % 97)})),
            _ => ("Write", serde_json::json!({"file_path": path, "content": &self.outputs[at % 31][..1_500]})),
        };
        let said = format!("I'll look at {path}, since function_{} of it is called from there.", at % 300);
        let call = Call::new(&*id, tool, arguments.to_string());
        let output = self.outputs[at % self.outputs.len()].clone();
        self.log.append(Entry::step(&*said, [call])).expect("a step can be appended");
        self.log.append(Entry::result(&*id, output)).expect("a result can be appended");
    }
}

/// What a tool says: 50 to 400 lines that look like code.
fn output(nth: usize) -> Text {
    let mut state = nth as u64 + 1;
    // Numbers that look random, and are the same everywhere.
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut text = String::new();
    for line in 0..50 + next(351) {
        let (one, two, three) = (next(300), next(4_000), next(90_000));
        let line = match next(6) {
            0 => format!("{line:>5}  }}\n"),
            1 => format!("{line:>5}  fn function_{one}(value_{two}: &Module{one}) -> Result<u64, Error> {{\n"),
            2 => format!("{line:>5}      // The total of table {two} is {three} when it is rounded once.\n"),
            3 => format!("{line:>5}      let value_{two} = module_{}::function_{one}(\"name {three}\")?;\n", two % 97),
            4 => format!("{line:>5}      assert_eq!(value_{two}.total(), {three}, \"part {one}\");\n"),
            _ => format!("{line:>5}      self.totals.insert(value_{two}, {three});\n"),
        };
        text.push_str(&line);
    }
    text.into()
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

/// Does some work a few times; returns what came of it, and the shortest time.
fn fastest<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let mut once = || {
        let start = Instant::now();
        let made = work();
        (made, start.elapsed())
    };
    let (mut made, mut least) = once();
    for _ in 1..REPEATS {
        let (again, took) = once();
        (made, least) = (again, least.min(took));
    }
    (made, least)
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
