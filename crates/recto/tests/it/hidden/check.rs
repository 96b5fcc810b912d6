//! What makes a stream one response, written from the providers' rules alone.

use recto::wire::{Wire, sse};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Checked = Result<(), String>;

/// Says what is wrong with a stream: it starts once, ends once, and is numbered without gaps.
pub(super) fn stream(wire: Wire, text: &str) -> Checked {
    let events = sse::Reader::default().push(text.as_bytes()).unwrap();
    let data: Vec<&str> = events.iter().map(|event| event.data.as_str()).collect();
    match wire {
        Wire::OpenaiChat => chat(&data),
        Wire::OpenaiResponses => responses(&events),
        Wire::Anthropic => messages(&events),
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in {wire}"),
    }
}

fn must(holds: bool, what: impl Into<String>) -> Checked {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn value(data: &str) -> Value {
    serde_json::from_str(data).unwrap()
}

fn chat(data: &[&str]) -> Checked {
    must(data.last() == Some(&"[DONE]"), "it ends with [DONE]")?;
    let chunks = &data[..data.len() - 1];
    must(!chunks.contains(&"[DONE]"), "it ends once")?;
    let chunks: Vec<Value> = chunks.iter().map(|data| value(data)).collect();
    let (mut roles, mut ends, mut calls) = (0, 0, 0);
    for chunk in &chunks {
        for name in ["id", "created", "model"] {
            must(chunk[name] == chunks[0][name], format!("{name} stays the same"))?;
        }
        let choice = &chunk["choices"][0];
        must(ends == 0 || choice.is_null(), "nothing is said behind the end")?;
        must(choice.is_null() || chunk["usage"].is_null(), "usage is told at the end")?;
        roles += usize::from(choice["delta"]["role"].is_string());
        ends += usize::from(choice["finish_reason"].is_string());
        for piece in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            if piece["id"].is_string() {
                must(piece["index"] == calls, "calls are numbered from 0 without gaps")?;
                calls += 1;
            }
            must(piece["index"] == calls - 1, "a piece belongs to the call before it")?;
        }
        if choice["finish_reason"] == "tool_calls" || choice["finish_reason"] == "stop" {
            must((choice["finish_reason"] == "tool_calls") == (calls > 0), "it finishes for calls if there are some")?;
        }
    }
    must(roles == 1 && ends == 1, "role and end are told once")?;
    must(chunks.iter().filter(|chunk| chunk["usage"].is_object()).count() == 1, "usage is told once")
}

fn messages(events: &[sse::Event]) -> Checked {
    let (mut blocks, mut open, mut ends) = (0, None, 0);
    let mut calls = 0;
    for (at, event) in events.iter().enumerate() {
        let data = value(&event.data);
        let kind = data["type"].as_str().unwrap();
        must(event.name.as_deref() == Some(kind), "an event has the name of its type")?;
        must((kind == "message_start") == (at == 0), "it starts once")?;
        must((kind == "message_stop") == (at + 1 == events.len()), "it stops once")?;
        match kind {
            "content_block_start" => {
                must(data["index"] == blocks && open.is_none(), "blocks are numbered from 0 without gaps")?;
                calls += usize::from(data["content_block"]["type"] == "tool_use");
                open = Some(blocks);
                blocks += 1;
            }
            "content_block_delta" => must(data["index"].as_u64() == open, "a delta is one of the open block")?,
            "content_block_stop" => must(data["index"].as_u64() == open.take(), "the open block is closed")?,
            "message_delta" => {
                ends += 1;
                let reason = data["delta"]["stop_reason"].as_str().unwrap();
                let is_known = ["tool_use", "end_turn"].contains(&reason);
                must(!is_known || (reason == "tool_use") == (calls > 0), "it stops for calls if there are some")?;
            }
            "message_start" | "message_stop" | "ping" => {}
            other => return Err(format!("an event {other}")),
        }
    }
    must(ends == 1 && open.is_none(), "the reason is told once, when all is said")
}

fn responses(events: &[sse::Event]) -> Checked {
    let mut items: BTreeMap<u64, Value> = BTreeMap::new();
    let mut open = BTreeSet::new();
    let first = value(&events[0].data);
    for (at, event) in events.iter().enumerate() {
        let data = value(&event.data);
        let kind = data["type"].as_str().unwrap();
        must(event.name.as_deref() == Some(kind), "an event has the name of its type")?;
        must(data["sequence_number"] == at, "events are numbered from 0 without gaps")?;
        must((kind == "response.created") == (at == 0), "it is created once")?;
        must((kind == "response.in_progress") == (at == 1), "it is in progress once")?;
        let is_end = ["response.completed", "response.incomplete"].contains(&kind);
        must(is_end == (at + 1 == events.len()), "it ends once")?;
        let response = &data["response"];
        if response.is_object() {
            must(response["id"] == first["response"]["id"], "its id stays the same")?;
        }
        if is_end {
            let told: Vec<&Value> = response["output"].as_array().unwrap().iter().collect();
            must(told == items.values().collect::<Vec<_>>(), "the end tells all items")?;
            must(open.is_empty(), "all items are done")?;
        }
        let Some(index) = data["output_index"].as_u64() else { continue };
        match kind {
            "response.output_item.added" => {
                must(index == items.len() as u64, "items are numbered from 0 without gaps")?;
                items.insert(index, Value::Null);
                open.insert(index);
            }
            "response.output_item.done" => {
                must(open.remove(&index), "an item is done once")?;
                items.insert(index, data["item"].clone());
            }
            _ => must(open.contains(&index), "what is told of an item is told while it is open")?,
        }
    }
    Ok(())
}
