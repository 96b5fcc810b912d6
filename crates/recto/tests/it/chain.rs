//! What was said is known again however a client spells it, and anything else is not.

mod respell;

use recto::chain::{Chain, atoms};
use recto::digest::Digest;
use recto::entry::{Arguments, Call, Part, Piece, Role};
use recto::tool::Tools;
use recto::wire::{ndjson, sse};
use recto::{Entry, Log, Policy, Reader, Request, Target, Tokenizer, Wire, compile_once};
use recto_testkit::fake::{self, Incoming, Provider, Settings};
use recto_testkit::mixed::{self, Dice};
use respell::respelled;
use serde_json::{Value, json};

/// How many bodies of each wire are made.
const BODIES: u64 = 300;

pub(super) fn model(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat => "gpt-4o",
        Wire::OpenaiResponses => "gpt-6-sol",
        Wire::Anthropic => "claude-opus-5-5",
        Wire::Gemini => "gemini-3.1-pro-preview",
        Wire::Ollama => "qwen3",
    }
}

pub(super) fn target(wire: Wire) -> Target {
    Target::named(model(wire)).unwrap_or_else(|| mixed::at_home(model(wire))).with_window(None)
}

/// The events of a streamed answer, or its lines, however its bytes are cut.
pub(super) fn events<'b>(wire: Wire, pieces: impl Iterator<Item = &'b [u8]>) -> Vec<String> {
    let (mut events, mut lines) = (sse::Reader::default(), ndjson::Reader::default());
    let mut all = Vec::new();
    for bytes in pieces {
        match wire {
            Wire::Ollama => all.extend(lines.push(bytes).unwrap()),
            _ => all.extend(events.push(bytes).unwrap().into_iter().map(|event| event.data)),
        }
    }
    all.extend(lines.finish());
    all
}

pub(super) fn list(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiResponses => "input",
        Wire::Gemini => "contents",
        Wire::OpenaiChat | Wire::Anthropic | Wire::Ollama => "messages",
    }
}

/// The body of these entries, as a client might write it.
pub(super) fn written(wire: Wire, entries: impl IntoIterator<Item = Entry>, tools: Option<&Tools>) -> String {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    let (reader, policy, target) = (Reader::new("main"), Policy::none(), target(wire));
    let page = compile_once(&Request { tools, ..Request::new(&log, &reader, &policy, &target) }).unwrap().page;
    String::from_utf8(wire.encode(&page, &target)).unwrap()
}

/// A body of a conversation as odd as they come.
pub(super) fn odd(wire: Wire, dice: &mut Dice) -> String {
    let length = 2 + dice.below(12);
    let entries = mixed::conversation(dice, length);
    let tools = Tools::counted(mixed::tools(dice), &Tokenizer::Chars4);
    let tools = Some(&tools).filter(|tools| !tools.list().is_empty());
    written(wire, entries.into_iter().chain([Entry::user("so?")]), tools)
}

/// The entries of a body, found by its outline and read in two parts.
pub(super) fn read(wire: Wire, body: &str, at: usize) -> Vec<Entry> {
    let outline = wire.outline(body).unwrap_or_else(|error| panic!("{error}\n{body}"));
    let beside = outline.instructions.map(|raw| wire.read_instructions(raw).unwrap().entries);
    let (model, at) = (outline.model.as_deref(), at.min(outline.elements.len()));
    let first = wire.read_elements(&outline.elements[..at], model).unwrap_or_else(|error| panic!("{error}\n{body}"));
    let rest = outline.read_from(at).unwrap_or_else(|error| panic!("{error}\n{body}"));
    beside.into_iter().flatten().chain(first.entries).chain(rest.entries).collect()
}

pub(super) fn said(entries: &[Entry]) -> Vec<Digest> {
    entries.iter().flat_map(atoms).collect()
}

fn chain(entries: &[Entry]) -> Chain {
    entries.iter().flat_map(atoms).fold(Chain::default(), Chain::then)
}

