//! From items to what is told of them: who said what, merged, and what becomes of each item.

use super::capabilities::Ordered;
use super::memory::Merge;
use super::{Asked, Past, Said, Used, Who};
use crate::edit::Reason;
use crate::entry::{Part, Role, RunId, Text};
use crate::item::{Item, Kind, Laid};
use crate::log::Counted;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The parameter that says most about a call, if it has it; else the first one does.
const TELLING: &str = "query";

/// What of an item stands in a block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    /// The name of the block.
    pub(crate) block: Text,
    /// What it costs there.
    pub(crate) cost: Tokens,
}

/// Says why an entry has the fate it has, where a layout in blocks gave it.
pub(crate) fn told_why(why: &Reason) -> String {
    match why {
        Reason::InBlock { block } => format!("told in block {block}"),
        Reason::NotInBlock { block } => format!("block {block} has no words for it"),
        Reason::OutOfBudget { block } => format!("no room for it in block {block}"),
        Reason::Unread => "further back than is read".into(),
        Reason::Escaped => "what looks like structure was escaped".into(),
        other => format!("{other:?}"),
    }
}

/// Which blocks take what was said.
#[derive(Clone, Debug)]
pub(super) struct Takers {
    /// The block for what was said before, and what of it belongs together.
    pub(super) memory: Option<(Text, Merge)>,
    /// The block for what is said now.
    pub(super) moment: Option<Text>,
}

/// What was said, as blocks tell it.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// What was said before, oldest first.
    pub(super) entries: Vec<Entry>,
    /// What is to be answered, where it stands in the log.
    pub(super) asked: Option<Asked>,
    /// Pictures and the like that were said with it.
    pub(super) media: Vec<Part>,
}

/// Something that was said before, with the items that it is told of.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) past: Past,
    /// The items, and what each costs in the block.
    pub(super) items: Vec<(usize, Tokens)>,
    /// Whether it stands beside the newest, however old it is.
    pub(super) stays: bool,
}

/// What belongs together.
#[derive(PartialEq, Eq, Hash)]
enum Together {
    Run(RunId),
    Exchange(usize),
}

/// Says of every item where it stands: as a message, in a block, or behind all blocks.
pub(super) fn lay(view: &mut View<'_>, request: &Request<'_>, takers: &Takers) -> Gathered {
    let under_way = UnderWay::of(view, request, takers);
    let mut gathered = Gathered::default();
    if let (Some(at), Some(block)) = (under_way.asked, &takers.moment) {
        let item = &view.items[at];
        let text = words(item).into();
        gathered.asked = Some(Asked { text, at: item.entry.original().at });
        gathered.media = media(item.parts(), item);
        let cost = item.cost;
        view.items[at].laid = Laid::Told(Share { block: block.clone(), cost });
    }
    for at in under_way.behind.clone() {
        let item = &mut view.items[at];
        if item.is_main() && item.role() != Role::System && item.laid == Laid::Message {
            item.laid = Laid::Behind;
        }
    }
    if let Some((block, merge)) = &takers.memory {
        gathered.entries = entries(view, block, *merge);
    }
    gathered
}

/// The exchange that is under way: what was asked, and what was done since.
struct UnderWay {
    asked: Option<usize>,
    behind: std::ops::Range<usize>,
}

impl UnderWay {
    fn of(view: &View<'_>, request: &Request<'_>, takers: &Takers) -> UnderWay {
        let none = UnderWay { asked: None, behind: 0..0 };
        let is_talk = |item: &Item<'_>| item.is_shown() && item.is_main() && item.role() != Role::System;
        let last = view.items.iter().rposition(is_talk);
        let takes = takers.memory.is_some() || takers.moment.is_some();
        let Some(last) = last.filter(|_| takes && request.input.is_none()) else { return none };
        // Behind a finished answer nothing waits.
        let is_finished = |item: &Item<'_>| item.kind == Kind::Message && item.role() == Role::Assistant;
        if is_finished(&view.items[last]) {
            return none;
        }
        let asked = view.items[..=last].iter().rposition(|item| is_talk(item) && item.opens_exchange());
        let first = asked.or_else(|| view.items.iter().position(is_talk)).unwrap_or(last);
        UnderWay { asked, behind: first..last + 1 }
    }
}

