//! What a client wants, in a provider's format.

use super::{Choice, Wanted, refused};
use crate::digest::Digest;
use crate::error::Error;
use crate::target::Target;
use crate::wire::{anthropic, openai_chat, tool_name};
use serde_json::{Map, Value, json};

/// The most stop sequences that Chat Completions takes.
const STOPS_MAX: usize = 4;
/// The longest name of a client's user, as OpenAI and Anthropic take it.
const OPENAI_USER_MAX: usize = 64;
const ANTHROPIC_USER_MAX: usize = 256;
/// The least that Responses lets a model say.
const RESPONSES_OUTPUT_MIN: u64 = 16;

/// Writes what is wanted of Chat Completions.
pub(super) fn chat(wanted: &mut Wanted, target: &Target, has_tools: bool) -> Result<Map<String, Value>, Error> {
    let model = openai_chat::Model::named(&target.name);
    let mut fields = openai(wanted, &model, has_tools, |name| json!({"type": "function", "function": {"name": name}}));
    if let Some(most) = wanted.output_max {
        // Models that think take only the newer name, and many servers only the older.
        let name = if model.reasons { "max_completion_tokens" } else { "max_tokens" };
        fields.insert(name.into(), most.into());
    }
    if wanted.stops.len() > STOPS_MAX {
        return Err(refused("stop_sequences", "give at most four"));
    }
    if !wanted.stops.is_empty() {
        fields.insert("stop".into(), json!(wanted.stops));
    }
    if let Some(user) = &wanted.user {
        // The older of two names, which other servers know as well.
        fields.insert("user".into(), bounded(user, OPENAI_USER_MAX).into());
    }
    if wanted.is_streaming {
        // Usage is recorded, whether its client wants to know it or not.
        fields.insert("stream_options".into(), json!({"include_usage": true}));
    }
    match wanted.effort.take() {
        // The encoder says what must be said where a model takes tools only without effort.
        Some(effort) if model.reasons && (target.chat_tools || !has_tools) => {
            fields.insert("reasoning_effort".into(), effort.into());
        }
        Some(_) => wanted.dropped.push("effort".into()),
        None => {}
    }
    Ok(fields)
}

/// Writes what is wanted of Responses.
pub(super) fn responses(wanted: &mut Wanted, target: &Target, has_tools: bool) -> Result<Map<String, Value>, Error> {
    let model = openai_chat::Model::named(&target.name);
    let mut fields = openai(wanted, &model, has_tools, |name| json!({"type": "function", "name": name}));
    if let Some(most) = wanted.output_max {
        fields.insert("max_output_tokens".into(), most.max(RESPONSES_OUTPUT_MIN).into());
    }
    if let Some(user) = &wanted.user {
        fields.insert("safety_identifier".into(), bounded(user, OPENAI_USER_MAX).into());
    }
    if !wanted.stops.is_empty() {
        return Err(refused("stop_sequences", "this provider's format has none; reach it as `wire = \"openai_chat\"`"));
    }
    match wanted.effort.take() {
        Some(effort) if model.reasons => drop(fields.insert("reasoning".into(), json!({"effort": effort}))),
        Some(_) => wanted.dropped.push("effort".into()),
        None => {}
    }
    Ok(fields)
}

/// What both formats of OpenAI spell alike.
fn openai(
    wanted: &mut Wanted,
    model: &openai_chat::Model,
    has_tools: bool,
    one: impl Fn(&str) -> Value,
) -> Map<String, Value> {
    let mut fields = Map::new();
    if wanted.is_streaming {
        fields.insert("stream".into(), true.into());
    }
    sampling(wanted, &mut fields, model.reasons);
    if has_tools {
        if let Some(choice) = &wanted.choice {
            let choice = match choice {
                Choice::Auto => json!("auto"),
                Choice::None => json!("none"),
                Choice::Any => json!("required"),
                Choice::One(name) => one(&tool_name(name)),
            };
            fields.insert("tool_choice".into(), choice);
        }
        if let Some(parallel) = wanted.parallel {
            fields.insert("parallel_tool_calls".into(), parallel.into());
        }
    }
    fields
}

/// Writes what is wanted of Messages.
pub(super) fn messages(wanted: &mut Wanted, target: &Target, has_tools: bool) -> Map<String, Value> {
    let model = anthropic::Model::named(&target.name);
    let mut fields = Map::new();
    if wanted.is_streaming {
        fields.insert("stream".into(), true.into());
    }
    if let Some(most) = wanted.output_max {
        fields.insert("max_tokens".into(), most.into());
    }
    // Others go up to 2.
    if wanted.temperature.is_some_and(|temperature| temperature > 1.0) {
        wanted.temperature = Some(1.0);
        wanted.dropped.push("temperature".into());
    }
    sampling(wanted, &mut fields, model.is_some_and(anthropic::Model::refuses_sampling));
    if !wanted.stops.is_empty() {
        fields.insert("stop_sequences".into(), json!(wanted.stops));
    }
    if has_tools && (wanted.choice.is_some() || wanted.parallel == Some(false)) {
        let mut choice = match wanted.choice.as_ref().unwrap_or(&Choice::Auto) {
            Choice::Auto => json!({"type": "auto"}),
            Choice::None => json!({"type": "none"}),
            Choice::Any => json!({"type": "any"}),
            Choice::One(name) => json!({"type": "tool", "name": tool_name(name)}),
        };
        if wanted.parallel == Some(false) && wanted.choice != Some(Choice::None) {
            choice["disable_parallel_tool_use"] = true.into();
        }
        fields.insert("tool_choice".into(), choice);
    }
    if let Some(user) = &wanted.user {
        fields.insert("metadata".into(), json!({"user_id": bounded(user, ANTHROPIC_USER_MAX)}));
    }
    match wanted.effort.take().as_deref() {
        None => {}
        Some("none") if model.is_some_and(|model| model.refused_thinking("disabled", None).is_none()) => {
            fields.insert("thinking".into(), json!({"type": "disabled"}));
        }
        Some(effort) if effort != "none" && model.is_some_and(anthropic::Model::takes_effort) => {
            let effort = if effort == "minimal" { "low" } else { effort };
            fields.insert("output_config".into(), json!({"effort": effort}));
        }
        Some(_) => wanted.dropped.push("effort".into()),
    }
    fields
}

/// Writes how to sample, unless the model lets nobody say so. What it does anyway need not be said.
fn sampling(wanted: &mut Wanted, fields: &mut Map<String, Value>, is_refused: bool) {
    let given = [("temperature", wanted.temperature), ("top_p", wanted.top_p)];
    for (name, value) in given.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        match is_refused {
            true if value != 1.0 => wanted.dropped.push(name.into()),
            true => {}
            false => drop(fields.insert(name.into(), value.into())),
        }
    }
}

/// A name as it is, or what identifies it, if it is long.
fn bounded(name: &str, most: usize) -> String {
    match name.len() <= most {
        true => name.to_string(),
        false => Digest::of(name.as_bytes()).to_string(),
    }
}
