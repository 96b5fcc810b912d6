//! What the server would refuse. It passes over fields that it doesn't know; values of another type it doesn't take.

use crate::wire::{Violation, base64};
use serde_json::Value;

/// How hard a model may be told to think.
const LEVELS: [&str; 4] = ["low", "medium", "high", "max"];

/// Returns every rule that a body breaks; none means that the server takes its form.
pub fn validate(body: &[u8]) -> Vec<Violation> {
    let mut check = Check { found: Vec::new() };
    match serde_json::from_slice::<Value>(body) {
        Ok(body) if body.is_object() => check.body(&body),
        Ok(_) => check.refuse("body", "must be an object"),
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
        if body["model"].as_str().unwrap_or_default().is_empty() {
            self.refuse("model", "model is required");
        }
        match &body["messages"] {
            Value::Array(messages) if !messages.is_empty() => {
                messages.iter().enumerate().for_each(|(at, message)| self.message(&format!("messages[{at}]"), message));
            }
            Value::Array(_) | Value::Null => self.refuse("messages", "without any, the model is loaded and not asked"),
            _ => self.refuse("messages", "must be an array"),
        }
        match &body["tools"] {
            Value::Null => {}
            Value::Array(tools) => {
                tools.iter().enumerate().for_each(|(at, tool)| self.tool(&format!("tools[{at}]"), tool));
            }
            _ => self.refuse("tools", "must be an array"),
        }
        match &body["format"] {
            Value::Null | Value::Object(_) => {}
            Value::String(word) if word.is_empty() || word == "json" => {}
            _ => self.refuse("format", "must be \"json\" or a JSON schema"),
        }
        match &body["think"] {
            Value::Null | Value::Bool(_) => {}
            Value::String(level) if LEVELS.contains(&level.as_str()) => {}
            _ => self.refuse("think", "must be a boolean, or \"low\", \"medium\", \"high\" or \"max\""),
        }
        for name in ["stream", "truncate"] {
            if !body[name].is_null() && !body[name].is_boolean() {
                self.refuse(name, "must be a boolean");
            }
        }
        let options = &body["options"];
        if !options.is_null() && !options.is_object() {
            self.refuse("options", "must be an object");
        }
        for name in ["num_ctx", "num_predict"] {
            if !options[name].is_null() && !options[name].is_number() {
                self.refuse(format!("options.{name}"), "must be an integer");
            }
        }
    }

    fn message(&mut self, here: &str, message: &Value) {
        if !message.is_object() {
            return self.refuse(here, "must be an object");
        }
        let role = message["role"].as_str().unwrap_or_default().to_ascii_lowercase();
        if !["system", "user", "assistant", "tool"].contains(&role.as_str()) {
            self.refuse(format!("{here}.role"), format!("{role:?} is none of system, user, assistant, tool"));
        }
        for name in ["content", "thinking", "tool_name", "tool_call_id"] {
            if !message[name].is_null() && !message[name].is_string() {
                self.refuse(format!("{here}.{name}"), "must be a string");
            }
        }
        match &message["images"] {
            Value::Null => {}
            Value::Array(images) => {
                let is_data = |image: &Value| image.as_str().is_some_and(|data| base64::decoded(data).is_some());
                if let Some(at) = images.iter().position(|image| !is_data(image)) {
                    self.refuse(format!("{here}.images[{at}]"), "must be bare base64, without a data: URL");
                }
            }
            _ => self.refuse(format!("{here}.images"), "must be an array"),
        }
        match &message["tool_calls"] {
            Value::Null => {}
            Value::Array(calls) => {
                for (at, call) in calls.iter().enumerate() {
                    self.call(&format!("{here}.tool_calls[{at}].function"), &call["function"]);
                }
            }
            _ => self.refuse(format!("{here}.tool_calls"), "must be an array"),
        }
    }

    fn call(&mut self, here: &str, function: &Value) {
        if function["name"].as_str().unwrap_or_default().is_empty() {
            self.refuse(format!("{here}.name"), "missing");
        }
        if !function["arguments"].is_null() && !function["arguments"].is_object() {
            self.refuse(format!("{here}.arguments"), "must be an object");
        }
    }

    fn tool(&mut self, here: &str, tool: &Value) {
        let function = &tool["function"];
        if function["name"].as_str().unwrap_or_default().is_empty() {
            self.refuse(format!("{here}.function.name"), "missing");
        }
        if !function["parameters"].is_null() && !function["parameters"].is_object() {
            self.refuse(format!("{here}.function.parameters"), "must be an object");
        }
    }
}
