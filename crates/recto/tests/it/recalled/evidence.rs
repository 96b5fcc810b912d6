//! Long dialogues between two people, with questions whose evidence is known: how much of it comes back.

use super::text_of;
use recto::entry::Text;
use recto::replay::Questions;
use recto::{Log, Role, Target, Tokens, transcript};
use recto_testkit::shared;
use serde_json::Value;
use std::collections::HashMap;

/// What a page may have beside the budget and the question, in tokens: the fence.
const BESIDE: u64 = 64;
/// Without `RECTO_LONG` every so-manieth question is asked.
const EVERY: usize = 4;
/// Questions of this kind have no answer in the dialogue.
const UNANSWERABLE: u64 = 5;

/// A dialogue, and for each question the places of its evidence.
struct Dialogue {
    log: Log,
    questions: Vec<(String, Vec<u64>)>,
}

/// How much evidence stood on the pages.
#[derive(Default)]
struct Found {
    evidence: usize,
    all: usize,
}

impl Found {
    fn share(&self) -> f64 {
        self.evidence as f64 / self.all.max(1) as f64
    }
}

fn dialogues(test: &str) -> Option<Vec<Dialogue>> {
    let folder = shared::folder("data/conversations", test)?;
    let files = shared::jsonl(&folder).into_iter();
    let files = files.filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("locomo")));
    let text: String = files.map(|file| std::fs::read_to_string(file).expect("shared data can be read")).collect();
    if text.is_empty() {
        shared::skipped(&format!("{test}: no dialogues with questions in the shared folder"));
        return None;
    }
    let logs = transcript::read(&text).unwrap().into_iter();
    let logs = logs.map(|it| it.into_log(Target::eval().tokenizer).unwrap());
    let records = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    Some(logs.zip(records).map(|(log, record)| Dialogue { log, questions: questions(&record.unwrap()) }).collect())
}

fn questions(record: &Value) -> Vec<(String, Vec<u64>)> {
    let (mut session, mut nth, mut places) = (0, 0, HashMap::new());
    for (at, message) in record["messages"].as_array().unwrap().iter().enumerate() {
        if let Some(next) = message["session"].as_u64() {
            (session, nth) = (next, 0);
        }
        nth += 1;
        places.insert(format!("D{session}:{nth}"), at as u64);
    }
    let asked = record["meta"]["qa"].as_array().unwrap().iter();
    let asked = asked.filter(|it| it["category"].as_u64() != Some(UNANSWERABLE));
    let found = asked.map(|it| {
        let named = it["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let ids = named.flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':')));
        let mut evidence: Vec<u64> = ids.filter_map(|id| places.get(id).copied()).collect();
        evidence.sort_unstable();
        evidence.dedup();
        (it["question"].as_str().unwrap().to_string(), evidence)
    });
    found.filter(|(_, evidence)| !evidence.is_empty()).collect()
}

fn four_bytes(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4).max(1)
}

/// Asks questions at a budget; pages over it are no pages.
fn ask(dialogue: &Dialogue, budget: u64, every: usize, found: &mut Found) {
    let target = Target::eval();
    let questions = Questions::about(&dialogue.log, &target);
    for (question, evidence) in dialogue.questions.iter().step_by(every) {
        let text = text_of(&questions.page(question, Tokens(budget)).unwrap().page);
        assert!(four_bytes(&text) <= budget + four_bytes(question) + BESIDE, "{question}");
        for place in evidence {
            let entry = dialogue.log.get(recto::Seq(*place)).unwrap();
            let said = entry.shown().iter().find_map(|part| match part {
                recto::Part::Text { text } => Some(text.trim()),
                _ => None,
            });
            found.evidence += usize::from(text.contains(said.unwrap()));
            found.all += 1;
        }
    }
}

fn every() -> usize {
    if std::env::var_os("RECTO_LONG").is_some() { 1 } else { EVERY }
}

#[test]
fn most_evidence_of_long_dialogues_comes_back() {
    let Some(dialogues) = dialogues("most_evidence_of_long_dialogues_comes_back") else { return };
    for (budget, least) in [(4_000, 0.88), (8_000, 0.945)] {
        let mut found = Found::default();
        dialogues.iter().for_each(|dialogue| ask(dialogue, budget, every(), &mut found));
        assert!(found.share() >= least, "{budget}: {:.4} of {}", found.share(), found.all);
    }
}

/// A log of one user and one assistant, asked in the first person: names are gone from log and questions.
#[test]
fn evidence_comes_back_without_names() {
    let Some(dialogues) = dialogues("evidence_comes_back_without_names") else { return };
    for (budget, least) in [(4_000, 0.86), (8_000, 0.93)] {
        let mut found = Found::default();
        for dialogue in dialogues.iter().map(without_names) {
            ask(&dialogue, budget, every(), &mut found);
        }
        assert!(found.share() >= least, "{budget}: {:.4} of {}", found.share(), found.all);
    }
}

fn without_names(dialogue: &Dialogue) -> Dialogue {
    let mut log = Log::counted_by(Target::eval().tokenizer);
    let mut names: HashMap<Text, Role> = HashMap::new();
    for seq in 0..dialogue.log.len() {
        let mut entry = dialogue.log.get(recto::Seq(seq)).unwrap().original().clone();
        names.extend(entry.author.take().map(|author| (author, entry.role)));
        log.append(entry).unwrap();
    }
    let asked = |question: &String| {
        let mut question = question.clone();
        for (name, role) in &names {
            let (whose, who) = if *role == Role::User { ("my", "I") } else { ("your", "you") };
            question = question.replace(&format!("{name}'s"), whose).replace(&**name, who);
        }
        question
    };
    let questions = dialogue.questions.iter().map(|(question, evidence)| (asked(question), evidence.clone()));
    Dialogue { log, questions: questions.collect() }
}
