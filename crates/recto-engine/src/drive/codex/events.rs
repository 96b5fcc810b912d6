//! What Codex prints: one event a line.

use crate::drive::{Heard, Listen};
use crate::error::{Error, Kind};
use recto::entry::Text;
use recto::tokens::Tokens;
use recto::wire::Usage;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What was heard of a turn so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The session, once the program has named it.
    pub(super) session: Option<Text>,
    /// Whether the turn came to its end.
    pub(super) is_complete: bool,
    /// Why it failed.
    pub(super) failed: Option<String>,
    /// The last complaint that was no item; the program may go on after it.
    pub(super) error: Option<String>,
    /// What the session has used in all of its turns.
    pub(super) usage: Option<Usage>,
    /// The first line that is no event.
    pub(super) odd: Option<String>,
    /// Items as far as they were told, by name.
    told: BTreeMap<String, String>,
    /// The names of answers, in order.
    answers: Vec<String>,
    called: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    thread_id: Option<Text>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    error: Option<Fault>,
    #[serde(default)]
    item: Value,
    #[serde(default)]
    usage: Option<Spent>,
}

#[derive(Deserialize)]
struct Fault {
    #[serde(default)]
    message: String,
}

#[derive(Clone, Copy, Deserialize)]
struct Spent {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cached_input_tokens: u64,
    #[serde(default)]
    cache_write_input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl Events {
    /// Takes one line.
    pub(super) fn line(&mut self, line: &str, listen: Listen<'_>) {
        if line.trim().is_empty() {
            return;
        }
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            self.odd.get_or_insert_with(|| line.to_string());
            return;
        };
        match event.kind.as_str() {
            "thread.started" => {
                self.session = event.thread_id;
                self.session.iter().for_each(|session| listen(Heard::Session(session.clone())));
            }
            "turn.completed" => {
                self.is_complete = true;
                self.usage = event.usage.map(Spent::usage);
            }
            "turn.failed" => self.failed = Some(event.error.map_or(String::new(), |error| error.message)),
            "error" => {
                let message = event.message.unwrap_or_default();
                listen(Heard::Note(message.as_str().into()));
                self.error = Some(message);
            }
            "item.started" | "item.updated" => self.item(&event.item, false, listen),
            "item.completed" => self.item(&event.item, true, listen),
            _ => {}
        }
    }

    /// Returns the answers.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.answers.iter().filter_map(|id| self.told.get(id)).map(String::as_str).filter(|text| !text.is_empty())
    }

    fn item(&mut self, item: &Value, is_complete: bool, listen: Listen<'_>) {
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        let id = text("id").to_string();
        let (name, arguments, result): (Text, String, String) = match text("type") {
            "agent_message" => {
                if !self.answers.contains(&id) {
                    self.answers.push(id.clone());
                }
                return self.words(id, text("text"), &mut |words| listen(Heard::Text(words)));
            }
            "reasoning" => return self.words(id, text("text"), &mut |words| listen(Heard::Reasoning(words))),
            "error" if is_complete => return listen(Heard::Note(text("message").into())),
            "command_execution" => ("shell".into(), text("command").into(), text("aggregated_output").into()),
            "mcp_tool_call" => {
                let name = format!("{}.{}", text("server"), text("tool")).into();
                (
                    name,
                    shown(&item["arguments"]),
                    shown(&item[if item["error"].is_null() { "result" } else { "error" }]),
                )
            }
            "file_change" => ("apply_patch".into(), changes(&item["changes"]), text("status").into()),
            "web_search" => ("web_search".into(), text("query").into(), String::new()),
            _ => return,
        };
        if self.called.insert(id) {
            listen(Heard::Call { name, arguments: arguments.into() });
        }
        if is_complete {
            let code = item["exit_code"].as_i64().unwrap_or(0);
            let is_error = code != 0 || ["failed", "declined"].contains(&text("status")) || !item["error"].is_null();
            listen(Heard::Result { text: result.into(), is_error });
        }
    }

    /// Tells what of a text was not told before.
    fn words(&mut self, id: String, text: &str, tell: &mut dyn FnMut(Text)) {
        let told = self.told.entry(id).or_default();
        let new = text.strip_prefix(told.as_str()).unwrap_or(text);
        if !new.is_empty() {
            tell(new.into());
        }
        *told = text.to_string();
    }
}

