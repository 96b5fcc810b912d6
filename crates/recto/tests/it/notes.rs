//! Summaries of single entries: what is wanted, what a summarizer is told, what is taken from it, what stands on the page.

use crate::expiry::{Talk, held, text_on};
use recto::edit::{Change, Reason};
use recto::entry::{Call, EntryKind, Piece};
use recto::event::EventKind;
use recto::expand::{Ask, expand};
use recto::expiry::{Expiry, ExpiryAction, ExpiryRule, Setting};
use recto::mj::{AgentActions, Lifecycle, MessageExpirationOverride};
use recto::note::{Input, Note, Notes, Rejected, Subject, Want, default_prompt};
use recto::reduce::Expire;
use recto::{Entry, Plan, Policy, Seq, Tokens, plan};
use std::borrow::Cow;

const SEARCH: &str = r#"{"Search": {
    "ResultExpirationTurns": 2, "ResultExpirationMode": "Compact", "CompactMode": "AI Summary",
    "CompactPromptID": null, "DefaultCompactPromptID": null}}"#;
const FAILED: [EventKind; 3] = [EventKind::Expired, EventKind::CompactionFailed, EventKind::Compacted];

fn plain(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

fn summary(chars: u32) -> ExpiryAction {
    ExpiryAction::Summary { chars }
}

fn made(text: &str) -> Note {
    Note::Made { text: text.into(), model: "small".into() }
}

/// A talk whose action results are to be summarized after two turns, with a result of 5,000 characters at turn 1.
fn searched(notes: Option<Notes>) -> (Talk, Seq) {
    let mut talk = Talk::new(AgentActions::from_json(SEARCH).unwrap().policy().unwrap());
    talk.notes = notes;
    talk.say(Entry::user("Look it up."));
    talk.calls(1);
    let tools = vec!["Search".into()];
    let seq = talk.say(Entry { tools, ..held(EntryKind::ActionResult, "x".repeat(5_000)) });
    talk.say(Entry::user("And then?"));
    (talk, seq)
}

/// Calls until something is wanted, at most sixty times.
fn until_wanted(talk: &mut Talk) -> Want {
    for _ in 0..60 {
        let planned = talk.call().0;
        if let [want] = &planned.wants[..] {
            return want.clone();
        }
        assert_eq!(planned.wants, []);
    }
    panic!("nothing is ever wanted");
}

fn input(want: &Want, talk: &Talk) -> Input {
    want.input(&talk.request(), default_prompt(want.subject), &plain).unwrap()
}

#[test]
fn s26_a_summary_stands_in_the_entrys_place_under_the_marker_that_agents_know_and_is_made_once() {
    let (mut talk, seq) = searched(Some(Notes::default()));
    let want = until_wanted(&mut talk);
    assert_eq!(
        (want.subject, want.chars, want.is_urgent),
        (Subject::Part(recto::edit::PartAt { seq, part: 0 }), 500, true)
    );
    assert_eq!(want.prompt, None);
    // Until there is one, everything stays.
    assert_eq!(talk.shown(seq).unwrap().len(), 5_000);
    assert_eq!(talk.call().0.wants, std::slice::from_ref(&want), "it is the same summary that is wanted");
    let told = input(&want, &talk);
    let head =
        "originalLength: 5000\ntargetLength: 500\nmessageType: action result\nturnAdded: 1\noriginalContent:\nxxx";
    assert!(told.text.starts_with(head), "{}", &told.text[..200]);
    assert!(!told.text.contains("currentTurn"));
    let text = want.accept(&told, "```json\n{\"summary\": \"Many x.\"}\n```").unwrap();
    talk.notes.as_mut().unwrap().put(want.key, made(&text));
    let expected = "[AI Summary of 5000 chars. Agent can request full expansion if needed.]\n\nMany x.";
    for _ in 0..50 {
        let (planned, compiled) = talk.call();
        assert_eq!((text_on(&compiled, seq).as_deref(), planned.wants.len()), (Some(expected), 0));
    }
    assert_eq!(talk.told(seq), [EventKind::Expired, EventKind::Compacted]);
    let about: Vec<_> = talk.reader.live(seq).collect();
    assert!(matches!(&about[0].edit.why, Reason::Condensed { shown: 7, of: 5_000, limit: 2, .. }), "{about:?}");
    assert_eq!(about.len(), 1);
    let names: Vec<_> =
        talk.events().iter().filter_map(|it| Lifecycle::of(it, &talk.reader, &talk.log, None)).collect();
    assert!(names.iter().any(|it| it.reason.starts_with("Compacted using AI Summary")), "{names:?}");
}

#[test]
fn s26_without_a_summary_the_first_characters_stay_and_it_is_told_that_it_failed() {
    let first = format!(
        "{}...\n\n[Compacted: showing first 500 of 5000 characters. Agent can request expansion if needed.]",
        "x".repeat(500)
    );
    // Nobody makes any.
    let (mut talk, seq) = searched(None);
    (0..5).for_each(|_| drop(talk.call()));
    assert_eq!((talk.shown(seq), talk.told(seq)), (Some(first.clone()), FAILED.to_vec()));
    // It fails: it is tried once, and never again.
    let refusals = [
        Rejected::Empty.to_string(),
        "the summarizer did not answer in 10 seconds".to_string(),
        "the task panicked".to_string(),
    ];
    for why in refusals {
        let (mut talk, seq) = searched(Some(Notes::default()));
        let want = until_wanted(&mut talk);
        talk.notes.as_mut().unwrap().put(want.key, Note::Failed { why: why.as_str().into() });
        for _ in 0..20 {
            let (planned, compiled) = talk.call();
            assert_eq!((text_on(&compiled, seq), planned.wants), (Some(first.clone()), vec![]));
        }
        assert_eq!(talk.told(seq), FAILED);
        let failed = talk.events().into_iter().find(|event| event.kind == EventKind::CompactionFailed).unwrap();
        assert!(failed.to_string().contains(&why), "{failed}");
        assert_eq!(talk.reader.live(seq).count(), 1);
    }
}

#[test]
fn the_same_words_are_summarized_once_and_other_words_prompts_and_lengths_are_other_wants() {
    let wants = |chars: u32, prompt: Option<&str>, texts: &[&str]| {
        let rule = ExpiryRule {
            prompt: prompt.map(Into::into),
            ..ExpiryRule::of_tool("look", Expiry { after: 0, action: summary(chars) })
        };
        let mut talk = Talk::expiring(Expire::by_rules([rule]));
        talk.notes = Some(Notes::default());
        talk.say(Entry::user("Look."));
        for text in texts {
            talk.result("look", &text.repeat(100));
        }
        talk.say(Entry::user("Well?"));
        talk.calls(1);
        let keys: Vec<_> = talk.call().0.wants.iter().map(|want| want.key).collect();
        keys
    };
    let keys = wants(50, None, &["same", "same", "other"]);
    assert_eq!((keys.len(), keys[0] == keys[1], keys[0] == keys[2]), (3, true, false));
    assert_ne!(keys[0], wants(60, None, &["same"])[0]);
    assert_ne!(keys[0], wants(50, Some("mine"), &["same"])[0]);
    assert_eq!(keys[0], wants(50, None, &["same"])[0]);
}

#[test]
fn nothing_is_wanted_or_replaced_where_a_summary_would_not_be_smaller() {
    // Shorter than a summary would be.
    let mut talk = Talk::expiring(Expire::all(Expiry { after: 0, action: summary(500) }));
    talk.notes = Some(Notes::default());
    talk.say(Entry::user("Look."));
    let seq = talk.result("look", &"y".repeat(500));
    talk.say(Entry::user("Well?"));
    talk.calls(1);
    let (planned, compiled) = talk.call();
    assert_eq!((planned.wants.len(), text_on(&compiled, seq)), (0, Some("y".repeat(500))));
    // One that came out as long as the original, with its marker.
    let mut talk = Talk::expiring(Expire::all(Expiry { after: 0, action: summary(10) }));
    talk.notes = Some(Notes::default());
    talk.say(Entry::user("Look."));
    let seq = talk.result("look", &"y".repeat(80));
    talk.say(Entry::user("Well?"));
    let want = until_wanted(&mut talk);
    talk.notes.as_mut().unwrap().put(want.key, made(&"z".repeat(75)));
    let (planned, compiled) = talk.call();
    assert_eq!((planned, text_on(&compiled, seq)), (Plan::default(), Some("y".repeat(80))));
}

#[test]
fn under_the_usual_marker_a_summary_names_the_handle_by_which_the_original_comes_back() {
    let mut talk = Talk::expiring(Expire::all(Expiry { after: 0, action: summary(20) }));
    talk.notes = Some(Notes::default());
    talk.say(Entry::user("Look."));
    let original = "a long list of things\n".repeat(50);
    let seq = talk.result("Bash", &original);
    talk.say(Entry::user("Well?"));
    let want = until_wanted(&mut talk);
    talk.notes.as_mut().unwrap().put(want.key, made("Fifty things."));
    let shown = talk.shown(seq).unwrap();
    assert_eq!(
        shown,
        format!("Fifty things.\n[… a model's summary of 1100 characters of Bash result; recto_expand m{}]", seq.0)
    );
    let handle = recto::edit::Handle::entry(seq);
    let expansion = expand(&talk.request(), &Ask::whole(handle)).unwrap();
    assert!(expansion.is_in_place && expansion.text.ends_with(&original));
    talk.reader.commit(expansion.edits, talk.policy.digest());
    assert_eq!(talk.shown(seq).unwrap(), original);
    // Once it is old again the same summary is there already: nothing is paid for twice.
    for _ in 0..10 {
        assert_eq!(talk.call().0.wants, []);
    }
    assert_eq!(talk.shown(seq).unwrap(), shown);
}

#[test]
fn a_summary_waits_for_its_moment_where_edits_must_pay() {
    let mut talk = Talk::new(Policy::named("test").then(Expire::all(Expiry { after: 0, action: summary(20) })));
    talk.policy.patience.start = Tokens(500);
    talk.notes = Some(Notes::default());
    talk.say(Entry::user("Look."));
    talk.result("Bash", &"short. ".repeat(50));
    talk.say(Entry::user("Well?"));
    (0..5).for_each(|_| assert_eq!(talk.call().0.wants, [], "short conversations are over before it pays"));
    talk.result("Bash", &"long. ".repeat(5_000));
    talk.say(Entry::user("Well?"));
    talk.calls(1);
    let wants = talk.call().0.wants;
    assert_eq!(wants.iter().map(|want| want.is_urgent).collect::<Vec<_>>(), [false, false]);
    // Where nothing is ever reduced, nothing is wanted.
    talk.policy.apply = recto::policy::Apply::Never;
    assert_eq!(talk.call().0.wants, []);
}

#[test]
fn the_prompt_is_the_overrides_then_the_entrys_then_the_actions_then_its_default() {
    let prompt_of = |own: Option<&str>, default: Option<&str>, entry: Option<&str>, over: Option<&str>| {
        let quoted = |name: Option<&str>| name.map_or("null".to_string(), |name| format!("{name:?}"));
        let actions = format!(
            r#"{{"Search": {{"ResultExpirationTurns": 0, "ResultExpirationMode": "Compact", "CompactMode": "AI Summary",
            "CompactPromptID": {}, "DefaultCompactPromptID": {}}}}}"#,
            quoted(own),
            quoted(default)
        );
        let mut talk = Talk::new(AgentActions::from_json(&actions).unwrap().policy().unwrap());
        let json = format!(r#"{{"compactPromptId": {}}}"#, quoted(over));
        talk.over = Some(MessageExpirationOverride::from_json(&json).unwrap().to_override().unwrap());
        talk.notes = Some(Notes::default());
        talk.say(Entry::user("Look."));
        let mut found = Entry { tools: vec!["Search".into()], ..held(EntryKind::ActionResult, "x".repeat(5_000)) };
        entry.into_iter().for_each(|name| drop(found.meta.insert("compactPromptId".into(), name.into())));
        talk.say(found);
        talk.say(Entry::user("Well?"));
        until_wanted(&mut talk).prompt.map(|name| name.to_string())
    };
    let [own, default, entry, over] = [Some("own"), Some("default"), Some("entry"), Some("over")];
    assert_eq!(prompt_of(own, default, entry, over).as_deref(), over);
    assert_eq!(prompt_of(own, default, entry, None).as_deref(), entry);
    assert_eq!(prompt_of(own, default, None, None).as_deref(), own);
    assert_eq!(prompt_of(None, default, None, None).as_deref(), default);
    assert_eq!(prompt_of(None, None, None, None), None);
}

