//! Work on several cores, with results in the order of the work.

use crate::failure::Failure;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// More threads than this are of no use to anybody.
const THREADS_MAX: usize = 16;

/// Returns how many threads can work at once.
pub(super) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX)
}

/// Does all the work, or fails as its first piece that fails; none is begun after that.
pub(super) fn each<T: Send, R: Send>(
    threads: usize,
    work: Vec<T>,
    run: impl Fn(T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let queue = Mutex::new(work.into_iter().enumerate());
    let has_failed = AtomicBool::new(false);
    // Work is handed out in order, so whatever comes before a failure was begun before it, and is finished.
    let next = || match has_failed.load(Ordering::SeqCst) {
        true => None,
        false => queue.lock().unwrap_or_else(PoisonError::into_inner).next(),
    };
    let worker = || {
        let mut done = Vec::new();
        while let Some((at, piece)) = next() {
            let result = run(piece);
            has_failed.fetch_or(result.is_err(), Ordering::SeqCst);
            done.push((at, result));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut done = worker();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::Code;

    #[test]
    fn results_come_in_the_order_of_the_work() {
        for threads in [1, 2, 7] {
            let squares = each(threads, (0..100).collect(), |number: u64| Ok(number * number)).unwrap();
            assert_eq!(squares, (0..100).map(|number| number * number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_failure_is_told_and_ends_the_work() {
        let last = std::sync::atomic::AtomicUsize::new(0);
        let run = |number: usize| {
            last.fetch_max(number, Ordering::SeqCst);
            if number % 10 == 3 { Err(Failure::of(Code::Defect, format!("at {number}"))) } else { Ok(number) }
        };
        for threads in [1, 2, 7] {
            let failure = each(threads, (0..10_000).collect(), run).unwrap_err();
            assert!(format!("{failure:?}").contains("at 3\""), "{failure:?}");
        }
        assert!(last.load(Ordering::SeqCst) < 10_000 - 1);
    }
}
