//! Items of OpenAI Responses as they stand in other people's files.

use crate::error::Error;
use crate::wire::json::Source;
use crate::wire::openai_responses::Items;
use serde_json::value::RawValue;

/// Reads a list of items behind those that were read; `at` says where it stands.
pub(super) fn read(source: &Source<'_>, list: &RawValue, at: &str, items: &mut Items) -> Result<(), Error> {
    let list: Vec<&RawValue> = source.read(list, at)?;
    for (nth, raw) in list.into_iter().enumerate() {
        items.take(source, raw, &format!("{at}[{nth}]"))?;
    }
    items.close();
    Ok(())
}
