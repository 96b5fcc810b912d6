//! The shape of each item of `input`.

use super::super::node::{Checked, Node};
use super::super::{chat, media};
use super::{NAME_CHARS_MAX, one_tool};

pub(super) const TEXT_CHARS_MAX: usize = 10_485_760;
const IMAGE_URL_CHARS_MAX: usize = 20_971_520;
const FILE_CHARS_MAX: usize = 73_400_320;
const ID_CHARS_MAX: usize = 64;

const KINDS: [&str; 30] = [
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "compaction_trigger",
    "computer_call",
    "computer_call_output",
    "configuration_update",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "function_call",
    "function_call_output",
    "image_generation_call",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "message",
    "reasoning",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
    "web_search_preview_call",
];

pub(super) fn shape(item: &Node<'_>, body: &Node<'_>) -> Checked {
    item.object()?;
    let kind = match item.get("type") {
        Some(kind) => kind.one_of(&KINDS)?,
        None if item.has("role") => "message",
        None => item.need("type")?.text()?,
    };
    ids(item, kind)?;
    match kind {
        "message" => message(item),
        "reasoning" => reasoning(item, body),
        "function_call" => call(item, "arguments"),
        "custom_tool_call" => call(item, "input"),
        "function_call_output" | "custom_tool_call_output" => output(item),
        "item_reference" => {
            item.only(&["type", "id"])?;
            let id = item.need("id")?.text()?;
            if stores_nothing(body) { Err(not_found(item, id)) } else { Ok(()) }
        }
        "compaction" => {
            item.only(&["type", "id", "encrypted_content", "created_by"])?;
            item.need("encrypted_content")?.at_most("R13", TEXT_CHARS_MAX)
        }
        "additional_tools" => {
            item.only(&["type", "id", "role", "tools"])?;
            item.need("role")?.one_of(&["developer"])?;
            item.need("tools")?.list()?.iter().try_for_each(one_tool)
        }
        "configuration_update" => item.only(&["type", "id", "reasoning", "text"]),
        // Items of tools that OpenAI runs itself go back as they came.
        _ => Ok(()),
    }
}

fn ids(item: &Node<'_>, kind: &str) -> Checked {
    for field in ["id", "call_id"] {
        if let Some(id) = item.get(field) {
            id.at_most("R7", ID_CHARS_MAX)?;
        }
    }
    let prefix = match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        _ => return Ok(()),
    };
    match item.get("id") {
        Some(id) if !id.text()?.starts_with(prefix) => {
            let text = format!("Invalid '{}': '{}'. Expected an ID that begins with '{prefix}'.", id.path, id.text()?);
            Err(id.refuse("R6", &text).coded("invalid_value"))
        }
        _ => Ok(()),
    }
}

fn message(item: &Node<'_>) -> Checked {
    item.only(&["type", "role", "content", "id", "status", "phase"])?;
    let role = item.need("role")?.one_of(&["user", "assistant", "system", "developer"])?;
    if let Some(phase) = item.get("phase") {
        phase.one_of(&["commentary", "final_answer"])?;
    }
    status(item)?;
    let content = item.need("content")?;
    if content.value.is_string() {
        return content.at_most("R13", TEXT_CHARS_MAX);
    }
    for part in content.list()? {
        if role == "assistant" {
            said(&part)?;
        } else {
            given(&part, &["input_text", "input_image", "input_file", "input_audio"])?;
            if part.is("type", "input_image") {
                part.need("detail")?;
            }
        }
    }
    Ok(())
}

fn status(item: &Node<'_>) -> Checked {
    item.get("status").map_or(Ok(()), |it| it.one_of(&["in_progress", "completed", "incomplete"]).map(drop))
}

fn said(part: &Node<'_>) -> Checked {
    match part.need("type")?.one_of(&["output_text", "refusal"])? {
        "output_text" => {
            part.only(&["type", "text", "annotations", "logprobs"])?;
            part.need("text")?.at_most("R13", TEXT_CHARS_MAX)
        }
        _ => {
            part.only(&["type", "refusal"])?;
            part.need("refusal")?.text().map(drop)
        }
    }
}

fn given(part: &Node<'_>, allowed: &[&str]) -> Checked {
    match part.need("type")?.one_of(allowed)? {
        "input_text" => {
            part.only(&["type", "text", "prompt_cache_breakpoint"])?;
            part.need("text")?.at_most("R13", TEXT_CHARS_MAX)?;
        }
        "input_image" => {
            part.only(&["type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"])?;
            if let Some(detail) = part.get("detail") {
                detail.one_of(&["auto", "low", "high", "original"])?;
            }
            if !part.has("file_id") {
                let url = part.need("image_url")?;
                url.at_most("R13", IMAGE_URL_CHARS_MAX)?;
                media::image_url(&url)?;
            }
        }
        "input_file" => {
            part.only(&["type", "file_id", "file_url", "file_data", "filename", "detail", "prompt_cache_breakpoint"])?;
            if !part.has("file_id") && !part.has("file_url") {
                let data = part.need("file_data")?;
                data.at_most("R13", FILE_CHARS_MAX)?;
                media::file_data(&data)?;
                part.need("filename")?.text()?;
            }
        }
        _ => {
            part.only(&["type", "input_audio", "prompt_cache_breakpoint"])?;
            part.need("input_audio")?.need("data")?.text()?;
        }
    }
    chat::breakpoint(part)
}

fn reasoning(item: &Node<'_>, body: &Node<'_>) -> Checked {
    item.only(&["type", "id", "summary", "content", "encrypted_content", "status"])?;
    let id = item.need("id")?.text()?;
    for part in item.need("summary")?.list()? {
        part.only(&["type", "text"])?;
        part.need("type")?.one_of(&["summary_text"])?;
        part.need("text")?.text()?;
    }
    status(item)?;
    match item.get("encrypted_content") {
        Some(content) => content.text().map(drop),
        None if stores_nothing(body) => Err(not_found(item, id)),
        None => Ok(()),
    }
}

fn stores_nothing(body: &Node<'_>) -> bool {
    body.value["store"] == false
}

pub(super) fn not_found(item: &Node<'_>, id: &str) -> super::Refusal {
    let text = format!(
        "Item with id '{id}' not found. Items are not persisted when 'store' is set to false. Try again with 'store' \
         set to true, or remove this item from your input."
    );
    item.refuse("R5", &text).at("input")
}

fn call(item: &Node<'_>, input: &str) -> Checked {
    item.only(&["type", "id", "call_id", "name", input, "status", "namespace"])?;
    item.need("call_id")?.text()?;
    item.need("name")?.named("R8", NAME_CHARS_MAX)?;
    status(item)?;
    item.need(input)?.text().map(drop)
}

fn output(item: &Node<'_>) -> Checked {
    item.only(&["type", "id", "call_id", "output", "status"])?;
    item.need("call_id")?.text()?;
    status(item)?;
    let output = item.need("output")?;
    if output.value.is_string() {
        return output.at_most("R13", TEXT_CHARS_MAX);
    }
    output.list()?.iter().try_for_each(|part| given(part, &["input_text", "input_image", "input_file"]))
}
