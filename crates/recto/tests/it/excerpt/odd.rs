//! Excerpts of texts as odd as they come: never larger, never for ever, never a panic.

use super::{excerpting, made};
use crate::pays::Host;
use recto::edit::Change;
use recto::entry::{Call, Part, Reasoning};
use recto::{Count, Entry, Role, Tokenizer};
use recto_testkit::mixed::{self, Dice};

/// A text of many odd lines.
fn text(dice: &mut Dice) -> String {
    let breaks = ["\n", "\n", "\r\n", "\\n", "\n\n", "\u{0}", "\r"];
    let mut text = String::new();
    for _ in 0..1 + dice.below(60) {
        match dice.below(3) {
            0 => text.push_str(&mixed::text(dice)),
            1 => text.push_str(&format!("value_{} = {:?};", dice.below(9), dice.roll())),
            _ => text.push_str(&"ab ".repeat(dice.below(12))),
        }
        text.push_str(dice.pick::<&str>(&breaks));
    }
    text
}

#[test]
fn an_excerpt_is_never_larger_than_what_it_replaces() {
    let mut excerpts = 0;
    for seed in 0..400 {
        let dice = &mut Dice::new(seed);
        let mut host = Host::new(excerpting(*dice.pick(&[0.0, 0.5, 4.0, 30.0, 1e9])));
        for nth in 0..1 + dice.below(5) {
            let (id, thought) = (format!("c{nth}"), Reasoning { text: text(dice).into(), ..Reasoning::default() });
            let arguments = match dice.chance(80) {
                true => serde_json::json!({"a": text(dice), "b": [text(dice)]}).to_string(),
                false => text(dice),
            };
            let call = Part::Call(Call::new(&*id, *dice.pick(&["Read", "Grep", "Bash", "x"]), arguments));
            host.say(Entry::new(Role::Assistant, [Part::Reasoning(thought), Part::text(text(dice)), call]));
            host.say(Entry::result(&*id, text(dice)));
        }
        (0..3).for_each(|_| drop(host.turn(2)));
        for decision in host.reader.decisions() {
            let edit = &decision.edit;
            let Change::Replace { at, text } = &edit.change else { panic!("{edit:?}") };
            let entry = host.log.get(at.seq).unwrap();
            assert!(edit.after.0 * 10 < edit.before.0 * 9, "seed {seed}: {edit:?}");
            assert!(Tokenizer::Chars4.count(text) < entry.part_cost(at.part), "seed {seed}: {edit:?}");
            if let Part::Call(_) = &entry.original().parts[at.part] {
                serde_json::from_str::<serde_json::Value>(text).unwrap();
            }
            excerpts += 1;
        }
        // What a page costs is what its messages cost: no edit has miscounted.
        let cost: u64 = host.last().page.messages.iter().map(|message| message.cost.0).sum();
        assert_eq!(host.last().receipt.ledger.used().0, cost, "seed {seed}");
        host.remembers();
    }
    assert!(excerpts > 1_000, "{excerpts}");
}

#[test]
fn huge_and_strange_texts_are_cut_in_no_time() {
    let texts = [
        "x".repeat(1 << 20),
        "é ".repeat(1 << 19),
        "\n".repeat(100_000),
        "\r\n".repeat(100_000),
        "\\n".repeat(100_000),
        "\\".repeat(100_001),
        "\"'`".repeat(50_000),
        "a\u{0}b\n".repeat(50_000),
        "\u{0}".repeat(100_000),
        (0..50_000).map(|nth| format!("line {nth}\n")).collect(),
        "a.b/c:d@e#f-".repeat(20_000),
    ];
    for text in &texts {
        for worth in [0.0, 8.0] {
            let mut host = Host::new(excerpting(worth));
            let seq = host.uses("Read", "{}", text);
            host.say(Entry::assistant(text.as_str()));
            (0..3).for_each(|_| drop(host.turn(2)));
            assert!(made(&host, seq).len() <= 1);
        }
    }
}

#[test]
fn line_ends_of_windows_stay_as_they_were() {
    let mut host = Host::new(excerpting(2.0));
    let text = super::code("alpha", 60).replace('\n', "\r\n") + "\r\n";
    let seq = host.uses("Read", "{}", &text);
    (0..4).for_each(|_| drop(host.turn(2)));
    let shown = host.shown(seq).unwrap();
    let kept = super::kept(&shown, &text, seq);
    let said = || kept.iter().filter(|line| !line.is_empty());
    assert!(said().count() > 5 && said().all(|line| line.ends_with('\r')), "{shown}");
}
