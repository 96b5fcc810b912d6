//! What stands behind a record of a session file, on the branch that the program goes on with.

use super::steps::{SYNTHETIC, Steps};
use super::tree::Branch;
use crate::entry::{Entry, Origin, Part, Role, Text};
use crate::error::Error;
use crate::transcript::lines::{Line, Lines};
use crate::wire::json::{Fields, Source, without_lone_surrogates};
use std::collections::HashSet;

/// Reasons to stop after which the model goes on.
const GOES_ON: [&str; 2] = ["tool_use", "pause_turn"];

/// What was said behind a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Since {
    /// What was said, without what the program told the model, or made up, by itself.
    pub entries: Vec<Entry>,
    /// The UUID of the last record of a message, be it the given one.
    pub last: Option<Text>,
    /// Whether the last message is an answer of the model's that came to its end.
    pub is_answered: bool,
    /// Whether nothing stands behind but words of the user's without an answer: the program can go back to the given
    /// record as if they had never been said.
    pub can_go_back: bool,
}

/// Returns what was said behind the record with a UUID, without one everything; `None` if that record is not on the
/// branch.
pub fn since(text: &str, mark: Option<&str>) -> Result<Option<Since>, Error> {
    let (text, _) = without_lone_surrogates(text);
    let source = Source { text: &text };
    let lines = Lines::of(&source, super::KEY)?;
    let branch = Branch::of(&lines.list);
    let on_branch = || branch.lines.iter().map(|at| &lines.list[*at]);
    let marked = on_branch().position(|line| mark.is_some() && line.text("uuid").as_deref() == mark);
    let (start, is_answer) = match (mark, marked) {
        (None, _) => (0, false),
        (Some(_), Some(at)) => (at + 1, on_branch().nth(at).is_some_and(|line| line.kind == "assistant")),
        (Some(_), None) => return Ok(None),
    };
    let mut since = Since { last: mark.map(Into::into), can_go_back: is_answer, ..Since::default() };
    let mut steps = Steps::new(&source);
    let mut is_last_ended = false;
    for line in on_branch().skip(start).filter(|line| is_message(line)) {
        let is_users = line.kind == "user" && line.text("sourceToolAssistantUUID").is_none() && !answers_call(line);
        since.can_go_back &= is_users;
        is_last_ended = line.kind == "assistant" && has_ended(line);
        since.last = line.text("uuid").map(Into::into).or(since.last);
        steps.said(line, false)?;
    }
    since.entries = steps.entries();
    since.entries.retain(|entry| entry.origin != Origin::Host);
    since.is_answered = is_last_ended && ends_with_answer(&since.entries);
    Ok(Some(since))
}

/// Whether a record is a message that somebody else than the program itself wrote.
fn is_message(line: &Line<'_>) -> bool {
    let is_made_up = || line.flag("isApiErrorMessage") || line.flag("isMeta") || line.flag("isCompactSummary");
    matches!(line.kind.as_str(), "user" | "assistant") && !is_made_up() && model(line).as_deref() != Some(SYNTHETIC)
}

fn model(line: &Line<'_>) -> Option<String> {
    let message: Fields<'_> = line.value("message")?;
    serde_json::from_str(message.get("model")?.get()).ok()
}

fn answers_call(line: &Line<'_>) -> bool {
    !super::tree::named_calls(line).answered.is_empty()
}

/// Whether the model had come to an end when the record was written. Where none is told, as in sessions that were
/// written for the program, it had.
fn has_ended(line: &Line<'_>) -> bool {
    let message: Fields<'_> = line.value("message").unwrap_or_default();
    let Some(reason) = message.get("stop_reason") else { return true };
    serde_json::from_str::<Option<String>>(reason.get()).is_ok_and(|it| it.is_some_and(|it| !GOES_ON.contains(&&*it)))
}

