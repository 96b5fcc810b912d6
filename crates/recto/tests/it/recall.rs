//! What pages cost and forget: on a small conversation whose references can be counted by hand, and on odd ones.

use recto::digest::Digest;
use recto::entry::{Call, Piece, ToolResult};
use recto::page::{Message, Page};
use recto::replay::recall::{Kept, Kind, Measure, Score, text_of};
use recto::{Entry, Log, Part, Policy, Replay, Role, Target, Tokenizer, Tokens, wire};
use recto_testkit::mixed::{self, Dice};
use serde_json::Value;

const CONVERSATIONS: u64 = 300;
const LINE: &str = "let answer_value = 4242;";

fn target() -> Target {
    Target::eval().with_window(None)
}

fn log_of(entries: impl IntoIterator<Item = Entry>) -> Log {
    let mut log = Log::counted_by(Tokenizer::Bytes4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    log
}

fn result(text: &str) -> Part {
    let content = vec![Piece::Text { text: text.into() }];
    Part::Result(ToolResult { call: "c1".into(), content, is_error: false })
}

/// The first reply takes a name from the user, the second a name and a number from the result, the third these and
/// a whole line.
fn small() -> Log {
    let call = Call {
        id: "c1".into(),
        name: "read".into(),
        arguments: recto::entry::Arguments::String(r#"{"path":"src/alpha.rs"}"#.into()),
    };
    log_of([
        Entry::user("Please look at src/alpha.rs and count to 4242 there."),
        Entry::new(Role::Assistant, [Part::Call(call)]),
        Entry::new(Role::Tool, [result(&format!("fn total() {{\n    {LINE}\n}}"))]),
        Entry::assistant("The line `let answer_value = 4242;` sets answer_value."),
        Entry::user("Write it again."),
        Entry::assistant(LINE),
    ])
}

/// The pages of a log under the policy that changes nothing.
fn pages(log: &Log) -> Vec<(usize, Page)> {
    let (policy, target) = (Policy::none(), target());
    let replay = Replay::new(log, &policy, &target);
    replay.map(|replayed| (replayed.turn, replayed.compiled.unwrap().page)).collect()
}

/// Measures the pages of a log after something was done to each.
fn score(log: &Log, change: impl Fn(usize, &mut Page)) -> Score {
    let mut measure = Measure::new(log);
    for (turn, mut page) in pages(log) {
        change(turn, &mut page);
        measure.page(turn, &page);
    }
    measure.finish()
}

/// Shows another text in place of every result.
fn results_say(page: &mut Page, text: &str) {
    for message in page.messages.iter_mut().filter(|message| message.role == Role::Tool) {
        *message = Message { parts: [result(text)].into(), digest: Digest::of(text.as_bytes()), ..message.clone() };
    }
}

fn kept(score: &Score) -> [(u64, u64); 5] {
    score.references.map(|Kept { kept, all }| (kept, all))
}

#[test]
fn references_are_what_a_reply_takes_from_before() {
    let whole = score(&small(), |_, _| {});
    assert_eq!(kept(&whole), [(3, 3), (2, 2), (0, 0), (0, 0), (1, 1)]);
    assert_eq!((whole.recall(), whole), (1.0, Measure::new(&small()).full()));
}

#[test]
fn what_left_the_page_is_forgotten_unless_it_was_said_again() {
    let gone = score(&small(), |_, page| results_say(page, "[gone]"));
    // The second reply names the value, so the third finds it there, but not the whole line.
    assert_eq!(kept(&gone), [(2, 3), (2, 2), (0, 0), (0, 0), (0, 1)]);
    assert!((gone.recall() - (2.0 / 3.0 + 3.0) / 5.0).abs() < 1e-12);
    let nothing = score(&small(), |_, page| page.messages.drain(..).for_each(drop));
    assert_eq!(kept(&nothing), [(0, 3), (0, 2), (0, 0), (0, 0), (0, 1)]);
    assert_eq!((nothing.tokens, nothing.recall()), (Tokens(0), 2.0 / 5.0));
}

#[test]
fn loose_words_are_no_memory_and_lines_of_the_history_are() {
    let gone = score(&small(), |_, page| results_say(page, "[gone]"));
    let listed = score(&small(), |_, page| results_say(page, "keywords: answer_value, 4242, let answer_value = 4242;"));
    assert_eq!(kept(&listed), kept(&gone));
    let excerpt = score(&small(), |_, page| results_say(page, &format!("[shortened]\n{LINE}")));
    assert_eq!(kept(&excerpt), [(3, 3), (2, 2), (0, 0), (0, 0), (1, 1)]);
}

#[test]
fn what_comes_back_is_remembered_again() {
    let back = score(&small(), |turn, page| {
        if turn == 1 {
            results_say(page, "[gone]");
        }
    });
    assert_eq!(kept(&back), [(2, 3), (2, 2), (0, 0), (0, 0), (1, 1)]);
    let again = score(&small(), |turn, page| {
        if turn == 2 {
            page.messages.drain(..2).for_each(drop);
        }
    });
    assert_eq!(kept(&again), kept(&score(&small(), |_, _| {})));
}

#[test]
fn a_call_pays_little_for_what_stands_as_before_and_more_for_the_rest() {
    let tokens = |text: &str| Tokens((text.len() as u64).div_ceil(4) + 4);
    let log = log_of([Entry::user("abcdefghi"), Entry::assistant("jk"), Entry::user("m"), Entry::assistant("l")]);
    let whole = score(&log, |_, _| {});
    let (first, second) = (tokens("abcdefghi"), tokens("abcdefghi") + tokens("jk") + tokens("m"));
    assert_eq!((whole.calls, whole.tokens, whole.cached, whole.peak), (2, first + second, first, second));
    assert!((whole.cost() - (0.1 * 7.0 + 1.25 * (7.0 + 10.0))).abs() < 1e-9);
    assert_eq!(Measure::new(&log).tokens(), second + tokens("l"));
    let half = score(&log, |turn, page| {
        if turn == 1 {
            page.messages.remove(0);
        }
    });
    assert_eq!((half.cached, half.tokens), (Tokens(0), first + tokens("jk") + tokens("m")));
    assert!((half.cost_against(&whole) - 1.25 * 17.0 / whole.cost()).abs() < 1e-9);
    assert_eq!(Score::default().cost_against(&Score::default()), 1.0);
}

#[test]
fn scores_add_up() {
    let (whole, gone) = (score(&small(), |_, _| {}), score(&small(), |_, page| results_say(page, "[gone]")));
    let mut sum = whole;
    sum.add(&gone);
    assert_eq!((sum.calls, sum.tokens, sum.peak), (6, whole.tokens + gone.tokens, whole.peak));
    assert_eq!(kept(&sum), [(5, 6), (4, 4), (0, 0), (0, 0), (1, 2)]);
    let json = serde_json::to_value(sum).unwrap();
    for (kind, (kept, all)) in Kind::ALL.iter().zip(self::kept(&sum)) {
        assert_eq!(json["references"][kind.name()], serde_json::json!({"kept": kept, "all": all}));
    }
}

#[test]
fn turns_without_a_page_count_for_nothing() {
    let log =
        log_of([Entry::assistant("Welcome to src/alpha.rs"), Entry::user("Hi"), Entry::assistant("src/alpha.rs")]);
    assert_eq!(Measure::new(&log).full().calls, 1);
    let mut measure = Measure::new(&log);
    let (turn, page) = pages(&log).remove(0);
    measure.page(0, &page);
    measure.page(9, &page);
    assert_eq!(measure.clone().finish(), Score::default());
    measure.page(turn, &page);
    assert_eq!((turn, measure.finish()), (1, Measure::new(&log).full()));
    assert_eq!(Measure::new(&log_of([])).full().recall(), 1.0);
}

#[test]
fn a_fresh_clone_measures_another_policy() {
    let fresh = Measure::new(&small());
    let mut first = fresh.clone();
    pages(&small()).iter().for_each(|(turn, page)| first.page(*turn, page));
    let mut second = fresh.clone();
    for (turn, mut page) in pages(&small()) {
        results_say(&mut page, "[gone]");
        second.page(turn, &page);
    }
    assert_eq!(first.finish(), fresh.full());
    assert_eq!(second.finish(), score(&small(), |_, page| results_say(page, "[gone]")));
}

/// What a message of a body says: every text in it, a line each.
fn said(message: &Value) -> String {
    let mut texts: Vec<&str> = Vec::new();
    match &message["content"] {
        Value::String(text) => texts.push(text),
        Value::Array(pieces) => texts.extend(pieces.iter().filter_map(|piece| match &piece["type"] {
            Value::String(kind) if kind == "image_url" => Some("[image]"),
            _ => piece["text"].as_str(),
        })),
        _ => {}
    }
    texts.extend(message["reasoning_content"].as_str());
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        texts.extend([call["function"]["name"].as_str().unwrap(), call["function"]["arguments"].as_str().unwrap()]);
    }
    texts.join("\n")
}

#[test]
fn what_is_measured_is_what_the_chat_encoding_says() {
    let mut compared = 0;
    for seed in 0..CONVERSATIONS {
        let log = log_of(mixed::conversation(&mut Dice::new(seed), 30));
        let Some((_, page)) = pages(&log).pop() else { continue };
        let body: Vec<Value> = serde_json::from_slice(&wire::openai_chat::encode_messages(&page)).unwrap();
        assert_eq!(body.len(), page.messages.len());
        for (message, written) in page.messages.iter().zip(&body) {
            assert_eq!(text_of(message.role, &message.parts), said(written), "seed {seed}: {written}");
            compared += 1;
        }
    }
    assert!(compared > 5_000, "{compared}");
}

#[test]
fn the_full_history_of_odd_conversations_is_measured_as_its_pages_are() {
    for seed in 0..CONVERSATIONS {
        let mut dice = Dice::new(seed);
        let log = log_of(mixed::conversation(&mut dice, 30));
        let fresh = Measure::new(&log);
        let mut by_pages = fresh.clone();
        let (mut before, mut entries) = (Vec::new(), log.back().collect::<Vec<_>>());
        entries.reverse();
        let mut turn = 0;
        for entry in entries {
            if entry.role() == Role::Assistant {
                by_pages.page(turn, &page_of(&before));
                turn += 1;
            }
            let (parts, digest) = (entry.shown().clone(), entry.digest);
            let (author, extra) = (entry.original().author.clone(), Default::default());
            let (role, seq, cost) = (entry.role(), Some(entry.seq), entry.cost);
            before.push(Message { role, author, parts, seq, cost, digest, extra });
        }
        assert_eq!(by_pages.finish(), fresh.full(), "seed {seed}");
    }
}

fn page_of(messages: &[Message]) -> Page {
    let (log, target, policy) = (log_of([Entry::user("x")]), target(), Policy::none());
    let reader = recto::Reader::new("main");
    let compiled = recto::compile(&recto::Request::new(&log, &reader, &policy, &target)).unwrap();
    Page { messages: messages.to_vec(), ..compiled.page }
}
