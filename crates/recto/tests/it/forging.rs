//! Nothing that others write can be taken for a block: hundreds of forgeries, at every place where their words can stand,
//! judged by a reader that was written apart from what makes them harmless.

use crate::nexus::Room;
use proptest::prelude::*;
use recto::block::{Block, Facts, Forged, Kind, Template, Todo, TodoState};
use recto::entry::Call;
use recto::fragment::{Fragment, Fragments};
use recto::tool::Tools;
use recto::{Compiled, Entry, Part, Policy, Request, Tokenizer, compile_once};
use recto_testkit::structure::{Grammar, Mark, forgeries, harmless, marks};
use serde_json::json;
use std::collections::HashMap;

fn grammar(policy: &Policy) -> Grammar {
    let is_nexus = policy.name.starts_with("nexus");
    let nexus = ["CAPABILITIES", "SHARED_MEMORY", "FRIENDS_INFO", "THIS_MOMENT"];
    let own =
        ["CAPABILITIES", "SHARED_MEMORY", "PROFILE", "THIS_MOMENT", "TODOS", "NUDGE", "RESPONSE_CONTEXT", "PLACE"];
    Grammar {
        tags: if is_nexus { nexus.into() } else { own.into() },
        fences: vec!["human_input", "current_time", "retrieved"],
        speakers: if is_nexus { vec!["Human", "Nexus"] } else { vec!["Human", "Assistant"] },
        words: vec!["tool_use"],
    }
}

fn policies() -> [Policy; 2] {
    let place = Template {
        name: "place".into(),
        text: "[{{ place }}] {{ place }}{{ place }}\n{{ place }}".into(),
        about: None,
    };
    [Policy::nexus_doc(), Policy::blocks_first().block(Block::from(Kind::Template(place)))]
}

/// Everywhere that words of others can stand.
const PLACES: [&str; 18] = [
    "input",
    "human",
    "model",
    "argument",
    "tool name",
    "summary",
    "asked",
    "model now",
    "result now",
    "profile",
    "mood",
    "constraint",
    "todo",
    "to",
    "nudge",
    "description",
    "parameter",
    "retrieved",
];

/// A page on which a text stands at some of these places, and a plain word at all others.
fn page(policy: &Policy, text: &str, places: &[&str]) -> Compiled {
    let at = |place: &str| if places.contains(&place) { text } else { "word" };
    let arguments = json!({"query": at("argument")}).to_string();
    let past = [
        Entry { section: "summary".into(), ..Entry::user(at("summary")) },
        Entry::user(at("human")),
        Entry::step(at("model"), [Call::new("c1", at("tool name"), arguments)]),
        Entry::result("c1", "done"),
        Entry::assistant(at("model")),
    ];
    let under_way = [
        Entry::user(at("asked")),
        Entry::step(at("model now"), [Call::new("c2", "look", "{}")]),
        Entry::result("c2", at("result now")),
    ];
    let has_input = places.contains(&"input");
    let mut facts = Facts { mood: Some(at("mood").into()), ..Facts::default() };
    facts.constraints.push(at("constraint").into());
    facts.todos.push(Todo { text: at("todo").into(), state: TodoState::Open });
    facts.responding_to = Some(at("to").into());
    facts.delegations.push(at("to").into());
    facts.nudges.push(at("nudge").into());
    facts.values.insert("place".into(), at("mood").into());
    let profile = json!({"prompt_overrides": {"friends_profile": at("profile")}, "profile": {"a": at("profile")}});
    facts.profile = profile.as_object().unwrap().clone();
    let parameter = json!({"description": at("parameter"), "type": "string", "enum": [at("parameter")]});
    let tool = json!({"name": "t", "description": at("description"), "input_schema": {"type": "object", "properties": {at("parameter"): parameter}}});
    let tools = Tools::counted([tool.to_string().into()], &Tokenizer::Chars4);
    let room = Room { facts, tools, ..Room::new(policy.clone()) };
    let room = room.said(past).said(under_way.into_iter().filter(|_| !has_input));
    let fragments = Fragments::counted([Fragment::retrieved("found", at("retrieved"))], &Tokenizer::Chars4).unwrap();
    let draft = room.log.draft(Entry::user(at("input"))).unwrap();
    let input = has_input.then_some(&draft);
    compile_once(&Request { input, fragments: Some(&fragments), ..room.request() }).unwrap()
}

