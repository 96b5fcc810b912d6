//! Everything but messages: settings, tools, instructions, cache marks.

use super::super::MARKS_MAX;
use super::super::model::Model;
use super::Check;
use serde_json::Value;
use std::collections::HashSet;

/// The longest name of a tool.
const TOOL_NAME_MAX: usize = 128;
/// The least that a model may be told to think.
const BUDGET_MIN: u64 = 1024;

/// The fields of a request, those in beta included.
const FIELDS: [&str; 36] = [
    "anthropic_version",
    "anthropic_beta",
    "betas",
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "diagnostics",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "skills",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "system_prompt",
    "task_budget",
    "temperature",
    "thinking",
    "thread",
    "token_budget",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile",
    "user_profile_id",
    "extra_body",
];

impl Check {
    pub(super) fn settings(&mut self, body: &Value) {
        for name in body.as_object().into_iter().flat_map(|fields| fields.keys()) {
            if !FIELDS.contains(&name.as_str()) {
                self.refuse(name, "Extra inputs are not permitted");
            }
        }
        let most = body["max_tokens"].as_u64();
        match (most, &body["max_tokens"]) {
            (None, Value::Null) => self.refuse("max_tokens", "Field required"),
            (None, _) => self.refuse("max_tokens", "Input should be a valid integer, greater than or equal to 0"),
            (Some(0), _) => self.prewarm(body),
            (Some(_), _) => {}
        }
        self.thinking(body, most.unwrap_or(u64::MAX));
        let is_default = |name: &str| match name {
            "top_k" => body[name].is_null(),
            _ => body[name].is_null() || body[name].as_f64() == Some(1.0),
        };
        if self.model.is_some_and(Model::refuses_sampling) {
            for name in ["temperature", "top_p", "top_k"].into_iter().filter(|name| !is_default(name)) {
                self.refuse(name, "not supported on this model");
            }
        }
        if self.is_choice_forced(body) {
            if self.model.is_some_and(Model::refuses_forced_choice) {
                self.refuse("tool_choice", "a forced tool choice is not supported on this model");
            } else if body["thinking"]["type"] == "enabled" {
                self.refuse("tool_choice", "Thinking may not be enabled when tool_choice forces tool use.");
            }
        }
    }

    fn is_choice_forced(&self, body: &Value) -> bool {
        matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"))
    }

    /// A request that only fills the cache.
    fn prewarm(&mut self, body: &Value) {
        let refused = [
            ("stream", body["stream"] == true),
            ("thinking", body["thinking"]["type"] == "enabled"),
            ("output_config.format", !body["output_config"]["format"].is_null()),
            ("tool_choice", self.is_choice_forced(body)),
        ];
        for (name, _) in refused.into_iter().filter(|(_, is_given)| *is_given) {
            self.refuse(name, "not taken with max_tokens 0");
        }
    }

    fn thinking(&mut self, body: &Value, most: u64) {
        let thinking = &body["thinking"];
        let Some(kind) = thinking["type"].as_str() else {
            if !thinking.is_null() {
                self.refuse("thinking.type", "Field required");
            }
            return;
        };
        let effort = body["output_config"]["effort"].as_str();
        if let Some(what) = self.model.and_then(|model| model.refused_thinking(kind, effort)) {
            return self.refuse("thinking", what);
        }
        if kind == "enabled" && most > 0 {
            match thinking["budget_tokens"].as_u64() {
                None => self.refuse("thinking.enabled.budget_tokens", "Field required"),
                Some(budget) if budget < BUDGET_MIN => {
                    let what = format!("Input should be greater than or equal to {BUDGET_MIN}");
                    self.refuse("thinking.enabled.budget_tokens", what);
                }
                Some(budget) if budget >= most => {
                    self.refuse("max_tokens", "must be greater than `thinking.budget_tokens`");
                }
                Some(_) => {}
            }
        }
        if kind == "between_tools" && !thinking["block_binding"].is_null() {
            self.refuse("thinking.block_binding", "not taken with between_tools");
        }
    }

    pub(super) fn tools(&mut self, body: &Value) {
        let Some(tools) = body["tools"].as_array() else {
            if !body["tools"].is_null() {
                self.refuse("tools", "Input should be a valid list");
            }
            return;
        };
        let mut names = HashSet::new();
        for (at, tool) in tools.iter().enumerate() {
            self.mark(&format!("tools.{at}"), tool, true);
            let is_custom = tool["type"].is_null() || tool["type"] == "custom";
            let name = tool["name"].as_str();
            if is_custom {
                let here = format!("tools.{at}.custom");
                self.name(&format!("{here}.name"), name.unwrap_or_default(), TOOL_NAME_MAX);
                if tool["input_schema"]["type"] != "object" {
                    self.refuse(format!("{here}.input_schema.type"), "Input should be 'object'");
                }
            }
            if name.is_some_and(|name| !names.insert(name)) {
                self.refuse("tools", "Tool names must be unique.");
            }
        }
        if !tools.is_empty() && tools.iter().all(|tool| tool["defer_loading"] == true) {
            self.refuse("tools", "All tools have defer_loading: true");
        }
    }

    pub(super) fn system(&mut self, system: &Value) {
        match system {
            Value::Null | Value::String(_) => {}
            Value::Array(blocks) => {
                for (at, block) in blocks.iter().enumerate() {
                    let here = format!("system.{at}");
                    match block["text"].as_str().filter(|_| block["type"] == "text") {
                        Some(text) => self.text(&here, text, block),
                        None => self.refuse(here, "a text block is expected"),
                    }
                }
            }
            _ => self.refuse("system", "Input should be a valid string or list"),
        }
    }

    /// Counts a cache mark on a block; `takes` says whether such a block may have one.
    pub(super) fn mark(&mut self, at: &str, block: &Value, takes: bool) {
        let mark = &block["cache_control"];
        if mark.is_null() {
            return;
        }
        if !takes {
            self.refuse(format!("{at}.cache_control"), "Extra inputs are not permitted");
        }
        let is_known = mark["type"] == "ephemeral" && matches!(mark["ttl"].as_str(), None | Some("5m" | "1h"));
        if !is_known || !(mark["ttl"].is_null() || mark["ttl"].is_string()) {
            self.refuse(
                format!("{at}.cache_control"),
                "Input should be {\"type\":\"ephemeral\"} with ttl '5m' or '1h'",
            );
        }
        self.marks.push(mark["ttl"] == "1h");
    }

    pub(super) fn cache_marks(&mut self, body: &Value) {
        let on_last = |message: &Value| message["content"].as_array()?.last().map(|it| it["cache_control"].clone());
        let last = body["messages"].as_array().and_then(|messages| on_last(messages.last()?)).unwrap_or_default();
        let at_end = &body["cache_control"];
        if !at_end.is_null() {
            self.mark("body", body, true);
            if !last.is_null() && (last["ttl"] == "1h") != (at_end["ttl"] == "1h") {
                self.refuse("cache_control", "differs in ttl from the mark on the last block");
            }
        }
        if self.marks.len() > MARKS_MAX {
            let what = format!(
                "A maximum of {MARKS_MAX} blocks with cache_control may be provided. Found {}.",
                self.marks.len()
            );
            self.refuse("cache_control", what);
        }
        let is_short_before_long = self.marks.windows(2).any(|pair| !pair[0] && pair[1]);
        if is_short_before_long {
            self.refuse("cache_control", "a ttl='1h' block must not come after a ttl='5m' block");
        }
    }
}
