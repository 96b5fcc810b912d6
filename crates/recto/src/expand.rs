//! Expand: what a reader was not shown any more is shown again, because somebody asks for it by its handle.
//!
//! Every marker on a page names a handle, such as `m42`. A model asks for it with the tool [`tool()`], or with a step of
//! its own ([`Ask::from_step`]); [`expand`] answers, and changes nothing. A host has two ways to go on:
//!
//! - **in place**: it commits the [`Expansion`]'s edits. From the next page on the original stands where it was said,
//!   pictures included, and passes leave it alone for a few calls; then they may reduce it again. The provider's cache
//!   breaks at that place. A provider that remembers gets it as a note, once.
//! - **as an answer**: it gives the expansion's text to the model as the result of the call, and commits nothing. That
//!   breaks no cache and drops no reasoning, and the text ages like any other result.
//!
//! What can't be done is a [`Refusal`], a sentence for the model; nothing has changed then.
//!
//! ```
//! use recto::edit::Handle;
//! use recto::expand::{Ask, expand};
//! # use recto::{Entry, Log, Policy, Reader, Request, Target, Tokenizer};
//! # let mut log = Log::counted_by(Tokenizer::Chars4);
//! # let seq = log.append(Entry::user("hello"))?;
//! # let (mut reader, policy, target) = (Reader::new("main"), Policy::safe(), Target::eval());
//! let request = Request::new(&log, &reader, &policy, &target);
//! let ask = Ask::whole(Handle::entry(seq)).because("I need the whole list");
//! match expand(&request, &ask) {
//!     Ok(expansion) => reader.commit(expansion.edits, policy.digest()),
//!     Err(refusal) => assert_eq!(refusal.code(), "never_reduced"),
//! }
//! # Ok::<(), recto::Error>(())
//! ```

mod excerpt;
mod hint;
mod parse;
mod refusal;
mod teach;

use crate::edit::{Change, Edit, Handle, PartAt, Reason, Turn};
use crate::entry::{Part, Piece, Seq, Text};
use crate::holding::Told;
use crate::item::{Item, Kind, late_note, result_text};
use crate::log::Counted;
use crate::plan::READ_ROOMS_MAX;
use crate::policy::Step;
use crate::reader::Decided;
use crate::request::Request;
use crate::screened::Screened;
use crate::session::Session;
use crate::target::EditsPast;
use crate::tokens::Tokens;
use crate::view::{Place, Purpose, View, below};
use std::ops::RangeInclusive;

pub use hint::{Content, Hint, hint};
pub use refusal::Refusal;
pub use teach::{TEACHING_STEP, TEACHING_TOOL, TOOL_NAME, tool};

/// For how many calls passes leave alone what was expanded, unless an expiry or the ask says otherwise.
pub const EXEMPT_CALLS: u32 = 5;
/// How much of a reason is recorded, in characters.
const REASON_CHARS_MAX: usize = 500;

/// What somebody asks to see again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which entry or part.
    pub what: What,
    /// How much of it.
    pub range: Range,
    /// Why, in their own words; it stands on the decision.
    pub reason: Option<Text>,
    /// For how many calls passes leave it alone; `None` is as long as the expiry that reduced it leaves things alone,
    /// or [`EXEMPT_CALLS`].
    pub calls: Option<u32>,
}

/// How an ask names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// By the handle that its marker names.
    Handle(Handle),
    /// By its place among the messages of the previous page, from 0.
    Index(usize),
}

/// How much of a part is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// All of it, as it was said.
    Whole,
    /// These lines of its text, from 1, both ends included.
    Lines(RangeInclusive<usize>),
    /// These items of a JSON array, from 0, both ends included.
    Items(RangeInclusive<usize>),
    /// The lines that hold a text, in any case, and a few around them.
    Search(Text),
}

impl Ask {
    /// Asks for all of something.
    pub fn whole(handle: Handle) -> Ask {
        Ask { what: What::Handle(handle), range: Range::Whole, reason: None, calls: None }
    }

    /// Asks for less of it.
    #[must_use]
    pub fn only(self, range: Range) -> Ask {
        Ask { range, ..self }
    }

