use super::{Found, Redactor, replaced};
use std::borrow::Cow;
use std::ops::Range;

/// Returns what is found in the strings of a JSON text that are spelled with escapes, as places of the text: there the
/// text itself may not look like what it says.
pub(super) fn spans(redactor: &Redactor, json: &str) -> Vec<Found> {
    if !json.contains('\\') {
        return Vec::new();
    }
    let is_spelled = |string: &Range<usize>| json[string.clone()].contains('\\');
    strings(json).into_iter().filter(is_spelled).flat_map(|string| spans_in(redactor, json, string)).collect()
}

fn spans_in(redactor: &Redactor, json: &str, range: Range<usize>) -> Vec<Found> {
    let raw = &json[range.clone()];
    let Ok(said) = serde_json::from_str::<String>(raw) else { return Vec::new() };
    let found = redactor.spans(&said);
    if found.is_empty() {
        return found;
    }
    // Where each place of what is said stands in its spelling.
    let mut places = Vec::with_capacity(said.len() + 1);
    let (mut at, bytes) = (1, raw.as_bytes());
    for character in said.chars() {
        let length = match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(b'u')) if character.len_utf16() == 2 => 12,
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => character.len_utf8(),
        };
        places.extend(std::iter::repeat_n(range.start + at, character.len_utf8()));
        at += length;
    }
    places.push(range.start + at);
    let placed = |it: Found| Found { range: places[it.range.start]..places[it.range.end], kind: it.kind };
    found.into_iter().map(placed).collect()
}

/// Returns a JSON text with some places replaced so that it stays one: what stands for a number is a string.
pub(super) fn replaced_in(json: &str, shown: String, spans: &[(Range<usize>, String)]) -> String {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if !is_json(json) || is_json(&shown) {
        return shown;
    }
    let strings = strings(json);
    let (mut quoted, mut done) = (String::with_capacity(json.len()), 0);
    for (range, label) in spans.iter() {
        if range.start < done {
            continue;
        }
        let is_within = strings.iter().any(|string| string.start < range.start && range.end < string.end);
        quoted.push_str(&json[done..range.start]);
        quoted.push_str(&if is_within { label.clone() } else { format!("\"{label}\"") });
        done = range.end;
    }
    quoted.push_str(&json[done..]);
    // What can't be said as JSON is not said.
    if is_json(&quoted) { quoted } else { "{}".into() }
}

/// Returns a JSON text in which the strings and numbers say nothing that is found in them or across them.
pub(super) fn redacted<'j>(redactor: &Redactor, json: &'j str, label: impl Fn(&Found) -> String) -> Cow<'j, str> {
    let mut found = redactor.spans(json);
    found.extend(spans(redactor, json));
    if found.is_empty() {
        return Cow::Borrowed(json);
    }
    let found = super::united(found);
    let spans: Vec<(Range<usize>, String)> = found.iter().map(|it| (it.range.clone(), label(it))).collect();
    let mut labels = spans.iter();
    let shown = replaced(json, &found, |_, _| labels.next().map_or(String::new(), |(_, label)| label.clone()));
    Cow::Owned(replaced_in(json, shown, &spans))
}

/// Where the strings of a JSON text stand, with their quotes.
fn strings(json: &str) -> Vec<Range<usize>> {
    let (bytes, mut strings, mut at) = (json.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        at += 1;
        if bytes[start] != b'"' {
            continue;
        }
        while at < bytes.len() && bytes[at] != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        at = (at + 1).min(bytes.len());
        // A text that breaks off may end within a character.
        strings.extend(json.is_char_boundary(at).then_some(start..at));
    }
    strings
}
