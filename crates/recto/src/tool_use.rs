//! Tool uses: what a call does, and to which file or command, as far as its name and arguments tell.
//!
//! Agents call the same few deeds by many names. [`Rule`]s translate them: a policy's own come first, then the table
//! of the tools that common agents have. Shell commands are looked into where they plainly read, search or write one
//! file; any other command is one that runs. What can't be told is not guessed: arguments that are no JSON object, or
//! lack the one that a rule names, make no use at all.

mod shell; // commands that are really reads, searches or writes
mod table; // the tools of common agents

use crate::digest::{Digest, Hasher};
use crate::entry::{Call, Text};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How many files one call may speak of; a patch that touches more is known by its first ones.
const USES_MAX: usize = 64;
/// How many lines a read without numbers shows at most, in the tools that have such a bound.
pub const READ_LINES_MAX: u32 = 2_000;
/// Arguments that say how a call is made, not what it asks for.
const MANNER: [&str; 8] = [
    "description",
    "timeout",
    "timeout_ms",
    "max_output_tokens",
    "yield_time_ms",
    "explanation",
    "requires_approval",
    "justification",
];
/// Arguments that name the folder in which a call is made.
const FOLDERS: [&str; 4] = ["workdir", "cwd", "working_directory", "directory"];

/// What a call does to what it speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// It shows a file, or lines of it.
    #[serde(rename = "reads")]
    Read,
    /// It looks for something, and changes nothing.
    #[serde(rename = "searches")]
    Search,
    /// It writes a file whole.
    #[serde(rename = "writes")]
    Write,
    /// It changes a file in places.
    #[serde(rename = "edits")]
    Edit,
    /// It runs a command.
    #[serde(rename = "runs")]
    Run,
    /// Something else, of which nothing follows for other calls.
    #[serde(rename = "other")]
    Other,
}

/// What one call does to one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// What it does.
    pub deed: Deed,
    /// The file, or the command; of a search the place it looks in.
    pub target: Option<Text>,
    /// The lines that a read shows, both ends included, from 1; `None` is the whole file, or lines nobody named.
    pub range: Option<(u32, u32)>,
    /// Whether it is about the whole of its target.
    pub is_whole: bool,
    /// Identifies what was asked for: a call with the same one asks for the very same again.
    pub same: Digest,
}

/// What one call does, and what identifies its target: worked out once, for plans compare it at every call.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    pub(crate) does: ToolUse,
    pub(crate) about: Option<Digest>,
}

impl Used {
    /// Everything that a call does, by a policy's own rules first.
    pub(crate) fn all(call: &Call, rules: &[Rule]) -> Vec<Used> {
        let about = |does: &ToolUse| does.target.as_ref().map(|target| Digest::of(target.as_bytes()));
        uses(call, rules).into_iter().map(|does| Used { about: about(&does), does }).collect()
    }
}

/// Tells what calls of a tool do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The tool's name; `*` stands for anything.
    pub tool: Text,
    /// What it does.
    pub does: Deed,
    /// The argument that holds the file or the command; several names are parted by `|`, the first that is there counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Text>,
    /// Arguments with which a call is not about the whole of its target, such as `offset`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole_unless: Vec<Text>,
    /// Arguments that must have these values, for a tool that does several things.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<Text, Text>,
}

impl Rule {
    /// Checks that it can apply to anything.
    pub fn check(&self) -> Result<(), Error> {
        let needs_target = matches!(self.does, Deed::Read | Deed::Write | Deed::Edit | Deed::Run);
        if self.tool.is_empty() {
            return Err(Error::settings("rules: tool is empty", "name a tool; `*` stands for anything"));
        }
        if needs_target && self.target.as_deref().is_none_or(str::is_empty) {
            let what = format!("rules: tool {:?} has no target", &*self.tool);
            return Err(Error::settings(what, "name the argument that holds the file or the command"));
        }
        Ok(())
    }

    fn applies(&self, name: &str, arguments: &Map<String, Value>) -> bool {
        let has = |(key, value): (&Text, &Text)| arguments.get(&**key).and_then(Value::as_str) == Some(value);
        matches(&self.tool, name) && self.with.iter().all(has)
    }
}

/// Returns what a call does, by a policy's own rules first; of a call that touches several files, the first.
pub fn recognise(call: &Call, rules: &[Rule]) -> Option<ToolUse> {
    uses(call, rules).into_iter().next()
}

/// Returns everything that a call does: a patch may touch several files.
pub fn uses(call: &Call, rules: &[Rule]) -> Vec<ToolUse> {
    let own = plain_name(&call.name);
    // Most tools are none of ours, and most arguments are long.
    if !rules.iter().any(|rule| matches(&rule.tool, &call.name)) && !table::knows(&own) {
        return Vec::new();
    }
    let Ok(Value::Object(arguments)) = serde_json::from_str(call.arguments.as_str()) else { return Vec::new() };
    if let Some(rule) = rules.iter().find(|rule| rule.applies(&call.name, &arguments)) {
        return by_rule(rule, &call.name, &arguments);
    }
    // Some hosts offer one tool that calls all others.
    let inner = arguments.get("tool_name").and_then(Value::as_str).zip(arguments.get("params"));
    match inner {
        Some((name, Value::Object(params))) if table::is_dispatcher(&own) => {
            let found = rules.iter().find(|rule| rule.applies(name, params)).or_else(|| table::find(name, params));
            found.map(|rule| by_rule(rule, name, params)).unwrap_or_default()
        }
        _ => table::find(&own, &arguments).map(|rule| by_rule(rule, &own, &arguments)).unwrap_or_default(),
    }
}

