//! `recto explain`: the receipt of a page.

mod bars;

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
    let (text, paint) = (talk::harmless(&receipt.to_string()), config.colour().value.on_stdout());
    let text = match talk::width() {
        Some(width) => bars::drawn(&receipt, &text, paint, width),
        None => paint.fates(&text, |line| vec![line.into()]),
    };
    talk::data(format!("{text}\n").as_bytes())
}
