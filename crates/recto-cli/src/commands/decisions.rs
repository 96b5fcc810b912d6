//! `recto decisions`: what was decided about a reader's pages.

use crate::args::DecisionsArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::table::{self, Side};
use crate::talk;
use recto::edit::{Change, Decision};
use recto_engine::ReaderName;
use serde::Serialize;

/// How wide a reason may be in the table.
const WHY_WIDTH_MAX: usize = 70;

/// Prints the decisions of a reader, in order.
pub(crate) fn run(args: &DecisionsArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let (at, reader) = (kept.at(&args.name), ReaderName::from(args.reader.reader.as_str()));
    kept.conversation(&args.name)?;
    let decisions = kept.run(kept.engine.decisions(&at, &reader))?;
    if args.output.json {
        return talk::json(&Output { conversation: &args.name, reader: reader.as_str(), decisions });
    }
    if decisions.is_empty() {
        return talk::text(&format!("nothing was decided for reader {:?} here", reader.as_str()));
    }
    let mut rows = vec![["decision", "call", "change", "by", "why"].map(String::from)];
    rows.extend(decisions.iter().map(row));
    talk::text(&table::aligned(&rows, [Side::Right, Side::Right, Side::Left, Side::Left, Side::Left]))
}

/// What `--json` prints; `recto decisions --help` tells its shape.
#[derive(Serialize)]
struct Output<'a> {
    conversation: &'a str,
    reader: &'a str,
    decisions: Vec<Decision>,
}

fn row(decision: &Decision) -> [String; 5] {
    let Decision { ordinal, turn, edit, reverted, .. } = decision;
    let change = match &edit.change {
        Change::Hide(span) => format!("hides {span}"),
        Change::Omit(at) => format!("leaves out {at}"),
        Change::Replace { at, .. } => format!("shortens {at}"),
        Change::Floor(_) => format!("begins at {}", edit.change.seq()),
        Change::Settle { step, .. } => format!("settles a call of {step}"),
        Change::Pin(span) => format!("pins {span}"),
        Change::Cut { from, .. } => format!("cuts at {from}"),
        Change::Expand { at, .. } => format!("shows {at} again"),
        _ => format!("changes {}", edit.change.seq()),
    };
    let why = match reverted {
        Some(reverted) => format!("taken back by {}: {}", reverted.ordinal, edit.why),
        None => edit.why.to_string(),
    };
    let cells = [ordinal.to_string(), turn.0.to_string(), change, edit.by.to_string(), why];
    cells.map(|cell| table::cut(&talk::harmless(&cell).replace('\n', " "), WHY_WIDTH_MAX))
}
