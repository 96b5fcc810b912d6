//! Some of a text: lines, items of a JSON array, or the places where something is found.

use super::{Handle, Range, Refusal};
use crate::entry::Text;
use crate::wire::json::Fields;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The most lines that a search finds.
const MATCHES_MAX: usize = 20;
/// How many lines are shown on either side of one that was found.
const LINES_AROUND: usize = 2;
/// How much is shown of a long line that was found, in characters.
const LINE_CHARS_MAX: usize = 400;

/// Returns what was asked for of a text, under a marker that says how much it is of how much.
pub(super) fn excerpt(handle: Handle, text: &str, range: &Range) -> Result<Text, Refusal> {
    match range {
        Range::Whole => Ok(text.into()),
        Range::Lines(range) => lines(handle, text, range),
        Range::Items(range) => items(handle, text, range),
        Range::Search(wanted) => search(handle, text, wanted),
    }
}

fn lines(handle: Handle, text: &str, range: &RangeInclusive<usize>) -> Result<Text, Refusal> {
    let total = text.lines().count();
    let (first, last) = (*range.start(), *range.end());
    if first == 0 || first > last || first > total {
        return Err(Refusal::OutOfRange { handle, of: "lines", first, last, total });
    }
    let last = last.min(total);
    let numbered = text.lines().enumerate().skip(first - 1).take(last + 1 - first);
    let numbered: Vec<String> = numbered.map(|(at, line)| format!("{}: {line}", at + 1)).collect();
    Ok(format!("[… lines {first}–{last} of {total}, handle {handle}]\n{}", numbered.join("\n")).into())
}

fn items(handle: Handle, text: &str, range: &RangeInclusive<usize>) -> Result<Text, Refusal> {
    let list = array(text).ok_or(Refusal::NotAnArray { handle })?;
    let (first, last, total) = (*range.start(), *range.end(), list.len());
    if first > last || first >= total {
        return Err(Refusal::OutOfRange { handle, of: "items", first, last, total });
    }
    let last = last.min(total - 1);
    let asked: Vec<&str> = list[first..=last].iter().map(|item| item.get()).collect();
    let asked = asked.join(",\n");
    Ok(format!("[… items {first}–{last} of {total}, counted from 0, handle {handle}]\n[{asked}]").into())
}

/// The items of a JSON array, or of the only array among the fields of an object.
pub(super) fn array(text: &str) -> Option<Vec<&RawValue>> {
    let text = text.trim();
    if text.starts_with('[') {
        return serde_json::from_str(text).ok();
    }
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    let mut arrays = fields.values().filter(|field| field.get().starts_with('['));
    match (arrays.next(), arrays.next()) {
        (Some(field), None) => serde_json::from_str(field.get()).ok(),
        _ => None,
    }
}

fn search(handle: Handle, text: &str, wanted: &Text) -> Result<Text, Refusal> {
    let needle = wanted.to_lowercase();
    let found: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| line.to_lowercase().contains(&needle)).map(|(at, _)| at).collect();
    if found.is_empty() {
        return Err(Refusal::NoMatch { handle, text: wanted.clone() });
    }
    let told = &found[..found.len().min(MATCHES_MAX)];
    let around = |at: &usize| at.saturating_sub(LINES_AROUND)..=at + LINES_AROUND;
    let near: BTreeSet<usize> = told.iter().flat_map(around).collect();
    let (mut out, mut next) = (Vec::new(), 0);
    for (at, line) in text.lines().enumerate().filter(|(at, _)| near.contains(at)) {
        if at > next {
            out.push("…".to_string());
        }
        out.push(format!("{}: {}", at + 1, shortened(line, &needle)));
        next = at + 1;
    }
    let total = text.lines().count();
    let first = if told.len() < found.len() { format!(" (the first {} are shown)", told.len()) } else { String::new() };
    let marker = format!("[… {} of {total} lines hold {wanted:?}{first}, handle {handle}]", found.len());
    Ok(format!("{marker}\n{}", out.join("\n")).into())
}

/// A line, or of a long one the place where something is found, if it is, else its beginning.
fn shortened(line: &str, needle: &str) -> String {
    let total = line.chars().count();
    if total <= LINE_CHARS_MAX {
        return line.to_string();
    }
    let lower = line.to_lowercase();
    let at = lower.find(needle).map_or(0, |at| lower[..at].chars().count());
    let start = at.saturating_sub(LINE_CHARS_MAX / 2).min(total - LINE_CHARS_MAX);
    let shown: String = line.chars().skip(start).take(LINE_CHARS_MAX).collect();
    let (before, after) = (start, total - start - LINE_CHARS_MAX);
    let told = |left_out: usize| if left_out > 0 { format!("[… {left_out} characters]") } else { String::new() };
    format!("{}{shown}{}", told(before), told(after))
}
