//! `recto revert`: a decision, taken back.

use crate::args::RevertArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::talk;
use recto_engine::ReaderName;
use serde_json::json;

/// Takes a decision back.
pub(crate) fn run(args: &RevertArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let (at, reader) = (kept.at(&args.name), ReaderName::from(args.reader.reader.as_str()));
    kept.conversation(&args.name)?;
    kept.run(kept.engine.revert(&at, &reader, args.ordinal))
        .map_err(|failure| failure.hinting(format!("`recto decisions {}` lists them", args.name)))?;
    if args.output.json {
        return talk::json(&json!({
            "conversation": args.name, "reader": reader.as_str(), "reverted": args.ordinal,
        }));
    }
    talk::note(&format!("decision {} of reader {:?} was taken back", args.ordinal, reader.as_str()));
    Ok(())
}
