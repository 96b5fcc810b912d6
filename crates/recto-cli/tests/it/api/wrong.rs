//! What can't be taken is refused as a problem, and never breaks anything.

use super::live::Live;
use serde_json::{Value, json};

/// Returns a path on which only the body or the parameters can be wrong.
fn path(template: &str) -> String {
    let names =
        [("{conversation}", "monday"), ("{reader}", "main"), ("{seq}", "0"), ("{turn}", "0"), ("{ordinal}", "1")];
    let path = names.into_iter().fold(template.to_string(), |path, (name, value)| path.replace(name, value));
    path.replace("{policy}", "default").replace("{model}", "gpt-4o")
}

/// Fails unless it is refused with a status of 4xx.
#[track_caller]
fn is_refused(live: &Live, method: &str, path: &str, body: &[u8]) {
    let answer = live.ask(method, path, &[], body);
    let told =
        || format!("{method} {path} {}: {}", String::from_utf8_lossy(&body[..body.len().min(300)]), answer.text());
    assert!((400..500).contains(&answer.status), "{} {}", answer.status, told());
    live.is_problem(&answer);
}

/// Values of every type, and of sizes that nobody means.
fn values() -> Vec<Value> {
    vec![json!(true), json!(-1), json!(1.5), json!(u64::MAX), json!("x"), json!([1]), json!({"x": 1}), json!([[]])]
}

#[test]
fn bodies_that_are_no_json_or_have_unknown_fields_are_refused() {
    let live = Live::new();
    live.talk("monday", "words", 1);
    let bodies: [&[u8]; 9] =
        [b"{", b"[]", b"null", b"\"x\"", b"\xff\xfe", b"{\"unknown\":1}", b"{} {}", b"nul", b"{\"a\":1,\"a\":2}"];
    let mut asked = 0;
    for (method, template, operation) in live.routes() {
        if operation.get("requestBody").is_some() {
            for body in bodies {
                is_refused(&live, &method, &path(&template), body);
                asked += 1;
            }
        }
    }
    assert!(asked >= 100, "{asked}");
}

#[test]
fn fields_of_another_type_are_refused_and_never_break_anything() {
    let live = Live::new();
    live.talk("monday", "words", 1);
    let (mut refused, mut taken) = (0, 0);
    for (method, template, operation) in live.routes() {
        let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema/$ref") else { continue };
        let schema = live.document.pointer(schema.as_str().unwrap().trim_start_matches('#')).unwrap();
        for name in schema["properties"].as_object().unwrap().keys() {
            for value in values() {
                // Some values are right for some fields; what is taken must be answered as described.
                let answer = live.ask(&method, &path(&template), &[], json!({name: value}).to_string());
                let told = || format!("{method} {template} {name} {value}: {}", answer.text());
                assert!(answer.status < 500, "{}", told());
                if answer.status >= 400 {
                    live.is_problem(&answer);
                    refused += 1;
                } else {
                    taken += 1;
                }
            }
        }
    }
    assert!(refused > 300 && taken < refused / 4, "{refused} refused, {taken} taken");
    assert_eq!(live.get("/version")["tenant"], "local", "it still answers");
}

