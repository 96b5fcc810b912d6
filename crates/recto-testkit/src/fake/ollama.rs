//! What `POST /api/chat` of Ollama takes: any field, but no value of another type.

use super::node::{Checked, Node};
use super::prompt::{self, Count, Prompt};
use super::{Refusal, media};

pub(super) fn check(body: &Node<'_>) -> Checked {
    if body.get("model").map(|model| model.text()).transpose()?.unwrap_or_default().is_empty() {
        return Err(body.refuse("shape", "model is required"));
    }
    for message in body.get("messages").map(|it| it.list()).transpose()?.unwrap_or_default() {
        self::message(&message)?;
    }
    for tool in body.get("tools").map(|it| it.list()).transpose()?.unwrap_or_default() {
        let function = tool.need("function")?;
        function.need("name")?.text()?;
        function.get("description").map_or(Ok(()), |it| it.text().map(drop))?;
        function.get("parameters").map_or(Ok(()), |it| it.object().map(drop))?;
    }
    if let Some(format) = body.get("format")
        && !(format.value.is_object() || format.value == "json" || format.value == "")
    {
        return Err(format.refuse("shape", "invalid format: expected \"json\" or a JSON schema"));
    }
    if let Some(think) = body.get("think")
        && !(think.value.is_boolean() || ["low", "medium", "high", "max"].contains(&think.text()?))
    {
        return Err(think.refuse("shape", "invalid think value: must be a boolean or a level"));
    }
    for name in ["stream", "truncate"] {
        body.get(name).map_or(Ok(()), |it| it.flag().map(drop))?;
    }
    let Some(options) = body.get("options") else { return Ok(()) };
    options.object()?;
    for name in ["num_ctx", "num_predict"] {
        options.get(name).map_or(Ok(()), |it| it.integer().map(drop))?;
    }
    Ok(())
}

fn message(message: &Node<'_>) -> Checked {
    message.object()?;
    message.need("role")?.one_of(&["system", "user", "assistant", "tool"])?;
    for name in ["content", "thinking", "tool_name", "tool_call_id"] {
        message.get(name).map_or(Ok(()), |it| it.text().map(drop))?;
    }
    for image in message.get("images").map(|it| it.list()).transpose()?.unwrap_or_default() {
        if media::decoded(image.text()?).is_none() {
            return Err(image.refuse("shape", "illegal base64 data at input byte 4"));
        }
    }
    for call in message.get("tool_calls").map(|it| it.list()).transpose()?.unwrap_or_default() {
        call.get("id").map_or(Ok(()), |it| it.text().map(drop))?;
        let function = call.need("function")?;
        function.need("name")?.text()?;
        function.get("index").map_or(Ok(()), |it| it.integer().map(drop))?;
        function.get("arguments").map_or(Ok(()), |it| it.object().map(drop))?;
    }
    Ok(())
}

/// Returns what the model reads, and how many messages were dropped without a word because its window is too small:
/// the oldest, but for instructions and the last. Who wants to hear of it is refused instead.
pub(super) fn fitted(body: &Node<'_>, count: &Count) -> Result<(Prompt, usize), Refusal> {
    let mut dropped: Vec<usize> = Vec::new();
    let messages = body.get("messages").map(|messages| messages.entries()).unwrap_or_default();
    let window = body.value["options"]["num_ctx"].as_u64();
    loop {
        let prompt = prompt::of_ollama(body.value, &dropped, count);
        let fits = window.is_none_or(|window| prompt.tokens() <= window);
        let next = (0..messages.len().saturating_sub(1))
            .find(|at| !dropped.contains(at) && !messages[*at].is("role", "system"));
        match next.filter(|_| !fits) {
            None => return Ok((prompt, dropped.len())),
            Some(_) if body.value["truncate"] == false => {
                let (has, window) = (prompt.tokens(), window.unwrap_or_default());
                let text = format!("the prompt of {has} tokens exceeds the context length of {window}");
                return Err(body.refuse("context", &text));
            }
            Some(at) => dropped.push(at),
        }
    }
}
