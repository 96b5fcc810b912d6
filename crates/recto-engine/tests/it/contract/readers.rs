//! Decisions, calls, and how of many writers one wins.

use super::log::together;
use super::make::*;
use recto::{Seq, Tokens};
use recto_engine::store::{
    Acknowledge, Appended, Batch, Commit, DecisionKind, DecisionRow, Decisions, RECEIPT_BYTES_MAX, RecordKind, Store,
    TurnRow, Turns, Upto,
};

async fn found<S: Store>(store: &S, upto: Upto, which: Decisions) -> Vec<u64> {
    let decisions = store.decisions(&tenant(), &name("a"), &reader(), upto, which).await.unwrap();
    decisions.iter().map(|it| it.ordinal).collect()
}

async fn called<S: Store>(store: &S, upto: Upto, which: Turns) -> Vec<u64> {
    let turns = store.turns(&tenant(), &name("a"), &reader(), upto, which).await.unwrap();
    turns.iter().map(|it| it.turn).collect()
}

pub(super) async fn a_reader_that_nobody_wrote_to_has_made_no_calls<S: Store>(store: S) {
    store.make(new("a")).await;
    assert_eq!(store.who("a").await, row_of(0, 0));
    assert!(found(&store, Upto::NOW, Decisions::After { ordinal: 0, rows: 9 }).await.is_empty());
    assert!(called(&store, Upto::NOW, Turns::From(Seq(0))).await.is_empty());
    assert_eq!(store.open(&tenant(), &name("a"), &reader(), ticket("none")).await.unwrap(), None);
    assert!(store.readers(&tenant(), &name("a")).await.unwrap().is_empty(), "asking makes none");
}

pub(super) async fn decisions_and_calls_are_numbered_on<S: Store>(store: S) {
    store.make(new("a")).await;
    let first = vec![decision(1, 0, DecisionKind::Floor, 0), decision(2, 0, DecisionKind::Entry, 4)];
    let turns = vec![turn(0, None), turn(1, Some(0))];
    let written = Commit { turns: turns.clone(), ..commit(row_of(0, 0), first.clone()) };
    store.decide("a", written).await.unwrap();
    store.decide("a", commit(row_of(2, 2), vec![decision(3, 2, DecisionKind::Cut, 4)])).await.unwrap();
    assert_eq!(store.who("a").await, row_of(2, 3));
    let all = Decisions::After { ordinal: 0, rows: 2 };
    assert_eq!(store.decisions(&tenant(), &name("a"), &reader(), Upto::NOW, all).await.unwrap(), first);
    let all = Turns::Since { turn: 0, rows: 9 };
    assert_eq!(store.turns(&tenant(), &name("a"), &reader(), Upto::NOW, all).await.unwrap(), turns);
    let other = recto_engine::ReaderName::from("another");
    store.commit(&tenant(), &name("a"), &other, commit(row_of(0, 0), vec![])).await.unwrap();
    let readers = store.readers(&tenant(), &name("a")).await.unwrap();
    assert_eq!(readers, [(other, row_of(0, 0)), (reader(), row_of(2, 3))]);
}

pub(super) async fn a_commit_on_something_that_has_changed_is_refused_whole<S: Store>(store: S) {
    store.make(new("a")).await;
    store.decide("a", commit(row_of(0, 0), vec![decision(1, 0, DecisionKind::Pin, 0)])).await.unwrap();
    for stale in [row_of(0, 0), row_of(1, 1), row_of(0, 2)] {
        let next = decision(stale.ordinal + 1, 0, DecisionKind::Cut, 0);
        let contents = vec![(ticket("lost"), "lost".into())];
        let error = store.decide("a", Commit { contents, ..commit(stale, vec![next]) }).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
        assert_eq!(error.hint().as_deref(), Some("another call came first; read again, then plan again"));
    }
    assert_eq!(found(&store, Upto::NOW, Decisions::After { ordinal: 0, rows: 9 }).await, [1]);
    assert!(store.contents(&tenant(), &name("a"), vec![ticket("lost")]).await.unwrap().is_empty());
}

