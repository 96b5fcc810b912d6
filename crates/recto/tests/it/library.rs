//! What hosts rely on when they hold these types across threads, and build policies in code.

use recto::entry::Call;
use recto::fragment::Fragments;
use recto::policy::{Decorate, Step};
use recto::receipt::{Fate, Warning};
use recto::reduce::{CapOutput, DropReasoning, FitWindow};
use recto::target::Memory;
use recto::{
    Compiled, Context, Entry, Error, Log, Plan, Policy, Reader, Replay, Request, Seq, Session, Target, Tokenizer,
    Tokens, compile, plan,
};
use recto_testkit::check;

#[test]
fn everything_a_host_holds_can_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Log>();
    crosses::<Context>();
    crosses::<Reader>();
    crosses::<Session>();
    crosses::<Policy>();
    crosses::<Target>();
    crosses::<Fragments>();
    crosses::<Request<'_>>();
    crosses::<Replay<'_>>();
    crosses::<Plan>();
    crosses::<Compiled>();
    crosses::<Error>();
}

#[test]
fn a_function_can_rework_whatever_passes_are_configured() {
    let capped =
        |passes: Vec<Step>| -> Vec<Step> { std::iter::once(CapOutput::to(2_000).keep_last(1)).chain(passes).collect() };
    let thoughtless = |mut passes: Vec<Step>| -> Vec<Step> {
        passes.insert(0, DropReasoning {}.into());
        passes
    };
    // Each decorator receives what the one before it made.
    let policy = Policy::named("decorated").then(FitWindow::default()).decorated(capped).decorated(thoughtless);
    let expected = Policy::named("decorated")
        .then(DropReasoning {})
        .then(CapOutput::to(2_000).keep_last(1))
        .then(FitWindow::default());
    assert_eq!(policy, expected);
    assert_eq!(Policy::from_toml(&policy.to_toml()).unwrap(), policy);
    assert_ne!(policy.digest(), Policy::named("decorated").then(FitWindow::default()).digest());
}

#[test]
fn more_instructions_than_are_read_are_told_of() {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for number in 0..1_200 {
        log.append(Entry::system(format!("rule {number}"))).unwrap();
    }
    log.append(Entry { edge: true, ..Entry::user("Go on.") }).unwrap();
    let (reader, policy, target) = (Reader::new("main"), Policy::none(), Target::eval());
    let compiled = compile(&Request::new(&log, &reader, &policy, &target)).unwrap();
    let told =
        compiled.receipt.warnings.iter().any(|it| matches!(it, Warning::TooMany { what } if &**what == "instructions"));
    assert!(told, "{}", compiled.receipt);
    assert_eq!(compiled.page.messages.len(), 1_001);
    check::fates(&compiled.receipt.fates, &log).unwrap();
}

#[test]
fn edits_of_other_sections_are_kept_whatever_the_floor() {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    let aside = |entry: Entry| Entry { section: "buffer".into(), ..entry };
    log.append(aside(Entry::step("", [Call::new("a", "look", "{}")]))).unwrap();
    log.append(aside(Entry::result("a", "x".repeat(400)))).unwrap();
    for number in 0..40 {
        log.append(Entry::user(format!("question {number} {}", "y".repeat(40)))).unwrap();
    }
    let policy = Policy::named("both").then(CapOutput::to(40)).then(FitWindow::default());
    let target = Target { tokenizer: Tokenizer::Chars4, ..Target::eval().with_window(Some(Tokens(400))) };
    let mut reader = Reader::new("main");
    let planned = plan(&Request::new(&log, &reader, &policy, &target)).unwrap();
    assert_eq!(planned.edits.len(), 2, "{:?}", planned.edits);
    reader.commit(planned.edits, policy.digest());
    let request = Request::new(&log, &reader, &policy, &target);
    assert_eq!(plan(&request).unwrap().edits, []);
    let capped = compile(&request).unwrap().receipt.fate(Seq(1)).cloned().unwrap();
    assert_eq!((capped.fate, capped.by.as_ref()), (Fate::Changed, "cap-output"), "{capped}");
}

#[test]
fn a_result_is_sent_to_a_provider_that_made_the_call_while_the_user_spoke() {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    let (policy, target) = (Policy::none(), Target { memory: Memory::Session, ..Target::eval() });
    let (reader, mut session) = (Reader::new("main"), Session::default());
    log.append(Entry::user("look")).unwrap();
    log.append(Entry::user("and hurry")).unwrap();
    let made = log.append(Entry::step("", [Call::new("a", "look", "{}")])).unwrap();
    session.acknowledge(Some(Seq(0)), [made]);
    let result = log.append(Entry::result("a", "found")).unwrap();
    let request = Request { session: Some(&session), ..Request::new(&log, &reader, &policy, &target) };
    let sent: Vec<_> = compile(&request).unwrap().page.messages.iter().map(|message| message.seq).collect();
    assert_eq!(sent, [Some(Seq(1)), Some(result)]);
}
