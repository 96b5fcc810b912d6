//! One summary for each content, over several servers on one file, some of which are killed while they wait for one.

use super::lab::{at, begin, call, good, said, settings, summarizer};
use crate::child::{Running, setting, tell};
use crate::engine::block_on;
use crate::folder::TempFolder;
use recto::note::Note;
use recto::wire::Wire;
use recto::{Seq, Target};
use recto_engine::Engine;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::summarize::{Noted, Settings, Summarizer};
use recto_engine::upstream::{Settings as Reached, Upstream};
use recto_testkit::fake::{Gate, Server};
use std::path::Path;

const SERVERS: usize = 4;
const CRASHES: usize = 3;
const CONTENTS: usize = 6;

/// A server on a file: makes the next page, and tells what it says.
#[test]
fn child() {
    let (Some(store), Some(url)) = (setting("RECTO_SUMMARY_STORE"), setting("RECTO_SUMMARY_URL")) else { return };
    block_on(async {
        let upstream = Upstream::of(Reached::new("fake", &url, Wire::OpenaiChat)).unwrap();
        let models = vec![Target::named(super::lab::MODEL).unwrap()];
        // One after the other, so that it is known which one a crash hits.
        let settings = Settings { at_once: 1, ..Settings::new(upstream, models) };
        let summarizer = Summarizer::of(settings).unwrap();
        let engine = Engine::over(Sqlite::open(store).unwrap()).with_summarizer(summarizer);
        let page = said(&engine.compile(&at(), &call()).await.unwrap());
        tell(&format!("{} {}", page.matches("GIST").count(), page.matches("line 59").count()));
    });
}

fn start(path: &Path, server: &Server) -> Running {
    let settings =
        [("RECTO_SUMMARY_STORE", path.display().to_string()), ("RECTO_SUMMARY_URL", format!("{}/v1", server.url()))];
    Running::start("summaries::once::child", &settings)
}

/// What is recorded: notes, decisions, and the number of entries.
fn recorded(path: &Path) -> (Vec<Noted>, usize, usize) {
    block_on(async {
        let engine = Engine::over(Sqlite::open(path).unwrap());
        let decisions = engine.decisions(&at(), &call().reader).await.unwrap().len();
        let entries = engine.read(&at(), Seq(0), 100).await.unwrap().len();
        (engine.noted(&at()).await.unwrap(), decisions, entries)
    })
}

#[test]
fn one_call_for_each_content_over_four_servers_and_three_crashes() {
    let (folder, server) = (TempFolder::new(), Server::start());
    let path = folder.file("store.db");
    block_on(async { begin(&Engine::over(Sqlite::open(&path).unwrap()), &at(), CONTENTS).await });
    let (_, decisions, entries) = recorded(&path);
    for crash in 0..CRASHES {
        // Each gets one further than the one before, and dies while it waits for the next.
        let gate = Gate::default();
        if crash > 0 {
            server.push(good(crash));
        }
        server.push(good(99).waiting_after(0, &gate));
        let running = start(&path, &server);
        gate.reached();
        assert!(running.kill().is_empty(), "it has told nothing yet");
        let (noted, after, there) = recorded(&path);
        assert_eq!(noted.len(), crash, "of what it was in the middle of nothing is recorded");
        assert!(noted.iter().all(|it| matches!(it.note, Note::Made { .. })), "{noted:?}");
        assert_eq!((after, there), (decisions, entries), "and nothing was decided or said");
    }
    (0..CONTENTS).for_each(|number| server.push(good(number)));
    let running: Vec<Running> = (0..SERVERS).map(|_| start(&path, &server)).collect();
    for mut server in running {
        assert_eq!(server.line().as_deref(), Some(&*format!("{CONTENTS} 0")), "all of it is summarized on its page");
        assert!(server.end());
    }
    let (noted, ..) = recorded(&path);
    assert_eq!(noted.len(), CONTENTS);
    assert!(!format!("{noted:?}").contains("GIST-99"), "what nobody heard is nowhere");
    let log = server.log();
    assert_eq!(log.len(), CONTENTS + CRASHES, "each content once, and once more where a crash was");
    for number in 0..CONTENTS {
        let mark = format!("CONTENT-{number}.");
        let calls = log.iter().filter(|it| String::from_utf8_lossy(&it.request.body).contains(&mark)).count();
        // The crashes have hit the first ones.
        assert_eq!(calls, if number < CRASHES { 2 } else { 1 }, "content {number}");
    }
    assert!(log.iter().all(|it| it.refusal.is_none()));
}

#[test]
fn a_summary_that_takes_down_whoever_makes_it_is_given_up_after_three_times() {
    let (folder, server) = (TempFolder::new(), Server::start());
    let path = folder.file("store.db");
    block_on(async { begin(&Engine::over(Sqlite::open(&path).unwrap()), &at(), 1).await });
    for _ in 0..3 {
        let gate = Gate::default();
        server.push(good(0).waiting_after(0, &gate));
        let running = start(&path, &server);
        gate.reached();
        running.kill();
    }
    let mut last = start(&path, &server);
    assert_eq!(last.line().as_deref(), Some("0 0"), "its beginning stands on the page");
    assert!(last.end());
    let (noted, ..) = recorded(&path);
    let Note::Failed { why } = &noted[0].note else { panic!("{noted:?}") };
    assert!(why.contains("begun 3 times, and never came to an end"), "{why}");
    assert_eq!(server.log().len(), 3);
}

#[test]
fn of_engines_in_one_process_one_asks_and_the_others_wait_for_it() {
    block_on(async {
        let (folder, server) = (TempFolder::new(), Server::start());
        let path = folder.file("store.db");
        begin(&Engine::over(Sqlite::open(&path).unwrap()), &at(), 1).await;
        let gate = Gate::default();
        server.push(good(0).waiting_after(0, &gate));
        let engine = || Engine::over(Sqlite::open(&path).unwrap()).with_summarizer(summarizer(&server));
        let pages: Vec<_> = (0..SERVERS)
            .map(|_| {
                let engine = engine();
                tokio::spawn(async move { said(&engine.compile(&at(), &call()).await.unwrap()) })
            })
            .collect();
        let reached = gate.clone();
        tokio::task::spawn_blocking(move || reached.reached()).await.unwrap();
        gate.open();
        for page in pages {
            assert!(page.await.unwrap().contains("GIST-0."));
        }
        assert_eq!(server.log().len(), 1);
        assert!(settings(&server).wait > std::time::Duration::from_secs(1), "they had time to wait");
    });
}
