//! Responses over the Chat Completions wire: whole and streamed ones say the same, and nothing that came is lost.

use expect_test::expect;
use recto::entry::{Call, Reasoning, Status};
use recto::wire::{Reply, Stop, Usage, Wire, openai_chat};
use recto::{Error, Part, Role, Tokens};
use serde_json::{Value, json};

#[test]
fn a_reply_is_read_with_what_it_used() {
    let body = r#"{"id": "x", "choices": [{"index": 0, "finish_reason": "tool_calls", "message":
        {"role": "assistant", "content": "let me look", "refusal": null, "reasoning_content": "hm", "tool_calls":
        [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}}]}}],
        "usage": {"prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306,
        "prompt_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 12, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 100}}}"#;
    let reply = openai_chat::decode_reply(body).unwrap();
    let usage = Usage { input: Tokens(2006), cached: Tokens(1920), written: Tokens(12), output: Tokens(300) };
    assert_eq!(reply.usage, Some(usage));
    let thought = Part::Reasoning(Reasoning { text: "hm".into(), ..Reasoning::default() });
    let parts = [thought, Part::text("let me look"), Part::Call(Call::new("a", "look", "{\"at\": 1}"))];
    assert_eq!((reply.entry.role, &*reply.entry.parts), (Role::Assistant, &parts[..]));
    assert!(reply.entry.extra.is_empty(), "a refusal that is null is none");
    assert_eq!((reply.id.as_deref(), reply.stop), (Some("x"), Some(Stop::Calls)));
}

