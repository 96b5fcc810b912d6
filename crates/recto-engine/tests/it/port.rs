//! Export and import, forks, erasing, pins and expansions, and what subscribers are told.

use crate::engine::{block_on, meanwhile};
use crate::folder::TempFolder;
use recto::edit::Handle;
use recto::entry::{Call as ToolCall, CallId, Status};
use recto::event::{EventKind, Since};
use recto::expand::Ask;
use recto::expiry::{CompactMode, ExpiryMode, ExpiryOverride, Setting};
use recto::receipt::Fate;
use recto::{Entry, Policy, Seq, Span, Target, Tokens};
use recto_engine::store::memory::Memory;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::store::{Record, RecordKind};
use recto_engine::{Answer, Append, At, Call, Engine, Error, Forks, Give, Opening, Store, Tenant};
use std::time::Duration;

/// A word that must be gone from every file once it was erased.
const CANARY: &str = "zanzibar-4711-canary";

fn at(name: &str) -> At {
    At::new(&Tenant::default(), name)
}

fn call(window: u64) -> Call {
    let target = Target::named("gpt-4o").expect("built in").with_window(Some(Tokens(window)));
    let mut call = Call::new("main", Policy::first_chars().immediately(), target);
    call.reserve = Some(Tokens(500));
    call
}

