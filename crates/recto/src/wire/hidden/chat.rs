//! OpenAI Chat Completions: one id, one role, calls numbered from 0, one reason to finish, one sum of usage.

use super::object::{Object, list_of, quoted};
use super::rounds::{Numbers, Ours, Rounds, Told, event};
use crate::error::Error;

/// The fields that are the same all over a response.
const HEAD: &[&str] = &["id", "created", "model"];

/// The reasons to finish after which calls are answered. Some servers say `stop` although they call tools.
const FOR_CALLS: &[&str] = &["tool_calls", "stop"];

/// The fields of a message whose texts go on from round to round.
const TEXTS: &[&str] = &["content", "refusal", "reasoning", "reasoning_content"];

/// How many bytes of chunks wait at most for the name of a call, which other servers tell at once.
const UNNAMED_BYTES_MAX: usize = 64 * 1024;

/// What is known of the chunks so far.
#[derive(Debug, Default)]
pub(super) struct Chat {
    has_role: bool,
    /// The calls of this round.
    calls: Vec<CallSoFar>,
    numbers: Numbers,
    /// Chunks that wait because of a call whose name has not come.
    waiting: Vec<Chunk>,
    /// The message of the rounds so far, where they are not streamed.
    message: Option<String>,
    /// The same of the probabilities of its tokens.
    logprobs: Option<String>,
}

/// A chunk, and which calls its pieces belong to.
#[derive(Debug)]
struct Chunk {
    told: Told,
    pieces: Vec<usize>,
}

#[derive(Debug, Default)]
struct CallSoFar {
    index: Option<u64>,
    id: String,
    name: String,
    place: Option<Place>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// The client's number of it.
    Shown(u64),
    /// Which of the calls that are hidden it is.
    Hidden(usize),
}

impl Chat {
    /// Takes an event, and writes what the client gets of it.
    pub(super) fn event(&mut self, rounds: &mut Rounds, told: Told, out: &mut Vec<u8>) -> Result<(), Error> {
        let choice = first_choice(&told.event.data);
        let is_end = told.event.data.trim() == "[DONE]"
            || choice.as_deref().and_then(Object::read).is_some_and(|choice| choice.text("finish_reason").is_some());
        let pieces = choice.map(|choice| self.learn(&choice)).unwrap_or_default();
        self.waiting.push(Chunk { told, pieces });
        let bytes: usize = self.waiting.iter().map(|chunk| chunk.told.raw.len()).sum();
        if self.calls.iter().any(|call| call.name.is_empty()) && !is_end && bytes <= UNNAMED_BYTES_MAX {
            return Ok(());
        }
        self.flush(rounds, out)
    }

    /// Whether a chunk surely brings nothing but words.
    pub(super) fn passes(&self, rounds: &Rounds, text: &str) -> bool {
        let is_waiting = !self.waiting.is_empty() || self.calls.iter().any(|call| call.name.is_empty());
        let is_null = |name: &str| {
            let mut told = text.split(name).skip(1);
            told.all(|behind| behind.trim_start_matches([':', ' ']).starts_with("null"))
        };
        !is_waiting
            && rounds.is_named()
            && (self.has_role || !text.contains("\"role\""))
            && !text.contains("\"tool_calls\"")
            && is_null("\"usage\"")
            && is_null("\"finish_reason\"")
    }

    /// Writes the chunks that wait; a call that has no name is the client's.
    pub(super) fn flush(&mut self, rounds: &mut Rounds, out: &mut Vec<u8>) -> Result<(), Error> {
        for chunk in std::mem::take(&mut self.waiting) {
            self.chunk(rounds, &chunk, out)?;
        }
        Ok(())
    }

    /// Ends the round.
    pub(super) fn close(&mut self) {
        self.calls.clear();
    }

    /// Learns of the calls of which pieces have come, and returns which they are. The number of a piece says of which
    /// call it is; an id of its own begins another where servers give all the same number, or none.
    fn learn(&mut self, choice: &str) -> Vec<usize> {
        let choice = Object::read(choice).unwrap_or_default();
        let delta = choice.object("delta").unwrap_or_default();
        let mut numbers = Vec::new();
        for raw in delta.list("tool_calls").unwrap_or_default() {
            let piece = Object::read(raw).unwrap_or_default();
            let (index, id) = (piece.number("index"), piece.text("id").filter(|id| !id.is_empty()));
            let is_same = |call: &CallSoFar| {
                let is_id = id.as_ref().is_none_or(|id| call.id.is_empty() || call.id == *id);
                is_id && (index.is_none() || call.index == index)
            };
            let at = self.calls.iter().rposition(is_same).unwrap_or_else(|| {
                self.calls.push(CallSoFar { index, ..CallSoFar::default() });
                self.calls.len() - 1
            });
            let call = &mut self.calls[at];
            call.id = id.unwrap_or(std::mem::take(&mut call.id));
            let told = piece.object("function").or(piece.object("custom")).unwrap_or_default();
            if let Some(name) = told.text("name").filter(|_| call.name.is_empty()) {
                call.name = name;
            }
            numbers.push(at);
        }
        numbers
    }

