//! What was said, told alike whether it stands in a request of any format or in the store. It is written apart from
//! Recto's own decoders, which are what it judges.

use recto::wire::Wire;
use serde_json::Value;

/// One thing that somebody said. Instructions are left out: they are the host's, not part of the talk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Said {
    User(String),
    Assistant(String),
    Thought(String),
    Call { id: String, name: String, arguments: String },
    Result { call: String, text: String },
}

impl Said {
    /// Returns what the messages of a request say.
    pub(super) fn all(wire: Wire, body: &Value) -> Vec<Said> {
        let list = if wire == Wire::OpenaiResponses { &body["input"] } else { &body["messages"] };
        let list = list.as_array().expect("a list of messages").iter();
        list.flat_map(|it| match wire {
            Wire::OpenaiChat => of_chat(it),
            Wire::OpenaiResponses => of_responses(it),
            Wire::Anthropic => of_messages(it),
            Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
        })
        .collect()
    }

    /// Returns what the entries say that `recto show --json` printed.
    pub(super) fn all_kept(shown: &Value) -> Vec<Said> {
        assert_eq!(shown["more"], false, "all of it");
        shown["entries"].as_array().expect("entries").iter().flat_map(|it| of_entry(&it["entry"])).collect()
    }
}

/// How often something was said more than once.
pub(super) fn repeated(said: &[Said]) -> Vec<&Said> {
    said.iter().enumerate().filter(|(at, it)| said[..*at].contains(it)).map(|(_, it)| it).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// The text of what is given as one string, or as a list of parts.
fn joined(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().map(|part| text(&part["text"])).collect::<Vec<_>>().join("\n"),
        other => text(other),
    }
}

/// Arguments as JSON without spaces, with keys in order.
fn plain(arguments: &Value) -> String {
    match arguments.as_str() {
        Some(spelled) => serde_json::from_str::<Value>(spelled).expect("arguments are JSON").to_string(),
        None => arguments.to_string(),
    }
}

/// Some clients send empty words beside a call, which say nothing.
fn spoken(role: &Value, text: String) -> Option<Said> {
    match role.as_str() {
        _ if text.is_empty() => None,
        Some("system" | "developer") => None,
        Some("user") => Some(Said::User(text)),
        Some("assistant") => Some(Said::Assistant(text)),
        _ => panic!("who is {role}?"),
    }
}

fn of_chat(message: &Value) -> Vec<Said> {
    if message["role"] == "tool" {
        return vec![Said::Result { call: text(&message["tool_call_id"]), text: joined(&message["content"]) }];
    }
    let content = Some(&message["content"]).filter(|it| !it.is_null());
    let mut said: Vec<Said> = content.and_then(|it| spoken(&message["role"], joined(it))).into_iter().collect();
    said.extend(message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let (name, arguments) = (text(&call["function"]["name"]), plain(&call["function"]["arguments"]));
        Said::Call { id: text(&call["id"]), name, arguments }
    }));
    said
}

fn of_responses(item: &Value) -> Vec<Said> {
    let said = match item["type"].as_str().unwrap_or("message") {
        "message" => spoken(&item["role"], joined(&item["content"])),
        "reasoning" => Some(Said::Thought(joined(&item["summary"]))),
        "function_call" => {
            let (name, arguments) = (text(&item["name"]), plain(&item["arguments"]));
            Some(Said::Call { id: text(&item["call_id"]), name, arguments })
        }
        "function_call_output" => Some(Said::Result { call: text(&item["call_id"]), text: joined(&item["output"]) }),
        other => panic!("what is {other}?"),
    };
    said.into_iter().collect()
}

fn of_messages(message: &Value) -> Vec<Said> {
    let Value::Array(blocks) = &message["content"] else {
        return spoken(&message["role"], text(&message["content"])).into_iter().collect();
    };
    let blocks = blocks.iter().filter_map(|block| match block["type"].as_str() {
        Some("text") => spoken(&message["role"], text(&block["text"])),
        Some("thinking") => Some(Said::Thought(text(&block["thinking"]))),
        Some("tool_use") => {
            let (name, arguments) = (text(&block["name"]), plain(&block["input"]));
            Some(Said::Call { id: text(&block["id"]), name, arguments })
        }
        Some("tool_result") => {
            Some(Said::Result { call: text(&block["tool_use_id"]), text: joined(&block["content"]) })
        }
        other => panic!("what is {other:?}?"),
    });
    blocks.collect()
}

fn of_entry(entry: &Value) -> Vec<Said> {
    let parts = entry["parts"].as_array().expect("parts").iter();
    let parts = parts.filter_map(|part| match part["type"].as_str() {
        Some("text") => spoken(&entry["role"], text(&part["text"])),
        Some("reasoning") => Some(Said::Thought(text(&part["text"]))),
        Some("call") => {
            let arguments = part["arguments"].as_object().and_then(|it| it.values().next()).expect("arguments");
            Some(Said::Call { id: text(&part["id"]), name: text(&part["name"]), arguments: plain(arguments) })
        }
        Some("result") => Some(Said::Result { call: text(&part["call"]), text: joined(&part["content"]) }),
        other => panic!("what is {other:?}?"),
    });
    parts.collect()
}