fn step(number: u64, result: impl Into<recto::entry::Text>) -> Vec<Entry> {
    let id = format!("call_{number}");
    let call = ToolCall::new(id.as_str(), "look", format!(r#"{{"number":{number}}}"#));
    vec![Entry::step("I look.", [call]), Entry::result(CallId::from(id.as_str()), result)]
}

/// A conversation with some calls, so that there are decisions, receipts, and large and odd entries.
async fn lived<S: Store>(engine: &Engine<S>, at: &At) -> Call {
    lived_within(engine, at, 8_000).await
}

async fn lived_within<S: Store>(engine: &Engine<S>, at: &At, window: u64) -> Call {
    let meta = serde_json::json!({"who": "ada", "nested": {"a": [1, 2.5, null]}}).as_object().cloned().expect("a map");
    engine.open(at, Opening { title: "A talk".into(), meta, tokenizer: None }).await.expect("it is new");
    let odd =
        Entry { status: Status::Cancelled, author: Some("bob".into()), ..Entry::assistant("nul \0 and \u{2028} é") };
    engine.append(at, Append::any([Entry::system("Be brief."), Entry::user("Look."), odd])).await.expect("it begins");
    let call = call(window);
    for number in 0..12 {
        let call = Call { input: (number % 4 == 3).then(|| Entry::user(format!("Go on {number}."))), ..call.clone() };
        let compiled = engine.compile(at, &call).await.expect("it fits");
        let long = format!(
            "{CANARY} {} {}",
            "many words of it ".repeat(120 + number as usize),
            "x".repeat(20_000 * (number as usize % 2))
        );
        let answer = Answer { entries: step(number, long), ..Answer::default() };
        engine.acknowledge(at, &compiled.receipt.ticket, answer).await.expect("the call is open");
    }
    let session = Record { kind: RecordKind::Session, key: "main/codex".into(), version: 1, body: "{}".into() };
    engine.store().keep(&at.tenant, &at.conversation, session.clone()).await.expect("it is new");
    engine.store().keep(&at.tenant, &at.conversation, Record { version: 2, ..session }).await.expect("the next one");
    engine.pin(at, &call.reader, Span::one(Seq(3))).await.expect("it is there");
    engine.revert(at, &call.reader, 1).await.expect("there is a decision");
    call
}

async fn exported<S: Store>(engine: &Engine<S>, at: &At) -> Vec<String> {
    let mut lines = Vec::new();
    let keep = |line: &str| {
        lines.push(line.to_string());
        Ok(())
    };
    engine.export(at, keep).await.expect("it can be exported");
    lines
}

fn lines(export: &[String]) -> impl Iterator<Item = Result<String, Error>> {
    export.iter().cloned().map(Ok)
}

#[test]
fn an_export_is_whole_and_comes_back_byte_for_byte() {
    let folder = TempFolder::new();
    block_on(async {
        let engine = Engine::over(Sqlite::open(folder.path().join("a.db")).expect("a store"));
        let call = lived(&engine, &at("talk")).await;
        let export = exported(&engine, &at("talk")).await;
        let other = Engine::over(Sqlite::open(folder.path().join("b.db")).expect("a store"));
        let tenant = Tenant::default();
        // A file that breaks off adds what it has, and says so; the whole one goes on from there.
        let broken = other.import(&tenant, None, lines(&export[..10])).await.expect_err("it is not whole");
        assert!(broken.to_string().contains("breaks off"), "{broken}");
        let done = other.import(&tenant, None, lines(&export)).await.expect("it is whole");
        assert!(done.known + done.added >= 27, "{done:?}");
        assert_eq!(exported(&other, &at("talk")).await, export);
        let again = other.import(&tenant, None, lines(&export)).await.expect("the same again");
        assert_eq!((again.known, again.added), (done.known + done.added, 0));
        assert_eq!(exported(&other, &at("talk")).await, export);
        for turn in 0..12 {
            assert!(other.again(&at("talk"), &call.reader, turn).await.expect("it is there").agrees, "turn {turn}");
        }
        // Memory takes it as well, under another name.
        let memory = Engine::over(Memory::default());
        memory.import(&tenant, Some("elsewhere".into()), lines(&export)).await.expect("it is whole");
        let renamed: Vec<String> = exported(&memory, &at("elsewhere")).await;
        assert_eq!(renamed[1..], export[1..]);
    });
}

#[test]
fn a_line_that_was_changed_or_left_out_is_found() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        lived(&engine, &at("talk")).await;
        let export = exported(&engine, &at("talk")).await;
        let tenant = Tenant::default();
        let mut less = export.clone();
        less.remove(3);
        let lost =
            Engine::over(Memory::default()).import(&tenant, None, lines(&less)).await.expect_err("a line is missing");
        assert!(lost.to_string().contains("not whole"), "{lost}");
        let mut other = export.clone();
        other[2] = other[2].replace("Look.", "Lock.");
        let differs = engine.import(&tenant, None, lines(&other)).await.expect_err("it differs");
        assert!(differs.is_conflict(), "{differs}");
        let content = export.iter().position(|line| line.starts_with(r#"{"content":"#)).expect("there are contents");
        let mut other = export.clone();
        other[content] = other[content].replace(r#""text":""#, r#""text":" "#);
        let fresh = Engine::over(Memory::default());
        let forged = fresh.import(&tenant, None, lines(&other)).await.expect_err("its digest tells");
        assert!(forged.is_input() && forged.to_string().contains("is another one"), "{forged}");
        let call = export.iter().position(|line| line.starts_with(r#"{"call":"#)).expect("there are calls");
        let mut other = export.clone();
        other[call] = other[call].replace(r#""ticket""#, r#""tacket""#);
        let broken = fresh.import(&tenant, None, lines(&other)).await.expect_err("no receipt");
        assert!(broken.is_input() && broken.to_string().contains(&format!("line {}", call + 1)), "{broken}");
        let wrong = engine.import(&tenant, None, lines(&export[1..])).await.expect_err("no conversation");
        assert!(wrong.is_input() && wrong.to_string().contains("line 1"), "{wrong}");
    });
}

#[test]
fn importing_a_transcript_twice_adds_nothing_and_a_grown_one_adds_what_is_new() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        let all: Vec<Entry> = (0..1_200).map(|number| Entry::user(format!("line {number}"))).collect();
        let import = |entries: &[Entry]| {
            let (engine, entries) = (engine.clone(), entries.to_vec());
            async move { engine.import_entries(&at("log"), Opening::default(), entries).await }
        };
        let counts = |done: Result<recto_engine::engine::Imported, Error>| done.map(|it| (it.known, it.added)).ok();
        assert_eq!(counts(import(&all[..1_000]).await), Some((0, 1_000)));
        assert_eq!(counts(import(&all[..1_000]).await), Some((1_000, 0)));
        assert_eq!(counts(import(&all).await), Some((1_000, 200)));
        // A shorter copy of what is there is nothing new.
        assert_eq!(counts(import(&all[..10]).await), Some((10, 0)));
        let mut changed = all.clone();
        changed[700] = Entry::user("another line");
        let refused = import(&changed).await.expect_err("its past has changed");
        assert!(refused.is_conflict() && refused.to_string().contains("#700"), "{refused}");
    });
}

#[test]
fn a_fork_goes_on_from_the_same_pages_and_leaves_its_parent_alone() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        let call = lived(&engine, &at("talk")).await;
        let before = exported(&engine, &at("talk")).await;
        engine.fork(&at("talk"), "fork", None).await.expect("it can be forked");
        let page = engine.preview(&at("talk"), &call).await.expect("it fits").page;
        assert_eq!(engine.preview(&at("fork"), &call).await.expect("it fits").page, page);
        engine.append(&at("fork"), Append::any([Entry::user("Elsewhere.")])).await.expect("it goes on");
        let compiled = engine.compile(&at("fork"), &call).await.expect("it fits");
        engine.acknowledge(&at("fork"), &compiled.receipt.ticket, Answer::default()).await.expect("the call is open");
        assert_eq!(exported(&engine, &at("talk")).await, before);
        assert_eq!(engine.preview(&at("talk"), &call).await.expect("it fits").page, page);
        // The past of the parent is the past of the fork.
        for turn in 0..12 {
            assert!(engine.again(&at("fork"), &call.reader, turn).await.expect("it is there").agrees, "turn {turn}");
        }
        let refused = engine.erase(&at("talk"), Forks::Refuse).await.expect_err("a fork needs it");
        assert_eq!(refused.forks(), ["fork".into()]);
    });
}

