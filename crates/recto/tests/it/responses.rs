//! The Responses wire: what is written is read back, reasoning and its answer stay together, what the provider would
//! refuse is found, and a stream gives what the whole response does.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use recto::entry::{Arguments, Call, Media, Piece, Reasoning, Status, ToolResult};
use recto::error::Place;
use recto::format::ResponseFormat;
use recto::page::{After, Mark, Page};
use recto::target::{Caching, Instructions, Reasoned};
use recto::wire::openai_responses::{self as wire, Stream};
use recto::wire::{GivenMark, Reply, Stop, Usage, Wire};
use recto::{Entry, Log, Part, Policy, Reader, Request, Role, Target, Tokenizer, Tokens, compile};
use recto_testkit::story::story;
use recto_testkit::world::World;
use serde_json::{Map, Value, json};

const STORIES: usize = 200;

fn target() -> Target {
    Target::named("gpt-6-sol").unwrap().with_window(None)
}

/// The page of these entries, with nothing left out that the target takes.
fn page(entries: impl IntoIterator<Item = Entry>, target: &Target) -> Page {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    let (reader, policy) = (Reader::new("main"), Policy::none());
    let mut page = compile(&Request::new(&log, &reader, &policy, target)).unwrap().page;
    page.marks.clear();
    page
}

fn body(page: &Page, target: &Target) -> Value {
    serde_json::from_slice(&wire::encode(page, target)).unwrap()
}

fn input(entries: impl IntoIterator<Item = Entry>) -> Value {
    body(&page(entries, &target()), &target())["input"].take()
}

fn decoded(items: &Value) -> Vec<Entry> {
    wire::decode(&json!({"model": "gpt-6-sol", "input": items}).to_string()).unwrap().entries
}

/// Items that are read, and written as they were.
#[track_caller]
fn same(items: Value) {
    assert_eq!(input(decoded(&items)), items);
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"})
}

fn output(id: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": text})
}

fn thought(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAAAA"})
}

#[track_caller]
fn same_again(written: &Page, target: &Target) {
    let bytes = String::from_utf8(wire::encode(written, target)).unwrap();
    assert_eq!(wire::validate(bytes.as_bytes()), [], "{bytes}");
    let decoded = wire::decode(&bytes).unwrap();
    let mut again = page(decoded.entries, &target.clone().with_window(None));
    again.tools = written.tools.clone();
    again.format = written.format.clone();
    let find = |it: &GivenMark| Mark { after: After::Message(it.entry), given: Some(it.mark.clone()) };
    again.marks = decoded.marks.iter().map(find).collect();
    assert_eq!(String::from_utf8(wire::encode_with(&again, target, &decoded.extra)).unwrap(), bytes);
}

#[test]
fn every_page_that_is_written_is_read_back_and_written_the_same() {
    let mut runner = TestRunner::deterministic();
    let mut seen = 0;
    for _ in 0..STORIES {
        let story = story(40).new_tree(&mut runner).unwrap().current();
        let mut world = World::new(&story);
        // Instructions of one call come back as an entry, which stays.
        world.target = Target { instructions: Instructions::Kept, ..world.target.clone().over(Wire::OpenaiResponses) };
        world.live(&story, |page, target| {
            same_again(page, target);
            seen += 1;
        });
    }
    assert!(seen > STORIES, "only {seen} pages were written");
}

