//! A request as the cache sees it: pieces in the order they are rendered, each with its tokens and marks.

use super::model::{Claude, Gpt};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// What an image or a file costs, whatever is in it.
const MEDIA_TOKENS: u64 = 1000;
/// What Ollama counts for a picture.
const OLLAMA_IMAGE_TOKENS: u64 = 768;

/// How the fake counts tokens: a quarter of the bytes, rounded up, unless told otherwise.
#[derive(Clone)]
pub struct Count(Arc<dyn Fn(&str) -> u64 + Send + Sync>);

impl fmt::Debug for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Count")
    }
}

impl Default for Count {
    fn default() -> Count {
        Count(Arc::new(|text| (text.len() as u64).div_ceil(4)))
    }
}

impl Count {
    /// Counts by a function.
    pub fn by(count: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Count {
        Count(Arc::new(count))
    }

    /// Returns the tokens of a text as it is, of anything else as JSON; images and files have a fixed price.
    pub(super) fn of(&self, value: &Value) -> u64 {
        match value {
            Value::Null => 0,
            Value::String(text) => (self.0)(text),
            _ if is_text(value) => (self.0)(value["text"].as_str().unwrap_or_default()),
            _ => {
                let mut light = value.clone();
                let media = lighten(&mut light);
                (self.0)(&light.to_string()) + media * MEDIA_TOKENS
            }
        }
    }
}

fn is_text(value: &Value) -> bool {
    matches!(value["type"].as_str(), Some("text" | "input_text" | "output_text"))
}

/// Takes out the data of images and files, and returns how many there were.
fn lighten(value: &mut Value) -> u64 {
    match value {
        Value::Array(list) => list.iter_mut().map(lighten).sum(),
        Value::Object(fields) => {
            let in_base64 = fields.get("type").is_some_and(|kind| kind == "base64") || fields.contains_key("mimeType");
            let mut media = 0;
            for (key, inner) in fields.iter_mut() {
                let is_data = match inner.as_str() {
                    Some(_) if key == "data" => in_base64,
                    Some(text) => key == "file_data" || text.starts_with("data:") && text.contains(";base64,"),
                    None => false,
                };
                if is_data {
                    *inner = Value::Null;
                    media += 1;
                } else {
                    media += lighten(inner);
                }
            }
            media
        }
        _ => 0,
    }
}

#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) text: String, // what must be equal
    pub(super) tokens: u64,
    pub(super) mark: Option<String>, // how long the cache keeps everything up to here
    pub(super) ends_message: bool,   // where gpt-5.6 and later break by themselves
}

#[derive(Debug, Clone, Default)]
pub(super) struct Prompt {
    pub(super) model: String,
    pub(super) pieces: Vec<Piece>,
    pub(super) only_explicit: bool,
    pub(super) lifetime: String, // of marks that name none
}

impl Prompt {
    pub(super) fn tokens(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.tokens).sum()
    }

    fn push(&mut self, role: &str, value: &Value, count: &Count, mark: Option<String>) {
        let tokens = count.of(value);
        self.pieces.push(Piece { text: format!("{role} {value}"), tokens, mark, ends_message: false });
    }

    fn end_message(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.ends_message = true;
        }
    }
}

