//! An answer of one provider, told in another's format: piece by piece it comes to the same as whole, and a client reads
//! what was said, no more and no less.

mod wishes;

use proptest::collection::vec;
use proptest::prelude::*;
use recto::chain::atoms;
use recto::entry::Status;
use recto::wire::across::{Across, Telling, refusal, shown};
use recto::wire::{Reply, Stop, Wire, sse};
use recto_testkit::fake::{self, Incoming, Provider, Settings};
use serde_json::{Value, json};

const TELLING: Telling = Telling { created: 1_700_000_000, has_usage: true };

/// One thing that a model says.
#[derive(Clone, Debug)]
enum Says {
    Thought(String),
    Hidden,
    Text(String),
    Call(String),
    Refusal(String),
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{1,60}", ".{1,20}"]
}

fn says() -> impl Strategy<Value = Vec<Says>> {
    let one = prop_oneof![
        2 => words().prop_map(Says::Thought),
        1 => Just(Says::Hidden),
        4 => words().prop_map(Says::Text),
        3 => words().prop_map(|text| Says::Call(json!({"path": text, "deep": {"list": [1, 2.5, null, true]}}).to_string())),
        1 => Just(Says::Call("{}".into())),
    ];
    (vec(one, 1..7), prop_oneof![6 => Just(None), 1 => words().prop_map(Some)]).prop_map(|(mut all, refusal)| {
        all.extend(refusal.map(Says::Refusal));
        all
    })
}

fn reply(says: &[Says]) -> fake::Reply {
    says.iter().fold(fake::Reply::default(), |reply, one| match one {
        Says::Thought(text) => reply.thinking(text),
        Says::Hidden => reply.redacted_thinking(),
        Says::Text(text) => reply.text(text),
        Says::Call(arguments) => reply.call("read_file", arguments),
        Says::Refusal(text) => reply.refusal(text),
    })
}

