//! A1–A25 as far as a body shows them, thinking by model, and the shapes of Messages.

use super::{refuses, takes, with};
use recto_testkit::fake::{Api, Incoming, Provider};
use serde_json::{Value, json};

fn body(messages: Value) -> Value {
    json!({"model": "claude-opus-5-5", "max_tokens": 100, "messages": messages})
}

fn of_model(model: &str, body: &Value) -> Value {
    with(body, &[("/model", json!(model))])
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "r"})
}

fn user(blocks: Value) -> Value {
    json!({"role": "user", "content": blocks})
}

fn assistant(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object", "properties": {}}})
}

fn tools(tools: Value) -> Value {
    with(&body(json!([user(json!("x"))])), &[("/tools", tools)])
}

fn marked(mut block: Value, ttl: &str) -> Value {
    block["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
    block
}

#[track_caller]
fn case(rule: &str, refused: Value, taken: Value) {
    refuses(Api::Messages, rule, &refused, &taken);
}

#[test]
fn a_conversation_starts_and_ends_with_the_user() {
    let [u, a] = [user(json!("x")), assistant(json!("y"))];
    case("A1", body(json!([a, u])), body(json!([u, a, u])));
    case("A2", body(json!([u, a])), of_model("claude-sonnet-4-5", &body(json!([u, a]))));
    case("A2", of_model("claude-sonnet-4-6", &body(json!([u, a]))), body(json!([u])));
    let paused = json!([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}]);
    takes(Api::Messages, &body(json!([u, assistant(paused)])));
    takes(Api::Messages, &body(json!([assistant(json!([{"type": "compaction", "content": "s"}])), u])));
}

#[test]
fn calls_are_answered_before_anything_else() {
    let [u, t1] = [user(json!("x")), assistant(json!([call("a")]))];
    let good = body(json!([u, t1, user(json!([result("a"), text("x")]))]));
    case("A3", body(json!([u, t1, u])), good.clone());
    case("A3", body(json!([u, t1, user(json!([text("x"), result("a")]))])), good.clone());
    let t2 = assistant(json!([call("a"), call("b")]));
    let split = body(json!([u, t2, user(json!([result("b")])), user(json!([result("a"), text("x")]))]));
    case("A3", body(json!([u, t2, user(json!([result("a"), text("x")])), user(json!([result("b")]))])), split);
    case("A4", body(json!([user(json!([result("a")]))])), good.clone());
    case(
        "A4",
        body(json!([u, t1, user(json!([result("a")])), assistant(json!("y")), user(json!([result("a")]))])),
        good.clone(),
    );
    case("A5", body(json!([u, t1, user(json!([result("a"), result("a")]))])), good.clone());
    let again = json!([u, t1, user(json!([result("a")])), t1, user(json!([result("a")]))]);
    case("A5", body(again), good);
    takes(Api::Messages, &body(json!([u, t1, user(json!([result("a")])), u])));
}

#[test]
fn texts_have_something_in_them() {
    let said = |content: Value| body(json!([user(json!("x")), assistant(content), user(json!("x"))]));
    case("A6", said(json!([text("")])), said(json!([])));
    case("A6", said(json!([text(" \n")])), said(json!("")));
    case("A6", body(json!([user(json!([text("x"), text("")]))])), body(json!([user(json!([]))])));
    let system = |block: Value| with(&said(json!("y")), &[("/system", json!([block]))]);
    case("A6", system(text(" ")), system(text("x")));
    case("A7", body(json!([user(json!(""))])), body(json!([user(json!("x"))])));
}

#[test]
fn ids_and_tools_have_their_form() {
    let called = |id: &str| body(json!([user(json!("x")), assistant(json!([call(id)])), user(json!([result(id)]))]));
    case("A8", called("a.b"), called("toolu_1-b"));
    case("A9", tools(json!([tool("a.b")])), tools(json!([tool("a_b")])));
    case("A9", tools(json!([tool(&"n".repeat(129))])), tools(json!([tool(&"n".repeat(128))])));
    case("A9", tools(json!([tool("f"), tool("f")])), tools(json!([tool("f"), tool("g")])));
    let schema = |schema: Value| tools(json!([{"name": "f", "input_schema": schema}]));
    let good = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    case("A9", schema(json!({"properties": {}})), schema(good.clone()));
    for (place, value) in
        [("/required", json!("a")), ("/properties/a", json!("string")), ("/properties/a/type", json!("text"))]
    {
        case("A9", schema(with(&good, &[(place, value)])), schema(good.clone()));
    }
    let deferred = with(&tool("f"), &[("/defer_loading", json!(true))]);
    case("A25", tools(json!([deferred])), tools(json!([deferred, tool("g")])));
}

