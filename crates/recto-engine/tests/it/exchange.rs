//! Calls of clients that send their history each time. What is kept warm from one to the next is the same as what is
//! read anew, and counts for nothing once somebody else has written.

use crate::engine::block_on;
use crate::folder::TempFolder;
use recto::digest::Digest;
use recto::entry::{Call as ToolCall, CallId, Part};
use recto::fragment::Fragment;
use recto::wire::{Usage, openai_chat};
use recto::{Entry, Policy, Seq, Span, Target, Tokens};
use recto_engine::engine::{Beginning, Begun, Behind, Saying};
use recto_engine::store::memory::Memory;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Answer, Append, At, Call, Engine, Error, Opening, Store, Tenant};

const TURNS: u64 = 60;

fn at() -> At {
    At::new(&Tenant::default(), "talk")
}

fn call(turn: u64) -> Call {
    let target = Target::named("gpt-4o").unwrap().with_window(Some(Tokens(24_000)));
    let mut call = Call::new("main", Policy::usual(), target);
    // Instructions and tools stay the same for a while, and change now and then.
    call.fragments = vec![Fragment::fixed("identity", format!("You read code. {}", turn / 20))];
    call.tools = vec![format!(r#"{{"type":"function","function":{{"name":"read_{}"}}}}"#, turn / 30).into()];
    call.reserve = Some(Tokens(2_000));
    call
}

/// What the client says at a turn: the result of the call before.
fn said(turn: u64) -> Vec<Entry> {
    let lines: Vec<String> = (0..60).map(|line| format!("{line}: let it_{turn}_{line} = {};", turn * line)).collect();
    match turn {
        0 => vec![Entry::user("Find the value.")],
        turn => vec![Entry::result(CallId::from(format!("call_{}", turn - 1)), lines.join("\n"))],
    }
}

fn answer(turn: u64, used: Tokens) -> Answer {
    let call = ToolCall::new(format!("call_{turn}"), "read_0", format!(r#"{{"path":"src/{}.rs"}}"#, turn % 7));
    let usage = Usage { input: used, output: Tokens(20), ..Usage::default() };
    Answer {
        entries: vec![Entry::step(format!("Looking at file {turn}."), [call])],
        reported: Some(used),
        used: Some((usage, 0.25)),
        links: vec![Digest::of(format!("turn {turn}").as_bytes())],
        ..Answer::default()
    }
}

fn made(beginning: Beginning) -> Box<Begun> {
    match beginning {
        Beginning::Made(begun) => begun,
        Beginning::Unmade { why, .. } => panic!("{why}"),
    }
}

async fn begin<S: Store>(engine: &Engine<S>, behind: Behind, turn: u64) -> Result<Box<Begun>, Error> {
    let saying = Saying { entries: said(turn), behind, links: Vec::new() };
    engine.begin(&at(), saying, &call(turn)).await.map(made)
}

fn behind(head: Option<Seq>) -> Behind {
    head.map_or_else(|| Behind::Nothing(Opening::default()), |head| Behind::Head(Some(head)))
}

/// Lives through some turns, with an engine for each, and returns what was sent.
async fn live<S: Store>(turns: u64, mut engine_of: impl FnMut() -> Engine<S>) -> Vec<(Vec<u8>, bool)> {
    let (mut head, mut sent) = (None, Vec::new());
    for turn in 0..turns {
        let engine = engine_of();
        let begun = begin(&engine, behind(head), turn).await.unwrap();
        sent.push((openai_chat::encode(&begun.compiled.page, &call(turn).target), begun.is_reduced));
        let used = begun.compiled.receipt.ledger.used();
        let finished = engine.finish(begun, answer(turn, used), "fork".into()).await.unwrap();
        assert!(!finished.is_fork);
        head = finished.appended.last;
    }
    sent
}

#[test]
fn pages_of_what_is_warm_are_those_of_what_is_read_and_come_back_as_they_were() {
    let folder = TempFolder::new();
    block_on(async {
        let file = folder.file("recto.db");
        let warm = Engine::over(Sqlite::open(&file).unwrap());
        let sent = live(TURNS, || warm.clone()).await;
        let cold = Memory::default();
        let others = live(TURNS, || Engine::over(cold.clone())).await;
        for (turn, (warm, cold)) in sent.iter().zip(&others).enumerate() {
            assert!(warm == cold, "turn {turn}");
        }
        assert!(!sent[0].1 && sent[TURNS as usize - 1].1, "at first nothing is decided, then something is");
        drop(warm);
        let reopened = Engine::over(Sqlite::open(&file).unwrap());
        for turn in 0..TURNS {
            let again = reopened.again(&at(), &"main".into(), turn).await.unwrap();
            assert!(again.agrees, "turn {turn}");
            assert!(openai_chat::encode(&again.compiled.page, &again.target) == sent[turn as usize].0, "turn {turn}");
        }
        let turns = reopened.turns(&at(), &"main".into(), 0, 1_000).await.unwrap();
        assert_eq!(turns.len() as u64, TURNS);
        assert_eq!(turns[3].used.map(|(usage, usd)| (usage.output, usd)), Some((Tokens(20), 0.25)));
        assert_eq!(turns[3].used.map(|(usage, _)| usage.input), turns[3].reported);
        let decisions = |engine: &Engine<Sqlite>| {
            let engine = engine.clone();
            async move { engine.decisions(&at(), &"main".into()).await.unwrap() }
        };
        let kept = decisions(&reopened).await;
        assert!(kept.len() > 20, "{}", kept.len());
        assert_eq!(kept, Engine::over(cold).decisions(&at(), &"main".into()).await.unwrap());
        let links = reopened.linked(&at().tenant, vec![Digest::of(b"turn 7")]).await.unwrap();
        assert_eq!(links.iter().map(|link| link.seq).collect::<Vec<_>>(), [Seq(15)]);
    });
}

async fn exported<S: Store>(engine: &Engine<S>, at: &At) -> Vec<String> {
    let mut lines = Vec::new();
    let keep = |line: &str| {
        lines.push(line.to_string());
        Ok(())
    };
    engine.export(at, keep).await.unwrap();
    lines
}

#[test]
fn conversations_that_begin_alike_have_each_what_their_pages_were_made_from() {
    let folder = TempFolder::new();
    block_on(async {
        let file = folder.file("recto.db");
        let engine = Engine::over(Sqlite::open(&file).unwrap());
        let places = ["one", "other"].map(|id| At::new(&Tenant::default(), id));
        for at in &places {
            let mut head = None;
            // Its tools and instructions change on the way.
            for turn in [0, 1, 25, 35] {
                let saying = Saying { entries: said(turn), behind: behind(head), links: Vec::new() };
                let begun = made(engine.begin(at, saying, &call(turn)).await.unwrap());
                let answer = answer(turn, begun.compiled.receipt.ledger.used());
                head = engine.finish(begun, answer, "fork".into()).await.unwrap().appended.last;
            }
        }
        drop(engine);
        let reopened = Engine::over(Sqlite::open(&file).unwrap());
        let elsewhere = Engine::over(Memory::default());
        for at in &places {
            let lines = exported(&reopened, at).await;
            elsewhere.import(&at.tenant, None, lines.iter().cloned().map(Ok)).await.unwrap();
            assert_eq!(exported(&elsewhere, at).await, lines);
            for turn in 0..4 {
                assert!(reopened.again(at, &"main".into(), turn).await.unwrap().agrees, "turn {turn}");
                assert!(elsewhere.again(at, &"main".into(), turn).await.unwrap().agrees, "turn {turn}");
            }
        }
        assert_eq!(reopened.check(|_| {}).await.unwrap().findings, []);
    });
}

#[test]
fn what_somebody_else_has_written_is_heeded_at_the_next_call() {
    block_on(async {
        let store = Memory::default();
        let (server, other) = (Engine::over(store.clone()), Engine::over(store));
        let mut head = None;
        for turn in 0..6 {
            let begun = begin(&server, behind(head), turn).await.unwrap();
            let finished = server.finish(begun, answer(turn, Tokens(10)), "fork".into()).await.unwrap();
            head = finished.appended.last;
        }
        let reader = "main".into();
        other.pin(&at(), &reader, Span::one(Seq(2))).await.unwrap();
        other.erase_entries(&at(), vec![Seq(4)]).await.unwrap();
        let begun = begin(&server, behind(head), 6).await.unwrap();
        let page = &begun.compiled.page;
        let texts = page.messages.iter().flat_map(|message| message.parts.iter());
        let words: String = texts.map(|part| format!("{part:?}")).collect();
        assert!(!words.contains("it_2_3"), "an erased entry was shown from what was warm");
        assert!(words.contains("it_1_3") && words.contains("it_3_3"));
        assert_eq!(begun.compiled.receipt.ticket.ordinal, 1, "the pin counts");
        server.finish(begun, answer(6, Tokens(10)), "fork".into()).await.unwrap();
    });
}

#[test]
fn an_entry_that_a_fork_shares_is_gone_from_what_is_warm_of_the_fork() {
    block_on(async {
        let store = Memory::default();
        let (server, other) = (Engine::over(store.clone()), Engine::over(store));
        let begun = begin(&server, behind(None), 0).await.unwrap();
        server.finish(begun, answer(0, Tokens(10)), "fork".into()).await.unwrap();
        let fork = At { conversation: "fork".into(), ..at() };
        let say = async |behind: Behind, text: &str| {
            let saying = Saying { entries: vec![Entry::user(text)], behind, links: Vec::new() };
            made(server.begin(&fork, saying, &call(1)).await.unwrap())
        };
        let begun = say(Behind::Fork { of: at().conversation, upto: Some(Seq(1)) }, "another way").await;
        assert_eq!(begun.compiled.page.messages.iter().filter(|it| it.seq.is_some()).count(), 4, "with a stand-in");
        let answer = Answer { entries: vec![Entry::assistant("gladly")], ..Answer::default() };
        server.finish(begun, answer, "unused".into()).await.unwrap();
        other.erase_entries(&at(), vec![Seq(0)]).await.unwrap();
        let begun = say(Behind::Head(Some(Seq(3))), "go on").await;
        let words = format!("{:?}", begun.compiled.page.messages);
        assert!(!words.contains("Find the value."), "{words}");
    });
}

#[test]
fn of_two_answers_to_one_place_the_second_goes_its_own_way() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        let first = begin(&engine, behind(None), 0).await.unwrap();
        let saying = Saying { entries: Vec::new(), behind: Behind::Head(Some(Seq(0))), links: Vec::new() };
        let second = made(engine.begin(&at(), saying, &call(0)).await.unwrap());
        assert!(!engine.finish(first, answer(0, Tokens(10)), "fork".into()).await.unwrap().is_fork);
        let late = Answer { entries: vec![Entry::assistant("LATE")], ..Answer::default() };
        let finished = engine.finish(second, late, "fork".into()).await.unwrap();
        assert!(finished.is_fork && finished.at.conversation.as_str() == "fork");
        let words = async |at: &At| {
            let entries = engine.read(at, Seq(0), 10).await.unwrap();
            let texts = entries.iter().flat_map(|it| it.original().parts.iter()).filter_map(|part| match part {
                Part::Text { text } => Some(text.to_string()),
                _ => None,
            });
            texts.collect::<Vec<String>>()
        };
        assert_eq!(words(&at()).await, ["Find the value.", "Looking at file 0."]);
        assert_eq!(words(&finished.at).await, ["Find the value.", "LATE"]);
    });
}

#[test]
fn a_place_that_was_carried_on_is_refused_and_nothing_is_written() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        let begun = begin(&engine, behind(None), 0).await.unwrap();
        let finished = engine.finish(begun, answer(0, Tokens(10)), "fork".into()).await.unwrap();
        engine.append(&at(), Append::any([Entry::user("meanwhile")])).await.unwrap();
        let refused = begin(&engine, behind(finished.appended.last), 1).await.map(|_| ()).unwrap_err();
        assert!(refused.is_head_moved(), "{refused}");
        assert_eq!(engine.read(&at(), Seq(0), 10).await.unwrap().len(), 3);
        let refused = begin(&engine, behind(None), 1).await.map(|_| ()).unwrap_err();
        assert!(refused.is_exists(), "{refused}");
    });
}