impl Spent {
    fn usage(self) -> Usage {
        Usage {
            input: Tokens(self.input_tokens),
            cached: Tokens(self.cached_input_tokens),
            written: Tokens(self.cache_write_input_tokens),
            output: Tokens(self.output_tokens),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn changes(changes: &Value) -> String {
    let change = |it: &Value| format!("{} {}", shown(&it["kind"]), shown(&it["path"]));
    changes.as_array().into_iter().flatten().map(change).collect::<Vec<_>>().join("\n")
}

/// Returns why the model was not answered by: what the program says, and what of the provider shows through it.
pub(super) fn refused(message: &str) -> Error {
    let body: Value = serde_json::from_str(message).unwrap_or_default();
    let said = body["error"]["message"].as_str().unwrap_or(message);
    let what = match said.trim() {
        "" => "Codex failed without a word".to_string(),
        said => format!("Codex failed: {said}"),
    };
    let code = body["error"]["code"].as_str().or(body["error"]["type"].as_str()).map(String::from);
    let hint = "what was said stays in its session; the next turn goes on from there";
    Kind::Refused { what, status: status(message), code, hint: hint.into() }.into()
}

/// The status of an answer, where the program tells it: `unexpected status 401 …`, `last status: 429 …`.
fn status(message: &str) -> Option<u16> {
    let (_, rest) = message.split_once("status")?;
    let digits: String = rest.trim_start_matches([':', ' ']).chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|status| (100..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(lines: &[&str]) -> (Events, Vec<Heard>) {
        let (mut events, mut heard) = (Events::default(), Vec::new());
        lines.iter().for_each(|line| events.line(line, &mut |it| heard.push(it)));
        (events, heard)
    }

    #[test]
    fn what_grows_is_told_once() {
        let item = |kind: &str, text: &str| {
            format!(r#"{{"type":"item.{kind}","item":{{"id":"item_0","type":"agent_message","text":"{text}"}}}}"#)
        };
        let (events, heard) = heard(&[&item("started", "Hel"), &item("updated", "Hello"), &item("completed", "Hello")]);
        assert_eq!(heard, [Heard::Text("Hel".into()), Heard::Text("lo".into())]);
        assert_eq!(events.texts().collect::<Vec<_>>(), ["Hello"]);
    }

    #[test]
    fn a_call_is_told_with_its_result_however_it_is_printed() {
        let mcp = r#"{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"s","tool":"t",
            "arguments":{"a":1},"result":null,"error":{"message":"no"},"status":"failed"}}"#;
        let (_, heard) = heard(&[mcp, r#"{"type":"error","message":"Reconnecting... 1/5"}"#, "not JSON"]);
        let expected = [
            Heard::Call { name: "s.t".into(), arguments: r#"{"a":1}"#.into() },
            Heard::Result { text: r#"{"message":"no"}"#.into(), is_error: true },
            Heard::Note("Reconnecting... 1/5".into()),
        ];
        assert_eq!(heard, expected);
    }

    #[test]
    fn a_refusal_tells_what_shows_through() {
        let told = |message: &str| {
            let error = refused(message);
            let (status, code) = error.refusal();
            (error.to_string(), status, code.map(String::from))
        };
        let body = r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#;
        assert_eq!(told(body), ("Codex failed: too long".into(), None, Some("context_length_exceeded".into())));
        let (_, status, code) = told("unexpected status 401 Unauthorized: no key, url: http://x");
        assert_eq!((status, code), (Some(401), None));
        assert_eq!(told("exceeded retry limit, last status: 429 Too Many Requests").1, Some(429));
    }
}
