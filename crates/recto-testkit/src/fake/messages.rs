//! What `POST /v1/messages` takes.

mod blocks; // the shape of each content block
mod marks; // `cache_control`
mod turns; // which message may stand where, and which result belongs to which call
pub(super) mod signed; // thinking that the provider gave out earlier

use super::model::Claude;
use super::node::{Checked, Node};
use super::schema;
use std::collections::HashSet;

const MESSAGES_MAX: usize = 100_000;
const NAME_CHARS_MAX: usize = 128;
const BUDGET_TOKENS_MIN: i64 = 1024;
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

const FIELDS: [&str; 25] = [
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "diagnostics",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];
const TOOL_FIELDS: [&str; 10] = [
    "allowed_callers",
    "cache_control",
    "defer_loading",
    "description",
    "eager_input_streaming",
    "input_examples",
    "input_schema",
    "name",
    "strict",
    "type",
];

/// Fields that exist only with a beta header: the field, and how one of the header's values starts.
const BETAS: [(&str, &[&str]); 3] = [
    ("context_management", &["context-management-", "compact-2026-01-12"]),
    ("compaction", &["compact-2026-09-04"]),
    ("thread", &["message-threads-2026-08-12"]),
];

/// The betas that a request asked for. Judged from a body alone, all may have been.
#[derive(Debug, Clone, Copy)]
pub(super) enum Betas<'a> {
    Unseen,
    Header(&'a str),
}

impl Betas<'_> {
    pub(super) fn has(self, prefix: &str) -> bool {
        match self {
            Betas::Unseen => true,
            Betas::Header(header) => header.split(',').any(|beta| beta.trim().starts_with(prefix)),
        }
    }
}

pub(super) fn check(body: &Node<'_>, betas: Betas<'_>) -> Checked {
    let tokens = body.need("max_tokens")?;
    if tokens.integer()? < 0 {
        return Err(tokens.refuse("shape", "Input should be greater than or equal to 0"));
    }
    if let Some(stream) = body.get("stream") {
        stream.flag()?;
    }
    check_prompt(body, betas)?;
    if tokens.integer()? == 0 { prewarm(body) } else { Ok(()) }
}

/// Checks the body of `POST /v1/messages/count_tokens`.
pub(super) fn check_counted(body: &Node<'_>, betas: Betas<'_>) -> Checked {
    match ["max_tokens", "stream"].into_iter().find(|field| body.has(field)) {
        Some(field) => Err(body.extra(field)),
        None => check_prompt(body, betas),
    }
}

fn check_prompt(body: &Node<'_>, betas: Betas<'_>) -> Checked {
    body.only(&FIELDS)?;
    for (field, prefixes) in BETAS {
        if body.has(field) && !prefixes.iter().any(|prefix| betas.has(prefix)) {
            return Err(body.extra(field));
        }
    }
    let claude = Claude::named(body.need("model")?.text()?);
    let messages = body.need("messages")?;
    let list = messages.list()?;
    if list.is_empty() {
        return Err(messages.refuse("shape", "at least one message is required"));
    }
    if list.len() > MESSAGES_MAX {
        return Err(messages.refuse("shape", &format!("List should have at most {MESSAGES_MAX} items")));
    }
    system(body)?;
    tools(body)?;
    thinking(body, claude, betas)?;
    answer(body)?;
    sampling(body, claude)?;
    tool_choice(body, claude)?;
    for message in &list {
        blocks::message(message, betas)?;
    }
    blocks::images(&list, claude)?;
    marks::check(body, &list)?;
    turns::check(body, &list, claude)
}

fn system(body: &Node<'_>) -> Checked {
    let Some(system) = body.get("system") else { return Ok(()) };
    if system.value.is_string() {
        return Ok(());
    }
    for block in system.list()? {
        block.need("type")?.one_of(&["text"])?;
        blocks::text(&block)?;
    }
    Ok(())
}

fn tools(body: &Node<'_>) -> Checked {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let list = tools.list()?;
    let mut names = HashSet::new();
    for tool in &list {
        let kind = tool.get("type").map(|kind| kind.text()).transpose()?.unwrap_or("custom");
        if kind == "custom" {
            tool.only(&TOOL_FIELDS)?;
            let name = tool.need("name")?;
            // The API names the kind of tool in the path.
            Node { path: format!("{}.custom.name", tool.path), ..name }.named("A9", NAME_CHARS_MAX)?;
            let schema = tool.need("input_schema")?;
            schema::tool_input(&Node { path: format!("{}.custom.input_schema", tool.path), ..schema })?;
            if let Some(description) = tool.get("description") {
                description.text()?;
            }
        }
        if tool.str_of("name").is_some_and(|name| !names.insert(name)) {
            return Err(tools.refuse("A9", "Tool names must be unique."));
        }
    }
    let deferred = |tool: &Node<'_>| tool.value["defer_loading"] == true;
    if !list.is_empty() && list.iter().all(deferred) {
        let text = "All tools have defer_loading: true. At least one tool must have defer_loading: false.";
        return Err(tools.refuse("A25", text));
    }
    Ok(())
}

