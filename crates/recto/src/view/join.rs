//! Joining: entries become items, and every call gets the one result that stands behind it.

use super::{Purpose, View, Window};
use crate::edit::{Change, Edit, PassName, Reason};
use crate::entry::{CallId, Part, Role, Seq, Span, Status};
use crate::item::{Answer, Changed, Item, Kind, as_result, result_text};
use crate::log::Counted;
use crate::reader::Decided;
use crate::receipt::{Fate, FateRow};
use crate::request::Request;
use crate::tokens::Tokens;
use std::collections::HashMap;

const BY: PassName = PassName::Borrowed("join");

struct Join<'a, 'r> {
    view: View<'a>,
    decided: Decided<'a>,
    purpose: Purpose,
    /// The newest call of each name: its item, and which of its answers.
    calls: HashMap<&'a str, (usize, usize)>,
    request: &'r Request<'a>,
}

pub(super) fn join<'a>(window: Window<'a>, request: &Request<'a>, decided: Decided<'a>, purpose: Purpose) -> View<'a> {
    let view = View {
        items: Vec::with_capacity(window.entries.len()),
        gone: Vec::new(),
        window,
        warnings: Vec::new(),
        settles: Vec::new(),
        unread_calls: Vec::new(),
        counter: request.log.counter(),
        overhead: request.target.message_overhead,
    };
    let mut join = Join { view, decided, purpose, calls: HashMap::new(), request };
    let (named, entries) = (std::mem::take(&mut join.view.window.named), std::mem::take(&mut join.view.window.entries));
    named.iter().chain(&entries).for_each(|entry| join.take(entry));
    (join.view.window.named, join.view.window.entries) = (named, entries);
    let (overhead, counter) = (join.view.overhead, join.view.counter);
    join.view.items.iter_mut().for_each(|item| item.recount(overhead, counter));
    join.view
}

impl<'a> Join<'a, '_> {
    fn take(&mut self, entry: &'a Counted) {
        match entry.role() {
            Role::Tool => (0..entry.shown().len()).for_each(|part| self.result(entry, part)),
            Role::Assistant if entry.original().calls().next().is_some() => self.step(entry),
            _ => self.view.items.push(Item::new(entry, Kind::Message)),
        }
    }

    fn step(&mut self, entry: &'a Counted) {
        let mut item = Item::new(entry, Kind::Step);
        for (at, part) in entry.shown().iter().enumerate() {
            if let Part::Call(call) = part {
                self.calls.insert(call.id.as_str(), (self.view.items.len(), item.answers.len()));
                item.answers.push(Answer { call: at, result: None, changed: None });
            }
        }
        self.view.items.push(item);
    }

    fn result(&mut self, entry: &'a Counted, part: usize) {
        let result = as_result(entry, part);
        let status = entry.original().status;
        if status == Status::Pending {
            return self.leave_out(entry, part, "status", Reason::Status { status });
        }
        let Some(&(item, answer)) = self.calls.get(result.call.as_str()) else {
            return self.without_call(entry, part);
        };
        let step = self.view.items[item].seq();
        let answered = self.view.items[item].answers[answer].result;
        match answered {
            Some((first, at)) if as_result(first, at) == result => {
                self.leave_out(entry, part, "join", Reason::Duplicate { of: first.seq });
            }
            Some(_) => self.late(entry, part, Some((item, answer))),
            None if self.is_settled(step, &result.call, entry.seq) => self.late(entry, part, Some((item, answer))),
            None => self.view.items[item].answers[answer].result = Some((entry, part)),
        }
    }

    /// A result whose step lies below: the floor names calls that were still open, and a reading that stopped early
    /// can't tell. Anything else answers nothing.
    fn without_call(&mut self, entry: &'a Counted, part: usize) {
        let call = &as_result(entry, part).call;
        let is_open = self.view.window.floor.is_some_and(|floor| floor.open.contains(call));
        let is_unread = !self.view.window.is_complete && entry.seq >= self.view.window.start;
        if is_open || is_unread {
            if is_unread {
                self.view.unread_calls.push(call.clone());
            }
            self.late(entry, part, None);
        } else {
            self.leave_out(entry, part, "join", Reason::OrphanResult { call: call.clone() });
        }
    }

    /// Whether a page that was acknowledged showed the call without its result.
    fn is_settled(&mut self, step: Seq, call: &CallId, result: Seq) -> bool {
        if self.decided.settled(step, call) {
            return true;
        }
        let must = self.purpose == Purpose::Plan && self.request.reader.saw_without(step, result);
        if must {
            self.view.settles.push(Edit {
                change: Change::Settle { step, call: call.clone() },
                by: BY,
                why: Reason::LateResult { call: call.clone() },
                before: Tokens(0),
                after: Tokens(0),
            });
        }
        must
    }

    /// The result stands at its own place, as a note.
    fn late(&mut self, entry: &'a Counted, part: usize, call: Option<(usize, usize)>) {
        let result = as_result(entry, part);
        let tool = call.map(|(item, answer)| {
            let item = &self.view.items[item];
            item.call(&item.answers[answer]).name.clone()
        });
        let of = tool.map_or(String::new(), |tool| format!(" {tool}"));
        let error = if result.is_error { ", an error" } else { "" };
        let text = format!("[Late result of call{of} {}{error}]\n{}", result.call, result_text(result));
        let why = Reason::LateResult { call: result.call.clone() };
        let cost = self.view.counter.count(&text);
        let mut item = Item::new(entry, Kind::Late { part });
        item.changed.push((part, Changed { text: Some(text.into()), cost, by: BY, why }));
        self.view.items.push(item);
    }

    fn leave_out(&mut self, entry: &Counted, part: usize, by: &'static str, why: Reason) {
        let (before, after) = (entry.part_cost(part), Tokens(0));
        let (span, by) = (Span::one(entry.seq), by.into());
        self.view.gone.push(FateRow { span, entries: 1, fate: Fate::NotShown, by, why, before, after });
    }
}
