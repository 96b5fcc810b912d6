//! One model, fact by fact.

use crate::talk;
use recto::target::{Caching, EditsPast, LateSystem, LongPrices, Memory, Prices, Reasoned};
use recto::{Target, Tokens};

/// Returns everything that is known about a model: what, and how it is.
pub(super) fn of(target: &Target) -> Vec<[String; 2]> {
    let mut facts = vec![
        ["model", &*target.name].map(talk::harmless),
        ["provider", &*target.provider].map(talk::harmless),
        fact("wire", target.wire.to_string()),
        fact("window", size(target.window, "unknown; taken as unbounded")),
        fact("longest input", size(target.input_max, "what the window leaves")),
        fact("longest output", size(Some(target.output_max), "")),
    ];
    facts.extend(prices(&target.prices));
    facts.extend(counting(target));
    facts.extend(behaviour(target));
    facts
}

fn fact(name: &str, value: impl Into<String>) -> [String; 2] {
    [name.into(), value.into()]
}

fn size(tokens: Option<Tokens>, none: &str) -> String {
    tokens.map_or(none.into(), |tokens| format!("{tokens} tokens"))
}

fn prices(prices: &Prices) -> Vec<[String; 2]> {
    if *prices == Prices::default() {
        return vec![fact("prices", "unknown; taken as 0")];
    }
    let told = |input: f64, cached: f64, write: Option<f64>, output: f64| {
        let write = write.map_or(String::new(), |write| format!(", written to the cache {write}"));
        format!("USD for a million tokens: input {input}, cached {cached}{write}, output {output}")
    };
    let Prices { input, cached, write, output, long, as_of } = prices;
    let mut facts = vec![fact("prices", told(*input, *cached, *write, *output))];
    if let Some(LongPrices { above, input, cached, write, output }) = long {
        facts.push(fact(&format!("above {above} of input"), told(*input, *cached, *write, *output)));
    }
    let as_of = if as_of.is_empty() { "nobody says when".into() } else { talk::harmless(as_of) };
    facts.push(fact("prices read off", as_of));
    facts
}

fn counting(target: &Target) -> Vec<[String; 2]> {
    let counted = target.calibration;
    let how = match (target.is_counted_exactly, counted.is_exact()) {
        (true, _) => "its own".to_string(),
        (false, true) => "the nearest that is published".into(),
        (false, false) => {
            format!("the nearest that is published; times {}, at worst {}", counted.factor, counted.worst)
        }
    };
    let (message, request, tools) = (target.message_overhead, target.request_overhead, target.tools_overhead);
    vec![
        fact("tokenizer", format!("{} ({how})", target.tokenizer)),
        fact("overhead", format!("{message} tokens a message, {request} a request, {tools} more with tools")),
    ]
}

fn behaviour(target: &Target) -> Vec<[String; 2]> {
    let cache = match target.cache.kind {
        Caching::Off => "none".into(),
        Caching::Prefix(step) => {
            format!("what stands unchanged, in steps of {step}, from {} tokens on", target.cache.min)
        }
        Caching::Marks => format!("up to marks in the request, from {} tokens on", target.cache.min),
        Caching::MarksAndEnd => {
            format!("up to marks in the request and the newest message, from {} tokens on", target.cache.min)
        }
    };
    let reasoning = match target.reasoning {
        Reasoned::Dropped => "is not sent back",
        Reasoned::Text => "is sent back as text",
        Reasoned::Sealed => "is sent back as the provider sealed it",
    };
    let edits = match target.edits_past {
        EditsPast::Free => "leaves later reasoning alone",
        EditsPast::DropsLaterReasoning => "drops later reasoning: it is bound to its prefix",
    };
    let late = match target.late_system {
        LateSystem::Keep => "are taken as they are",
        LateSystem::ToUser => "are given in the user's place, and marked",
    };
    let memory = match target.memory {
        Memory::Stateless => "none: every request carries everything",
        Memory::Session => "a session holds what was sent",
    };
    let yes = |is: bool| if is { "yes" } else { "no" };
    let mut facts = vec![fact("cache", cache), fact("memory", memory), fact("reasoning", reasoning)];
    if !target.reads.is_empty() {
        let reads: Vec<&str> = target.reads.iter().map(|name| &**name).collect();
        facts.push(fact("reads reasoning of", talk::harmless(&reads.join(", "))));
    }
    facts.extend([
        fact("an edit of the past", edits),
        fact("late instructions", late),
        fact("neighbours of one role", if target.merges { "must be one message" } else { "may stand apart" }),
        fact("pictures in results", yes(target.result_images)),
        fact("failures in results", if target.tells_errors { "are told in their text" } else { "have a field" }),
        fact("tools over openai_chat", if target.chat_tools { "yes" } else { "only without reasoning" }),
    ]);
    facts
}
