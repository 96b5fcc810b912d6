//! Secrets over a store: found once, the same placeholder at every call and on every server, and at rest not at all.

use crate::engine::block_on;
use crate::folder::TempFolder;
use recto::entry::{Call as ToolCall, Text};
use recto::event::Since;
use recto::fragment::Fragment;
use recto::recall::{Query, Recall, Within};
use recto::redact::Redact;
use recto::reduce::{Expire, FitWindow, Grain, TokenLimit};
use recto::wire::openai_chat;
use recto::{Entry, Policy, Seq, Target, Tokens};
use recto_engine::engine::{Beginning, Begun, Behind, Saying};
use recto_engine::store::memory::Memory;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Store, Tenant};
use rusqlite::Connection;

const TURNS: u64 = 12;

/// A key that looks real and is none; no file holds it as one piece.
fn canary() -> String {
    ["ghp", "_", "Tq8wB3nYx5", "cV0mK7rL2z", "J9dF4hS6gP", "1aUe3k"].concat()
}

/// A password that only its first place tells to be one.
fn password() -> String {
    ["Vn4", "xQ8t", "Rw2", "kLz7"].concat()
}

fn leaks(text: &str) -> bool {
    text.contains(&canary()[8..20]) || text.contains(&password())
}

fn at() -> At {
    At::new(&Tenant::default(), "talk")
}

fn everywhere() -> Redact {
    Redact { find: vec!["secrets".into()], ..Redact::default() }
}