#[test]
fn marks_are_few_and_in_order() {
    let blocks = |ttls: &[&str]| {
        let blocks: Vec<Value> = ttls.iter().map(|ttl| marked(text("x"), ttl)).collect();
        body(json!([user(json!(blocks))]))
    };
    let automatic =
        |body: Value, ttl: &str| with(&body, &[("/cache_control", json!({"type": "ephemeral", "ttl": ttl}))]);
    case("A10", blocks(&["5m"; 5]), blocks(&["5m"; 4]));
    case("A11", body(json!([user(json!([marked(text(""), "5m")]))])), blocks(&["5m"]));
    case("A12", blocks(&["5m", "1h"]), blocks(&["1h", "5m"]));
    let with_tool = |ttl: &str, body: Value| with(&body, &[("/tools", json!([marked(tool("f"), ttl)]))]);
    case("A12", with_tool("5m", blocks(&["1h"])), with_tool("1h", blocks(&["1h"])));
    case("A13", automatic(blocks(&["1h"]), "5m"), automatic(blocks(&["1h"]), "1h"));
    case("A13", automatic(blocks(&["5m"; 4]), "5m"), automatic(blocks(&["5m"; 3]), "5m"));
    case("shape", blocks(&["2h"]), blocks(&["1h"]));
    let thought =
        |thinking: Value| body(json!([user(json!("x")), assistant(json!([thinking, text("y")])), user(json!("x"))]));
    let plain = json!({"type": "thinking", "thinking": "", "signature": "s"});
    case("A11", thought(marked(plain.clone(), "5m")), thought(plain));
    let late = |block: Value| {
        body(json!([user(json!("x")), {"role": "system", "content": [block], "clear_at": "next_user_message"}]))
    };
    case("A11", late(marked(text("s"), "5m")), late(text("s")));
}

#[test]
fn thinking_stands_where_it_may() {
    let thinking = json!({"type": "thinking", "thinking": "t", "signature": "s"});
    let [u, r] = [user(json!("x")), user(json!([result("a")]))];
    let manual = |messages: Value| {
        let config = json!({"type": "enabled", "budget_tokens": 1024});
        with(&of_model("claude-sonnet-4-5", &body(messages)), &[("/thinking", config), ("/max_tokens", json!(2000))])
    };
    let [bare, full] = [assistant(json!([call("a")])), assistant(json!([thinking, call("a")]))];
    case("A15", manual(json!([u, bare, r])), manual(json!([u, full, r])));
    takes(Api::Messages, &manual(json!([u, assistant(json!("y")), u])));
    takes(Api::Messages, &body(json!([u, bare, r])));
    let ends = |blocks: Value| body(json!([u, assistant(blocks), u]));
    case("A18", ends(json!([text("y"), thinking])), ends(json!([thinking, text("y")])));
    let unsigned = with(&thinking, &[("/signature", json!(""))]);
    case("A16", ends(json!([unsigned, text("y")])), ends(json!([thinking, text("y")])));
}

#[test]
fn unknown_fields_are_refused() {
    let good = body(json!([user(json!([text("x")])), assistant(json!([call("a")])), user(json!([result("a")]))]));
    let places = ["/extra", "/messages/0/extra", "/messages/0/content/0/extra", "/messages/1/content/0/extra"];
    for place in places.into_iter().chain(["/messages/2/content/0/extra", "/messages/0/name"]) {
        case("A19", with(&good, &[(place, json!("x"))]), good.clone());
    }
    case("A19", tools(json!([with(&tool("f"), &[("/parameters", json!({}))])])), tools(json!([tool("f")])));
    case("shape", with(&good, &[("/max_tokens", Value::Null)]), good.clone());
    case("shape", with(&good, &[("/messages/0/content/0/type", json!("input_text"))]), good.clone());
    case("shape", with(&good, &[("/messages/1/content/0/input", json!("{}"))]), good.clone());
    case("shape", with(&good, &[("/messages/0/role", json!("developer"))]), good.clone());
    case("shape", body(json!([])), good);
}

