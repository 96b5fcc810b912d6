//! Results of actions that are no tool calls: one message in the user's place for all that ran together.

use crate::entry::{Entry, EntryKind, Millis, Origin, Seq, Text};
use crate::error::Error;
use crate::expiry::Expiry;
use crate::log::Log;
use serde::de::IgnoredAny;
use serde_json::Value;

/// How deep JSON is indented level by level; deeper levels stand as deep as this one.
const DEPTH_MAX: usize = 128;

/// The result of one action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResult {
    /// The action's name.
    pub action: Text,
    /// What is told of it, as JSON text.
    pub summary: Text,
    /// Whether it went well.
    pub succeeded: bool,
    /// When it expires; `None` leaves that to the policy.
    pub expiry: Option<Expiry>,
    /// The action's id.
    pub action_id: Option<Text>,
    /// The id of what is set for this action and this agent.
    pub agent_action_id: Option<Text>,
    /// The id of the step in which it ran.
    pub step_id: Option<Text>,
}

impl ActionResult {
    /// Returns the result of an action that went well.
    pub fn new(action: impl Into<Text>, summary: impl Into<Text>) -> ActionResult {
        ActionResult {
            action: action.into(),
            summary: summary.into(),
            succeeded: true,
            expiry: None,
            action_id: None,
            agent_action_id: None,
            step_id: None,
        }
    }
}

/// Appends the results of actions that ran together as one entry, and returns its place. Of their expiries the one holds
/// that [comes first](Expiry::of_batch); to let each result go by itself, append them one by one.
pub fn append_action_results(log: &mut Log, results: &[ActionResult], at: Option<Millis>) -> Result<Seq, Error> {
    log.append(entry(results, at)?)
}

fn entry(results: &[ActionResult], at: Option<Millis>) -> Result<Entry, Error> {
    let Some(first) = results.first() else {
        return Err(Error::input("no action results").hinting("append them when there are some"));
    };
    let failed = results.iter().filter(|result| !result.succeeded).count();
    let header = match failed {
        0 => "Action results:".to_string(),
        _ => format!("{failed} of {} failed:", results.len()),
    };
    for result in results {
        serde_json::from_str::<IgnoredAny>(&result.summary)
            .map_err(|error| Error::input(format!("result of {:?} is no JSON: {error}", &*result.action)))?;
    }
    let summaries = results.iter().map(|result| &*result.summary).collect::<Vec<_>>().join(",");
    let expiry = Expiry::of_batch(results.iter().filter_map(|result| result.expiry));
    // The ids are those of the action whose expiry holds.
    let chosen = results.iter().find(|result| expiry.is_some() && result.expiry == expiry).unwrap_or(first);
    let mut entry = Entry::user(format!("{header}\n{}", pretty(&format!("[{summaries}]"))));
    entry.kind = Some(EntryKind::ActionResult);
    entry.tools = results.iter().map(|result| result.action.clone()).collect();
    (entry.origin, entry.at) = (Origin::Tool, at);
    // Where every result says that it never expires, no rule makes it.
    let never = results.iter().all(|result| result.expiry.is_some()).then_some(Expiry::NEVER);
    entry.expiry = expiry.or(never);
    let ids = [("actionId", &chosen.action_id), ("agentActionId", &chosen.agent_action_id), ("stepId", &first.step_id)];
    for (key, id) in ids {
        entry.meta.extend(id.as_ref().map(|id| (key.to_string(), Value::from(&**id))));
    }
    Ok(entry)
}

/// JSON on lines of its own, two spaces deeper at each level; keys and values stay in order and as they are spelled.
fn pretty(json: &str) -> String {
    let (mut out, mut depth, mut chars) = (String::with_capacity(json.len() * 2), 0_usize, json.chars().peekable());
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        (0..depth.min(DEPTH_MAX)).for_each(|_| out.push_str("  "));
    };
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push(c);
                let mut is_escaped = false;
                for c in chars.by_ref() {
                    out.push(c);
                    if c == '"' && !is_escaped {
                        break;
                    }
                    is_escaped = c == '\\' && !is_escaped;
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.peek().is_some_and(char::is_ascii_whitespace) {
                    chars.next();
                }
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\t' | '\n' | '\r' => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_otherwise_as_it_was() {
        let text = r#"[ {"b":1.50,"a":[ ],"c":{"d":"x, \"y\": [z] \\"}} , {} ]"#;
        let expected = "[\n  {\n    \"b\": 1.50,\n    \"a\": [],\n    \"c\": {\n      \"d\": \"x, \\\"y\\\": [z] \\\\\"\n    }\n  },\n  {}\n]";
        assert_eq!(pretty(text), expected);
        let sorted = r#"[{"a":1,"b":[true,null,"é😀"]},[],"x"]"#;
        let value: Value = serde_json::from_str(sorted).unwrap();
        assert_eq!(pretty(sorted), serde_json::to_string_pretty(&value).unwrap());
    }
}