fn thinking(body: &Node<'_>, claude: Option<Claude>, betas: Betas<'_>) -> Checked {
    let Some(thinking) = body.get("thinking") else { return Ok(()) };
    let kind = thinking.need("type")?.one_of(&["adaptive", "enabled", "disabled", "between_tools"])?;
    match kind {
        "adaptive" => thinking.only(&["type", "display", "block_binding"])?,
        "enabled" => thinking.only(&["type", "display", "block_binding", "budget_tokens"])?,
        "between_tools" => thinking.only(&["type", "display"])?,
        _ => thinking.only(&["type"])?,
    }
    if let Some(display) = thinking.get("display") {
        display.one_of(&["summarized", "omitted", "updates"])?;
    }
    if let Some(binding) = thinking.get("block_binding") {
        if !betas.has("thinking-binding-controls-") {
            return Err(thinking.extra("block_binding"));
        }
        binding.only(&["prefix_mismatch_behavior"])?;
        binding.need("prefix_mismatch_behavior")?.one_of(&["drop_block", "error"])?;
    }
    let high = body.get("output_config").is_some_and(|it| it.is("effort", "xhigh") || it.is("effort", "max"));
    if claude.is_some_and(|claude| !claude.takes_thinking(kind, high)) {
        let text = match kind {
            "adaptive" => "adaptive thinking is not supported on this model".to_owned(),
            _ => format!("\"thinking.type.{kind}\" is not supported for this model."),
        };
        return Err(body.refuse("thinking", &text));
    }
    if kind == "enabled" { budget(body, &thinking) } else { Ok(()) }
}

fn budget(body: &Node<'_>, thinking: &Node<'_>) -> Checked {
    let budget = thinking.need("budget_tokens")?;
    let tokens = budget.integer()?;
    if tokens < BUDGET_TOKENS_MIN {
        let path = "thinking.enabled.budget_tokens";
        let text = format!("{path}: Input should be greater than or equal to {BUDGET_TOKENS_MIN}");
        return Err(body.refuse("thinking", &text));
    }
    match body.get("max_tokens").map(|max| max.integer()).transpose()? {
        Some(max) if max > 0 && tokens >= max => {
            Err(body.refuse("thinking", "`max_tokens` must be greater than `thinking.budget_tokens`."))
        }
        _ => Ok(()),
    }
}

fn answer(body: &Node<'_>) -> Checked {
    if let Some(metadata) = body.get("metadata") {
        metadata.only(&["user_id"])?;
    }
    if let Some(stops) = body.get("stop_sequences") {
        stops.list()?.iter().try_for_each(|stop| stop.text().map(drop))?;
    }
    let Some(config) = body.get("output_config") else { return Ok(()) };
    config.only(&["effort", "format", "task_budget"])?;
    if let Some(effort) = config.get("effort") {
        effort.one_of(&EFFORTS)?;
    }
    let Some(format) = config.get("format") else { return Ok(()) };
    format.only(&["type", "schema"])?;
    format.need("type")?.one_of(&["json_schema"])?;
    let schema = format.need("schema")?;
    schema.object()?;
    schema::draft_2020(schema.value).map_err(|problem| schema.refuse("shape", &format!("Invalid schema: {problem}")))
}

fn sampling(body: &Node<'_>, claude: Option<Claude>) -> Checked {
    let refused = claude.is_some_and(Claude::refuses_sampling);
    for field in ["temperature", "top_p", "top_k"] {
        let Some(given) = body.get(field) else { continue };
        let number = given.number()?;
        if refused && (field == "top_k" || number != 1.0) {
            return Err(body.refuse("A20", &format!("`{field}` is not supported for this model.")));
        }
        if field != "top_k" && !(0.0..=1.0).contains(&number) {
            return Err(given.refuse("shape", "range: 0..1"));
        }
    }
    Ok(())
}

fn tool_choice(body: &Node<'_>, claude: Option<Claude>) -> Checked {
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    let kind = choice.need("type")?.one_of(&["auto", "any", "tool", "none"])?;
    match kind {
        "tool" => choice.only(&["type", "name", "disable_parallel_tool_use"])?,
        "none" => choice.only(&["type"])?,
        _ => choice.only(&["type", "disable_parallel_tool_use"])?,
    }
    if kind == "auto" || kind == "none" {
        return Ok(());
    }
    let manual = body.get("thinking").is_some_and(|thinking| thinking.is("type", "enabled"));
    if manual || claude.is_some_and(Claude::refuses_forced_tools) {
        let text = "Thinking may not be enabled when tool_choice forces tool use.";
        return Err(body.refuse("A21", text));
    }
    let tools = body.get("tools").map(|tools| tools.entries()).unwrap_or_default();
    if tools.is_empty() {
        return Err(choice.refuse("shape", "tool_choice may only be specified while providing tools."));
    }
    if kind == "tool" {
        let name = choice.need("name")?.text()?;
        if !tools.iter().any(|tool| tool.is("name", name)) {
            return Err(choice.refuse("shape", &format!("Tool '{name}' not found in provided tools")));
        }
    }
    Ok(())
}

/// A23: what can't go with a request that only fills the cache.
fn prewarm(body: &Node<'_>) -> Checked {
    let inside = |field: &str, key: &str| body.get(field).and_then(|it| it.str_of(key));
    let conflict = if body.value["stream"] == true {
        "stream"
    } else if inside("thinking", "type") == Some("enabled") {
        "thinking"
    } else if body.get("output_config").is_some_and(|config| config.has("format")) {
        "output_config.format"
    } else if matches!(inside("tool_choice", "type"), Some("any" | "tool")) {
        "tool_choice"
    } else {
        return Ok(());
    };
    Err(body.refuse("A23", &format!("max_tokens: 0 is not supported together with `{conflict}`")))
}
