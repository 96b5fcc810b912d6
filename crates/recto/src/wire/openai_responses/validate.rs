//! What the provider would refuse. What it can only tell from what it stored, such as which reasoning led to an item,
//! no body shows.

use super::ID_MAX;
use crate::wire::Violation;
use serde_json::Value;
use std::collections::HashMap;

/// The longest text, and the longest output of a tool, in characters.
const TEXT_MAX: usize = 10_485_760;
/// The longest address of a picture, which may be the picture itself.
const IMAGE_MAX: usize = 20_971_520;
/// The longest file.
const FILE_MAX: usize = 73_400_320;
/// The longest name of a tool.
const NAME_MAX: usize = 128;
/// The longest key of a cache.
const CACHE_KEY_MAX: usize = 64;
/// The shortest limit of an answer, in tokens.
const OUTPUT_MIN: u64 = 16;

/// Returns every rule that a body breaks; none means that the provider takes its form.
pub fn validate(body: &[u8]) -> Vec<Violation> {
    let read = serde_json::from_slice::<Value>(body);
    let mut check = Check::default();
    match &read {
        Ok(body) => check.body(body),
        Err(error) => check.refuse("body", format!("not JSON: {error}")),
    }
    check.found
}

#[derive(Default)]
struct Check<'b> {
    found: Vec<Violation>,
    /// The calls so far, by their ids.
    calls: HashMap<&'b str, Call<'b>>,
}

struct Call<'b> {
    kind: &'b str,
    at: usize,
    is_open: bool,
}

impl<'b> Check<'b> {
    fn refuse(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.found.push(Violation { at: at.into(), what: what.into().into() });
    }

    fn body(&mut self, body: &'b Value) {
        let given = |name: &str| !body[name].is_null();
        if !body["model"].is_string() && !given("prompt") {
            self.refuse("model", "missing");
        }
        if given("previous_response_id") && given("conversation") {
            self.refuse("previous_response_id", "excludes conversation");
        }
        if body["max_output_tokens"].as_u64().is_some_and(|most| most < OUTPUT_MIN) {
            self.refuse("max_output_tokens", format!("at least {OUTPUT_MIN}"));
        }
        self.length("prompt_cache_key", &body["prompt_cache_key"], CACHE_KEY_MAX);
        self.length("instructions", &body["instructions"], TEXT_MAX);
        self.tools(&body["tools"]);
        let is_chained = given("previous_response_id") || given("conversation");
        match &body["input"] {
            Value::String(_) => self.length("input", &body["input"], TEXT_MAX),
            Value::Array(items) if !items.is_empty() => {
                // Nothing else makes the provider keep what it is sent.
                let is_stored = body["store"] != false;
                self.items(items, is_stored, is_chained);
            }
            Value::Null | Value::Array(_) if is_chained || given("prompt") => {}
            Value::Null | Value::Array(_) => self.refuse("input", "needs at least one item"),
            _ => self.refuse("input", "must be a string or an array of items"),
        }
    }

    fn tools(&mut self, tools: &Value) {
        if !tools.is_array() && !tools.is_null() {
            self.refuse("tools", "must be an array");
        }
        for (at, tool) in tools.as_array().into_iter().flatten().enumerate() {
            if !tool["type"].is_string() {
                self.refuse(format!("tools[{at}].type"), "missing");
            }
            if tool["type"] == "function" {
                self.name(&format!("tools[{at}].name"), &tool["name"]);
            }
        }
    }

    fn name(&mut self, at: &str, name: &Value) {
        let takes = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = name.as_str().unwrap_or_default();
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(takes) {
            self.refuse(at, format!("{name:?} does not match ^[a-zA-Z0-9_-]{{1,{NAME_MAX}}}$"));
        }
    }

    fn items(&mut self, items: &'b [Value], is_stored: bool, is_chained: bool) {
        // The items that they stand for may be calls.
        let has_references = items.iter().any(|item| item["type"] == "item_reference");
        for (at, item) in items.iter().enumerate() {
            let here = format!("input[{at}]");
            let kind = item["type"].as_str().unwrap_or(if item["role"].is_string() { "message" } else { "" });
            self.ids(&here, kind, item);
            match kind {
                "message" => self.message(&here, item),
                "reasoning" => self.reasoning(&here, item, &items[at + 1..], is_stored),
                "function_call" | "custom_tool_call" => {
                    self.call(&here, kind, item);
                    self.open(kind, item, at);
                }
                "function_call_output" | "custom_tool_call_output" => {
                    self.output(&here, &item["output"]);
                    self.answer(&here, kind, item, is_chained || has_references);
                }
                "" => self.refuse(here, "an item has a type, or a role"),
                kind if kind.ends_with("_call") => {
                    if let Some(id) = item["call_id"].as_str() {
                        self.calls.insert(id, Call { kind, at, is_open: false });
                    }
                }
                _ => {}
            }
        }
        let mut open: Vec<(usize, &str)> =
            self.calls.iter().filter(|(_, call)| call.is_open).map(|(id, call)| (call.at, *id)).collect();
        open.sort_unstable();
        for (at, id) in open.into_iter().filter(|_| !is_chained) {
            self.unanswered(at, id);
        }
    }

    fn unanswered(&mut self, at: usize, id: &str) {
        self.refuse(format!("input[{at}]"), format!("No tool output found for function call {id}."));
    }

