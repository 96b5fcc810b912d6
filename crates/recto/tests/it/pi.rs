//! Sessions of pi: branches, compactions, what a model never sees, and what can go wrong with a file. A real one agrees
//! with what another reader made of it.

use crate::twins::{in_order, pairs, told, without_open_calls};
use recto::entry::{Arguments, EntryKind, Millis, Origin, Status};
use recto::transcript::{self, Conversation};
use recto::{Entry, Part, Role};
use serde_json::{Value, json};

/// A record of a tree.
fn record(id: &str, parent: Option<&str>, kind: &str, more: Value) -> Value {
    let mut record = json!({"type": kind, "id": id, "parentId": parent, "timestamp": "2026-11-15T08:30:00.250Z"});
    let fields = record.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    record
}

fn message(id: &str, parent: Option<&str>, message: Value) -> Value {
    record(id, parent, "message", json!({ "message": message }))
}

fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    message(id, parent, json!({"role": "user", "content": text, "timestamp": 1_794_731_400_250_i64}))
}

fn answer(id: &str, parent: &str, content: Value) -> Value {
    let usage = json!({"input": 3, "output": 4});
    let made = json!({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic",
        "model": "claude-opus-5-5", "usage": usage, "stopReason": "stop"});
    message(id, Some(parent), made)
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn result(id: &str, parent: &str, call: &str, content: Value) -> Value {
    let given = json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "content": content, "isError": false,
        "details": {"lines": 2}});
    message(id, Some(parent), given)
}

fn head() -> Value {
    json!({"type": "session", "version": 3, "id": "5f0c7a52-1111", "timestamp": "2026-11-15T08:30:00.250Z", "cwd": "/x"})
}

fn file(records: &[Value]) -> String {
    [head()].iter().chain(records).map(|record| format!("{record}\n")).collect()
}

