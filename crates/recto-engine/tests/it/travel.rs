//! Everything that was ever shown can be shown again, after a restart, from what is stored.

use crate::engine::block_on;
use crate::folder::TempFolder;
use recto::entry::{Call as ToolCall, CallId};
use recto::expiry::{ExpiryMode, ExpiryOverride, Setting};
use recto::fragment::Fragment;
use recto::{Entry, Policy, Target, Tokens, wire};
use recto_engine::store::RECEIPT_BYTES_MAX;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::store::{Store, Turns, Upto};
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Tenant};

const TURNS: u64 = 200;

/// What a model does at a turn: it reads something long, and now and then it says what it found.
fn answer(turn: u64) -> Vec<Entry> {
    let id = format!("call_{turn}");
    let call = ToolCall::new(id.as_str(), "read_file", format!(r#"{{"path":"src/{}.rs"}}"#, turn % 17));
    let lines: Vec<String> =
        (0..60).map(|line| format!("{line}: let value_{turn}_{line} = {};", turn * line)).collect();
    let result = Entry::result(CallId::from(id.as_str()), lines.join("\n"));
    let mut entries = vec![Entry::step(format!("Looking at file {turn}."), [call]), result];
    if turn % 10 == 9 {
        entries.push(Entry::assistant(format!("value_{turn}_3 is what you want.")));
        entries.push(Entry::user(format!("And the one after {turn}?")));
    }
    entries
}

fn call(turn: u64) -> Call {
    let target = Target::named("gpt-4o").expect("built in").with_window(Some(Tokens(40_000)));
    let mut call = Call::new("main", Policy::usual(), target);
    call.fragments =
        vec![Fragment::fixed("identity", "You read code."), Fragment::dynamic("todo", format!("turn {turn}"))];
    call.tools = vec![r#"{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}}"#.into()];
    call.reserve = Some(Tokens(2_000));
    call
}

#[test]
fn any_past_turn_of_two_hundred_comes_back_byte_for_byte_after_a_restart_and_from_an_import() {
    let folder = TempFolder::new();
    let file = folder.path().join("recto.db");
    let at = At::new(&Tenant::default(), "long");
    let sent: Vec<Vec<u8>> = block_on(async {
        let engine = Engine::over(Sqlite::open(&file).expect("a new store"));
        engine.open(&at, Opening::default()).await.expect("it is new");
        let begin = [Entry::system("Be brief."), Entry::user("Find the value.")];
        engine.append(&at, Append::any(begin)).await.expect("it begins");
        let mut sent = Vec::new();
        for turn in 0..TURNS {
            let call = call(turn);
            let compiled = engine.compile(&at, &call).await.expect("it fits");
            sent.push(wire::openai_chat::encode(&compiled.page, &call.target));
            let reported = Some(compiled.receipt.ledger.used());
            let (entries, key) = (answer(turn), Some(format!("turn-{turn}").into()));
            let answer = Answer { entries, reported, key, ..Answer::default() };
            engine.acknowledge(&at, &compiled.receipt.ticket, answer).await.expect("the call is open");
        }
        sent
    });
    let copy = folder.path().join("copy.db");
    block_on(async {
        let engine = Engine::over(Sqlite::open(&file).expect("the same store"));
        let reader = "main".into();
        let reduced = engine.decisions(&at, &reader).await.expect("they are there").len();
        assert!(reduced > 100, "only {reduced} decisions: the pages were hardly reduced");
        compare(&engine, &at, &sent, 7).await;
        assert!(engine.again(&at, &reader, TURNS).await.expect_err("there was no such call").is_not_found());
        let mut export = Vec::new();
        let keep = |line: &str| {
            export.push(Ok(line.to_string()));
            Ok(())
        };
        engine.export(&at, keep).await.expect("it can be exported");
        let other = Engine::over(Sqlite::open(&copy).expect("a new store"));
        other.import(&at.tenant, None, export.into_iter()).await.expect("it can be imported");
    });
    block_on(async {
        let imported = Engine::over(Sqlite::open(&copy).expect("the imported one"));
        compare(&imported, &at, &sent, 1).await;
    });
    let unlike: std::collections::HashSet<_> = sent.iter().collect();
    assert_eq!(unlike.len() as u64, TURNS, "every page is another one");
}

/// Makes every so many-th page again, and compares it with what was sent.
async fn compare(engine: &Engine<Sqlite>, at: &At, sent: &[Vec<u8>], every: usize) {
    for turn in (0..TURNS).step_by(every) {
        let again = engine.again(at, &"main".into(), turn).await.expect("it can be made again");
        assert!(again.agrees, "turn {turn} says that it differs");
        let bytes = wire::openai_chat::encode(&again.compiled.page, &again.target);
        assert_eq!(bytes, sent[turn as usize], "turn {turn}");
    }
}

#[test]
fn a_stored_receipt_stays_small_whatever_goes_with_the_call() {
    block_on(async {
        let engine = Engine::over(recto_engine::store::memory::Memory::default());
        let at = At::new(&Tenant::default(), "c".repeat(500));
        engine.open(&at, Opening::default()).await.expect("it is new");
        let many: Vec<Entry> =
            (0..3_000).map(|number| Entry::user(format!("{number}: {}", "word ".repeat(40)))).collect();
        engine.append(&at, Append::any(many)).await.expect("they go in");
        let mut call = call(0);
        call.reader = "r".repeat(500).as_str().into();
        call.run = Some("run ".repeat(10_000).as_str().into());
        call.fragments = (0..200).map(|id| Fragment::fixed(format!("fragment {id}"), "x")).collect();
        call.tools =
            (0..100).map(|id| format!(r#"{{"type":"function","function":{{"name":"tool_{id}"}}}}"#).into()).collect();
        call.format = Some(r#"{"type":"json_object"}"#.into());
        call.expiry = Some(ExpiryOverride {
            after: Setting::Set(9),
            mode: Setting::Set(ExpiryMode::Remove),
            ..ExpiryOverride::default()
        });
        call.input = Some(Entry::user("word ".repeat(500)));
        let compiled = engine.compile(&at, &call).await.expect("it fits");
        let answer = Answer { reported: Some(Tokens(u64::MAX >> 12)), ..Answer::default() };
        engine.acknowledge(&at, &compiled.receipt.ticket, answer).await.expect("the call is open");
        let store = engine.store();
        let turns = store
            .turns(&at.tenant, &at.conversation, &call.reader, Upto::NOW, Turns::One(0))
            .await
            .expect("it is there");
        let bytes = turns[0].receipt.len();
        assert!(bytes <= RECEIPT_BYTES_MAX, "{bytes} bytes");
        let again = engine.again(&at, &call.reader, 0).await.expect("it can be made again");
        assert!(again.agrees && again.compiled.page == compiled.page);
    });
}

#[test]
fn what_stays_the_same_from_call_to_call_is_kept_once() {
    let folder = TempFolder::new();
    let file = folder.path().join("recto.db");
    block_on(async {
        let engine = Engine::over(Sqlite::open(&file).expect("a new store"));
        let at = At::new(&Tenant::default(), "talk");
        engine.open(&at, Opening::default()).await.expect("it is new");
        engine.append(&at, Append::any([Entry::user("Hello?")])).await.expect("it begins");
        let prompt: String = (0..10_000).map(|number| format!("{number} ")).collect();
        for turn in 0..20 {
            let mut call = call(turn);
            call.target = call.target.with_window(Some(Tokens(120_000)));
            call.fragments[0] = Fragment::fixed("identity", prompt.as_str());
            let compiled = engine.compile(&at, &call).await.expect("it fits");
            engine.acknowledge(&at, &compiled.receipt.ticket, Answer::default()).await.expect("the call is open");
        }
        engine.store().checkpoint().await.expect("nobody reads");
        let bytes = std::fs::metadata(&file).expect("it is there").len() as usize;
        assert!(bytes > prompt.len(), "the prompt is not kept at all");
        assert!(bytes < 5 * prompt.len(), "{bytes} bytes for a prompt of {}", prompt.len());
    });
}
