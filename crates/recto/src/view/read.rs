//! Reading a log back: how far, and what is named below.

use crate::edit::{Floor, Reason};
use crate::entry::{CallId, Lane, Part, Role, Section, Seq, Span, Status};
use crate::log::{Counted, Log, Scope, Sums};
use crate::policy::{SECTION_CAP, Sections, TraceRule};
use crate::reader::Decided;
use crate::receipt::{Fate, FateRow};
use crate::request::Request;
use crate::tokens::Tokens;
use std::collections::{BTreeMap, HashSet};
use std::iter::Peekable;

/// The most instructions that are read from below; older ones are left out, and the receipt says so.
pub(crate) const SYSTEM_ENTRIES_MAX: usize = 1_000;
/// The most pinned entries that are read from below.
pub(crate) const PINNED_ENTRIES_MAX: usize = 1_000;
/// How many entries in the user's place are looked through for the last user words.
const USER_ENTRIES_MAX: usize = 1_000;
/// For how many entries there is space from the start; most histories hold no more.
const ENTRIES_LIKELY: usize = 256;
/// How far around an entry the rest of its step is looked for.
const STEP_REACH: u64 = 64;
/// How many traces of other runs are passed over, one after the other, in search of the current run's.
const FOREIGN_TRACES_MAX: usize = 2_000;

/// What was read of a log.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    pub(crate) log: &'a Log,
    pub(crate) floor: Option<&'a Floor>,
    pub(crate) edge: Option<Seq>,
    /// The first place that was read as a matter of course.
    pub(crate) start: Seq,
    /// Entries of the conversation below the start that are read all the same, in order.
    pub(crate) named: Vec<&'a Counted>,
    /// Entries of the conversation from the start up, in order.
    pub(crate) entries: Vec<&'a Counted>,
    /// Other sections, those that stand before the conversation first.
    pub(crate) before: Vec<Shelf<'a>>,
    pub(crate) after: Vec<Shelf<'a>>,
    /// Whether the reading reached the floor, the edge or the bottom.
    pub(crate) is_complete: bool,
    /// Whether more lies below that is left unread.
    pub(crate) is_cut: bool,
    /// What of the conversation was read: all of it, or its talk alone.
    pub(crate) scope: Scope,
    /// Whether the conversation itself was selected.
    pub(crate) has_messages: bool,
    /// What there was more of than is ever read.
    pub(crate) too_many: Vec<&'static str>,
}

/// A section beside the conversation, as far as its cap lets it be shown.
#[derive(Debug)]
pub(crate) struct Shelf<'a> {
    pub(crate) section: Section,
    pub(crate) entries: Vec<&'a Counted>,
    pub(crate) cap: Tokens,
}

pub(crate) fn window<'a>(request: &Request<'a>, decided: Decided<'a>, bound: Tokens) -> Window<'a> {
    let log = request.log;
    let (floor, edge) = (decided.floor(), log.edge());
    let (before, after, has_messages) = shelves(request);
    let lowest = floor.map(|floor| floor.at).max(edge).unwrap_or_default();
    let bottom = covered(before.iter().chain(&after), lowest).unwrap_or(lowest);
    let scope = scope(request);
    let likely = usize::try_from(log.len()).map_or(ENTRIES_LIKELY, |all| all.min(ENTRIES_LIKELY));
    let (mut entries, mut spent, mut is_complete) = (Vec::with_capacity(likely), Tokens(0), true);
    // What is told in a block is read as far whatever was decided: else every decision would bring more to decide.
    let undecided = decided.has_none() || request.policy.memory().is_some();
    let (traces, has_more_traces) = traces(request, bottom);
    let back = Newest { talk: log.back_in(&scope).peekable(), trace: traces.into_iter().peekable() };
    let mut reach = None;
    for entry in back.take_while(|entry| has_messages && entry.seq >= bottom) {
        // A step is not left behind its results: those would look like answers to nothing.
        if spent > bound && reach.get_or_insert_with(|| Reach::of(&entries)).is_enough() {
            is_complete = false;
            break;
        }
        if let Some(reach) = &mut reach {
            reach.see(entry);
        }
        let saved = if undecided { Tokens(0) } else { decided.saved(entry.seq) };
        spent += entry.cost + request.target.message_overhead - saved;
        entries.push(entry);
    }
    entries.reverse();
    let start = if is_complete { bottom } else { entries.first().map_or(bottom, |entry| entry.seq) };
    // Where history is told in a block, what is read is told without gaps.
    let is_bounded = !is_complete && request.policy.memory().is_none();
    let unread = Unread { from: lowest, is_bounded };
    let named = if has_messages { named(log, start, edge, decided, unread) } else { Vec::new() };
    let mut too_many = too_many(log, start, decided);
    too_many.extend(has_more_traces.then_some("traces of other runs"));
    let is_cut = false;
    Window {
        log,
        floor,
        edge,
        start,
        named,
        entries,
        before,
        after,
        is_complete,
        is_cut,
        scope,
        has_messages,
        too_many,
    }
}

