//! Traces, as a collector gets them: read by OpenTelemetry's own types.

use super::asking::{Client, Talk};
use super::world::World;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;
use recto::wire::Wire;
use recto_testkit::fake::{Reply, Server};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Whoever takes spans: it hands on every body that comes to its path.
struct Collector {
    url: String,
    bodies: Receiver<Vec<u8>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, bodies) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                std::thread::spawn(move || answer(stream, |body| sender.send(body).is_ok()));
            }
        });
        Collector { url, bodies }
    }

    /// Returns all spans that have come, and the bytes that they came as.
    fn spans(&self) -> (Vec<Span>, Vec<u8>) {
        let bodies: Vec<Vec<u8>> = self.bodies.try_iter().collect();
        let mut spans = Vec::new();
        for body in &bodies {
            let request = ExportTraceServiceRequest::decode(&**body).expect("what OTLP says it is");
            for of_resource in request.resource_spans {
                let resource = of_resource.resource.expect("a resource");
                let named = |it: &&opentelemetry_proto::tonic::common::v1::KeyValue| it.key == "service.name";
                assert!(resource.attributes.iter().any(|it| named(&it)), "{resource:?}");
                spans.extend(of_resource.scope_spans.into_iter().flat_map(|it| it.spans));
            }
        }
        (spans, bodies.concat())
    }
}

/// Answers requests of one connection, until it ends or nobody wants the bodies.
fn answer(stream: TcpStream, mut hear: impl FnMut(Vec<u8>) -> bool) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head += &line;
            if line == "\r\n" {
                break;
            }
        }
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        assert!(head.to_lowercase().contains("content-type: application/x-protobuf"), "{head}");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        if !hear(body) || writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

fn world(collector: &str) -> World {
    let mut world = World::before(Server::start(), "");
    let mut command = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    world.serve_by(command);
    world
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An attribute as text.
fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|it| it.key == key)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => number.to_string(),
        Any::ArrayValue(array) => format!("{:?}", array.values.iter().map(|it| it.value.clone()).collect::<Vec<_>>()),
        other => panic!("{other:?}"),
    })
}

#[test]
fn calls_are_traced_by_the_conventions_and_nothing_that_was_said_is_in_them() {
    let collector = Collector::start();
    let mut world = world(&collector.url);
    let client = Client::of(&world).with("traceparent", &format!("00-{TRACE}-{PARENT}-01"));
    let client = client.with("tracestate", "vendor=1").with("authorization", "Bearer sk-CREDENTIAL");
    world.fake.push(Reply::default().text("ANSWER-WORD"));
    let talk = Talk::new(Wire::OpenaiChat).user("ASKED-WORD");
    let answer = client.asks(&talk);
    world.fake.push(Reply::default().text("STREAM-WORD"));
    let talk = talk.heard(&answer).user("AGAIN-WORD");
    let talk = talk.beside("stream_options", json!({"include_usage": true}));
    assert!(client.streams(&talk).whole().is_whole);
    world
        .fake
        .push(Reply::error(529, json!({"type": "error", "error": {"type": "overloaded_error", "message": "M-WORD"}})));
    assert_eq!(client.asks(&Talk::new(Wire::Anthropic).user("THIRD-WORD")).status, 529);
    let (conversation, calls) = (answer.conversation(), world.fake.log());
    world.stop();

    let (spans, bytes) = collector.spans();
    let of_kind = |kind: SpanKind| spans.iter().filter(move |span| span.kind == kind as i32).collect::<Vec<&Span>>();
    let (servers, clients) = (of_kind(SpanKind::Server), of_kind(SpanKind::Client));
    assert_eq!((servers.len(), clients.len(), spans.len()), (3, 3, 6));
    for span in &spans {
        assert_eq!((hex(&span.trace_id), &*span.trace_state), (TRACE.into(), "vendor=1"));
        assert!(span.start_time_unix_nano > 0 && span.end_time_unix_nano >= span.start_time_unix_nano);
    }
    for (at, call) in clients.iter().enumerate() {
        let parent = servers.iter().find(|it| it.span_id == call.parent_span_id).expect("its request");
        assert_eq!(hex(&parent.parent_span_id), PARENT);
        let passed_on = calls[at].request.header("traceparent").unwrap();
        assert_eq!(passed_on, format!("00-{TRACE}-{}-01", hex(&call.span_id)), "the provider is told of the call");
        assert_eq!(calls[at].request.header("tracestate"), Some("vendor=1"));
    }
    let expected = [
        ("gen_ai.operation.name", "chat".to_string()),
        ("gen_ai.provider.name", "openai".into()),
        ("gen_ai.request.model", "gpt-4o".into()),
        ("gen_ai.conversation.id", conversation),
        ("gen_ai.usage.input_tokens", calls[0].usage["prompt_tokens"].to_string()),
        ("gen_ai.usage.output_tokens", calls[0].usage["completion_tokens"].to_string()),
        ("server.address", "127.0.0.1".into()),
        ("recto.upstream", "fake_openai_chat".into()),
    ];
    for (key, value) in expected {
        assert_eq!(attribute(clients[0], key), Some(value), "{key}");
    }
    assert_eq!((&*clients[0].name, &*servers[0].name), ("chat gpt-4o", "POST /v1/chat/completions"));
    assert!(attribute(clients[0], "gen_ai.response.finish_reasons").is_some_and(|it| it.contains("stop")));
    assert!(
        attribute(clients[1], "gen_ai.response.id").is_some()
            && attribute(clients[1], "gen_ai.response.model").is_some()
    );
    assert_eq!(attribute(clients[2], "gen_ai.provider.name").as_deref(), Some("anthropic"));
    assert_eq!(attribute(clients[2], "error.type").as_deref(), Some("529"));
    assert_eq!(attribute(servers[2], "http.response.status_code").as_deref(), Some("529"));
    let has = |word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    assert!(!has("WORD") && !has("CREDENTIAL"));
    assert!(has("gpt-4o"), "the control: what is there is found");
}