pub(super) async fn numbers_that_do_not_go_on_are_a_defect<S: Store>(store: S) {
    store.make(new("a")).await;
    for ordinals in [vec![0], vec![2], vec![1, 3], vec![1, 1]] {
        let decisions: Vec<_> = ordinals.iter().map(|&it| decision(it, 0, DecisionKind::Pin, 0)).collect();
        let error = store.decide("a", commit(row_of(0, 0), decisions)).await.unwrap_err();
        assert!(error.is_defect(), "{ordinals:?}: {error}");
    }
    let turns = vec![turn(0, None), turn(2, None)];
    let error = store.decide("a", Commit { turns, ..commit(row_of(0, 0), vec![]) }).await.unwrap_err();
    assert!(error.is_defect(), "{error}");
    assert_eq!(store.who("a").await, row_of(0, 0));
    assert!(called(&store, Upto::NOW, Turns::Since { turn: 0, rows: 9 }).await.is_empty());
}

pub(super) async fn a_receipt_that_is_too_long_is_refused<S: Store>(store: S) {
    store.make(new("a")).await;
    let long = "r".repeat(RECEIPT_BYTES_MAX + 1);
    let mut opened = opening(row_of(0, 0), "call");
    opened.open.as_mut().unwrap().receipt = long.clone();
    assert!(store.decide("a", opened).await.unwrap_err().is_input());
    let turns = vec![TurnRow { receipt: long.clone(), ..turn(0, None) }];
    assert!(store.decide("a", Commit { turns, ..commit(row_of(0, 0), vec![]) }).await.unwrap_err().is_input());
    store.decide("a", opening(row_of(0, 0), "call")).await.unwrap();
    let mut answered = answer("call", 0, None, batch(vec![user("lost")]));
    answered.turn.receipt = long;
    assert!(store.answered("a", answered.clone()).await.unwrap_err().is_input());
    assert!(store.all("a").await.is_empty());
    answered.turn.receipt = "r".repeat(RECEIPT_BYTES_MAX);
    store.answered("a", answered).await.unwrap();
}

/// What a reader has decided: two floors of which the newer was taken back, and one of every other kind.
async fn decided<S: Store>(store: &S) {
    use DecisionKind::*;
    store.make(new("a")).await;
    let kinds =
        [(Floor, 2), (Entry, 2), (Entry, 8), (Pin, 1), (Expand, 2), (Cut, 6), (Floor, 5), (Expand, 3), (Expand, 8)];
    let mut decisions: Vec<DecisionRow> =
        (1..).zip(kinds).map(|(ordinal, (kind, about))| decision(ordinal, 0, kind, about)).collect();
    decisions.push(decision(10, 0, Revert, 7));
    decisions.push(decision(11, 0, Revert, 2));
    decisions.push(decision(12, 0, Entry, 7));
    store.decide("a", commit(row_of(0, 0), decisions)).await.unwrap();
}

pub(super) async fn decisions_are_found_by_what_they_are_about<S: Store>(store: S) {
    decided(&store).await;
    let find = async |which: Decisions| found(&store, Upto::NOW, which).await;
    assert_eq!(find(Decisions::Floors(1)).await, [7, 10]);
    assert_eq!(find(Decisions::Floors(2)).await, [1, 7, 10]);
    assert_eq!(find(Decisions::Floors(0)).await, [0; 0]);
    assert_eq!(find(Decisions::Standing { from: Seq(8), turn: 0, since: 99 }).await, [3, 4, 6, 9]);
    assert_eq!(find(Decisions::Standing { from: Seq(8), turn: 0, since: 7 }).await, [3, 4, 6, 8, 9]);
    // The newest cut is read even if it is older: it knows what all cuts have cost.
    assert_eq!(find(Decisions::Standing { from: Seq(8), turn: 1, since: 99 }).await, [3, 4, 6, 9]);
    assert_eq!(find(Decisions::Standing { from: Seq(0), turn: 0, since: 0 }).await, [2, 3, 4, 5, 6, 8, 9, 11, 12]);
    // A revert's number is no place: #7 is about entry 7, not about what took decision 7 back.
    assert_eq!(find(Decisions::About(vec![Seq(7)])).await, [12]);
    assert_eq!(find(Decisions::About(vec![Seq(2), Seq(5), Seq(5)])).await, [1, 2, 5, 7, 10, 11]);
    assert_eq!(find(Decisions::About(vec![])).await, [0; 0]);
    assert_eq!(find(Decisions::After { ordinal: 9, rows: 2 }).await, [10, 11]);
    assert_eq!(find(Decisions::After { ordinal: 12, rows: 2 }).await, [0; 0]);
}

