//! The end of a server: no new requests, then a while for those that run, then none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// How far the end has come; nowhere, at 0.
#[derive(Clone, Copy)]
enum Phase {
    /// Nothing new is taken; what runs may come to its end.
    Closing = 1,
    /// What still runs ends now.
    Cut = 2,
}

/// Tells everybody that the end has come, and knows what must be finished first.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// A [`Phase`], which only grows.
    phase: AtomicU8,
    advanced: Notify,
    held: Arc<Held>,
}

/// How many things must be finished.
#[derive(Debug, Default)]
struct Held {
    count: AtomicUsize,
    released: Notify,
}

/// Keeps a server from ending while something is finished, as long as it is patient.
#[derive(Debug)]
pub(super) struct Hold(Arc<Held>);

impl Closing {
    /// Takes the next step towards the end, and returns whether there was one.
    pub(crate) fn advance(&self) -> bool {
        let next = |phase: u8| (phase < Phase::Cut as u8).then_some(phase + 1);
        let is_advanced = self.phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok();
        self.advanced.notify_waiters();
        is_advanced
    }

    /// Returns whether nothing new is taken any more.
    pub(crate) fn is_begun(&self) -> bool {
        self.is_at(Phase::Closing)
    }

    /// Waits until nothing new is taken any more.
    pub(super) async fn begun(&self) {
        self.reached(Phase::Closing).await;
    }

    /// Waits until what still runs is to end now.
    pub(super) async fn cut(&self) {
        self.reached(Phase::Cut).await;
    }

    /// Ends what still runs.
    pub(super) fn cut_now(&self) {
        self.phase.store(Phase::Cut as u8, Ordering::SeqCst);
        self.advanced.notify_waiters();
    }

    fn is_at(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::SeqCst) >= phase as u8
    }

    async fn reached(&self, phase: Phase) {
        until(&self.advanced, || self.is_at(phase)).await;
    }

    /// Returns what keeps the server from ending until it is dropped.
    pub(super) fn hold(&self) -> Hold {
        self.held.count.fetch_add(1, Ordering::SeqCst);
        Hold(self.held.clone())
    }

    /// Waits until nothing is held.
    pub(super) async fn released(&self) {
        until(&self.held.released, || self.held.count.load(Ordering::SeqCst) == 0).await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.released.notify_waiters();
        }
    }
}

/// Waits until something is so; whoever makes it so tells everybody who waits.
pub(super) async fn until(told: &Notify, is_so: impl Fn() -> bool) {
    loop {
        // Made before it is looked, so that nothing that is told meanwhile is missed.
        let told = told.notified();
        if is_so() {
            return;
        }
        told.await;
    }
}
