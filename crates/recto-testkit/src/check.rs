//! What must hold for every page, judged from its bytes and its receipt, apart from the code that made them.

use recto::receipt::{FateRow, Receipt};
use recto::{Log, Seq};
use serde_json::Value;
use std::collections::HashSet;

/// (a) Every result stands behind its call, every call has exactly one, and nothing stands between. In a delta, results
/// of calls that the provider made or holds may come first.
pub fn pairs(messages: &[Value], is_delta: bool) -> Result<(), String> {
    let mut waiting: HashSet<&str> = HashSet::new();
    let mut only_results_so_far = is_delta;
    for (at, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().ok_or(format!("message {at}: no tool_call_id"))?;
                if !waiting.remove(id) && !only_results_so_far {
                    return Err(format!("message {at}: a result for {id}, whose call isn't waiting"));
                }
            }
            _ if !waiting.is_empty() => return Err(format!("message {at} stands before the results of {waiting:?}")),
            Some("assistant") => {
                only_results_so_far = is_delta;
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let id = call["id"].as_str().ok_or(format!("message {at}: a call without id"))?;
                    if !waiting.insert(id) {
                        return Err(format!("message {at}: call id {id} twice in one step"));
                    }
                }
            }
            Some("user" | "system") => {}
            role => return Err(format!("message {at}: role {role:?}")),
        }
    }
    if waiting.is_empty() { Ok(()) } else { Err(format!("no results for {waiting:?}")) }
}

/// (b) The rows cover every entry of the log exactly once, in order, and count right.
pub fn fates(rows: &[FateRow], log: &Log) -> Result<(), String> {
    let mut next = Seq(0);
    for row in rows {
        if row.span.first != next || row.span.last < row.span.first {
            return Err(format!("row {} should begin at {next}", row.span));
        }
        let entries = row.span.last.0 - row.span.first.0 + 1;
        if entries != row.entries {
            return Err(format!("row {} speaks of {} entries", row.span, row.entries));
        }
        next = row.span.last.next();
    }
    let end = log.head().map_or(Seq(0), Seq::next);
    if next == end { Ok(()) } else { Err(format!("the rows end at {next}, the log at {end}")) }
}

/// (c) What is used, reserved and left add up to the window, and the messages to what is used.
pub fn budget(receipt: &Receipt, messages: u64) -> Result<(), String> {
    let ledger = &receipt.ledger;
    let Some(window) = ledger.window else { return Ok(()) };
    let sum = ledger.used().0 + ledger.reserve_out.0;
    if sum > window.0 {
        return Err(format!("{sum} of {window}"));
    }
    let own = messages + ledger.tools.0;
    if ledger.used().0 != own { Err(format!("used {}, but the page costs {own}", ledger.used())) } else { Ok(()) }
}
