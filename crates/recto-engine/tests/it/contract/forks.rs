//! Conversations that go on from others.

use super::make::*;
use recto::Seq;
use recto_engine::store::{
    Back, Commit, ConversationId, DecisionKind, Decisions, FORK_DEPTH_MAX, RecordKind, Store, Turns, Upto,
};

pub(super) async fn a_fork_shares_what_was_said_and_goes_on_alone<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), long('x'), user("three")]).await;
    let made = store.make(fork("b", "a", Some(1))).await;
    assert_eq!(made, store.told("b").await);
    assert_eq!(made.tally, store.all("a").await[1].tally);
    assert_eq!(made.from.as_ref().map(|from| (from.conversation.as_str(), from.upto)), Some(("a", Some(Seq(1)))));
    assert_eq!(store.put("b", expecting(Some(1), vec![user("other")])).await.unwrap(), appended(2, 2));
    store.say("a", vec![user("four")]).await;
    let (ours, theirs) = (store.all("a").await, store.all("b").await);
    assert_eq!((places(&ours), places(&theirs)), (vec![0, 1, 2, 3], vec![0, 1, 2]));
    assert_eq!(theirs[..2], ours[..2]);
    assert_eq!((theirs[2].hash, ours[2].hash), (user("other").hash, user("three").hash));
    let back = Back { rows: 2, below: Some(Seq(2)), ..all_back() };
    assert_eq!(places(&store.back(&tenant(), &name("b"), back).await.unwrap()), [1, 0]);
    assert_eq!(places(&store.back(&tenant(), &name("b"), all_back()).await.unwrap()), [2, 1, 0]);
    assert_eq!(places(&store.forth(&tenant(), &name("b"), Seq(1), 2).await.unwrap()), [1, 2]);
    assert_eq!(store.rows(&tenant(), &name("b"), vec![Seq(3), Seq(1)]).await.unwrap(), ours[1..2]);
    assert_eq!(store.first(&tenant(), &name("b"), 0, Seq(1)).await.unwrap(), Some(Seq(1)));
    let tallies = store.tallies(&tenant(), &name("b"), vec![Seq(0), Seq(9)]).await.unwrap();
    assert_eq!(tallies, [ours[0].tally.clone(), theirs[2].tally.clone()]);
    assert_eq!(store.forks(&tenant(), &name("a")).await.unwrap(), [name("b")]);
    assert_eq!(store.forks(&tenant(), &name("b")).await.unwrap(), [] as [ConversationId; 0]);
}

pub(super) async fn a_fork_may_begin_anywhere_up_to_the_head<S: Store>(store: S) {
    store.make(new("a")).await;
    assert!(store.create(&tenant(), fork("x", "a", Some(0))).await.unwrap_err().is_not_found());
    store.make(fork("empty", "a", None)).await;
    store.say("a", vec![at(2, user("one")), at(5, user("two"))]).await;
    store.make(fork("nothing", "a", None)).await;
    store.make(fork("before", "a", Some(1))).await;
    store.make(fork("between", "a", Some(4))).await;
    store.make(fork("head", "a", Some(5))).await;
    let error = store.create(&tenant(), fork("x", "a", Some(6))).await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("#6"), "{error}");
    assert!(store.conversation(&tenant(), &name("x")).await.unwrap_err().is_not_found());
    for (id, rows, next) in
        [("empty", vec![], 0), ("nothing", vec![], 0), ("between", vec![2], 3), ("head", vec![2, 5], 6)]
    {
        assert_eq!(places(&store.all(id).await), rows, "{id}");
        assert_eq!(store.say(id, vec![user("on")]).await, appended(next, next), "{id}");
        let all: Vec<u64> = rows.into_iter().chain([next]).collect();
        assert_eq!(places(&store.all(id).await), all, "{id}");
    }
    assert!(store.create(&tenant(), fork("x", "unknown", None)).await.unwrap_err().is_not_found());
    assert!(store.create(&tenant(), fork("head", "a", None)).await.unwrap_err().is_exists());
}

