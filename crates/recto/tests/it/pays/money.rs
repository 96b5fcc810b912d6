//! What was saved, worked out again from pages and the log.

use super::{BARE, Host, expiring, long};
use recto::edit::Change;
use recto::fragment::{Fragment, Fragments};
use recto::pays::Patience;
use recto::{Entry, Policy, Seq, Span, Tokenizer};

/// Sixty calls of an agent that reads a lot.
fn live(policy: Policy) -> Host {
    let mut host = Host::new(policy);
    for nth in 0..60 {
        host.uses("look", "{}", &long(100 + nth * 37 % 400));
        host.say(Entry::assistant("Well."));
        host.turn(10 + nth % 30);
    }
    host
}

#[test]
fn what_was_saved_is_what_the_pages_and_the_cuts_say() {
    for patience in [BARE, Patience { percent: 40, ..BARE }, Patience { percent: 118, ..BARE }] {
        let host = live(expiring(patience));
        assert!(host.cuts().len() > 2, "{:?}", host.cuts());
        let (mut less, mut written) = (0, 0);
        for (turn, (planned, compiled)) in host.past.iter().enumerate() {
            let cut = planned.edits.iter().find(|edit| matches!(edit.change, Change::Cut { .. }));
            if let Some(cut) = cut {
                // What the provider held, and reads again because something before it has changed.
                let held = host.past[turn - 1].1.page.messages.iter().map(|it| it.seq).max().unwrap();
                let again = |seq: Option<Seq>| seq >= Some(cut.change.seq()) && seq <= held;
                let messages = compiled.page.messages.iter().filter(|message| again(message.seq));
                written += messages.map(|message| message.cost.0).sum::<u64>();
            }
            let expected = (less as f64 * 0.1 - written as f64 * (1.25 - 0.1)) / 1e6;
            let said = compiled.receipt.savings;
            assert!((said.usd_so_far - expected).abs() < 1e-12, "turn {turn}: {said:?}, not {expected}");
            let all = host.log.total(Span { first: Seq(0), last: compiled.receipt.ticket.head.unwrap() }).tokens;
            assert_eq!(said.less, all - compiled.receipt.ledger.used(), "turn {turn}");
            less += said.less.0;
        }
        assert!(host.last().receipt.savings.usd_so_far > 0.0, "it has not paid");
        host.remembers();
    }
}

/// Every call without a decision costs what it would have cost.
#[track_caller]
fn costs_the_same(host: &Host) {
    assert!(host.reader.decisions().is_empty());
    for (turn, (_, compiled)) in host.past.iter().enumerate() {
        let (money, savings) = (compiled.receipt.money, compiled.receipt.savings);
        assert!((savings.usd_without - money.usd).abs() < 1e-12, "turn {turn}: {money:?} {savings:?}");
        assert_eq!((savings.less.0, savings.usd_so_far), (0, 0.0));
    }
}

#[test]
fn a_call_without_decisions_costs_what_it_would_have_cost() {
    costs_the_same(&live(Policy::none()));
}

#[test]
fn the_same_with_fragments_before_and_behind() {
    let mut host = Host::new(Policy::none());
    host.target.message_overhead = recto::Tokens(4);
    for nth in 0..20 {
        let list = [Fragment::fixed("head", long(500)), Fragment::dynamic("todos", format!("- {nth}"))];
        host.fragments = Some(Fragments::counted(list, &Tokenizer::Chars4).unwrap());
        host.uses("look", "{}", &long(100));
        host.turn(10);
    }
    costs_the_same(&host);
}

#[test]
fn what_a_call_would_have_cost_is_what_it_costs_without_the_policy() {
    let (with, without) = (live(expiring(BARE)), live(Policy::none()));
    for (turn, (one, other)) in with.past.iter().zip(&without.past).enumerate() {
        let (said, cost) = (one.1.receipt.savings.usd_without, other.1.receipt.money.usd);
        assert!((said - cost).abs() < 1e-12, "turn {turn}: {said} {cost}");
    }
}
