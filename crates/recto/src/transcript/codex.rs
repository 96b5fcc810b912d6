//! Rollouts of Codex: one record a line, of which the items of the model's context are read.
//!
//! A rollout that was compacted begins again at its newest compaction. One that forks from another does not hold what
//! that one said.

mod read;
mod since;
mod write;

use crate::entry::{Entry, Role, Text};
use serde_json::json;

pub use read::fork_of;
pub(crate) use read::{is_rollout, read};
pub use since::{Begun, Since, begun, since};
pub use write::session;

/// The program's own instructions, which stand in the head of a rollout.
fn own_prompt(text: Text) -> Entry {
    let mut entry = Entry::system(text);
    entry.extra.insert("codex".into(), json!({"base_instructions": true}));
    entry
}

/// Whether an entry holds the program's own instructions.
fn is_own_prompt(entry: &Entry) -> bool {
    let is_marked = entry.extra.get("codex").is_some_and(|it| it["base_instructions"] == true);
    entry.role == Role::System && is_marked
}
