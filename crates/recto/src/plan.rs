//! Plan: which edits to make now. Pure; planning again on its own result plans nothing.

use crate::block;
use crate::edit::{Change, Edit};
use crate::error::Error;
use crate::note::Want;
use crate::pays::{Cached, Foreseen, Moment, NotPaid, Waiting};
use crate::policy::{Apply, Step};
use crate::reader::Decided;
use crate::receipt::Warning;
use crate::reduce::Candidate;
use crate::request::Request;
use crate::screened::Screened;
use crate::target::EditsPast;
use crate::tokens::Tokens;
use crate::view::{Purpose, View};

/// How many times its room a plan may read when most of what it reads goes anyway.
pub const READ_ROOMS_MAX: u64 = 8;

/// What a plan proposes; the host commits the edits with [`Reader::commit`](crate::Reader::commit).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The edits, in the order they apply.
    pub edits: Vec<Edit>,
    /// What the policy could not reach, and bounds that were hit.
    pub warnings: Vec<Warning>,
    /// What could be said shorter, and waits until that pays.
    pub waiting: Option<Waiting>,
    /// Summaries that would help.
    pub wants: Vec<Want>,
}

/// Proposes what the page of the next call need not say any more.
pub fn plan(request: &Request<'_>) -> Result<Plan, Error> {
    let screened = Screened::of(request)?;
    Ok(plan_seeing(&screened.request(request))?.0)
}

/// Plans, and returns the view that was planned with, if nothing is proposed: it is the one that compile would make.
pub(crate) fn plan_seeing<'a>(request: &Request<'a>) -> Result<(Plan, Option<View<'a>>), Error> {
    request.policy.check()?;
    request.expiry.map_or(Ok(()), |over| over.check())?;
    if !request.policy.blocks.is_empty() {
        let blocks = block::rough(request)?;
        let mut plan = plan_rooms(&Request { fragments: Some(&blocks), ..*request }, Wager::Bounded)?.0;
        plan.wants.extend(block::wanted(request));
        return Ok((plan, None));
    }
    plan_rooms(request, Wager::Bounded)
}

/// Whether a guess may be made of what a cut would bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wager {
    /// Unless it is plain that it is too high.
    Bounded,
    /// Whatever the guess is: proposing tells.
    #[cfg(test)]
    Blind,
    /// It was too high.
    Lost,
}

fn plan_rooms<'a>(request: &Request<'a>, wager: Wager) -> Result<(Plan, Option<View<'a>>), Error> {
    let room = request.budget()?.room();
    if let Some(bound) = block::reads(request) {
        let (plan, _, view) = plan_within(request, room, bound, true, wager);
        return Ok((plan, Some(view)));
    }
    // Nothing older than what fits can be on the page, unless passes make room for more: then read further.
    let mut rooms = 1;
    loop {
        let is_final = rooms >= READ_ROOMS_MAX;
        let bound = Tokens(room.0.saturating_mul(rooms));
        let (plan, is_enough, view) = plan_within(request, room, bound, is_final, wager);
        if is_enough || is_final {
            let is_all = plan.edits.is_empty() && view.window.is_complete;
            return Ok((plan, is_all.then_some(view)));
        }
        rooms *= 2;
    }
}

/// What could be said shorter, by a guess.
fn foreseen(view: &View<'_>, request: &Request<'_>) -> Foreseen {
    let mut foreseen = Foreseen::default();
    for pass in &request.policy.reduce {
        if !pass.lowers_floor() && !pass.folds() {
            foreseen.all.extend(pass.foresee(view, request));
        }
        foreseen.ends.push(foreseen.all.len());
    }
    foreseen
}

/// What passes would propose at most if the past could be changed; `None` where only proposing tells.
fn at_most(foreseen: &Foreseen, view: &View<'_>, request: &Request<'_>) -> Option<Vec<Candidate>> {
    let (mut most, mut start) = (Vec::new(), 0);
    for (pass, end) in request.policy.reduce.iter().zip(&foreseen.ends) {
        let more = pass.at_most(&foreseen.all[start..*end], view, request, &most)?;
        most.extend(more);
        start = *end;
    }
    Some(most)
}