/// What lies below the start in greater numbers than is read.
fn too_many(log: &Log, start: Seq, decided: Decided<'_>) -> Vec<&'static str> {
    let Some(last) = start.0.checked_sub(1).map(Seq) else { return Vec::new() };
    let system = Scope { section: Some(Section::default()), lane: None, role: Some(Role::System) };
    let instructions = log.sums(Span { first: Seq(0), last }, &system).entries;
    let pinned = decided.pins().map(|span| span.last.0.min(last.0).saturating_sub(span.first.0)).max();
    let found = [
        (instructions > SYSTEM_ENTRIES_MAX as u64).then_some("instructions"),
        (pinned >= Some(PINNED_ENTRIES_MAX as u64)).then_some("pinned entries"),
    ];
    found.into_iter().flatten().collect()
}

/// How far past its bound a reading goes, until the steps of all results that were read are read as well.
struct Reach<'a> {
    missing: HashSet<&'a CallId>,
    left: u64,
}

impl<'a> Reach<'a> {
    /// Entries come newest first.
    fn of(entries: &[&'a Counted]) -> Reach<'a> {
        let mut reach = Reach { missing: HashSet::new(), left: STEP_REACH };
        entries.iter().for_each(|entry| reach.note(entry));
        reach
    }

    fn note(&mut self, entry: &'a Counted) {
        for part in entry.shown().iter() {
            match part {
                Part::Result(result) => drop(self.missing.insert(&result.call)),
                Part::Call(call) => drop(self.missing.remove(&call.id)),
                _ => {}
            }
        }
    }

    fn see(&mut self, entry: &'a Counted) {
        self.left -= 1;
        self.note(entry);
    }

    fn is_enough(&self) -> bool {
        self.missing.is_empty() || self.left == 0
    }
}

/// What of the conversation is read as a matter of course. A log with one section is read whole.
fn scope(request: &Request<'_>) -> Scope {
    let is_plain = request.log.sections().iter().all(|section| section.is_messages());
    let lane = (request.policy.select.trace != TraceRule::All).then_some(Lane::Talk);
    Scope { section: (!is_plain).then(Section::default), lane, role: None }
}

/// The current run's traces down to a place, newest first, where they are read apart from the talk; and whether the
/// search for more of them was given up.
fn traces<'a>(request: &Request<'a>, bottom: Seq) -> (Vec<&'a Counted>, bool) {
    let Some(run) = request.run.filter(|_| request.policy.select.trace == TraceRule::CurrentRun) else {
        return (Vec::new(), false);
    };
    let scope = Scope { section: Some(Section::default()), lane: Some(Lane::Trace), role: None };
    let (mut found, mut foreign) = (Vec::new(), 0);
    for entry in request.log.back_in(&scope).take_while(|entry| entry.seq >= bottom) {
        if entry.original().run.as_ref() == Some(run) {
            found.push(entry);
            foreign = 0;
        } else {
            foreign += 1;
            if foreign > FOREIGN_TRACES_MAX {
                return (found, true);
            }
        }
    }
    (found, false)
}

/// Two walks back through a log, merged.
struct Newest<'a, T: Iterator<Item = &'a Counted>, U: Iterator<Item = &'a Counted>> {
    talk: Peekable<T>,
    trace: Peekable<U>,
}

impl<'a, T: Iterator<Item = &'a Counted>, U: Iterator<Item = &'a Counted>> Iterator for Newest<'a, T, U> {
    type Item = &'a Counted;

    fn next(&mut self) -> Option<&'a Counted> {
        let seq = |entry: Option<&&'a Counted>| entry.map(|entry| entry.seq);
        if seq(self.talk.peek()) >= seq(self.trace.peek()) { self.talk.next() } else { self.trace.next() }
    }
}