/// Whether the last entry says something, and no call waits for its result.
fn ends_with_answer(entries: &[Entry]) -> bool {
    let results = entries.iter().flat_map(|entry| entry.parts.iter()).filter_map(|part| match part {
        Part::Result(result) => Some(result.call.as_str()),
        _ => None,
    });
    let answered: HashSet<&str> = results.collect();
    let is_open = entries.iter().flat_map(Entry::calls).any(|call| !answered.contains(call.id.as_str()));
    let says = |entry: &Entry| {
        let is_word = |part: &Part| matches!(part, Part::Text { text } if !text.trim().is_empty());
        entry.role == Role::Assistant && entry.parts.iter().any(is_word)
    };
    !is_open && entries.last().is_some_and(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: &str = r#"{"role":"user","content":"hello"}"#;
    const ANSWER: &str = r#"{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#;
    const CALL: &str = r#"{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"ls","input":{}}],
        "stop_reason":"tool_use"}"#;
    const RESULT: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a"}]}"#;
    const ERROR: &str = r#"{"role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}"#;

    /// Lines such as `b<a user MESSAGE`: the record b behind a.
    fn file(lines: &[(&str, &str, &str, &str)]) -> String {
        let line = |(uuid, parent, kind, message): &(&str, &str, &str, &str)| {
            let parent = if parent.is_empty() { "null".to_string() } else { format!("{parent:?}") };
            let message = message.replace('\n', "");
            format!(
                "{{\"type\":{kind:?},\"uuid\":{uuid:?},\"parentUuid\":{parent},\"sessionId\":\"s\",\"message\":{message}}}\n"
            )
        };
        lines.iter().map(line).collect()
    }

    fn found(text: &str, mark: Option<&str>) -> Since {
        since(text, mark).expect("readable").expect("on the branch")
    }

    #[test]
    fn a_turn_that_went_well_is_answered_and_stays() {
        let text = file(&[("a", "", "user", MINE), ("b", "a", "assistant", ANSWER)]);
        let all = found(&text, None);
        assert_eq!((all.entries.len(), all.last.as_deref()), (2, Some("b")));
        assert!(all.is_answered && !all.can_go_back);
        let behind = found(&text, Some("a"));
        assert_eq!(behind.entries[0].id.as_ref().map(|id| id.as_str()), Some("b"));
        let nothing = found(&text, Some("b"));
        assert_eq!((nothing.entries.len(), nothing.last.as_deref(), nothing.is_answered), (0, Some("b"), false));
    }

    #[test]
    fn words_that_were_never_answered_can_be_taken_back() {
        let lines = [("a", "", "user", MINE), ("b", "a", "assistant", ANSWER), ("c", "b", "user", MINE)];
        let failed = [&lines[..], &[("d", "c", "assistant", ERROR)]].concat();
        let since = found(&file(&failed), Some("b"));
        assert_eq!((since.entries.len(), since.last.as_deref()), (1, Some("c")));
        assert!(since.can_go_back && !since.is_answered);
        let answered = [&lines[..], &[("d", "c", "assistant", ANSWER)]].concat();
        assert!(!found(&file(&answered), Some("b")).can_go_back, "what was answered is not taken back");
        assert!(!found(&file(&failed), None).can_go_back, "there is nothing to go back to");
    }

    #[test]
    fn a_call_without_its_result_is_no_answer() {
        let lines = [("a", "", "user", MINE), ("b", "a", "assistant", CALL), ("c", "b", "user", RESULT)];
        let since = found(&file(&lines), Some("a"));
        assert_eq!(since.entries.len(), 2);
        assert!(!since.is_answered && !since.can_go_back);
        let ended = [&lines[..], &[("d", "c", "assistant", ANSWER)]].concat();
        assert!(found(&file(&ended), Some("a")).is_answered);
        let parallel = [&lines[..2], &[("d", "b", "assistant", ANSWER)]].concat();
        assert!(!found(&file(&parallel), Some("a")).is_answered, "the call is still open");
    }

    #[test]
    fn an_answer_that_was_cut_off_is_none() {
        let cut = ANSWER.replace("\"end_turn\"", "null");
        let text = file(&[("a", "", "user", MINE), ("b", "a", "assistant", &cut)]);
        assert!(!found(&text, None).is_answered);
    }

    #[test]
    fn a_record_of_another_branch_is_elsewhere() {
        let text = file(&[
            ("a", "", "user", MINE),
            ("b", "a", "assistant", ANSWER),
            ("c", "", "user", MINE),
            ("d", "c", "assistant", &ANSWER.replace("m1", "m9")),
        ]);
        assert_eq!(since(&text, Some("b")).expect("readable"), None);
        assert_eq!(since("", Some("b")).expect("readable"), None);
        assert_eq!(since("", None).expect("readable"), Some(Since::default()));
    }
}
