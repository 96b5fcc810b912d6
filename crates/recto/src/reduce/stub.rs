//! What stands in a result's place, and which results may be replaced: shared by the passes that look for repeats.

use crate::edit::{Change, Edit, PartAt, PassName, Reason, Turn};
use crate::entry::{Call, Lane, RunId, ToolResult};
use crate::item::{Changed, Item, Kind, as_result, result_text};
use crate::log::Counted;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use std::borrow::Cow;
use std::fmt;

/// Shorter results are left alone: a stub would hardly be smaller.
pub(super) const MINIMUM: Tokens = Tokens(32);
/// How much of a tool's name a stub tells, in characters.
const NAME_CHARS_MAX: usize = 40;

/// A result that stands whole on the page, and the item it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Whole<'v, 'a> {
    pub(super) item: &'v Item<'a>,
    /// Which of the items that is.
    pub(super) nth: usize,
    /// Which part of the item's first entry makes the call.
    pub(super) call_at: usize,
    pub(super) entry: &'a Counted,
    /// What it costs as it is shown now.
    pub(super) cost: Tokens,
}

/// Returns the results of the conversation that stand whole on the page, in its order.
pub(super) fn whole<'v, 'a>(view: &'v View<'a>) -> impl Iterator<Item = Whole<'v, 'a>> {
    whole_from(view, 0)
}

/// Returns the same of an item and those behind it.
pub(super) fn whole_from<'v, 'a>(view: &'v View<'a>, from: usize) -> impl Iterator<Item = Whole<'v, 'a>> {
    let is_step = |item: &Item<'_>| item.kind() == Kind::Step && item.is_shown() && item.is_main();
    let steps = view.items().iter().enumerate().skip(from).filter(move |(_, item)| is_step(item));
    steps.flat_map(|(nth, item)| {
        item.answers.iter().filter_map(move |answer| {
            // What the target must be told in other words is still all there; what was asked back in part is not.
            let is_whole = |changed: &Changed| matches!(changed.why, Reason::NotTaken { .. });
            let entry = answer.result.filter(|_| answer.changed.as_ref().is_none_or(is_whole))?;
            let cost = answer.changed.as_ref().map_or(entry.cost, |changed| changed.cost);
            Some(Whole { item, nth, call_at: answer.call, entry, cost })
        })
    })
}

/// Puts results in groups of which one may stand for another: traces of a run can leave the page together, so nothing
/// outside may depend on them.
pub(super) fn by_run<'r, 'v, 'a>(results: &'r mut [Whole<'v, 'a>]) -> impl Iterator<Item = &'r mut [Whole<'v, 'a>]> {
    // Talk stays on the page, whichever run it belongs to. Nearly always that is all there is.
    if results.iter().any(|it| it.run().is_some()) {
        results.sort_by_key(|it| it.run());
    }
    results.chunk_by_mut(|one, next| one.run() == next.run())
}

impl<'a> Whole<'_, 'a> {
    /// Where it stands in the log.
    pub(super) fn at(&self) -> PartAt {
        PartAt { seq: self.entry.seq, part: 0 }
    }

    /// The call that it answers.
    pub(super) fn call(&self) -> &'a Call {
        self.item.call_in(self.call_at)
    }

    /// What the tool said.
    pub(super) fn result(&self) -> &'a ToolResult {
        as_result(self.entry)
    }

    /// The run that it is a trace of, if it is a trace.
    fn run(&self) -> Option<Option<&'a RunId>> {
        let entry = self.item.entry.original();
        (entry.lane == Lane::Trace).then(|| entry.run.as_ref())
    }

    /// How many acknowledged calls have had it in view.
    pub(super) fn age(&self, request: &Request<'_>) -> u64 {
        request.reader.age(self.entry.seq)
    }

    /// Whether the model has seen it, and nothing speaks against a change.
    pub(super) fn may_change(&self, request: &Request<'_>) -> bool {
        self.item.keep().is_none() && request.reader.has_seen(self.entry.seq) && !self.is_touched(request)
    }

    /// Whether the model has not seen it yet, and nothing but its newness speaks against a change.
    pub(super) fn may_come_changed(&self, request: &Request<'_>) -> bool {
        let is_free = matches!(self.item.keep(), None | Some(Reason::Newest));
        is_free && !request.reader.has_seen(self.entry.seq) && !self.is_touched(request)
    }

    fn is_touched(&self, request: &Request<'_>) -> bool {
        Decided { reader: request.reader, more: &[] }.touched(self.at())
    }

    /// Returns the edit that puts a stub in its place, if that is really less.
    pub(super) fn stub(&self, why: Stub, view: &View<'_>) -> Option<Edit> {
        let (at, before) = (self.at(), self.cost);
        let (chars, tool) = (self.entry.result_chars(), tool_name(&self.call().name));
        let mut text = format!("[{tool} result, {chars} characters: {}; recto_expand {at}]", why.what);
        if why.head > 0 {
            let whole = result_text(self.result());
            let end = whole.char_indices().nth(why.head)?.0;
            text = format!("{}\n{text}", &whole[..end]);
        }
        let after = view.count(&text);
        let change = Change::Replace { at, text: text.into() };
        let edit = Edit { change, by: why.by, why: why.why, before, after, due: why.due };
        (after < before).then_some(edit)
    }
}

/// Why a stub is to stand in a result's place.
pub(super) struct Stub {
    pub(super) by: PassName,
    pub(super) why: Reason,
    /// What the stub says beside name, size and handle.
    pub(super) what: What,
    /// How many characters of the result stand before it.
    pub(super) head: usize,
    pub(super) due: Option<Turn>,
}

/// What has become of a result: words, and around them the other result that they speak of, if they speak of one.
pub(super) struct What(pub(super) &'static str, pub(super) Option<(PartAt, &'static str)>);

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)?;
        self.1.map_or(Ok(()), |(at, words)| write!(f, "{at}{words}"))
    }
}

/// A tool's name, without anything that could be taken for the end of a stub.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_plain) {
        return name.into();
    }
    let plain: String = name.chars().filter(|letter| is_plain(*letter)).take(NAME_CHARS_MAX).collect();
    if plain.is_empty() { "tool".into() } else { plain.into() }
}