#[test]
fn who_does_not_record_is_not_recorded() {
    let collector = Collector::start();
    let mut world = world(&collector.url);
    let parent = format!("00-{TRACE}-{PARENT}-00");
    let client = Client::of(&world).with("traceparent", &parent);
    world.fake.push(Reply::default().text("Yes."));
    assert_eq!(client.asks(&Talk::new(Wire::OpenaiChat).user("Hi.")).status, 200);
    assert_eq!(world.fake.log()[0].request.header("traceparent"), Some(&*parent), "it goes on as it came");
    world.stop();
    assert_eq!(collector.spans().0.len(), 0);
}

#[test]
fn a_dead_collector_costs_spans_and_no_request() {
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut world = world(&format!("http://{}", silent.local_addr().unwrap()));
    let client = Client::of(&world);
    let dropped = |text: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with("recto_spans_total{result=\"dropped\"}"));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap()
    };
    let mut asked = 0;
    while dropped(&client.metrics()) == 0 {
        (0..200).for_each(|_| assert_eq!(client.gets("/health").status, 200));
        asked += 200;
        assert!(asked < 6_000, "the queue has no end");
    }
    world.fake.push(Reply::default().text("Yes."));
    assert_eq!(client.asks(&Talk::new(Wire::OpenaiChat).user("Hi.")).status, 200);
    world.stop();
}

#[test]
fn a_collector_that_is_gone_is_told_of_once() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut world = world(&format!("http://{port}"));
    let client = Client::of(&world);
    for count in 1..=3 {
        world.fake.push(Reply::default().text("Yes."));
        assert_eq!(client.asks(&Talk::new(Wire::OpenaiChat).user(&format!("{count}"))).status, 200);
        let failed = |text: &str| {
            text.lines().any(|line| {
                line.strip_prefix("recto_spans_total{result=\"failed\"} ").and_then(|it| it.parse::<u64>().ok())
                    >= Some(2 * count)
            })
        };
        let start = std::time::Instant::now();
        while !failed(&client.metrics()) {
            assert!(start.elapsed() < std::time::Duration::from_secs(60));
        }
    }
    let said = world.logged();
    assert_eq!(said.matches("traces can't be sent").count(), 1, "{said}");
}