#[test]
fn a_call_that_came_to_nothing_is_made_again_without_saying_it_twice() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        let begun = begin(&engine, behind(None), 0).await.unwrap();
        let page = begun.compiled.page.digest();
        engine.leave(begun).await.unwrap();
        let saying = Saying { entries: Vec::new(), behind: Behind::Head(Some(Seq(0))), links: Vec::new() };
        let begun = made(engine.begin(&at(), saying, &call(0)).await.unwrap());
        assert_eq!(begun.compiled.page.digest(), page);
        engine.finish(begun, answer(0, Tokens(10)), "fork".into()).await.unwrap();
        assert_eq!(engine.read(&at(), Seq(0), 10).await.unwrap().len(), 2);
        assert_eq!(engine.turns(&at(), &"main".into(), 0, 10).await.unwrap().len(), 1);
        // What went beside the call that came to nothing was not written down with it.
        assert!(engine.again(&at(), &"main".into(), 0).await.unwrap().agrees);
    });
}

#[test]
fn a_page_that_can_not_be_made_leaves_what_was_said() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        let target = Target::named("gpt-4o").unwrap().with_window(Some(Tokens(100)));
        let call = Call { reserve: Some(Tokens(10)), ..Call::new("main", Policy::preset("none").unwrap(), target) };
        let entries = vec![Entry::user("word ".repeat(1_000))];
        let saying = Saying { entries, behind: behind(None), links: Vec::new() };
        let Beginning::Unmade { head, .. } = engine.begin(&at(), saying, &call).await.unwrap() else {
            panic!("a page of a thousand words in a window of a hundred");
        };
        let saying = Saying { entries: vec![Entry::assistant("No.")], behind: Behind::Head(head), links: Vec::new() };
        assert_eq!(engine.add(&at(), saying).await.unwrap(), Some(Seq(1)));
    });
}
