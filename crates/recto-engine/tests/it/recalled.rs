//! What has left the page comes back from the store: short conversations whole, long ones by their index.

mod dialogues;

use crate::engine::meanwhile;
use crate::folder::TempFolder;
use recto::page::Page;
use recto::recall::{FRAGMENT, Query, Recall, Within};
use recto::receipt::{FragmentFate, Warning};
use recto::reduce::{Grain, TokenLimit};
use recto::{Entry, Part, Policy, Role, Seq, Target, Tokenizer, Tokens};
use recto_engine::engine::{Beginning, Behind, Saying};
use recto_engine::store::memory::Memory;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Answer, Append, At, Call, Engine, Forks, Opening, Store, Tenant};

const CANARY: &str = "quokka4711canary";
/// So many entries are not read whole.
const LONG: usize = 900;

fn at(name: &str) -> At {
    At::new(&Tenant::default(), name)
}

fn call() -> Call {
    let limit = TokenLimit { tokens: Tokens(200), slack: Tokens(0), grain: Grain::Exchange };
    let recall = Recall { budget: Tokens(300), within: Within::Conversation };
    Call::new("main", Policy::named("forgetful").then(limit).recalling(recall).immediately(), Target::eval())
}

/// A conversation with one thing worth remembering near its beginning.
async fn lived<S: Store>(engine: &Engine<S>, at: &At, entries: usize) {
    let opening = Opening { tokenizer: Some(Tokenizer::Bytes4), ..Opening::default() };
    engine.open(at, opening).await.unwrap();
    let mut said =
        vec![Entry::user(format!("Remember: the zoo keeps a {CANARY} named Otto.")), Entry::assistant("Noted.")];
    for nth in 1..entries / 2 {
        said.push(Entry::user(format!("Tell me about day {nth} of the journey.")));
        said.push(Entry::assistant(format!("On day {nth} it rained, and everybody stayed inside.")));
    }
    engine.append(at, Append::any(said)).await.unwrap();
    engine.append(at, Append::any([Entry::user("What is Otto, whom the zoo keeps?")])).await.unwrap();
}

fn text_of(page: &Page) -> String {
    let parts = page.messages.iter().flat_map(|message| message.parts.iter());
    let texts = parts.filter_map(|part| if let Part::Text { text } = part { Some(&**text) } else { None });
    texts.collect::<Vec<_>>().join("\n")
}

async fn comes_back<S: Store>(engine: Engine<S>, entries: usize) {
    lived(&engine, &at("talk"), entries).await;
    engine.index(&at("talk")).await.unwrap();
    let mut without = call();
    without.policy.recall = None;
    let control = engine.preview(&at("talk"), &without).await.unwrap();
    assert!(!text_of(&control.page).contains(CANARY), "it is on the page without recall");
    let compiled = engine.compile(&at("talk"), &call()).await.unwrap();
    assert!(text_of(&compiled.page).contains(&format!("user: Remember: the zoo keeps a {CANARY}")));
    let row = compiled.receipt.fragments.iter().find(|row| &*row.id == FRAGMENT).unwrap();
    assert_eq!(row.fate, FragmentFate::Shown);
    let before = engine.conversation(&at("talk")).await.unwrap().tally.sums().entries;
    let answer = Answer { entries: vec![Entry::assistant("An animal.")], ..Answer::default() };
    engine.acknowledge(&at("talk"), &compiled.receipt.ticket, answer).await.unwrap();
    let after = engine.conversation(&at("talk")).await.unwrap().tally.sums().entries;
    assert_eq!(after, before + 1, "what came back is no history");
    let again = engine.again(&at("talk"), &call().reader, 0).await.unwrap();
    assert!(again.agrees, "the page is made again with what came back");
}

#[tokio::test]
async fn short_conversations_are_read_whole() {
    comes_back(Engine::over(Memory::default()), 60).await;
}

#[tokio::test]
async fn long_conversations_are_found_by_their_index() {
    comes_back(Engine::over(Memory::default()), LONG).await;
    let folder = TempFolder::new();
    comes_back(Engine::over(Sqlite::open(folder.path().join("a.db")).unwrap()), LONG).await;
}

