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
                let untold = data.object("response").and_then(|mut response| {
                    rounds.name(&mut response, HEAD);
                    untell(rounds, &mut response);
                    response.is_changed().then(|| response.to_string())
                });
                if let Some(response) = untold {
                    data.replace("response", response);
                }
            }
            Some(end @ ("completed" | "incomplete" | "failed" | "cancelled")) => {
                let response = data.object("response").and_then(|response| self.response(rounds, response));
                rounds.end(end == "completed");
                if let Some(response) = response {
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

    /// Whether an event surely brings nothing but words and its number, which is learnt.
    pub(super) fn passes(&mut self, rounds: &Rounds, text: &str) -> bool {
        const TELLING: [&str; 6] = ["\"item\"", "\"response\"", ".completed", ".incomplete", ".failed", ".cancelled"];
        // With another object in it, a field might stand anywhere.
        if text.matches('{').count() > 1 || TELLING.iter().any(|word| text.contains(word)) {
            return false;
        }
        let mut numbers = text.split("\"sequence_number\"").skip(1);
        match (numbers.next(), numbers.next()) {
            (None, _) => true,
            (Some(behind), None) => {
                let digits = behind.trim_start_matches([':', ' ']);
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                let number = digits[..end].parse().ok().filter(|_| digits[end..].starts_with([',', '}', ' ']));
                number.map(|number| self.events.number(number, rounds)).is_some()
            }
            _ => false,
        }
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

    /// Takes the response of a round at its end, and returns what the client gets of it if it is the last, where that is
    /// not the same. Some servers tell of items only here.
    fn response(&mut self, rounds: &mut Rounds, mut response: Object<'_>) -> Option<String> {
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
        untell(rounds, &mut response);
        if rounds.has_hidden {
            let all: Vec<&String> = self.output.iter().chain(&self.added).collect();
            response.replace("output", list_of(&all));
        }
        response.is_changed().then(|| response.to_string())
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
        Some(shown.unwrap_or_else(|| body.into()))
    }

    /// An error in the words of the wire.
    pub(super) fn error(&self, what: &str) -> Vec<u8> {
        let number = self.events.next();
        let error = serde_json::json!({"type": "error", "code": "server_error", "message": what, "param": null,
            "sequence_number": number});
        event(Some("error"), error)
    }
}

/// Takes the tool out of what a response tells of those that were offered.
fn untell(rounds: &mut Rounds, response: &mut Object<'_>) {
    let is_ours = |raw: &&str| Object::read(raw).is_some_and(|tool| rounds.hides(tool.text("name").as_deref()));
    let Some(tools) = response.list("tools") else { return };
    let (ours, others): (Vec<&str>, Vec<&str>) = tools.into_iter().partition(is_ours);
    let (is_told, others) = (!ours.is_empty(), list_of(&others));
    if is_told {
        rounds.has_untold = true;
        response.replace("tools", others);
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
