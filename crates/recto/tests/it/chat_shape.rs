//! What servers of the Chat Completions wire want beyond its rules: one message for neighbours, marks, formats, steps
//! of many calls; and what a client's body held that goes back to its provider.

use expect_test::{Expect, expect};
use recto::entry::{Call, Media, Piece, Reasoning, ToolResult};
use recto::format::ResponseFormat;
use recto::page::{After, Mark, Page};
use recto::tool::Tools;
use recto::wire::{TOOLS_MAX, openai_chat};
use recto::{Entry, Log, Part, Policy, Reader, Request, Role, Target, Tokenizer, compile};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The page of these entries, with nothing left out that the target takes.
fn page(entries: impl IntoIterator<Item = Entry>, target: &Target) -> Page {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    let (reader, policy) = (Reader::new("main"), Policy::none());
    compile(&Request::new(&log, &reader, &policy, target)).unwrap().page
}

fn plain() -> Target {
    Target::eval().with_window(None)
}

/// A server of which nothing is known.
fn unknown() -> Target {
    Target::unknown("some-model").with_window(None)
}

/// A model that takes cache marks, spoken to in this format.
fn marked() -> Target {
    Target::named("gpt-5.6-sol").unwrap().over(recto::wire::Wire::OpenaiChat).with_window(None)
}

/// Encodes, checks that the provider takes it and that it comes back the same, and returns the messages by line.
#[track_caller]
fn lines(page: &Page, target: &Target) -> String {
    let body = openai_chat::encode(page, target);
    assert_eq!(openai_chat::validate(&body), [], "{}", String::from_utf8_lossy(&body));
    let text = String::from_utf8(body).unwrap();
    let decoded = openai_chat::decode(&text).unwrap();
    let mut again = self::page(decoded.entries, target);
    again.marks =
        decoded.marks.into_iter().map(|it| Mark { after: After::Message(it.entry), given: Some(it.mark) }).collect();
    again.tools = (!decoded.tools.is_empty()).then(|| Tools::counted(decoded.tools, &Tokenizer::Chars4));
    again.format = decoded.format.and_then(|format| ResponseFormat::parse(&format).unwrap());
    let extra = openai_chat::encode_with(&again, target, &decoded.extra);
    assert_eq!(String::from_utf8(extra).unwrap(), text);
    #[derive(serde::Deserialize)]
    struct Body<'t> {
        #[serde(borrow)]
        messages: Vec<&'t RawValue>,
    }
    let body: Body<'_> = serde_json::from_str(&text).unwrap();
    body.messages.iter().map(|message| message.get()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(entries: Vec<Entry>, target: &Target, expected: Expect) {
    expected.assert_eq(&lines(&page(entries, target), target));
}

#[test]
fn neighbours_of_one_role_become_one_where_nothing_is_known() {
    let picture = Part::Image(Media { url: "https://example.org/a.png".into(), name: None, detail: None });
    let named = Entry { author: Some("ann".into()), ..Entry::user("hello") };
    let entries = vec![
        Entry::system("be brief"),
        Entry::system("be kind"),
        named,
        Entry::user("are you there?"),
        Entry::assistant("yes"),
        Entry::step(
            "I look",
            [Call::new("a", "look", "not JSON"), Call::new("b", "look", ""), Call::new("c", "look", " [1]")],
        ),
        Entry::result("a", "one"),
        Entry::result("b", ""),
        Entry::result("c", "three"),
        Entry::assistant("so"),
        Entry::assistant(""),
        Entry::assistant("it is"),
        Entry::user("see"),
        Entry::new(Role::User, [picture]),
        Entry::step("", [Call::new("d", "look", "{\"a\": 1}")]),
        Entry::result("d", "x"),
        Entry::user("thanks"),
    ];
    check(
        entries,
        &unknown(),
        expect![[r#"
            {"role":"system","content":"be brief\n\nbe kind"}
            {"role":"user","content":"hello\n\nare you there?"}
            {"role":"assistant","content":"yes\n\nI look","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"arguments\":\"not JSON\"}"}},{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"look","arguments":"{\"arguments\":\"[1]\"}"}}]}
            {"role":"tool","tool_call_id":"a","content":"one"}
            {"role":"tool","tool_call_id":"b","content":""}
            {"role":"tool","tool_call_id":"c","content":"three"}
            {"role":"assistant","content":"so\n\nit is"}
            {"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}
            {"role":"assistant","content":"","tool_calls":[{"id":"d","type":"function","function":{"name":"look","arguments":"{\"a\": 1}"}}]}
            {"role":"tool","tool_call_id":"d","content":"x"}
            {"role":"user","content":"thanks"}"#]],
    );
}

