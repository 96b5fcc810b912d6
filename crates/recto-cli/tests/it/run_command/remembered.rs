//! A provider that keeps the history is sent only what is new.

use super::{Place, count};
use crate::run::mentions;
use serde_json::Value;

#[test]
fn a_response_is_gone_on_from_until_it_is_forgotten() {
    check("response");
}

#[test]
fn a_conversation_of_the_providers_is_gone_on_with_until_it_is_forgotten() {
    check("conversation");
}

/// What the provider is told to go on from.
fn held(body: &Value) -> Option<String> {
    ["previous_response_id", "conversation"].iter().find_map(|key| body[*key].as_str()).map(str::to_string)
}

#[track_caller]
fn check(remember: &str) {
    let place = Place::with(&format!("remember = '{remember}'"));
    let says = |turn: usize| {
        let told = place.told("gpt-5.5", &format!("WORDS-{turn}."), &format!("ANSWER-{turn}."));
        let call = place.calls().pop().unwrap();
        assert_eq!(call.refusal, None);
        let marks =
            (1..=turn).map(|turn| format!("WORDS-{turn}.")).chain((1..turn).map(|turn| format!("ANSWER-{turn}.")));
        for mark in marks {
            assert_eq!(count(&Value::from(call.items.clone()), &mark), 1, "{mark} was read once: {:#?}", call.items);
        }
        (told, call.request.json())
    };
    let (told, first) = says(1);
    assert_eq!(told["mode"], "full");
    let begun = (remember == "conversation").then(|| held(&first).expect("a conversation was made for it"));
    let (told, second) = says(2);
    assert_eq!((&told["mode"], &told["full_because"]), (&"delta".into(), &Value::Null));
    assert_eq!(["WORDS-1.", "ANSWER-1.", "WORDS-2."].map(|mark| count(&second, mark)), [0, 0, 1]);
    let id = held(&second).expect("it goes on from something");
    assert!(begun.is_none_or(|begun| begun == id));

    let next = forgotten(&place, remember, &id);
    assert!(place.server.provider().forget(&next));
    let calls = place.calls().len();
    let ran = place.says("gpt-5.5", "WORDS-3.", "ANSWER-3.", &[]);
    mentions(&ran.stderr, &["openai has forgotten the conversation (", "; all of it is sent", "everything was sent ("]);
    let new = &place.calls()[calls..];
    assert!(new[0].refusal.is_some() && new.len() == 2, "asked in vain, then told everything");
    assert_ne!(held(&new[1].request.json()).as_ref(), held(&new[0].request.json()).as_ref());
    place.assert_once(&["WORDS-1.", "ANSWER-1.", "WORDS-2.", "ANSWER-2.", "WORDS-3."]);
    let (told, _) = says(4);
    assert_eq!(told["mode"], "delta", "and then it is held again");
}

/// What the next call would go on from.
fn forgotten(place: &Place, remember: &str, id: &str) -> String {
    if remember == "conversation" {
        return id.into();
    }
    let answer = place.calls().pop().unwrap().answer;
    let (_, rest) = answer.split_once("\"id\":\"resp_").expect("the answer has a name");
    format!("resp_{}", rest.split('"').next().unwrap())
}
