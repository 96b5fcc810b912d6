//! Four engines, each a process of its own, on one database: no update is lost, and what is decided is decided once.

use super::crowd::Crowd;
use super::{address, open};
use crate::child::{setting, tell};
use crate::engine::block_on;
use crate::summaries::lab;
use recto::entry::Part;
use recto::event::{EventKind, Since};
use recto::wire::Wire;
use recto::{Entry, Seq, Target};
use recto_engine::store::postgres::Postgres;
use recto_engine::summarize::{Settings, Summarizer};
use recto_engine::upstream::{Settings as Reached, Upstream};
use recto_engine::{Answer, Append, At, Engine, Opening, Tenant};
use recto_testkit::fake::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const PROCESSES: usize = 4;
/// Appends of each process to the one conversation, and as many behind a head that it has read.
const APPENDS: usize = 40;
const CONVERSATIONS: usize = 1_000;
/// Calls that each process makes for the same reader, and has answered.
const CALLS: usize = 5;
const CONTENTS: usize = 4;
const TRIES_MAX: usize = 1_000;
/// No append waits longer, however many want the same conversation.
const WAIT_MAX: Duration = Duration::from_secs(10);
const CALLERS: usize = 4;

fn at(name: &str) -> At {
    At::new(&Tenant::default(), name)
}

#[derive(Debug, Clone, Copy)]
enum Work {
    One,
    Many,
    Calls,
}

fn crowd(address: &str, work: Work, url: &str) -> Crowd {
    let settings = [
        ("RECTO_HOT_STORE", address.to_string()),
        ("RECTO_HOT_WORK", format!("{work:?}")),
        ("RECTO_HOT_URL", url.to_string()),
    ];
    Crowd::start("servers::hot::child", PROCESSES, "RECTO_HOT_PROCESS", &settings)
}

/// One of the servers; only for a parent that says what to do.
#[test]
fn child() {
    let Some([store, work, url, process]) = ["RECTO_HOT_STORE", "RECTO_HOT_WORK", "RECTO_HOT_URL", "RECTO_HOT_PROCESS"]
        .map(setting)
        .into_iter()
        .collect::<Option<Vec<String>>>()
        .and_then(|all| <[String; 4]>::try_from(all).ok())
    else {
        return;
    };
    block_on(async {
        let engine = Engine::over(open(&store).await);
        match work.as_str() {
            "One" => one(&engine, &process).await,
            "Many" => each_of_many(&engine, &process).await,
            _ => calls(&engine.with_summarizer(summarizer(&url)), &process).await,
        }
    });
}

/// Appends an entry, and returns how long that took.
async fn say(engine: &Engine<Postgres>, at: &At, words: String) -> Duration {
    let start = Instant::now();
    engine.append(at, Append::any([Entry::user(words)])).await.unwrap();
    start.elapsed()
}

/// Appends wherever there is place, and then only behind what it has read.
async fn one(engine: &Engine<Postgres>, process: &str) {
    let mut longest = Duration::ZERO;
    for number in 0..APPENDS {
        longest = longest.max(say(engine, &at("any"), format!("{process} {number}")).await);
        append_expected(engine, process, number).await;
    }
    tell(&longest.as_millis().to_string());
}

async fn append_expected(engine: &Engine<Postgres>, process: &str, number: usize) {
    for _ in 0..TRIES_MAX {
        let head = engine.conversation(&at("expected")).await.unwrap().tally.head();
        let place = head.map_or(0, |head| head.0 + 1);
        let entry = Entry::user(format!("{process} {number} {place}"));
        match engine.append(&at("expected"), Append::after(head, [entry])).await {
            Ok(appended) => return assert_eq!(appended.first, Some(Seq(place))),
            Err(error) => assert!(error.is_conflict(), "{error}"),
        }
    }
    panic!("another process came first {TRIES_MAX} times");
}

/// Appends to each of many conversations, some at once, in an order of its own.
async fn each_of_many(engine: &Engine<Postgres>, process: &str) {
    let start: usize = process.parse().unwrap();
    let caller = |caller: usize| {
        let (engine, process) = (engine.clone(), process.to_string());
        tokio::spawn(async move {
            let mut longest = Duration::ZERO;
            for number in (caller..CONVERSATIONS).step_by(CALLERS) {
                let conversation = at(&format!("m{}", (number + start * 31) % CONVERSATIONS));
                longest = longest.max(say(&engine, &conversation, process.clone()).await);
            }
            longest
        })
    };
    let mut longest = Duration::ZERO;
    for caller in (0..CALLERS).map(caller).collect::<Vec<_>>() {
        longest = longest.max(caller.await.unwrap());
    }
    tell(&longest.as_millis().to_string());
}

fn summarizer(url: &str) -> Summarizer {
    let upstream = Upstream::of(Reached::new("fake", url, Wire::OpenaiChat)).unwrap();
    Summarizer::of(Settings::new(upstream, vec![Target::named(lab::MODEL).unwrap()])).unwrap()
}

/// Makes pages for one reader and has them answered; of several at once, one gets through.
async fn calls(engine: &Engine<Postgres>, process: &str) {
    for number in 0..CALLS {
        let mut tries = 0;
        loop {
            tries += 1;
            assert!(tries < TRIES_MAX, "another process came first {TRIES_MAX} times");
            let compiled = match engine.compile(&lab::at(), &lab::call()).await {
                Err(error) if error.is_conflict() || error.is_busy() => continue,
                compiled => compiled.unwrap(),
            };
            let entries = vec![Entry::assistant(format!("{process} {number}")), Entry::user("Go on.")];
            let answer = Answer { entries, ..Answer::default() };
            match engine.acknowledge(&lab::at(), &compiled.receipt.ticket, answer).await {
                Ok(_) => break,
                Err(error) => assert!(error.is_conflict(), "{error}"),
            }
        }
    }
    tell("done");
}

