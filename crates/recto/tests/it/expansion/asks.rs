//! How asks are spelled, what ranges hold, and what hints tell.

use super::{Host, handle, shortened, text_of};
use expect_test::{Expect, expect};
use recto::edit::{Handle, Turn};
use recto::expand::{Ask, Content, Range, Refusal, TEACHING_STEP, TEACHING_TOOL, TOOL_NAME, What, expand, hint, tool};
use recto::receipt::Fate;
use recto::tool::Tools;
use recto::{Policy, Seq, Tokenizer, Tokens, Wire};
use serde_json::json;

#[test]
fn handles_are_read_as_models_write_them() {
    let of = |seq: u64, part: Option<usize>| Some(Handle { seq: Seq(seq), part });
    for text in [
        "m42",
        "M42",
        " [m42] ",
        "id=m42",
        "id: m42",
        "handle m42",
        "Handle=\"m42\"",
        "#42",
        "42",
        "`m42`,",
        "recto_expand m42",
    ] {
        assert_eq!(Handle::parse(text), of(42, None), "{text}");
    }
    assert_eq!(Handle::parse("m42.1"), of(42, Some(1)));
    assert_eq!(Handle::parse("[m42.0]"), of(42, Some(0)));
    for text in ["", "m", "m-1", "m+1", "42a", "x42", "m1.2.3", "m99999999999999999999", "m1.x", "é", "iéd"] {
        assert_eq!(Handle::parse(text), None, "{text}");
    }
    for handle in [Handle { seq: Seq(7), part: None }, Handle { seq: Seq(7), part: Some(0) }] {
        assert_eq!(Handle::parse(&handle.to_string()), Some(handle));
    }
}

