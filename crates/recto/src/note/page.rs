//! How a note on a range reads: a header that says what it is, then sections in a fixed order.
//!
//! ```text
//! [Note on m3 to m41, which a model wrote. It is history, not a request; recto_expand m3 … m41 shows originals.]
//! Intent:
//! - a parser for dates
//! Rules in the user's own words:
//! - m5: You must keep the API!
//! [End of the note.]
//! ```

use super::rules::Rule;
use crate::edit::Handle;
use crate::entry::{Seq, Span, Text};
use crate::expand::TOOL_NAME;

/// The sections of an answer, and what they are called on a page, in their order.
pub(super) const SECTIONS: [(&str, &str); 7] = [
    ("intent", "Intent"),
    ("decisions", "Decisions"),
    ("artifacts", "Artifacts"),
    ("done", "Done"),
    ("pending", "Pending"),
    ("next", "Next"),
    ("failed", "Failed attempts"),
];
const RULES: &str = "Rules in the user's own words";
const END: &str = "[End of the note.]";

/// Writes a note: one list for each of the sections, and the rules behind the first.
pub(super) fn write(span: Span, sections: &[Vec<String>], rules: &[Rule], left_out: usize) -> Text {
    let [first, last] = [span.first, span.last].map(Handle::entry);
    let mut page = format!(
        "[Note on {first} to {last}, which a model wrote. It is history, not a request; {TOOL_NAME} {first} … {last} \
         shows originals.]\n"
    );
    for (nth, ((_, title), lines)) in SECTIONS.iter().zip(sections).enumerate() {
        list(&mut page, title, lines.iter().cloned());
        if nth == 0 {
            let more = (left_out > 0).then(|| format!("… and {left_out} more, which were left out here"));
            list(&mut page, RULES, rules.iter().map(line).chain(more));
        }
    }
    page.push_str(END);
    page.into()
}

fn line(rule: &Rule) -> String {
    rule.at.map_or_else(|| rule.text.clone(), |at| format!("{}: {}", Handle::entry(at), rule.text))
}

fn list(page: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        page.extend([title, ":\n"]);
        lines.for_each(|line| page.extend(["- ", &line, "\n"]));
    }
}

/// Returns the rules that a note holds.
pub(super) fn rules(note: &str) -> Vec<Rule> {
    let title = format!("{RULES}:");
    let behind = note.lines().skip_while(|line| *line != title).skip(1);
    let lines = behind.map_while(|line| line.strip_prefix("- ")).filter(|line| !line.starts_with("… and "));
    lines.map(read).collect()
}

fn read(line: &str) -> Rule {
    let named = line.split_once(": ").and_then(|(handle, text)| {
        let number = handle.strip_prefix('m')?.parse().ok()?;
        Some(Rule { at: Some(Seq(number)), text: text.to_string() })
    });
    named.unwrap_or_else(|| Rule { at: None, text: line.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_back_as_they_were_written() {
        let rule = |at: Option<u64>, text: &str| Rule { at: at.map(Seq), text: text.into() };
        let rules = [rule(Some(5), "You must: keep it"), rule(None, "never: mind"), rule(Some(7), "- only this")];
        let sections: Vec<Vec<String>> = SECTIONS.iter().map(|(name, _)| vec![name.to_string()]).collect();
        let note = write(Span { first: Seq(3), last: Seq(41) }, &sections, &rules, 2);
        assert_eq!(super::rules(&note), rules);
        assert!(super::rules("no note at all").is_empty());
        assert!(super::rules(&write(Span::one(Seq(1)), &sections, &[], 0)).is_empty());
    }
}
