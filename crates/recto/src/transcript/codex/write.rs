//! From entries to a rollout that Codex resumes.

use crate::entry::{Arguments, CallId, Entry, Millis, Part, Piece, Role, ToolResult};
use crate::transcript::time;
use crate::wire::Ids;
use crate::wire::openai_responses::{Record, Written, kind_of, written_as};
use crate::wire::{call_id, tool_name};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;

/// What Codex itself says of a call whose result never came.
const ABORTED: &str = "aborted";
/// Whose reasoning and own items go into a rollout.
const PROVIDER: &str = "openai";

/// Writes a session file that Codex resumes: the conversation of these entries, by the name of `thread_id`, in the
/// folder `cwd`. Entries without a time are given `at`.
pub fn session(entries: &[Entry], thread_id: &str, cwd: &str, at: Millis) -> String {
    let base = entries.first().filter(|entry| super::is_own_prompt(entry));
    // No provider is named: the program refuses to resume a session with another than the one that it names.
    let mut meta = json!({
        "id": thread_id,
        "timestamp": time::written(at),
        "cwd": cwd,
        "originator": "recto",
        "cli_version": env!("CARGO_PKG_VERSION"),
        "source": "exec",
    });
    if let Some([Part::Text { text }]) = base.map(|entry| &*entry.parts) {
        meta["base_instructions"] = json!({"text": &**text});
    }
    let mut rollout = Rollout::default();
    rollout.line("session_meta", at, &meta.to_string());
    let results = results(entries);
    let mut ids = Ids::default();
    for (nth, entry) in entries.iter().enumerate() {
        let at = entry.at.unwrap_or(at);
        match entry.role {
            Role::System if nth == 0 && base.is_some() => {}
            Role::System => rollout.said(entry, "developer", at),
            Role::User => rollout.said(entry, "user", at),
            Role::Assistant => {
                ids.begin(&entry.parts);
                rollout.step(entry, at, &ids);
                for call in entry.calls() {
                    let found = results.get(&(nth, &call.id)).copied();
                    let custom = is_custom(entry, &call.id);
                    rollout.output(&ids.of(call.id.as_str()), found, at, custom);
                }
            }
            // Results stand behind their calls.
            Role::Tool => {}
        }
    }
    rollout.text
}

/// The result of every call, by the number of its step. An id may come again; the result is that of the newest call
/// before it.
fn results(entries: &[Entry]) -> HashMap<(usize, &CallId), &Entry> {
    let (mut found, mut newest) = (HashMap::new(), HashMap::new());
    for (nth, entry) in entries.iter().enumerate() {
        newest.extend(entry.calls().map(|call| (&call.id, nth)));
        let result = entry.parts.iter().find_map(|part| match part {
            Part::Result(result) => Some(&result.call),
            _ => None,
        });
        if let Some(step) = result.and_then(|id| newest.get(id).copied())
            && let Some(id) = result
        {
            found.entry((step, id)).or_insert(entry);
        }
    }
    found
}

fn is_custom(entry: &Entry, id: &CallId) -> bool {
    let at = entry.parts.iter().position(|part| matches!(part, Part::Call(call) if call.id == *id));
    at.is_some_and(|at| written_as(&entry.extra, at) == Written::Custom)
}

#[derive(Default)]
struct Rollout {
    text: String,
}

impl Rollout {
    fn line(&mut self, kind: &str, at: Millis, payload: &str) {
        let at = time::written(at);
        self.text.push_str(&format!("{{\"timestamp\":\"{at}\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"));
    }

    fn item(&mut self, at: Millis, item: &Value) {
        self.line("response_item", at, &item.to_string());
    }

    fn said(&mut self, entry: &Entry, role: &str, at: Millis) {
        let content: Vec<Value> = entry.parts.iter().filter(|part| part.is_content()).filter_map(content).collect();
        if !content.is_empty() {
            self.item(at, &json!({"type": "message", "role": role, "content": content}));
        }
        for payload in entry.parts.iter().filter_map(own_item) {
            self.line("response_item", at, payload);
        }
    }

