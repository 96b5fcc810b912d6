//! Expire: old tool results go, or keep their beginning.
//!
//! It removes what a tool said more than `after` acknowledged calls ago, never what the model has not seen yet, and
//! never user text, instructions, pins or the newest item. An entry's own expiry goes before the pass's numbers.
//! Nothing is replaced by something that isn't smaller, and nothing is reduced twice.

use super::Reduce;
use crate::edit::{Change, Edit, PartAt, Reason};
use crate::entry::{Expiry, ExpiryAction, Lane, Part, Role, Span};
use crate::error::Error;
use crate::item::{Item, Kind, result_text};
use crate::policy::Pass;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expire {
    /// A result expires when it is older than this many of the reader's acknowledged calls.
    pub after: u32,
    /// What stays of it.
    pub action: ExpiryAction,
    /// Nothing is touched until a batch saves this much, because every batch breaks the provider's cache; a page
    /// that doesn't fit needs no minimum.
    #[serde(default)]
    pub minimum: Tokens,
    /// Whether steps that are traces of another run than the current one go as well, once they are as old.
    #[serde(default)]
    pub finished_runs: bool,
}

impl Expire {
    /// Returns the pass that leaves so many characters of a result after so many calls.
    pub fn first_chars(after: u32, chars: u32) -> Expire {
        Expire { after, action: ExpiryAction::FirstChars(chars), minimum: Tokens(0), finished_runs: false }
    }
}

impl Reduce for Expire {
    fn name(&self) -> &str {
        "expire"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let candidates = view.editable().filter(|item| item.role() != Role::System);
        let edits: Vec<Edit> = candidates.flat_map(|item| self.expired(item, view, request)).collect();
        let saved: Tokens = edits.iter().map(|edit| edit.before - edit.after).sum();
        let must_fit = request.budget().is_ok_and(|budget| view.cost() > budget.room());
        if saved >= self.minimum || must_fit { edits } else { Vec::new() }
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Expire(self.clone()))
    }

    fn check(&self) -> Result<(), Error> {
        match self.action {
            ExpiryAction::FirstChars(0) => {
                Err(Error::settings("expire: first_chars is 0", "say \"remove\", or how many characters stay"))
            }
            _ => Ok(()),
        }
    }
}

impl Expire {
    fn expired(&self, item: &Item<'_>, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        if let Some(edit) = self.finished(item, request) {
            return vec![edit];
        }
        match item.kind() {
            Kind::Step => {
                let results = item.results().filter(|result| !result.is_changed);
                let due = results.filter_map(|it| Some((it, self.due(it.at, it.expiry, request)?)));
                due.filter_map(|(it, due)| shortened(it.at, &result_text(it.result), it.cost, due, view)).collect()
            }
            Kind::Late => {
                let at = PartAt { seq: item.seq(), part: 0 };
                let note = item.changed_part(0).filter(|it| matches!(it.why, Reason::LateResult { .. }));
                let text = note.and_then(|changed| changed.text.clone());
                let due = self.due(at, item.expiry(), request).zip(text);
                due.and_then(|(due, text)| shortened(at, &text, view.count(&text), due, view)).into_iter().collect()
            }
            // Words are touched only where their own entry says so.
            Kind::Message => own_expiry(item, view, request).into_iter().collect(),
        }
    }

    /// The edit that leaves out a trace of a run that is over.
    fn finished(&self, item: &Item<'_>, request: &Request<'_>) -> Option<Edit> {
        let entry = item.entry.original();
        let is_over = self.finished_runs && entry.lane == Lane::Trace && entry.run.as_ref() != request.run;
        // A step goes whole, so its newest result must be old enough, and the span must hold nothing else.
        let span = Span { first: item.seq(), last: item.last_seq() };
        let is_alone = item.seqs().count() as u64 == span.last.0 - span.first.0 + 1;
        let age = request.reader.age(span.last);
        let due = due(
            PartAt { seq: span.first, part: 0 },
            Expiry { after: self.after, action: ExpiryAction::Remove },
            request,
        );
        let is_due = is_over && is_alone && age > u64::from(self.after) && due.is_some();
        is_due.then(|| Edit {
            change: Change::Hide(span),
            by: "expire".into(),
            why: Reason::Removed { age, limit: self.after },
            before: item.cost(),
            after: Tokens(0),
        })
    }

    /// The expiry that applies to a result, and its age, once it is due.
    fn due(&self, at: PartAt, own: Option<Expiry>, request: &Request<'_>) -> Option<(Expiry, u64)> {
        due(at, own.unwrap_or(Expiry { after: self.after, action: self.action }), request)
    }
}

fn due(at: PartAt, expiry: Expiry, request: &Request<'_>) -> Option<(Expiry, u64)> {
    let age = request.reader.age(at.seq);
    let decided = Decided { reader: request.reader, more: &[] };
    let is_due = expiry.action != ExpiryAction::Never && age > u64::from(expiry.after) && !decided.touched(at);
    is_due.then_some((expiry, age))
}

fn own_expiry(item: &Item<'_>, view: &View<'_>, request: &Request<'_>) -> Option<Edit> {
    let at = PartAt { seq: item.seq(), part: 0 };
    let (expiry, age) = due(at, item.expiry()?, request)?;
    if expiry.action == ExpiryAction::Remove {
        let change = Change::Hide(Span::one(item.seq()));
        let why = Reason::Removed { age, limit: expiry.after };
        return Some(Edit { change, by: "expire".into(), why, before: item.cost(), after: Tokens(0) });
    }
    match item.parts() {
        [Part::Text { text }] if item.changed_part(0).is_none() => {
            shortened(at, text, view.count(text), (expiry, age), view)
        }
        _ => None,
    }
}

/// The edit that leaves less of a text, if it is really less.
fn shortened(at: PartAt, text: &str, before: Tokens, (expiry, age): (Expiry, u64), view: &View<'_>) -> Option<Edit> {
    let limit = expiry.after;
    let (short, why) = match expiry.action {
        ExpiryAction::Never => return None,
        ExpiryAction::Remove => {
            let marker = format!("[removed: {} characters, handle {at}]", text.chars().count());
            (marker, Reason::Removed { age, limit })
        }
        ExpiryAction::FirstChars(chars) => {
            // Most texts are shorter than the limit; only a longer one is worth counting to its end.
            let (cut, _) = text.char_indices().nth(chars as usize)?;
            let (shown, of) = (chars as usize, text.chars().count());
            let stub = format!("{}\n[… first {shown} of {of} characters, handle {at}]", &text[..cut]);
            (stub, Reason::Compacted { age, limit, shown, of })
        }
    };
    let after = view.count(&short);
    let change = Change::Replace { at, text: short.into() };
    (after < before).then(|| Edit { change, by: "expire".into(), why, before, after })
}
