//! Claude Code: its session files and its stream, read; and session files, written. Real files agree message for message
//! with what another reader made of them.

use crate::twins::{Told, in_order, pairs, told, without_open_calls};
use recto::entry::{Call, Media, Millis, Reasoning, ToolResult};
use recto::transcript::{self, Conversation, claude_code};
use recto::wire::Wire;
use recto::{Entry, Log, Part, Policy, Reader, Request, Role, Target, Tokenizer, compile};
use recto_testkit::mixed::{self, Dice};
use serde_json::{Value, json};
use std::collections::HashSet;

const SESSION: &str = "5f0c7a52-1111-4222-8333-444455556666";

/// Where the other reader, which reads a file line by line, differs on purpose: which file, how many of its messages
/// are not read here, whether the rest stands in the same order, and why.
const EXCEPTIONS: [(&str, usize, bool, &str); 2] = [
    (
        "images-in-user-messages",
        2,
        false,
        "answers of two branches are one there, told twice in the branch that was left",
    ),
    ("0ccf1a04", 2, true, "a question that was interrupted and left for another branch"),
];

#[test]
fn real_sessions_agree_with_their_twins() {
    let Some(pairs) = pairs("claude-code", "sessions of Claude Code and their twins") else { return };
    assert_eq!(pairs.len(), 8);
    for (name, found, twin) in pairs {
        agrees(&name, &found, &twin);
    }
}

#[test]
fn a_real_stream_agrees_with_its_twin() {
    let Some(pairs) = pairs("claude-stream-json", "a stream of Claude Code and its twin") else { return };
    assert_eq!(pairs.len(), 1);
    for (name, found, twin) in pairs {
        agrees(&name, &found, &twin);
    }
}

/// A text that stands there twice in a row, once.
fn once(text: &str) -> String {
    let half = text.get(..text.len() / 2).filter(|half| !half.is_empty() && half.repeat(2) == text);
    half.unwrap_or(text).to_string()
}

fn agrees(name: &str, found: &Conversation, twin: &Conversation) {
    let own = in_order(without_open_calls(found.entries.iter().map(told).collect()));
    let mut theirs = in_order(twin.entries.iter().map(told).collect());
    let exception = EXCEPTIONS.iter().find(|(file, ..)| name.contains(file));
    let (excepted, is_ordered) = exception.map_or((0, true), |(_, number, is_ordered, _)| (*number, *is_ordered));
    if !is_ordered {
        theirs.iter_mut().for_each(|it| (it.text, it.reasoning) = (once(&it.text), once(&it.reasoning)));
    }
    // Whatever only the other has is counted; the rest must be the same.
    let mut rest = own.clone();
    let missing: Vec<&Told> = theirs
        .iter()
        .filter(|it| match rest.iter().position(|own| own == *it).filter(|at| *at == 0 || !is_ordered) {
            Some(at) => (rest.remove(at), false).1,
            None => true,
        })
        .collect();
    let (next, at) = (rest.first(), own.len() - rest.len());
    assert!(rest.is_empty(), "{name}: message {at} of {} is not theirs: {next:#?}", own.len());
    assert_eq!(missing.len(), excepted, "{name}: {missing:#?}\nnotes: {:?}", found.notes);
    for entry in &found.entries {
        let is_stamped = |part: &Part| !matches!(part, Part::Reasoning(it) if it.model.is_none());
        assert!(entry.parts.iter().all(is_stamped), "{name}: reasoning without its model");
    }
    // What is read can be said to the provider again.
    let target = Target::named("claude-opus-5-5").unwrap().with_window(None);
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in &found.entries {
        log.append(entry.clone()).unwrap();
    }
    let (reader, policy) = (Reader::new("main"), Policy::none());
    let page = compile(&Request::new(&log, &reader, &policy, &target)).unwrap().page;
    assert_eq!(Wire::Anthropic.validate(&Wire::Anthropic.encode(&page, &target)), [], "{name}");
}

