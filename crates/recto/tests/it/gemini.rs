//! Gemini's format: what is written, what is read, what is refused; signatures stay on their parts.

use crate::chain::{events, said};
use expect_test::{Expect, expect};
use recto::entry::{Arguments, Call, Media, Part, Piece, Role, Status, ToolResult};
use recto::format::ResponseFormat;
use recto::tool::Tools;
use recto::wire::{Stop, gemini};
use recto::{Entry, Log, Policy, Reader, Request, Target, Tokenizer, Tokens, Wire, compile_once};
use recto_testkit::fake::{self, Api, Incoming, Provider, Settings};
use serde_json::{Map, Value, json};

const MODEL: &str = "gemini-3.8-flash";
const UNSIGNED: &str = "skip_thought_signature_validator";

fn target(name: &str) -> Target {
    Target::named(name).unwrap().with_window(None)
}

fn written(entries: impl IntoIterator<Item = Entry>, name: &str) -> String {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    let (reader, policy, target) = (Reader::new("main"), Policy::none(), target(name));
    let page = compile_once(&Request::new(&log, &reader, &policy, &target)).unwrap().page;
    String::from_utf8(gemini::encode(&page, &target)).unwrap()
}

/// A body, read and written again.
fn again(body: &str, name: &str) -> String {
    written(gemini::decode(body).unwrap().entries, name)
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).unwrap()
}

