//! Counting for a vocabulary that nobody publishes: against a provider whose count differs by kind of text.

use recto::calibration::Calibration;
use recto::page::Page;
use recto::receipt::{Ledger, Receipt};
use recto::transcript::{self, Conversation};
use recto::{Log, Policy, Reader, Request, Role, Seq, Target, Tokens, compile, plan};
use recto_testkit::mixed::Dice;
use recto_testkit::shared;

const SEEDS: u64 = 24;
/// Calls from which nothing is asked but that they are learned from.
const LEARNING: usize = 5;
const WINDOW: u64 = 48_000;
const CONVERSATIONS: usize = 6;

/// A provider that counts every kind of text by a factor of its own, which drifts.
struct Provider {
    factors: [f64; 7],
    drift: f64,
    dice: Dice,
}

impl Provider {
    fn new(seed: u64) -> Provider {
        let mut dice = Dice::new(seed);
        let factors = std::array::from_fn(|_| 0.8 + 0.8 * dice.below(10_001) as f64 / 10_000.0);
        Provider { factors, drift: 1.0, dice }
    }

    /// What it counts for a page, by what we count of each kind.
    fn count(&mut self, ledger: &Ledger) -> Tokens {
        self.drift *= 1.0 + (self.dice.below(2_001) as f64 / 1_000.0 - 1.0) / 100.0;
        // A vocabulary changes by that much over a version, not without end.
        self.drift = self.drift.clamp(0.9, 1.1);
        let kinds = [
            ledger.tools + ledger.framing,
            ledger.system + ledger.fixed + ledger.dynamic,
            ledger.user + ledger.input,
            ledger.assistant,
            ledger.reasoning,
            ledger.calls,
            ledger.results,
        ];
        let sum: f64 = kinds.iter().zip(self.factors).map(|(kind, factor)| kind.0 as f64 * factor).sum();
        Tokens((sum * self.drift).round() as u64)
    }
}

/// What came of all calls of a tenant.
#[derive(Default)]
struct Seen {
    errors: Vec<f64>,
    under: usize,
    refused: Vec<String>,
    calls: usize,
    tight: usize,
}

/// Goes through a conversation call by call, as a host with one calibration for its tenant and model does.
fn live(log: &Log, calibration: &mut Calibration, provider: &mut Provider, policy: &Policy, seen: &mut Seen) {
    let mut target = Target::named("claude-opus-5-5").unwrap().with_window(Some(Tokens(WINDOW)));
    let mut reader = Reader::new("main");
    let mut before: Option<(Page, Tokens)> = None;
    let replies: Vec<Seq> = log.back_by(Role::Assistant).map(|entry| entry.seq).collect();
    for reply in replies.into_iter().rev().filter(|reply| reply.0 > 0) {
        let log = log.until(Some(Seq(reply.0 - 1)));
        target.calibration = *calibration;
        let (reserve, previous) = (Some(Tokens(4_000)), before.as_ref().map(|(page, _)| page));
        let reported = before.as_ref().map(|(_, reported)| *reported);
        let settings = Request { reserve, previous, reported, ..Request::new(&log, &reader, policy, &target) };
        let edits = plan(&settings).unwrap().edits;
        let mut decided = reader.clone();
        decided.commit(edits, policy.digest());
        let compiled = compile(&Request { reader: &decided, ..settings });
        reader = decided;
        let Ok(compiled) = compiled else { continue };
        let counted = compiled.receipt.ledger.used();
        let reported = provider.count(&compiled.receipt.ledger);
        observe(&compiled.receipt, reported, seen);
        calibration.observe(counted, reported);
        reader.acknowledge(&compiled.receipt.ticket).unwrap();
        before = Some((compiled.page, reported));
    }
}

fn observe(receipt: &Receipt, reported: Tokens, seen: &mut Seen) {
    let expected = receipt.calibration.expect("its vocabulary is not published").expected;
    seen.calls += 1;
    if seen.calls > LEARNING {
        seen.errors.push((expected.0 as f64 / reported.0 as f64 - 1.0).abs());
        seen.under += usize::from((expected.0 as f64) < 0.9 * reported.0 as f64);
    }
    let limit = WINDOW - receipt.ledger.reserve_out.0;
    seen.tight += usize::from(reported.0 * 10 > limit * 6);
    if reported.0 > limit {
        seen.refused.push(format!("{reported} tokens, {limit} fit, {} counted", receipt.ledger.used()));
    }
}