async fn texts(engine: &Engine<Postgres>, at: &At) -> Vec<String> {
    let text = |entry: &Entry| match &entry.parts[..] {
        [Part::Text { text }] => text.to_string(),
        _ => String::new(),
    };
    let entries = engine.read(at, Seq(0), 10_000).await.unwrap();
    for (place, entry) in (0..).zip(&entries) {
        assert_eq!(entry.seq, Seq(place), "there are no gaps");
    }
    entries.iter().map(|entry| text(entry.original())).collect()
}

fn check_waits(told: &[Vec<String>]) {
    let longest = told.iter().flatten().map(|line| line.parse().unwrap()).max().unwrap();
    println!("the longest append of {PROCESSES} processes took {longest} ms");
    assert!(Duration::from_millis(longest) < WAIT_MAX, "an append took {longest} ms");
}

#[test]
fn on_one_conversation_no_update_is_lost_and_another_server_sees_all_of_them() {
    check_one(address());
}

#[test]
fn behind_a_pooler_no_update_of_one_conversation_is_lost_either() {
    check_one(crate::postgres::pooled::address());
}

fn check_one(address: String) {
    let engine = block_on(async {
        let engine = Engine::over(open(&address).await);
        engine.open(&at("any"), Opening::default()).await.unwrap();
        engine.open(&at("expected"), Opening::default()).await.unwrap();
        engine
    });
    let crowd = crowd(&address, Work::One, "-");
    block_on(async {
        // A server that writes nothing, and is told by nobody.
        let poll = Duration::from_millis(20);
        let mut live = engine.subscribe(&at("any"), &"main".into(), Since::START, poll);
        let mut seen = 0;
        while seen < PROCESSES * APPENDS {
            let events = tokio::time::timeout(WAIT_MAX, live.next()).await.expect("something happens").unwrap();
            seen += events.iter().filter(|it| it.kind == EventKind::Added).count();
        }
        assert_eq!(seen, PROCESSES * APPENDS, "each is told once");
    });
    check_waits(&crowd.end());
    block_on(async {
        let said = texts(&engine, &at("any")).await;
        for process in 0..PROCESSES {
            let own: Vec<&String> = said.iter().filter(|it| it.starts_with(&format!("{process} "))).collect();
            let expected: Vec<String> = (0..APPENDS).map(|number| format!("{process} {number}")).collect();
            assert_eq!(own, expected.iter().collect::<Vec<_>>(), "in its order, each once");
        }
        assert_eq!(said.len(), PROCESSES * APPENDS);
        let expected = texts(&engine, &at("expected")).await;
        assert_eq!(expected.len(), PROCESSES * APPENDS);
        for (place, words) in expected.iter().enumerate() {
            assert!(words.ends_with(&format!(" {place}")), "it stands where its server expected it: {words}");
        }
    });
}

#[test]
fn on_many_conversations_no_update_is_lost() {
    let address = address();
    let engine = block_on(async {
        let engine = Engine::over(open(&address).await);
        for number in 0..CONVERSATIONS {
            engine.open(&at(&format!("m{number}")), Opening::default()).await.unwrap();
        }
        engine
    });
    check_waits(&crowd(&address, Work::Many, "-").end());
    block_on(async {
        for number in 0..CONVERSATIONS {
            let mut said = texts(&engine, &at(&format!("m{number}"))).await;
            said.sort();
            assert_eq!(said, ["0", "1", "2", "3"], "conversation {number}");
        }
    });
}

#[test]
fn decisions_and_summaries_are_made_once_however_many_servers_make_pages() {
    let (address, server) = (address(), Server::start());
    let engine = block_on(async {
        let engine = Engine::over(open(&address).await);
        lab::begin(&engine, &lab::at(), CONTENTS).await;
        engine
    });
    (0..CONTENTS).for_each(|number| server.push(lab::good(number)));
    let told = crowd(&address, Work::Calls, &format!("{}/v1", server.url())).end();
    assert_eq!(told, vec![vec!["done".to_string()]; PROCESSES]);
    assert_eq!(server.log().len(), CONTENTS, "each content is summarized once");
    block_on(async {
        assert_eq!(engine.noted(&lab::at()).await.unwrap().len(), CONTENTS);
        let reader = lab::call().reader;
        let decisions = engine.decisions(&lab::at(), &reader).await.unwrap();
        let places: BTreeSet<String> = decisions.iter().map(|it| format!("{:?}", it.edit.change)).collect();
        assert_eq!((decisions.len(), places.len()), (CONTENTS, CONTENTS), "{decisions:#?}");
        let turns = engine.turns(&lab::at(), &reader, 0, 1_000).await.unwrap();
        assert_eq!(turns.len(), 1 + PROCESSES * CALLS, "each call counts once");
        for turn in &turns {
            assert!(engine.again(&lab::at(), &reader, turn.turn).await.unwrap().agrees, "call {}", turn.turn);
        }
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for words in texts(&engine, &lab::at()).await.into_iter().filter(|it| it.len() == 3) {
            *count.entry(words).or_default() += 1;
        }
        let answers = (0..PROCESSES).flat_map(|process| (0..CALLS).map(move |call| (format!("{process} {call}"), 1)));
        assert_eq!(count, answers.collect(), "each answer is kept once");
    });
}