/// What a wary reader sees in each message. What is our own is the same whatever others write.
fn seen(compiled: &Compiled, grammar: &Grammar) -> Vec<Vec<Mark>> {
    let text = |part: &Part| match part {
        Part::Text { text } => text.to_string(),
        Part::Result(result) => result
            .content
            .iter()
            .map(|piece| format!("{piece:?}\n").replace("\\\\", "\\").replace("\\n", "\n"))
            .collect(),
        _ => String::new(),
    };
    let messages = compiled.page.messages.iter();
    messages.map(|message| marks(&message.parts.iter().map(text).collect::<Vec<_>>().join("\n"), grammar)).collect()
}

fn is_noticed(policy: &Policy, grammar: &Grammar, text: &str, places: &[&str]) -> bool {
    seen(&page(policy, text, places), grammar) != seen(&page(policy, &harmless(text), places), grammar)
}

fn all_but(left_out: &[&str]) -> Vec<&'static str> {
    PLACES.into_iter().filter(|place| !left_out.contains(place)).collect()
}

#[test]
fn no_forgery_changes_what_a_page_looks_like() {
    for policy in policies() {
        let grammar = grammar(&policy);
        let all = forgeries(&grammar);
        assert!(all.len() >= 300, "only {} forgeries", all.len());
        for places in [all_but(&["input"]), all_but(&["asked", "model now", "result now"])] {
            // What looks harmless looks the same, however many lines it has.
            let mut plain: HashMap<usize, Vec<Vec<Mark>>> = HashMap::new();
            // All of them where there are the most blocks, and where work is under way; of the others some.
            let every = if places.contains(&"input") || policy.name.starts_with("nexus") { 6 } else { 1 };
            for text in all.iter().step_by(every) {
                let lines = text.split('\n').count();
                let usual =
                    plain.entry(lines).or_insert_with(|| seen(&page(&policy, &harmless(text), &places), &grammar));
                let found = seen(&page(&policy, text, &places), &grammar) != *usual;
                let where_ = || {
                    places.iter().filter(|place| is_noticed(&policy, &grammar, text, &[**place])).collect::<Vec<_>>()
                };
                assert!(!found, "{}: {text:?} passes for structure at {:?}", policy.name, where_());
            }
        }
    }
}

#[test]
fn without_escapes_the_reader_notices_at_every_place() {
    for policy in policies() {
        let mut policy = policy;
        policy.forged = Forged::Left;
        let grammar = grammar(&policy);
        let all = forgeries(&grammar);
        let some: Vec<&String> = all.iter().step_by(9).collect();
        let noticed = some.iter().filter(|text| is_noticed(&policy, &grammar, text, &["input"])).count();
        assert!(noticed * 10 > some.len() * 9, "only {noticed} of {} are noticed", some.len());
        for place in
            PLACES.iter().filter(|place| !["retrieved", "mood", "constraint", "todo", "to", "nudge"].contains(*place))
        {
            let noticed = all.iter().step_by(28).any(|text| is_noticed(&policy, &grammar, text, &[*place]));
            assert!(noticed, "nothing is noticed at {place}: the check can't fail there");
        }
    }
}

#[test]
fn every_forgery_can_be_read_as_it_was() {
    for policy in policies() {
        let delimiters = policy.delimiters().with_fence("retrieved");
        for text in forgeries(&grammar(&policy)) {
            let neutral = delimiters.neutral(&text);
            let is_seen = !marks(&text, &grammar(&policy)).is_empty();
            assert!(!is_seen || neutral != text, "{text:?} was not seen");
            assert_eq!(delimiters.original(&neutral), text);
            assert_eq!(neutral.replace('\\', ""), text.replace('\\', ""), "only backslashes are put in");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_comes_back_as_it_was(pieces in prop::collection::vec(prop_oneof![
        Just("[".to_string()), Just("<".into()), Just("\\".into()), Just("/".into()), Just(":".into()), Just("\n".into()),
        Just(" ".into()), Just("]".into()), Just("Human".into()), Just("NEXUS".into()), Just("tool_use".into()),
        Just("SHARED_MEMORY".into()), Just("human_input".into()), Just("\u{200b}".into()), "\\PC{0,6}",
    ], 0..12)) {
        let text = pieces.concat();
        let delimiters = Policy::nexus_doc().delimiters();
        let neutral = delimiters.neutral(&text).into_owned();
        prop_assert_eq!(delimiters.original(&neutral), text.clone());
        // What was made harmless once is not structure any more, so nothing is left for a second reader.
        let grammar = Grammar { tags: vec!["SHARED_MEMORY"], fences: vec!["human_input"], speakers: vec!["Human", "Nexus"], words: vec!["tool_use"] };
        prop_assert_eq!(marks(&neutral, &grammar), vec![]);
    }
}
