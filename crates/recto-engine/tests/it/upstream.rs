//! Providers over HTTP: what is heard, what is sent again, what is refused, and that keys stay where they belong.

use crate::engine::block_on;
use recto::entry::{Entry, Status, Text};
use recto::wire::Wire;
use recto::{Log, Policy, Reader, Request, Target, Tokenizer, compile_once};
use recto_engine::Error;
use recto_engine::drive::Heard;
use recto_engine::upstream::{Answered, Limits, Post, Remember, Repeat, Settings, Upstream};
use recto_testkit::fake::{Gate, Reply, Server, Settings as Rules};
use recto_testkit::mixed::at_home;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A variable that every test has, with a value that nothing else says.
const VARIABLE: &str = "CARGO_MANIFEST_DIR";
const LIMIT: Duration = Duration::from_millis(80);

fn settings(url: &str, wire: Wire) -> Settings {
    Settings::new("fake", url, wire)
}

fn upstream(url: &str, wire: Wire) -> Upstream {
    Upstream::of(settings(url, wire)).unwrap()
}

fn target(wire: Wire) -> Target {
    match wire {
        Wire::Anthropic => Target::named("claude-opus-4-6").expect("built in"),
        Wire::Gemini => Target::named("gemini-3.8-flash").expect("built in"),
        Wire::Ollama => at_home("qwen3"),
        _ => Target { wire, ..Target::named("gpt-4o").expect("built in") },
    }
}

/// The body of a page that says this.
fn body(upstream: &Upstream, text: &str, more: &[(&str, Value)]) -> Vec<u8> {
    let (target, policy, reader) = (target(upstream.wire()), Policy::none(), Reader::new("main"));
    let mut log = Log::counted_by(Tokenizer::Chars4);
    log.append(Entry::user(text)).unwrap();
    let compiled = compile_once(&Request::new(&log, &reader, &policy, &target)).unwrap();
    let mut fields: Map<String, Value> = upstream.streaming();
    fields.extend(more.iter().map(|(name, value)| ((*name).to_string(), value.clone())));
    upstream.wire().encode_with(&compiled.page, &target, &fields)
}

/// Asks, and returns what came of it and what was heard.
fn ask_with(upstream: &Upstream, repeat: Repeat) -> (Result<Answered, Error>, Vec<Heard>) {
    let mut heard = Vec::new();
    let name = target(upstream.wire()).name;
    let post = Post::new(body(upstream, "Hello?", &[]), repeat).to(&name);
    let answered = block_on(upstream.ask(post, &mut |it| heard.push(it)));
    (answered, heard)
}

fn ask(upstream: &Upstream) -> (Result<Answered, Error>, Vec<Heard>) {
    ask_with(upstream, Repeat::WhenUnanswered)
}

#[track_caller]
fn whole(answered: Result<Answered, Error>) -> recto::wire::Reply {
    match answered.unwrap() {
        Answered::Whole(reply) => reply,
        Answered::Broken(_, error) => panic!("{error}"),
    }
}

#[track_caller]
fn broken(answered: Result<Answered, Error>) -> (recto::wire::Reply, Error) {
    match answered.unwrap() {
        Answered::Whole(reply) => panic!("{reply:?}"),
        Answered::Broken(reply, error) => (*reply, error),
    }
}

fn said(heard: &[Heard]) -> String {
    heard.iter().filter_map(|it| if let Heard::Text(text) = it { Some(&**text) } else { None }).collect()
}

fn notes(heard: &[Heard]) -> Vec<Text> {
    heard.iter().filter_map(|it| if let Heard::Note(text) = it { Some(text.clone()) } else { None }).collect()
}

/// A server that gives the same bytes to everybody who has sent a whole request, and then hangs up. Who connects after
/// the last time is refused.
fn answering(answers: usize, head: &str, body: Vec<u8>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let serve = move || {
        let serve_one = |_| {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = asked(&stream);
            // Somebody who has heard enough goes away.
            drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
            asked
        };
        (0..answers).map(serve_one).collect()
    };
    (url, std::thread::spawn(serve))
}

fn asked(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0);
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    reader.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
    head
}