pub(super) async fn decisions_are_read_as_they_were_at_a_ticket<S: Store>(store: S) {
    decided(&store).await;
    let find = async |ordinal: u64, which: Decisions| found(&store, Upto { turn: 0, ordinal }, which).await;
    assert_eq!(find(9, Decisions::Floors(1)).await, [7]);
    assert_eq!(find(6, Decisions::Floors(1)).await, [1]);
    assert_eq!(find(0, Decisions::Floors(1)).await, [0; 0]);
    assert_eq!(find(10, Decisions::Standing { from: Seq(0), turn: 0, since: 99 }).await, [2, 3, 4, 5, 6, 8, 9]);
    assert_eq!(find(10, Decisions::About(vec![Seq(2)])).await, [1, 2, 5]);
    assert_eq!(find(10, Decisions::After { ordinal: 8, rows: 9 }).await, [9, 10]);
}

pub(super) async fn calls_are_found_by_their_heads<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", (0..8).map(|_| user("x")).collect()).await;
    let heads = [None, Some(0), Some(3), Some(3), Some(7)];
    let turns = (0..).zip(heads).map(|(number, head)| turn(number, head)).collect();
    store.decide("a", Commit { turns, ..commit(row_of(0, 0), vec![]) }).await.unwrap();
    let find = async |turn: u64, which: Turns| called(&store, Upto { turn, ordinal: 0 }, which).await;
    assert_eq!(find(99, Turns::From(Seq(0))).await, [1, 2, 3, 4]);
    assert_eq!(find(99, Turns::From(Seq(3))).await, [2, 3, 4]);
    assert_eq!(find(3, Turns::From(Seq(3))).await, [2]);
    assert_eq!(find(99, Turns::From(Seq(8))).await, [0; 0]);
    assert_eq!(find(99, Turns::FirstWith(vec![Seq(7), Seq(2), Seq(3), Seq(8)])).await, [2, 4]);
    assert_eq!(find(4, Turns::FirstWith(vec![Seq(4), Seq(0)])).await, [1]);
    assert_eq!(find(99, Turns::FirstWith(vec![])).await, [0; 0]);
    assert_eq!(find(99, Turns::One(3)).await, [3]);
    assert_eq!(find(3, Turns::One(3)).await, [0; 0]);
    assert_eq!(find(99, Turns::One(5)).await, [0; 0]);
    assert_eq!(find(99, Turns::Since { turn: 1, rows: 2 }).await, [1, 2]);
    assert_eq!(find(4, Turns::Since { turn: 3, rows: 9 }).await, [3]);
}

pub(super) async fn of_many_commits_on_the_same_row_one_wins<S: Store>(store: S) {
    store.make(new("a")).await;
    let plan = async |about: u64| {
        store.decide("a", commit(row_of(0, 0), vec![decision(1, 0, DecisionKind::Pin, about)])).await
    };
    let results = together((0..8).map(plan).collect()).await;
    let won: Vec<u64> = (0..).zip(&results).filter(|(_, result)| result.is_ok()).map(|(about, _)| about).collect();
    assert_eq!(won.len(), 1);
    assert!(results.iter().filter_map(|result| result.as_ref().err()).all(|error| error.is_conflict()));
    assert_eq!(found(&store, Upto::NOW, Decisions::About(vec![Seq(won[0])])).await, [1]);
}

pub(super) async fn an_open_call_can_be_read_and_abandoned<S: Store>(store: S) {
    store.make(new("a")).await;
    store.decide("a", opening(row_of(0, 0), "one")).await.unwrap();
    store.decide("a", opening(row_of(0, 0), "two")).await.unwrap();
    let open = async |ticket| store.open(&tenant(), &name("a"), &reader(), ticket).await.unwrap();
    let abandon = async |ticket| store.abandon(&tenant(), &name("a"), &reader(), ticket).await.unwrap();
    assert_eq!(open(ticket("one")).await, Some(call("one", 0)));
    assert!(abandon(ticket("one")).await);
    assert!(!abandon(ticket("one")).await);
    assert_eq!((open(ticket("one")).await, open(ticket("two")).await), (None, Some(call("two", 0))));
    let other = recto_engine::ReaderName::from("another");
    assert_eq!(store.open(&tenant(), &name("a"), &other, ticket("two")).await.unwrap(), None);
    assert!(!store.abandon(&tenant(), &name("a"), &other, ticket("two")).await.unwrap());
}

