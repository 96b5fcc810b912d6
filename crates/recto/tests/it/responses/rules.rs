//! Every rule is broken by changing one thing of a good body.

use super::{call, output, thought, user, wire};
use serde_json::{Value, json};

fn good() -> Value {
    json!({
        "model": "gpt-6-sol", "store": false, "max_output_tokens": 16, "prompt_cache_key": "k".repeat(64),
        "tools": [{"type": "function", "name": "n".repeat(128)}, {"type": "web_search"}, {"type": "custom", "name": "p"}],
        "input": [
            {"role": "developer", "content": "be brief"},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "go"},
                {"type": "input_image", "image_url": "https://example.org/a.png"},
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]},
            thought("rs_1"),
            thought("rs_2"),
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": "not JSON"},
            {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "x"},
            user("wait"),
            {"type": "custom_tool_call_output", "call_id": "b", "output": "done"},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": ""}]},
            {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                "content": [{"type": "output_text", "text": "so"}, {"type": "refusal", "refusal": "no"}]},
        ],
    })
}

fn found(body: &Value) -> String {
    let violations = wire::validate(&serde_json::to_vec(body).unwrap());
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn broken(pointer: &str, value: Value, what: &str) {
    let mut body = good();
    *body.pointer_mut(pointer).unwrap() = value;
    assert_eq!(found(&body), what);
}

#[track_caller]
fn without(at: usize, what: &str) {
    let mut body = good();
    body["input"].as_array_mut().unwrap().remove(at);
    assert_eq!(found(&body), what);
}

#[test]
fn nothing_is_found_in_good_bodies() {
    assert_eq!(found(&good()), "");
    let given = |input: Value| found(&json!({"model": "m", "input": input}));
    assert_eq!(given(json!("hi")), "");
    // No rules: roles in any order, an assistant first or last, empty texts, an id that comes again.
    assert_eq!(given(json!([{"role": "assistant", "content": ""}, {"role": "assistant", "content": "x"}])), "");
    assert_eq!(given(json!([call("a"), output("a", ""), call("a"), output("a", "")])), "");
    assert_eq!(given(json!([{"type": "of tomorrow", "id": "x"}])), "");
    assert_eq!(given(json!([{"type": "local_shell_call", "call_id": "s"}, output("s", "x")])), "");
    // What is stored elsewhere can't be missed here.
    assert_eq!(found(&json!({"model": "m", "previous_response_id": "r", "input": [output("a", "x")]})), "");
    assert_eq!(given(json!([{"type": "item_reference", "id": "fc_1"}, output("a", "x")])), "");
    assert_eq!(given(json!([{"type": "reasoning", "id": "rs_1", "summary": []}, call("a"), output("a", "")])), "");
}

#[test]
fn calls_and_outputs_belong_together() {
    without(4, "input[7]: No tool call found for function call output with call_id a.");
    without(5, "input[6]: No tool call found for custom tool call output with call_id b.");
    without(7, "input[5]: No tool output found for function call b.");
    without(8, "input[4]: No tool output found for function call a.");
    let kinds = "input[7]: No tool call found for function call output with call_id b.; \
                 input[5]: No tool output found for function call b.";
    broken("/input/7/type", json!("function_call_output"), kinds);
    let early = found(&json!({"model": "m", "input": [output("a", "x"), call("a")]}));
    assert_eq!(
        early,
        "input[0]: No tool call found for function call output with call_id a.; \
                       input[1]: No tool output found for function call a."
    );
}

#[test]
fn reasoning_needs_what_it_led_to_and_its_seal() {
    let lone = |id: &str| format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
    let given = |behind: Value| found(&json!({"model": "m", "input": [user("go"), thought("rs_1"), behind]}));
    assert_eq!(given(user("x")), format!("input[1]: {}", lone("rs_1")));
    assert_eq!(given(json!({"role": "assistant", "content": "x"})), "");
    let last = found(&json!({"model": "m", "input": [user("go"), thought("rs_1")]}));
    assert_eq!(last, format!("input[1]: {}", lone("rs_1")));
    let unsealed = "input[2]: Item with id 'rs_1' not found: nothing is stored, and it is not encrypted";
    broken("/input/2/encrypted_content", json!(""), unsealed);
}

#[test]
fn ids_names_and_sizes_have_their_form() {
    broken("/input/2/id", json!("call_1"), "input[2].id: \"call_1\": expected an ID that begins with 'rs'");
    broken("/input/4/id", json!("call_1"), "input[4].id: \"call_1\": expected an ID that begins with 'fc'");
    broken("/input/9/id", json!("call_1"), "input[9].id: \"call_1\": expected an ID that begins with 'msg'");
    let long = |at: &str, most: usize, got: usize| {
        format!("{at}: string too long. Expected a string with maximum length {most}, but got {got}")
    };
    broken("/input/4/id", json!(format!("fc{}", "é".repeat(63))), &long("input[4].id", 64, 65));
    broken("/input/4/id", json!(format!("fc{}", "é".repeat(62))), "");
    broken("/prompt_cache_key", json!("k".repeat(65)), &long("prompt_cache_key", 64, 65));
    let text = "x".repeat(10_485_761);
    broken("/input/0/content", json!(text), &long("input[0].content", 10_485_760, 10_485_761));
    broken("/input/1/content/0/text", json!(text), &long("input[1].content[0].text", 10_485_760, 10_485_761));
    broken("/input/7/output", json!(text), &long("input[7].output", 10_485_760, 10_485_761));
    let mut ids = good();
    for at in [4, 8] {
        ids["input"][at]["call_id"] = json!("c".repeat(65));
    }
    let both = format!("{}; {}", long("input[4].call_id", 64, 65), long("input[8].call_id", 64, 65));
    assert_eq!(found(&ids), both);
    let name = |name: &str| format!("{name:?} does not match ^[a-zA-Z0-9_-]{{1,128}}$");
    broken("/input/4/name", json!("a.b"), &format!("input[4].name: {}", name("a.b")));
    broken("/tools/0/name", json!(""), &format!("tools[0].name: {}", name("")));
    let wrapped = json!({"type": "function", "function": {"name": "look"}});
    broken("/tools/0", wrapped, &format!("tools[0].name: {}", name("")));
}

#[test]
fn bodies_items_and_parts_have_their_fields() {
    broken("/model", Value::Null, "model: missing");
    broken("/max_output_tokens", json!(15), "max_output_tokens: at least 16");
    broken("/input", json!([]), "input: needs at least one item");
    broken("/input", json!(7), "input: must be a string or an array of items");
    broken("/tools", json!({}), "tools: must be an array");
    broken("/input/0", json!({}), "input[0]: an item has a type, or a role");
    broken("/input/0/role", json!("tool"), "input[0].role: unknown role \"tool\"");
    broken("/input/0/content", Value::Null, "input[0].content: must be a string or an array of parts");
    broken("/input/4/arguments", json!({}), "input[4].arguments: must be a string");
    broken("/input/5/input", json!({}), "input[5].input: must be a string");
    broken("/input/7/output", json!({}), "input[7].output: must be a string or an array of parts");
    let others = "input[9].content[0]: assistant messages take no \"input_text\" part";
    broken("/input/9/content/0", json!({"type": "input_text", "text": "x"}), others);
    let others = "input[1].content[0]: user messages take no \"output_text\" part";
    broken("/input/1/content/0", json!({"type": "output_text", "text": "x"}), others);
    broken(
        "/input/1/content/1",
        json!({"type": "input_image"}),
        "input[1].content[1]: a \"input_image\" part without its content",
    );
    broken(
        "/input/1/content/2",
        json!({"type": "input_file"}),
        "input[1].content[2]: a \"input_file\" part without its content",
    );
    broken(
        "/input/1/content/0",
        json!({"type": "text", "text": "x"}),
        "input[1].content[0]: unknown part type \"text\"",
    );
    let mut both = good();
    (both["previous_response_id"], both["conversation"]) = (json!("r"), json!("c"));
    assert_eq!(found(&both), "previous_response_id: excludes conversation");
    assert!(wire::validate(b"{").iter().any(|it| it.what.starts_with("not JSON")));
}
