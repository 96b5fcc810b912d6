//! Stories that once broke a law, as short as they were found.

use recto::pays::Patience;
use recto::policy::{Apply, Decorate, Stale, Step};
use recto::reduce::{Expire, FitWindow, Fold, Grain, Recent, TokenLimit};
use recto::target::Instructions;
use recto::{Policy, Tokens};
use recto_testkit::story::{Event, Manner, Story, Words};

fn text(text: impl Into<String>) -> Words {
    Words { text: text.into(), has_secret: false }
}

/// A text of so many characters.
fn long(chars: usize) -> Words {
    text("a .a ".repeat(chars / 5 + 1).chars().take(chars).collect::<String>())
}

fn call() -> Event {
    Event::Call { input: None, succeeds: true }
}

fn call_with(input: Words) -> Event {
    Event::Call { input: Some(input), succeeds: true }
}

fn step(words: Words, calls: Vec<Words>) -> Event {
    Event::Step { words, calls, status: recto::entry::Status::Sent, trace: None }
}

fn story(window: u64, policy: Policy, events: Vec<Event>) -> Story {
    Story {
        window,
        reserve: 0,
        overhead: 0,
        policy,
        remembers: false,
        takes_reasoning: false,
        instructions: Instructions::Replaced,
        has_fragments: false,
        manner: Manner::Plain,
        events,
    }
}

fn policy(steps: impl IntoIterator<Item = Step>) -> Policy {
    let mut policy = Policy::named("regression");
    policy.apply = Apply::Immediately;
    policy.reduce = steps.into_iter().collect();
    policy
}

fn patience(start: u64, brake: Option<u32>) -> Patience {
    Patience { start: Tokens(start), percent: 0, margin: Tokens(0), brake }
}

fn token_limit(tokens: u64, slack: u64) -> Step {
    TokenLimit { tokens: Tokens(tokens), slack: Tokens(slack), grain: Grain::Exchange }.into()
}

/// Entries that a floor hid while only deltas were sent were never sent after the floor was reverted.
#[test]
fn a_provider_is_sent_what_a_reverted_floor_had_hidden() {
    let mut policy = policy([token_limit(10, 0)]);
    policy.stale = Stale::Keep;
    let input = || text("{\"path\": \"a\", \"note\": \"what a tool may be asked\"}");
    let fails = || Event::Call { input: None, succeeds: false };
    let mut events = vec![fails(), fails(), call(), call_with(input()), call_with(input())];
    events.extend([Event::Revert, Event::System(text(" ")), call()]);
    crate::memory::check(&story(1_500, policy, events)).unwrap_or_else(|what| panic!("{what}"));
}

/// After a revert, a new floor below the one that the session was seeded with was not taken as stale.
#[test]
fn a_lower_floor_that_names_less_is_stale_for_the_provider() {
    let recent: Step = Recent { messages: 8, slack: 0, grain: Grain::Message }.into();
    let input = || text("{\"path\": \"a\", \"note\": \"what a tool may be asked\"}");
    let failed_step = Event::Step {
        words: text("a"),
        calls: vec![text("a"), text(" ")],
        status: recto::entry::Status::Error,
        trace: None,
    };
    let events = vec![
        call_with(text("a")),
        call(),
        Event::User(input()),
        failed_step,
        call_with(input()),
        call(),
        Event::Call { input: None, succeeds: false },
        call(),
        Event::Result { back: 0, words: text(" "), is_error: false, with_another: false },
        call(),
        step(text("a"), vec![text("a"), text("a"), text("a")]),
        Event::Revert,
        Event::AllResults(text("a")),
        Event::Pin { back: 3 },
        call(),
    ];
    crate::memory::check(&story(1_500, policy([recent]), events)).unwrap_or_else(|what| panic!("{what}"));
}

/// A block of the user's before the history made instructions late, and their marks were not in the budget.
#[test]
fn instructions_behind_a_block_of_the_user_stay_within_the_budget() {
    let fit = FitWindow {
        trigger_percent: 67,
        target_percent: 0,
        minimum: Tokens(0),
        keep_first_request: false,
        grain: Grain::Exchange,
    };
    // One of these windows is exactly as large as the page without the marks.
    for window in 700..900 {
        let mut policy = policy([fit.clone().into()]);
        policy.blocks = Policy::blocks_first().blocks;
        policy
            .blocks
            .retain(|block| !matches!(block.kind, recto::block::Kind::SharedMemory(_) | recto::block::Kind::Moment(_)));
        let events = vec![
            Event::System(long(109)),
            Event::System(text("a a aaaaa   a")),
            step(long(487), vec![long(481), text("a   a")]),
            Event::System(text(" ")),
            Event::User(text(" aaa   aaa aa")),
            Event::User(long(567)),
            call_with(text("  a a aa    a aa  a a")),
        ];
        let story = Story { manner: Manner::Strict, ..story(window, policy, events) };
        crate::laws::live(&story).unwrap_or_else(|what| panic!("window {window}: {what}"));
    }
}

/// A floor among what the cache does not hold left so little behind a cut that planning again made one.
#[test]
fn planning_again_makes_no_cut_that_the_first_plan_made_worthwhile() {
    let expire: Step = Expire {
        finished_runs: true,
        minimum: Tokens(0),
        ..Expire::all(recto::expiry::Expiry { after: 0, action: recto::expiry::ExpiryAction::Remove })
    }
    .into();
    let fold = Fold {
        over_percent: 21,
        want_percent: 0,
        target_percent: 4,
        step: 7,
        keep_last: 1,
        chars: 1,
        keep_first_request: true,
        ..Fold::default()
    };
    let mut policy = policy([expire.sparing_errors(), fold.into(), token_limit(91, 2)]);
    (policy.apply, policy.patience) = (Apply::WhenItPays, patience(72, Some(1)));
    let input = text("{\"path\": \"a\", \"note\": \"what a tool may be asked\"}");
    let events = vec![
        Event::System(text("a")),
        Event::Aside { section: "buffer", words: long(273), covers: None },
        Event::User(text("a")),
        Event::User(text("a")),
        Event::Edge(long(301)),
        Event::User(Words { has_secret: true, ..text("aa  a  a  aa a ") }),
        call_with(input.clone()),
        step(long(173), vec![long(289), input, text("")]),
        call(),
        Event::AllResults(long(133)),
        call_with(text(" ")),
    ];
    crate::laws::live(&story(554, policy, events)).unwrap_or_else(|what| panic!("{what}"));
}