pub(super) async fn a_fork_of_a_fork_sees_both<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("a0"), user("a1"), user("a2")]).await;
    store.make(fork("b", "a", Some(1))).await;
    store.say("b", vec![user("b2"), user("b3")]).await;
    store.make(fork("c", "b", Some(2))).await;
    store.say("c", vec![user("c3")]).await;
    // Below where its parent begins: nothing of the parent's own.
    store.make(fork("d", "c", Some(0))).await;
    store.say("d", vec![user("d1")]).await;
    let hashes = async |id: &str| store.all(id).await.iter().map(|row| row.hash).collect::<Vec<_>>();
    let said = |texts: &[&str]| texts.iter().map(|text| user(text).hash).collect::<Vec<_>>();
    assert_eq!(hashes("c").await, said(&["a0", "a1", "b2", "c3"]));
    assert_eq!(hashes("d").await, said(&["a0", "d1"]));
    let back = store.back(&tenant(), &name("c"), Back { rows: 3, ..all_back() }).await.unwrap();
    assert_eq!(places(&back), [3, 2, 1]);
}

pub(super) async fn strands_of_a_fork_are_numbered_as_they_begin_in_it<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), trace("work"), summary("so")]).await;
    store.make(fork("b", "a", Some(0))).await;
    store.say("b", vec![summary("other"), trace("later"), user("two")]).await;
    let rows = store.all("b").await;
    assert_eq!(rows.iter().map(|row| row.strand).collect::<Vec<_>>(), [0, 1, 2, 0]);
    assert_eq!(rows[1].tally.strands()[1].section.as_str(), "summary");
    assert_eq!(store.first(&tenant(), &name("b"), 1, Seq(0)).await.unwrap(), Some(Seq(1)));
    let back = Back { strands: vec![0], ..all_back() };
    assert_eq!(places(&store.back(&tenant(), &name("b"), back).await.unwrap()), [3, 0]);
}

/// Makes a conversation of three entries, with two acknowledged calls and a decision before and after each.
async fn lived<S: Store>(store: &S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), user("two"), user("three")]).await;
    let decisions = vec![
        decision(1, 0, DecisionKind::Entry, 0),
        decision(2, 1, DecisionKind::Floor, 1),
        decision(3, 2, DecisionKind::Pin, 2),
    ];
    let turns = vec![turn(0, Some(0)), turn(1, Some(1))];
    store.decide("a", Commit { turns, ..commit(row_of(0, 0), decisions) }).await.unwrap();
}

async fn ordinals<S: Store>(store: &S, id: &str) -> Vec<u64> {
    let all = Decisions::After { ordinal: 0, rows: 99 };
    let decisions = store.decisions(&tenant(), &name(id), &reader(), Upto::NOW, all).await.unwrap();
    decisions.iter().map(|it| it.ordinal).collect()
}

async fn turns<S: Store>(store: &S, id: &str) -> Vec<u64> {
    let all = Turns::Since { turn: 0, rows: 99 };
    let turns = store.turns(&tenant(), &name(id), &reader(), Upto::NOW, all).await.unwrap();
    turns.iter().map(|it| it.turn).collect()
}

pub(super) async fn a_fork_at_the_head_inherits_all_of_a_reader<S: Store>(store: S) {
    lived(&store).await;
    store.make(fork("b", "a", Some(2))).await;
    assert_eq!(store.who("b").await, row_of(2, 3));
    assert_eq!(store.readers(&tenant(), &name("b")).await.unwrap(), [(reader(), row_of(2, 3))]);
    assert_eq!((ordinals(&store, "b").await, turns(&store, "b").await), (vec![1, 2, 3], vec![0, 1]));
}

pub(super) async fn a_fork_before_the_head_inherits_the_calls_up_to_there<S: Store>(store: S) {
    lived(&store).await;
    // At #1 both calls have happened, and what was decided before the next one has not.
    store.make(fork("b", "a", Some(1))).await;
    assert_eq!(store.who("b").await, row_of(2, 2));
    assert_eq!((ordinals(&store, "b").await, turns(&store, "b").await), (vec![1, 2], vec![0, 1]));
    store.make(fork("c", "a", Some(0))).await;
    assert_eq!(store.who("c").await, row_of(1, 1));
    assert_eq!((ordinals(&store, "c").await, turns(&store, "c").await), (vec![1], vec![0]));
    store.make(fork("d", "a", None)).await;
    assert_eq!(store.readers(&tenant(), &name("d")).await.unwrap(), [(reader(), row_of(0, 0))]);
    assert!(ordinals(&store, "d").await.is_empty() && turns(&store, "d").await.is_empty());
}

