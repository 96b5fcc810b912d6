//! What is known of the rounds so far, whatever their wire.

use super::object::Object;
use super::{HIDDEN_BYTES_MAX, Round};
use crate::entry::{Arguments, Call};
use crate::error::Error;
use crate::wire::sse;
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::fmt;

/// The rounds of one response.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// The tool whose calls are hidden.
    pub(super) tool: String,
    /// Whether a call was hidden in any round. From then on nothing is numbered as the provider numbers it.
    pub(super) has_hidden: bool,
    /// Whether the tool was taken out of what a response tells of those that were offered.
    pub(super) has_untold: bool,
    /// Whether a round came before this one.
    pub(super) is_later: bool,
    /// The calls of this round that were hidden.
    pub(super) ours: Vec<Ours>,
    /// How many calls of this round the client has to answer.
    pub(super) theirs: usize,
    /// What this round has used, as far as it was told.
    pub(super) usage: Option<Value>,
    /// What would end the response if this round were the last, for the client.
    pub(super) withheld: Vec<u8>,
    end: Option<End>,
    /// Whether a round has been closed, and nothing has come of the next.
    is_between: bool,
    head: Vec<(&'static str, String)>,
    usage_before: Option<Value>,
    kept_bytes: usize,
}

/// A hidden call, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Ours {
    pub(super) id: String,
    /// What its input began with, where arguments are an object.
    pub(super) input: Option<String>,
    /// The arguments so far.
    pub(super) arguments: String,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Ended,
    Mixed,
    Called,
}

impl Rounds {
    /// Returns the rounds of a response before it has begun, hiding the calls of a tool.
    pub(super) fn hiding(tool: &str) -> Rounds {
        Rounds { tool: tool.into(), ..Rounds::default() }
    }

    /// Whether a call of that name is hidden.
    pub(super) fn hides(&self, name: Option<&str>) -> bool {
        name == Some(self.tool.as_str())
    }

    /// Hides a call, and returns its number among those of this round.
    pub(super) fn hide(&mut self, call: Ours) -> usize {
        self.has_hidden = true;
        self.ours.push(call);
        self.ours.len() - 1
    }

    /// Adds a piece to the arguments of a hidden call.
    pub(super) fn grow(&mut self, at: usize, piece: &str) -> Result<(), Error> {
        if let Some(call) = self.ours.get_mut(at) {
            call.arguments.push_str(piece);
        }
        self.keep(piece.len())
    }

    /// Takes the arguments of a hidden call as they were told when it was done.
    pub(super) fn say(&mut self, at: usize, arguments: &str) -> Result<(), Error> {
        if let Some(call) = self.ours.get_mut(at) {
            call.arguments.clear();
        }
        self.grow(at, arguments)
    }

    /// Keeps bytes that would end the response if this round were the last.
    pub(super) fn withhold(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.withheld.extend_from_slice(bytes);
        self.keep(bytes.len())
    }

    /// Counts bytes that are kept and not passed on.
    fn keep(&mut self, bytes: usize) -> Result<(), Error> {
        self.kept_bytes += bytes;
        if self.kept_bytes <= HIDDEN_BYTES_MAX {
            return Ok(());
        }
        let most = HIDDEN_BYTES_MAX >> 20;
        Err(Error::input(format!("more than {most} MiB of calls of {:?} in one round", self.tool)))
    }

    /// Takes the end of the round: calls are answered if they are why it ended.
    pub(super) fn end(&mut self, is_for_calls: bool) {
        self.end = Some(match (is_for_calls && !self.ours.is_empty(), self.theirs) {
            (true, 0) => End::Called,
            (true, _) => End::Mixed,
            (false, _) => End::Ended,
        });
    }

    /// Whether the round has ended with calls of the hidden tool alone.
    pub(super) fn is_called(&self) -> bool {
        self.end == Some(End::Called)
    }

    /// Gives an object of a later round the fields that are the same all over a response; the first one tells them.
    pub(super) fn name(&mut self, object: &mut Object<'_>, names: &[&'static str]) {
        if self.head.is_empty() && object.text("id").is_some_and(|id| !id.is_empty()) {
            let told = |name: &&'static str| Some((*name, object.raw(name)?.to_string()));
            self.head = names.iter().filter_map(told).collect();
        } else if self.is_later {
            self.head.iter().for_each(|(name, raw)| object.replace(name, raw));
        }
    }

    /// Whether the fields are known that are the same all over a response.
    pub(super) fn is_named(&self) -> bool {
        !self.head.is_empty()
    }

    /// Takes what an object tells of the round's usage, and writes the sum of all rounds in its place.
    pub(super) fn sum_usage(&mut self, object: &mut Object<'_>) {
        let Some(usage) = object.value("usage") else { return };
        self.usage = Some(updated(self.usage.take(), usage));
        if let (Some(before), Some(usage)) = (&self.usage_before, &self.usage) {
            object.replace("usage", sum(before.clone(), usage.clone()));
        }
    }

    /// Closes the round, and says what it came to.
    pub(super) fn close(&mut self, bytes: Vec<u8>) -> Round {
        let calls = std::mem::take(&mut self.ours).into_iter().map(|call| call.whole(&self.tool)).collect();
        match self.end {
            Some(End::Called) => {
                let usage = self.usage.take();
                self.usage_before = match (self.usage_before.take(), usage) {
                    (Some(before), Some(usage)) => Some(sum(before, usage)),
                    (before, usage) => before.or(usage),
                };
                (self.is_later, self.end, self.theirs, self.kept_bytes) = (true, None, 0, 0);
                self.is_between = true;
                Round::Called { calls }
            }
            Some(End::Mixed) => Round::Mixed { bytes, calls },
            Some(End::Ended) | None => Round::Ended { bytes },
        }
    }

    /// Forgets what would have ended the response, if this is another round.
    pub(super) fn go_on(&mut self) {
        if std::mem::take(&mut self.is_between) {
            self.withheld.clear();
        }
    }
}

