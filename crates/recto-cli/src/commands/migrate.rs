//! `recto migrate`: everything that a store keeps, carried over to a database.

use crate::args::MigrateArgs;
use crate::failure::Failure;

/// Carries everything over.
#[cfg(feature = "postgres")]
pub(crate) fn run(args: &MigrateArgs) -> Result<(), Failure> {
    use crate::kept::{self, Location, Waiting};
    use crate::progress::Progress;
    use crate::talk;
    use recto_engine::store::any::Any;
    use recto_engine::store::carry::carry;

    let from = Location::of(args.from.strip_prefix("sqlite:").unwrap_or(&args.from).into())?;
    let to = Location::of(args.to.as_str().into())?;
    let waiting = Waiting::new()?;
    let open = |place: &Location| {
        let opened = waiting.run(place.open());
        opened.map_err(|failure| failure.during(format!("cannot open the store {place}")))
    };
    if let Some(path) = from.file().filter(|path| !path.exists()) {
        return Err(kept::missing(path));
    }
    if to.file().is_some() {
        return Err(kept::no_database(&args.to));
    }
    talk::note(&format!("from: {from}"));
    talk::note(&format!("to: {to}"));
    let (from, to) = (open(&from)?, open(&to)?);
    let Any::Postgres(to) = &to else { return Err(kept::no_database(&args.to)) };
    to.warnings().iter().for_each(|warning| talk::note(&format!("warning: {warning}")));
    let progress = Progress::on_stderr("rows");
    crate::interrupt::promise_checks();
    let carried = waiting.run(carry(&from, to, |carried| progress.at(carried.rows)));
    drop(progress);
    let carried = carried.map_err(|failure| failure.during("not everything was carried over"))?;
    if args.output.json {
        return talk::json(&carried);
    }
    talk::note(&format!(
        "carried and compared: conversations: {}, rows: {}, keys: {}; there already, and the same: {}",
        carried.conversations, carried.rows, carried.keys, carried.known
    ));
    Ok(())
}

/// Says that it can't be done here.
#[cfg(not(feature = "postgres"))]
pub(crate) fn run(args: &MigrateArgs) -> Result<(), Failure> {
    crate::kept::Location::of(args.to.as_str().into())?;
    Err(crate::kept::no_database(&args.to))
}
