//! Where nothing was decided, everything goes through byte for byte: requests and answers, good and bad.

use super::asking::{Client, path};
use super::plain::Plain;
use super::world::World;
use recto::digest::Digest;
use recto::entry::Role;
use recto::wire::Wire;
use recto::{Log, Policy, Reader, Request, Target, Tokenizer, compile_once, transcript};
use recto_testkit::fake::Server;
use recto_testkit::shared;
use serde_json::{Map, Value, json};
use std::io::Write;

/// How many bodies of real conversations are sent.
const BODIES: usize = 1_000;
/// The longest of them.
const BODY_BYTES_MAX: usize = 100_000;
/// How long a conversation is that no policy shortens, in entries.
const SHORT: usize = 6;

/// A server in front of a provider that takes anything, and answers as it is asked to by a header: with the answer of
/// this number.
fn world(policy: &str) -> (World, Plain) {
    let plain = Plain::answering(|came, stream| {
        let number = came.header("x-answer").map_or(0, |it| it.parse().unwrap());
        let answer = &answers(Wire::CLIENTS.into_iter().find(|wire| came.line.contains(path(*wire))).unwrap())[number];
        stream.write_all(answer).unwrap();
    });
    let mut world = World::before(Server::start(), "");
    world.lead_to(&plain.url(), "");
    world.serve(policy);
    (world, plain)
}

/// Answers of a provider, with their heads: good ones in odd spellings, bad ones, and some that are none.
fn answers(wire: Wire) -> Vec<Vec<u8>> {
    let good = match wire {
        Wire::OpenaiChat => {
            "{ \"choices\" : [ {\"index\":0, \"message\":{\"role\":\"assistant\",\"content\":\"S\\u00e9en.\"},\
             \"finish_reason\":\"stop\"}],\n\"z\":1.50, \"id\":\"x\", \"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1e0} }\n"
        }
        Wire::OpenaiResponses => {
            "{ \"id\":\"resp_1\", \"status\":\"completed\",\"output\" : [ {\"type\":\"message\",\"id\":\"m\",\
             \"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"S\\u00e9en.\",\"annotations\":[]}]}],\n\"z\":1.50 }"
        }
        Wire::Anthropic => {
            "{ \"content\" : [ {\"type\":\"text\", \"text\":\"S\\u00e9en.\"}],\n\"z\":1.50, \"id\":\"x\",\
             \"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"stop_reason\":\"end_turn\",\
             \"usage\":{\"input_tokens\":7,\"output_tokens\":1} }"
        }
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    };
    let whole = |status: &str, body: &[u8]| {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\nx-kept: Né\r\ncontent-length: {length}"
        );
        [head.as_bytes(), b"\r\n\r\n", body].concat()
    };
    let stream = |body: &str| {
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream; charset=utf-8\r\nx-kept: Né\r\n\r\n{body}")
            .into_bytes()
    };
    vec![
        whole("200 OK", good.as_bytes()),
        whole("400 Bad Request", b"{\"error\":{\"message\":\"No.\", \"type\":\"invalid\"} }  "),
        whole("429 Too Many Requests", b"{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}"),
        whole("500 Internal Server Error", b"<html>\xff\xfe not even text</html>"),
        whole("503 Service Unavailable", b""),
        whole("200 OK", b"no JSON at all"),
        whole("201 Created", b"{}"),
        whole("418 I'm a teapot", b"short and stout"),
        stream(": a comment\r\n\r\nevent: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\ndata: odd\n\ndata: [DONE]\n\n"),
        stream(""),
    ]
}

/// The body of an answer as the provider sent it.
fn after_head(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    &answer[end + 4..]
}

/// Sends a body, and fails unless it comes through, and its answer back, byte for byte.
#[track_caller]
fn goes_through(client: &Client, plain: &Plain, wire: Wire, body: &[u8], number: usize) {
    let (came, page) = comes_through(client, plain, wire, body, number);
    assert_eq!(Digest::of(&came), Digest::of(body), "{wire}: {}", String::from_utf8_lossy(body));
    assert!(page.starts_with("as_sent"), "{page}");
}

/// Sends a body, fails unless its answer comes back byte for byte, and returns what reached the provider, and what
/// became of the page.
#[track_caller]
fn comes_through(client: &Client, plain: &Plain, wire: Wire, body: &[u8], number: usize) -> (Vec<u8>, String) {
    let heard = client.with("x-answer", &number.to_string()).sends(path(wire), body).whole();
    assert_eq!(heard.header("x-recto-refused"), None, "{wire}: {body:?}: {}", heard.text());
    let came = plain.came();
    assert_eq!(came.line, format!("POST {}", path(wire)));
    let answer = &answers(wire)[number];
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse::<u16>().unwrap();
    assert_eq!(heard.status, status);
    assert_eq!(Digest::of(&heard.body), Digest::of(after_head(answer)), "{wire}: {}", heard.text());
    assert!(heard.is_whole);
    (came.body, heard.header("x-recto-page").unwrap().into())
}