impl Ours {
    /// The call as it stands. Input that was cut off is no JSON, and stays as it is.
    fn whole(self, name: &str) -> Call {
        let is_json = || serde_json::from_str::<&RawValue>(&self.arguments).is_ok();
        let arguments = match self.input {
            Some(input) if self.arguments.is_empty() => Arguments::Object(input.into()),
            Some(_) if is_json() => Arguments::Object(self.arguments.trim().into()),
            _ => Arguments::String(self.arguments.into()),
        };
        Call { id: self.id.into(), name: name.into(), arguments }
    }
}

/// Numbers of what a client is shown: those of the provider, until something was hidden, and then without gaps.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: u64,
}

impl Numbers {
    /// Returns the number of the next one, which the provider numbers so.
    pub(super) fn number(&mut self, given: u64, rounds: &Rounds) -> u64 {
        let number = if rounds.has_hidden { self.next } else { given };
        self.next = number.saturating_add(1);
        number
    }

    /// Returns the number that comes next, without taking it.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
}

/// An event with its bytes.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) event: sse::Event,
    pub(super) raw: Vec<u8>,
}

impl Told {
    /// Returns the bytes of the event with data that may have changed; if they haven't, it is as it came.
    pub(super) fn with(&self, data: &Object<'_>) -> Cow<'_, [u8]> {
        match data.is_changed() {
            true => Cow::Owned(event(self.event.name.as_deref(), data)),
            false => Cow::Borrowed(&self.raw),
        }
    }
}

/// Returns the bytes of an event.
pub(super) fn event(name: Option<&str>, data: impl fmt::Display) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    // Data that were told in several lines still are.
    for line in data.to_string().lines() {
        out.extend_from_slice(format!("data: {line}\n").as_bytes());
    }
    out.push(b'\n');
    out
}

/// What a round has used after more was told: the newest of each field.
fn updated(before: Option<Value>, now: Value) -> Value {
    match (before, now) {
        (Some(Value::Object(mut fields)), Value::Object(now)) => {
            fields.extend(now.into_iter().filter(|(_, value)| !value.is_null()));
            Value::Object(fields)
        }
        (_, now) => now,
    }
}

/// The sum of two usages: of every number in them, however deep; lists go on, of anything else the later one counts.
fn sum(before: Value, now: Value) -> Value {
    match (before, now) {
        (Value::Number(before), Value::Number(now)) => Value::Number(added(&before, &now)),
        (Value::Object(mut fields), Value::Object(now)) => {
            for (name, value) in now {
                let value = match fields.remove(&name) {
                    Some(before) => sum(before, value),
                    None => value,
                };
                fields.insert(name, value);
            }
            Value::Object(fields)
        }
        (Value::Array(mut list), Value::Array(now)) => {
            list.extend(now);
            Value::Array(list)
        }
        (before, Value::Null) => before,
        (_, now) => now,
    }
}

fn added(before: &Number, now: &Number) -> Number {
    match (before.as_u64(), now.as_u64()) {
        (Some(before), Some(now)) => before.saturating_add(now).into(),
        _ => {
            let float = before.as_f64().zip(now.as_f64()).map(|(before, now)| before + now);
            float.and_then(Number::from_f64).unwrap_or_else(|| now.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_number_of_a_usage_is_summed_however_deep() {
        let before = json!({"a": 1, "b": {"c": 2, "gone": 7}, "cost": 0.5, "tier": "x", "late": null, "all": [1]});
        let now = json!({"a": 3, "b": {"c": 5, "d": 1}, "cost": 1, "tier": "y", "late": 4, "b2": null, "all": [2]});
        let expected = json!({"a": 4, "b": {"c": 7, "d": 1, "gone": 7}, "cost": 1.5, "tier": "y", "late": 4,
            "b2": null, "all": [1, 2]});
        assert_eq!(sum(before, now), expected);
        assert_eq!(sum(json!(u64::MAX), json!(1)), json!(u64::MAX));
        assert_eq!(sum(json!({"a": 1}), Value::Null), json!({"a": 1}));
    }

    #[test]
    fn a_usage_that_is_told_twice_counts_once() {
        let told = updated(Some(json!({"in": 5, "out": 1, "x": {"y": 1}})), json!({"in": null, "out": 9}));
        assert_eq!(told, json!({"in": 5, "out": 9, "x": {"y": 1}}));
    }
}
