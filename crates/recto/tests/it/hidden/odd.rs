//! Servers that tell things in their own way.

use super::{TOOL, asked, provider, streamed};
use recto::Part;
use recto::entry::{Call, Status};
use recto::wire::hidden::{HIDDEN_BYTES_MAX, Hiding, Round};
use recto::wire::{Stop, Wire, sse};
use recto_testkit::fake;
use serde_json::{Value, json};

/// A stream of chunks, and the word that ends it.
fn chunks(id: &str, chunks: &[Value]) -> String {
    let chunk = |given: &Value| {
        let mut chunk = json!({"id": id, "object": "chat.completion.chunk", "created": id.len(), "model": "m"});
        chunk.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        format!("data: {chunk}\n\n")
    };
    chunks.iter().map(chunk).chain(["data: [DONE]\n\n".to_string()]).collect()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// A piece of a call.
fn piece(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    let mut piece = json!({"index": index, "function": {"arguments": arguments}});
    if !id.is_empty() {
        (piece["id"], piece["type"]) = (id.into(), "function".into());
    }
    if !name.is_empty() {
        piece["function"]["name"] = name.into();
    }
    delta(json!({"tool_calls": [piece]}))
}

/// Pushes a round, and returns what the client gets at once and what it came to.
fn pushed(hiding: &mut Hiding, text: &str) -> (String, Round) {
    let client = hiding.push(text.as_bytes()).unwrap();
    (String::from_utf8(client).unwrap(), hiding.round())
}

fn events(text: &str) -> Vec<Value> {
    let events = sse::Reader::default().push(text.as_bytes()).unwrap();
    events.iter().map(|event| serde_json::from_str(&event.data).unwrap_or(Value::Null)).collect()
}

#[test]
fn a_chunk_may_say_call_and_end_all_at_once() {
    let mut hiding = Hiding::new(Wire::OpenaiChat, TOOL);
    let all = |usage: u64| {
        json!({"choices": [{"index": 0, "finish_reason": "stop", "delta": {"role": "assistant", "content": "I look.",
            "tool_calls": [{"index": 0, "id": "c1", "type": "function",
                "function": {"name": TOOL, "arguments": "{\"a\":1}"}}]}}],
            "usage": {"prompt_tokens": usage, "completion_tokens": 1}})
    };
    let (client, came_to) = pushed(&mut hiding, &chunks("one", &[all(10)]));
    assert_eq!(came_to, Round::Called { calls: vec![Call::new("c1", TOOL, "{\"a\":1}")] });
    let told = events(&client);
    assert_eq!(told.len(), 1, "{client}");
    let expected = json!([{"index": 0, "delta": {"role": "assistant", "content": "I look."}, "finish_reason": null}]);
    assert_eq!((&told[0]["choices"], &told[0]["usage"]), (&expected, &Value::Null));

    let (more, came_to) = pushed(&mut hiding, &chunks("two", &[all(20)]));
    assert!(matches!(came_to, Round::Called { .. }));
    let heard = streamed(Wire::OpenaiChat, &(client + &more + &String::from_utf8(hiding.give_up()).unwrap()));
    assert_eq!((heard.id.as_deref(), heard.stop), (Some("one"), Some(Stop::End)));
    assert_eq!(*heard.entry.parts, [Part::text("I look.I look.")]);
    let usage = heard.usage.unwrap();
    assert_eq!((usage.input.0, usage.output.0), (30, 2));
}

#[test]
fn a_call_whose_name_comes_late_waits_for_it() {
    let late = |name: &str| {
        let calls =
            [piece(0, "c1", "", ""), delta(json!({"content": "x"})), piece(0, "", name, "{"), piece(0, "", "", "}")];
        chunks("one", &[calls.to_vec(), vec![finish("tool_calls")]].concat())
    };
    let mut hiding = Hiding::new(Wire::OpenaiChat, TOOL);
    let (client, came_to) = pushed(&mut hiding, &late(TOOL));
    assert_eq!(came_to, Round::Called { calls: vec![Call::new("c1", TOOL, "{}")] });
    assert_eq!(events(&client).len(), 1, "the text alone: {client}");

    for name in ["read_file", ""] {
        let (client, came_to) = pushed(&mut Hiding::new(Wire::OpenaiChat, TOOL), &late(name));
        assert_eq!((client.as_str(), came_to), (late(name).as_str(), Round::Ended { bytes: Vec::new() }));
    }
}

#[test]
fn calls_that_all_have_the_same_number_are_told_apart_by_their_ids() {
    let calls = [piece(0, "c1", "read_file", "{}"), piece(0, "c2", TOOL, "{\"a\":"), piece(0, "c2", "", "1}")];
    let more = [piece(0, "c3", "read_file", "{\"b\":"), piece(0, "", "", "2}"), finish("tool_calls")];
    let text = chunks("one", &[calls, more].concat());
    let (client, came_to) = pushed(&mut Hiding::new(Wire::OpenaiChat, TOOL), &text);
    assert_eq!(came_to, Round::Mixed { bytes: Vec::new(), calls: vec![Call::new("c2", TOOL, "{\"a\":1}")] });
    let heard = streamed(Wire::OpenaiChat, &client).entry;
    let expected = [Call::new("c1", "read_file", "{}"), Call::new("c3", "read_file", "{\"b\":2}")];
    assert_eq!(heard.calls().cloned().collect::<Vec<_>>(), expected, "{client}");
}

#[test]
fn a_role_that_is_said_with_every_chunk_is_said_by_the_first_round_alone() {
    let round = |id: &str, text: &str| {
        let said = |text: &str| delta(json!({"role": "assistant", "content": "", "reasoning_content": text, "x": [1]}));
        chunks(id, &[said(text), delta(json!({"role": "assistant"})), piece(0, id, TOOL, "{}"), finish("tool_calls")])
    };
    let mut hiding = Hiding::new(Wire::OpenaiChat, TOOL);
    let (first, _) = pushed(&mut hiding, &round("one", "hm"));
    assert_eq!(events(&first).iter().filter(|it| it["choices"][0]["delta"]["role"] == "assistant").count(), 2);
    let (second, _) = pushed(&mut hiding, &round("two", "so"));
    let second = events(&second);
    assert_eq!(second.len(), 1, "{second:?}");
    assert_eq!(second[0]["choices"][0]["delta"], json!({"content": "", "reasoning_content": "so", "x": [1]}));
}

#[test]
fn choices_beside_the_first_are_passed_on() {
    let two = json!({"choices": [
        {"index": 1, "delta": {"content": "other"}, "finish_reason": null},
        {"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": TOOL, "arguments": "{}"}}]},
            "finish_reason": null}]});
    let text = chunks("one", &[two, finish("tool_calls")]);
    let (client, came_to) = pushed(&mut Hiding::new(Wire::OpenaiChat, TOOL), &text);
    assert!(matches!(came_to, Round::Called { .. }));
    let expected = json!([{"index": 1, "delta": {"content": "other"}, "finish_reason": null},
        {"index": 0, "delta": {}, "finish_reason": null}]);
    assert_eq!(events(&client)[0]["choices"], expected);
}

