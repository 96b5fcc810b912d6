//! Replies: streamed and whole they are the same, and what was cut off is kept.

use recto::entry::{Arguments, Status};
use recto::wire::anthropic::{Stream, decode_reply};
use recto::wire::{Reply, Stop, Usage};
use recto::{Part, Tokens};
use serde_json::{Value, json};

/// A reply with blocks of every kind.
fn whole() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use",
        "stop_sequence": null,
        "content": [
            {"type": "thinking", "thinking": "hm, so", "signature": "s=="},
            {"type": "redacted_thinking", "data": "xx"},
            {"type": "text", "text": "It is \"ü\".\n", "citations": [{"type": "char_location", "cited_text": "a"}]},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"path": "a", "n": [1, 2]}},
            {"type": "tool_use", "id": "toolu_2", "name": "stop", "input": {}},
            {"type": "compaction", "content": "so far"},
        ],
        "usage": {"input_tokens": 8, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 50},
    })
}

/// The events that stream it, every text in two pieces.
fn events() -> Vec<Value> {
    let reply = whole();
    let started = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5",
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 8, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 1}});
    let mut events = vec![json!({"type": "message_start", "message": started}), json!({"type": "ping"})];
    for (index, block) in reply["content"].as_array().unwrap().iter().enumerate() {
        let mut start = block.clone();
        let mut deltas = Vec::new();
        let mut halves = |kind: &str, field: &str, text: &str| {
            let middle = text.char_indices().map(|(at, _)| at).nth(text.chars().count() / 2).unwrap_or(0);
            for piece in [&text[..middle], &text[middle..]] {
                deltas.push(json!({"type": kind, field: piece}));
            }
        };
        match block["type"].as_str().unwrap() {
            "thinking" => {
                (start["thinking"], start["signature"]) = (json!(""), json!(""));
                halves("thinking_delta", "thinking", block["thinking"].as_str().unwrap());
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
            "text" => {
                (start["text"], start["citations"]) = (json!(""), json!([]));
                halves("text_delta", "text", block["text"].as_str().unwrap());
                deltas.push(json!({"type": "citations_delta", "citation": block["citations"][0]}));
            }
            "tool_use" | "server_tool_use" => {
                let input = block["input"].to_string();
                start["input"] = json!({});
                halves("input_json_delta", "partial_json", if input == "{}" { "" } else { &input });
            }
            "compaction" => {
                start["content"] = json!(null);
                halves("compaction_delta", "content", block["content"].as_str().unwrap());
            }
            _ => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.extend(
            deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_delta", "index": index, "delta": {"type": "new_delta"}}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "something_new", "x": 1}));
    let ending = json!({"stop_reason": "tool_use", "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 50}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn streamed(events: &[Value]) -> Result<Reply, recto::Error> {
    let mut stream = Stream::default();
    for event in events {
        stream.event(&event.to_string()).unwrap();
    }
    stream.finish()
}

#[test]
fn a_streamed_reply_is_the_same_as_a_whole_one() {
    let reply = decode_reply(&whole().to_string()).unwrap();
    assert_eq!(streamed(&events()).unwrap(), reply);
    assert_eq!((reply.id.as_deref(), reply.model.as_deref()), (Some("msg_1"), Some("claude-opus-5-5")));
    assert_eq!((reply.stop, reply.entry.status), (Some(Stop::Calls), Status::Sent));
    let usage = Usage { input: Tokens(1108), cached: Tokens(1000), written: Tokens(100), output: Tokens(50) };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(reply.entry.parts.len(), 8);
    assert_eq!(reply.entry.extra["anthropic"]["parts"]["2"]["citations"][0]["cited_text"], "a");
}

#[test]
fn a_stream_that_is_cut_anywhere_keeps_what_there_was() {
    let events = events();
    let text_of = |reply: &Reply| -> usize { format!("{:?}", reply.entry.parts).len() };
    let mut before = 0;
    assert!(streamed(&[]).is_err());
    for end in 1..events.len() {
        let reply = streamed(&events[..end]).unwrap();
        assert_eq!(reply.entry.status, Status::Error, "cut at {end}");
        assert!(text_of(&reply) >= before, "cut at {end}: something was lost");
        before = text_of(&reply);
    }
    assert_eq!(before, text_of(&streamed(&events).unwrap()));
    // Arguments that were cut off are kept as text.
    let is_half = |event: &Value| event["index"] == 5 && event["delta"]["type"] == "input_json_delta";
    let half = events.iter().position(is_half).unwrap();
    let reply = streamed(&events[..=half]).unwrap();
    let Some(Part::Call(call)) = reply.entry.parts.last() else { panic!("no call") };
    assert!(matches!(&call.arguments, Arguments::String(text) if text.starts_with("{\"n\":")), "{call:?}");
}

#[test]
fn an_error_event_is_told() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let mut events = events();
    events.insert(6, error.clone());
    let reply = streamed(&events).unwrap();
    assert_eq!(
        (reply.entry.status, &reply.entry.meta["error"]),
        (Status::Error, &json!("overloaded_error: Overloaded"))
    );
    assert_eq!(reply.entry.parts.len(), 8);
    let alone = streamed(std::slice::from_ref(&error)).unwrap();
    assert_eq!((alone.entry.parts.len(), alone.entry.status), (0, Status::Error));
    let refused = decode_reply(&error.to_string()).unwrap_err().to_string();
    assert!(refused.contains("overloaded_error: Overloaded"), "{refused}");
}

#[test]
fn reasons_to_stop_and_odd_replies() {
    let reasons = [
        ("end_turn", Some(Stop::End)),
        ("stop_sequence", Some(Stop::End)),
        ("max_tokens", Some(Stop::Length)),
        ("tool_use", Some(Stop::Calls)),
        ("pause_turn", Some(Stop::Paused)),
        ("refusal", Some(Stop::Refused)),
        ("model_context_window_exceeded", Some(Stop::Window)),
        ("something_new", None),
    ];
    for (reason, stop) in reasons {
        let body = json!({"role": "assistant", "content": [], "stop_reason": reason});
        let reply = decode_reply(&body.to_string()).unwrap();
        assert_eq!((reply.stop, reply.usage, reply.id), (stop, None, None), "{reason}");
    }
    for wrong in ["", "[]", "{}", r#"{"content":3}"#, r#"{"role":"user","content":[]}"#] {
        assert!(decode_reply(wrong).is_err(), "{wrong}");
    }
    let mut stream = Stream::default();
    assert!(stream.event("{").is_err());
    assert!(stream.event("{}").is_err());
    let early = json!({"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}});
    assert!(stream.event(&early.to_string()).unwrap_err().to_string().contains("block 3, which has not begun"));
    stream.event("").unwrap();
    assert!(stream.finish().is_err());
}