#[test]
fn parameters_and_paths_that_mean_nothing_are_refused() {
    let live = Live::new();
    live.talk("monday", "words", 1);
    for (method, template, operation) in live.routes() {
        let parameters = operation["parameters"].as_array().unwrap();
        let names = parameters.iter().filter(|it| it["in"] == "query").map(|it| it["name"].as_str().unwrap());
        for name in names {
            let wrong: &[&str] = match name {
                "limit" => &["0", "-1", "x", "", "1.5", "999999999", "99999999999999999999999"],
                "from" | "after" if !template.ends_with("/conversations") && !template.ends_with("/models") => {
                    &["x", "-1"]
                }
                "order" | "body_as" | "wire" | "with_forks" => &["x", "", "1"],
                "first" | "last" | "window" | "reserve" => &["x", "-1", ""],
                "since" => &["x", "1.2", "9.9.9"],
                _ => &["%ff", "%zz"],
            };
            for value in wrong {
                is_refused(&live, &method, &format!("{}?{name}={value}", path(&template)), b"");
            }
            is_refused(&live, &method, &format!("{}?{name}=1&{name}=1", path(&template)), b"");
        }
        if !operation["parameters"].as_array().unwrap().iter().any(|it| it["in"] == "query") {
            continue;
        }
        is_refused(&live, &method, &format!("{}?unknown=1", path(&template)), b"");
    }
    for wrong in ["x", "-1", "1.5", "99999999999999999999999", "%ff"] {
        is_refused(&live, "GET", &format!("/api/v1/conversations/monday/entries/{wrong}"), b"");
        is_refused(&live, "GET", &format!("/api/v1/conversations/monday/readers/main/turns/{wrong}"), b"");
        is_refused(&live, "POST", &format!("/api/v1/conversations/monday/readers/main/decisions/{wrong}/revert"), b"");
    }
    for nowhere in
        ["/api", "/api/v1", "/api/v1/nothing", "/api/v2/version", "/api/v1/conversations/", "/api/v1/conversations//x"]
    {
        is_refused(&live, "GET", nowhere, b"");
    }
    live.refuses((405, "method"), "PUT", "/conversations/monday", "");
    live.refuses((404, "not_found"), "GET", "/conversations/monday/entries/99", "");
    live.refuses((404, "not_found"), "GET", "/conversations/monday/readers/main/turns/99", "");
    live.refuses((404, "not_found"), "GET", "/policies/nothing", "");
    let long = "x".repeat(600);
    live.refuses((413, "too_much"), "POST", "/conversations", json!({"conversation": long}).to_string());
}