#[test]
fn words_are_heard_in_order_and_calls_at_the_end_over_every_wire() {
    for wire in Wire::ALL {
        let server = Server::start();
        server.push(Reply::default().text("some words that come in pieces").call("look", r#"{"at":1}"#));
        let upstream = upstream(&server.url(), wire);
        let (answered, heard) = ask(&upstream);
        let reply = whole(answered);
        assert_eq!(said(&heard), "some words that come in pieces", "{wire}");
        assert!(heard.len() > 3, "in pieces: {heard:?}");
        let call = Heard::Call { name: "look".into(), arguments: r#"{"at":1}"#.into() };
        assert_eq!(heard.last(), Some(&call), "{wire}");
        assert_eq!(reply.entry.calls().count(), 1);
        assert_eq!(reply.entry.status, Status::Sent);
        assert!(reply.usage.is_some() && reply.id.is_some() == (wire != Wire::Ollama), "{wire}: {reply:?}");
        assert_eq!(server.log().len(), 1);
        let request = &server.log()[0].request;
        match wire {
            Wire::Gemini => assert_eq!(request.path, "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"),
            _ => assert_eq!(request.json()["stream"], true),
        }
    }
}

#[test]
fn a_model_that_would_lead_elsewhere_is_not_asked() {
    let server = Server::start();
    let upstream = upstream(&server.url(), Wire::Gemini);
    for model in ["", "..", "../files", "a/b", "a:b", "a?key=1", "a b", "%2e%2e"] {
        let post = Post::new(body(&upstream, "Hello?", &[]), Repeat::WhenUnanswered).to(model);
        let error = block_on(upstream.ask(post, &mut |_| {})).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("no address can name it"), "{model}: {error}");
    }
    assert_eq!(server.log().len(), 0);
}

#[test]
fn a_last_line_without_an_end_is_heard() {
    let line = |text: &str, more: Value| {
        let mut line = json!({"model": "m", "message": {"role": "assistant", "content": text}, "done": false});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let last = line("", json!({"done": true, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 2}));
    let text = format!("{}\n{last}", line("so", json!({"thinking": "hm"})));
    let (url, served) = answering(1, "200 OK\r\ncontent-type: application/x-ndjson", text.into());
    let (answered, heard) = ask(&upstream(&url, Wire::Ollama));
    let reply = whole(answered);
    assert_eq!((said(&heard).as_str(), reply.usage.map(|it| it.input)), ("so", Some(recto::Tokens(7))));
    served.join().unwrap();
}

#[test]
fn the_first_words_are_heard_before_the_last_are_said() {
    let server = Server::start();
    let gate = Gate::default();
    server.push(Reply::default().text("some words that come in pieces").waiting_after(5, &gate));
    let upstream = upstream(&server.url(), Wire::Anthropic);
    let mut heard = String::new();
    // Only who has heard something opens the gate: an answer that is kept back until its end would never come.
    let mut listen = |it| {
        heard += &said(&[it]);
        gate.open();
    };
    let post = Post::new(body(&upstream, "Hello?", &[]), Repeat::WhenUnanswered);
    whole(block_on(upstream.ask(post, &mut listen)));
    assert_eq!(heard, "some words that come in pieces");
}

#[test]
fn a_base_url_may_or_may_not_have_the_version() {
    let server = Server::start();
    for wire in Wire::CLIENTS {
        for path in ["", "/", "/v1", "/v1/"] {
            whole(ask(&upstream(&format!("{}{path}", server.url()), wire)).0);
        }
    }
    let paths: Vec<String> = server.log().iter().map(|it| it.request.path.clone()).collect();
    assert_eq!(paths[..4], ["/v1/chat/completions"; 4]);
    assert_eq!(paths[4..8], ["/v1/responses"; 4]);
    assert_eq!(paths[8..], ["/v1/messages"; 4]);
    for (wire, paths) in [(Wire::Gemini, ["", "/", "/v1beta", "/v1beta/"]), (Wire::Ollama, ["", "/", "/api", "/api/"])]
    {
        paths.iter().for_each(|path| drop(whole(ask(&upstream(&format!("{}{path}", server.url()), wire)).0)));
    }
    let (url, served) = answering(1, "404 Not Found", Vec::new());
    ask(&upstream(&format!("{url}/api/paas/v4"), Wire::OpenaiChat)).0.unwrap_err();
    assert!(served.join().unwrap()[0].starts_with("POST /api/paas/v4/chat/completions "));
}

#[test]
fn a_busy_provider_is_asked_again_and_the_listener_is_told() {
    for status in [408, 429, 500, 502, 503, 529] {
        let server = Server::start();
        let busy = || Reply::error(status, json!({"error": {"message": "busy"}})).header("retry-after", "0");
        server.push(busy());
        server.push(busy());
        server.push(Reply::default().text("at last"));
        let (answered, heard) = ask(&upstream(&server.url(), Wire::OpenaiChat));
        whole(answered);
        let told = |nth| format!("fake answered {status}; trying again ({nth} of 2)");
        assert_eq!(notes(&heard), [told(1).into(), told(2).into()]);
        assert_eq!((said(&heard).as_str(), server.log().len()), ("at last", 3));
    }
}

#[test]
fn what_may_stand_twice_is_repeated_only_if_nothing_was_done() {
    let busy = |status| Reply::error(status, json!({"error": {"message": "busy"}})).header("retry-after", "0");
    let tries = |status| {
        let server = Server::start();
        server.push(busy(status));
        let (answered, _) = ask_with(&upstream(&server.url(), Wire::OpenaiResponses), Repeat::WhenUnheard);
        (answered.is_ok(), server.log().len())
    };
    assert_eq!([429, 503, 529].map(tries), [(true, 2); 3]);
    assert_eq!([408, 500, 502].map(tries), [(false, 1); 3]);
}

#[test]
fn retries_and_waits_are_bounded() {
    let server = Server::start();
    let busy = |after: &str| Reply::error(429, json!({"error": {"message": "slow down"}})).header("retry-after", after);
    for _ in 0..3 {
        server.push(busy("0"));
    }
    let upstream = upstream(&server.url(), Wire::OpenaiChat);
    let error = ask(&upstream).0.unwrap_err();
    assert_eq!((error.refusal().0, server.log().len()), (Some(429), 3));
    server.push(busy("61"));
    let (answered, heard) = ask(&upstream);
    let error = answered.unwrap_err();
    assert_eq!((notes(&heard).len(), server.log().len()), (0, 4), "nobody waits that long");
    assert_eq!(error.to_string(), "fake refused the request (429): slow down");
    assert_eq!(error.hint().unwrap(), "the provider asks to wait 61 s; then ask again");
}

/// How many events of an answer bring its first words, but not its last.
fn events(wire: Wire) -> usize {
    match wire {
        Wire::OpenaiChat => 3,
        Wire::OpenaiResponses => 6,
        Wire::Anthropic => 5,
        Wire::Gemini | Wire::Ollama => 2,
    }
}

#[test]
fn what_the_provider_has_ended_is_whole_whatever_comes_behind() {
    let server = Server::start();
    server.push(Reply::default().text("short").broken_after(3));
    let (answered, heard) = ask(&upstream(&server.url(), Wire::OpenaiChat));
    assert_eq!(whole(answered).entry.status, Status::Sent);
    assert!(notes(&heard)[0].starts_with("the answer of fake broke off"), "{heard:?}");
}

#[test]
fn after_a_byte_of_an_answer_nothing_is_sent_again() {
    for wire in Wire::ALL {
        let server = Server::start();
        server.push(Reply::default().text("some words that come in pieces").broken_after(events(wire)));
        let (answered, heard) = ask(&upstream(&server.url(), wire));
        let (reply, error) = broken(answered);
        assert!(error.is_refused() && error.to_string().starts_with("the answer of fake broke off"), "{error}");
        assert_eq!(reply.entry.status, Status::Error);
        assert!(!said(&heard).is_empty() && said(&heard).len() < 30, "{heard:?}");
        assert_eq!((server.log().len(), notes(&heard).len()), (1, 0), "{wire}");
    }
}

#[test]
fn a_garbled_event_ends_the_answer_and_what_came_before_is_kept() {
    for wire in Wire::ALL {
        let server = Server::start();
        server.push(Reply::default().text("some words that come in pieces").garbled_after(events(wire)));
        let (answered, heard) = ask(&upstream(&server.url(), wire));
        let (reply, error) = broken(answered);
        assert!(error.to_string().starts_with("fake sent an event that can't be read: "), "{error}");
        assert_eq!(reply.entry.status, Status::Error);
        assert!(said(&heard).starts_with("some words"), "{heard:?}");
        assert_eq!(server.log().len(), 1, "{wire}");
    }
}

#[test]
fn a_failure_within_a_stream_is_told_with_its_code() {
    let events = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\"}}\n\n\
                  data: {\"type\":\"response.failed\",\"response\":{\"id\":\"resp_1\",\"status\":\"failed\",\"error\":\
                  {\"code\":\"server_error\",\"message\":\"It broke.\"}}}\n\n";
    let (url, served) = answering(1, "200 OK\r\ncontent-type: text/event-stream", events.into());
    let (_, error) = broken(ask(&upstream(&url, Wire::OpenaiResponses)).0);
    assert_eq!(error.to_string(), "fake failed while it answered: It broke.");
    assert_eq!(error.refusal(), (None, Some("server_error")));
    served.join().unwrap();
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "all at once"}], "usage": {"input_tokens": 1, "output_tokens": 1}});
    let answer = message.to_string().into_bytes();
    let (url, served) = answering(1, "200 OK\r\ncontent-type: application/json", answer);
    let reply = whole(ask(&upstream(&url, Wire::Anthropic)).0);
    assert_eq!(reply.id.as_deref(), Some("msg_1"));
    served.join().unwrap();
    let (url, served) = answering(1, "200 OK\r\ncontent-type: text/html", b"<html>hello".to_vec());
    let error = ask(&upstream(&url, Wire::Anthropic)).0.unwrap_err();
    assert!(error.to_string().starts_with("fake sent an answer that can't be read"), "{error}");
    served.join().unwrap();
}