    /// Writes what the client gets of a chunk.
    fn chunk(&mut self, rounds: &mut Rounds, chunk: &Chunk, out: &mut Vec<u8>) -> Result<(), Error> {
        let told = &chunk.told;
        let Some(mut data) = Object::read(&told.event.data) else {
            if rounds.is_called() {
                return rounds.withhold(&told.raw);
            }
            out.extend_from_slice(&told.raw);
            return Ok(());
        };
        rounds.name(&mut data, HEAD);
        rounds.sum_usage(&mut data);
        if rounds.is_called() {
            return rounds.withhold(&told.with(&data));
        }
        let Some((at, mut choices)) = choices(&data) else {
            out.extend_from_slice(&told.with(&data));
            return Ok(());
        };
        let given = choices[at].clone();
        let mut choice = Object::read(&given).unwrap_or_default();
        let mut delta = choice.object("delta").unwrap_or_default();
        self.role(rounds, &mut delta);
        self.pieces(rounds, &mut delta, &chunk.pieces)?;
        let says = !delta.fields().all(|(_, raw)| matches!(raw, "null" | "\"\"" | "[]" | "{}"));
        let less = delta.is_changed().then(|| delta.to_string());
        if let Some(reason) = choice.text("finish_reason") {
            rounds.end(FOR_CALLS.contains(&reason.as_str()));
        }
        if rounds.is_called() {
            choices[at] = ending(&given);
            let mut end = data.clone();
            end.replace("choices", list_of(&choices));
            rounds.withhold(&told.with(&end))?;
            choice.replace("finish_reason", "null");
            data.replace("usage", "null");
        }
        let is_end = choice.text("finish_reason").is_some();
        if !says && !is_end && (less.is_some() || rounds.is_called()) && choices.len() == 1 {
            return Ok(());
        }
        if let Some(less) = less {
            choice.replace("delta", less);
        }
        if choice.is_changed() {
            choices[at] = choice.to_string();
            data.replace("choices", list_of(&choices));
        }
        out.extend_from_slice(&told.with(&data));
        Ok(())
    }

    /// Lets the role be said once.
    fn role(&mut self, rounds: &Rounds, delta: &mut Object<'_>) {
        if delta.text("role").is_none() {
            return;
        }
        if self.has_role && rounds.is_later {
            delta.remove("role");
        }
        self.has_role = true;
    }

    /// Takes the pieces of hidden calls out, and numbers those of the others.
    fn pieces(&mut self, rounds: &mut Rounds, delta: &mut Object<'_>, calls: &[usize]) -> Result<(), Error> {
        if calls.is_empty() {
            return Ok(());
        }
        let mut shown = Vec::new();
        for (raw, at) in delta.list("tool_calls").unwrap_or_default().into_iter().zip(calls) {
            let mut piece = Object::read(raw).unwrap_or_default();
            match self.place(rounds, *at) {
                Place::Hidden(ours) => {
                    let told = piece.object("function").or(piece.object("custom")).unwrap_or_default();
                    rounds.grow(ours, &arguments(&told))?;
                }
                Place::Shown(number) => {
                    if rounds.has_hidden {
                        piece.replace("index", number);
                    }
                    shown.push(if piece.is_changed() { piece.to_string() } else { raw.to_string() });
                }
            }
        }
        match shown.is_empty() {
            true => delta.remove("tool_calls"),
            false if rounds.has_hidden => delta.replace("tool_calls", list_of(&shown)),
            false => {}
        }
        Ok(())
    }

    /// Where a call goes; what was said once stays.
    fn place(&mut self, rounds: &mut Rounds, at: usize) -> Place {
        let call = &mut self.calls[at];
        *call.place.get_or_insert_with(|| {
            if rounds.hides(Some(&call.name)) {
                let id = if call.id.is_empty() { format!("call_{at}") } else { call.id.clone() };
                Place::Hidden(rounds.hide(Ours { id, ..Ours::default() }))
            } else {
                rounds.theirs += 1;
                Place::Shown(self.numbers.number(call.index.unwrap_or(at as u64), rounds))
            }
        })
    }

