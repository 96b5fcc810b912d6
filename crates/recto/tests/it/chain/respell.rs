//! One body in other words of JSON: what a client may do between two calls without saying anything else.

use super::list;
use recto::Wire;
use recto_testkit::mixed::Dice;
use serde_json::{Value, json};

/// Writes JSON with its keys in any order and space in any place; numbers in arguments are spelled anew.
fn shuffled(value: &Value, dice: &mut Dice, is_argument: bool) -> String {
    let space = *dice.pick(&["", "", " ", "\n\t"]);
    match value {
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(|it| shuffled(it, dice, is_argument)).collect();
            format!("[{space}{}{space}]", list.join(&format!("{space},")))
        }
        Value::Object(fields) => {
            let mut written: Vec<String> = Vec::new();
            for (name, value) in fields {
                let is_argument = is_argument || ["input", "args", "arguments", "response"].contains(&name.as_str());
                let value = shuffled(value, dice, is_argument);
                let at = dice.below(written.len() + 1);
                written.insert(at, format!("{}{space}:{value}", Value::from(name.as_str())));
            }
            format!("{{{space}{}{space}}}", written.join(&format!(",{space}")))
        }
        Value::Number(number) if is_argument && number.is_i64() => format!("{number}{}", dice.pick(&["", ".0", "e0"])),
        other => other.to_string(),
    }
}

/// Spells the arguments of a call anew, if they are JSON.
fn respell_arguments(arguments: &mut Value, dice: &mut Dice) {
    let parsed = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(parsed) = parsed {
        *arguments = shuffled(&parsed, dice, true).into();
    }
}

/// Spells a content as a string or as a list, with marks, blanks and fields of the client's own.
fn respell_content(content: &mut Value, kind: &str, mark: &str, dice: &mut Dice) {
    let only =
        content.as_array().filter(|list| list.len() == 1 && list[0]["type"] == kind).map(|list| &list[0]["text"]);
    match (&*content, only) {
        (Value::String(text), _) if dice.chance(50) => *content = json!([{"type": kind, "text": text}]),
        (Value::String(text), _) => *content = format!("{text}\n").into(),
        (_, Some(text)) if dice.chance(50) => *content = text.clone(),
        _ => {}
    }
    let Value::Array(parts) = content else { return };
    for part in parts.iter_mut().filter_map(Value::as_object_mut) {
        part.remove(mark);
        if part["type"] == kind && dice.chance(50) {
            part.insert(mark.into(), json!({"type": "ephemeral"}));
            part.insert("x_own".into(), json!([1]));
        }
    }
    if dice.chance(30) {
        parts.push(json!({"type": kind, "text": " \n"}));
    }
}

fn respell_chat(mut message: Value, dice: &mut Dice) -> Vec<Value> {
    let fields = message.as_object_mut().unwrap();
    fields.remove("reasoning_content");
    fields.insert("x_own".into(), json!({"a": 1}));
    for call in fields.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        respell_arguments(&mut call["function"]["arguments"], dice);
    }
    if let Some(content) = fields.get_mut("content") {
        respell_content(content, "text", "cache_control", dice);
    }
    if dice.chance(50) && message.get("tool_calls").is_some() && message["content"].is_string() {
        let text = json!({"role": "assistant", "content": message["content"].take()});
        return vec![text, message];
    }
    split(message, dice)
}

/// One message as two of the same role, where it has several parts.
fn split(mut message: Value, dice: &mut Dice) -> Vec<Value> {
    let has_several = message["content"].as_array().is_some_and(|parts| parts.len() > 1);
    let is_whole = !has_several || dice.chance(50);
    if is_whole || message["role"] == "tool" || message.get("tool_calls").is_some() {
        return vec![message];
    }
    let mut second = message.clone();
    let parts = message["content"].as_array_mut().unwrap();
    second["content"] = parts.split_off(1 + dice.below(parts.len() - 1)).into();
    vec![message, second]
}

