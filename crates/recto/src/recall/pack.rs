//! Which passages there is room for, and how they stand on the page.
//!
//! ```text
//! Excerpts from earlier in this conversation:
//! [8 May 2023]
//! Ann: We moved the release to the 20th.
//! [m42 read_file]
//! fn main() {
//! ```

use super::shelf::Passage;
use super::{BYTES_PER_TOKEN, Pick};
use crate::edit::Handle;
use crate::entry::{Part, Piece, Role};
use crate::log::Counted;
use crate::tokens::{Count, Tokens};
use std::collections::BTreeSet;

/// What stands before everything that came back.
const INTRODUCTION: &str = "Excerpts from earlier in this conversation:\n";
/// What the fence around it costs at most, in tokens.
const FENCE: Tokens = Tokens(16);
/// How often what was chosen is counted, and chosen again to come nearer to the budget.
const ROUNDS_MAX: u64 = 6;
/// Room that is not worth another round, in tokens.
const SPARE: Tokens = Tokens(8);

impl Pick {
    pub(super) fn of(passage: &Passage<'_>) -> Pick {
        let Passage { entry, place, tool, day, .. } = passage;
        let is_talk = is_talk(entry, place.part);
        let work = || tool.map_or_else(String::new, str::to_string);
        let above = if is_talk { day.map(|day| day.written()).unwrap_or_default() } else { work() };
        Pick { place: *place, above: above.into(), conversation: None }
    }

    /// Returns the text that it points at, if its entry still has it.
    pub fn text<'e>(&self, entry: &'e Counted) -> Option<&'e str> {
        let text: &str = match entry.shown().get(self.place.part)? {
            Part::Text { text } => text,
            Part::Call(call) => call.arguments.as_str(),
            Part::Result(result) => match result.content.get(self.place.piece)? {
                Piece::Text { text } => text,
                Piece::Image(_) => return None,
            },
            _ => return None,
        };
        let is_there = entry.original().erased.is_none() && entry.seq == self.place.seq;
        text.get(self.place.start..self.place.end).filter(|_| is_there)
    }

    /// What stands above it; said once for all that follow.
    fn heading(&self, is_talk: bool) -> String {
        let of = self.conversation.as_ref().map_or_else(String::new, |name| format!("{name} "));
        let handle = if is_talk || self.conversation.is_some() { None } else { Some(Handle::entry(self.place.seq)) };
        let handle = handle.map_or_else(String::new, |handle| format!("{handle} "));
        format!("{of}{handle}{}", self.above).trim_end().to_string()
    }
}

fn is_talk(entry: &Counted, part: usize) -> bool {
    let original = entry.original();
    let is_said = matches!(entry.shown().get(part), Some(Part::Text { .. }));
    is_said && original.kind.is_none() && original.role != Role::Tool && original.calls().next().is_none()
}

fn speaker(entry: &Counted) -> &str {
    let role = if entry.role() == Role::User { "user" } else { "assistant" };
    entry.author().map_or(role, |author| author)
}

/// Returns the text of what came back, from the entries that it points into, in order. What is no longer there is left
/// out; where nothing is left, there is no text.
pub(super) fn written(picks: &[(Pick, &Counted)]) -> Option<String> {
    let mut out = String::from(INTRODUCTION);
    let (mut above, mut before): (String, Option<&Pick>) = (String::new(), None);
    for (pick, entry) in picks {
        let Some(text) = pick.text(entry) else { continue };
        // A stretch that goes on where the last one ended is one with it.
        let goes_on = before.is_some_and(|before| before.place.is_followed_by(pick.place));
        before = Some(pick);
        if goes_on {
            out.push_str(text);
            continue;
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
        let is_talk = is_talk(entry, pick.place.part);
        let new = pick.heading(is_talk);
        if !new.is_empty() && new != above {
            out.push_str(&format!("[{new}]\n"));
        }
        above = new;
        if is_talk {
            out.push_str(speaker(entry));
            out.push_str(": ");
        }
        out.push_str(text);
    }
    before.map(|_| out.trim_end().to_string())
}

/// What choosing needs to know of a passage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Where it stands among all.
    pub(super) at: usize,
    pub(super) worth: f64,
}

/// Returns which of the offers are taken, in the order of the log: those of the highest worth, as long as they fit.
pub(super) fn choose(
    passages: &[&Passage<'_>],
    mut offers: Vec<Offer>,
    budget: Tokens,
    counter: &dyn Count,
) -> Vec<usize> {
    offers.sort_by(|one, other| other.worth.total_cmp(&one.worth).then(one.at.cmp(&other.at)));
    let picks: Vec<(Pick, &Counted)> = passages.iter().map(|it| (Pick::of(it), it.entry)).collect();
    let room = budget - FENCE;
    let (mut allowed, mut best) = (room, Vec::new());
    for round in 1..=ROUNDS_MAX {
        let chosen = greedy(&picks, &offers, allowed);
        let list: Vec<_> = chosen.iter().map(|at| picks[*at].clone()).collect();
        let cost = written(&list).map_or(Tokens(0), |text| counter.count(&text));
        if cost > room {
            // What is guessed too low once is likely to be so again: each time a little more is kept free.
            allowed -= cost - room + Tokens(room.0 * round / 100);
            continue;
        }
        let is_all = chosen.len() == offers.len();
        if chosen.len() >= best.len() {
            best = chosen;
        }
        if is_all || room - cost <= SPARE {
            break;
        }
        allowed += room - cost;
    }
    best
}

/// Takes what fits by a guess of four bytes a token.
fn greedy(picks: &[(Pick, &Counted)], offers: &[Offer], allowed: Tokens) -> Vec<usize> {
    let mut left = (allowed.0 as usize).saturating_mul(BYTES_PER_TOKEN).saturating_sub(INTRODUCTION.len());
    let (mut chosen, mut headings) = (Vec::new(), BTreeSet::new());
    for offer in offers {
        let (pick, entry) = &picks[offer.at];
        let is_talk = is_talk(entry, pick.place.part);
        let heading = pick.heading(is_talk);
        let above = if heading.is_empty() || headings.contains(&heading) { 0 } else { heading.len() + 3 };
        let who = if is_talk { speaker(entry).len() + 2 } else { 0 };
        let cost = pick.place.end - pick.place.start + 1 + above + who;
        if cost <= left {
            left -= cost;
            chosen.push(offer.at);
            headings.insert(heading);
        }
    }
    chosen.sort_unstable();
    chosen
}
