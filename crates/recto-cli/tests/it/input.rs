use crate::run::{Folder, fails, mentions, succeeds};
use expect_test::{Expect, expect};
use std::fs::File;

/// What `explain` says of a file that can't be used.
#[track_caller]
fn check(content: impl AsRef<[u8]>, told: Expect) {
    let folder = Folder::new();
    let file = folder.file("chat.json", content);
    told.assert_eq(&fails(3, &["explain", &file]).replace(&file, "chat.json"));
}

#[test]
fn malformed_json_is_told_with_its_place() {
    check(
        "{\"messages\": [\n  {\"role\": \"user\" \"content\": \"x\"}\n]}",
        expect![[r#"
            error[R0310]: cannot read chat.json
            cause: line 2, column 19: expected `,` or `}`
            hint: the file is not valid JSON here
        "#]],
    );
    check(
        "{\"messages\": [\n  {\"role\":",
        expect![[r#"
            error[R0310]: cannot read chat.json
            cause: line 2, column 10: EOF while parsing a value
            hint: the file ends in the middle of a record
        "#]],
    );
    check(
        "",
        expect![[r#"
            error[R0310]: cannot read chat.json
            cause: no conversation in it
            hint: expected a JSON object with "messages", or one a line
        "#]],
    );
    check(
        "{\"chat\": []}",
        expect![[r#"
            error[R0310]: cannot read chat.json
            cause: line 1, column 1: a record without "messages"
            hint: expected JSON such as {"messages": [{"role": …, "content": …}, …]}, a session of Claude Code, Codex or pi, a trajectory of SWE-agent, results of tau-bench, a log of Inspect, or an export of Recto
        "#]],
    );
}

#[test]
fn unknown_roles_are_told_with_their_place() {
    check(
        "[{\"role\":\"user\",\"content\":\"é\"},\n {\"content\":\"é\",\"role\":\"usr\"}]",
        expect![[r#"
            error[R0310]: cannot read chat.json
            cause: line 2, column 24: messages[1]: unknown role "usr"
            hint: known roles: system, developer, user, assistant, tool
        "#]],
    );
}

#[test]
fn what_no_page_can_hold_is_told() {
    check(
        r#"[{"role":"user","content":7}]"#,
        expect![[r#"
            error[R0310]: cannot read chat.json
            cause: line 1, column 27: content is neither a string, a list of parts, nor null
        "#]],
    );
    let calls = r#"{"id":"c","type":"function","function":{"name":"f","arguments":""}}"#;
    check(
        format!(r#"[{{"role":"assistant","tool_calls":[{calls},{calls}]}}]"#),
        expect![[r#"
            error[R0311]: conversation "chat" cannot be used
            cause: messages[0]: assistant entry: call id "c" stands twice in one step
        "#]],
    );
}

#[test]
fn invalid_utf8_is_told_with_its_place() {
    check(
        b"[\n {\"role\":\"user\",\"content\":\"\xc3\xa9 caf\xe9\"}]",
        expect![[r#"
            error[R0304]: cannot read chat.json
            cause: line 2, column 33: byte 0xE9 is not valid UTF-8
            hint: convert it to UTF-8
        "#]],
    );
    check(
        b"\xff\xfe[\0",
        expect![[r#"
            error[R0304]: cannot read chat.json
            cause: line 1, column 1: byte 0xFF is not valid UTF-8
            hint: it looks like UTF-16: convert it to UTF-8
        "#]],
    );
}

#[test]
fn names_from_files_do_not_steer_the_terminal() {
    check(
        b"[{\"role\":\"\\u001b[31m\",\"content\":\"x\"}]",
        expect![[r#"
            error[R0310]: cannot read chat.json
            cause: line 1, column 10: messages[0]: unknown role "\u{1b}[31m"
            hint: known roles: system, developer, user, assistant, tool
        "#]],
    );
}

#[test]
fn lone_surrogates_are_replaced_and_named() {
    let folder = Folder::new();
    let text = "[\n{\"role\":\"user\",\n\"content\":\"good \\ud83d\\ude00 \\ud800 and \\udc00\"}]";
    let file = folder.file("chat.json", text);
    for command in ["compile", "explain", "replay"] {
        let ran = succeeds(&[command, &file]);
        mentions(&ran.stderr, &["2 lone surrogates were replaced by U+FFFD, first at line 3, column 30"]);
    }
    let file = folder.file("one.json", r#"[{"role":"user","content":"\udfff"}]"#);
    let ran = succeeds(&["compile", &file]);
    mentions(&ran.stderr, &["1 lone surrogate was replaced by U+FFFD, first at line 1, column 28"]);
    mentions(&ran.stdout, &["\u{fffd}"]);
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    let folder = Folder::new();
    let (open, close) = ("[".repeat(10_000), "]".repeat(10_000));
    for deep in [
        format!("[{{\"role\":\"user\",\"content\":\"x\",\"extra\":{open}{close}}}]"),
        format!("[{{\"role\":\"user\",\"content\":{open}{close}}}]"),
        format!("{{\"messages\":{open}{close}}}"),
        format!("{open}{close}"),
        "{\"messages\":".repeat(10_000) + &"}".repeat(10_000),
    ] {
        let file = folder.file("deep.json", deep);
        mentions(&fails(3, &["explain", &file]), &["cannot read", "line 1, column"]);
    }
}

#[test]
fn records_and_files_that_are_too_large_are_refused() {
    let folder = Folder::new();
    let text = "x".repeat(65 << 20);
    let file = folder.file("large.json", format!("[{{\"role\":\"user\",\"content\":\"{text}\"}}]"));
    mentions(&fails(3, &["explain", &file]), &["a record of 65 MiB; at most 64 MiB are read"]);
    // Its length is claimed, not written.
    let huge = folder.at("huge.json");
    File::create(&huge).unwrap().set_len((1 << 30) + 1).unwrap();
    mentions(&fails(3, &["explain", &huge]), &["too large: at most 1024 MiB are read"]);
}
