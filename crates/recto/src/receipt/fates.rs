//! Every entry's one fate.

use super::{Fate, FateRow};
use crate::edit::{PassName, Reason};
use crate::entry::{Seq, Span};
use crate::item::{Changed, Item};
use crate::log::Counted;
use crate::page::{Mode, Page};
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::{View, below};

/// Returns one row for every entry or unread run, in order; together they cover the log.
pub(super) fn rows(view: &View<'_>, page: &Page, request: &Request<'_>) -> Vec<FateRow> {
    let mut rows = below(&view.window);
    let acked = request.session.and_then(|session| session.acked()).filter(|_| page.mode != Mode::Full);
    for item in &view.items {
        item_rows(item, view, &mut rows);
    }
    rows.extend(view.gone.iter().cloned());
    // Runs that share their span with others come last.
    rows.sort_by_key(|row| (row.scope.is_some() && row.span.first == Seq(0) && row.entries > 1, row.span.first));
    if let Some((acked, session)) = acked.zip(request.session) {
        for row in rows.iter_mut().filter(|row| row.fate != Fate::NotShown && session.holds(row.span.first)) {
            (row.fate, row.by, row.why, row.after) =
                (Fate::NotShown, "session".into(), Reason::BeforeCursor { acked }, Tokens(0));
        }
    }
    rows
}

fn item_rows(item: &Item<'_>, view: &View<'_>, rows: &mut Vec<FateRow>) {
    let floor = view.window.floor.map(|floor| floor.at).filter(|&at| item.is_main() && item.seq() < at);
    let stays = |seq: Seq| match (item.expanded_at(seq), &item.keep, floor) {
        (Some(why), _, _) => ("expand".into(), why.clone()),
        (None, Some(keep), _) => ("select".into(), keep.clone()),
        (None, None, Some(floor)) => ("select".into(), Reason::KeptByFloor { floor }),
        (None, None, None) => ("select".into(), Reason::Selected),
    };
    let mut row = |entry: &Counted, changed: Option<&Changed>, after: Tokens| {
        let (seq, before) = (entry.seq, entry.cost);
        let (fate, by, why, after): (Fate, PassName, Reason, Tokens) = match (&item.hidden, changed) {
            (Some((by, why)), _) => (Fate::NotShown, by.clone(), why.clone(), Tokens(0)),
            (None, Some(changed)) => (Fate::Changed, changed.by.clone(), changed.why.clone(), after),
            (None, None) => match entry.original().erased {
                Some(erased) => (Fate::Changed, "erase".into(), Reason::Erased { bytes: erased.bytes }, before),
                None => {
                    let (by, why): (PassName, Reason) = stays(seq);
                    (Fate::Shown, by, why, before)
                }
            },
        };
        rows.push(FateRow { span: Span::one(seq), entries: 1, scope: None, fate, by, why, before, after });
    };
    let mut after = item.entry.cost;
    for (part, changed) in &item.changed {
        after = after + changed.cost - item.entry.part_cost(*part);
    }
    after += item.note.as_ref().map_or(Tokens(0), |note| note.cost);
    let changed = item.changed.first().map(|(_, changed)| changed).or(item.note.as_ref());
    row(item.entry, changed, after);
    for answer in &item.answers {
        if let Some(entry) = answer.result {
            let after = answer.changed.as_ref().map_or(entry.cost, |changed| changed.cost);
            row(entry, answer.changed.as_ref(), after);
        }
    }
}
