//! Fold: a model's note stands for the oldest exchanges.

use crate::edit::Reason;
use crate::entry::{Lane, Role, Seq, Status};
use crate::item::Item;
use crate::log::Counted;
use crate::note::{Earlier, Material};
use crate::plan::READ_ROOMS_MAX;
use crate::policy::TraceRule;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::{Purpose, View};

/// Returns what the next note of a reader would be made of, if all of it can be read.
pub(crate) fn material<'a>(request: &Request<'a>) -> Option<Material<'a>> {
    let bound = request.target.window.map_or(Tokens(u64::MAX), |it| Tokens(it.0.saturating_mul(READ_ROOMS_MAX)));
    let view = View::of(request, Decided { reader: request.reader, more: &[] }, bound, Purpose::Plan);
    view.window.is_complete.then(|| of_view(&view, request))
}

/// What the next note would be made of, as far as a view shows it.
fn of_view<'a>(view: &View<'a>, request: &Request<'_>) -> Material<'a> {
    let earlier = earlier(view);
    let from = earlier.as_ref().map_or(Seq(0), |it| it.span.last.next());
    let is_read = |entry: &&&Counted| entry.seq >= from && is_told(entry, request);
    Material { earlier, entries: view.window.entries.iter().filter(is_read).copied().collect() }
}

/// Whether an entry belongs to what a note is made of: it goes by the log alone, so that a range has the same words
/// whenever it is planned.
fn is_told(entry: &Counted, request: &Request<'_>) -> bool {
    let fact = entry.original();
    let is_talk = request.policy.select.trace == TraceRule::All || fact.lane == Lane::Talk;
    is_talk && fact.section.is_messages() && fact.role != Role::System && fact.status == Status::Sent
}

/// The note that stands on the page.
fn earlier(view: &View<'_>) -> Option<Earlier> {
    let shown = view.items().iter().filter(|item| item.is_shown());
    shown.filter_map(note_in).max_by_key(|it| it.span.last)
}

/// The note that an item shows.
fn note_in(item: &Item<'_>) -> Option<Earlier> {
    item.changed.iter().find_map(|(_, changed)| match (&changed.why, &changed.text) {
        (Reason::Summarized { span, words, .. }, Some(text)) => {
            Some(Earlier { span: *span, words: *words, text: text.clone() })
        }
        _ => None,
    })
}