fn conversations(test: &str) -> Option<Vec<Conversation>> {
    let folder = shared::folder("data/conversations", test)?;
    let read = |file: std::path::PathBuf| transcript::read(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut all: Vec<Conversation> = shared::jsonl(&folder).into_iter().flat_map(read).collect();
    all.retain(|it| it.entries.iter().filter(|entry| entry.role == Role::Assistant).count() >= 20);
    Some(all)
}

#[test]
fn a_factor_that_is_learned_predicts_and_never_promises_too_much() {
    let Some(all) = conversations("calibration against a simulated provider") else { return };
    let logs: Vec<Log> =
        all.iter().map(|it| it.clone().into_log(recto::Tokenizer::O200k).expect("real ones are good")).collect();
    let mut total = Seen::default();
    for seed in 0..SEEDS {
        let (mut provider, mut dice) = (Provider::new(seed), Dice::new(seed + 1_000));
        let mut calibration = Target::named("claude-opus-5-5").unwrap().calibration;
        let mut seen = Seen::default();
        for _ in 0..CONVERSATIONS {
            let policy = if dice.chance(50) { Policy::safe() } else { Policy::first_chars() };
            live(dice.pick(&logs), &mut calibration, &mut provider, &policy, &mut seen);
        }
        total.errors.extend(seen.errors);
        (total.under, total.calls, total.tight) =
            (total.under + seen.under, total.calls + seen.calls, total.tight + seen.tight);
        total.refused.extend(seen.refused);
    }
    total.errors.sort_by(f64::total_cmp);
    let (median, calls) = (total.errors[total.errors.len() / 2], total.errors.len());
    let high = total.errors[total.errors.len() * 99 / 100];
    println!(
        "{} calls: median error {:.2} %, 99 % within {:.1} %, {} under by more than 10 % ({:.2} %), {} near the limit",
        total.calls,
        median * 100.0,
        high * 100.0,
        total.under,
        total.under as f64 / calls as f64 * 100.0,
        total.tight,
    );
    assert!(median <= 0.03, "median error {median}");
    assert!(total.under * 100 < calls, "{} of {calls} predictions were under by more than 10 %", total.under);
    assert_eq!(total.refused, Vec::<String>::new());
    assert!(total.tight > total.calls / 20, "only {} pages came near the limit: nothing was shown", total.tight);
}

#[test]
fn what_can_not_be_true_is_not_learned() {
    let mut calibration = Calibration::starting_at(1.5, 2.0);
    let start = calibration;
    for (counted, reported) in [(0, 100), (100, 0), (100, 10_000), (1_000, 1)] {
        calibration.observe(Tokens(counted), Tokens(reported));
    }
    assert_eq!(calibration, start);
    calibration.observe(Tokens(1_000), Tokens(1_200));
    assert_eq!((calibration.factor, calibration.calls), (1.2, 1));
    let mut exact = Calibration::exact();
    exact.observe(Tokens(1_000), Tokens(1_500));
    assert_eq!(exact, Calibration::exact());
}

#[test]
fn the_receipt_says_by_which_factor_it_was_counted() {
    let mut log = Log::counted_by(recto::Tokenizer::O200k);
    log.append(recto::Entry::user("Where were we? ".repeat(50))).unwrap();
    let (reader, policy, mut target) = (Reader::new("main"), Policy::safe(), Target::named("claude-opus-5-5").unwrap());
    target.calibration.observe(Tokens(1_000), Tokens(1_250));
    let receipt = compile(&Request::new(&log, &reader, &policy, &target)).unwrap().receipt;
    let text = receipt.to_string();
    assert!(text.contains("counted  × 1.250 (learned from 1 calls): the provider will count about"), "{text}");
    let ledger = &receipt.ledger;
    assert!(ledger.allowance > Tokens(0));
    assert!(ledger.used() + ledger.allowance + ledger.reserve_out <= ledger.window.unwrap());
}
