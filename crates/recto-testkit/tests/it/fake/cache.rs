//! What three turns of one conversation read from the cache and write to it. A token is four bytes.

use super::{ask, path, with};
use recto_testkit::fake::{Api, Count, Incoming, Provider, Settings};
use serde_json::{Value, json};

fn text(tokens: usize, letter: char) -> String {
    letter.to_string().repeat(tokens * 4)
}

fn marked(text: &str, ttl: &str) -> Value {
    json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}})
}

/// System text of 600 tokens, then turns of 100 and 10; the newest one is marked.
fn anthropic(model: &str, turns: usize) -> Value {
    let mut messages = Vec::new();
    for turn in 1..=turns {
        let says = text(100, 'u');
        let newest = json!({"role": "user", "content": [marked(&says, "5m")]});
        messages.push(if turn == turns { newest } else { json!({"role": "user", "content": says}) });
        if turn < turns {
            messages.push(json!({"role": "assistant", "content": text(10, 'a')}));
        }
    }
    json!({"model": model, "max_tokens": 100, "system": [marked(&text(600, 's'), "1h")], "messages": messages})
}

/// Returns uncached, read, written for 5 minutes, written for an hour.
#[track_caller]
fn paid(provider: &mut Provider, body: &Value) -> [u64; 4] {
    let usage = &ask(provider, Api::Messages, body).json()["usage"];
    let of = |pointer: &str| usage.pointer(pointer).unwrap().as_u64().unwrap();
    let written = [of("/cache_creation/ephemeral_5m_input_tokens"), of("/cache_creation/ephemeral_1h_input_tokens")];
    assert_eq!(of("/cache_creation_input_tokens"), written[0] + written[1]);
    [of("/input_tokens"), of("/cache_read_input_tokens"), written[0], written[1]]
}

#[test]
fn anthropic_writes_at_marks_and_reads_before_them() {
    let mut provider = Provider::default();
    let model = "claude-opus-5-5";
    assert_eq!(paid(&mut provider, &anthropic(model, 1)), [0, 0, 100, 600]);
    assert_eq!(paid(&mut provider, &anthropic(model, 2)), [0, 700, 110, 0]);
    assert_eq!(paid(&mut provider, &anthropic(model, 3)), [0, 810, 110, 0]);
    assert_eq!(paid(&mut provider, &anthropic(model, 3)), [0, 920, 0, 0]);
    let edited = with(&anthropic(model, 3), &[("/messages/0/content", json!("edited"))]);
    assert_eq!(paid(&mut provider, &edited), [0, 600, 222, 0]);
    let chosen = with(&anthropic(model, 3), &[("/output_config", json!({"effort": "low"}))]);
    assert_eq!(paid(&mut provider, &chosen), [0, 600, 320, 0]);
    assert_eq!(paid(&mut provider, &anthropic("claude-fable-5-1", 1)), [0, 0, 100, 600]);
    provider.expire("5m");
    assert_eq!(paid(&mut provider, &anthropic(model, 3)), [0, 600, 320, 0]);
}

#[test]
fn anthropic_caches_nothing_that_is_short_or_unmarked() {
    let mut provider = Provider::default();
    for _ in 0..2 {
        assert_eq!(paid(&mut provider, &anthropic("claude-haiku-4-5", 2)), [810, 0, 0, 0]);
    }
    let mut provider = Provider::new(Settings { cache_minimum: Some(700), ..Settings::default() });
    assert_eq!(paid(&mut provider, &anthropic("claude-haiku-4-5", 1)), [0, 0, 700, 0]);
    let mut provider = Provider::default();
    let unmarked = with(
        &anthropic("claude-opus-5-5", 1),
        &[("/system", json!(text(600, 's'))), ("/messages/0/content", json!("x"))],
    );
    assert_eq!(paid(&mut provider, &unmarked), [601, 0, 0, 0]);
    let automatic = with(&unmarked, &[("/cache_control", json!({"type": "ephemeral"}))]);
    assert_eq!(paid(&mut provider, &automatic), [0, 0, 601, 0]);
}

#[test]
fn anthropic_looks_back_twenty_positions() {
    let blocks = |count: usize| {
        let mut blocks = vec![marked(&text(600, 's'), "5m")];
        blocks.extend((1..count).map(|at| json!({"type": "text", "text": format!("b{at:03}")})));
        blocks.push(marked("last", "5m"));
        json!({"model": "claude-opus-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": blocks}]})
    };
    let mut provider = Provider::default();
    let first = with(&blocks(1), &[("/messages/0/content/0", marked(&text(600, 's'), "5m"))]);
    assert_eq!(paid(&mut provider, &first), [0, 0, 601, 0]);
    let unmark = |body: Value| with(&body, &[("/messages/0/content/0/cache_control", Value::Null)]);
    assert_eq!(paid(&mut provider, &unmark(blocks(20))), [0, 600, 20, 0]);
    provider.expire("5m");
    paid(&mut provider, &first);
    assert_eq!(paid(&mut provider, &unmark(blocks(21))), [0, 0, 621, 0]);
}

/// Instructions of 1000 tokens, then turns of 100 and 10.
fn openai(api: Api, model: &str, turns: usize) -> Value {
    let mut messages = vec![json!({"role": "developer", "content": text(1000, 's')})];
    for turn in 1..=turns {
        messages.push(json!({"role": "user", "content": text(100, 'u')}));
        if turn < turns {
            messages.push(json!({"role": "assistant", "content": text(10, 'a')}));
        }
    }
    let list = if api == Api::Chat { "messages" } else { "input" };
    json!({"model": model, list: messages})
}