/// A record of a session.
fn line(uuid: &str, parent: Option<&str>, role: &str, content: Value) -> Value {
    json!({"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "isSidechain": false,
        "timestamp": "2026-11-15T08:30:00.250Z", "message": {"role": role, "content": content}})
}

/// A record of a block of a model's message.
fn block(uuid: &str, parent: &str, message: &str, block: Value) -> Value {
    let mut line = line(uuid, Some(parent), "assistant", json!([block]));
    line["message"]["id"] = message.into();
    line["message"]["model"] = "claude-opus-5-5".into();
    line["message"]["usage"] = json!({"input_tokens": 3, "output_tokens": 4});
    line
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {"id": id}})
}

fn result(uuid: &str, parent: &str, id: &str) -> Value {
    line(uuid, Some(parent), "user", json!([{"type": "tool_result", "tool_use_id": id, "content": format!("of {id}")}]))
}

fn file(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn read(lines: &[Value]) -> Conversation {
    let mut found = transcript::read(&file(lines)).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// What a conversation says, in short.
fn outline(conversation: &Conversation) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text { text } => text.to_string(),
        Part::Reasoning(_) => "(thought)".into(),
        Part::Call(Call { id, .. }) => format!("call {id}"),
        Part::Result(ToolResult { call, .. }) => format!("result {call}"),
        other => format!("{other:?}"),
    };
    let entry = |entry: &Entry| {
        let parts: Vec<String> = entry.parts.iter().map(part).collect();
        format!("{}{}: {}", if entry.edge { "|" } else { "" }, entry.role, parts.join(" + "))
    };
    conversation.entries.iter().map(entry).collect()
}

#[test]
fn the_branch_that_ends_last_is_read() {
    let lines = [
        json!({"type": "queue-operation", "operation": "enqueue", "content": "first", "sessionId": SESSION}),
        line("1", None, "user", json!("first")),
        line("2", Some("1"), "assistant", json!([{"type": "text", "text": "left"}])),
        line("3", Some("1"), "assistant", json!([{"type": "text", "text": "taken"}])),
        line("4", Some("3"), "user", json!("on")),
        line("4", Some("3"), "user", json!("on, again")),
    ];
    let found = read(&lines);
    assert_eq!(outline(&found), ["user: first", "assistant: taken", "user: on"]);
    assert_eq!(found.id.as_deref(), Some(SESSION));
    assert_eq!(found.entries[0].at, Some(Millis(1_794_731_400_250)));
    assert_eq!(
        found.notes,
        [
            "1 line whose uuid was there before left out",
            "1 line of other branches left out",
            "1 record without a message left out"
        ]
    );
    // The file may name another end, and go on from there.
    let mut named = lines.to_vec();
    named.push(json!({"type": "last-prompt", "leafUuid": "2"}));
    assert_eq!(outline(&read(&named)), ["user: first", "assistant: left"]);
    named.push(line("5", Some("2"), "user", json!("more")));
    assert_eq!(outline(&read(&named)), ["user: first", "assistant: left", "user: more"]);
    // A circle ends, and a parent that is missing is the line before.
    let circle = [line("1", Some("2"), "user", json!("a")), line("2", Some("1"), "user", json!("b"))];
    assert_eq!(outline(&read(&circle)), ["user: a", "user: b"]);
    let lost = read(&[line("1", None, "user", json!("a")), line("2", Some("x"), "user", json!("b"))]);
    assert_eq!(outline(&lost), ["user: a", "user: b"]);
    assert_eq!(lost.notes.len(), 1);
}

