//! Superseded: what a tool said is out of date, because the same was asked again or the file was written since.
//!
//! A read gives way to a later read of the whole file, or of lines that hold all of its own, and to a later write of the
//! whole file; a command or a search to the very same one made again. Reads of other lines stay. An edit makes earlier
//! reads stale, but not useless: they give way to it only where the policy says so. What failed stands in only for what
//! failed too. The later result must have been seen once, and must itself stand whole on the page.
//!
//! Which tools read, write and run is told by [`tool_use`](crate::tool_use), the policy's own `rules` first. It must not
//! run where the model compares several runs of the same command.

use super::stub::{MINIMUM, Stub, StubCosts, What, Whole, any_free, by_run, whole};
use super::{Candidate, Reduce};
use crate::digest::DigestMap;
use crate::edit::{Edit, Reason, Turn};
use crate::entry::{Piece, Seq, Text};
use crate::error::Error;
use crate::policy::Pass;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::tool_use::{Deed, READ_LINES_MAX, Rule, ToolUse, uses};
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;

const NAME: &str = "superseded";

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Superseded {
    /// Results that cost less are left alone.
    pub minimum: Tokens,
    /// Whether earlier reads give way to an edit of the file too.
    pub edits: bool,
    /// What the host's own tools do; the first rule that applies counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

impl Default for Superseded {
    fn default() -> Superseded {
        Superseded { minimum: MINIMUM, edits: false, rules: Vec::new() }
    }
}

impl Reduce for Superseded {
    fn name(&self) -> &str {
        NAME
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let mut costs = StubCosts::of(view);
        let found = self.found(view, request).into_iter();
        let mut edits: Vec<Edit> = found.filter_map(|(it, by)| costs.stub(&it, by.stub(request))).collect();
        edits.sort_by_key(|edit| edit.change.seq());
        edits
    }

    fn check(&self) -> Result<(), Error> {
        let told = |error: Error| Error::settings(format!("superseded: {error}"), error.hint().unwrap_or_default());
        self.rules.iter().try_for_each(Rule::check).map_err(told)
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::Superseded(self.clone()))
    }
}

impl Superseded {
    /// Whether a result may give way to a later one now.
    fn may_give_way(&self, it: &Whole<'_, '_>, view: &View<'_>, request: &Request<'_>) -> bool {
        it.cost >= self.minimum && view.may_change(it.nth, it.entry.seq) && it.may_change(request)
    }

