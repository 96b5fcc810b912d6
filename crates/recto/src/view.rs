//! The view: the items one reader would see, from its floor up.
//!
//! A view reads no further down than its floor, the edge, or the bound it was given, plus the few entries that
//! are named below. Only [`View::apply`] changes what is shown.

mod expanded;
mod join;
mod read;
pub(crate) mod shape;

use crate::edit::{Change, Edit, OpenCall, PartAt, Reason, Turn};
use crate::entry::{Entry, Part, Role, Seq, Span, Status, Text};
use crate::item::{Changed, Item, Kind};
use crate::page::Page;
use crate::policy::{AuthorRule, StatusRule};
use crate::reader::{Decided, TextCost};
use crate::receipt::{FateRow, Warning};
use crate::redact::Screen;
use crate::request::Request;
use crate::select;
use crate::session::Session;
use crate::target::Target;
use crate::tokens::{Count, Tokens};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use expanded::{Expanded, Later};
pub(crate) use read::{Shelf, Window, below};

/// Among how many places the next one is looked for, one after the other.
const NEAR_PLACES: usize = 4;

/// Where an entry stands: in which item, and as which of its answers.
pub(crate) type Place = (usize, Option<usize>);

/// The items one reader would see.
#[derive(Debug)]
pub struct View<'a> {
    pub(crate) items: Vec<Item<'a>>,
    /// Entries that are in no item, with their fates.
    pub(crate) gone: Vec<FateRow>,
    pub(crate) window: Window<'a>,
    pub(crate) warnings: Vec<Warning>,
    /// What planning must record before the next page: calls that were shown unanswered stay so.
    pub(crate) settles: Vec<Edit>,
    /// Calls whose step was not read, though a result of theirs was.
    pub(crate) unread_calls: Vec<OpenCall>,
    /// Whether a plan reads no further than this.
    pub(crate) is_final: bool,
    pub(crate) counter: &'a dyn Count,
    pub(crate) overhead: Tokens,
    /// What it costs to say that an instruction is one, where it stands in the user's place.
    pub(crate) late_cost: Tokens,
    /// Whether the page opens with a fragment that is no instruction, so that every instruction of the history is late.
    pub(crate) has_user_head: bool,
    /// What there is room for beside what goes with the call; `None` where the settings leave no room at all.
    pub(crate) room: Option<Tokens>,
    /// Whether failed results say so in their texts.
    pub(crate) tells_errors: bool,
    /// No floor may lie below this: what lies there was not read, or has gone already.
    pub(crate) lowest: Seq,
    /// The first item that passes may change; what lies before waits for its moment.
    pub(crate) cut: usize,
    /// The session whose provider holds what passes may not change now.
    pub(crate) spared: Option<&'a Session>,
    /// The session whose provider is told only what is new, as far as log and request say.
    pub(crate) session: Option<&'a Session>,
    /// The call that it is made for.
    pub(crate) turn: Turn,
    /// What decisions are read through that another policy has made: it may have shown more.
    pub(crate) screen: Option<&'a Screen>,
}

/// What a view is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// What must be settled is settled, and proposed.
    Plan,
    /// Only what was decided applies.
    Compile,
}

impl<'a> View<'a> {
    /// Reads a log back until its floor, or until `bound` is spent, and applies what was decided.
    pub(crate) fn of(request: &Request<'a>, decided: Decided<'a>, bound: Tokens, purpose: Purpose) -> View<'a> {
        let window = read::window(request, decided, bound);
        let shelved = window.before.iter().chain(&window.after).flat_map(|shelf| &shelf.entries);
        let named: Vec<Seq> = window.named.iter().chain(shelved).map(|entry| entry.seq).collect();
        let edits: Vec<(&Edit, Known<'_>)> = decided.edits(window.start, &named).collect();
        let too_many = window.too_many.clone();
        let mut view = join::join(window, request, decided, purpose);
        view.warnings.extend(too_many.into_iter().map(|what| Warning::TooMany { what: what.into() }));
        view.screen = others(request, decided).then(|| request.log.screen());
        view.shape(request.target);
        view.select(request);
        view.tell(request);
        view.hide_empty();
        view.mark(request);
        view.apply(edits);
        view.fold();
        if let Some(floor) = view.window.floor {
            let late = decided.pins().filter(|span| span.last < floor.at);
            let gone = late.filter(|span| !floor.keeps.iter().any(|&seq| span.contains(seq)));
            view.warnings.extend(gone.map(|at| Warning::PinBelowFloor { at, floor: floor.at }));
        }
        view
    }