#[test]
fn a_body_that_is_spelled_anew_says_the_same() {
    for wire in Wire::ALL {
        let mut respelled_bodies = 0;
        for seed in 0..BODIES {
            let mut dice = Dice::new(seed);
            let body = odd(wire, &mut dice);
            let entries = read(wire, &body, dice.below(20));
            let again = respelled(wire, &body, &mut dice);
            let other = read(wire, &again, dice.below(20));
            assert_eq!(said(&entries), said(&other), "{wire}, seed {seed}:\n{body}\n{again}\n{entries:#?}\n{other:#?}");
            assert!(!said(&entries).is_empty());
            respelled_bodies += usize::from(entries != other);
        }
        assert!(respelled_bodies > 200, "{wire}: only {respelled_bodies} bodies were spelled otherwise");
    }
}

/// Changes one thing that a model would read; `None` if the dice fell on something that it would not.
fn changed(entries: &[Entry], dice: &mut Dice) -> Option<(&'static str, Vec<Entry>)> {
    let mut entries = entries.to_vec();
    let at = dice.below(entries.len());
    if dice.chance(15) {
        let next = entries.get(at + 1)?;
        if said(&entries[at..=at]).is_empty() || said(&entries[at..=at]) == said(std::slice::from_ref(next)) {
            return None;
        }
        let is_blank = said(std::slice::from_ref(next)).is_empty();
        entries.swap(at, at + 1);
        return (!is_blank).then_some(("order", entries));
    }
    if said(&entries[at..=at]).is_empty() {
        return None;
    }
    if dice.chance(15) {
        entries.remove(at);
        return Some(("missing", entries));
    }
    let entry = &mut entries[at];
    let mut parts = entry.parts.to_vec();
    if dice.chance(15) && entry.role != Role::Tool && !parts.iter().all(|part| matches!(part, Part::Opaque { .. })) {
        entry.role = if entry.role == Role::User { Role::Assistant } else { Role::User };
        return Some(("role", entries));
    }
    let nth = dice.below(parts.len());
    let what = match &mut parts[nth] {
        Part::Text { text } if !text.trim().is_empty() => {
            *text = format!("{text}.").into();
            "text"
        }
        Part::Call(call) => change_call(call, dice),
        Part::Result(result) => match dice.below(3) {
            0 => {
                result.is_error = !result.is_error;
                "result's failure"
            }
            1 => {
                result.call = format!("{}x", result.call).into();
                "result's call"
            }
            _ => {
                result.content.push(Piece::Text { text: "more".into() });
                "result's text"
            }
        },
        Part::Image(media) | Part::Audio(media) | Part::Document(media) => {
            media.url = format!("{}A", media.url).into();
            "media"
        }
        Part::File { id } => {
            *id = format!("{id}x").into();
            "file"
        }
        _ => return None,
    };
    entry.parts = parts.into();
    Some((what, entries))
}

