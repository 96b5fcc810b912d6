//! What can't be taken is refused, and never breaks anything.

use super::super::live::{Live, Place};
use super::plain::{beginning, converses, request, sends, uses};
use serde_json::{Value, json};

/// The longest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

#[test]
fn messages_over_http_that_are_none_are_problems() {
    let live = Live::new();
    let long = request("tools/call", &json!({"name": "list", "arguments": {"search": "x".repeat(MESSAGE_BYTES_MAX)}}));
    let deep = "[".repeat(1_000);
    let bodies: [(&[u8], u16); 10] = [
        (b"", 400),
        (b"{", 400),
        (b"null", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b"\xff\xfe", 400),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"tools/list\"}", 400),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}]", 400),
        (deep.as_bytes(), 400),
        (long.as_bytes(), 413),
    ];
    for (body, status) in bodies {
        let answer = sends(&live, &[], body);
        assert_eq!(
            answer.status,
            status,
            "{}: {}",
            String::from_utf8_lossy(&body[..body.len().min(80)]),
            answer.text()
        );
        live.is_problem(&answer);
    }
    let list = request("tools/list", &json!({}));
    for (headers, status, kind) in [
        (["Origin: http://evil.test"], 403, "origin"),
        (["Content-Encoding: gzip"], 415, "content_encoding"),
        (["Authorization: Bearer recto_0"], 401, "unknown_key"),
    ] {
        let answer = sends(&live, &headers, &list);
        live.is_problem(&answer);
        assert_eq!((answer.status, &answer.json()["kind"]), (status, &json!(kind)));
    }
    let other = live.ask("POST", "/mcp", &["accept: text/html", "content-type: application/json"], &list);
    assert_eq!(other.status, 406, "{}", other.text());
    live.is_problem(&other);
    for method in ["GET", "DELETE", "PUT"] {
        assert_eq!(live.ask(method, "/mcp", &[], "").status, 405, "{method}");
    }
    assert_eq!(sends(&live, &[], list).json()["result"]["tools"].as_array().unwrap().len(), 5, "it still answers");
}

#[test]
fn methods_tools_and_arguments_that_mean_nothing_are_refused() {
    let live = Live::new();
    live.talk("monday", "words", 2);
    let code =
        |method: &str, params: Value| sends(&live, &[], request(method, &params)).json()["error"]["code"].clone();
    assert_eq!(code("nothing/such", json!({})), -32_601);
    assert_eq!(code("resources/read", json!({"uri": "file:///etc/passwd"})), -32_601);
    for name in ["", "erase", "LIST", "../list", &"x".repeat(10_000)] {
        assert_eq!(code("tools/call", json!({"name": name, "arguments": {}})), -32_602, "{name:.20}");
    }
    let values =
        [json!(true), json!(-1), json!(1.5), json!(u64::MAX), json!(""), json!("x"), json!([1]), json!({"x": 1})];
    let tools = sends(&live, &[], request("tools/list", &json!({}))).json()["result"]["tools"].clone();
    let (mut taken, mut refused) = (0, 0);
    for tool in tools.as_array().unwrap() {
        for name in tool["inputSchema"]["properties"].as_object().unwrap().keys().map(String::as_str).chain(["unknown"])
        {
            for value in &values {
                let mut arguments = json!({"conversation": "monday", "words": "words", "handle": "m0"});
                let known = |it: &str| tool["inputSchema"]["properties"].get(it).is_some();
                arguments.as_object_mut().unwrap().retain(|it, _| known(it));
                arguments[name] = value.clone();
                let result = uses(&live, tool["name"].as_str().unwrap(), &arguments);
                let kind = result["_meta"]["recto/kind"].as_str();
                assert!(!matches!(kind, Some("defect" | "store")), "{tool} {arguments}: {result}");
                assert!(
                    result["content"][0]["text"].as_str().is_some_and(|it| !it.is_empty()),
                    "{arguments}: {result}"
                );
                if result["isError"] == true { refused += 1 } else { taken += 1 }
            }
        }
    }
    assert!(refused > 100 && taken > 5, "{refused} refused, {taken} taken");
}

#[test]
fn messages_on_stdin_that_are_none_are_refused_and_the_next_is_answered() {
    let place = Place::new();
    let live = Live::over(&place, None);
    live.talk("monday", "words", 1);
    let [initialize, initialized] = beginning();
    let long = format!("\"{}\"", "x".repeat(MESSAGE_BYTES_MAX));
    let deep = "[".repeat(10_000);
    let list = request("tools/list", &json!({}));
    let mut lines: Vec<&[u8]> = vec![initialize.as_bytes(), initialized.as_bytes()];
    lines.extend([&b"{"[..], b"\xff\xfe", long.as_bytes(), deep.as_bytes(), b"[]", b"{\"jsonrpc\":\"2.0\"}", b""]);
    lines.push(list.as_bytes());
    let (answers, said) = converses(&place, &lines);
    let refused = answers.iter().filter(|it| it["error"]["code"] == -32_600).count();
    assert_eq!(refused, 6, "{answers:#?}");
    assert_eq!(said.matches("no JSON was refused").count(), 3, "{said}");
    assert_eq!(said.matches("more than 1048576 bytes was refused").count(), 1, "{said}");
    let listed = answers.iter().find(|it| it["id"] == 7).expect("the last is answered");
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 5);
}

#[test]
fn without_a_store_it_says_so_and_without_words_it_ends() {
    let place = Place::new();
    let ran: crate::run::Ran = place.command(&["mcp"]).output().unwrap().into();
    assert_eq!((ran.code, &*ran.stdout), (Some(3), ""));
    assert!(ran.stderr.contains("there is no store"), "{}", ran.stderr);
    Live::over(&place, None).ends();
    assert_eq!(converses(&place, &[]).0, Vec::<Value>::new());
}
