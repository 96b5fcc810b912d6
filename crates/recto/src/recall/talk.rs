//! Which words of a talk answer a question.
//!
//! What a question's words, and those akin to them, cover in an utterance and those around it, weighed by how rare they
//! are; how much its whole session has of them; whether the one who is asked about speaks, and on the day that is asked about; and four signs
//! that somebody tells something: it opens a session, answers a question, names a name, or a time. The numbers were
//! found on recorded dialogues and rounded.

use super::dates::{self, Named};
use super::kin::{self, AKIN};
use super::numbers::{ln, ln_chance};
use super::shelf::{Passage, Pile};
use super::{BYTES_PER_TOKEN, Commonness};

/// How much a word counts that stands so many utterances away.
pub(super) const NEAR: [f64; 4] = [1.0, 0.6, 0.4, 0.25];
pub(super) const COVERED: f64 = 6.0;
const SESSION: f64 = 0.17;
pub(super) const SPEAKER: f64 = 1.2;
const DATE: f64 = 1.4;
const FIRST: f64 = 1.2;
const ANSWER: f64 = 0.9;
const PROPER: f64 = 0.8;
const TIME: f64 = 0.6;
const START: f64 = -9.2;
/// How soon more utterances of a session that hold a word count less.
const SATURATION: f64 = 1.2;
/// The rarest so many terms of a question are looked for.
const TERMS_MAX: usize = 64;

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Question<'q> {
    /// Its terms, each once.
    pub(super) terms: &'q [String],
    pub(super) dates: Vec<Named>,
    /// The one person who is asked about.
    pub(super) about: Option<usize>,
}

/// Returns how much it is worth to show each passage: the logarithm of the chance that it answers the question, less
/// half of that of what it costs. Nothing, if no passage holds any of its words.
pub(super) fn worth(pile: &Pile<'_>, question: &Question<'_>, common: &Commonness) -> Option<Vec<f64>> {
    let said = &*pile.passages;
    let wanted = common.rarest(question.terms, TERMS_MAX);
    let total: f64 = wanted.iter().map(|(_, weight)| weight).sum();
    let mut covered = vec![0.0; said.len()];
    let mut sessions = vec![0.0; said.last().map_or(0, |last| last.session + 1)];
    let mut nearest = vec![0.0; said.len()];
    let mut is_any = false;
    for (term, weight) in wanted {
        let own = pile.holding.get(term).map_or(&[][..], Vec::as_slice);
        let akin = kin::of(term).iter().filter_map(|akin| pile.holding.get(akin)).flatten();
        let places = own.iter().map(|(at, _)| (*at, 1.0)).chain(akin.map(|(at, _)| (*at, AKIN))).collect::<Vec<_>>();
        is_any |= !places.is_empty();
        cover(said, &places, weight, &mut nearest, &mut covered);
        in_sessions(said, own, weight, &mut sessions);
    }
    let odds = |at: usize| {
        let it = &said[at];
        let is_answer = at > 0 && said[at - 1].session == it.session && said[at - 1].is_question;
        let speaker = question.about.map_or(0.0, |about| if about == it.speaker { 1.0 } else { -1.0 });
        let day = it.day.map_or(0.0, |day| dates::nearness(&question.dates, day));
        let signs = [(FIRST, it.is_first), (ANSWER, is_answer), (PROPER, it.has_proper), (TIME, it.has_time)];
        let signs: f64 = signs.iter().map(|(weight, holds)| if *holds { *weight } else { 0.0 }).sum();
        START + COVERED * covered[at] / total + SESSION * sessions[it.session] + SPEAKER * speaker + DATE * day + signs
    };
    let tokens = |at: usize| said[at].text.len().div_ceil(BYTES_PER_TOKEN).max(1) as f64;
    is_any.then(|| (0..said.len()).map(|at| ln_chance(odds(at)) - 0.5 * ln(tokens(at))).collect())
}

/// Adds what a term covers: of each passage the best of the places around it, within its session. `nearest` is nothing
/// but zeros, and is so again afterwards.
fn cover(said: &[Passage<'_>], places: &[(usize, f64)], weight: f64, nearest: &mut [f64], covered: &mut [f64]) {
    let around = |place: usize| {
        let near = place.saturating_sub(NEAR.len() - 1)..(place + NEAR.len()).min(said.len());
        near.filter(move |at| said[*at].session == said[place].session)
    };
    for &(place, counts) in places {
        around(place).for_each(|at| nearest[at] = f64::max(nearest[at], counts * NEAR[at.abs_diff(place)]));
    }
    for at in places.iter().flat_map(|(place, _)| around(*place)) {
        covered[at] += weight * std::mem::take(&mut nearest[at]);
    }
}

fn in_sessions(said: &[Passage<'_>], places: &[(usize, u32)], weight: f64, sessions: &mut [f64]) {
    for of_one in places.chunk_by(|one, other| said[one.0].session == said[other.0].session) {
        let count = of_one.len() as f64;
        sessions[said[of_one[0].0].session] += weight * count / (count + SATURATION);
    }
}