#[test]
fn sampling_and_forced_tools_depend_on_the_model() {
    let plain = body(json!([user(json!("x"))]));
    let set = |model: &str, field: &str, value: Value| with(&of_model(model, &plain), &[(field, value)]);
    for model in ["claude-opus-4-7", "claude-sonnet-5", "claude-haiku-5-5", "claude-fable-5-1"] {
        case("A20", set(model, "/temperature", json!(0.5)), set(model, "/temperature", json!(1)));
        case("A20", set(model, "/top_p", json!(0.5)), set("claude-opus-4-6", "/top_p", json!(0.5)));
        case("A20", set(model, "/top_k", json!(5)), set("claude-haiku-4-5", "/top_k", json!(5)));
    }
    let forced = |model: &str, kind: &str| {
        let choice = if kind == "tool" { json!({"type": kind, "name": "f"}) } else { json!({"type": kind}) };
        with(&of_model(model, &tools(json!([tool("f")]))), &[("/tool_choice", choice)])
    };
    for model in ["claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5"] {
        for kind in ["any", "tool"] {
            case("A21", forced(model, kind), forced("claude-opus-5", kind));
        }
        takes(Api::Messages, &forced(model, "auto"));
    }
    let manual = [("/thinking", json!({"type": "enabled", "budget_tokens": 1024})), ("/max_tokens", json!(2000))];
    let old = forced("claude-sonnet-4-5", "any");
    case("A21", with(&old, &manual), old);
}

#[test]
fn tools_of_the_server_are_finished_first() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let with_blocks = |blocks: Value, next: Value| body(json!([user(json!("x")), assistant(blocks), user(next)]));
    let open = json!([search, call("a")]);
    case("A22", with_blocks(open.clone(), json!([result("a"), text("x")])), with_blocks(open, json!([result("a")])));
    case("A22", with_blocks(json!([search]), json!("x")), with_blocks(json!([search, found]), json!("x")));
}

#[test]
fn filling_the_cache_goes_with_nothing_else() {
    let fill = with(&tools(json!([tool("f")])), &[("/max_tokens", json!(0)), ("/model", json!("claude-opus-5"))]);
    let format = json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
    let conflicts = [("/stream", json!(true)), ("/output_config", format), ("/tool_choice", json!({"type": "any"}))];
    for conflict in conflicts {
        let normal = with(&fill, &[("/max_tokens", json!(10)), conflict.clone()]);
        case("A23", with(&fill, &[conflict]), normal);
    }
    takes(Api::Messages, &fill);
}

