//! OpenAI Responses: one `response.created`, items and events numbered anew, one end with the output of all rounds.

use super::object::{Object, list_of};
use super::rounds::{Numbers, Ours, Rounds, Told, event};
use crate::error::Error;
use std::collections::BTreeMap;

/// The fields that are the same all over a response.
const HEAD: &[&str] = &["id", "created_at", "previous_response_id"];

/// The items that a client has to answer.
const CALLS: &[&str] = &[
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "mcp_approval_request",
];

/// What is known of the output so far.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// The items of this round, by the provider's number.
    items: BTreeMap<u64, Item>,
    numbers: Numbers,
    events: Numbers,
    /// The output of the rounds before this one.
    output: Vec<String>,
    /// What this round adds to it.
    added: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Item {
    /// The client's number of it.
    Shown(u64),
    /// Which of the calls that are hidden it is.
    Hidden(usize),
}

impl Responses {
    /// Takes an event, and writes what the client gets of it.
    pub(super) fn event(&mut self, rounds: &mut Rounds, told: &Told, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(mut data) = Object::read(&told.event.data) else {
            if rounds.is_called() {
                return rounds.withhold(&told.raw);
            }
            out.extend_from_slice(&told.raw);
            return Ok(());
        };
        let kind = data.text("type").unwrap_or_default();
        match kind.strip_prefix("response.") {
            Some("created" | "in_progress" | "queued") if rounds.is_later => return Ok(()),
            Some("created" | "in_progress" | "queued") => {
                if let Some(mut response) = data.object("response") {
                    rounds.name(&mut response, HEAD);
                }
            }
            Some(end @ ("completed" | "incomplete" | "failed" | "cancelled")) => {
                let response = data.object("response").map(|response| self.response(rounds, response));
                rounds.end(end == "completed");
                if let Some(response) = response.filter(|_| rounds.has_hidden) {
                    data.replace("response", response);
                }
                if rounds.is_called() {
                    // Another round would take the number.
                    data.replace("sequence_number", self.events.next());
                    return rounds.withhold(&told.with(&data));
                }
            }
            _ if !self.item(rounds, &mut data)? => return Ok(()),
            _ => {}
        }
        if let Some(number) = data.number("sequence_number") {
            data.replace("sequence_number", self.events.number(number, rounds));
        }
        out.extend_from_slice(&told.with(&data));
        Ok(())
    }

    /// Takes an event about an item, gives it the client's number, and returns whether the client gets it.
    fn item(&mut self, rounds: &mut Rounds, data: &mut Object<'_>) -> Result<bool, Error> {
        let Some(index) = data.number("output_index") else { return Ok(true) };
        let place = self.items.get(&index).copied().or_else(|| {
            let item = data.object("item")?;
            let place = match ours(rounds, &item) {
                Some(call) => Item::Hidden(rounds.hide(Ours { arguments: String::new(), ..call })),
                None => {
                    rounds.theirs += usize::from(is_call(&item));
                    Item::Shown(self.numbers.number(index, rounds))
                }
            };
            self.items.insert(index, place);
            Some(place)
        });
        match place {
            Some(Item::Shown(number)) => data.replace("output_index", number),
            Some(Item::Hidden(at)) => {
                let whole = data.text("arguments").or_else(|| data.object("item")?.text("arguments"));
                if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
                    rounds.say(at, &whole)?;
                }
                rounds.grow(at, &data.text("delta").unwrap_or_default())?;
                return Ok(false);
            }
            None => {}
        }
        Ok(true)
    }

    /// Takes the response of a round at its end, and returns what the client gets of it if it is the last. Some servers
    /// tell of items only here.
    fn response(&mut self, rounds: &mut Rounds, mut response: Object<'_>) -> String {
        self.added.clear();
        let mut theirs = 0;
        for raw in response.list("output").unwrap_or_default() {
            let item = Object::read(raw).unwrap_or_default();
            match ours(rounds, &item) {
                Some(call) if rounds.ours.iter().any(|known| known.id == call.id) => {}
                Some(call) => drop(rounds.hide(call)),
                None => {
                    theirs += usize::from(is_call(&item));
                    self.added.push(raw.to_string());
                }
            }
        }
        rounds.theirs = rounds.theirs.max(theirs);
        rounds.name(&mut response, HEAD);
        rounds.sum_usage(&mut response);
        let all: Vec<&String> = self.output.iter().chain(&self.added).collect();
        response.replace("output", list_of(&all));
        response.to_string()
    }

    /// Ends the round.
    pub(super) fn close(&mut self) {
        self.items.clear();
        self.output.append(&mut self.added);
    }

    /// Takes the body of a round that is not streamed, and returns what the client gets if it is the last.
    pub(super) fn whole(&mut self, rounds: &mut Rounds, body: &str) -> Option<String> {
        let response = Object::read(body)?;
        response.list("output")?;
        let is_completed = response.text("status").is_none_or(|status| status == "completed");
        let shown = self.response(rounds, response);
        rounds.end(is_completed);
        Some(shown)
    }

    /// An error in the words of the wire.
    pub(super) fn error(&self, what: &str) -> Vec<u8> {
        let number = self.events.next();
        let error = serde_json::json!({"type": "error", "code": "server_error", "message": what, "param": null,
            "sequence_number": number});
        event(Some("error"), error)
    }
}

/// The call that an item is, if it is hidden.
fn ours(rounds: &Rounds, item: &Object<'_>) -> Option<Ours> {
    let is_ours = item.text("type").as_deref() == Some("function_call") && rounds.hides(item.text("name").as_deref());
    let text = |name| item.text(name).unwrap_or_default();
    is_ours.then(|| Ours { id: text("call_id"), arguments: text("arguments"), ..Ours::default() })
}

fn is_call(item: &Object<'_>) -> bool {
    item.text("type").is_some_and(|kind| CALLS.contains(&kind.as_str()))
}
