//! The frontier: what the policies of our own cost and forget on real conversations must not get worse unnoticed.

use recto::replay::recall::{Measure, Score};
use recto::{Log, Policy, Replay, Target, Tokens, transcript};
use recto_testkit::shared;

/// Shorter conversations are over before anything pays.
const LONG: Tokens = Tokens(30_000);
/// How far the worst kind of reference may lie below the mean.
const KIND_BELOW_MEAN: f64 = 0.02;
/// What no conversation may cost, of its full history.
const DEAREST: f64 = 1.05;

fn logs(test: &str) -> Option<Vec<Log>> {
    let folder = shared::folder("data/conversations", test)?;
    let read = |file: std::path::PathBuf| {
        let text = std::fs::read_to_string(&file).expect("shared data can be read");
        transcript::read(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    let found = shared::jsonl(&folder).into_iter().flat_map(read);
    Some(found.map(|it| it.into_log(Target::eval().tokenizer).expect("real conversations can be appended")).collect())
}

/// The scores of one conversation, and of its full history.
fn scored(log: &Log, policy: &Policy) -> (Score, Score) {
    let target = Target::eval();
    let mut measure = Measure::new(log);
    let full = measure.full();
    for call in Replay::new(log, policy, &target) {
        measure.page(call.turn, &call.compiled.expect("a million tokens are enough").page);
    }
    (measure.finish(), full)
}

/// Checks what a policy costs at most and recalls at least over the long conversations, and that none is dear.
fn holds(test: &str, policy: Policy, most: f64, least: f64) {
    let Some(logs) = logs(test) else { return };
    let (mut all, mut full_all) = (Score::default(), Score::default());
    for log in &logs {
        let (score, full) = scored(log, &policy);
        if score.calls > 0 {
            let share = score.cost_against(&full);
            assert!(share <= DEAREST, "{}: a conversation costs {share:.3} of its full history", policy.name);
        }
        if Measure::new(log).tokens() >= LONG {
            all.add(&score);
            full_all.add(&full);
        }
    }
    let (cost, recall) = (all.cost_against(&full_all), all.recall());
    assert!(cost <= most && recall >= least, "{}: {cost:.3} / {recall:.4}", policy.name);
    for kept in all.references {
        assert!(kept.share() >= recall - KIND_BELOW_MEAN, "{}: {:?} of {recall:.4}", policy.name, kept);
    }
}

#[test]
fn the_usual_policy_costs_little_and_forgets_little() {
    holds("the_usual_policy_costs_little_and_forgets_little", Policy::usual(), 0.65, 0.985);
}

#[test]
fn the_careful_policy_forgets_less() {
    holds("the_careful_policy_forgets_less", Policy::careful(), 0.74, 0.993);
}

#[test]
fn the_frugal_policy_costs_less() {
    holds("the_frugal_policy_costs_less", Policy::frugal(), 0.53, 0.970);
}
