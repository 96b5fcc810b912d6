//! Reading a log back: how far, and what is named below.

use crate::edit::Floor;
use crate::edit::Reason;
use crate::entry::{Part, Role, Seq, Span};
use crate::log::{Counted, Log};
use crate::reader::Decided;
use crate::receipt::{Fate, FateRow};
use crate::request::Request;
use crate::tokens::Tokens;
use std::collections::BTreeMap;

/// The most instructions that are read from below; older ones are left out, and the receipt says so.
pub(crate) const SYSTEM_ENTRIES_MAX: usize = 1_000;
/// The most pinned entries that are read from below.
pub(crate) const PINNED_ENTRIES_MAX: usize = 1_000;
/// How far around a pinned entry the rest of its step is looked for.
const STEP_REACH: u64 = 64;

/// What was read of a log.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    pub(crate) log: &'a Log,
    pub(crate) floor: Option<&'a Floor>,
    pub(crate) edge: Option<Seq>,
    /// The first place that was read as a matter of course.
    pub(crate) start: Seq,
    /// Entries below the start that are read all the same, in order.
    pub(crate) named: Vec<&'a Counted>,
    /// Entries from the start up, in order.
    pub(crate) entries: Vec<&'a Counted>,
    /// Whether the reading reached the floor, the edge or the bottom.
    pub(crate) is_complete: bool,
}

pub(crate) fn window<'a>(request: &Request<'a>, decided: Decided<'a>, bound: Tokens) -> Window<'a> {
    let log = request.log;
    let (floor, edge) = (decided.floor(), log.edge());
    let bottom = floor.map(|floor| floor.at).max(edge).unwrap_or_default();
    let (mut entries, mut spent, mut is_complete) = (Vec::new(), Tokens(0), true);
    let undecided = decided.has_none();
    for entry in log.back().take_while(|entry| entry.seq >= bottom) {
        if spent > bound {
            is_complete = false;
            break;
        }
        let saved = if undecided { Tokens(0) } else { decided.saved(entry.seq) };
        spent += entry.cost + request.target.message_overhead - saved;
        entries.push(entry);
    }
    entries.reverse();
    let start = if is_complete { bottom } else { entries.first().map_or(bottom, |entry| entry.seq) };
    let unread = (!is_complete).then_some(bottom);
    let named = named(log, start, edge, decided, unread);
    Window { log, floor, edge, start, named, entries, is_complete }
}

/// Entries below the start that are read all the same: instructions, and what the floor names. Where the reading
/// stopped early, also what the next floor may want to name from the stretch that was not read.
fn named<'a>(
    log: &'a Log,
    start: Seq,
    edge: Option<Seq>,
    decided: Decided<'a>,
    unread: Option<Seq>,
) -> Vec<&'a Counted> {
    if start.0 == 0 {
        return Vec::new();
    }
    let system = log.back_by(Role::System).filter(|entry| entry.seq < start).take(SYSTEM_ENTRIES_MAX);
    let mut named: BTreeMap<Seq, &Counted> = system.map(|entry| (entry.seq, entry)).collect();
    let mut wanted: Vec<Seq> = decided.floor().into_iter().flat_map(|floor| floor.keeps.iter().copied()).collect();
    if let Some(bottom) = unread {
        wanted.extend(log.first_by(Role::User, bottom).map(|entry| entry.seq));
        wanted.extend(log.back_by(Role::User).next().map(|entry| entry.seq));
        for span in decided.pins() {
            let pinned = (span.first.max(bottom).0..=span.last.0.min(start.0 - 1)).take(PINNED_ENTRIES_MAX);
            wanted.extend(pinned.flat_map(|seq| whole_step(log, Seq(seq))));
        }
    }
    let is_below = |seq: &Seq| *seq < start && edge.is_none_or(|edge| *seq >= edge);
    for entry in wanted.into_iter().filter(is_below).filter_map(|seq| log.get(seq)) {
        named.insert(entry.seq, entry);
    }
    named.into_values().collect()
}

/// The entries of the step that an entry belongs to, as far as they stand near it.
fn whole_step(log: &Log, seq: Seq) -> Vec<Seq> {
    let Some(entry) = log.get(seq) else { return Vec::new() };
    let near = |from: u64, upto: u64| (from..=upto).filter_map(|at| log.get(Seq(at)));
    let step = match entry.role() {
        Role::Tool => {
            let answers = |call: &crate::entry::Call| {
                entry.shown().iter().any(|part| matches!(part, Part::Result(result) if result.call == call.id))
            };
            let mut before = near(seq.0.saturating_sub(STEP_REACH), seq.0);
            before.rfind(|other| other.original().calls().any(answers))
        }
        _ => Some(entry),
    };
    let Some(step) = step else { return vec![seq] };
    let made = |result: &crate::entry::ToolResult| step.original().calls().any(|call| call.id == result.call);
    let is_result = |part: &Part| matches!(part, Part::Result(result) if made(result));
    let after = near(step.seq.0 + 1, step.seq.0 + STEP_REACH);
    let results = after.filter(|other| other.shown().iter().any(is_result)).map(|other| other.seq);
    std::iter::once(step.seq).chain(results).collect()
}

/// The range rows of everything that was not read: before the edge, or below the floor.
pub(crate) fn below(window: &Window<'_>) -> Vec<FateRow> {
    let mut rows = Vec::new();
    let mut from = Seq(0);
    let stops = window.named.iter().map(|entry| entry.seq).chain([window.start]);
    for stop in stops {
        for (first, end, why) in reasons(window, from, stop) {
            let span = Span { first, last: Seq(end.0 - 1) };
            let sums = window.log.total(span);
            let by = if matches!(why, Reason::BeforeEdge { .. }) { "edge" } else { "fit-window" };
            rows.push(FateRow {
                span,
                entries: sums.entries,
                fate: Fate::NotShown,
                by: by.into(),
                why,
                before: sums.tokens,
                after: Tokens(0),
            });
        }
        from = stop.next();
    }
    rows
}

/// Splits a stretch (end excluded) where its reason changes.
fn reasons(window: &Window<'_>, from: Seq, end: Seq) -> Vec<(Seq, Seq, Reason)> {
    let edge = window.edge.unwrap_or_default();
    let floor = window.floor.map_or(window.start, |floor| floor.at);
    let middle = edge.clamp(from, end.max(from));
    let before = (from, middle, Reason::BeforeEdge { edge });
    let under = (middle, end, Reason::BelowFloor { floor });
    [before, under].into_iter().filter(|(first, end, _)| first < end).collect()
}
