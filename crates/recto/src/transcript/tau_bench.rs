//! Results of tau-bench: a list of runs, or one of them, each with its `traj` in the form of OpenAI's chat.

use super::{Conversation, bounded};
use crate::entry::Text;
use crate::error::Error;
use crate::wire::json::{Fields, Source};
use crate::wire::openai_chat;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Whose the fields are that have no place in an entry.
const OWNER: &str = "tau_bench";

/// Returns whether a record is such a run.
pub(super) fn is_record(fields: &Fields<'_>) -> bool {
    fields.contains_key("traj") && ["task_id", "reward"].iter().any(|name| fields.contains_key(*name))
}

/// Returns whether a list holds such runs.
pub(super) fn is_list(raw: &RawValue) -> bool {
    // Within a string the quotes would be escaped, so this finds a field, and most files have none.
    if !raw.get().contains("\"traj\"") {
        return false;
    }
    let list: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let first: Option<Fields<'_>> = list.first().and_then(|raw| serde_json::from_str(raw.get()).ok());
    first.is_some_and(|fields| is_record(&fields))
}

/// Reads a run or a list of them, one conversation each.
pub(super) fn read(source: &Source<'_>, record: &RawValue) -> Result<Vec<Conversation>, Error> {
    if !record.get().starts_with('[') {
        return Ok(vec![run(source, record, "record")?]);
    }
    let list: Vec<&RawValue> = source.read(record, "results")?;
    list.into_iter().enumerate().map(|(at, raw)| run(source, raw, &format!("results[{at}]"))).collect()
}

fn run(source: &Source<'_>, raw: &RawValue, here: &str) -> Result<Conversation, Error> {
    bounded(source, raw)?;
    let mut fields: Fields<'_> = source.read(raw, here)?;
    let Some(messages) = fields.remove("traj") else {
        return Err(source.refuse(raw, format!("{here} has no \"traj\"")));
    };
    let mut entries = openai_chat::messages(source, messages)?;
    let spelled = |name: &str| fields.get(name).map(|raw| raw.get().trim_matches('"').to_string());
    let within = [("task", spelled("task_id")), ("trial", spelled("trial"))].into_iter();
    let within: Vec<String> = within.filter_map(|(what, number)| Some(format!("{what}{}", number?))).collect();
    let within = (!within.is_empty()).then(|| Text::from(within.join("-")));
    let mut kept = Map::new();
    for (name, raw) in fields {
        let value: Value = source.read(raw, &name)?;
        kept.insert(name, value);
    }
    entries.first_mut().into_iter().for_each(|first| drop(first.extra.insert(OWNER.into(), kept.clone().into())));
    Ok(Conversation { within, entries, ..Conversation::default() })
}
