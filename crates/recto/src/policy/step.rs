//! One step of a policy: a pass, and the decorators that gate, filter or limit its edits.

use crate::edit::{Change, Edit};
use crate::entry::Text;
use crate::error::Error;
use crate::item::Item;
use crate::note::Want;
use crate::receipt::Warning;
use crate::reduce::{
    Candidate, CapOutput, DropImages, DropReasoning, Excerpt, Expire, FitWindow, Fold, Identical, Irrelevant, Recent,
    Reduce, Similar, Superseded, TokenLimit, identical,
};
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::{Known, View};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A pass and its decorators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "StepData", try_from = "StepData")]
pub struct Step {
    pass: Pass,
    when: Option<When>,
    sparing: Option<Spare>,
    keep_last: usize,
    until_fits: bool,
}

/// A pass and its numbers, or one of the host's own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Pass {
    /// Tool results that stand on the page already become pointers.
    Identical(Identical),
    /// Tool results that a later call has made out of date go.
    Superseded(Superseded),
    /// Tool results that were nearly repeated go.
    Similar(Similar),
    /// Tool results that nobody speaks of any more go.
    Irrelevant(Irrelevant),
    /// Old tool results go, or keep their beginning.
    Expire(Expire),
    /// Of old results, calls and thoughts the lines stay that say what nothing else does.
    Excerpt(Excerpt),
    /// A model's note stands for the oldest exchanges.
    Fold(Fold),
    /// The oldest exchanges go when the window would overflow.
    FitWindow(FitWindow),
    /// The oldest exchanges go when history is longer than so many tokens.
    TokenLimit(TokenLimit),
    /// Only the newest messages or exchanges stay.
    Recent(Recent),
    /// Earlier reasoning goes.
    DropReasoning(DropReasoning),
    /// Long tool results keep head and tail.
    CapOutput(CapOutput),
    /// Earlier pictures go.
    DropImages(DropImages),
    /// A pass of the host's own; it is no part of the data.
    Own(Arc<dyn Reduce>),
}