#[test]
fn refusals_are_told_in_the_providers_words() {
    let server = Server::start();
    let responses = upstream(&server.url(), Wire::OpenaiResponses);
    let lost = body(&responses, "Hello?", &[("previous_response_id", json!("resp_lost"))]);
    let error = block_on(responses.ask(Post::new(lost, Repeat::WhenUnanswered), &mut |_| {})).unwrap_err();
    assert_eq!(error.refusal(), (Some(400), Some("previous_response_not_found")));
    assert!(error.to_string().contains("Previous response with id 'resp_lost' not found."), "{error}");
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Over\u{1b}loaded"}});
    server.push(Reply::error(529, overloaded).header("retry-after", "999"));
    let error = ask(&upstream(&server.url(), Wire::Anthropic)).0.unwrap_err();
    assert_eq!(error.refusal(), (Some(529), Some("overloaded_error")));
    assert_eq!(error.to_string(), "fake failed (529): Over loaded");
}

#[test]
fn bodies_that_are_no_json_are_told_too() {
    let told = |head: &str, body: &str| {
        let (url, served) = answering(1, head, body.into());
        let error = ask(&upstream(&url, Wire::OpenaiChat)).0.unwrap_err();
        served.join().unwrap();
        (error.to_string(), error.refusal().0)
    };
    let page = "<html><head><title>No such host</title></head><body>…</body></html>";
    let (text, status) = told("404 Not Found", page);
    assert_eq!((text.as_str(), status), ("fake refused the request (404): a web page, \"No such host\"", Some(404)));
    assert_eq!(told("400 Bad Request", "").0, "fake refused the request (400): without a reason");
    assert_eq!(told("400 Bad Request", "{\"error\":\"no\"}").0, "fake refused the request (400): no");
    assert_eq!(told("400 Bad Request", "[1]").0, "fake refused the request (400): [1]");
    let huge = format!("{{\"error\": {{\"message\": \"{}\"}}}}", "x".repeat(8 << 20));
    let (text, status) = told("400 Bad Request", &huge);
    assert_eq!(status, Some(400));
    assert!(text.len() < 1_200 && text.ends_with("xx…"), "{} letters", text.len());
}