#[tokio::test]
async fn an_index_that_is_behind_says_so_and_catches_up() {
    let engine = Engine::over(Memory::default());
    lived(&engine, &at("talk"), LONG).await;
    let compiled = engine.preview(&at("talk"), &call()).await.unwrap();
    assert!(!text_of(&compiled.page).contains(CANARY), "nothing is indexed yet");
    let is_told = |warning: &Warning| matches!(warning, Warning::RecallBehind { entries } if *entries > 800);
    assert!(compiled.receipt.warnings.iter().any(is_told), "{:?}", compiled.receipt.warnings);
    for _ in 0..1_000 {
        if engine.indexed(&at("talk")).await.unwrap().upto == Some(Seq(LONG as u64)) {
            break;
        }
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let compiled = engine.preview(&at("talk"), &call()).await.unwrap();
    assert!(text_of(&compiled.page).contains(CANARY));
}

#[tokio::test]
async fn a_clients_call_gets_what_came_back_and_is_no_longer_passed_on_as_it_was() {
    let engine = Engine::over(Memory::default());
    lived(&engine, &at("talk"), 60).await;
    let head = engine.conversation(&at("talk")).await.unwrap().tally.head();
    let entries = vec![Entry::assistant("Wait."), Entry::user("What is Otto, whom the zoo keeps?")];
    let saying = Saying { entries, behind: Behind::Head(head), links: Vec::new() };
    let Beginning::Made(begun) = engine.begin(&at("talk"), saying, &call()).await.unwrap() else { panic!("no page") };
    assert!(begun.is_reduced && text_of(&begun.compiled.page).contains(CANARY));
    let answer = Answer { entries: vec![Entry::assistant("An animal.")], ..Answer::default() };
    engine.finish(begun, answer, "fork".into()).await.unwrap();
    assert!(engine.again(&at("talk"), &call().reader, 0).await.unwrap().agrees);
}

fn holds(folder: &std::path::Path, word: &str) -> usize {
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let has = |bytes: Vec<u8>| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    files.filter(|file| has(std::fs::read(file.path()).unwrap())).count()
}

#[tokio::test]
async fn what_was_erased_comes_back_no_more_and_leaves_no_byte() {
    let folder = TempFolder::new();
    let engine = Engine::over(Sqlite::open(folder.path().join("a.db")).unwrap());
    for name in ["talk", "other"] {
        comes_back_once(&engine, name).await;
    }
    assert!(holds(folder.path(), CANARY) > 0, "the control has the word");
    engine.erase_entries(&at("talk"), vec![Seq(0)]).await.unwrap();
    engine.erase(&at("other"), Forks::Refuse).await.unwrap();
    assert_eq!(holds(folder.path(), CANARY), 0, "a byte of it is left");
    let again = engine.again(&at("talk"), &call().reader, 0).await.unwrap();
    assert!(!text_of(&again.compiled.page).contains(CANARY), "a past page still has it");
    engine.index(&at("talk")).await.unwrap();
    let found = engine.search(&at("talk"), &Query::saying(CANARY), Tokens(500)).await.unwrap();
    assert!(found.hits.is_empty(), "{found:?}");
    assert_eq!(holds(folder.path(), CANARY), 0, "the new index has it");
}

async fn comes_back_once(engine: &Engine<Sqlite>, name: &str) {
    lived(engine, &at(name), LONG).await;
    engine.index(&at(name)).await.unwrap();
    let compiled = engine.compile(&at(name), &call()).await.unwrap();
    assert!(text_of(&compiled.page).contains(CANARY));
    let answer = Answer { entries: vec![Entry::assistant("An animal.")], ..Answer::default() };
    engine.acknowledge(&at(name), &compiled.receipt.ticket, answer).await.unwrap();
    let found = engine.search(&at(name), &Query::saying(CANARY), Tokens(500)).await.unwrap();
    assert_eq!(found.hits[0].role, Role::User);
}

#[tokio::test]
async fn words_identifiers_chinese_and_japanese_are_found() {
    let engine = Engine::over(Memory::default());
    lived(&engine, &at("talk"), LONG).await;
    let more = ["The parser is in parse_http_request().", "我妹妹住在里斯本。", "兄は京都で豆腐屋をやっています。"];
    engine.append(&at("talk"), Append::any(more.map(Entry::user))).await.unwrap();
    for (query, expected) in [("parseHttpRequest", 0), ("request parser", 0), ("妹妹住哪里", 1), ("京都の豆腐", 2)]
    {
        let found = engine.search(&at("talk"), &Query::saying(query), Tokens(60)).await.unwrap();
        assert!(found.hits.iter().any(|hit| hit.text == more[expected]), "{query}: {found:?}");
    }
}

#[tokio::test]
async fn other_conversations_of_a_tenant_answer_only_where_the_policy_says_so() {
    let engine = Engine::over(Memory::default());
    lived(&engine, &at("monday"), 20).await;
    let stranger = At::new(&"stranger".into(), "sunday");
    lived(&engine, &stranger, 20).await;
    let opening = Opening { tokenizer: Some(Tokenizer::Bytes4), ..Opening::default() };
    engine.open(&at("tuesday"), opening).await.unwrap();
    engine.append(&at("tuesday"), Append::any([Entry::user("What is Otto, whom the zoo keeps?")])).await.unwrap();
    let own = engine.preview(&at("tuesday"), &call()).await.unwrap();
    assert!(!text_of(&own.page).contains(CANARY), "it is off by default");
    let mut wide = call();
    wide.policy.recall = Some(Recall { budget: Tokens(300), within: Within::Tenant });
    let compiled = engine.compile(&at("tuesday"), &wide).await.unwrap();
    let text = text_of(&compiled.page);
    assert!(text.contains("[monday]") && text.contains(CANARY) && !text.contains("[sunday"), "{text}");
    engine.acknowledge(&at("tuesday"), &compiled.receipt.ticket, Answer::default()).await.unwrap();
    assert!(engine.again(&at("tuesday"), &wide.reader, 0).await.unwrap().agrees);
}

#[tokio::test]
async fn no_page_fails_because_somebody_erases_another_conversation() {
    let folder = TempFolder::new();
    let open = || Engine::over(Sqlite::open(folder.path().join("a.db")).unwrap());
    let (engine, other) = (open(), open());
    let mut others: Vec<At> = (0..12).map(|nth| at(&format!("day {nth}"))).collect();
    for at in &others {
        lived(&engine, at, 20).await;
    }
    lived(&engine, &at("today"), 20).await;
    let mut wide = call();
    wide.policy.recall = Some(Recall { budget: Tokens(300), within: Within::Tenant });
    // Those that were carried on last are read first, so these are still to be read.
    others.reverse();
    let erasing = async || {
        if let Some(at) = others.pop() {
            other.erase(&at, Forks::Refuse).await.unwrap();
        }
    };
    let compiled = meanwhile(engine.compile(&at("today"), &wide), erasing).await.expect("its own is there");
    assert!(others.len() < 12 && text_of(&compiled.page).contains(CANARY));
}
