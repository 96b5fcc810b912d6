//! What `POST /v1/chat/completions` takes.

use super::model::Gpt;
use super::node::{Checked, Node};
use super::{Refusal, media, schema};

const TEXT_CHARS_MAX: usize = 10_485_760;
const TOOLS_MAX: usize = 128;
const NAME_CHARS_MAX: usize = 64;
const CALL_ID_CHARS_MAX: usize = 40;
const CACHE_KEY_CHARS_MAX: usize = 64;

const FIELDS: [&str; 37] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];
/// Also what a reply has, and what the official packages add to one, since agents send replies back as they are.
const ASSISTANT_FIELDS: [&str; 9] =
    ["role", "content", "name", "refusal", "tool_calls", "function_call", "audio", "annotations", "parsed"];
pub(super) const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

pub(super) fn check(body: &Node<'_>) -> Checked {
    body.only(&FIELDS)?;
    let model = body.need("model")?.text()?;
    messages(&body.need("messages")?)?;
    tools(body)?;
    tool_choice(body)?;
    response_format(body)?;
    plain_options(body)?;
    match Gpt::named(model) {
        Some(gpt) => model_rules(body, model, gpt),
        None => Ok(()),
    }
}

fn messages(messages: &Node<'_>) -> Checked {
    let list = messages.not_empty("C1")?;
    for message in &list {
        shape(message)?;
    }
    pairs(&list)
}

fn shape(message: &Node<'_>) -> Checked {
    let role = message.need("role")?.one_of(&["developer", "system", "user", "assistant", "tool", "function"])?;
    let (fields, parts): (&[&str], &[&str]) = match role {
        "user" => (&["role", "content", "name"], &["text", "image_url", "input_audio", "file"]),
        "assistant" => (&ASSISTANT_FIELDS, &["text", "refusal"]),
        "tool" => (&["role", "content", "tool_call_id"], &["text"]),
        _ => (&["role", "content", "name"], &["text"]),
    };
    message.only(fields)?;
    if role == "tool" {
        message.need("tool_call_id")?.text()?;
    }
    if let Some(name) = message.get("name") {
        name.text()?;
    }
    if role == "assistant" {
        calls(message)?;
        let says = ["content", "refusal", "tool_calls", "function_call", "audio"];
        if !says.iter().any(|field| message.has(field)) {
            let text = format!("Invalid value for 'content': expected a string, got null. - '{}'", message.path);
            return Err(message.refuse("C4", &text).at(message.path_of("content")));
        }
    }
    match message.get("content") {
        Some(content) => contents(&content, parts),
        None if role == "assistant" => Ok(()),
        None => message.need("content").map(drop),
    }
}

fn contents(content: &Node<'_>, allowed: &[&str]) -> Checked {
    if content.value.is_string() {
        return content.at_most("C9", TEXT_CHARS_MAX);
    }
    for part in content.not_empty("C1")? {
        let kind = part.need("type")?.one_of(allowed)?;
        match kind {
            "text" => {
                part.only(&["type", "text", "prompt_cache_breakpoint"])?;
                part.need("text")?.at_most("C9", TEXT_CHARS_MAX)?;
            }
            "refusal" => {
                part.only(&["type", "refusal"])?;
                part.need("refusal")?.text()?;
            }
            "image_url" => {
                part.only(&["type", "image_url", "prompt_cache_breakpoint"])?;
                let image = part.need("image_url")?;
                image.only(&["url", "detail"])?;
                media::image_url(&image.need("url")?)?;
                if let Some(detail) = image.get("detail") {
                    detail.one_of(&["auto", "low", "high", "original"])?;
                }
            }
            "input_audio" => {
                part.only(&["type", "input_audio", "prompt_cache_breakpoint"])?;
                let audio = part.need("input_audio")?;
                audio.only(&["data", "format"])?;
                media::file_data(&audio.need("data")?)?;
                audio.need("format")?.one_of(&["wav", "mp3"])?;
            }
            _ => file(&part)?,
        }
        breakpoint(&part)?;
    }
    Ok(())
}

fn file(part: &Node<'_>) -> Checked {
    part.only(&["type", "file", "prompt_cache_breakpoint"])?;
    let file = part.need("file")?;
    file.only(&["file_id", "filename", "file_data"])?;
    if file.has("file_id") {
        return Ok(());
    }
    media::file_data(&file.need("file_data")?)?;
    file.need("filename")?.text().map(drop)
}

