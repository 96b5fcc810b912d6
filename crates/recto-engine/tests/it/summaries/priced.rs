//! Which way to ask is cheaper: the table of `docs/summaries.md` is worked out here. `RECTO_BLESS=1` prints it.

use recto::wire::Usage;
use recto::{Target, Tokens};

/// The page that the conversation's own model read last, the words that are summarized, and the summary, in tokens.
const CASES: [(&str, u64, u64, u64); 2] = [("fold", 100_000, 60_000, 1_200), ("entry", 60_000, 4_000, 150)];
/// The prompt with its numbers, in tokens.
const PROMPT: u64 = 450;
/// Models and cheaper ones of the same provider.
const PAIRS: [(&str, &str); 4] = [
    ("claude-opus-5-5", "claude-haiku-5-5"),
    ("claude-sonnet-4-6", "claude-haiku-4-5"),
    ("gpt-6-sol", "gpt-6-luna"),
    ("gpt-5.5", "gpt-5.4-mini"),
];

fn usd(model: &str, usage: Usage) -> f64 {
    Target::named(model).unwrap().prices.usd(&usage)
}

/// What each way costs: another model that reads the words alone, the own model by its cache, and by a cold one.
fn costs(own: &str, other: &str, (_, page, words, summary): (&str, u64, u64, u64)) -> [f64; 3] {
    let usage = |input: u64, cached: u64| Usage {
        input: Tokens(input),
        cached: Tokens(cached),
        output: Tokens(summary),
        ..Usage::default()
    };
    [usd(other, usage(words + PROMPT, 0)), usd(own, usage(page + PROMPT, page)), usd(own, usage(page + PROMPT, 0))]
}

#[test]
fn the_page_on_summaries_says_which_way_is_cheaper() {
    let mut lines = Vec::new();
    for case in CASES {
        for (own, other) in PAIRS {
            let [separate, same, cold] = costs(own, other, case);
            let cheaper = if separate < same { "separate" } else { "same" };
            lines.push(format!("| {} | {own} | {other} | {separate:.4} | {same:.4} | {cold:.4} | {cheaper} |", case.0));
        }
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/summaries.md")).unwrap();
    let missing: Vec<&String> = lines.iter().filter(|line| !page.contains(&***line)).collect();
    assert!(missing.is_empty(), "docs/summaries.md should say:\n{}", lines.join("\n"));
}

#[test]
fn the_own_model_is_cheaper_only_where_the_cache_is_much_cheaper_than_another_model() {
    // With one model for both ways, reading the whole page from the cache beats reading a large part of it anew …
    let [separate, same, _] = costs("claude-opus-5-5", "claude-opus-5-5", CASES[0]);
    assert!(same < separate);
    // … and reading it without a cache never does.
    let [separate, _, cold] = costs("claude-opus-5-5", "claude-opus-5-5", CASES[0]);
    assert!(cold > separate);
}