/// What a provider answers, whole or as a stream. One that nobody asked before gives the same ids each time.
fn answered(wire: Wire, says: &[Says], streams: bool) -> String {
    let text = "Look at all of this. ".repeat(40);
    let (path, mut body) = match wire {
        Wire::OpenaiChat => (
            "/v1/chat/completions",
            json!({"model": "gpt-4o", "messages": [{"role": "user", "content": text}], "stream": streams}),
        ),
        Wire::OpenaiResponses => (
            "/v1/responses",
            json!({"model": "gpt-6-sol", "input": [{"role": "user", "content": text}], "stream": streams,
                "store": false, "reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]}),
        ),
        Wire::Anthropic => (
            "/v1/messages",
            json!({"model": "claude-opus-5-5", "max_tokens": 1000, "stream": streams,
                "thinking": {"type": "adaptive", "display": "summarized"},
                "messages": [{"role": "user", "content": [
                    {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}]}),
        ),
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in {wire}"),
    };
    if wire == Wire::OpenaiChat && streams {
        body["stream_options"] = json!({"include_usage": true});
    }
    let mut provider = Provider::new(Settings { cache_minimum: Some(1), ..Settings::default() });
    provider.push(reply(says));
    let answer = provider.answer(&Incoming::post(path, &body));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

/// Tells a stream in pieces of a size, and returns it with what was left out.
fn told(from: Wire, to: Wire, stream: &str, size: usize) -> (String, Vec<&'static str>) {
    let mut across = Across::new(from, to, TELLING, []).unwrap();
    let mut out = Vec::new();
    for piece in stream.as_bytes().chunks(size) {
        out.extend(across.push(piece).unwrap());
    }
    out.extend(across.close().unwrap());
    (String::from_utf8(out).unwrap(), across.left_out().collect())
}

/// What a client of a wire reads of a stream.
fn read(wire: Wire, stream: &str) -> Reply {
    let (mut reader, mut heard) = (sse::Reader::default(), wire.stream());
    for event in reader.push(stream.as_bytes()).unwrap() {
        heard.event(&event.data).unwrap();
    }
    heard.finish().unwrap()
}

fn pairs() -> impl Strategy<Value = (Wire, Wire)> {
    let carried = [Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Anthropic];
    let all = carried.into_iter().flat_map(|from| carried.map(|to| (from, to)));
    proptest::sample::select(all.filter(|(from, to)| from != to).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn told_piece_by_piece_an_answer_is_what_it_is_when_told_whole((from, to) in pairs(), says in says(), size in 1..200_usize) {
        let whole = answered(from, &says, false);
        let given = from.decode_reply(&whole).unwrap();
        let mut across = Across::new(from, to, TELLING, []).unwrap();
        let body = String::from_utf8(across.whole(&given)).unwrap();
        let one = to.decode_reply(&body).unwrap();
        let stream = answered(from, &says, true);
        let (pieces, left_out) = told(from, to, &stream, size);
        let other = read(to, &pieces);
        prop_assert!(pieces == told(from, to, &stream, usize::MAX).0, "however it is cut");
        let said = |reply: &Reply| atoms(&reply.entry).collect::<Vec<_>>();
        prop_assert_eq!(said(&one), said(&other), "{}\n{}\n{}", stream, body, pieces);
        prop_assert_eq!((one.entry.status, other.entry.status), (Status::Sent, Status::Sent));
        prop_assert_eq!((one.stop, one.usage, &one.id, &one.model), (other.stop, other.usage, &other.id, &other.model));
        prop_assert_eq!(across.left_out().collect::<Vec<_>>(), left_out);
        // What a client reads is what it is expected to send back.
        let expected: Vec<_> = atoms(&shown(to, &given.entry).0).collect();
        prop_assert_eq!(said(&one), expected);
        prop_assert_eq!(one.usage, given.usage);
        let is_refused = |stop: Option<Stop>| stop == Some(Stop::Refused);
        prop_assert!(one.stop == given.stop || is_refused(given.stop), "{:?} {:?}", one.stop, given.stop);
        for sealed in ["\"signature\"", "\"encrypted_content\"", "redacted_thinking"] {
            prop_assert!(!body.contains(sealed) && !pieces.contains(sealed), "no seal is passed on or made up");
        }
    }
}

/// The control: an answer with other words, another call or without its end is told apart.
#[test]
fn what_is_said_otherwise_is_read_otherwise() {
    let read = |says: &[Says]| {
        let stream = answered(Wire::Anthropic, says, true);
        let reply = read(Wire::OpenaiChat, &told(Wire::Anthropic, Wire::OpenaiChat, &stream, 7).0);
        (atoms(&reply.entry).collect::<Vec<_>>(), reply.entry.status)
    };
    let call = |path: &str| Says::Call(json!({"path": path}).to_string());
    let plain = read(&[Says::Text("One.".into()), call("a")]);
    assert_ne!(plain, read(&[Says::Text("Two.".into()), call("a")]));
    assert_ne!(plain, read(&[Says::Text("One.".into()), call("b")]));
}

#[test]
fn an_answer_that_breaks_off_has_no_end_in_the_other_format_either() {
    for (from, to) in [(Wire::Anthropic, Wire::OpenaiChat), (Wire::OpenaiChat, Wire::Anthropic)] {
        let stream = answered(from, &[Says::Text("A long answer, in several pieces.".into())], true);
        let events: Vec<&str> = stream.split_inclusive("\n\n").collect();
        let (cut, _) = told(from, to, &events[..events.len() / 2].concat(), 11);
        let reply = read(to, &cut);
        assert_eq!(reply.entry.status, Status::Error, "{cut}");
        assert!(!cut.contains("[DONE]") && !cut.contains("message_stop"), "{cut}");
    }
}

#[test]
fn a_server_that_only_says_why_it_ends_has_ended() {
    let stream = answered(Wire::OpenaiChat, &[Says::Text("All.".into())], true).replace("data: [DONE]\n\n", "");
    let reply = read(Wire::Anthropic, &told(Wire::OpenaiChat, Wire::Anthropic, &stream, 5).0);
    assert_eq!((reply.entry.status, reply.stop), (Status::Sent, Some(Stop::End)));
}

#[test]
fn calls_whose_names_come_late_are_told_when_they_are_known() {
    let chunk = |calls: Value| {
        format!("data: {}\n\n", json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"tool_calls": calls}}]}))
    };
    let stream = [
        chunk(json!([{"index": 0, "id": "a", "function": {"arguments": "{\"x\""}}])),
        chunk(json!([{"index": 0, "function": {"name": "look", "arguments": ":1}"}}])),
        chunk(json!([{"index": 0, "id": "b", "function": {"name": "look", "arguments": "{}"}}])),
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})),
    ];
    let reply = read(Wire::Anthropic, &told(Wire::OpenaiChat, Wire::Anthropic, &stream.concat(), 3).0);
    let calls: Vec<_> =
        reply.entry.calls().map(|call| (call.id.as_str(), &*call.name, call.arguments.as_str())).collect();
    assert_eq!(calls, [("a", "look", "{\"x\":1}"), ("b", "look", "{}")]);
    assert_eq!(reply.stop, Some(Stop::Calls), "whatever word the server has for it");
    // What goes on after it was closed can't be told, and is no call with half its arguments.
    let stream = [&stream[..3], &[chunk(json!([{"index": 0, "id": "a", "function": {"arguments": " "}}]))]].concat();
    let mut across = Across::new(Wire::OpenaiChat, Wire::Anthropic, TELLING, []).unwrap();
    assert!(across.push(stream.concat().as_bytes()).is_err());
}

