//! What the provider would refuse.

use super::TEXT_MAX;
use super::rules::{Model, unfit};
use crate::wire::{CALL_ID_MAX, TOOL_NAME_MAX, TOOLS_MAX, Violation};
use serde_json::Value;

/// Returns every rule that a body breaks; none means that the provider takes its form.
pub fn validate(body: &[u8]) -> Vec<Violation> {
    let mut check = Check { found: Vec::new() };
    match serde_json::from_slice::<Value>(body) {
        Ok(body) => check.body(&body),
        Err(error) => check.refuse("body", format!("not JSON: {error}")),
    }
    check.found
}

struct Check {
    found: Vec<Violation>,
}

impl Check {
    fn refuse(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.found.push(Violation { at: at.into(), what: what.into().into() });
    }

    fn body(&mut self, body: &Value) {
        if !body["model"].is_string() {
            self.refuse("model", "missing");
        }
        let tools = body["tools"].as_array();
        if tools.is_none() && !body["tools"].is_null() {
            self.refuse("tools", "must be an array");
        }
        match tools {
            Some(tools) if tools.is_empty() => self.refuse("tools", "empty array; leave it out"),
            Some(tools) if tools.len() > TOOLS_MAX => {
                self.refuse("tools", format!("{} tools, at most {TOOLS_MAX}", tools.len()))
            }
            Some(tools) => self.tools(tools),
            None => {
                for field in ["tool_choice", "parallel_tool_calls"].into_iter().filter(|field| !body[field].is_null()) {
                    self.refuse(field, "given without tools");
                }
            }
        }
        self.format(&body["response_format"]);
        self.model(body);
        match body["messages"].as_array().filter(|messages| !messages.is_empty()) {
            Some(messages) => self.messages(messages),
            None => self.refuse("messages", "needs at least one message"),
        }
    }

    fn tools(&mut self, tools: &[Value]) {
        for (at, tool) in tools.iter().enumerate() {
            if tool["type"] == "custom" {
                if tool["custom"]["name"].as_str().unwrap_or_default().is_empty() {
                    self.refuse(format!("tools[{at}].custom.name"), "missing");
                }
                continue;
            }
            let function = &tool["function"];
            let name = function["name"].as_str().unwrap_or_default();
            self.name(&format!("tools[{at}].function.name"), name);
            if function["strict"] == true
                && let Some(what) = unfit(&function["parameters"])
            {
                let here = format!("tools[{at}].function.parameters");
                self.refuse(here, format!("Invalid schema for function '{name}': {what}"));
            }
        }
    }

    fn format(&mut self, format: &Value) {
        let given = &format["json_schema"];
        if format["type"] == "json_schema" {
            self.name("response_format.json_schema.name", given["name"].as_str().unwrap_or_default());
        }
        if given["strict"] == true
            && let Some(what) = unfit(&given["schema"])
        {
            let name = given["name"].as_str().unwrap_or_default();
            let what = format!("Invalid schema for response_format '{name}': {what}");
            self.refuse("response_format.json_schema.schema", what);
        }
    }

    /// What only some models refuse.
    fn model(&mut self, body: &Value) {
        let name = body["model"].as_str().unwrap_or_default();
        let model = Model::named(name);
        let has_functions =
            body["tools"].as_array().is_some_and(|tools| tools.iter().any(|it| it["type"] == "function"));
        let is_plain = body["reasoning_effort"] == "none";
        if model.takes_functions_only_plainly && has_functions && !is_plain {
            let what = format!("function tools with reasoning are not taken by {name} here: it must be \"none\"");
            self.refuse("reasoning_effort", what);
        }
        if !model.reasons {
            return;
        }
        if !body["max_tokens"].is_null() {
            self.refuse("max_tokens", format!("not taken by {name}; use max_completion_tokens"));
        }
        for field in ["temperature", "top_p"] {
            let is_usual = body[field].is_null() || body[field].as_f64() == Some(1.0);
            if !is_usual && !is_plain {
                self.refuse(field, format!("{name} takes only the default, 1"));
            }
        }
    }

    fn name(&mut self, at: &str, name: &str) {
        let takes = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > TOOL_NAME_MAX || !name.chars().all(takes) {
            self.refuse(at, format!("{name:?} does not match ^[a-zA-Z0-9_-]{{1,{TOOL_NAME_MAX}}}$"));
        }
    }