#[test]
fn whole_messages_keep_every_field_and_its_spelling() {
    let round = |id: &str, text: &str, tool: &str| {
        format!(
            r#"{{"id":"{id}","created":1,"z":1.50,"model":"m","choices":[{{"index":0,"logprobs":{{"content":[{{"token":"{text}"}}],
            "refusal":null}},"finish_reason":"tool_calls","message":{{"role":"assistant","content":"{text}\ud83d","annotations":[
            "{text}" ],"own":{{"b":1,"a":"{text}"}},"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{tool}",
            "arguments":"{{\"a\": \"\udc00\"}}"}}}}]}}}}],"usage":{{"prompt_tokens":1,"completion_tokens":2,"cost":0.5}}}}"#
        )
    };
    let mut hiding = Hiding::new(Wire::OpenaiChat, TOOL);
    let first = hiding.whole(round("one", "a", TOOL).as_bytes()).unwrap();
    assert_eq!(first, Round::Called { calls: vec![Call::new("one", TOOL, "{\"a\": \"\u{fffd}\"}")] });
    let Round::Ended { bytes } = hiding.whole(round("two", "b", "read_file").as_bytes()).unwrap() else {
        panic!("the client alone is called")
    };
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with(r#"{"id":"one","created":1,"z":1.50,"model":"m","#), "{text}");
    assert!(text.contains(r#""content":"a\ud83db\ud83d""#) && text.contains(r#""own":{"b":1,"a":"b"}"#), "{text}");
    let value: Value = serde_json::from_str(&text.replace("\\ud83d", "").replace("\\udc00", "")).unwrap();
    let choice = &value["choices"][0];
    assert_eq!(choice["logprobs"]["content"], json!([{"token": "a"}, {"token": "b"}]));
    assert_eq!(choice["message"]["annotations"], json!(["a", "b"]));
    assert_eq!(choice["message"]["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(value["usage"], json!({"prompt_tokens": 2, "completion_tokens": 4, "cost": 1.0}));
}

#[test]
fn usage_that_comes_in_pieces_is_summed_once() {
    let message = |id: &str, input: u64, name: &str| {
        [
            json!({"type": "message_start", "message": {"id": id, "role": "assistant", "content": [], "model": "m",
                "usage": {"input_tokens": input, "cache_read_input_tokens": 100, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block":
                {"type": "tool_use", "id": id, "name": name, "input": {}}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ]
        .map(|data| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()))
        .concat()
    };
    let mut hiding = Hiding::new(Wire::Anthropic, TOOL);
    let (mut client, came_to) = pushed(&mut hiding, &message("one", 5, TOOL));
    let Round::Called { calls } = came_to else { panic!("{came_to:?}") };
    assert_eq!(calls[0].arguments.as_str(), "{}");
    let (more, came_to) = pushed(&mut hiding, &message("two", 50, "read_file"));
    assert_eq!(came_to, Round::Ended { bytes: Vec::new() });
    client += &more;
    let usage = &events(&client)[3]["usage"];
    assert_eq!(usage, &json!({"input_tokens": 55, "cache_read_input_tokens": 200, "output_tokens": 14}), "{client}");
    let heard = streamed(Wire::Anthropic, &client).usage.unwrap();
    assert_eq!((heard.input.0, heard.cached.0, heard.output.0), (255, 200, 14));
}

#[test]
fn errors_and_pings_of_a_later_round_are_passed_on() {
    let mut hiding = Hiding::new(Wire::Anthropic, TOOL);
    let first = asked(Wire::Anthropic, &mut provider(), fake::Reply::default().call(TOOL, "{}"), true);
    assert!(matches!(pushed(&mut hiding, &first).1, Round::Called { .. }));
    let second = asked(Wire::Anthropic, &mut provider(), fake::Reply::default().text("So."), true);
    let (start, ping) = (second.find("event: message_start").unwrap(), second.find("event: content").unwrap());
    let error =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n";
    let (client, came_to) = pushed(&mut hiding, &format!("{}{error}", &second[start..ping]));
    assert_eq!(client, format!("event: ping\ndata: {{\"type\":\"ping\"}}\n\n{error}"));
    assert_eq!(came_to, Round::Ended { bytes: Vec::new() });
}

#[test]
fn items_that_are_told_at_the_end_alone_are_hidden_there() {
    let item = |id: &str, name: &str| json!({"type": "function_call", "id": id, "call_id": id, "name": name, "arguments": "{}"});
    let round = |id: &str, items: Value| {
        let end = json!({"type": "response.completed", "sequence_number": 1, "response":
            {"id": id, "status": "completed", "output": items, "usage": {"input_tokens": 1, "output_tokens": 2}}});
        let start = json!({"type": "response.created", "sequence_number": 0, "response": {"id": id, "output": []}});
        format!("data: {start}\n\ndata: {end}\n\ndata: [DONE]\n\n")
    };
    let mut hiding = Hiding::new(Wire::OpenaiResponses, TOOL);
    let (mut client, came_to) = pushed(&mut hiding, &round("one", json!([item("a", TOOL)])));
    assert_eq!(came_to, Round::Called { calls: vec![Call::new("a", TOOL, "{}")] });
    let (more, came_to) = pushed(&mut hiding, &round("two", json!([item("b", TOOL), item("c", "read_file")])));
    assert!(matches!(came_to, Round::Mixed { .. }));
    client += &more;
    let told = events(&client);
    assert_eq!(told.len(), 3, "{client}");
    let response = &told[1]["response"];
    assert_eq!(told[1]["sequence_number"], 1);
    assert_eq!((&response["id"], &response["output"]), (&json!("one"), &json!([item("c", "read_file")])));
    assert_eq!(response["usage"], json!({"input_tokens": 2, "output_tokens": 4}));
}

#[test]
fn events_of_many_lines_and_of_no_last_line_are_read_as_others_are() {
    let text = chunks("one", &[piece(0, "c1", TOOL, "{}"), piece(1, "c2", "read_file", "{}"), finish("tool_calls")]);
    let spread = text.replace("},", "}\r\ndata: ,").replace("[{", "[\r\ndata: {").replace("\n\n", "\r\n\r\n");
    let spread = spread.trim_end();
    let mut hiding = Hiding::new(Wire::OpenaiChat, TOOL);
    let (mut client, came_to) = pushed(&mut hiding, spread);
    let Round::Mixed { bytes, calls } = came_to else { panic!("{came_to:?}") };
    client += &String::from_utf8(bytes).unwrap();
    assert_eq!(calls, [Call::new("c1", TOOL, "{}")]);
    assert!(client.ends_with("data: [DONE]"), "{client}");
    let heard = streamed(Wire::OpenaiChat, &format!("{client}\n\n"));
    assert_eq!(*heard.entry.parts, [Part::Call(Call::new("c2", "read_file", "{}"))]);
    assert_eq!(heard.entry.status, Status::Sent);
    let index = &events(&client)[0]["choices"][0]["delta"]["tool_calls"][0]["index"];
    assert_eq!(index, &json!(0));
}

#[test]
fn nothing_hidden_shows_wherever_a_stream_breaks_off() {
    for wire in Wire::CLIENTS {
        let reply = fake::Reply::default().text("So.").call(TOOL, "{\"secret\": 1}").call("read_file", "{}");
        let text = asked(wire, &mut provider(), reply, true);
        for end in (0..text.len()).step_by(3) {
            let mut hiding = Hiding::new(wire, TOOL);
            let mut client = hiding.push(&text.as_bytes()[..end]).unwrap();
            if let Round::Ended { bytes } | Round::Mixed { bytes, .. } = hiding.round() {
                client.extend(bytes);
            }
            let client = String::from_utf8_lossy(&client);
            assert!(!client.contains(TOOL) && !client.contains("secret"), "{wire}, cut at {end}: {client}");
        }
    }
}

#[test]
fn hidden_calls_without_end_are_refused() {
    let arguments = "x".repeat(1 << 20);
    for wire in [Wire::OpenaiChat, Wire::Anthropic] {
        let mut hiding = Hiding::new(wire, TOOL);
        let (start, more) = match wire {
            Wire::OpenaiChat => {
                (chunks("one", &[piece(0, "c", TOOL, "")]), chunks("one", &[piece(0, "", "", &arguments)]))
            }
            _ => {
                let block = json!({"type": "tool_use", "id": "c", "name": TOOL, "input": {}});
                let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
                let delta = json!({"type": "input_json_delta", "partial_json": arguments});
                let delta = json!({"type": "content_block_delta", "index": 0, "delta": delta});
                (format!("data: {start}\n\n"), format!("data: {delta}\n\n"))
            }
        };
        let more = more.replace("data: [DONE]\n\n", "");
        hiding.push(start.replace("data: [DONE]\n\n", "").as_bytes()).unwrap();
        for _ in 0..HIDDEN_BYTES_MAX >> 20 {
            assert!(hiding.push(more.as_bytes()).unwrap().is_empty());
        }
        let refused = hiding.push(more.as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "more than 16 MiB of calls of \"recto_expand\" in one round");
    }
}

#[test]
fn a_body_that_is_no_response_is_refused() {
    for wire in Wire::CLIENTS {
        for body in ["", "<html>", "[]", "{\"error\": {\"message\": \"no\"}}", "{\"choices\": [], \"output\": 1}"] {
            assert!(Hiding::new(wire, TOOL).whole(body.as_bytes()).is_err(), "{wire}: {body}");
        }
    }
}
