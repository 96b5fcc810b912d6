//! `recto restore`: a backup, put where the store is to be.

use crate::args::RestoreArgs;
use crate::config::Config;
use crate::failure::{Failure, cannot_read};
use crate::{kept, talk};
use recto_engine::store::sqlite::{Existing, Sqlite};
use serde_json::json;
use std::fs;

/// Puts a backup in its place.
pub(crate) fn run(args: &RestoreArgs, config: &Config) -> Result<(), Failure> {
    let place = kept::place(&args.store, config)?;
    kept::note(&place);
    let Some(store) = place.file() else { return Err(kept::no_file("`recto restore`")) };
    fs::metadata(&args.file).map_err(|error| cannot_read(args.file.display(), &error))?;
    let existing = if args.replace { Existing::Replace } else { Existing::Refuse };
    Sqlite::restore(&args.file, store, existing).map_err(|error| {
        let is_taken = error.is_exists();
        let failure = Failure::from(error).during(format!("{} was not restored", args.file.display()));
        if is_taken { failure.hinting("--replace puts it in the place of the store that is there") } else { failure }
    })?;
    if args.output.json {
        let [file, store] = [args.file.as_path(), store].map(|path| path.display().to_string());
        return talk::json(&json!({"file": file, "store": store}));
    }
    talk::note(&format!("{} was restored", args.file.display()));
    Ok(())
}
