//! Several rounds of a provider are one response for the client: nothing of the hidden tool is in it, everything else
//! is, and where the tool is not called no byte is changed.

mod check;
mod odd;

use proptest::collection::vec;
use proptest::prelude::*;
use recto::Part;
use recto::entry::{Call, Status};
use recto::wire::hidden::{Hiding, Round};
use recto::wire::{Reply, Stop, Wire, sse};
use recto_testkit::fake::{self, Incoming, Provider, Settings};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The tool whose calls are hidden.
const TOOL: &str = "recto_expand";

/// One thing that a model says in a round.
#[derive(Clone, Debug)]
enum Said {
    Thought(String),
    Text(String),
    Ours(String),
    Theirs(String),
}

/// How the last round ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Last {
    Plain,
    Calls,
    Mixed,
    GivenUp,
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{1,40}", ".{1,20}"]
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![words().prop_map(Said::Thought), words().prop_map(Said::Text)]
}

fn ours() -> impl Strategy<Value = Said> {
    words().prop_map(|text| Said::Ours(json!({"of": text, "at": 1}).to_string()))
}

fn theirs() -> impl Strategy<Value = Said> {
    words().prop_map(|text| Said::Theirs(json!({"path": text}).to_string()))
}

/// A round in which some things are said, in any order.
fn round(calls: impl Strategy<Value = Vec<Said>>) -> impl Strategy<Value = Vec<Said>> {
    (vec(said(), 0..4), calls).prop_flat_map(|(mut all, calls)| {
        all.extend(calls);
        Just(all).prop_shuffle()
    })
}

fn called() -> impl Strategy<Value = Vec<Said>> {
    round(vec(ours(), 1..3))
}

fn last() -> impl Strategy<Value = (Last, Vec<Said>)> {
    let mixed = (vec(ours(), 1..3), vec(theirs(), 1..3)).prop_map(|(ours, theirs)| [ours, theirs].concat());
    prop_oneof![
        vec(said(), 1..4).prop_map(|round| (Last::Plain, round)),
        round(vec(theirs(), 1..3)).prop_map(|round| (Last::Calls, round)),
        round(mixed).prop_map(|round| (Last::Mixed, round)),
        called().prop_map(|round| (Last::GivenUp, round)),
    ]
}

/// Rounds of a response, and how the last of them ends.
fn rounds() -> impl Strategy<Value = (Last, Vec<Vec<Said>>)> {
    (vec(called(), 0..3), last()).prop_map(|(mut rounds, (last, round))| {
        rounds.push(round);
        (last, rounds)
    })
}

fn wires() -> impl Strategy<Value = Wire> {
    prop_oneof![Just(Wire::OpenaiChat), Just(Wire::OpenaiResponses), Just(Wire::Anthropic)]
}

/// A provider that caches whatever it is told.
fn provider() -> Provider {
    Provider::new(Settings { cache_minimum: Some(1), ..Settings::default() })
}

fn reply(round: &[Said]) -> fake::Reply {
    round.iter().fold(fake::Reply::default(), |reply, said| match said {
        Said::Thought(text) => reply.thinking(text),
        Said::Text(text) => reply.text(text),
        Said::Ours(arguments) => reply.call(TOOL, arguments),
        Said::Theirs(arguments) => reply.call("read_file", arguments),
    })
}

