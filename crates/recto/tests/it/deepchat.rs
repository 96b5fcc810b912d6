//! DeepChat's records: `content` is a string that holds JSON, and what can't be read as that is told, not lost.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use recto::entry::{Media, Millis, Status};
use recto::error::Place;
use recto::transcript::{Conversation, RECORD_BYTES_MAX, read};
use recto::{Entry, Part, Policy, Reader, Request, Role, Target, Tokenizer, compile_once};
use serde_json::{Value, json};

fn record(role: &str, status: &str, content: &str) -> Value {
    json!({"role": role, "status": status, "content": content})
}

fn user(text: &str) -> Value {
    record("user", "sent", &json!({"text": text}).to_string())
}

fn assistant(blocks: Value) -> Value {
    record("assistant", "sent", &blocks.to_string())
}

fn with(mut record: Value, more: Value) -> Value {
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

fn only(text: &str) -> Conversation {
    let mut all = read(text).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn one(record: Value) -> Entry {
    only(&json!([record]).to_string()).entries.remove(0)
}

fn texts(entries: &[Entry]) -> Vec<&str> {
    fn text(entry: &Entry) -> &str {
        match &*entry.parts {
            [] => "",
            [Part::Text { text }] => text,
            _ => panic!("more than one text: {entry:?}"),
        }
    }
    entries.iter().map(text).collect()
}

/// Reads a text in which `§` marks the place where the mistake must be found.
#[track_caller]
fn check(marked: &str, expected: Expect) {
    let (before, after) = marked.split_once('§').unwrap();
    let error = read(&format!("{before}{after}")).unwrap_err();
    let (line, column) = (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap().chars().count() + 1);
    assert_eq!(error.place(), Some(Place { line, column }), "{error}");
    let text = error.to_string();
    let what = text.split_once(": ").unwrap().1;
    expected.assert_eq(&error.hint().map_or(what.to_string(), |hint| format!("{what} ({hint})")));
}

#[test]
fn an_array_lines_and_an_object_read_alike() {
    let records = [user("Hello"), assistant(json!([{"type": "content", "content": "Hi"}]))];
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    let from_lines = only(&lines);
    assert_eq!(texts(&from_lines.entries), ["Hello", "Hi"]);
    assert_eq!(from_lines.entries.iter().map(|it| it.role).collect::<Vec<_>>(), [Role::User, Role::Assistant]);
    assert_eq!(only(&json!(records).to_string()), from_lines);
    let object = only(&json!({"id": "talk", "messages": records, "tools": []}).to_string());
    assert_eq!(object, Conversation { id: Some("talk".into()), ..from_lines });
}

#[test]
fn several_conversations_may_stand_one_a_line() {
    let lines = format!("{}\n{}\n", json!({"messages": [user("a")]}), json!({"messages": [user("b")]}));
    let all = read(&lines).unwrap();
    assert_eq!(all.iter().map(|it| texts(&it.entries)).collect::<Vec<_>>(), [["a"], ["b"]]);
}

#[test]
fn chat_messages_with_a_status_stay_chat_messages() {
    let found = only(r#"[{"role": "user", "status": "sent", "content": "a {\"text\": 1}"}]"#);
    assert_eq!(texts(&found.entries), ["a {\"text\": 1}"]);
    assert_eq!(found.entries[0].extra["status"], "sent");
    let found = only(r#"[{"role": "user", "content": "{\"text\": \"a\"}"}]"#);
    assert_eq!(texts(&found.entries), ["{\"text\": \"a\"}"]);
}

#[test]
fn words_and_reasoning_are_one_text_in_order_with_nothing_between() {
    let blocks = json!([
        {"type": "reasoning_content", "content": "Let me think..."},
        {"type": "tool_call", "content": "hidden", "tool_call": {"name": "look"}},
        {"type": "content", "content": "The answer is 42", "status": "success"},
        {"type": "content"},
        {"type": "image", "content": "hidden"},
        {"type": "tool_call"},
    ]);
    let found = only(&json!([assistant(blocks)]).to_string());
    assert_eq!(texts(&found.entries), ["Let me think...The answer is 42"]);
    assert_eq!(found.notes, ["3 blocks not shown: 1 image, 2 tool_call"]);
    let kept = found.entries[0].extra["blocks"].as_array().unwrap();
    assert_eq!(kept.iter().map(|it| &it["type"]).collect::<Vec<_>>(), ["tool_call", "image", "tool_call"]);
}

/// Design point D15: a record with tool calls is a step with its calls, their results, and what was said afterwards.
#[test]
fn d15_tool_call_blocks_are_calls_with_their_results() {
    let tool = |id: &str, more: Value| json!({"type": "tool_call", "status": "success", "tool_call": more, "id": id});
    let blocks = json!([
        {"type": "reasoning_content", "content": "Hm. "},
        {"type": "content", "content": "Let me look."},
        tool("b1", json!({"id": "c1", "name": "read", "params": "{\"path\": \"a.txt\"}", "response": "alpha"})),
        tool("b2", json!({"id": "c2", "name": "list", "params": "", "response": ""})),
        {"type": "content", "content": "It says "},
        {"type": "content", "content": "alpha."},
        {"type": "tool_call", "status": "error", "tool_call": {"id": "c3", "name": "run", "params": {"n": 1}, "response": "no"}},
        {"type": "tool_call", "status": "loading", "tool_call": {"id": "c4", "name": "run", "params": "{}"}},
    ]);
    let answer = with(assistant(blocks), json!({"id": "m2", "createdAt": 5, "orderSeq": 2}));
    let next = with(user("Thanks"), json!({"orderSeq": 3}));
    let found = only(&json!([next, with(user("Read a.txt"), json!({"orderSeq": 1})), answer]).to_string());
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let roles: Vec<Role> = found.entries.iter().map(|entry| entry.role).collect();
    use Role::{Assistant, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, Tool, Assistant, Tool, User]);
    let named: Vec<Option<&str>> = found.entries.iter().map(|it| it.id.as_ref().map(|id| id.as_str())).collect();
    assert_eq!(named, [None, Some("m2"), None, None, None, None, None]);
    assert!(found.entries[1..6].iter().all(|entry| entry.at == Some(Millis(5))));
    let log = found.into_log(Tokenizer::Chars4).unwrap();
    let (reader, policy, target) = (Reader::new("main"), Policy::deepchat_v1(), Target::eval());
    let compiled = compile_once(&Request::new(&log, &reader, &policy, &target)).unwrap();
    let sent: Value = serde_json::from_slice(&recto::wire::openai_chat::encode_messages(&compiled.page)).unwrap();
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let (read, list) = (call("c1", "read", "{\"path\": \"a.txt\"}"), call("c2", "list", "{}"));
    let expected = json!([
        {"role": "user", "content": "Read a.txt"},
        {"role": "assistant", "content": "Hm. Let me look.", "tool_calls": [read, list]},
        {"role": "tool", "tool_call_id": "c1", "content": "alpha"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
    ]);
    assert_eq!(sent.as_array().unwrap()[..4], expected.as_array().unwrap()[..]);
    assert_eq!(sent[4]["content"], "It says alpha.");
    assert_eq!(sent[4]["tool_calls"], json!([call("c3", "run", "{\"n\":1}"), call("c4", "run", "{}")]));
    assert_eq!((&sent[5]["tool_call_id"], &sent[6]["tool_call_id"]), (&json!("c3"), &json!("c4")));
    assert_eq!(sent[7], json!({"role": "user", "content": "Thanks"}));
}

/// Design point D18: images of both sides are read where the record holds them; others are counted.
#[test]
fn d18_images_are_read() {
    let data = "data:image/png;base64,iVBORw0KGgo=";
    let image = |url: &str, name: Option<&str>| {
        Part::Image(Media { url: url.into(), name: name.map(Into::into), detail: None })
    };
    let files = json!([
        {"name": "a.png", "mimeType": "image/png", "path": "/a.png", "content": data},
        {"name": "b.txt", "mimeType": "text/plain", "path": "/b.txt", "content": "words"},
    ]);
    let asked = record("user", "sent", &json!({"text": "What is this?", "files": files}).to_string());
    let blocks = json!([
        {"type": "content", "content": "This:"},
        {"type": "image", "image_data": {"data": "iVBORw0KGgo=", "mimeType": "image/png"}},
        {"type": "image", "image_data": {"data": "https://example.com/a.png", "mimeType": "deepchat/image-url"}},
        {"type": "image", "image_data": {"data": "imgcache://a.png", "mimeType": "deepchat/image-url"}},
        {"type": "content", "content": "Done."},
    ]);
    let found = only(&json!([asked, assistant(blocks)]).to_string());
    assert_eq!(*found.entries[0].parts, [Part::text("What is this?"), image(data, Some("a.png"))]);
    let kept = &found.entries[0].extra["content"]["files"];
    assert_eq!(kept[0], json!({"name": "a.png", "mimeType": "image/png", "path": "/a.png"}));
    assert_eq!(kept[1]["content"], "words");
    let shown = [Part::text("This:"), image(data, None), image("https://example.com/a.png", None), Part::text("Done.")];
    assert_eq!(*found.entries[1].parts, shown);
    assert_eq!(found.entries[1].extra["blocks"][0]["image_data"]["data"], "imgcache://a.png");
    assert_eq!(found.notes, ["2 blocks not shown: 1 file, 1 image"]);
}

#[test]
fn content_that_is_no_json_is_taken_as_text_and_told() {
    let text = r#"[
        {"role": "assistant", "status": "sent", "content": "[]"},
        {"role": "user", "status": "sent", "content": "just words {"},
        {"role": "user", "status": "sent", "content": "{\"files\": []}"},
        {"role": "assistant", "status": "sent", "content": "[1]"},
        {"role": "assistant", "status": "pending", "content": ""}
    ]"#;
    let found = only(text);
    assert_eq!(texts(&found.entries), ["", "just words {", "{\"files\": []}", "[1]", ""]);
    let told = "3 contents without the expected JSON, taken as text; the first at line 3, column 55";
    assert_eq!(found.notes, [told]);
}

#[test]
fn lone_surrogates_are_replaced_on_both_levels() {
    let found = only(r#"[{"role": "user", "status": "sent", "content": "{\"text\": \"a\\ud83d \ud83d b\"}"}]"#);
    assert_eq!(texts(&found.entries), ["a\u{fffd} \u{fffd} b"]);
    assert_eq!(found.replaced.len(), 1);
    assert_eq!(found.notes, ["1 lone surrogate replaced inside contents"]);
}

#[test]
fn a_status_is_kept_with_its_reason() {
    let partial = json!([{"type": "content", "content": "Partial"}, {"type": "error", "content": "timeout"}]);
    let failed = |more: Value| one(with(record("assistant", "error", "[]"), more));
    let from_block = one(record("assistant", "error", &partial.to_string()));
    assert_eq!((from_block.status, &from_block.meta["error"]), (Status::Error, &json!("timeout")));
    for (more, why) in [
        (json!({"error": "timeout"}), json!("timeout")),
        (json!({"error": {"code": 5, "message": "timeout"}}), json!("timeout")),
        (json!({"error": {"code": 5}}), json!("{\"code\":5}")),
        (json!({"error": null, "metadata": "{\"error\": \"timeout\"}"}), json!("timeout")),
        (json!({"metadata": {"error": "timeout"}}), json!("timeout")),
    ] {
        let entry = failed(more);
        assert_eq!((entry.meta.get("error"), entry.extra.get("error")), (Some(&why), None));
    }
    assert!(failed(json!({})).meta.is_empty());
    assert_eq!(one(record("assistant", "pending", "[]")).status, Status::Pending);
    let sent = one(with(user("a"), json!({"error": "no matter"})));
    assert_eq!((sent.meta.len(), &sent.extra["error"]), (0, &json!("no matter")));
}

#[test]
fn an_error_block_is_counted_only_where_it_is_not_the_reason() {
    let blocks = json!([{"type": "error", "content": "odd"}]);
    assert_eq!(only(&json!([assistant(blocks.clone())]).to_string()).notes, ["1 block not shown: 1 error"]);
    let failed = record("assistant", "error", &blocks.to_string());
    assert!(only(&json!([failed]).to_string()).notes.is_empty());
}

#[test]
fn ids_edges_times_and_unknown_fields_are_kept() {
    let more = json!({"id": "m1", "createdAt": 1_700_000_000_000_i64, "isContextEdge": 1, "traceCount": 3});
    let entry = one(with(user("a"), more));
    assert_eq!(entry.id.unwrap().as_str(), "m1");
    assert_eq!((entry.at, entry.edge), (Some(Millis(1_700_000_000_000)), true));
    assert_eq!(Value::Object(entry.extra), json!({"traceCount": 3}));
    for (flag, edge) in [(json!(true), true), (json!(0), false), (json!(false), false), (json!(null), false)] {
        assert_eq!(one(with(user("a"), json!({"is_context_edge": flag}))).edge, edge);
    }
    let content = json!({"text": "a", "files": [{"name": "b.txt"}], "think": false}).to_string();
    let entry = one(record("user", "sent", &content));
    assert_eq!(entry.extra["content"], json!({"files": [{"name": "b.txt"}], "think": false}));
    assert_eq!(one(with(user("a"), json!({"created_at": "today"}))).extra["created_at"], "today");
}

#[test]
fn the_order_is_that_of_the_records_numbers() {
    let numbered = |text: &str, number: i64| with(user(text), json!({"orderSeq": number}));
    let mixed = |text: &str, number: i64| with(user(text), json!({"order_seq": number}));
    let found = only(&json!([numbered("c", 3), mixed("a", -1), numbered("b", 2)]).to_string());
    assert_eq!((texts(&found.entries), found.notes.len()), (vec!["a", "b", "c"], 0));
    let found = only(&json!([numbered("c", 3), user("a"), numbered("b", 2)]).to_string());
    assert_eq!(texts(&found.entries), ["c", "a", "b"]);
    assert_eq!(found.notes, ["1 of 3 records have no orderSeq: the order of the file is kept"]);
}

#[test]
fn records_name_their_session_and_are_of_one() {
    let of = |text: &str, session: &str| with(user(text), json!({"sessionId": session}));
    assert_eq!(only(&json!([of("a", "s1"), user("b")]).to_string()).id.as_deref(), Some("s1"));
    let object = json!({"id": "talk", "messages": [of("a", "s1")]});
    assert_eq!(only(&object.to_string()).id.as_deref(), Some("talk"));
    check(
        "{\"role\":\"user\",\"status\":\"sent\",\"content\":\"{\\\"text\\\":\\\"a\\\"}\",\"session_id\":\"s1\"}\n\
         {\"role\":\"user\",\"status\":\"sent\",\"content\":\"{\\\"text\\\":\\\"a\\\"}\",\"session_id\":§\"s2\"}",
        expect![[
            r#"messages[1] is of session "s2", those before of "s1" (a file holds the records of one session: split it)"#
        ]],
    );
}

#[test]
fn every_mistake_is_named_where_it_stands() {
    let good = r#"{"role": "user", "status": "sent", "content": "{\"text\": \"é\"}"}"#;
    let after = |bad: &str| format!("[{good},\n  {bad}]");
    check(
        &after(r#"{"role": "user", "status": §"done", "content": ""}"#),
        expect![[r#"messages[1]: unknown status "done" (known statuses: sent, pending, error)"#]],
    );
    check(
        &after(r#"{"role": §"tool", "status": "sent", "content": ""}"#),
        expect![[r#"messages[1]: unknown role "tool" (known roles: system, user, assistant)"#]],
    );
    check(&after(r#"§{"role": "user", "content": ""}"#), expect!["messages[1] has no status"]);
    check(&after(r#"§{"status": "sent", "content": ""}"#), expect!["messages[1] has no role"]);
    check(&after(r#"§{"role": "user", "status": "sent"}"#), expect!["messages[1] has no content"]);
    check(
        &after(r#"{"role": "user", "status": "sent", "content": §{"text": "a"}}"#),
        expect!["messages[1]: content is not a string (it should be a string that holds JSON)"],
    );
    check(
        &after(r#"{"role": "user", "status": "sent", "content": "", "isContextEdge": §"yes"}"#),
        expect![[r#"messages[1]: isContextEdge is "yes" (it is true, false, 1 or 0)"#]],
    );
    check(
        &after(r#"{"role": "user", "status": "sent", "content": "", "orderSeq": "first§"}"#),
        expect![[r#"orderSeq: invalid type: string "first", expected i64"#]],
    );
    check(&format!("{good}\n{good}§x"), expect!["expected value (the file is not valid JSON here)"]);
    check(&after("§7"), expect!["messages[1]: invalid type: integer `7`, expected a map"]);
}

#[test]
fn a_record_has_a_largest_size_on_a_line_too() {
    let long = user(&"x".repeat(RECORD_BYTES_MAX));
    check(&format!("{}\n§{long}", user("a")), expect!["a record of 64 MiB; at most 64 MiB are read"]);
}

#[test]
fn it_compiles_to_the_page_that_deepchat_would_send() {
    let blocks = json!([{"type": "content", "content": "Partial answer"}, {"type": "error", "content": "timeout"}]);
    let records = [
        with(user("forgotten"), json!({"orderSeq": 1})),
        with(user("first"), json!({"orderSeq": 2, "isContextEdge": 1})),
        with(record("assistant", "error", &blocks.to_string()), json!({"orderSeq": 3})),
        with(record("assistant", "pending", "[]"), json!({"orderSeq": 5})),
        with(user("second"), json!({"orderSeq": 4})),
    ];
    let log = only(&json!(records).to_string()).into_log(Tokenizer::Tokenx).unwrap();
    let target = Target { tokenizer: Tokenizer::Tokenx, ..Target::eval() };
    let page = |policy: Policy| {
        let reader = Reader::new("main");
        let compiled = compile_once(&Request::new(&log, &reader, &policy, &target)).unwrap();
        let messages: Vec<Value> =
            serde_json::from_slice(&recto::wire::openai_chat::encode_messages(&compiled.page)).unwrap();
        messages.iter().map(|it| it["content"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(Policy::deepchat_v1()), ["first", "second"]);
    let told = "Partial answer\n\n[Generation failed]\nReason: timeout";
    assert_eq!(page(Policy::deepchat_today()), ["first", told, "second"]);
}

/// Anything, and what looks a little like JSON.
const CONTENT: &str = "\\PC{0,40}|[\\[{\"\\\\:,u}\\]dtexypcon0-9]{0,40}";

proptest! {
    #[test]
    fn no_content_is_lost_and_none_panics(content in CONTENT, is_user in any::<bool>()) {
        let odd = record(if is_user { "user" } else { "assistant" }, "sent", &content);
        let found = only(&json!([user("a"), odd]).to_string());
        prop_assert_eq!(found.entries.len(), 2);
        let is_json = serde_json::from_str::<Value>(&content).is_ok();
        prop_assert!(is_json || texts(&found.entries)[1] == content);
        prop_assert!(is_json || content.is_empty() || found.notes.len() == 1);
    }
}
