//! What a client wants, from its own format.

use super::{Choice, Wanted, refused};
use crate::error::Error;
use serde_json::{Map, Value};

/// What is the same as not being there at all, in any field.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() || text == "auto" || text == "default" || text == "disabled",
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    }
}

/// Fields that are taken one after the other.
struct Taken(Map<String, Value>);

impl Taken {
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Takes what must be of a kind, if it is there.
    fn of<T>(&mut self, name: &str, kind: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Option<T>, Error> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| Error::input(format!("{name:?} is no {kind}")))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.of(name, "text", |value| value.as_str().map(str::to_string))
    }

    fn number(&mut self, name: &str) -> Result<Option<f64>, Error> {
        self.of(name, "number", Value::as_f64)
    }

    fn count(&mut self, name: &str) -> Result<Option<u64>, Error> {
        self.of(name, "whole number", Value::as_u64)
    }

    fn is(&mut self, name: &str) -> Result<Option<bool>, Error> {
        self.of(name, "truth value", Value::as_bool)
    }

    fn inner(&mut self, name: &str) -> Result<Taken, Error> {
        let fields = self.of(name, "object", |value| value.as_object().cloned())?;
        Ok(Taken(fields.unwrap_or_default()))
    }

    /// Refuses what would make another request of it.
    fn refuse(&mut self, names: &[&str], hint: &str) -> Result<(), Error> {
        for name in names {
            if self.0.remove(*name).is_some_and(|value| !says_nothing(&value)) {
                return Err(refused(name, hint));
            }
        }
        Ok(())
    }

    /// Names what is left and says something.
    fn left(self, wanted: &mut Wanted) {
        let names = self.0.into_iter().filter(|(_, value)| !says_nothing(value)).map(|(name, _)| name);
        wanted.dropped.extend(names);
    }
}