/// Renders an Anthropic request: tools, system, messages, without the thinking that is left out.
pub(super) fn of_messages(body: &Value, dropped: &[(usize, usize)], count: &Count) -> Prompt {
    let model = body["model"].as_str().unwrap_or_default();
    let mut prompt = Prompt { model: model.to_owned(), lifetime: "5m".to_owned(), ..Prompt::default() };
    for tool in body["tools"].as_array().into_iter().flatten() {
        prompt.push("tools", &unmarked(tool), count, anthropic_mark(tool));
    }
    let system_at = prompt.pieces.len();
    for block in blocks(&body["system"]) {
        prompt.push("system", &unmarked(&block), count, anthropic_mark(&block));
    }
    let messages_at = prompt.pieces.len();
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let last_turn = messages.iter().rposition(is_plain_user).unwrap_or(0);
    let forgets = Claude::named(model).is_some_and(Claude::forgets_old_thinking);
    for (at, message) in messages.iter().enumerate() {
        for (inside, block) in blocks(&message["content"]).iter().enumerate() {
            let old = forgets && at < last_turn && is_thinking(block);
            if !old && !dropped.contains(&(at, inside)) {
                let role = message["role"].as_str().unwrap_or_default();
                prompt.push(role, &unmarked(block), count, anthropic_mark(block));
            }
        }
    }
    // Some settings change how a level is rendered without being part of its text.
    let images = body["messages"].to_string().matches("\"type\":\"image\"").count();
    let effort = &body["output_config"]["effort"];
    let settings = json!([body["tool_choice"], body["thinking"]["type"], effort, images]);
    for (at, setting) in [(system_at, &body["speed"]), (messages_at, &settings)] {
        if let Some(piece) = prompt.pieces.get_mut(at) {
            piece.text.insert_str(0, &setting.to_string());
        }
    }
    let automatic = anthropic_mark(body);
    let is_markable = |piece: &&mut Piece| !piece.text.contains("\"type\":\"thinking\"");
    if let (Some(ttl), Some(last)) = (automatic, prompt.pieces.iter_mut().rev().find(is_markable)) {
        last.mark = Some(ttl);
    }
    prompt
}

fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

fn is_plain_user(message: &Value) -> bool {
    let only_results = |blocks: &Vec<Value>| blocks.iter().all(|block| block["type"] == "tool_result");
    message["role"] == "user" && !message["content"].as_array().is_some_and(only_results)
}

fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn unmarked(block: &Value) -> Value {
    let mut block = block.clone();
    if let Some(fields) = block.as_object_mut() {
        fields.remove("cache_control");
        fields.remove("prompt_cache_breakpoint");
        if fields.get("type").is_some_and(|kind| kind == "tool_result")
            && let Some(inside) = fields.get_mut("content").and_then(Value::as_array_mut)
        {
            *inside = inside.iter().map(unmarked).collect();
        }
    }
    block
}

/// Returns the lifetime of a block's mark, or of one inside it.
fn anthropic_mark(block: &Value) -> Option<String> {
    let mark = &block["cache_control"];
    if mark.is_object() {
        return Some(mark["ttl"].as_str().unwrap_or("5m").to_owned());
    }
    let inside = block["content"].as_array().filter(|_| block["type"] == "tool_result")?;
    inside.iter().rev().find_map(anthropic_mark)
}

/// Renders a Chat request.
pub(super) fn of_chat(body: &Value, count: &Count) -> Prompt {
    let settings = json!([body["reasoning_effort"], body["verbosity"], body["parallel_tool_calls"]]);
    let mut prompt = openai(body, &body["response_format"], settings, count);
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let opening = messages.iter().take_while(|message| is_instruction(message)).count();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let place = format!("{role} {} {}", message["name"], message["tool_call_id"]);
        openai_parts(&mut prompt, &place, &message["content"], count);
        if message["tool_calls"].is_array() {
            prompt.push(&place, &message["tool_calls"], count, None);
        }
        let run_ends = messages.get(at + 1).is_none_or(|next| next["role"] != "tool");
        if role == "user" || role == "tool" && run_ends || at + 1 == opening {
            prompt.end_message();
        }
    }
    prompt
}

/// Renders a Responses request with everything that it continues.
pub(super) fn of_responses(body: &Value, items: &[Value], count: &Count) -> Prompt {
    let settings = json!([body["reasoning"]["effort"], body["text"]["verbosity"], body["parallel_tool_calls"]]);
    let mut prompt = openai(body, &body["text"]["format"], settings, count);
    if body["instructions"].is_string() {
        prompt.push("developer", &body["instructions"], count, None);
        prompt.end_message();
    }
    let opening = items.iter().take_while(|item| is_instruction(item)).count();
    let is_output = |item: &Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
    for (at, item) in items.iter().enumerate() {
        let role = item["role"].as_str().unwrap_or_default();
        if !role.is_empty() && item["content"] != Value::Null {
            openai_parts(&mut prompt, role, &item["content"], count);
        } else if is_output(item) {
            openai_parts(&mut prompt, &format!("output {}", item["call_id"]), &item["output"], count);
        } else {
            prompt.push("item", item, count, None);
        }
        let run_ends = items.get(at + 1).is_none_or(|next| !is_output(next));
        if role == "user" || is_output(item) && run_ends || at + 1 == opening {
            prompt.end_message();
        }
    }
    prompt
}

