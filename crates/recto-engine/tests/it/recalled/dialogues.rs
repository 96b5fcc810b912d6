//! Ten times as much as one dialogue has, by its index: how much evidence comes back, and whether pages are full.

use super::at;
use recto::recall::Query;
use recto::{Target, Tokens};
use recto_engine::store::memory::Memory;
use recto_engine::{Append, Engine, Opening};
use recto_testkit::dialogue::{Found, dialogues, in_turns};

/// Every so-manieth question is asked.
const EVERY: usize = 8;
/// Entries that are appended at once.
const BATCH: usize = 1_000;

#[tokio::test]
async fn an_index_brings_back_what_a_whole_reading_would() {
    let test = "an_index_brings_back_what_a_whole_reading_would";
    let Some(all) = dialogues(test).and_then(|dialogues| in_turns(&dialogues, test)) else { return };
    let engine = Engine::over(Memory::default());
    let opening = Opening { tokenizer: Some(Target::eval().tokenizer), ..Opening::default() };
    engine.open(&at("talk"), opening).await.unwrap();
    for batch in all.entries.chunks(BATCH) {
        engine.append(&at("talk"), Append::any(batch.to_vec())).await.unwrap();
    }
    for (budget, least) in [(4_000, 0.78), (8_000, 0.86)] {
        let mut found = Found::default();
        for question in all.questions.iter().step_by(EVERY) {
            let searched = engine.search(&at("talk"), &Query::saying(&question.words), Tokens(budget)).await.unwrap();
            let text: Vec<&str> = searched.hits.iter().map(|hit| &*hit.text).collect();
            let text = text.join("\n");
            assert!(text.len() as u64 / 4 > budget * 3 / 4, "{}: {} bytes", question.words, text.len());
            found.look(&all, question, &text);
        }
        eprintln!("{budget}: {:.4} of {}, {:.4} complete", found.share(), found.evidence.1, found.complete());
        assert!(found.share() >= least, "{budget}: {:.4} of {}", found.share(), found.evidence.1);
    }
}
