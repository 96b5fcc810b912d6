use super::lab::{at, begin, call, content, good, memory, said, settings, summarizer, telling, turn};
use crate::engine::block_on;
use recto::edit::Reason;
use recto::note::Note;
use recto::{Seq, Tokens};
use recto_engine::engine::{Beginning, Behind, Saying};
use recto_engine::store::RecordKind;
use recto_engine::store::memory::Memory;
use recto_engine::summarize::{Settings, Told};
use recto_engine::{Answer, Append, At, Call, Engine, Store};
use recto_testkit::fake::{Gate, Server};
use std::time::Duration;

#[test]
fn s26_a_summary_stands_in_the_place_of_what_has_expired_and_is_paid_for_once() {
    block_on(async {
        let server = Server::start();
        server.push(good(0));
        let engine = memory(summarizer(&server), 1).await;
        assert_eq!(server.log().len(), 0, "what the model has not seen is not summarized");
        let page = turn(&engine, &at(), &call()).await;
        assert!(said(&page).contains("GIST-0.") && !said(&page).contains("CONTENT-0."), "{}", said(&page));
        for _ in 0..3 {
            assert!(said(&turn(&engine, &at(), &call()).await).contains("GIST-0."));
        }
        assert_eq!(server.log().len(), 1, "it is asked once");
        let noted = engine.noted(&at()).await.unwrap();
        let [note] = &noted[..] else { panic!("{noted:?}") };
        assert_eq!(note.note, Note::Made { text: "GIST-0.".into(), model: super::lab::MODEL.into() });
        assert!(note.spent.usd > 0.0 && note.spent.calls == 1 && note.spent.usage.output > Tokens(0), "{note:?}");
        assert!(engine.again(&at(), &call().reader, 1).await.unwrap().agrees, "it can be made again as it was");
    });
}

#[test]
fn nobody_is_asked_where_nobody_makes_summaries_and_the_beginning_stays() {
    block_on(async {
        let engine = Engine::over(Memory::default());
        begin(&engine, &at(), 1).await;
        let page = turn(&engine, &at(), &call()).await;
        assert!(said(&page).contains("CONTENT-0. line 0") && !said(&page).contains("line 59"), "{}", said(&page));
    });
}

#[test]
fn a_preview_asks_nobody() {
    block_on(async {
        let server = Server::start();
        let engine = memory(summarizer(&server), 2).await;
        let page = engine.preview(&at(), &call()).await.unwrap();
        assert!(said(&page).contains("CONTENT-1. line 59"));
        assert_eq!(server.log().len(), 0);
        assert_eq!(engine.wants(&at(), &call()).await.unwrap().len(), 2, "though it would help");
    });
}

#[test]
fn a_summarizer_that_hangs_delays_a_call_no_longer_than_its_time_out_and_is_of_use_to_the_next_one() {
    block_on(async {
        let (server, gate) = (Server::start(), Gate::default());
        server.push(good(0).waiting_after(0, &gate));
        let (summarizer, told) = telling(settings_waiting(&server, Duration::from_millis(30)));
        let engine = memory(summarizer, 1).await;
        // The gate is opened behind the page: a page that waits for the summary would never come.
        let page = turn(&engine, &at(), &call()).await;
        assert!(said(&page).contains("CONTENT-0. line 59"), "it goes without");
        gate.open();
        let made = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
        assert!(matches!(made, Told::Made(_)), "{made:?}");
        assert!(said(&turn(&engine, &at(), &call()).await).contains("GIST-0."));
        assert_eq!(server.log().len(), 1, "what was begun for the first call was made for the second");
    });
}

fn settings_waiting(server: &Server, wait: Duration) -> Settings {
    Settings { wait, ..settings(server) }
}

#[test]
fn a_summarizer_that_never_answers_is_given_up_and_the_page_says_so() {
    // Time passes by itself wherever everybody waits: nobody answers, so each wait is over at once.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (server, gate) = (Server::start(), Gate::default());
        for _ in 0..3 {
            server.push(good(0).waiting_after(0, &gate));
        }
        let engine = memory(summarizer(&server), 1).await;
        let mut pages = Vec::new();
        for _ in 0..10 {
            pages.push(said(&turn(&engine, &at(), &call()).await));
            tokio::time::sleep(Duration::from_secs(300)).await;
        }
        assert!(pages[0].contains("line 59") && !pages[9].contains("line 59"));
        let noted = engine.noted(&at()).await.unwrap();
        let Note::Failed { why } = &noted[0].note else { panic!("{noted:?}") };
        assert_eq!((noted.len(), noted[0].attempts), (1, 3), "three times, and then never again");
        assert!(why.contains("no summary came within 120 s"), "{why}");
        gate.open();
    });
}

#[test]
fn what_no_page_needs_yet_is_made_behind_the_call() {
    block_on(async {
        let server = Server::start();
        server.push(good(0));
        let (summarizer, told) = telling(settings(&server));
        let engine = memory(summarizer, 1).await;
        let page = turn(&engine, &at(), &waiting()).await;
        assert!(said(&page).contains("CONTENT-0. line 59"), "nobody waits for it");
        let made = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
        assert!(matches!(made, Told::Made(_)), "{made:?}");
        // Once it is needed, it is there.
        assert!(said(&turn(&engine, &at(), &call()).await).contains("GIST-0."));
        assert_eq!(server.log().len(), 1);
    });
}

