//! The fake on its port, read by a client that knows nothing but the wire.

use super::{path, with};
use recto_testkit::fake::{Api, Gate, Reply, Server, Settings};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

struct Client(BufReader<TcpStream>);

struct Got {
    status: u16,
    headers: String,
    body: String,
    broke: bool,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

impl Client {
    fn of(server: &Server) -> Client {
        Client(BufReader::new(TcpStream::connect(server.address()).unwrap()))
    }

    fn send(&mut self, method: &str, path: &str, body: &str) {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: fake\r\nanthropic-version: 2023-06-01\r\n");
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn head(&mut self) -> Got {
        let status = self.line().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = String::new();
        loop {
            match self.line() {
                line if line.is_empty() => return Got { status, headers, body: String::new(), broke: false },
                line => headers += &format!("{line}\n"),
            }
        }
    }

    /// Reads one chunk; nothing at the end, or where the connection breaks off.
    fn chunk(&mut self) -> Option<String> {
        let size = usize::from_str_radix(&self.line(), 16).ok()?;
        let mut bytes = vec![0; size + 2];
        self.0.read_exact(&mut bytes).ok()?;
        bytes.truncate(size);
        Some(String::from_utf8(bytes).unwrap())
    }

    fn receive(&mut self) -> Got {
        let mut got = self.head();
        if got.headers.contains("transfer-encoding: chunked") {
            loop {
                match self.chunk() {
                    Some(chunk) if chunk.is_empty() => return got,
                    Some(chunk) => got.body += &chunk,
                    None => return Got { broke: true, ..got },
                }
            }
        }
        let length = got.headers.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut bytes = Vec::new();
        let length: u64 = length.parse().unwrap();
        self.0.by_ref().take(length).read_to_end(&mut bytes).unwrap();
        got.broke = bytes.len() as u64 != length;
        got.body = String::from_utf8(bytes).unwrap();
        got
    }

    fn post(&mut self, api: Api, body: &Value) -> Got {
        self.send("POST", path(api), &body.to_string());
        self.receive()
    }
}

fn body(api: Api) -> Value {
    match api {
        Api::Chat => json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}]}),
        Api::Responses => json!({"model": "gpt-5.5", "input": "x", "reasoning": {"summary": "auto"}, "store": false,
            "include": ["reasoning.encrypted_content"]}),
        Api::Messages => json!({"model": "claude-opus-5-5", "max_tokens": 100,
            "thinking": {"type": "adaptive", "display": "summarized"}, "messages": [{"role": "user", "content": "x"}]}),
        Api::Gemini | Api::Ollama => unreachable!("their streams are put together by the tests of the wires"),
    }
}

fn streamed(api: Api) -> Value {
    let body = with(&body(api), &[("/stream", json!(true))]);
    if api == Api::Chat { with(&body, &[("/stream_options", json!({"include_usage": true}))]) } else { body }
}

const APIS: [Api; 3] = [Api::Chat, Api::Responses, Api::Messages];

fn reply() -> Reply {
    Reply::default()
        .thinking("Let me look — é.")
        .text("Reading both files now.")
        .call("f", r#"{"path":"é.txt"}"#)
        .call("g", "{}")
}

/// Puts a stream together again, as its provider documents it.
fn joined(api: Api, events: &[Value]) -> Value {
    match api {
        Api::Chat => joined_chat(events),
        Api::Responses => {
            let done = |event: &&Value| event["type"] == "response.output_item.done";
            events.iter().filter(done).map(|event| event["item"].clone()).collect()
        }
        Api::Messages => joined_messages(events),
        Api::Gemini | Api::Ollama => unreachable!("their streams are put together by the tests of the wires"),
    }
}

fn joined_chat(events: &[Value]) -> Value {
    let mut content = String::new();
    let mut calls: Vec<Value> = Vec::new();
    for event in events {
        let delta = &event["choices"][0]["delta"];
        content += delta["content"].as_str().unwrap_or_default();
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = part["index"].as_u64().unwrap() as usize;
            let arguments = part["function"]["arguments"].as_str().unwrap();
            if index == calls.len() {
                calls.push(with(part, &[("/index", Value::Null)]));
            } else {
                assert_eq!(part.get("id"), None);
                let before = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
                calls[index]["function"]["arguments"] = json!(before + arguments);
            }
        }
    }
    json!({"role": "assistant", "content": content, "refusal": null, "annotations": [], "tool_calls": calls})
}

