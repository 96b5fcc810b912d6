//! What Claude Code prints with `--output-format stream-json`: one event a line.

use super::Conversation;
use super::claude_code::KEY;
use super::claude_code::steps::Steps;
use super::lines::{self, Counts, Lines};
use crate::error::Error;
use crate::wire::json::{Fields, Source};

/// How many lines are looked at to tell what a file is.
const LINES_SEEN_MAX: usize = 50;
/// The kinds of lines that show what it is.
const KINDS: [&str; 4] = ["\"system\"", "\"assistant\"", "\"user\"", "\"result\""];

/// Returns whether a text is such a stream.
pub(crate) fn is_stream(text: &str) -> bool {
    let is_one = |line: &str| {
        if !line.contains("\"session_id\"") {
            return false;
        }
        let fields: Fields<'_> = serde_json::from_str(line).unwrap_or_default();
        let kind = fields.get("type").map(|raw| raw.get()).unwrap_or_default();
        let is_told = ["message", "subtype"].iter().any(|name| fields.contains_key(*name));
        fields.contains_key("session_id") && KINDS.contains(&kind) && is_told
    };
    text.lines().take(LINES_SEEN_MAX).any(is_one)
}

/// Reads a stream as one conversation; what is left out is counted in its notes.
pub(crate) fn read(source: &Source<'_>) -> Result<Vec<Conversation>, Error> {
    let lines = Lines::of(source, KEY)?;
    let mut steps = Steps::new(source);
    let (mut left_out, mut is_edge, mut has_said) = (Counts::new(), false, false);
    let mut count = |what| *left_out.entry(what).or_default() += 1;
    for line in &lines.list {
        match line.kind.as_str() {
            "user" | "assistant" if line.text("parent_tool_use_id").is_some() => count("line of side chains"),
            "user" | "assistant" => {
                steps.said(line, std::mem::take(&mut is_edge) && line.kind == "user")?;
                has_said = true;
            }
            "system" if line.is_boundary() => is_edge = true,
            // They say again what other lines say.
            "stream_event" => count("event within a message"),
            _ => count("record without a message"),
        }
    }
    if !has_said {
        return Err(Error::input("no message in it").hinting("the stream ends before the model said anything"));
    }
    let id = lines.list.iter().find_map(|line| line.text("session_id"));
    let mut notes = lines.notes();
    notes.extend(left_out.into_iter().map(|(what, number)| lines::left_out(number, what)));
    notes.extend(steps.notes());
    Ok(vec![Conversation { id: id.map(Into::into), entries: steps.entries(), notes, ..Conversation::default() }])
}
