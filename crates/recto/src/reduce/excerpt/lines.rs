//! Lines of a text, and what is left of it when some go.

use crate::edit::PartAt;
use std::ops::Range;

/// What stands where lines were left out.
const GAP: &str = "…";
/// How a line break is spelled inside JSON.
const ESCAPED_BREAK: &str = "\\n";

/// How a text is cut into lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// At its line breaks, also where they are spelled as in JSON: tools often tell JSON.
    Plain,
    /// JSON: at the line breaks inside its strings. What holds an end of a string can't go.
    Json,
}

/// A stretch of a text, without the break behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at: Range<usize>,
    /// Whether it may go.
    pub(super) is_loose: bool,
}

/// Cuts a text into lines; together with the breaks between them they are the whole text.
pub(super) fn lines(text: &str, form: Form) -> Vec<Line> {
    let mut lines = Vec::new();
    let (mut start, bytes) = (0, text.as_bytes());
    let mut at = 0;
    while at < bytes.len() {
        let length = match bytes[at] {
            b'\n' => 1,
            b'\\' if bytes.get(at + 1) == Some(&b'n') => 2,
            // An escaped backslash may stand before an n that is only a letter.
            b'\\' => {
                at += 2;
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        lines.push(Line { at: start..at, is_loose: form == Form::Plain });
        at += length;
        start = at;
    }
    lines.push(Line { at: start..text.len(), is_loose: form == Form::Plain });
    if form == Form::Json {
        let last = lines.len() - 1;
        for line in &mut lines[1..last.max(1)] {
            line.is_loose = !has_bare_quote(&text[line.at.clone()]);
        }
    }
    lines
}

fn has_bare_quote(text: &str) -> bool {
    let mut is_escaped = false;
    text.bytes().any(|byte| {
        let is_bare = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_bare
    })
}

/// Writes a text without the lines that go; the first gap says how many, whose they are, and how to ask for them.
pub(super) fn without(text: &str, lines: &[Line], keep: &[bool], form: Form, at: PartAt) -> String {
    let gone = keep.iter().filter(|keep| !**keep).count();
    let mut out = String::with_capacity(text.len() / 2);
    let (mut in_gap, mut is_told) = (false, false);
    for (line, keep) in lines.iter().zip(keep) {
        if *keep {
            out.push_str(&text[line.at.clone()]);
            in_gap = false;
        } else if !in_gap {
            out.push_str(GAP);
            if !is_told {
                out.push_str(&told(gone, lines.len(), at));
                is_told = true;
            }
            in_gap = true;
        } else {
            continue;
        }
        // The break that stood behind a line; one that went leaves a plain one.
        let rest = &text[line.at.end..];
        match form {
            _ if rest.is_empty() => {}
            Form::Json => out.push_str(ESCAPED_BREAK),
            Form::Plain if *keep && rest.starts_with('\\') => out.push_str(ESCAPED_BREAK),
            Form::Plain => out.push('\n'),
        }
    }
    if in_gap && form == Form::Plain {
        out.truncate(out.trim_end_matches('\n').len());
    }
    out
}

fn told(gone: usize, of: usize, at: PartAt) -> String {
    format!(" [{gone} of {of} lines left out; recto_expand {at}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Seq;

    const AT: PartAt = PartAt { seq: Seq(7), part: 0 };

    fn texts(text: &str, form: Form) -> Vec<(&str, bool)> {
        lines(text, form).iter().map(|line| (&text[line.at.clone()], line.is_loose)).collect()
    }

    #[test]
    fn a_text_is_cut_at_its_breaks_spelled_either_way() {
        assert_eq!(texts("a\nb\\nc", Form::Plain), [("a", true), ("b", true), ("c", true)]);
        assert_eq!(texts("a\\\\nb", Form::Plain), [("a\\\\nb", true)]);
        assert_eq!(texts("", Form::Plain), [("", true)]);
        assert_eq!(texts("é\\", Form::Plain), [("é\\", true)]);
    }

    #[test]
    fn lines_of_json_go_only_where_it_stays_json() {
        let json = r#"{"path":"a","text":"one\ntwo\nsay \"x\"\nlast","then":"p\nq"}"#;
        let loose = [
            (r#"{"path":"a","text":"one"#, false),
            ("two", true),
            (r#"say \"x\""#, true),
            (r#"last","then":"p"#, false),
            (r#"q"}"#, false),
        ];
        assert_eq!(texts(json, Form::Json), loose);
        let lines = lines(json, Form::Json);
        let keep: Vec<bool> = lines.iter().map(|line| !line.is_loose).collect();
        let left = without(json, &lines, &keep, Form::Json, AT);
        let value: serde_json::Value = serde_json::from_str(&left).expect("JSON");
        assert_eq!(value["text"], "one\n… [2 of 5 lines left out; recto_expand m7]\nlast");
        assert_eq!(value["then"], "p\nq");
    }

    #[test]
    fn what_stays_is_told_word_for_word() {
        let text = "one\ntwo\nthree\\nfour\nfive\n";
        let lines = lines(text, Form::Plain);
        let left = without(text, &lines, &[true, false, true, true, false, true], Form::Plain, AT);
        assert_eq!(left, "one\n… [2 of 6 lines left out; recto_expand m7]\nthree\\nfour\n…\n");
        let none = without(text, &lines, &[false; 6], Form::Plain, AT);
        assert_eq!(none, "… [6 of 6 lines left out; recto_expand m7]");
        assert_eq!(without(text, &lines, &[true; 6], Form::Plain, AT), text);
    }
}
