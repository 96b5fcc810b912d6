//! What the provider would refuse. The model stands in the address, so its rules hold only where a body names it.

use super::model::Model;
use super::{KINDS, camel};
use crate::wire::Violation;
use serde_json::{Map, Value};

/// The longest name of a function.
const NAME_MAX: usize = 128;
/// The most functions in a request.
const FUNCTIONS_MAX: usize = 128;
/// What may stand beside what a part is.
const BESIDE: [&str; 5] = ["thought", "thoughtSignature", "mediaResolution", "videoMetadata", "partMetadata"];
/// What is said about calls that are not all answered.
const UNANSWERED: &str = "Please ensure that the number of function response parts is equal to the number of function \
                          call parts of the function call turn.";
const FIELDS: [&str; 11] = [
    "model",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "serviceTier",
    "store",
    "labels",
];

/// Returns every rule that a body breaks; none means that the provider takes its form.
pub fn validate(body: &[u8]) -> Vec<Violation> {
    let mut check = Check { found: Vec::new() };
    match serde_json::from_slice::<Value>(body) {
        Ok(body) => check.body(&named(&body)),
        Err(error) => check.refuse("body", format!("not JSON: {error}")),
    }
    check.found
}

/// An object with its names as the provider writes them; what is no object is empty.
fn named(value: &Value) -> Map<String, Value> {
    let fields = value.as_object().into_iter().flatten();
    fields.filter(|(_, value)| !value.is_null()).map(|(name, value)| (camel(name), value.clone())).collect()
}

struct Check {
    found: Vec<Violation>,
}

/// What was said before a content.
#[derive(Default)]
struct Before {
    speaker: Option<bool>,
    /// How many calls the last content made.
    calls: usize,
}

impl Check {
    fn refuse(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.found.push(Violation { at: at.into(), what: what.into().into() });
    }

