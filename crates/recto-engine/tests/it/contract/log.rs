//! Appending and reading back.

use super::make::*;
use recto::log::{SEQ_MAX, Sums};
use recto::{Lane, Role, Seq, Tokens};
use recto_engine::store::{Appended, BATCH_ENTRIES_MAX, Back, NewRow, Store};

const CALLERS: usize = 8;
const BATCHES: usize = 12;

pub(super) async fn places_are_dense_from_zero<S: Store>(store: S) {
    store.make(new("a")).await;
    assert_eq!(store.say("a", vec![user("one"), assistant("two")]).await, appended(0, 1));
    assert_eq!(store.say("a", vec![user("three")]).await, appended(2, 2));
    assert_eq!(store.told("a").await.tally.head(), Some(Seq(2)));
    assert_eq!(places(&store.all("a").await), [0, 1, 2]);
}

pub(super) async fn an_append_of_none_is_one<S: Store>(store: S) {
    store.make(new("a")).await;
    let none = |last: Option<u64>| Appended { first: None, last: last.map(Seq), is_repeated: false };
    assert_eq!(store.say("a", vec![]).await, none(None));
    store.say("a", vec![user("one")]).await;
    assert_eq!(store.put("a", keyed("k", vec![])).await.unwrap(), none(Some(0)));
    store.say("a", vec![user("two")]).await;
    let again = store.put("a", keyed("k", vec![])).await.unwrap();
    assert_eq!(again, Appended { is_repeated: true, ..none(Some(0)) });
    assert!(store.put("a", expecting(Some(0), vec![])).await.unwrap_err().is_conflict());
    assert!(store.put("a", keyed("k", vec![user("three")])).await.unwrap_err().is_conflict());
}

pub(super) async fn an_expected_head_must_be_the_head<S: Store>(store: S) {
    store.make(new("a")).await;
    assert!(store.put("a", expecting(Some(0), vec![user("x")])).await.unwrap_err().is_conflict());
    store.put("a", expecting(None, vec![user("one"), user("two")])).await.unwrap();
    for wrong in [None, Some(0), Some(2)] {
        let error = store.put("a", expecting(wrong, vec![user("x")])).await.unwrap_err();
        assert!(error.is_conflict() && error.hint().is_some(), "{error}");
    }
    assert_eq!(store.put("a", expecting(Some(1), vec![user("three")])).await.unwrap(), appended(2, 2));
    assert_eq!(places(&store.all("a").await), [0, 1, 2]);
}

pub(super) async fn a_repeated_key_is_answered_with_the_first_result<S: Store>(store: S) {
    store.make(new("a")).await;
    let mut keyed = keyed("k", vec![user("one"), user("two")]);
    keyed.expect = recto_engine::store::Expect::Head(None);
    assert_eq!(store.put("a", keyed.clone()).await.unwrap(), appended(0, 1));
    store.say("a", vec![user("three")]).await;
    // The head it expects is long gone.
    let again = store.put("a", keyed.clone()).await.unwrap();
    assert_eq!(again, Appended { is_repeated: true, ..appended(0, 1) });
    assert_eq!(places(&store.all("a").await), [0, 1, 2]);
    store.make(new("b")).await;
    assert_eq!(store.put("b", keyed).await.unwrap(), appended(0, 1), "a key belongs to its conversation");
}

pub(super) async fn a_key_of_another_body_is_refused<S: Store>(store: S) {
    store.make(new("a")).await;
    store.put("a", keyed("k", vec![user("one")])).await.unwrap();
    let error = store.put("a", keyed("k", vec![user("two")])).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("\"k\""), "{error}");
    // A key that was refused is still free.
    store.put("a", super::make::keyed("l", vec![at(0, user("x"))])).await.unwrap_err();
    assert_eq!(store.put("a", keyed("l", vec![user("y")])).await.unwrap(), appended(1, 1));
    assert_eq!(places(&store.all("a").await), [0, 1]);
}

pub(super) async fn given_places_are_kept_and_those_between_stay_free<S: Store>(store: S) {
    store.make(new("a")).await;
    let rows = vec![at(3, user("one")), user("two"), at(9, user("three"))];
    assert_eq!(store.say("a", rows).await, appended(3, 9));
    assert_eq!(store.say("a", vec![user("four")]).await, appended(10, 10));
    assert_eq!(places(&store.all("a").await), [3, 4, 9, 10]);
    assert_eq!(places(&store.rows(&tenant(), &name("a"), vec![Seq(5), Seq(9)]).await.unwrap()), [9]);
}