    fn step(&mut self, entry: &Entry, at: Millis, ids: &Ids<'_>) {
        let is_sent = |part: &Part| match part {
            Part::Reasoning(_) => false,
            Part::Opaque { .. } => own_item(part).is_some(),
            part => part.is_content(),
        };
        let last = entry.parts.iter().rposition(is_sent).unwrap_or(0);
        for (nth, part) in entry.parts.iter().enumerate() {
            match part {
                Part::Reasoning(it) if nth < last && it.provider.as_deref() == Some(PROVIDER) => {
                    let item = it.item.as_deref().filter(|item| is_object(item));
                    item.into_iter().for_each(|item| self.line("response_item", at, item));
                }
                Part::Text { text } if part.is_content() => {
                    let content = json!([{"type": "output_text", "text": &**text}]);
                    self.item(at, &json!({"type": "message", "role": "assistant", "content": content}));
                }
                Part::Call(call) => {
                    let (id, name) = (ids.of(call.id.as_str()), tool_name(&call.name));
                    let item = match written_as(&entry.extra, nth) {
                        Written::Custom => json!({
                            "type": "custom_tool_call", "call_id": id, "name": name, "input": call.arguments.as_str(),
                        }),
                        Written::Function => json!({
                            "type": "function_call", "call_id": id, "name": name,
                            "arguments": arguments(&call.arguments),
                        }),
                    };
                    self.item(at, &item);
                }
                part => own_item(part).into_iter().for_each(|item| self.line("response_item", at, item)),
            }
        }
    }

    fn output(&mut self, id: &str, found: Option<&Entry>, at: Millis, is_custom: bool) {
        let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
        let result = found.and_then(|entry| {
            entry.parts.iter().find_map(|part| if let Part::Result(result) = part { Some(result) } else { None })
        });
        let at = found.and_then(|entry| entry.at).unwrap_or(at);
        let output = result.map_or_else(|| ABORTED.into(), output);
        self.item(at, &json!({"type": kind, "call_id": call_id(id), "output": output}));
    }
}

fn output(result: &ToolResult) -> Value {
    match &*result.content {
        [] => "".into(),
        [Piece::Text { text }] => (&**text).into(),
        pieces => pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text { text } => json!({"type": "input_text", "text": &**text}),
                Piece::Image(media) => json!({"type": "input_image", "image_url": &*media.url}),
            })
            .collect(),
    }
}

/// A part of what a person or the host said. Codex keeps texts and pictures; other things are named.
fn content(part: &Part) -> Option<Value> {
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let named =
        |kind: &str, name: Option<&str>| text(&format!("[{kind}{}{}]", name.map_or("", |_| " "), name.unwrap_or("")));
    match part {
        Part::Text { text: said } => Some(text(said)),
        Part::Image(media) => Some(json!({"type": "input_image", "image_url": &*media.url})),
        Part::Audio(media) => Some(named("audio", media.name.as_deref())),
        Part::Document(media) => Some(named("file", media.name.as_deref())),
        Part::File { id } => Some(named("file", Some(id))),
        _ => None,
    }
}

/// The arguments of a function: JSON, whatever the model wrote.
fn arguments(arguments: &Arguments) -> String {
    match arguments.as_str() {
        text if is_object(text) => text.to_string(),
        text if text.trim().is_empty() => "{}".into(),
        text => json!({"input": text}).to_string(),
    }
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// An item of the provider's own, on one line, which goes into the file as it came.
fn own_item(part: &Part) -> Option<&str> {
    let Part::Opaque { provider, payload } = part else { return None };
    let fields: Record<'_> = serde_json::from_str(payload).ok()?;
    let kind = kind_of(&fields)?;
    let is_item = kind.ends_with("_call") || kind.ends_with("_output") || kind == "compaction";
    let has_own_part = ["function_call", "custom_tool_call"].contains(&kind.as_str());
    (is_item && !has_own_part && **provider == *PROVIDER && !payload.contains('\n')).then_some(payload)
}