#[track_caller]
fn check(entries: Vec<Entry>, expected: Expect) {
    let body = written(entries, MODEL);
    assert_eq!(gemini::validate(body.as_bytes()), []);
    fake::check(Api::Gemini, body.as_bytes()).unwrap();
    assert_eq!(again(&body, MODEL), body);
    let body = parsed(&body);
    let mut lines: Vec<String> = body.get("systemInstruction").into_iter().map(Value::to_string).collect();
    lines.extend(body["contents"].as_array().unwrap().iter().map(Value::to_string));
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_page_is_written_in_turns_of_user_and_model() {
    let media = |url: &str| Media { url: url.into(), name: Some("a".into()), detail: None };
    let shown = [
        Part::text("see"),
        Part::Image(media("data:image/png;base64,AAAA")),
        Part::Image(media("https://example.org/a.jpg?x=1")),
        Part::Image(media("data:image/gif;base64,AAAA")),
        Part::Document(media("data:text/plain,a%20b")),
        Part::Audio(media("data:audio/wav;base64,BBBB")),
        Part::File { id: "file-1".into() },
        Part::File { id: "https://generativelanguage.googleapis.com/v1beta/files/1".into() },
        Part::text(" "),
    ];
    let calls = [Call::new("a", "look up", "{\"at\": 1}"), Call::new("b", "read", "not JSON")];
    let pieces = vec![Piece::Text { text: "one".into() }, Piece::Image(media("data:image/png;base64,AAAA"))];
    let second =
        Entry::new(Role::Tool, [Part::Result(ToolResult { call: "b".into(), content: pieces, is_error: false })]);
    let failed = ToolResult { is_error: true, ..ToolResult::text("a", "gone") };
    check(
        vec![
            Entry::system("Be brief."),
            Entry::system("Be kind."),
            Entry::assistant("Hello."),
            Entry::new(Role::User, shown),
            Entry::user("so?"),
            Entry::assistant("I look."),
            Entry::step("", calls),
            second,
            Entry::new(Role::Tool, [Part::Result(failed)]),
            Entry::system("Hurry."),
            Entry::assistant("Done."),
        ],
        expect![[r#"
            {"parts":[{"text":"Be brief."},{"text":"Be kind."}]}
            {"parts":[{"text":"[Continue.]"}],"role":"user"}
            {"parts":[{"text":"Hello."}],"role":"model"}
            {"parts":[{"text":"see"},{"inlineData":{"data":"AAAA","mimeType":"image/png"}},{"fileData":{"fileUri":"https://example.org/a.jpg?x=1","mimeType":"image/jpeg"}},{"text":"[image of a kind that can't be shown: image/gif]"},{"inlineData":{"data":"YSBi","mimeType":"text/plain"}},{"inlineData":{"data":"BBBB","mimeType":"audio/wav"}},{"text":"[file that can't be shown: file-1]"},{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/1"}},{"text":"so?"}],"role":"user"}
            {"parts":[{"text":"I look."},{"functionCall":{"args":{"at":1},"id":"a","name":"lookup_60450a90220a"}},{"functionCall":{"args":{"arguments":"not JSON"},"id":"b","name":"read"}}],"role":"model"}
            {"parts":[{"functionResponse":{"id":"a","name":"lookup_60450a90220a","response":{"error":"gone"}}},{"functionResponse":{"id":"b","name":"read","parts":[{"inlineData":{"data":"AAAA","mimeType":"image/png"}}],"response":{"output":"one"}}},{"text":"[System Context]: Hurry."}],"role":"user"}
            {"parts":[{"text":"Done."}],"role":"model"}
            {"parts":[{"text":"[Continue.]"}],"role":"user"}"#]],
    );
}

/// A conversation with signatures on a call, on words, on a thought, and on a part without words.
fn signed() -> Value {
    json!({"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [
            {"text": "hm", "thought": true},
            {"functionCall": {"id": "fc1", "name": "look", "args": {"at": [1, 2.0]}}, "thoughtSignature": "c2lnMQ=="},
            {"functionCall": {"id": "fc2", "name": "look", "args": {}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "fc1", "name": "look", "response": {"output": "a"}}},
            {"functionResponse": {"id": "fc2", "name": "look", "response": {"found": [1], "more": false}}}]},
        {"role": "model", "parts": [
            {"text": "It is", "thoughtSignature": "c2lnMg=="},
            {"text": "so", "thought": true, "thoughtSignature": "c2lnMw=="},
            {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2lnNA=="},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": " a."},
            {"text": "", "thoughtSignature": "c2lnNQ=="}]},
        {"role": "user", "parts": [{"text": "And?"}]}]})
}

#[test]
fn signatures_go_back_on_the_parts_they_came_on() {
    let body = signed();
    assert_eq!(parsed(&again(&body.to_string(), MODEL)), body);
    assert_eq!(gemini::validate(body.to_string().as_bytes()), []);
    // Another provider's model gets none of it, and the receipt's page still says everything else.
    let entries = gemini::decode(&body.to_string()).unwrap().entries;
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    let (reader, policy, other) = (Reader::new("main"), Policy::none(), target("claude-opus-5-5"));
    let page = compile_once(&Request::new(&log, &reader, &policy, &other)).unwrap().page;
    let told = String::from_utf8(Wire::Anthropic.encode(&page, &other)).unwrap();
    assert!(!told.contains("c2ln") && told.contains("It is") && told.contains("fc1"), "{told}");
}

#[test]
fn what_another_model_signed_does_not_go_back_and_something_stands_for_it() {
    let mut entries = gemini::decode(&signed().to_string()).unwrap().entries;
    // Up to the results, so that the calls are of the current turn.
    entries.truncate(5);
    let of_another = |part: &Part| match part {
        Part::Reasoning(it) => {
            Part::Reasoning(recto::entry::Reasoning { model: Some("gemini-4-argon".into()), ..it.clone() })
        }
        part => part.clone(),
    };
    for entry in &mut entries {
        entry.parts = entry.parts.iter().map(of_another).collect();
    }
    let body = parsed(&written(entries.clone(), MODEL));
    let parts = &body["contents"][1]["parts"];
    assert_eq!((parts[0]["thoughtSignature"].as_str(), parts[1].get("thoughtSignature")), (Some(UNSIGNED), None));
    let own = parsed(&written(entries.clone(), "gemini-4-argon"));
    assert_eq!(own["contents"][1], signed()["contents"][1]);
    // An older model demands nothing, and once the turn is over, nobody does.
    assert!(!written(entries.clone(), "gemini-2.5-flash").contains("thoughtSignature"));
    entries.push(Entry::assistant("So."));
    entries.push(Entry::user("And?"));
    assert!(!written(entries, MODEL).contains("thoughtSignature"));
}

#[test]
fn calls_and_results_need_no_ids() {
    let body = json!({"contents": [
        {"parts": [{"text": "Look."}]},
        {"role": "model", "parts": [{"function_call": {"name": "look", "args": {"at": 1}}},
            {"function_call": {"name": "look"}}, {"function_call": {"name": "read"}}]},
        {"role": "function", "parts": [{"function_response": {"name": "read", "response": {"output": "r"}}},
            {"function_response": {"name": "look", "response": {"output": "1"}}},
            {"function_response": {"name": "look", "response": {"output": "2"}}}]}]});
    let entries = gemini::decode(&body.to_string()).unwrap().entries;
    let calls: Vec<&str> = entries[1].calls().map(|call| call.id.as_str()).collect();
    assert_eq!(calls, ["look", "look-2", "read"]);
    let answered: Vec<String> = entries[2..]
        .iter()
        .map(|entry| match &entry.parts[0] {
            Part::Result(result) => result.call.to_string(),
            part => panic!("{part:?}"),
        })
        .collect();
    assert_eq!(answered, ["read", "look", "look-2"]);
    // The provider gave no ids, and is told none; results stand in the order of the calls.
    let again = parsed(&written(entries, "gemini-2.5-flash"));
    let parts = again["contents"][2]["parts"].as_array().unwrap();
    let told: Vec<String> = parts.iter().map(|part| part["functionResponse"].to_string()).collect();
    assert_eq!(told[0], r#"{"name":"look","response":{"output":"1"}}"#);
    assert_eq!(told[2], r#"{"name":"read","response":{"output":"r"}}"#);
    assert!(!again.to_string().contains("\"id\""));
    // An id that only the call has is its result's too.
    let half =
        body.to_string().replace(r#"{"args":{"at":1},"name":"look"}"#, r#"{"args":{"at":1},"name":"look","id":"x"}"#);
    let entries = gemini::decode(&half).unwrap().entries;
    assert!(matches!(&entries[3].parts[0], Part::Result(result) if result.call.as_str() == "x"));
}

#[test]
fn tools_settings_and_the_form_of_the_answer_are_told_in_its_words() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    let definitions = [
        format!(r#"{{"type":"function","function":{{"name":"one","description":"d","parameters":{schema}}}}}"#),
        format!(r#"{{"name":"two","input_schema":{schema}}}"#),
        r#"{"name":"three","parameters":{"type":"OBJECT","properties":{"n":{"type":"INTEGER","nullable":true}}}}"#
            .into(),
        r#"{"googleSearch":{}}"#.into(),
    ];
    let tools = Tools::counted(definitions.map(Into::into), &Tokenizer::Chars4);
    let format = ResponseFormat::parse(schema).unwrap();
    let mut log = Log::counted_by(Tokenizer::Chars4);
    log.append(Entry::user("Hi")).unwrap();
    let (reader, policy, target) = (Reader::new("main"), Policy::none(), target(MODEL));
    let request =
        Request { tools: Some(&tools), format: format.as_ref(), ..Request::new(&log, &reader, &policy, &target) };
    let page = compile_once(&request).unwrap().page;
    let config = json!({"temperature": 0.5, "responseMimeType": "text/plain"});
    let fields = Map::from_iter([("generationConfig".to_string(), config), ("safetySettings".to_string(), json!([]))]);
    let body = gemini::encode_with(&page, &target, &fields);
    assert_eq!(gemini::validate(&body), []);
    fake::check(Api::Gemini, &body).unwrap();
    let text = String::from_utf8(body).unwrap();
    let (body, parameters) = (parsed(&text), parsed(schema));
    assert_eq!(
        body["tools"],
        json!([{"functionDeclarations": [
        {"name": "one", "description": "d", "parametersJsonSchema": parameters},
        {"name": "two", "parametersJsonSchema": parameters},
        {"name": "three", "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": true}}}}]},
        {"googleSearch": {}}])
    );
    assert_eq!(
        body["generationConfig"],
        json!({"responseMimeType": "application/json", "responseJsonSchema": parameters, "temperature": 0.5})
    );
    // Other formats are told the same, in small letters, and not what only this provider can do.
    let told: Vec<Value> = tools.list()[2..3].iter().map(|tool| parsed(&tool.told(Wire::Anthropic))).collect();
    assert_eq!(told[0]["input_schema"]["properties"]["n"]["type"], json!(["integer", "null"]));
    assert!(!tools.list()[3].is_taken_by(Wire::OpenaiChat) && tools.list()[3].is_taken_by(Wire::Gemini));
    let decoded = gemini::decode(&text).unwrap();
    assert_eq!(ResponseFormat::parse(decoded.format.as_deref().unwrap()).unwrap(), format);
    assert_eq!((decoded.tools.len(), &decoded.extra["generationConfig"]), (4, &json!({"temperature": 0.5})));
}

fn reply(body: Value) -> recto::wire::Reply {
    gemini::decode_reply(&body.to_string()).unwrap()
}

#[test]
fn a_reply_is_read_with_its_end_and_what_it_cost() {
    let candidate = |parts: Value, finish: &str| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}],
            "modelVersion": "models/gemini-2.5-flash", "responseId": "r1", "usageMetadata": {"promptTokenCount": 10_000,
            "cachedContentTokenCount": 8_000, "candidatesTokenCount": 100, "thoughtsTokenCount": 900}})
    };
    let whole = reply(candidate(json!([{"text": "So."}]), "STOP"));
    assert_eq!((whole.id.as_deref(), whole.model.as_deref()), (Some("r1"), Some("gemini-2.5-flash")));
    let usage = whole.usage.unwrap();
    assert_eq!((usage.input, usage.cached, usage.output), (Tokens(10_000), Tokens(8_000), Tokens(1_000)));
    let usd = Target::named("gemini-2.5-flash").unwrap().prices.usd(&usage);
    assert!((usd - 0.00334).abs() < 1e-9, "{usd}");
    let call = json!([{"functionCall": {"name": "look", "args": {"a": 1}}}]);
    for (parts, finish, stop, status) in [
        (call.clone(), "STOP", Some(Stop::Calls), Status::Sent),
        (json!([{"text": "So"}]), "MAX_TOKENS", Some(Stop::Length), Status::Sent),
        (json!([]), "SAFETY", Some(Stop::Refused), Status::Sent),
        (json!([]), "CONTINUATION", Some(Stop::Paused), Status::Sent),
        (json!([]), "MALFORMED_FUNCTION_CALL", None, Status::Error),
    ] {
        let read = reply(candidate(parts, finish));
        assert_eq!((read.stop, read.entry.status), (stop, status), "{finish}");
    }
    let blocked = reply(json!({"promptFeedback": {"blockReason": "SAFETY"}}));
    assert_eq!((blocked.stop, blocked.entry.parts.len()), (Some(Stop::Refused), 0));
    for (body, words) in [
        ("{}", "no \"candidates\" in it"),
        (
            r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}"#,
            "RESOURCE_EXHAUSTED: slow down",
        ),
        (r#"{"candidates":[{"content":{"role":"user","parts":[]}}]}"#, "the reply is not the model's"),
        (r#"{"candidates":7}"#, "candidates: invalid type"),
    ] {
        let error = gemini::decode_reply(body).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_streamed_reply_is_the_whole_one_and_keeps_its_signature() {
    let body = json!({"contents": [{"parts": [{"text": "Look."}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": true}}});
    let script = || fake::Reply::default().thinking("let me see about that").text("words that come in pieces");
    for reply in [script(), script().call("look", "{\"at\":1}")] {
        let asked = |streams: bool| {
            let mut provider = Provider::new(Settings::default());
            provider.push(reply.clone());
            provider.answer(&Incoming::post(&Api::Gemini.path(MODEL, streams), &body)).text()
        };
        let whole = gemini::decode_reply(&asked(false)).unwrap();
        let mut stream = Wire::Gemini.stream();
        let text = asked(true);
        let all = events(Wire::Gemini, text.as_bytes().chunks(7));
        assert!(all.len() > 4, "in pieces");
        all.iter().for_each(|event| stream.event(event).unwrap());
        let streamed = stream.finish().unwrap();
        assert_eq!(said(std::slice::from_ref(&streamed.entry)), said(std::slice::from_ref(&whole.entry)));
        assert_eq!((streamed.stop, streamed.usage, &streamed.model), (whole.stop, whole.usage, &whole.model));
        let sealed = |entry: &Entry| -> Vec<String> {
            entry
                .parts
                .iter()
                .filter_map(|part| match part {
                    Part::Reasoning(it) => it.signature.as_ref().or(it.encrypted.as_ref()).map(|it| it.to_string()),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(sealed(&streamed.entry), sealed(&whole.entry));
        assert_eq!(sealed(&whole.entry).len(), 1);
        // Cut off, what came is kept, and said to be broken.
        let mut cut = Wire::Gemini.stream();
        all[..3].iter().for_each(|event| cut.event(event).unwrap());
        assert_eq!(cut.finish().unwrap().entry.status, Status::Error);
    }
    assert!(Wire::Gemini.stream().finish().is_err());
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (body, words) in [
        ("", "line 1, column 1: EOF"),
        ("{\"contents\":\n 7}", "line 2, column 2: contents: invalid type"),
        (
            "{\"contents\":[\n{\"role\":\"system\",\"parts\":[]}]}",
            "line 2, column 9: contents[0]: unknown role \"system\"",
        ),
        (
            "{\"contents\":[{\"parts\":[{\"text\":\"a\",\"inlineData\":{}}]}]}",
            "contents[0].parts[0] sets more than one of",
        ),
        (
            "{\"contents\":[{\"parts\":[{\"inlineData\":{\"data\":\"\"}}]}]}",
            "contents[0].parts[0].inlineData has no \"mimeType\"",
        ),
        (
            "{\"contents\":[{\"parts\":[{\"functionResponse\":{\"name\":\"a\",\"response\":[]}}]}]}",
            "response is no object",
        ),
        ("{\"systemInstruction\":{\"parts\":[{\"inlineData\":{}}]}}", "systemInstruction.parts[0] has no \"text\""),
    ] {
        let error = gemini::decode(body).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// Turns told by letters: `u` and `m` speak, `C` calls, `R` answers, in one turn as `+`.
fn turns(told: &str) -> Value {
    let part = |letter: char| match letter {
        'C' => json!({"functionCall": {"name": "f", "args": {}}}),
        'R' => json!({"functionResponse": {"name": "f", "response": {}}}),
        'e' => json!({"text": ""}),
        _ => json!({"text": "x"}),
    };
    let content = |word: &str| {
        let role = if word.starts_with('m') { "model" } else { "user" };
        json!({"role": role, "parts": word[1..].chars().map(part).collect::<Vec<_>>()})
    };
    json!({"contents": told.split(' ').map(content).collect::<Vec<_>>()})
}

#[test]
fn what_breaks_a_rule_is_found_and_refused() {
    for (told, rule, is_found) in [
        ("ux mx ux", None, false),
        ("ux mxC uR", None, false),
        ("ux mCC uRRx", None, false),
        ("mC uR", Some("G1"), true),
        ("ux mC ux", Some("G2"), true),
        ("ux mC uxR", Some("G2"), true),
        ("ux mCC uR", Some("G2"), true),
        ("ux mx uR", Some("G3"), true),
        ("ux mC", Some("G4"), true),
        // Nobody is sure about these two, so that a client is not told of them; we don't send them.
        ("ux mx", Some("G4"), false),
        ("ux ux", Some("order"), false),
        ("u", Some("G5"), true),
        ("ue", Some("G5"), true),
    ] {
        let body = turns(told).to_string();
        assert_eq!(fake::check(Api::Gemini, body.as_bytes()).err().map(|it| it.rule), rule, "{told}");
        assert_eq!(!gemini::validate(body.as_bytes()).is_empty(), is_found, "{told}");
    }
    let with = |name: &str, value: Value| {
        let mut body = turns("ux");
        body[name] = value;
        let is_refused = fake::check(Api::Gemini, body.to_string().as_bytes()).is_err();
        assert_eq!(!gemini::validate(body.to_string().as_bytes()).is_empty(), is_refused, "{body}");
        is_refused
    };
    assert!(!with("cachedContent", json!("cachedContents/a")));
    assert!(with("stream", json!(true)) && with("toolConfig", json!({})));
    assert!(with("tools", json!([{"functionDeclarations": [{"name": "1st"}]}])));
    assert!(with("tools", json!([{"functionDeclarations": [{"name": "a"}, {"name": "a"}]}])));
    assert!(with("generationConfig", json!({"responseJsonSchema": {}})));
    assert!(with("generationConfig", json!({"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}})));
    assert!(with("systemInstruction", json!({"parts": []})));
    let mut held = turns("ux");
    (held["cachedContent"], held["systemInstruction"]) = (json!("cachedContents/a"), json!({"parts": [{"text": "x"}]}));
    assert_eq!(fake::check(Api::Gemini, held.to_string().as_bytes()).unwrap_err().rule, "G6");
    assert_eq!(gemini::validate(held.to_string().as_bytes()).len(), 1);
}

#[test]
fn signatures_that_are_missing_or_not_its_own_are_refused() {
    let mut provider = Provider::new(Settings::default());
    let mut ask = |body: &Value, model: &str| {
        provider.push(fake::Reply::default().call("f", "{}"));
        let answer = provider.answer(&Incoming::post(&Api::Gemini.path(model, false), body));
        (answer.status, answer.json(), provider.log().last().unwrap().refusal.clone().map(|it| it.rule))
    };
    let mut body = turns("ux mC uR");
    assert_eq!(ask(&body, MODEL).2, Some("G7"));
    assert_eq!(ask(&body, "gemini-2.5-pro").0, 200);
    let mut named = body.clone();
    named["model"] = json!(format!("models/{MODEL}"));
    assert_eq!(gemini::validate(named.to_string().as_bytes()).len(), 1);
    body["contents"][1]["parts"][0]["thoughtSignature"] = json!("bm90IG91cnM=");
    assert_eq!(ask(&body, MODEL).2, Some("G8"));
    body["contents"][1]["parts"][0]["thoughtSignature"] = json!(UNSIGNED);
    let (status, answer, _) = ask(&body, MODEL);
    assert_eq!(status, 200);
    let content = answer["candidates"][0]["content"].clone();
    let id = content["parts"][0]["functionCall"]["id"].clone();
    body["contents"].as_array_mut().unwrap().extend([
        content,
        json!({"role": "user", "parts": [{"functionResponse": {"id": id, "name": "f", "response": {}}}]}),
    ]);
    assert_eq!(ask(&body, MODEL).0, 200);
    assert_eq!(ask(&body, "gemini-4-argon").2, Some("G8"));
}

#[test]
fn arguments_are_objects_whatever_they_were() {
    let given = ["", "not JSON", "[1]", "{\"a\":1e999}", "{ \"a\" : 1.0 }"];
    let calls = given.iter().enumerate().map(|(at, text)| Call {
        arguments: Arguments::String((*text).into()),
        ..Call::new(format!("c{at}"), "f", "")
    });
    let body = parsed(&written([Entry::user("x"), Entry::step("", calls)], MODEL));
    let parts = body["contents"][1]["parts"].as_array().unwrap();
    assert!(parts.iter().all(|part| part["functionCall"]["args"].is_object()), "{body}");
    assert_eq!(parts[4]["functionCall"]["args"], json!({"a": 1.0}));
}
