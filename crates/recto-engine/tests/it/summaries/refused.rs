//! Answers that are no summaries: the beginning stays in their place, and that is told.

use super::lab::{at, call, content, memory, said, settings, telling, turn};
use crate::engine::block_on;
use recto::edit::Reason;
use recto::note::Note;
use recto_engine::engine::{Became, Begin};
use recto_engine::summarize::{Summarizer, Told};
use recto_testkit::fake::{Reply, Server};
use serde_json::json;

fn text(text: &str) -> Reply {
    Reply::default().text(text)
}

/// Makes pages until nothing waits any more, and returns the last one and why there is no summary.
async fn fallen_back(server: &Server, turns: usize) -> (String, String, Vec<Told>) {
    let (summarizer, told) = telling(settings(server));
    let engine = memory(summarizer, 1).await;
    let mut page = String::new();
    for _ in 0..turns {
        page = said(&turn(&engine, &at(), &call()).await);
    }
    let decisions = engine.decisions(&at(), &call().reader).await.unwrap();
    let why = decisions.iter().find_map(|it| match &it.edit.why {
        Reason::NotCondensed { why, .. } => Some(why.to_string()),
        _ => None,
    });
    (page, why.unwrap_or_default(), told.try_iter().collect())
}

#[test]
fn s26_answers_that_are_no_summaries_leave_the_beginning_and_say_why() {
    let long = content(0);
    let answers = [
        (text(""), "empty"),
        (text("  \n "), "empty"),
        (text("<!doctype html><html><body>Log in</body></html>"), "web page"),
        (text("Here is what I found: nothing."), "no JSON object"),
        (text(r#"{"text": "GIST-0."}"#), "another form"),
        (text(r#"{"summary": {"gist": "GIST-0."}}"#), "JSON in place of text"),
        (text(r#"{"summary": ""}"#), "empty"),
        (text(&json!({"summary": format!("{long}{long}")}).to_string()), "characters, its original"),
        (text(r#"{"summary": "I'm sorry, but I can't do that."}"#), "no summary"),
        (Reply::default().call("look", "{}"), "empty"),
    ];
    for (reply, reason) in answers {
        block_on(async {
            let server = Server::start();
            server.push(reply.clone());
            let (page, why, told) = fallen_back(&server, 2).await;
            assert!(page.contains("CONTENT-0. line 0") && !page.contains("line 59"), "{reason}: {page}");
            assert!(why.contains(reason), "{reason}: {why}");
            assert_eq!(server.log().len(), 1, "{reason}: to ask again would not help");
            assert!(matches!(&told[..], [Told::Failed(it)] if it.spent.calls == 1), "{reason}: {told:?}");
        });
    }
}

#[test]
fn a_provider_that_fails_is_asked_three_times_in_all_and_then_the_beginning_stays() {
    let refusal = json!({"error": {"message": "not today", "type": "server_error", "code": null}});
    for (reply, reason) in [
        (Reply::error(500, refusal.clone()), "not today"),
        (Reply::error(401, refusal), "not today"),
        (text(r#"{"summary": "GIST-0. and so on and on"}"#).broken_after(2), "broke off"),
        (text(r#"{"summary": "GIST-0. and so on and on"}"#).garbled_after(2), "can't be read"),
    ] {
        block_on(async {
            let server = Server::start();
            (0..3).for_each(|_| server.push(reply.clone()));
            let (page, why, told) = fallen_back(&server, 4).await;
            assert!(page.contains("CONTENT-0. line 0") && !page.contains("line 59"), "{reason}: {page}");
            assert!(why.contains(reason), "{reason}: {why}");
            assert_eq!(server.log().len(), 3, "{reason}");
            let kinds = [matches!(told[0], Told::Unmade { .. }), matches!(told[1], Told::Unmade { .. })];
            assert_eq!((kinds, told.len()), ([true, true], 3), "{told:?}");
            assert!(matches!(told[2], Told::Failed(_)), "{told:?}");
        });
    }
}

#[test]
fn x20_a_failure_leaves_log_and_decisions_as_they_were() {
    block_on(async {
        let server = Server::start();
        let refusal = json!({"error": {"message": "not today", "type": "server_error", "code": null}});
        server.push(Reply::error(500, refusal));
        let engine = memory(Summarizer::of(settings(&server)).unwrap(), 1).await;
        let before = engine.decisions(&at(), &call().reader).await.unwrap();
        let page = engine.compile(&at(), &call()).await.unwrap();
        assert!(said(&page).contains("line 59"), "it stays as it is");
        assert_eq!(engine.decisions(&at(), &call().reader).await.unwrap(), before);
        assert_eq!(server.log().len(), 1);
    });
}

#[test]
fn what_has_failed_is_made_by_hand_if_somebody_says_so() {
    block_on(async {
        let server = Server::start();
        server.push(text("no"));
        let engine = memory(Summarizer::of(settings(&server)).unwrap(), 1).await;
        let wants = engine.wants(&at(), &call()).await.unwrap();
        let first = engine.summarize(&at(), &call(), &wants[0], Begin::New).await.unwrap();
        assert!(matches!(&first, Became::Noted(it) if matches!(it.note, Note::Failed { .. })), "{first:?}");
        let again = engine.summarize(&at(), &call(), &wants[0], Begin::New).await.unwrap();
        assert!(matches!(again, Became::Known(_)), "{again:?}");
        server.push(super::lab::good(0));
        let made = engine.summarize(&at(), &call(), &wants[0], Begin::Failed).await.unwrap();
        assert!(matches!(&made, Became::Noted(it) if matches!(it.note, Note::Made { .. })), "{made:?}");
        assert!(said(&turn(&engine, &at(), &call()).await).contains("GIST-0."));
        assert_eq!(server.log().len(), 2);
    });
}