fn change_call(call: &mut Call, dice: &mut Dice) -> &'static str {
    match dice.below(3) {
        0 => {
            call.name = format!("{}x", call.name).into();
            "call's name"
        }
        1 => {
            call.id = format!("{}x", call.id).into();
            "call's id"
        }
        _ => {
            call.arguments = match call.arguments.as_str().strip_prefix('{') {
                Some(rest) if rest.trim() == "}" => Arguments::Object(r#"{"more":null}"#.into()),
                Some(rest) => Arguments::String(format!(r#"{{"more":1,{rest}"#).into()),
                None => Arguments::String(format!("{} more", call.arguments.as_str()).into()),
            };
            "call's arguments"
        }
    }
}

#[test]
fn whatever_else_is_said_is_another_chain() {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for wire in Wire::ALL {
        for seed in 0..BODIES {
            let mut dice = Dice::new(seed + 7_000);
            let body = odd(wire, &mut dice);
            let entries = read(wire, &body, 0);
            for _ in 0..8 {
                let Some((what, other)) = changed(&entries, &mut dice) else { continue };
                assert_ne!(chain(&entries), chain(&other), "{wire}, seed {seed}, {what}:\n{entries:#?}\n{other:#?}");
                *counts.entry(what).or_default() += 1;
            }
        }
    }
    assert!(counts.len() == 12 && counts.values().all(|count| *count > 5), "{counts:?}");
}

fn elements(wire: Wire, elements: &Value) -> Vec<Digest> {
    said(&read(wire, &json!({list(wire): elements}).to_string(), 0))
}

/// Every spelling in a row says the same, and no row says what another does.
fn rows(wire: Wire, rows: &[&[Value]]) {
    let mut seen: Vec<(Vec<Digest>, &Value)> = Vec::new();
    for row in rows {
        let first = elements(wire, &row[0]);
        row.iter().for_each(|other| assert_eq!(first, elements(wire, other), "{wire}: {} and {other}", row[0]));
        let twin = seen.iter().find(|(said, _)| *said == first);
        assert!(twin.is_none(), "{wire}: {} and {}", row[0], twin.unwrap().1);
        seen.push((first, &row[0]));
    }
}

#[test]
fn chat_messages_are_told_apart_by_what_they_say() {
    let call = |arguments: Value| {
        json!([{"role": "assistant", "tool_calls": [{"id": "a", "type": "function",
            "function": {"name": "look", "arguments": arguments}}]}])
    };
    let custom = |input: &str| {
        json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "custom",
            "custom": {"name": "look", "input": input}}]}])
    };
    let result = |rest: Value| {
        let mut message = json!({"role": "tool", "tool_call_id": "a"});
        message.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!([message])
    };
    rows(
        Wire::OpenaiChat,
        &[
            &[json!([]), json!([{"role": "user", "content": " \n"}]), json!([{"role": "assistant", "content": null}])],
            &[
                json!([{"role": "system", "content": "a"}]),
                json!([{"role": "developer", "content": [{"type": "text", "text": "a"}]}]),
            ],
            &[json!([{"role": "user", "content": "a"}]), json!([{"role": "user", "content": "a", "name": "ann"}])],
            &[
                json!([{"role": "assistant", "content": "a"}]),
                json!([{"role": "assistant", "content": "a", "refusal": null,
                "annotations": [], "audio": null, "reasoning_content": "hm"}]),
            ],
            &[
                json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]),
                json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]),
            ],
            &[call(json!("")), call(json!("{}")), call(json!({})), call(Value::Null), call(json!(" { } "))],
            &[
                call(json!(r#"{"a":1,"b":2e1}"#)),
                call(json!(r#"{ "b": 20, "a": 1.0 }"#)),
                call(json!({"a": 1, "b": 20})),
            ],
            &[call(json!(r#"{"a":1,"b":[]}"#))],
            &[call(json!(r#"{"a":"1"}"#))],
            &[call(json!(r#"{"a":"\ud800é"}"#)), call(json!(r#"{"a":"\uDBFF\u00e9"}"#))],
            &[call(json!("not JSON")), custom("not JSON"), custom("not JSON\n")],
            &[result(json!({})), result(json!({"content": ""})), result(json!({"is_error": false, "content": []}))],
            &[result(json!({"content": "a"})), result(json!({"content": [{"type": "text", "text": "a"}]}))],
            &[result(json!({"content": "a", "is_error": true}))],
            &[
                json!([{"role": "assistant", "content": null, "refusal": "no"}]),
                json!([{"role": "assistant",
                "content": [{"refusal": "no", "type": "refusal"}]}]),
            ],
        ],
    );
}

#[test]
fn items_are_told_apart_by_what_they_say() {
    let output = |kind: &str, output: Value| json!([{"type": kind, "call_id": "a", "output": output}]);
    let file = |data: &str| json!([{"type": "input_file", "filename": "a.pdf", "file_data": data}]);
    rows(
        Wire::OpenaiResponses,
        &[
            &[
                json!("a"),
                json!([{"role": "user", "content": "a"}]),
                json!([{"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "a"}], "id": "msg_1", "status": "completed"}]),
            ],
            &[
                json!([{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "q"}}]),
                json!([{"type": "web_search_call", "action": {"url": null, "query": "q"}}]),
                json!([{"type": "reasoning", "summary": [], "encrypted_content": "x"},
                    {"type": "web_search_call", "status": null, "id": "x", "action": {"query": "q"}}]),
            ],
            &[json!([{"type": "web_search_call", "action": {"query": "r"}}])],
            &[json!([{"type": "item_reference", "id": "msg_1"}])],
            &[json!([{"type": "item_reference", "id": "msg_2"}])],
            &[
                json!([{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"a\": 1}"}]),
                json!([{"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": {"a": 1.0}}]),
            ],
            &[
                output("function_call_output", json!("a")),
                output("custom_tool_call_output", json!([{"type": "input_text", "text": "a"}])),
            ],
            &[output("function_call_output", file("data:application/pdf;base64,AA=="))],
            &[output("function_call_output", file("data:application/pdf;base64,AB=="))],
            &[
                output(
                    "function_call_output",
                    json!([{"type": "input_image", "image_url": "https://example.org/a.png"}]),
                ),
                output(
                    "function_call_output",
                    json!([{"type": "input_image", "detail": "low",
                    "image_url": "https://example.org/a.png"}]),
                ),
            ],
            &[output("function_call_output", json!([{"type": "input_image", "file_id": "file-a"}]))],
            &[output("function_call_output", json!([{"type": "input_image", "file_id": "file-b"}]))],
        ],
    );
}

#[test]
fn blocks_are_told_apart_by_what_they_say() {
    let assistant = |blocks: Value| json!([{"role": "assistant", "content": blocks}]);
    let user = |blocks: Value| json!([{"role": "user", "content": blocks}]);
    let document = |data: &str| {
        json!([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "document", "title": "a.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": data}}]}])
    };
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}});
    let mut marked = search.clone();
    marked["cache_control"] = json!({"type": "ephemeral"});
    rows(
        Wire::Anthropic,
        &[
            &[
                assistant(json!("a")),
                assistant(json!([{"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "a", "citations": null}])),
            ],
            &[assistant(json!([search])), assistant(json!([marked]))],
            &[
                user(
                    json!([{"type": "tool_result", "tool_use_id": "a", "content": "x"}, {"type": "text", "text": "y"}]),
                ),
                json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": false,
                    "content": [{"type": "text", "text": "x"}]}]}, {"role": "user", "content": "y"}]),
            ],
            &[user(document("AA=="))],
            &[user(document("AB=="))],
            &[
                assistant(json!([{"type": "tool_use", "id": "a", "name": "f", "input": {"b": 1, "a": {}}}])),
                assistant(json!([{"type": "tool_use", "id": "a", "name": "f", "input": {"a": {}, "b": 1.0},
                    "caller": {"type": "direct"}}])),
            ],
        ],
    );
}

#[test]
fn a_session_is_found_by_those_alone_who_name_it() {
    let (one, other) = (chain(&[Entry::user("a")]), chain(&[Entry::user("b")]));
    let all = [one.digest(), one.marked("x"), one.marked("y"), one.marked(""), other.marked("x"), other.digest()];
    let different: std::collections::HashSet<Digest> = all.into_iter().collect();
    assert_eq!(different.len(), all.len());
    assert_eq!(one.marked("x"), chain(&[Entry::user(" a ")]).marked("x"));
    assert_eq!(Chain::default().digest(), chain(&[Entry::user("")]).digest());
}

/// What a client puts into its next request of a reply that it got.
fn sent_back(wire: Wire, reply: &Value) -> Vec<Value> {
    match wire {
        Wire::OpenaiChat => vec![reply["choices"][0]["message"].clone()],
        Wire::OpenaiResponses => reply["output"].as_array().unwrap().clone(),
        Wire::Anthropic => vec![json!({"role": "assistant", "content": reply["content"]})],
        Wire::Gemini => vec![reply["candidates"][0]["content"].clone()],
        Wire::Ollama => vec![reply["message"].clone()],
    }
}

fn asked(wire: Wire, provider: &mut Provider, body: &Value, reply: fake::Reply, streams: bool) -> String {
    let (api, mut body) = (fake::Api::of(wire), body.clone());
    api.ask_for(&mut body, streams);
    provider.push(reply);
    let answer = provider.answer(&Incoming::post(&api.path(model(wire), streams), &body));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

/// The reply as it was streamed.
fn streamed(wire: Wire, text: &str) -> Entry {
    let mut stream = wire.stream();
    for event in events(wire, [text.as_bytes()].into_iter()) {
        stream.event(&event).unwrap();
    }
    stream.finish().unwrap().entry
}

#[test]
fn a_reply_is_known_when_it_comes_back() {
    let replies = |turn: usize| match turn {
        0 => fake::Reply::default().thinking("hm").text("I look.").call("look", "{\"b\": 1.0, \"a\": [ ]}"),
        1 => fake::Reply::default().thinking("so").call("look", "{}").call("look", "{\"at\":\"\u{e4}\\n\"}"),
        2 => fake::Reply::default().refusal("No."),
        _ => fake::Reply::default().text("Done.\n"),
    };
    for wire in Wire::ALL {
        let (mut provider, mut other) = (Provider::new(Settings::default()), Provider::new(Settings::default()));
        let mut body: Value = serde_json::from_str(&written(wire, [Entry::user("Look.")], None)).unwrap();
        for turn in 0..4 {
            let whole = asked(wire, &mut provider, &body, replies(turn), false);
            let stream = streamed(wire, &asked(wire, &mut other, &body, replies(turn), true));
            let reply = wire.decode_reply(&whole).unwrap().entry;
            assert_eq!(said(std::slice::from_ref(&reply)), said(std::slice::from_ref(&stream)), "{wire}, turn {turn}");

            let mut so_far = read(wire, &body.to_string(), 0);
            so_far.push(reply.clone());
            let back = sent_back(wire, &serde_json::from_str(&whole).unwrap());
            let next = body[list(wire)].as_array_mut().unwrap();
            next.extend(back);
            let sent = read(wire, &body.to_string(), 1);
            assert_eq!(said(&sent), said(&so_far), "{wire}, turn {turn}: {body}");
            body[list(wire)].as_array_mut().unwrap().extend(answers(wire, &reply));
            let answered = said(&read(wire, &body.to_string(), 2));
            assert!(answered.starts_with(&said(&so_far)) && answered.len() > so_far.len(), "{wire}, turn {turn}");
        }
    }
}

/// What the user and the tools say to a reply.
fn answers(wire: Wire, reply: &Entry) -> Vec<Value> {
    let ids: Vec<&str> = reply.calls().map(|call| call.id.as_str()).collect();
    let result = |id: &&str| match wire {
        Wire::OpenaiChat => json!({"role": "tool", "tool_call_id": id, "content": "found"}),
        Wire::OpenaiResponses => json!({"type": "function_call_output", "call_id": id, "output": "found"}),
        Wire::Anthropic => json!({"type": "tool_result", "tool_use_id": id, "content": "found"}),
        Wire::Gemini => json!({"functionResponse": {"id": id, "name": "look", "response": {"output": "found"}}}),
        Wire::Ollama => json!({"role": "tool", "tool_name": "look", "tool_call_id": id, "content": "found"}),
    };
    let results: Vec<Value> = ids.iter().map(result).collect();
    match (wire, results.is_empty()) {
        (Wire::Gemini, true) => vec![json!({"role": "user", "parts": [{"text": "Go on."}]})],
        (Wire::Gemini, false) => vec![json!({"role": "user", "parts": results})],
        (_, true) => vec![json!({"role": "user", "content": "Go on."})],
        (Wire::Anthropic, false) => vec![json!({"role": "user", "content": results})],
        (_, false) => results,
    }
}

#[test]
fn what_a_provider_does_on_its_own_is_known_when_it_comes_back() {
    let reply = json!({"id": "resp_1", "status": "completed", "model": "gpt-6-sol", "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "shell_call", "id": "sh_1", "call_id": "c1", "status": "completed", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "id": "sho_1", "call_id": "c1", "output": [{"stdout": "a.txt"}]},
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "c2", "name": "patch", "input": "*** Begin\n"},
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "phase": "final",
            "content": [{"type": "output_text", "text": "Done.", "annotations": [], "logprobs": []}]}]});
    let entry = Wire::OpenaiResponses.decode_reply(&reply.to_string()).unwrap().entry;
    let back: Vec<Value> = sent_back(Wire::OpenaiResponses, &reply).into_iter().skip(1).collect();
    let stripped = |mut item: Value| {
        ["id", "status"].iter().for_each(|name| drop(item.as_object_mut().unwrap().remove(*name)));
        item
    };
    let stripped: Vec<Value> = back.iter().cloned().map(stripped).collect();
    assert_eq!(said(std::slice::from_ref(&entry)).len(), 5);
    assert_eq!(said(std::slice::from_ref(&entry)), elements(Wire::OpenaiResponses, &back.into()));
    assert_eq!(said(std::slice::from_ref(&entry)), elements(Wire::OpenaiResponses, &stripped.into()));
}