#[test]
fn an_answer_without_an_end_is_cut_off() {
    let endless = format!("data: {{\"choices\":[]}}\n\n: {}\n\n", "x".repeat(1 << 20)).repeat(66);
    let (url, served) = answering(1, "200 OK\r\ncontent-type: text/event-stream", endless.into());
    let (_, error) = broken(ask(&upstream(&url, Wire::OpenaiChat)).0);
    assert_eq!(error.to_string(), "fake answers more than 64 MiB");
    served.join().unwrap();
}

#[test]
fn redirects_are_not_followed() {
    let server = Server::start();
    let head = format!("302 Found\r\nlocation: {}/v1/chat/completions", server.url());
    let (url, served) = answering(1, &head, Vec::new());
    let error = ask(&upstream(&url, Wire::OpenaiChat)).0.unwrap_err();
    assert_eq!(error.refusal().0, Some(302));
    assert!(error.hint().unwrap().starts_with("redirects are not followed"));
    served.join().unwrap();
    assert_eq!(server.log().len(), 0);
}

#[test]
fn silence_is_not_waited_for() {
    let limits = [
        Limits { first_byte: LIMIT, ..Limits::default() },
        Limits { silence: LIMIT, ..Limits::default() },
        Limits { whole: LIMIT, ..Limits::default() },
    ];
    for (limits, events) in limits.into_iter().zip([0, 4, 4]) {
        let server = Server::start();
        let gate = Gate::default();
        server.push(Reply::default().text("some words that come in pieces").waiting_after(events, &gate));
        let upstream = Upstream::of(Settings { limits, ..settings(&server.url(), Wire::Anthropic) }).unwrap();
        let (answered, heard) = ask(&upstream);
        let error = match answered {
            Ok(Answered::Broken(_, error)) | Err(error) => error,
            Ok(Answered::Whole(reply)) => panic!("{reply:?}"),
        };
        assert!(error.is_timed_out(), "{error}");
        assert!(error.hint().unwrap().contains("timeout_seconds"));
        assert_eq!((server.log().len(), notes(&heard).len()), (1, 0), "nothing is sent again");
    }
}

