//! MemberJunction's names for what Recto does: its settings, its action results, its events, its steps.
//!
//! With the policy [`mj_doc`](crate::Policy::mj_doc) an agent that was written for it finds its own texts on the page.
//! Results of actions are appended with [`append_action_results`]; [`AgentActions`] says when those of which action
//! expire, and [`MessageExpirationOverride`] what holds for a run instead. [`Lifecycle`] tells events as its callback
//! knows them, [`metadata`] what it keeps with a message, [`NextStep`] what a model asks for. Where a summary is asked
//! for, the plan [wants](crate::note::Want) one, under the name of the prompt that is set; without one, the first
//! characters stay.

mod lifecycle; // events, metadata, and what is told of them
mod results; // results of actions, appended
mod settings; // when results expire, and what holds for a run
mod step; // what a model asks for next

pub use lifecycle::{Lifecycle, expanded_line, expanded_notice, metadata, pruning_line};
pub use results::{ActionResult, append_action_results};
pub use settings::{AgentAction, AgentActions, CompactMode, ExpirationMode, MessageExpirationOverride};
pub use step::{NextStep, TEACHING};
