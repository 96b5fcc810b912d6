//! `recto explain`: the receipt of a page.

use crate::args::PageArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::{subject, talk};

/// Prints the receipt of the page that was asked for.
pub(crate) fn run(args: &PageArgs, config: &Config) -> Result<(), Failure> {
    let settings = Settings::of(&args.settings, config)?.knowing(args.facts.as_deref())?;
    let receipt = subject::asked(args, &settings, config)?.compiled.receipt;
    if args.json {
        return talk::json(&receipt);
    }
    let text = config.colour().value.on_stdout().fates(&talk::harmless(&receipt.to_string()));
    talk::data(format!("{text}\n").as_bytes())
}