/// Checks a mark for the cache on a content part of either OpenAI API.
pub(super) fn breakpoint(part: &Node<'_>) -> Checked {
    let Some(mark) = part.get("prompt_cache_breakpoint") else { return Ok(()) };
    mark.only(&["mode", "ttl"])?;
    mark.need("mode")?.one_of(&["explicit"])?;
    mark.get("ttl").map_or(Ok(()), |ttl| ttl.one_of(&["30m", "12h"]).map(drop))
}

fn calls(message: &Node<'_>) -> Checked {
    let Some(calls) = message.get("tool_calls") else { return Ok(()) };
    let list = calls.not_empty("C4")?;
    at_most_128(&calls, list.len())?;
    for call in list {
        call.only(&["id", "type", "function", "custom", "index"])?;
        let id = call.need("id")?;
        id.at_most("C8", CALL_ID_CHARS_MAX)?;
        let kind = call.need("type")?.one_of(&["function", "custom"])?;
        let named = call.need(kind)?;
        let input = if kind == "function" { "arguments" } else { "input" };
        // The official packages send back what they made of the arguments, and the place in a stream.
        named.only(&["name", input, "parsed_arguments"])?;
        named.need("name")?.named("C7", NAME_CHARS_MAX)?;
        let input = named.need(input)?;
        if !input.value.is_string() {
            return Err(Refusal { rule: "C5", ..input.text().map(drop).expect_err("it is no string") });
        }
    }
    Ok(())
}

fn at_most_128(list: &Node<'_>, length: usize) -> Checked {
    if length <= TOOLS_MAX {
        return Ok(());
    }
    let text = format!(
        "Invalid '{}': array too long. Expected an array with maximum length {TOOLS_MAX}, but got an array with \
         length {length} instead.",
        list.path
    );
    Err(list.refuse("C6", &text).coded("array_above_max_length"))
}

/// C2 and C3: results stand directly behind the message that called, one for each call.
fn pairs(messages: &[Node<'_>]) -> Checked {
    let mut called: Vec<&str> = Vec::new();
    let mut waiting: Vec<&str> = Vec::new();
    for message in messages {
        if !message.is("role", "tool") {
            none_waits(&waiting, message)?;
            called.clear();
            let calls = message.get("tool_calls").map(|calls| calls.entries()).unwrap_or_default();
            for id in calls.iter().filter_map(|call| call.str_of("id")) {
                if !called.contains(&id) {
                    called.push(id);
                }
            }
            waiting.clone_from(&called);
            continue;
        }
        let id = message.str_of("tool_call_id").unwrap_or_default();
        if !called.contains(&id) {
            let text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                        'tool_calls'.";
            return Err(message.refuse("C3", text).at(message.path_of("role")));
        }
        if !waiting.contains(&id) {
            let text = format!("Duplicate value for 'tool_call_id' of '{id}' in {}.", message.path);
            return Err(message.refuse("C2", &text));
        }
        waiting.retain(|waits| *waits != id);
    }
    messages.last().map_or(Ok(()), |last| none_waits(&waiting, last))
}

fn none_waits(waiting: &[&str], at: &Node<'_>) -> Checked {
    if waiting.is_empty() {
        return Ok(());
    }
    let text = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
         The following tool_call_ids did not have response messages: {}",
        waiting.join(", ")
    );
    Err(at.refuse("C2", &text).at(at.path_of("role")))
}

fn tools(body: &Node<'_>) -> Checked {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let list = tools.not_empty("C6")?;
    at_most_128(&tools, list.len())?;
    for tool in list {
        let kind = tool.need("type")?.one_of(&["function", "custom"])?;
        tool.only(&["type", kind])?;
        let inner = tool.need(kind)?;
        let name = inner.need("name")?;
        name.named("C7", NAME_CHARS_MAX)?;
        if let Some(description) = inner.get("description") {
            description.text()?;
        }
        if kind == "function" {
            inner.only(&["name", "description", "parameters", "strict"])?;
            schema::parameters(&inner, &format!("function '{}'", name.text()?))?;
        } else {
            inner.only(&["name", "description", "format"])?;
        }
    }
    Ok(())
}