/// Where the page may be changed now, by what is foreseen.
fn when(cached: &Cached<'_>, view: &View<'_>, request: &Request<'_>, wager: Wager, must_fit: bool) -> Moment {
    if wager == Wager::Lost {
        return cached.unpaid();
    }
    let at_most = |it: &Foreseen| if wager == Wager::Bounded { at_most(it, view, request) } else { None };
    cached.moment(|| foreseen(view, request), at_most, || was_reduced_now(view, request), must_fit)
}

/// Whether a plan for the same call has shortened or hidden something already. It leaves less behind a cut, so that one
/// could pay now that did not before; but planning again on its own result plans nothing.
fn was_reduced_now(view: &View<'_>, request: &Request<'_>) -> bool {
    let reader = request.reader;
    let newest_floor = reader.floors_back().find(|it| it.reverted.is_none());
    let about_items = view.items().iter().flat_map(|item| item.seqs()).flat_map(|seq| reader.live(seq));
    newest_floor.into_iter().chain(about_items).any(|it| it.turn == reader.turn() && it.edit.change.is_reduction())
}

fn plan_within<'a>(
    request: &Request<'a>,
    room: Tokens,
    bound: Tokens,
    is_final: bool,
    wager: Wager,
) -> (Plan, bool, View<'a>) {
    let decided = Decided { reader: request.reader, more: &[] };
    let mut view = View::of(request, decided, bound, Purpose::Plan);
    view.is_final = is_final;
    if block::reads(request).is_some() {
        view.take_as_whole();
    }
    // Whether a note can stand for what there is to read shows only when all of it was read.
    let reads_on = request.notes.is_some() && request.policy.reduce.iter().any(Step::folds);
    if reads_on && !view.window.is_complete && !is_final {
        return (Plan::default(), false, view);
    }
    let mut edits = std::mem::take(&mut view.settles);
    // An edit would cost the model the reasoning it is in the middle of.
    let is_in_midst = request.target.edits_past == EditsPast::DropsLaterReasoning && view.has_open_round(request);
    if is_in_midst && view.window.is_complete && view.cost() <= room {
        return (Plan { edits, ..Plan::default() }, true, view);
    }
    let settled = edits.len();
    let must_fit = !view.window.is_complete || view.cost() > room;
    let waits = request.policy.apply == Apply::WhenItPays && !request.policy.reduce.is_empty();
    let cached = waits.then(|| Cached::of(&view, request));
    let moment = match (&cached, request.policy.apply) {
        (Some(cached), _) => when(cached, &view, request, wager, must_fit),
        (None, Apply::Never) => Moment::from(view.items().len()),
        (None, _) => Moment::from(0),
    };
    view.cut = moment.from;
    view.spared = request.held().filter(|_| moment.spares_held);
    let (mut before_floor, mut wants) = (None, Vec::new());
    for pass in &request.policy.reduce {
        if pass.lowers_floor() {
            before_floor.get_or_insert_with(|| view.cost());
        }
        let proposed = pass.propose(&view, request);
        wants.extend(pass.wants(&view, request));
        if !proposed.is_empty() {
            view.apply(proposed.iter().map(|edit| (edit, pass.known_cost(edit))));
            edits.extend(proposed);
        }
    }
    if let Some(cached) = &cached {
        match cached.confirm(&moment, &edits[settled..]) {
            Ok(cut) => edits.splice(settled..settled, cut).for_each(drop),
            // The guess was too high.
            Err(NotPaid) => return plan_within(request, room, bound, is_final, Wager::Lost),
        }
    }
    let mut warnings: Vec<_> = request.policy.reduce.iter().filter_map(|pass| pass.unmet(&view, request)).collect();
    warnings.extend((is_in_midst && edits.len() > settled).then_some(Warning::CutInOpenRound));
    if view.window.is_complete {
        let edits = above_the_floor(edits, request);
        return (Plan { edits, warnings, waiting: moment.waiting, wants }, true, view);
    }
    let has_floor = edits.iter().any(|edit| matches!(edit.change, Change::Floor(_)));
    let had_space = before_floor.is_some_and(|cost| cost <= room);
    if had_space || !has_floor {
        warnings.push(Warning::ReadBound { from: view.window.start });
    }
    // Without a floor there is no page either way, and edits of what happened to be read would be no plan.
    let edits = if has_floor { above_the_floor(edits, request) } else { Vec::new() };
    (Plan { edits, warnings, waiting: moment.waiting, wants }, has_floor && !had_space, view)
}

