//! Generated stories: conversations with parallel, late, missing, orphan and doubled results, statuses, edges, pins,
//! secrets and odd text, and the calls in between.

mod display;

use proptest::collection::vec;
use proptest::prelude::*;
use recto::block::{Block, Kind};
use recto::entry::Status;
use recto::expiry::{Expiry, ExpiryAction, ExpiryRule};
use recto::pays::Patience;
use recto::policy::{Apply, Decorate, Sections, Selection, Stale, StatusRule, Step, TraceRule};
use recto::reduce::{
    CapOutput, DropImages, DropReasoning, Excerpt, Expire, FitWindow, Fold, Grain, Recent, TokenLimit,
};
use recto::reduce::{Identical, Irrelevant, Similar, Superseded};
use recto::target::Instructions;
use recto::tool_use::{Deed, Rule};
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
    /// What becomes of instructions, if it does.
    pub instructions: Instructions,
    /// Whether prompt pieces go with every call.
    pub has_fragments: bool,
    /// What the provider's format takes.
    pub manner: Manner,
    /// What happens.
    pub events: Vec<Event>,
}

/// What a provider's format takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Everything, as the format for comparisons does.
    Plain,
    /// Instructions only at the beginning, no error flags.
    Strict,
    /// What Anthropic takes: the user speaks first and last, no empty texts, reasoning under a seal.
    Anthropic,
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
        /// Whether it is a trace, and of which run: 1 is the current one, 0 none.
        trace: Option<u8>,
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
    /// The host writes into another section.
    Aside {
        /// The section.
        section: &'static str,
        /// What it writes.
        words: Words,
        /// How many of the newest entries it stands for, if it is a summary.
        covers: Option<u64>,
    },
    /// The user shows a picture.
    Picture,
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
        3 => "[a-z .\n]{80,600}",
        1 => Just(String::new()),
        1 => Just("{\"path\": \"a\", \"note\": \"what a tool may be asked\"}".to_string()),
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
        5 => (words(), vec(words(), 1..4), status(), prop::option::weighted(0.3, 0u8..3))
            .prop_map(|(words, calls, status, trace)| Event::Step { words, calls, status, trace }),
        1 => (prop_oneof![Just("summary"), Just("buffer"), Just("notes")], words(), prop::option::weighted(0.3, 1u64..9))
            .prop_map(|(section, words, covers)| Event::Aside { section, words, covers }),
        1 => Just(Event::Picture),
        5 => result.prop_map(|(back, words, is_error, with_another)| Event::Result { back, words, is_error, with_another }),
        4 => words().prop_map(Event::AllResults),
        1 => words().prop_map(Event::Orphan),
        1 => words().prop_map(Event::Edge),
        1 => (0usize..12).prop_map(|back| Event::Pin { back }),
        2 => Just(Event::Revert),
        8 => (prop::option::weighted(0.3, words()), prop::bool::weighted(0.8))
            .prop_map(|(input, succeeds)| Event::Call { input, succeeds }),
    ]
}

/// A round as agents live it: the model calls tools, all results come, and the model is called again.
fn round() -> impl Strategy<Value = Vec<Event>> {
    let long_text = || "[a-z .\n]{200,900}".prop_map(|text| Words { text, has_secret: false });
    let succeeds = prop::bool::weighted(0.9);
    (words(), vec(words(), 1..4), long_text(), succeeds).prop_map(|(words, calls, result, succeeds)| {
        vec![
            Event::Step { words, calls, status: Status::Sent, trace: None },
            Event::AllResults(result),
            Event::Call { input: None, succeeds },
        ]
    })
}

/// Single events and whole rounds, in any order.
fn events(length: usize) -> impl Strategy<Value = Vec<Event>> {
    let piece = prop_oneof![6 => event().prop_map(|event| vec![event]), 1 => round()];
    vec(piece, 1..length).prop_map(|pieces| pieces.concat())
}

