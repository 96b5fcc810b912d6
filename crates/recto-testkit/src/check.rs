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

/// (b) Every entry of the log has exactly one row: its own, or one run of entries that it lies in.
pub fn fates(rows: &[FateRow], log: &Log) -> Result<(), String> {
    let is_own = |row: &&FateRow| row.span.first == row.span.last && row.scope.is_none();
    let own: Vec<Seq> = rows.iter().filter(is_own).map(|row| row.span.first).collect();
    if !own.is_sorted() || own.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("rows of single entries are out of order, or double".into());
    }
    let runs: Vec<&FateRow> = rows.iter().filter(|row| !is_own(row)).collect();
    let mut counted = vec![0u64; runs.len()];
    for entry in log.back() {
        if own.binary_search(&entry.seq).is_ok() {
            continue;
        }
        let lies_in = |row: &&FateRow| {
            row.span.contains(entry.seq) && row.scope.as_ref().is_none_or(|scope| scope.contains(entry.original()))
        };
        let of: Vec<usize> = (0..runs.len()).filter(|&at| lies_in(&runs[at])).collect();
        match of[..] {
            [at] => counted[at] += 1,
            _ => return Err(format!("{} lies in {} rows", entry.seq, of.len())),
        }
    }
    match runs.iter().zip(&counted).find(|(row, counted)| row.entries != **counted) {
        Some((row, counted)) => Err(format!("row {} speaks of {} entries, there are {counted}", row.span, row.entries)),
        None if rows.iter().map(|row| row.entries).sum::<u64>() == log.len() => Ok(()),
        None => Err("the rows speak of more or fewer entries than there are".into()),
    }
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
