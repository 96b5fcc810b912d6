//! The catalogue of models: complete, correctable, and safe where nothing is known.

use recto::target::{Caching, Catalogue, EditsPast, LateSystem, Reasoned};
use recto::{Target, Tokens, Wire};

#[test]
fn every_built_in_model_has_what_a_page_needs() {
    let mut seen = 0;
    for name in Target::names() {
        let target = Target::named(name).unwrap();
        assert!(target.window > Some(Tokens(0)), "{name}");
        assert!(target.output_max > Tokens(0) && target.prices.input > 0.0 && target.prices.cached > 0.0, "{name}");
        assert!(target.prices.cached <= target.prices.input, "{name}");
        assert_eq!(target.prices.as_of.len(), 10, "{name}");
        assert_eq!(target.is_counted_exactly, target.calibration.is_exact(), "{name}");
        assert!(target.calibration.factor <= target.calibration.worst, "{name}");
        if target.wire == Wire::Anthropic {
            assert_eq!((target.cache.kind, target.tells_errors), (Caching::Marks, false), "{name}");
            assert!(target.prices.write > Some(target.prices.input), "{name}");
        }
        if target.edits_past == EditsPast::DropsLaterReasoning {
            assert_eq!(target.reasoning, Reasoned::Sealed, "{name}");
        }
        seen += 1;
    }
    assert!(seen >= 38, "{seen}");
}

#[test]
fn facts_that_tools_rely_on() {
    let named = |name: &str| Target::named(name).unwrap();
    // From gpt-5.4 on, tools go with reasoning only over Responses.
    assert_eq!((named("gpt-5.4").wire, named("gpt-5.4").chat_tools), (Wire::OpenaiResponses, false));
    assert_eq!(named("gpt-4o").wire, Wire::OpenaiChat);
    assert_eq!(named("gpt-5.6-sol").cache.kind, Caching::MarksAndEnd);
    assert_eq!(named("gpt-5.5").cache.kind, Caching::Prefix(Tokens(2_048)));
    assert_eq!(named("claude-opus-5-5").edits_past, EditsPast::DropsLaterReasoning);
    assert_eq!(named("claude-opus-5").edits_past, EditsPast::Free);
    assert_eq!(named("claude-opus-5-5").late_system, LateSystem::Keep);
    assert_eq!(named("claude-haiku-4-5").late_system, LateSystem::ToUser);
    let chat = named("claude-opus-5-5").over(Wire::OpenaiChat);
    assert_eq!((chat.reasoning, chat.edits_past, chat.tells_errors), (Reasoned::Dropped, EditsPast::Free, true));
}

#[test]
fn who_reads_whose_reasoning() {
    let reads = |reader: &str, provider: &str, model: &str| {
        Target::named(reader).unwrap().reads_reasoning_of(Some(provider), Some(model))
    };
    assert!(reads("claude-opus-5-5", "anthropic", "claude-opus-5-5"));
    assert!(reads("claude-opus-5-5", "anthropic", "claude-opus-5-5-20260901"));
    assert!(reads("claude-opus-5-5", "anthropic", "claude-opus-5"));
    assert!(!reads("claude-opus-5-5", "anthropic", "claude-fable-5-1"));
    assert!(reads("claude-fable-5-1", "anthropic", "claude-opus-5-5"));
    assert!(!reads("claude-opus-5", "anthropic", "claude-opus-5-5"));
    assert!(!reads("claude-sonnet-5-5", "anthropic", "claude-opus-5"));
    assert!(!reads("claude-opus-5-5", "openai", "claude-opus-5-5"));
    assert!(reads("gpt-5.5", "openai", "gpt-5.5-2026-04-01"));
    assert!(!reads("gpt-5.5", "openai", "gpt-5.6-sol"));
}

#[test]
fn a_file_corrects_one_fact_and_adds_models() {
    let file = r#"
        as_of = "2026-12-24"
        [models."gpt-4o"]
        window = 64_000
        [models."gpt-4.1"]
        prices = { input = 3, cached = 0.75, output = 9 }
        [models.mine]
        like = "claude-opus-5-5"
        provider = "here"
        [models.own]
        wire = "openai_chat"
        window = 8_192
    "#;
    let all = Catalogue::built_in().with(&Catalogue::parse(file).unwrap()).unwrap();
    let target = |name: &str| all.target(name).unwrap();
    assert_eq!(target("gpt-4o").window, Some(Tokens(64_000)));
    assert_eq!(target("gpt-4o").prices, Target::named("gpt-4o").unwrap().prices);
    assert_eq!((target("gpt-4.1").prices.input, &*target("gpt-4.1").prices.as_of), (3.0, "2026-12-24"));
    assert_eq!(target("gpt-4.1").window, Target::named("gpt-4.1").unwrap().window);
    let opus = Target::named("claude-opus-5-5").unwrap();
    assert_eq!(target("mine"), Target { name: "mine".into(), provider: "here".into(), ..opus });
    assert_eq!(target("own").calibration, recto::calibration::Calibration::unknown());
    let json = r#"{"models": {"gpt-4o": {"window": 64000}}}"#;
    let from_json = Catalogue::built_in().with(&Catalogue::parse(json).unwrap()).unwrap();
    assert_eq!(from_json.target("gpt-4o"), all.target("gpt-4o"));
}

#[test]
fn mistakes_in_a_file_are_named_with_their_place() {
    let told = |file: &str| match Catalogue::parse(file).and_then(|it| Catalogue::built_in().with(&it)) {
        Ok(_) => panic!("{file} was taken"),
        Err(error) => error.to_string(),
    };
    assert!(told("[models.x]\nwindw = 3").starts_with("line 2, column 1: unknown field `windw`"));
    assert!(told("[models.x]\nwire = \"smoke\"").starts_with("line 2, column 8: unknown variant `smoke`"));
    assert!(told("{\"models\": {\"x\": {\"window\": -1}}}").starts_with("line 1, column"));
    assert!(told("[models.x]\nlike = \"y\"").contains("is like \"y\", which leads nowhere"));
    assert!(told("[models.x]\nlike = \"x\"").contains("leads nowhere"));
}

#[test]
fn of_an_unknown_model_little_is_taken_for_granted() {
    let target = Target::unknown("llama-at-home");
    assert_eq!((target.wire, target.window), (Wire::OpenaiChat, Some(Tokens(32_000))));
    assert!(target.merges && target.late_system == LateSystem::ToUser && !target.is_counted_exactly);
    let claude = Target::unknown("claude-next");
    assert_eq!((claude.wire, claude.window), (Wire::Anthropic, Some(Tokens(200_000))));
}
