//! Ollama's own format: what is written, what is read, what is refused; nothing is truncated without a word.

use crate::chain::events;
use expect_test::expect;
use recto::entry::{Call, Media, Part, Reasoning, Role, Status, ToolResult};
use recto::format::ResponseFormat;
use recto::page::Page;
use recto::tool::Tools;
use recto::wire::{Stop, ollama};
use recto::{Entry, Log, Policy, Reader, Request, Target, Tokenizer, Tokens, Wire, compile_once};
use recto_testkit::fake::{self, Api, Incoming, Provider, Settings};
use recto_testkit::mixed::at_home;
use serde_json::{Map, Value, json};

fn page(entries: impl IntoIterator<Item = Entry>, target: &Target) -> Page {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    let (reader, policy) = (Reader::new("main"), Policy::none());
    compile_once(&Request::new(&log, &reader, &policy, target)).unwrap().page
}

fn written(entries: impl IntoIterator<Item = Entry>) -> String {
    let target = at_home("qwen3");
    String::from_utf8(ollama::encode(&page(entries, &target), &target)).unwrap()
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).unwrap()
}

#[test]
fn a_page_is_written_as_messages_of_strings() {
    let media = |url: &str| Media { url: url.into(), name: None, detail: None };
    let shown = [
        Part::text("see"),
        Part::Image(media("data:image/png;base64,iVBORw0KGgo=")),
        Part::Image(media("https://example.org/a.png")),
        Part::Document(media("data:application/pdf;base64,AAAA")),
        Part::text("there"),
    ];
    let thought = Part::Reasoning(Reasoning { text: "hm".into(), ..Reasoning::default() });
    let calls = [Call::new("a", "look up", "{\"at\": 1}"), Call::new("read", "read", "not JSON")];
    let step: Vec<Part> = [thought, Part::text("I look.")].into_iter().chain(calls.map(Part::Call)).collect();
    let failed = ToolResult { is_error: true, ..ToolResult::text("a", "gone") };
    let body = written([
        Entry::system("Be brief."),
        Entry::new(Role::User, shown),
        Entry::new(Role::Assistant, step),
        Entry::result("read", "r"),
        Entry::new(Role::Tool, [Part::Result(failed)]),
        Entry::system("Hurry."),
        Entry::user(""),
    ]);
    assert_eq!(ollama::validate(body.as_bytes()), []);
    fake::check(Api::Ollama, body.as_bytes()).unwrap();
    let again = written(ollama::decode(&body).unwrap().entries);
    assert_eq!(again, body);
    let value = parsed(&body);
    let lines: Vec<String> = value["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    expect![[r#"
        {"content":"Be brief.","role":"system"}
        {"content":"see\n\n[image that can't be shown: https://example.org/a.png]\n\n[document that can't be shown: application/pdf]\n\nthere","images":["iVBORw0KGgo="],"role":"user"}
        {"content":"I look.","role":"assistant","thinking":"hm","tool_calls":[{"function":{"arguments":{"at":1},"index":0,"name":"lookup_60450a90220a"},"id":"a"},{"function":{"arguments":{"arguments":"not JSON"},"index":1,"name":"read"}}]}
        {"content":"Error: gone","role":"tool","tool_call_id":"a","tool_name":"lookup_60450a90220a"}
        {"content":"r","role":"tool","tool_name":"read"}
        {"content":"Hurry.","role":"system"}"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn the_window_is_told_and_nothing_is_truncated_in_silence() {
    let target = at_home("qwen3");
    let page = page([Entry::user("Hi")], &target);
    let told = |fields: Value| {
        let fields: Map<String, Value> = fields.as_object().unwrap().clone();
        parsed(std::str::from_utf8(&ollama::encode_with(&page, &target, &fields)).unwrap())
    };
    let body = told(json!({}));
    assert_eq!(body["options"], json!({"num_ctx": 65_536, "num_predict": 16_384}));
    assert_eq!((&body["truncate"], body.get("stream")), (&json!(false), None));
    // What the host says counts.
    let body = told(json!({"options": {"num_ctx": 9, "top_k": 1}, "truncate": true, "stream": false, "think": "low"}));
    assert_eq!(body["options"], json!({"num_ctx": 9, "num_predict": 16_384, "top_k": 1}));
    assert_eq!((&body["truncate"], &body["think"]), (&json!(true), &json!("low")));
    // The control: a server that was told nothing drops the oldest without a word, and parts a call from its result.
    let long = "a line that takes some room\n".repeat(40);
    let mut messages = vec![json!({"role": "system", "content": "s"})];
    messages.extend((0..4).map(|_| json!({"role": "user", "content": long})));
    let ask = |truncate: Option<bool>| {
        let mut provider = Provider::new(Settings::default());
        let mut body = json!({"model": "m", "messages": messages, "stream": false, "options": {"num_ctx": 600}});
        truncate.into_iter().for_each(|it| body["truncate"] = json!(it));
        let answer = provider.answer(&Incoming::post("/api/chat", &body));
        (answer.status, provider.log()[0].dropped, answer.json())
    };
    let (status, dropped, answer) = ask(None);
    assert_eq!((status, dropped), (200, 2));
    assert!(answer["prompt_eval_count"].as_u64().unwrap() <= 600);
    let (status, dropped, answer) = ask(Some(false));
    assert_eq!((status, dropped), (400, 0));
    assert!(answer["error"].as_str().unwrap().contains("exceeds the context length of 600"));
}

#[test]
fn tools_and_the_form_of_the_answer_are_told_in_its_words() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    let tools = Tools::counted([format!(r#"{{"name":"two","input_schema":{schema}}}"#).into()], &Tokenizer::Chars4);
    let target = at_home("qwen3");
    let mut log = Log::counted_by(Tokenizer::Chars4);
    log.append(Entry::user("Hi")).unwrap();
    let (reader, policy) = (Reader::new("main"), Policy::none());
    for (format, expected) in
        [(ResponseFormat::parse(schema).unwrap(), parsed(schema)), (Some(ResponseFormat::Json), json!("json"))]
    {
        let request =
            Request { tools: Some(&tools), format: format.as_ref(), ..Request::new(&log, &reader, &policy, &target) };
        let body = ollama::encode(&compile_once(&request).unwrap().page, &target);
        assert_eq!(ollama::validate(&body), []);
        let text = String::from_utf8(body).unwrap();
        let body = parsed(&text);
        assert_eq!(body["format"], expected);
        let function = json!({"name": "two", "parameters": parsed(schema)});
        assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
        let decoded = ollama::decode(&text).unwrap();
        assert_eq!(ResponseFormat::parse(decoded.format.as_deref().unwrap()).unwrap(), format);
    }
}

#[test]
fn results_find_their_calls_by_id_by_name_or_by_order() {
    let call = |id: Option<&str>, name: &str| {
        let mut call = json!({"function": {"name": name, "arguments": {}}});
        id.into_iter().for_each(|id| call["id"] = json!(id));
        call
    };
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "tool_calls": [call(None, "look"), call(Some("x"), "look"), call(None, "read")]},
        {"role": "tool", "tool_call_id": "x", "content": "1"},
        {"role": "tool", "tool_name": "read", "content": "2"},
        {"role": "tool", "content": "3"},
        {"role": "user", "content": "And?"}]});
    let text = body.to_string();
    let answered = |entries: &[Entry]| -> Vec<String> {
        entries
            .iter()
            .filter_map(|entry| match entry.parts.first() {
                Some(Part::Result(result)) => Some(result.call.to_string()),
                _ => None,
            })
            .collect()
    };
    assert_eq!(answered(&ollama::decode(&text).unwrap().entries), ["x", "read", "look"]);
    // Wherever a client's body is taken up, they are the same.
    for at in 0..=6 {
        let rest = Wire::Ollama.outline(&text).unwrap().read_from(at).unwrap();
        assert_eq!(answered(&rest.entries), ["x", "read", "look"][at.saturating_sub(2).min(3)..], "from {at}");
    }
}