    /// What it could propose, without the texts: plans ask at every call, and nearly all of them wait.
    pub(crate) fn candidates(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Candidate> {
        let mut costs = StubCosts::of(view);
        let found = self.found(view, request).into_iter().filter(|(it, _)| !it.is_edited).filter_map(|(it, by)| {
            let saves = costs.saved(&it, &by.what())?;
            Some(Candidate { seq: it.entry.seq, saves, due: by.due(request) })
        });
        let mut candidates: Vec<Candidate> = found.collect();
        candidates.sort_by_key(|it| it.seq);
        candidates
    }

    /// The results that are out of date, each with the call that makes it so.
    fn found<'v, 'a>(&self, view: &'v View<'a>, request: &Request<'_>) -> Vec<(Whole<'v, 'a>, LaterCall)> {
        // Where nothing may give way, nobody need know what came later.
        if !any_free(view, |it| self.may_give_way(it, view, request)) {
            return Vec::new();
        }
        let mut results = whole(view);
        by_run(&mut results).flat_map(|results| self.outdated(results, view, request)).collect()
    }

    fn outdated<'v, 'a>(
        &self,
        results: &mut [Whole<'v, 'a>],
        view: &View<'_>,
        request: &Request<'_>,
    ) -> Vec<(Whole<'v, 'a>, LaterCall)> {
        let (mut later, mut found) = (Later::default(), Vec::new());
        results.sort_by_key(|it| it.entry.seq);
        // What lies before everything that may change has nothing to say.
        let from = results.iter().position(|it| self.may_give_way(it, view, request)).unwrap_or(results.len());
        // From the newest back, so that everything later is known.
        for it in results[from..].iter().rev() {
            let does = match self.rules.is_empty() {
                true => Cow::Borrowed(it.item.entry.uses(it.call_at)),
                false => Cow::Owned(uses(it.call(), &self.rules)),
            };
            let has_failed = failed(it);
            if let [only] = &does[..]
                && self.may_give_way(it, view, request)
                && let Some(by) = later.than(only, has_failed)
            {
                found.push((*it, by));
            }
            if request.reader.has_seen(it.entry.seq) {
                does.iter().for_each(|does| self.note(does, it, has_failed, &mut later));
            }
        }
        found
    }

    /// Keeps in mind what a call does, if an earlier result can give way to it.
    fn note(&self, does: &ToolUse, of: &Whole<'_, '_>, has_failed: bool, later: &mut Later) {
        let range = match (does.deed, does.range) {
            (Deed::Read, None) if does.is_whole => longest_read(of),
            (_, range) => range,
        };
        let call = LaterCall { at: of.entry.seq, deed: does.deed, range, has_failed };
        let counts = match does.deed {
            Deed::Read => does.is_whole || range.is_some(),
            Deed::Write => does.is_whole && !has_failed,
            Deed::Edit => self.edits && !has_failed,
            Deed::Search | Deed::Run | Deed::Other => false,
        };
        if let Some(target) = does.target.as_ref().filter(|_| counts) {
            let calls = later.about.entry(target.clone()).or_default();
            // Everything before a whole one gives way to that.
            if calls.last().is_none_or(|known| known.range.is_some() || known.has_failed) {
                calls.push(call);
            }
        }
        if matches!(does.deed, Deed::Read | Deed::Search | Deed::Run) {
            let again = later.same.entry(does.same).or_default();
            if again.iter().all(|known| known.has_failed != has_failed) {
                again.push(call);
            }
        }
    }
}

/// Whether a tool failed; some only say so.
fn failed(of: &Whole<'_, '_>) -> bool {
    let says_so = |text: &str| text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"));
    let text = of.result().content.first();
    of.result().is_error || matches!(text, Some(Piece::Text { text }) if says_so(text.trim_start()))
}

/// The lines that a read of a whole file shows, if it is as long as tools show at most: there may be more.
fn longest_read(of: &Whole<'_, '_>) -> Option<(u32, u32)> {
    let texts = of.result().content.iter().filter_map(|piece| match piece {
        Piece::Text { text } => Some(text),
        Piece::Image(_) => None,
    });
    // No text has more lines than bytes.
    if texts.clone().map(|text| text.len()).sum::<usize>() < READ_LINES_MAX as usize {
        return None;
    }
    let lines: usize = texts.map(|text| text.lines().count()).sum();
    (lines >= READ_LINES_MAX as usize).then_some((1, READ_LINES_MAX))
}

/// The calls that came later than the one looked at, the newest first.
#[derive(Default)]
struct Later {
    about: HashMap<Text, Vec<LaterCall>>,
    same: DigestMap<Vec<LaterCall>>,
}

/// A call whose result an earlier one may give way to.
#[derive(Clone, Copy)]
struct LaterCall {
    at: Seq,
    deed: Deed,
    range: Option<(u32, u32)>,
    has_failed: bool,
}

impl Later {
    /// The newest call that makes an earlier use out of date.
    fn than(&self, earlier: &ToolUse, has_failed: bool) -> Option<LaterCall> {
        let stands_in = |call: &&LaterCall| !call.has_failed || has_failed;
        let same = self.same.get(&earlier.same).into_iter().flatten().find(stands_in).copied();
        let about = earlier.target.as_ref().filter(|_| earlier.deed == Deed::Read);
        let about = about.and_then(|target| self.about.get(target)).into_iter().flatten();
        let about = about.filter(stands_in).find(|call| call.holds(earlier)).copied();
        let is_kind = matches!(earlier.deed, Deed::Read | Deed::Search | Deed::Run);
        same.into_iter().chain(about).filter(|_| is_kind).max_by_key(|call| call.at)
    }
}

impl LaterCall {
    /// Whether it shows, or has done away with, all that an earlier read showed.
    fn holds(&self, earlier: &ToolUse) -> bool {
        match (self.range, earlier.range) {
            (None, _) => true,
            (Some((first, last)), Some((from, to))) => first <= from && to <= last,
            (Some(_), None) => false,
        }
    }

    /// The call from which on an earlier result could have given way to it.
    fn due(&self, request: &Request<'_>) -> Turn {
        request.reader.turn_at_age(self.at, 1)
    }

    fn what(&self) -> What {
        let what = match self.deed {
            Deed::Read => "read again, see ",
            Deed::Write => "the file was written anew, see ",
            Deed::Edit => "the file was edited since, see ",
            Deed::Search | Deed::Run | Deed::Other => "done again, see ",
        };
        What(what, Some((self.at, " below")))
    }

    fn stub(&self, request: &Request<'_>) -> Stub {
        let (why, due) = (Reason::Superseded { by: self.at }, Some(self.due(request)));
        Stub { by: NAME.into(), why, what: self.what(), head: 0, due }
    }
}