pub(super) async fn an_answer_is_written_in_one_step<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("ask")]).await;
    store.decide("a", opening(row_of(0, 0), "one")).await.unwrap();
    store.decide("a", opening(row_of(0, 0), "two")).await.unwrap();
    let records = vec![record(RecordKind::Session, "s", 1)];
    let produced = Batch { records, ..expecting(Some(0), vec![assistant("tell"), user("on")]) };
    let answered = answer("one", 0, Some(0), produced);
    assert_eq!(store.answered("a", answered).await.unwrap(), appended(1, 2));
    assert_eq!(store.who("a").await, row_of(1, 0));
    assert_eq!(places(&store.all("a").await), [0, 1, 2]);
    let read = store.turns(&tenant(), &name("a"), &reader(), Upto::NOW, Turns::One(0)).await.unwrap();
    assert_eq!(read, [turn(0, Some(0))]);
    assert_eq!(store.kept(&tenant(), &name("a"), RecordKind::Session).await.unwrap().len(), 1);
    for name_of in ["one", "two"] {
        let open = store.open(&tenant(), &name("a"), &reader(), ticket(name_of)).await.unwrap();
        assert_eq!(open, None, "all open calls of that turn are gone");
    }
}

pub(super) async fn an_answer_to_no_open_call_is_a_conflict<S: Store>(store: S) {
    store.make(new("a")).await;
    let none = store.answered("a", answer("none", 0, None, batch(vec![user("lost")]))).await.unwrap_err();
    assert!(none.is_conflict() && none.to_string().contains("no open call"), "{none}");
    store.decide("a", opening(row_of(0, 0), "one")).await.unwrap();
    for number in [1, 7] {
        let error = store.answered("a", answer("one", number, None, batch(vec![user("lost")]))).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
    }
    store.abandon(&tenant(), &name("a"), &reader(), ticket("one")).await.unwrap();
    let gone = store.answered("a", answer("one", 0, None, batch(vec![user("lost")]))).await.unwrap_err();
    assert!(gone.is_conflict(), "{gone}");
    assert!(store.all("a").await.is_empty());
    assert_eq!(store.who("a").await, row_of(0, 0));
}

pub(super) async fn an_answer_that_is_refused_changes_nothing<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("ask")]).await;
    store.put("a", keyed("k", vec![user("more")])).await.unwrap();
    store.decide("a", opening(row_of(0, 0), "one")).await.unwrap();
    let said = || vec![assistant("tell")];
    let moved = answer("one", 0, Some(1), expecting(Some(0), said()));
    let placed = answer("one", 0, Some(1), batch(vec![at(1, assistant("tell"))]));
    let reused = answer("one", 0, Some(1), keyed("k", said()));
    let records = vec![record(RecordKind::Note, "n", 1), record(RecordKind::Session, "s", 2)];
    let stale = answer("one", 0, Some(1), Batch { records, ..batch(said()) });
    for refused in [moved, placed, reused, stale] {
        let error = store.answered("a", refused.clone()).await.unwrap_err();
        assert!(error.is_conflict(), "{refused:?}: {error}");
        assert_eq!(places(&store.all("a").await), [0, 1]);
        assert_eq!(store.who("a").await, row_of(0, 0));
        assert!(store.kept(&tenant(), &name("a"), RecordKind::Note).await.unwrap().is_empty());
    }
    assert_eq!(store.answered("a", answer("one", 0, Some(1), batch(said()))).await.unwrap(), appended(2, 2));
}

pub(super) async fn a_repeated_answer_gets_the_first_result<S: Store>(store: S) {
    store.make(new("a")).await;
    store.decide("a", opening(row_of(0, 0), "one")).await.unwrap();
    let answered = answer("one", 0, None, keyed("answer one", vec![user("ask"), assistant("tell")]));
    assert_eq!(store.answered("a", answered.clone()).await.unwrap(), appended(0, 1));
    store.say("a", vec![user("on")]).await;
    let again = store.answered("a", answered.clone()).await.unwrap();
    assert_eq!(again, Appended { is_repeated: true, ..appended(0, 1) });
    assert_eq!(store.who("a").await, row_of(1, 0));
    let other = Acknowledge { produced: keyed("answer one", vec![user("else")]), ..answered };
    assert!(store.answered("a", other).await.unwrap_err().is_conflict());
    let turns = store.turns(&tenant(), &name("a"), &reader(), Upto::NOW, Turns::Since { turn: 0, rows: 9 }).await;
    assert_eq!(turns.unwrap(), [TurnRow { spared: Tokens(0), ..turn(0, None) }]);
}