/// Leaves out edits of what the same plan puts below the floor, and all floors but the last: what is decided once is
/// taken back at once.
fn above_the_floor(edits: Vec<Edit>, request: &Request<'_>) -> Vec<Edit> {
    let floor = edits.iter().rev().find_map(|edit| match &edit.change {
        Change::Floor(floor) => Some(floor.clone()),
        _ => None,
    });
    let Some(floor) = floor else { return edits };
    // Other sections have no floor.
    let is_elsewhere = |seq| request.log.get(seq).is_some_and(|entry| !entry.original().section.is_messages());
    let stays = |edit: &Edit| match &edit.change {
        Change::Floor(other) => *other == floor,
        Change::Pin(_) | Change::Cut { .. } => true,
        change => {
            let seq = change.seq();
            seq >= floor.at || floor.keeps.contains(&seq) || is_elsewhere(seq)
        }
    };
    edits.into_iter().filter(stays).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::entry::{Call, Entry};
    use crate::log::Log;
    use crate::policy::Policy;
    use crate::reader::Reader;
    use crate::target::Target;
    use crate::tokens::Tokenizer;

    /// Numbers that look like chance, the same at every run.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn text(&mut self, words: u64) -> String {
            (0..words).map(|at| format!("word{}{}", self.below(400), if at % 9 == 8 { "\n" } else { " " })).collect()
        }
    }

    /// What an agent does next: it reads one of a few files, or runs something.
    fn step(chance: &mut Chance, at: u64, files: u64) -> [Entry; 2] {
        let (id, file) = (format!("call_{at}"), chance.below(files + files / 2));
        let call = match file < files {
            true => Call::new(&*id, "read_file", format!("{{\"path\":\"src/{file}.rs\"}}")),
            false => Call::new(&*id, "look", "{}"),
        };
        let (said, words) = (chance.below(3) * 40, 60 + chance.below(500));
        [Entry::step(chance.text(said), [call]), Entry::result(&*id, chance.text(words))]
    }

    /// Lives through a history, and returns how many of its plans made a cut that pays, and how many a guess too many.
    fn live(seed: u64, files: u64, policy: &Policy) -> (usize, usize) {
        let mut chance = Chance(seed);
        let target = Target::named("gpt-4o").unwrap();
        let (mut log, mut reader) = (Log::counted_by(Tokenizer::O200k), Reader::new("reader"));
        log.append(Entry::user("Look at everything.")).unwrap();
        let (mut cuts, mut lost) = (0, 0);
        for at in 0..70 {
            let request = Request::new(&log, &reader, policy, &target);
            let screened = Screened::of(&request).unwrap();
            let request = screened.request(&request);
            let (plan, _) = plan_rooms(&request, Wager::Bounded).unwrap();
            let (blind, _) = plan_rooms(&request, Wager::Blind).unwrap();
            assert_eq!(plan, blind, "seed {seed}, {files} files, call {at}");
            cuts += usize::from(plan.edits.iter().any(|edit| matches!(edit.change, Change::Cut { .. })));
            let view = View::of(&request, Decided { reader: &reader, more: &[] }, Tokens(u64::MAX), Purpose::Plan);
            let cached = Cached::of(&view, &request);
            let why = |wager| when(&cached, &view, &request, wager, false).why;
            lost += usize::from(why(Wager::Blind).is_some() && why(Wager::Bounded).is_none());
            drop(cached);
            drop(view);
            reader.commit(plan.edits, policy.digest());
            let ticket = compile(&Request::new(&log, &reader, policy, &target)).unwrap().receipt.ticket;
            reader.acknowledge(&ticket).unwrap();
            for entry in step(&mut chance, at, files) {
                log.append(entry).unwrap();
            }
        }
        (cuts, lost)
    }

    #[test]
    fn a_guess_that_cannot_come_out_is_not_tried() {
        let (mut cuts, mut lost) = (0, 0);
        let mut eager = Policy::usual();
        eager.patience.start = Tokens(3_000);
        eager.patience.margin = Tokens(0);
        for seed in 0..8 {
            for (files, policy) in [(1, Policy::usual()), (2, eager.clone()), (5, eager.clone()), (1, Policy::frugal())]
            {
                let (made, not_tried) = live(seed, files, &policy);
                (cuts, lost) = (cuts + made, lost + not_tried);
            }
        }
        assert!(cuts > 20 && lost > 20, "{cuts} cuts, {lost} guesses that were not tried");
    }
}