#[test]
fn what_can_not_be_done_says_why() {
    let live = Live::new();
    live.talk("monday", "words", 1);
    let say = |entry: Value| json!({"entries": [entry]}).to_string();
    let path = "/conversations/monday/entries";
    live.refuses((400, "bad_request"), "POST", path, say(json!({"role": "user"})));
    live.refuses((400, "bad_request"), "POST", path, say(json!({"role": "tool", "text": "x"})));
    live.refuses((400, "bad_request"), "POST", path, say(json!({"role": "nobody", "text": "x"})));
    live.refuses((400, "bad_request"), "POST", path, "{}");
    let unbroken = say(json!({"role": "tool", "parts": [{"type": "text", "text": "no result"}]}));
    live.refuses((422, "not_taken"), "POST", path, unbroken);
    let reader = "/conversations/monday/readers/main";
    let full = live.refuses((422, "overflow"), "POST", &format!("{reader}/preview"), r#"{"window":20,"reserve":10}"#);
    assert!(full["overflow"]["over"].as_u64() > Some(0), "{full}");
    live.refuses((400, "bad_request"), "POST", &format!("{reader}/preview"), r#"{"policy":"nothing"}"#);
    live.refuses((422, "not_taken"), "POST", &format!("{reader}/pins"), r#"{"first":5,"last":99}"#);
    let deep = format!("{{\"entries\":{}{}}}", "[".repeat(500), "]".repeat(500));
    live.refuses((400, "too_deep"), "POST", path, deep);
}

/// Tools, formats and entries are told by clients; that no provider takes them is nobody's defect.
#[test]
fn a_page_that_no_provider_takes_is_refused_and_leaves_no_call_open() {
    let live = Live::new();
    live.talk("monday", "words", 1);
    let reader = "/conversations/monday/readers/main";
    let result = json!({"type": "result", "call": "c", "is_error": false, "content": []});
    let call = json!({"type": "call", "id": "c", "name": "read", "arguments": {"string": "{}"}});
    let said = |role: &str, part: &Value| json!({"input": {"role": role, "parts": [part]}});
    for verb in ["compile", "preview"] {
        let path = format!("{reader}/{verb}");
        let refused = live.refuses((422, "not_taken"), "POST", &path, r#"{"tools":[{}]}"#);
        assert!(refused["detail"].as_str().unwrap().contains("openai_chat refuses: "), "{refused}");
        for given in [said("tool", &result), said("assistant", &call)] {
            live.refuses((400, "bad_request"), "POST", &path, given.to_string());
        }
    }
    let before = live.get(&format!("{reader}/turns"));
    let page = live.post(&format!("{reader}/compile"), json!({}));
    assert_eq!((before["calls"].as_array().unwrap().len(), &page["turn"]), (1, &json!(1)));
}

#[test]
fn numbers_that_nobody_means_break_nothing() {
    let live = Live::new();
    live.talk("monday", "words", 2);
    let long = "a line of the file\n".repeat(9_000);
    let messages = json!([
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": long},
        {"role": "user", "content": "So?"}]);
    live.post("/conversations/monday/entries", json!({"messages": messages}));
    let (most, reader) = (u64::MAX, "/conversations/monday/readers/main");
    let mut asked = Vec::new();
    for path in ["/entries?from=N", "/entries?from=N&order=back", "/entries/N", "/entries/N/original"] {
        asked.push(("GET", format!("/conversations/monday{path}"), String::new()));
    }
    for path in ["/turns?from=N", "/turns/N", "/turns/N/request", "/curve?from=N", "/decisions?after=N"] {
        asked.push(("GET", format!("{reader}{path}"), String::new()));
    }
    asked.push(("GET", format!("{reader}/wants?window=N&reserve=N"), String::new()));
    asked.push(("DELETE", format!("{reader}/pins?first=N&last=N"), String::new()));
    let posts = [
        ("/readers/main/decisions/N/revert", "{}"),
        ("/readers/main/turns/N/preview", "{}"),
        ("/readers/main/turns/0/preview", r#"{"window":N,"reserve":N}"#),
        ("/readers/main/preview", r#"{"window":N}"#),
        ("/readers/main/preview", r#"{"reserve":N}"#),
        ("/readers/main/preview", r#"{"window":N,"reserve":N}"#),
        ("/readers/main/replay", r#"{"window":N,"reserve":N}"#),
        ("/readers/main/pins", r#"{"first":N,"last":N}"#),
        ("/readers/main/pins", r#"{"first":0,"last":N}"#),
        ("/readers/main/expand", r#"{"handle":"mN"}"#),
        ("/readers/main/expand", r#"{"handle":"m5.N"}"#),
        ("/readers/main/expand", r#"{"handle":"m5","lines":[0,0],"window":4000,"reserve":500}"#),
        ("/readers/main/expand", r#"{"handle":"m5","lines":[9,2],"window":4000,"reserve":500}"#),
        ("/readers/main/expand", r#"{"handle":"m5","lines":[1,N],"window":4000,"reserve":500}"#),
        ("/readers/main/expand", r#"{"handle":"m5","items":[9,2],"window":4000,"reserve":500}"#),
        ("/readers/main/expand", r#"{"handle":"m5","search":"","window":4000,"reserve":500}"#),
        ("/forks", r#"{"conversation":"f","upto":N}"#),
        ("/erase", r#"{"entries":[{"first":N,"last":N}]}"#),
        ("/entries", r#"{"entries":[{"role":"user","text":"x"}],"after":N}"#),
        ("/entries", r#"{"entries":[{"role":"user","text":"x","at":9223372036854775807}]}"#),
        ("/entries", r#"{"entries":[{"role":"user","text":"x","covers":{"first":N,"last":0}}]}"#),
        (
            "/entries",
            r#"{"entries":[{"role":"user","text":"x","redactions":[{"part":N,"start":N,"end":0,"label":"l"}]}]}"#,
        ),
    ];
    asked.extend(posts.map(|(path, body)| ("POST", format!("/conversations/monday{path}"), body.into())));
    for (method, path, body) in asked {
        for number in [most, most - 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::from(u32::MAX)] {
            let [path, body] = [&path, &body].map(|it| it.replace('N', &number.to_string()));
            let answer = live.ask(method, &format!("/api/v1{path}"), &[], &body);
            assert!(answer.status < 500, "{method} {path} {body}: {} {}", answer.status, answer.text());
            if answer.status >= 400 {
                live.is_problem(&answer);
            } else {
                live.holds(method, &format!("/api/v1{path}"), &answer);
            }
        }
    }
    live.get("/conversations/monday");
}
