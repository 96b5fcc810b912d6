//! Rollouts of Codex: real ones agree with what others made of them, and what can go wrong with a file is told.

use recto::entry::{Arguments, Call, Millis, Origin, Piece, Reasoning, ToolResult};
use recto::error::Place;
use recto::transcript::{Conversation, codex, read};
use recto::wire::{Usage, openai_responses as wire};
use recto::{Entry, Part, Policy, Reader, Request, Role, Target, Tokenizer, Tokens, compile};
use recto_testkit::shared;
use serde_json::{Value, json};
use std::path::Path;

fn record(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-06-26T12:24:12.748Z", "type": kind, "payload": payload})
}

fn item(payload: Value) -> Value {
    record("response_item", payload)
}

fn said(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    item(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}],
        "internal_chat_message_metadata_passthrough": {"turn_id": "t"}}))
}

fn meta() -> Value {
    record("session_meta", json!({"id": "thread-1", "cwd": "/x", "base_instructions": {"text": "be Codex"}}))
}

fn file(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn only(text: &str) -> Conversation {
    let mut all = read(text).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// What a conversation says, line by line, however it is cut into messages.
#[derive(Debug, PartialEq)]
enum Line {
    Said(Role, String),
    Called(String, String, Value),
    Gave(String, String),
}

/// Arguments as JSON, or what else they are as Codex's twins spell it.
fn arguments(text: &str) -> Value {
    serde_json::from_str(text).ok().filter(Value::is_object).unwrap_or_else(|| json!({"input": text}))
}

fn text_of(part: &Part) -> Option<&str> {
    if let Part::Text { text } = part { Some(text) } else { None }
}

fn lines(entries: &[Entry]) -> Vec<Line> {
    let mut lines = Vec::new();
    for entry in entries {
        let texts: Vec<&str> = entry.parts.iter().filter_map(text_of).collect();
        if entry.role != Role::Assistant && !texts.is_empty() {
            lines.push(Line::Said(entry.role, texts.join("\n")));
        }
        for part in entry.parts.iter() {
            let line = match part {
                Part::Text { text } if entry.role == Role::Assistant => match lines.last_mut() {
                    // The twins join neighbouring words of the model by a line break.
                    Some(Line::Said(Role::Assistant, said)) => {
                        said.push('\n');
                        said.push_str(text);
                        None
                    }
                    _ => Some(Line::Said(entry.role, text.to_string())),
                },
                Part::Call(Call { id, name, arguments: given }) => {
                    Some(Line::Called(id.to_string(), name.to_string(), arguments(given.as_str())))
                }
                Part::Result(ToolResult { call, content, .. }) => {
                    let text = |piece: &Piece| {
                        if let Piece::Text { text } = piece { text.to_string() } else { "[image]".into() }
                    };
                    Some(Line::Gave(call.to_string(), content.iter().map(text).collect::<Vec<_>>().join("\n")))
                }
                _ => None,
            };
            lines.extend(line);
        }
    }
    lines
}

/// The twins have no call without a result.
fn without_open_calls(lines: Vec<Line>) -> (Vec<Line>, usize) {
    let ids: Vec<String> =
        lines.iter().filter_map(|line| if let Line::Gave(id, _) = line { Some(id.clone()) } else { None }).collect();
    let before = lines.len();
    let kept: Vec<Line> =
        lines.into_iter().filter(|line| !matches!(line, Line::Called(id, ..) if !ids.contains(id))).collect();
    let open = before - kept.len();
    (kept, open)
}

fn twin_of(data: &Path, raw: &str) -> Conversation {
    let manifest = std::fs::read_to_string(data.join("manifest.jsonl")).unwrap();
    let mut rows = manifest.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let row = rows.find(|row| row["raw"].as_str().is_some_and(|name| name.ends_with(raw))).unwrap();
    let all = std::fs::read_to_string(data.join(row["file"].as_str().unwrap())).unwrap();
    read(&all).unwrap().into_iter().find(|it| it.id.as_deref() == row["id"].as_str()).unwrap()
}

/// Files that were compacted: the twins ignore that, so they are compared with the compactions taken out, too.
const COMPACTED: usize = 1;
/// Calls without a result, which the twins leave out.
const OPEN_CALLS: usize = 1;

#[test]
fn real_rollouts_agree_with_their_twins_line_for_line() {
    let Some(folder) = shared::folder("data/raw", "rollouts and their twins") else { return };
    let files = shared::jsonl(&folder.join("codex-rollout"));
    assert!(!files.is_empty());
    let (mut compacted, mut open) = (0, 0);
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let (twin, none) = without_open_calls(lines(&twin_of(folder.parent().unwrap(), name).entries));
        assert_eq!(none, 0);
        let is_compaction =
            |line: &&str| line.contains(r#""type": "compacted""#) || line.contains(r#""type":"compacted""#);
        let plain: String = text.lines().filter(|line| !is_compaction(line)).map(|line| format!("{line}\n")).collect();
        let (whole, left) = without_open_calls(lines(&only(&plain).entries));
        open += left;
        assert_eq!(whole.len(), twin.len(), "{name}");
        for (one, other) in whole.iter().zip(&twin) {
            assert_eq!(one, other, "{name}");
        }
        let read = only(&text);
        if plain.len() < text.len() {
            compacted += 1;
            agrees_behind_its_compaction(&text, &read, &twin);
        }
        goes_back_to_its_provider(&text, read);
        // A negative control: a word lost, and they no longer agree.
        let other = lines(&only(&plain.replacen("exec_command", "exec_comand", 1)).entries);
        assert!(without_open_calls(other).0 != twin, "{name}");
    }
    assert_eq!((compacted, open), (COMPACTED, OPEN_CALLS));
}

fn agrees_behind_its_compaction(text: &str, read: &Conversation, twin: &[Line]) {
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let newest = records.iter().rfind(|record| record["type"] == "compacted").unwrap();
    let history = newest["payload"]["replacement_history"].as_array().unwrap();
    let messages = history.iter().filter(|item| item["type"] == "message").count();
    let now = lines(&read.entries);
    let behind = &now[1 + messages..];
    assert!(!behind.is_empty() && behind.len() < twin.len());
    assert_eq!(behind, &twin[twin.len() - behind.len()..]);
    assert_eq!(now[0], twin[0], "the instructions stay");
    assert!(read.notes.iter().any(|note| note.starts_with("compacted 2 times")), "{:?}", read.notes);
}

/// What was read can be sent to the model that made it, reasoning and all.
fn goes_back_to_its_provider(text: &str, read: Conversation) {
    let is_sealed = |part: &&Part| matches!(part, Part::Reasoning(it) if it.is_sealed() && it.model.is_some());
    let kept = text.rsplit("\"compacted\"").next().unwrap_or_default();
    let sealed = kept.matches("\"encrypted_content\":\"REDACTED\"").count();
    let in_history = kept.len() < text.len();
    let found = read.entries.iter().flat_map(|entry| entry.parts.iter()).filter(is_sealed).count();
    // The history of a compaction holds one seal of its own, which is no reasoning.
    assert_eq!(found + usize::from(in_history), sealed);
    assert!(read.entries[1..].iter().all(|entry| entry.at.is_some()));
    let target = Target::named("gpt-5.5").unwrap().with_window(None);
    let log = read.into_log(Tokenizer::Bytes4).unwrap();
    let (reader, policy) = (Reader::new("main"), Policy::none());
    let page = compile(&Request::new(&log, &reader, &policy, &target)).unwrap().page;
    assert_eq!(wire::validate(&wire::encode(&page, &target)), []);
}

#[test]
fn a_rollout_is_known_by_its_first_line_and_read_in_order() {
    let turn = record("turn_context", json!({"model": "gpt-5.5", "cwd": "/x"}));
    let thought = item(json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "x", "internal_chat_message_metadata_passthrough": {"turn_id": "t"}}));
    let call = item(json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": "{}"}));
    let output = item(json!({"type": "function_call_output", "call_id": "a", "output": "seen"}));
    let all = [
        meta(),
        said("developer", "rules"),
        said("user", "go"),
        turn,
        thought,
        said("assistant", "on it"),
        call,
        record("event_msg", json!({"type": "agent_message", "message": "on it"})),
        output,
        said("assistant", "done"),
        record("of_tomorrow", json!({})),
        item(json!({"type": "ghost_snapshot"})),
    ];
    let read = only(&file(&all));
    assert_eq!(read.id.as_deref(), Some("thread-1"));
    let roles: Vec<Role> = read.entries.iter().map(|entry| entry.role).collect();
    use Role::{Assistant, System, Tool, User};
    assert_eq!(roles, [System, System, User, Assistant, Tool, Assistant]);
    let Part::Reasoning(Reasoning { model, item, text, .. }) = &read.entries[3].parts[0] else { panic!("{read:?}") };
    assert_eq!((model.as_deref(), &**text), (Some("gpt-5.5"), "hm"));
    assert!(!item.as_deref().unwrap().contains("passthrough"));
    assert!(!format!("{:?}", read.entries).contains("turn_id"));
    assert_eq!(read.entries[2].at, Some(Millis(1_782_476_652_748)));
    assert_eq!(read.notes, ["2 records of unknown kinds left out: 1 ghost_snapshot, 1 of_tomorrow"]);
}

#[test]
fn a_compaction_begins_again_with_its_history_or_its_summary() {
    let history = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "compaction", "encrypted_content": "x"}]);
    let first = [meta(), said("developer", "rules"), said("user", "go"), said("assistant", "long talk")];
    let with = |payload: Value| {
        let mut all = first.to_vec();
        all.extend([record("compacted", payload), said("user", "more"), said("assistant", "so")]);
        only(&file(&all))
    };
    let texts = |read: &Conversation| -> Vec<String> {
        let text = |line| if let Line::Said(_, text) = line { text } else { panic!("{line:?}") };
        lines(&read.entries).into_iter().map(text).collect()
    };
    let replaced = with(json!({"message": "", "replacement_history": history}));
    assert_eq!(texts(&replaced), ["be Codex", "go", "more", "so"]);
    assert!(matches!(&replaced.entries[2].parts[0], Part::Opaque { payload, .. } if payload.contains("compaction")));
    assert_eq!(replaced.notes, ["compacted 1 time: what stood before is left out, as it is for the model"]);
    let summed = with(json!({"message": "we talked"}));
    assert_eq!(texts(&summed), ["be Codex", "rules", "we talked", "more", "so"]);
    assert_eq!(summed.entries[2].origin, Origin::Host);
    // One that says nothing takes nothing away.
    let empty = with(json!({"message": ""}));
    assert_eq!(texts(&empty), ["be Codex", "rules", "go", "long talk", "more", "so"]);
    assert_eq!(empty.notes, [""; 0]);
}

