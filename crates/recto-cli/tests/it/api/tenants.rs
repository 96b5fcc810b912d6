//! Whose things are whose: every route of the description is asked with another tenant's key.

use super::live::{Live, Place};
use super::mcp::{TOOLS, plain};
use serde_json::{Value, json};
use std::io::Read;

/// What only its owner may read.
const SECRET: &str = "xylophone";

/// Returns a body with which a route can be asked.
fn body(id: &str, ticket: &Value) -> Value {
    match id {
        "createConversation" => json!({"conversation": "new"}),
        "describeConversation" => json!({"title": SECRET}),
        "forkConversation" => json!({"conversation": format!("{SECRET}-fork")}),
        "appendEntries" => json!({"entries": [{"role": "user", "text": "more"}]}),
        "eraseEntries" => json!({"entries": [{"first": 0, "last": 0}]}),
        "acknowledge" => json!({"ticket": ticket, "entries": [{"role": "assistant", "text": "done"}]}),
        "abandon" => json!({"ticket": ticket}),
        "pin" => json!({"first": 0, "last": 0}),
        "expand" => json!({"handle": "m2", "lines": [1, 2], "window": 4_000, "reserve": 500}),
        _ => json!({}),
    }
}

/// Returns a path that leads to something of the owner's.
fn path(template: &str, id: &str) -> String {
    let names = [("{conversation}", "owned"), ("{reader}", "main"), ("{seq}", "1"), ("{turn}", "0")];
    let names = names.into_iter().chain([("{ordinal}", "1"), ("{policy}", "default"), ("{model}", "gpt-4o")]);
    let path = names.fold(template.to_string(), |path, (name, value)| path.replace(name, value));
    match id {
        "unpin" => format!("{path}?first=0&last=0"),
        "search" | "searchAll" => format!("{path}?words={SECRET}"),
        "eraseConversation" => format!("{path}?with_forks=true"),
        _ => path,
    }
}

/// Makes a conversation in which everything can be asked for.
fn owned(live: &Live) -> Value {
    live.talk("owned", SECRET, 2);
    let long = format!("{SECRET}\n").repeat(9_000);
    let messages = json!([
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": long},
        {"role": "user", "content": "So?"}]);
    live.post("/conversations/owned/entries", json!({"messages": messages}));
    live.post("/conversations/owned/readers/main/pins", json!({"first": 0, "last": 0}));
    live.post("/conversations/owned/readers/main/compile", json!({"body_as": "none"}))["ticket"].clone()
}

#[test]
fn nothing_of_another_tenant_is_found_by_any_route() {
    let place = Place::new();
    let [mine, theirs] = ["mine", "theirs"].map(|tenant| place.key(tenant, tenant));
    let live = Live::over(&place, Some(&mine));
    let ticket = owned(&live);
    let mut routes = live.routes();
    // What ends it for its owner comes last; what needs something first is asked after that.
    routes.sort_by_key(|(_, _, it)| match it["operationId"].as_str().unwrap() {
        "eraseConversation" => 3,
        "eraseEntries" | "forkConversation" => 2,
        "abandon" | "unpin" => 1,
        _ => 0,
    });
    let mut asked = 0;
    for (method, template, operation) in &routes {
        let id = operation["operationId"].as_str().unwrap();
        let (path, body) = (path(template, id), body(id, &ticket).to_string());
        let body = if method == "GET" || method == "DELETE" { "" } else { &body };
        let is_stream = id.ends_with("Events");
        if template.contains("{conversation}") {
            live.with_key(&theirs);
            let refused = live.ask(method, &path, &[], body);
            live.is_problem(&refused);
            assert_eq!(refused.status, 404, "{method} {path}: {}", refused.text());
            assert!(!refused.text().contains(SECRET), "{method} {path}: {}", refused.text());
            // It reads exactly as if it had never been.
            let never = live.ask(method, &path.replace("owned", "never"), &[], body);
            assert_eq!(never.text().replace("never", "owned"), refused.text(), "{method} {path}");
            asked += 1;
        }
        live.with_key(&mine);
        if is_stream {
            let mut status = [0; 12];
            live.opened(method, &path, &[], b"").read_exact(&mut status).unwrap();
            assert_eq!(&status, b"HTTP/1.1 200", "{path}");
            continue;
        }
        // The same request is one that its owner may make.
        let control = if id == "expand" {
            live.ask(method, &path, &[], body.replace("m2", "m6"))
        } else {
            live.ask(method, &path, &[], body)
        };
        assert!(control.status < 300, "{method} {path}: {}", control.text());
    }
    assert!(asked >= 28, "{asked}");
}

