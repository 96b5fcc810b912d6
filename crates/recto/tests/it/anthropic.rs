//! The Messages wire: what is written is read back and written the same, whatever the page, and replies are the same
//! streamed and whole. What the provider would refuse is in `rules`.

mod rules;
mod streams;

use recto::digest::Digest;
use recto::entry::{Arguments, Call, Media, Piece, Reasoning, ToolResult};
use recto::format::ResponseFormat;
use recto::page::{After, Mark, Message, Mode, Page};
use recto::target::LateSystem;
use recto::tool::Tools;
use recto::wire::anthropic::{decode, encode, encode_messages, encode_with, validate};
use recto::{Entry, Log, Part, Policy, Reader, Request, Role, Target, Tokenizer, Tokens, Wire, compile};
use recto_testkit::mixed::{self, Dice};
use serde_json::{Map, Value, json};

const PAGES: u64 = 3_000;
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgo=";

fn target() -> Target {
    Target::named("claude-opus-5-5").unwrap().with_window(None)
}

/// A page as it might come from anywhere: nothing of what `compile` holds is taken for granted.
fn raw_page(entries: &[Entry]) -> Page {
    let message = |entry: &Entry| Message {
        role: entry.role,
        author: None,
        parts: entry.parts.clone(),
        seq: None,
        cost: Tokens(0),
        digest: Digest::default(),
        extra: entry.extra.clone(),
    };
    let messages = entries.iter().map(message).collect();
    Page { mode: Mode::Full, messages, tools: None, format: None, marks: Vec::new(), output: Tokens(1000) }
}

fn compiled(entries: impl IntoIterator<Item = Entry>, target: &Target) -> Page {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    let (reader, policy) = (Reader::new("main"), Policy::none());
    compile(&Request::new(&log, &reader, &policy, target)).unwrap().page
}

fn text_of(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}

fn json_of(page: &Page) -> Value {
    let body = encode(page, &target());
    assert_eq!(validate(&body), [], "{}", text_of(&body));
    serde_json::from_slice(&body).unwrap()
}

/// The messages of a page of these entries, as JSON.
fn messages(entries: &[Entry]) -> Value {
    json_of(&raw_page(entries))["messages"].clone()
}

fn call(id: &str) -> Part {
    Part::Call(Call { id: id.into(), name: "look".into(), arguments: Arguments::Object("{\"a\": 1.0}".into()) })
}

fn media(url: &str) -> Media {
    Media { url: url.into(), name: None, detail: None }
}

fn thought(text: &str, signature: &str) -> Part {
    Part::Reasoning(Reasoning {
        text: text.into(),
        provider: Some("anthropic".into()),
        model: Some("claude-opus-5-5".into()),
        signature: Some(signature.into()),
        ..Reasoning::default()
    })
}

