//! What is sent over twenty turns, everything each time against what is new: measured with the real programs, and kept
//! in `docs/sessions.md`.

use super::lab::{Lab, Program, count};
use crate::engine::block_on;
use recto::page::Mode;
use recto_engine::engine::Driven;
use recto_testkit::fake::Reply;
use std::fmt::Write;
use std::path::Path;

const TURNS: usize = 20;
const DOC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sessions.md");
const BEGIN: &str = "<!-- begin: measured -->\n";
const END: &str = "<!-- end: measured -->";

/// A paragraph as agents are told, about a hundred tokens long.
fn words(turn: usize) -> String {
    let lines: Vec<String> =
        (0..8).map(|line| format!("step {turn}.{line}: look at module {line} and say why")).collect();
    format!("WORDS-{turn}. {}.", lines.join("; "))
}

/// An answer about twice as long.
fn answer(turn: usize) -> String {
    let lines: Vec<String> =
        (0..14).map(|line| format!("in module {line} of part {turn} the loop runs once too often")).collect();
    format!("ANSWER-{turn}. {}.", lines.join("; "))
}

/// For each turn: what was handed over, and what a full page would have been.
async fn measured(lab: &Lab) -> Vec<(u64, u64)> {
    let mut turns = Vec::new();
    for turn in 0..TURNS {
        lab.server.push(Reply::default().text(&answer(turn)));
        // The page that a provider without memory would have been sent.
        let full = lab.engine.preview(&lab.at, &lab.call(&words(turn), "")).await.unwrap().receipt.ledger.used();
        let Driven { receipt, .. } = lab.say(&words(turn), "").await.unwrap();
        let receipt = receipt.unwrap();
        assert_eq!(receipt.mode, if turn == 0 { Mode::Full } else { Mode::Delta }, "turn {turn}");
        turns.push((receipt.ledger.used().0, full.0));
        let body = lab.bodies().pop().unwrap();
        for earlier in 0..TURNS {
            assert_eq!(count(&body, &format!("WORDS-{earlier}.")), usize::from(earlier <= turn), "turn {turn}");
            assert_eq!(count(&body, &format!("ANSWER-{earlier}.")), usize::from(earlier < turn), "turn {turn}");
        }
    }
    turns
}

#[test]
fn over_twenty_turns_what_is_new_stays_small_and_the_docs_say_how_small() {
    let mut table = String::from(
        "| program | turn | full | new | so far: full | new | of it |\n|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for program in Program::ALL {
        let Some(lab) = Lab::new(program, "over_twenty_turns_what_is_new_stays_small_and_the_docs_say_how_small")
        else {
            return;
        };
        let turns = block_on(measured(&lab));
        let (mut full_sum, mut new_sum) = (0, 0);
        for (turn, (new, full)) in turns.iter().enumerate() {
            (full_sum, new_sum) = (full_sum + full, new_sum + new);
            if [1, 2, 5, 10, 15, 20].contains(&(turn + 1)) {
                let (name, number) = (lab.driver.name(), turn + 1);
                let percent = new_sum as f64 * 100.0 / full_sum as f64;
                writeln!(table, "| {name} | {number} | {full} | {new} | {full_sum} | {new_sum} | {percent:.0} % |")
                    .unwrap();
            }
        }
        assert!(new_sum * 5 < full_sum, "{new_sum} of {full_sum}");
    }
    let doc = std::fs::read_to_string(Path::new(DOC)).unwrap();
    let (before, rest) = doc.split_once(BEGIN).expect("the doc has a place for it");
    let (there, after) = rest.split_once(END).expect("the place has an end");
    if std::env::var_os("RECTO_BLESS").is_some() {
        std::fs::write(DOC, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(there, table, "run with RECTO_BLESS=1 to write it");
    }
}
