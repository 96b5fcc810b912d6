//! Expiry where it meets windows, runs, overrides, and results in the user's place.

use super::{SHORT, Talk, changes_at, expiry, held, text_on};
use recto::edit::{Change, Reason};
use recto::entry::{Call, EntryKind, Lane};
use recto::event::EventKind;
use recto::expiry::{ExpiryAction, ExpiryOverride};
use recto::policy::TraceRule;
use recto::receipt::Fate;
use recto::reduce::{Expire, FitWindow, Marker};
use recto::{Compiled, Entry, Policy, Tokens, compile, plan};

#[test]
fn x05_what_is_shortened_need_not_be_dropped() {
    let talk = |policy: Policy| {
        let mut talk = Talk::new(policy.immediately());
        for at in 0..24 {
            if at == 20 {
                talk.result("search", &"s".repeat(5_000));
            }
            talk.say(Entry::user(format!("question {at} {}", "w".repeat(200))));
            talk.say(Entry::assistant("a".repeat(200)));
        }
        talk.say(Entry::user("And now?"));
        // The calls that make it old have a window without bounds.
        talk.calls(4);
        let cost: Tokens = talk.log.back().map(|entry| entry.cost).sum();
        talk.target = talk.target.clone().with_window(Some(cost - Tokens(2_000)));
        talk
    };
    let fit =
        || FitWindow { minimum: Tokens(0), target_percent: 100, keep_first_request: false, ..FitWindow::default() };
    let expire = || Expire { marker: Marker::Mj, ..Expire::first_chars(9, 500) };
    let eager = || Expire { after: 2, ..expire() };
    let questions = |compiled: &Compiled| {
        let told = compiled
            .page
            .messages
            .iter()
            .filter(|it| text_on(compiled, it.seq.unwrap()).unwrap().starts_with("question"));
        told.count()
    };
    let mut kept = Vec::new();
    for policy in [
        Policy::named("drop").then(fit()),
        Policy::named("not yet").then(expire()).then(fit()),
        Policy::named("both").then(eager()).then(fit()),
    ] {
        let mut talk = talk(policy);
        let (planned, compiled) = talk.call();
        let used: Tokens = compiled.page.messages.iter().map(|it| it.cost).sum();
        assert!(used <= talk.target.window.unwrap(), "{used}");
        assert!(planned.edits.iter().any(|edit| matches!(edit.change, Change::Floor(_))), "{:?}", planned.edits);
        kept.push(questions(&compiled));
    }
    assert_eq!(kept[0], kept[1]);
    assert!(kept[2] > kept[0] + 5, "{kept:?}");
}

#[test]
fn x08_a_trace_of_another_run_is_told_as_such_and_expires_when_its_run_is_back() {
    let mut policy = Policy::named("runs").then(Expire::first_chars(1, 50)).immediately();
    policy.select.trace = TraceRule::CurrentRun;
    let mut talk = Talk::new(policy);
    talk.say(Entry::user("Look it up."));
    let traced = |entry: Entry| Entry { lane: Lane::Trace, run: Some("run-1".into()), ..entry };
    talk.say(traced(Entry::step("", [Call::new("c", "look", "{}")])));
    let seq = talk.say(traced(Entry::result("c", "r".repeat(900))));
    talk.say(Entry::user("And then?"));
    talk.run = Some("run-2".into());
    for _ in 0..6 {
        let (planned, compiled) = talk.call();
        assert_eq!(planned.edits, []);
        let row = compiled.receipt.fates.iter().find(|row| row.span.contains(seq) && row.why == Reason::Trace).unwrap();
        assert_eq!(row.fate, Fate::NotShown);
        assert_eq!(talk.told(seq), []);
    }
    talk.run = Some("run-1".into());
    let (planned, compiled) = talk.call();
    assert_eq!(planned.edits.len(), 1);
    assert!(text_on(&compiled, seq).unwrap().contains("first 50 of 900 characters"));
    assert_eq!(talk.told(seq), SHORT);
}

#[test]
fn x23_disabling_expiry_stops_it_and_leaves_stubs_alone() {
    let mut talk = Talk::expiring(Expire { finished_runs: true, ..Expire::first_chars(2, 100) });
    let early = talk.result("read", &"e".repeat(3_000));
    talk.say(Entry::user("And then?"));
    talk.calls(3);
    let stub = talk.shown(early).unwrap();
    assert!(stub.contains("first 100 of 3000 characters"), "{stub}");
    talk.over = Some(ExpiryOverride::disabled());
    let late = talk.result("read", &"l".repeat(3_000));
    let trace = Entry { lane: Lane::Trace, run: Some("over".into()), ..Entry::assistant("t".repeat(400)) };
    let trace = talk.say(trace);
    let own = talk.say(Entry { expiry: Some(expiry(0, ExpiryAction::Remove)), ..Entry::assistant("o".repeat(3_000)) });
    talk.say(Entry::user("And then?"));
    for _ in 0..60 {
        let (planned, compiled) = talk.call();
        assert_eq!(planned.edits, []);
        assert_eq!(text_on(&compiled, early).unwrap(), stub);
        assert_eq!(text_on(&compiled, late).unwrap().len(), 3_000);
        assert_eq!(text_on(&compiled, own).unwrap().len(), 3_000);
        assert_eq!(text_on(&compiled, trace).unwrap().len(), 400);
    }
    // The stub goes when it is taken back, and only then.
    talk.reader.revert(1).unwrap();
    assert_eq!(talk.shown(early).unwrap().len(), 3_000);
    assert_eq!(talk.told(early), [&SHORT[..], &[EventKind::Reverted]].concat());
    // With expiry allowed again, what has waited goes at once.
    talk.over = None;
    assert_eq!(talk.call().0.edits.len(), 3);
}

#[test]
fn results_in_the_users_place_open_no_exchange_and_are_not_the_last_user_words() {
    let mut talk =
        Talk::new(Policy::named("short").then(Expire::first_chars(0, 20)).then(FitWindow::default()).immediately());
    let asked = talk.say(Entry::user("What is the capital?"));
    for at in 0..8 {
        talk.say(Entry::assistant(format!("I'll look ({at}).")));
        talk.say(held(EntryKind::ActionResult, "r".repeat(800)));
    }
    talk.target = talk.target.clone().with_window(Some(Tokens(500)));
    let planned = plan(&talk.request()).unwrap();
    talk.reader.commit(planned.edits, talk.policy.digest());
    let compiled = compile(&talk.request()).unwrap();
    assert_eq!(text_on(&compiled, asked).unwrap(), "What is the capital?");
    assert!(compiled.page.messages.len() < 12, "{}", compiled.receipt);
}

#[test]
fn a_stub_names_no_tool_whose_name_could_be_taken_for_something_else() {
    for (name, told) in
        [("mcp__fs.read", "mcp__fs.read result"), ("x]\n[system", "xsystem result"), ("[]", "tool result")]
    {
        let mut talk = Talk::expiring(Expire::first_chars(0, 10));
        let seq = talk.result(name, &"n".repeat(900));
        talk.say(Entry::user("And then?"));
        let (_, shown) = changes_at(&mut talk, seq).unwrap();
        assert!(shown.as_ref().unwrap().contains(&format!("of {told}; recto_expand m1]")), "{shown:?}");
    }
}
