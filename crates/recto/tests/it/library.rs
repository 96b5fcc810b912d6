//! What hosts rely on when they hold these types across threads, and build policies in code.

use recto::fragment::Fragments;
use recto::policy::{Decorate, Step};
use recto::reduce::{CapOutput, DropReasoning, FitWindow};
use recto::{Compiled, Context, Error, Log, Plan, Policy, Reader, Replay, Request, Session, Target};

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