pub(super) async fn a_place_that_is_not_behind_all_others_is_a_conflict<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![at(4, user("one"))]).await;
    for rows in [vec![at(4, user("x"))], vec![at(0, user("x"))], vec![at(7, user("x")), at(7, user("y"))]] {
        let error = store.put("a", batch(rows)).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
    }
    assert_eq!(places(&store.all("a").await), [4], "nothing of a refused batch is there");
    assert_eq!(store.told("a").await.tally.sums().entries, 1);
}

pub(super) async fn a_place_beyond_the_last_is_refused<S: Store>(store: S) {
    store.make(new("a")).await;
    assert!(store.put("a", batch(vec![at(SEQ_MAX.0 + 1, user("x"))])).await.unwrap_err().is_input());
    assert!(store.put("a", batch(vec![at(u64::MAX, user("x"))])).await.unwrap_err().is_input());
    store.say("a", vec![at(SEQ_MAX.0, user("last"))]).await;
    assert!(store.put("a", batch(vec![user("x")])).await.unwrap_err().is_input());
    assert_eq!(places(&store.all("a").await), [SEQ_MAX.0]);
    let none = store.forth(&tenant(), &name("a"), Seq(u64::MAX), 9).await.unwrap();
    assert!(none.is_empty(), "a place that can't be is behind all others");
    assert_eq!(
        places(&store.back(&tenant(), &name("a"), Back { below: Some(Seq(u64::MAX)), ..all_back() }).await.unwrap()),
        [SEQ_MAX.0]
    );
}

pub(super) async fn a_batch_that_is_too_large_is_refused_whole<S: Store>(store: S) {
    store.make(new("a")).await;
    let rows = vec![user("x"); BATCH_ENTRIES_MAX + 1];
    assert!(store.put("a", batch(rows)).await.unwrap_err().is_input());
    assert_eq!(store.told("a").await.tally.head(), None);
    assert!(store.all("a").await.is_empty());
}

pub(super) async fn rows_are_read_as_they_were_written<S: Store>(store: S) {
    store.make(new("a")).await;
    let erased = NewRow { is_erased: true, bytes: 77, ..assistant("gone") };
    let written = vec![user("quote \" and \0 and ü"), long('x'), erased, summary("so far"), long('x')];
    store.say("a", written.clone()).await;
    let read = store.all("a").await;
    assert_eq!(read.len(), written.len());
    for (row, new) in read.iter().zip(&written) {
        assert_eq!((&row.counts, row.hash, row.bytes), (&new.counts, new.hash, new.bytes));
        assert_eq!((&row.body, &row.large, row.is_erased), (&new.body, &new.large, new.is_erased));
    }
    let mut back = store.back(&tenant(), &name("a"), all_back()).await.unwrap();
    back.reverse();
    assert_eq!(back, read);
    let seqs = (0..5).map(Seq).collect();
    assert_eq!(store.rows(&tenant(), &name("a"), seqs).await.unwrap(), read);
}

pub(super) async fn every_row_tells_what_the_log_holds_up_to_it<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), trace("work"), summary("so far")]).await;
    store.say("a", vec![user("two"), at(7, trace("more"))]).await;
    let read = store.all("a").await;
    assert_eq!(read.iter().map(|row| row.strand).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
    assert_eq!(read[1].tally.strands().len(), 2);
    assert_eq!(read[1].tally.head(), Some(Seq(1)));
    let last = &read[4].tally;
    assert_eq!(*last, store.told("a").await.tally);
    let traces = &last.strands()[1];
    assert_eq!((traces.lane, traces.role, traces.first, traces.last), (Lane::Trace, Role::Assistant, Seq(1), Seq(7)));
    let tokens = Tokens(read[1].bytes + read[4].bytes);
    assert_eq!((traces.sums, traces.edge), (Sums { entries: 2, tokens }, None));
    assert_eq!((last.strands()[2].edge, last.strands()[2].section.as_str()), (Some(Seq(2)), "summary"));
    assert_eq!(last.sums().entries, 5);
}

pub(super) async fn rows_are_read_back_in_pages_by_strand_and_up_to_a_budget<S: Store>(store: S) {
    store.make(new("a")).await;
    for _ in 0..3 {
        store.say("a", vec![user("talk"), trace("work"), trace("work"), summary("so")]).await;
    }
    let back = async |back: Back| places(&store.back(&tenant(), &name("a"), back).await.unwrap());
    assert_eq!(back(Back { rows: 3, ..all_back() }).await, [11, 10, 9]);
    assert_eq!(back(Back { rows: 3, below: Some(Seq(9)), ..all_back() }).await, [8, 7, 6]);
    assert_eq!(back(Back { below: Some(Seq(0)), ..all_back() }).await, [0; 0]);
    assert_eq!(back(Back { below: Some(Seq(99)), rows: 1, ..all_back() }).await, [11]);
    assert_eq!(back(Back { strands: vec![0], ..all_back() }).await, [8, 4, 0]);
    assert_eq!(back(Back { strands: vec![2, 0], rows: 4, below: Some(Seq(11)), ..all_back() }).await, [8, 7, 4, 3]);
    assert_eq!(back(Back { strands: vec![7], ..all_back() }).await, [0; 0]);
    assert_eq!(back(Back { rows: 0, ..all_back() }).await, [0; 0]);
    assert_eq!(back(Back { tokens: Tokens(0), ..all_back() }).await, [0; 0]);
    let talk = user("talk").bytes;
    let budget = |tokens: u64| Back { strands: vec![0], tokens: Tokens(tokens), ..all_back() };
    assert_eq!(back(budget(1)).await, [8], "the row that reaches the budget is read");
    assert_eq!(back(budget(talk)).await, [8]);
    assert_eq!(back(budget(talk + 1)).await, [8, 4]);
}