#[test]
fn a_reply_need_not_say_what_it_used() {
    let reply = |usage: &str| {
        let body = format!(r#"{{"choices": [{{"message": {{"role": "assistant", "content": "hi"}}}}]{usage}}}"#);
        openai_chat::decode_reply(&body).unwrap().usage
    };
    assert_eq!((reply(""), reply(r#", "usage": null"#)), (None, None));
    let plain = Usage { input: Tokens(7), output: Tokens(2), ..Usage::default() };
    assert_eq!(reply(r#", "usage": {"prompt_tokens": 7, "completion_tokens": 2}"#), Some(plain));
    let details = r#", "usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": null}"#;
    assert_eq!(reply(details), Some(plain));
}

#[test]
fn what_is_no_reply_is_refused() {
    let wrong = [
        "{}",
        r#"{"choices": []}"#,
        r#"{"choices": [{"delta": {}}]}"#,
        r#"{"choices": [{"message": {"role": "user", "content": "hi"}}]}"#,
        r#"{"choices": 7}"#,
        r#"{"choices": [{"message": {"role": "assistant"}}], "usage": {"prompt_tokens": -1}}"#,
        r#"{"choices""#,
    ];
    expect![[r#"
        no "choices" in it
        no message in its first choice
        no message in its first choice
        line 1, column 26: the reply is not an assistant's
        line 1, column 13: choices: invalid type: integer `7`, expected a sequence
        line 1, column 79: usage: invalid value: integer `-1`, expected u64
        line 1, column 10: EOF while parsing an object"#]]
    .assert_eq(&wrong.map(|body| openai_chat::decode_reply(body).unwrap_err().to_string()).join("\n"));
}

fn streamed(events: &[Value]) -> Result<Reply, Error> {
    let mut stream = Wire::OpenaiChat.stream();
    for event in events {
        match event.as_str() {
            Some(data) => stream.event(data)?,
            None => stream.event(&event.to_string())?,
        }
    }
    stream.finish()
}

/// The chunk of a delta.
fn chunk(delta: Value) -> Value {
    json!({"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
}

fn ended(reason: &str) -> Value {
    json!({"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// What both ways of the same response give.
#[track_caller]
fn same(message: &Value, reason: &str, deltas: &[Value]) -> Reply {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 5});
    let body = json!({"id": "r", "model": "m", "usage": usage,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}]});
    let whole = openai_chat::decode_reply(&body.to_string()).unwrap();
    let last = json!({"id": "r", "choices": [], "usage": usage});
    let events = deltas.iter().cloned().map(chunk).chain([ended(reason), last, json!("[DONE]")]);
    let stream = streamed(&events.collect::<Vec<_>>()).unwrap();
    assert_eq!(stream, whole);
    assert_eq!(whole.usage.unwrap().cached, Tokens(5));
    assert_eq!((whole.id.as_deref(), whole.model.as_deref()), (Some("r"), Some("m")));
    assert_eq!(whole.entry.status, Status::Sent);
    whole
}

#[test]
fn words_thoughts_and_calls_come_the_same_in_pieces() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}});
    let piece = |index: u64, text: &str| json!({"index": index, "function": {"arguments": text}});
    let first = |index: u64, id: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": "look", "arguments": ""}});
    let reply = same(
        &json!({"role": "assistant", "content": "let me", "reasoning_content": "hm, yes", "refusal": null,
            "annotations": [], "tool_calls": [call("a", "{\"at\":1}"), call("b", "{}")]}),
        "tool_calls",
        &[
            json!({"role": "assistant", "content": ""}),
            json!({"reasoning_content": "hm,"}),
            json!({"reasoning_content": " yes"}),
            json!({"content": "let"}),
            json!({"content": " me"}),
            json!({"tool_calls": [first(0, "a")]}),
            json!({"tool_calls": [piece(0, "{\"at\"")]}),
            json!({"tool_calls": [first(1, "b"), piece(0, ":1}")]}),
            json!({"tool_calls": [piece(1, "{}")]}),
        ],
    );
    let thought = Part::Reasoning(Reasoning { text: "hm, yes".into(), ..Reasoning::default() });
    let calls = [("a", "{\"at\":1}"), ("b", "{}")].map(|(id, given)| Part::Call(Call::new(id, "look", given)));
    let parts: Vec<Part> = [thought, Part::text("let me")].into_iter().chain(calls).collect();
    assert_eq!((&*reply.entry.parts, reply.stop), (&parts[..], Some(Stop::Calls)));
    assert!(reply.entry.extra.is_empty());
}

#[test]
fn refusals_custom_calls_and_unknown_fields_come_the_same_in_pieces() {
    let reply = same(
        &json!({"role": "assistant", "content": null, "refusal": "I won't."}),
        "stop",
        &[json!({"role": "assistant", "content": null}), json!({"refusal": "I "}), json!({"refusal": "won't."})],
    );
    assert_eq!(reply.stop, Some(Stop::Refused));
    assert!(matches!(&reply.entry.parts[0], Part::Opaque { payload, .. } if payload.contains("I won't.")));

    let seal = |text: &str| json!({"type": "reasoning.encrypted", "data": text});
    let signature = json!({"google": {"thought_signature": "AAAA"}});
    let reply = same(
        &json!({"role": "assistant", "content": null, "reasoning": "hm", "reasoning_details": [seal("a"), seal("b")],
            "tool_calls": [
                {"id": "a", "type": "custom", "custom": {"name": "patch", "input": "*** a"}},
                {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signature}]}),
        "stop",
        &[
            json!({"role": "assistant", "reasoning": "hm", "reasoning_details": [seal("a")]}),
            json!({"reasoning_details": [seal("b")]}),
            json!({"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": "***"}}]}),
            json!({"tool_calls": [{"index": 0, "custom": {"input": " a"}}]}),
            json!({"tool_calls": [{"index": 1, "id": "b", "type": "function", "extra_content": signature,
                "function": {"name": "f", "arguments": "{}"}}]}),
        ],
    );
    assert_eq!(reply.stop, Some(Stop::Calls), "some servers say stop although they call");
    let extra = &reply.entry.extra["openai_chat"];
    assert_eq!(extra["message"], json!({"reasoning_details": [seal("a"), seal("b")]}));
    assert_eq!(extra["parts"], json!({"1": {"type": "custom"}, "2": {"extra_content": signature}}));
}

#[test]
fn servers_that_number_no_calls_or_all_the_same_are_understood() {
    let call = |id: &str| json!({"id": id, "function": {"name": "f", "arguments": "{}"}});
    let numbered = |id: &str| json!({"index": 0, "id": id, "function": {"name": "f", "arguments": "{}"}});
    for calls in [json!([call("a"), call("b")]), json!([numbered("a"), numbered("b")])] {
        let reply = streamed(&[chunk(json!({"tool_calls": calls})), ended("tool_calls")]).unwrap();
        let ids: Vec<&str> = reply.entry.calls().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
    }
    let nameless = json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": {"a": 1}}}]});
    let reply = streamed(&[chunk(nameless), ended("tool_calls")]).unwrap();
    assert_eq!(&*reply.entry.parts, [Part::Call(Call::new("call_0", "f", "{\"a\":1}"))]);
}

#[test]
fn a_stream_without_its_end_keeps_what_came() {
    let events = [
        chunk(json!({"role": "assistant", "content": ""})),
        chunk(json!({"content": "half an ans"})),
        chunk(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"a"}}]})),
    ];
    let reply = streamed(&events).unwrap();
    let parts = [Part::text("half an ans"), Part::Call(Call::new("a", "look", "{\"a"))];
    assert_eq!((&*reply.entry.parts, reply.entry.status), (&parts[..], Status::Error));
    assert_eq!((reply.stop, reply.usage), (None, None));
    assert_eq!(streamed(&events[..1]).unwrap().entry.status, Status::Error);
    assert!(streamed(&[]).is_err());
    // The end alone is an answer without words.
    assert_eq!(streamed(&[chunk(json!({})), json!("[DONE]")]).unwrap().entry.status, Status::Sent);
}