    /// Says why.
    #[must_use]
    pub fn because(self, reason: impl Into<Text>) -> Ask {
        Ask { reason: Some(reason.into()), ..self }
    }

    /// Says for how many calls passes leave it alone.
    #[must_use]
    pub fn exempt_for(self, calls: u32) -> Ask {
        Ask { calls: Some(calls), ..self }
    }
}

/// What an ask would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// What was asked for.
    pub handle: Handle,
    /// What to commit for the page to show it. There are none where no page can: a summary of the host's stands for it, or
    /// a model's note stands in its very place.
    pub edits: Vec<Edit>,
    /// Whether the next page shows it once the edits are committed: in its place, or, to a provider that remembers and got
    /// it shortened, as a note that is sent once. If not, only the text reaches the model.
    pub is_in_place: bool,
    /// Whether committing the edits now costs the model the reasoning that it is in the middle of, because the target
    /// binds reasoning to what stands before it: better give the text.
    pub costs_reasoning: bool,
    /// The same as text, to be given to the model as an answer; pictures are named in it, not shown.
    pub text: Text,
    /// What the item costs on the page now.
    pub tokens_before: Tokens,
    /// What it costs with the edits.
    pub tokens_after: Tokens,
}

/// Says what would show again what is asked for, or why that can't be done. Nothing changes.
pub fn expand(request: &Request<'_>, ask: &Ask) -> Result<Expansion, Refusal> {
    // A policy that names what there isn't makes no page either, and says so there.
    let screened = Screened::of(request).unwrap_or_default();
    expand_seen(&screened.request(request), ask)
}

fn expand_seen(request: &Request<'_>, ask: &Ask) -> Result<Expansion, Refusal> {
    let handle = resolve(request, ask.what)?;
    let entry = entry_of(request, handle)?;
    if !has_body(entry) {
        return Err(Refusal::Erased { handle });
    }
    let now = view(request, &[]);
    let place = now.places().get(handle.seq);
    let shown = place.map(|place| Shown::of(&now.items[place.0], place.1, handle));
    if let Some(shown) = shown.as_ref().filter(|it| it.is_on_page && it.reduced.is_empty()) {
        return Err(shown.nothing_to_do(request, handle));
    }
    let is_held = request.held().is_some_and(|session| session.holds(handle.seq));
    if request.held().is_some_and(|session| holds_whole(request, session, handle, entry)) {
        return Err(Refusal::Held { handle });
    }
    let why = reason(request, ask, shown.as_ref());
    let item = place.map(|place| &now.items[place.0]);
    let excerpt = match &ask.range {
        Range::Whole => None,
        range => Some(partial(handle, entry, range, item, shown.as_ref())?),
    };
    // A note on many entries stands in its place, and would go with it.
    let is_noted = shown.as_ref().is_some_and(Shown::is_noted);
    let edits = if is_noted { Vec::new() } else { edits(handle, excerpt.as_ref(), item, shown.as_ref(), &why) };
    let then = view(request, &edits);
    let Some(there) = then.places().get(handle.seq) else {
        return Err(Refusal::NotShown { handle, why: left_out(&then, entry) });
    };
    let restored = &then.items[there.0];
    let is_in_place = match &restored.hidden {
        None => !is_noted,
        // The page has no place for it; the text can be given all the same.
        Some((_, Reason::Folded { .. })) => false,
        Some((_, why)) => return Err(Refusal::NotShown { handle, why: why.clone() }),
    };
    let is_off_page = shown.is_none_or(|shown| !shown.is_on_page);
    let (text, tokens) = match excerpt {
        Some((_, text)) => (text.clone(), now.count(&text)),
        None => (whole_text(handle, restored, there, is_off_page), cost_of(entry, handle)),
    };
    let (tokens_before, tokens_after) = (item.map_or(Tokens(0), Item::cost), restored.cost());
    let (edits, page, added) = match (restored.is_shown(), is_in_place) {
        (false, _) => (Vec::new(), &now, tokens),
        (true, true) => (with_costs(&edits, tokens_before, tokens_after), &then, Tokens(0)),
        (true, false) => (with_costs(&edits, tokens_before, tokens_after), &now, tokens),
    };
    check_room(request, handle, page, added, tokens)?;
    let is_bound = request.target.edits_past == EditsPast::DropsLaterReasoning;
    let costs_reasoning = is_in_place && !is_held && is_bound && now.has_open_round(request);
    Ok(Expansion { handle, edits, is_in_place, costs_reasoning, text, tokens_before, tokens_after })
}

