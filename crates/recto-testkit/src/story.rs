//! Generated stories: conversations with parallel, late, missing, orphan and doubled results, statuses, edges, pins,
//! secrets and odd text, and the calls in between.

use proptest::collection::vec;
use proptest::prelude::*;
use recto::entry::{ExpiryAction, Status};
use recto::policy::Pass;
use recto::reduce::{Expire, FitWindow};
use recto::{Policy, Tokens};

/// A conversation to live through, and the settings to do it under.
#[derive(Clone, Debug)]
pub struct Story {
    /// The window in tokens.
    pub window: u64,
    /// What stays free for the answer.
    pub reserve: u64,
    /// What a message costs beside its content.
    pub overhead: u64,
    /// The policy.
    pub policy: Policy,
    /// Whether the provider remembers.
    pub remembers: bool,
    /// Whether the provider takes reasoning back.
    pub takes_reasoning: bool,
    /// What happens.
    pub events: Vec<Event>,
}

/// Something that happens in a conversation.
#[derive(Clone, Debug)]
pub enum Event {
    /// Instructions come.
    System(Words),
    /// The user speaks.
    User(Words),
    /// The model speaks, perhaps having thought.
    Say {
        /// What it says.
        words: Words,
        /// What it thought, if anything.
        thought: Option<Words>,
        /// How it ended.
        status: Status,
    },
    /// The model makes calls.
    Step {
        /// What it says with them.
        words: Words,
        /// The arguments of each call.
        calls: Vec<Words>,
        /// How it ended.
        status: Status,
    },
    /// A result comes for one of the calls made so far, answered or not.
    Result {
        /// Which call, counted from the newest.
        back: usize,
        /// What the tool says.
        words: Words,
        /// Whether the tool failed.
        is_error: bool,
        /// Whether the same result comes twice.
        with_another: bool,
    },
    /// Every call that has no result yet gets one.
    AllResults(Words),
    /// A result comes for a call that nobody made.
    Orphan(Words),
    /// The user speaks, and nothing before counts any more.
    Edge(Words),
    /// An entry is pinned.
    Pin {
        /// Which entry, counted from the newest.
        back: usize,
    },
    /// The newest decision is taken back.
    Revert,
    /// The model is called.
    Call {
        /// What is said now, if it isn't in the log yet.
        input: Option<Words>,
        /// Whether the call goes well.
        succeeds: bool,
    },
}

/// A text, and whether it holds a secret.
#[derive(Clone, Debug)]
pub struct Words {
    /// The text.
    pub text: String,
    /// Whether a secret is put into it.
    pub has_secret: bool,
}

fn words() -> impl Strategy<Value = Words> {
    let text = prop_oneof![
        4 => "[a-z ]{1,40}",
        2 => "[a-z .\n]{80,400}",
        1 => Just(String::new()),
        1 => Just("<|endoftext|> \u{0}\u{7}\u{1b}[31m مرحبا שלום".to_string()),
        1 => Just("👩‍👩‍👧‍👦 名前は山田です 🏳️‍🌈".to_string()),
        1 => "\\PC{0,30}",
    ];
    (text, prop::bool::weighted(0.15)).prop_map(|(text, has_secret)| Words { text, has_secret })
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![12 => Just(Status::Sent), 1 => Just(Status::Error), 1 => Just(Status::Cancelled), 1 => Just(Status::Pending)]
}

fn event() -> impl Strategy<Value = Event> {
    let result = (0usize..6, words(), any::<bool>(), prop::bool::weighted(0.1));
    prop_oneof![
        1 => words().prop_map(Event::System),
        4 => words().prop_map(Event::User),
        2 => (words(), prop::option::of(words()), status())
            .prop_map(|(words, thought, status)| Event::Say { words, thought, status }),
        5 => (words(), vec(words(), 1..4), status()).prop_map(|(words, calls, status)| Event::Step { words, calls, status }),
        5 => result.prop_map(|(back, words, is_error, with_another)| Event::Result { back, words, is_error, with_another }),
        4 => words().prop_map(Event::AllResults),
        1 => words().prop_map(Event::Orphan),
        1 => words().prop_map(Event::Edge),
        1 => (0usize..12).prop_map(|back| Event::Pin { back }),
        1 => Just(Event::Revert),
        8 => (prop::option::weighted(0.3, words()), prop::bool::weighted(0.8))
            .prop_map(|(input, succeeds)| Event::Call { input, succeeds }),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let action = prop_oneof![Just(ExpiryAction::Remove), (1u32..60).prop_map(ExpiryAction::FirstChars)];
    let expire = (0u32..4, action, 0u64..60)
        .prop_map(|(after, action, minimum)| Pass::Expire(Expire { after, action, minimum: Tokens(minimum) }));
    let fit = (20u32..=100, 0u32..100, 0u64..100, any::<bool>()).prop_map(|(trigger, target, minimum, keep)| {
        Pass::FitWindow(FitWindow {
            trigger_percent: trigger,
            target_percent: target * (trigger - 1) / 100,
            minimum: Tokens(minimum),
            keep_first_request: keep,
        })
    });
    (prop::option::of(expire), prop::option::weighted(0.9, fit))
        .prop_map(|(expire, fit)| Policy { name: "generated".into(), reduce: expire.into_iter().chain(fit).collect() })
}

/// Returns stories of up to `length` events.
pub fn story(length: usize) -> impl Strategy<Value = Story> {
    let settings = (60u64..900, 0u64..30, 0u64..5, policy(), any::<bool>(), any::<bool>());
    (settings, vec(event(), 1..length)).prop_map(|(settings, events)| {
        let (window, reserve, overhead, policy, remembers, takes_reasoning) = settings;
        Story { window, reserve, overhead, policy, remembers, takes_reasoning, events }
    })
}
