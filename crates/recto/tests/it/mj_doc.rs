//! The policy `mj_doc`: the texts, settings, events and steps that MemberJunction's agents know.

use crate::expiry::{Talk, text_on};
use expect_test::expect;
use recto::edit::Turn;
use recto::entry::{EntryKind, Millis, Origin, Part};
use recto::event::{Event, EventKind};
use recto::expand::{Ask, What, expand};
use recto::expiry::{Expiry, ExpiryAction};
use recto::mj::{
    ActionResult, AgentAction, AgentActions, CompactMode, ExpirationMode, Lifecycle, MessageExpirationOverride,
    NextStep, TEACHING, append_action_results, expanded_line, expanded_notice, metadata, pruning_line,
};
use recto::{Entry, Policy, Request, Role, Seq};
use serde_json::{Value, json};

const SEARCH: &str = r#"{"Search": {
    "ResultExpirationTurns": 2, "ResultExpirationMode": "Compact",
    "CompactMode": "First N Chars", "CompactLength": 500, "CompactPromptID": null}}"#;

fn summary(chars: usize) -> String {
    json!({"name": "Search", "items": "x".repeat(chars)}).to_string()
}

/// A talk in which a search found much at turn 1.
fn searched(policy: Policy) -> (Talk, Seq) {
    let mut talk = Talk::new(policy);
    talk.say(Entry::user("Look it up."));
    talk.calls(1);
    let ids = |id: &str| Some(id.into());
    let result = ActionResult {
        action_id: ids("A1"),
        agent_action_id: ids("AA1"),
        step_id: ids("S1"),
        ..ActionResult::new("Search", summary(5_000))
    };
    let seq = append_action_results(&mut talk.log, &[result], Some(Millis(1_700_000_000_000))).unwrap();
    talk.say(Entry::user("And then?"));
    (talk, seq)
}

fn lifecycle(talk: &Talk) -> Vec<Lifecycle> {
    talk.events().iter().filter_map(|event| Lifecycle::of(event, &talk.reader, &talk.log, None)).collect()
}