/// A tool's name without the server or namespace that offers it, in lower case.
fn plain_name(name: &str) -> String {
    let last = name.rsplit("__").next().unwrap_or(name);
    last.rsplit(['.', '/', ':']).next().unwrap_or(last).to_lowercase()
}

fn by_rule(rule: &Rule, name: &str, arguments: &Map<String, Value>) -> Vec<ToolUse> {
    let names = rule.target.iter().flat_map(|names| names.split('|'));
    let target = names.into_iter().find_map(|name| arguments.get(name)).and_then(as_text);
    let folder = FOLDERS.iter().find_map(|name| arguments.get(*name)).and_then(Value::as_str);
    match (rule.does, target) {
        (Deed::Run, Some(command)) => shell::uses(&command, folder),
        (Deed::Edit, Some(patch)) if patch.contains(shell::PATCH) => shell::patched(&patch, folder),
        (Deed::Read | Deed::Write | Deed::Edit | Deed::Run, None) => Vec::new(),
        (deed, target) => {
            let is_whole = deed != Deed::Edit
                && !rule.whole_unless.iter().any(|name| arguments.get(&**name).is_some_and(|it| !it.is_null()));
            let range = if is_whole { None } else { range(arguments) };
            let target = target.map(|target| path_in(folder, &target));
            vec![ToolUse { deed, target, range, is_whole, same: same(name, arguments) }]
        }
    }
}

/// A text, or a list of texts as one.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.filter(|words| !words.is_empty()).map(|words| shell::joined(&words))
        }
        _ => None,
    }
}

/// The lines that some arguments name, in any of the usual ways.
fn range(arguments: &Map<String, Value>) -> Option<(u32, u32)> {
    let number = |value: &Value| -> Option<i64> { value.as_i64().or_else(|| value.as_str()?.trim().parse().ok()) };
    let named = |names: &[&str]| names.iter().find_map(|name| arguments.get(*name)).and_then(number);
    // An end of -1 is the end of the file.
    let line = |line: i64| u32::try_from(line).unwrap_or(u32::MAX);
    let pair = ["view_range", "range", "lines"].iter().find_map(|name| arguments.get(*name)?.as_array());
    if let Some([first, last]) = pair.map(Vec::as_slice) {
        return Some((line(number(first)?), line(number(last)?)));
    }
    let first = named(&["offset", "start_line", "start_line_one_indexed", "line_start", "from_line"]);
    let last = named(&["end_line", "end_line_one_indexed_inclusive", "line_end", "to_line"]);
    match (first, last, named(&["limit"])) {
        (first, Some(last), _) => Some((line(first.unwrap_or(1)), line(last))),
        (first, None, Some(limit)) => {
            let first = line(first.unwrap_or(1)).max(1);
            Some((first, first.saturating_add(line(limit)).saturating_sub(1)))
        }
        (Some(first), None, None) => Some((line(first), line(first).saturating_add(READ_LINES_MAX - 1))),
        (None, None, None) => None,
    }
}

/// What identifies a call's wish: its tool and its arguments in order, without those that say only how.
fn same(name: &str, arguments: &Map<String, Value>) -> Digest {
    let mut hasher = Hasher::new();
    hasher.text(name);
    let mut told: Vec<_> = arguments.iter().filter(|(key, _)| !MANNER.contains(&key.as_str())).collect();
    told.sort_by_key(|(key, _)| *key);
    for (key, value) in told {
        hasher.text(key);
        hasher.text(&value.to_string());
    }
    hasher.finish()
}

/// A path without detours; a relative one is told from its folder, if that is known.
fn path_in(folder: Option<&str>, path: &str) -> Text {
    let path = path.trim();
    let is_rooted = path.starts_with(['/', '~', '\\']) || path.get(1..2) == Some(":");
    let whole = match folder.filter(|_| !is_rooted) {
        Some(folder) => format!("{}/{path}", folder.trim_end_matches('/')),
        None => path.to_string(),
    };
    let mut steps: Vec<&str> = Vec::new();
    for (at, step) in whole.split('/').enumerate() {
        let has_parent = steps.last().is_some_and(|last| !last.is_empty() && *last != "..");
        match step {
            "." => {}
            "" if at > 0 => {}
            ".." if has_parent => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    if steps.is_empty() { ".".into() } else { steps.join("/").into() }
}

/// Whether a name is as a pattern says, in which `*` stands for anything.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    // Most differ in their first letters.
    let first = pattern.as_bytes().first().filter(|first| **first != b'*');
    if first.is_some_and(|first| name.as_bytes().first() != Some(first)) {
        return false;
    }
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        let yes = [("Bash", "Bash"), ("*", ""), ("mcp__*__read*", "mcp__fs__read_file"), ("a*a", "aa"), ("*x", "xx")];
        let no = [("Bash", "bash"), ("a*a", "a"), ("mcp__*__read", "mcp__fs__read_file"), ("", "x"), ("*b*", "ac")];
        assert!(yes.iter().all(|(pattern, name)| matches(pattern, name)));
        assert!(!no.iter().any(|(pattern, name)| matches(pattern, name)));
    }

    #[test]
    fn paths_are_told_without_detours() {
        let path = |folder, path| path_in(folder, path).to_string();
        assert_eq!(path(None, "./src//a.rs"), "src/a.rs");
        assert_eq!(path(Some("/w/"), "src/../b.rs"), "/w/b.rs");
        assert_eq!(path(Some("/w"), "/x/./y"), "/x/y");
        assert_eq!(path(Some("/w"), "C:\\x"), "C:\\x");
        assert_eq!(path(None, "../../a"), "../../a");
        assert_eq!(path(None, "/../é"), "/../é");
    }
}