/// What it costs in full.
fn cost_of(entry: &Counted, handle: Handle) -> Tokens {
    handle.part.map_or(entry.cost, |part| entry.part_cost(part))
}

/// How something stands on the page now.
struct Shown {
    is_on_page: bool,
    /// The parts that are asked for and say less than they did, and what each says now.
    reduced: Vec<(usize, Option<Text>)>,
    /// Why the first of them was reduced, or the item hidden.
    why: Option<Reason>,
}

impl Shown {
    fn of(item: &Item<'_>, answer: Option<usize>, handle: Handle) -> Shown {
        let is_asked = |part: usize| handle.covers(PartAt { seq: handle.seq, part });
        let changed: Vec<_> = match answer {
            Some(answer) => item.answers[answer].changed.iter().map(|changed| (0, &**changed)).collect(),
            None => item.changed.iter().map(|(part, changed)| (*part, changed)).collect(),
        };
        let is_less = |why: &Reason, is_edit: bool| is_edit || matches!(why, Reason::Expanded { .. });
        let mut less =
            changed.into_iter().filter(|(part, it)| is_asked(*part) && is_less(&it.why, it.is_edit)).peekable();
        let hidden = item.hidden.as_ref().map(|(_, why)| why.clone());
        let why = hidden.or_else(|| less.peek().map(|(_, changed)| changed.why.clone()));
        let reduced = less.map(|(part, changed)| (part, changed.text.clone())).collect();
        Shown { is_on_page: item.is_shown(), reduced, why }
    }

    /// Whether a model's note stands in its place, for it and others.
    fn is_noted(&self) -> bool {
        self.is_on_page && matches!(self.why, Some(Reason::Summarized { .. }))
    }

    /// Why there is nothing to expand.
    fn nothing_to_do(&self, request: &Request<'_>, handle: Handle) -> Refusal {
        let part = PartAt { seq: handle.seq, part: handle.part.unwrap_or_default() };
        match request.reader.expansion(part) {
            Some(decision) => Refusal::AlreadyExpanded { handle, turn: decision.turn },
            None => Refusal::NeverReduced { handle },
        }
    }
}

fn resolve(request: &Request<'_>, what: What) -> Result<Handle, Refusal> {
    let index = match what {
        What::Handle(handle) => return Ok(handle),
        What::Index(index) => index,
    };
    let previous = request.previous.ok_or(Refusal::IndexWithoutPage { index })?;
    let seq = previous.messages.get(index).and_then(|message| message.seq);
    seq.map(Handle::entry).ok_or(Refusal::UnknownIndex { index, messages: previous.messages.len() })
}

fn entry_of<'a>(request: &Request<'a>, handle: Handle) -> Result<&'a Counted, Refusal> {
    let entry = request.log.get(handle.seq).filter(|it| handle.part.is_none_or(|part| part < it.shown().len()));
    entry.ok_or_else(|| Refusal::UnknownHandle { handle: handle.to_string().into() })
}

/// Whether anything is left of an entry: one that lost its body elsewhere has no parts, or a result with nothing in it.
/// An empty text is a body.
fn has_body(entry: &Counted) -> bool {
    if entry.original().erased.is_some() {
        return false;
    }
    let is_there = |part: &Part| !matches!(part, Part::Result(result) if result.content.is_empty());
    entry.shown().iter().any(is_there)
}

/// The view as compile would make it, with some edits that are not committed.
fn view<'a>(request: &Request<'a>, more: &'a [Edit]) -> View<'a> {
    let bound = request.target.window.map_or(Tokens(u64::MAX), |it| Tokens(it.0.saturating_mul(READ_ROOMS_MAX)));
    View::of(request, Decided { reader: request.reader, more }, bound, Purpose::Compile)
}