fn text(talk: &Talk, seq: Seq) -> String {
    match &talk.log.get(seq).unwrap().original().parts[..] {
        [Part::Text { text }] => text.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn action_results_are_one_message_of_indented_json() {
    let mut talk = Talk::new(Policy::mj_doc());
    let good = ActionResult::new("Search", r#"{"z":1,"a":[]}"#);
    let bad = ActionResult { succeeded: false, ..ActionResult::new("Fetch", r#""timeout""#) };
    let both = append_action_results(&mut talk.log, &[good.clone(), bad], None).unwrap();
    let one = append_action_results(&mut talk.log, &[good], None).unwrap();
    expect![[r#"
        1 of 2 failed:
        [
          {
            "z": 1,
            "a": []
          },
          "timeout"
        ]"#]]
    .assert_eq(&text(&talk, both));
    expect![[r#"
        Action results:
        [
          {
            "z": 1,
            "a": []
          }
        ]"#]]
    .assert_eq(&text(&talk, one));
    let entry = talk.log.get(both).unwrap().original();
    assert_eq!((entry.role, entry.kind, entry.origin), (Role::User, Some(EntryKind::ActionResult), Origin::Tool));
    let reasons: Vec<String> = lifecycle(&talk).into_iter().map(|it| format!("{}: {}", it.name, it.reason)).collect();
    assert_eq!(
        reasons,
        ["message-added: Action results from 2 action(s)", "message-added: Action results from 1 action(s)"]
    );
    assert!(append_action_results(&mut talk.log, &[], None).unwrap_err().hint().is_some());
    let broken = ActionResult::new("Search", "{");
    assert!(append_action_results(&mut talk.log, &[broken], None).unwrap_err().to_string().contains("no JSON"));
    assert_eq!(talk.log.len(), 2);
}

#[test]
fn of_a_batch_the_most_aggressive_holds() {
    let mut talk = Talk::new(Policy::mj_doc());
    let result = |name: &str, expiry: Option<(u32, ExpiryAction)>| ActionResult {
        expiry: expiry.map(|(after, action)| Expiry { after, action }),
        action_id: Some(name.into()),
        ..ActionResult::new(name, "1")
    };
    let batch = [
        result("a", Some((1, ExpiryAction::Never))),
        result("b", Some((5, ExpiryAction::Remove))),
        result("c", Some((3, ExpiryAction::FirstChars(200)))),
    ];
    let seq = append_action_results(&mut talk.log, &batch, None).unwrap();
    let entry = talk.log.get(seq).unwrap().original();
    assert_eq!(entry.expiry, Some(Expiry { after: 3, action: ExpiryAction::FirstChars(200) }));
    assert_eq!(entry.meta["actionId"], "c");
    let never = append_action_results(&mut talk.log, &batch[..1], None).unwrap();
    assert_eq!(talk.log.get(never).unwrap().original().expiry, Some(Expiry::NEVER));
    let unset = append_action_results(&mut talk.log, &[result("d", None)], None).unwrap();
    assert_eq!(talk.log.get(unset).unwrap().original().expiry, None);
}

#[test]
fn m64_a_result_is_whole_for_two_turns_and_shortened_in_the_third() {
    let (mut talk, seq) = searched(AgentActions::from_json(SEARCH).unwrap().policy().unwrap());
    let whole = text(&talk, seq);
    let length = whole.chars().count();
    let mut lines = Vec::new();
    for turn in 1..60 {
        let (_, compiled) = talk.call();
        let shown = text_on(&compiled, seq).unwrap();
        if turn <= 3 {
            assert_eq!(shown, whole, "turn {turn}");
        } else {
            let first: String = whole.chars().take(500).collect();
            let marker = format!(
                "[Compacted: showing first 500 of {length} characters. Agent can request expansion if needed.]"
            );
            assert_eq!(shown, format!("{first}...\n\n{marker}"), "turn {turn}");
            assert!(shown.chars().count() < 600);
        }
        lines.extend(pruning_line(&talk.events(), Turn(turn)));
    }
    let told: Vec<String> = lifecycle(&talk)
        .iter()
        .filter(|it| it.name != "message-added")
        .map(|it| format!("[Turn {}] {}: {}", it.turn, it.name, it.reason))
        .collect();
    expect![[r#"
        [Turn 4] message-expired: Expired after 3 turns (limit: 2)
        [Turn 4] message-compacted: Compacted using First N Chars (saved 1 118 tokens)
        [Turn 4] Message pruning: 1 compacted (saved ~1 118 tokens), 0 removed
    "#]]
    .assert_eq(&(told.join("\n") + "\n" + &lines.join("\n") + "\n"));
}

#[test]
fn m65_m66_the_metadata_of_a_shortened_message() {
    let (mut talk, seq) = searched(AgentActions::from_json(SEARCH).unwrap().policy().unwrap());
    let expiry = Some(Expiry { after: 2, action: ExpiryAction::FirstChars(500) });
    talk.calls(3);
    let before = metadata(talk.log.get(seq).unwrap(), &talk.reader, expiry);
    expect![[r#"
        {
          "actionId": "A1",
          "agentActionId": "AA1",
          "canExpand": false,
          "compactLength": 500,
          "compactMode": "First N Chars",
          "expirationMode": "Compact",
          "expirationTurns": 2,
          "messageType": "action-result",
          "stepId": "S1",
          "timestamp": "2023-11-14T22:13:20.000Z",
          "turnAdded": 1,
          "wasCompacted": false
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&before).unwrap());
    talk.calls(2);
    let mut after = metadata(talk.log.get(seq).unwrap(), &talk.reader, expiry);
    assert_eq!(after.remove("originalContent").unwrap(), text(&talk, seq));
    for (key, value) in before.iter().filter(|(key, _)| !["wasCompacted", "canExpand"].contains(&key.as_str())) {
        assert_eq!(after.remove(key).as_ref(), Some(value), "{key}");
    }
    expect![[r#"
        {
          "canExpand": true,
          "isExpired": true,
          "originalLength": 5065,
          "tokensSaved": 1118,
          "wasCompacted": true
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&after).unwrap());
    let words = metadata(talk.log.get(Seq(0)).unwrap(), &talk.reader, None);
    assert_eq!(
        Value::Object(words),
        json!({"messageType": "user-input", "turnAdded": 0, "wasCompacted": false, "canExpand": false})
    );
    let types = [
        (EntryKind::SubRunResult, "sub-agent-result"),
        (EntryKind::RetryContext, "retry-context"),
        (EntryKind::Injection, "system"),
    ];
    for (kind, name) in types {
        let seq = talk.say(Entry { kind: Some(kind), ..Entry::user("x") });
        assert_eq!(metadata(talk.log.get(seq).unwrap(), &talk.reader, None)["messageType"], name);
    }
}

#[test]
fn m67_an_expanded_message_is_whole_again() {
    let (mut talk, seq) = searched(AgentActions::from_json(SEARCH).unwrap().policy().unwrap());
    talk.calls(4);
    let (_, compiled) = talk.call();
    let index = compiled.page.messages.iter().position(|message| message.seq == Some(seq)).unwrap();
    let answer = json!({"taskComplete": false, "nextStep": {"type": "expand-message", "messageIndex": index}});
    let NextStep::ExpandMessage(ask) = NextStep::parse(&answer.to_string()).unwrap() else { panic!("{answer}") };
    let request =
        Request { previous: Some(&compiled.page), ..Request::new(&talk.log, &talk.reader, &talk.policy, &talk.target) };
    let expansion = expand(&request, &ask).unwrap();
    talk.reader.commit(expansion.edits, talk.policy.digest());
    let turn = talk.reader.turn();
    let (_, compiled) = talk.call();
    assert_eq!(text_on(&compiled, seq).unwrap(), text(&talk, seq));
    let after = metadata(talk.log.get(seq).unwrap(), &talk.reader, None);
    assert_eq!((&after["wasCompacted"], &after["canExpand"]), (&json!(false), &json!(false)));
    assert!(!after.contains_key("originalContent"));
    let told = lifecycle(&talk).into_iter().rfind(|it| it.name == "message-expanded").unwrap();
    assert_eq!((told.turn, &*told.reason), (turn.0, "Agent requested expansion"));
    assert_eq!(expanded_line(turn, index), format!("[Turn {}] Expanded message at index {index}", turn.0));
    assert_eq!(expanded_notice(5), "[Expanded message 5 to full content at agent's request]");
    // Its clock begins again: after the limit it is shortened once more, and told of once more.
    talk.calls(20);
    let kinds = [EventKind::Compacted, EventKind::Expanded, EventKind::Compacted];
    let of = |event: &Event| kinds.contains(&event.kind).then_some(event.kind);
    assert_eq!(talk.events().iter().filter_map(of).collect::<Vec<_>>(), kinds);
}

#[test]
fn m68_an_override_in_its_own_words() {
    let (mut talk, seq) = searched(AgentActions::from_json(SEARCH).unwrap().policy().unwrap());
    let over = r#"{"expirationTurns": 1, "expirationMode": "Compact", "compactMode": "First N Chars",
        "compactLength": 200, "preserveOriginalContent": true}"#;
    talk.over = Some(MessageExpirationOverride::from_json(over).unwrap().to_override().unwrap());
    talk.calls(2);
    let shown = text_on(&talk.call().1, seq).unwrap();
    assert!(shown.contains("...\n\n[Compacted: showing first 200 of "), "{shown}");
    for (json, expected) in [
        ("{}", true),
        (
            r#"{"expirationTurns":null,"expirationMode":null,"compactMode":null,"compactLength":null,"compactPromptId":null}"#,
            true,
        ),
        (r#"{"disableExpiration":true}"#, false),
        (r#"{"expirationMode":"None"}"#, false),
        (r#"{"expirationTurns":50}"#, false),
    ] {
        let (mut talk, seq) = searched(AgentActions::from_json(SEARCH).unwrap().policy().unwrap());
        talk.over = Some(MessageExpirationOverride::from_json(json).unwrap().to_override().unwrap());
        talk.calls(3);
        assert_eq!(text_on(&talk.call().1, seq).unwrap().contains("[Compacted: showing first 500"), expected, "{json}");
    }
    assert!(
        !MessageExpirationOverride::from_json(r#"{"preserveOriginalContent":false}"#)
            .unwrap()
            .to_override()
            .unwrap()
            .keep_originals
    );
}

#[test]
fn by_default_nothing_expires() {
    let (mut talk, seq) = searched(Policy::mj_doc());
    talk.calls(30);
    assert_eq!(text_on(&talk.call().1, seq).unwrap(), text(&talk, seq));
    assert!(talk.reader.decisions().is_empty());
    let removing = r#"{"Search": {"ResultExpirationTurns": 0, "ResultExpirationMode": "Remove"}, "Other": {}}"#;
    let (mut talk, seq) = searched(AgentActions::from_json(removing).unwrap().policy().unwrap());
    talk.calls(1);
    assert_eq!(text_on(&talk.call().1, seq), None);
    let told: Vec<String> =
        lifecycle(&talk).into_iter().filter(|it| it.name != "message-added").map(|it| it.reason).collect();
    assert_eq!(told, ["Expired after 1 turns (limit: 0)", "Removed due to expiration"]);
    let lost = lifecycle(&talk).into_iter().find(|it| it.name == "message-removed").unwrap();
    assert_eq!(lost.message["metadata"]["canExpand"], true);
    assert_eq!(
        pruning_line(&talk.events(), Turn(2)).unwrap(),
        "[Turn 2] Message pruning: 0 compacted (saved ~0 tokens), 1 removed"
    );
    assert_eq!(pruning_line(&talk.events(), Turn(1)), None);
}

#[test]
fn s31_settings_that_do_not_go_together_are_refused() {
    let action = |rest: &str| AgentActions::from_json(&format!("{{\n\"Search\": {{{rest}}}}}"));
    let mistakes = [
        (r#""ResultExpirationMode":"Compact""#, "without a CompactMode"),
        (r#""ResultExpirationMode":"Compact","CompactMode":"First N Chars""#, "without a CompactLength"),
        (
            r#""ResultExpirationMode":"Compact","CompactMode":"First N Chars","CompactLength":0"#,
            "without a CompactLength",
        ),
        (r#""ResultExpirationMode":"Remove","CompactLength":5"#, "nothing is shortened"),
        (r#""CompactMode":"First N Chars""#, "nothing is shortened"),
        (r#""ResultExpirationTurns":-1"#, "invalid value: integer `-1`"),
        (r#""ResultExpirationMode":null"#, "expected value"),
        (r#""ResultExpirationMode":"compact""#, "unknown variant `compact`"),
        (r#""resultExpirationTurns":1"#, "unknown field `resultExpirationTurns`"),
    ];
    for (rest, what) in mistakes {
        let error = action(rest).unwrap_err();
        assert!(error.to_string().contains(what), "{error:?}");
        assert!(error.hint().is_some(), "{error:?}");
        assert_eq!(error.place().map(|place| place.line), Some(2), "{error:?}");
    }
    let overrides = [
        r#"{"compactLength":0}"#,
        r#"{"expirationMode":"Remove","compactLength":5}"#,
        r#"{"expirationTurns":-1}"#,
        r#"{"ExpirationTurns":1}"#,
    ];
    for json in overrides {
        assert!(MessageExpirationOverride::from_json(json).unwrap_err().hint().is_some(), "{json}");
    }
    let good = AgentAction {
        result_expiration_turns: Some(3),
        result_expiration_mode: ExpirationMode::Compact,
        compact_mode: Some(CompactMode::FirstNChars),
        compact_length: Some(40),
        compact_prompt_id: Some("P1".into()),
        default_compact_prompt_id: Some("P0".into()),
    };
    let json = serde_json::to_value(&good).unwrap();
    assert_eq!(json["CompactPromptID"], "P1");
    assert_eq!(AgentActions::from_json(&json!({"Search": json}).to_string()).unwrap().list["Search"], good);
    assert_eq!(good.expiry().unwrap(), Expiry { after: 3, action: ExpiryAction::FirstChars(40) });
}

#[test]
fn steps_are_read_in_every_spelling() {
    let step = |text: &str| NextStep::parse(text).unwrap();
    assert_eq!(step(r#"{"taskComplete": true}"#), NextStep::Success);
    assert_eq!(step(r#"{"taskComplete": false, "nextStep": {"type": "Actions", "actions": []}}"#), NextStep::Actions);
    assert_eq!(step(r#"{"taskComplete": false, "nextStep": {"type": "Sub-Agent"}}"#), NextStep::SubAgent);
    assert_eq!(step("```json\n{\"step\": \"chat\", \"terminate\": true}\n```"), NextStep::Chat);
    let names = [
        ("success", NextStep::Success),
        ("failed", NextStep::Failed),
        ("retry", NextStep::Retry),
        ("sub-agent", NextStep::SubAgent),
    ];
    for (name, expected) in names {
        assert_eq!(step(&json!({"step": name}).to_string()), expected);
        assert_eq!(expected.is_last(), ["success", "failed"].contains(&name));
    }
    let asks = [
        r#"{"taskComplete":false,"nextStep":{"type":"expand-message","messageIndex":5,"reason":"item 47","itemRange":[40,50]}}"#,
        r#"{"step":"ExpandMessage","messageIndex":5,"reason":"item 47","itemRange":[40,50]}"#,
        r#"{"terminate":false,"step":"expand-message","messageIndex":5,"reason":"item 47","itemRange":[40,50]}"#,
    ];
    let [NextStep::ExpandMessage(one), NextStep::ExpandMessage(two), NextStep::ExpandMessage(three)] = asks.map(step)
    else {
        panic!("no request to expand")
    };
    assert_eq!((&one, &two), (&two, &three));
    assert!(matches!(one, Ask { what: What::Index(5), .. }), "{one:?}");
    assert_eq!(one.reason.as_deref(), Some("item 47"));
    for (text, what) in [
        ("I am done.", "no step"),
        ("[]", "no step"),
        (r#"{"taskComplete": false}"#, "no step is named"),
        (r#"{"step": "Actoins"}"#, "unknown step"),
        (r#"{"step": "ExpandMessage"}"#, "names no message"),
        (r#"{"step": "ExpandMessage", "messageIndex": -1}"#, "number from 0"),
    ] {
        let error = NextStep::parse(text).unwrap_err();
        assert!(error.to_string().contains(what), "{error:?}");
    }
    // The example that a model is taught is read as what it is said to be.
    let example = TEACHING.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(matches!(step(example), NextStep::ExpandMessage(_)));
    for word in ["[Compacted: ...]", "[AI Summary of N chars...]", "expand-message", "messageIndex"] {
        assert!(TEACHING.contains(word), "{word}");
    }
}