    fn messages(&mut self, messages: &[Value]) {
        let mut open: Vec<String> = Vec::new();
        let mut after_calls = false;
        for (at, message) in messages.iter().enumerate() {
            let here = format!("messages[{at}]");
            let role = message["role"].as_str().unwrap_or_default();
            if role == "tool" {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match open.iter().position(|call| call == id) {
                    Some(found) => drop(open.remove(found)),
                    None if after_calls => self.refuse(&here, format!("answers {id:?}, which is not open")),
                    None => self.refuse(&here, "a tool message must follow a message with tool_calls"),
                }
            } else {
                self.unanswered(&here, &mut open);
                after_calls = false;
            }
            match role {
                "assistant" => {
                    open = self.calls(&here, message);
                    after_calls = !open.is_empty();
                }
                "system" | "developer" | "user" | "tool" => self.content(&here, role, &message["content"]),
                _ => self.refuse(&here, format!("unknown role {role:?}")),
            }
        }
        self.unanswered("messages", &mut open);
    }

    fn unanswered(&mut self, at: &str, open: &mut Vec<String>) {
        for call in open.drain(..) {
            self.refuse(at, format!("tool call {call:?} has no response message directly after it"));
        }
    }

    fn calls(&mut self, at: &str, message: &Value) -> Vec<String> {
        let calls = message["tool_calls"].as_array();
        if calls.is_none() && !message["tool_calls"].is_null() {
            self.refuse(format!("{at}.tool_calls"), "must be an array");
        }
        if calls.is_some_and(Vec::is_empty) {
            self.refuse(format!("{at}.tool_calls"), "empty array; leave it out");
        }
        let is_said = ["content", "refusal", "audio", "function_call"].iter().any(|field| !message[field].is_null());
        if !is_said && calls.is_none() {
            self.refuse(at, "an assistant message needs content or tool_calls");
        }
        if !message["content"].is_null() {
            self.content(at, "assistant", &message["content"]);
        }
        let calls = calls.map(Vec::as_slice).unwrap_or_default();
        if calls.len() > TOOLS_MAX {
            self.refuse(format!("{at}.tool_calls"), format!("{} calls, at most {TOOLS_MAX}", calls.len()));
        }
        let mut ids = Vec::new();
        for (nth, call) in calls.iter().enumerate() {
            let here = format!("{at}.tool_calls[{nth}]");
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || id.chars().count() > CALL_ID_MAX {
                self.refuse(format!("{here}.id"), format!("{id:?} must have 1 to {CALL_ID_MAX} characters"));
            }
            self.called(&here, call);
            if ids.iter().any(|other| other == id) {
                self.refuse(format!("{here}.id"), format!("{id:?} stands twice in one message"));
            }
            ids.push(id.to_string());
        }
        ids
    }

    fn called(&mut self, at: &str, call: &Value) {
        let (kind, input) = match call["type"].as_str() {
            Some("custom") => ("custom", "input"),
            None | Some("function") => ("function", "arguments"),
            Some(other) => return self.refuse(format!("{at}.type"), format!("unknown kind {other:?}")),
        };
        let name = call[kind]["name"].as_str().unwrap_or_default();
        self.name(&format!("{at}.{kind}.name"), name);
        if !call[kind][input].is_string() {
            self.refuse(format!("{at}.{kind}.{input}"), "must be a string");
        }
    }

    fn content(&mut self, at: &str, role: &str, content: &Value) {
        let here = format!("{at}.content");
        match content {
            Value::String(text) => self.text(&here, text),
            Value::Array(parts) if parts.is_empty() => self.refuse(here, "empty array"),
            Value::Array(parts) => {
                for (nth, part) in parts.iter().enumerate() {
                    let kind = part["type"].as_str().unwrap_or_default();
                    let is_taken = match role {
                        "user" => ["text", "image_url", "input_audio", "file"].contains(&kind),
                        "assistant" => ["text", "refusal"].contains(&kind),
                        _ => kind == "text",
                    };
                    if !is_taken {
                        self.refuse(format!("{here}[{nth}]"), format!("{role} messages take no {kind:?} part"));
                    }
                    let is_whole = match kind {
                        "text" => part["text"].is_string(),
                        "image_url" => part["image_url"]["url"].is_string(),
                        "input_audio" => ["data", "format"].iter().all(|it| part["input_audio"][it].is_string()),
                        "file" => ["file_id", "file_data"].iter().any(|it| part["file"][it].is_string()),
                        "refusal" => part["refusal"].is_string(),
                        _ => true,
                    };
                    if !is_whole {
                        self.refuse(format!("{here}[{nth}]"), format!("a {kind:?} part without its content"));
                    }
                    self.text(&format!("{here}[{nth}]"), part["text"].as_str().unwrap_or_default());
                }
            }
            _ => self.refuse(here, "must be a string or an array of parts"),
        }
    }

    fn text(&mut self, at: &str, text: &str) {
        if text.len() > TEXT_MAX && text.chars().count() > TEXT_MAX {
            self.refuse(at, format!("longer than {TEXT_MAX} characters"));
        }
    }
}