impl PartialEq for Pass {
    fn eq(&self, other: &Pass) -> bool {
        match (self, other) {
            (Pass::Identical(one), Pass::Identical(other)) => one == other,
            (Pass::Superseded(one), Pass::Superseded(other)) => one == other,
            (Pass::Similar(one), Pass::Similar(other)) => one == other,
            (Pass::Irrelevant(one), Pass::Irrelevant(other)) => one == other,
            (Pass::Expire(one), Pass::Expire(other)) => one == other,
            (Pass::Excerpt(one), Pass::Excerpt(other)) => one == other,
            (Pass::Fold(one), Pass::Fold(other)) => one == other,
            (Pass::FitWindow(one), Pass::FitWindow(other)) => one == other,
            (Pass::TokenLimit(one), Pass::TokenLimit(other)) => one == other,
            (Pass::Recent(one), Pass::Recent(other)) => one == other,
            (Pass::DropReasoning(one), Pass::DropReasoning(other)) => one == other,
            (Pass::CapOutput(one), Pass::CapOutput(other)) => one == other,
            (Pass::DropImages(one), Pass::DropImages(other)) => one == other,
            (Pass::Own(one), Pass::Own(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Pass {
    fn as_reduce(&self) -> &dyn Reduce {
        match self {
            Pass::Identical(pass) => pass,
            Pass::Superseded(pass) => pass,
            Pass::Similar(pass) => pass,
            Pass::Irrelevant(pass) => pass,
            Pass::Expire(pass) => pass,
            Pass::Excerpt(pass) => pass,
            Pass::Fold(pass) => pass,
            Pass::FitWindow(pass) => pass,
            Pass::TokenLimit(pass) => pass,
            Pass::Recent(pass) => pass,
            Pass::DropReasoning(pass) => pass,
            Pass::CapOutput(pass) => pass,
            Pass::DropImages(pass) => pass,
            Pass::Own(pass) => &**pass,
        }
    }

    fn name(&self) -> &str {
        self.as_reduce().name()
    }
}

/// The host's own say on whether a pass runs.
type IsTime = dyn Fn(&View<'_>, &Request<'_>) -> bool + Send + Sync;

/// When a pass runs at all.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum When {
    /// When history costs more than this.
    Over(Tokens),
    /// When history takes more than this share of its room.
    OverPercent(u32),
    /// When the host's own function says so; it is no part of the data.
    #[serde(skip)]
    Own(Arc<IsTime>),
}

/// What a pass leaves alone.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Spare {
    /// Results of tools that failed.
    Errors,
    /// Results of these tools.
    Tools(Vec<Text>),
    /// What the host's own function says; it is no part of the data.
    #[serde(skip)]
    Own(Arc<dyn Fn(&Item<'_>) -> bool + Send + Sync>),
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Over(tokens) => write!(f, "Over({})", tokens.0),
            When::OverPercent(percent) => write!(f, "OverPercent({percent})"),
            When::Own(_) => write!(f, "Own"),
        }
    }
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spare::Errors => write!(f, "Errors"),
            Spare::Tools(tools) => write!(f, "Tools({tools:?})"),
            Spare::Own(_) => write!(f, "Own"),
        }
    }
}

impl PartialEq for When {
    fn eq(&self, other: &When) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl PartialEq for Spare {
    fn eq(&self, other: &Spare) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// Decorators, by name: every pass has them.
pub trait Decorate: Into<Step> {
    /// Runs the pass only when history costs more than this.
    fn when_over(self, tokens: Tokens) -> Step {
        Step { when: Some(When::Over(tokens)), ..self.into() }
    }

    /// Runs the pass only when a function says so; it is asked once, with the whole view.
    fn when(self, is_time: impl Fn(&View<'_>, &Request<'_>) -> bool + Send + Sync + 'static) -> Step {
        Step { when: Some(When::Own(Arc::new(is_time))), ..self.into() }
    }

    /// Leaves alone the items that a function names.
    fn sparing(self, spare: impl Fn(&Item<'_>) -> bool + Send + Sync + 'static) -> Step {
        Step { sparing: Some(Spare::Own(Arc::new(spare))), ..self.into() }
    }

    /// Leaves alone steps with a failed result.
    fn sparing_errors(self) -> Step {
        Step { sparing: Some(Spare::Errors), ..self.into() }
    }

    /// Leaves alone the newest items that the pass would touch.
    fn keep_last(self, items: usize) -> Step {
        Step { keep_last: items, ..self.into() }
    }

    /// Takes the pass's edits, oldest first, only until the page fits.
    fn until_fits(self) -> Step {
        Step { until_fits: true, ..self.into() }
    }
}

impl<T: Into<Step>> Decorate for T {}

impl<R: Reduce + 'static> From<R> for Step {
    fn from(pass: R) -> Step {
        let pass = pass.data().unwrap_or_else(|| Pass::Own(Arc::new(pass)));
        Step { pass, when: None, sparing: None, keep_last: 0, until_fits: false }
    }
}

impl Step {
    /// Returns the pass.
    pub fn pass(&self) -> &Pass {
        &self.pass
    }

    pub(crate) fn lowers_floor(&self) -> bool {
        matches!(self.pass, Pass::FitWindow(_) | Pass::TokenLimit(_) | Pass::Recent(_))
    }

    /// What is known of the cost of a text that it proposes: these have counted all of it, and say so.
    pub(crate) fn known_cost<'e>(&self, edit: &Edit) -> Known<'e> {
        match self.pass {
            Pass::Identical(_) | Pass::Superseded(_) | Pass::Similar(_) | Pass::Irrelevant(_) => {
                Known::AsTold(edit.after)
            }
            _ => Known::No,
        }
    }

    fn excerpts(&self) -> bool {
        matches!(self.pass, Pass::Excerpt(_))
    }

    /// Whether it puts a note in the place of exchanges. All of its edits are made, or none.
    pub(crate) fn folds(&self) -> bool {
        matches!(self.pass, Pass::Fold(_))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.pass.as_reduce().check()
    }

    pub(crate) fn unmet(&self, view: &View<'_>, request: &Request<'_>) -> Option<Warning> {
        self.pass.as_reduce().unmet(view, request)
    }

    pub(crate) fn wants(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Want> {
        if self.is_time(view, request) { self.pass.as_reduce().wants(view, request) } else { Vec::new() }
    }

    /// Returns what it could propose now, with what each would save.
    pub(crate) fn foresee(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Candidate> {
        let is_time = self.is_time(view, request);
        if let Pass::Superseded(pass) = &self.pass
            && is_time
            && self.takes_all(view)
        {
            return pass.candidates(view, request);
        }
        let guess = if is_time { self.pass.as_reduce().foresee(view, request) } else { None };
        let exact = || {
            let now = request.reader.turn();
            let edits = self.propose(view, request).into_iter();
            let of = |edit: Edit| {
                let saves = edit.before - edit.after;
                Candidate { seq: edit.change.seq(), saves, due: edit.due.unwrap_or(now) }
            };
            edits.map(of).collect()
        };
        guess.unwrap_or_else(exact)
    }

    /// Returns what it would propose at most of what it foresees, behind passes that propose no more than `before`;
    /// `None` where only proposing tells. Built-in passes in the usual order can say.
    pub(crate) fn at_most(
        &self,
        foreseen: &[Candidate],
        view: &View<'_>,
        request: &Request<'_>,
        before: &[Candidate],
    ) -> Option<Vec<Candidate>> {
        if self.when.is_some() || !self.takes_all(view) {
            return None;
        }
        match &self.pass {
            // What they don't propose now, they don't where less may change.
            Pass::Expire(_) | Pass::Identical(_) if before.is_empty() => foreseen.is_empty().then(Vec::new),
            Pass::Superseded(_) if before.is_empty() => Some(foreseen.to_vec()),
            // What was replaced is not cut as well; what might be cut by another such pass may be.
            Pass::Excerpt(pass) if request.policy.reduce.iter().filter(|it| it.excerpts()).count() == 1 => {
                Some(pass.at_most(view, request, before))
            }
            // Nor does a floor come where there is less than there is now.
            Pass::FitWindow(_) => self.propose(view, request).is_empty().then(Vec::new),
            _ => None,
        }
    }

    /// Whether everything that a pass proposes for results that stand whole is taken.
    fn takes_all(&self, view: &View<'_>) -> bool {
        let is_bare = self.sparing.is_none() && self.keep_last == 0 && !self.until_fits;
        is_bare && view.cut == 0 && view.spared.is_none() && !identical::names_any(view)
    }

    fn is_time(&self, view: &View<'_>, request: &Request<'_>) -> bool {
        let Some(room) = view.room else { return false };
        let is_time = match &self.when {
            None => true,
            Some(When::Over(tokens)) => view.cost() > *tokens,
            Some(When::OverPercent(percent)) => view.cost() > Tokens(room.0 / 100 * u64::from(*percent)),
            Some(When::Own(is_time)) => is_time(view, request),
        };
        is_time && !(self.until_fits && view.cost() <= room)
    }

    pub(crate) fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let Some(room) = view.room else { return Vec::new() };
        if !self.is_time(view, request) {
            return Vec::new();
        }
        let mut edits = self.pass.as_reduce().propose(view, request);
        if self.folds() {
            return edits;
        }
        if !edits.is_empty() {
            let is_held_back = (view.cut > 0 || view.spared.is_some()) && !self.lowers_floor();
            let places = view.places();
            edits.retain(|edit| {
                let seq = edit.change.seq();
                let place = places.get(seq);
                let may_change = !is_held_back || place.is_some_and(|(item, _)| view.may_change(item, seq));
                // What one pass has made is not what the next one saw: each part is edited once.
                let is_edited = match &edit.change {
                    Change::Replace { at, .. } | Change::Omit(at) => {
                        place.is_some_and(|it| view.is_edited(at.part, it))
                    }
                    _ => false,
                };
                may_change && !is_edited
            });
            if view.cost() <= room {
                identical::hold(&mut edits, view, request);
            }
        }
        self.leave_alone(&mut edits, view, request);
        if self.until_fits {
            let (mut cost, mut enough) = (view.cost(), false);
            edits.retain(|edit| {
                let take = !std::mem::replace(&mut enough, cost - (edit.before - edit.after) <= room);
                cost -= if take { edit.before - edit.after } else { Tokens(0) };
                take
            });
        }
        edits
    }

    /// Takes out the edits of what is to be spared: by the decorators, and by the policy's own rules for what stays.
    fn leave_alone(&self, edits: &mut Vec<Edit>, view: &View<'_>, request: &Request<'_>) {
        let hides = edits.iter().any(|edit| matches!(edit.change, Change::Hide(_)));
        if self.sparing.is_some() || hides {
            let touched: BTreeSet<_> = edits.iter().map(|edit| edit.change.seq()).collect();
            let spared = |item: &&Item<'_>| self.spares(item) || (hides && request.policy.pins.keeps(item).is_some());
            let of_edits = view.items().iter().filter(|item| item.seqs().any(|seq| touched.contains(&seq)));
            let safe: BTreeSet<_> = of_edits.filter(spared).flat_map(|item| item.seqs()).collect();
            edits.retain(|edit| matches!(edit.change, Change::Floor(_)) || !safe.contains(&edit.change.seq()));
        }
        if self.keep_last > 0 {
            let seqs: BTreeSet<_> = edits.iter().map(|edit| edit.change.seq()).collect();
            let newest: BTreeSet<_> = seqs.into_iter().rev().take(self.keep_last).collect();
            edits.retain(|edit| matches!(edit.change, Change::Floor(_)) || !newest.contains(&edit.change.seq()));
        }
    }

    fn spares(&self, item: &Item<'_>) -> bool {
        match &self.sparing {
            None => false,
            Some(Spare::Errors) => item.results().any(|it| it.result.is_error),
            Some(Spare::Tools(tools)) => item.results().any(|it| tools.contains(&it.call.name)),
            Some(Spare::Own(spare)) => spare(item),
        }
    }
}

/// A step as it stands in a file: exactly one pass, and decorators.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StepData {
    #[serde(skip_serializing_if = "Option::is_none")]
    identical: Option<Identical>,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded: Option<Superseded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similar: Option<Similar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    irrelevant: Option<Irrelevant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expire: Option<Expire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<Excerpt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fold: Option<Fold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit_window: Option<FitWindow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_limit: Option<TokenLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<Recent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drop_reasoning: Option<DropReasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cap_output: Option<CapOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drop_images: Option<DropImages>,
    /// The name of a pass of the host's own; written, never read.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    own: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<When>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparing: Option<Spare>,
    #[serde(skip_serializing_if = "is_zero")]
    keep_last: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    until_fits: bool,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl TryFrom<StepData> for Step {
    type Error = String;

    fn try_from(data: StepData) -> Result<Step, String> {
        let passes = [
            data.identical.map(Pass::Identical),
            data.superseded.map(Pass::Superseded),
            data.similar.map(Pass::Similar),
            data.irrelevant.map(Pass::Irrelevant),
            data.expire.map(Pass::Expire),
            data.excerpt.map(Pass::Excerpt),
            data.fold.map(Pass::Fold),
            data.fit_window.map(Pass::FitWindow),
            data.token_limit.map(Pass::TokenLimit),
            data.recent.map(Pass::Recent),
            data.drop_reasoning.map(Pass::DropReasoning),
            data.cap_output.map(Pass::CapOutput),
            data.drop_images.map(Pass::DropImages),
        ];
        let mut named = passes.into_iter().flatten();
        match (named.next(), named.next()) {
            (Some(pass), None) => Ok(Step {
                pass,
                when: data.when,
                sparing: data.sparing,
                keep_last: data.keep_last,
                until_fits: data.until_fits,
            }),
            (None, _) => Err("a step of `reduce` names no pass".into()),
            (Some(one), Some(other)) => {
                Err(format!("a step of `reduce` names two passes: {} and {}", one.name(), other.name()))
            }
        }
    }
}

impl From<Step> for StepData {
    fn from(step: Step) -> StepData {
        let own = |when: &Option<When>| when.clone().filter(|when| !matches!(when, When::Own(_)));
        let mut data = StepData {
            when: own(&step.when),
            sparing: step.sparing.clone().filter(|sparing| !matches!(sparing, Spare::Own(_))),
            keep_last: step.keep_last,
            until_fits: step.until_fits,
            ..StepData::default()
        };
        match step.pass {
            Pass::Identical(pass) => data.identical = Some(pass),
            Pass::Superseded(pass) => data.superseded = Some(pass),
            Pass::Similar(pass) => data.similar = Some(pass),
            Pass::Irrelevant(pass) => data.irrelevant = Some(pass),
            Pass::Expire(pass) => data.expire = Some(pass),
            Pass::Excerpt(pass) => data.excerpt = Some(pass),
            Pass::Fold(pass) => data.fold = Some(pass),
            Pass::FitWindow(pass) => data.fit_window = Some(pass),
            Pass::TokenLimit(pass) => data.token_limit = Some(pass),
            Pass::Recent(pass) => data.recent = Some(pass),
            Pass::DropReasoning(pass) => data.drop_reasoning = Some(pass),
            Pass::CapOutput(pass) => data.cap_output = Some(pass),
            Pass::DropImages(pass) => data.drop_images = Some(pass),
            Pass::Own(pass) => data.own = Some(pass.name().into()),
        }
        data
    }
}
