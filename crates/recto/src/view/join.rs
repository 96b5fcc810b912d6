//! Joining: entries become items, and every call gets the one result that stands behind it.

use super::{Purpose, Shelf, View, Window};
use crate::digest::Digest;
use crate::edit::{Answered, Change, Edit, OpenCall, PassName, Reason};
use crate::entry::{CallId, Part, Role, Seq, Span, Status};
use crate::item::{Answers, Changed, Item, Kind, as_result, late_note};
use crate::log::Counted;
use crate::policy::StatusRule;
use crate::reader::Decided;
use crate::receipt::{Fate, FateRow};
use crate::request::Request;
use crate::tokens::Tokens;
use std::collections::HashMap;

const BY: PassName = PassName::Borrowed("join");
/// Among how many calls of the newest step one is looked for, one after the other.
const NEAR_MAX: usize = 16;

struct Join<'a, 'r> {
    view: View<'a>,
    decided: Decided<'a>,
    purpose: Purpose,
    calls: Calls<'a>,
    /// The late results that are told of, so that none is told of twice.
    notes: HashMap<Digest, Seq>,
    /// The call that the newest step came with.
    came: usize,
    request: &'r Request<'a>,
}

/// The newest call of each name: its item, and which of its answers.
#[derive(Default)]
struct Calls<'a> {
    named: HashMap<&'a str, (usize, usize)>,
    /// How many of the items are in there: nobody asks while every result follows its call.
    items: usize,
}

impl<'a> Calls<'a> {
    fn newest(&mut self, name: &str, items: &[Item<'a>]) -> Option<(usize, usize)> {
        let last = items.last().filter(|item| item.answers.len() <= NEAR_MAX);
        let near = last.and_then(|item| item.answers.iter().position(|it| item.call(it).id.as_str() == name));
        if let Some(answer) = near {
            return Some((items.len() - 1, answer));
        }
        for (at, item) in items.iter().enumerate().skip(self.items) {
            let calls = item.answers.iter().map(|answer| item.call(answer).id.as_str());
            self.named.extend(calls.enumerate().map(|(answer, name)| (name, (at, answer))));
        }
        self.items = items.len();
        self.named.get(name).copied()
    }
}

pub(super) fn join<'a>(window: Window<'a>, request: &Request<'a>, decided: Decided<'a>, purpose: Purpose) -> View<'a> {
    let view = View {
        items: Vec::with_capacity(window.entries.len()),
        lowest: window.start,
        gone: Vec::new(),
        window,
        warnings: Vec::new(),
        settles: Vec::new(),
        unread_calls: Vec::new(),
        is_final: false,
        cut: 0,
        spared: None,
        session: request.held(),
        counter: request.log.counter(),
        overhead: request.target.message_overhead,
        late_cost: request.late_system_cost(),
        has_user_head: request.has_user_head(),
        room: request.budget().ok().map(|budget| budget.room()),
        tells_errors: request.target.tells_errors,
        turn: request.reader.turn(),
        screen: None,
    };
    let window = &view.window;
    let mut entries: Vec<&Counted> = Vec::with_capacity(window.named.len() + window.entries.len());
    let shelve = |shelf: &Shelf<'a>, entries: &mut Vec<&'a Counted>| entries.extend_from_slice(&shelf.entries);
    window.before.iter().for_each(|shelf| shelve(shelf, &mut entries));
    entries.extend_from_slice(&window.named);
    entries.extend_from_slice(&window.entries);
    window.after.iter().for_each(|shelf| shelve(shelf, &mut entries));
    let mut join = Join { view, decided, purpose, calls: Calls::default(), notes: HashMap::new(), came: 0, request };
    for entry in entries {
        join.take(entry);
    }
    let (overhead, counter) = (join.view.overhead, join.view.counter);
    join.view.items.iter_mut().for_each(|item| item.recount(overhead, counter));
    join.view
}