#[test]
fn turns_that_were_taken_back_are_gone() {
    let context = said("user", "<environment_context>\n</environment_context>");
    let all = [
        meta(),
        context,
        said("user", "one"),
        said("assistant", "1"),
        said("user", "two"),
        said("assistant", "2"),
        said("user", "three"),
        record("event_msg", json!({"type": "thread_rolled_back", "num_turns": 2})),
        said("user", "four"),
    ];
    let read = only(&file(&all));
    let expected = ["be Codex", "<environment_context>\n</environment_context>", "one", "1", "four"];
    let found = lines(&read.entries);
    assert_eq!(found.len(), expected.len());
    assert!(
        found.iter().zip(expected).all(|(line, text)| matches!(line, Line::Said(_, it) if it == text)),
        "{found:?}"
    );
    assert_eq!(read.notes, ["2 turns taken back"]);
}

#[test]
fn a_fork_says_whose_history_it_lacks_unless_it_is_an_old_one() {
    let with = |more: Value, ordinal: bool| {
        let mut payload = json!({"id": "thread-2", "cwd": "/x", "forked_from_id": "thread-1"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut all = vec![record("session_meta", payload), said("user", "go on")];
        for (at, record) in all.iter_mut().enumerate().filter(|_| ordinal) {
            record["ordinal"] = at.into();
        }
        file(&all)
    };
    let fork = with(json!({"forked_from_ordinal_exclusive": 7}), true);
    assert_eq!(codex::fork_of(&fork), Some(("thread-1".into(), 7)));
    assert_eq!(only(&fork).notes, ["forked from thread-1 up to record 7: what was said there is in its own file"]);
    let old = with(json!({}), false);
    assert_eq!((codex::fork_of(&old), only(&old).notes), (None, vec![]));
    assert_eq!(codex::fork_of(&file(&[meta()])), None);
    assert_eq!(codex::fork_of("{}"), None);
}

#[test]
fn a_line_may_be_cut_off_and_broken_in_no_other_way() {
    let text = file(&[meta(), said("user", "one"), said("assistant", "two")]);
    for cut in 1..said("assistant", "two").to_string().len() {
        let read = only(&text[..text.len() - 1 - cut]);
        let is_cut = |note: &String| note == "the last line is cut off and was left out";
        assert!(read.notes.iter().any(is_cut) && read.entries.len() == 2, "{cut}: {read:?}");
    }
    // The program was stopped while it wrote, and has gone on behind that.
    let stopped =
        format!("{}\n{}\n{}\n{}\n", meta(), &said("user", "lost").to_string()[..90], said("user", "one"), "{");
    let found = only(&stopped);
    assert_eq!(found.entries.len(), 2);
    assert_eq!(found.notes, ["1 line cut off and left out", "the last line is cut off and was left out"]);
    let broken = text.replacen("\"one\"", "\"one", 1);
    let error = read(&broken).unwrap_err();
    assert_eq!(error.place().map(|place| place.line), Some(2), "{error}");
    let odd = file(&[meta(), said("critic", "x"), said("user", "y")]);
    let error = read(&odd).unwrap_err();
    let column = odd.lines().nth(1).unwrap().find("\"critic\"").unwrap() + 1;
    assert_eq!(error.place(), Some(Place { line: 2, column }), "{error}");
    assert!(error.to_string().contains("record 2: unknown role"), "{error}");
}

/// What Codex is sure to find in a file that it resumes.
fn checked(text: &str) -> Vec<Value> {
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records[0]["type"], "session_meta");
    for field in ["id", "timestamp", "cwd", "originator", "cli_version", "source"] {
        assert!(records[0]["payload"][field].is_string(), "{field}");
    }
    assert!(records[1..].iter().all(|it| it["type"] == "response_item" && it["payload"]["type"].is_string()));
    let items: Vec<Value> = records[1..].iter().map(|it| it["payload"].clone()).collect();
    let body = json!({"model": "gpt-5.5", "store": false, "input": items});
    assert_eq!(wire::validate(&serde_json::to_vec(&body).unwrap()), []);
    items
}

#[test]
fn a_written_session_is_read_back_and_its_calls_have_results() {
    let seal = |item: &str| {
        Part::Reasoning(Reasoning { provider: Some("openai".into()), item: Some(item.into()), ..Reasoning::default() })
    };
    let sealed = r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#;
    let step =
        Entry::new(Role::Assistant, [seal(sealed), Part::text("on it"), Part::Call(Call::new("a", "look", "{}"))]);
    let foreign = Reasoning {
        text: "hm".into(),
        provider: Some("anthropic".into()),
        signature: Some("s".into()),
        ..Reasoning::default()
    };
    let call = |id: &str| Call { arguments: Arguments::Object("{\"b\":1}".into()), ..Call::new(id, "look", "") };
    let entries = [
        Entry::system("be brief"),
        Entry::user("go"),
        step,
        Entry::result("a", "one"),
        Entry::new(Role::Assistant, [Part::Reasoning(foreign), Part::Call(call("a")), Part::Call(call("lost"))]),
        Entry::result("orphan", "nobody asked"),
        Entry::user("wait"),
        Entry::result("a", "two"),
        Entry::new(Role::Assistant, [seal(sealed)]),
        Entry::assistant("done"),
    ];
    let at = Millis(1_782_476_652_748);
    let text = codex::session(&entries, "0199-thread", "/work", at);
    let items = checked(&text);
    let kinds: Vec<&str> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
    let expected = [
        "message",
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
        "message",
    ];
    assert_eq!(kinds, expected);
    let outputs: Vec<&Value> =
        items.iter().filter(|it| it["type"] == "function_call_output").map(|it| &it["output"]).collect();
    assert_eq!(outputs, [&json!("one"), &json!("two"), &json!("aborted")]);
    let back = only(&text);
    assert_eq!((back.id.as_deref(), back.notes.len()), (Some("0199-thread"), 0));
    assert_eq!(codex::session(&back.entries, "0199-thread", "/work", at), text);
}

#[test]
fn a_real_rollout_survives_being_written_and_read() {
    let Some(folder) = shared::folder("data/raw", "rollouts written again") else { return };
    for path in shared::jsonl(&folder.join("codex-rollout")) {
        let read = only(&std::fs::read_to_string(&path).unwrap());
        let text = codex::session(&read.entries, "t", "/work", Millis(0));
        checked(&text);
        let again = only(&text);
        let (before, open) = without_open_calls(lines(&read.entries));
        let is_aborted = |line: &Line| matches!(line, Line::Gave(_, text) if text == "aborted");
        let after: Vec<Line> = lines(&again.entries).into_iter().filter(|line| !is_aborted(line)).collect();
        let (after, aborted) = without_open_calls(after);
        assert_eq!(aborted, open);
        assert_eq!(after, before);
        let text = codex::session(&again.entries, "t", "/work", Millis(0));
        assert_eq!(codex::session(&only(&text).entries, "t", "/work", Millis(0)), text);
    }
}

#[test]
fn the_programs_own_prompt_is_not_said_twice() {
    let text = [
        json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": "session_meta", "payload": {
            "id": "t", "cwd": "/work", "base_instructions": {"text": "You are Codex."}}}),
        json!({"timestamp": "2026-01-01T00:00:01.000Z", "type": "response_item", "payload": {
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}}),
    ];
    let read = only(&text.map(|line| line.to_string()).join("\n"));
    assert_eq!(read.entries[0].role, Role::System);
    let written = codex::session(&read.entries, "t", "/work", Millis(0));
    let lines: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["payload"]["base_instructions"]["text"], "You are Codex.");
    assert!(lines[0]["payload"].get("model_provider").is_none(), "a program with another provider would not resume it");
    assert_eq!(lines.len(), 2);
    assert_eq!(only(&written).entries, read.entries);
    // Instructions of others are said to the program beside its own.
    let foreign = codex::session(&[Entry::system("Be kind."), Entry::user("hi")], "t", "/work", Millis(0));
    assert!(foreign.lines().next().is_some_and(|meta| !meta.contains("Be kind.")));
    assert_eq!(foreign.lines().count(), 3);
}

