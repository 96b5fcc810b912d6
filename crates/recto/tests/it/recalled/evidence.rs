//! Long dialogues between two people, with questions whose evidence is known: how much of it comes back.

use super::text_of;
use recto::entry::Text;
use recto::replay::Questions;
use recto::{Role, Target, Tokens};
use recto_testkit::dialogue::{Dialogue, Found, companion, dialogues, in_turns};
use std::collections::HashMap;

/// What a page may have beside the budget and the question, in tokens: the fence.
const BESIDE: u64 = 64;
/// Without `RECTO_LONG` every so-manieth question is asked.
const EVERY: usize = 4;

fn four_bytes(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4).max(1)
}

/// Asks questions at a budget; pages over it are no pages.
fn ask(dialogue: &Dialogue, budget: u64, every: usize, found: &mut Found) {
    let (log, target) = (dialogue.log(), Target::eval());
    let questions = Questions::about(&log, &target);
    for question in dialogue.questions.iter().step_by(every) {
        let text = text_of(&questions.page(&question.words, Tokens(budget)).unwrap().page);
        assert!(four_bytes(&text) <= budget + four_bytes(&question.words) + BESIDE, "{}", question.words);
        found.look(dialogue, question, &text);
    }
}

fn every() -> usize {
    if std::env::var_os("RECTO_LONG").is_some() { 1 } else { EVERY }
}

/// Checks that so much evidence comes back at each budget, and says how much, for docs/recall.md.
#[track_caller]
fn check(dialogues: &[Dialogue], every: usize, bounds: [(u64, f64); 2]) {
    for (budget, least) in bounds {
        let mut found = Found::default();
        dialogues.iter().for_each(|dialogue| ask(dialogue, budget, every, &mut found));
        eprintln!("{budget}: {:.4} of {}, {:.4} complete", found.share(), found.evidence.1, found.complete());
        assert!(found.share() >= least, "{budget}: {:.4} of {}", found.share(), found.evidence.1);
    }
}

#[test]
fn most_evidence_of_long_dialogues_comes_back() {
    let Some(dialogues) = dialogues("most_evidence_of_long_dialogues_comes_back") else { return };
    check(&dialogues, every(), [(4_000, 0.9), (8_000, 0.955)]);
}

/// A log of one user and one assistant, asked in the first person: names are gone from log and questions.
#[test]
fn evidence_comes_back_without_names() {
    let Some(dialogues) = dialogues("evidence_comes_back_without_names") else { return };
    let nameless: Vec<Dialogue> = dialogues.into_iter().map(without_names).collect();
    check(&nameless, every(), [(4_000, 0.885), (8_000, 0.945)]);
}

/// Other dialogues, on which nothing was tuned, in English and Chinese: a tenth and a fifth of each comes back.
#[test]
fn evidence_comes_back_from_talk_with_a_companion() {
    let Some(dialogues) = companion("evidence_comes_back_from_talk_with_a_companion") else { return };
    check(&dialogues, 1, [(300, 0.74), (600, 0.85)]);
}

#[test]
fn evidence_comes_back_from_ten_times_as_much() {
    let test = "evidence_comes_back_from_ten_times_as_much";
    let Some(all) = dialogues(test).and_then(|dialogues| in_turns(&dialogues, test)) else { return };
    check(&[all], 2 * every(), [(4_000, 0.84), (8_000, 0.88)]);
}

fn without_names(mut dialogue: Dialogue) -> Dialogue {
    let mut names: HashMap<Text, Role> = HashMap::new();
    for entry in &mut dialogue.entries {
        names.extend(entry.author.take().map(|author| (author, entry.role)));
    }
    for question in &mut dialogue.questions {
        for (name, role) in &names {
            let (whose, who) = if *role == Role::User { ("my", "I") } else { ("your", "you") };
            question.words = question.words.replace(&format!("{name}'s"), whose).replace(&**name, who);
        }
    }
    dialogue
}
