//! What the provider would refuse is found, and nothing else.

use recto::wire::anthropic::validate;
use serde_json::{Value, json};

fn found(body: &Value) -> String {
    let violations = validate(&serde_json::to_vec(body).unwrap());
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A request of these messages.
fn body(messages: Value) -> Value {
    json!({"model": "claude-opus-5-5", "max_tokens": 100, "messages": messages})
}

/// A good request with some fields put to other values.
fn with(fields: Value) -> String {
    let mut body = body(json!([{"role": "user", "content": "hi"}]));
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    found(&body)
}

/// Messages in short: `u` user, `a` assistant, `s` system; `x` text, `T1` a call, `R1` its result.
fn short(history: &str) -> Value {
    let block = |word: &str| match word.split_at(1) {
        ("T", id) => json!({"type": "tool_use", "id": id, "name": "look", "input": {}}),
        ("R", id) => json!({"type": "tool_result", "tool_use_id": id}),
        ("S", id) => json!({"type": "server_tool_use", "id": format!("srvtoolu_{id}"), "name": "web", "input": {}}),
        ("W", id) => json!({"type": "web_search_tool_result", "tool_use_id": format!("srvtoolu_{id}"), "content": []}),
        ("t", _) => json!({"type": "thinking", "thinking": "", "signature": "s"}),
        ("c", _) => json!({"type": "compaction", "content": "c"}),
        ("e", _) => json!({"type": "text", "text": ""}),
        ("w", _) => json!({"type": "text", "text": " \n"}),
        _ => json!({"type": "text", "text": word}),
    };
    let message = |message: &str| {
        let (role, blocks) = message.split_once('[').unwrap();
        let role = match role {
            "u" => "user",
            "a" => "assistant",
            _ => "system",
        };
        let blocks = blocks.trim_end_matches(']').split(',').filter(|it| !it.is_empty());
        json!({"role": role, "content": blocks.map(block).collect::<Vec<_>>()})
    };
    history.split(' ').map(message).collect()
}

#[test]
fn histories_are_judged_as_the_provider_does() {
    let histories = [
        ("u[x]", ""),
        ("u[x] u[x] u[x]", ""),
        ("u[x] a[x] a[x] u[x]", ""),
        ("a[x] u[x]", "first message must use the \"user\" role"),
        ("u[x] a[x]", "does not support assistant message prefill"),
        ("u[x] a[T1] u[x]", "ids were found without `tool_result` blocks immediately after: 1"),
        ("u[x] a[T1] u[x,R1]", "ids were found without `tool_result` blocks immediately after: 1"),
        ("u[x] a[T1,T2] u[R2] u[R1,x]", ""),
        ("u[x] a[T1,T2] u[R1,x] u[R2]", "immediately after: 2"),
        ("u[x] a[T1] u[R1] u[x]", ""),
        ("u[x] a[T1] a[T2] u[R1,R2]", ""),
        ("u[R1]", "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: 1"),
        ("u[x] a[T1] u[R1] a[x] u[R1]", "messages.4.content.0: unexpected `tool_use_id`"),
        ("u[x] a[T1] u[R1,R1]", "each tool_use must have a single result"),
        ("u[x] a[T1] u[R1] a[T1] u[R1]", "`tool_use` ids must be unique"),
        ("u[x] a[T1,T1] u[R1]", "`tool_use` ids must be unique"),
        ("u[x] a[e] u[x]", "text content blocks must be non-empty"),
        ("u[x,w]", "text content blocks must contain non-whitespace text"),
        ("u[x] a[] u[x]", ""),
        ("u[x] a[t,x] u[x]", ""),
        ("u[x] a[t] u[x]", "The final block in an assistant message cannot be `thinking`"),
        ("u[x] a[x,t] u[x]", "The final block in an assistant message cannot be `thinking`"),
        ("u[x] a[t] u[x] a[x] u[x]", ""),
        ("u[x] s[x]", ""),
        ("u[x] s[x] a[x] u[x]", ""),
        ("s[x] u[x]", "first message must use the \"user\" role"),
        ("u[x] s[x] u[x]", "directly after a user turn"),
        ("u[x] a[x] s[x] u[x]", "directly after a user turn"),
        ("u[x] a[T1] s[x] u[R1]", "between a call and its result"),
        ("u[x] a[T1] u[R1] s[x]", ""),
        ("a[c] u[x]", ""),
        ("u[x] a[S1,W1,x] u[x]", ""),
        ("u[x] a[S1]", ""),
        ("u[x] a[S1] u[x]", "followed by more than tool results"),
        ("u[x] a[S1,T1] u[R1]", ""),
        ("u[x] a[S1,T1] u[R1,x]", "followed by more than tool results"),
    ];
    for (history, expected) in histories {
        let told = found(&body(short(history)));
        assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{history}: {told}");
    }
}

#[test]
fn rules_of_one_model_hold_for_it_alone() {
    let on = |model: &str, mut request: Value| {
        request["model"] = model.into();
        found(&request)
    };
    let prefill = body(short("u[x] a[x]"));
    let late = body(short("u[x] s[x] a[x] u[x]"));
    for (model, prefills, lates) in [
        ("claude-opus-5-5", false, true),
        ("claude-opus-4-6", false, false),
        ("claude-sonnet-4-6", false, false),
        ("claude-sonnet-5", false, true),
        ("claude-haiku-4-5", true, false),
        ("claude-3-7-sonnet-20250219", true, false),
        ("who-knows", true, true),
    ] {
        assert_eq!(on(model, prefill.clone()).is_empty(), prefills, "{model}");
        assert_eq!(on(model, late.clone()).is_empty(), lates, "{model}");
    }
    let ask = |model: &str, fields: Value| {
        let mut request = body(json!([{"role": "user", "content": "hi"}]));
        fields.as_object().unwrap().iter().for_each(|(name, value)| request[name] = value.clone());
        on(model, request)
    };
    let cool = json!({"temperature": 0.2});
    for (model, is_taken) in
        [("claude-opus-4-7", false), ("claude-sonnet-5", false), ("claude-opus-4-6", true), ("x", true)]
    {
        assert_eq!(ask(model, cool.clone()).is_empty(), is_taken, "{model}");
    }
    assert_eq!(ask("claude-opus-5-5", json!({"temperature": 1, "top_p": 1.0})), "");
    let tools = json!([{"name": "look", "input_schema": {"type": "object"}}]);
    let forced = json!({"tools": tools, "tool_choice": {"type": "any"}});
    for (model, is_taken) in
        [("claude-opus-5-5", false), ("claude-sonnet-5-5", false), ("claude-opus-5", true), ("x", true)]
    {
        assert_eq!(ask(model, forced.clone()).is_empty(), is_taken, "{model}");
    }
    let thinking = |kind: &str, effort: &str| {
        json!({"max_tokens": 4000, "output_config": {"effort": effort},
            "thinking": {"type": kind, "budget_tokens": 2000}})
    };
    for (model, kind, effort, is_taken) in [
        ("claude-opus-5-5", "enabled", "high", false),
        ("claude-opus-5-5", "disabled", "low", false),
        ("claude-opus-5-5", "adaptive", "low", true),
        ("claude-opus-5", "disabled", "high", true),
        ("claude-opus-5", "disabled", "max", false),
        ("claude-sonnet-5", "disabled", "max", true),
        ("claude-opus-4-8", "enabled", "low", false),
        ("claude-opus-4-6", "enabled", "low", true),
        ("claude-haiku-4-5", "adaptive", "low", false),
        ("claude-haiku-4-5", "enabled", "low", true),
        ("claude-fable-5", "disabled", "low", false),
        ("x", "disabled", "max", true),
    ] {
        assert_eq!(ask(model, thinking(kind, effort)).is_empty(), is_taken, "{model} {kind} {effort}");
    }
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a"}});
    let many = |number: usize| body(json!([{"role": "user", "content": vec![image.clone(); number]}]));
    for (model, number, is_taken) in
        [("claude-haiku-4-5", 100, true), ("claude-haiku-4-5", 101, false), ("x", 600, true), ("x", 601, false)]
    {
        assert_eq!(on(model, many(number)).is_empty(), is_taken, "{model} {number}");
    }
}

#[test]
fn settings_are_checked() {
    let good = json!({
        "tools": [{"name": "n".repeat(128), "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "w"}],
        "tool_choice": {"type": "auto"}, "stream": true, "thinking": {"type": "adaptive", "display": "omitted"},
        "metadata": {"user_id": "u"}, "context_management": {"edits": []}, "stop_sequences": ["x"], "tools_": null,
    });
    let mut good = good;
    good.as_object_mut().unwrap().remove("tools_");
    assert_eq!(with(good), "");
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let cases = [
        (json!({"model": null}), "model: Field required"),
        (json!({"max_tokens": null}), "max_tokens: Field required"),
        (json!({"max_tokens": -1}), "max_tokens: Input should be a valid integer"),
        (json!({"max_tokens": 0}), ""),
        (json!({"max_tokens": 0, "stream": true}), "stream: not taken with max_tokens 0"),
        (
            json!({"max_tokens": 0, "output_config": {"format": {}}}),
            "output_config.format: not taken with max_tokens 0",
        ),
        (json!({"xyz": 1}), "xyz: Extra inputs are not permitted"),
        (json!({"messages": []}), "messages: at least one message is required"),
        (json!({"messages": null}), "messages: Field required"),
        (json!({"tools": []}), ""),
        (json!({"tools": [tool("a b")]}), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
        (json!({"tools": [tool("a"), tool("a")]}), "tools: Tool names must be unique."),
        (json!({"tools": [{"name": "a", "input_schema": {}}]}), "tools.0.custom.input_schema.type"),
        (
            json!({"tools": [{"name": "a", "input_schema": {"type": "object"}, "defer_loading": true}]}),
            "All tools have defer_loading: true",
        ),
        (json!({"system": [{"type": "text", "text": " "}]}), "system.0: text content blocks must contain"),
        (json!({"system": "be brief"}), ""),
        (json!({"system": 3}), "system: Input should be"),
        (json!({"model": "x", "thinking": {"type": "enabled"}}), "thinking.enabled.budget_tokens: Field required"),
        (json!({"model": "x", "thinking": {"type": "enabled", "budget_tokens": 9}}), "greater than or equal to 1024"),
        (
            json!({"model": "x", "thinking": {"type": "enabled", "budget_tokens": 2000}}),
            "must be greater than `thinking.budget_tokens`",
        ),
    ];
    for (fields, expected) in cases {
        let told = with(fields.clone());
        assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{fields}: {told}");
    }
    assert!(found(&json!([])).contains("not an object"));
    assert!(!validate(b"{").is_empty());
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    let mut manual = body(short("u[x] a[x,T1] u[R1]"));
    (manual["model"], manual["max_tokens"], manual["thinking"]) = ("claude-opus-4-6".into(), 9000.into(), thinking);
    assert!(found(&manual).contains("must start with a thinking block"));
    manual["messages"] = short("u[x] a[t,T1] u[R1]");
    assert_eq!(found(&manual), "");
}

#[test]
fn marks_are_counted_and_ordered() {
    let block = |ttl: Option<&str>| match ttl {
        Some("") => json!({"type": "text", "text": "x"}),
        Some(ttl) => json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": ttl}}),
        None => json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}),
    };
    let of = |ttls: &[Option<&str>]| {
        body(json!([{"role": "user", "content": ttls.iter().map(|ttl| block(*ttl)).collect::<Vec<_>>()}]))
    };
    let judged = |ttls: &[Option<&str>], at_end: Value| {
        let mut request = of(ttls);
        request["cache_control"] = at_end;
        found(&request)
    };
    let plain = json!({"type": "ephemeral"});
    assert_eq!(judged(&[None; 4], Value::Null), "");
    assert!(
        judged(&[None; 5], Value::Null).contains("A maximum of 4 blocks with cache_control may be provided. Found 5.")
    );
    assert!(judged(&[None; 4], plain.clone()).contains("Found 5."));
    assert_eq!(judged(&[Some("1h"), Some("5m"), None], Value::Null), "");
    assert!(judged(&[Some("5m"), Some("1h")], Value::Null).contains("must not come after"));
    assert!(judged(&[Some("2h")], Value::Null).contains("ttl '5m' or '1h'"));
    assert!(judged(&[Some("1h")], plain.clone()).contains("differs in ttl"));
    assert_eq!(judged(&[Some("1h"), Some("")], plain), "");
    let thought = json!({"type": "thinking", "thinking": "", "signature": "s", "cache_control": {"type": "ephemeral"}});
    let messages = json!([{"role": "user", "content": "u"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "x"}]}, {"role": "user", "content": "u"}]);
    assert!(found(&body(messages)).contains("messages.1.content.0.cache_control"));
    let empty =
        json!([{"role": "user", "content": [{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}]}]);
    assert!(
        found(&body(empty)).contains("messages.0.content.0.text: cache_control cannot be set for empty text blocks")
    );
    let cleared = json!([{"role": "user", "content": "u"}, {"role": "system", "clear_at": "next_user_message",
        "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}]);
    assert!(found(&body(cleared)).contains("clear_at"));
}

#[test]
fn blocks_are_checked() {
    let user = |block: Value| found(&body(json!([{"role": "user", "content": [block]}])));
    let assistant = |block: Value| {
        let text = json!({"type": "text", "text": "x"});
        found(&body(json!([{"role": "user", "content": "u"}, {"role": "assistant", "content": [block, text]},
            {"role": "user", "content": "u"}])))
    };
    let image = |source: Value| user(json!({"type": "image", "source": source}));
    let base64 = |kind: &str, data: &str| image(json!({"type": "base64", "media_type": kind, "data": data}));
    assert_eq!(base64("image/webp", "AA"), "");
    assert!(base64("image/bmp", "AA").contains("messages.0.content.0.image.source.base64.media_type"));
    assert!(base64("image/png", &"A".repeat((10 << 20) + 1)).contains("10 MB"));
    assert_eq!(image(json!({"type": "file", "file_id": "f"})), "");
    assert!(image(json!({"type": "what"})).contains("image.source"));
    let document = |source: Value| user(json!({"type": "document", "source": source}));
    assert_eq!(document(json!({"type": "content", "content": "x"})), "");
    assert!(document(json!({"type": "base64", "media_type": "text/plain", "data": "x"})).contains("document.source"));
    assert_eq!(user(json!({"type": "something_new"})), "");
    assert!(user(json!({"text": "x"})).contains("messages.0.content.0.type: Field required"));
    assert!(
        user(json!({"type": "thinking", "thinking": "", "signature": "s"})).contains("not taken in a message of role")
    );
    assert!(
        assistant(json!({"type": "image", "source": {"type": "url", "url": "u"}}))
            .contains("not taken in a message of role")
    );
    assert!(assistant(json!({"type": "thinking", "thinking": ""})).contains("a field of \"thinking\""));
    assert_eq!(assistant(json!({"type": "redacted_thinking", "data": "d"})), "");
    assert!(assistant(json!({"type": "server_tool_use", "id": "x", "name": "w", "input": {}})).contains("^srvtoolu_"));
    let odd = short("u[x] a[Ta.b] u[Ra.b]");
    assert!(
        found(&body(odd)).contains("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    );
    let result = |content: Value| {
        let result = json!({"type": "tool_result", "tool_use_id": "1", "content": content});
        let mut request = body(short("u[x] a[T1] u[R1]"));
        request["messages"][2]["content"] = json!([result]);
        found(&request)
    };
    assert_eq!(
        (result(json!("")), result(json!([])), result(json!(null))),
        (String::new(), String::new(), String::new())
    );
    assert!(result(json!([{"type": "text", "text": ""}])).contains("text content blocks must be non-empty"));
    assert!(result(json!([{"type": "tool_use"}])).contains("not taken in a result"));
    assert!(
        found(&body(json!([{"role": "user", "content": ""}]))).contains("user messages must have non-empty content")
    );
    assert!(
        found(&body(json!([{"role": "user", "content": "x", "name": "n"}]))).contains("messages.0.name: Extra inputs")
    );
    assert!(found(&body(json!([{"role": "tool", "content": "x"}]))).contains("messages.0.role"));
    let said = json!([{"role": "user", "content": "u"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "u"}]);
    assert_eq!(found(&body(said)), "");
}