#[test]
fn nothing_of_another_tenant_is_found_by_any_tool() {
    let place = Place::new();
    let [mine, theirs] = ["mine", "theirs"].map(|tenant| place.key(tenant, tenant));
    let live = Live::over(&place, Some(&mine));
    owned(&live);
    let small = json!({"window": 4_000, "reserve": 500, "body_as": "none"});
    live.post("/conversations/owned/readers/main/compile", small);
    for tool in TOOLS {
        let arguments = |name: &str| match tool {
            "list" => json!({"search": name}),
            "search" => json!({"words": SECRET, "conversation": name}),
            "expand" => json!({"conversation": name, "handle": "m6", "lines": [1, 2]}),
            _ => json!({"conversation": name}),
        };
        live.with_key(&theirs);
        let refused = plain::uses(&live, tool, &arguments("owned")).to_string();
        let never = plain::uses(&live, tool, &arguments("never")).to_string();
        assert_eq!(never.replace("never", "owned"), refused, "{tool}: it reads as if it had never been");
        assert!(!refused.contains(SECRET), "{tool}: {refused}");
        // The same is something that its owner is told.
        live.with_key(&mine);
        let told = plain::uses(&live, tool, &arguments("owned"));
        assert_eq!(told["isError"], false, "{tool}: {told}");
        assert!(tool == "explain" || told.to_string().contains(SECRET), "{tool}: {told}");
    }
    for (key, count) in [(&theirs, 0), (&mine, 1)] {
        live.with_key(key);
        let all = plain::uses(&live, "search", &json!({"words": SECRET})).to_string();
        assert_eq!(all.contains("of \\\"owned\\\""), count == 1, "{all}");
    }
}

#[test]
fn lists_and_streams_of_a_tenant_tell_nothing_of_another() {
    let place = Place::new();
    let [mine, theirs] = ["mine", "theirs"].map(|tenant| place.key(tenant, tenant));
    let live = Live::over(&place, Some(&mine));
    live.talk("owned", SECRET, 1);
    assert_eq!(live.get("/conversations")["conversations"].as_array().unwrap().len(), 1);
    live.with_key(&theirs);
    for query in ["", "?search=owned", "?order=name", "?prefix=o"] {
        let listed = live.get(&format!("/conversations{query}"));
        assert_eq!(listed, json!({"conversations": [], "next": null, "is_complete": true}));
    }
    // The same name is free for them, and stays another conversation.
    live.post("/conversations", json!({"conversation": "owned"}));
    assert_eq!(live.get("/conversations/owned")["entries"], 0);
    live.with_key(&mine);
    assert_eq!(live.get("/conversations/owned")["entries"], 2);
}

#[test]
fn without_a_key_nothing_is_told_once_there_is_one() {
    let place = Place::new();
    let mine = place.key("mine", "mine");
    let live = Live::over(&place, Some(&mine));
    for key in ["", "recto_wrong"] {
        live.with_key(key);
        for (method, template, operation) in live.routes() {
            let path = path(&template, operation["operationId"].as_str().unwrap());
            let refused = live.ask(&method, &path, &[], "");
            assert_eq!(refused.status, 401, "{method} {path}");
            live.is_problem(&refused);
            assert_eq!(refused.json()["code"], "R0371");
        }
    }
    live.with_key("");
    let refused = plain::sends(&live, &[], "{}");
    assert_eq!(refused.status, 401, "{}", refused.text());
    live.is_problem(&refused);
    live.with_key(&mine);
    for (method, path) in [("GET", "/api/v1/version"), ("POST", "/mcp")] {
        let foreign = live.ask(method, path, &["Origin: http://evil.test"], "");
        assert_eq!((foreign.status, &foreign.json()["kind"]), (403, &json!("origin")), "{path}");
    }
}
