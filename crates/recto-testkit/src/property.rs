//! Property tests with a fresh seed in each run. A failure prints its seed, the shortest failing value, and the command
//! that repeats it.
//!
//! | variable | effect |
//! |---|---|
//! | none | half of the cases with the fixed seed, half with a fresh one |
//! | `RECTO_SEED=17` | all cases with this seed |
//! | `RECTO_SEEDS=100` | all cases with each of a hundred fresh seeds |
//! | `RECTO_CASES=10` | ten times as many cases |
//! | `RECTO_LONG=1` | the same as `RECTO_SEEDS=100` |

#![expect(clippy::panic, reason = "a failed property fails its test")]

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::fmt::{Debug, Display};
use std::hash::{BuildHasher, RandomState};

/// The seed that every run uses besides the fresh one, so that each failure it finds is found again.
const FIXED_SEED: u64 = 0;
const LONG_SEEDS: u64 = 100;
const SHRINKS_MAX: u32 = 20_000;

/// A seed and the number of cases to draw from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedRun {
    /// The seed.
    pub seed: u64,
    /// The number of cases.
    pub cases: u32,
}

/// Returns the seeds of this test run for a property that is normally checked with `cases` cases.
pub fn seed_runs(cases: u32) -> Vec<SeedRun> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is not a whole number: {text}")))
    };
    let cases = cases.saturating_mul(number("RECTO_CASES").unwrap_or(1) as u32).max(1);
    if let Some(seed) = number("RECTO_SEED") {
        return vec![SeedRun { seed, cases }];
    }
    let is_long = std::env::var_os("RECTO_LONG").is_some();
    // Short enough to be typed.
    let fresh = RandomState::new().hash_one(0) % 1_000_000_000;
    match number("RECTO_SEEDS").or(is_long.then_some(LONG_SEEDS)) {
        Some(count) => (0..count).map(|nth| SeedRun { seed: fresh + nth, cases }).collect(),
        None => [FIXED_SEED, fresh].map(|seed| SeedRun { seed, cases: cases.div_ceil(2) }).into(),
    }
}

/// Returns a runner that draws the same values for the same seed.
pub fn runner(run: SeedRun) -> TestRunner {
    let config =
        Config { cases: run.cases, failure_persistence: None, max_shrink_iters: SHRINKS_MAX, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&run.seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Checks a property of generated values with the seeds of this test run.
///
/// # Panics
/// If the property fails for a value: with the shortest such value, the seed and the command that repeats the test.
pub fn for_all<T: Debug + Display>(
    strategy: impl Strategy<Value = T>,
    cases: u32,
    property: impl Fn(&T) -> Result<(), String>,
) {
    for run in seed_runs(cases) {
        let verdict = runner(run).run(&strategy, |value| property(&value).map_err(TestCaseError::fail));
        match verdict {
            Ok(()) => {}
            Err(TestError::Fail(reason, value)) => panic!("{reason}\n{value}\n{}", repeat_command(run.seed)),
            Err(error) => panic!("{error}\n{}", repeat_command(run.seed)),
        }
    }
}

/// Returns `count` values drawn with the seeds of this test run, for a test that counts over many of them.
pub fn samples<T: Debug>(strategy: impl Strategy<Value = T>, count: u32) -> impl Iterator<Item = T> {
    seed_runs(count).into_iter().flat_map(move |run| {
        let mut runner = runner(run);
        let mut draw = || strategy.new_tree(&mut runner).expect("the strategy rejects no value").current();
        (0..run.cases).map(|_| draw()).collect::<Vec<T>>()
    })
}

/// Returns the line that says which seed failed and how to run the current test with it again.
pub fn repeat_command(seed: u64) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "PACKAGE".to_string());
    format!("seed {seed}; to repeat: RECTO_SEED={seed} cargo test -p {package} --test it -- --exact {}", test_name())
}

/// The test harness names a test's thread after the test, or runs a single test on the main thread.
fn test_name() -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) if name != "main" => name.to_string(),
        _ => std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_else(|| "TEST".to_string()),
    }
}
