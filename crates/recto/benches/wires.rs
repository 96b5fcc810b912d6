//! Counting and encoding against what they can't be faster than, or should be faster than, as ratios within one run.
//!
//! Counting: texts that were not seen before, by `tiktoken-rs` and by us, with the same ids; and texts made to be slow,
//! at two lengths. Encoding: a page of a megabyte on every wire, against writing its bytes as one
//! JSON string. `cargo bench -p recto --bench wires` prints them and fails if one is out of bounds.

use recto::entry::Call;
use recto::tokens::Count;
use recto::{Entry, Log, Policy, Reader, Request, Target, Tokenizer, Wire, compile_once};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
const COUNT_RATIO_MIN: f64 = 4.0;
const ENCODE_RATIO_MAX: f64 = 3.0;
/// Twice the text may take this many times as long.
const GROWTH_MAX: f64 = 3.0;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is there to print")]
fn main() {
    let mut failures = Vec::new();
    for (name, ratio, is_bound) in counting() {
        println!("counting {name}: {ratio:.2} times as fast as tiktoken-rs, same ids");
        if is_bound && ratio < COUNT_RATIO_MIN {
            failures.push(format!("counting {name}: {ratio:.2} times as fast, at least {COUNT_RATIO_MIN}"));
        }
    }
    for (name, growth) in hostile() {
        println!("counting {name}: twice the text takes {growth:.2} times as long");
        if growth > GROWTH_MAX {
            failures.push(format!("counting {name}: twice the text takes {growth:.2} times as long"));
        }
    }
    for (wire, ratio) in encoding() {
        println!("encoding for {wire}: {ratio:.2} times writing the same bytes as one JSON string");
        if ratio > ENCODE_RATIO_MAX {
            failures.push(format!("encoding for {wire}: {ratio:.2} times, at most {ENCODE_RATIO_MAX}"));
        }
    }
    if !failures.is_empty() {
        eprintln!("out of bounds:\n{}", failures.join("\n"));
        std::process::exit(1);
    }
}

/// Text of several kinds that is different in every line, so that no cache of words makes it easy.
fn mixed(bytes: usize, seed: u64) -> String {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::with_capacity(bytes + 200);
    while text.len() < bytes {
        let (a, b) = (next(), next());
        let word: String = (0..3 + a % 7).map(|at| char::from(b'a' + ((b >> (at * 5)) % 26) as u8)).collect();
        text.push_str(&match a % 6 {
            0 => format!("The {word} was not what they had expected, and so the {} went on.\n", b % 1000),
            1 => format!("    let {word}_{} = self.{word}.get(&key[{}..])?;\n", b % 97, a % 13),
            2 => format!("{{\"{word}\": {}, \"path\": \"/usr/lib/{word}/{:x}.so\", \"ok\": true}}\n", b % 100_000, b),
            3 => format!(
                "error[E{:04}]: cannot find `{word}` in this scope --> src/{word}.rs:{}:{}\n",
                a % 9999,
                b % 900,
                a % 80
            ),
            4 => format!("名前は{word}で、{}番目の{}です。\n", b % 77, a % 31),
            _ => format!("{:016x} {word}\t{}\t{:.3}\n", b, a % 1_000_000, (b % 10_000) as f64 / 7.0),
        });
    }
    text
}

/// Texts that people and programs wrote: this project's code, documents, data and one conversation.
fn written() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut folders, mut texts) = (vec![root], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let is_text =
                [".rs", ".md", ".toml", ".json", ".jsonl"].iter().any(|end| name.to_string_lossy().ends_with(end));
            if path.is_dir() && name != "target" && name != ".git" {
                folders.push(path);
            } else if is_text {
                texts.extend(std::fs::read_to_string(path));
            }
        }
    }
    texts
}

/// Every text is counted once by each, so that none has been seen before; who is first changes from text to text.
fn counting() -> Vec<(&'static str, f64, bool)> {
    let reference = tiktoken_rs::o200k_base().expect("the reference loads");
    black_box((Tokenizer::O200k.count("warm"), reference.encode_ordinary("warm")));
    let random: Vec<String> = (0..ROUNDS as u64).map(|round| mixed(200_000, 1_000 + round)).collect();
    let ratio = |texts: &[String]| {
        let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
        for (at, text) in texts.iter().enumerate() {
            let mut ids = (Vec::new(), Vec::new());
            let mut us = || ours += time(|| ids.0 = Tokenizer::O200k.ids(text).expect("it has ids"));
            let mut them = || theirs += time(|| ids.1 = reference.encode_ordinary(text));
            if at % 2 == 0 {
                (us(), them())
            } else {
                (them(), us())
            };
            assert!(ids.0 == ids.1, "other ids than the reference");
        }
        theirs.as_secs_f64() / ours.as_secs_f64()
    };
    let written = written();
    vec![
        ("written text: code, documents, JSON", ratio(&written), true),
        ("text of which half is random letters and digits", ratio(&random), false),
    ]
}

/// Makes a text of so many bytes.
type Maker = fn(usize) -> String;

fn hostile() -> Vec<(&'static str, f64)> {
    let kinds: [(&str, Maker); 4] = [
        ("a run of one letter", |n| "a".repeat(n)),
        ("a run of spaces", |n| " ".repeat(n)),
        ("a run of three-byte characters", |n| "\u{4e00}".repeat(n / 3)),
        ("letters without a space", |n| (0..n).map(|at| char::from(b'a' + (at * 7 % 26) as u8)).collect()),
    ];
    let growth = |make: Maker| {
        let (one, two) = (make(200_000), make(400_000));
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..5 {
            times.0.push(time(|| assert!(black_box(Tokenizer::O200k.count(&one)).0 > 0)));
            times.1.push(time(|| assert!(black_box(Tokenizer::O200k.count(&two)).0 > 0)));
        }
        median(times.1) / median(times.0)
    };
    kinds.into_iter().map(|(name, make)| (name, growth(make))).collect()
}

fn encoding() -> Vec<(Wire, f64)> {
    let mut log = Log::counted_by(Tokenizer::Bytes4);
    let mut append = |entry| {
        log.append(entry).expect("plain entries can be appended");
    };
    append(Entry::system("You look things up."));
    for at in 0..200u64 {
        append(Entry::user(mixed(400, at)));
        let id = format!("call_{at}");
        let arguments =
            format!("{{\"path\":\"src/{at}.rs\",\"text\":{}}}", serde_json::Value::from(mixed(600, at + 7)));
        append(Entry::step("I look.", [Call::new(id.as_str(), "read_file", arguments)]));
        append(Entry::result(id.as_str(), mixed(4_000, at + 99)));
    }
    append(Entry::user("And?"));
    let (reader, policy) = (Reader::new("bench"), Policy::none());
    let ratio = |wire: Wire| {
        let target = Target::named("gpt-5.2").expect("built in").over(wire).with_window(None);
        let page = compile_once(&Request::new(&log, &reader, &policy, &target)).expect("it fits").page;
        let body = wire.encode(&page, &target);
        let text = String::from_utf8(body.clone()).expect("JSON is text");
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            times.0.push(time(|| drop(black_box(wire.encode(&page, &target)))));
            times.1.push(time(|| {
                let mut out = Vec::with_capacity(text.len() * 5 / 4);
                serde_json::to_writer(&mut out, &text).expect("writing into memory can't fail");
                drop(black_box(out));
            }));
        }
        median(times.0) / median(times.1)
    };
    Wire::ALL.into_iter().map(|wire| (wire, ratio(wire))).collect()
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}
