//! Expire: old results go, or keep their beginning or their ends.
//!
//! It removes what a tool, an action or another run said more than `after` acknowledged calls ago, never what the model
//! has not seen yet, and never instructions, pins or the newest item; a person's or the model's words only if their own
//! entry says so. Rules set other numbers for single tools and kinds; [`expiry`](crate::expiry) says which of them
//! hold. Nothing is replaced by something that isn't smaller, and nothing is reduced twice unless it was expanded. The
//! newest results can be protected, so many tokens of them.
//!
//! It must not run on what a host can't afford to be asked for again: the stub says how to ask.

mod stub; // what stands in the place of what has expired

use super::Reduce;
use crate::edit::{Change, Edit, PartAt, Reason, Turn};
use crate::entry::{Lane, Part, Role, Span, Text};
use crate::error::Error;
use crate::expiry::{Expiry, ExpiryAction, ExpiryRule, Held};
use crate::item::{Item, Kind, result_text};
use crate::policy::Pass;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

pub use stub::Marker;
use stub::Stub;

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expire {
    /// A result expires when it is older than this many of the reader's acknowledged calls.
    pub after: u32,
    /// What stays of it.
    pub action: ExpiryAction,
    /// What holds for single tools and kinds instead; of several rules that fit, the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ExpiryRule>,
    /// What a stub says.
    #[serde(default, skip_serializing_if = "Marker::is_usual")]
    pub marker: Marker,
    /// Nothing is touched until a batch saves this much, because every batch breaks the provider's cache; a page
    /// that doesn't fit needs no minimum.
    #[serde(default)]
    pub minimum: Tokens,
    /// The newest results stay, so many tokens of them; a step that reaches further back stays whole.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub protect: Tokens,
    /// Whether steps that are traces of another run than the current one go as well, once they are as old.
    #[serde(default)]
    pub finished_runs: bool,
}

fn is_nothing(tokens: &Tokens) -> bool {
    *tokens == Tokens(0)
}

impl Expire {
    /// Returns the pass that does this to every result.
    pub fn all(expiry: Expiry) -> Expire {
        let Expiry { after, action } = expiry;
        let (rules, marker) = (Vec::new(), Marker::default());
        Expire { after, action, rules, marker, minimum: Tokens(0), protect: Tokens(0), finished_runs: false }
    }

    /// Returns the pass that leaves so many characters of a result after so many calls.
    pub fn first_chars(after: u32, chars: u32) -> Expire {
        Expire::all(Expiry { after, action: ExpiryAction::FirstChars(chars) })
    }

    /// Returns the pass that does only what rules say.
    pub fn by_rules(rules: impl IntoIterator<Item = ExpiryRule>) -> Expire {
        Expire { rules: rules.into_iter().collect(), ..Expire::all(Expiry::NEVER) }
    }

    /// Returns what holds for what an entry holds.
    pub fn expiry_of(&self, held: &Held<'_>, request: &Request<'_>) -> Expiry {
        held.expiry(Expiry { after: self.after, action: self.action }, &self.rules, request.expiry)
    }
}

impl Reduce for Expire {
    fn name(&self) -> &str {
        "expire"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let older = view.items().iter().take(self.unprotected(view));
        let candidates = older.filter(|item| item.is_shown() && item.keep().is_none() && item.role() != Role::System);
        let mut edits: Vec<Edit> = candidates.flat_map(|item| self.expired(item, view, request)).collect();
        let saved: Tokens = edits.iter().map(|edit| edit.before - edit.after).sum();
        let must_fit = request.budget().is_ok_and(|budget| view.cost() > budget.room());
        if saved < self.minimum && !must_fit {
            return Vec::new();
        }
        // Results may stand behind their calls in another order than they came; what is told of them goes by place.
        edits.sort_by_key(|edit| edit.change.seq());
        edits
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Expire(self.clone()))
    }

    fn check(&self) -> Result<(), Error> {
        if let Some((what, instead)) = self.action.mistake() {
            return Err(Error::settings(format!("expire: {what}"), instead));
        }
        let mistake = |rule: &ExpiryRule| Some((rule.about(), rule.mistake()?));
        match self.rules.iter().find_map(mistake) {
            Some((about, (what, instead))) => Err(Error::settings(format!("expire: a rule{about}: {what}"), instead)),
            None => Ok(()),
        }
    }
}

