//! Expire: old results go, or keep their beginning or their ends.
//!
//! It removes what a tool, an action or another run said more than `after` acknowledged calls ago, never what the model
//! has not seen yet, and never instructions, pins or the newest item; a person's or the model's words only if their own
//! entry says so. Rules set other numbers for single tools and kinds; [`expiry`](crate::expiry) says which of them
//! hold. Nothing is replaced by something that isn't smaller, and nothing is reduced twice unless it was expanded. The
//! newest results can be protected, so many tokens of them.
//!
//! Where a model's summary is to stay, everything stays until there is one, and the plan names it as a want; the same
//! words are summarized once. Where it can't be made the first characters stay, and the reason says why.
//!
//! It must not run on what a host can't afford to be asked for again: the stub says how to ask.

mod condense; // what becomes of what a summary is to stand for
mod stub; // what stands in the place of what has expired

use super::Reduce;
use crate::edit::{Change, Edit, PartAt, Reason, Turn};
use crate::entry::{Lane, Part, Role, Span, Text};
use crate::error::Error;
use crate::expiry::{Expiry, ExpiryAction, ExpiryRule, Held};
use crate::item::{Item, Kind, result_text};
use crate::note::{Want, canonical_json, words_of};
use crate::policy::{Apply, Pass};
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

use condense::Outcome;
pub use stub::Marker;
use stub::Stub;

/// The most summaries that one plan wants; the others are named by later ones.
const WANTS_MAX: usize = 64;

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
        // What may not be changed now counts for the minimum alone.
        let from = if self.minimum == Tokens(0) { view.cut } else { 0 };
        let outcomes = self.outcomes(from, view, request);
        let edit = |outcome| if let Outcome::Edit(edit) = outcome { Some(*edit) } else { None };
        let mut edits: Vec<Edit> = outcomes.filter_map(edit).collect();
        let saved: Tokens = edits.iter().map(|edit| edit.before - edit.after).sum();
        if saved < self.minimum && view.room.is_none_or(|room| view.cost() <= room) {
            return Vec::new();
        }
        // Results may stand behind their calls in another order than they came; what is told of them goes by place.
        edits.sort_by_key(|edit| edit.change.seq());
        edits
    }

    fn wants(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Want> {
        let may_pay = match request.policy.apply {
            Apply::Immediately => true,
            Apply::WhenItPays => view.cost() >= request.policy.patience.start,
            Apply::Never => false,
        };
        if !may_pay || request.notes.is_none() {
            return Vec::new();
        }
        let want = |outcome| if let Outcome::Want(want) = outcome { Some(want) } else { None };
        self.outcomes(0, view, request).filter_map(want).take(WANTS_MAX).collect()
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
        if self.protect == Tokens(0) {
            return view.items().len();
        }
        let mut behind = Tokens(0);
        let is_before = |item: &Item<'_>| {
            let is_before = behind >= self.protect;
            behind += results_cost(item);
            is_before
        };
        view.items().iter().rposition(is_before).map_or(0, |last| last + 1)
    }

    /// What becomes of everything that has expired, from an item on.
    fn outcomes<'v>(
        &'v self,
        from: usize,
        view: &'v View<'_>,
        request: &'v Request<'_>,
    ) -> impl Iterator<Item = Outcome> + 'v {
        let older = view.items().iter().take(self.unprotected(view)).skip(from);
        let candidates = older.filter(|item| item.is_shown() && item.keep().is_none() && item.role() != Role::System);
        let may_expire = move |item: &&Item<'_>| !self.is_for_own_words(request) || item.has_own_expiry();
        candidates.filter(may_expire).flat_map(|item| self.expired(item, view, request))
    }

    /// Whether nothing expires but what says so itself.
    fn is_for_own_words(&self, request: &Request<'_>) -> bool {
        let is_still = self.action == ExpiryAction::Never && self.rules.is_empty() && !self.finished_runs;
        is_still && request.expiry.is_none()
    }

    fn expired(&self, item: &Item<'_>, view: &View<'_>, request: &Request<'_>) -> Vec<Outcome> {
        if let Some(edit) = self.finished(item, request) {
            return vec![Outcome::from(edit)];
        }
        match item.kind() {
            Kind::Step => {
                let results = item.results().filter(|result| !result.is_changed);
                let due = results.filter_map(|it| Some((it, self.due(it.at, &it.held, request)?)));
                due.filter_map(|(it, due)| {
                    let text = result_text(it.result);
                    let said = Said { text: &text, words: &text, cost: it.cost };
                    due.outcome(&said, self.stub(it.at, &it.held, request), view, request)
                })
                .collect()
            }
            Kind::Late => {
                let (at, held) = (PartAt { seq: item.seq(), part: 0 }, item.held());
                let note = item.changed_part(0).filter(|it| matches!(it.why, Reason::LateResult { .. }));
                let text = note.and_then(|changed| changed.text.clone());
                let due = self.due(at, &held, request).zip(text).zip(words_of(item.entry));
                let outcome = due.and_then(|((due, text), words)| {
                    let said = Said { text: &text, words: &words, cost: view.count(&text) };
                    due.outcome(&said, self.stub(at, &held, request), view, request)
                });
                outcome.into_iter().collect()
            }
            Kind::Message => self.message(item, view, request),
        }
    }

    /// What becomes of a message: an edit that leaves it out, or one that shortens it and others that take out what the
    /// stub names.
    fn message(&self, item: &Item<'_>, view: &View<'_>, request: &Request<'_>) -> Vec<Outcome> {
        let (at, held) = (PartAt { seq: item.seq(), part: 0 }, item.held());
        let Some(due) = self.due(at, &held, request) else { return Vec::new() };
        if due.expiry.action == ExpiryAction::Remove {
            return vec![due.edit(Change::Hide(Span::one(item.seq())), due.removed(), item.cost(), Tokens(0)).into()];
        }
        let said = canonical(item, view).zip(words_of(item.entry));
        let outcome = said.and_then(|((text, cost), words)| {
            let said = Said { text: &text, words: &words, cost };
            due.outcome(&said, self.stub(at, &held, request), view, request)
        });
        let edit = match outcome {
            Some(Outcome::Edit(edit)) => edit,
            other => return other.into_iter().collect(),
        };
        let (why, others) = (edit.why.clone(), 1..item.parts().len());
        let omit = |part| due.edit(Change::Omit(PartAt { part, ..at }), why.clone(), Tokens(0), Tokens(0)).into();
        std::iter::once(Outcome::Edit(edit)).chain(others.map(omit)).collect()
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

    fn stub<'h>(&self, at: PartAt, held: &Held<'h>, request: &Request<'_>) -> Stub<'h> {
        Stub { at, held: *held, marker: self.marker, prompt: held.prompt(&self.rules, request.expiry) }
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

/// What is to be shortened.
struct Said<'t> {
    /// As it stands on the page.
    text: &'t str,
    /// As a summary is made of it.
    words: &'t str,
    cost: Tokens,
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
    fn shortened(&self, text: &str, before: Tokens, stub: &Stub<'_>, view: &View<'_>) -> Option<Edit> {
        let (age, limit) = (self.age, self.expiry.after);
        let (short, why) = match self.expiry.action {
            ExpiryAction::Never | ExpiryAction::Summary { .. } => return None,
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
        self.replaced(short, why, before, view)
    }

    /// The edit that puts a text in the place of another, if it is really less.
    fn replaced(&self, short: String, why: Reason, before: Tokens, view: &View<'_>) -> Option<Edit> {
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