/// Everything that a page can hold, and much that is odd.
fn odd() -> Vec<Entry> {
    let media = |url: &str, name: Option<&str>, detail: Option<&str>| Media {
        url: url.into(),
        name: name.map(Into::into),
        detail: detail.map(Into::into),
    };
    let user = Entry::new(
        Role::User,
        [
            Part::text("  "),
            Part::text("look"),
            Part::Image(media("https://example.org/a.png", None, Some("low"))),
            Part::Image(media("data:image/png;base64,AAAA", None, Some("odd"))),
            Part::Document(media("data:application/pdf;base64,AAAA", Some("a.pdf"), None)),
            Part::Document(media("https://example.org/b.pdf", None, Some("high"))),
            Part::Audio(media("data:audio/mpeg;base64,AAAA", None, None)),
            Part::Audio(media("https://example.org/c.wav", None, None)),
            Part::File { id: "file-1".into() },
            Part::Opaque { provider: "openai".into(), payload: "not JSON".into() },
            Part::Opaque { provider: "anthropic".into(), payload: r#"{"type":"x"}"#.into() },
            Part::Opaque { provider: "openai".into(), payload: r#"{"type":"text","text":"chat's"}"#.into() },
        ],
    );
    let calls = |ids: &[&str]| ids.iter().map(|id| Call::new(*id, "odd name!", "not JSON")).collect::<Vec<_>>();
    let many: Vec<String> = (0..300).map(|n| format!("many{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let image = Piece::Image(media("data:image/png;base64,AAAA", None, None));
    let text = |text: &str| Piece::Text { text: text.into() };
    let result = |id: &str, content: Vec<Piece>| {
        Entry::new(Role::Tool, [Part::Result(ToolResult { call: id.into(), content, is_error: true })])
    };
    let mut entries = vec![Entry::system("be brief"), user, Entry::user(""), Entry::step("", calls(&["", "é x", "a"]))];
    entries.push(result("", vec![]));
    entries.push(result("é x", vec![text(""), image, text("seen")]));
    entries.push(result("a", vec![text("")]));
    entries.push(Entry::step(
        "again",
        [Call { arguments: Arguments::Object("{\"a\": 1}".into()), ..calls(&["a"]).remove(0) }],
    ));
    entries.push(result("a", vec![text("one"), text("two")]));
    entries.push(Entry::step("", calls(&many)));
    entries.extend(many.iter().map(|id| Entry::result(*id, "x")));
    entries.push(Entry::assistant(" "));
    entries.push(Entry::system("late"));
    entries
}

#[test]
fn odd_pages_are_taken_by_the_provider_and_read_back() {
    for target in [target(), Target::named("gpt-4o").unwrap().with_window(None).over(Wire::OpenaiResponses)] {
        let written = page(odd(), &target);
        same_again(&written, &target);
        let body = body(&written, &target);
        let items = body["input"].as_array().unwrap();
        assert_eq!(items.iter().filter(|item| item["type"] == "function_call").count(), 304);
        assert_eq!(body["include"].is_array(), target.reasoning == Reasoned::Sealed);
    }
    let nothing = page([], &target());
    same_again(&nothing, &target());
    assert_eq!(body(&nothing, &target())["input"], json!([user("[Continue.]")]));
}

#[test]
fn keys_stand_in_a_fixed_order_and_the_hosts_fields_are_merged() {
    let mut written = page([Entry::user("hi")], &target());
    written.format = Some(ResponseFormat::Schema { name: "a b".into(), schema: "{}".into(), strict: Some(true) });
    let Value::Object(fields) = json!({"include": ["x"], "text": {"verbosity": "low", "format": 1}, "stream": true,
        "model": "other", "input": "other", "tools": []})
    else {
        unreachable!()
    };
    let bytes = wire::encode_with(&written, &target(), &fields);
    let text = String::from_utf8(bytes).unwrap();
    let (head, tail) = text.split_once(r#""name":"#).unwrap();
    assert_eq!(
        head,
        concat!(
            r#"{"model":"gpt-6-sol","store":false,"include":["x","reasoning.encrypted_content"],"input":[{"type":"#,
            r#""message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"text":{"format":{"type":"#,
            r#""json_schema","#
        )
    );
    assert!(tail.ends_with(r#","schema":{},"strict":true},"verbosity":"low"},"stream":true}"#), "{tail}");
    let stored = wire::encode_with(&written, &target(), &Map::from_iter([("store".into(), true.into())]));
    assert!(String::from_utf8(stored).unwrap().starts_with(r#"{"model":"gpt-6-sol","store":true,"#));
}

#[test]
fn a_body_is_read_whole() {
    let body = json!({
        "model": "gpt-6-sol", "instructions": "be brief", "store": false, "previous_response_id": "resp_1",
        "tools": [{"type": "function", "name": "look"}, {"type": "web_search"}],
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "input": "hi",
    });
    let decoded = wire::decode(&body.to_string()).unwrap();
    assert_eq!(decoded.model.as_deref(), Some("gpt-6-sol"));
    assert_eq!(decoded.entries, [Entry::system("be brief"), Entry::user("hi")]);
    assert_eq!(decoded.tools.len(), 2);
    assert_eq!(decoded.format.as_deref(), Some(r#"{"type":"json_object"}"#));
    let extra = json!({"store": false, "previous_response_id": "resp_1", "text": {"verbosity": "low"}});
    assert_eq!(Value::Object(decoded.extra), extra);
    let plain = wire::decode(r#"{"input":"x","text":{"format":{"type":"text"}}}"#).unwrap();
    assert_eq!((plain.format, plain.extra.len()), (None, 1));
}

#[test]
fn items_of_one_answer_are_one_entry_and_every_output_is_its_own() {
    let items = json!([user("go"), thought("rs_1"), {"role": "assistant", "content": "on it", "phase": "commentary"},
        call("a"), call("b"), output("b", "two"), output("a", "one"), {"role": "assistant", "content": "done",
        "phase": "final_answer"}, user("more")]);
    let entries = decoded(&items);
    let shape: Vec<(Role, usize)> = entries.iter().map(|entry| (entry.role, entry.parts.len())).collect();
    use Role::{Assistant, Tool, User};
    assert_eq!(shape, [(User, 1), (Assistant, 4), (Tool, 1), (Tool, 1), (Assistant, 1), (User, 1)]);
    same(json!([user("go"), thought("rs_1"), {"role": "assistant", "content": "on it", "phase": "commentary"},
        call("a"), call("b"), output("a", "one"), output("b", "two"),
        {"role": "assistant", "content": "done", "phase": "final_answer"}, user("more")]));
    // Two messages of one answer keep what each says of itself.
    same(json!([user("go"), {"role": "assistant", "content": "a", "phase": "commentary"},
        {"role": "assistant", "content": "b"}, {"role": "assistant", "content": "c", "phase": "final_answer"}]));
}

#[test]
fn what_has_no_part_of_its_own_goes_back_as_it_came() {
    let search = json!({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}});
    same(json!([user("go"), search, {"role": "assistant", "content": "found"}]));
    same(json!([{"type": "additional_tools", "role": "developer", "tools": []}, user("go"),
        {"type": "compaction", "encrypted_content": "x"}, {"type": "item_reference", "id": "msg_1"}]));
    let shell = json!({"type": "local_shell_call", "call_id": "s", "status": "completed", "action": {}});
    same(json!([user("go"), shell, output("s", "shown"), {"role": "assistant", "content": "ok"}]));
    same(
        json!([user("go"), {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]),
    );
    same(json!([user("go"), {"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": "see", "annotations": [{"type": "url_citation", "url": "u"}]}]}]));
    same(
        json!([{"type": "message", "role": "user", "content": [{"type": "input_image", "file_id": "f", "detail": "low"},
        {"type": "input_file", "file_id": "g"}]}, {"type": "message", "role": "user", "content": [{"type": "new"}]}]),
    );
    let file = json!([{"type": "input_file", "file_id": "f"}, {"type": "input_text", "text": "x"}]);
    same(json!([user("go"), call("a"), {"type": "function_call_output", "call_id": "a", "output": file}]));
    same(json!([user("go"), {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}",
        "namespace": "mcp"}, output("a", "x")]));
}

#[test]
fn an_id_goes_only_where_its_reasoning_went() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    same(json!([user("go"), thought("rs_1"), search, {"role": "assistant", "content": "found"}]));
    let alone = input(decoded(&json!([user("go"), search, {"role": "assistant", "content": "found"}])));
    assert_eq!(alone[1], json!({"type": "web_search_call", "status": "completed"}));
    let with_ids = json!([user("go"), {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "x", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": "{}"}, output("a", "")]);
    let written = input(decoded(&with_ids));
    assert_eq!(written, json!([user("go"), {"role": "assistant", "content": "x"}, call("a"), output("a", "")]));
}

#[test]
fn reasoning_is_kept_byte_for_byte_with_what_it_led_to() {
    let item = r#"{"type":"reasoning", "id":"rs_1","summary":[{"type":"summary_text","text":"one"},{"text":"two"}],"encrypted_content":"x\/y"}"#;
    let body = format!(
        r#"{{"model":"gpt-6-sol","input":[{{"role":"user","content":"go"}},{item},{{"role":"assistant","content":"so"}}]}}"#
    );
    let entries = wire::decode(&body).unwrap().entries;
    let Part::Reasoning(read) = &entries[1].parts[0] else { panic!("{entries:?}") };
    assert_eq!((&*read.text, read.item.as_deref()), ("one\n\ntwo", Some(item)));
    assert_eq!((read.provider.as_deref(), read.model.as_deref()), (Some("openai"), Some("gpt-6-sol")));
    assert!(read.prefix.is_some());
    let written = String::from_utf8(wire::encode(&page(entries.clone(), &target()), &target())).unwrap();
    assert!(written.contains(item), "{written}");
    // To another model, or with nothing behind it, it does not go.
    let other = Target::named("gpt-4o").unwrap().with_window(None).over(Wire::OpenaiResponses);
    assert!(!String::from_utf8(wire::encode(&page(entries.clone(), &other), &other)).unwrap().contains("rs_1"));
    let alone = decoded(&json!([user("go"), thought("rs_1"), user("more")]));
    assert!(!input(alone).to_string().contains("rs_1"));
    let mut written = page(entries, &target());
    written.messages[1].parts = written.messages[1].parts.iter().rev().cloned().collect();
    assert!(!String::from_utf8(wire::encode(&written, &target())).unwrap().contains("rs_1"));
    // A client's own field does not go to the provider; without a seal there is nothing to send.
    let private = json!({"type": "reasoning", "summary": [], "encrypted_content": "x",
        "internal_chat_message_metadata_passthrough": {"a": 1}});
    let kept = decoded(&json!([private, {"role": "assistant", "content": "x"}]));
    let Part::Reasoning(Reasoning { item: Some(item), .. }) = &kept[0].parts[0] else { panic!("{kept:?}") };
    assert_eq!(**item, *r#"{"encrypted_content":"x","summary":[],"type":"reasoning"}"#);
    let open = decoded(&json!([{"type": "reasoning", "id": "rs_1", "summary": [{"text": "seen"}]}, call("a")]));
    assert!(matches!(&open[0].parts[0], Part::Reasoning(it) if &*it.text == "seen" && !it.is_sealed()));
}

#[test]
fn custom_tools_keep_their_kind_or_become_functions_as_pairs() {
    let items = json!([user("go"), {"type": "custom_tool_call", "call_id": "p", "name": "patch", "input": "*** \"x\""},
        {"type": "custom_tool_call_output", "call_id": "p", "output": "done"}, call("f"), output("f", "x")]);
    same(items.clone());
    let entries = decoded(&items);
    assert_eq!(entries[1].calls().next().unwrap().arguments, Arguments::String("*** \"x\"".into()));
    let plain = entries.into_iter().map(|entry| Entry { extra: Map::new(), ..entry });
    let written = input(plain);
    assert_eq!((&written[1]["type"], &written[2]["type"]), (&json!("function_call"), &json!("function_call_output")));
    assert_eq!(written[1]["arguments"], r#"{"input":"*** \"x\""}"#);
}

#[test]
fn an_id_that_recurs_is_another_in_the_later_step() {
    let written = input(decoded(&json!([user("go"), call("a"), output("a", "1"), call("a"), output("a", "2")])));
    let ids: Vec<&str> = (1..5).map(|at| written[at]["call_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a", "a", "a-2", "a-2"]);
    // One answer with one id twice is two steps, since a step can't hold both.
    let twice = decoded(&json!([user("go"), call("a"), call("a"), output("a", "1")]));
    assert_eq!(twice.iter().filter(|entry| entry.role == Role::Assistant).count(), 2);
}

#[test]
fn marks_are_read_off_and_written_on_parts() {
    let mark = json!({"mode": "explicit", "ttl": "12h"});
    let marked = |kind: &str| json!({"type": kind, "text": "x", "prompt_cache_breakpoint": mark});
    let items = json!([{"type": "message", "role": "developer", "content": [marked("input_text")]}, user("go"), call("a"),
        {"type": "function_call_output", "call_id": "a", "output": [marked("input_text")]}]);
    let read = wire::decode(&json!({"model": "gpt-6-sol", "input": items}).to_string()).unwrap();
    let places: Vec<usize> = read.marks.iter().map(|it| it.entry).collect();
    assert_eq!(places, [0, 3]);
    assert_eq!(read.marks[0].mark, mark.to_string().into());
    assert!(!format!("{:?}", read.entries).contains("breakpoint"));
    let mut written = page(read.entries, &target());
    let after = |at| Mark { after: After::Message(at), given: Some(mark.to_string().into()) };
    written.marks = vec![after(0), after(3)];
    assert_eq!(body(&written, &target())["input"], items);
    same_again(&written, &target());
    // Its own mark where none was given; assistants and tools can't carry one, and other models none at all.
    let own = |at| Mark { after: At(at), given: None };
    use After::Message as At;
    written.marks = vec![Mark { after: After::Tools, given: None }, own(1), own(2)];
    let marked = body(&written, &target()).to_string();
    assert_eq!(marked.matches("prompt_cache_breakpoint").count(), 1);
    assert!(marked.contains(r#""prompt_cache_breakpoint":{"mode":"explicit"}"#));
    let mut older = target();
    older.cache.kind = Caching::Prefix(Tokens(128));
    assert!(!body(&written, &older).to_string().contains("breakpoint"));
}

#[test]
fn mistakes_are_named_with_their_place() {
    let wrong = |marked: &str, what: &str| {
        let (before, after) = marked.split_once('§').unwrap();
        let error = wire::decode(&format!("{before}{after}")).unwrap_err();
        let (line, column) =
            (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap().chars().count() + 1);
        assert_eq!(error.place(), Some(Place { line, column }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    wrong(r#"{"input":[§{"a":1}]}"#, "input[0] has neither type nor role");
    wrong("{\"input\":[\n {\"role\":§\"critic\",\"content\":\"\"}]}", "unknown role \"critic\"");
    wrong(r#"{"input":[{"role":"user","content":§1}]}"#, "content is neither");
    wrong(r#"{"input":[{"role":"user","content":[§{"text":"x"}]}]}"#, "a part without \"type\"");
    wrong(r#"{"input":[§{"type":"function_call","name":"x"}]}"#, "a call without \"call_id\"");
    wrong(r#"{"input":[§{"type":"function_call_output","output":"x"}]}"#, "an output without call_id");
    wrong(r#"{"input":§7}"#, "input is neither");
    wrong(r#"{"input":[{"role":"user","content":[§{"type":"input_image"}]}]}"#, "neither image_url nor file_id");
}

mod rules;
mod streams;
