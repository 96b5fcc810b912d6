//! What `POST /v1/responses` takes.

pub(super) mod issued; // what the provider gave out earlier and wants to see again
mod items; // the shape of each input item

use super::model::Gpt;
use super::node::{Checked, Node};
use super::{Refusal, chat, schema};

/// The most items that a conversation is opened with.
const OPENING_ITEMS_MAX: usize = 20;
const NAME_CHARS_MAX: usize = 128;
const OUTPUT_TOKENS_MIN: i64 = 16;

// `client_metadata` is what Codex sends with every request.
const FIELDS: [&str; 32] = [
    "background",
    "client_metadata",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
const COUNTED_FIELDS: [&str; 11] = [
    "conversation",
    "input",
    "instructions",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "text",
    "tool_choice",
    "tools",
    "truncation",
];
const HOSTED_TOOLS: [&str; 15] = [
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "custom",
    "file_search",
    "function",
    "image_generation",
    "local_shell",
    "mcp",
    "namespace",
    "shell",
    "tool_search",
    "web_search",
    "web_search_preview",
];
const INCLUDABLE: [&str; 8] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

pub(super) fn check(body: &Node<'_>) -> Checked {
    body.only(&FIELDS)?;
    options(body)?;
    prompt(body)
}

/// Checks the body of `POST /v1/responses/input_tokens`.
pub(super) fn check_counted(body: &Node<'_>) -> Checked {
    body.only(&COUNTED_FIELDS)?;
    prompt(body)
}

/// Checks the body of `POST /v1/conversations`.
pub(super) fn check_conversation(body: &Node<'_>) -> Checked {
    body.only(&["items", "metadata"])?;
    let Some(items) = body.get("items") else { return Ok(()) };
    let list = items.list()?;
    if list.len() > OPENING_ITEMS_MAX {
        let text =
            format!("Invalid 'items': array too long. Expected an array with maximum length {OPENING_ITEMS_MAX}.");
        return Err(items.refuse("shape", &text).coded("array_above_max_length"));
    }
    list.iter().try_for_each(|item| items::shape(item, body))
}

fn prompt(body: &Node<'_>) -> Checked {
    let model = body.need("model")?.text()?;
    state(body)?;
    if let Some(instructions) = body.get("instructions") {
        instructions.text()?;
    }
    for tool in body.get("tools").map(|tools| tools.list()).transpose()?.unwrap_or_default() {
        one_tool(&tool)?;
    }
    tool_choice(body)?;
    answer(body)?;
    if Gpt::named(model).is_some_and(|gpt| gpt.reasons) {
        chat::default_sampling(body)?;
    }
    let Some(input) = body.get("input") else { return Ok(()) };
    if input.value.is_string() {
        return input.at_most("R13", items::TEXT_CHARS_MAX);
    }
    let list = input.list()?;
    for item in &list {
        items::shape(item, body)?;
    }
    pairs(&list, body.has("previous_response_id") || body.has("conversation"))?;
    reasoning_is_followed(&list)
}

fn state(body: &Node<'_>) -> Checked {
    let given: Vec<&str> =
        ["previous_response_id", "conversation"].into_iter().filter(|field| body.has(field)).collect();
    if given.len() == 2 {
        let text = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only \
                    providing one of them.";
        return Err(body.refuse("R10", text).at("conversation").coded("mutually_exclusive_parameters"));
    }
    let empty = body.get("input").is_none_or(|input| input.value.as_array().is_some_and(Vec::is_empty));
    if empty && given.is_empty() && !body.has("prompt") {
        let text = "One of 'input' or 'previous_response_id' or 'prompt' or 'conversation' must be provided.";
        return Err(body.refuse("shape", text).at("input").coded("missing_required_parameter"));
    }
    Ok(())
}

fn options(body: &Node<'_>) -> Checked {
    if let Some(tokens) = body.get("max_output_tokens") {
        let given = tokens.integer()?;
        if given < OUTPUT_TOKENS_MIN {
            let text = format!(
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {OUTPUT_TOKENS_MIN}, \
                 but got {given} instead."
            );
            return Err(tokens.refuse("R11", &text).coded("integer_below_min_value"));
        }
    }
    for flag in ["store", "stream", "parallel_tool_calls", "background"] {
        if let Some(given) = body.get(flag) {
            given.flag()?;
        }
    }
    if let Some(truncation) = body.get("truncation") {
        Node::one_of(&truncation, &["auto", "disabled"]).map_err(|it| Refusal { rule: "R12", ..it })?;
    }
    for include in body.get("include").map(|include| include.list()).transpose()?.unwrap_or_default() {
        include.one_of(&INCLUDABLE)?;
    }
    chat::cache_options(body)
}

fn one_tool(tool: &Node<'_>) -> Checked {
    let kind = tool.need("type")?.one_of(&HOSTED_TOOLS)?;
    match kind {
        "function" => {
            let name = tool.need("name")?;
            tool.only(&["type", "name", "description", "parameters", "strict", "defer_loading", "allowed_callers"])?;
            name.named("R8", NAME_CHARS_MAX)?;
            schema::parameters(tool, &format!("function '{}'", name.text()?))
        }
        "custom" => {
            tool.only(&["type", "name", "description", "format", "defer_loading", "allowed_callers"])?;
            tool.need("name")?.named("R8", NAME_CHARS_MAX)
        }
        _ => Ok(()),
    }
}

fn tool_choice(body: &Node<'_>) -> Checked {
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    if choice.value.is_string() {
        return choice.one_of(&["none", "auto", "required"]).map(drop);
    }
    let kind = choice.need("type")?.text()?;
    if !matches!(kind, "function" | "custom") {
        return Ok(());
    }
    choice.only(&["type", "name"])?;
    let name = choice.need("name")?.text()?;
    let tools = body.get("tools").map(|tools| tools.entries()).unwrap_or_default();
    if tools.iter().any(|tool| tool.is("type", kind) && tool.is("name", name)) {
        return Ok(());
    }
    Err(choice.refuse("shape", &format!("Tool choice '{name}' not found in 'tools' parameter.")))
}

fn answer(body: &Node<'_>) -> Checked {
    if let Some(reasoning) = body.get("reasoning") {
        reasoning.only(&["effort", "summary", "context", "generate_summary", "mode"])?;
        let known: [(&str, &[&str]); 3] = [
            ("effort", &chat::EFFORTS),
            ("summary", &["auto", "concise", "detailed"]),
            ("context", &["auto", "current_turn", "all_turns"]),
        ];
        for (field, values) in known {
            if let Some(given) = reasoning.get(field) {
                given.one_of(values)?;
            }
        }
    }
    let Some(text) = body.get("text") else { return Ok(()) };
    text.only(&["format", "verbosity"])?;
    if let Some(verbosity) = text.get("verbosity") {
        verbosity.one_of(&["low", "medium", "high"])?;
    }
    let Some(format) = text.get("format") else { return Ok(()) };
    match format.need("type")?.one_of(&["text", "json_object", "json_schema"])? {
        "json_schema" => schema::answer_format(&format, &["type"]),
        _ => format.only(&["type"]),
    }
}

/// R1 and R2: every call has an output behind it, every output a call before it.
fn pairs(items: &[Node<'_>], continues: bool) -> Checked {
    let mut called: Vec<(&str, &str)> = Vec::new();
    let mut waiting: Vec<(&str, &str)> = Vec::new();
    for item in items {
        let kind = item.str_of("type").unwrap_or("message");
        let id = item.str_of("call_id").unwrap_or_default();
        match kind {
            "function_call" | "custom_tool_call" => {
                called.push((kind, id));
                waiting.push((kind, id));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let call = (kind.trim_end_matches("_output"), id);
                if !called.contains(&call) && !continues {
                    return Err(no_call(item, call.0, id));
                }
                waiting.retain(|waits| *waits != call);
            }
            _ => {}
        }
    }
    let Some((kind, id)) = waiting.first() else { return Ok(()) };
    let text = format!("No tool output found for {} {id}.", kind.replace('_', " "));
    Err(Refusal::new(super::Api::Responses, "R1", text).at("input"))
}

pub(super) fn no_call(item: &Node<'_>, kind: &str, id: &str) -> Refusal {
    let text = format!("No tool call found for {} output with call_id {id}.", kind.replace('_', " "));
    item.refuse("R2", &text).at("input")
}

/// R3, as far as the request itself shows it: behind reasoning stands something that a model made.
fn reasoning_is_followed(items: &[Node<'_>]) -> Checked {
    for (at, item) in items.iter().enumerate() {
        if !item.is("type", "reasoning") {
            continue;
        }
        let next = items[at..].iter().find(|later| !later.is("type", "reasoning"));
        if !next.is_some_and(is_made_by_model) {
            return Err(unfollowed(item));
        }
    }
    Ok(())
}

pub(super) fn unfollowed(item: &Node<'_>) -> Refusal {
    let id = item.str_of("id").unwrap_or_default();
    let text = format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
    item.refuse("R3", &text).at("input")
}

fn is_made_by_model(item: &Node<'_>) -> bool {
    match item.str_of("type").unwrap_or("message") {
        "message" => item.is("role", "assistant"),
        "item_reference" | "compaction" => true,
        kind => kind.ends_with("_call"),
    }
}