/// What stands in a body that reached the provider, and not in the one that was sent.
#[track_caller]
fn added(came: &[u8], sent: &[u8]) -> String {
    let same = came.iter().zip(sent).take_while(|(one, other)| one == other).count();
    let added = came[same..].strip_suffix(&sent[same..]).expect("all that was sent stands around it");
    String::from_utf8_lossy(added).into_owned()
}

/// Bodies of real conversations, cut before one of their answers, in all wires.
fn bodies(test: &str) -> Option<Vec<(Wire, Vec<u8>)>> {
    let folder = shared::folder("data/conversations", test)?;
    let (mut bodies, policy) = (Vec::new(), Policy::preset("none").unwrap());
    let read = |file: &std::path::PathBuf| transcript::read(&std::fs::read_to_string(file).unwrap()).unwrap();
    let all: Vec<_> = shared::jsonl(&folder).iter().flat_map(read).collect();
    // The first answers of all, then the second ones, until there are enough.
    for turn in 1..BODIES {
        for conversation in &all {
            let answers = conversation.entries.iter().enumerate().filter(|(_, it)| it.role == Role::Assistant);
            let Some((end, _)) = answers.skip(turn).find(|(at, _)| *at > 0) else { continue };
            let wire = Wire::CLIENTS[bodies.len() % Wire::CLIENTS.len()];
            let mut log = Log::counted_by(Tokenizer::Bytes4);
            for entry in &conversation.entries[..end] {
                log.append(entry.clone()).unwrap();
            }
            let target = Target { wire, ..Target::eval().with_window(None) };
            let reader = Reader::new("main");
            let page = compile_once(&Request::new(&log, &reader, &policy, &target)).unwrap().page;
            let body = spelled(&wire.encode_with(&page, &target, &Map::new()), bodies.len());
            if body.len() <= BODY_BYTES_MAX {
                bodies.push((wire, body));
            }
            if bodies.len() == BODIES {
                return Some(bodies);
            }
        }
    }
    panic!("only {} bodies", bodies.len());
}

/// A body in one of several spellings, with fields that nobody knows.
fn spelled(body: &[u8], number: usize) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(body).unwrap();
    match number % 4 {
        0 => body.to_vec(),
        1 => serde_json::to_vec_pretty(&value).unwrap(),
        2 => {
            value["a_field_of_tomorrow"] = json!({"deep": [1.0, 1e300, null, "\u{7f}\u{2028}"]});
            value["stream"] = true.into();
            let text = value.to_string();
            format!("\r\n\t {} \n", text.replace('é', "\\u00e9").replace("<", "\\u003C")).into_bytes()
        }
        // As Python's `json` writes it.
        _ => value.to_string().replace("\":", "\": ").chars().map(escaped).collect::<String>().into_bytes(),
    }
}

fn escaped(letter: char) -> String {
    match letter.is_ascii() {
        true => letter.to_string(),
        false => letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    }
}

#[test]
fn under_none_a_thousand_bodies_go_through_byte_for_byte() {
    let Some(bodies) = bodies("a thousand bodies through the gateway, byte for byte") else { return };
    let (mut world, plain) = world("none");
    let client = Client::of(&world);
    let count = answers(Wire::OpenaiChat).len();
    for (at, (wire, body)) in bodies.iter().enumerate() {
        goes_through(&client, &plain, *wire, body, at % count);
    }
    assert!(plain.is_empty(), "each was sent once");
    let unreadable = client.metrics();
    assert!(unreadable.contains("\nrecto_unreadable_total 0\n"), "{unreadable}");
    world.stop();
    world.run(&["doctor"]);
}

#[test]
fn under_the_default_short_conversations_go_through_byte_for_byte_but_for_the_tool_that_is_offered() {
    let (mut world, plain) = world("default");
    let client = Client::of(&world);
    for (number, wire) in Wire::CLIENTS.into_iter().enumerate().cycle().take(24) {
        let list: Vec<Value> = (0..SHORT)
            .map(|at| {
                let role = if at % 2 == 0 { "user" } else { "assistant" };
                json!({"role": role, "content": format!("Words of {number} at {at}, said by {role}. né \u{1F600}")})
            })
            .take(SHORT - 1)
            .collect();
        let list_name = if wire == Wire::OpenaiResponses { "input" } else { "messages" };
        let body = json!({"model": "gpt-4o", list_name: list, "max_tokens": 9}).to_string();
        let body = spelled(body.as_bytes(), number);
        if wire == Wire::OpenaiResponses {
            goes_through(&client, &plain, wire, &body, 0);
            continue;
        }
        let (came, page) = comes_through(&client, &plain, wire, &body, 0);
        let added = added(&came, &body);
        assert!(added.starts_with(",\"tools\":[{") && added.contains("\"recto_expand\""), "{added}");
        assert_eq!(page, "offered");
    }
    world.stop();
    world.run(&["doctor"]);
}

