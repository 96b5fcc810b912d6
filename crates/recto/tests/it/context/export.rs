//! Exports: they read back byte for byte, what can't be read is named and the rest loads, and places stay what they
//! were.

use super::{COUNTER, body, import, object, of, page, seqs, shown, texts, within};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use recto::context::{Changes, Imported};
use recto::entry::{
    Call, EntryKind, Expiry, ExpiryAction, Media, Millis, Origin, Reasoning, Redaction, Section, Status, ToolResult,
};
use recto::log::{SEQ_MAX, Scope};
use recto::policy::Sections;
use recto::{Context, Entry, Lane, Log, Part, Policy, Role, Seq, Span};
use serde_json::{Map, Value, json};

/// An entry with every field there is; a new field must be added here.
fn full() -> Entry {
    let redaction = Redaction { part: 0, piece: 0, start: 0, end: 3, label: "[key]".into() };
    Entry {
        id: Some("e1".into()),
        section: Section::default(),
        lane: Lane::Trace,
        role: Role::Assistant,
        parts: vec![
            Part::text("key: 🔑\n"),
            Part::Reasoning(Reasoning { text: "hm".into(), signature: Some("s".into()), ..Reasoning::default() }),
            Part::Call(Call::new("a", "look", "{\"z\": 1,  \"a\": 2}")),
            Part::Opaque { provider: "openai".into(), payload: "{ }".into() },
        ]
        .into(),
        status: Status::Sent,
        author: Some("ada".into()),
        run: Some("r1".into()),
        at: Some(Millis(-1)),
        edge: true,
        origin: Origin::Host,
        kind: Some(EntryKind::ActionResult),
        tools: vec!["search".into(), "fetch".into()],
        expiry: Some(Expiry { after: 3, action: ExpiryAction::FirstChars(10) }),
        covers: Some(Span { first: Seq(0), last: Seq(0) }),
        erased: Some(recto::entry::Erased { bytes: 7, hash: recto::digest::Digest::of(b"gone") }),
        redactions: vec![redaction],
        meta: object(json!({"b": [1, {"d": null, "c": true}], "a": "\u{7f}\u{2028}"})),
        extra: object(json!({"vendor": {"y": 1, "x": -2.5}, "trace_id": 18_446_744_073_709_551_615u64})),
    }
}

