//! `recto fork`: a second conversation that shares the beginning of one.

use crate::args::ForkArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::talk;
use serde_json::json;

/// Forks a conversation.
pub(crate) fn run(args: &ForkArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    kept.conversation(&args.name)?;
    let made = kept.run(kept.engine.fork(&kept.at(&args.name), args.new.as_str(), args.at))?;
    let (upto, entries) = (made.from.and_then(|from| from.upto), made.tally.sums().entries);
    if args.output.json {
        let (conversation, from) = (&args.new, &args.name);
        return talk::json(&json!({"conversation": conversation, "from": from, "upto": upto, "entries": entries}));
    }
    let upto = upto.map_or("its beginning".into(), |upto| upto.to_string());
    talk::note(&format!("{:?} goes on from {:?} after {upto}; entries: {entries}", args.new, args.name));
    Ok(())
}
