//! `recto explain`: the receipt of a page.

use crate::args::PageArgs;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::{subject, talk};

/// Prints the receipt of the page that was asked for.
pub(crate) fn run(args: &PageArgs) -> Result<(), Failure> {
    let settings = Settings::of(&args.settings)?;
    let receipt = subject::asked(args, &settings)?.compiled.receipt;
    if args.json { talk::json(&receipt) } else { talk::text(&receipt.to_string()) }
}
