//! Long dialogues with questions whose evidence is known, from the shared data.

use crate::shared;
use recto::{Entry, Log, Part, Role, Target, transcript};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

/// Questions that this project asks about dialogues of others, by the places of messages.
const COMPANION: &str = include_str!("../../../fixtures/recall/companion.jsonl");
/// Questions of this kind have no answer in their dialogue.
const UNANSWERABLE: u64 = 5;
/// How many messages of somebody else's talk make one session of it.
const SESSION_ENTRIES: usize = 20;

/// A dialogue, and what is asked about it.
#[derive(Clone, Debug, Default)]
pub struct Dialogue {
    /// What was said.
    pub entries: Vec<Entry>,
    /// What is asked.
    pub questions: Vec<Question>,
}

/// A question, and where its evidence stands.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is asked.
    pub words: String,
    /// The messages that answer it, each once, in order.
    pub evidence: Vec<usize>,
}

/// How much evidence stood on pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// How many messages that are evidence were found, and how many there are.
    pub evidence: (usize, usize),
    /// How many questions had all of it, and how many there are.
    pub complete: (usize, usize),
}

impl Found {
    /// Looks for a question's evidence in the text of a page.
    pub fn look(&mut self, dialogue: &Dialogue, question: &Question, page: &str) {
        let is_there = |at: &&usize| page.contains(said(&dialogue.entries[**at]));
        let (found, all) = (question.evidence.iter().filter(is_there).count(), question.evidence.len());
        self.evidence = (self.evidence.0 + found, self.evidence.1 + all);
        self.complete = (self.complete.0 + usize::from(found == all), self.complete.1 + 1);
    }

    /// Returns the share of the evidence that was found.
    pub fn share(&self) -> f64 {
        self.evidence.0 as f64 / self.evidence.1.max(1) as f64
    }

    /// Returns the share of questions that had all of it.
    pub fn complete(&self) -> f64 {
        self.complete.0 as f64 / self.complete.1.max(1) as f64
    }
}

impl Dialogue {
    /// Returns its log, counted as pages for the evaluation target are.
    pub fn log(&self) -> Log {
        let mut log = Log::counted_by(Target::eval().tokenizer);
        for entry in &self.entries {
            log.append(entry.clone()).expect("a dialogue can be appended");
        }
        log
    }

    /// Returns the messages of each session.
    fn sessions(&self) -> Vec<Vec<usize>> {
        let mut sessions: Vec<Vec<usize>> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            match sessions.last_mut() {
                Some(last) if !entry.extra.contains_key("session") => last.push(at),
                _ => sessions.push(vec![at]),
            }
        }
        sessions
    }
}

/// Returns what a message says.
pub fn said(entry: &Entry) -> &str {
    entry
        .parts
        .iter()
        .find_map(|part| if let Part::Text { text } = part { Some(text.trim()) } else { None })
        .unwrap_or("")
}

/// Returns the dialogues with questions, or says loudly that the test is skipped.
pub fn dialogues(test: &str) -> Option<Vec<Dialogue>> {
    let text: String = files(test)?.iter().filter(|file| is_asked(file)).map(read).collect();
    if text.is_empty() {
        shared::skipped(&format!("{test}: no dialogues with questions in the shared folder"));
        return None;
    }
    let records = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let questions = records.map(|record| questions(&record.expect("shared data is JSON")));
    Some(entries(&text).zip(questions).map(|(entries, questions)| Dialogue { entries, questions }).collect())
}

/// Returns the dialogues of people with a companion program, with questions of our own, or says loudly that the test is
/// skipped.
pub fn companion(test: &str) -> Option<Vec<Dialogue>> {
    let file = files(test)?.into_iter().find(|file| file.to_string_lossy().contains("memorybank"));
    let Some(file) = file else {
        shared::skipped(&format!("{test}: no dialogues of a companion in the shared folder"));
        return None;
    };
    let asked: Vec<Value> = COMPANION.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let all = transcript::read(&read(&file)).expect("shared data is a transcript").into_iter();
    let dialogues = all.map(|it| {
        let own = asked.iter().filter(|asked| asked["conversation"].as_str() == it.id.as_deref());
        let questions = own.map(|asked| {
            let evidence = asked["evidence"].as_array().into_iter().flatten();
            let evidence = evidence.filter_map(|at| usize::try_from(at.as_u64()?).ok()).collect();
            Question { words: asked["question"].as_str().unwrap_or_default().into(), evidence }
        });
        Dialogue { questions: questions.collect(), entries: it.entries }
    });
    Some(dialogues.filter(|dialogue| !dialogue.questions.is_empty()).collect())
}