#[test]
fn side_chains_are_left_out_and_counted() {
    let mut aside = [line("s1", None, "user", json!("aside")), line("s2", Some("s1"), "assistant", json!("aside too"))];
    aside.iter_mut().for_each(|line| line["isSidechain"] = true.into());
    let main = [line("1", None, "user", json!("main")), line("2", Some("1"), "assistant", json!("answer"))];
    let found = read(&[main.as_slice(), aside.as_slice()].concat());
    assert_eq!(outline(&found), ["user: main", "assistant: answer"]);
    assert_eq!(found.notes, ["2 lines of side chains left out"]);
    // The same lines on the main chain are read: it is the flag that counts.
    aside.iter_mut().for_each(|line| line["isSidechain"] = false.into());
    assert_eq!(outline(&read(&[main.as_slice(), aside.as_slice()].concat())), ["user: aside", "assistant: aside too"]);
    assert!(
        transcript::read(&file(&[json!({"type": "user", "uuid": "1", "parentUuid": null, "sessionId": "s",
        "isSidechain": true, "message": {"role": "user", "content": "x"}})]))
        .is_err()
    );
}

#[test]
fn a_message_in_many_lines_is_one_step_with_all_its_results() {
    // As the program writes calls that run side by side: results hang on their own call.
    let lines = [
        line("1", None, "user", json!("go")),
        block("2", "1", "m", json!({"type": "thinking", "thinking": "hm", "signature": "s"})),
        block("3", "2", "m", call("a")),
        result("4", "3", "a"),
        block("5", "3", "m", call("b")),
        result("6", "5", "b"),
        block("7", "5", "m", call("c")),
        block("8", "6", "n", json!({"type": "text", "text": "done"})),
    ];
    let found = read(&lines);
    assert_eq!(
        outline(&found),
        [
            "user: go",
            "assistant: (thought) + call a + call b + call c",
            "tool: result a",
            "tool: result b",
            "assistant: done"
        ]
    );
    assert_eq!(found.entries[1].extra["claude_code"]["usage"]["output_tokens"], 4);
    let Part::Reasoning(Reasoning { model, signature, .. }) = &found.entries[1].parts[0] else { panic!("no thought") };
    assert_eq!((model.as_deref(), signature.as_deref()), (Some("claude-opus-5-5"), Some("s")));
    // Numbered blocks are put in their order.
    let mut numbered = lines.to_vec();
    for (at, index) in [(1, 3), (2, 2), (4, 1), (6, 0)] {
        numbered[at]["apiBlockIndex"] = index.into();
    }
    assert_eq!(outline(&read(&numbered))[1], "assistant: call c + call b + call a + (thought)");
}

#[test]
fn what_was_condensed_stays_before_the_edge() {
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "3", "parentUuid": null,
        "logicalParentUuid": "2", "sessionId": SESSION, "isSidechain": false, "content": "Conversation compacted"});
    let mut summary = line("4", Some("3"), "user", json!("So far: all."));
    summary["isCompactSummary"] = true.into();
    let lines = [
        line("1", None, "user", json!("long ago")),
        line("2", Some("1"), "assistant", json!("yes")),
        boundary,
        summary,
        line("5", Some("4"), "assistant", json!("on")),
    ];
    let found = read(&lines);
    assert_eq!(outline(&found), ["user: long ago", "assistant: yes", "|user: So far: all.", "assistant: on"]);
    // Written and read again it is the same.
    let again = claude_code::session(&found.entries, SESSION, "/w", Millis(0));
    assert_eq!(outline(&transcript::read(&again).unwrap()[0]), outline(&found));
}

#[test]
fn attachments_tell_what_the_model_saw() {
    let mut seen = line("2", Some("1"), "attachment", json!(null));
    seen["attachment"] = json!({"type": "skill_listing"});
    seen["renderedRole"] = "system".into();
    seen["rendered"] =
        json!([{"content": "Skills: none."}, {"renderedRole": "user", "content": [{"type": "text", "text": "hint"}]}]);
    let mut unseen = line("3", Some("2"), "attachment", json!(null));
    unseen["attachment"] = json!({"type": "date_change"});
    let mut failed = line("4", Some("3"), "assistant", json!([{"type": "text", "text": "API Error: 500"}]));
    failed["isApiErrorMessage"] = true.into();
    let lines =
        [line("1", None, "user", json!("go")), seen, unseen, failed, line("5", Some("4"), "user", json!("again"))];
    let found = read(&lines);
    assert_eq!(outline(&found), ["user: go", "system: Skills: none.", "user: hint", "user: again"]);
    assert_eq!(
        found.notes,
        ["1 attachment without what the model saw left out", "1 message of the program about an error left out"]
    );
}