fn event(payload: Value) -> Value {
    record("event_msg", payload)
}

fn noted(role: &str, text: &str, kinds: &[&str]) -> Value {
    let mut item = said(role, text);
    item["payload"]["internal_chat_message_metadata_passthrough"]["content_item_kinds"] = json!(kinds);
    item
}

#[test]
fn behind_a_mark_stands_what_was_said_and_nothing_that_the_program_told_by_itself() {
    let head = file(&[meta(), said("user", "before"), said("assistant", "yes")]);
    let records = [
        event(json!({"type": "task_started"})),
        said("developer", "<permissions instructions>"),
        noted("user", "# odd words of its own", &["agents_md.instructions", "environments.environment_context"]),
        said("user", "<environment_context>\n</environment_context>"),
        record("turn_context", json!({"model": "gpt-5.5"})),
        noted("user", "<environment_context> is what I ask about", &["user.text"]),
        item(json!({"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"})),
        item(json!({"type": "function_call_output", "call_id": "c", "output": "a.txt"})),
        record("compacted", json!({"message": "shorter"})),
        record("unheard_of", json!({})),
        noted("assistant", "done", &["unknown"]),
        event(json!({"type": "task_complete", "last_agent_message": "done"})),
    ];
    let since = codex::since(&file(&records)).unwrap();
    assert_eq!((since.is_answered, since.goes_back, since.model.as_deref()), (true, false, Some("gpt-5.5")));
    assert_eq!(since.bytes, file(&records).len());
    let roles: Vec<Role> = since.entries.iter().map(|entry| entry.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    // Reading all of the file finds the same.
    let without: Vec<Value> = records.iter().filter(|it| it["type"] != "compacted").cloned().collect();
    let whole = only(&format!("{head}{}", file(&without)));
    assert_eq!(whole.entries[whole.entries.len() - 3..], since.entries[1..]);
    assert_eq!(codex::since(&head).unwrap().entries.len(), 2, "all of a file stands behind its beginning");
    assert_eq!(codex::since("").unwrap(), codex::Since::default());
}

#[test]
fn a_turn_is_answered_once_it_came_to_its_end_without_an_error() {
    let complete = |more: Value| {
        let mut payload = json!({"type": "task_complete"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event(payload)
    };
    let (start, words, answer) = (event(json!({"type": "task_started"})), said("user", "x"), said("assistant", "y"));
    let call = item(json!({"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"}));
    let cases = [
        (vec![&start, &words, &answer], None, false),
        (vec![&start, &words, &answer], Some(complete(json!({}))), true),
        (vec![&start, &words, &answer], Some(complete(json!({"error": null}))), true),
        (vec![&start, &words], Some(complete(json!({"error": {"message": "no"}}))), false),
        (vec![&start, &words, &answer], Some(complete(json!({"error": {"message": "no"}}))), false),
        (vec![&start, &words, &answer], Some(event(json!({"type": "turn_aborted"}))), false),
        (vec![&start, &words, &call], Some(complete(json!({}))), false),
        (vec![&start, &words], Some(complete(json!({}))), false),
        // Files that others wrote tell nothing of turns.
        (vec![&words, &answer], None, true),
        (vec![&words], None, false),
    ];
    for (records, end, expected) in cases {
        let records: Vec<Value> = records.into_iter().cloned().chain(end).collect();
        assert_eq!(codex::since(&file(&records)).unwrap().is_answered, expected, "{records:?}");
    }
}

#[test]
fn what_a_turn_used_is_told_apart_from_what_the_thread_did() {
    let spent =
        |input: u64, output: u64| json!({"input_tokens": input, "cached_input_tokens": 1, "output_tokens": output});
    let usage = |input, cached, output| {
        let (input, cached, output) = (Tokens(input), Tokens(cached), Tokens(output));
        Some(Usage { input, cached, written: Tokens(0), output })
    };
    let used = |records: &[Value]| codex::since(&file(records)).unwrap().usage;
    let told =
        |usage: Value| record("token_usage_record", json!({"usage": usage, "thread_token_usage": spent(900, 90)}));
    assert_eq!(used(&[told(spent(10, 2)), told(spent(20, 3))]), usage(30, 2, 5));
    // Older versions tell sums only, and some more than once.
    let counted = |total: Value, last: Value| {
        event(json!({"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": last}}))
    };
    let first =
        counted(json!({"input_tokens": 110, "output_tokens": 12}), json!({"input_tokens": 10, "output_tokens": 2}));
    let last =
        counted(json!({"input_tokens": 130, "output_tokens": 15}), json!({"input_tokens": 20, "output_tokens": 3}));
    let none = event(json!({"type": "token_count", "info": null}));
    assert_eq!(used(&[none.clone(), first.clone(), last.clone(), last, none.clone()]), usage(30, 0, 5));
    assert_eq!(used(&[first]), usage(10, 0, 2));
    assert_eq!(used(&[none]), None);
}

#[test]
fn turns_that_were_taken_back_are_gone_also_those_before_the_mark() {
    let back = |turns: u64| event(json!({"type": "thread_rolled_back", "num_turns": turns}));
    let records = [said("user", "one"), said("assistant", "1"), said("user", "two"), said("assistant", "2")];
    let after = |turns| codex::since(&file(&[&records[..], &[back(turns)]].concat())).unwrap();
    assert_eq!((after(1).entries.len(), after(1).goes_back), (2, false));
    assert_eq!((after(2).entries.len(), after(2).goes_back), (0, false));
    assert_eq!((after(3).entries.len(), after(3).goes_back), (0, true));
}

#[test]
fn what_was_read_ends_before_a_line_that_is_cut_off() {
    let text = file(&[said("user", "one"), said("assistant", "two")]);
    let cut = &said("user", "three").to_string()[..100];
    let since = codex::since(&format!("{text}{cut}")).unwrap();
    assert_eq!((since.entries.len(), since.bytes), (2, text.len()));
    // Whole, but for the end of its line.
    let whole = text.trim_end();
    assert_eq!(codex::since(whole).unwrap().bytes, whole.len());
    // The program ends the line and goes on behind it.
    let since = codex::since(&format!("{cut}\n{text}")).unwrap();
    assert_eq!((since.entries.len(), since.bytes), (2, cut.len() + 1 + text.len()));
    let error = codex::since(&format!("{text}{{{{\n")).unwrap_err();
    assert_eq!(error.place().map(|place| place.line), Some(3), "{error}");
}

#[test]
fn a_session_says_how_it_was_begun() {
    let begun = codex::begun(&file(&[meta()])).unwrap();
    assert_eq!((begun.base.as_deref(), begun.source), (Some("be Codex"), None));
    let seeded = codex::session(&[Entry::user("hi")], "t", "/work", Millis(0));
    assert_eq!(codex::begun(&seeded), Some(codex::Begun::default()));
    let ours = record("session_meta", json!({"id": "t", "thread_source": "recto", "base_instructions": null}));
    assert_eq!(codex::begun(&file(&[ours])).unwrap().source.as_deref(), Some("recto"));
    assert_eq!(codex::begun("nothing"), None);
    assert_eq!(codex::begun(&file(&[said("user", "x")])), None);
}
