//! What a body asks for beside its messages and tools, carried over into another format.
//!
//! What the other format has no word for is refused where it changes the meaning of the request, and named otherwise.
//! Fields that say what holds anyway (`null`, `false`, a penalty of 0) are neither.

mod read;
mod write;

use super::unheard;
use crate::entry::Text;
use crate::error::Error;
use crate::format::ResponseFormat;
use crate::target::Target;
use crate::tool::Tool;
use crate::wire::Wire;
use crate::wire::json::{Fields, place_of, without_lone_surrogates, without_position};
use serde_json::{Map, Value};

/// What goes beside the page of a request that is carried over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// The fields in the words of the provider; [`Wire::encode_with`] takes them.
    pub fields: Map<String, Value>,
    /// The form that the answer must have, as JSON text.
    pub format: Option<Text>,
    /// The fields that could not be carried over, or not as they are.
    pub dropped: Vec<String>,
    /// Whether the answer is wanted as a stream.
    pub is_streaming: bool,
    /// Whether a stream of Chat Completions is to end with what was used.
    pub has_usage: bool,
}

/// What a client wants, in the words of no provider.
#[derive(Clone, Debug, Default)]
struct Wanted {
    is_streaming: bool,
    has_usage: bool,
    output_max: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    stops: Vec<String>,
    choice: Option<Choice>,
    /// Whether several tools may be called at once.
    parallel: Option<bool>,
    /// Who the client's own user is.
    user: Option<String>,
    effort: Option<String>,
    format: Option<Value>,
    dropped: Vec<String>,
}

/// Whether tools are to be called, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    Auto,
    None,
    Any,
    One(String),
}

impl Wishes {
    /// Carries over what a body of a wire asks for to a target of another. Fails where it can't be carried over without
    /// meaning something else.
    pub fn of(from: Wire, body: &str, target: &Target) -> Result<Wishes, Error> {
        let (body, _) = without_lone_surrogates(body);
        let raw: Fields<'_> = serde_json::from_str(&body)
            .map_err(|error| Error::input(without_position(&error)).at(place_of(&body, &error)))?;
        let mut fields = Map::new();
        let mut has_tools = false;
        for (name, raw) in raw {
            match name.as_str() {
                // These are on the page.
                "model" | "messages" | "input" | "system" | "instructions" => {}
                "tools" => has_tools = tools(raw.get(), target)?,
                _ => drop(fields.insert(name, serde_json::from_str(raw.get()).unwrap_or_default())),
            }
        }
        let mut wanted = match from {
            Wire::OpenaiChat => read::chat(fields)?,
            Wire::OpenaiResponses => read::responses(fields)?,
            Wire::Anthropic => read::messages(fields)?,
            Wire::Gemini | Wire::Ollama => return Err(unheard(from)),
        };
        // Without tools there is nothing to choose.
        if !has_tools && matches!(wanted.choice, Some(Choice::Any | Choice::One(_))) {
            wanted.dropped.push("tool_choice".into());
        }
        let format = wanted.format.take().map(|format| format_for(&format, target)).transpose()?.flatten();
        let fields = match target.wire {
            Wire::OpenaiChat => write::chat(&mut wanted, target, has_tools)?,
            Wire::OpenaiResponses => write::responses(&mut wanted, target, has_tools)?,
            Wire::Anthropic => write::messages(&mut wanted, target, has_tools),
            Wire::Gemini | Wire::Ollama => return Err(unheard(target.wire)),
        };
        let Wanted { is_streaming, has_usage, mut dropped, .. } = wanted;
        dropped.sort();
        dropped.dedup();
        Ok(Wishes { fields, format, dropped, is_streaming, has_usage })
    }
}

/// Whether tools are offered that a target can be told of; one that it can't is refused.
fn tools(raw: &str, target: &Target) -> Result<bool, Error> {
    let tools: Option<Vec<&serde_json::value::RawValue>> = serde_json::from_str(raw).unwrap_or_default();
    let tools = tools.unwrap_or_default();
    for tool in &tools {
        let tool = Tool::parse(tool.get());
        if tool.function.is_none() {
            let name: String = tool.name().chars().take(80).collect();
            let what = format!("a tool that only its provider knows can't be offered to {}: {name}", target.name);
            return Err(Error::input(what).hinting("offer functions, or ask a model of that provider"));
        }
    }
    Ok(!tools.is_empty())
}

/// The form of the answer, if there is to be one that a target can be told of.
fn format_for(format: &Value, target: &Target) -> Result<Option<Text>, Error> {
    let text = format.to_string();
    match ResponseFormat::parse(&text)? {
        None => Ok(None),
        Some(format) if format.is_taken_by(target.wire) => Ok(Some(text.into())),
        Some(_) => {
            let what = format!("{} can't be told to answer with some JSON object", target.name);
            Err(Error::input(what).hinting("give a schema: {\"type\": \"json_schema\", …}"))
        }
    }
}

/// Says that a field can't be carried over.
fn refused(name: &str, hint: &str) -> Error {
    Error::input(format!("{name:?} can't be carried over to a provider of another format")).hinting(hint)
}