fn call(redact: Redact) -> Call {
    let policy =
        Policy::named("guarded").redacting(redact).then(Expire::first_chars(3, 300)).then(FitWindow::default());
    let target = Target::named("gpt-4o").unwrap().with_window(Some(Tokens(24_000)));
    let mut call = Call::new("main", policy.immediately(), target);
    call.fragments = vec![Fragment::fixed("rules", format!("The key is {}.", canary()))];
    call.tools =
        vec![format!(r#"{{"type":"function","function":{{"name":"look","description":"{}"}}}}"#, canary()).into()];
    call
}

fn said(turn: u64) -> Vec<Entry> {
    let filling = "a line of a file that says nothing\n".repeat(20);
    match turn {
        0 => vec![Entry::user(format!("Use {}.", canary()))],
        1 => vec![Entry::result("call_0", format!("{filling}db_password={}\n{filling}", password()))],
        turn => vec![Entry::result(format!("call_{}", turn - 1), format!("{filling}it was {}, {filling}", password()))],
    }
}

fn answer(turn: u64) -> Answer {
    let arguments = format!(r#"{{"q":"{} {turn}"}}"#, canary());
    let step = Entry::step("I look.", [ToolCall::new(format!("call_{turn}"), "look", arguments)]);
    Answer { entries: vec![step], ..Answer::default() }
}

fn made(beginning: Beginning) -> Box<Begun> {
    match beginning {
        Beginning::Made(begun) => begun,
        Beginning::Unmade { why, .. } => panic!("{why}"),
    }
}

/// Lives through some turns, with an engine for each, and returns what was sent.
async fn live<S: Store>(redact: &Redact, mut engine_of: impl FnMut() -> Engine<S>) -> Vec<String> {
    let (mut head, mut sent) = (None::<Seq>, Vec::new());
    for turn in 0..TURNS {
        let engine = engine_of();
        let opening = Opening { title: format!("About {}", canary()), ..Opening::default() };
        let behind = head.map_or(Behind::Nothing(opening), |head| Behind::Head(Some(head)));
        let saying = Saying { entries: said(turn), behind, links: Vec::new() };
        let begun = made(engine.begin(&at(), saying, &call(redact.clone())).await.unwrap());
        let body = openai_chat::encode(&begun.compiled.page, &call(redact.clone()).target);
        let told = format!("{} {}", begun.compiled.receipt, serde_json::to_string(&begun.compiled.receipt).unwrap());
        assert!(!leaks(&told), "{told}");
        sent.push(String::from_utf8(body).unwrap());
        head = engine.finish(begun, answer(turn), "fork".into()).await.unwrap().appended.last;
    }
    sent
}

/// A text without the tags of its placeholders, which differ from store to store.
fn untagged(text: &str) -> String {
    let mut pieces = text.split("[secret:");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |told, piece| {
        let (name, rest) = piece.split_once('#').unwrap_or((piece, "]"));
        format!("{told}[secret:{name}{}", &rest[rest.find(']').unwrap_or(0)..])
    })
}

#[test]
fn what_is_warm_and_what_is_read_hide_the_same_under_the_same_placeholders() {
    let folder = TempFolder::new();
    block_on(async {
        let file = folder.file("recto.db");
        let warm = Engine::over(Sqlite::open(&file).unwrap());
        let sent = live(&everywhere(), || warm.clone()).await;
        let cold = Memory::default();
        let others = live(&everywhere(), || Engine::over(cold.clone())).await;
        for (turn, (one, other)) in sent.iter().zip(&others).enumerate() {
            assert!(!leaks(one) && !leaks(other), "turn {turn}: {one}");
            assert_eq!(untagged(one), untagged(other), "turn {turn}");
        }
        assert!(
            sent[0].contains("[secret:github_token#") && sent[5].contains("it was [secret:assigned#"),
            "{}",
            sent[5]
        );
        let tag = |text: &str| text.split("[secret:github_token#").nth(1).map(|rest| rest[..5].to_owned());
        assert!(sent.iter().all(|body| tag(body) == tag(&sent[0])), "one value, one placeholder");
        assert_ne!(tag(&sent[0]), tag(&others[0]), "another store, another key");
        drop(warm);
        let reopened = Engine::over(Sqlite::open(&file).unwrap());
        for turn in 0..TURNS {
            let again = reopened.again(&at(), &"main".into(), turn).await.unwrap();
            assert!(again.agrees, "turn {turn}");
        }
        let told = reopened.events(&at(), &"main".into(), Since::START).await.unwrap();
        let decisions = reopened.decisions(&at(), &"main".into()).await.unwrap();
        let title = reopened.conversation(&at()).await.unwrap().title;
        assert!(!leaks(&format!("{:?} {decisions:?} {title}", told.events)) && !decisions.is_empty());
        let shown = reopened.read(&at(), Seq(0), 100).await.unwrap();
        assert!(shown.iter().all(|entry| !leaks(&format!("{:?}", entry.shown()))));
        assert!(shown.iter().any(|entry| leaks(&format!("{:?}", entry.original()))), "the log keeps the original");
        // A fork remembers what was told before it.
        let fork = reopened.fork(&at(), "fork", Some(Seq(3))).await.unwrap();
        let fork = At { conversation: fork.id, ..at() };
        reopened.append(&fork, Append::any([Entry::user(format!("And {}?", password()))])).await.unwrap();
        let page = reopened.preview(&fork, &call(everywhere())).await.unwrap().page;
        assert!(!leaks(&format!("{page:?}")));
    });
}

#[test]
fn without_redaction_all_of_it_is_there() {
    block_on(async {
        let store = Memory::default();
        let nothing = Call { fragments: Vec::new(), ..call(Redact::nothing()) };
        let engine = Engine::over(store);
        engine.open(&at(), Opening::default()).await.unwrap();
        engine.append(&at(), Append::any(said(0))).await.unwrap();
        let open = engine.preview(&at(), &nothing).await.unwrap();
        assert!(leaks(&format!("{:?}", open.page)) && open.receipt.redacted.is_empty());
        // Another policy, the same log.
        let guarded = engine.preview(&at(), &call(everywhere())).await.unwrap();
        assert!(!leaks(&format!("{:?}", guarded.page)) && guarded.receipt.redacted.prompts == 2);
    });
}

#[test]
fn entries_of_an_older_store_are_looked_through_when_they_are_read_and_the_receipt_says_so() {
    let folder = TempFolder::new();
    let file = folder.file("recto.db");
    block_on(async {
        let engine = Engine::over(Sqlite::open(&file).unwrap());
        engine.open(&at(), Opening::default()).await.unwrap();
        engine.append(&at(), Append::any(said(0))).await.unwrap();
        let page = engine.preview(&at(), &call(everywhere())).await.unwrap();
        assert_eq!((page.receipt.redacted.entries, page.receipt.redacted.late), (1, 0));
    });
    let db = Connection::open(&file).unwrap();
    let changed = db
        .execute("UPDATE text SET body = substr(body, 1, instr(body, ',\"found\":') - 1) || '}' WHERE instr(body, ',\"found\":') > 0", [])
        .unwrap();
    assert_eq!(changed, 1);
    drop(db);
    block_on(async {
        let engine = Engine::over(Sqlite::open(&file).unwrap());
        let page = engine.preview(&at(), &call(everywhere())).await.unwrap();
        assert!(!leaks(&format!("{:?}", page.page)));
        assert_eq!((page.receipt.redacted.entries, page.receipt.redacted.late), (1, 1));
        assert!(page.receipt.to_string().contains("looked through only now"), "{}", page.receipt);
    });
}

#[test]
fn at_rest_not_even_the_file_holds_what_is_redacted() {
    let folder = TempFolder::new();
    for is_redacted in [true, false] {
        let file = folder.file(if is_redacted { "closed.db" } else { "open.db" });
        block_on(async {
            let mut engine = Engine::over(Sqlite::open(&file).unwrap());
            if is_redacted {
                engine = engine.redacting_at_rest(everywhere());
            }
            let sent = live(&everywhere(), || engine.clone()).await;
            assert!(sent.iter().all(|body| !leaks(body)));
            let mut input = call(everywhere());
            input.input = Some(Entry::user(format!("now {}", canary())));
            let compiled = engine.compile(&at(), &input).await.unwrap();
            engine.acknowledge(&at(), &compiled.receipt.ticket, Answer::default()).await.unwrap();
            let mut export = String::new();
            let put = |line: &str| {
                export.push_str(line);
                Ok(())
            };
            engine.export(&at(), put).await.unwrap();
            assert_eq!(leaks(&export), !is_redacted);
            engine.store().checkpoint().await.unwrap();
        });
        let bytes = std::fs::read(&file).unwrap();
        let text: Text = String::from_utf8_lossy(&bytes).into();
        // The control: without it the file has all of it.
        assert_eq!(leaks(&text), !is_redacted);
    }
}

#[test]
fn an_index_what_it_brings_back_and_an_error_hold_no_secret() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        live(&everywhere(), || engine.clone()).await;
        engine.index(&at()).await.unwrap();
        let terms = [canary(), password(), "line".into()].map(|term| Text::from(term.to_lowercase()));
        let found = engine.store().postings(&at().tenant, &at().conversation, terms.into(), 10).await.unwrap();
        let places: Vec<usize> = found.iter().map(|it| it.seqs.len()).collect();
        assert_eq!(places[..2], [0, 0]);
        assert!(places[2] > 0, "the control: other words of the same results are there");
        let query = Query::saying(format!("Which line has {} or {}?", canary(), password()));
        let searched = engine.search(&at(), &query, Tokens(2_000)).await.unwrap();
        assert!(!searched.hits.is_empty() && !leaks(&format!("{searched:?}")), "{searched:?}");

        let mut recalling = call(everywhere());
        let limit = TokenLimit { tokens: Tokens(100), slack: Tokens(0), grain: Grain::Exchange };
        let recall = Recall { budget: Tokens(1_000), within: Within::Conversation };
        recalling.policy =
            Policy::named("recalling").redacting(everywhere()).then(limit).recalling(recall).immediately();
        recalling.input = Some(Entry::user(format!("Which line has {}?", canary())));
        let compiled = engine.preview(&at(), &recalling).await.unwrap();
        let page = format!("{:?}", compiled.page);
        assert!(page.contains("<retrieved>") && !leaks(&page), "{page}");

        let mut small = call(everywhere());
        small.target = small.target.with_window(Some(Tokens(40)));
        small.reserve = Some(Tokens(0));
        let error = engine.preview(&at(), &small).await.unwrap_err();
        assert!(!leaks(&format!("{error} {error:?}")), "{error}");
    });
}
