//! Which message may stand where, and which result belongs to which call. Neighbours of one role are one turn.

use super::super::model::Claude;
use super::super::node::{Checked, Node};
use super::super::{Api, Refusal};
use std::collections::HashSet;

/// Neighbouring messages of one role.
struct Turn<'a> {
    role: &'a str,
    first: usize, // of its messages
    messages: usize,
    blocks: Vec<Node<'a>>,
}

impl Turn<'_> {
    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Node<'_>> {
        self.blocks.iter().filter(move |block| block.is("type", kind))
    }

    fn has_only_results(&self) -> bool {
        !self.blocks.is_empty() && self.blocks.iter().all(|block| block.is("type", "tool_result"))
    }
}

pub(super) fn check(body: &Node<'_>, messages: &[Node<'_>], claude: Option<Claude>) -> Checked {
    let turns = turns(messages);
    first_and_last(&turns, claude)?;
    late_system(&turns, claude)?;
    unique_calls(&turns)?;
    for (at, turn) in turns.iter().enumerate() {
        match turn.role {
            "user" => results(turn, at.checked_sub(1).map(|before| &turns[before]))?,
            "assistant" => calls(turn, turns.get(at + 1), at + 1 == turns.len())?,
            _ => {}
        }
    }
    last_thinking(&turns)?;
    if body.get("thinking").is_some_and(|thinking| thinking.is("type", "enabled")) { open_turn(&turns) } else { Ok(()) }
}

fn turns<'a>(messages: &[Node<'a>]) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message.str_of("role").unwrap_or_default();
        let mut blocks = Vec::new();
        if let Some(content) = message.get("content") {
            // Whole texts count as a block that is no result.
            blocks = if content.value.is_array() { content.entries() } else { vec![content] };
        }
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => {
                turn.messages += 1;
                turn.blocks.extend(blocks);
            }
            None => turns.push(Turn { role, first: at, messages: 1, blocks }),
        }
    }
    turns
}