pub(super) async fn a_reader_goes_on_alone_in_a_fork<S: Store>(store: S) {
    lived(&store).await;
    store.make(fork("b", "a", Some(2))).await;
    let (revert, pin) = (decision(4, 2, DecisionKind::Revert, 2), decision(5, 2, DecisionKind::Pin, 0));
    let written = Commit { turns: vec![turn(2, Some(2))], ..commit(row_of(2, 3), vec![revert, pin.clone()]) };
    store.decide("b", written).await.unwrap();
    store.decide("a", commit(row_of(2, 3), vec![decision(4, 2, DecisionKind::Cut, 1)])).await.unwrap();
    assert_eq!((store.who("a").await, store.who("b").await), (row_of(2, 4), row_of(3, 5)));
    let floors = store.decisions(&tenant(), &name("b"), &reader(), Upto::NOW, Decisions::Floors(1)).await.unwrap();
    assert_eq!(floors.iter().map(|it| it.ordinal).collect::<Vec<_>>(), [2, 4], "the revert of an inherited floor");
    let about = Decisions::About(vec![Seq(0)]);
    let about = store.decisions(&tenant(), &name("b"), &reader(), Upto::NOW, about).await.unwrap();
    assert_eq!(about.iter().map(|it| it.ordinal).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(about[1], pin);
    assert_eq!(turns(&store, "b").await, [0, 1, 2]);
    store.make(fork("c", "b", Some(2))).await;
    assert_eq!(ordinals(&store, "c").await, [1, 2, 3, 4, 5]);
    let first = Turns::FirstWith(vec![Seq(1), Seq(2)]);
    let first = store.turns(&tenant(), &name("c"), &reader(), Upto::NOW, first).await.unwrap();
    assert_eq!(first, [turn(1, Some(1)), turn(2, Some(2))]);
}

pub(super) async fn records_keys_and_open_calls_are_not_inherited_and_contents_are<S: Store>(store: S) {
    store.make(new("a")).await;
    store.put("a", keyed("k", vec![long('x')])).await.unwrap();
    let said = (ticket("fragment"), "a fragment".into());
    store.decide("a", Commit { contents: vec![said.clone()], ..opening(row_of(0, 0), "call") }).await.unwrap();
    store.keep(&tenant(), &name("a"), record(RecordKind::Note, "n", 1)).await.unwrap();
    store.make(fork("b", "a", Some(0))).await;
    assert!(store.kept(&tenant(), &name("b"), RecordKind::Note).await.unwrap().is_empty());
    assert_eq!(store.open(&tenant(), &name("b"), &reader(), ticket("call")).await.unwrap(), None);
    assert_eq!(store.put("b", keyed("k", vec![long('x')])).await.unwrap(), appended(1, 1));
    let mut found = store.contents(&tenant(), &name("b"), vec![said.0, long('x').hash]).await.unwrap();
    found.sort_by_key(|(_, text)| text.len());
    assert_eq!(found, [said, long('x').large[0].clone()]);
}

pub(super) async fn a_chain_of_forks_deeper_than_the_bound_reads_the_same<S: Store>(store: S) {
    let depth = FORK_DEPTH_MAX as u64 + 4;
    store.make(new("f0")).await;
    store.say("f0", vec![long('x')]).await;
    for number in 1..=depth {
        let (parent, id) = (format!("f{}", number - 1), format!("f{number}"));
        let seen = Commit {
            turns: vec![turn(number - 1, Some(number - 1))],
            ..commit(row_of(number - 1, number - 1), vec![decision(number, number - 1, DecisionKind::Pin, number - 1)])
        };
        store.decide(&parent, seen).await.unwrap();
        store.make(fork(&id, &parent, Some(number - 1))).await;
        assert_eq!(store.say(&id, vec![user(&id)]).await, appended(number, number));
    }
    let last = format!("f{depth}");
    let rows = store.all(&last).await;
    assert_eq!(places(&rows), (0..=depth).collect::<Vec<_>>());
    assert_eq!(rows[0].large, long('x').large);
    for row in &rows[1..] {
        assert_eq!(row.hash, user(&format!("f{}", row.seq.0)).hash);
        assert_eq!(row.tally.sums().entries, row.seq.0 + 1);
    }
    assert_eq!(ordinals(&store, &last).await, (1..=depth).collect::<Vec<_>>());
    assert_eq!(turns(&store, &last).await, (0..depth).collect::<Vec<_>>());
}
