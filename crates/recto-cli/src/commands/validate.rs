//! `recto validate`: the rules that a request body breaks.

use crate::args::ValidateArgs;
use crate::codes::Code;
use crate::failure::Failure;
use crate::{source, talk};
use recto::target::Catalogue;
use recto::wire::{Violation, Wire};
use serde::Serialize;
use serde_json::Value;

/// Content and fields that only requests to Anthropic have.
const ANTHROPIC_BLOCKS: [&str; 4] = ["tool_use", "tool_result", "thinking", "redacted_thinking"];
const ANTHROPIC_FIELDS: [&str; 3] = ["system", "thinking", "anthropic_version"];
/// Fields that only requests to Ollama have.
const OLLAMA_FIELDS: [&str; 4] = ["options", "truncate", "keep_alive", "think"];
/// Roles that only OpenAI's messages have.
const OPENAI_ROLES: [&str; 3] = ["developer", "system", "tool"];

/// Prints the rules that a body breaks.
pub(crate) fn run(args: &ValidateArgs) -> Result<(), Failure> {
    let text = source::text(&args.file, &source::BODY)?;
    let wire = args.wire.unwrap_or_else(|| guessed(&serde_json::from_str(&text).unwrap_or_default()));
    let broken = wire.validate(text.as_bytes());
    let file = source::shown(&args.file);
    if args.json {
        talk::json(&Output::of(&file, wire, args.wire.is_none(), &broken))?;
    } else {
        if args.wire.is_none() {
            talk::note(&format!("{file} is taken for a request of {wire}; --wire says otherwise"));
        }
        match broken.as_slice() {
            [] => talk::text(&format!("{file}: valid {wire}"))?,
            broken => talk::text(&broken.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n"))?,
        }
    }
    match broken.len() {
        0 => Ok(()),
        1 => Err(Failure::of(Code::BrokenRules, format!("{file} breaks a rule of {wire}"))),
        several => Err(Failure::of(Code::BrokenRules, format!("{file} breaks {several} rules of {wire}"))),
    }
}

/// What `--json` prints; `recto validate --help` tells its shape.
#[derive(Serialize)]
struct Output<'a> {
    file: &'a str,
    wire: Wire,
    guessed: bool,
    valid: bool,
    violations: Vec<Broken<'a>>,
}

#[derive(Serialize)]
struct Broken<'a> {
    at: &'a str,
    what: &'a str,
}

impl<'a> Output<'a> {
    fn of(file: &'a str, wire: Wire, guessed: bool, broken: &'a [Violation]) -> Output<'a> {
        let violations = broken.iter().map(|it| Broken { at: &it.at, what: &it.what }).collect();
        Output { file, wire, guessed, valid: broken.is_empty(), violations }
    }
}

/// Returns whose request a body looks like.
fn guessed(body: &Value) -> Wire {
    let has = |field: &&str| body.get(field).is_some();
    if has(&"input") && !has(&"messages") {
        return Wire::OpenaiResponses;
    }
    if has(&"contents") && !has(&"messages") {
        return Wire::Gemini;
    }
    let messages: &[Value] = body["messages"].as_array().map_or(&[], Vec::as_slice);
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let mut kinds = blocks.filter_map(|block| block["type"].as_str());
    let has_blocks = kinds.any(|kind| ANTHROPIC_BLOCKS.contains(&kind));
    let has_schema = body["tools"][0].get("input_schema").is_some();
    if ANTHROPIC_FIELDS.iter().any(has) || has_blocks || has_schema {
        return Wire::Anthropic;
    }
    if OLLAMA_FIELDS.iter().any(has) {
        return Wire::Ollama;
    }
    let is_openais = |message: &Value| {
        message["role"].as_str().is_some_and(|role| OPENAI_ROLES.contains(&role)) || message.get("tool_calls").is_some()
    };
    let model = body["model"].as_str().unwrap_or_default();
    let known = Catalogue::built_in().target(model).map(|target| target.wire == Wire::Anthropic);
    let is_anthropics =
        known.unwrap_or(model.starts_with("claude") || (has(&"max_tokens") && !model.starts_with("gpt")));
    if is_anthropics && !messages.iter().any(is_openais) { Wire::Anthropic } else { Wire::OpenaiChat }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_shows_whose_it_is() {
        let user = r#""messages":[{"role":"user","content":"Hi"}]"#;
        for (body, wire) in [
            (r#"{"model":"gpt-5.2","input":"Hi"}"#.into(), Wire::OpenaiResponses),
            (format!(r#"{{"model":"m","system":"Be terse.",{user}}}"#), Wire::Anthropic),
            (format!(r#"{{"model":"m","max_tokens":9,{user}}}"#), Wire::Anthropic),
            (format!(r#"{{"model":"claude-next",{user}}}"#), Wire::Anthropic),
            (format!(r#"{{"model":"gpt-4o","max_tokens":9,{user}}}"#), Wire::OpenaiChat),
            (format!(r#"{{"model":"m",{user}}}"#), Wire::OpenaiChat),
            (r#"{"max_tokens":9,"messages":[{"role":"system","content":"x"}]}"#.into(), Wire::OpenaiChat),
            (r#"{"messages":[{"role":"user","content":[{"type":"tool_result"}]}]}"#.into(), Wire::Anthropic),
            (r#"{"tools":[{"name":"f","input_schema":{}}],"messages":[]}"#.into(), Wire::Anthropic),
            (r#"{"contents":[{"parts":[{"text":"Hi"}]}]}"#.into(), Wire::Gemini),
            (format!(r#"{{"model":"m","options":{{"num_ctx":9}},{user}}}"#), Wire::Ollama),
            ("7".into(), Wire::OpenaiChat),
        ] {
            assert_eq!(guessed(&serde_json::from_str(&body).unwrap()), wire, "{body}");
        }
    }
}