    /// Takes the body of a round that is not streamed, and returns what the client gets if it is the last.
    pub(super) fn whole(&mut self, rounds: &mut Rounds, body: &str) -> Option<String> {
        let mut data = Object::read(body)?;
        let (at, mut choices) = choices(&data)?;
        let mut choice = Object::read(&choices[at])?;
        let mut message = choice.object("message")?;
        rounds.name(&mut data, HEAD);
        rounds.sum_usage(&mut data);
        let mut shown = Vec::new();
        for (at, raw) in message.list("tool_calls").unwrap_or_default().into_iter().enumerate() {
            let call = Object::read(raw).unwrap_or_default();
            let told = call.object("function").or(call.object("custom")).unwrap_or_default();
            if rounds.hides(told.text("name").as_deref()) {
                let id = call.text("id").unwrap_or_else(|| format!("call_{at}"));
                rounds.hide(Ours { id, arguments: arguments(&told), ..Ours::default() });
            } else {
                rounds.theirs += 1;
                shown.push(raw.to_string());
            }
        }
        match shown.is_empty() {
            true => message.remove("tool_calls"),
            false => message.replace("tool_calls", list_of(&shown)),
        }
        let message = grown(self.message.take(), message.to_string());
        let logprobs = choice.raw("logprobs").unwrap_or("null").to_string();
        let logprobs = grown(self.logprobs.take(), logprobs);
        (self.message, self.logprobs) = (Some(message.clone()), Some(logprobs.clone()));
        choice.replace("message", message);
        choice.replace("logprobs", logprobs);
        let reason = choice.text("finish_reason");
        rounds.end(reason.is_some_and(|reason| FOR_CALLS.contains(&reason.as_str())));
        if rounds.is_called() {
            choice.replace("finish_reason", quoted("stop"));
        }
        choices[at] = choice.to_string();
        data.replace("choices", list_of(&choices));
        Some(data.to_string())
    }
}

/// The choices of a chunk or body, and which of them is the first.
fn choices(data: &Object<'_>) -> Option<(usize, Vec<String>)> {
    let choices: Vec<String> = data.list("choices")?.into_iter().map(str::to_string).collect();
    let is_first = |raw: &String| Object::read(raw).is_some_and(|it| it.number("index").unwrap_or(0) == 0);
    Some((choices.iter().position(is_first)?, choices))
}

/// The choice of a chunk that ends a message whose calls are all hidden.
fn ending(choice: &str) -> String {
    let mut choice = Object::read(choice).unwrap_or_default();
    choice.replace("delta", "{}");
    choice.replace("finish_reason", quoted("stop"));
    choice.to_string()
}

/// The text of the first choice of a chunk.
fn first_choice(data: &str) -> Option<String> {
    let (at, mut choices) = choices(&Object::read(data)?)?;
    Some(choices.swap_remove(at))
}

/// The arguments of a call, or a piece of them.
fn arguments(told: &Object<'_>) -> String {
    let given = |name| told.text(name).or_else(|| told.raw(name).filter(|raw| *raw != "null").map(str::to_string));
    given("arguments").or_else(|| given("input")).unwrap_or_default()
}

/// What an object says after another round: texts and lists go on, of any other field the newest counts.
fn grown(before: Option<String>, now: String) -> String {
    let Some(before) = before.filter(|before| before != "null") else { return now };
    let (Some(mut whole), Some(more)) = (Object::read(&before), Object::read(&now)) else { return before };
    for (name, raw) in more.fields().filter(|(_, raw)| *raw != "null") {
        let raw = joined(name, whole.raw(name).unwrap_or("null"), raw);
        whole.set(name, raw);
    }
    whole.to_string()
}

/// What a field says after another round, in the spelling of both.
fn joined(name: &str, before: &str, now: &str) -> String {
    let between = |raw: &str, open: char, close: char| Some(raw.strip_prefix(open)?.strip_suffix(close)?.to_string());
    let both = |open, close| between(before, open, close).zip(between(now, open, close));
    if let (true, Some((before, now))) = (TEXTS.contains(&name), both('"', '"')) {
        return format!("\"{before}{now}\"");
    }
    match both('[', ']') {
        Some((before, now)) if before.trim().is_empty() || now.trim().is_empty() => format!("[{before}{now}]"),
        Some((before, now)) => format!("[{before},{now}]"),
        None => now.to_string(),
    }
}

/// An error in the words of the wire.
pub(super) fn error(what: &str) -> Vec<u8> {
    let error = serde_json::json!({"message": what, "type": "api_error", "param": null, "code": null});
    event(None, serde_json::json!({ "error": error }))
}