#[test]
fn a_user_speaks_first_where_nothing_is_known() {
    check(
        vec![Entry::system("be brief"), Entry::assistant("hello"), Entry::user("hi")],
        &unknown(),
        expect![[r#"
        {"role":"system","content":"be brief"}
        {"role":"user","content":"[Continue.]"}
        {"role":"assistant","content":"hello"}
        {"role":"user","content":"hi"}"#]],
    );
    check(
        vec![Entry::assistant("hello")],
        &unknown(),
        expect![[r#"
        {"role":"user","content":"[Continue.]"}
        {"role":"assistant","content":"hello"}"#]],
    );
    check(
        vec![Entry::system("be brief")],
        &unknown(),
        expect![[r#"
        {"role":"system","content":"be brief"}
        {"role":"user","content":"[Continue.]"}"#]],
    );
    check(vec![Entry::assistant("hello")], &plain(), expect![[r#"{"role":"assistant","content":"hello"}"#]]);
}

#[test]
fn marks_stand_on_the_last_part_of_a_message() {
    let entries = || {
        vec![
            Entry::system("be brief"),
            Entry::new(Role::User, [Part::text("a"), Part::text("b")]),
            Entry::step("", [Call::new("a", "look", "{}")]),
            Entry::result("a", "one"),
            Entry::assistant("so"),
            Entry::user("go on"),
        ]
    };
    let target = marked();
    let mut page = page(entries(), &target);
    let given = Some(r#"{"mode":"explicit","ttl":"12h"}"#.into());
    let another = Some(r#"{"type":"ephemeral"}"#.into());
    page.marks = [(0, given), (1, another), (2, None), (3, None), (4, None), (9, None)]
        .into_iter()
        .map(|(at, given)| Mark { after: After::Message(at), given })
        .chain([Mark { after: After::Tools, given: None }])
        .collect();
    expect![[r#"
        {"role":"system","content":[{"type":"text","text":"be brief","prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}]}
        {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","prompt_cache_breakpoint":{"mode":"explicit"}}]}
        {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]}
        {"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"one","prompt_cache_breakpoint":{"mode":"explicit"}}]}
        {"role":"assistant","content":"so"}
        {"role":"user","content":"go on"}"#]].assert_eq(&lines(&page, &target));
    assert!(!String::from_utf8(openai_chat::encode(&page, &plain())).unwrap().contains("breakpoint"));
}

#[test]
fn marks_of_both_kinds_are_taken_off_parts() {
    let body = r#"{"messages": [
        {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "b"}]},
        {"role": "user", "content": "c"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"},
            "prompt_cache_breakpoint": {"mode":  "explicit"}}]}]}"#;
    let decoded = openai_chat::decode(body).unwrap();
    let marks: Vec<(usize, &str)> = decoded.marks.iter().map(|it| (it.entry, &*it.mark)).collect();
    assert_eq!(marks, [(0, r#"{"type": "ephemeral"}"#), (2, r#"{"mode":  "explicit"}"#)]);
    assert!(decoded.entries.iter().all(|entry| entry.extra.is_empty()));
}

#[test]
fn a_format_is_written_and_cannot_be_overridden() {
    let schema = r#"{"type": "object",  "properties": {}, "additionalProperties": false}"#;
    let formats = [
        ResponseFormat::Json,
        ResponseFormat::Schema { name: "my answer".into(), schema: schema.into(), strict: Some(true) },
        ResponseFormat::Schema { name: "n".into(), schema: schema.into(), strict: None },
    ];
    let written = formats.map(|format| {
        let mut page = page([Entry::user("hi")], &plain());
        page.format = Some(format);
        lines(&page, &plain());
        let fields: Map<String, Value> =
            [("response_format".to_string(), json!(1)), ("seed".to_string(), json!(7))].into_iter().collect();
        String::from_utf8(openai_chat::encode_with(&page, &plain(), &fields)).unwrap()
    });
    expect![[r#"
        {"model":"eval","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_object"},"seed":7}
        {"model":"eval","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"myanswer_b3c7668f8e26","schema":{"type": "object",  "properties": {}, "additionalProperties": false},"strict":true}},"seed":7}
        {"model":"eval","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type": "object",  "properties": {}, "additionalProperties": false}}},"seed":7}"#]].assert_eq(&written.join("\n"));
    let decoded = openai_chat::decode(r#"{"response_format": {"type":  "json_object"}, "tools": null}"#).unwrap();
    assert_eq!((decoded.format.as_deref(), decoded.extra.len()), (Some(r#"{"type":  "json_object"}"#), 0));
}

#[test]
fn tools_go_without_reasoning_where_the_model_takes_them_no_other_way() {
    let target = marked();
    let mut page = page([Entry::user("hi")], &target);
    let body = |page: &Page, fields: Value| {
        let Value::Object(fields) = fields else { unreachable!("tests give objects") };
        serde_json::from_slice::<Value>(&openai_chat::encode_with(page, &target, &fields)).unwrap()
    };
    let choice = json!({"tool_choice": "auto", "parallel_tool_calls": true});
    let without = body(&page, choice.clone());
    assert!(without["reasoning_effort"].is_null() && without["tool_choice"].is_null());
    page.tools = Some(Tools::counted([r#"{"type":"function","function":{"name":"look"}}"#.into()], &Tokenizer::Chars4));
    lines(&page, &target);
    let with = body(&page, choice);
    assert_eq!((&with["reasoning_effort"], &with["tool_choice"]), (&json!("none"), &json!("auto")));
    assert_eq!(body(&page, json!({"reasoning_effort": "low"}))["reasoning_effort"], "low");
    page.tools = Some(Tools::counted([r#"{"type":"web_search"}"#.into()], &Tokenizer::Chars4));
    assert!(body(&page, json!({}))["tools"].is_null(), "a tool that this wire has no way to offer");
}

#[test]
fn a_step_of_many_calls_becomes_several() {
    let ids: Vec<String> = (0..300).map(|at| format!("c{at}")).collect();
    let thought = Part::Reasoning(Reasoning { text: "hm".into(), ..Reasoning::default() });
    let calls = ids.iter().map(|id| Part::Call(Call::new(id.as_str(), "look", "{}")));
    let step = Entry::new(Role::Assistant, [thought, Part::text("all")].into_iter().chain(calls).collect::<Vec<_>>());
    let results = ids.iter().map(|id| Entry::result(id.as_str(), id.as_str()));
    let entries: Vec<Entry> =
        [Entry::user("look"), step].into_iter().chain(results).chain([Entry::user("and?")]).collect();
    for target in [plain(), unknown()] {
        let lines = lines(&page(entries.clone(), &target), &target);
        let messages: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let steps: Vec<&Value> = messages.iter().filter(|it| it["role"] == "assistant").collect();
        let sizes: Vec<usize> = steps.iter().map(|it| it["tool_calls"].as_array().unwrap().len()).collect();
        assert_eq!(sizes, [TOOLS_MAX, TOOLS_MAX, 44]);
        assert_eq!((messages.len(), &steps[0]["content"]), (305, &json!("all")));
        assert_eq!(steps[1]["content"], if target.merges { json!("") } else { Value::Null });
        assert!(steps[1]["reasoning_content"].is_null());
    }
}

#[test]
fn what_a_client_sent_and_recto_has_no_word_for_goes_back() {
    let body = concat!(
        r#"{"model":"eval","messages":[{"role":"user","content":[{"type":"text","text":"a","weight":2},"#,
        r#"{"type":"image_url","image_url":{"url":"u"},"uuid":"x"}]},"#,
        r#"{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":["#,
        r#"{"id":"a","type":"custom","custom":{"name":"patch","input":"*** begin"}},"#,
        r#"{"id":"b","type":"function","function":{"name":"look","arguments":"{}"},"extra_content":{"s":"AA"}}],"#,
        r#""reasoning_details":[{"data":"x"}]},"#,
        r#"{"role":"tool","tool_call_id":"a","content":"done","name":"patch"},"#,
        r#"{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"c","weight":1},{"type":"text","text":"d"}]}],"#,
        r#""seed":7,"stream":true}"#
    );
    let decoded = openai_chat::decode(body).unwrap();
    let again = openai_chat::encode_with(&page(decoded.entries, &plain()), &plain(), &decoded.extra);
    assert_eq!(String::from_utf8(again).unwrap(), body);
}

#[test]
fn fields_of_somebodys_file_are_kept_but_never_sent() {
    let file = r#"[{"role": "user", "content": "hi", "timestamp": 7}, {"role": "assistant", "content": "a", "refusal": null}]"#;
    let conversation = recto::transcript::read(file).unwrap().remove(0);
    assert_eq!(Value::Object(conversation.entries[0].extra.clone()), json!({"timestamp": 7}));
    assert_eq!(Value::Object(conversation.entries[1].extra.clone()), json!({"refusal": null}));
    let body = String::from_utf8(openai_chat::encode(&page(conversation.entries, &plain()), &plain())).unwrap();
    assert!(!body.contains("timestamp") && !body.contains("refusal"));
}

#[test]
fn calls_of_a_kind_that_is_gone_are_refused() {
    let body = "{\"messages\": [{\"role\": \"assistant\", \"content\": null,\n \"function_call\": {\"name\": \"f\"}}]}";
    let error = openai_chat::decode(body).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 19: \"function_call\" is not taken");
    assert!(error.hint().unwrap().contains("tool_calls"));
    assert!(openai_chat::decode(&body.replace("{\"name\": \"f\"}", "null")).is_ok());
}

#[test]
fn what_is_too_long_or_only_an_address_is_still_taken() {
    let long = "\u{e9}".repeat(10_485_761);
    let media = |url: &str| Media { url: url.into(), name: None, detail: Some("closely".into()) };
    let parts = [
        Part::Audio(media("https://example.org/a.mp3")),
        Part::Audio(media("data:audio/mpeg;base64,AAAA")),
        Part::Document(media("https://example.org/a.pdf")),
        Part::Image(media("data:image/png;base64,AAAA")),
        Part::Opaque { provider: "openai".into(), payload: r#"{"type":"web_search_call"}"#.into() },
    ];
    let text = lines(&page([Entry::user(long.as_str()), Entry::new(Role::User, parts)], &plain()), &plain());
    expect![[r#"{"role":"user","content":[{"type":"text","text":"[recording that can't be shown: https://example.org/a.mp3]"},{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}},{"type":"text","text":"[document that can't be shown: https://example.org/a.pdf]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}"#]].assert_eq(text.split_once('\n').unwrap().1);
    let empty = ToolResult { call: "a".into(), content: Vec::new(), is_error: true };
    let pieces = vec![Piece::Text { text: "".into() }, Piece::Text { text: "b".into() }];
    let odd = ToolResult { call: "b".into(), content: pieces, is_error: false };
    check(
        vec![
            Entry::user(""),
            Entry::step("", [Call::new("a", "", "{"), Call::new("b", "b", "")]),
            Entry::new(Role::Tool, [Part::Result(empty)]),
            Entry::new(Role::Tool, [Part::Result(odd)]),
        ],
        &plain(),
        expect![[r#"
            {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"_71e0a9917356","arguments":"{"}},{"id":"b","type":"function","function":{"name":"b","arguments":""}}]}
            {"role":"tool","tool_call_id":"a","content":""}
            {"role":"tool","tool_call_id":"b","content":"b"}"#]],
    );
}