/// Whether the provider holds in full all that is asked for.
fn holds_whole(request: &Request<'_>, session: &Session, handle: Handle, entry: &Counted) -> bool {
    let told = Told { session, reader: request.reader };
    let parts = (0..entry.shown().len()).map(|part| PartAt { seq: handle.seq, part });
    parts.filter(|part| handle.covers(*part)).all(|part| told.holds_whole(part))
}

fn reason(request: &Request<'_>, ask: &Ask, shown: Option<&Shown>) -> Reason {
    let turn = request.reader.turn();
    let limit = shown.and_then(|it| it.why.as_ref()).and_then(Reason::expiry_limit);
    let calls = ask.calls.unwrap_or_else(|| limit.map_or(EXEMPT_CALLS, |limit| limit.saturating_add(1)));
    let until = Turn(turn.0.saturating_add(u64::from(calls)));
    let asked = ask.reason.as_ref().map(|reason| match reason.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]).into(),
        None => reason.clone(),
    });
    Reason::Expanded { turn, until, asked }
}

/// The part that a range is taken of, and the text that will stand in its place.
fn partial(
    handle: Handle,
    entry: &Counted,
    range: &Range,
    item: Option<&Item<'_>>,
    shown: Option<&Shown>,
) -> Result<(usize, Text), Refusal> {
    let is_text = |part: &usize| matches!(entry.shown()[*part], Part::Text { .. } | Part::Result(_));
    let reduced = shown.into_iter().flat_map(|it| &it.reduced).map(|(part, _)| *part);
    let all = 0..entry.shown().len();
    let mut parts = reduced.chain(all).filter(|part| handle.part.is_none_or(|asked| asked == *part));
    let part = parts.find(is_text).ok_or(Refusal::NotText { handle })?;
    let named = Handle { seq: handle.seq, part: (part > 0).then_some(part) };
    let text = excerpt::excerpt(named, &part_text(&entry.shown()[part]), range)?;
    // A late result stands as a note, and says so.
    let text = match (item.filter(|it| it.kind == Kind::Late), &entry.shown()[part]) {
        (Some(item), Part::Result(result)) => {
            let content = vec![Piece::Text { text }];
            let tool = item.late.as_ref().and_then(|open| open.tool.as_deref());
            late_note(&crate::entry::ToolResult { content, ..result.clone() }, tool).into()
        }
        _ => text,
    };
    let is_same = |(at, now): &(usize, Option<Text>)| *at == part && now.as_ref() == Some(&text);
    if let (Some(true), Some(Reason::Expanded { turn, .. })) =
        (shown.map(|it| it.reduced.iter().any(is_same)), shown.and_then(|it| it.why.as_ref()))
    {
        return Err(Refusal::AlreadyExpanded { handle, turn: *turn });
    }
    Ok((part, text))
}

/// The edits that show it again. A step is hidden as a whole, and comes back as a whole.
fn edits(
    handle: Handle,
    excerpt: Option<&(usize, Text)>,
    item: Option<&Item<'_>>,
    shown: Option<&Shown>,
    why: &Reason,
) -> Vec<Edit> {
    let Reason::Expanded { until, .. } = *why else { unreachable!("an expansion has its own reason") };
    let edit = |at: Handle, text: Option<Text>| {
        let (change, by) = (Change::Expand { at, text, until }, "expand".into());
        Edit { change, by, why: why.clone(), before: Tokens(0), after: Tokens(0), due: None }
    };
    let step = item.filter(|item| !item.is_shown() && item.seq() != handle.seq).map(Item::seq);
    let is_reduced = shown.is_some_and(|it| !it.reduced.is_empty());
    let own = match excerpt {
        Some((part, text)) => Some(edit(Handle { part: Some(*part), ..handle }, Some(text.clone()))),
        None => (step.is_none() || is_reduced).then(|| edit(handle, None)),
    };
    step.map(|seq| edit(Handle::entry(seq), None)).into_iter().chain(own).collect()
}

/// The last edit carries what all of them cost together.
fn with_costs(edits: &[Edit], before: Tokens, after: Tokens) -> Vec<Edit> {
    let mut edits = edits.to_vec();
    if let Some(last) = edits.last_mut() {
        (last.before, last.after) = (before, after);
    }
    edits
}