/// Asks a provider for a round.
fn asked(wire: Wire, provider: &mut Provider, reply: fake::Reply, streams: bool) -> String {
    let text = "Look at all of this. ".repeat(40);
    let (path, body) = match wire {
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
    let mut body = body;
    if wire == Wire::OpenaiChat && streams {
        body["stream_options"] = json!({"include_usage": true});
    }
    provider.push(reply);
    let answer = provider.answer(&Incoming::post(path, &body));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

/// What came of the rounds of one request.
#[derive(Debug)]
struct Shown {
    /// What the client got.
    client: String,
    /// What the provider said in each round.
    rounds: Vec<Reply>,
    /// What the provider sent, all rounds one after the other.
    sent: String,
    /// The calls that were handed out in each round.
    calls: Vec<Vec<Call>>,
    /// What each round has used, as the provider told it.
    usages: Vec<Value>,
    /// Whether the last round was the client's as well.
    is_mixed: bool,
}

/// Goes through the rounds as a host does.
fn shown(wire: Wire, rounds: &[Vec<Said>], size: Option<usize>) -> Shown {
    let (mut provider, mut hiding, mut client) = (provider(), Hiding::new(wire, TOOL), Vec::new());
    let mut shown = Shown {
        client: String::new(),
        rounds: Vec::new(),
        sent: String::new(),
        calls: Vec::new(),
        usages: Vec::new(),
        is_mixed: false,
    };
    for (at, round) in rounds.iter().enumerate() {
        let text = asked(wire, &mut provider, reply(round), size.is_some());
        shown.sent += &text;
        let came_to = match size {
            Some(size) => {
                shown.rounds.push(streamed(wire, &text));
                text.as_bytes().chunks(size).for_each(|piece| client.extend(hiding.push(piece).unwrap()));
                hiding.round()
            }
            None => {
                shown.rounds.push(wire.decode_reply(&text).unwrap());
                hiding.whole(text.as_bytes()).unwrap()
            }
        };
        let (bytes, calls) = match came_to {
            Round::Ended { bytes } => (bytes, Vec::new()),
            Round::Mixed { bytes, calls } => {
                shown.is_mixed = true;
                (bytes, calls)
            }
            Round::Called { calls } if at + 1 == rounds.len() => (hiding.give_up(), calls),
            Round::Called { calls } => (Vec::new(), calls),
        };
        client.extend(bytes);
        shown.calls.push(calls);
    }
    shown.usages = provider.log().iter().map(|exchange| exchange.usage.clone()).collect();
    shown.client = String::from_utf8(client).unwrap();
    shown
}

fn streamed(wire: Wire, text: &str) -> Reply {
    let (mut reader, mut stream) = (sse::Reader::default(), wire.stream());
    for event in reader.push(text.as_bytes()).unwrap() {
        stream.event(&event.data).unwrap();
    }
    stream.finish().unwrap()
}

/// What the client should have been told: all that was said, without the hidden calls.
fn expected(wire: Wire, rounds: &[Reply]) -> Vec<Part> {
    let is_ours = |part: &&Part| matches!(part, Part::Call(call) if &*call.name == TOOL);
    let parts = rounds.iter().flat_map(|reply| reply.entry.parts.iter()).filter(|part| !is_ours(part));
    if wire != Wire::OpenaiChat {
        return parts.cloned().collect();
    }
    // A message of this wire has one text.
    let (mut text, mut others) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text { text: more } => text.push_str(more),
            other => others.push(other.clone()),
        }
    }
    let text = (!text.is_empty()).then(|| Part::text(text));
    text.into_iter().chain(others).collect()
}

/// Every number in a value, by its place.
fn numbers(value: &Value, at: &str, all: &mut BTreeMap<String, u64>) {
    match value {
        Value::Number(number) => *all.entry(at.into()).or_default() += number.as_u64().unwrap(),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| numbers(value, &format!("{at}.{name}"), all)),
        _ => {}
    }
}

/// The usage that a client is left with.
fn usage_heard(wire: Wire, shown: &Shown, streams: bool) -> Value {
    let values: Vec<Value> = match streams {
        true => sse::Reader::default()
            .push(shown.client.as_bytes())
            .unwrap()
            .iter()
            .filter_map(|event| serde_json::from_str(&event.data).ok())
            .collect(),
        false => vec![serde_json::from_str(&shown.client).unwrap()],
    };
    let place = if wire == Wire::OpenaiResponses && streams { "/response/usage" } else { "/usage" };
    values.iter().rev().filter_map(|value| value.pointer(place)).find(|usage| usage.is_object()).unwrap().clone()
}

/// Checks what the client heard against what the provider said.
fn holds(wire: Wire, last: Last, shown: &Shown, heard: &Reply, streams: bool) {
    assert_eq!(heard.entry.parts.to_vec(), expected(wire, &shown.rounds), "{wire}: {}", shown.client);
    assert_eq!(heard.entry.status, Status::Sent);
    assert_eq!(heard.id, shown.rounds[0].id);
    let stop = match last {
        Last::Plain | Last::GivenUp => Stop::End,
        Last::Calls | Last::Mixed => Stop::Calls,
    };
    assert_eq!(heard.stop, Some(stop), "{wire}: {}", shown.client);
    assert_eq!(shown.is_mixed, last == Last::Mixed);
    assert!(!shown.client.contains(TOOL), "{}", shown.client);
    for (round, calls) in shown.rounds.iter().zip(&shown.calls) {
        let ours: Vec<&Call> = round.entry.calls().filter(|call| &*call.name == TOOL).collect();
        assert_eq!(calls.iter().collect::<Vec<_>>(), ours);
        assert!(ours.iter().all(|call| !shown.client.contains(call.id.as_str())));
    }
    let (mut sum, mut told) = (BTreeMap::new(), BTreeMap::new());
    shown.usages.iter().for_each(|usage| numbers(usage, "", &mut sum));
    numbers(&usage_heard(wire, shown, streams), "", &mut told);
    assert_eq!(told, sum, "{wire}: {}", shown.client);
}