/// Renders a Gemini request: instructions, tools, contents.
pub(super) fn of_gemini(body: &Value, count: &Count) -> Prompt {
    let model = body["model"].as_str().unwrap_or_default();
    let mut prompt = Prompt { model: model.to_owned(), ..Prompt::default() };
    let parts = |role: &str, content: &Value, prompt: &mut Prompt| {
        for part in content["parts"].as_array().into_iter().flatten() {
            let is_plain = part.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("text"));
            prompt.push(role, if is_plain { &part["text"] } else { part }, count, None);
        }
    };
    parts("system", &body["systemInstruction"], &mut prompt);
    if !body["tools"].is_null() {
        prompt.push("tools", &body["tools"], count, None);
    }
    for content in body["contents"].as_array().into_iter().flatten() {
        parts(content["role"].as_str().unwrap_or("user"), content, &mut prompt);
    }
    prompt
}

/// Renders an Ollama request without some of its messages.
pub(super) fn of_ollama(body: &Value, without: &[usize], count: &Count) -> Prompt {
    let model = body["model"].as_str().unwrap_or_default();
    let mut prompt = Prompt { model: model.to_owned(), ..Prompt::default() };
    if !body["tools"].is_null() {
        prompt.push("tools", &body["tools"], count, None);
    }
    let messages = body["messages"].as_array().into_iter().flatten().enumerate();
    for (_, message) in messages.filter(|(at, _)| !without.contains(at)) {
        let role = message["role"].as_str().unwrap_or_default();
        for name in ["thinking", "content"].into_iter().filter(|name| !message[*name].is_null()) {
            prompt.push(role, &message[name], count, None);
        }
        // Templates show what is called and with what; ids and numbers are for programs.
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            prompt.push(role, &call["function"]["name"], count, None);
            prompt.push(role, &call["function"]["arguments"], count, None);
        }
        for image in message["images"].as_array().into_iter().flatten() {
            let text = format!("{role} {image}");
            prompt.pieces.push(Piece { text, tokens: OLLAMA_IMAGE_TOKENS, mark: None, ends_message: false });
        }
    }
    prompt
}

fn is_instruction(message: &Value) -> bool {
    message["role"] == "system" || message["role"] == "developer"
}

/// Starts with what stands before every message. From gpt-5.6 on, settings are part of what must be equal.
fn openai(body: &Value, format: &Value, settings: Value, count: &Count) -> Prompt {
    let model = body["model"].as_str().unwrap_or_default();
    let options = &body["prompt_cache_options"];
    let mut prompt = Prompt {
        model: model.to_owned(),
        pieces: Vec::new(),
        only_explicit: options["mode"] == "explicit",
        lifetime: options["ttl"].as_str().unwrap_or("30m").to_owned(),
    };
    let head = json!([body["tools"], format]);
    let tokens = count.of(&body["tools"]) + count.of(format);
    let mut text = head.to_string();
    if Gpt::named(model).is_some_and(Gpt::has_breakpoints) {
        text += &json!([settings, body["prompt_cache_key"], body["service_tier"]]).to_string();
    }
    prompt.pieces.push(Piece { text, tokens, mark: None, ends_message: false });
    prompt
}

fn openai_parts(prompt: &mut Prompt, place: &str, content: &Value, count: &Count) {
    if content.is_string() {
        prompt.push(place, content, count, None);
        return;
    }
    for part in content.as_array().into_iter().flatten() {
        let mark = &part["prompt_cache_breakpoint"];
        let ttl = mark["ttl"].as_str().map_or_else(|| prompt.lifetime.clone(), str::to_owned);
        prompt.push(place, &unmarked(part), count, mark.is_object().then_some(ttl));
    }
}
