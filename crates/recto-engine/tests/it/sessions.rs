//! What a provider that remembers holds, over a store: advanced, kept over restarts, given up, and never shared.

use crate::engine::{block_on, meanwhile};
use crate::folder::TempFolder;
use recto::page::{Mode, Page};
use recto::session::Lost;
use recto::target::Instructions;
use recto::{Compiled, Entry, Policy, Seq, Target};
use recto_engine::session::{CaughtUp, Sending};
use recto_engine::store::RecordKind;
use recto_engine::store::memory::Memory;
use recto_engine::store::sqlite::{Existing, Sqlite};
use recto_engine::{Answer, Append, At, Call, Engine, Forks, Opening, Remembering, Store, Tenant};
use std::time::Duration;

const PROVIDER: &str = "somebody";

fn at() -> At {
    At::new(&Tenant::default(), "talk")
}

fn call() -> Call {
    let target = Target::eval().remembering(Instructions::Replaced);
    Call {
        session: Some(Remembering::new(PROVIDER, "/work", Duration::from_secs(600))),
        ..Call::new("main", Policy::none(), target)
    }
}

fn elsewhere(workspace: &str) -> Call {
    let mut call = call();
    call.session.as_mut().unwrap().workspace = workspace.into();
    call
}

async fn begun<S: Store>(store: S) -> Engine<S> {
    let engine = Engine::over(store);
    engine.open(&at(), Opening::default()).await.unwrap();
    engine
}

async fn say<S: Store>(engine: &Engine<S>, entry: Entry) -> Seq {
    engine.append(&at(), Append::any([entry])).await.unwrap().last.unwrap()
}

async fn acknowledge<S: Store>(engine: &Engine<S>, compiled: &Compiled, answer: &str) {
    let answer = Answer { entries: vec![Entry::assistant(answer)], session: Some("s1".into()), ..Answer::default() };
    engine.acknowledge(&at(), &compiled.receipt.ticket, answer).await.unwrap();
}

/// One whole turn.
async fn turn<S: Store>(engine: &Engine<S>, words: &str, answer: &str) -> Compiled {
    say(engine, Entry::user(words)).await;
    let compiled = engine.compile(&at(), &call()).await.unwrap();
    acknowledge(engine, &compiled, answer).await;
    compiled
}

async fn held<S: Store>(engine: &Engine<S>) -> recto_engine::session::Held {
    engine.session(&at(), &"main".into(), PROVIDER).await.unwrap().expect("it was called")
}

fn seqs(page: &Page) -> Vec<u64> {
    page.messages.iter().filter_map(|message| message.seq).map(|seq| seq.0).collect()
}

/// Runs a test on every store.
macro_rules! on_every_store {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            block_on(async {
                told::$name(begun(Memory::default()).await).await;
                let folder = TempFolder::new();
                told::$name(begun(Sqlite::open(folder.file("kept.db")).unwrap()).await).await;
                told::$name(begun(crate::servers::store().await).await).await;
            });
        }
    )*};
}

on_every_store! {
    s02_the_first_call_says_everything_and_then_all_of_it_is_acknowledged
    s04_what_comes_next_is_sent_and_nothing_else
    s05_an_entry_of_somebody_else_is_never_passed_over
    s06_an_abandoned_call_leaves_everything_as_it_was
    s07_a_session_of_another_workspace_or_another_log_counts_for_nothing
    s08_where_nothing_is_new_there_is_nothing_to_send
    of_two_calls_at_once_one_is_told_to_wait
    a_call_that_took_too_long_is_taken_over_and_can_not_be_acknowledged
    what_was_said_elsewhere_is_added_once_and_held
    a_reader_and_a_provider_have_sessions_of_their_own
    what_is_erased_is_not_left_with_a_provider_unsaid
    twenty_turns_send_every_entry_exactly_once
}

mod told {
    use super::*;

