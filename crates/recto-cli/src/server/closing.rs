//! The end of a server: no new requests, then a while for those that run, then none.

use tokio::sync::watch;

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Open,
    /// Nothing new is taken; what runs may come to its end.
    Closing,
    /// What still runs ends now.
    Cut,
}

/// Tells everybody that the end has come, and knows what must be finished first.
#[derive(Debug)]
pub(crate) struct Closing {
    phase: watch::Sender<Phase>,
    held: watch::Sender<usize>,
}

/// Keeps a server from ending while something is finished, as long as it is patient.
#[derive(Debug)]
pub(super) struct Hold {
    held: watch::Sender<usize>,
}

impl Default for Closing {
    fn default() -> Closing {
        Closing { phase: watch::Sender::new(Phase::Open), held: watch::Sender::new(0) }
    }
}

impl Closing {
    /// Takes the next step towards the end, and returns whether there was one.
    pub(crate) fn advance(&self) -> bool {
        let next = match *self.phase.borrow() {
            Phase::Open => Phase::Closing,
            Phase::Closing => Phase::Cut,
            Phase::Cut => return false,
        };
        self.phase.send_replace(next);
        true
    }

    /// Returns whether nothing new is taken any more.
    pub(crate) fn is_begun(&self) -> bool {
        *self.phase.borrow() > Phase::Open
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
        self.phase.send_replace(Phase::Cut);
    }

    async fn reached(&self, phase: Phase) {
        // The sender is ours, so it can't be gone.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Returns what keeps the server from ending until it is dropped.
    pub(super) fn hold(&self) -> Hold {
        self.held.send_modify(|held| *held += 1);
        Hold { held: self.held.clone() }
    }

    /// Waits until nothing is held.
    pub(super) async fn released(&self) {
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.held.send_modify(|held| *held -= 1);
    }
}
