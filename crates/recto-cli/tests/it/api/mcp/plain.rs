//! Messages as they are, without a client.

use super::super::live::{Answer, Live, Place};
use crate::run::Ran;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// The headers of every message over HTTP.
const HEADERS: [&str; 2] = ["content-type: application/json", "accept: application/json, text/event-stream"];

/// Sends bytes to `/mcp`.
pub(in super::super) fn sends(live: &Live, more: &[&str], body: impl AsRef<[u8]>) -> Answer {
    live.ask("POST", "/mcp", &[&HEADERS[..], more].concat(), body)
}

/// Uses a tool over HTTP, and returns the result.
#[track_caller]
pub(in super::super) fn uses(live: &Live, tool: &str, arguments: &Value) -> Value {
    let answer = sends(live, &[], request("tools/call", &json!({"name": tool, "arguments": arguments})));
    assert_eq!(answer.status, 200, "{tool}: {}", answer.text());
    answer.json()["result"].clone()
}

/// A message that asks for something.
pub(super) fn request(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

/// Says lines to `recto mcp`, and returns what it answers on each line, and what it says on stderr.
#[track_caller]
pub(super) fn converses(place: &Place, lines: &[&[u8]]) -> (Vec<Value>, String) {
    let mut child = place.command(&["mcp"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        stdin.write_all(line).unwrap();
        stdin.write_all(b"\n").unwrap();
    }
    drop(stdin);
    let Ran { code, stdout, stderr } = child.wait_with_output().unwrap().into();
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    (stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), stderr)
}

/// The first two messages of every conversation.
pub(super) fn beginning() -> [String; 2] {
    let about =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    [json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).to_string(), begun]
}