#[test]
fn an_acknowledgement_that_is_repeated_is_made_once() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        engine.open(&at("talk"), Opening::default()).await.expect("it is new");
        let call = Call { input: Some(Entry::user("Hello?")), ..call(8_000) };
        let compiled = engine.compile(&at("talk"), &call).await.expect("it fits");
        let (entries, key) = (vec![Entry::assistant("Hello!")], Some("first".into()));
        let answer = Answer { entries, key, ..Answer::default() };
        let ticket = &compiled.receipt.ticket;
        let first = engine.acknowledge(&at("talk"), ticket, answer.clone()).await.expect("the call is open");
        assert_eq!((first.first, first.last, first.is_repeated), (Some(Seq(0)), Some(Seq(1)), false));
        let again = engine.acknowledge(&at("talk"), ticket, answer.clone()).await.expect("it was made before");
        assert_eq!((again.first, again.last, again.is_repeated), (Some(Seq(0)), Some(Seq(1)), true));
        let other = Answer { entries: vec![Entry::assistant("Go away!")], ..answer.clone() };
        assert!(engine.acknowledge(&at("talk"), ticket, other).await.expect_err("another answer").is_conflict());
        let nameless = Answer { key: None, ..answer };
        assert!(engine.acknowledge(&at("talk"), ticket, nameless).await.expect_err("the call is closed").is_conflict());
        assert_eq!(engine.read(&at("talk"), Seq(0), 10).await.expect("they are there").len(), 2);
        // Of two calls that were open at once, one is answered; the other is told to read again.
        let (one, two) = (engine.compile(&at("talk"), &call).await, engine.compile(&at("talk"), &call).await);
        let tickets = [one, two].map(|compiled| compiled.expect("it fits").receipt.ticket);
        engine.acknowledge(&at("talk"), &tickets[0], Answer::default()).await.expect("the first one");
        let late = engine.acknowledge(&at("talk"), &tickets[1], Answer::default()).await.expect_err("too late");
        assert!(late.is_conflict() && late.hint().is_some(), "{late}");
    });
}