    pub(super) async fn s02_the_first_call_says_everything_and_then_all_of_it_is_acknowledged<S: Store>(
        engine: Engine<S>,
    ) {
        let first = turn(&engine, "one", "two").await;
        assert_eq!((first.page.mode, seqs(&first.page)), (Mode::Full, vec![0]));
        let held = held(&engine).await;
        assert_eq!((held.session.acked(), held.id.as_deref()), (Some(Seq(1)), Some("s1")));
        assert!(!held.is_in_doubt());
        assert!(engine.again(&at(), &"main".into(), 0).await.unwrap().agrees);
    }

    pub(super) async fn s04_what_comes_next_is_sent_and_nothing_else<S: Store>(engine: Engine<S>) {
        turn(&engine, "one", "two").await;
        let next = turn(&engine, "three", "four").await;
        assert_eq!((next.page.mode, seqs(&next.page)), (Mode::Delta, vec![2]));
        // Also what is said with the call itself.
        let asked = Call { input: Some(Entry::user("five")), ..call() };
        let compiled = engine.compile(&at(), &asked).await.unwrap();
        assert_eq!((compiled.page.mode, compiled.page.messages.len()), (Mode::Delta, 1));
        acknowledge(&engine, &compiled, "six").await;
        assert_eq!(held(&engine).await.session.acked(), Some(Seq(5)));
        for turn in 0..3 {
            assert!(engine.again(&at(), &"main".into(), turn).await.unwrap().agrees, "call {turn}");
        }
    }

    pub(super) async fn s05_an_entry_of_somebody_else_is_never_passed_over<S: Store>(engine: Engine<S>) {
        turn(&engine, "one", "two").await;
        for words in ["three", "four", "five"] {
            say(&engine, Entry::user(words)).await;
        }
        let compiled = engine.compile(&at(), &call()).await.unwrap();
        assert_eq!(compiled.receipt.ticket.head, Some(Seq(4)));
        say(&engine, Entry::user("somebody else says")).await;
        acknowledge(&engine, &compiled, "six").await;
        let session = held(&engine).await.session;
        assert_eq!(session.acked(), Some(Seq(4)));
        assert!(session.holds(Seq(6)) && !session.holds(Seq(5)));
        let next = engine.compile(&at(), &call()).await.unwrap();
        assert_eq!(seqs(&next.page), [5]);
        acknowledge(&engine, &next, "eight").await;
        assert_eq!(held(&engine).await.session.acked(), Some(Seq(7)));
    }

    pub(super) async fn s06_an_abandoned_call_leaves_everything_as_it_was<S: Store>(engine: Engine<S>) {
        turn(&engine, "one", "two").await;
        say(&engine, Entry::user("three")).await;
        let before = held(&engine).await;
        let first = engine.compile(&at(), &call()).await.unwrap();
        assert!(engine.abandon(&at(), &first.receipt.ticket).await.unwrap());
        let after = held(&engine).await;
        assert_eq!((after.session, after.id, after.mark), (before.session, before.id, before.mark));
        assert!(after.sent.is_some(), "what the provider made of it is not known");
        let again = engine.compile(&at(), &call()).await.unwrap();
        assert_eq!(again.page, first.page);
        assert!(!engine.abandon(&at(), &compile_elsewhere()).await.unwrap());
    }

    /// A ticket that nobody has.
    fn compile_elsewhere() -> recto::receipt::Ticket {
        let (log, reader) = (recto::Log::counted_by(recto::Tokenizer::Bytes4), recto::Reader::new("main"));
        let (policy, target) = (Policy::none(), Target::eval());
        recto::compile(&recto::Request::new(&log, &reader, &policy, &target)).unwrap().receipt.ticket
    }