/// A call whose policy changes the past only when that pays.
fn waiting() -> Call {
    let mut policy = super::lab::policy();
    (policy.apply, policy.patience.start) = (recto::policy::Apply::WhenItPays, Tokens(0));
    Call { policy, ..call() }
}

#[test]
fn forks_share_what_was_made_of_the_words_that_they_share() {
    block_on(async {
        let server = Server::start();
        server.push(good(0));
        let engine = memory(summarizer(&server), 1).await;
        for name in ["one", "two"] {
            engine.fork(&at(), name, None).await.unwrap();
        }
        engine.fork(&fork("one"), "three", None).await.unwrap();
        for name in ["three", "one", "two"] {
            let page = turn(&engine, &fork(name), &call()).await;
            assert!(said(&page).contains("GIST-0."), "{name}: {}", said(&page));
        }
        assert!(said(&turn(&engine, &at(), &call()).await).contains("GIST-0."));
        assert_eq!(server.log().len(), 1, "four conversations, one summary");
        assert_eq!(engine.noted(&fork("three")).await.unwrap().len(), 1);
    });
}

fn fork(name: &str) -> At {
    At { conversation: name.into(), ..at() }
}

#[test]
fn a_summary_goes_with_the_words_that_it_is_of() {
    block_on(async {
        let server = Server::start();
        server.push(good(0));
        let engine = memory(summarizer(&server), 1).await;
        turn(&engine, &at(), &call()).await;
        engine.erase_entries(&at(), vec![Seq(2)]).await.unwrap();
        assert!(!format!("{:?}", engine.noted(&at()).await.unwrap()).contains("GIST-0."));
        for kind in [RecordKind::Note, RecordKind::Want] {
            let kept = engine.store().kept(&at().tenant, &at().conversation, kind).await.unwrap();
            assert!(!format!("{kept:?}").contains("GIST-0."), "{kept:?}");
        }
        assert!(!said(&turn(&engine, &at(), &call()).await).contains("GIST-0."));
    });
}

#[test]
fn a_summary_that_is_being_made_of_words_that_are_erased_meanwhile_is_not_kept() {
    block_on(async {
        let (server, gate) = (Server::start(), Gate::default());
        server.push(good(0).waiting_after(0, &gate));
        server.push(good(1));
        // One after the other: when the second is made, the first has come to its end.
        let settings = Settings { at_once: 1, ..settings_waiting(&server, Duration::from_millis(1)) };
        let (summarizer, told) = telling(settings);
        let engine = memory(summarizer, 2).await;
        turn(&engine, &at(), &call()).await;
        let reached = gate.clone();
        tokio::task::spawn_blocking(move || reached.reached()).await.unwrap();
        engine.erase_entries(&at(), vec![Seq(2)]).await.unwrap();
        gate.open();
        let made = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
        let Told::Made(second) = made else { panic!("{made:?}") };
        assert_eq!(second.note, Note::Made { text: "GIST-1.".into(), model: super::lab::MODEL.into() });
        let noted = format!("{:?}", engine.noted(&at()).await.unwrap());
        assert!(!noted.contains("GIST-0."), "{noted}");
    });
}

#[test]
fn a_client_that_sends_its_history_gets_summaries_too_and_the_next_call_knows_them() {
    block_on(async {
        let server = Server::start();
        server.push(good(0));
        let engine = memory(summarizer(&server), 1).await;
        let mut head = engine.conversation(&at()).await.unwrap().tally.head();
        for round in 0..4 {
            let saying =
                Saying { entries: vec![recto::Entry::user("And?")], behind: Behind::Head(head), links: Vec::new() };
            let Beginning::Made(begun) = engine.begin(&at(), saying, &call()).await.unwrap() else { panic!() };
            assert!(said(&begun.compiled).contains("GIST-0."), "{round}");
            let answer = Answer { entries: vec![recto::Entry::assistant("Yes.")], ..Answer::default() };
            head = engine.finish(begun, answer, "other".into()).await.unwrap().appended.last;
        }
        assert_eq!(server.log().len(), 1);
        let decisions = engine.decisions(&at(), &call().reader).await.unwrap();
        let condensed = decisions.iter().filter(|it| matches!(it.edit.why, Reason::Condensed { .. })).count();
        assert_eq!(condensed, 1, "{decisions:?}");
    });
}

#[test]
fn what_was_found_twice_is_summarized_once() {
    block_on(async {
        let server = Server::start();
        server.push(good(0));
        let engine = memory(summarizer(&server), 1).await;
        let twice = [
            recto::Entry::step("Once more.", [recto::entry::Call::new("again", "look", "{}")]),
            recto::Entry::result(recto::entry::CallId::from("again"), content(0)),
        ];
        engine.append(&at(), Append::any(twice)).await.unwrap();
        turn(&engine, &at(), &call()).await;
        let page = said(&turn(&engine, &at(), &call()).await);
        assert_eq!(page.matches("GIST-0.").count(), 2, "{page}");
        assert_eq!(server.log().len(), 1);
    });
}