/// What was said before, with what belongs together in one.
fn entries(view: &mut View<'_>, block: &Text, merge: Merge) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut known: HashMap<Together, usize> = HashMap::new();
    let mut exchange = 0;
    for at in 0..view.items.len() {
        let item = &view.items[at];
        if item.laid != Laid::Message || (item.is_main() && item.role() == Role::System) {
            continue;
        }
        let is_model = item.is_main() && item.role() == Role::Assistant;
        // Words that expired leave no trace but for the tools that were used.
        let has_gone = matches!(item.hidden, Some((_, Reason::Removed { .. })));
        if !(item.is_shown() || has_gone && is_model) {
            continue;
        }
        let said = if item.is_shown() { said(item) } else { calls(item).into_iter().collect() };
        let is_told = item.kind != Kind::Late && item.role() != Role::Tool && !said.is_empty();
        if !is_told {
            let why = Reason::NotInBlock { block: block.clone() };
            view.items[at].hidden.get_or_insert(("blocks".into(), why));
            continue;
        }
        let cost = said.iter().map(|it| view.count(&as_text(it))).sum();
        exchange += usize::from(item.opens_exchange() && item.is_main());
        let original = item.entry.original();
        let run = original.run.clone().map(Together::Run);
        let by_exchange = || (merge == Merge::Exchange).then_some(Together::Exchange(exchange));
        let together = if is_model { run.or_else(by_exchange) } else { None };
        let who = match (item.is_main(), item.role()) {
            (false, _) => Who::Host,
            (true, Role::User) => Who::Human,
            _ => Who::Model,
        };
        let stays = !item.is_main() || item.keep == Some(Reason::Pinned);
        let share = item.is_shown().then_some((at, cost));
        let found = together.as_ref().and_then(|it| known.get(it)).copied();
        match found.map(|found| &mut entries[found]) {
            Some(entry) => {
                entry.past.said.extend(said);
                entry.past.at = original.at.or(entry.past.at);
                entry.items.extend(share);
                entry.stays |= stays;
            }
            None => {
                known.extend(together.map(|it| (it, entries.len())));
                let items = share.into_iter().collect();
                entries.push(Entry { past: Past { who, at: original.at, said }, items, stays });
            }
        }
    }
    // What was left of an entry when nothing of it is shown is no entry; and one stands where its last words do.
    entries.retain(|entry| !entry.items.is_empty());
    entries.sort_by_key(|entry| entry.items.last().map(|(at, _)| *at));
    entries
}

/// What an item says: words, then the calls that were made with them.
fn said(item: &Item<'_>) -> Vec<Said> {
    let words = words(item);
    let words = (!words.is_empty()).then(|| Said::Words(words.into()));
    words.into_iter().chain(calls(item)).collect()
}

/// The words of an item as they are shown; pictures and the like are named.
fn words(item: &Item<'_>) -> String {
    let parts = item.parts().iter().enumerate();
    let told = parts.filter_map(|(at, part)| {
        let changed = item.changed_part(at);
        match (part, changed) {
            (Part::Call(_) | Part::Reasoning(_) | Part::Opaque { .. }, _) => None,
            (_, Some(changed)) => changed.text.clone(),
            (Part::Text { text }, None) => Some(text.clone()),
            (Part::Image(_), None) => Some("[image]".into()),
            (Part::Audio(_), None) => Some("[audio]".into()),
            (Part::Document(_), None) => Some("[document]".into()),
            (Part::File { .. }, None) => Some("[file]".into()),
            (Part::Result(_), None) => None,
        }
    });
    let note = item.note.as_ref().and_then(|note| note.text.clone());
    told.chain(note).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The calls of an item, in one.
fn calls(item: &Item<'_>) -> Option<Said> {
    let used = item.parts().iter().enumerate().filter_map(|(at, part)| match part {
        Part::Call(call) => {
            let changed = item.changed_part(at).and_then(|changed| changed.text.clone());
            let argument = telling(changed.as_deref().unwrap_or(call.arguments.as_str()));
            Some(Used { name: call.name.clone(), argument })
        }
        _ => None,
    });
    let used: Vec<Used> = used.collect();
    (!used.is_empty()).then_some(Said::Calls(used))
}

/// The parameter of a call that says most about it, and what it was. Arguments may be an object, or a text that holds one.
fn telling(arguments: &str) -> Option<(Text, Text)> {
    let inner: Option<String> = serde_json::from_str(arguments).ok();
    let arguments = inner.as_deref().unwrap_or(arguments);
    let fields: Ordered<'_> = serde_json::from_str(arguments).ok()?;
    let query = fields.0.iter().find(|(key, _)| key == TELLING);
    let (key, raw) = query.or(fields.0.first())?;
    let value = match serde_json::from_str(raw.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Null) => String::new(),
        _ => RawValue::get(raw).to_string(),
    };
    (!value.is_empty()).then(|| (key.as_str().into(), value.into()))
}

fn as_text(said: &Said) -> String {
    match said {
        Said::Words(text) => text.to_string(),
        Said::Calls(used) => {
            let told = used.iter().map(|it| match &it.argument {
                Some((key, value)) => format!("[tool_use:{}, {key}:{value}]", it.name),
                None => format!("[tool_use:{}]", it.name),
            });
            told.collect()
        }
    }
}

/// Pictures, recordings and documents of an item that stand beside its words.
fn media(parts: &[Part], item: &Item<'_>) -> Vec<Part> {
    let is_media =
        |part: &Part| matches!(part, Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::File { .. });
    let whole = parts.iter().enumerate().filter(|(at, part)| is_media(part) && item.changed_part(*at).is_none());
    whole.map(|(_, part)| part.clone()).collect()
}

/// What is said now, if it is in no log yet.
pub(super) fn said_now(input: &Counted, request: &Request<'_>) -> (Asked, Vec<Part>) {
    let target = request.target;
    let mut texts: Vec<Text> = Vec::new();
    let mut media: Vec<Part> = Vec::new();
    for part in input.shown().iter() {
        use crate::view::shape;
        match (shape::refused(part, Role::User, target), shape::told(part, target), part) {
            (Some(_), _, _) => {}
            (None, Some(text), _) => texts.push(text),
            (None, None, Part::Text { text }) => texts.push(text.clone()),
            (None, None, part) => media.push(part.clone()),
        }
    }
    (Asked { text: texts.join("\n").into(), at: input.original().at }, media)
}