    pub(super) async fn s07_a_session_of_another_workspace_or_another_log_counts_for_nothing<S: Store>(
        engine: Engine<S>,
    ) {
        turn(&engine, "one", "two").await;
        say(&engine, Entry::user("three")).await;
        let moved = engine.compile(&at(), &elsewhere("/other")).await.unwrap();
        assert_eq!((moved.page.mode, seqs(&moved.page)), (Mode::Full, vec![0, 1, 2]));
        let json = serde_json::to_string(&moved.receipt).unwrap();
        assert!(json.contains("workspace_changed"), "{json}");
        // It is gone in the store and in an export as well, before anything is acknowledged.
        let kept = held(&engine).await;
        assert_eq!((kept.session.acked(), kept.session.lost()), (None, Some(Lost::WorkspaceChanged)));
        let mut export = String::new();
        let keep = |line: &str| {
            export.push_str(line);
            Ok(())
        };
        engine.export(&at(), keep).await.unwrap();
        assert!(export.contains(r#"workspace_changed"#) && export.contains(r#"\"acked\":null"#), "{export}");
        acknowledge(&engine, &moved, "four").await;
        // From then on it goes on there.
        say(&engine, Entry::user("five")).await;
        assert_eq!(seqs(&engine.compile(&at(), &elsewhere("/other")).await.unwrap().page), [4]);
    }

    pub(super) async fn s08_where_nothing_is_new_there_is_nothing_to_send<S: Store>(engine: Engine<S>) {
        turn(&engine, "one", "two").await;
        for _ in 0..2 {
            let none = engine.compile(&at(), &call()).await.unwrap();
            assert_eq!((none.page.mode, none.page.messages.len()), (Mode::NothingNew, 0));
        }
        // Nobody has to wait for a call that is never made.
        say(&engine, Entry::user("three")).await;
        assert_eq!(seqs(&engine.compile(&at(), &call()).await.unwrap().page), [2]);
    }

    pub(super) async fn of_two_calls_at_once_one_is_told_to_wait<S: Store>(engine: Engine<S>) {
        turn(&engine, "one", "two").await;
        say(&engine, Entry::user("three")).await;
        let (at, asked) = (at(), call());
        let both = tokio::join!(engine.compile(&at, &asked), engine.compile(&at, &asked));
        let (won, lost) = match both {
            (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won, lost),
            both => panic!("one of them should have to wait: {both:?}"),
        };
        assert!(lost.is_in_use() && lost.to_string().contains(PROVIDER), "{lost}");
        assert!(lost.hint().unwrap().contains("wait"));
        acknowledge(&engine, &won, "four").await;
        say(&engine, Entry::user("five")).await;
        assert_eq!(seqs(&engine.compile(&at, &asked).await.unwrap().page), [4]);
    }

    pub(super) async fn a_call_that_took_too_long_is_taken_over_and_can_not_be_acknowledged<S: Store>(
        engine: Engine<S>,
    ) {
        let mut short = call();
        short.session.as_mut().unwrap().lease = Duration::ZERO;
        say(&engine, Entry::user("one")).await;
        let slow = engine.compile(&at(), &short).await.unwrap();
        say(&engine, Entry::user("two")).await;
        let quick = engine.compile(&at(), &call()).await.unwrap();
        assert_eq!(seqs(&quick.page), [0, 1]);
        let late = Answer { entries: vec![Entry::assistant("late")], ..Answer::default() };
        let refused = engine.acknowledge(&at(), &slow.receipt.ticket, late).await.unwrap_err();
        assert!(refused.is_conflict(), "{refused}");
        acknowledge(&engine, &quick, "three").await;
        assert_eq!(held(&engine).await.session.acked(), Some(Seq(2)));
    }

    pub(super) async fn what_was_said_elsewhere_is_added_once_and_held<S: Store>(engine: Engine<S>) {
        turn(&engine, "one", "two").await;
        say(&engine, Entry::user("not told yet")).await;
        let entries = vec![Entry::user("by hand"), Entry::assistant("answered by hand")];
        let more = CaughtUp { entries, mark: Some("line 7".into()) };
        let (reader, at) = ("main".into(), at());
        engine.caught_up(&at, &reader, PROVIDER, more.clone()).await.unwrap();
        let now = held(&engine).await;
        assert_eq!((now.session.acked(), now.mark.as_deref()), (Some(Seq(1)), Some("line 7")));
        assert!(now.session.holds(Seq(3)) && now.session.holds(Seq(4)) && !now.session.holds(Seq(2)));
        let next = engine.compile(&at, &call()).await.unwrap();
        assert_eq!(seqs(&next.page), [2], "what it was never told is told");
        acknowledge(&engine, &next, "yes").await;
        assert_eq!(held(&engine).await.session.acked(), Some(Seq(5)));
    }

    pub(super) async fn a_reader_and_a_provider_have_sessions_of_their_own<S: Store>(engine: Engine<S>) {
        turn(&engine, "one", "two").await;
        let mut other = call();
        other.session.as_mut().unwrap().provider = "another".into();
        assert_eq!(engine.compile(&at(), &other).await.unwrap().page.mode, Mode::Full);
        let reader = Call { reader: "critic".into(), ..call() };
        assert_eq!(engine.compile(&at(), &reader).await.unwrap().page.mode, Mode::Full);
        let all = engine.sessions(&at()).await.unwrap();
        let names: Vec<_> = all.iter().map(|(provider, reader, _)| (&**provider, reader.as_str())).collect();
        assert_eq!(names, [("another", "main"), (PROVIDER, "critic"), (PROVIDER, "main")]);
        // A fork begins without any.
        let fork = engine.fork(&at(), "fork", None).await.unwrap();
        assert!(engine.sessions(&At::new(&Tenant::default(), fork.id.as_str())).await.unwrap().is_empty());
    }

    pub(super) async fn what_is_erased_is_not_left_with_a_provider_unsaid<S: Store>(engine: Engine<S>) {
        turn(&engine, "one", "two").await;
        turn(&engine, "three", "four").await;
        engine.erase_entries(&at(), vec![Seq(0)]).await.unwrap();
        say(&engine, Entry::user("five")).await;
        let next = engine.compile(&at(), &call()).await.unwrap();
        assert_eq!((next.page.mode, seqs(&next.page)), (Mode::Full, vec![0, 1, 2, 3, 4]));
        assert!(serde_json::to_string(&next.receipt).unwrap().contains("entry_gone"));
    }

    pub(super) async fn twenty_turns_send_every_entry_exactly_once<S: Store>(engine: Engine<S>) {
        let mut sent = Vec::new();
        for number in 0..20_u64 {
            if number % 3 == 1 {
                say(&engine, Entry::user(format!("injected {number}"))).await;
            }
            say(&engine, Entry::user(format!("words {number}"))).await;
            let compiled = engine.compile(&at(), &call()).await.unwrap();
            if number % 5 == 4 {
                engine.abandon(&at(), &compiled.receipt.ticket).await.unwrap();
                continue;
            }
            let head = compiled.receipt.ticket.head.unwrap().0;
            if number % 4 == 2 {
                say(&engine, Entry::user(format!("meanwhile {number}"))).await;
            }
            acknowledge(&engine, &compiled, "yes").await;
            sent.extend(seqs(&compiled.page));
            sent.push(head + 1 + u64::from(number % 4 == 2));
            sent.sort_unstable();
            let known: Vec<u64> = (0..sent.len() as u64).collect();
            // What came meanwhile is not told yet; everything else once.
            let gap = sent.iter().zip(&known).position(|(one, other)| one != other);
            assert!(gap.is_none_or(|at| at + 1 == sent.len()), "call {number}: {sent:?}");
        }
        assert!(sent.windows(2).all(|pair| pair[0] < pair[1]), "{sent:?}");
    }
}

#[test]
fn a_session_survives_a_restart_and_is_gone_with_an_older_log() {
    block_on(async {
        let folder = TempFolder::new();
        let path = folder.file("kept.db");
        let engine = begun(Sqlite::open(&path).unwrap()).await;
        turn(&engine, "one", "two").await;
        engine.store().backup(&folder.file("old.db"), Existing::Refuse).await.unwrap();
        turn(&engine, "three", "four").await;
        drop(engine);
        let engine = Engine::over(Sqlite::open(&path).unwrap());
        say(&engine, Entry::user("five")).await;
        let next = engine.compile(&at(), &call()).await.unwrap();
        assert_eq!((next.page.mode, seqs(&next.page)), (Mode::Delta, vec![4]));
        drop(engine);
        // The older copy of the store grows another way. Its own session is as old as it is.
        let engine = Engine::over(Sqlite::open(folder.file("old.db")).unwrap());
        assert_eq!(held(&engine).await.session.acked(), Some(Seq(1)));
        let other = turn(&engine, "another three", "another four").await;
        assert_eq!((other.page.mode, seqs(&other.page)), (Mode::Delta, vec![2]));
    });
}

#[test]
fn s07_an_acknowledged_entry_that_is_not_in_the_log_any_more_makes_a_full_page() {
    block_on(async {
        // The newer session's record in a store whose log says something else at that place.
        let newer = begun(Memory::default()).await;
        turn(&newer, "one", "two").await;
        turn(&newer, "three", "four").await;
        let talk = at();
        let records = newer.store().kept(&talk.tenant, &talk.conversation, RecordKind::Session).await.unwrap();
        let record = records.last().expect("one session").clone();
        for others in [["one", "two", "tres", "quatro"].as_slice(), &["one", "two"]] {
            let engine = begun(Memory::default()).await;
            engine
                .append(&at(), Append::any(others.iter().map(|it| Entry::user(*it)).collect::<Vec<_>>()))
                .await
                .unwrap();
            engine.store().adopt(&at().tenant, &at().conversation, record.clone()).await.unwrap();
            let compiled = engine.compile(&at(), &call()).await.unwrap();
            assert_eq!((compiled.page.mode, compiled.page.messages.len()), (Mode::Full, others.len()));
            let why = serde_json::to_string(&compiled.receipt).unwrap();
            let expected = if others.len() == 4 { "entry_gone" } else { "cursor_beyond_log" };
            assert!(why.contains(expected), "{why}");
        }
    });
}

#[test]
fn where_a_call_goes_is_known_before_it_is_sent() {
    block_on(async {
        let engine = begun(Memory::default()).await;
        say(&engine, Entry::user("one")).await;
        let compiled = engine.compile(&at(), &call()).await.unwrap();
        let sending = Sending { session: Some("new".into()), message: Some("m1".into()), mark: None };
        engine.sending(&at(), &compiled.receipt.ticket, PROVIDER, sending.clone()).await.unwrap();
        let sent = held(&engine).await.sent.unwrap();
        assert_eq!((sent.session.as_deref(), sent.message.as_deref()), (Some("new"), Some("m1")));
        // Given up meanwhile, it must not be sent any more.
        assert!(engine.invalidate(&at(), &"main".into(), PROVIDER, Lost::Told).await.unwrap());
        let refused = engine.sending(&at(), &compiled.receipt.ticket, PROVIDER, sending).await.unwrap_err();
        assert!(refused.is_conflict());
    });
}

#[test]
fn holders_are_listed_while_somebody_erases_some() {
    let folder = TempFolder::new();
    let open = || Sqlite::open(folder.path().join("a.db")).unwrap();
    block_on(async {
        let (engine, other) = (begun(open()).await, Engine::over(open()));
        turn(&engine, "one", "two").await;
        let mut erased: Vec<At> = (0..8).map(|nth| At::new(&Tenant::default(), format!("old {nth}"))).collect();
        for at in &erased {
            engine.open(at, Opening::default()).await.unwrap();
        }
        let erasing = async || {
            if let Some(at) = erased.pop() {
                other.erase(&at, Forks::Refuse).await.unwrap();
            }
        };
        let holders = meanwhile(engine.holders(&Tenant::default()), erasing).await.unwrap();
        assert!(erased.len() < 8);
        assert_eq!(holders.into_values().map(|(at, ..)| at).collect::<Vec<_>>(), [at()]);
    });
}
