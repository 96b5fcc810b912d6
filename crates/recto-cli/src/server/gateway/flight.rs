//! Conversations that an answer is coming for, in this process. A client that is quick may ask again before the end of
//! its answer is on disk; it waits for that here.

use recto_engine::At;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Conversations that an answer is coming for.
#[derive(Default)]
pub(super) struct Flights {
    /// Whether what was said is on disk.
    under_way: Mutex<HashMap<At, watch::Sender<bool>>>,
}

/// A conversation that an answer is coming for, until this is dropped.
pub(super) struct Flight {
    flights: Arc<Flights>,
    at: Option<At>,
}

/// An answer that can be waited for.
pub(super) struct Awaited(watch::Receiver<bool>);

impl Flights {
    /// Says that an answer is coming, or returns the one that is already.
    pub(super) fn claim(self: &Arc<Flights>, at: &At) -> Result<Flight, Awaited> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = under_way.get(at) {
            return Err(Awaited(flight.subscribe()));
        }
        under_way.insert(at.clone(), watch::Sender::new(false));
        Ok(Flight { flights: self.clone(), at: Some(at.clone()) })
    }

    /// Says that an answer is coming, unless one is already.
    pub(super) fn begin(self: &Arc<Flights>, at: &At) -> Flight {
        self.claim(at).unwrap_or_else(|_| Flight { flights: self.clone(), at: None })
    }

    /// Returns the answer that is coming for a conversation, if one is.
    pub(super) fn of(&self, at: &At) -> Option<Awaited> {
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.get(at).map(|flight| Awaited(flight.subscribe()))
    }
}

impl Flight {
    /// Says that what was said is on disk.
    pub(super) fn written(&self) {
        let under_way = self.flights.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = self.at.as_ref().and_then(|at| under_way.get(at)) {
            flight.send_replace(true);
        }
    }
}

impl Awaited {
    /// Returns whether what was said before the answer is on disk.
    pub(super) fn is_written(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is, or will not be, within bounds.
    pub(super) async fn written(mut self) {
        drop(timeout(PATIENCE, self.0.wait_for(|is_written| *is_written)).await);
    }

    /// Waits until it is recorded, within bounds.
    pub(super) async fn landed(mut self) {
        // The sender is dropped when it is.
        drop(timeout(PATIENCE, async { while self.0.changed().await.is_ok() {} }).await);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(at) = &self.at {
            self.flights.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(at);
        }
    }
}