impl<'a> Join<'a, '_> {
    fn take(&mut self, entry: &'a Counted) {
        match entry.role() {
            Role::Tool => self.result(entry),
            Role::Assistant if entry.original().calls().next().is_some() => self.step(entry),
            _ => self.view.items.push(Item::new(entry, Kind::Message)),
        }
    }

    fn step(&mut self, entry: &'a Counted) {
        let parts = entry.shown().iter().enumerate();
        let calls = parts.filter(|(_, part)| matches!(part, Part::Call(_))).map(|(at, _)| at);
        let mut item = Item::new(entry, Kind::Step);
        item.answers = Answers::to(calls);
        self.view.items.push(item);
    }

    fn result(&mut self, entry: &'a Counted) {
        let result = as_result(entry);
        let status = entry.original().status;
        if status == Status::Pending {
            return self.leave_out(entry, "status", Reason::Status { status });
        }
        let Some((item, answer)) = self.calls.newest(result.call.as_str(), &self.view.items) else {
            return self.without_call(entry);
        };
        let of = &self.view.items[item];
        let is_noted = self.request.policy.select.status == StatusRule::Note;
        let (step, was_shown) = (of.seq(), of.entry.original().status == Status::Sent || is_noted);
        let (call, answered) = (of.call(&of.answers[answer]), of.answers[answer].result);
        let late = || OpenCall {
            call: call.id.clone(),
            tool: Some(call.name.clone()),
            answered: answered.map(|first| Answered { seq: first.seq, digest: first.digest }),
        };
        match answered {
            Some(first) if first.digest == entry.digest => {
                self.leave_out(entry, "join", Reason::Duplicate { of: first.seq });
            }
            Some(_) => self.late(entry, late()),
            None if self.is_settled(was_shown, step, &result.call, entry.seq) => self.late(entry, late()),
            None => self.view.items[item].answers[answer].result = Some(entry),
        }
    }

    /// A result whose step lies below: the floor names calls that were still open, and a reading that stopped early
    /// can't tell. Anything else answers nothing.
    fn without_call(&mut self, entry: &'a Counted) {
        let call = &as_result(entry).call;
        let mut known = self.view.window.floor.into_iter().flat_map(|floor| &floor.open).filter(|it| it.call == *call);
        let told = known.clone().filter_map(|open| open.answered).find(|answered| answered.digest == entry.digest);
        let open = known.next_back();
        let is_unread = !self.view.window.is_complete && entry.seq >= self.view.window.start;
        match told {
            Some(answered) => return self.leave_out(entry, "join", Reason::Duplicate { of: answered.seq }),
            None if open.is_none() && !is_unread => {
                return self.leave_out(entry, "join", Reason::OrphanResult { call: call.clone() });
            }
            None => {}
        }
        let unread = || OpenCall { call: call.clone(), tool: None, answered: None };
        let late = open.cloned().unwrap_or_else(unread);
        if open.is_none() {
            self.view.unread_calls.push(late.clone());
        }
        self.late(entry, late);
    }

    /// Whether a page that was acknowledged showed the call without its result.
    fn is_settled(&mut self, was_shown: bool, step: Seq, call: &CallId, result: Seq) -> bool {
        if self.decided.settled(step, call) {
            return true;
        }
        let is_plan = self.purpose == Purpose::Plan;
        let must = is_plan && was_shown && self.request.reader.saw_without(step, result, &mut self.came);
        if !must {
            return false;
        }
        let settle = Change::Settle { step, call: call.clone() };
        if !self.view.settles.iter().any(|edit| edit.change == settle) {
            self.view.settles.push(Edit {
                change: settle,
                by: BY,
                why: Reason::LateResult { call: call.clone() },
                before: Tokens(0),
                after: Tokens(0),
                due: None,
            });
        }
        true
    }

    /// The result stands at its own place, as a note.
    fn late(&mut self, entry: &'a Counted, open: OpenCall) {
        let below = self.view.window.floor.into_iter().flat_map(|floor| &floor.open).filter_map(|it| it.answered);
        let told = below.filter(|it| it.digest == entry.digest).map(|it| it.seq).find(|&seq| seq < entry.seq);
        if let Some(of) = self.notes.get(&entry.digest).copied().or(told) {
            return self.leave_out(entry, "join", Reason::Duplicate { of });
        }
        self.notes.insert(entry.digest, entry.seq);
        let text = late_note(as_result(entry), open.tool.as_deref());
        let cost = self.view.counter.count(&text);
        let why = Reason::LateResult { call: open.call.clone() };
        let mut item = Item::new(entry, Kind::Late);
        item.late = Some(Box::new(open));
        item.changed.push((0, Changed { text: Some(text.into()), cost, by: BY, why, is_edit: false }));
        self.view.items.push(item);
    }

    fn leave_out(&mut self, entry: &Counted, by: &'static str, why: Reason) {
        let (before, after) = (entry.cost, Tokens(0));
        let (span, by) = (Span::one(entry.seq), by.into());
        self.view.gone.push(FateRow { span, entries: 1, scope: None, fate: Fate::NotShown, by, why, before, after });
    }
}