#[test]
fn a_broken_line_is_an_error_unless_the_file_was_being_written() {
    let lines = [line("1", None, "user", json!("go")), line("2", Some("1"), "assistant", json!("yes"))];
    let cut = format!("{}{{\"type\":\"user\",\"uuid\":\"3\",\"par", file(&lines));
    let found = transcript::read(&cut).unwrap().remove(0);
    assert_eq!(outline(&found), ["user: go", "assistant: yes"]);
    assert_eq!(found.notes, ["the last line is cut off, and left out"]);
    let broken = format!("{}{{\"type\":oops}}\n{}", file(&lines[..1]), file(&lines[1..]));
    let error = transcript::read(&broken).unwrap_err();
    assert_eq!(error.place().map(|place| (place.line, place.column)), Some((2, 9)), "{error}");
    // A content that can't be read is an error too, and an unknown kind of record is none.
    let bad = [lines[0].clone(), line("2", Some("1"), "user", json!(7))];
    let error = transcript::read(&file(&bad)).unwrap_err();
    assert_eq!(error.place().map(|place| place.line), Some(2), "{error}");
    let odd = [lines[0].clone(), json!({"type": "brand-new", "uuid": 7, "message": "x"}), json!({"no": "type"})];
    assert_eq!(outline(&read(&odd)), ["user: go"]);
}

#[test]
fn a_stream_is_read_without_its_side_chains() {
    let event = |kind: &str, message: Value| json!({"type": kind, "message": message, "parent_tool_use_id": null, "session_id": "s"});
    let said = |block: Value| {
        event("assistant", json!({"id": "m", "role": "assistant", "model": "claude-opus-5-5", "content": [block]}))
    };
    let mut aside = said(json!({"type": "text", "text": "aside"}));
    aside["parent_tool_use_id"] = "a".into();
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"]}),
        said(json!({"type": "text", "text": "look"})),
        json!({"type": "stream_event", "event": {"type": "message_start"}, "session_id": "s"}),
        said(call("a")),
        aside,
        event(
            "user",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r", "is_error": true}]}),
        ),
        json!({"type": "result", "subtype": "success", "session_id": "s", "result": "done"}),
    ];
    let found = read(&lines);
    assert_eq!(outline(&found), ["assistant: look + call a", "tool: result a"]);
    assert!(matches!(&found.entries[1].parts[0], Part::Result(result) if result.is_error));
    assert_eq!(found.id.as_deref(), Some("s"));
    assert_eq!(
        found.notes,
        ["1 event within a message left out", "1 line of side chains left out", "2 records without a message left out"]
    );
    assert!(transcript::read(&file(&lines[..1])).is_err());
}

