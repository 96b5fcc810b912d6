//! `recto expand`: what the next page of a kept conversation would not show.

use crate::args::ExpandArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::settings::Settings;
use crate::{subject, talk};
use recto::Tokens;
use recto::edit::Handle;
use recto::entry::Text;
use recto::expand::{Ask, Range};
use recto_engine::Give;
use serde::Serialize;

/// Prints what was asked for.
pub(crate) fn run(args: &ExpandArgs, config: &Config) -> Result<(), Failure> {
    let ask = ask(args)?;
    let settings = Settings::of(&args.settings, config)?;
    let kept = Kept::open(&args.store, config)?.showing_summaries(config);
    let at = kept.at(&args.name);
    let conversation = kept.conversation(&args.name)?;
    let call = subject::call(&args.reader.reader, &conversation, &settings);
    let give = if args.in_place { Give::InPlace } else { Give::AsText };
    let expanded = kept.run(kept.engine.expand(&at, &call, &ask, give))?;
    let expansion = expanded.map_err(|refusal| Failure::of(Code::Refused, refusal.to_string()))?;
    let in_place = args.in_place && expansion.is_in_place;
    if args.in_place && !in_place {
        talk::note("pages don't show it: only its text can be given");
    }
    if args.output.json {
        let (tokens_before, tokens_after) = (expansion.tokens_before, expansion.tokens_after);
        let handle = expansion.handle.to_string();
        return talk::json(&Output { handle, text: expansion.text, in_place, tokens_before, tokens_after });
    }
    talk::content(&expansion.text)
}

/// What `--json` prints; `recto expand --help` tells its shape.
#[derive(Serialize)]
struct Output {
    handle: String,
    text: Text,
    in_place: bool,
    tokens_before: Tokens,
    tokens_after: Tokens,
}

fn ask(args: &ExpandArgs) -> Result<Ask, Failure> {
    let handle = Handle::parse(&args.handle).ok_or_else(|| {
        Failure::of(Code::BadValue, format!("{:?} is no handle", args.handle))
            .hinting("expected one such as m42 or m42.1, as pages and receipts show them")
    })?;
    let range = match (&args.lines, &args.items, &args.search) {
        (Some(lines), _, _) => Range::Lines(lines.clone()),
        (_, Some(items), _) => Range::Items(items.clone()),
        (_, _, Some(text)) => Range::Search(text.as_str().into()),
        (None, None, None) => Range::Whole,
    };
    let ask = Ask::whole(handle).only(range);
    Ok(match &args.reason {
        Some(reason) => ask.because(reason.as_str()),
        None => ask,
    })
}