fn png(width: u32, height: u32) -> Value {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let encode = |three: &[u8]| {
        let bits = three.iter().fold(0usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(LETTERS[bits >> shift & 63]))
    };
    let data: String = bytes.chunks_exact(3).flat_map(encode).collect();
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

#[test]
fn images_are_bounded() {
    let images = |count: usize, image: Value| body(json!([user(Value::Array(vec![image; count]))]));
    case("A24", images(601, png(10, 10)), images(600, png(10, 10)));
    let small = |body: &Value| of_model("claude-haiku-4-5", body);
    case("A24", small(&images(101, png(10, 10))), small(&images(100, png(10, 10))));
    case("A24", images(1, png(8001, 10)), images(1, png(8000, 10)));
    case("A24", images(21, png(10, 2001)), images(20, png(10, 2001)));
    let mut heavy = png(10, 10);
    heavy["source"]["data"] = json!("AAAA".repeat(10 * 1024 * 1024 / 4 + 1));
    case("A24", images(1, heavy), images(1, png(10, 10)));
    let source = |field: &str, value: &str| images(1, with(&png(1, 1), &[(&format!("/source/{field}"), json!(value))]));
    case("shape", source("data", "a b!"), images(1, png(1, 1)));
    case("shape", source("media_type", "image/tiff"), images(1, png(1, 1)));
}

#[test]
fn thinking_is_configured_as_each_model_takes_it() {
    let plain = with(&body(json!([user(json!("x"))])), &[("/max_tokens", json!(4000))]);
    let config = |model: &str, kind: &str, effort: &str| {
        let mut thinking = json!({"type": kind});
        if kind == "enabled" {
            thinking["budget_tokens"] = json!(1024);
        }
        with(&of_model(model, &plain), &[("/thinking", thinking), ("/output_config", json!({"effort": effort}))])
    };
    // What is taken at effort high, and what of it is refused above.
    let table: [(&str, &[&str], &[&str]); 10] = [
        ("claude-fable-5-1", &["adaptive"], &[]),
        ("claude-opus-5-5", &["adaptive"], &[]),
        ("claude-opus-5", &["adaptive", "disabled"], &["disabled"]),
        ("claude-sonnet-5-5", &["adaptive", "between_tools"], &["between_tools"]),
        ("claude-sonnet-5", &["adaptive", "disabled"], &[]),
        ("claude-haiku-5-5", &["adaptive", "disabled"], &["disabled"]),
        ("claude-opus-4-8", &["adaptive", "disabled"], &[]),
        ("claude-opus-4-7", &["adaptive", "disabled"], &[]),
        ("claude-sonnet-4-6", &["adaptive", "enabled", "disabled"], &[]),
        ("claude-haiku-4-5", &["enabled", "disabled"], &[]),
    ];
    for (model, taken, refused_above) in table {
        for kind in ["adaptive", "enabled", "disabled", "between_tools"] {
            let good = config(model, taken[0], "high");
            if !taken.contains(&kind) {
                case("thinking", config(model, kind, "high"), good);
            } else if refused_above.contains(&kind) {
                case("thinking", config(model, kind, "xhigh"), config(model, kind, "high"));
            } else {
                takes(Api::Messages, &config(model, kind, "max"));
            }
        }
    }
    let budget = |tokens: u64| {
        with(&config("claude-haiku-4-5", "enabled", "high"), &[("/thinking/budget_tokens", json!(tokens))])
    };
    case("thinking", budget(1023), budget(1024));
    case("thinking", budget(4000), budget(3999));
}

#[test]
fn late_system_messages_stand_behind_the_user() {
    let [u, a, s] = [user(json!("x")), assistant(json!("y")), json!({"role": "system", "content": "s"})];
    let good = body(json!([u, s, a, u, s]));
    for model in ["claude-sonnet-5", "claude-haiku-5-5", "claude-opus-4-7"] {
        case("system", of_model(model, &good), of_model("claude-opus-4-8", &good));
    }
    case("system", body(json!([u, a, s, u])), good.clone());
    case("system", body(json!([u, s, u])), good.clone());
    case("system", body(json!([u, s, s])), good.clone());
    case("A1", body(json!([s, u])), good.clone());
    case("system", body(json!([u, assistant(json!([call("a")])), s, user(json!([result("a")]))])), good);
}

#[test]
fn what_is_beta_needs_its_header() {
    let mut provider = Provider::default();
    let binding = json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    let mut request =
        Incoming::post("/v1/messages", &with(&body(json!([user(json!("x"))])), &[("/thinking", binding)]));
    assert_eq!(provider.answer(&request).status, 400);
    assert_eq!(provider.log()[0].refusal.as_ref().unwrap().rule, "A19");
    request.headers.push(("anthropic-beta".to_owned(), "other-1,thinking-binding-controls-2026-08-01".to_owned()));
    assert_eq!(provider.answer(&request).status, 200);
}

#[test]
fn what_looks_odd_but_is_fine_is_taken() {
    let [u, a] = [user(json!("x")), assistant(json!("y"))];
    takes(Api::Messages, &body(json!([u, u, u])));
    takes(Api::Messages, &body(json!([u, a, a, u])));
    takes(Api::Messages, &body(json!([u, assistant(json!([])), u])));
    let empty = json!({"type": "tool_result", "tool_use_id": "a"});
    takes(Api::Messages, &body(json!([u, assistant(json!([call("a")])), user(json!([empty]))])));
}