/// Why an entry is in no item.
fn left_out(view: &View<'_>, entry: &Counted) -> Reason {
    let own = view.gone.iter().find(|row| row.span.contains(entry.seq)).map(|row| row.why.clone());
    let is_in = |scope: &crate::log::Scope| scope.contains(entry.original());
    let of = |row: &crate::receipt::FateRow| row.span.contains(entry.seq) && row.scope.as_ref().is_none_or(is_in);
    own.or_else(|| below(&view.window).into_iter().find(of).map(|row| row.why)).unwrap_or(Reason::Empty)
}

/// Whether there is room for it: beside all that stays, if the policy can lower the floor, else beside all there is.
fn check_room(
    request: &Request<'_>,
    handle: Handle,
    view: &View<'_>,
    added: Tokens,
    tokens: Tokens,
) -> Result<(), Refusal> {
    let room = request.budget().map_or(Tokens(0), |budget| budget.room());
    let can_lower = request.policy.reduce.iter().any(Step::lowers_floor);
    let kept = || view.items.iter().filter(|item| item.keep.is_some()).map(Item::cost).sum::<Tokens>();
    let cost = added + if can_lower { kept() } else { view.cost() };
    if cost <= room { Ok(()) } else { Err(Refusal::TooLarge { handle, tokens, room: room - (cost - tokens) }) }
}

/// What is asked for, as text, where a provider can't be shown it in its place.
pub(crate) fn told(handle: Handle, item: &Item<'_>, seq: Seq, was_hidden: bool) -> Text {
    let answer = item.answers.iter().position(|answer| answer.result.is_some_and(|entry| entry.seq == seq));
    whole_text(handle, item, (0, answer), was_hidden)
}

/// What is asked for, as text. A step that is not on the page is told with its results.
fn whole_text(handle: Handle, item: &Item<'_>, (_, answer): Place, is_off_page: bool) -> Text {
    let told = |handle: Handle, text: &str| format!("[{handle}: {} characters]\n{text}", text.chars().count());
    let entry = answer.and_then(|answer| item.answers[answer].result).unwrap_or(item.entry);
    let is_asked = |part: &usize| handle.part.is_none_or(|asked| asked == *part);
    let parts = (0..entry.shown().len()).filter(is_asked).map(|part| part_text(&entry.shown()[part]));
    let own = told(handle, &parts.collect::<Vec<_>>().join("\n"));
    let is_step = answer.is_none() && handle.part.is_none() && is_off_page;
    let results = item.results().filter(|_| is_step);
    let results = results.map(|it| told(Handle::entry(it.at.seq), &result_text(it.result)));
    std::iter::once(own).chain(results).collect::<Vec<_>>().join("\n").into()
}

/// A part as text; what is no text is named.
fn part_text(part: &Part) -> Text {
    match part {
        Part::Text { text } => text.clone(),
        Part::Reasoning(it) => it.text.clone(),
        Part::Call(call) => format!("{}({})", call.name, call.arguments.as_str()).into(),
        Part::Result(result) => result_text(result),
        Part::Image(_) => "[image]".into(),
        Part::Audio(_) => "[recording]".into(),
        Part::Document(_) => "[document]".into(),
        Part::File { .. } => "[file]".into(),
        Part::Opaque { .. } => "[content that only its provider reads]".into(),
    }
}

/// The tool that an entry is the result of.
fn tool_of<'a>(request: &Request<'a>, entry: &Counted) -> Option<&'a Text> {
    let call = entry.shown().iter().find_map(|part| match part {
        Part::Result(result) => Some(&result.call),
        _ => None,
    })?;
    let near = (entry.seq.0.saturating_sub(TOOL_REACH)..entry.seq.0).rev().filter_map(|at| request.log.get(Seq(at)));
    let mut calls = near.flat_map(|entry| entry.shown().iter()).filter_map(|part| match part {
        Part::Call(it) => Some(it),
        _ => None,
    });
    calls.find(|it| it.id == *call).map(|it| &it.name)
}

/// How far back the call of a result is looked for.
const TOOL_REACH: u64 = 64;
