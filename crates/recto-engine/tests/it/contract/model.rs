//! Random lives of a few conversations, on a store and on the one in memory: every answer, and all that can be read,
//! must be the same.

mod op;
mod seen;

use op::{Op, beginning, op};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};
use recto_engine::store::memory::Memory;
use recto_engine::store::{ConversationId, Store, Tenant};
use seen::{Seen, seen};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use tokio::runtime::Runtime;

const CASES: u32 = 80;
const CASES_FEW: u32 = 6;
const CASES_LONG: u32 = 10_000;
const STEPS_MAX: usize = 60;
const READ_STEPS: usize = 4;
const SHRINKS_MAX: u32 = 2_000;
/// So often at least every verb must do something, and so often be refused; else the lives show too little.
const DONE_MIN: usize = 20;
const REFUSED_MIN: usize = 5;

/// How often each verb was asked, and whether it was refused.
type Asked = RefCell<BTreeMap<(&'static str, bool), usize>>;

/// How many lives are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lives {
    /// As many as it takes for every verb to be done and refused.
    Many,
    /// A few, where each question goes over a network.
    Few,
}

/// Checks that a store does what the one in memory does.
pub(super) fn compare<S: Store>(store: &S, lives: Lives) {
    compare_in_turns(std::slice::from_ref(store), lives);
}

/// Checks that stores of the same file, each asked twice in a row, do together what the one in memory does.
pub(super) fn compare_in_turns<S: Store>(stores: &[S], lives: Lives) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let few = if lives == Lives::Many { CASES } else { CASES_FEW };
    let cases = if std::env::var_os("RECTO_LONG").is_some() { CASES_LONG.min(few * 125) } else { few };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: SHRINKS_MAX, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(Default::default()));
    let (lived, asked) = (Cell::new(0), Asked::default());
    let verdict = runner.run(&proptest::collection::vec(op(), 1..STEPS_MAX), |ops| {
        // A tenant of its own for each life, so that one file holds them all.
        lived.set(lived.get() + 1);
        live(&runtime, stores, &Tenant::from(format!("tenant {}", lived.get())), &ops, &asked)
    });
    verdict.unwrap_or_else(|failure| panic!("{failure}"));
    let asked = asked.into_inner();
    let times = |verb, is_refused| asked.get(&(verb, is_refused)).copied().unwrap_or_default();
    for verb in op::VERBS.into_iter().filter(|_| lives == Lives::Many) {
        assert!(times(verb, false) >= DONE_MIN && times(verb, true) >= REFUSED_MIN, "{verb}: {asked:?}");
    }
}

fn live<S: Store>(
    runtime: &Runtime,
    stores: &[S],
    tenant: &Tenant,
    ops: &[Op],
    asked: &Asked,
) -> Result<(), TestCaseError> {
    let model = Memory::default();
    let mut versions = (Vec::new(), Vec::new());
    for (step, op) in beginning().iter().chain(ops).enumerate() {
        let store = &stores[step / 2 % stores.len()];
        let done = runtime.block_on(async {
            let verb = op.verb(&model, tenant, step).await;
            (verb.on(&model, tenant).await, verb.on(store, tenant).await, verb)
        });
        let (expected, answer, verb) = done;
        prop_assert_eq!(&answer, &expected, "step {}: {:?}", step, verb);
        *asked.borrow_mut().entry((verb.name(), op::is_refused(&answer))).or_default() += 1;
        // To read everything costs more than to write; what goes wrong shows a little later as well.
        if step % READ_STEPS == 0 {
            let id = verb.conversation();
            let (theirs, ours) = runtime
                .block_on(async { (Seen::of(&model, tenant, id.clone()).await, Seen::of(store, tenant, id).await) });
            prop_assert_eq!(&ours, &theirs, "after step {}: {:?}", step, verb);
        }
        let now = runtime.block_on(async { (told(&model, tenant).await, told(store, tenant).await) });
        if verb.must_write() {
            prop_assert_eq!(changed(&versions.1, &now.1), changed(&versions.0, &now.0), "step {}: {:?}", step, verb);
        }
        versions = now;
    }
    let (theirs, ours) = runtime.block_on(async { (seen(&model, tenant).await, seen(&stores[0], tenant).await) });
    prop_assert_eq!(ours, theirs, "in the end");
    Ok(())
}

async fn told<S: Store>(store: &S, tenant: &Tenant) -> Vec<(ConversationId, u64)> {
    let list = store.list(tenant, None, op::CONVERSATIONS).await.expect("they can be listed");
    list.into_iter().map(|it| (it.id, it.version)).collect()
}

/// Returns the conversations whose version has changed; it must have risen.
fn changed(before: &[(ConversationId, u64)], now: &[(ConversationId, u64)]) -> Vec<(ConversationId, bool)> {
    let new = now.iter().filter(|it| !before.contains(it));
    let was = |id: &ConversationId| before.iter().find(|it| it.0 == *id).map(|it| it.1);
    new.map(|(id, version)| (id.clone(), Some(*version) > was(id))).collect()
}
