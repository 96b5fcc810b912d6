//! `GenerateContentResponse`, whole and in pieces.

use super::super::gemini::is_signing;
use super::super::reply::Part;
use super::{Saying, deltas, event};
use serde_json::{Value, json};

pub(in super::super) fn whole(saying: &mut Saying<'_>) -> Value {
    let (signs, mut parts) = (is_signing(saying.body), Vec::new());
    let tells = saying.body["generationConfig"]["thinkingConfig"]["includeThoughts"] == true;
    let (mut has_thought, mut is_refused) = (false, false);
    for part in &saying.reply.parts {
        match part {
            Part::Text(text) => parts.push(json!({"text": text})),
            Part::Refusal(text) => {
                parts.push(json!({"text": text}));
                is_refused = true;
            }
            Part::Thinking(text) => {
                has_thought = true;
                if tells && !text.is_empty() {
                    parts.push(json!({"text": text, "thought": true}));
                }
            }
            Part::Redacted => has_thought = true,
            Part::Call { name, arguments } => {
                let args: Value = serde_json::from_str(arguments).unwrap_or(json!({}));
                let mut call = json!({"name": name, "args": args});
                if signs {
                    call["id"] = json!(saying.ids.next("", 8));
                }
                parts.push(json!({"functionCall": call}));
            }
        }
    }
    let first_call = parts.iter().position(|part| !part["functionCall"].is_null());
    let has_seal = has_thought || signs && first_call.is_some();
    let last = parts.iter().rposition(|part| part["thought"] != true);
    if let Some(at) = first_call.or(last).filter(|_| has_seal) {
        parts[at]["thoughtSignature"] = json!(saying.ids.next("Cp", 48));
    }
    let finish = saying.reply.stop.clone().unwrap_or_else(|| if is_refused { "SAFETY" } else { "STOP" }.to_owned());
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}],
        "usageMetadata": usage(saying), "modelVersion": saying.model(), "responseId": saying.ids.next("", 22),
    })
}

fn usage(saying: &Saying<'_>) -> Value {
    let (served, thoughts) = (saying.served, saying.thinking_tokens);
    let said = saying.output_tokens - thoughts;
    let mut usage = json!({
        "promptTokenCount": served.total, "candidatesTokenCount": said,
        "totalTokenCount": served.total + saying.output_tokens,
    });
    // Counts of nothing are left out.
    for (name, tokens) in [("cachedContentTokenCount", served.read), ("thoughtsTokenCount", thoughts)] {
        if tokens > 0 {
            usage[name] = json!(tokens);
        }
    }
    usage
}

pub(in super::super) fn stream(whole: &Value) -> Vec<String> {
    let candidate = &whole["candidates"][0];
    let mut pieces: Vec<Value> = Vec::new();
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        let Some(text) = part["text"].as_str() else {
            pieces.push(part.clone());
            continue;
        };
        for delta in deltas(text) {
            let mut piece = json!({"text": delta});
            if part["thought"] == true {
                piece["thought"] = json!(true);
            }
            pieces.push(piece);
        }
        if !part["thoughtSignature"].is_null() {
            pieces.push(json!({"text": "", "thoughtSignature": part["thoughtSignature"]}));
        }
    }
    let chunk = |parts: Value, is_last: bool| {
        let mut chunk = whole.clone();
        chunk["candidates"][0]["content"]["parts"] = parts;
        if !is_last && let Some(candidate) = chunk["candidates"][0].as_object_mut() {
            candidate.remove("finishReason");
        }
        event(None, &chunk)
    };
    let mut events: Vec<String> = pieces.into_iter().map(|piece| chunk(json!([piece]), false)).collect();
    events.push(chunk(json!([]), true));
    events
}
