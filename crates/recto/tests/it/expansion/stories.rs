//! Generated stories in which things are asked back at every call: the laws hold as they do without.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use recto::edit::{Change, Handle};
use recto::expand::{Ask, Range, expand};
use recto::page::Mode;
use recto::{Tokens, plan, wire};
use recto_testkit::check;
use recto_testkit::story::{Event, Story, story};
use recto_testkit::world::{Called, SECRET, World};
use std::collections::BTreeMap;

const STORIES: usize = 3_000;

/// What has been reduced and not been taken back, newest first.
fn reduced(world: &World) -> Vec<Handle> {
    let live = world.reader.decisions().iter().rev().filter(|it| it.reverted.is_none());
    let handles = live.filter_map(|it| match &it.edit.change {
        Change::Hide(span) => Some(Handle::entry(span.last)),
        Change::Replace { at, .. } => Some(Handle { seq: at.seq, part: None }),
        Change::Omit(at) => Some(Handle { seq: at.seq, part: Some(at.part) }),
        Change::Floor(floor) => floor.at.0.checked_sub(1).map(|seq| Handle::entry(recto::Seq(seq))),
        _ => None,
    });
    handles.collect()
}

/// Asks for something, and commits what is granted.
fn ask(world: &mut World, nth: usize, codes: &mut BTreeMap<&'static str, usize>) {
    let handles = reduced(world);
    let Some(handle) = handles.get(nth % handles.len().max(1)).copied() else { return };
    let range = match nth % 5 {
        0 => Range::Lines(1..=2),
        1 => Range::Search("a".into()),
        _ => Range::Whole,
    };
    let ask = Ask::whole(handle).only(range).exempt_for((nth % 4) as u32);
    let expansion = expand(&world.request(None), &ask);
    let code =
        expansion.as_ref().map_or_else(|refusal| refusal.code(), |it| if it.is_in_place { "ok" } else { "told" });
    *codes.entry(code).or_default() += 1;
    let told =
        format!("{expansion:?} {}", expansion.as_ref().map_or_else(ToString::to_string, |it| it.text.to_string()));
    assert!(!told.contains(SECRET), "{told}");
    let Ok(expansion) = expansion else { return };
    let is_whole = ask.range == Range::Whole;
    world.reader.commit(expansion.edits, world.policy.digest());
    if expansion.is_in_place && is_whole {
        // What was asked for stands on the page, if there is one.
        if let Ok(compiled) = recto::compile(&world.request(None)) {
            let is_there = compiled.page.messages.iter().any(|message| message.seq == Some(handle.seq));
            assert!(is_there || compiled.page.mode != Mode::Full, "{handle} is not on the page");
        }
    }
}

fn live(story: &Story, codes: &mut BTreeMap<&'static str, usize>) {
    let mut world = World::new(story);
    let mut past: Vec<(Called, Vec<u8>)> = Vec::new();
    for (nth, event) in story.events.iter().enumerate() {
        let Event::Call { input, succeeds } = event else {
            world.happen(event);
            continue;
        };
        ask(&mut world, nth, codes);
        let called = world.call(input.as_ref());
        let idle = plan(&world.request(called.input.as_ref())).unwrap().edits;
        assert_eq!(idle, [], "planning again plans more after {:?}", called.plan.edits);
        let Ok(compiled) = &called.compiled else {
            let error = called.compiled.as_ref().unwrap_err();
            assert!(error.overflow().is_some_and(|it| it.over > Tokens(0)), "{error}");
            continue;
        };
        let body = wire::openai_chat::encode(&compiled.page, &world.target);
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        check::pairs(json["messages"].as_array().unwrap(), compiled.page.mode != Mode::Full).unwrap();
        check::fates(&compiled.receipt.fates, &world.log).unwrap();
        let cost = compiled.page.messages.iter().map(|message| message.cost.0).sum();
        check::budget(&compiled.receipt, cost).unwrap();
        assert!(!String::from_utf8_lossy(&body).contains(SECRET));
        if *succeeds {
            world.acknowledge(&called);
        }
        past.push((called, body));
    }
    for (called, body) in &past {
        let ticket = &called.compiled.as_ref().unwrap().receipt.ticket;
        let again = world.again(called, ticket);
        assert_eq!(wire::openai_chat::encode(&again.page, &world.target), *body, "turn {}", ticket.turn.0);
    }
}

#[test]
fn the_laws_hold_when_things_are_asked_back() {
    let mut runner = TestRunner::deterministic();
    let mut codes = BTreeMap::new();
    for nth in 0..STORIES {
        let mut story = story(40).new_tree(&mut runner).unwrap().current();
        // Providers that remember refuse most asks.
        story.remembers &= nth % 4 == 0;
        story.policy = story.policy.immediately();
        live(&story, &mut codes);
    }
    for code in ["ok", "never_reduced", "too_large", "held", "no_match", "already_expanded", "not_shown"] {
        assert!(codes.contains_key(code), "no story had a case of {code:?}: {codes:?}");
    }
    assert!(codes["ok"] > 500, "{codes:?}");
}
