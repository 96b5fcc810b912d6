//! Receipts: the text and the JSON of them, what they say about the previous page, and sums that add up.

use crate::join::Host;
use expect_test::expect;
use recto::digest::Digest;
use recto::edit::Reason;
use recto::entry::{Call, ExpiryAction, Reasoning};
use recto::receipt::{Fate, FateRow, Receipt};
use recto::reduce::{Expire, FitWindow};
use recto::tool::Tools;
use recto::{Entry, Log, Part, Policy, Reader, Request, Role, Seq, Span, Target, Tokenizer, Tokens, compile_once};
use serde_json::Value;

/// A story in which a result expires, an exchange goes, and a call stays unanswered.
fn told() -> Host {
    let fit = FitWindow { target_percent: 60, minimum: Tokens(0), ..FitWindow::default() };
    let policy = Policy::named("small").then(Expire::first_chars(3, 8)).then(fit).immediately();
    let mut host = Host::new(policy, Some(200));
    host.live(
        "system be brief ~5
         user the task ~10
         say ok ~110
         user look around ~10
         step a | looking
         result a found ~40
         user go on ~10
         calls 3
         user a question ~40
         calls 1
         step b c
         result c empty
         result x nobody asked
         try",
    );
    host
}

/// The text of a receipt without what no reader compares: digests and the version.
fn text(receipt: &Receipt) -> String {
    let text = receipt.to_string();
    let (text, _) = text.rsplit_once("\n\n  page ").unwrap();
    // Each line without what only fills it up.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn a_receipt_tells_in_text_what_became_of_everything() {
    let host = told();
    let receipt = &host.last.as_ref().unwrap().receipt;
    expect![[r#"
        page for eval  policy small  reader main  turn 4
          window   200 = 113 used + 0 reserved for the answer + 87 left
          used     113 = system 5 + user 70 + assistant 2 + calls 6 + results 30
          cache    4 of 7 messages (29 tokens) stand as on the previous page; broken at #5
          money    0.000108 USD = 29 cached + 84 written tokens of input
          saving   132 tokens less than all that was said: 0.000035 USD without; 0.000011 USD so far
          warning  call b of #8 has no result; a stand-in is shown

          entries         fate                     tokens  pass        why
          #0              shown                         5  select      instructions
          #1              shown                        10  select      kept by the floor at #3
          #2              not shown               110 → 0  floor       below the floor at #3
          #3–4            shown                        14  select      selected
          #5              changed                 40 → 18  expire      expired after 4 calls (limit 3): first 8 of 160 characters
          #6              shown                        10  select      selected
          #7              shown                        40  select      last user words
          #8–9            shown                         6  select      newest
          #10             not shown                 3 → 0  join        no call x
    "#]]
    .assert_eq(&text(receipt));
    let ticket = &receipt.ticket;
    let last = format!("\n\n  page {}  inputs {}  recto {}", ticket.page, ticket.inputs, ticket.version);
    assert!(receipt.to_string().ends_with(&last));
    assert_eq!(ticket.page, host.last.as_ref().unwrap().page.digest());
}

fn keys(value: &Value) -> String {
    value.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_receipt_is_json_with_the_documented_fields() {
    let host = told();
    let receipt = &host.last.as_ref().unwrap().receipt;
    let json: Value = serde_json::from_str(&serde_json::to_string(receipt).unwrap()).unwrap();
    for (name, value, fields) in [
        ("receipt", &json, "fates ledger mode money policy prefix target ticket warnings"),
        (
            "ledger",
            &json["ledger"],
            "assistant calls framing input reasoning reserve_out results system tools user window",
        ),
        ("prefix", &json["prefix"], "broken_at messages previous tokens tools_changed"),
        ("money", &json["money"], "cached plain usd written"),
        ("ticket", &json["ticket"], "head inputs ordinal page reader turn version"),
        ("span", &json["fates"][0]["span"], "first last"),
    ] {
        let found = keys(value);
        let missing: Vec<_> = fields.split(' ').filter(|field| !found.split(' ').any(|it| it == *field)).collect();
        assert!(missing.is_empty(), "{name} has no {missing:?}: {found}");
    }
    let rows = json["fates"].as_array().unwrap();
    for row in rows {
        for field in ["span", "entries", "fate", "by", "reason", "before", "after"] {
            assert!(!row[field].is_null(), "a row without {field}: {row}");
        }
    }
    let expired = rows.iter().find(|row| row["by"] == "expire").unwrap();
    assert_eq!((&expired["fate"], &expired["reason"]), (&"changed".into(), &"compacted".into()));
    assert_eq!((&expired["age"], &expired["limit"], &expired["shown"]), (&4.into(), &3.into(), &8.into()));
    let warning = &json["warnings"][0];
    assert_eq!((&warning["warning"], &warning["call"]), (&"missing_result".into(), &"b".into()));
    assert_eq!(json["ticket"]["page"].as_str().unwrap().len(), 32);
    assert_eq!(json["mode"], "full");
}

/// A reason stands in the row that it explains, so no field of it may be called as one of the row's.
#[test]
fn no_key_stands_twice_in_a_row() {
    let (by, span) = (Seq(7), Span { first: Seq(1), last: Seq(4) });
    let words = Digest::of(b"words");
    let reasons =
        [Reason::Folded { by }, Reason::Superseded { by }, Reason::Summarized { span, words, model: "m".into() }];
    for why in reasons {
        let (before, after) = (Tokens(9), Tokens(0));
        let row = FateRow {
            span: Span::one(Seq(2)),
            entries: 1,
            scope: None,
            fate: Fate::NotShown,
            by: "a".into(),
            why,
            before,
            after,
        };
        let text = serde_json::to_string(&row).unwrap();
        for key in ["span", "entries", "fate", "by", "before", "after"] {
            assert_eq!(text.matches(&format!("\"{key}\":")).count(), 1, "{key}: {text}");
        }
        assert_eq!(serde_json::from_str::<FateRow>(&text).unwrap(), row);
    }
    // What older versions have kept is still read.
    let old = r#"{"reason":"superseded","by":7}"#;
    assert_eq!(serde_json::from_str::<Reason>(old).unwrap(), Reason::Superseded { by });
}

#[test]
fn a_ticket_is_read_back_as_it_was_written() {
    let host = told();
    let ticket = &host.last.as_ref().unwrap().receipt.ticket;
    let text = serde_json::to_string(ticket).unwrap();
    assert_eq!(serde_json::from_str::<recto::receipt::Ticket>(&text).unwrap(), *ticket);
}

#[test]
fn every_entry_has_exactly_one_fate() {
    let host = told();
    let receipt = &host.last.as_ref().unwrap().receipt;
    let told: Vec<String> = (0..host.log.len())
        .map(|seq| {
            let rows = receipt.fates.iter().filter(|row| row.span.contains(Seq(seq))).count();
            assert_eq!(rows, 1, "#{seq}");
            let row = receipt.fate(Seq(seq)).unwrap();
            format!("{seq} {:?} by {}: {}", row.fate, row.by, row.why)
        })
        .collect();
    expect![[r#"
        0 Shown by select: instructions
        1 Shown by select: kept by the floor at #3
        2 NotShown by floor: below the floor at #3
        3 Shown by select: selected
        4 Shown by select: selected
        5 Changed by expire: expired after 4 calls (limit 3): first 8 of 160 characters
        6 Shown by select: selected
        7 Shown by select: last user words
        8 Shown by select: newest
        9 Shown by select: newest
        10 NotShown by join: no call x"#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(receipt.fate(Seq(host.log.len())), None);
    // What is shown stands on the page, and nothing else does.
    let on_page = |seq| host.last.as_ref().unwrap().page.messages.iter().any(|message| message.seq == Some(seq));
    for seq in (0..host.log.len()).map(Seq) {
        assert_eq!(on_page(seq), receipt.fate(seq).unwrap().fate != Fate::NotShown, "{seq}");
    }
}

fn tool(name: &str) -> Tools {
    let definition = format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#);
    Tools::counted([definition.into()], &Tokenizer::Chars4)
}

/// The pages of two calls, and what the second receipt says about the first.
fn prefix(first: &str, then: &str, tools: [Option<&Tools>; 2]) -> String {
    let (mut log, reader, policy) = (Log::counted_by(Tokenizer::Chars4), Reader::new("main"), Policy::none());
    let mut target = Target::eval();
    target.tokenizer = Tokenizer::Chars4;
    let say = |log: &mut Log, story: &str| {
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
            log.append(Entry::user(line)).unwrap();
        }
    };
    say(&mut log, first);
    let request = Request { tools: tools[0], ..Request::new(&log, &reader, &policy, &target) };
    let previous = compile_once(&request).unwrap();
    assert_eq!(previous.receipt.prefix.previous, None);
    let mut log = log.until(log.head().filter(|_| !then.starts_with("instead")));
    say(&mut log, then);
    let request =
        Request { tools: tools[1], previous: Some(&previous.page), ..Request::new(&log, &reader, &policy, &target) };
    let receipt = compile_once(&request).unwrap().receipt;
    let (prefix, money) = (&receipt.prefix, &receipt.money);
    assert_eq!((money.cached, money.cached + money.fresh()), (prefix.tokens, receipt.ledger.used()));
    let usd = (money.cached.0 as f64 * 0.1 + money.fresh().0 as f64 * 1.25) / 1e6;
    assert!((money.usd - usd).abs() < 1e-12);
    format!("{prefix}\n{prefix:?}")
}

#[test]
fn the_receipt_says_what_of_the_previous_page_stands() {
    let (read, write) = (tool("read"), tool("write"));
    let both = [Some(&read), Some(&read)];
    // A message of four characters costs one token and four of overhead.
    expect![[r#"
        1 of 1 messages (5 tokens) stand as on the previous page
        Prefix { messages: 1, tokens: Tokens(5), previous: Some(1), broken_at: None, tools_changed: false }"#]]
    .assert_eq(&prefix("user", "more", [None, None]));
    expect![[r#"
        2 of 2 messages (22 tokens) stand as on the previous page
        Prefix { messages: 2, tokens: Tokens(22), previous: Some(2), broken_at: None, tools_changed: false }"#]]
    .assert_eq(&prefix("user\nmore", "", both));
    expect![[r#"
        0 of 2 messages (12 tokens) stand as on the previous page; broken at #0
        Prefix { messages: 0, tokens: Tokens(12), previous: Some(2), broken_at: Some(Seq(0)), tools_changed: false }"#]]
    .assert_eq(&prefix("user\nmore", "instead", both));
    expect![[r#"
        nothing holds: other tools than on the previous page
        Prefix { messages: 0, tokens: Tokens(0), previous: Some(1), broken_at: None, tools_changed: true }"#]]
    .assert_eq(&prefix("user", "more", [Some(&read), Some(&write)]));
    expect![[r#"
        nothing holds: other tools than on the previous page
        Prefix { messages: 0, tokens: Tokens(0), previous: Some(1), broken_at: None, tools_changed: true }"#]]
    .assert_eq(&prefix("user", "more", [None, Some(&read)]));
}

#[test]
fn a_page_that_breaks_in_the_middle_names_the_entry() {
    let removed = Expire { action: ExpiryAction::Remove, ..Expire::first_chars(0, 1) };
    let mut host = Host::new(Policy::named("expire").then(removed).immediately(), None);
    host.live("user look\n step a\n result a found ~50\n user and?\n calls 2");
    let prefix = &host.last.as_ref().unwrap().receipt.prefix;
    assert_eq!((prefix.messages, prefix.previous, prefix.broken_at), (2, Some(4), Some(Seq(2))));
    assert_eq!(prefix.tokens, Tokens(1 + 2));
    host.live("calls 1");
    let prefix = &host.last.as_ref().unwrap().receipt.prefix;
    assert_eq!((prefix.messages, prefix.previous, prefix.broken_at), (4, Some(4), None));
}

#[test]
fn an_input_that_failed_breaks_the_page_after_what_stands() {
    let mut host = Host::new(Policy::none(), None);
    host.live("user one\n say two\n try three\n try four");
    let prefix = host.last.as_ref().unwrap().receipt.prefix;
    assert_eq!((prefix.messages, prefix.previous, prefix.broken_at), (2, Some(3), None));
    assert!(prefix.to_string().ends_with("; broken after them"), "{prefix}");
    host.live("call four\n say five\n call");
    let prefix = host.last.as_ref().unwrap().receipt.prefix;
    assert_eq!((prefix.messages, prefix.previous), (3, Some(3)), "the input became an entry and stands as it was");
}

#[test]
fn the_ledger_adds_up_by_kind() {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    let thought = Reasoning { text: "t".repeat(28).into(), ..Reasoning::default() };
    let step =
        [Part::Reasoning(thought), Part::text("a".repeat(20)), Part::Call(Call::new("a", "look", "x".repeat(8)))];
    for entry in [
        Entry::system("s".repeat(12)),
        Entry::user("u".repeat(16)),
        Entry::new(Role::Assistant, step),
        Entry::result("a", "r".repeat(44)),
    ] {
        log.append(entry).unwrap();
    }
    let input = log.draft(Entry::user("i".repeat(52))).unwrap();
    let (reader, policy, tools) = (Reader::new("main"), Policy::none(), tool("look"));
    let mut target = Target::eval().with_window(Some(Tokens(1_000)));
    (target.message_overhead, target.request_overhead) = (Tokens(4), Tokens(3));
    let request = Request {
        input: Some(&input),
        tools: Some(&tools),
        reserve: Some(Tokens(200)),
        ..Request::new(&log, &reader, &policy, &target)
    };
    let compiled = compile_once(&request).unwrap();
    let ledger = compiled.receipt.ledger;
    assert_eq!((ledger.system, ledger.user, ledger.assistant), (Tokens(3), Tokens(4), Tokens(5)));
    assert_eq!((ledger.reasoning, ledger.calls, ledger.results), (Tokens(7), Tokens(1 + 2), Tokens(11)));
    // The input carries its own overhead; four messages and the request make the framing.
    assert_eq!((ledger.input, ledger.framing), (Tokens(13 + 4), Tokens(4 * 4 + 3)));
    assert_eq!((ledger.tools, ledger.window), (tools.cost, Some(Tokens(1_000))));
    assert_eq!(ledger.used() + ledger.reserve_out + ledger.left().unwrap(), Tokens(1_000));
    let messages: Tokens = compiled.page.messages.iter().map(|message| message.cost).sum();
    assert_eq!(ledger.used(), messages + tools.cost + target.request_overhead);
    let rows: Tokens = compiled.receipt.fates.iter().map(|row| row.after).sum();
    assert_eq!(rows, log.total(Span { first: Seq(0), last: Seq(3) }).tokens);
}

#[test]
fn an_unbounded_window_has_nothing_left_to_tell() {
    let mut host = Host::new(Policy::none(), None);
    host.live("user hi\n call");
    let receipt = &host.last.as_ref().unwrap().receipt;
    assert_eq!((receipt.ledger.window, receipt.ledger.left()), (None, None));
    assert!(receipt.to_string().contains("window   unbounded: 1 used\n"), "{receipt}");
}
