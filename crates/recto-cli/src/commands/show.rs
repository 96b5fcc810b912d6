//! `recto show`: the entries of a kept conversation.

use crate::args::ShowArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::table::{self, Side};
use crate::{entries, talk};
use recto::entry::Status;
use recto::log::Counted;
use recto::{Entry, Seq, Tokens};
use serde::Serialize;
use std::sync::Arc;

/// How many entries are read at once.
const PAGE_ROWS: usize = 1_000;
/// How much of an entry is shown on its line.
const WORDS_WIDTH_MAX: usize = 72;

/// Prints entries one line each, or one of them whole.
pub(crate) fn run(args: &ShowArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let at = kept.at(&args.name);
    // It tells of a conversation that isn't there, or is no more.
    kept.conversation(&args.name)?;
    if let Some(seq) = args.handle {
        let found = kept.run(kept.engine.read(&at, seq, 1))?;
        let entry = found.iter().find(|entry| entry.seq == seq);
        let entry = entry.ok_or_else(|| no_entry(&args.name, seq))?;
        return if args.output.json { talk::json(&Row::of(entry)) } else { talk::content(&whole(entry)) };
    }
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    let mut found: Vec<Arc<Counted>> = Vec::new();
    let mut next = args.from;
    while found.len() <= count {
        let page = kept.run(kept.engine.read(&at, next, PAGE_ROWS.min(count + 1 - found.len())))?;
        let Some(last) = page.last() else { break };
        next = last.seq.next();
        found.extend(page);
    }
    let more = found.len() > count;
    found.truncate(count);
    if args.output.json {
        let entries = found.iter().map(|entry| Row::of(entry)).collect();
        return talk::json(&Output { conversation: &args.name, entries, more });
    }
    let lines = lines(&found);
    talk::text(&if more { format!("{lines}\n\nthere are more: --from {}", next.0 - 1) } else { lines })
}

/// What `--json` prints; `recto show --help` tells its shape.
#[derive(Serialize)]
struct Output<'a> {
    conversation: &'a str,
    entries: Vec<Row>,
    more: bool,
}

#[derive(Serialize)]
struct Row {
    seq: Seq,
    tokens: Tokens,
    entry: Entry,
}

impl Row {
    /// An entry without secrets.
    fn of(entry: &Counted) -> Row {
        Row { seq: entry.seq, tokens: entry.cost, entry: entry.seen() }
    }
}

fn no_entry(name: &str, seq: Seq) -> Failure {
    Failure::of(Code::NotFound, format!("no entry {seq} in conversation {name:?}"))
        .hinting(format!("`recto show {name}` lists its entries"))
}

fn lines(found: &[Arc<Counted>]) -> String {
    if found.is_empty() {
        return "no entries".into();
    }
    let mut rows = vec![["entry", "role", "tokens", "state", "says"].map(String::from)];
    rows.extend(found.iter().map(|entry| {
        let words = table::cut(&talk::harmless(&entries::line_of(entry.shown())), WORDS_WIDTH_MAX);
        [format!("m{}", entry.seq.0), entry.role().to_string(), entry.cost.to_string(), state(entry), words]
    }));
    table::aligned(&rows, [Side::Left, Side::Left, Side::Right, Side::Left, Side::Left])
}

fn state(entry: &Counted) -> String {
    let original = entry.original();
    match original.status {
        _ if original.erased.is_some() => "erased".into(),
        Status::Sent => String::new(),
        status => format!("{status:?}").to_lowercase(),
    }
}

fn whole(entry: &Counted) -> String {
    let state =
        Some(state(entry)).filter(|state| !state.is_empty()).map_or(String::new(), |state| format!(", {state}"));
    format!("m{} {}, {} tokens{state}\n\n{}", entry.seq.0, entry.role(), entry.cost, entries::whole(entry.shown()))
}