fn respell_anthropic(mut message: Value, dice: &mut Dice) -> Vec<Value> {
    respell_content(&mut message["content"], "text", "cache_control", dice);
    if let Value::Array(blocks) = &mut message["content"] {
        let is_thought = |block: &Value| block["type"].as_str().is_some_and(|kind| kind.ends_with("thinking"));
        blocks.retain(|block| !is_thought(block));
        for block in blocks.iter_mut().filter(|block| block["type"] == "tool_result") {
            let fields = block.as_object_mut().unwrap();
            if let Some(content) = fields.get_mut("content") {
                respell_content(content, "text", "cache_control", dice);
            }
            fields.entry("is_error").or_insert(false.into());
            fields.insert("cache_control".into(), Value::Null);
        }
    }
    split(message, dice)
}

fn respell_responses(mut item: Value, dice: &mut Dice) -> Vec<Value> {
    let fields = item.as_object_mut().unwrap();
    if fields.get("type").is_some_and(|kind| kind == "reasoning") {
        return Vec::new();
    }
    for name in ["id", "status"] {
        fields.remove(name);
        if dice.chance(50) {
            fields.insert(name.into(), "completed".into());
        }
    }
    if let Some(arguments) = fields.get_mut("arguments") {
        respell_arguments(arguments, dice);
    }
    let kind = if fields.get("role").is_some_and(|role| role == "assistant") { "output_text" } else { "input_text" };
    let content = if fields.contains_key("output") { "output" } else { "content" };
    if let Some(content) = fields.get_mut(content) {
        respell_content(content, kind, "prompt_cache_breakpoint", dice);
    }
    if fields.contains_key("role") && dice.chance(50) {
        fields.remove("type");
    }
    split(item, dice)
}

/// Spells a content of Gemini with underscores, without a role where none is needed, and without ids that nobody needs.
fn respell_gemini(mut content: Value, dice: &mut Dice) -> Vec<Value> {
    let fields = content.as_object_mut().unwrap();
    if fields["role"] == "user" && dice.chance(50) {
        fields.remove("role");
    }
    let parts = fields.get_mut("parts").and_then(Value::as_array_mut).unwrap();
    parts.retain(|part| part["thought"] != true);
    for part in parts.iter_mut().filter_map(Value::as_object_mut) {
        part.remove("thoughtSignature");
        let snake = [
            ("functionCall", "function_call"),
            ("functionResponse", "function_response"),
            ("inlineData", "inline_data"),
            ("fileData", "file_data"),
        ];
        for (camel, snake) in snake {
            if let Some(mut inner) = part.remove(camel) {
                for (camel, snake) in [("mimeType", "mime_type"), ("fileUri", "file_uri")] {
                    let kind = inner.as_object_mut().and_then(|inner| inner.remove(camel));
                    kind.into_iter().for_each(|kind| drop(inner.as_object_mut().unwrap().insert(snake.into(), kind)));
                }
                part.insert(if dice.chance(50) { snake } else { camel }.into(), inner);
            }
        }
    }
    if dice.chance(60) && content["role"] == "model" {
        content["parts"].as_array_mut().unwrap().push(json!({"text": "", "thought_signature": "c2Vjb25k"}));
    }
    vec![content]
}

fn respell_ollama(mut message: Value, dice: &mut Dice) -> Vec<Value> {
    let fields = message.as_object_mut().unwrap();
    fields.remove("thinking");
    fields.insert("x_own".into(), json!({"a": 1}));
    if let Some(Value::String(text)) = fields.get_mut("content").filter(|_| dice.chance(50)) {
        text.push('\n');
    }
    for call in fields.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        call["function"].as_object_mut().unwrap().remove("index");
        call["type"] = "function".into();
    }
    vec![message]
}

pub(super) fn respelled(wire: Wire, body: &str, dice: &mut Dice) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    let elements = body[list(wire)].as_array_mut().unwrap();
    let respell = match wire {
        Wire::OpenaiChat => respell_chat,
        Wire::OpenaiResponses => respell_responses,
        Wire::Anthropic => respell_anthropic,
        Wire::Gemini => respell_gemini,
        Wire::Ollama => respell_ollama,
    };
    *elements = std::mem::take(elements).into_iter().flat_map(|element| respell(element, dice)).collect();
    if let Some(system) = body.get_mut("system") {
        respell_content(system, "text", "cache_control", dice);
    }
    shuffled(&body, dice, false)
}