    /// Returns its items in the order they stand on the page, hidden ones included.
    pub fn items(&self) -> &[Item<'a>] {
        &self.items
    }

    /// Returns the items that a pass may reduce.
    pub fn editable(&self) -> impl Iterator<Item = &Item<'a>> {
        self.items.iter().filter(|item| item.is_shown() && item.keep.is_none())
    }

    /// Whether more lies below that a plan will not read: what was read must do.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.is_final && !self.window.is_complete
    }

    /// Takes what was read for all that there is to read; the receipt says how far that went.
    pub(crate) fn take_as_whole(&mut self) {
        if !self.window.is_complete {
            (self.window.is_complete, self.window.is_cut) = (true, true);
            self.warnings.push(Warning::ReadBound { from: self.window.start });
        }
    }

    /// Returns what its items cost.
    pub fn cost(&self) -> Tokens {
        let items: Tokens = self.items.iter().map(Item::cost).sum();
        if self.late_cost == Tokens(0) {
            return items;
        }
        let is_new = |item: &Item<'_>| self.session.is_some_and(|session| !session.holds(item.seq()));
        let shown = self.items.iter().filter(|item| item.is_message());
        // Behind what a provider holds, every instruction comes late.
        let opens_page = |item: &Item<'_>| item.role() == Role::System && !is_new(item) && !self.has_user_head;
        let late = shown.skip_while(|item| opens_page(item));
        items + Tokens(self.late_cost.0 * late.filter(|item| item.role() == Role::System).count() as u64)
    }

    /// Whether passes may change an entry now, by the item that it stands in.
    pub(crate) fn may_change(&self, item: usize, seq: Seq) -> bool {
        item >= self.cut && self.spared.is_none_or(|session| !session.holds(seq))
    }

    /// Returns what a text costs here.
    pub fn count(&self, text: &str) -> Tokens {
        self.counter.count(text)
    }

    /// Leaves out what the target takes from nobody, and tells in text what it has no field for.
    fn shape(&mut self, target: &Target) {
        for item in &mut self.items {
            let before = item.changed.len();
            let reasoning = shape::reasoning_refused(item.entry.shown(), target);
            for (at, part) in item.entry.shown().iter().enumerate() {
                let is_reasoning = matches!(part, Part::Reasoning(_));
                let what = if is_reasoning { reasoning } else { shape::refused(part, item.entry.role(), target) };
                match (what, shape::told(part, target)) {
                    (Some(what), _) => item.changed.push((at, shape::not_taken(what, None, Tokens(0)))),
                    (None, Some(text)) => {
                        let cost = self.counter.count(&text);
                        item.changed.push((at, shape::not_taken("such media", Some(text), cost)));
                    }
                    (None, None) => {}
                }
            }
            let mut answers_changed = false;
            let results = item.answers.iter_mut().filter_map(|answer| Some((answer.result?, &mut answer.changed)));
            for (entry, changed) in results {
                if let Some((what, text)) = shape::result_told(crate::item::as_result(entry), target) {
                    let cost = self.counter.count(&text);
                    *changed = Some(Box::new(shape::not_taken(what, Some(text), cost)));
                    answers_changed = true;
                }
            }
            if answers_changed || item.changed.len() > before {
                item.recount(self.overhead, self.counter);
            }
        }
    }

    /// Hides what would be a message without content.
    fn hide_empty(&mut self) {
        for item in self.items.iter_mut().filter(|item| item.is_shown() && item.kind == Kind::Message) {
            if !item.says_something() {
                let why = item.changed.first().map_or(Reason::Empty, |(_, changed)| changed.why.clone());
                item.hidden = Some(("shape".into(), why));
            }
        }
    }

    fn select(&mut self, request: &Request<'_>) {
        for item in self.items.iter_mut().filter(|item| item.hidden.is_none()) {
            let excludes = |pass: &dyn select::Select| {
                let why = pass.excludes(item, request)?;
                Some((pass.name().to_string().into(), why))
            };
            let own = || request.policy.own_selects().iter().find_map(|pass| excludes(&**pass));
            item.hidden = select::ALL.iter().find_map(|pass| excludes(*pass)).or_else(own);
        }
    }

    /// Says in the text what only a field says: that an answer was broken off, or who speaks.
    fn tell(&mut self, request: &Request<'_>) {
        let rules = &request.policy.select;
        if rules.status == StatusRule::Exclude && rules.authors == AuthorRule::Plain {
            return;
        }
        let (overhead, counter) = (self.overhead, self.counter);
        for item in self.items.iter_mut().filter(|it| it.is_shown() && it.role() == Role::Assistant) {
            let entry = item.entry.original();
            let is_named = rules.authors == AuthorRule::Named;
            let other = item.entry.author().filter(|author| is_named && **author != *request.reader.name());
            let note = (entry.status != Status::Sent).then(|| broken_off(entry, request.log.screen()));
            let why = match (&note, other) {
                (Some(_), _) => Reason::Status { status: entry.status },
                (None, Some(author)) => Reason::Named { author: author.clone() },
                (None, None) => continue,
            };
            let said = item.entry.shown().iter().enumerate().filter_map(|(at, part)| match part {
                Part::Text { text } if !text.is_empty() => Some((at, text.clone())),
                _ => None,
            });
            let mut said: Vec<(usize, Text)> = said.collect();
            if let (Some((_, first)), Some(author)) = (said.first_mut(), other) {
                *first = format!("[{author}] {first}").into();
            }
            match (said.last_mut(), note) {
                (Some((_, last)), Some(note)) => *last = format!("{last}\n\n{note}").into(),
                (None, Some(note)) => {
                    let cost = counter.count(&note);
                    let (text, by, why) = (Some(note.into()), "select".into(), why.clone());
                    item.note = Some(Box::new(Changed { text, cost, by, why, is_edit: false }));
                }
                (_, None) => {}
            }
            for (at, text) in said {
                let is_same = matches!(&item.entry.shown()[at], Part::Text { text: old } if *old == text);
                if !is_same {
                    let (cost, by) = (counter.count(&text), "select".into());
                    item.changed.push((at, Changed { text: Some(text), cost, by, why: why.clone(), is_edit: false }));
                }
            }
            item.recount(overhead, counter);
        }
    }

    /// Marks what must never be reduced.
    fn mark(&mut self, request: &Request<'_>) {
        for item in &mut self.items {
            if item.role() == Role::System {
                item.keep = Some(Reason::System);
            }
        }
        // With an input, that is what the model must answer.
        if request.input.is_none() {
            // The last on the page, and what came last: a result may stand behind a call far above.
            let last = self.items.iter().rposition(|item| item.is_shown() && item.is_main());
            let shown = self.items.iter().enumerate().filter(|(_, item)| item.is_shown() && item.is_main());
            let newest = shown.max_by_key(|(_, item)| item.last_seq()).map(|(at, _)| at);
            for at in last.into_iter().chain(newest) {
                self.items[at].keep.get_or_insert(Reason::Newest);
            }
            let mut users = self.items.iter_mut().rev().filter(|item| item.is_shown() && item.opens_exchange());
            if let Some(item) = users.next() {
                item.keep = Some(Reason::LastUserWords);
            }
        }
    }

    /// Leaves out what a summary on the page stands for, but for instructions and pins.
    fn fold(&mut self) {
        let folds: Vec<(Seq, Span)> = self.window.folds().collect();
        let may_go = |item: &&mut Item<'_>| !matches!(item.keep, Some(Reason::System | Reason::Pinned));
        for item in self.items.iter_mut().filter(|item| item.is_main()).filter(may_go) {
            if let Some((by, _)) = folds.iter().find(|(_, span)| span.contains(item.seq())) {
                item.hidden.get_or_insert(("sections".into(), Reason::Folded { by: *by }));
            }
        }
    }

    /// The text of a decision, as it may be seen.
    fn seen(&self, text: &Text) -> Text {
        match self.screen.map(|screen| screen.text(text)) {
            Some(Cow::Owned(seen)) => seen.into(),
            _ => text.clone(),
        }
    }

    /// What a text in the place of another costs; what a decision says was counted when it was first shown.
    fn cost_of(&self, text: &Text, said: &Text, known: Known<'_>) -> Tokens {
        match known {
            Known::Once(cost) if Arc::ptr_eq(text, said) => cost.of(text, self.counter),
            Known::AsTold(cost) if Arc::ptr_eq(text, said) => cost,
            _ => self.counter.count(text),
        }
    }

    /// Applies edits, in order; what a later expansion undoes is passed over. One that would break an item is skipped
    /// and named.
    pub(crate) fn apply<'e>(&mut self, edits: impl IntoIterator<Item = (&'e Edit, Known<'e>)>) {
        let edits: Vec<(&Edit, Known<'_>)> = edits.into_iter().collect();
        if edits.is_empty() {
            return;
        }
        let expanded = Expanded::among(edits.iter().map(|(edit, _)| *edit));
        let mut floor = self.window.floor.map(|floor| floor.at);
        let mut places: Option<Places> = None;
        for (nth, (edit, known)) in edits.into_iter().enumerate() {
            match &edit.change {
                Change::Hide(span) => self.hide(*span, edit, &expanded.after(nth)),
                Change::Replace { at, .. } | Change::Omit(at) if expanded.after(nth).any_of(*at) => {}
                // A note stands for what lies below the floor; where the floor was taken back, all of that is shown.
                Change::Replace { at, .. } | Change::Omit(at)
                    if matches!(edit.why, Reason::Summarized { .. }) && floor.is_none_or(|floor| at.seq >= floor) => {}
                Change::Replace { at, .. } | Change::Omit(at) => {
                    let (text, cost) = match &edit.change {
                        Change::Replace { text: said, .. } => {
                            let text = self.seen(said);
                            let cost = self.cost_of(&text, said, known);
                            (Some(text), cost)
                        }
                        _ => (None, Tokens(0)),
                    };
                    let (by, why) = (edit.by.clone(), edit.why.clone());
                    let changed = Changed { text, cost, by, why, is_edit: true };
                    let places = places.get_or_insert_with(|| self.places());
                    if let Some(place) = places.get(at.seq) {
                        self.replace(*at, place, changed);
                    }
                }
                Change::Expand { at, text, until } => {
                    let places = places.get_or_insert_with(|| self.places());
                    let Some(place) = places.get(at.seq) else { continue };
                    let part = PartAt { seq: at.seq, part: at.part.unwrap_or_default() };
                    if let Some(said) = text.as_ref().filter(|_| !expanded.after(nth).any_of(part)) {
                        let text = self.seen(said);
                        let (cost, text) = (self.cost_of(&text, said, known), Some(text));
                        let (by, why) = (edit.by.clone(), edit.why.clone());
                        // Not an edit: once its time is over, the part may be reduced as if it stood there whole.
                        self.replace(part, place, Changed { text, cost, by, why, is_edit: false });
                    }
                    let item = &mut self.items[place.0];
                    item.expanded.push((at.seq, edit.why.clone()));
                    if self.turn < *until {
                        item.keep.get_or_insert(edit.why.clone());
                    }
                }
                Change::Pin(span) => {
                    let pinned = self.items.iter_mut().filter(|item| item.seqs().any(|seq| span.contains(seq)));
                    pinned.for_each(|item| item.keep = Some(Reason::Pinned));
                }
                Change::Floor(lowered) => {
                    floor = Some(lowered.at);
                    self.lowest = self.lowest.max(lowered.at);
                    let floor = lowered;
                    let below =
                        self.items.iter_mut().filter(|it| it.is_main() && it.seq() < floor.at && it.keep.is_none());
                    for item in below.filter(|item| item.is_shown() && !floor.keeps.contains(&item.seq())) {
                        item.hidden = Some((edit.by.clone(), Reason::BelowFloor { floor: floor.at }));
                    }
                }
                // Joining has seen to it; and a cut only says when other edits were made.
                Change::Settle { .. } | Change::Cut { .. } => {}
            }
        }
    }

    fn hide(&mut self, span: Span, edit: &Edit, later: &Later<'_>) {
        for item in &mut self.items {
            // What is last or newest changes with every call; what was decided stands.
            let is_fixed = matches!(item.keep, Some(Reason::Pinned | Reason::System));
            if is_fixed || later.any_in(item) || !item.seqs().any(|seq| span.contains(seq)) {
                continue;
            }
            if item.seqs().all(|seq| span.contains(seq)) {
                item.hidden.get_or_insert((edit.by.clone(), edit.why.clone()));
            } else {
                let why = "it would part a step from its results".into();
                self.warnings.push(Warning::EditSkipped { by: edit.by.clone(), at: span, why });
            }
        }
    }

    fn replace(&mut self, at: PartAt, (item, answer): Place, changed: Changed) {
        let item = &mut self.items[item];
        match answer {
            Some(answer) => {
                let answer = &mut item.answers[answer];
                let is_error = answer.result.is_some_and(|entry| crate::item::as_result(entry).is_error);
                answer.changed = Some(Box::new(match &changed.text {
                    Some(text) if is_error && self.tells_errors => {
                        let text = shape::told_error(text);
                        Changed { cost: self.counter.count(&text), text: Some(text), ..changed }
                    }
                    _ => changed,
                }));
            }
            None => {
                let why = (changed.by.clone(), changed.why.clone());
                item.changed.retain(|(part, _)| *part != at.part);
                item.changed.push((at.part, changed));
                if item.kind == Kind::Message && !item.says_something() {
                    item.hidden.get_or_insert(why);
                }
            }
        }
        item.recount(self.overhead, self.counter);
    }

    /// The steps whose reasoning can't stand behind what is on a page now: something before it has changed since it
    /// was made, or an edit has taken reasoning out from between.
    pub(crate) fn unbound(&self, page: &Page) -> HashSet<Seq> {
        let is_thought = |part: &Part| matches!(part, Part::Reasoning(_));
        let taken_out = |item: &&Item<'_>| {
            item.changed.iter().any(|(at, it)| it.is_edit && it.text.is_none() && is_thought(&item.parts()[*at]))
        };
        let newest_taken = self.items.iter().filter(taken_out).map(Item::seq).max();
        let mut binding = page.tools_binding();
        let mut unbound = HashSet::new();
        for message in &page.messages {
            let mut thoughts = message.parts.iter().filter_map(|part| match part {
                Part::Reasoning(it) => Some(it),
                _ => None,
            });
            let is_broken = thoughts.any(|it| it.prefix != Some(binding.digest()));
            let has_any = message.parts.iter().any(is_thought);
            if is_broken || (has_any && message.seq < newest_taken) {
                unbound.extend(message.seq);
            }
            binding.pass(message.role, message.author.as_deref(), &message.parts);
        }
        unbound
    }

    /// Leaves out the reasoning of some steps, because of what changed before them.
    pub(crate) fn drop_reasoning(&mut self, steps: &HashSet<Seq>) {
        for item in self.items.iter_mut().filter(|item| steps.contains(&item.seq())) {
            for (at, part) in item.entry.shown().iter().enumerate() {
                if let Part::Reasoning(it) = part
                    && item.changed_part(at).is_none()
                {
                    let why = if it.prefix.is_some() { Reason::PrefixChanged } else { Reason::PrefixUnknown };
                    let by = "bind".into();
                    item.changed.push((at, Changed { text: None, cost: Tokens(0), by, why, is_edit: false }));
                }
            }
            if item.kind == Kind::Message && !item.says_something() {
                let why = item.changed.last().map_or(Reason::PrefixChanged, |(_, changed)| changed.why.clone());
                item.hidden.get_or_insert(("bind".into(), why));
            }
            item.recount(self.overhead, self.counter);
        }
    }

    /// Whether the model is in the middle of its work, and its reasoning is on the page.
    pub(crate) fn has_open_round(&self, request: &Request<'_>) -> bool {
        let last = self.items.iter().rfind(|item| item.is_shown() && item.is_main());
        let thinks = |item: &Item<'_>| {
            let thoughts = item.parts().iter().enumerate().filter(|(_, part)| matches!(part, Part::Reasoning(_)));
            item.is_shown() && thoughts.into_iter().any(|(at, _)| item.changed_part(at).is_none())
        };
        request.input.is_none() && last.is_some_and(|item| item.kind == Kind::Step) && self.items.iter().any(thinks)
    }

    /// Whether an edit has changed a part, of which it is known where its entry stands.
    pub(crate) fn is_edited(&self, part: usize, (item, answer): Place) -> bool {
        let item = &self.items[item];
        match answer {
            Some(answer) => part == 0 && item.answers[answer].changed.as_deref().is_some_and(|changed| changed.is_edit),
            None => item.changed.iter().any(|(at, changed)| *at == part && changed.is_edit),
        }
    }

    /// Where each entry stands.
    pub(crate) fn places(&self) -> Places {
        let mut places = Vec::with_capacity(self.items.len() * 2);
        for (i, item) in self.items.iter().enumerate() {
            places.push((item.seq(), (i, None)));
            for (j, answer) in item.answers.iter().enumerate() {
                if let Some(entry) = answer.result {
                    places.push((entry.seq, (i, Some(j))));
                }
            }
        }
        // Nearly all stand in the order of the log.
        if !places.is_sorted_by_key(|(seq, _)| *seq) {
            places.sort_by_key(|(seq, _)| *seq);
        }
        Places(places)
    }
}