/// A session with calls, a branch that was left, and everything else that a message may hold.
pub(super) fn session() -> String {
    let call = json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "SEAL"}, {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.txt"}}]);
    let shown =
        json!([{"type": "text", "text": "one\ntwo"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]);
    file(&[
        user("1", None, "look at a.txt"),
        answer("2", "1", call),
        result("3", "2", "c1", shown),
        answer("4", "3", text("It says two things.")),
        record("5", Some("4"), "model_change", json!({"provider": "openai", "modelId": "gpt-5.5"})),
        user("6", Some("4"), "this way"),
        answer("7", "6", text("A dead end.")),
        record("8", Some("4"), "branch_summary", json!({"fromId": "7", "summary": "That way was a dead end."})),
        user("9", Some("8"), "that way, then"),
        answer("10", "9", text("Done.")),
    ])
}

fn read(text: &str) -> Conversation {
    let mut found = transcript::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// What a conversation says, in short.
fn outline(conversation: &Conversation) -> Vec<String> {
    let entry = |entry: &Entry| {
        let edge = if entry.edge { "—— " } else { "" };
        let parts = entry.parts.iter().map(|part| match part {
            Part::Text { text } => text.to_string(),
            Part::Reasoning(_) => "(thought)".into(),
            Part::Call(call) => format!("call {}", call.id),
            Part::Result(result) => format!("result {} of {} pieces", result.call, result.content.len()),
            other => format!("{other:?}"),
        });
        format!("{edge}{}: {}", entry.role, parts.collect::<Vec<_>>().join(" + "))
    };
    conversation.entries.iter().map(entry).collect()
}

#[test]
fn the_branch_that_ends_last_is_read_with_what_became_of_the_other() {
    let found = read(&session());
    assert_eq!(
        outline(&found),
        [
            "user: look at a.txt",
            "assistant: (thought) + I look. + call c1",
            "tool: result c1 of 2 pieces",
            "assistant: It says two things.",
            "user: That way was a dead end.",
            "user: that way, then",
            "assistant: Done.",
        ]
    );
    assert_eq!(found.notes, ["2 lines of other branches left out", "2 records without a message left out"]);
    assert_eq!(found.id.as_deref(), Some("5f0c7a52-1111"));
    let [first, step, result, ..] = &found.entries[..] else { panic!() };
    assert_eq!((first.at, first.origin), (Some(Millis(1_794_731_400_250)), Origin::User));
    assert_eq!(first.id.as_ref().map(|id| id.as_str()), Some("1"));
    let Part::Reasoning(thought) = &step.parts[0] else { panic!() };
    assert_eq!((thought.signature.as_deref(), thought.provider.as_deref()), (Some("SEAL"), Some("anthropic")));
    assert_eq!(step.calls().next().unwrap().arguments, Arguments::Object(r#"{"path":"a.txt"}"#.into()));
    assert_eq!(step.extra["pi"]["message"]["usage"]["output"], 4, "what has no place is kept");
    assert_eq!(result.extra["pi"]["message"]["details"]["lines"], 2);
    assert_eq!(found.entries[4].origin, Origin::Host);
}

#[test]
fn a_record_may_name_the_branch_to_go_on_with() {
    let back = format!("{}{}\n", session(), record("11", Some("10"), "leaf", json!({"targetId": "7"})));
    let said = outline(&read(&back));
    assert_eq!(said.last().map(String::as_str), Some("assistant: A dead end."));
    assert_eq!(said.len(), 6);
    let nowhere = format!("{}{}\n", session(), record("11", Some("10"), "leaf", json!({"targetId": null})));
    assert!(transcript::read(&nowhere).unwrap_err().to_string().contains("no conversation in it"));
}

#[test]
fn of_a_compacted_session_the_summary_stands_before_what_was_kept() {
    let condensed = |id: &str, parent: &str, kept: &str, summary: &str| {
        record(id, Some(parent), "compaction", json!({"summary": summary, "firstKeptEntryId": kept, "tokensBefore": 9}))
    };
    let lines = [
        user("1", None, "one"),
        answer("2", "1", text("two")),
        condensed("3", "2", "2", "FIRST"),
        user("4", Some("3"), "three"),
        answer("5", "4", text("four")),
        condensed("6", "5", "4", "SECOND"),
        user("7", Some("6"), "five"),
    ];
    let found = read(&file(&lines));
    let expected = [
        "user: one",
        "assistant: two",
        "user: FIRST",
        "—— user: SECOND",
        "user: three",
        "assistant: four",
        "user: five",
    ];
    assert_eq!(outline(&found), expected, "nothing is lost, and only what is behind the edge is shown");
    let again = condensed("6", "5", "gone", "SECOND");
    let mut unkept = lines.clone();
    unkept[5] = again;
    let found = read(&file(&unkept));
    assert_eq!(outline(&found)[5..], ["—— user: SECOND", "user: five"], "what it kept is not there");
}

#[test]
fn an_old_session_without_ids_is_one_branch() {
    let old = |record: &Value| {
        let mut record = record.clone();
        let fields = record.as_object_mut().unwrap();
        (fields.remove("id"), fields.remove("parentId"));
        record
    };
    let compaction = json!({"type": "compaction", "summary": "SHORT", "firstKeptEntryIndex": 2, "tokensBefore": 9});
    let lines = [user("1", None, "one"), answer("2", "1", text("two")), compaction, user("3", None, "three")];
    let lines: Vec<Value> = lines.iter().map(old).collect();
    let found = read(&file(&lines));
    assert_eq!(outline(&found), ["user: one", "—— user: SHORT", "assistant: two", "user: three"]);
    assert!(found.notes.len() == 1 && found.entries.iter().all(|entry| entry.id.is_none()), "{:?}", found.notes);
}

#[test]
fn what_was_broken_off_is_marked_so() {
    let mut failed = answer("2", "1", json!([]));
    failed["message"]["stopReason"] = "error".into();
    failed["message"]["errorMessage"] = "terminated".into();
    let mut stopped = answer("3", "2", text("So I"));
    stopped["message"]["stopReason"] = "aborted".into();
    let found = read(&file(&[user("1", None, "go"), failed, stopped]));
    assert_eq!(
        found.entries.iter().map(|it| it.status).collect::<Vec<_>>(),
        [Status::Sent, Status::Error, Status::Cancelled]
    );
    assert_eq!(found.entries[1].meta["error"], "terminated");
}

#[test]
fn what_the_user_ran_and_what_extensions_said_is_told_as_pi_tells_it() {
    let ran = |id: &str, parent: &str, more: Value| {
        let mut ran =
            json!({"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 0, "cancelled": false});
        ran.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message(id, Some(parent), ran)
    };
    let lines = [
        user("1", None, "go"),
        ran("2", "1", json!({})),
        ran("3", "2", json!({"output": "", "exitCode": 2})),
        ran("4", "3", json!({"excludeFromContext": true})),
        record(
            "5",
            Some("4"),
            "custom_message",
            json!({"customType": "x", "content": "mind the gap", "display": true}),
        ),
        message("6", Some("5"), json!({"role": "custom", "customType": "x", "content": text("and the step")})),
        message("7", Some("6"), json!({"role": "telepathy", "content": "?"})),
        record("8", Some("7"), "brand_new", json!({})),
        answer("9", "8", json!([{"type": "hologram", "data": "…"}, {"type": "text", "text": "Yes."}])),
    ];
    let found = read(&file(&lines));
    let said = outline(&found);
    assert_eq!(
        said[1..3],
        ["user: Ran `ls`\n```\na.txt\n```", "user: Ran `ls`\n(no output)\n\nCommand exited with code 2"]
    );
    assert_eq!(said[3..5], ["user: mind the gap", "user: and the step"]);
    assert_eq!((found.entries[1].kind, found.entries[1].origin), (Some(EntryKind::ActionResult), Origin::Tool));
    assert_eq!(found.entries[3].origin, Origin::Host);
    assert!(matches!(&found.entries[5].parts[0], Part::Opaque { provider, .. } if &**provider == "pi"));
    assert_eq!(
        found.notes,
        [
            "1 record without a message left out",
            "1 block kept that no model is shown: 1 hologram",
            "1 command that the user kept from the model left out",
            "1 message of unknown roles left out: 1 telepathy",
            "1 record of unknown kinds left out: 1 brand_new",
        ]
    );
}

#[test]
fn reasoning_is_sealed_only_where_its_api_seals_it() {
    let thought = |api: &str, seal: &str| {
        let content = json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": seal}]);
        let mut answer = answer("2", "1", content);
        answer["message"]["api"] = api.into();
        let entry = read(&file(&[user("1", None, "go"), answer])).entries.remove(1);
        let Part::Reasoning(thought) = &entry.parts[0] else { panic!() };
        (thought.clone(), entry.extra["pi"]["parts"]["0"]["thinkingSignature"].as_str().map(str::to_string))
    };
    let item = r#"{"type":"reasoning","id":"rs_1","encrypted_content":"x","summary":[]}"#;
    let (sealed, kept) = thought("openai-responses", item);
    assert_eq!((sealed.item.as_deref(), kept), (Some(item), None));
    for (api, seal) in
        [("openai-completions", "reasoning_content"), ("openai-responses", "no item"), ("openai-responses", "{}")]
    {
        let (open, kept) = thought(api, seal);
        assert!(!open.is_sealed() && kept.as_deref() == Some(seal), "{api}: {open:?}");
    }
}

#[test]
fn a_broken_line_is_an_error_unless_the_file_was_being_written() {
    let whole = session();
    let cut = &whole[..whole.len() - 40];
    let found = read(cut);
    assert_eq!(outline(&found).last().map(String::as_str), Some("user: that way, then"));
    assert_eq!(found.notes[0], "the last line is cut off, and left out");
    let broken = whole.replacen("\"look at a.txt\"", "look at a.txt", 1);
    let error = transcript::read(&broken).unwrap_err();
    assert_eq!(error.place().map(|place| place.line), Some(2), "{error}");
    for (bad, told) in [
        (json!({"role": "user", "content": 7}), "message.content is neither a string nor a list of blocks"),
        (json!({"content": "x"}), "message has no \"role\""),
        (json!({"role": "user", "content": [{"type": "text"}]}), "message.content[0] has no \"text\""),
        (json!({"role": "toolResult", "content": []}), "message has no \"toolCallId\""),
        (json!({"role": "bashExecution"}), "message has no \"command\""),
        (json!("x"), "message: invalid type"),
    ] {
        let error = transcript::read(&file(&[user("1", None, "go"), message("2", Some("1"), bad)])).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert_eq!(error.place().map(|place| place.line), Some(3), "{error}");
    }
    let error = transcript::read(&file(&[])).unwrap_err();
    assert!(error.to_string().contains("no conversation in it"), "{error}");
}

#[test]
fn odd_trees_end() {
    let circle = [user("1", Some("2"), "one"), user("2", Some("1"), "two")];
    assert_eq!(outline(&read(&file(&circle))), ["user: one", "user: two"]);
    let lost = [user("1", None, "one"), user("2", Some("gone"), "two")];
    let found = read(&file(&lost));
    assert_eq!(outline(&found), ["user: one", "user: two"]);
    assert_eq!(found.notes[0], "1 line whose parent is not in the file: taken to follow the line before");
    let twice = [user("1", None, "one"), user("1", None, "one"), user("2", Some("1"), "two")];
    assert_eq!(read(&file(&twice)).notes[0], "1 line whose id was there before left out");
}

#[test]
fn a_real_session_agrees_with_its_twin() {
    let Some(pairs) = pairs("pi-session", "a session of pi and its twin") else { return };
    assert_eq!(pairs.len(), 1);
    for (name, found, twin) in pairs {
        let own = in_order(without_open_calls(found.entries.iter().map(told).collect()));
        let theirs = in_order(twin.entries.iter().map(told).collect());
        assert_eq!(own.len(), theirs.len(), "{name}");
        for (at, (own, theirs)) in own.iter().zip(&theirs).enumerate() {
            assert_eq!(own, theirs, "{name}: message {at}");
        }
        assert_eq!(found.notes, ["105 records without a message left out"]);
        let broken = found.entries.iter().filter(|entry| entry.status != Status::Sent).count();
        assert_eq!(broken, 22, "{name}");
        assert!(found.entries.iter().all(|entry| entry.role != Role::System), "its prompt is in no file");
    }
}