/// A1 and A2.
fn first_and_last(turns: &[Turn<'_>], claude: Option<Claude>) -> Checked {
    let (Some(first), Some(last)) = (turns.first(), turns.last()) else { return Ok(()) };
    let compacted = first.blocks.first().is_some_and(|block| block.is("type", "compaction"));
    if first.role != "user" && !compacted {
        return Err(Refusal::new(Api::Messages, "A1", "messages: first message must use the \"user\" role"));
    }
    let paused = last.of_kind("server_tool_use").next().is_some();
    if last.role == "assistant" && !paused && claude.is_some_and(Claude::refuses_prefill) {
        let text =
            "This model does not support assistant message prefill. The conversation must end with a user message.";
        return Err(Refusal::new(Api::Messages, "A2", text));
    }
    Ok(())
}

fn late_system(turns: &[Turn<'_>], claude: Option<Claude>) -> Checked {
    for (at, turn) in turns.iter().enumerate().filter(|(_, turn)| turn.role == "system") {
        let place = format!("messages.{}", turn.first);
        let problem = if claude.is_some_and(|claude| !claude.takes_late_system()) {
            "role 'system' is not supported on this model"
        } else if turn.messages > 1 || at == 0 || turns[at - 1].role != "user" {
            "a system message must directly follow a user turn"
        } else if turns.get(at + 1).is_some_and(|next| next.role != "assistant") {
            "a system message must be last or followed by an assistant turn"
        } else {
            continue;
        };
        return Err(Refusal::new(Api::Messages, "system", format!("{place}: {problem}")));
    }
    Ok(())
}

fn unique_calls(turns: &[Turn<'_>]) -> Checked {
    let mut ids = HashSet::new();
    for block in turns.iter().flat_map(|turn| turn.of_kind("tool_use")) {
        if block.str_of("id").is_some_and(|id| !ids.insert(id)) {
            return Err(block.refuse("A5", "`tool_use` ids must be unique"));
        }
    }
    Ok(())
}

/// A4 and A5: each result has its call in the turn before, and no call has two.
fn results(turn: &Turn<'_>, before: Option<&Turn<'_>>) -> Checked {
    let mut answered = HashSet::new();
    for result in turn.of_kind("tool_result") {
        let id = result.str_of("tool_use_id").unwrap_or_default();
        let call = before.and_then(|before| before.of_kind("tool_use").find(|call| call.is("id", id)));
        let Some(call) = call else {
            let text = format!(
                "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a \
                 corresponding `tool_use` block in the previous message."
            );
            return Err(result.refuse("A4", &text));
        };
        if !answered.insert(id) {
            let text =
                format!("each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}");
            return Err(result.refuse("A5", &text));
        }
        if call.str_of("toolset_name") != result.str_of("toolset_name") {
            return Err(result.refuse("shape", "`toolset_name` must match that of the `tool_use` block"));
        }
    }
    Ok(())
}

/// A3 and A22: calls are answered before anything else is said.
fn calls(turn: &Turn<'_>, next: Option<&Turn<'_>>, is_last: bool) -> Checked {
    let leading: HashSet<&str> = next
        .filter(|next| next.role == "user")
        .into_iter()
        .flat_map(|next| next.blocks.iter().take_while(|block| block.is("type", "tool_result")))
        .filter_map(|result| result.str_of("tool_use_id"))
        .collect();
    let unanswered: Vec<&str> =
        turn.of_kind("tool_use").filter_map(|call| call.str_of("id")).filter(|id| !leading.contains(id)).collect();
    if !unanswered.is_empty() {
        let text = format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message.",
            turn.first + turn.messages - 1,
            unanswered.join(", ")
        );
        return Err(Refusal::new(Api::Messages, "A3", text));
    }
    if is_last || next.is_some_and(Turn::has_only_results) {
        return Ok(());
    }
    for call in turn.of_kind("server_tool_use") {
        let id = call.str_of("id").unwrap_or_default();
        if !turn.blocks.iter().any(|block| block.is("tool_use_id", id)) {
            let name = call.str_of("name").unwrap_or_default();
            let text = format!(
                "`{name}` tool use with id `{id}` was found without a corresponding `{name}_tool_result` block"
            );
            return Err(call.refuse("A22", &text));
        }
    }
    Ok(())
}

fn is_thinking(block: &Node<'_>) -> bool {
    block.is("type", "thinking") || block.is("type", "redacted_thinking")
}

/// A18.
fn last_thinking(turns: &[Turn<'_>]) -> Checked {
    let last = turns.iter().rev().find(|turn| turn.role == "assistant").and_then(|turn| turn.blocks.last());
    match last {
        Some(block) if is_thinking(block) => {
            Err(block.refuse("A18", "The final block in an assistant message cannot be `thinking`"))
        }
        _ => Ok(()),
    }
}

/// A15: with manual thinking, a turn that is still open must start with it. A turn goes through its tool rounds, back
/// to the last message of the user that is not only results.
fn open_turn(turns: &[Turn<'_>]) -> Checked {
    let is_open = match turns {
        [.., last] if last.role == "assistant" => true,
        [.., _, last] => last.has_only_results(),
        _ => false,
    };
    let starts_at = turns.iter().rposition(|turn| turn.role == "user" && !turn.has_only_results());
    let start = starts_at.and_then(|at| turns[at..].iter().find(|turn| turn.role == "assistant"));
    match start.and_then(|turn| turn.blocks.first()) {
        Some(block) if is_open && !is_thinking(block) => {
            let kind = block.str_of("type").unwrap_or("text");
            let text = format!(
                "{}.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is enabled, \
                 a final `assistant` message must start with a thinking block",
                block.path
            );
            Err(Refusal::new(Api::Messages, "A15", text))
        }
        _ => Ok(()),
    }
}
