//! What `POST /v1beta/models/{model}:generateContent` takes.

use super::model::Gemini;
use super::node::{Checked, Node};
use super::{Refusal, media, schema};
use serde_json::{Value, json};
use std::collections::HashMap;

const NAME_CHARS_MAX: usize = 128;
const FUNCTIONS_MAX: usize = 128;
const FIELDS: [&str; 8] = [
    "model",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
];
const KINDS: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
const BESIDE: [&str; 4] = ["thought", "thoughtSignature", "mediaResolution", "videoMetadata"];
const GENERATION: [&str; 16] = [
    "candidateCount",
    "frequencyPenalty",
    "maxOutputTokens",
    "mediaResolution",
    "presencePenalty",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "seed",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
];
const IMAGE_TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
/// What stands in the place of a signature that nobody has.
const UNSIGNED: [&str; 2] = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// What an address asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) model: String,
    method: String,
}

impl Called {
    /// Reads a path with or without its query.
    pub(super) fn of(path: &str) -> Option<Called> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (model, method) = path.strip_prefix("/v1beta/models/")?.split_once(':')?;
        let is_stream = method == "streamGenerateContent";
        // Without the query it would be one long list.
        let is_known = method == "generateContent" || method == "countTokens" || is_stream;
        let called = Called { model: model.to_owned(), method: method.to_owned() };
        (is_known && (!is_stream || query.is_empty() || query.split('&').any(|it| it == "alt=sse"))).then_some(called)
    }

    pub(super) fn generates(&self) -> bool {
        self.method != "countTokens"
    }

    pub(super) fn streams(&self) -> bool {
        self.method == "streamGenerateContent"
    }
}

/// Returns a body with the model that its address names; other bodies stay.
pub(super) fn addressed(mut body: Value, path: &str) -> Value {
    if let Some(called) = Called::of(path) {
        body["model"] = json!(called.model);
    }
    body
}

/// Returns what is to be counted.
pub(super) fn counted(body: Value, path: &str) -> Value {
    let inner = body.get("generateContentRequest").cloned().filter(|_| Called::of(path).is_some());
    addressed(inner.unwrap_or(body), path)
}

pub(super) fn check(body: &Node<'_>) -> Checked {
    body.only(&FIELDS)?;
    let contents = body.need("contents")?.list()?;
    if contents.is_empty() {
        return Err(body.refuse("shape", "* GenerateContentRequest.contents: contents is not specified"));
    }
    for content in &contents {
        shape(content)?;
    }
    order(&contents)?;
    let model = body.str_of("model").and_then(Gemini::named);
    if model.is_some_and(Gemini::signs_calls) {
        signed(&contents)?;
    }
    if let Some(system) = body.get("systemInstruction") {
        system.only(&["role", "parts"])?;
        for part in parts_of(&system)? {
            part.only(&["text"])?;
            words(&part)?;
        }
    }
    tools(body)?;
    if body.has("cachedContent") && ["systemInstruction", "tools", "toolConfig"].iter().any(|name| body.has(name)) {
        let text = "CachedContent can not be used with GenerateContent request setting system_instruction, tools or \
                    tool_config.";
        return Err(body.refuse("G6", text));
    }
    generation(body)
}

/// G5: no content without parts.
fn parts_of<'a>(content: &Node<'a>) -> Result<Vec<Node<'a>>, Refusal> {
    let parts = content.get("parts").map(|parts| parts.list()).transpose()?.unwrap_or_default();
    match parts.is_empty() {
        true => Err(content.refuse("G5", "* GenerateContentRequest.contents: contents.parts must not be empty")),
        false => Ok(parts),
    }
}

fn words(part: &Node<'_>) -> Checked {
    match part.need("text")?.text()? {
        "" => Err(part.refuse("G5", "Unable to submit request because it must have a text parameter.")),
        _ => Ok(()),
    }
}

fn is_model(content: &Node<'_>) -> bool {
    content.is("role", "model")
}

fn shape(content: &Node<'_>) -> Checked {
    content.only(&["role", "parts"])?;
    if let Some(role) = content.get("role")
        && !["user", "model"].contains(&role.text()?)
    {
        return Err(role.refuse("shape", "Please use a valid role: user, model."));
    }
    for part in parts_of(content)? {
        let known: Vec<&str> = KINDS.iter().chain(&BESIDE).copied().collect();
        part.only(&known)?;
        let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| part.has(kind)).collect();
        let [kind] = kinds[..] else {
            let text = "Invalid value at 'contents.parts': oneof field 'data' is already set, or is not set at all.";
            return Err(part.refuse("shape", text));
        };
        match kind {
            // A signature may come alone, on a part without words.
            "text" if is_model(content) && part.has("thoughtSignature") => drop(part.need("text")?.text()?),
            "text" => words(&part)?,
            "functionCall" => call(&part.need(kind)?)?,
            "functionResponse" => response(&part.need(kind)?)?,
            "inlineData" => inline(&part.need(kind)?)?,
            "fileData" => {
                let file = part.need(kind)?;
                file.only(&["mimeType", "fileUri"])?;
                file.need("fileUri")?.text()?;
            }
            _ => {}
        }
        let is_misplaced = match kind {
            "functionResponse" => is_model(content),
            "functionCall" | "executableCode" | "codeExecutionResult" | "toolCall" => !is_model(content),
            _ => false,
        };
        if is_misplaced {
            return Err(part.refuse("shape", &format!("{kind} is not taken from this role.")));
        }
    }
    Ok(())
}

