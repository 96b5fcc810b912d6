//! Real files of other programs, and what another reader made of each: a twin that says the same in the form of
//! OpenAI's chat, by its own account without calls that have no result.

use recto::entry::Piece;
use recto::transcript::{self, Conversation};
use recto::{Entry, Part, Role};
use recto_testkit::shared;
use serde_json::Value;
use std::collections::HashSet;

/// A message as both sides tell it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) role: Role,
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<(String, String, Value)>,
    pub(super) result: Option<(String, bool)>,
    pub(super) images: usize,
}

pub(super) fn told(entry: &Entry) -> Told {
    let mut told = Told {
        role: entry.role,
        text: String::new(),
        reasoning: String::new(),
        calls: Vec::new(),
        result: None,
        images: 0,
    };
    for part in entry.parts.iter() {
        match part {
            Part::Text { text } => told.text.push_str(text),
            Part::Reasoning(it) => told.reasoning.push_str(&it.text),
            Part::Call(call) => {
                let arguments = serde_json::from_str(call.arguments.as_str()).expect("arguments are JSON");
                told.calls.push((call.id.to_string(), call.name.to_string(), arguments));
            }
            Part::Result(result) => {
                told.result = Some((result.call.to_string(), result.is_error));
                for piece in &result.content {
                    match piece {
                        Piece::Text { text } => told.text.push_str(text),
                        Piece::Image(_) => told.images += 1,
                    }
                }
            }
            Part::Image(_) => told.images += 1,
            _ => {}
        }
    }
    // The other reader joins texts with other blanks.
    told.text.retain(|c| !c.is_whitespace());
    told.reasoning.retain(|c| !c.is_whitespace());
    told
}

/// What the other reader leaves out by its own account: calls without a result, and what then says nothing.
pub(super) fn without_open_calls(told: Vec<Told>) -> Vec<Told> {
    let answered: HashSet<String> = told.iter().filter_map(|it| it.result.clone()).map(|(id, _)| id).collect();
    let kept = told.into_iter().map(|mut it| {
        it.calls.retain(|(id, _, _)| answered.contains(id));
        it
    });
    kept.filter(|it| it.result.is_some() || !(it.text.is_empty() && it.calls.is_empty() && it.images == 0)).collect()
}

/// The results of a step come as they were ready here, and in the order of their calls there.
pub(super) fn in_order(mut told: Vec<Told>) -> Vec<Told> {
    for run in told.chunk_by_mut(|one, next| one.result.is_some() && next.result.is_some()) {
        run.sort_by(|one, next| one.result.cmp(&next.result));
    }
    told
}

/// The messages of a raw file and of its twin.
pub(super) fn pairs(kind: &str, test: &str) -> Option<Vec<(String, Conversation, Conversation)>> {
    let folder = shared::folder("data/raw", test)?;
    let data = folder.parent().expect("it has a parent").to_path_buf();
    let manifest = std::fs::read_to_string(data.join("manifest.jsonl")).expect("the manifest can be read");
    let mut pairs = Vec::new();
    for line in manifest.lines() {
        let row: Value = serde_json::from_str(line).expect("the manifest is JSON");
        let Some(raw) = row["raw"].as_str().filter(|raw| raw.contains(&format!("raw/{kind}/"))) else { continue };
        let read = |name: &str| {
            let text = std::fs::read_to_string(data.join(name)).expect("shared data can be read");
            transcript::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let twin = read(row["file"].as_str().unwrap()).into_iter().find(|it| it.id.as_deref() == row["id"].as_str());
        let mut found = read(raw);
        assert_eq!(found.len(), 1, "{raw}");
        pairs.push((raw.to_string(), found.remove(0), twin.expect("the twin is there")));
    }
    Some(pairs)
}
