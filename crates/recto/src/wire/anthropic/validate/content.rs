//! Messages: roles, blocks, and that calls and results belong together.

use super::super::model::Model;
use super::super::{IMAGE_CHARS_MAX, IMAGE_TYPES};
use super::Check;
use serde_json::Value;
use std::collections::HashSet;

/// What a result may hold.
const RESULT_KINDS: [&str; 6] = ["text", "image", "document", "search_result", "tool_reference", "browser_state"];

/// The calls of an assistant's turn while its results are read.
#[derive(Default)]
struct Round {
    /// Ids of calls, and whether each has its result.
    calls: Vec<(String, bool)>,
    /// Where the turn stands.
    at: String,
    /// Whether something other than a result came behind it.
    is_over: bool,
    /// Whether a call that the provider runs itself is unfinished.
    is_server_open: bool,
    /// Whether anything came behind it.
    is_followed: bool,
}

impl Check {
    pub(super) fn messages(&mut self, messages: &[Value], body: &Value) {
        let (mut round, mut ids, mut before) = (Round::default(), HashSet::new(), "");
        for (at, message) in messages.iter().enumerate() {
            let here = format!("messages.{at}");
            let role = message["role"].as_str().unwrap_or_default();
            self.fields_of(&here, role, message);
            if at == 0 && role != "user" && !(role == "assistant" && begins_with_compaction(message)) {
                self.refuse("messages", "first message must use the \"user\" role");
            }
            let blocks = self.blocks(&here, role, &message["content"]);
            match role {
                "assistant" => {
                    if before != "assistant" {
                        self.end(&mut round);
                        round = Round { at: here.clone(), ..Round::default() };
                    }
                    self.assistant(&here, blocks, &mut round, &mut ids);
                }
                "user" => self.user(&here, blocks, &message["content"], &mut round),
                "system" => {
                    let after = messages.get(at + 1).map(|next| next["role"].as_str().unwrap_or_default());
                    self.late_system(&here, before, after, &round);
                    round.is_over = true;
                }
                _ => self.refuse(format!("{here}.role"), "Input should be 'user', 'assistant' or 'system'"),
            }
            before = role;
        }
        let is_paused = round.is_server_open && !round.is_followed;
        self.end(&mut round);
        let refuses = self.model.is_some_and(Model::refuses_prefill);
        if before == "assistant" && refuses && !is_paused {
            self.refuse(
                "messages",
                "This model does not support assistant message prefill. The conversation must end with a user message.",
            );
        }
        self.thinking_blocks(messages, body);
    }

    fn fields_of(&mut self, here: &str, role: &str, message: &Value) {
        let taken: &[&str] =
            if role == "system" { &["role", "content", "clear_at", "output_config"] } else { &["role", "content"] };
        for name in message.as_object().into_iter().flat_map(|fields| fields.keys()) {
            if !taken.contains(&name.as_str()) {
                self.refuse(format!("{here}.{name}"), "Extra inputs are not permitted");
            }
        }
        if role == "system" && !message["clear_at"].is_null() {
            let blocks = message["content"].as_array().into_iter().flatten();
            if blocks.into_iter().any(|block| !block["cache_control"].is_null()) {
                self.refuse(here, "cache_control cannot be set on a system message with clear_at");
            }
        }
    }

