//! Pages in blocks, of calls that are stored: what a host knew is kept with each.

use crate::engine::block_on;
use crate::folder::TempFolder;
use recto::block::{Facts, Zone};
use recto::entry::Millis;
use recto::page::Page;
use recto::{Entry, Part, Policy, Target};
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Tenant};

fn call(turn: i64) -> Call {
    let mut call = Call::new("main", Policy::blocks_first(), Target::named("gpt-4o").expect("built in"));
    let mut facts = Facts { now: Some(Millis(turn * 86_400_000)), ..Facts::default() };
    facts.zone = Zone::named("Asia/Kolkata").expect("a zone");
    // What is known of the human changes once.
    facts.profile.insert("profile".into(), if turn < 5 { "likes tea" } else { "likes milk" }.into());
    call.facts = Some(facts);
    call.input = Some(Entry::user(format!("Question {turn}?")));
    call
}

fn texts(page: &Page) -> Vec<String> {
    let of = |part: &Part| if let Part::Text { text } = part { text.to_string() } else { String::new() };
    page.messages.iter().map(|message| message.parts.iter().map(of).collect()).collect()
}

#[test]
fn what_the_host_knew_is_stored_with_each_call() {
    let folder = TempFolder::new();
    let file = folder.path().join("recto.db");
    let at = At::new(&Tenant::default(), "blocks");
    let sent: Vec<Vec<String>> = block_on(async {
        let engine = Engine::over(Sqlite::open(&file).expect("a new store"));
        engine.open(&at, Opening::default()).await.expect("it is new");
        let mut sent = Vec::new();
        for turn in 0..10 {
            let compiled = engine.compile(&at, &call(turn)).await.expect("it fits");
            sent.push(texts(&compiled.page));
            let entries = vec![Entry::assistant(format!("Answer {turn}."))];
            let answer = Answer { entries, ..Answer::default() };
            engine.acknowledge(&at, &compiled.receipt.ticket, answer).await.expect("the call is open");
            engine.append(&at, Append::any([Entry::user("By the way.")])).await.expect("anybody may speak");
        }
        sent
    });
    assert!(
        sent[9].last().unwrap().contains("<current_time>1970-01-10 05:30:00+05:30</current_time>"),
        "{:?}",
        sent[9]
    );
    assert!(sent[9].iter().any(|text| text.starts_with("[SHARED_MEMORY]") && text.contains("Answer 8.")));
    block_on(async {
        let engine = Engine::over(Sqlite::open(&file).expect("the same store"));
        for (turn, page) in sent.iter().enumerate() {
            let again = engine.again(&at, &"main".into(), turn as u64).await.expect("it was acknowledged");
            assert!(again.agrees, "turn {turn}");
            assert_eq!(texts(&again.compiled.page), *page, "turn {turn}");
        }
    });
}
