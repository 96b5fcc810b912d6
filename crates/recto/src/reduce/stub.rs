//! What stands in a result's place, and which results may be replaced: shared by the passes that look for repeats.

use crate::edit::{Change, Edit, PassName, Reason, Turn};
use crate::entry::{Lane, RunId};
use crate::item::{Changed, Item, Kind, ResultOf, result_text};
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use std::collections::BTreeMap;

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
    pub(super) it: ResultOf<'v>,
}

/// Returns the results of the conversation that stand whole on the page, in its order.
pub(super) fn whole<'v, 'a>(view: &'v View<'a>) -> impl Iterator<Item = Whole<'v, 'a>> {
    let is_step = |item: &Item<'_>| item.is_shown() && item.is_main() && item.kind() == Kind::Step;
    let steps = view.items().iter().enumerate().filter(move |(_, item)| is_step(item));
    steps.flat_map(|(nth, item)| {
        let answers = item.answers.iter().filter(|answer| answer.result.is_some());
        // What the target must be told in other words is still all there; what was asked back in part is not.
        let is_whole = |changed: &Changed| matches!(changed.why, Reason::NotTaken { .. });
        let whole = answers.zip(item.results()).filter(move |(answer, _)| answer.changed.as_ref().is_none_or(is_whole));
        whole.map(move |(answer, it)| Whole { item, nth, call_at: answer.call, it })
    })
}

/// Returns the same in groups of which one result may stand for another: traces of a run can leave the page together,
/// so nothing outside may depend on them.
pub(super) fn whole_by_run<'v, 'a>(view: &'v View<'a>) -> Vec<Vec<Whole<'v, 'a>>> {
    let mut groups: BTreeMap<(Lane, Option<&RunId>), Vec<Whole<'v, 'a>>> = BTreeMap::new();
    for it in whole(view) {
        let entry = it.item.entry.original();
        // Talk stays on the page, whichever run it belongs to.
        let run = entry.run.as_ref().filter(|_| entry.lane == Lane::Trace);
        groups.entry((entry.lane, run)).or_default().push(it);
    }
    groups.into_values().collect()
}

impl Whole<'_, '_> {
    /// How many acknowledged calls have had it in view.
    pub(super) fn age(&self, request: &Request<'_>) -> u64 {
        request.reader.age(self.it.at.seq)
    }

    /// Whether the model has seen it, and nothing speaks against a change.
    pub(super) fn may_change(&self, request: &Request<'_>) -> bool {
        self.item.keep().is_none() && self.age(request) > 0 && !self.is_touched(request)
    }

    /// Whether the model has not seen it yet, and nothing but its newness speaks against a change.
    pub(super) fn may_come_changed(&self, request: &Request<'_>) -> bool {
        let is_free = matches!(self.item.keep(), None | Some(Reason::Newest));
        is_free && self.age(request) == 0 && !self.is_touched(request)
    }

    fn is_touched(&self, request: &Request<'_>) -> bool {
        Decided { reader: request.reader, more: &[] }.touched(self.it.at)
    }

    /// Returns the edit that puts a stub in its place, if that is really less.
    pub(super) fn stub(&self, why: Stub, view: &View<'_>) -> Option<Edit> {
        let (at, before) = (self.it.at, self.it.cost);
        let whole = result_text(self.it.result);
        let (chars, tool) = (whole.chars().count(), tool_name(&self.it.call.name));
        let mut text = format!("[{tool} result, {chars} characters: {}; recto_expand {at}]", why.what);
        if why.head > 0 {
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
    pub(super) what: String,
    /// How many characters of the result stand before it.
    pub(super) head: usize,
    pub(super) due: Option<Turn>,
}

/// A tool's name, without anything that could be taken for the end of a stub.
pub(super) fn tool_name(name: &str) -> String {
    let plain = name.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'));
    let plain: String = plain.take(NAME_CHARS_MAX).collect();
    if plain.is_empty() { "tool".into() } else { plain }
}