#[test]
fn a_body_has_its_keys_in_order() {
    let mut page = raw_page(&[Entry::system("Be brief."), Entry::system("Be kind."), Entry::user("hi")]);
    page.tools = Some(Tools::counted([tool("look")], &Tokenizer::Chars4));
    page.format = ResponseFormat::parse(r#"{"type":"object"}"#).unwrap();
    let extra = json!({"stream": true, "output_config": {"effort": "low", "format": 1}, "messages": [], "model": "x"});
    let body = text_of(&encode_with(&page, &target(), extra.as_object().unwrap()));
    assert_eq!(
        body,
        r#"{"model":"claude-opus-5-5","max_tokens":1000,"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Be kind."}],"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"look","input_schema":{"type":"object"}}],"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}},"effort":"low"},"stream":true}"#
    );
    let longest = json!({"max_tokens": 7});
    let body = text_of(&encode_with(&raw_page(&[Entry::user("hi")]), &target(), longest.as_object().unwrap()));
    assert_eq!(body, r#"{"model":"claude-opus-5-5","max_tokens":7,"messages":[{"role":"user","content":"hi"}]}"#);
    let mut none = raw_page(&[Entry::user("hi")]);
    none.output = Tokens(0);
    assert!(text_of(&encode(&none, &target())).contains(r#""max_tokens":1,"#));
    assert_eq!(text_of(&encode_messages(&none)), r#"[{"role":"user","content":"hi"}]"#);
}

fn tool(name: &str) -> recto::entry::Text {
    format!(r#"{{"name":"{name}","input_schema":{{"type":"object"}}}}"#).into()
}

#[test]
fn neighbours_are_one_message_and_results_lead() {
    let entries = [
        Entry::user("one"),
        Entry::user("two"),
        Entry::new(Role::Assistant, [thought("hm", "s1"), Part::text("so"), call("a"), call("b")]),
        Entry::new(Role::Tool, [Part::Result(ToolResult { is_error: true, ..ToolResult::text("b", "no") })]),
        Entry::result("a", " \n"),
        Entry::user("three"),
        Entry::assistant("four"),
        Entry::assistant("five"),
        Entry::user(" "),
        Entry::user("six"),
    ];
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s1"},
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "a", "name": "look", "input": {"a": 1.0}},
            {"type": "tool_use", "id": "b", "name": "look", "input": {"a": 1.0}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": true},
            {"type": "tool_result", "tool_use_id": "a"},
            {"type": "text", "text": "three"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "four"}, {"type": "text", "text": "five"}]},
        {"role": "user", "content": "six"},
    ]);
    assert_eq!(messages(&entries), expected);
    // Arguments go back byte for byte.
    assert!(text_of(&encode(&raw_page(&entries), &target())).contains(r#""input":{"a": 1.0}"#));
}

#[test]
fn what_breaks_the_contract_still_makes_a_valid_body() {
    let nudge = json!({"role": "user", "content": "[Continue.]"});
    assert_eq!(messages(&[]), json!([nudge]));
    let said = json!({"role": "assistant", "content": "hi"});
    assert_eq!(messages(&[Entry::assistant("hi")]), json!([nudge, said, nudge]));
    // A call without a result, a result without a call, one result too many.
    let open = messages(&[Entry::user("u"), Entry::new(Role::Assistant, [call("a")]), Entry::user("v")]);
    assert_eq!(open[2]["content"][0]["content"], "[No result: this call was not answered.]");
    assert_eq!(open[2]["content"][1]["text"], "v");
    assert_eq!(messages(&[Entry::result("x", "found")])[0]["content"], "[result of call x] found");
    let twice = [Entry::user("u"), Entry::new(Role::Assistant, [call("a"), call("b")])];
    let twice = [&twice[..], &[Entry::result("a", "1"), Entry::result("a", "2"), Entry::result("b", "3")]].concat();
    let blocks = &messages(&twice)[2]["content"];
    let kinds: Vec<&str> = blocks.as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    // Reasoning that nothing follows, and reasoning of others.
    let last = [Entry::user("u"), Entry::new(Role::Assistant, [thought("t", "s")]), Entry::user("v")];
    assert_eq!(
        messages(&last),
        json!([{"role": "user", "content": [
        {"type": "text", "text": "u"}, {"type": "text", "text": "v"}]}])
    );
    let foreign = Reasoning { provider: Some("openai".into()), encrypted: Some("x".into()), ..Reasoning::default() };
    let foreign = Entry::new(Role::Assistant, [Part::Reasoning(foreign), Part::text("so")]);
    assert_eq!(messages(&[Entry::user("u"), foreign, Entry::user("v")])[1]["content"], "so");
    // A delta answers calls that the provider holds.
    let mut delta = raw_page(&[Entry::result("x", "found")]);
    delta.mode = Mode::Delta;
    let body: Value = serde_json::from_slice(&encode(&delta, &target())).unwrap();
    assert_eq!(body["messages"][0]["content"][0]["tool_use_id"], "x");
}

#[test]
fn ids_that_recur_are_told_apart_and_odd_names_are_mapped() {
    let step = |id: &str, name: &str| Entry::step("", [Call::new(id, name, "not JSON")]);
    let entries =
        [Entry::user("u"), step("c", "1 odd"), Entry::result("c", "1"), step("c", "look"), Entry::result("c", "2")];
    let found = messages(&entries);
    let (one, two) = (&found[1]["content"][0], &found[3]["content"][0]);
    assert_ne!(one["id"], two["id"]);
    assert_eq!(found[2]["content"][0]["tool_use_id"], one["id"]);
    assert_eq!(found[4]["content"][0]["tool_use_id"], two["id"]);
    assert_eq!(one["input"], json!({"arguments": "not JSON"}));
    assert!(one["name"].as_str().unwrap().starts_with("t_1odd_"));
}

#[test]
fn late_instructions_stand_where_the_provider_takes_them() {
    let late = |name: &str, entries: &[Entry]| {
        let target = Target { late_system: LateSystem::Keep, ..Target::unknown(name) };
        let body = encode(&raw_page(entries), &target);
        assert_eq!(validate(&body), [], "{}", text_of(&body));
        serde_json::from_slice::<Value>(&body).unwrap()["messages"].clone()
    };
    let system = Entry::system("Now!");
    let kept = json!({"role": "system", "content": "Now!"});
    let (u, a) = (Entry::user("u"), Entry::assistant("a"));
    let before = [u.clone(), system.clone(), a.clone(), u.clone()];
    assert_eq!(late("claude-opus-5-5", &before)[1], kept);
    assert_eq!(late("claude-opus-5-5", &[u.clone(), system.clone()])[1], kept);
    let two = late("claude-opus-5-5", &[u.clone(), system.clone(), Entry::system("Then."), a.clone(), u.clone()]);
    assert_eq!(two[1]["content"][1]["text"], "Then.");
    let told = "[System Context]: Now!";
    // Behind an assistant's words, before a user's, or for a model that takes none.
    assert_eq!(late("claude-opus-5-5", &[u.clone(), a.clone(), system.clone()])[2]["content"], told);
    assert_eq!(late("claude-opus-5-5", &[u.clone(), system.clone(), u.clone()])[0]["content"][1]["text"], told);
    assert_eq!(late("claude-sonnet-4-6", &before)[0]["content"][1]["text"], told);
    let open = [u.clone(), Entry::new(Role::Assistant, [call("x")]), system, Entry::result("x", "r")];
    assert_eq!(late("claude-opus-5-5", &open)[2]["content"][0]["type"], "tool_result");
}

#[test]
fn media_are_sources_or_are_named() {
    let said = |part: Part| messages(&[Entry::new(Role::User, [part])])[0]["content"].clone();
    let named = |part: Part| said(part).as_str().unwrap_or_else(|| panic!("no text")).to_string();
    let source = |part: Part| said(part)[0]["source"].clone();
    assert_eq!(
        source(Part::Image(media(PIXEL))),
        json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="})
    );
    assert_eq!(source(Part::Image(media("data:image/jpg;base64,AAAA")))["media_type"], "image/jpeg");
    let address = json!({"type": "url", "url": "https://example.org/a"});
    assert_eq!(source(Part::Image(media("https://example.org/a"))), address);
    assert_eq!(source(Part::Document(media("https://example.org/a"))), address);
    assert_eq!(named(Part::Image(media("data:image/svg+xml;base64,AAAA"))), "[image: image/svg+xml]");
    assert_eq!(named(Part::Image(media("data:image/png;base64,"))), "[image: image/png]");
    assert_eq!(named(Part::Image(media("file:a.png"))), "[image: file:a.png]");
    let big = format!("data:image/png;base64,{}", "A".repeat(11 << 20));
    assert_eq!(named(Part::Image(media(&big))), "[image: image/png]");
    assert_eq!(named(Part::Audio(media("data:audio/wav;base64,AAAA"))), "[audio: audio/wav]");
    assert_eq!(named(Part::File { id: "file-of-openai".into() }), "[file: file-of-openai]");
    assert_eq!(source(Part::File { id: "file_01".into() }), json!({"type": "file", "file_id": "file_01"}));
    let pdf = Media { name: Some("a.pdf".into()), ..media("data:application/pdf;base64,JVBE") };
    let block = said(Part::Document(pdf))[0].clone();
    assert_eq!((&block["title"], &block["source"]["media_type"]), (&json!("a.pdf"), &json!("application/pdf")));
    let plain = json!({"type": "text", "media_type": "text/plain", "data": "foo ü"});
    assert_eq!(source(Part::Document(media("data:text/plain;base64,Zm9vIMO8"))), plain);
    assert_eq!(source(Part::Document(media("data:text/plain,foo%20%C3%BC"))), plain);
    assert_eq!(named(Part::Document(media("data:application/zip;base64,AA"))), "[document: application/zip]");
    // Within a result, and where no picture may be.
    let result = ToolResult {
        content: vec![Piece::Text { text: "a".into() }, Piece::Image(media(PIXEL))],
        ..ToolResult::text("c", "")
    };
    let entries =
        [Entry::user("u"), Entry::new(Role::Assistant, [call("c")]), Entry::new(Role::Tool, [Part::Result(result)])];
    assert_eq!(messages(&entries)[2]["content"][0]["content"][1]["source"]["type"], "base64");
    let pictured = [Entry::user("u"), Entry::new(Role::Assistant, [Part::Image(media(PIXEL))]), Entry::user("v")];
    assert_eq!(messages(&pictured)[1]["content"], "[image: image/png]");
}

#[test]
fn the_oldest_pictures_are_named_where_there_are_too_many() {
    let many: Vec<Entry> = (0..602).map(|_| Entry::new(Role::User, [Part::Image(media(PIXEL))])).collect();
    let blocks = messages(&many)[0]["content"].clone();
    assert_eq!(
        (&blocks[1]["type"], &blocks[2]["type"], blocks.as_array().unwrap().len()),
        (&json!("text"), &json!("image"), 602)
    );
}

/// The body of a page with these marks.
fn marked(mut page: Page, marks: &[(After, Option<&str>)], extra: Value) -> Value {
    page.marks = marks.iter().map(|(after, given)| Mark { after: *after, given: given.map(Into::into) }).collect();
    let body = encode_with(&page, &target(), extra.as_object().unwrap());
    assert_eq!(validate(&body), [], "{}", text_of(&body));
    serde_json::from_slice(&body).unwrap()
}

fn count(body: &Value) -> usize {
    body.to_string().matches("cache_control").count()
}

#[test]
fn marks_stand_on_the_last_block_that_takes_one() {
    let entries = [
        Entry::system("s"),
        Entry::user("u"),
        Entry::new(Role::Assistant, [thought("t", "s"), Part::text("a"), call("c")]),
        Entry::result("c", "r"),
        Entry::user("v"),
    ];
    let mut page = raw_page(&entries);
    page.tools = Some(Tools::counted([tool("look"), tool("see")], &Tokenizer::Chars4));
    let plain = json!({"type": "ephemeral"});
    let long = r#"{"type":"ephemeral","ttl":"1h"}"#;
    let after = After::Message;
    let body = marked(
        page.clone(),
        &[(After::Tools, Some(long)), (after(0), None), (after(2), None), (after(4), None)],
        json!({}),
    );
    assert_eq!(body["tools"][1]["cache_control"]["ttl"], "1h");
    assert_eq!(body["system"][0]["cache_control"], plain);
    assert_eq!(body["messages"][1]["content"][2]["cache_control"], plain);
    assert_eq!(body["messages"][2]["content"][1]["cache_control"], plain);
    assert_eq!(count(&body), 4);
    // A long-lived one behind a short-lived one would be refused.
    let body = marked(page.clone(), &[(after(0), None), (after(1), Some(long))], json!({}));
    assert_eq!(body["messages"][0]["content"][0]["cache_control"], plain);
    // Never more than four, the newest first, with those of tools and of the host counted.
    let all =
        [(after(0), None), (after(1), None), (after(2), None), (after(3), None), (after(4), None), (after(4), None)];
    assert_eq!(count(&marked(page.clone(), &all, json!({}))), 4);
    assert!(marked(page.clone(), &all, json!({}))["system"][0]["cache_control"].is_null());
    let own = r#"{"name":"own","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}"#;
    page.tools = Some(Tools::counted([own.into()], &Tokenizer::Chars4));
    let both =
        marked(page.clone(), &[(After::Tools, None), all[1], all[2], all[3], all[4]], json!({"cache_control": plain}));
    assert_eq!(count(&both), 4);
    // The host's own stands on the last block already.
    assert!(both["messages"][2]["content"][1]["cache_control"].is_null());
    // What shows nothing has no mark of its own.
    let blank = raw_page(&[Entry::user("u"), Entry::user(" ")]);
    assert_eq!(count(&marked(blank, &[(after(1), None)], json!({}))), 1);
    let bad = marked(page, &[(after(1), Some("nonsense"))], json!({}));
    assert_eq!(bad["messages"][0]["content"][0]["cache_control"], plain);
}

/// A body with everything that a client may send.
fn rich() -> Value {
    json!({
        "model": "claude-opus-5-5", "max_tokens": 5, "temperature": 1, "metadata": {"user_id": "x"},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "tools": [{"name": "look", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                {"type": "image", "source": {"type": "file", "file_id": "file_2"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "ü"}, "title": "t",
                 "context": "c", "citations": {"enabled": true}},
                {"type": "container_upload", "file_id": "file_3"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "so", "citations": [{"type": "char_location", "cited_text": "x"}]},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {"type": "tool_use", "id": "c", "name": "look", "input": {"z": 1, "a": 2}, "caller": {"type": "direct"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "is_error": true, "content": [
                    {"type": "text", "text": "r"},
                    {"type": "tool_reference", "tool_name": "late"},
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/a"}}]},
                {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}}]},
            {"role": "system", "content": "be quick", "clear_at": "next_user_message"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "thanks"},
        ],
    })
}

#[test]
fn what_a_client_sends_goes_through_unchanged() {
    let body = rich().to_string();
    let decoded = decode(&body).unwrap();
    assert_eq!(decoded.model.as_deref(), Some("claude-opus-5-5"));
    let roles: Vec<Role> = decoded.entries.iter().map(|entry| entry.role).collect();
    use Role::{Assistant, System, Tool, User};
    assert_eq!(roles, [System, System, User, Assistant, Tool, User, System, Assistant, User]);
    let marks: Vec<usize> = decoded.marks.iter().map(|mark| mark.entry).collect();
    assert_eq!(marks, [1, 5]);
    assert_eq!(&*decoded.marks[0].mark, r#"{"ttl":"1h","type":"ephemeral"}"#);
    let Part::Reasoning(first) = &decoded.entries[3].parts[0] else { panic!("no reasoning") };
    assert_eq!((first.model.as_deref(), first.signature.as_deref()), (Some("claude-opus-5-5"), Some("s")));
    assert!(first.prefix.is_some());
    let Part::Opaque { payload, .. } = &decoded.entries[3].parts[3] else { panic!("nothing opaque") };
    assert!(body.contains(&**payload));
    let Part::Call(call) = &decoded.entries[3].parts[5] else { panic!("no call") };
    assert!(matches!(&call.arguments, Arguments::Object(text) if body.contains(&**text)));
    let mut page = raw_page(&decoded.entries);
    page.tools = Some(Tools::counted(decoded.tools, &Tokenizer::Chars4));
    page.format = ResponseFormat::parse(&decoded.format.unwrap()).unwrap();
    page.marks =
        decoded.marks.into_iter().map(|it| Mark { after: After::Message(it.entry), given: Some(it.mark) }).collect();
    let again = encode_with(&page, &target(), &decoded.extra);
    assert_eq!(validate(&again), []);
    assert_eq!(serde_json::from_slice::<Value>(&again).unwrap(), rich());
}

#[test]
fn mistakes_are_named_with_their_place() {
    let error = |body: &str| decode(body).unwrap_err().to_string();
    let cases = [
        ("{\"messages\":[\n {\"role\":\"x\",\"content\":\"\"}]}", "line 2, column 10: messages.0: unknown role \"x\""),
        ("{\"messages\":[{\"content\":\"\"}]}", "line 1, column 14: messages.0 has no role"),
        ("{\"messages\":[{\"role\":\"user\"}]}", "line 1, column 14: messages.0 has no content"),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":3}]}",
            "messages.0.content is neither a string nor a list of blocks",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":[\n{\"text\":\"\"}]}]}",
            "line 2, column 1: messages.0.content.0 has no \"type\"",
        ),
        (
            "{\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":1}]}]}",
            "column 69: messages.0.content.0.id: invalid type",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}]}",
            "messages.0.content.0 has no \"tool_use_id\"",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]}",
            "messages.0.content.0 has no \"source\"",
        ),
        ("{\"system\":3}", "line 1, column 11: system is neither a string nor a list of text blocks"),
        ("{\"system\":[{\"type\":\"image\"}]}", "system.0: no text block"),
        ("{\"model\":\n3}", "line 2, column 1: model: invalid type"),
        ("{", "EOF while parsing an object"),
        ("[]", "invalid type"),
    ];
    for (body, expected) in cases {
        assert!(error(body).contains(expected), "{body}: {}", error(body));
    }
}

