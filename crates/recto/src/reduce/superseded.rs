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
use crate::entry::{Piece, Seq};
use crate::error::Error;
use crate::policy::Pass;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::tool_use::{Deed, READ_LINES_MAX, Rule, ToolUse, Used};
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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
        let (mut costs, mut edits) = (StubCosts::of(view), Vec::new());
        self.find(view, request, |it, by| edits.extend(costs.stub(it, by.stub())));
        edits.sort_by_key(|edit: &Edit| edit.change.seq());
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
        let (mut costs, mut candidates) = (StubCosts::of(view), Vec::new());
        self.find(view, request, |it, by| {
            let saves = if it.is_edited { None } else { costs.saved(it, &by.what()) };
            if let Some(saves) = saves {
                candidates.push(Candidate { seq: it.entry.seq, saves, due: by.due });
            }
        });
        candidates.sort_by_key(|it: &Candidate| it.seq);
        candidates
    }

    /// Finds the results that are out of date, each with the call that makes it so.
    fn find<'v, 'a>(
        &self,
        view: &'v View<'a>,
        request: &Request<'_>,
        mut found: impl FnMut(&Whole<'v, 'a>, LaterCall),
    ) {
        // Where nothing may give way, nobody need know what came later.
        if any_free(view, |it| self.may_give_way(it, view, request)) {
            let mut results = whole(view);
            by_run(&mut results).for_each(|results| self.outdated(results, view, request, &mut found));
        }
    }

    fn outdated<'v, 'a>(
        &self,
        results: &mut [Whole<'v, 'a>],
        view: &View<'_>,
        request: &Request<'_>,
        found: &mut impl FnMut(&Whole<'v, 'a>, LaterCall),
    ) {
        let mut later = Later::default();
        results.sort_by_key(|it| it.entry.seq);
        // What lies before everything that may change has nothing to say.
        let from = results.iter().position(|it| self.may_give_way(it, view, request)).unwrap_or(results.len());
        // From the newest back, so that everything later is known.
        for it in results[from..].iter().rev() {
            let uses = match self.rules.is_empty() {
                true => Cow::Borrowed(it.item.entry.uses(it.call_at)),
                false => Cow::Owned(Used::all(it.call(), &self.rules)),
            };
            let seen = request.reader.has_seen(it.entry.seq).then_some(request);
            let (has_failed, may_give_way) = (failed(it), uses.len() == 1 && self.may_give_way(it, view, request));
            for used in uses.iter() {
                let mut known = later.known(used);
                if let Some(by) = known.newest(&used.does, has_failed).filter(|_| may_give_way) {
                    found(it, by);
                }
                if let Some(request) = seen {
                    self.note(&used.does, it, has_failed, request, &mut known);
                }
            }
        }
    }

    /// Keeps in mind what a call does, if an earlier result can give way to it.
    fn note(&self, does: &ToolUse, of: &Whole<'_, '_>, has_failed: bool, request: &Request<'_>, known: &mut Known<'_>) {
        let range = match (does.deed, does.range) {
            (Deed::Read, None) if does.is_whole => longest_read(of),
            (_, range) => range,
        };
        let call = || {
            // From that call on an earlier result could have given way.
            let due = request.reader.turn_at_age(of.entry.seq, 1);
            LaterCall { at: of.entry.seq, deed: does.deed, range, has_failed, due }
        };
        let counts = match does.deed {
            Deed::Read => does.is_whole || range.is_some(),
            Deed::Write => does.is_whole && !has_failed,
            Deed::Edit => self.edits && !has_failed,
            Deed::Search | Deed::Run | Deed::Other => false,
        };
        if let Some(calls) = known.about.as_mut().filter(|_| counts) {
            // Everything before a whole one gives way to that.
            if calls.last().is_none_or(|known| known.range.is_some() || known.has_failed) {
                calls.push(call());
            }
        }
        if let Some([well, failed]) = &mut known.same {
            (if has_failed { failed } else { well }).get_or_insert_with(call);
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

/// The calls that came later than the one looked at.
#[derive(Default)]
struct Later {
    /// Those that speak of a file, by what identifies it, the newest first.
    about: DigestMap<Vec<LaterCall>>,
    /// The newest of those that ask for the very same: one that went well, and one that failed.
    same: DigestMap<[Option<LaterCall>; 2]>,
}

/// A call whose result an earlier one may give way to.
#[derive(Clone, Copy)]
struct LaterCall {
    at: Seq,
    deed: Deed,
    range: Option<(u32, u32)>,
    has_failed: bool,
    due: Turn,
}

/// Of these, the ones that say something about one use.
struct Known<'l> {
    /// Of what speaks of files.
    about: Option<&'l mut Vec<LaterCall>>,
    /// Of what says the same if it is made again.
    same: Option<&'l mut [Option<LaterCall>; 2]>,
}

impl Later {
    fn known(&mut self, used: &Used) -> Known<'_> {
        let of_file = matches!(used.does.deed, Deed::Read | Deed::Write | Deed::Edit);
        let repeats = matches!(used.does.deed, Deed::Read | Deed::Search | Deed::Run);
        Known {
            about: used.about.filter(|_| of_file).map(|about| self.about.entry(about).or_default()),
            same: repeats.then(|| self.same.entry(used.does.same).or_default()),
        }
    }
}

impl Known<'_> {
    /// The newest call that makes an earlier use out of date.
    fn newest(&self, earlier: &ToolUse, has_failed: bool) -> Option<LaterCall> {
        let newer = |one: Option<LaterCall>, other: Option<LaterCall>| match (one, other) {
            (Some(one), Some(other)) => Some(if one.at > other.at { one } else { other }),
            (one, other) => one.or(other),
        };
        let [well, failed] = self.same.as_deref()?;
        let same = if has_failed { newer(*well, *failed) } else { *well };
        let about = self.about.as_ref().filter(|_| earlier.deed == Deed::Read);
        let stands_in = |call: &&LaterCall| (!call.has_failed || has_failed) && call.holds(earlier);
        newer(same, about.and_then(|calls| calls.iter().find(stands_in)).copied())
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

    fn what(&self) -> What {
        let what = match self.deed {
            Deed::Read => "read again, see ",
            Deed::Write => "the file was written anew, see ",
            Deed::Edit => "the file was edited since, see ",
            Deed::Search | Deed::Run | Deed::Other => "done again, see ",
        };
        What(what, Some((self.at, " below")))
    }

    fn stub(&self) -> Stub {
        let (why, due) = (Reason::Superseded { by: self.at }, Some(self.due));
        Stub { by: NAME.into(), why, what: self.what(), head: 0, due }
    }
}