    fn ids(&mut self, at: &str, kind: &str, item: &Value) {
        self.length(&format!("{at}.id"), &item["id"], ID_MAX);
        self.length(&format!("{at}.call_id"), &item["call_id"], ID_MAX);
        let begins = match kind {
            "message" => "msg",
            "reasoning" => "rs",
            "function_call" => "fc",
            _ => return,
        };
        if let Some(id) = item["id"].as_str().filter(|id| !id.starts_with(begins)) {
            self.refuse(format!("{at}.id"), format!("{id:?}: expected an ID that begins with '{begins}'"));
        }
    }

    fn message(&mut self, at: &str, item: &Value) {
        let role = item["role"].as_str().unwrap_or_default();
        if !["user", "assistant", "system", "developer"].contains(&role) {
            return self.refuse(format!("{at}.role"), format!("unknown role {role:?}"));
        }
        let here = format!("{at}.content");
        match &item["content"] {
            Value::String(_) => self.length(&here, &item["content"], TEXT_MAX),
            Value::Array(parts) => {
                for (nth, part) in parts.iter().enumerate() {
                    let kind = part["type"].as_str().unwrap_or_default();
                    let is_others = match role {
                        "assistant" => kind.starts_with("input_"),
                        _ => kind == "output_text" || kind == "refusal",
                    };
                    if is_others {
                        self.refuse(format!("{here}[{nth}]"), format!("{role} messages take no {kind:?} part"));
                    }
                    self.part(&format!("{here}[{nth}]"), kind, part);
                }
            }
            _ => self.refuse(here, "must be a string or an array of parts"),
        }
    }

    fn part(&mut self, at: &str, kind: &str, part: &Value) {
        let has = |name: &str| part[name].is_string();
        let is_whole = match kind {
            "" => return self.refuse(format!("{at}.type"), "missing"),
            // The spelling of another API.
            "text" | "image_url" | "file" => return self.refuse(at, format!("unknown part type {kind:?}")),
            "input_text" | "output_text" => has("text"),
            "refusal" => has("refusal"),
            "input_image" => has("image_url") || has("file_id"),
            "input_file" => has("file_id") || has("file_url") || has("file_data"),
            "input_audio" => part["input_audio"]["data"].is_string(),
            _ => true,
        };
        if !is_whole {
            self.refuse(at, format!("a {kind:?} part without its content"));
        }
        self.length(&format!("{at}.text"), &part["text"], TEXT_MAX);
        self.length(&format!("{at}.image_url"), &part["image_url"], IMAGE_MAX);
        self.length(&format!("{at}.file_data"), &part["file_data"], FILE_MAX);
    }

    fn reasoning(&mut self, at: &str, item: &Value, behind: &[Value], is_stored: bool) {
        let id = item["id"].as_str().unwrap_or_default();
        let is_models = |next: &Value| match next["type"].as_str() {
            None | Some("message") => next["role"] == "assistant",
            Some("function_call_output" | "custom_tool_call_output") => false,
            Some(_) => true,
        };
        if !behind.iter().find(|next| next["type"] != "reasoning").is_some_and(is_models) {
            let what = format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
            self.refuse(at, what);
        }
        if !is_stored && item["encrypted_content"].as_str().is_none_or(str::is_empty) {
            self.refuse(at, format!("Item with id '{id}' not found: nothing is stored, and it is not encrypted"));
        }
    }

    fn call(&mut self, at: &str, kind: &str, item: &Value) {
        if item["call_id"].as_str().is_none_or(str::is_empty) {
            self.refuse(format!("{at}.call_id"), "missing");
        }
        self.name(&format!("{at}.name"), &item["name"]);
        let given = if kind == "function_call" { "arguments" } else { "input" };
        if !item[given].is_string() {
            self.refuse(format!("{at}.{given}"), "must be a string");
        }
        self.length(&format!("{at}.{given}"), &item[given], TEXT_MAX);
    }

    fn open(&mut self, kind: &'b str, item: &'b Value, at: usize) {
        let Some(id) = item["call_id"].as_str() else { return };
        self.calls.insert(id, Call { kind, at, is_open: true });
    }

    fn answer(&mut self, at: &str, kind: &str, item: &Value, is_elsewhere: bool) {
        let id = item["call_id"].as_str().unwrap_or_default();
        let is_custom = kind == "custom_tool_call_output";
        match self.calls.get_mut(id).filter(|call| is_custom == (call.kind == "custom_tool_call")) {
            Some(call) => call.is_open = false,
            None if is_elsewhere && !id.is_empty() => {}
            None => self.refuse(at, format!("No tool call found for {} with call_id {id}.", kind.replace('_', " "))),
        }
    }

    fn output(&mut self, at: &str, output: &Value) {
        let here = format!("{at}.output");
        match output {
            Value::String(_) => self.length(&here, output, TEXT_MAX),
            Value::Array(parts) => {
                for (nth, part) in parts.iter().enumerate() {
                    let kind = part["type"].as_str().unwrap_or_default();
                    if kind == "output_text" || kind == "refusal" {
                        self.refuse(format!("{here}[{nth}]"), format!("outputs take no {kind:?} part"));
                    }
                    self.part(&format!("{here}[{nth}]"), kind, part);
                }
            }
            _ => self.refuse(here, "must be a string or an array of parts"),
        }
    }

    fn length(&mut self, at: &str, text: &Value, most: usize) {
        let Some(text) = text.as_str().filter(|text| text.len() > most) else { return };
        let length = text.chars().count();
        if length > most {
            let what = format!("string too long. Expected a string with maximum length {most}, but got {length}");
            self.refuse(at, what);
        }
    }
}