fn expire() -> impl Strategy<Value = Step> {
    let action = || {
        prop_oneof![
            Just(ExpiryAction::Remove),
            (1u32..60).prop_map(ExpiryAction::FirstChars),
            (1u32..60).prop_map(|chars| ExpiryAction::Summary { chars }),
            (1u32..30, 0u32..30).prop_map(|(head, tail)| ExpiryAction::HeadTail { head, tail }),
        ]
    };
    // Every tool of a story is called `look`.
    let rule = prop::option::weighted(0.3, (0u32..4, action()));
    (0u32..4, action(), 0u64..60, rule).prop_map(|(after, action, minimum, rule)| {
        let rules = rule.map(|(after, action)| ExpiryRule::of_tool("lo*", Expiry { after, action }));
        let (minimum, finished_runs) = (Tokens(minimum), minimum % 2 == 0);
        let rules = rules.into_iter().collect();
        Expire { rules, minimum, finished_runs, ..Expire::all(Expiry { after, action }) }.into()
    })
}

/// A pass that looks for results that repeat, outdate or outlive each other; the tool of the stories reads something.
fn repeats() -> impl Strategy<Value = Step> {
    let rule = || Rule {
        tool: "l*k".into(),
        does: Deed::Search,
        target: None,
        whole_unless: Vec::new(),
        with: Default::default(),
    };
    prop_oneof![
        2 => (0u64..30).prop_map(|minimum| Identical { minimum: Tokens(minimum) }.into()),
        1 => (0u64..30).prop_map(move |minimum| {
            Superseded { minimum: Tokens(minimum), edits: true, rules: vec![rule()] }.into()
        }),
        1 => (0.1f64..1.0, 2usize..6).prop_map(|(threshold, newest)| {
            Similar { threshold, newest, minimum: Tokens(0) }.into()
        }),
        1 => (0u32..4, 0.1f64..1.0, 1usize..6).prop_map(|(after, threshold, recent)| {
            Irrelevant { after, threshold, recent, first_chars: after * 5, minimum: Tokens(0) }.into()
        }),
    ]
}

/// A pass that shortens, perhaps decorated.
fn shorten() -> impl Strategy<Value = Step> {
    let pass = prop_oneof![
        3 => expire(),
        2 => repeats(),
        2 => (0u32..4, 0.0f64..200.0).prop_map(|(after, worth)| Excerpt { after, worth, ..Excerpt::default() }.into()),
        1 => (1usize..80).prop_map(|chars| CapOutput::to(chars).into()),
        1 => Just(DropReasoning {}.into()),
        1 => (0usize..3).prop_map(|keep| DropImages { keep }.into()),
    ];
    (pass, 0u8..8).prop_map(|(pass, decorator): (Step, u8)| match decorator {
        0 => pass.keep_last(1),
        1 => pass.until_fits(),
        2 => pass.sparing_errors(),
        3 => pass.when_over(Tokens(40)),
        _ => pass,
    })
}

/// A pass that puts a note in the place of exchanges, with numbers that follow from those of a policy.
fn fold(numbers: &Patience) -> Step {
    let (start, percent) = (numbers.start.0, numbers.percent);
    Fold {
        over_percent: 10 + (start * 9 % 91) as u32,
        want_percent: percent.min(100),
        target_percent: (start as u32 * 7 + percent) % 100,
        step: 1 + start % 11,
        keep_last: 1 + percent as usize % 2,
        chars: 1 + percent,
        keep_first_request: numbers.margin == Tokens(0),
        ..Fold::default()
    }
    .into()
}

/// A pass that lowers the floor.
fn lower() -> impl Strategy<Value = Step> {
    let grain = || prop_oneof![Just(Grain::Exchange), Just(Grain::Message)];
    let fit = (20u32..=100, 0u32..=100, 0u64..100, any::<bool>(), grain()).prop_map(
        |(trigger, target, minimum, keep, grain)| {
            let (target_percent, minimum) = (target * trigger / 100, Tokens(minimum));
            FitWindow { trigger_percent: trigger, target_percent, minimum, keep_first_request: keep, grain }.into()
        },
    );
    prop_oneof![
        4 => fit,
        1 => (10u64..200, 0u64..50, grain())
            .prop_map(|(tokens, slack, grain)| TokenLimit { tokens: Tokens(tokens), slack: Tokens(slack), grain }.into()),
        1 => (1usize..12, 0usize..4, grain()).prop_map(|(messages, slack, grain)| Recent { messages, slack, grain }.into()),
    ]
}

