//! `cache_control`: how many, where, and in which order of lifetimes.

use super::super::node::{Checked, Node};
use super::super::{Api, Refusal};

const MARKS_MAX: usize = 4;

/// Checks the mark of a block, if it has one.
pub(super) fn shape(block: &Node<'_>) -> Checked {
    let Some(mark) = block.get("cache_control") else { return Ok(()) };
    mark.only(&["type", "ttl"])?;
    mark.need("type")?.one_of(&["ephemeral"])?;
    mark.get("ttl").map_or(Ok(()), |ttl| ttl.one_of(&["5m", "1h"]).map(drop))
}

fn lifetime<'a>(block: &Node<'a>) -> Option<&'a str> {
    block.get("cache_control").map(|mark| mark.str_of("ttl").unwrap_or("5m"))
}

/// A10–A13, over everything that can be marked, in the order it is rendered.
pub(super) fn check(body: &Node<'_>, messages: &[Node<'_>]) -> Checked {
    shape(body)?;
    let mut blocks = Vec::new();
    for field in ["tools", "system"] {
        blocks.extend(body.get(field).map(|list| list.entries()).unwrap_or_default());
    }
    for message in messages {
        for block in message.get("content").map(|content| content.entries()).unwrap_or_default() {
            if message.has("clear_at") && block.has("cache_control") {
                let text = "cache_control cannot be set for blocks of a message with clear_at";
                return Err(block.refuse("A11", text));
            }
            blocks.extend(block.get("content").map(|content| content.entries()).unwrap_or_default());
            blocks.push(block);
        }
    }
    for block in &blocks {
        shape(block)?;
    }
    let marks: Vec<&str> = blocks.iter().filter_map(lifetime).collect();
    let automatic = lifetime(body);
    if marks.len() > MARKS_MAX {
        let found = marks.len() + usize::from(automatic.is_some());
        let text = format!("A maximum of {MARKS_MAX} blocks with cache_control may be provided. Found {found}.");
        return Err(Refusal::new(Api::Messages, "A10", text));
    }
    if let Some(automatic) = automatic {
        with_automatic(automatic, &marks, &blocks)?;
    }
    let in_order: Vec<&str> = marks.into_iter().chain(automatic).collect();
    let first_short = in_order.iter().position(|ttl| *ttl == "5m");
    if first_short.is_some_and(|at| in_order[at..].contains(&"1h")) {
        let text = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that \
                    blocks are processed in the following order: `tools`, `system`, `messages`.";
        return Err(Refusal::new(Api::Messages, "A12", text));
    }
    Ok(())
}

/// A13: the automatic mark stands on the last block; it must not contradict one that is there, nor be a fifth.
fn with_automatic(automatic: &str, marks: &[&str], blocks: &[Node<'_>]) -> Checked {
    let on_last = blocks.last().and_then(lifetime);
    let problem = if on_last.is_some_and(|ttl| ttl != automatic) {
        "top-level cache_control has a different ttl than the marker on the last block"
    } else if marks.len() == MARKS_MAX {
        "top-level cache_control cannot be combined with 4 explicit markers"
    } else {
        return Ok(());
    };
    Err(Refusal::new(Api::Messages, "A13", format!("cache_control: {problem}")))
}