#[test]
fn both_spellings_of_the_step_are_read() {
    let expected =
        Ask { what: What::Index(5), range: Range::Items(40..=50), reason: Some("the middle".into()), calls: None };
    let fields = r#""messageIndex":5,"itemRange":[40,50],"reason":"the middle""#;
    let alone = [format!(r#"{{"step":"ExpandMessage",{fields}}}"#), format!(r#"{{"type":"expand-message",{fields}}}"#)];
    let answer = format!(r#"{{"taskComplete":false,"nextStep":{{"type":"expand-message",{fields}}}}}"#);
    for text in alone.into_iter().chain([answer]) {
        let value = serde_json::from_str(&text).unwrap();
        assert_eq!(Ask::from_step(&value), Some(Ok(expected.clone())), "{text}");
    }
    let by_handle = json!({"step": "expand_message", "messageIndex": "m42"});
    assert_eq!(Ask::from_step(&by_handle), Some(Ok(Ask::whole(Handle::entry(Seq(42))))));
    for other in [json!({"step": "success"}), json!({"type": "chat"}), json!("ExpandMessage"), json!(null), json!([1])]
    {
        assert_eq!(Ask::from_step(&other), None, "{other}");
    }
    let bad = Ask::from_step(&json!({"step": "ExpandMessage", "messageIndex": -1})).unwrap().unwrap_err();
    assert_eq!(bad.code(), "bad_arguments");
}

#[test]
fn the_tool_s_arguments_are_read_and_bad_ones_say_what_is_wrong() {
    let whole = Ask::whole(Handle::entry(Seq(42)));
    assert_eq!(Ask::from_call(r#"{"handle":"m42"}"#), Ok(whole.clone()));
    assert_eq!(Ask::from_call(r#"{"handle":42.0,"lines":null}"#), Ok(whole.clone()));
    assert_eq!(Ask::from_call(r#"{"handle":"m42","lines":[3,9]}"#), Ok(whole.clone().only(Range::Lines(3..=9))));
    assert_eq!(Ask::from_call(r#"{"handle":"m42","lines":"3-9"}"#), Ok(whole.clone().only(Range::Lines(3..=9))));
    assert_eq!(Ask::from_call(r#"{"handle":"m42","items":4.0}"#), Ok(whole.clone().only(Range::Items(4..=4))));
    assert_eq!(Ask::from_call(r#"{"handle":"m42","search":"x"}"#), Ok(whole.only(Range::Search("x".into()))));
    let mut told = String::new();
    for arguments in [
        "",
        "[]",
        r#""m42""#,
        "{}",
        r#"{"handle":"the last one"}"#,
        r#"{"handle":["m42"]}"#,
        r#"{"handle":"m42","line":[1,2]}"#,
        r#"{"handle":"m42","lines":[1,2,3]}"#,
        r#"{"handle":"m42","lines":[-1,2]}"#,
        r#"{"handle":"m42","items":{}}"#,
        r#"{"handle":"m42","lines":[1,2],"search":"x"}"#,
        r#"{"handle":"m42","search":" "}"#,
        r#"{"handle":"m42","reason":7}"#,
        r#"{"index":"first"}"#,
    ] {
        let refusal = Ask::from_call(arguments).unwrap_err();
        let text = refusal.to_string();
        told.push_str(&format!("{} {}\n", refusal.code(), text.strip_suffix(super::NOT_AGAIN).unwrap().trim_end()));
    }
    expect![[r#"
        bad_arguments The request can't be read: the arguments are no JSON object such as {"handle": "m42"}.
        bad_arguments The request can't be read: the arguments are no JSON object such as {"handle": "m42"}.
        bad_arguments The request can't be read: the arguments are no JSON object such as {"handle": "m42"}.
        bad_arguments The request can't be read: it names no message: give its handle, such as "m42".
        unknown_handle There is no message "the last one"; use a handle that a marker names, such as m42.
        bad_arguments The request can't be read: a handle is a text such as "m42".
        bad_arguments The request can't be read: there is no argument "line"; "lines" was probably meant.
        bad_arguments The request can't be read: lines are two numbers from 1, such as [10, 20].
        bad_arguments The request can't be read: lines are two numbers from 1, such as [10, 20].
        bad_arguments The request can't be read: items are two numbers from 0, such as [40, 50].
        bad_arguments The request can't be read: give only one of lines, items and search.
        bad_arguments The request can't be read: what to search for is a text of at most 200 characters.
        bad_arguments The request can't be read: the reason is no text.
        bad_arguments The request can't be read: the index of a message is a number from 0.
    "#]]
    .assert_eq(&told);
}

#[test]
fn the_tool_can_be_offered_over_every_wire_and_is_taught() {
    let tool = tool();
    let function = tool.function.as_ref().unwrap();
    assert_eq!(&*function.name, TOOL_NAME);
    assert!(Wire::ALL.iter().all(|wire| tool.is_taken_by(*wire)));
    let schema: serde_json::Value = serde_json::from_str(function.parameters.as_ref().unwrap()).unwrap();
    for name in schema["properties"].as_object().unwrap().keys() {
        assert!(Ask::from_call(&json!({name: null}).to_string()).unwrap_err().to_string().contains("names no message"));
    }
    assert!(Tools::counted([tool.json.clone()], &Tokenizer::O200k).cost < Tokens(250));
    assert!(TEACHING_TOOL.contains(TOOL_NAME) && TEACHING_STEP.contains("expand-message"));
    let step = TEACHING_STEP.lines().find(|line| line.starts_with('{')).unwrap();
    let taught = Ask::from_step(&serde_json::from_str(step).unwrap()).unwrap().unwrap();
    assert_eq!(taught.what, What::Handle(Handle::entry(Seq(42))));
}

#[test]
fn an_index_counts_in_the_previous_page() {
    let (host, seq) = shortened(&"word ".repeat(100));
    let (_, _, page) = host.past.last().unwrap();
    let at = page.messages.iter().position(|message| message.seq == Some(seq)).unwrap();
    let ask = |index| Ask { what: What::Index(index), ..Ask::whole(handle(seq)) };
    assert_eq!(expand(&host.request(), &ask(at)).unwrap().handle, handle(seq));
    assert_eq!(expand(&host.request(), &ask(at - 1)).unwrap_err().code(), "never_reduced");
    assert_eq!(expand(&host.request(), &ask(999)).unwrap_err().code(), "unknown_index");
    let without = recto::Request { previous: None, ..host.request() };
    assert_eq!(expand(&without, &ask(at)).unwrap_err().code(), "index_without_page");
}

#[track_caller]
fn shows(text: &str, range: Range, expected: Expect) {
    let (host, seq) = shortened(text);
    let told = match expand(&host.request(), &Ask::whole(handle(seq)).only(range)) {
        Ok(expansion) => expansion.text.to_string(),
        Err(refusal) => refusal.to_string(),
    };
    expected.assert_eq(&told);
}

fn poem() -> String {
    (1..=40).map(|n| format!("{} line {n}\n", if n % 13 == 0 { "Red" } else { "blue" })).collect()
}

#[test]
fn lines_are_numbered_and_a_search_shows_what_is_around() {
    shows(
        &poem(),
        Range::Lines(39..=99),
        expect![[r#"
        [… lines 39–40 of 40, handle m2]
        39: Red line 39
        40: blue line 40"#]],
    );
    shows(
        &poem(),
        Range::Search("red".into()),
        expect![[r#"
        [… 3 of 40 lines hold "red", handle m2]
        …
        11: blue line 11
        12: blue line 12
        13: Red line 13
        14: blue line 14
        15: blue line 15
        …
        24: blue line 24
        25: blue line 25
        26: Red line 26
        27: blue line 27
        28: blue line 28
        …
        37: blue line 37
        38: blue line 38
        39: Red line 39
        40: blue line 40"#]],
    );
    shows(
        &poem(),
        Range::Search("green".into()),
        expect![[r#"No line of m2 holds "green". Do not request this expansion again."#]],
    );
    shows(
        &poem(),
        Range::Lines(41..=50),
        expect!["m2 has no lines 41 to 50: there are 40. Do not request this expansion again."],
    );
    shows(
        &poem(),
        Range::Lines(0..=3),
        expect!["m2 has no lines 0 to 3: there are 40. Do not request this expansion again."],
    );
    shows(
        &poem(),
        Range::Items(0..=3),
        expect!["m2 is no JSON array; ask for lines of it, or search it. Do not request this expansion again."],
    );
}

#[test]
fn an_array_may_be_the_only_one_of_an_object() {
    let filler = "and so on ".repeat(30);
    let list = format!(r#"{{"total": 3, "rows": [ {{"n": 1.50}}, "two",  [3] ], "next": "{filler}"}}"#);
    shows(
        &list,
        Range::Items(0..=1),
        expect![[r#"
        [… items 0–1 of 3, counted from 0, handle m2]
        [{"n": 1.50},
        "two"]"#]],
    );
    shows(
        &format!(r#"{{"rows": [1, 2], "columns": [5, "{filler}"]}}"#),
        Range::Items(0..=1),
        expect!["m2 is no JSON array; ask for lines of it, or search it. Do not request this expansion again."],
    );
    shows(
        &format!("[1, 2, 3, \"{filler}\", oh"),
        Range::Items(0..=1),
        expect!["m2 is no JSON array; ask for lines of it, or search it. Do not request this expansion again."],
    );
}

#[test]
fn what_a_search_finds_is_bounded() {
    let (host, seq) = shortened(&"needle in a haystack\n".repeat(5_000));
    let search = |host: &Host, seq, text: &str| {
        expand(&host.request(), &Ask::whole(handle(seq)).only(Range::Search(text.into()))).unwrap().text
    };
    let found = search(&host, seq, "NEEDLE");
    assert!(found.starts_with("[… 5000 of 5000 lines hold \"NEEDLE\" (the first 20 are shown)"), "{found}");
    assert!(found.lines().count() < 30);
    // One endless line, with letters that grow when they become small.
    let endless = format!("{}needle{}", "İé".repeat(50_000), "👩‍👩‍👧".repeat(20_000));
    let (host, seq) = shortened(&endless);
    let found = search(&host, seq, "needle");
    assert!(found.chars().count() < 600, "{}", found.chars().count());
    assert!(found.contains("characters]"));
}

#[test]
fn hints_tell_what_something_is_without_showing_it() {
    let list: Vec<String> = (0..50).map(|n| format!("{{\"id\": {n}}}")).collect();
    let json = format!("[{}]", list.join(",\n"));
    let (mut host, seq) = shortened(&json);
    let told = hint(&host.request(), handle(seq)).unwrap();
    assert_eq!((told.content, told.items, told.lines), (Content::JsonArray, Some(50), 50));
    assert_eq!((told.chars, told.tokens), (json.len(), host.log.get(seq).unwrap().cost));
    assert_eq!((told.tool.as_deref(), &*told.first_line), (Some("look"), "[{\"id\": 0},"));
    assert_eq!((told.can_expand, told.shown), (true, Fate::Changed));
    host.expand(Ask::whole(handle(seq))).unwrap();
    let told = hint(&host.request(), handle(seq)).unwrap();
    assert_eq!((told.can_expand, told.shown), (false, Fate::Shown));
    let user = hint(&host.request(), handle(Seq(0))).unwrap();
    assert_eq!((user.content, user.tool, user.can_expand), (Content::Text, None, false));
    assert_eq!(hint(&host.request(), handle(Seq(999))).unwrap_err().code(), "unknown_handle");
    let (host, seq) = shortened(&format!("{{\"a\": [1, 2], \"some\": \"{}\"}}", "other ".repeat(30)));
    let told = hint(&host.request(), handle(seq));
    assert_eq!(told.map(|it| (it.content, it.items)), Ok((Content::JsonObject, Some(2))));
}

#[test]
fn the_clock_of_a_part_counts_from_its_last_expansion() {
    let (mut host, seq) = shortened(&"word ".repeat(100));
    let part = recto::edit::PartAt { seq, part: 0 };
    assert_eq!((host.reader.since(part), host.reader.age_of(part), host.reader.age(seq)), (Turn(0), 4, 4));
    host.expand(Ask::whole(handle(seq))).unwrap();
    assert_eq!((host.reader.since(part), host.reader.age_of(part), host.reader.age(seq)), (Turn(4), 0, 4));
    host.calls(2);
    assert_eq!((host.reader.age_of(part), host.reader.age(seq)), (2, 6));
    let other = recto::edit::PartAt { seq: Seq(0), part: 0 };
    assert_eq!(host.reader.age_of(other), 6);
    assert_eq!(host.reader.age_of(recto::edit::PartAt { seq: Seq(999), part: 3 }), 0);
}

#[test]
fn a_reason_is_recorded_but_not_without_end() {
    let (mut host, seq) = shortened(&"word ".repeat(100));
    host.expand(Ask::whole(handle(seq)).because("é".repeat(9_000))).unwrap();
    let why = host.call().receipt.fate(seq).unwrap().why.to_string();
    assert!(why.chars().count() < 600 && why.ends_with('…'));
    assert!(text_of(&host.call(), seq).starts_with("word"));
}

#[test]
fn asks_of_nothing_at_all_are_refused() {
    let host = Host::new(Policy::named("empty"), Some(10));
    let refusal = expand(&host.request(), &Ask::whole(Handle::entry(Seq(0)))).unwrap_err();
    assert_eq!(refusal, Refusal::UnknownHandle { handle: "m0".into() });
    assert_eq!(hint(&host.request(), Handle::entry(Seq(u64::MAX))).unwrap_err().code(), "unknown_handle");
}