/// Says what a check of a stream finds.
fn found(wire: Wire, text: &str) -> String {
    check::stream(wire, text).err().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_tells_all_rounds_as_one_without_the_hidden_calls(
        wire in wires(), (last, rounds) in rounds(), size in 1..300_usize
    ) {
        let shown = shown(wire, &rounds, Some(size));
        prop_assert_eq!(found(wire, &shown.client), "", "{}", shown.client);
        holds(wire, last, &shown, &streamed(wire, &shown.client), true);
        // The same rounds, not hidden, are no one response.
        if rounds.len() > 1 {
            prop_assert_ne!(found(wire, &shown.sent), "", "{}", shown.sent);
        }
    }

    #[test]
    fn whole_bodies_are_merged_to_what_a_stream_tells(wire in wires(), (last, rounds) in rounds()) {
        let whole = shown(wire, &rounds, None);
        holds(wire, last, &whole, &wire.decode_reply(&whole.client).unwrap(), false);
    }

    #[test]
    fn how_a_stream_is_cut_changes_nothing(wire in wires(), (_, rounds) in rounds(), size in 1..300_usize) {
        prop_assert_eq!(shown(wire, &rounds, Some(size)).client, shown(wire, &rounds, Some(usize::MAX)).client);
    }

    #[test]
    fn no_byte_is_changed_where_the_tool_is_not_called(
        wire in wires(), round in round(vec(theirs(), 0..3)), size in 1..300_usize, odd in 0..4_usize
    ) {
        let mut text = asked(wire, &mut provider(), reply(&round), true);
        match odd {
            0 => text = text.replace('\n', "\r\n"),
            1 => text = format!(": hello\n\n\n{}", text.replace("data: ", "data:").replace("\n\n", "\n\n: still here\n\n")),
            2 => text = text.replacen("\n\n", "\n\ndata: {\"no json\n\ndata:\n\n", 1),
            _ => {}
        }
        // Wherever it breaks off.
        for end in [text.len(), text.len() - 1, text.len() / 2, size.min(text.len())] {
            let end = (0..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap();
            let (mut hiding, mut client) = (Hiding::new(wire, TOOL), Vec::new());
            text.as_bytes()[..end].chunks(size).for_each(|piece| client.extend(hiding.push(piece).unwrap()));
            let Round::Ended { bytes } = hiding.round() else { panic!("nobody was called") };
            client.extend(bytes);
            prop_assert_eq!(String::from_utf8_lossy(&client), &text[..end]);
        }
        let body = asked(wire, &mut provider(), reply(&round), false).replace(":", " :  ");
        let came_to = Hiding::new(wire, TOOL).whole(body.as_bytes()).unwrap();
        prop_assert_eq!(came_to, Round::Ended { bytes: body.into_bytes() });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_rounds_are_survived(
        wire in wires(), (_, rounds) in rounds(), damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)
    ) {
        let (mut provider, mut hiding) = (provider(), Hiding::new(wire, TOOL));
        for streams in [true, false] {
            for round in &rounds {
                let mut bytes = asked(wire, &mut provider, reply(round), streams).into_bytes();
                for (at, byte) in &damage {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
                let came_to = match streams {
                    true => hiding.push(&bytes).map(|_| hiding.round()),
                    false => hiding.whole(&bytes),
                };
                if let Ok(Round::Called { calls }) = came_to {
                    prop_assert!(!calls.is_empty());
                }
            }
            hiding.give_up();
        }
    }
}

#[test]
fn text_goes_on_as_soon_as_it_comes_and_so_does_the_end() {
    let round = |calls: bool| {
        let round = vec![Said::Thought("hm".into()), Said::Text("one and two and three".into())];
        [round, if calls { vec![Said::Ours("{\"a\": 1}".into())] } else { vec![Said::Theirs("{}".into())] }].concat()
    };
    for wire in Wire::CLIENTS {
        let (mut provider, mut hiding) = (provider(), Hiding::new(wire, TOOL));
        for calls in [true, false] {
            let text = asked(wire, &mut provider, reply(&round(calls)), true);
            for event in text.split_inclusive("\n\n") {
                let client = String::from_utf8(hiding.push(event.as_bytes()).unwrap()).unwrap();
                let is_said = ["_delta", "text.delta", "\"content\":\"o"].iter().any(|kind| event.contains(kind));
                let is_hidden = calls && ["input_json", "\"tool_use\""].iter().any(|kind| event.contains(kind));
                if is_said && !is_hidden {
                    assert!(!client.is_empty(), "{wire} holds back {event}");
                }
                let is_last = ["[DONE]", "message_stop", "response.completed"].iter().any(|it| event.contains(it));
                assert!(!is_last || client.is_empty() == calls, "{wire} at {event}: {client}");
            }
            assert_eq!(matches!(hiding.round(), Round::Called { .. }), calls, "{wire}");
        }
    }
}

#[test]
fn a_round_that_could_not_be_had_ends_the_stream_with_an_error() {
    for wire in Wire::CLIENTS {
        let (mut provider, mut hiding) = (provider(), Hiding::new(wire, TOOL));
        let text = asked(wire, &mut provider, fake::Reply::default().text("I look.").call(TOOL, "{}"), true);
        let mut client = hiding.push(text.as_bytes()).unwrap();
        assert!(matches!(hiding.round(), Round::Called { .. }));
        client.extend(hiding.fail("nobody \"answers\""));
        let heard = streamed(wire, &String::from_utf8(client).unwrap());
        assert_eq!(heard.entry.status, Status::Error, "{wire}");
        assert!(heard.entry.meta["error"].as_str().unwrap().contains("nobody \"answers\""), "{wire}");
        assert_eq!(*heard.entry.parts, [Part::text("I look.")], "{wire}");
    }
}

#[test]
fn an_answer_that_was_cut_short_has_ended_whatever_it_calls() {
    for (wire, reason) in
        [(Wire::OpenaiChat, "length"), (Wire::OpenaiResponses, "max_output_tokens"), (Wire::Anthropic, "max_tokens")]
    {
        for streams in [true, false] {
            let reply = fake::Reply::default().text("I look.").call(TOOL, "{}").stopped(reason);
            let text = asked(wire, &mut provider(), reply, streams);
            let mut hiding = Hiding::new(wire, TOOL);
            let mut client = Vec::new();
            let came_to = match streams {
                true => {
                    client.extend(hiding.push(text.as_bytes()).unwrap());
                    hiding.round()
                }
                false => hiding.whole(text.as_bytes()).unwrap(),
            };
            let Round::Ended { bytes } = came_to else { panic!("{wire}: {came_to:?}") };
            client.extend(bytes);
            let client = String::from_utf8(client).unwrap();
            let heard = if streams { streamed(wire, &client) } else { wire.decode_reply(&client).unwrap() };
            assert_eq!(
                (heard.stop, heard.entry.parts.to_vec()),
                (Some(Stop::Length), vec![Part::text("I look.")]),
                "{wire}"
            );
            assert!(!client.contains(TOOL));
        }
    }
}

#[test]
fn the_check_of_streams_finds_what_hiding_prevents() {
    for (wire, what) in [
        (Wire::OpenaiChat, "calls are numbered from 0 without gaps"),
        (Wire::OpenaiResponses, "events are numbered from 0 without gaps"),
        (Wire::Anthropic, "blocks are numbered from 0 without gaps"),
    ] {
        let reply = fake::Reply::default().call(TOOL, "{}").text("So.").call("read_file", "{}");
        let text = asked(wire, &mut provider(), reply, true);
        assert_eq!(found(wire, &text), "");
        // Taken out, and nothing numbered anew.
        let is_ours = |event: &&str| match wire {
            Wire::OpenaiChat => event.contains(TOOL) || event.contains("\"index\":0}]}"),
            Wire::OpenaiResponses => event.contains("\"output_index\":0"),
            Wire::Anthropic => event.contains("\"index\":0"),
            Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in {wire}"),
        };
        let left: String = text.split_inclusive("\n\n").filter(|event| !is_ours(event)).collect();
        assert_ne!(left, text);
        assert_eq!(found(wire, &left), what, "{left}");
    }
}
