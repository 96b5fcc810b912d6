//! What is measured of a store, for whoever looks after it.

use crate::timing::Timing;
use std::sync::Arc;

/// What is measured of a store. What a store has none of is `None`.
#[derive(Clone, Debug, Default)]
pub struct Vitals {
    /// How long writes took: from being asked for to being on disk, or refused.
    pub writes: Option<Arc<Timing>>,
    /// How many writes wait for the one that writes.
    pub writes_waiting: Option<usize>,
    /// The connections to a database.
    pub connections: Option<Connections>,
}

/// Connections to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// The most that there may be.
    pub max: usize,
    /// Those that are being used, or opened.
    pub busy: usize,
    /// Those that are open and wait for somebody.
    pub idle: usize,
}