#[test]
fn who_cannot_be_reached_is_tried_again_and_then_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let once = Settings { retries_max: 1, ..settings(&url, Wire::OpenaiChat) };
    let (answered, heard) = ask_with(&Upstream::of(once).unwrap(), Repeat::WhenUnheard);
    let error = answered.unwrap_err();
    assert!(error.is_refused() && error.refusal() == (None, None));
    assert!(error.to_string().starts_with(&format!("can't reach fake at {url}: ")), "{error}");
    assert_eq!(notes(&heard).len(), 1);
}

#[test]
fn a_connection_that_ends_without_a_byte_is_tried_again_unless_it_may_have_been_heard() {
    for (repeat, asked_for) in [(Repeat::WhenUnanswered, 2), (Repeat::WhenUnheard, 1)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            (0..asked_for).for_each(|_| drop(asked(&listener.accept().unwrap().0)));
        });
        let once = Settings { retries_max: 1, ..settings(&url, Wire::OpenaiChat) };
        let (answered, heard) = ask_with(&Upstream::of(once).unwrap(), repeat);
        assert!(answered.unwrap_err().is_refused());
        assert_eq!(notes(&heard).len(), asked_for - 1);
        served.join().unwrap();
    }
}

#[test]
fn a_key_comes_from_the_environment_is_sent_and_is_never_shown() {
    let key = std::env::var(VARIABLE).unwrap();
    let server = Server::with(Rules { api_key: Some(key.clone()), ..Rules::default() });
    for wire in Wire::ALL {
        let keyed = Settings { key_env: Some(VARIABLE.into()), ..settings(&server.url(), wire) };
        let upstream = Upstream::of(keyed).unwrap();
        whole(ask(&upstream).0);
        assert!(!format!("{upstream:?}").contains(&key));
        let echo = json!({"error": {"message": format!("Incorrect API key provided: {key}"), "code": key}});
        server.push(Reply::error(401, echo));
        let error = ask(&upstream).0.unwrap_err();
        assert_eq!(error.to_string(), "fake refused the request (401): Incorrect API key provided: [key]");
        assert!(!format!("{error:?} {:?}", error.hint()).contains(&key));
        assert_eq!(error.hint().unwrap(), format!("check the key in {VARIABLE}, and what it may do"));
    }
    let gemini = &server.log()[6].request;
    assert_eq!((gemini.header("x-goog-api-key"), gemini.header("authorization")), (Some(&*key), None));
    let anthropic = &server.log()[4].request;
    assert_eq!((anthropic.header("x-api-key"), anthropic.header("authorization")), (Some(&*key), None));
    assert_eq!(anthropic.header("anthropic-version"), Some("2023-06-01"));
    let error = ask(&upstream(&server.url(), Wire::OpenaiChat)).0.unwrap_err();
    assert_eq!(error.refusal(), (Some(401), Some("invalid_api_key")), "without a key");
}

#[test]
fn a_key_that_is_not_set_is_told_before_anything_is_sent() {
    let keyed = |variable: &str| {
        let keyed =
            Settings { key_env: Some(variable.into()), ..settings("https://api.example.com/v1", Wire::OpenaiChat) };
        Upstream::of(keyed).unwrap_err()
    };
    let error = keyed("RECTO_NO_SUCH_KEY");
    assert!(error.is_input());
    assert_eq!(error.to_string(), "fake needs a key, and the environment variable RECTO_NO_SUCH_KEY is not set");
}