fn inline(data: &Node<'_>) -> Checked {
    data.only(&["mimeType", "data"])?;
    let kind = data.need("mimeType")?.text()?;
    if kind.is_empty() || kind.starts_with("image/") && !IMAGE_TYPES.contains(&kind) {
        return Err(data.refuse("shape", &format!("Unsupported MIME type: {kind}")));
    }
    match media::decoded(data.need("data")?.text()?) {
        Some(_) => Ok(()),
        None => Err(data.refuse("shape", "Invalid value at 'data' (TYPE_BYTES), Base64 decoding failed")),
    }
}

fn call(call: &Node<'_>) -> Checked {
    call.only(&["id", "name", "args"])?;
    name(&call.need("name")?)?;
    if let Some(id) = call.get("id") {
        id.text()?;
    }
    call.get("args").map_or(Ok(()), |args| args.object().map(drop))
}

fn response(response: &Node<'_>) -> Checked {
    response.only(&["id", "name", "response", "parts", "willContinue", "scheduling"])?;
    name(&response.need("name")?)?;
    response.need("response")?.object()?;
    for part in response.get("parts").map(|parts| parts.list()).transpose()?.unwrap_or_default() {
        part.only(&["inlineData"])?;
        inline(&part.need("inlineData")?)?;
    }
    Ok(())
}

fn name(name: &Node<'_>) -> Checked {
    let text = name.text()?;
    let starts = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let takes = |letter: char| letter.is_ascii_alphanumeric() || "_.:-".contains(letter);
    if text.starts_with(starts) && text.chars().all(takes) && text.len() <= NAME_CHARS_MAX {
        return Ok(());
    }
    let text = "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), \
                underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.";
    Err(name.refuse("shape", text))
}

/// G1 to G4: who speaks when. Neighbours of one role are one turn here, since nobody says what else they are.
fn order(contents: &[Node<'_>]) -> Checked {
    let has = |content: &Node<'_>, kind: &str| -> Vec<Value> {
        entries(content).iter().filter_map(|part| part.get(kind)).map(|it| it.value.clone()).collect()
    };
    let mut before: Option<&Node<'_>> = None;
    for content in contents {
        let (calls, responses) = (has(content, "functionCall"), has(content, "functionResponse"));
        let asked = before.map(|before| has(before, "functionCall")).unwrap_or_default();
        if before.is_some_and(|before| is_model(before) == is_model(content)) {
            return Err(content.refuse("order", "Neighbouring contents of one role are one."));
        }
        if !calls.is_empty() && before.is_none() {
            let text = "Please ensure that function call turn comes immediately after a user turn or after a function \
                        response turn.";
            return Err(content.refuse("G1", text));
        }
        if !responses.is_empty() && asked.is_empty() {
            let text = "Please ensure that function response turn comes immediately after a function call turn.";
            return Err(content.refuse("G3", text));
        }
        let leading = entries(content).iter().take_while(|part| part.has("functionResponse")).count();
        if asked.len() != responses.len() || leading < responses.len() || !are_answered(&asked, &responses) {
            let text = "Please ensure that the number of function response parts is equal to the number of function \
                        call parts of the function call turn.";
            return Err(content.refuse("G2", text));
        }
        before = Some(content);
    }
    match before.filter(|last| is_model(last)) {
        Some(last) => {
            Err(last.refuse("G4", "Please ensure that multiturn requests end with a user role or a function response."))
        }
        None => Ok(()),
    }
}

/// By their ids where they have some, else by name and order.
fn are_answered(calls: &[Value], responses: &[Value]) -> bool {
    let id = |it: &Value| it["id"].as_str().map(str::to_owned);
    let mut left: Vec<&Value> = responses.iter().collect();
    calls.iter().all(|call| {
        let fits = |it: &&Value| id(it) == id(call) && it["name"] == call["name"];
        left.iter().position(fits).map(|at| left.remove(at)).is_some()
    })
}

fn entries<'a>(content: &Node<'a>) -> Vec<Node<'a>> {
    content.get("parts").map(|parts| parts.entries()).unwrap_or_default()
}