fn joined_messages(events: &[Value]) -> Value {
    let mut blocks: Vec<Value> = Vec::new();
    let mut partial = String::new();
    for event in events {
        let delta = &event["delta"];
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "content_block_start" => blocks.push(event["content_block"].clone()),
            "content_block_delta" => {
                partial += text("partial_json");
                let block = blocks.last_mut().unwrap();
                for key in ["text", "thinking", "signature"] {
                    if delta[key].is_string() {
                        block[key] = json!(format!("{}{}", block[key].as_str().unwrap(), text(key)));
                    }
                }
            }
            "content_block_stop" if !partial.is_empty() => {
                blocks.last_mut().unwrap()["input"] = serde_json::from_str(&partial).unwrap();
                partial.clear();
            }
            _ => {}
        }
    }
    Value::Array(blocks)
}

#[test]
fn a_stream_says_what_the_whole_answer_says() {
    for api in APIS {
        // Two servers that were asked the same make the same ids.
        let [whole, parts] = [Server::start(), Server::start()];
        whole.push(reply());
        parts.push(reply());
        let whole = Client::of(&whole).post(api, &body(api)).json();
        let got = Client::of(&parts).post(api, &streamed(api));
        assert!(got.headers.contains("text/event-stream") && !got.broke);
        let events = got.events();
        let (said, usage) = match api {
            Api::Chat => (&whole["choices"][0]["message"], &events[events.len() - 1]["usage"]),
            Api::Responses => (&whole["output"], &events[events.len() - 1]["response"]["usage"]),
            Api::Messages => (&whole["content"], &events[events.len() - 2]["usage"]),
            Api::Gemini | Api::Ollama => unreachable!("their streams are put together by the tests of the wires"),
        };
        assert_eq!(&joined(api, &events), said, "{api:?}");
        assert_eq!(usage, &whole["usage"], "{api:?}");
    }
}