    /// The blocks of a content; a string has none.
    fn blocks<'b>(&mut self, here: &str, role: &str, content: &'b Value) -> &'b [Value] {
        match content {
            Value::String(text) if text.is_empty() && role == "user" => {
                self.refuse(here, "user messages must have non-empty content");
                &[]
            }
            Value::String(text) => {
                if role != "assistant" && text.trim().is_empty() || text.trim().is_empty() && !text.is_empty() {
                    self.refuse("messages", "text content blocks must contain non-whitespace text");
                }
                &[]
            }
            Value::Array(blocks) => {
                for (nth, block) in blocks.iter().enumerate() {
                    self.block(&format!("{here}.content.{nth}"), role, block);
                }
                blocks
            }
            _ => {
                self.refuse(format!("{here}.content"), "Input should be a valid string or list");
                &[]
            }
        }
    }

    fn block(&mut self, here: &str, role: &str, block: &Value) {
        let Some(kind) = block["type"].as_str() else {
            return self.refuse(format!("{here}.type"), "Field required");
        };
        let is_misplaced = match kind {
            "thinking" | "redacted_thinking" | "tool_use" => role != "assistant",
            "image" | "document" | "tool_result" => role != "user",
            _ => false,
        };
        if is_misplaced {
            return self.refuse(here, format!("{kind:?} is not taken in a message of role {role:?}"));
        }
        let missing = match kind {
            "text" => !block["text"].is_string(),
            "thinking" => !(block["thinking"].is_string() && block["signature"].is_string()),
            "redacted_thinking" => !block["data"].is_string(),
            "tool_use" => !(block["name"].is_string() && block["input"].is_object()),
            "tool_result" => !block["tool_use_id"].is_string(),
            "image" | "document" => !block["source"].is_object(),
            _ => false,
        };
        if missing {
            self.refuse(here, format!("a field of {kind:?} is missing or of a wrong type"));
        }
        match kind {
            "text" => return self.text(here, block["text"].as_str().unwrap_or_default(), block),
            "image" => self.image(here, &block["source"]),
            "document" => self.document(here, &block["source"]),
            "tool_result" => self.result(here, &block["content"]),
            "tool_use" => {
                self.name(&format!("{here}.tool_use.id"), block["id"].as_str().unwrap_or_default(), usize::MAX);
                self.name(&format!("{here}.tool_use.name"), block["name"].as_str().unwrap_or_default(), 200);
            }
            "server_tool_use" => self.server_id(here, block["id"].as_str().unwrap_or_default()),
            _ => {}
        }
        self.mark(here, block, !matches!(kind, "thinking" | "redacted_thinking"));
    }

    pub(super) fn text(&mut self, here: &str, text: &str, block: &Value) {
        if text.is_empty() {
            self.refuse(here, "text content blocks must be non-empty");
        } else if text.trim().is_empty() {
            self.refuse(here, "text content blocks must contain non-whitespace text");
        }
        if text.is_empty() && !block["cache_control"].is_null() {
            self.refuse(format!("{here}.text"), "cache_control cannot be set for empty text blocks");
        }
        self.mark(here, block, true);
    }

    fn server_id(&mut self, here: &str, id: &str) {
        let rest = id.strip_prefix("srvtoolu_").unwrap_or_default();
        if rest.is_empty() || !rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.refuse(format!("{here}.server_tool_use.id"), "String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'");
        }
    }

    fn image(&mut self, here: &str, source: &Value) {
        self.images += 1;
        match source["type"].as_str() {
            Some("base64") => {
                let kind = source["media_type"].as_str().unwrap_or_default();
                if !IMAGE_TYPES.contains(&kind) {
                    let what = format!("Input should be one of {}", IMAGE_TYPES.join(", "));
                    self.refuse(format!("{here}.image.source.base64.media_type"), what);
                }
                let data = source["data"].as_str().unwrap_or_default();
                if data.is_empty() {
                    self.refuse(format!("{here}.image.source.base64.data"), "Field required");
                } else if data.len() > IMAGE_CHARS_MAX {
                    self.refuse(format!("{here}.image.source.base64"), "image exceeds 10 MB maximum");
                }
            }
            Some("url") if source["url"].is_string() => {}
            Some("file") if source["file_id"].is_string() => {}
            _ => self.refuse(format!("{here}.image.source"), "Input should be of type base64, url or file"),
        }
    }

    fn document(&mut self, here: &str, source: &Value) {
        let is_good = match source["type"].as_str() {
            Some("base64") => source["media_type"] == "application/pdf" && source["data"].is_string(),
            Some("text") => source["media_type"] == "text/plain" && source["data"].is_string(),
            Some("content") => !source["content"].is_null(),
            Some("url") => source["url"].is_string(),
            Some("file") => source["file_id"].is_string(),
            _ => false,
        };
        if !is_good {
            self.refuse(format!("{here}.document.source"), "not a source of a document");
        }
    }

    fn result(&mut self, here: &str, content: &Value) {
        match content {
            Value::Null | Value::String(_) => {}
            Value::Array(blocks) => {
                for (nth, block) in blocks.iter().enumerate() {
                    let here = format!("{here}.tool_result.content.{nth}");
                    let kind = block["type"].as_str().unwrap_or_default();
                    if !RESULT_KINDS.contains(&kind) {
                        self.refuse(&here, format!("{kind:?} is not taken in a result"));
                    }
                    match kind {
                        "text" => self.text(&here, block["text"].as_str().unwrap_or_default(), block),
                        "image" => self.image(&here, &block["source"]),
                        "document" => self.document(&here, &block["source"]),
                        _ => {}
                    }
                    if kind != "text" {
                        self.mark(&here, block, true);
                    }
                }
            }
            _ => self.refuse(format!("{here}.tool_result.content"), "Input should be a valid string or list"),
        }
    }

    fn assistant(&mut self, here: &str, blocks: &[Value], round: &mut Round, ids: &mut HashSet<String>) {
        let of = |block: &Value, kind: &str, name: &str| -> Option<String> {
            block[name].as_str().filter(|_| block["type"] == kind).map(str::to_string)
        };
        for id in blocks.iter().filter_map(|block| of(block, "tool_use", "id")) {
            if !ids.insert(id.clone()) {
                self.refuse(here, "`tool_use` ids must be unique");
            }
            round.calls.push((id, false));
        }
        let is_answer = |block: &&Value| block["type"].as_str().is_some_and(|kind| kind.ends_with("_tool_result"));
        let answered: Vec<&str> =
            blocks.iter().filter(is_answer).filter_map(|block| block["tool_use_id"].as_str()).collect();
        let mut started = blocks.iter().filter_map(|block| of(block, "server_tool_use", "id"));
        round.is_server_open = started.any(|id| !answered.contains(&id.as_str()));
    }

    fn user(&mut self, here: &str, blocks: &[Value], content: &Value, round: &mut Round) {
        let is_empty = content.as_array().is_some_and(Vec::is_empty);
        round.is_followed |= !is_empty;
        round.is_over |= content.is_string();
        for (nth, block) in blocks.iter().enumerate() {
            if block["type"] != "tool_result" {
                round.is_over = true;
                continue;
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            let at = format!("{here}.content.{nth}");
            match round.calls.iter_mut().find(|(call, _)| call == id) {
                None => self.refuse(
                    at,
                    format!(
                        "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
                         have a corresponding `tool_use` block in the previous message."
                    ),
                ),
                Some((_, true)) => {
                    self.refuse(at, format!("each tool_use must have a single result. Found several for {id}"))
                }
                // Behind the run of results it doesn't count, and the call is found to have none.
                Some((_, is_answered)) => *is_answered = !round.is_over,
            }
        }
        if round.is_server_open && round.is_over {
            self.refuse(
                &round.at,
                "a server tool use was found without a corresponding tool_result block, and is followed by more than \
                 tool results",
            );
            round.is_server_open = false;
        }
    }

    fn end(&mut self, round: &mut Round) {
        let open: Vec<String> =
            round.calls.drain(..).filter(|(_, is_answered)| !is_answered).map(|(id, _)| id).collect();
        if !open.is_empty() {
            self.refuse(
                &round.at,
                format!(
                    "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
                     block must have a corresponding `tool_result` block in the next message.",
                    open.join(", ")
                ),
            );
        }
    }

    fn late_system(&mut self, here: &str, before: &str, after: Option<&str>, round: &Round) {
        if self.model.and_then(Model::takes_late_system) == Some(false) {
            return self.refuse(here, "role 'system' is not supported on this model");
        }
        if before != "user" || after.is_some_and(|after| after != "assistant") {
            self.refuse(here, "a system message stands directly after a user turn, and last or before an assistant's");
        }
        if round.calls.iter().any(|(_, is_answered)| !is_answered) {
            self.refuse(here, "a system message must not stand between a call and its result");
        }
    }

    /// Thinking in the newest of the assistant's messages.
    fn thinking_blocks(&mut self, messages: &[Value], body: &Value) {
        let Some(at) = messages.iter().rposition(|message| message["role"] == "assistant") else { return };
        let blocks = messages[at]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_thinking = |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
        if blocks.last().is_some_and(is_thinking) {
            self.refuse(format!("messages.{at}"), "The final block in an assistant message cannot be `thinking`");
        }
        let begins = messages[..at].iter().rposition(|message| message["role"] != "assistant").map_or(0, |it| it + 1);
        let first = messages[begins]["content"].as_array().and_then(|blocks| blocks.first());
        let has_calls = blocks.iter().any(|block| block["type"] == "tool_use");
        if body["thinking"]["type"] == "enabled" && has_calls && !first.is_some_and(is_thinking) {
            let kind = first.and_then(|block| block["type"].as_str()).unwrap_or("text");
            self.refuse(
                format!("messages.{begins}.content.0.type"),
                format!(
                    "Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is enabled, a \
                     final `assistant` message must start with a thinking block"
                ),
            );
        }
    }
}

fn begins_with_compaction(message: &Value) -> bool {
    message["content"].as_array().and_then(|blocks| blocks.first()).is_some_and(|block| block["type"] == "compaction")
}
