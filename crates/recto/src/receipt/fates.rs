//! Every entry's one fate.

use super::{Fate, FateRow};
use crate::edit::{PassName, Reason};
use crate::entry::{Seq, Span, Text};
use crate::holding::Holding;
use crate::item::{Changed, Item, Laid};
use crate::log::Counted;
use crate::session::Session;
use crate::tokens::Tokens;
use crate::view::{View, below};

/// Returns one row for every entry or unread run, in order; together they cover the log.
pub(super) fn rows(view: &View<'_>, holding: &Holding<'_>) -> Vec<FateRow> {
    let mut rows = below(&view.window);
    rows.reserve(view.items.iter().map(Item::messages).sum::<usize>() + view.gone.len());
    for item in &view.items {
        item_rows(item, view, &mut rows);
    }
    rows.extend(view.gone.iter().cloned());
    // Runs that share their span with others come last. Nearly always that is the order of the page.
    let place = |row: &FateRow| (row.scope.is_some() && row.span.first == Seq(0) && row.entries > 1, row.span.first);
    if !rows.is_sorted_by_key(place) {
        rows.sort_by_key(place);
    }
    if let Some(acked) = holding.session.and_then(Session::acked) {
        rows.iter_mut().for_each(|row| hold(row, acked, holding));
    }
    rows
}

/// What the provider holds is not shown again, but for what it was sent shortened and is asked for now.
fn hold(row: &mut FateRow, acked: Seq, holding: &Holding<'_>) {
    let seq = row.span.first;
    if row.entries == 1 && holding.told.contains(&seq) {
        return;
    }
    let is_held = row.fate != Fate::NotShown && holding.holds(seq);
    let stale = holding.stale.get(&seq).copied().filter(|_| row.entries == 1);
    let below = holding.floor.filter(|_| holding.is_stale_below(&row.why)).map(|_| row.before);
    let why = match stale.or(below) {
        Some(tokens) => Reason::RemoteStale { acked, tokens },
        None if is_held && !holding.notes.contains_key(&seq) => Reason::BeforeCursor { acked },
        None => return,
    };
    (row.fate, row.by, row.why, row.after) = (Fate::NotShown, "session".into(), why, Tokens(0));
}

fn item_rows(item: &Item<'_>, view: &View<'_>, rows: &mut Vec<FateRow>) {
    let floor = view.window.floor.map(|floor| floor.at).filter(|&at| item.is_main() && item.seq() < at);
    let stays = |seq: Seq| match (item.expanded_at(seq), &item.keep, floor) {
        (Some(why), _, _) => ("expand".into(), why.clone()),
        (None, Some(keep), _) => ("select".into(), keep.clone()),
        (None, None, Some(floor)) => ("select".into(), Reason::KeptByFloor { floor }),
        (None, None, None) => ("select".into(), Reason::Selected),
    };
    let told = match &item.laid {
        Laid::Told(share) => Some(share),
        _ => None,
    };
    let mut row = |entry: &Counted, changed: Option<&Changed>, after: Tokens| {
        let (seq, before) = (entry.seq, entry.cost);
        let (fate, by, why, after): (Fate, PassName, Reason, Tokens) = match (&item.hidden, changed) {
            (Some((by, why)), _) => (Fate::NotShown, by.clone(), why.clone(), Tokens(0)),
            (None, Some(changed)) => (Fate::Changed, changed.by.clone(), changed.why.clone(), after),
            (None, None) if told.is_some() => {
                let block = told.map(|share| share.block.clone()).unwrap_or_default();
                (Fate::Changed, "blocks".into(), Reason::InBlock { block }, after)
            }
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
    let changed = item.changed.first().map(|(_, changed)| changed).or(item.note.as_deref());
    let mut left_out = Vec::new();
    row(item.entry, changed, told.map_or(after, |share| share.cost));
    for answer in item.answers.iter() {
        if let Some(entry) = answer.result {
            if let Some(share) = told.filter(|_| item.is_shown()) {
                left_out.push(untold(entry, &share.block));
                continue;
            }
            let after = answer.changed.as_ref().map_or(entry.cost, |changed| changed.cost);
            row(entry, answer.changed.as_deref(), after);
        }
    }
    rows.extend(left_out);
}

/// A result whose call is told in a block: there is no more of it.
fn untold(entry: &Counted, block: &Text) -> FateRow {
    let (span, before, after) = (Span::one(entry.seq), entry.cost, Tokens(0));
    let why = Reason::NotInBlock { block: block.clone() };
    FateRow { span, entries: 1, scope: None, fate: Fate::NotShown, by: "blocks".into(), why, before, after }
}
