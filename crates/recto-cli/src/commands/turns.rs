//! `recto turns`: the recorded calls of a reader.

use crate::args::TurnsArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::table::{self, Side};
use crate::talk;
use recto::Tokens;
use recto_engine::ReaderName;
use recto_engine::engine::Turned;
use serde::Serialize;

/// How many calls are read at once.
const PAGE_ROWS: usize = 1_000;

/// Prints what the calls of a reader came to.
pub(crate) fn run(args: &TurnsArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let (at, reader) = (kept.at(&args.name), ReaderName::from(args.reader.reader.as_str()));
    kept.conversation(&args.name)?;
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    let mut calls: Vec<Turned> = Vec::new();
    let mut next = args.from;
    while calls.len() <= count {
        let page = kept.run(kept.engine.turns(&at, &reader, next, PAGE_ROWS.min(count + 1 - calls.len())))?;
        let Some(last) = page.last() else { break };
        next = last.turn + 1;
        calls.extend(page);
    }
    let more = calls.len() > count;
    calls.truncate(count);
    let output = Output { conversation: &args.name, reader: reader.as_str(), calls, more };
    if args.output.json { talk::json(&output) } else { talk::text(&output.table()) }
}

/// What `--json` prints; `recto turns --help` tells its shape.
#[derive(Serialize)]
struct Output<'a> {
    conversation: &'a str,
    reader: &'a str,
    calls: Vec<Turned>,
    more: bool,
}

impl Output<'_> {
    fn table(&self) -> String {
        if self.calls.is_empty() {
            return format!("reader {:?} has no recorded calls here", self.reader);
        }
        let heading = ["call", "tokens", "cached", "reported", "USD", "shown", "changed", "not shown"];
        let mut rows = vec![heading.map(String::from)];
        rows.extend(self.calls.iter().map(|Turned { turn, totals, reported, .. }| {
            let reported = reported.as_ref().map_or(String::new(), Tokens::to_string);
            let [tokens, cached] = [totals.tokens, totals.cached].map(|it| it.to_string());
            let [turn, shown, changed, hidden] =
                [*turn, totals.shown, totals.changed, totals.not_shown].map(|it| it.to_string());
            [turn, tokens, cached, reported, format!("{:.6}", totals.usd), shown, changed, hidden]
        }));
        let lines = table::aligned(&rows, [Side::Right; 8]);
        let next = self.calls.last().map_or(0, |last| last.turn + 1);
        if self.more { format!("{lines}\n\nthere are more: --from {next}") } else { lines }
    }
}
