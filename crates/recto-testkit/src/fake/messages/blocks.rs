//! The shape of messages and their blocks: known kinds, known fields, texts with something in them, images in bounds.

use super::super::model::Claude;
use super::super::node::{Checked, Node, is_plain};
use super::super::{Api, Refusal, media};
use super::{Betas, EFFORTS, marks};

const IMAGE_CHARS_MAX: usize = 10 * 1024 * 1024;
const SIDE_PIXELS_MAX: u32 = 8000;
const MANY_IMAGES: usize = 20;
const MANY_SIDE_PIXELS_MAX: u32 = 2000;

const USER: [&str; 6] = ["text", "image", "document", "search_result", "tool_result", "container_upload"];
const ASSISTANT: [&str; 18] = [
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "container_upload",
    "compaction",
    "fallback",
    "advisor_tool_result",
    "search_result",
];
const SYSTEM: [&str; 3] = ["text", "tool_addition", "tool_removal"];
const RESULT: [&str; 6] = ["text", "image", "document", "search_result", "tool_reference", "browser_state"];

pub(super) fn message(message: &Node<'_>, betas: Betas<'_>) -> Checked {
    let role = message.need("role")?.one_of(&["user", "assistant", "system"])?;
    if role == "system" {
        message.only(&["role", "content", "clear_at", "output_config"])?;
        late_system(message, betas)?;
    } else {
        message.only(&["role", "content"])?;
    }
    let content = message.need("content")?;
    if let Some(text) = content.value.as_str() {
        if text.is_empty() && role == "user" {
            return Err(message.refuse("A7", "user messages must have non-empty content"));
        }
        // An assistant message may be empty as a whole.
        return if text.is_empty() { Ok(()) } else { not_blank(text) };
    }
    let allowed: &[&str] = match role {
        "user" => &USER,
        "assistant" => &ASSISTANT,
        _ => &SYSTEM,
    };
    content.list()?.iter().try_for_each(|it| block(it, allowed))
}

fn late_system(message: &Node<'_>, betas: Betas<'_>) -> Checked {
    let needs =
        [("clear_at", "mid-conversation-system-clear-at-"), ("output_config", "mid-conversation-output-config-")];
    for (field, beta) in needs {
        if message.has(field) && !betas.has(beta) {
            return Err(message.extra(field));
        }
    }
    if let Some(clear) = message.get("clear_at") {
        clear.one_of(&["next_user_message"])?;
    }
    if let Some(config) = message.get("output_config") {
        config.only(&["effort"])?;
        config.need("effort")?.one_of(&EFFORTS)?;
    }
    let blocks = message.get("content").map(|content| content.entries()).unwrap_or_default();
    let changes = |block: &Node<'_>| block.is("type", "tool_addition") || block.is("type", "tool_removal");
    match blocks.iter().find(|block| changes(block)) {
        Some(block) if !betas.has("mid-conversation-tool-changes-") && !betas.has("inline-tools-") => {
            Err(unknown_kind(block, &SYSTEM[..1]))
        }
        _ => Ok(()),
    }
}

fn block(block: &Node<'_>, allowed: &[&str]) -> Checked {
    let kind = block.need("type")?.text()?;
    if !allowed.contains(&kind) {
        return Err(unknown_kind(block, allowed));
    }
    match kind {
        "text" => text(block),
        "image" => {
            block.only(&["type", "source", "cache_control"])?;
            marks::shape(block)?;
            image_source(&block.need("source")?)
        }
        "document" => document(block),
        "thinking" => {
            no_mark(block)?;
            block.only(&["type", "thinking", "signature"])?;
            block.need("thinking")?.text()?;
            let signature = block.need("signature")?;
            if signature.text()?.is_empty() { Err(invalid_signature(block)) } else { Ok(()) }
        }
        "redacted_thinking" => {
            no_mark(block)?;
            block.only(&["type", "data"])?;
            block.need("data")?.text().map(drop)
        }
        "tool_use" => tool_use(block),
        "tool_result" => tool_result(block),
        "server_tool_use" => {
            block.only(&["type", "id", "name", "input", "cache_control", "caller"])?;
            let id = block.need("id")?;
            let plain = id.text()?.strip_prefix("srvtoolu_").is_some_and(is_plain);
            let pattern = "String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'";
            if plain { Ok(()) } else { Err(id.refuse("A8", pattern)) }
        }
        "tool_addition" | "tool_removal" => {
            block.only(&["type", "tool", "cache_control"])?;
            block.need("tool")?.object().map(drop)
        }
        "compaction" => block.only(&["type", "content", "signature", "cache_control"]),
        // Blocks of tools that the provider runs itself go back as they came.
        _ => marks::shape(block),
    }
}

fn unknown_kind(block: &Node<'_>, allowed: &[&str]) -> Refusal {
    let kind = block.str_of("type").unwrap_or_default();
    let tags: Vec<String> = allowed.iter().map(|tag| format!("'{tag}'")).collect();
    let text =
        format!("Input tag '{kind}' found using 'type' does not match any of the expected tags: {}", tags.join(", "));
    block.refuse("shape", &text)
}

pub(super) fn invalid_signature(block: &Node<'_>) -> Refusal {
    block.refuse("A16", "Invalid `signature` in `thinking` block")
}