#[test]
fn a_written_session_is_one_chain_and_reads_back() {
    let image = Part::Image(Media { url: "data:image/png;base64,AAAA".into(), name: None, detail: None });
    let thought = Part::Reasoning(Reasoning { text: "unsealed".into(), ..Reasoning::default() });
    let step = Entry::new(Role::Assistant, [thought, Part::text("look"), Part::Call(Call::new("a", "look", "{}"))]);
    let open = Entry::step("", [Call::new("b", "look", "{}")]);
    let entries = [
        Entry::system("Be brief."),
        Entry { at: Some(Millis(5_000)), ..Entry::new(Role::User, [Part::text("go"), image]) },
        step,
        Entry::user("wait"),
        Entry::result("a", "late"),
        open,
        Entry::assistant("bye"),
    ];
    let text = claude_code::session(&entries, SESSION, "/work", Millis(1_000));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut parent = Value::Null;
    for line in &lines {
        assert_eq!((&line["parentUuid"], &line["sessionId"]), (&parent, &json!(SESSION)));
        assert_eq!(
            (&line["isSidechain"], &line["userType"], &line["cwd"]),
            (&json!(false), &json!("external"), &json!("/work"))
        );
        let uuid = line["uuid"].as_str().unwrap();
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert!(lengths == [8, 4, 4, 4, 12] && uuid.as_bytes()[14] == b'5', "{uuid}");
        parent = line["uuid"].clone();
    }
    assert_eq!((&lines[0]["timestamp"], &lines[0]["isMeta"]), (&json!("1970-01-01T00:00:01.000Z"), &json!(true)));
    assert_eq!(lines[1]["timestamp"], "1970-01-01T00:00:05.000Z");
    assert_eq!(lines[2]["timestamp"], "1970-01-01T00:00:05.001Z");
    assert_eq!(text, claude_code::session(&entries, SESSION, "/work", Millis(1_000)));
    let found = transcript::read(&text).unwrap().remove(0);
    let said: Vec<String> =
        outline(&found).into_iter().map(|it| it.split(" + Image").next().unwrap().to_string()).collect();
    assert_eq!(
        said,
        [
            "user: [System Context]: Be brief.",
            "user: go",
            "assistant: look + call a",
            "tool: result a",
            "user: wait",
            "assistant: call b",
            "tool: result b",
            "assistant: bye"
        ]
    );
    assert!(claude_code::session(&[], SESSION, "/work", Millis(0)).is_empty());
}

#[test]
fn whatever_is_written_can_be_said_to_the_provider() {
    let target = Target::named("claude-opus-4-6").unwrap().with_window(None);
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let length = 1 + dice.below(14);
        let entries = mixed::conversation(&mut dice, length);
        let text = claude_code::session(&entries, SESSION, "/work", Millis(0));
        let mut messages: Vec<Value> = Vec::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["subtype"] == "compact_boundary" {
                messages.clear();
            } else {
                let (role, content) = (&line["message"]["role"], &line["message"]["content"]);
                messages.push(json!({"role": role, "content": content}));
            }
        }
        messages.push(json!({"role": "user", "content": "on"}));
        let body = json!({"model": &*target.name, "max_tokens": 9, "messages": messages});
        assert_eq!(Wire::Anthropic.validate(body.to_string().as_bytes()), [], "seed {seed}: {text}");
        if !text.is_empty() {
            assert!(transcript::read(&text).is_ok(), "seed {seed}: {text}");
        }
    }
}

#[test]
fn a_written_session_is_read_alike_by_every_version_of_the_program() {
    let step = |id: &str| Entry::step("", [Call::new(id, "look", "{}")]);
    let entries = [
        Entry::user("one"),
        step("k1"),
        Entry::result("k1", "first"),
        step("k1_2"),
        Entry::result("k1_2", "second"),
        step("k1"),
        Entry::result("k1", "third"),
        Entry::assistant("done"),
    ];
    let text = claude_code::session(&entries, "01234567-89ab-8def-8123-456789abcdef", "/work", Millis(0));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages = lines.iter().map(|line| &line["message"]);
    // Answers without ids of their own would be taken for one.
    let answers: Vec<&str> = messages.clone().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(answers.len(), 4);
    assert_eq!(answers.iter().collect::<HashSet<_>>().len(), 4);
    // A call named like another and a number would be taken for a piece of it.
    let blocks = |kind: &str, field: &str| -> Vec<String> {
        let all = messages.clone().filter_map(|it| it["content"].as_array()).flatten();
        all.filter(|it| it["type"] == kind).map(|it| it[field].as_str().unwrap().to_string()).collect()
    };
    let calls = blocks("tool_use", "id");
    assert_eq!(calls, blocks("tool_result", "tool_use_id"));
    for call in &calls {
        let piece = call.rsplit_once('_').filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
        assert!(piece.is_none_or(|(start, _)| !calls.iter().any(|other| other == start)), "{calls:?}");
    }
    assert_eq!(calls.iter().collect::<HashSet<_>>().len(), 3, "{calls:?}");
}