#[test]
fn an_override_can_ask_for_summaries_and_for_their_length() {
    let under = Expiry { after: 3, action: ExpiryAction::Remove };
    let over = |json: &str| MessageExpirationOverride::from_json(json).unwrap().to_override().unwrap().over(under);
    let asked = r#"{"expirationMode": "Compact", "compactMode": "AI Summary", "compactLength": 80}"#;
    assert_eq!(over(asked), Expiry { after: 3, action: summary(80) });
    assert_eq!(over(r#"{"expirationMode": "Compact", "compactMode": "AI Summary"}"#).action, summary(500));
    let chars = recto::expiry::ExpiryOverride { chars: Setting::Set(70), ..Default::default() };
    assert_eq!(chars.over(Expiry { after: 3, action: summary(500) }).action, summary(70));
}

#[test]
fn words_that_are_several_parts_are_summarized_as_one_text_and_late_results_say_what_they_answer() {
    let mut talk = Talk::expiring(Expire::all(Expiry { after: 0, action: summary(20) }));
    talk.notes = Some(Notes::default());
    talk.say(Entry::user("Look."));
    talk.say(Entry::step("", [Call::new("late", "Fetch", "{}")]));
    talk.say(Entry::user("Meanwhile?"));
    talk.calls(1);
    let late = talk.say(Entry::result("late", "it came. ".repeat(40).as_str()));
    talk.say(Entry::user("Well?"));
    let want = until_wanted(&mut talk);
    let told = input(&want, &talk);
    assert!(told.text.ends_with(&format!("originalContent:\n{}", "it came. ".repeat(40))), "{}", told.text);
    talk.notes.as_mut().unwrap().put(want.key, made("It came."));
    let shown = talk.shown(late).unwrap();
    assert!(shown.starts_with("[Late result of call Fetch late]\nIt came.\n[… a model's summary of 360 "), "{shown}");
}

#[test]
fn x14_a_summarizer_reads_nothing_that_was_redacted_or_that_the_redactor_knows() {
    let mut talk = Talk::expiring(Expire::all(Expiry { after: 0, action: summary(20) }));
    talk.notes = Some(Notes::default());
    talk.say(Entry::user("Look."));
    talk.say(Entry::step("", [Call::new("c", "Bash", "{}")]));
    let text = format!("{} marked-secret and free-secret", "words ".repeat(40));
    let start = text.find("marked").unwrap();
    let mut result = Entry::result("c", text.as_str());
    let (end, label) = (start + "marked-secret".len(), "[redacted:key]".into());
    result.redactions.push(recto::entry::Redaction { part: 0, piece: 0, start, end, label });
    talk.say(result);
    talk.say(Entry::user("Well?"));
    let want = until_wanted(&mut talk);
    let redact = |text: &str| -> String { text.replace("free-secret", "[secret]") };
    let told = want.input(&talk.request(), "Shorten.", &|text| Cow::Owned(redact(text))).unwrap();
    assert!(told.text.contains("[redacted:key] and [secret]") && !told.text.contains("-secret"), "{}", told.text);
    // Control: it would have been there.
    assert!(input(&want, &talk).text.contains("free-secret"));
    assert_eq!(&*told.instructions, "Shorten.");
}

#[test]
fn what_a_summarizer_is_told_is_bounded_and_only_what_the_want_was_for() {
    let mut talk = Talk::expiring(Expire::all(Expiry { after: 0, action: summary(20) }));
    talk.notes = Some(Notes::default());
    talk.say(Entry::user("Look."));
    let seq = talk.result("Bash", &"é".repeat(500_000));
    talk.say(Entry::user("Well?"));
    let want = until_wanted(&mut talk);
    let told = input(&want, &talk);
    assert!(told.text.contains("\n[… 400000 characters left out …]\n"));
    assert!(told.text.chars().count() < 101_000);
    // Another log says something else at that place.
    let mut other = Talk::expiring(Expire::all(Expiry { after: 0, action: summary(20) }));
    other.say(Entry::user("Look."));
    assert_eq!(other.result("Bash", "else"), seq);
    assert_eq!(want.input(&other.request(), "", &plain), None);
}

#[test]
fn answers_that_are_no_summary_are_refused_with_the_reason() {
    let (mut talk, _) = searched(Some(Notes::default()));
    let want = until_wanted(&mut talk);
    let told = input(&want, &talk);
    let refused = |answer: &str| want.accept(&told, answer).unwrap_err();
    for blank in
        ["", " \n\t", r#"{"summary": ""}"#, r#"{"summary": "  "}"#, r#"{"summary": null}"#, r#"{"summary": "..."}"#]
    {
        assert_eq!(refused(blank), Rejected::Empty, "{blank:?}");
    }
    assert_eq!(refused(r#"{"summary": "N/A"}"#), Rejected::Empty);
    assert_eq!(refused("<!DOCTYPE html><p>502"), Rejected::Html);
    assert_eq!(refused(r#"{"summary": "<html><body>502</body></html>"}"#), Rejected::Html);
    assert!(matches!(refused("It is about x."), Rejected::NoJson { .. }));
    assert!(matches!(refused(r#"{"summary": "cut off"#), Rejected::NoJson { .. }));
    assert!(matches!(refused(r#"{"text": "x"}"#), Rejected::WrongShape { .. }));
    assert!(matches!(refused(r#"{"summary": 7}"#), Rejected::WrongShape { .. }));
    assert_eq!(refused(r#"{"summary": {"a": 1}}"#), Rejected::Nested);
    assert_eq!(refused(r#"{"summary": "{\"a\": 1}"}"#), Rejected::Nested);
    assert!(matches!(refused("I'm sorry, I can't help with that."), Rejected::Excuse { .. }));
    assert!(matches!(refused(r#"{"summary": "I cannot summarize this."}"#), Rejected::Excuse { .. }));
    let long = format!(r#"{{"summary": "{}"}}"#, "x".repeat(5_000));
    assert_eq!(refused(&long), Rejected::TooLong { chars: 5_000, of: 5_000 });
    for rejected in ["", "<html>", "no", r#"{"a":1}"#, &long] {
        assert!(!refused(rejected).to_string().is_empty());
    }
    let good = [
        r#"{"summary": "All x."}"#,
        "Sure, here it is:\n```json\n{\"summary\": \"All x.\"}\n```\nAnything else?",
        r#"{"thinking": {"a": "{"}} {"summary": " All x. ", "length": 6}"#,
        "{ not json } {\"summary\": \"All x.\"}",
    ];
    for answer in good {
        assert_eq!(want.accept(&told, answer).as_deref(), Ok("All x."), "{answer}");
    }
    // What is longer than twice what was wanted is cut.
    let wordy = format!(r#"{{"summary": "{}"}}"#, "y".repeat(3_000));
    assert_eq!(want.accept(&told, &wordy).unwrap().chars().count(), 1_001);
    assert!(want.accept(&told, &"{".repeat(100_000)).is_err());
}

#[test]
fn the_usual_prompts_demand_the_form_that_is_read() {
    let part = Subject::Part(recto::edit::PartAt { seq: Seq(1), part: 0 });
    assert!(default_prompt(part).contains(r#"{"summary": "#));
    let range = Subject::Range(recto::Span::one(Seq(1)));
    for field in ["intent", "constraints", "decisions", "artifacts", "done", "pending", "next", "failed"] {
        assert!(default_prompt(range).contains(&format!("\"{field}\":")), "{field}");
    }
}

#[test]
fn pictures_are_named_and_a_late_edit_leaves_no_part_behind() {
    let media = recto::entry::Media { url: "data:image/png;base64,AA".into(), name: None, detail: None };
    let mut talk = Talk::expiring(Expire::all(Expiry { after: 0, action: summary(20) }));
    talk.notes = Some(Notes::default());
    talk.say(Entry::user("Look."));
    talk.say(Entry::step("", [Call::new("c", "Bash", "{}")]));
    let mut result = Entry::result("c", "seen ".repeat(30).as_str());
    let recto::entry::Part::Result(inner) = &mut result.parts.to_vec()[0].clone() else { panic!("a result") };
    inner.content.push(Piece::Image(media));
    result.parts = [recto::entry::Part::Result(inner.clone())].into();
    let seq = talk.say(result);
    talk.say(Entry::user("Well?"));
    let want = until_wanted(&mut talk);
    assert!(input(&want, &talk).text.ends_with("seen \n[image]"));
    talk.notes.as_mut().unwrap().put(want.key, made("Seen."));
    let planned = plan(&talk.request()).unwrap();
    assert!(matches!(&planned.edits[..], [edit] if matches!(edit.change, Change::Replace { .. })), "{planned:?}");
    assert!(talk.shown(seq).unwrap().starts_with("Seen.\n[… a model's summary of "));
}