#[test]
fn what_nobody_can_read_goes_through_byte_for_byte() {
    let bodies: [&[u8]; 14] = [
        b"",
        b"no JSON",
        b"{\"model\":\"gpt-4o\",\"messages\":",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b"{}",
        b"{\"model\":\"gpt-4o\",\"messages\":\"Hi\",\"input\":7}",
        b"{\"model\":\"gpt-4o\",\"messages\":[],\"input\":[]}",
        b"{\"model\":\"gpt-4o\",\"messages\":[7],\"input\":[7]}",
        b"{\"model\":\"gpt-4o\",\"messages\":[{\"role\":\"oracle\",\"content\":\"Hi\"}],\"input\":[{\"role\":\"oracle\",\"content\":\"Hi\"}]}",
        b"{\"model\":\"gpt-4o\",\"messages\":[{\"role\":\"user\",\"content\":\"\\ud800 alone\"}],\"input\":\"\\udc00\"}",
        b"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"smell\",\"of\":\"roses\"}]}],\"input\":[{\"type\":\"smell\"}]}",
        b"{\"messages\":[{\"role\":\"tool\",\"tool_call_id\":\"nobody\",\"content\":\"Hi\"}],\"input\":[{\"type\":\"function_call_output\",\"call_id\":\"nobody\",\"output\":\"Hi\"}]}",
    ];
    for policy in ["none", "default"] {
        let (mut world, plain) = world(policy);
        let client = Client::of(&world);
        for (wire, body) in Wire::CLIENTS.into_iter().flat_map(|wire| bodies.map(|body| (wire, body))) {
            if policy == "default" && std::str::from_utf8(body).is_err() {
                // Secrets could stand in it, and nobody would see them.
                assert_eq!(client.sends(path(wire), body).whole().header("x-recto-refused"), Some("body"));
                continue;
            }
            let (came, page) = comes_through(&client, &plain, wire, body, 1);
            let added = added(&came, body);
            match page.as_str() {
                // It can be read after all.
                "offered" => assert!(policy == "default" && added.contains("recto_expand"), "{added}"),
                page => assert!(page.starts_with("as_sent") && added.is_empty(), "{page}: {added}"),
            }
        }
        world.stop();
        world.run(&["doctor"]);
    }
}

#[test]
fn queries_and_headers_go_through_but_for_those_of_the_connection_and_ours() {
    let (world, plain) = world("none");
    let body = r#"{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#;
    let client = Client::of(&world)
        .with("x-unknown", "kept as it is")
        .with("X-Twice", "one")
        .with("X-Twice", "two")
        .with("authorization", "Bearer sk-1")
        .with("anthropic-beta", "a-1,b-2")
        .with("user-agent", "client/1 (odd)")
        .with("accept-encoding", "gzip, br")
        .with("cookie", "a=b")
        .with("te", "trailers")
        .with("x-recto-policy", "none")
        .with("x-recto-conversation", "monday");
    let heard = client.sends("/v1/messages?beta=true&x=%20y", body).whole();
    assert_eq!((heard.status, heard.header("x-kept")), (200, Some("Né")));
    assert_eq!(heard.header("x-recto-conversation"), Some("monday"));
    let came = plain.came();
    assert_eq!(came.line, "POST /v1/messages?beta=true&x=%20y");
    let values = |name: &str| came.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| &**value).collect();
    let told: Vec<(&str, Vec<&str>)> = ["x-unknown", "x-twice", "authorization", "anthropic-beta", "user-agent"]
        .into_iter()
        .map(|name| (name, values(name)))
        .collect();
    let expected = [
        ("x-unknown", vec!["kept as it is"]),
        ("x-twice", vec!["one", "two"]),
        ("authorization", vec!["Bearer sk-1"]),
        ("anthropic-beta", vec!["a-1,b-2"]),
        ("user-agent", vec!["client/1 (odd)"]),
    ];
    assert_eq!(told, expected);
    assert_eq!(came.header("accept-encoding"), Some("identity"));
    for gone in ["cookie", "te", "x-recto-policy", "x-recto-conversation"] {
        assert_eq!(came.header(gone), None);
    }
}
