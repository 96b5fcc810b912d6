//! Rollouts of Codex: one record a line, of which the items of the model's context are read.
//!
//! A rollout that was compacted begins again at its newest compaction. One that forks from another does not hold what
//! that one said.

mod read;
mod time;
mod write;

pub use read::fork_of;
pub(crate) use read::{is_rollout, read};
pub use write::session;