/// G7: since the user spoke, the first call of each step carries a signature.
fn signed(contents: &[Node<'_>]) -> Checked {
    let is_asked =
        |content: &Node<'_>| !is_model(content) && !entries(content).iter().any(|it| it.has("functionResponse"));
    let begins = contents.iter().rposition(is_asked).map_or(0, |at| at + 1);
    for content in contents[begins..].iter().filter(|content| is_model(content)) {
        let parts = entries(content);
        let Some(first) = parts.iter().find(|part| part.has("functionCall")) else { continue };
        if !first.has("thoughtSignature") {
            let text = "Function call is missing a thought_signature in functionCall parts. This is required for tools \
                        to work correctly.";
            return Err(first.refuse("G7", text));
        }
    }
    Ok(())
}

fn tools(body: &Node<'_>) -> Checked {
    let mut names: Vec<&str> = Vec::new();
    for group in body.get("tools").map(|tools| tools.list()).transpose()?.unwrap_or_default() {
        group.only(&[
            "functionDeclarations",
            "googleSearch",
            "codeExecution",
            "urlContext",
            "googleMaps",
            "fileSearch",
        ])?;
        for function in group.get("functionDeclarations").map(|it| it.list()).transpose()?.unwrap_or_default() {
            function.only(&["name", "description", "parameters", "parametersJsonSchema", "response", "behavior"])?;
            let called = function.need("name")?;
            name(&called)?;
            if names.contains(&called.text()?) {
                return Err(called.refuse("shape", "Duplicate function declaration found."));
            }
            names.push(called.text()?);
            if function.has("parameters") && function.has("parametersJsonSchema") {
                return Err(function.refuse("shape", "parameters and parameters_json_schema can not both be set."));
            }
            if let Some(parameters) = function.get("parametersJsonSchema") {
                parameters.object()?;
                schema::draft_2020(parameters.value).map_err(|problem| parameters.refuse("shape", &problem))?;
            }
        }
    }
    if names.len() > FUNCTIONS_MAX {
        return Err(body.refuse("shape", "At most 128 function declarations are taken."));
    }
    match body.get("toolConfig").filter(|_| names.is_empty()) {
        Some(config) => Err(config.refuse("shape", "Function calling config is set without function_declarations.")),
        None => Ok(()),
    }
}

fn generation(body: &Node<'_>) -> Checked {
    let Some(config) = body.get("generationConfig") else { return Ok(()) };
    config.only(&GENERATION)?;
    if let Some(thinking) = config.get("thinkingConfig") {
        thinking.only(&["thinkingBudget", "thinkingLevel", "includeThoughts"])?;
        if thinking.has("thinkingBudget") && thinking.has("thinkingLevel") {
            return Err(thinking.refuse("shape", "You can only set only one of thinking budget and thinking level."));
        }
    }
    if let Some(most) = config.get("maxOutputTokens").filter(|most| most.value.as_u64().is_none_or(|it| it == 0)) {
        return Err(most.refuse("shape", "max_output_tokens must be positive."));
    }
    let has_schema = config.has("responseSchema") || config.has("responseJsonSchema");
    if has_schema && !config.is("responseMimeType", "application/json") {
        return Err(config.refuse("shape", "response_schema is only taken with application/json."));
    }
    Ok(())
}

/// Every signature that was given out, and the model that made it.
#[derive(Debug, Default)]
pub(super) struct Thought {
    issued: HashMap<String, String>,
}

impl Thought {
    /// G8: signatures are this provider's, and of the model that is asked.
    pub(super) fn check(&self, body: &Node<'_>) -> Checked {
        let contents = body.get("contents").map(|contents| contents.entries()).unwrap_or_default();
        for part in contents.iter().filter_map(|content| content.get("parts")).flat_map(|parts| parts.entries()) {
            let Some(signature) = part.str_of("thoughtSignature").filter(|it| !UNSIGNED.contains(it)) else { continue };
            let Some(model) = self.issued.get(signature) else {
                return Err(part.refuse("G8", "Corrupted thought signature."));
            };
            if body.str_of("model").is_some_and(|asked| asked != model) {
                return Err(part.refuse("G8", "Invalid thought signature."));
            }
        }
        Ok(())
    }

    /// Remembers the signatures of an answer.
    pub(super) fn remember(&mut self, model: &str, whole: &Value) {
        let parts = whole["candidates"][0]["content"]["parts"].as_array().into_iter().flatten();
        let signatures = parts.filter_map(|part| part["thoughtSignature"].as_str());
        self.issued.extend(signatures.map(|signature| (signature.to_owned(), model.to_owned())));
    }
}

/// Whether an answer in a body of this API is for a model of this name.
pub(super) fn is_signing(body: &Value) -> bool {
    body["model"].as_str().and_then(Gemini::named).is_some_and(Gemini::signs_calls)
}