fn holds(folder: &std::path::Path, word: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("the folder is there").flatten();
    let found = files.filter(|file| {
        let bytes = std::fs::read(file.path()).expect("it can be read");
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    });
    found.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn of_erased_entries_no_byte_is_left_but_place_size_and_hash() {
    let folder = TempFolder::new();
    block_on(async {
        let engine = Engine::over(Sqlite::open(folder.path().join("a.db")).expect("a store"));
        let call = lived(&engine, &at("talk")).await;
        engine.fork(&at("talk"), "fork", None).await.expect("it can be forked");
        engine.compile(&at("fork"), &call).await.expect("it fits");
        assert!(!holds(folder.path(), CANARY).is_empty(), "the word is nowhere before it is erased");
        let entries = engine.read(&at("talk"), Seq(0), 1_000).await.expect("they are there");
        let text = |it: &recto::log::Counted| serde_json::to_string(it.original()).expect("plain data");
        let guilty: Vec<Seq> = entries.iter().filter(|it| text(it).contains(CANARY)).map(|it| it.seq).collect();
        assert!(guilty.len() >= 12);
        let gone = engine.erase_entries(&at("talk"), guilty.clone()).await.expect("they can be erased");
        assert_eq!(gone.entries, guilty.len() as u64);
        assert_eq!(holds(folder.path(), CANARY), Vec::<String>::new());
        let page = engine.preview(&at("talk"), &call).await.expect("the page is still valid");
        let fate = page.receipt.fate(*guilty.last().expect("some")).expect("every entry has one");
        assert_eq!((fate.fate, &*fate.by), (Fate::Changed, "erase"));
        let ask = Ask::whole(Handle::entry(guilty[0]));
        let refusal =
            engine.expand(&at("talk"), &call, &ask, Give::AsText).await.expect("it is read").expect_err("erased");
        assert_eq!(refusal.code(), "erased");
        let export = exported(&engine, &at("talk")).await;
        let line = export
            .iter()
            .find(|line| line.contains(&format!(r#"{{"entry":{{"seq":{},"#, guilty[0].0)))
            .expect("its place");
        assert!(line.contains(r#""erased":{"bytes":"#) && line.contains(r#""hash":""#), "{line}");
        // What was erased stays erased in a copy.
        let other = Engine::over(Memory::default());
        other.import(&Tenant::default(), None, lines(&export)).await.expect("it is whole");
        assert_eq!(exported(&other, &at("talk")).await, export);
    });
}

#[test]
fn of_an_erased_conversation_nothing_is_left_but_its_name() {
    let folder = TempFolder::new();
    block_on(async {
        let engine = Engine::over(Sqlite::open(folder.path().join("a.db")).expect("a store"));
        lived(&engine, &at("talk")).await;
        engine.fork(&at("talk"), "fork", None).await.expect("it can be forked");
        engine.open(&at("other"), Opening::default()).await.expect("it is new");
        let gone = engine.erase(&at("talk"), Forks::Erase).await.expect("it can be erased");
        assert_eq!(gone.conversations.len(), 2);
        assert_eq!(holds(folder.path(), CANARY), Vec::<String>::new());
        let late = engine.append(&at("talk"), Append::any([Entry::user("late")])).await.expect_err("it is gone");
        assert!(late.is_erased(), "{late}");
        let left = engine.list(&Tenant::default(), None, 10).await.expect("they are there");
        assert_eq!(left.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["other"]);
    });
}

/// After one call the beginning of a result stays, and nothing else is kept of it.
fn forgetful() -> ExpiryOverride {
    ExpiryOverride {
        after: Setting::Set(1),
        mode: Setting::Set(ExpiryMode::Compact),
        compact: Setting::Set(CompactMode::FirstChars),
        chars: Setting::Set(20),
        keep_originals: false,
        ..ExpiryOverride::default()
    }
}

#[test]
fn s30_where_originals_are_not_kept_what_has_expired_is_erased() {
    let folder = TempFolder::new();
    block_on(async {
        let engine = Engine::over(Sqlite::open(folder.path().join("a.db")).expect("a store"));
        engine.open(&at("talk"), Opening::default()).await.expect("it is new");
        engine.append(&at("talk"), Append::any([Entry::user("Look.")])).await.expect("it begins");
        let expiry = forgetful();
        let call = Call { expiry: Some(expiry), policy: Policy::mj_doc(), ..call(30_000) };
        for number in 0..6 {
            let compiled = engine.compile(&at("talk"), &call).await.expect("it fits");
            let result =
                format!("the beginning of result {number}, then much more of it: {}", format!("{CANARY} ").repeat(100));
            let answer = Answer { entries: step(number, result), ..Answer::default() };
            engine.acknowledge(&at("talk"), &compiled.receipt.ticket, answer).await.expect("the call is open");
        }
        let first = engine.read(&at("talk"), Seq(2), 1).await.expect("it is there");
        assert!(first[0].original().erased.is_some(), "{:?}", first[0].original());
        let page = engine.preview(&at("talk"), &call).await.expect("it fits");
        let shown = page.page.messages.iter().find(|message| message.seq == Some(Seq(2))).expect("it is on the page");
        assert!(format!("{:?}", shown.parts).contains("the beginning of res"), "{shown:?}");
        let ask = Ask::whole(Handle::entry(Seq(2)));
        let refusal =
            engine.expand(&at("talk"), &call, &ask, Give::AsText).await.expect("it is read").expect_err("erased");
        assert_eq!(refusal.code(), "erased");
        let export = exported(&engine, &at("talk")).await;
        let line = export.iter().find(|line| line.starts_with(r#"{"entry":{"seq":2,"#)).expect("its place");
        assert!(!line.contains(CANARY) && line.contains(r#""erased":{"bytes":"#), "{line}");
    });
}

#[test]
fn s30_what_another_conversation_shares_is_not_erased_with_an_expiry() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        engine.open(&at("talk"), Opening::default()).await.expect("it is new");
        let begin = [vec![Entry::user("Look.")], step(0, "word ".repeat(300))].concat();
        engine.append(&at("talk"), Append::any(begin)).await.expect("it begins");
        engine.fork(&at("talk"), "fork", None).await.expect("it can be forked");
        let expiry = forgetful();
        let call = Call { expiry: Some(expiry), policy: Policy::mj_doc(), ..call(30_000) };
        for name in ["fork", "talk"] {
            for number in 1..6 {
                let compiled = engine.compile(&at(name), &call).await.expect("it fits");
                let answer = Answer { entries: step(number, "word ".repeat(300)), ..Answer::default() };
                engine.acknowledge(&at(name), &compiled.receipt.ticket, answer).await.expect("the call is open");
            }
            let entries = engine.read(&at(name), Seq(0), 100).await.expect("they are there");
            let erased: Vec<Seq> =
                entries.iter().filter(|it| it.original().erased.is_some()).map(|it| it.seq).collect();
            assert!(erased.contains(&Seq(4)) && !erased.contains(&Seq(2)), "{name}: {erased:?}");
        }
    });
}

#[test]
fn a_body_that_was_changed_or_broken_behind_our_back_is_found() {
    let folder = TempFolder::new();
    let file = folder.path().join("a.db");
    block_on(async {
        let engine = Engine::over(Sqlite::open(&file).expect("a store"));
        let call = lived(&engine, &at("talk")).await;
        engine.erase_entries(&at("talk"), vec![Seq(1)]).await.expect("it is there");
        assert_eq!(engine.check(|_| ()).await.expect("it can be checked").findings, []);
        let file = rusqlite::Connection::open(&file).expect("it is a database");
        for (from, to) in [("Be brief.", "Be long."), (r#""role":"system""#, r#""rule":"system""#)] {
            let changed = file.execute("UPDATE text SET body = replace(body, ?1, ?2)", [from, to]).expect("it is");
            assert!(changed > 0);
            let findings = engine.check(|_| ()).await.expect("it can be checked").findings;
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].what.contains("#0"), "{findings:?}");
        }
        let broken = engine.preview(&at("talk"), &call).await.expect_err("it can't be read");
        assert!(broken.is_corrupt() && broken.to_string().contains("#0"), "{broken}");
    });
}

#[test]
fn what_was_left_out_is_given_back_as_text_or_in_place() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        let call = lived_within(&engine, &at("talk"), 100_000).await;
        let page = engine.preview(&at("talk"), &call).await.expect("it fits");
        let changed = page.receipt.fates.iter().find(|row| row.fate == Fate::Changed).expect("something is shorter");
        let ask = Ask::whole(Handle::entry(changed.span.first));
        let before = exported(&engine, &at("talk")).await;
        let text =
            engine.expand(&at("talk"), &call, &ask, Give::AsText).await.expect("it is read").expect("it is there");
        assert!(text.text.contains(CANARY));
        assert_eq!(exported(&engine, &at("talk")).await, before, "reading changes nothing");
        engine.expand(&at("talk"), &call, &ask, Give::InPlace).await.expect("it is read").expect("it is there");
        let page = engine.preview(&at("talk"), &call).await.expect("it fits");
        assert_eq!(page.receipt.fate(changed.span.first).expect("it has one").fate, Fate::Shown);
        let twice = engine.expand(&at("talk"), &call, &ask, Give::InPlace).await.expect("it is read");
        assert_eq!(twice.expect_err("it is there already").code(), "already_expanded");
    });
}

#[test]
fn a_subscriber_hears_in_order_what_others_do() {
    let folder = TempFolder::new();
    let file = folder.path().join("a.db");
    block_on(async {
        let engine = Engine::over(Sqlite::open(&file).expect("a store"));
        let other = Engine::over(Sqlite::open(&file).expect("the same store"));
        engine.open(&at("talk"), Opening::default()).await.expect("it is new");
        let reader = "main".into();
        let mut heard = engine.subscribe(&at("talk"), &reader, Since::START, Duration::from_millis(5));
        let work = async {
            engine.append(&at("talk"), Append::any([Entry::user("Look.")])).await.expect("it begins");
            for number in 0..30 {
                // Now one, now the other: the subscriber sees what its own engine didn't write.
                let engine = if number % 2 == 0 { &engine } else { &other };
                let compiled = engine.compile(&at("talk"), &call(6_000)).await.expect("it fits");
                let answer = Answer { entries: step(number, "word ".repeat(300)), ..Answer::default() };
                engine.acknowledge(&at("talk"), &compiled.receipt.ticket, answer).await.expect("the call is open");
            }
        };
        let listen = async {
            let mut events = Vec::new();
            while events.iter().filter(|it: &&recto::event::Event| it.kind == EventKind::Acked).count() < 30 {
                events.extend(heard.next().await.expect("it can be told"));
            }
            events
        };
        let ((), events) = tokio::join!(work, listen);
        let mut all = Vec::new();
        let mut since = Since::START;
        loop {
            let told = engine.events(&at("talk"), &reader, since).await.expect("it can be told");
            if told.since == since {
                break;
            }
            since = told.since;
            all.extend(told.events);
        }
        assert!(events.iter().any(|it| it.kind == EventKind::Compacted), "nothing was decided");
        // The last entries may be told after the last answer.
        assert_eq!(events[..], all[..events.len()]);
        assert!(all.len() - events.len() <= 2);
        let seqs: Vec<_> = all.iter().filter(|it| it.kind == EventKind::Added).filter_map(|it| it.seq).collect();
        assert_eq!(seqs, (0..61).map(Seq).collect::<Vec<_>>());
        let turns: Vec<_> = all.iter().map(|it| it.turn).collect();
        assert!(turns.is_sorted(), "{turns:?}");
    });
}

#[test]
fn what_has_happened_is_told_however_quickly_others_write() {
    let folder = TempFolder::new();
    let file = folder.path().join("a.db");
    block_on(async {
        let engine = Engine::over(Sqlite::open(&file).expect("a store"));
        let other = Engine::over(Sqlite::open(&file).expect("the same store"));
        engine.open(&at("talk"), Opening::default()).await.expect("it is new");
        let mut heard = Vec::new();
        let (mut since, mut written) = (Since::START, 0);
        for _ in 0..20 {
            let reader = "main".into();
            let place = at("talk");
            let writing = async || {
                let entry = Entry::user(format!("{written}"));
                other.append(&at("talk"), Append::any([entry])).await.expect("it can grow");
                written += 1;
            };
            let told = meanwhile(engine.events(&place, &reader, since), writing).await;
            let told = told.expect("nobody has to stop for it");
            since = told.since;
            heard.extend(told.events);
        }
        let seqs: Vec<Seq> = heard.iter().filter(|it| it.kind == EventKind::Added).filter_map(|it| it.seq).collect();
        assert_eq!(seqs, (0..seqs.len() as u64).map(Seq).collect::<Vec<_>>(), "each once, in order");
        assert!(seqs.len() >= 20 && seqs.len() <= written, "{} of {written}", seqs.len());
    });
}

#[test]
fn more_decisions_than_a_page_holds_are_all_told_with_their_calls() {
    block_on(async {
        let (engine, reader, at) = (Engine::over(Memory::default()), "main".into(), at("talk"));
        engine.open(&at, Opening::default()).await.expect("it is new");
        for turn in 0..3 {
            engine.append(&at, Append::any([Entry::user(format!("line {turn}"))])).await.expect("it can grow");
            // More than one page for one call, and then a call's worth in the middle of a page.
            for _ in 0..[1_300, 900, 400][turn] {
                engine.pin(&at, &reader, Span::one(Seq(0))).await.expect("it is there");
            }
            let compiled = engine.compile(&at, &call(4_000)).await.expect("it fits");
            let answer = Answer { entries: vec![Entry::assistant("yes")], ..Answer::default() };
            engine.acknowledge(&at, &compiled.receipt.ticket, answer).await.expect("the call is open");
        }
        let (mut since, mut told) = (Since::START, Vec::new());
        loop {
            let page = engine.events(&at, &reader, since).await.expect("it can be told");
            if page.since == since {
                break;
            }
            since = page.since;
            told.extend(page.events);
        }
        let ordinals: Vec<u64> = told.iter().filter_map(|it| it.ordinal).collect();
        assert_eq!(ordinals, (1..=2_600).collect::<Vec<_>>());
        let kinds: Vec<(u64, EventKind)> = told.iter().map(|it| (it.turn.0, it.kind)).collect();
        assert!(kinds.iter().map(|(turn, _)| turn).is_sorted());
        let count = |turn, kind| kinds.iter().filter(|it| **it == (turn, kind)).count();
        for (turn, pins) in [(0, 1_300), (1, 900), (2, 400)] {
            assert_eq!((count(turn, EventKind::Pinned), count(turn, EventKind::Acked)), (pins, 1), "call {turn}");
        }
        assert_eq!(kinds.iter().filter(|(_, kind)| *kind == EventKind::Added).count(), 6);
    });
}

#[test]
fn a_long_past_is_told_in_pages_and_in_order() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        let old: Vec<Entry> = (0..2_500).map(|number| Entry::user(format!("line {number}"))).collect();
        engine.import_entries(&at("talk"), Opening::default(), old).await.expect("it is new");
        let reader = "main".into();
        for number in 0..1_100 {
            let compiled = engine.compile(&at("talk"), &call(4_000)).await.expect("it fits");
            let entries = if number % 100 == 0 { step(number, "found") } else { Vec::new() };
            let answer = Answer { entries, ..Answer::default() };
            engine.acknowledge(&at("talk"), &compiled.receipt.ticket, answer).await.expect("the call is open");
        }
        let (mut since, mut told, mut pages) = (Since::START, Vec::new(), 0);
        loop {
            let page = engine.events(&at("talk"), &reader, since).await.expect("it can be told");
            if page.since == since {
                break;
            }
            (since, pages) = (page.since, pages + 1);
            told.extend(page.events);
        }
        assert!(pages > 3, "{pages} pages");
        let added: Vec<_> = told.iter().filter(|it| it.kind == EventKind::Added).filter_map(|it| it.seq).collect();
        assert_eq!(added, (0..2_522).map(Seq).collect::<Vec<_>>());
        let acked: Vec<_> = told.iter().filter(|it| it.kind == EventKind::Acked).map(|it| it.turn.0).collect();
        assert_eq!(acked, (0..1_100).collect::<Vec<_>>());
        let turns: Vec<_> = told.iter().map(|it| it.turn).collect();
        assert!(turns.is_sorted(), "an event of an earlier call is told later");
        // Every entry is told with the first call that had it in view.
        let first = told.iter().find(|it| it.seq == Some(Seq(2_500)) && it.kind == EventKind::Added).expect("it came");
        assert_eq!(first.turn.0, 1);
    });
}