/// Odd entries as a page, with marks and fields of the host's own at random.
fn odd(dice: &mut Dice) -> (Vec<Entry>, Map<String, Value>, Vec<Mark>) {
    let length = dice.below(14);
    let mut entries = mixed::conversation(dice, length);
    if dice.chance(30) && !entries.is_empty() {
        let at = dice.below(entries.len());
        entries.remove(at);
    }
    let extra = if dice.chance(20) { json!({"cache_control": {"type": "ephemeral", "ttl": "1h"}}) } else { json!({}) };
    let givens = [None, None, Some(r#"{"type":"ephemeral","ttl":"1h"}"#), Some(r#"{"type":"ephemeral","ttl":"5m"}"#)];
    let mark = |dice: &mut Dice| {
        let at = dice.below(16);
        let after = if at == 15 { After::Tools } else { After::Message(at) };
        Mark { after, given: dice.pick(&givens).map(Into::into) }
    };
    let marks = (0..dice.below(7)).map(|_| mark(dice)).collect();
    (entries, extra.as_object().unwrap().clone(), marks)
}

#[test]
fn whatever_the_page_the_body_is_valid_and_the_same_again() {
    let names = ["claude-opus-5-5", "claude-haiku-4-5", "claude-sonnet-4-6", "who-knows"];
    let mut kinds = std::collections::BTreeMap::new();
    for seed in 0..PAGES {
        let mut dice = Dice::new(seed);
        let (entries, extra, marks) = odd(&mut dice);
        let name = *dice.pick(&names);
        let known =
            Target::named(name).unwrap_or_else(|| Target::unknown(name)).over(Wire::Anthropic).with_window(None);
        for (page, is_raw) in [(raw_page(&entries), true), (compiled(entries.clone(), &known), false)] {
            let page = Page { marks: marks.clone(), ..page };
            let body = encode_with(&page, &known, &extra);
            assert_eq!(validate(&body), [], "seed {seed}: {}", text_of(&body));
            let read = decode(&text_of(&body)).unwrap();
            read.entries.iter().flat_map(|entry| entry.parts.iter()).for_each(|part| {
                let kind = format!("{part:?}").split([' ', '(']).next().unwrap_or_default().to_string();
                *kinds.entry(kind).or_insert(0) += 1;
            });
            // Marks are the host's business: without them the same page comes back.
            let plain = encode(&Page { marks: Vec::new(), ..page }, &known);
            let again = decode(&text_of(&plain)).unwrap();
            // Pages that were compiled have results in the order of their calls.
            let again = if is_raw { raw_page(&again.entries) } else { compiled(again.entries, &known) };
            let again = Page { marks: Vec::new(), ..again };
            let (one, two) = (encode_messages_of(&plain), encode_messages_of(&encode(&again, &known)));
            assert_eq!(one, two, "seed {seed}");
        }
    }
    for kind in ["Text", "Call", "Result", "Image", "Document"] {
        assert!(kinds.get(kind).is_some_and(|number| *number > 100), "{kind}: {kinds:?}");
    }
}

/// Instructions and messages of a body, byte for byte.
fn encode_messages_of(body: &[u8]) -> String {
    let text = text_of(body);
    let at = text.find(",\"system\":").or(text.find(",\"messages\":")).unwrap();
    text[at..].to_string()
}