impl Expire {
    /// How many of the oldest items lie before the newest results that stay.
    fn unprotected(&self, view: &View<'_>) -> usize {
        let mut behind = Tokens(0);
        let is_before = |item: &Item<'_>| {
            let is_before = behind >= self.protect;
            behind += results_cost(item);
            is_before
        };
        view.items().iter().rposition(is_before).map_or(0, |last| last + 1)
    }

    fn expired(&self, item: &Item<'_>, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        if let Some(edit) = self.finished(item, request) {
            return vec![edit];
        }
        match item.kind() {
            Kind::Step => {
                let results = item.results().filter(|result| !result.is_changed);
                let due = results.filter_map(|it| Some((it, self.due(it.at, &it.held, request)?)));
                due.filter_map(|(it, due)| {
                    due.shortened(&result_text(it.result), it.cost, self.stub(it.at, &it.held), view)
                })
                .collect()
            }
            Kind::Late => {
                let (at, held) = (PartAt { seq: item.seq(), part: 0 }, item.held());
                let note = item.changed_part(0).filter(|it| matches!(it.why, Reason::LateResult { .. }));
                let text = note.and_then(|changed| changed.text.clone());
                let due = self.due(at, &held, request).zip(text);
                let edit =
                    due.and_then(|(due, text)| due.shortened(&text, view.count(&text), self.stub(at, &held), view));
                edit.into_iter().collect()
            }
            Kind::Message => self.message(item, view, request),
        }
    }

    /// The edits of a message: one that leaves it out, or one that shortens it and takes out what the stub names.
    fn message(&self, item: &Item<'_>, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let (at, held) = (PartAt { seq: item.seq(), part: 0 }, item.held());
        let Some(due) = self.due(at, &held, request) else { return Vec::new() };
        if due.expiry.action == ExpiryAction::Remove {
            return vec![due.edit(Change::Hide(Span::one(item.seq())), due.removed(), item.cost(), Tokens(0))];
        }
        let Some((text, cost)) = canonical(item, view) else { return Vec::new() };
        let Some(edit) = due.shortened(&text, cost, self.stub(at, &held), view) else { return Vec::new() };
        let (why, others) = (edit.why.clone(), 1..item.parts().len());
        let omit = |part| due.edit(Change::Omit(PartAt { part, ..at }), why.clone(), Tokens(0), Tokens(0));
        std::iter::once(edit).chain(others.map(omit)).collect()
    }

    /// The edit that leaves out a trace of a run that is over.
    fn finished(&self, item: &Item<'_>, request: &Request<'_>) -> Option<Edit> {
        let entry = item.entry.original();
        let is_over = self.finished_runs && entry.lane == Lane::Trace && entry.run.as_ref() != request.run;
        let is_disabled = request.expiry.is_some_and(|over| over.disable);
        // A step goes whole, so its newest result must be old enough, and the span must hold nothing else.
        let span = Span { first: item.seq(), last: item.last_seq() };
        let is_alone = item.seqs().count() as u64 == span.last.0 - span.first.0 + 1;
        if !is_over || is_disabled || !is_alone {
            return None;
        }
        let expiry = Expiry { after: self.after, action: ExpiryAction::Remove };
        Due::of(PartAt { seq: span.first, part: 0 }, expiry, request)?;
        let due = Due::of(PartAt { seq: span.last, part: 0 }, expiry, request)?;
        Some(due.edit(Change::Hide(span), due.removed(), item.cost(), Tokens(0)))
    }

    /// What is due for something, if anything is.
    fn due(&self, at: PartAt, held: &Held<'_>, request: &Request<'_>) -> Option<Due> {
        Due::of(at, self.expiry_of(held, request), request)
    }

    fn stub<'h>(&self, at: PartAt, held: &Held<'h>) -> Stub<'h> {
        Stub { at, held: *held, marker: self.marker }
    }
}

