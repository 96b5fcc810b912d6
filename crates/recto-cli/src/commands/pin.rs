//! `recto pin`: entries that are never reduced for a reader.

use crate::args::PinArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::talk;
use recto_engine::ReaderName;
use serde_json::json;

/// Pins entries, or takes pins back.
pub(crate) fn run(args: &PinArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let (at, reader, span) = (kept.at(&args.name), ReaderName::from(args.reader.reader.as_str()), args.span);
    kept.conversation(&args.name)?;
    let mut output = json!({
        "conversation": args.name, "reader": reader.as_str(), "first": span.first, "last": span.last,
    });
    let told = if args.remove {
        let removed = kept.run(kept.engine.unpin(&at, &reader, span))?;
        output["removed"] = removed.into();
        format!("pins taken back: {removed}")
    } else {
        kept.run(kept.engine.pin(&at, &reader, span))?;
        output["pinned"] = true.into();
        format!("pinned {span} for reader {:?}", reader.as_str())
    };
    if args.output.json {
        return talk::json(&output);
    }
    talk::note(&told);
    Ok(())
}
