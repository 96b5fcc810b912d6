//! Cache marks: at most four, where the provider takes them, longer-lived ones first.

use super::MARKS_MAX;
use super::turns::{Layout, What};
use crate::page::{After, Mark, Page};
use crate::tool::Tool;
use crate::wire::Wire;
use crate::wire::json::Fields;
use serde_json::{Map, Value};
use std::borrow::Cow;

const PLAIN: &str = r#"{"type":"ephemeral"}"#;
const LONG: &str = r#"{"type":"ephemeral","ttl":"1h"}"#;

/// Puts the marks of a page on its blocks; returns that of the tools.
pub(super) fn place<'p>(page: &'p Page, layout: &mut Layout<'p>, extra: &Map<String, Value>) -> Option<Cow<'p, str>> {
    let own = own_of_tools(page);
    let at_end = extra.get("cache_control").filter(|mark| !mark.is_null());
    let has = own.marks.len() + usize::from(at_end.is_some()) + opaque(layout);
    let places = Places { own: &own, layout, has_end: at_end.is_some() };
    let mut marks: Vec<(Spot, &Mark)> =
        page.marks.iter().filter_map(|mark| Some((places.of(mark.after)?, mark))).collect();
    // Of two at one place the later says what the client wants now.
    marks.sort_by_key(|(spot, _)| *spot);
    marks.reverse();
    marks.dedup_by_key(|(spot, _)| *spot);
    marks.truncate(MARKS_MAX.saturating_sub(has));
    marks.reverse();
    let is_long_at_end = at_end.is_some_and(|mark| mark["ttl"] == "1h");
    let mut is_short = own.marks.iter().any(|mark| !is_long(mark));
    let mut of_tools = None;
    for (spot, mark) in marks {
        let given = mark.given.as_deref().filter(|text| serde_json::from_str::<Fields<'_>>(text).is_ok());
        let text: Cow<'p, str> = match given {
            _ if is_long_at_end && !is_short => LONG.into(),
            Some(text) if !(is_short && is_long(text)) => text.into(),
            _ => PLAIN.into(),
        };
        is_short |= !is_long(&text);
        match spot {
            Spot::Tools => of_tools = Some(text),
            Spot::System(at) => layout.system[at].mark = Some(text),
            Spot::Turn(turn, at) => layout.turns[turn].blocks[at].mark = Some(text),
        }
    }
    of_tools
}

/// A place for a mark, in the order in which the provider reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spot {
    Tools,
    System(usize),
    Turn(usize, usize),
}

struct Places<'l, 'p> {
    own: &'l OwnMarks,
    layout: &'l Layout<'p>,
    /// Whether the provider is told to mark the end by itself.
    has_end: bool,
}

impl Places<'_, '_> {
    fn of(&self, after: After) -> Option<Spot> {
        let spot = match after {
            After::Tools => return (self.own.has_tools && !self.own.is_last_marked).then_some(Spot::Tools),
            After::Message(message) => self.last(|of| of <= message)?,
        };
        (!self.has_end || Some(spot) != self.last(|_| true)).then_some(spot)
    }

    /// The last block of these messages that takes a mark.
    fn last(&self, is_meant: impl Fn(usize) -> bool) -> Option<Spot> {
        for (turn, it) in self.layout.turns.iter().enumerate().rev() {
            let takes = !it.fields.contains_key("clear_at");
            let found = it.blocks.iter().rposition(|block| takes && is_meant(block.message) && block.what.takes_mark());
            if let Some(at) = found {
                return Some(Spot::Turn(turn, at));
            }
        }
        let found = self.layout.system.iter().rposition(|block| is_meant(block.message) && block.what.takes_mark());
        found.map(Spot::System)
    }
}

fn is_long(mark: &str) -> bool {
    let fields: Fields<'_> = serde_json::from_str(mark).unwrap_or_default();
    fields.get("ttl").is_some_and(|ttl| ttl.get() == "\"1h\"")
}

/// The marks that definitions of tools bring.
struct OwnMarks {
    marks: Vec<String>,
    has_tools: bool,
    is_last_marked: bool,
}

fn own_of_tools(page: &Page) -> OwnMarks {
    let tools: Vec<&Tool> = page.tools.iter().flat_map(|tools| tools.taken(Wire::Anthropic)).collect();
    let mark = |tool: &Tool| -> Option<String> {
        if !tool.json.contains("cache_control") {
            return None;
        }
        // As it is written: a definition that is told in other words has no mark.
        let mut written = Vec::new();
        tool.write(&mut written, Wire::Anthropic);
        let fields: Fields<'_> = serde_json::from_slice(&written).ok()?;
        fields.get("cache_control").map(|mark| mark.get().to_string()).filter(|mark| mark != "null")
    };
    let found: Vec<Option<String>> = tools.iter().map(|tool| mark(tool)).collect();
    OwnMarks {
        has_tools: !tools.is_empty(),
        is_last_marked: tools.last().is_some_and(|tool| tool.json.contains("\"cache_control\"")),
        marks: found.into_iter().flatten().collect(),
    }
}

/// How many marks stand in what is sent as it is.
fn opaque(layout: &Layout<'_>) -> usize {
    let is_marked = |payload: &str| payload.contains("\"cache_control\"");
    layout.blocks().filter(|block| matches!(block.what, What::Opaque(payload) if is_marked(payload))).count()
}