/// What is known of the cost of an edit's text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known<'e> {
    /// Nothing.
    No,
    /// It is counted once.
    Once(&'e TextCost),
    /// It was just counted.
    AsTold(Tokens),
}

/// Where each entry of a view stands.
#[derive(Debug)]
pub(crate) struct Places(Vec<(Seq, Place)>);

impl Places {
    /// Returns where an entry stands, if it is in an item.
    pub(crate) fn get(&self, seq: Seq) -> Option<Place> {
        let upto = self.0.partition_point(|(at, _)| *at <= seq);
        let (at, place) = *self.0.get(upto.checked_sub(1)?)?;
        (at == seq).then_some(place)
    }

    /// The same for one entry after the other: most stand near behind the one before, where `near` goes on from.
    pub(crate) fn get_near(&self, seq: Seq, near: &mut usize) -> Option<Place> {
        let nearby = self.0.get(*near..).unwrap_or_default().iter().take(NEAR_PLACES);
        if let Some(next) = nearby.map(|(at, _)| *at).position(|at| at >= seq)
            && self.0[*near + next].0 == seq
        {
            *near += next;
            return Some(self.0[*near].1);
        }
        *near = self.0.partition_point(|(at, _)| *at < seq);
        self.get(seq)
    }
}

/// What is told of an answer that was broken off.
/// Whether a policy has decided something that may have shown more than this one.
fn others(request: &Request<'_>, decided: Decided<'_>) -> bool {
    let decisions = decided.reader.decisions();
    !request.policy.redact.is_nothing() && !decisions.is_empty() && {
        let own = request.policy_digest();
        decisions.iter().any(|it| it.policy != own)
    }
}

fn broken_off(entry: &Entry, screen: &Screen) -> String {
    let what = if entry.status == Status::Cancelled { "[Generation cancelled]" } else { "[Generation failed]" };
    let reason = entry.meta.get("error").and_then(|reason| reason.as_str());
    let reason = reason.map_or(String::new(), |reason| format!("\nReason: {}", screen.text(reason)));
    format!("{what}{reason}")
}
