//! The Chat Completions wire: what is written is read back, what the provider would refuse is found, and odd names
//! are mapped to accepted ones.

use expect_test::{Expect, expect};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use recto::entry::{Arguments, Call, Media, Piece, Reasoning, ToolResult};
use recto::page::Page;
use recto::target::Reasoned;
use recto::tool::Tools;
use recto::wire::{CALL_ID_MAX, TOOL_NAME_MAX, openai_chat};
use recto::{Entry, Log, Part, Policy, Reader, Request, Role, Target, Tokenizer, compile, compile_once};
use recto_testkit::story::story;
use recto_testkit::world::World;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashSet;

const STORIES: usize = 300;

/// The page of these entries, with nothing left out that the target takes.
fn page(entries: impl IntoIterator<Item = Entry>, target: &Target) -> Page {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    let (reader, policy) = (Reader::new("main"), Policy::none());
    compile(&Request::new(&log, &reader, &policy, target)).unwrap().page
}

fn target() -> Target {
    Target::eval().with_window(None)
}

fn body_of(page: &Page, target: &Target) -> String {
    String::from_utf8(openai_chat::encode(page, target)).unwrap()
}

#[test]
fn every_page_that_is_written_is_read_back_and_written_the_same() {
    let mut runner = TestRunner::deterministic();
    let mut seen = 0;
    for _ in 0..STORIES {
        let story = story(40).new_tree(&mut runner).unwrap().current();
        let world = World::new(&story);
        world.live(&story, |page, target| {
            same_again(page, target);
            seen += 1;
        });
    }
    assert!(seen > STORIES, "only {seen} pages were written");
}

fn same_again(written: &Page, target: &Target) {
    let body = body_of(written, target);
    let decoded = openai_chat::decode(&body).unwrap();
    assert_eq!(decoded.model.as_deref(), Some(&*target.name));
    let tools: Vec<_> = written.tools.as_ref().unwrap().list().iter().map(|tool| tool.json.clone()).collect();
    assert_eq!(decoded.tools, tools);
    assert!(decoded.extra.is_empty());
    let mut careful = target.clone().with_window(None);
    assert_eq!(rewritten(&body, &careful), body);
    // Servers that want more of a body get it once, and the same from then on.
    (careful.merges, careful.chat_tools) = (true, false);
    let once = rewritten(&body, &careful);
    assert_eq!(openai_chat::validate(once.as_bytes()), []);
    assert_eq!(rewritten(&once, &careful), once);
}

/// The body of what a body says.
fn rewritten(body: &str, target: &Target) -> String {
    let decoded = openai_chat::decode(body).unwrap();
    let again =
        Page { tools: Some(Tools::counted(decoded.tools, &Tokenizer::Chars4)), ..page(decoded.entries, target) };
    String::from_utf8(openai_chat::encode_with(&again, target, &decoded.extra)).unwrap()
}

/// A good body; every rule is broken by changing one thing of it.
fn good() -> Value {
    json!({
        "model": "gpt-4o",
        "tools": [{"type": "function", "function": {"name": "look"}}],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "messages": [
            {"role": "developer", "content": "be brief"},
            {"role": "system", "content": [{"type": "text", "text": "be kind"}]},
            {"role": "user", "content": [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "not JSON"}},
            ]},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "so"}, {"type": "refusal", "refusal": "no"}]},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "thanks"},
        ],
    })
}

fn found(body: &Value) -> String {
    let violations = openai_chat::validate(&serde_json::to_vec(body).unwrap());
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What is found when one thing of a good body, by its pointer, is put to another value.
fn broken(pointer: &str, value: Value) -> String {
    let mut body = good();
    *body.pointer_mut(pointer).unwrap() = value;
    found(&body)
}

fn without(pointer: &str, field: &str) -> String {
    let mut body = good();
    body.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field).unwrap();
    found(&body)
}