/// The selected sections beside the conversation, and whether the conversation is selected at all.
fn shelves<'a>(request: &Request<'a>) -> (Vec<Shelf<'a>>, Vec<Shelf<'a>>, bool) {
    let present = request.log.sections();
    let is_plain = present.iter().all(|section| section.is_messages());
    let rules = &request.policy.select;
    let ranked = || Section::RANKED.map(Section::from).into_iter().filter(|section| present.contains(&section));
    let order: Vec<Section> = match &rules.sections {
        Sections::Ranked | Sections::All if is_plain => return (Vec::new(), Vec::new(), true),
        Sections::Ranked => ranked().collect(),
        Sections::All => {
            let others = present.iter().filter(|section| !Section::RANKED.contains(&section.as_str()));
            ranked().chain(others.map(|section| (*section).clone())).collect()
        }
        Sections::Only(sections) if sections.is_empty() => vec![Section::default()],
        Sections::Only(sections) => sections.clone(),
    };
    let at = order.iter().position(Section::is_messages);
    let shelf = |section: &Section| {
        let cap = rules.caps.get(section.as_str()).copied().unwrap_or(SECTION_CAP);
        let scope = Scope { section: Some(section.clone()), ..Scope::default() };
        let mut spent = Tokens(0);
        let within = request.log.back_in(&scope).take_while(|entry| {
            spent += entry.cost + request.target.message_overhead;
            spent <= cap
        });
        let mut entries: Vec<&Counted> = within.collect();
        entries.reverse();
        Shelf { section: section.clone(), entries, cap }
    };
    let before = order[..at.unwrap_or(order.len())].iter().map(shelf).collect();
    let after = order.get(at.unwrap_or(order.len()) + 1..).into_iter().flatten().map(shelf).collect();
    (before, after, at.is_some())
}

/// The stretch between the lowest place that may be shown and the place where reading began.
#[derive(Clone, Copy)]
struct Unread {
    from: Seq,
    /// Whether a bound stopped the reading; else a summary stands for the stretch.
    is_bounded: bool,
}

/// What a summary stands for, if it says anything itself.
fn stands_for(entry: &Counted) -> Option<Span> {
    let is_empty = entry.shown().iter().all(|part| matches!(part, Part::Text { text } if text.is_empty()));
    entry.original().covers.filter(|_| !is_empty && entry.original().status == Status::Sent)
}

/// The first entry that no summary stands for, if one stands for everything below it from the bottom up.
fn covered<'s, 'a: 's>(shelves: impl Iterator<Item = &'s Shelf<'a>>, bottom: Seq) -> Option<Seq> {
    let spans = shelves.flat_map(|shelf| &shelf.entries).filter_map(|entry| stands_for(entry));
    spans.filter(|span| span.first <= bottom && span.last >= bottom).map(|span| span.last.next()).max()
}