/// Returns the dialogues as one, session by session in turns, and as much again of other people's talk between them.
pub fn in_turns(dialogues: &[Dialogue], test: &str) -> Option<Dialogue> {
    let others = files(test)?.into_iter().filter(|file| !is_asked(file));
    let mut others = others.flat_map(|file| talk(&read(&file)));
    let mut all = Dialogue::default();
    let mut moved: HashMap<(usize, usize), usize> = HashMap::new();
    let sessions: Vec<_> = dialogues.iter().map(Dialogue::sessions).collect();
    let (mut session, mut owed) = (0_u64, 0);
    for nth in 0..sessions.iter().map(Vec::len).max().unwrap_or(0) {
        for (which, of_one) in sessions.iter().enumerate() {
            let Some(of_one) = of_one.get(nth) else { continue };
            session += 1;
            for (place, at) in of_one.iter().enumerate() {
                moved.insert((which, *at), all.entries.len());
                let entry = dialogues[which].entries[*at].clone();
                owed += said(&entry).len() as i64;
                all.entries.push(marked(entry, session, place));
            }
            while owed > 0 {
                let Some(theirs) = others.next() else { break };
                session += 1;
                owed -= theirs.iter().map(|entry| said(entry).len() as i64).sum::<i64>();
                all.entries.extend(theirs.into_iter().enumerate().map(|(place, it)| marked(it, session, place)));
            }
        }
    }
    for (which, dialogue) in dialogues.iter().enumerate() {
        all.questions.extend(dialogue.questions.iter().map(|question| {
            let evidence = question.evidence.iter().map(|at| moved[&(which, *at)]).collect();
            Question { words: question.words.clone(), evidence }
        }));
    }
    Some(all)
}

fn marked(mut entry: Entry, session: u64, place: usize) -> Entry {
    match place {
        0 => drop(entry.extra.insert("session".into(), session.into())),
        _ => drop(entry.extra.remove("session")),
    }
    entry
}

fn files(test: &str) -> Option<Vec<PathBuf>> {
    shared::folder("data/conversations", test).map(|folder| shared::jsonl(&folder))
}

fn is_asked(file: &std::path::Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("locomo"))
}

fn read(file: &PathBuf) -> String {
    std::fs::read_to_string(file).expect("shared data can be read")
}

fn entries(text: &str) -> impl Iterator<Item = Vec<Entry>> {
    let read = transcript::read(text).expect("shared data is a transcript").into_iter();
    read.map(|it| it.entries)
}

/// What people and models say to each other in the conversations of a file, some messages at a time.
fn talk(text: &str) -> Vec<Vec<Entry>> {
    let is_talk = |entry: &Entry| {
        matches!(entry.role, Role::User | Role::Assistant) && entry.calls().next().is_none() && !said(entry).is_empty()
    };
    let all = entries(text).flat_map(|entries| {
        let talk: Vec<Entry> = entries.into_iter().filter(is_talk).collect();
        talk.chunks(SESSION_ENTRIES).map(<[Entry]>::to_vec).collect::<Vec<_>>()
    });
    all.collect()
}

fn questions(record: &Value) -> Vec<Question> {
    let (mut session, mut nth, mut places) = (0, 0, HashMap::new());
    for (at, message) in record["messages"].as_array().into_iter().flatten().enumerate() {
        if let Some(next) = message["session"].as_u64() {
            (session, nth) = (next, 0);
        }
        nth += 1;
        places.insert(format!("D{session}:{nth}"), at);
    }
    let asked = record["meta"]["qa"].as_array().into_iter().flatten();
    let asked = asked.filter(|it| it["category"].as_u64() != Some(UNANSWERABLE));
    let found = asked.map(|it| {
        let named = it["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let ids = named.flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':')));
        let mut evidence: Vec<usize> = ids.filter_map(|id| places.get(id).copied()).collect();
        evidence.sort_unstable();
        evidence.dedup();
        Question { words: it["question"].as_str().unwrap_or_default().into(), evidence }
    });
    found.filter(|question| !question.evidence.is_empty()).collect()
}