fn tool_choice(body: &Node<'_>) -> Checked {
    for field in ["tool_choice", "parallel_tool_calls"] {
        if let Some(given) = body.get(field).filter(|_| !body.has("tools")) {
            let text = format!("Invalid value for '{field}': '{field}' is only allowed when 'tools' are specified.");
            return Err(given.refuse("C10", &text));
        }
    }
    if let Some(parallel) = body.get("parallel_tool_calls") {
        parallel.flag()?;
    }
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    if choice.value.is_string() {
        return choice.one_of(&["none", "auto", "required"]).map(drop);
    }
    let kind = choice.need("type")?.one_of(&["function", "custom", "allowed_tools"])?;
    if kind == "allowed_tools" {
        return choice.need(kind)?.need("tools")?.list().map(drop);
    }
    let name = choice.need(kind)?.need("name")?.text()?;
    let tools = body.need("tools")?.entries();
    if tools.iter().any(|tool| tool.get(kind).is_some_and(|inner| inner.is("name", name))) {
        return Ok(());
    }
    Err(choice.refuse("shape", &format!("Tool choice '{name}' not found in 'tools' parameter.")))
}

fn response_format(body: &Node<'_>) -> Checked {
    let Some(format) = body.get("response_format") else { return Ok(()) };
    let kind = format.need("type")?.one_of(&["text", "json_object", "json_schema"])?;
    if kind != "json_schema" {
        return format.only(&["type"]);
    }
    format.only(&["type", "json_schema"])?;
    schema::answer_format(&format.need("json_schema")?, &[])
}

fn plain_options(body: &Node<'_>) -> Checked {
    let streams = body.get("stream").map(|stream| stream.flag()).transpose()?.unwrap_or(false);
    if let Some(options) = body.get("stream_options") {
        options.only(&["include_usage", "include_obfuscation"])?;
        if !streams {
            let text = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
            return Err(options.refuse("shape", text));
        }
    }
    for field in ["max_tokens", "max_completion_tokens"] {
        if let Some(given) = body.get(field).filter(|given| given.value.as_u64().is_none_or(|tokens| tokens == 0)) {
            given.integer()?;
            let text = format!("Invalid '{field}': integer below minimum value. Expected a value >= 1.");
            return Err(given.refuse("shape", &text).coded("integer_below_min_value"));
        }
    }
    if let Some(effort) = body.get("reasoning_effort") {
        effort.one_of(&EFFORTS)?;
    }
    cache_options(body)
}

/// Checks what both OpenAI APIs say about the cache.
pub(super) fn cache_options(body: &Node<'_>) -> Checked {
    if let Some(key) = body.get("prompt_cache_key") {
        key.at_most("cache", CACHE_KEY_CHARS_MAX)?;
    }
    if let Some(retention) = body.get("prompt_cache_retention") {
        retention.one_of(&["in_memory", "24h"])?;
    }
    let Some(options) = body.get("prompt_cache_options") else { return Ok(()) };
    options.only(&["mode", "ttl", "prewarm", "comparison_response_id"])?;
    if let Some(mode) = options.get("mode") {
        mode.one_of(&["implicit", "explicit"])?;
    }
    options.get("ttl").map_or(Ok(()), |ttl| ttl.one_of(&["30m", "12h"]).map(drop))
}

fn model_rules(body: &Node<'_>, model: &str, gpt: Gpt) -> Checked {
    if gpt.reasons {
        if let Some(given) = body.get("max_tokens") {
            let text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                        'max_completion_tokens' instead.";
            return Err(given.refuse("C13", text).coded("unsupported_parameter"));
        }
        default_sampling(body)?;
    }
    let functions =
        body.get("tools").is_some_and(|tools| tools.entries().iter().any(|tool| tool.is("type", "function")));
    if gpt.keeps_tools_from_chat() && functions && !body.is("reasoning_effort", "none") {
        let text = format!(
            "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use \
             function tools, use /v1/responses or set reasoning_effort to 'none'."
        );
        return Err(body.refuse("C12", &text).at("reasoning_effort"));
    }
    Ok(())
}

/// C13: models that reason take the default `temperature` and `top_p` only.
pub(super) fn default_sampling(body: &Node<'_>) -> Checked {
    for field in ["temperature", "top_p"] {
        let Some(given) = body.get(field) else { continue };
        let number = given.number()?;
        if number != 1.0 {
            let text = format!(
                "Unsupported value: '{field}' does not support {number} with this model. Only the default (1) value \
                 is supported."
            );
            return Err(given.refuse("C13", &text).coded("unsupported_value"));
        }
    }
    Ok(())
}