/// Entries below the start that are read all the same: instructions, what the floor names, and pins in a stretch that
/// was not read. Where a bound stopped the reading, also what the next floor may want to name.
fn named<'a>(log: &'a Log, start: Seq, edge: Option<Seq>, decided: Decided<'a>, unread: Unread) -> Vec<&'a Counted> {
    if start.0 == 0 {
        return Vec::new();
    }
    let main = |role| Scope { section: Some(Section::default()), lane: None, role: Some(role) };
    let system = log.back_in(&main(Role::System)).filter(|entry| entry.seq < start).take(SYSTEM_ENTRIES_MAX);
    let mut named: BTreeMap<Seq, &Counted> = system.map(|entry| (entry.seq, entry)).collect();
    let mut wanted: Vec<Seq> = decided.floor().into_iter().flat_map(|floor| floor.keeps.iter().copied()).collect();
    if unread.is_bounded {
        wanted.extend(log.first_in(&main(Role::User), unread.from).map(|entry| entry.seq));
        let said = log.back_in(&main(Role::User)).take(USER_ENTRIES_MAX);
        wanted.extend(said.filter(|entry| entry.original().is_user_words()).map(|entry| entry.seq).next());
    }
    for span in decided.pins() {
        let pinned = (span.first.max(unread.from).0..=span.last.0.min(start.0 - 1)).take(PINNED_ENTRIES_MAX);
        wanted.extend(pinned.flat_map(|seq| whole_step(log, Seq(seq))));
    }
    wanted.extend(decided.restored().into_iter().flat_map(|seq| whole_step(log, seq)));
    let is_below = |seq: &Seq| *seq < start && edge.is_none_or(|edge| *seq >= edge);
    let found = wanted.into_iter().filter(is_below).filter_map(|seq| log.get(seq));
    for entry in found.filter(|entry| entry.original().section.is_messages()) {
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

/// The range rows of everything that was not read: before the edge, below the floor or behind a summary, traces of
/// other runs, and sections that were not selected or are full.
pub(crate) fn below(window: &Window<'_>) -> Vec<FateRow> {
    let mut rows = Vec::new();
    let mut from = Seq(0);
    let scope = (window.scope != Scope::default()).then(|| window.scope.clone());
    let stops = window.named.iter().map(|entry| entry.seq).chain([window.start]);
    for stop in stops {
        for (first, end, why) in reasons(window, from, stop) {
            let span = Span { first, last: Seq(end.0 - 1) };
            let by = match why {
                Reason::BeforeEdge { .. } => "edge",
                Reason::Folded { .. } => "sections",
                Reason::Unread => "blocks",
                _ => "floor",
            };
            let sums = window.log.sums(span, &window.scope);
            rows.extend((sums.entries > 0).then(|| row(span, sums, scope.clone(), by, why)));
        }
        from = stop.next();
    }
    rows.extend(elsewhere(window));
    rows
}

fn row(span: Span, sums: Sums, scope: Option<Scope>, by: &'static str, why: Reason) -> FateRow {
    let (entries, before, after) = (sums.entries, sums.tokens, Tokens(0));
    FateRow { span, entries, scope, fate: Fate::NotShown, by: by.into(), why, before, after }
}

/// Rows for the strands that were not read as a matter of course.
fn elsewhere(window: &Window<'_>) -> Vec<FateRow> {
    let Some(last) = window.log.head().filter(|_| window.scope != Scope::default()) else { return Vec::new() };
    let span = Span { first: Seq(0), last };
    let mut rows = Vec::new();
    let mut add = |scope: Scope, read: &[&Counted], by: &'static str, why: Reason| {
        let all = window.log.sums(span, &scope);
        let read_here = read.iter().filter(|entry| scope.contains(entry.original()));
        let seen = read_here.fold(Sums::default(), |sum, entry| sum + Sums { entries: 1, tokens: entry.cost });
        let left = all - seen;
        rows.extend((left.entries > 0).then(|| row(span, left, Some(scope), by, why)));
    };
    for section in window.log.sections() {
        let shelf = window.before.iter().chain(&window.after).find(|shelf| shelf.section == *section);
        let whole = Scope { section: Some(section.clone()), ..Scope::default() };
        let section = section.clone();
        match shelf {
            Some(shelf) => add(whole, &shelf.entries, "sections", Reason::SectionCap { section, cap: shelf.cap }),
            None if section.is_messages() && window.has_messages => {
                if window.scope.lane.is_some() {
                    let traces = Scope { lane: Some(Lane::Trace), ..whole };
                    let read: Vec<&Counted> = window.named.iter().chain(&window.entries).copied().collect();
                    add(traces, &read, "trace", Reason::Trace);
                }
            }
            None => add(whole, &[], "sections", Reason::OtherSection { section }),
        }
    }
    rows
}

impl Window<'_> {
    /// The summaries on the page, and what each stands for.
    pub(crate) fn folds(&self) -> impl Iterator<Item = (Seq, Span)> {
        let entries = self.before.iter().chain(&self.after).flat_map(|shelf| &shelf.entries);
        entries.filter_map(|entry| Some((entry.seq, stands_for(entry)?)))
    }
}

/// Splits a stretch (end excluded) where its reason changes.
fn reasons(window: &Window<'_>, from: Seq, end: Seq) -> Vec<(Seq, Seq, Reason)> {
    if !window.has_messages {
        return Vec::new();
    }
    let edge = window.edge.unwrap_or_default();
    let floor = window.floor.map(|floor| floor.at).unwrap_or_default();
    let (one, two) = (edge.clamp(from, end.max(from)), floor.max(edge).clamp(from, end.max(from)));
    let by = window.folds().filter(|(_, span)| span.last >= two).map(|(by, _)| by).max().unwrap_or_default();
    let covers = |span: &Span| span.first <= floor.max(edge) && span.last >= floor.max(edge);
    let folded = window.folds().filter(|(_, span)| covers(span)).map(|(_, span)| span.last.next()).max();
    let three = if window.is_cut { folded.unwrap_or(two).clamp(two, end.max(two)) } else { end };
    let stretches = [
        (from, one, Reason::BeforeEdge { edge }),
        (one, two, Reason::BelowFloor { floor }),
        (two, three, Reason::Folded { by }),
        (three, end, Reason::Unread),
    ];
    stretches.into_iter().filter(|(first, end, _)| first < end).collect()
}