/// A conversation with every kind of thing in it.
fn rich() -> Context {
    let result = Part::Result(ToolResult { is_error: true, ..ToolResult::text("b", "no such file") });
    let media = Media { url: "https://example.org/a.png".into(), name: Some("a.png".into()), detail: None };
    let entries = [
        Entry::system("Answer in English."),
        full(),
        Entry::result("a", "found"),
        Entry { run: Some("r2".into()), ..Entry::user("What is in the picture?") },
        Entry::new(Role::User, [Part::Image(media), Part::text("")]),
        within("summary", "They looked."),
        within("notes", "A section of the host's own."),
        Entry::step("Reading.", [Call::new("b", "read", "not json")]),
        Entry::new(Role::Tool, [result]),
        Entry { status: Status::Cancelled, ..Entry::assistant("It is") },
        Entry::user("Go on."),
    ];
    let context = of(entries).with_system_prompt("You are \"terse\".\n").with_metadata_key("user", json!({"b": 1}));
    context.with_response_format(r#"{"type": "json_schema", "a": 1}"#).unwrap()
}

#[test]
fn s37_export_import_compile() {
    let context = rich();
    let exported = context.to_json();
    let Imported { context: read, tokenizer, quarantined } = import(&exported);
    assert!(quarantined.is_empty(), "{quarantined:?}");
    assert_eq!((tokenizer.as_deref(), read.to_json()), (Some("bytes4"), exported));
    let mut all = Policy::named("all");
    all.select.sections = Sections::All;
    for policy in Policy::presets().iter().chain([&all]) {
        for run in [None, Some(&"r1".into())] {
            let (one, other) = (page(&context, policy, run).unwrap(), page(&read, policy, run).unwrap());
            assert_eq!((body(&one), one), (body(&other), other), "{}", policy.name);
        }
    }
}

#[test]
fn s37_unknown_fields_are_preserved() {
    let record = r#"{"seq": 4, "role": "user", "origin": "user",
        "parts": [{"type": "text", "text": "hi", "cached": {"z": 0}}],
        "later": [1, null], "none": null, "extra": {"role": "moved"}}"#;
    let text = format!(r#"{{"recto": 1, "messageStore": {{"entries": [{record}]}}}}"#);
    let imported = import(&text);
    assert!(imported.quarantined.is_empty(), "{:?}", imported.quarantined);
    let extra = json!({"later": [1, null], "none": null, "role": "moved", "/parts/0/cached": {"z": 0}});
    let entry = imported.context.store().get(Seq(4)).unwrap().original();
    assert_eq!(entry.extra, object(extra));
    let exported = imported.context.to_json();
    assert!(exported.contains(r#""extra":{"role":"moved"}"#) && exported.contains(r#""later":[1,null]"#), "{exported}");
    let again = import(&exported);
    assert_eq!(again.context.store().get(Seq(4)).unwrap().original(), entry);
    assert_eq!(again.context.to_json(), exported);
}

#[test]
fn every_field_of_an_entry_may_also_be_a_name_in_its_extra() {
    let plain = serde_json::to_value(full()).unwrap();
    let names: Vec<String> = object(plain).into_iter().map(|(name, _)| name).chain(["seq".into()]).collect();
    assert_eq!(names.len(), 20);
    let extra = names.into_iter().chain(["other".into()]).map(|name| (name, json!([1]))).collect();
    let context = of([Entry { extra, ..full() }]);
    let read = import(&context.to_json());
    assert!(read.quarantined.is_empty(), "{:?}", read.quarantined);
    let original = |context: &Context| context.store().get(Seq(0)).unwrap().original().clone();
    assert_eq!(original(&read.context), original(&context));
    assert_eq!(read.context.to_json(), context.to_json());
}

/// An export whose records stand on lines 6 and further, with some of them spoilt.
fn spoilt(spoil: &[(usize, &str, &str)]) -> String {
    let context = of([
        Entry::user("one"),
        Entry::step("", [Call::new("a", "look", "{}")]),
        Entry::result("a", "found"),
        Entry::user("four"),
        Entry::assistant("five"),
    ]);
    let exported = context.to_json();
    let lines = exported.lines().enumerate().map(|(line, text)| {
        let of_line = spoil.iter().filter(|(record, _, _)| record + 5 == line);
        of_line.fold(text.to_owned(), |text, (_, from, to)| {
            assert!(text.contains(from), "{text} has no {from}");
            text.replace(from, to)
        })
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn s37_a_corrupt_record_is_quarantined_and_the_rest_loads() {
    let text = spoilt(&[
        (1, r#""assistant""#, r#""narrator""#),
        (3, r#""parts":["#, r#""parts":"é","x":["#),
        (4, r#""seq":4"#, r#""seq":0"#),
    ]);
    let imported = import(&text);
    assert_eq!(seqs(&imported.context), [0, 2]);
    let told: Vec<String> =
        imported.quarantined.iter().map(|it| format!("{}: {:?} {}", it.index, it.place, it.why)).collect();
    expect_test::expect![[r#"
        1: Place { line: 7, column: 61 } unknown variant `narrator`, expected one of `system`, `user`, `assistant`, `tool`
        3: Place { line: 9, column: 69 } invalid type: string "é", expected a sequence
        4: Place { line: 10, column: 1 } place #0 is not behind #0, the newest"#]].assert_eq(&told.join("\n"));
    let lines: Vec<&str> = text.lines().collect();
    for it in &imported.quarantined {
        assert_eq!(lines[it.place.line - 1].trim_end_matches(','), &*it.raw);
    }
    // The result whose step is gone answers nothing; places that were taken are not given again.
    assert_eq!(shown(&imported.context, &Policy::safe()), ["one"]);
    let later = imported.context.with_appended_messages([Entry::user("six")]).unwrap();
    assert_eq!(seqs(&later), [0, 2, 5]);
    // Another export is whole.
    let exported = later.to_json();
    let again = import(&exported);
    assert_eq!((again.quarantined.len(), again.context.to_json()), (0, exported));
}

#[test]
fn what_a_log_refuses_is_quarantined_too() {
    let refusals = [
        (0, r#""parts":[{"type":"text","text":"one"}]"#, r#""parts":[{"type":"opinion"}]"#),
        (0, r#""role":"user""#, r#""role":"tool""#),
        (0, r#""seq":0"#, r#""seq":-1"#),
        (0, r#""seq":0"#, r#""seq":9007199254740992"#),
        (0, r#""seq":0,"#, ""),
        (0, r#""seq":0"#, r#""seq":0,"seq":0"#),
        (0, r#""origin":"user""#, r#""origin":"user","origin":"user""#),
        (0, r#""origin":"user""#, r#""origin":"user","x":1,"extra":{"x":2}"#),
        (0, r#""text":"one""#, r#""text":"\ud800""#),
        (0, r#""origin":"user""#, r#""origin":"user","meta":[]"#),
        (0, r#""origin":"user""#, r#""origin":"user","redactions":[{"part":0,"start":2,"end":9,"label":"x"}]"#),
    ];
    let whys = refusals.map(|spoil| {
        let imported = import(&spoilt(&[spoil]));
        assert_eq!(seqs(&imported.context), [1, 2, 3, 4]);
        let [it] = &*imported.quarantined else { panic!("{:?}", imported.quarantined) };
        format!("{}:{} {}", it.place.line, it.place.column, it.why)
    });
    expect_test::expect![[r#"
        6:84 unknown variant `opinion`, expected one of `text`, `reasoning`, `call`, `result`, `image`, `audio`, `document`, `file`, `opaque`
        6:1 tool entry: a part that is no result
        6:9 invalid value: integer `-1`, expected u64
        6:1 place #9007199254740992 is beyond #9007199254740991, the last one
        6:121 missing field `seq`
        6:14 duplicate field `seq`
        6:137 duplicate field `origin`
        6:1 `x` stands both in the record and in its `extra`
        6:97 unexpected end of hex escape
        6:136 invalid type: sequence, expected a map
        6:1 user entry: redaction Redaction { part: 0, piece: 0, start: 2, end: 9, label: "x" } lies outside the text, or cuts a character"#]].assert_eq(&whys.join("\n"));
}

#[test]
fn the_places_of_the_records_decide_not_their_order() {
    let exported = rich().to_json();
    let (head, rest) = exported.split_once("[\n").unwrap();
    let (records, tail) = rest.rsplit_once("\n]").unwrap();
    let mut reversed: Vec<&str> = records.split(",\n").collect();
    reversed.reverse();
    let imported = import(&format!("{head}[{}]{tail}", reversed.join(",")));
    assert!(imported.quarantined.is_empty(), "{:?}", imported.quarantined);
    assert_eq!(imported.context.to_json(), exported);
}

#[test]
fn what_is_no_export_is_refused_with_its_position() {
    let exported = of([Entry::user("é"), Entry::user("two")]).to_json();
    let read = |text: &str| {
        let error = Context::from_json(text, COUNTER).unwrap_err();
        error.hint().map_or(error.to_string(), |hint| format!("{error} ({hint})"))
    };
    let said = [
        read(""),
        read(&exported.replace("\"é\"", "\"é\" oops")),
        read(&exported[..exported.len() - 4]),
        read(&exported.replace("\"recto\":1,", "\"recto\":2,\"new\":true,")),
        read(&exported.replace("\"recto\":1,", "\"recto\":\"1\",")),
        read(&exported.replace("\"recto\":1,\n", "")),
        read(&exported.replace("\"metadata\":{}", "\"metadata\":[1]")),
        read(&exported.replace("\"metadata\"", "\"metaData\"")),
        read(&exported.replace("\"next\":2", "\"next\":2,\"previous\":1")),
        read("[]"),
        read("{\"recto\": 1, \"messageStore\": {\"entries\": {}}}"),
    ];
    expect_test::expect![[r#"
        line 1, column 1: export: EOF while parsing a value
        line 6, column 94: export: expected `,` or `}`
        line 8, column 1: export: EOF while parsing a list
        line 1, column 10: export: version 2; this version of Recto reads version 1 (use the version of Recto that wrote it, or a newer one)
        line 1, column 12: export: recto: invalid type: string "1", expected u64 (is it an export of Recto?)
        line 1, column 1: export: no version, since there is no field `recto` (is it an export of Recto?)
        line 2, column 11: export: invalid type: sequence, expected a map
        line 2, column 10: export: unknown field `metaData`, expected one of `recto`, `metadata`, `systemPrompt`, `responseFormat`, `messageStore`
        line 5, column 56: export: unknown field `previous`, expected one of `tokenizer`, `next`, `entries`
        line 1, column 1: export: invalid type: sequence, expected a map (is it an export of Recto?)
        line 1, column 41: export: invalid type: map, expected a sequence"#]].assert_eq(&said.join("\n"));
}

/// Writes JSON with the keys of every object in another order.
fn permuted(value: &Value, turn: &mut usize) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            *turn += 1;
            if !fields.is_empty() {
                let by = *turn % fields.len();
                fields.rotate_left(by);
                fields.reverse();
            }
            let written = fields.into_iter().map(|(key, value)| format!("{} : {}", json!(key), permuted(value, turn)));
            format!("{{{}}}", written.collect::<Vec<_>>().join(",\n"))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(|item| permuted(item, turn)).collect::<Vec<_>>().join(" ,"))
        }
        plain => plain.to_string(),
    }
}

#[test]
fn x24_key_order_does_not_matter() {
    let context = rich().with_response_format("{\"type\":\"json_object\"}").unwrap();
    let exported = context.to_json();
    let value: Value = serde_json::from_str(&exported).unwrap();
    for turn in 0..24 {
        let text = permuted(&value, &mut turn.clone());
        assert_ne!(text, exported);
        let imported = import(&text);
        assert!(imported.quarantined.is_empty(), "{:?}", imported.quarantined);
        for policy in Policy::presets() {
            let (one, other) =
                (page(&context, &policy, None).unwrap(), page(&imported.context, &policy, None).unwrap());
            assert_eq!((body(&one), one), (body(&other), other));
        }
    }
    // Written again, the keys stand in their own order.
    assert_eq!(import(&permuted(&value, &mut 7).replace(" : ", ":")).context.to_json(), exported);
}

#[test]
fn a_fork_goes_its_own_way_and_reads_back_the_same() {
    let whole = of([Entry::user("one"), within("x", "two"), within("y", "three")]);
    let mut fork = whole.store().until(Some(Seq(0)));
    fork.append(within("y", "other")).unwrap();
    fork.append(within("x", "another")).unwrap();
    let (fork, mut all) = (Context::from(fork), Policy::named("all"));
    all.select.sections = Sections::All;
    assert_eq!(shown(&fork, &all), ["one", "other", "another"]);
    assert_eq!(shown(&import(&fork.to_json()).context, &all), ["one", "other", "another"]);
}

#[test]
fn a_log_takes_an_entry_at_any_place_behind_its_newest() {
    let mut log = Log::counted_by(COUNTER);
    assert_eq!(log.append_at(Seq(7), Entry::user("seven")).unwrap(), Seq(7));
    assert_eq!(log.append(Entry::user("eight")).unwrap(), Seq(8));
    let error = log.append_at(Seq(8), Entry::user("again")).unwrap_err();
    assert_eq!(error.to_string(), "place #8 is not behind #8, the newest");
    assert!(log.append_at(Seq(SEQ_MAX.0 + 1), Entry::user("too far")).is_err());
    assert_eq!((log.len(), log.head()), (2, Some(Seq(8))));
    log.append_at(SEQ_MAX, Entry::user("the last")).unwrap();
    assert!(log.append(Entry::user("no place is left")).is_err());
    assert_eq!(log.until(Some(Seq(5))).head(), None);
    assert_eq!(log.until(Some(Seq(100))).head(), Some(Seq(8)));
    // A page of it can be made, and every entry has one fate.
    let compiled = page(&Context::from(log), &Policy::safe(), None).unwrap();
    assert_eq!(texts(&compiled.page), ["seven", "eight", "the last"]);
    assert_eq!(compiled.receipt.fates.iter().map(|row| row.entries).sum::<u64>(), 3);
}

/// Numbers with a fraction are left out: not every parser reads back what it wrote.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let fields = btree_map(".{0,3}", inner.clone(), 0..3);
        prop_oneof![vec(inner, 0..3).prop_map(Value::from), fields.prop_map(|fields| fields.into_iter().collect())]
    })
}

fn fields() -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![".{0,4}", "(seq|role|parts|extra|meta|id|/parts/0/text)"];
    btree_map(name, value(), 0..4).prop_map(|fields| fields.into_iter().collect())
}

fn entry() -> impl Strategy<Value = Entry> {
    let section = prop_oneof![3 => "messages", 1 => "summary", 1 => ".{0,3}"];
    (any::<String>(), section, 0..4, fields(), fields(), any::<bool>()).prop_map(
        |(text, section, kind, meta, extra, is_trace)| {
            let said = match kind {
                0 => Entry::user(text),
                1 => Entry::assistant(text),
                2 => Entry::step("", [Call::new("a", "look", text)]),
                _ => Entry::result("a", text),
            };
            let lane = if is_trace { Lane::Trace } else { Lane::Talk };
            Entry { section: section.into(), lane, meta, extra, ..said }
        },
    )
}

/// A log with a gap before each entry, and where its entries stand.
fn sparse(entries: Vec<(Entry, u64)>) -> (Log, Vec<Seq>) {
    let (mut log, mut places) = (Log::counted_by(COUNTER), Vec::new());
    for (entry, gap) in entries {
        let seq = log.head().map_or(gap, |head| head.0 + 1 + gap);
        places.push(log.append_at(Seq(seq), entry).unwrap());
    }
    (log, places)
}

fn originals(context: &Context) -> Vec<(Seq, Entry)> {
    context.store().back().map(|it| (it.seq, it.original().clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_context_reads_back_byte_for_byte(
        entries in vec((entry(), 0u64..4), 0..12),
        metadata in fields(),
        prompt in any::<String>(),
        format in value(),
    ) {
        let (store, response_format) = (Some(sparse(entries).0), Some(format.to_string().into()));
        let (metadata, system_prompt) = (Some(metadata), Some(prompt.into()));
        let changes = Changes { store, metadata, system_prompt, response_format };
        let context = Context::empty(COUNTER).with(changes).unwrap();
        let exported = context.to_json();
        let read = import(&exported);
        prop_assert!(read.quarantined.is_empty(), "{:?}", read.quarantined);
        prop_assert_eq!(read.context.to_json(), exported);
        prop_assert_eq!(originals(&read.context), originals(&context));
    }

    #[test]
    fn no_text_makes_the_import_panic(cuts in vec((0usize..2_000, 0usize..40, ".{0,3}"), 1..4)) {
        let mut text = rich().to_json();
        for (at, length, new) in cuts {
            let (start, end) = (text.floor_char_boundary(at), text.floor_char_boundary(at + length));
            text.replace_range(start..end, &new);
        }
        if let Ok(imported) = Context::from_json(&text, COUNTER) {
            let exported = imported.context.to_json();
            prop_assert_eq!(import(&exported).context.to_json(), exported);
        }
    }

    #[test]
    fn a_log_with_gaps_answers_as_one_without(
        entries in vec((entry(), 0u64..5), 1..40),
        spans in vec((0usize..40, 0usize..40), 1..10),
        head in 0usize..40,
    ) {
        let dense = of(entries.iter().map(|(entry, _)| entry.clone())).store().clone();
        let (sparse, places) = sparse(entries);
        let moved = |seq: Seq| places[seq.0 as usize];
        let at = |index: usize| Seq(index.min(places.len() - 1) as u64);
        let forks = (dense.until(Some(at(head))), sparse.until(Some(moved(at(head)))));
        let talk = Scope { lane: Some(Lane::Talk), ..Scope::default() };
        for (dense, sparse) in [(&dense, &sparse), (&forks.0, &forks.1)] {
            let walk = dense.back().map(|it| (moved(it.seq), it.digest)).collect::<Vec<_>>();
            prop_assert_eq!(sparse.back().map(|it| (it.seq, it.digest)).collect::<Vec<_>>(), walk);
            prop_assert_eq!((sparse.len(), sparse.head()), (dense.len(), dense.head().map(moved)));
            for &(first, last) in &spans {
                let near = Span { first: at(first), last: at(last) };
                let far = Span { first: moved(near.first), last: moved(near.last) };
                prop_assert_eq!(sparse.total(far), dense.total(near));
                prop_assert_eq!(sparse.sums(far, &talk), dense.sums(near, &talk));
                let first = dense.first_in(&talk, near.first).map(|it| moved(it.seq));
                prop_assert_eq!(sparse.first_in(&talk, far.first).map(|it| it.seq), first);
            }
        }
    }
}