    fn body(&mut self, body: &Map<String, Value>) {
        for name in body.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            self.refuse(name, "Unknown name: Cannot find field");
        }
        match body.get("contents").and_then(Value::as_array).filter(|list| !list.is_empty()) {
            Some(contents) => self.contents(contents),
            None => self.refuse("contents", "contents is not specified"),
        }
        let model = body.get("model").and_then(Value::as_str).and_then(Model::named);
        if let Some(contents) = body.get("contents").filter(|_| model.is_some_and(Model::demands_signatures)) {
            self.signatures(contents);
        }
        if let Some(system) = body.get("systemInstruction") {
            self.instructions(system);
        }
        if let Some(tools) = body.get("tools") {
            self.tools(tools);
        }
        if body.contains_key("toolConfig") && !body.contains_key("tools") {
            self.refuse("toolConfig", "function calling config is set without function declarations");
        }
        let held = ["systemInstruction", "tools", "toolConfig"].into_iter().find(|name| body.contains_key(*name));
        if let Some(name) = held.filter(|_| body.contains_key("cachedContent")) {
            let what = format!("can not be used with a request setting {name}; it holds its own");
            self.refuse("cachedContent", what);
        }
        self.generation(&named(body.get("generationConfig").unwrap_or(&Value::Null)));
    }

    fn generation(&mut self, config: &Map<String, Value>) {
        let thinking = named(config.get("thinkingConfig").unwrap_or(&Value::Null));
        if thinking.contains_key("thinkingBudget") && thinking.contains_key("thinkingLevel") {
            let at = "generationConfig.thinkingConfig";
            self.refuse(at, "thinkingBudget and thinkingLevel can not be set together");
        }
        if config.contains_key("responseSchema") && config.contains_key("responseJsonSchema") {
            self.refuse("generationConfig", "responseSchema and responseJsonSchema can not be set together");
        }
        let has_schema = ["responseSchema", "responseJsonSchema"].iter().any(|name| config.contains_key(*name));
        if has_schema && config.get("responseMimeType").is_none_or(|kind| kind != "application/json") {
            self.refuse("generationConfig.responseMimeType", "a schema needs \"application/json\"");
        }
        let most = config.get("maxOutputTokens");
        if most.is_some_and(|most| most.as_u64().is_none_or(|most| most == 0)) {
            self.refuse("generationConfig.maxOutputTokens", "must be a positive integer");
        }
    }

    fn instructions(&mut self, system: &Value) {
        let parts = named(system);
        let Some(parts) = parts.get("parts").and_then(Value::as_array).filter(|list| !list.is_empty()) else {
            return self.refuse("systemInstruction", "parts must not be empty");
        };
        for (at, part) in parts.iter().enumerate() {
            if named(part).get("text").and_then(Value::as_str).unwrap_or_default().is_empty() {
                self.refuse(format!("systemInstruction.parts[{at}]"), "must have a text");
            }
        }
    }

    fn contents(&mut self, contents: &[Value]) {
        let mut before = Before::default();
        for (at, content) in contents.iter().enumerate() {
            let here = format!("contents[{at}]");
            let content = named(content);
            let is_model = match content.get("role").map(|role| role.as_str().unwrap_or_default()) {
                None | Some("user" | "function") => false,
                Some("model") => true,
                Some(_) => {
                    self.refuse(&here, "Please use a valid role: user, model.");
                    continue;
                }
            };
            let parts = content.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            if parts.is_empty() {
                self.refuse(&here, "contents.parts must not be empty");
            }
            let parts: Vec<Map<String, Value>> = parts.iter().map(named).collect();
            for (nth, part) in parts.iter().enumerate() {
                self.part(&format!("{here}.parts[{nth}]"), part, is_model);
            }
            self.order(&here, &parts, is_model, &mut before);
        }
        if before.calls > 0 {
            self.refuse("contents", UNANSWERED);
        }
    }

    /// Calls stand behind a user's turn, and the turn behind them answers all of them.
    fn order(&mut self, here: &str, parts: &[Map<String, Value>], is_model: bool, before: &mut Before) {
        let count = |name: &str| parts.iter().filter(|part| part.contains_key(name)).count();
        let (calls, responses) = (count("functionCall"), count("functionResponse"));
        if calls > 0 && (!is_model || before.speaker != Some(false)) {
            let what = "Please ensure that function call turn comes immediately after a user turn or after a function \
                        response turn.";
            self.refuse(here, what);
        }
        if responses > 0 && (is_model || before.calls == 0) {
            let what = "Please ensure that function response turn comes immediately after a function call turn.";
            self.refuse(here, what);
        } else if before.calls != responses {
            self.refuse(here, UNANSWERED);
        }
        let leads = parts.iter().take_while(|part| part.contains_key("functionResponse")).count();
        if leads < responses {
            self.refuse(here, "function responses stand before everything else of their turn");
        }
        *before = Before { speaker: Some(is_model), calls: if is_model { calls } else { 0 } };
    }

    fn part(&mut self, here: &str, part: &Map<String, Value>, is_model: bool) {
        let kinds: Vec<&str> = part.keys().map(String::as_str).filter(|name| KINDS.contains(name)).collect();
        for name in part.keys().filter(|name| !KINDS.contains(&name.as_str()) && !BESIDE.contains(&name.as_str())) {
            self.refuse(format!("{here}.{name}"), "Unknown name: Cannot find field");
        }
        let [kind] = kinds[..] else {
            let is_signed = is_model && kinds.is_empty() && part.contains_key("thoughtSignature");
            if !is_signed {
                self.refuse(here, "required oneof field 'data' must have one initialized field");
            }
            return;
        };
        let inner = named(&part[kind]);
        let text = |name: &str| inner.get(name).and_then(Value::as_str).unwrap_or_default();
        match kind {
            "text" => {
                let is_signed = is_model && part.contains_key("thoughtSignature");
                match part["text"].as_str() {
                    None => self.refuse(here, "text is no string"),
                    Some("") if !is_signed => self.refuse(here, "must have a text parameter"),
                    Some(_) => {}
                }
            }
            "inlineData" if text("mimeType").is_empty() || text("data").is_empty() => {
                self.refuse(here, "inlineData needs mimeType and data");
            }
            "fileData" if text("fileUri").is_empty() => self.refuse(here, "fileData needs fileUri"),
            "functionCall" => {
                self.name(&format!("{here}.functionCall.name"), text("name"));
                if inner.get("args").is_some_and(|args| !args.is_object()) {
                    self.refuse(format!("{here}.functionCall.args"), "must be an object");
                }
            }
            "functionResponse" => {
                self.name(&format!("{here}.functionResponse.name"), text("name"));
                if !inner.get("response").is_some_and(Value::is_object) {
                    self.refuse(format!("{here}.functionResponse.response"), "must be an object");
                }
            }
            _ => {}
        }
    }

    fn name(&mut self, at: &str, name: &str) {
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
        let takes = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
        if !name.starts_with(starts) || name.len() > NAME_MAX || !name.chars().all(takes) {
            let what = format!(
                "Invalid function name {name:?}. Must start with a letter or an underscore, and hold letters, digits, \
                 underscores, dots, colons or dashes, at most {NAME_MAX}."
            );
            self.refuse(at, what);
        }
    }

    /// The first call of each step since the user spoke carries its signature.
    fn signatures(&mut self, contents: &Value) {
        let contents: Vec<(bool, Vec<Map<String, Value>>)> = contents
            .as_array()
            .into_iter()
            .flatten()
            .map(named)
            .map(|content| {
                let parts = content.get("parts").and_then(Value::as_array).into_iter().flatten().map(named).collect();
                (content.get("role").is_some_and(|role| role == "model"), parts)
            })
            .collect();
        let is_asked = |(is_model, parts): &(bool, Vec<Map<String, Value>>)| {
            !is_model && !parts.iter().any(|part| part.contains_key("functionResponse"))
        };
        let begins = contents.iter().rposition(is_asked).map_or(0, |at| at + 1);
        for (at, (is_model, parts)) in contents.iter().enumerate().skip(begins) {
            let first = parts.iter().position(|part| part.contains_key("functionCall")).filter(|_| *is_model);
            if let Some(nth) = first.filter(|nth| !parts[*nth].contains_key("thoughtSignature")) {
                let what = "Function call is missing a thought_signature in functionCall parts.";
                self.refuse(format!("contents[{at}].parts[{nth}]"), what);
            }
        }
    }

    fn tools(&mut self, tools: &Value) {
        let Some(groups) = tools.as_array() else { return self.refuse("tools", "must be an array") };
        let mut names: Vec<String> = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            let group = named(group);
            let functions = group.get("functionDeclarations").and_then(Value::as_array);
            for (nth, function) in functions.into_iter().flatten().map(named).enumerate() {
                let here = format!("tools[{at}].functionDeclarations[{nth}]");
                let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
                self.name(&format!("{here}.name"), name);
                if names.iter().any(|other| other == name) {
                    self.refuse(&here, format!("Duplicate function declaration found: {name}"));
                }
                names.push(name.into());
                if function.contains_key("parameters") && function.contains_key("parametersJsonSchema") {
                    self.refuse(&here, "parameters and parametersJsonSchema can not be set together");
                }
            }
        }
        if names.len() > FUNCTIONS_MAX {
            self.refuse("tools", format!("{} functions, at most {FUNCTIONS_MAX}", names.len()));
        }
    }
}
