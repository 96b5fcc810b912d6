//! What a test tells the fake to answer.

use serde_json::Value;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A scripted answer, told once for all three APIs.
///
/// ```
/// use recto_testkit::fake::Reply;
/// let reply = Reply::default().thinking("hm").text("Reading.").call("read_file", r#"{"path":"a.txt"}"#);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(super) parts: Vec<Part>,
    pub(super) stop: Option<String>,
    pub(super) error: Option<(u16, Value)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delivery: Delivery,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(String),
    Thinking(String),
    Redacted,
    Call { name: String, arguments: String },
    Refusal(String),
}

/// What goes wrong, or waits, while an answer is sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Delivery {
    pub(super) gates: Vec<(usize, Gate)>,
    pub(super) cut_after: Option<usize>,
    pub(super) garbled_after: Option<usize>,
}

impl Reply {
    /// Returns an error with the provider's status and a body of the test's choice.
    pub fn error(status: u16, body: Value) -> Reply {
        Reply { error: Some((status, body)), ..Reply::default() }
    }

    /// Adds text.
    pub fn text(self, text: &str) -> Reply {
        self.with(Part::Text(text.to_owned()))
    }

    /// Adds thinking, where the request has thinking on: a signed block, or a reasoning item.
    pub fn thinking(self, text: &str) -> Reply {
        self.with(Part::Thinking(text.to_owned()))
    }

    /// Adds thinking that nobody may read (Anthropic; elsewhere as `thinking`).
    pub fn redacted_thinking(self) -> Reply {
        self.with(Part::Redacted)
    }

    /// Adds a tool call; its id is made by the provider. The arguments are JSON text.
    pub fn call(self, name: &str, arguments: &str) -> Reply {
        self.with(Part::Call { name: name.to_owned(), arguments: arguments.to_owned() })
    }

    /// Adds a refusal.
    pub fn refusal(self, text: &str) -> Reply {
        self.with(Part::Refusal(text.to_owned()))
    }

    /// Ends the answer for a reason in the provider's own word: `finish_reason`, `stop_reason`, or the reason why a
    /// response is incomplete.
    pub fn stopped(self, reason: &str) -> Reply {
        Reply { stop: Some(reason.to_owned()), ..self }
    }

    /// Adds a header to the answer.
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits at a gate after so many events; with 0, before the answer starts.
    pub fn waiting_after(mut self, events: usize, gate: &Gate) -> Reply {
        self.delivery.gates.push((events, gate.clone()));
        self
    }

    /// Drops the connection after so many events. An answer that is no stream is cut in half.
    pub fn broken_after(mut self, events: usize) -> Reply {
        self.delivery.cut_after = Some(events);
        self
    }

    /// Sends an event that is no JSON after so many events, and then the rest.
    pub fn garbled_after(mut self, events: usize) -> Reply {
        self.delivery.garbled_after = Some(events);
        self
    }

    fn with(mut self, part: Part) -> Reply {
        self.parts.push(part);
        self
    }
}

/// A gate that a test opens: until then, the answer waits in front of it.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    reached: bool,
}

impl Gate {
    /// Opens the gate for good.
    pub fn open(&self) {
        self.state().open = true;
        self.0.1.notify_all();
    }

    /// Waits until an answer stands in front of the gate, or has passed it.
    pub fn reached(&self) {
        let state = self.state();
        drop(self.0.1.wait_while(state, |state| !state.reached).unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn pass(&self) {
        let mut state = self.state();
        state.reached = true;
        self.0.1.notify_all();
        drop(self.0.1.wait_while(state, |state| !state.open).unwrap_or_else(PoisonError::into_inner));
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
