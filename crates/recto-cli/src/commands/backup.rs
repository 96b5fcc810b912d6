//! `recto backup`: a copy of the store, as it is at one moment.

use crate::args::BackupArgs;
use crate::config::Config;
use crate::failure::{Failure, cannot_read};
use crate::kept::{Kept, no_file};
use crate::{interrupt, talk};
use recto_engine::store::sqlite::Existing;
use serde_json::json;
use std::fs;
use std::path::Path;

/// Writes a backup.
pub(crate) fn run(args: &BackupArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let Some(store) = kept.file() else { return Err(no_file("`recto backup`")) };
    let existing = if args.replace { Existing::Replace } else { Existing::Refuse };
    // It is written there, and moved to its place at the end.
    let mut part = args.file.as_os_str().to_owned();
    part.push(".part");
    interrupt::set_unfinished(Path::new(&part));
    kept.run(store.backup(&args.file, existing))
        .map_err(|failure| failure.during(format!("no backup was written to {}", args.file.display())))?;
    interrupt::clear_unfinished();
    let bytes = fs::metadata(&args.file).map_err(|error| cannot_read(args.file.display(), &error))?.len();
    if args.output.json {
        return talk::json(&json!({"file": args.file.display().to_string(), "bytes": bytes}));
    }
    talk::note(&format!("backup written to {}: {bytes} bytes", args.file.display()));
    Ok(())
}