#[test]
fn a_reply_is_read_whole_and_in_lines() {
    let target = at_home("qwen3");
    let body = parsed(&written([Entry::user("Look.")]));
    let asked = |streams: bool| {
        let mut provider = Provider::new(Settings::default());
        provider.push(fake::Reply::default().thinking("let me see").text("words in pieces").call("look", "{\"at\":1}"));
        let mut body = body.clone();
        Api::Ollama.ask_for(&mut body, streams);
        provider.answer(&Incoming::post("/api/chat", &body)).text()
    };
    let whole = ollama::decode_reply(&asked(false)).unwrap();
    assert_eq!(
        (whole.stop, whole.model.as_deref(), whole.id.as_deref()),
        (Some(Stop::Calls), Some(&*target.name), None)
    );
    let usage = whole.usage.unwrap();
    assert!(usage.input > Tokens(0) && usage.output > Tokens(0) && usage.cached == Tokens(0));
    assert!(matches!(&whole.entry.parts[0], Part::Reasoning(it) if &*it.text == "let me see"));
    let text = asked(true);
    let lines = events(Wire::Ollama, text.as_bytes().chunks(5));
    assert!(lines.len() > 4, "in pieces");
    let mut stream = Wire::Ollama.stream();
    lines.iter().for_each(|line| stream.event(line).unwrap());
    assert_eq!(stream.finish().unwrap(), whole);
    let mut cut = Wire::Ollama.stream();
    lines[..2].iter().for_each(|line| cut.event(line).unwrap());
    assert_eq!(cut.finish().unwrap().entry.status, Status::Error);
    let mut failed = Wire::Ollama.stream();
    failed.event(&lines[0]).unwrap();
    failed.event(r#"{"error":"out of memory"}"#).unwrap();
    let entry = failed.finish().unwrap().entry;
    assert_eq!((entry.status, &entry.meta["error"]), (Status::Error, &json!("out of memory")));
    assert!(Wire::Ollama.stream().finish().is_err());
    let cut = asked(false).replace("\"stop\"", "\"length\"");
    assert_eq!(ollama::decode_reply(&cut).unwrap().stop, Some(Stop::Length));
    let error = ollama::decode_reply(r#"{"error":"model 'x' not found"}"#).unwrap_err().to_string();
    assert!(error.contains("model 'x' not found"), "{error}");
}

#[test]
fn what_the_server_does_not_take_is_found_and_refused() {
    let message = |more: Value| {
        let mut message = json!({"role": "user", "content": "x"});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"model": "m", "messages": [message]})
    };
    let with = |name: &str, value: Value| {
        let mut body = message(json!({}));
        body[name] = value;
        body
    };
    let good = [
        message(json!({})),
        message(json!({"x_own": 1, "images": ["AAAA"]})),
        with("format", json!("json")),
        with("think", json!("high")),
        with("options", json!({"num_ctx": 9, "own": "x"})),
    ];
    let bad = [
        with("model", json!("")),
        message(json!({"role": "developer"})),
        message(json!({"content": [{"type": "text", "text": "x"}]})),
        message(json!({"images": ["data:image/png;base64,AAAA"]})),
        message(json!({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]})),
        message(json!({"tool_calls": [{"function": {"arguments": {}}}]})),
        with("tools", json!([{"function": {}}])),
        with("format", json!(7)),
        with("think", json!("hard")),
        with("options", json!({"num_ctx": "9"})),
        with("truncate", json!("no")),
        json!([]),
    ];
    for (bodies, is_good) in [(&good[..], true), (&bad[..], false)] {
        for body in bodies {
            let body = body.to_string();
            assert_eq!(ollama::validate(body.as_bytes()).is_empty(), is_good, "{body}");
            assert_eq!(fake::check(Api::Ollama, body.as_bytes()).is_ok(), is_good, "{body}");
        }
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (body, words) in [
        ("", "line 1, column 1: EOF"),
        ("{\"messages\":\n 7}", "line 2, column 2: messages: invalid type"),
        ("{\"messages\":[\n{\"role\":\"bot\"}]}", "line 2, column 9: messages[0]: unknown role \"bot\""),
        ("{\"messages\":[{\"content\":\"x\"}]}", "messages[0] has no role"),
        ("{\"messages\":[{\"role\":\"user\",\"content\":[]}]}", "messages[0].content: invalid type"),
        ("{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{}]}]}", "tool_calls[0] has no \"function\""),
    ] {
        let error = ollama::decode(body).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