#[test]
fn an_error_in_a_stream_is_told() {
    let error = json!({"error": {"message": "overloaded", "code": 503}});
    let reply = streamed(&[chunk(json!({"content": "so"})), error.clone()]).unwrap();
    assert_eq!((reply.entry.status, &reply.entry.meta["error"]), (Status::Error, &json!("overloaded")));
    assert_eq!(&*reply.entry.parts, [Part::text("so")]);
    let alone = streamed(&[json!({"error": "no such model"})]).unwrap();
    assert_eq!((alone.entry.status, &alone.entry.meta["error"]), (Status::Error, &json!("no such model")));
    let with_choice = json!({"id": "r", "error": {"code": 502, "message": "gone"},
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]});
    assert_eq!(streamed(&[with_choice]).unwrap().entry.meta["error"], "gone");
    let refused = openai_chat::decode_reply(&error.to_string()).unwrap_err();
    assert_eq!(refused.to_string(), "the provider answers with an error: overloaded");
}

#[test]
fn every_end_has_its_meaning_and_other_events_none() {
    let stop = |reason: &str| streamed(&[chunk(json!({"content": "a"})), ended(reason)]).unwrap().stop;
    let meanings = ["stop", "length", "content_filter", "tool_calls", "eos"].map(stop);
    let expected = [Some(Stop::End), Some(Stop::Length), Some(Stop::Refused), Some(Stop::Calls), None];
    assert_eq!(meanings, expected);
    let mut stream = Wire::OpenaiChat.stream();
    for data in ["", "  ", r#"{"object": "ping"}"#, r#"{"choices": null}"#, r#"{"choices": []}"#] {
        stream.event(data).unwrap();
    }
    stream.event(r#"{"choices": [{"index": 1, "delta": {"content": "another choice"}}]}"#).unwrap();
    assert!(stream.event("{\"choices\"").is_err() && stream.event(r#"{"choices": 7}"#).is_err());
    assert!(stream.finish().unwrap().entry.parts.is_empty());
}