/// Texts that are given as one or as a list.
fn texts(value: Option<Value>, name: &str) -> Result<Vec<String>, Error> {
    let wrong = || Error::input(format!("{name:?} is neither a text nor a list of texts"));
    match value {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(list)) => {
            list.into_iter().map(|it| it.as_str().map(str::to_string).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Reads what a body of Chat Completions wants.
pub(super) fn chat(fields: Map<String, Value>) -> Result<Wanted, Error> {
    let mut fields = Taken(fields);
    if fields.count("n")?.is_some_and(|n| n != 1) {
        return Err(refused("n", "ask for one answer at a time"));
    }
    if fields.take("modalities").is_some_and(|kinds| kinds != serde_json::json!(["text"])) {
        return Err(refused("modalities", "ask for text"));
    }
    fields.refuse(&["logprobs", "top_logprobs", "logit_bias"], "this provider tells nothing of single tokens")?;
    fields.refuse(&["functions", "function_call"], "use \"tools\" and \"tool_choice\"")?;
    fields.refuse(&["audio", "web_search_options"], "ask a model of the provider that has it")?;
    let output_max = fields.count("max_completion_tokens")?;
    let legacy = fields.count("max_tokens")?;
    let mut options = fields.inner("stream_options")?;
    let (user, older) = (fields.text("safety_identifier")?, fields.text("user")?);
    let mut wanted = Wanted {
        is_streaming: fields.is("stream")?.unwrap_or_default(),
        has_usage: options.is("include_usage")?.unwrap_or_default(),
        output_max: output_max.or(legacy),
        temperature: fields.number("temperature")?,
        top_p: fields.number("top_p")?,
        stops: texts(fields.take("stop"), "stop")?,
        choice: fields.take("tool_choice").map(|choice| openai_choice(&choice)).transpose()?,
        parallel: fields.is("parallel_tool_calls")?,
        user: user.or(older),
        effort: fields.text("reasoning_effort")?,
        format: fields.take("response_format"),
        dropped: Vec::new(),
    };
    options.left(&mut wanted);
    fields.left(&mut wanted);
    Ok(wanted)
}

/// Reads what a body of Responses wants.
pub(super) fn responses(fields: Map<String, Value>) -> Result<Wanted, Error> {
    let mut fields = Taken(fields);
    let hint = "send the whole history instead: this provider keeps nothing";
    fields.refuse(&["previous_response_id", "conversation", "background", "prompt"], hint)?;
    fields.refuse(&["top_logprobs"], "this provider tells nothing of single tokens")?;
    let (mut reasoning, mut text) = (fields.inner("reasoning")?, fields.inner("text")?);
    let (user, older) = (fields.text("safety_identifier")?, fields.text("user")?);
    let mut wanted = Wanted {
        is_streaming: fields.is("stream")?.unwrap_or_default(),
        output_max: fields.count("max_output_tokens")?,
        temperature: fields.number("temperature")?,
        top_p: fields.number("top_p")?,
        choice: fields.take("tool_choice").map(|choice| openai_choice(&choice)).transpose()?,
        parallel: fields.is("parallel_tool_calls")?,
        user: user.or(older),
        effort: reasoning.text("effort")?,
        format: text.take("format"),
        ..Wanted::default()
    };
    // What this format's provider would seal or keep, there is none of.
    drop((fields.take("include"), fields.take("store"), reasoning.take("context")));
    reasoning.left(&mut wanted);
    text.left(&mut wanted);
    fields.left(&mut wanted);
    Ok(wanted)
}

/// Whether tools are called, as OpenAI's formats spell it.
fn openai_choice(choice: &Value) -> Result<Choice, Error> {
    let name = choice["function"]["name"].as_str().or(choice["name"].as_str());
    match (choice.as_str(), choice["type"].as_str(), name) {
        (Some("auto"), ..) => Ok(Choice::Auto),
        (Some("none"), ..) => Ok(Choice::None),
        (Some("required"), ..) => Ok(Choice::Any),
        (None, Some("function"), Some(name)) => Ok(Choice::One(name.into())),
        _ => Err(refused("tool_choice", "say auto, none, required, or name one function")),
    }
}

/// Reads what a body of Messages wants.
pub(super) fn messages(fields: Map<String, Value>) -> Result<Wanted, Error> {
    let mut fields = Taken(fields);
    let hint = "ask a model of the provider that has it";
    fields.refuse(&["container", "mcp_servers", "thread", "compaction"], hint)?;
    let choice = fields.take("tool_choice").unwrap_or_default();
    let (mut config, mut metadata) = (fields.inner("output_config")?, fields.inner("metadata")?);
    let mut wanted = Wanted {
        is_streaming: fields.is("stream")?.unwrap_or_default(),
        has_usage: true,
        output_max: fields.count("max_tokens")?,
        temperature: fields.number("temperature")?,
        top_p: fields.number("top_p")?,
        stops: texts(fields.take("stop_sequences"), "stop_sequences")?,
        choice: (!choice.is_null()).then(|| messages_choice(&choice)).transpose()?,
        parallel: choice["disable_parallel_tool_use"].as_bool().map(|is_off| !is_off),
        user: metadata.text("user_id")?,
        effort: config.text("effort")?,
        format: config.take("format"),
        dropped: Vec::new(),
    };
    // Where a page is marked, and how, is for its own provider's cache.
    drop(fields.take("cache_control"));
    // Its absence is what a model without it does.
    if fields.0.get("thinking").is_some_and(|thinking| thinking["type"] == "disabled") {
        drop(fields.take("thinking"));
    }
    config.left(&mut wanted);
    metadata.left(&mut wanted);
    fields.left(&mut wanted);
    Ok(wanted)
}

fn messages_choice(choice: &Value) -> Result<Choice, Error> {
    match (choice["type"].as_str(), choice["name"].as_str()) {
        (Some("auto"), _) => Ok(Choice::Auto),
        (Some("none"), _) => Ok(Choice::None),
        (Some("any"), _) => Ok(Choice::Any),
        (Some("tool"), Some(name)) => Ok(Choice::One(name.into())),
        _ => Err(refused("tool_choice", "its type is auto, none, any, or tool with a name")),
    }
}