#[test]
fn a_tool_is_called_by_the_name_that_its_client_gave_it() {
    let name = "7-up, a tool whose name no provider takes as it is";
    let known = recto::wire::tool_name(name).into_owned();
    let body = answered(Wire::Anthropic, &[Says::Call("{}".into())], false).replace("read_file", &known);
    let mut across = Across::new(Wire::Anthropic, Wire::OpenaiChat, TELLING, ["other", name]).unwrap();
    let given = across.named(Wire::Anthropic.decode_reply(&body).unwrap());
    assert!(given.entry.calls().all(|call| &*call.name == name));
    let body: Value = serde_json::from_slice(&across.whole(&given)).unwrap();
    assert_eq!(body["choices"][0]["message"]["tool_calls"][0]["function"]["name"], name);
    let stream = answered(Wire::Anthropic, &[Says::Call("{}".into())], true).replace("read_file", &known);
    let told = String::from_utf8(across.push(stream.as_bytes()).unwrap()).unwrap();
    assert!(told.contains(name) && !told.contains(&known));
}

#[test]
fn an_error_says_the_same_in_the_other_format() {
    let told = |to: Wire, status: u16, body: Value| -> Value {
        serde_json::from_slice(&refusal(to, status, &body.to_string())).unwrap()
    };
    let anthropic = |kind: &str, text: &str| json!({"type": "error", "error": {"type": kind, "message": text}});
    let openai = |kind: &str, text: &str, code: Value| json!({"error": {"message": text, "type": kind, "param": null, "code": code}});
    let chat = |status, body| told(Wire::OpenaiChat, status, body);
    let messages = |status, body| told(Wire::Anthropic, status, body);
    assert_eq!(
        chat(429, anthropic("rate_limit_error", "Slow down.")),
        openai("rate_limit_error", "Slow down.", json!("rate_limit_error"))
    );
    assert_eq!(
        chat(529, anthropic("overloaded_error", "Overloaded")),
        openai("server_error", "Overloaded", json!("overloaded_error"))
    );
    assert_eq!(
        chat(400, anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")),
        openai("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", json!("context_length_exceeded"))
    );
    assert_eq!(
        messages(400, openai("invalid_request_error", "Too many tokens.", json!("context_length_exceeded"))),
        anthropic("invalid_request_error", "prompt is too long: Too many tokens.")
    );
    assert_eq!(messages(503, openai("server_error", "Busy.", Value::Null)), anthropic("api_error", "Busy."));
    assert_eq!(messages(500, json!({"error": "no model"})), anthropic("api_error", "no model"));
    let odd: Value = serde_json::from_slice(&refusal(Wire::Anthropic, 502, "<html>")).unwrap();
    assert_eq!(odd, anthropic("api_error", "<html>"));
    let nothing: Value = serde_json::from_slice(&refusal(Wire::Anthropic, 404, "")).unwrap();
    assert_eq!(nothing["error"]["type"], "not_found_error");
}

#[test]
fn a_wire_that_is_not_carried_over_says_what_to_do() {
    for wire in [Wire::Gemini, Wire::Ollama] {
        for (from, to) in [(wire, Wire::OpenaiChat), (Wire::Anthropic, wire)] {
            let error = Across::new(from, to, TELLING, []).unwrap_err();
            assert!(error.to_string().contains(wire.name()), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("openai_chat")), "{error:?}");
        }
    }
}