/// What is found when one message goes.
fn without_message(at: usize) -> String {
    let mut body = good();
    body["messages"].as_array_mut().unwrap().remove(at);
    found(&body)
}

#[test]
fn nothing_is_found_in_good_bodies() {
    assert_eq!(found(&good()), "");
    let plain = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(found(&plain), "");
    // No rules: roles in any order, an assistant first or last, the same id in another step.
    let call = json!({"role": "assistant", "content": "x", "tool_calls":
        [{"id": "a".repeat(40), "type": "function", "function": {"name": "n".repeat(64), "arguments": ""}}]});
    let result = json!({"role": "tool", "tool_call_id": "a".repeat(40), "content": ""});
    let odd = json!({"model": "m", "messages":
        [call, result, call, result, {"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}]});
    assert_eq!(found(&odd), "");
}

#[test]
fn every_broken_rule_of_a_body_is_found() {
    let name = |name: &str| broken("/tools/0/function/name", name.into());
    let lines = [
        openai_chat::validate(b"{\"model\": ").iter().map(ToString::to_string).collect(),
        without("", "model"),
        without("", "tools"),
        broken("/tools", json!([])),
        broken("/tools", Value::Array(vec![good()["tools"][0].clone(); 129])),
        name(""),
        name(&"n".repeat(65)),
        name("look up"),
        name("søg"),
        without("", "messages"),
        broken("/messages", json!([])),
    ];
    expect![[r#"
        body: not JSON: EOF while parsing a value at line 1 column 10
        model: missing
        tool_choice: given without tools; parallel_tool_calls: given without tools
        tools: empty array; leave it out
        tools: 129 tools, at most 128
        tools[0].function.name: "" does not match ^[a-zA-Z0-9_-]{1,64}$
        tools[0].function.name: "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" does not match ^[a-zA-Z0-9_-]{1,64}$
        tools[0].function.name: "look up" does not match ^[a-zA-Z0-9_-]{1,64}$
        tools[0].function.name: "søg" does not match ^[a-zA-Z0-9_-]{1,64}$
        messages: needs at least one message
        messages: needs at least one message"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn every_broken_rule_of_a_message_is_found() {
    let call = |field: &str, value: Value| broken(&format!("/messages/3/tool_calls/0/{field}"), value);
    let many = |text: &str| Value::Array(vec![json!({"type": text, "text": "x"})]);
    let lines = [
        broken("/messages/0/role", "function".into()),
        without("/messages/0", "role"),
        without_message(3),
        without_message(4),
        broken("/messages/8/role", "tool".into()),
        broken("/messages/5/tool_call_id", "b".into()),
        broken("/messages/4/role", "user".into()),
        broken("/messages/3/tool_calls", json!([])),
        broken("/messages/6/content", Value::Null),
        call("id", "".into()),
        call("id", "i".repeat(41).into()),
        call("function/name", "look up".into()),
        call("function/arguments", json!({})),
        broken("/messages/2/content", json!([])),
        broken("/messages/2/content", json!(7)),
        broken("/messages/2/content", Value::Null),
        broken("/messages/2/content/3/type", "video".into()),
        broken("/messages/6/content", many("image_url")),
        broken("/messages/1/content", many("image_url")),
        broken("/messages/5/content", many("image_url")),
        broken("/messages/5/content", Value::Null),
        broken("/messages/8/content", "x".repeat(10_485_761).into()),
    ];
    expect![[r#"
        messages[0]: unknown role "function"
        messages[0]: unknown role ""
        messages[3]: a tool message must follow a message with tool_calls; messages[4]: a tool message must follow a message with tool_calls
        messages[5]: tool call "b" has no response message directly after it
        messages[8]: a tool message must follow a message with tool_calls
        messages[5]: answers "b", which is not open; messages[6]: tool call "a" has no response message directly after it
        messages[4]: tool call "a" has no response message directly after it; messages[4]: tool call "b" has no response message directly after it; messages[5]: a tool message must follow a message with tool_calls
        messages[3].tool_calls: empty array; leave it out; messages[4]: a tool message must follow a message with tool_calls; messages[5]: a tool message must follow a message with tool_calls
        messages[6]: an assistant message needs content or tool_calls
        messages[3].tool_calls[0].id: "" must have 1 to 40 characters; messages[5]: answers "a", which is not open; messages[6]: tool call "" has no response message directly after it
        messages[3].tool_calls[0].id: "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii" must have 1 to 40 characters; messages[5]: answers "a", which is not open; messages[6]: tool call "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii" has no response message directly after it
        messages[3].tool_calls[0].function.name: "look up" does not match ^[a-zA-Z0-9_-]{1,64}$
        messages[3].tool_calls[0].function.arguments: must be a string
        messages[2].content: empty array
        messages[2].content: must be a string or an array of parts
        messages[2].content: must be a string or an array of parts
        messages[2].content[3]: user messages take no "video" part
        messages[6].content[0]: assistant messages take no "image_url" part; messages[6].content[0]: a "image_url" part without its content
        messages[1].content[0]: system messages take no "image_url" part; messages[1].content[0]: a "image_url" part without its content
        messages[5].content[0]: tool messages take no "image_url" part; messages[5].content[0]: a "image_url" part without its content
        messages[5].content: must be a string or an array of parts
        messages[8].content: longer than 10485760 characters"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn too_many_calls_in_one_message_are_found() {
    let ids: Vec<String> = (0..129).map(|at| format!("call-{at}")).collect();
    let calls = ids.iter().map(|id| json!({"id": id, "function": {"name": "look", "arguments": ""}}));
    let results = ids.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": ""}));
    let step = json!({"role": "assistant", "tool_calls": calls.collect::<Vec<_>>()});
    let messages: Vec<Value> = [step].into_iter().chain(results).collect();
    assert_eq!(found(&json!({"model": "m", "messages": messages})), "messages[0].tool_calls: 129 calls, at most 128");
}

/// The ids and names on the wire of a step that makes one call with each id, in order, and of their results.
fn mapped(ids: &[&str], name: &str) -> (Vec<String>, Vec<String>, String) {
    let step = Entry::step("", ids.iter().map(|id| Call::new(*id, name, "{}")));
    let results = ids.iter().map(|id| Entry::result(*id, "found"));
    let body = body_of(&page([Entry::user("look"), step].into_iter().chain(results), &target()), &target());
    assert_eq!(openai_chat::validate(body.as_bytes()), []);
    let body: Value = serde_json::from_str(&body).unwrap();
    let calls = body["messages"][1]["tool_calls"].as_array().unwrap();
    let called = calls.iter().map(|call| call["id"].as_str().unwrap().to_string()).collect();
    let results = body["messages"].as_array().unwrap()[2..].iter();
    let answered = results.map(|result| result["tool_call_id"].as_str().unwrap().to_string()).collect();
    (called, answered, calls[0]["function"]["name"].as_str().unwrap().to_string())
}

#[test]
fn odd_ids_are_mapped_to_accepted_and_distinct_ones_on_both_sides() {
    let long = "call".repeat(25);
    let (one, other) = (format!("{long}1"), format!("{long}2"));
    let ids = ["", &long, &one, &other, "två ö", "två å", "\n", "\t", "calls in 2024", "call_1", "日本", "日木"];
    let (called, answered, _) = mapped(&ids, "look");
    assert_eq!(called, answered);
    assert_eq!(called.iter().collect::<HashSet<_>>().len(), ids.len(), "{called:?}");
    assert!(called.iter().all(|id| (1..=CALL_ID_MAX).contains(&id.len()) && id.is_ascii()), "{called:?}");
    assert_eq!(called[9], "call_1", "an id that is accepted stays as it is");
    // The same id is mapped to the same name every time, also if it is the only one.
    assert_eq!(mapped(&[&one], "look").0, called[2..3]);
}

#[test]
fn odd_tool_names_are_mapped_to_accepted_and_distinct_ones() {
    let long = "name".repeat(25);
    let (one, other) = (format!("{long}1"), format!("{long}2"));
    let names = ["", &long, &one, &other, "look up", "look_up", "look.up", "søg", "sög", "read-file", "日本", "日木"];
    let on_wire: Vec<String> = names.iter().map(|name| mapped(&["a"], name).2).collect();
    assert_eq!(on_wire.iter().collect::<HashSet<_>>().len(), names.len(), "{on_wire:?}");
    let takes = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(on_wire.iter().all(|name| (1..=TOOL_NAME_MAX).contains(&name.len()) && name.chars().all(takes)));
    assert_eq!((&*on_wire[5], &*on_wire[9]), ("look_up", "read-file"));
}

#[test]
fn odd_authors_are_mapped_too() {
    let said = ["", "José", "a b", "ok"].map(|author| Entry { author: Some(author.into()), ..Entry::user("hi") });
    let body: Value = serde_json::from_str(&body_of(&page(said, &target()), &target())).unwrap();
    let names: Vec<&str> = body["messages"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!((names.iter().collect::<HashSet<_>>().len(), names[3]), (4, "ok"));
    assert!(names.iter().all(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')));
}

fn media(url: &str) -> Media {
    Media { url: url.into(), name: None, detail: None }
}

#[track_caller]
fn check(entries: Vec<Entry>, target: &Target, expected: Expect) {
    let body = body_of(&page(entries.clone(), target), target);
    assert_eq!(openai_chat::validate(body.as_bytes()), []);
    let messages = openai_chat::encode_messages(&page(entries, target));
    let messages: Vec<Box<RawValue>> = serde_json::from_slice(&messages).unwrap();
    let lines: Vec<&str> = messages.iter().map(|message| message.get()).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn pictures_recordings_and_files_are_written_as_the_provider_takes_them() {
    let parts = [
        Part::text("see"),
        Part::Image(media("https://example.org/a.png")),
        Part::Image(Media { detail: Some("low".into()), ..media("data:image/png;base64,AAAA") }),
        Part::Audio(media("data:audio/mp3;base64,BBBB")),
        Part::Document(Media { name: Some("a.pdf".into()), ..media("data:application/pdf;base64,CCCC") }),
        Part::Document(media("data:application/pdf;base64,DDDD")),
        Part::File { id: "file-1".into() },
        Part::text(""),
    ];
    check(
        vec![Entry::new(Role::User, parts.clone())],
        &target(),
        expect![[
            r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}},{"type":"input_audio","input_audio":{"data":"BBBB","format":"mp3"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,CCCC"}},{"type":"file","file":{"filename":"document","file_data":"data:application/pdf;base64,DDDD"}},{"type":"file","file":{"file_id":"file-1"}}]}"#
        ]],
    );
    let body = body_of(&page([Entry::new(Role::User, parts)], &target()), &target());
    let entries = openai_chat::decode(&body).unwrap().entries;
    assert_eq!(entries[0].parts.len(), 7);
    assert_eq!(body_of(&page(entries, &target()), &target()), body);
}

#[test]
fn what_a_message_may_not_hold_is_left_out_of_it() {
    let picture = || Part::Image(media("https://example.org/a.png"));
    let pieces = vec![Piece::Text { text: "see".into() }, Piece::Image(media("data:image/png;base64,AAAA"))];
    let result = ToolResult { call: "a".into(), content: pieces, is_error: false };
    let refusal = r#"{"type":"refusal","refusal":"no"}"#;
    let opaque = |provider: &str| Part::Opaque { provider: provider.into(), payload: refusal.into() };
    let thought = Part::Reasoning(Reasoning { text: "hm".into(), ..Reasoning::default() });
    let call = Call { arguments: Arguments::Object(r#"{"path": "a"}"#.into()), ..Call::new("a", "look", "") };
    let entries = || {
        vec![
            Entry::new(Role::System, [Part::text("be brief"), picture()]),
            Entry::new(Role::User, [Part::text("look"), Part::text("there")]),
            Entry::new(Role::Assistant, [thought.clone(), Part::Call(call.clone())]),
            Entry::new(Role::Tool, [Part::Result(result.clone())]),
            Entry::new(Role::Assistant, [opaque("openai"), opaque("another")]),
            Entry::new(Role::Assistant, [picture()]),
            Entry::user(""),
        ]
    };
    check(
        entries(),
        &target(),
        expect![[r#"
            {"role":"system","content":"be brief"}
            {"role":"user","content":[{"type":"text","text":"look"},{"type":"text","text":"there"}]}
            {"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"path\": \"a\"}"}}]}
            {"role":"tool","tool_call_id":"a","content":"see\n[image]"}
            {"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}"#]],
    );
    let mut silent = target();
    (silent.reasoning, silent.provider) = (Reasoned::Dropped, "another".into());
    check(
        entries().into_iter().take(3).collect(),
        &silent,
        expect![[r#"
            {"role":"system","content":"be brief"}
            {"role":"user","content":[{"type":"text","text":"look"},{"type":"text","text":"there"}]}
            {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"path\": \"a\"}"}}]}
            {"role":"tool","tool_call_id":"a","content":"[No result: this call was not answered.]"}"#]],
    );
}

#[test]
fn fields_that_have_no_place_are_kept() {
    let body = r#"{"model": "m", "temperature": 0.5, "stream": true, "tools": [{"type": "function",  "function": {}}],
        "metadata": {"deep": [1, {"a": null}]}, "messages": [
        {"role": "user", "content": "hi", "name": "ann", "cache_control": {"type": "ephemeral"}},
        {"role": "assistant", "content": null, "annotations": [], "tool_calls": [
            {"id": "a", "function": {"name": "look"}}, {"id": "b", "function": {"name": "look", "arguments": {"at": [1]}}}]},
        {"role": "tool", "tool_call_id": "a", "name": "look", "content": null, "is_error": true}]}"#;
    let decoded = openai_chat::decode(body).unwrap();
    assert_eq!(
        Value::Object(decoded.extra),
        json!({"temperature": 0.5, "stream": true, "metadata": {"deep": [1, {"a": null}]}})
    );
    assert_eq!(decoded.tools, [r#"{"type": "function",  "function": {}}"#.into()]);
    let extra: Vec<Value> = decoded.entries.iter().map(|entry| Value::Object(entry.extra.clone())).collect();
    let whole = |fields: Value| json!({"openai_chat": {"message": fields}});
    let expected = [whole(json!({"cache_control": {"type": "ephemeral"}})), json!({}), whole(json!({"name": "look"}))];
    assert_eq!(extra, expected);
    assert_eq!(decoded.entries[0].author.as_deref(), Some("ann"));
    // Arguments that were left out, or spelled as an object, come out as a string.
    let calls = [("a", "{}"), ("b", r#"{"at":[1]}"#)].map(|(id, given)| Part::Call(Call::new(id, "look", given)));
    assert_eq!(*decoded.entries[1].parts, calls);
    let result = ToolResult { call: "a".into(), content: Vec::new(), is_error: true };
    assert_eq!(&*decoded.entries[2].parts, [Part::Result(result)]);
}

#[test]
fn an_empty_page_asks_to_go_on() {
    let (log, reader, policy) = (Log::counted_by(Tokenizer::Chars4), Reader::new("main"), Policy::none());
    let target = target();
    let empty = compile_once(&Request::new(&log, &reader, &policy, &target)).unwrap().page;
    assert_eq!(body_of(&empty, &target), r#"{"model":"eval","messages":[{"role":"user","content":"[Continue.]"}]}"#);
    assert_eq!(openai_chat::validate(&openai_chat::encode(&empty, &target)), []);
    assert_eq!(openai_chat::encode_messages(&empty), b"[]");
}