fn no_mark(block: &Node<'_>) -> Checked {
    if block.has("cache_control") {
        let kind = block.str_of("type").unwrap_or_default();
        return Err(block.refuse("A11", &format!("cache_control cannot be set for {kind} blocks")));
    }
    Ok(())
}

/// Checks a text block: something other than white space is in it, above all if it is marked.
pub(super) fn text(block: &Node<'_>) -> Checked {
    block.only(&["type", "text", "cache_control", "citations"])?;
    marks::shape(block)?;
    let text = block.need("text")?.text()?;
    if text.is_empty() && block.has("cache_control") {
        let path = block.path_of("text");
        let text = format!("{path}: cache_control cannot be set for empty text blocks");
        return Err(Refusal::new(Api::Messages, "A11", text));
    }
    not_blank(text)
}

fn not_blank(text: &str) -> Checked {
    let problem = if text.is_empty() {
        "text content blocks must be non-empty"
    } else if text.trim().is_empty() {
        "text content blocks must contain non-whitespace text"
    } else {
        return Ok(());
    };
    Err(Refusal::new(Api::Messages, "A6", format!("messages: {problem}")))
}

fn image_source(source: &Node<'_>) -> Checked {
    match source.need("type")?.one_of(&["base64", "url", "file"])? {
        "base64" => {
            source.only(&["type", "media_type", "data"])?;
            let media_type = source.need("media_type")?;
            if !media::is_image_type(media_type.text()?) {
                let text = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";
                return Err(media_type.refuse("shape", text));
            }
            base64(source)
        }
        "url" => {
            source.only(&["type", "url"])?;
            source.need("url")?.text().map(drop)
        }
        _ => {
            source.only(&["type", "file_id"])?;
            source.need("file_id")?.text().map(drop)
        }
    }
}

fn base64(source: &Node<'_>) -> Checked {
    let data = source.need("data")?;
    match media::decoded(data.text()?) {
        Some(_) => Ok(()),
        None => Err(data.refuse("shape", "invalid base64 data")),
    }
}

fn document(block: &Node<'_>) -> Checked {
    block.only(&["type", "source", "title", "context", "citations", "cache_control"])?;
    marks::shape(block)?;
    let source = block.need("source")?;
    match source.need("type")?.one_of(&["base64", "text", "content", "url", "file"])? {
        "base64" => {
            source.only(&["type", "media_type", "data"])?;
            source.need("media_type")?.one_of(&["application/pdf"])?;
            base64(&source)
        }
        "text" => {
            source.only(&["type", "media_type", "data"])?;
            source.need("media_type")?.one_of(&["text/plain"])?;
            source.need("data")?.text().map(drop)
        }
        "content" => source.need("content").map(drop),
        "url" => source.need("url")?.text().map(drop),
        _ => source.need("file_id")?.text().map(drop),
    }
}

fn tool_use(block: &Node<'_>) -> Checked {
    block.only(&["type", "id", "name", "input", "cache_control", "caller", "toolset_name"])?;
    marks::shape(block)?;
    let id = block.need("id")?.text()?;
    if !is_plain(id) {
        let text = format!("{}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", block.path);
        return Err(Refusal::new(Api::Messages, "A8", text));
    }
    block.need("name")?.text()?;
    let input = block.need("input")?;
    Node { path: format!("{}.tool_use.input", block.path), ..input }.object().map(drop)
}

fn tool_result(result: &Node<'_>) -> Checked {
    result.only(&["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"])?;
    marks::shape(result)?;
    result.need("tool_use_id")?.text()?;
    if let Some(is_error) = result.get("is_error") {
        is_error.flag()?;
    }
    match result.get("content") {
        Some(content) if !content.value.is_string() => content.list()?.iter().try_for_each(|it| block(it, &RESULT)),
        _ => Ok(()),
    }
}

/// A24: how many images, and how large.
pub(super) fn images(messages: &[Node<'_>], claude: Option<Claude>) -> Checked {
    let mut images = Vec::new();
    for message in messages {
        for block in message.get("content").map(|content| content.entries()).unwrap_or_default() {
            let inside = block.get("content").map(|content| content.entries()).unwrap_or_default();
            images.extend(inside.into_iter().filter(|block| block.is("type", "image")));
            if block.is("type", "image") {
                images.push(block);
            }
        }
    }
    if let Some(max) = claude.map(Claude::images_max).filter(|max| images.len() > *max) {
        let text = format!("messages: too many images: {} > {max}", images.len());
        return Err(Refusal::new(Api::Messages, "A24", text));
    }
    let many = images.len() > MANY_IMAGES;
    for image in &images {
        let Some(data) = image.get("source").and_then(|source| source.str_of("data")) else { continue };
        if data.len() > IMAGE_CHARS_MAX {
            let text = format!("image exceeds 10 MB maximum: {} bytes > {IMAGE_CHARS_MAX} bytes", data.len());
            return Err(image.refuse("A24", &text));
        }
        let side = media::decoded(data).and_then(|bytes| media::pixels(&bytes)).map_or(0, |(w, h)| w.max(h));
        let problem = match side {
            _ if side > SIDE_PIXELS_MAX => "max allowed size: 8000 pixels",
            _ if many && side > MANY_SIDE_PIXELS_MAX => "max allowed size for many-image requests: 2000 pixels",
            _ => continue,
        };
        return Err(image.refuse("A24", &format!("At least one of the image dimensions exceed {problem}")));
    }
    Ok(())
}
