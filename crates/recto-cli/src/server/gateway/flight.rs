//! Conversations that an answer is coming for, in this process. A client that is quick may ask again before the end of
//! its answer is on disk; it waits for that here.

use crate::server::closing::until;
use recto_engine::At;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Conversations that an answer is coming for.
#[derive(Default)]
pub(super) struct Flights {
    under_way: Mutex<HashMap<At, Arc<Landing>>>,
}

/// How far an answer has come.
#[derive(Default)]
struct Landing {
    /// Whether what was said before it is on disk.
    is_written: AtomicBool,
    /// Whether it is recorded, or never will be.
    is_over: AtomicBool,
    told: Notify,
}

/// A conversation that an answer is coming for, until this is dropped.
pub(super) struct Flight {
    flights: Arc<Flights>,
    /// Nothing, if it is another one's.
    own: Option<(At, Arc<Landing>)>,
}

/// An answer that can be waited for.
pub(super) struct Awaited(Arc<Landing>);

impl Flights {
    /// Says that an answer is coming, or returns the one that is already.
    pub(super) fn claim(self: &Arc<Flights>, at: &At) -> Result<Flight, Awaited> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(landing) = under_way.get(at) {
            return Err(Awaited(landing.clone()));
        }
        let landing = Arc::new(Landing::default());
        under_way.insert(at.clone(), landing.clone());
        Ok(Flight { flights: self.clone(), own: Some((at.clone(), landing)) })
    }

    /// Says that an answer is coming, unless one is already.
    pub(super) fn begin(self: &Arc<Flights>, at: &At) -> Flight {
        self.claim(at).unwrap_or_else(|_| Flight { flights: self.clone(), own: None })
    }

    /// Returns the answer that is coming for a conversation, if one is.
    pub(super) fn of(&self, at: &At) -> Option<Awaited> {
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.get(at).cloned().map(Awaited)
    }
}

impl Flight {
    /// Says that what was said is on disk.
    pub(super) fn written(&self) {
        if let Some((_, landing)) = &self.own {
            landing.is_written.store(true, Ordering::SeqCst);
            landing.told.notify_waiters();
        }
    }
}

impl Awaited {
    /// Returns whether what was said before the answer is on disk.
    pub(super) fn is_written(&self) -> bool {
        self.0.is_written.load(Ordering::SeqCst)
    }

    /// Waits until it is, or will not be, within bounds.
    pub(super) async fn written(self) {
        drop(timeout(PATIENCE, until(&self.0.told, || self.is_written() || self.is_over())).await);
    }

    /// Waits until it is recorded, within bounds.
    pub(super) async fn landed(self) {
        drop(timeout(PATIENCE, until(&self.0.told, || self.is_over())).await);
    }

    fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::SeqCst)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some((at, landing)) = &self.own {
            self.flights.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(at);
            landing.is_over.store(true, Ordering::SeqCst);
            landing.told.notify_waiters();
        }
    }
}
