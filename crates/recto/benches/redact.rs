//! Redaction against exact counting of the same text, and one long text against ten short ones, as ratios within one run.
//!
//! `cargo bench -p recto --bench redact` prints them and fails if one is out of bounds.

use recto::Tokenizer;
use recto::redact::{Pattern, Redactor};
use recto::tokens::Count;
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const MEGABYTE: usize = 1_000_000;
/// Finding secrets, and finding everything, may take this much of the time that counting takes.
const SECRETS_RATIO_MAX: f64 = 1.0 / 3.0;
const ALL_RATIO_MAX: f64 = 1.0 / 2.0;
/// Ten megabytes in one text may take this many times as long as in ten texts.
const GROWTH_MAX: f64 = 2.0;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is there to print")]
fn main() {
    let mut failures = Vec::new();
    for (name, ratio, speed) in ordinary() {
        println!("finding {name} in written text: {ratio:.3} of the time of exact counting, {speed:.0} MB/s");
        let most = if name == "secrets" { SECRETS_RATIO_MAX } else { ALL_RATIO_MAX };
        if ratio > most {
            failures.push(format!("finding {name}: {ratio:.3} of counting, at most {most:.3}"));
        }
    }
    for (name, growth, speed) in hostile() {
        println!("{name:?} again and again: 10 MB take {growth:.2} times as long as ten times 1 MB, {speed:.0} MB/s");
        if growth > GROWTH_MAX {
            failures.push(format!("{name:?}: 10 MB take {growth:.2} times as long as ten times 1 MB"));
        }
    }
    if !failures.is_empty() {
        eprintln!("out of bounds:\n{}", failures.join("\n"));
        std::process::exit(1);
    }
}

/// Texts that people wrote: this project's code, documents and data.
fn written() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut folders, mut texts) = (["crates", "docs", "fixtures"].map(|it| root.join(it)).to_vec(), Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let is_text = [".rs", ".md", ".json", ".jsonl"].iter().any(|end| name.to_string_lossy().ends_with(end));
            match path.is_dir() {
                true => folders.push(path),
                false if is_text => texts.extend(std::fs::read_to_string(path)),
                false => {}
            }
        }
    }
    texts
}

/// All texts are counted, then redacted, in turns; the quickest round counts. A text is met once in a round, as it is when
/// it is appended: the processor would learn a short one that it meets three times in a row by heart.
fn ordinary() -> Vec<(&'static str, f64, f64)> {
    let texts = written();
    let (secrets, all) = (Redactor::secrets(), Redactor::all());
    black_box(Tokenizer::O200k.count("warm"));
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(time(|| {
            texts.iter().for_each(|text| {
                black_box(Tokenizer::O200k.count(text));
            });
        }));
        times[1].push(time(|| texts.iter().for_each(|text| drop(black_box(secrets.redact(text))))));
        times[2].push(time(|| texts.iter().for_each(|text| drop(black_box(all.redact(text))))));
    }
    let [counting, secrets, all] = times.map(least);
    let megabytes = texts.iter().map(String::len).sum::<usize>() as f64 / MEGABYTE as f64;
    let row = |name, taken: f64| (name, taken / counting, megabytes / taken);
    vec![row("secrets", secrets), row("everything", all)]
}

/// Pieces that begin as something to be found does, and go on so.
const PIECES: [&str; 34] = [
    "a",
    " ",
    "-",
    "_",
    ".",
    "=",
    ":",
    "@",
    "+1",
    "(4",
    "1 ",
    "01 ",
    "\\n",
    "\"",
    "sk-",
    "sk-ant-",
    "ghp_",
    "eyJ.",
    "eyJ-",
    "eyJhbGciOiJIUzI1NiJ9.",
    "AKIA",
    "AIza",
    "SG.",
    "token=",
    "token=\"",
    "password: '",
    "--token ",
    "://a:b",
    "a@b.",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n",
    "Bearer ",
    "[secret:jwt#1]",
    "password=hunter2abc ",
];

fn hostile() -> Vec<(&'static str, f64, f64)> {
    let own = Pattern::new("a[a-z]{2,200}0").expect("it is a pattern");
    let redactor = Redactor::all().finding("own", own).expect("it is a name");
    let growth = |piece: &'static str| {
        let [one, ten] = [MEGABYTE, 10 * MEGABYTE].map(|bytes| piece.repeat(bytes / piece.len()));
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            // As long as the other, so that both are broken off as often where the machine is shared.
            times.0.push(time(|| (0..10).for_each(|_| drop(black_box(redactor.redact(&one))))));
            times.1.push(time(|| drop(black_box(redactor.redact(&ten)))));
        }
        let (one, ten) = (least(times.0), least(times.1));
        (piece, ten / one, 10.0 / ten)
    };
    PIECES.into_iter().map(growth).collect()
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// What others do on the machine only ever adds to a time.
fn least(times: Vec<Duration>) -> f64 {
    times.into_iter().min().map_or(0.0, |time| time.as_secs_f64())
}