pub(super) async fn rows_are_read_forth_in_pages<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), user("two"), at(5, user("three")), user("four")]).await;
    let forth =
        async |from: u64, rows: usize| places(&store.forth(&tenant(), &name("a"), Seq(from), rows).await.unwrap());
    assert_eq!(forth(0, 2).await, [0, 1]);
    assert_eq!(forth(2, 2).await, [5, 6]);
    assert_eq!(forth(6, 9).await, [6]);
    assert_eq!(forth(7, 9).await, [0; 0]);
    assert_eq!(forth(0, 0).await, [0; 0]);
}

pub(super) async fn single_rows_are_read_once_and_in_order<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![user("one"), user("two"), user("three")]).await;
    let seqs = vec![Seq(2), Seq(0), Seq(2), Seq(9)];
    assert_eq!(places(&store.rows(&tenant(), &name("a"), seqs).await.unwrap()), [0, 2]);
    assert!(store.rows(&tenant(), &name("a"), vec![]).await.unwrap().is_empty());
}

pub(super) async fn tallies_are_those_of_the_row_at_or_before_a_place<S: Store>(store: S) {
    store.make(new("a")).await;
    store.say("a", vec![at(2, user("one")), trace("work"), at(8, user("two"))]).await;
    let at = [8, 0, 2, 5, 99, 1, 5].map(Seq).to_vec();
    let tallies = store.tallies(&tenant(), &name("a"), at).await.unwrap();
    assert_eq!(tallies.iter().map(|it| it.sums().entries).collect::<Vec<_>>(), [3, 0, 1, 2, 3, 0, 2]);
    assert_eq!(tallies[1], recto::log::Tally::default());
    let rows = store.all("a").await;
    assert_eq!((&tallies[2], &tallies[3], &tallies[4]), (&rows[0].tally, &rows[1].tally, &rows[2].tally));
}

pub(super) async fn the_first_of_a_strand_is_found_from_any_place<S: Store>(store: S) {
    store.make(new("a")).await;
    for _ in 0..20 {
        store.say("a", vec![trace("work"), trace("work"), user("talk")]).await;
    }
    for strand in 0..3 {
        for from in 0..62 {
            let wanted = |seq: &u64| (strand == 1 && seq % 3 == 2) || (strand == 0 && seq % 3 < 2);
            let expected = (from..60).find(wanted).map(Seq);
            let found = store.first(&tenant(), &name("a"), strand, Seq(from)).await.unwrap();
            assert_eq!(found, expected, "strand {strand} from {from}");
        }
    }
}

pub(super) async fn batches_of_many_callers_stay_whole<S: Store>(store: S) {
    store.make(new("a")).await;
    let append = async |caller: usize| {
        let mut gone = Vec::new();
        for number in 0..BATCHES {
            let rows = (0..=number % 3).map(|part| user(&format!("{caller} {number} {part}"))).collect::<Vec<_>>();
            let hashes: Vec<_> = rows.iter().map(|row| row.hash).collect();
            gone.push((store.say("a", rows).await, hashes));
        }
        gone
    };
    let gone = together((0..CALLERS).map(append).collect()).await;
    let rows = store.all("a").await;
    assert_eq!(places(&rows), (0..rows.len() as u64).collect::<Vec<_>>());
    let mut written = 0;
    for (appended, hashes) in gone.into_iter().flatten() {
        let first = appended.first.unwrap().0 as usize;
        assert_eq!(appended.last.unwrap().0 as usize, first + hashes.len() - 1);
        assert_eq!(rows[first..first + hashes.len()].iter().map(|row| row.hash).collect::<Vec<_>>(), hashes);
        written += hashes.len();
    }
    assert_eq!(written, rows.len());
}

/// Runs futures side by side on one thread, each a step at a time.
pub(super) async fn together<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(|context| {
        for (future, done) in running.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if running.iter().all(|(_, done)| done.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    running.into_iter().filter_map(|(_, done)| done).collect()
}