#[test]
fn streams_have_their_frame() {
    let server = Server::start();
    let mut client = Client::of(&server);
    let mut kinds = |api: Api, key: &str| {
        server.push(Reply::default().text("short"));
        let events = client.post(api, &streamed(api)).events();
        events.iter().map(|event| event[key].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(Api::Messages, "type"),
        [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    assert_eq!(
        kinds(Api::Responses, "type"),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    assert_eq!(kinds(Api::Chat, "object"), ["chat.completion.chunk"; 4]);
    assert!(server.log()[2].answer.ends_with("data: [DONE]\n\n"));
}

#[test]
fn encrypted_content_is_whole_only_in_the_finished_item() {
    let server = Server::start();
    server.push(reply());
    let events = Client::of(&server).post(Api::Responses, &streamed(Api::Responses)).events();
    let item = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap()["item"].clone();
    let [added, done] = ["response.output_item.added", "response.output_item.done"].map(item);
    assert_eq!(added["id"], done["id"]);
    assert_ne!(added["encrypted_content"], done["encrypted_content"]);
}

#[test]
fn stop_reasons_and_refusals_are_told() {
    let server = Server::start();
    let mut client = Client::of(&server);
    let mut answer = |api: Api, reply: Reply| {
        server.push(reply);
        client.post(api, &body(api)).json()
    };
    let cut = |word: &str| Reply::default().text("x").stopped(word);
    assert_eq!(answer(Api::Chat, cut("length"))["choices"][0]["finish_reason"], "length");
    assert_eq!(answer(Api::Messages, cut("max_tokens"))["stop_reason"], "max_tokens");
    let incomplete = answer(Api::Responses, cut("max_output_tokens"));
    assert_eq!(incomplete["status"], "incomplete");
    assert_eq!(incomplete["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(answer(Api::Chat, reply())["choices"][0]["finish_reason"], "tool_calls");
    let no = || Reply::default().refusal("no");
    assert_eq!(answer(Api::Chat, no())["choices"][0]["message"]["refusal"], "no");
    assert_eq!(answer(Api::Responses, no())["output"][0]["content"][0], json!({"type": "refusal", "refusal": "no"}));
    assert_eq!(answer(Api::Messages, no())["stop_reason"], "refusal");
}

#[test]
fn an_empty_script_echoes_and_everything_is_logged() {
    let server = Server::start();
    let mut client = Client::of(&server);
    assert_eq!(
        client.post(Api::Chat, &body(Api::Chat)).json()["choices"][0]["message"]["content"],
        "1 messages, 0 tools"
    );
    let refused = client.post(Api::Chat, &json!({"model": "gpt-4o", "messages": []}));
    assert_eq!(refused.status, 400);
    let log = server.wait_for(2);
    assert_eq!(log[0].request.json(), body(Api::Chat));
    assert_eq!(log[0].request.header("host"), Some("fake"));
    assert_eq!(log[0].usage["prompt_tokens"], 1);
    assert_eq!(log[1].refusal.as_ref().unwrap().rule, "C1");
    assert_eq!(log[1].answer, refused.body);
}

#[test]
fn scripted_errors_wait_until_a_request_is_good() {
    let server = Server::start();
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    server.push(Reply::error(529, overloaded.clone()).header("retry-after", "3"));
    let mut client = Client::of(&server);
    assert_eq!(client.post(Api::Messages, &json!({})).status, 400);
    let got = client.post(Api::Messages, &streamed(Api::Messages));
    assert_eq!((got.status, got.json()), (529, overloaded));
    assert!(got.headers.contains("retry-after: 3"));
}

#[test]
fn streams_break_off_and_garble_where_told() {
    let server = Server::start();
    for api in APIS {
        server.push(Reply::default().text("some more words to say").broken_after(3));
        let got = Client::of(&server).post(api, &streamed(api));
        assert_eq!((got.broke, got.events().len()), (true, 3), "{api:?}");
        server.push(Reply::default().text("x").broken_after(0));
        assert!(Client::of(&server).post(api, &body(api)).broke);
        server.push(Reply::default().text("some more words").garbled_after(2));
        let got = Client::of(&server).post(api, &streamed(api));
        let good = |line: &str| line == "[DONE]" || serde_json::from_str::<Value>(line).is_ok();
        let lines: Vec<&str> = got.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(lines.iter().position(|line| !good(line)), Some(2), "{api:?}");
        assert_eq!(lines.iter().filter(|line| !good(line)).count(), 1);
    }
}

#[test]
fn an_answer_waits_at_its_gates() {
    let server = Server::start();
    let [before, between] = [Gate::default(), Gate::default()];
    server.push(Reply::default().text("x").waiting_after(0, &before).waiting_after(1, &between));
    let mut client = Client::of(&server);
    client.send("POST", path(Api::Messages), &streamed(Api::Messages).to_string());
    before.reached();
    assert_eq!(server.wait_for(1).len(), 1);
    before.open();
    assert_eq!(client.head().status, 200);
    assert!(client.chunk().unwrap().starts_with("event: message_start"));
    between.reached();
    between.open();
    assert!(client.chunk().unwrap().starts_with("event: ping"));
}

#[test]
fn dropping_the_server_ends_what_waits() {
    let server = Server::start();
    let gate = Gate::default();
    server.push(Reply::default().text("x").waiting_after(1, &gate));
    let mut waiting = Client::of(&server);
    let mut idle = Client::of(&server);
    waiting.send("POST", path(Api::Chat), &streamed(Api::Chat).to_string());
    gate.reached();
    drop(server);
    assert_eq!(idle.line(), "");
}

#[test]
fn tokens_are_counted_and_models_listed() {
    let server = Server::start();
    let mut client = Client::of(&server);
    let mut post = |path: &str, body: Value| {
        client.send("POST", path, &body.to_string());
        client.receive()
    };
    let asked = with(&body(Api::Messages), &[("/max_tokens", Value::Null)]);
    assert_eq!(post("/v1/messages/count_tokens?beta=true", asked).json(), json!({"input_tokens": 1}));
    assert_eq!(post("/v1/messages/count_tokens", body(Api::Messages)).status, 400);
    let counted = json!({"object": "response.input_tokens", "input_tokens": 2});
    assert_eq!(post("/v1/responses/input_tokens", json!({"model": "gpt-5.5", "input": "eight..."})).json(), counted);
    assert_eq!(post("/v1/other", json!({})).status, 404);
    client.send("GET", "/v1/models", "");
    assert!(client.receive().json()["data"].as_array().unwrap().iter().any(|model| model["id"] == "claude-opus-5-5"));
}

#[test]
fn keys_headers_and_sizes_are_checked() {
    let server = Server::with(Settings { api_key: Some("secret".to_owned()), ..Settings::default() });
    let mut client = Client::of(&server);
    assert_eq!(client.post(Api::Messages, &body(Api::Messages)).json()["error"]["type"], "authentication_error");
    let mut raw = |head: &str, body: &str| {
        client.0.get_mut().write_all(format!("POST {head}\r\n\r\n{body}").as_bytes()).unwrap();
        client.receive()
    };
    let chunked = |text: &str| format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
    let chat = "/v1/chat/completions HTTP/1.1\r\nauthorization: Bearer secret\r\ntransfer-encoding: chunked";
    assert_eq!(raw(chat, &chunked(&body(Api::Chat).to_string())).status, 200);
    let versionless = "/v1/messages HTTP/1.1\r\nx-api-key: secret\r\ncontent-length: 2";
    let message = raw(versionless, "{}").json()["error"]["message"].clone();
    assert_eq!(message, "anthropic-version: header is required");
    let large = raw("/v1/messages HTTP/1.1\r\ncontent-length: 33554433", "");
    assert_eq!((large.status, &large.json()["error"]["type"]), (413, &json!("request_too_large")));
}