/// What an item holds of what grows old by rule.
fn results_cost(item: &Item<'_>) -> Tokens {
    match item.kind() {
        _ if !item.is_shown() => Tokens(0),
        Kind::Step => item.results().map(|it| it.cost).sum(),
        Kind::Late | Kind::Message => item.held().kind.map_or(Tokens(0), |_| item.cost()),
    }
}

/// An expiry that has come.
struct Due {
    expiry: Expiry,
    age: u64,
    at: PartAt,
    /// The call at which it came.
    turn: Turn,
}

impl Due {
    fn of(at: PartAt, expiry: Expiry, request: &Request<'_>) -> Option<Due> {
        let age = request.reader.age_of(at);
        let decided = Decided { reader: request.reader, more: &[] };
        let is_due = expiry.action != ExpiryAction::Never && age > u64::from(expiry.after) && !decided.touched(at);
        let turn = Turn(request.reader.since(at).0 + u64::from(expiry.after) + 1);
        is_due.then_some(Due { expiry, age, at, turn })
    }

    fn removed(&self) -> Reason {
        Reason::Removed { age: self.age, limit: self.expiry.after }
    }

    fn edit(&self, change: Change, why: Reason, before: Tokens, after: Tokens) -> Edit {
        Edit { change, by: "expire".into(), why, before, after, due: Some(self.turn) }
    }

    /// The edit that leaves less of a text, if it is really less.
    fn shortened(&self, text: &str, before: Tokens, stub: Stub<'_>, view: &View<'_>) -> Option<Edit> {
        let (age, limit) = (self.age, self.expiry.after);
        let (short, why) = match self.expiry.action {
            ExpiryAction::Never => return None,
            ExpiryAction::Remove => (stub.removed(text), self.removed()),
            ExpiryAction::FirstChars(chars) => {
                let (short, of) = stub.first(text, chars as usize)?;
                (short, Reason::Compacted { age, limit, shown: chars as usize, of })
            }
            ExpiryAction::HeadTail { head, tail } => {
                let (head, tail) = (head as usize, tail as usize);
                let (short, of) = stub.ends(text, head, tail)?;
                (short, Reason::EndsKept { age, limit, head, tail, of })
            }
        };
        let after = view.count(&short);
        let change = Change::Replace { at: self.at, text: short.into() };
        (after < before).then(|| self.edit(change, why, before, after))
    }
}

/// A message as one text, and what it costs: its texts as they are, everything else by name, a provider's own data as
/// JSON. Nothing of a message that an edit has changed, or that holds reasoning.
fn canonical(item: &Item<'_>, view: &View<'_>) -> Option<(Text, Tokens)> {
    if let [Part::Text { text }] = item.parts() {
        return item.changed_part(0).is_none().then(|| (text.clone(), view.count(text)));
    }
    let (mut texts, mut costs): (Vec<Text>, Tokens) = (Vec::new(), Tokens(0));
    for (at, part) in item.parts().iter().enumerate() {
        let changed = item.changed_part(at);
        costs += changed.map_or(item.part_cost(at), |changed| changed.cost);
        match (changed, part) {
            (Some(changed), _) if changed.is_edit => return None,
            // What the target takes from nobody is not told by the stub either.
            (Some(changed), _) => texts.extend(changed.text.clone()),
            (None, Part::Text { text }) => texts.push(text.clone()),
            (None, Part::Image(_)) => texts.push("[image]".into()),
            (None, Part::Audio(_)) => texts.push("[audio]".into()),
            (None, Part::Document(_)) => texts.push("[document]".into()),
            (None, Part::File { .. }) => texts.push("[file]".into()),
            (None, Part::Opaque { payload, .. }) => texts.push(canonical_json(payload)),
            (None, Part::Reasoning(_) | Part::Call(_) | Part::Result(_)) => return None,
        }
    }
    (!texts.is_empty()).then(|| (texts.join("\n").into(), costs))
}

fn canonical_json(payload: &Text) -> Text {
    let value = serde_json::from_str::<serde_json::Value>(payload);
    value.map_or_else(|_| payload.clone(), |value| value.to_string().into())
}
