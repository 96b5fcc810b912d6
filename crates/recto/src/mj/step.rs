//! What a model asks for next, as MemberJunction's agents spell it.

use crate::error::{Error, Place};
use crate::expand::Ask;
use crate::nearest::probably;
use crate::wire::json::{place_of, without_position};
use serde_json::{Map, Value};

/// What an agent's instructions say about shortened results.
pub const TEACHING: &str = r#"## Message expansion

Old action results may have been compacted. You know them by `[Compacted: ...]` at their end, or by `[AI Summary of N chars...]` at their beginning: only a part of them is shown.

Ask for the whole message when you need a detail that is not shown, when the user asks about it, or when you must quote it exactly. Count messages from 0, and answer:

```json
{
  "taskComplete": false,
  "nextStep": {
    "type": "expand-message",
    "messageIndex": 5,
    "reason": "the user asks about item 47"
  }
}
```

The next time you are asked, the message stands there whole.

Types of next steps: `"Actions"` runs actions, `"Sub-Agent"` calls another agent, `"Chat"` asks the user, `"expand-message"` shows a compacted message whole.
"#;

/// The step names, as they are written.
const STEPS: [&str; 7] = ["success", "failed", "retry", "sub-agent", "actions", "chat", "expand-message"];

/// What an agent does next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextStep {
    /// It is done.
    Success,
    /// It gives up.
    Failed,
    /// It tries again.
    Retry,
    /// It calls another agent.
    SubAgent,
    /// It runs actions.
    Actions,
    /// It speaks to the user.
    Chat,
    /// It wants to read a message whole; the run goes on after that.
    ExpandMessage(Ask),
}

impl NextStep {
    /// Reads the step out of an answer: JSON, perhaps in a fence. Both `{"taskComplete": …, "nextStep": {"type": …}}` and
    /// `{"step": …}` are read, with names in any case, with hyphens or without.
    pub fn parse(answer: &str) -> Result<NextStep, Error> {
        let json = unfenced(answer);
        let said: Map<String, Value> = serde_json::from_str(json).map_err(|error| {
            let what = format!("no step: {}", without_position(&error));
            let offset = json.as_ptr() as usize - answer.as_ptr() as usize;
            let place = Place::at(answer, offset);
            Error::input(what).at(place_of(json, &error)).shifted(place, 0).hinting("a step is a JSON object")
        })?;
        let said = Value::Object(said);
        if let Some(asked) = Ask::from_step(&said) {
            return asked.map(NextStep::ExpandMessage).map_err(|refusal| Error::input(refusal.to_string()));
        }
        let step = said.get("nextStep").filter(|step| step.is_object()).unwrap_or(&said);
        let name = step.get("type").or_else(|| step.get("step")).and_then(Value::as_str);
        match (said.get("taskComplete"), name) {
            (Some(Value::Bool(true)), None) => Ok(NextStep::Success),
            (_, Some(name)) => named(name),
            (_, None) => Err(Error::input("no step is named").hinting(format!("known steps: {}", STEPS.join(", ")))),
        }
    }

    /// Returns whether the run is over with it.
    pub fn is_last(&self) -> bool {
        matches!(self, NextStep::Success | NextStep::Failed)
    }
}

/// The text within a fence of three backticks, or all of it.
fn unfenced(answer: &str) -> &str {
    let text = answer.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.split_once('\n')).map(|(_, rest)| rest);
    inside.map_or(text, |rest| rest.trim_end().trim_end_matches("```").trim())
}

fn named(name: &str) -> Result<NextStep, Error> {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    Ok(match plain.as_str() {
        "success" => NextStep::Success,
        "failed" => NextStep::Failed,
        "retry" => NextStep::Retry,
        "subagent" => NextStep::SubAgent,
        "actions" => NextStep::Actions,
        "chat" => NextStep::Chat,
        _ => {
            let hint = match probably(name, STEPS) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("known steps: {}", STEPS.join(", ")),
            };
            return Err(Error::input(format!("unknown step {name:?}")).hinting(hint));
        }
    })
}
