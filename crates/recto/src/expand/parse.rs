//! Reading an ask: from the arguments of the tool, or from a step that an agent writes.

use super::{Ask, Handle, Range, Refusal, What};
use crate::entry::{Seq, Text};
use crate::nearest::probably;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// What the tool takes.
const FIELDS: [&str; 6] = ["handle", "index", "lines", "items", "search", "reason"];
/// How the step is called, whatever its case, hyphens and underscores.
const STEP: &str = "expandmessage";
/// How much is told of a handle that can't be read, in characters.
const HANDLE_CHARS_MAX: usize = 80;
/// The longest text that can be searched for, in characters.
const SEARCH_CHARS_MAX: usize = 200;

impl Ask {
    /// Reads the arguments of a call of the tool [`recto_expand`](super::tool()), JSON text.
    pub fn from_call(arguments: &str) -> Result<Ask, Refusal> {
        let fields: Map<String, Value> = serde_json::from_str(arguments)
            .map_err(|_| Refusal::bad(r#"the arguments are no JSON object such as {"handle": "m42"}"#))?;
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            let meant =
                probably(unknown, FIELDS).map_or(String::new(), |name| format!("; {name:?} was probably meant"));
            return Err(Refusal::bad(format!("there is no argument {unknown:?}{meant}")));
        }
        read(&fields)
    }

    /// Reads the step by which an agent without tools asks, in both spellings: `{"step": "ExpandMessage",
    /// "messageIndex": 5, "itemRange": [40, 50], "reason": "…"}` or `{"type": "expand-message", …}`, alone or as the
    /// `nextStep` of an answer. Returns `None` if it is another step, or none.
    pub fn from_step(answer: &Value) -> Option<Result<Ask, Refusal>> {
        let step = answer.get("nextStep").filter(|it| it.is_object()).unwrap_or(answer).as_object()?;
        let name = ["step", "type"].iter().find_map(|key| step.get(*key)?.as_str())?;
        let letters = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
        (letters == STEP).then(|| {
            let names =
                [("handle", "handle"), ("messageIndex", "index"), ("itemRange", "items"), ("lineRange", "lines")];
            let same = [("search", "search"), ("reason", "reason")];
            let known = names.into_iter().chain(same);
            let fields = known.filter_map(|(from, to)| Some((to.to_string(), step.get(from)?.clone())));
            read(&fields.collect())
        })
    }
}

fn read(fields: &Map<String, Value>) -> Result<Ask, Refusal> {
    let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let what = match (given("handle"), given("index")) {
        (Some(handle), _) => What::Handle(handle_of(handle)?),
        // A handle is a better name than an index, so it is taken in its place.
        (None, Some(Value::String(handle))) if Handle::parse(handle).is_some() => {
            What::Handle(handle_of(&Value::String(handle.clone()))?)
        }
        (None, Some(index)) => {
            let index = whole_number(index);
            What::Index(index.ok_or_else(|| Refusal::bad("the index of a message is a number from 0"))?)
        }
        (None, None) => return Err(Refusal::bad(r#"it names no message: give its handle, such as "m42""#)),
    };
    let ranges = [given("lines").map(lines), given("items").map(items), given("search").map(search)];
    let mut ranges = ranges.into_iter().flatten();
    let range = match (ranges.next(), ranges.next()) {
        (None, _) => Range::Whole,
        (Some(range), None) => range?,
        (Some(_), Some(_)) => return Err(Refusal::bad("give only one of lines, items and search")),
    };
    let reason = match given("reason") {
        Some(Value::String(reason)) => Some(Text::from(reason.trim())).filter(|reason| !reason.is_empty()),
        Some(_) => return Err(Refusal::bad("the reason is no text")),
        None => None,
    };
    Ok(Ask { what, range, reason, calls: None })
}

fn handle_of(value: &Value) -> Result<Handle, Refusal> {
    let text = match value {
        Value::String(text) => text,
        number => {
            let seq = whole_number(number).ok_or_else(|| Refusal::bad(r#"a handle is a text such as "m42""#))?;
            return Ok(Handle::entry(Seq(seq as u64)));
        }
    };
    let shown: String = text.chars().take(HANDLE_CHARS_MAX).collect();
    Handle::parse(text).ok_or(Refusal::UnknownHandle { handle: shown.into() })
}

fn lines(value: &Value) -> Result<Range, Refusal> {
    pair(value).map(Range::Lines).ok_or_else(|| Refusal::bad("lines are two numbers from 1, such as [10, 20]"))
}

fn items(value: &Value) -> Result<Range, Refusal> {
    pair(value).map(Range::Items).ok_or_else(|| Refusal::bad("items are two numbers from 0, such as [40, 50]"))
}

fn search(value: &Value) -> Result<Range, Refusal> {
    let text = value.as_str().filter(|text| !text.trim().is_empty());
    let short = text.filter(|text| text.chars().nth(SEARCH_CHARS_MAX).is_none());
    short
        .map(|text| Range::Search(text.into()))
        .ok_or_else(|| Refusal::bad(format!("what to search for is a text of at most {SEARCH_CHARS_MAX} characters")))
}

/// Two numbers, as a list or as in `"40-50"`; one alone is both.
fn pair(value: &Value) -> Option<RangeInclusive<usize>> {
    let numbers: Vec<usize> = match value {
        Value::Array(list) => list.iter().map(whole_number).collect::<Option<_>>()?,
        Value::String(text) => {
            let parts = text.split(['-', '–', ',', ':', '.']).map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| part.parse().ok()).collect::<Option<_>>()?
        }
        number => vec![whole_number(number)?],
    };
    match numbers[..] {
        [one] => Some(one..=one),
        [first, last] => Some(first..=last),
        _ => None,
    }
}

/// A number from 0, also where it is spelled `40.0` or `"40"`.
fn whole_number(value: &Value) -> Option<usize> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        number => number.as_u64().or_else(|| {
            let number = number.as_f64().filter(|it| it.fract() == 0.0 && (0.0..=MOST).contains(it))?;
            Some(number as u64)
        }),
    };
    usize::try_from(number?).ok()
}

/// The largest whole number that a JSON number with a fraction can be trusted with.
const MOST: f64 = 9_007_199_254_740_991.0;