fn selection() -> impl Strategy<Value = Selection> {
    let sections = prop_oneof![
        6 => Just(Sections::Ranked),
        2 => Just(Sections::All),
        1 => Just(Sections::Only(vec!["messages".into(), "notes".into()])),
        1 => Just(Sections::Only(Vec::new())),
    ];
    let trace = prop_oneof![4 => Just(TraceRule::All), 2 => Just(TraceRule::CurrentRun), 1 => Just(TraceRule::None)];
    let status = prop_oneof![3 => Just(StatusRule::Exclude), 1 => Just(StatusRule::Note)];
    (sections, trace, status).prop_map(|(sections, trace, status)| {
        let caps = [("summary".into(), Tokens(30))].into_iter().collect();
        Selection { sections, trace, status, caps, ..Selection::default() }
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let words = prop::bool::weighted(0.2);
    let passes = (vec(shorten(), 0..3), prop::option::weighted(0.9, lower()));
    let apply = prop_oneof![4 => Just(Apply::Immediately), 2 => Just(Apply::WhenItPays), 1 => Just(Apply::Never)];
    let patience =
        (0u64..100, prop_oneof![Just(0), 1u32..150], 0u64..2, prop::option::weighted(0.2, 0u32..20)).prop_map(
            |(start, percent, margin, brake)| Patience { start: Tokens(start), percent, margin: Tokens(margin), brake },
        );
    (selection(), words, passes, apply, patience).prop_map(|(select, words, (shorten, lower), apply, patience)| {
        let mut policy = Policy::named("generated");
        let start_is_odd = patience.start.0 % 2 == 1;
        let fold = (patience.start.0 % 3 == 0).then(|| fold(&patience));
        (policy.apply, policy.patience) = (apply, patience);
        policy.select = select;
        policy.pins.words = if words { vec!["aa".into()] } else { Vec::new() };
        policy.stale = if start_is_odd { Stale::Keep } else { Stale::Reseed };
        policy.reduce = shorten.into_iter().chain(fold).chain(lower).collect();
        policy
    })
}

/// Returns stories of up to `length` events whose pages are laid out in blocks: history in one, or as messages.
pub fn story_in_blocks(length: usize) -> impl Strategy<Value = Story> {
    (story(length), 0u8..4).prop_map(|(mut story, layout)| {
        story.policy.blocks = match layout {
            0 => Policy::nexus_doc().blocks,
            1 => Policy::nexus_head().blocks,
            2 => Policy::blocks_first().blocks,
            _ => {
                let mut blocks = Policy::blocks_first().blocks;
                blocks.retain(|block: &Block| !matches!(block.kind, Kind::SharedMemory(_) | Kind::Moment(_)));
                blocks
            }
        };
        // Blocks need some room of their own.
        story.window += 600;
        story
    })
}

/// Returns stories of up to `length` events.
pub fn story(length: usize) -> impl Strategy<Value = Story> {
    let window = prop_oneof![3 => 60u64..900, 2 => 1_500u64..6_000];
    let settings = (window, 0u64..30, 0u64..5, policy(), any::<bool>(), any::<bool>());
    let manner = prop_oneof![3 => Just(Manner::Plain), 1 => Just(Manner::Strict), 1 => Just(Manner::Anthropic)];
    (settings, any::<bool>(), manner, events(length)).prop_map(|(settings, has_fragments, manner, events)| {
        let (window, reserve, overhead, policy, remembers, takes_reasoning) = settings;
        let instructions = if reserve % 3 == 0 { Instructions::Replaced } else { Instructions::Kept };
        Story {
            window,
            reserve,
            overhead,
            policy,
            remembers,
            takes_reasoning,
            instructions,
            has_fragments,
            manner,
            events,
        }
    })
}
