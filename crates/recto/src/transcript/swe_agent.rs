//! Trajectories of SWE-agent (`.traj`): what the model read is the `history`, in the form of OpenAI's chat. Each agent
//! reads only its own messages, so each is a conversation. Where actions were no tool calls, what they brought stands
//! in the user's place.

use super::Conversation;
use super::lines;
use crate::entry::{Entry, EntryKind, Origin, Part, Role, Text};
use crate::error::Error;
use crate::wire::anthropic::Reading;
use crate::wire::json::{Fields, Source};
use crate::wire::openai_chat;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Whose the fields are that have no place in an entry.
const OWNER: &str = "swe_agent";
/// What is kept of the run beside its messages.
const KEPT: [&str; 2] = ["info", "environment"];

/// Returns whether a record is such a trajectory.
pub(super) fn is_record(fields: &Fields<'_>) -> bool {
    fields.contains_key("trajectory") && fields.contains_key("history")
}

/// Reads a trajectory, one conversation for each agent.
pub(super) fn read(source: &Source<'_>, record: &RawValue) -> Result<Vec<Conversation>, Error> {
    let fields: Fields<'_> = source.read(record, "record")?;
    let Some(history) = fields.get("history") else {
        return Err(source.refuse(record, "a trajectory without history"));
    };
    let messages: Vec<&RawValue> = source.read(history, "history")?;
    if messages.is_empty() {
        return Err(source.refuse(history, "no conversation in it").hinting("the history of this trajectory is empty"));
    }
    let mut agents: Vec<(Option<Text>, Vec<Entry>)> = Vec::new();
    let mut unanswered = 0;
    for (at, raw) in messages.into_iter().enumerate() {
        let (entry, left) = message(source, raw, at)?;
        unanswered += left;
        let agent: Option<Text> = entry.extra.get("agent").and_then(Value::as_str).map(Into::into);
        let known = agents.iter().position(|(own, _)| agent.is_none() || *own == agent);
        match known {
            Some(known) => agents[known].1.push(entry),
            None => agents.push((agent, vec![entry])),
        }
    }
    let mut kept = Map::new();
    for name in KEPT {
        if let Some(raw) = fields.get(name) {
            kept.insert(name.into(), source.read(raw, name)?);
        }
    }
    let mut notes = vec!["trajectory and settings left out: the history is what the model read".to_string()];
    if unanswered > 0 {
        let what = "beyond the first that a result names: left without one";
        notes.push(format!("{} {what}", lines::counted(unanswered, "call")));
    }
    let several = agents.len() > 1;
    let conversations = agents.into_iter().map(|(agent, mut entries)| {
        observed(&mut entries);
        if let (Some(first), false) = (entries.first_mut(), kept.is_empty()) {
            first.extra.insert(OWNER.into(), Value::Object(std::mem::take(&mut kept)));
        }
        let (within, notes) = (agent.filter(|_| several), std::mem::take(&mut notes));
        Conversation { within, entries, notes, ..Conversation::default() }
    });
    Ok(conversations.collect())
}

/// Reads a message; says also how many calls it names beside the one whose result it is.
fn message(source: &Source<'_>, raw: &RawValue, at: usize) -> Result<(Entry, usize), Error> {
    let here = format!("history[{at}]");
    let mut fields: Fields<'_> = source.read(raw, &here)?;
    let mut left = 0;
    if let Some(given) = fields.remove("tool_call_ids").filter(|given| given.get() != "null") {
        let ids: Vec<&RawValue> = source.read(given, "tool_call_ids")?;
        left = ids.len().saturating_sub(1);
        if let Some(first) = ids.first() {
            fields.insert("tool_call_id".into(), first);
        }
    }
    // Null is how a message without calls is spelled.
    fields.retain(|_, raw| raw.get() != "null");
    let thoughts = fields.remove("thinking_blocks");
    let is_demonstration = fields.get("is_demo").is_some_and(|raw| raw.get() == "true");
    let mut entry = openai_chat::message(source, raw, fields, at)?;
    if let Some(raw) = thoughts.filter(|_| entry.role == Role::Assistant) {
        let read = Reading { source, model: None }.content(raw, Role::Assistant, &here)?;
        let thoughts = read.into_iter().flat_map(|it| it.parts).filter(|it| matches!(it, Part::Reasoning(_)));
        entry.parts = thoughts.chain(entry.parts.iter().cloned()).collect();
    }
    if is_demonstration && entry.role == Role::User {
        entry.origin = Origin::Host;
    }
    Ok((entry, left))
}

/// Finds what actions brought that were no tool calls.
fn observed(entries: &mut [Entry]) {
    for at in 1..entries.len() {
        let [.., before, entry] = &mut entries[..=at] else { continue };
        let is_text = before.role == Role::Assistant && before.calls().next().is_none();
        let action = before.extra.get("action").and_then(Value::as_str).filter(|_| is_text);
        let command = action.and_then(|action| action.split_whitespace().next());
        if let (Some(command), Role::User) = (command, entry.role) {
            entry.kind = Some(EntryKind::ActionResult);
            (entry.origin, entry.tools) = (Origin::Tool, vec![command.into()]);
        }
    }
}