#[test]
fn headers_of_settings_and_requests_are_sent_and_their_values_not_shown() {
    let server = Server::start();
    let headers = [("x-one", "value-1"), ("anthropic-version", "2023-01-01")];
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_string())).into();
    let upstream = Upstream::of(Settings { headers, ..settings(&server.url(), Wire::Anthropic) }).unwrap();
    assert!(format!("{upstream:?}").contains("x-one") && !format!("{upstream:?}").contains("value-1"));
    let more = [("x-two", "second"), ("anthropic-version", "2023-06-01")];
    let post = Post { headers: &more, ..Post::new(body(&upstream, "Hello?", &[]), Repeat::WhenUnanswered) };
    whole(block_on(upstream.ask(post, &mut |_| {})));
    let request = &server.log()[0].request;
    let sent = ["x-one", "x-two", "anthropic-version"].map(|name| request.header(name).unwrap().to_string());
    assert_eq!(sent, ["value-1", "second", "2023-06-01"]);
    let headers = [("x one".to_string(), "secret".to_string())].into();
    let error = Upstream::of(Settings { headers, ..settings(&server.url(), Wire::Anthropic) }).unwrap_err();
    assert_eq!(error.to_string(), "can't send the header \"x one\"");
}

#[test]
fn addresses_that_would_tell_others_are_refused() {
    let told = |url: &str| Upstream::of(settings(url, Wire::OpenaiChat)).unwrap_err().to_string();
    assert_eq!(told("http://example.com/v1"), "everything would go unencrypted to the URL of fake");
    assert_eq!(told("http://127.0.0.1.example.com"), "everything would go unencrypted to the URL of fake");
    assert_eq!(told("https://me:secret@example.com"), "there is a password in the URL of fake");
    assert_eq!(told("https://example.com/?key=secret"), "there is more than a path in the URL of fake");
    assert_eq!(told("file:///etc/passwd"), "can't use the URL of fake");
    assert_eq!(told("api.openai.com"), "can't read the URL of fake");
    for url in ["http://localhost:1", "http://127.0.0.7/v1", "http://[::1]:80/v1", "https://example.com"] {
        upstream(url, Wire::OpenaiChat);
    }
    Upstream::of(Settings { plain_http: true, ..settings("http://example.com", Wire::OpenaiChat) }).unwrap();
}

#[test]
fn certificates_are_read_before_anything_is_sent() {
    let folder = crate::folder::TempFolder::new();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let ca = Some(path);
        Upstream::of(Settings { ca, ..settings("https://example.com/v1", Wire::OpenaiChat) }).unwrap_err()
    };
    assert!(at("empty.pem", "").to_string().ends_with("empty.pem as certificates: there is none in it"));
    assert!(at("odd.pem", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").is_input());
    let ca = Some(folder.path().join("gone.pem"));
    let error = Upstream::of(Settings { ca, ..settings("https://example.com/v1", Wire::OpenaiChat) }).unwrap_err();
    assert!(error.to_string().contains("gone.pem"), "{error}");
}

#[test]
fn a_provider_keeps_a_conversation_that_was_opened() {
    let server = Server::start();
    let kept = Settings { remember: Remember::Conversation, ..settings(&server.url(), Wire::OpenaiResponses) };
    let upstream = Upstream::of(kept).unwrap();
    let conversation = block_on(upstream.create_conversation(&mut |_| {})).unwrap();
    for text in ["one", "two"] {
        let body = body(&upstream, text, &[("conversation", json!(*conversation))]);
        whole(block_on(upstream.ask(Post::new(body, Repeat::WhenUnheard), &mut |_| {})));
    }
    let read = json!(server.log()[2].items).to_string();
    assert_eq!((read.matches("\"one\"").count(), read.matches("\"two\"").count()), (1, 1), "{read}");
    assert!(server.provider().forget(&conversation));
    let body = body(&upstream, "three", &[("conversation", json!(*conversation))]);
    let error = block_on(upstream.ask(Post::new(body, Repeat::WhenUnheard), &mut |_| {})).unwrap_err();
    assert_eq!(error.refusal().0, Some(404));
}