/// Returns total, read, written.
#[track_caller]
fn used(provider: &mut Provider, api: Api, body: &Value) -> [u64; 3] {
    let usage = &ask(provider, api, body).json()["usage"];
    let side = if api == Api::Chat { "prompt" } else { "input" };
    let details = &usage[format!("{side}_tokens_details")];
    [&usage[format!("{side}_tokens")], &details["cached_tokens"], &details["cache_write_tokens"]]
        .map(|tokens| tokens.as_u64().unwrap())
}

#[test]
fn older_openai_models_read_on_a_grid_and_write_nothing() {
    for api in [Api::Chat, Api::Responses] {
        let mut provider = Provider::default();
        let mut turn = |model: &str, turns: usize| used(&mut provider, api, &openai(api, model, turns));
        assert_eq!(turn("gpt-4o", 1), [1100, 0, 0]);
        assert_eq!(turn("gpt-4o", 2), [1210, 1024, 0]);
        assert_eq!(turn("gpt-4o", 3), [1320, 1152, 0]);
        assert_eq!(turn("gpt-4.1", 3), [1320, 0, 0]);
        let long = |turns: usize, provider: &mut Provider| {
            let list = if api == Api::Chat { "/messages/0/content" } else { "/input/0/content" };
            used(provider, api, &with(&openai(api, "gpt-5.5", turns), &[(list, json!(text(3000, 's')))]))
        };
        assert_eq!(long(1, &mut provider), [3100, 0, 0]);
        assert_eq!(long(2, &mut provider), [3210, 2048, 0]);
    }
}

#[test]
fn newer_openai_models_write_at_the_newest_message() {
    for api in [Api::Chat, Api::Responses] {
        let mut provider = Provider::default();
        let mut turn = |body: &Value| used(&mut provider, api, body);
        let of = |turns: usize| openai(api, "gpt-5.6-sol", turns);
        assert_eq!(turn(&of(1)), [1100, 0, 1100]);
        assert_eq!(turn(&of(2)), [1210, 1100, 110]);
        assert_eq!(turn(&of(3)), [1320, 1210, 110]);
        let effort = if api == Api::Chat {
            ("/reasoning_effort", json!("low"))
        } else {
            ("/reasoning", json!({"effort": "low"}))
        };
        assert_eq!(turn(&with(&of(3), &[effort])), [1320, 0, 1320]);
        let explicit = with(&of(3), &[("/prompt_cache_options", json!({"mode": "explicit"}))]);
        assert_eq!(turn(&explicit), [1320, 0, 0]);
    }
}

#[test]
fn explicit_marks_are_written_with_their_lifetime() {
    let mut provider = Provider::default();
    let system = json!([{"type": "input_text", "text": text(1024, 's'),
        "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}]);
    let body = |asks: &str| {
        let changes = [("/input/0/content", system.clone()), ("/input/1/content", json!(asks))];
        with(&openai(Api::Responses, "gpt-6-sol", 1), &changes)
    };
    let usage = ask(&mut provider, Api::Responses, &body("one.")).json()["usage"].clone();
    let written = &usage["input_tokens_details"]["cache_write_tokens_details"];
    assert_eq!(written, &json!({"ttl_30m_tokens": 1, "ttl_12h_tokens": 1024}));
    assert_eq!(used(&mut provider, Api::Responses, &body("two.")), [1025, 1024, 1]);
}

#[test]
fn a_cache_can_be_filled_without_an_answer() {
    let mut provider = Provider::default();
    let model = "claude-opus-5-5";
    let fill = with(&anthropic(model, 1), &[("/max_tokens", json!(0))]);
    let answer = ask(&mut provider, Api::Messages, &fill).json();
    assert_eq!((&answer["content"], &answer["stop_reason"]), (&json!([]), &json!("max_tokens")));
    assert_eq!(paid(&mut provider, &anthropic(model, 1)), [0, 700, 0, 0]);
    let fill = with(&openai(Api::Responses, "gpt-6-sol", 1), &[("/prompt_cache_options", json!({"prewarm": true}))]);
    assert_eq!(ask(&mut provider, Api::Responses, &fill).json()["output"], json!([]));
    assert_eq!(used(&mut provider, Api::Responses, &openai(Api::Responses, "gpt-6-sol", 1)), [1100, 1100, 0]);
}

#[test]
fn a_prompt_that_does_not_fit_is_refused() {
    let settings =
        Settings { window: Some(800), count: Count::by(|text| text.len() as u64 / 4), ..Settings::default() };
    let mut provider = Provider::new(settings);
    let mut answer = |api: Api, body: &Value| provider.answer(&Incoming::post(path(api), body));
    assert_eq!(answer(Api::Messages, &anthropic("claude-opus-5-5", 1)).status, 200);
    let refused = answer(Api::Messages, &anthropic("claude-opus-5-5", 2));
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["message"], "prompt is too long: 910 tokens > 800 maximum");
    for api in [Api::Chat, Api::Responses] {
        let refused = answer(api, &openai(api, "gpt-4o", 1));
        assert_eq!(refused.status, 400);
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "context_length_exceeded");
        assert!(error["message"].as_str().unwrap().contains("maximum context length is 800 tokens"), "{error}");
    }
    let cut = with(&openai(Api::Responses, "gpt-4o", 1), &[("/truncation", json!("auto"))]);
    assert_eq!(answer(Api::Responses, &cut).status, 200);
}
