//! What one server erases is gone for all: no table holds a row of it, and nobody who comes late brings it back.

use super::{address, open};
use crate::engine::block_on;
use crate::summaries::lab;
use recto::{Entry, Seq};
use recto_engine::store::LARGE_BYTES_MIN;
use recto_engine::store::postgres::Postgres;
use recto_engine::{Answer, Append, At, Engine, Forks, Opening, Tenant};
use recto_testkit::postgres::Server;

const SECRET: &str = "XYLOPHONE";
const WRITERS: usize = 4;
const APPENDS_MAX: usize = 100_000;

fn at(name: &str) -> At {
    At::new(&Tenant::default(), name)
}

/// Returns the tables in which a row has some words in it, with the number of such rows.
fn holding(address: &str, words: &str) -> Vec<(String, u64)> {
    let database = address.split('?').next().unwrap();
    let query = |sql: &str| Server::shared().query(database, sql);
    let tables = query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'recto' ORDER BY 1");
    assert!(tables.lines().count() > 10, "{tables}");
    let count = |table: &str| {
        let count = query(&format!("SELECT count(*) FROM recto.{table} it WHERE it::TEXT LIKE '%{words}%'"));
        (table.to_string(), count.parse().unwrap())
    };
    tables.lines().map(count).filter(|(_, count)| *count > 0).collect()
}

/// A conversation that has rows in as many tables as one can have, all by its first server.
async fn lived(engine: &Engine<Postgres>, name: &str) {
    let opening = Opening { title: format!("{SECRET} title"), ..Opening::default() };
    engine.open(&at(name), opening).await.unwrap();
    let long = format!("{SECRET} {}", "lorem ipsum ".repeat(LARGE_BYTES_MIN / 10));
    let entries = vec![Entry::user(format!("{SECRET} one")), Entry::user(long), Entry::user("three")];
    engine.append(&at(name), Append::any(entries).keyed(format!("{SECRET} key"))).await.unwrap();
    for _ in 0..3 {
        let compiled = engine.compile(&at(name), &lab::call()).await.unwrap();
        let answer = Answer { entries: vec![Entry::assistant(format!("{SECRET} answer"))], ..Answer::default() };
        engine.acknowledge(&at(name), &compiled.receipt.ticket, answer).await.unwrap();
    }
    engine.pin(&at(name), &"main".into(), recto::Span { first: Seq(0), last: Seq(1) }).await.unwrap();
}

#[test]
fn an_erased_conversation_leaves_its_name_in_one_table_and_no_word_in_any() {
    block_on(async {
        let address = address();
        let [one, other] = [Engine::over(open(&address).await), Engine::over(open(&address).await)];
        lived(&one, "gone").await;
        lived(&one, "kept").await;
        let before = holding(&address, "gone");
        assert!(before.len() >= 7, "what is not there can't be seen to go: {before:?}");
        assert!(holding(&address, SECRET).iter().any(|(table, _)| table == "content"), "also what is kept apart");
        // The other server has it in its memory, and a call under way.
        let late = other.compile(&at("gone"), &lab::call()).await.unwrap();
        one.erase(&at("gone"), Forks::Refuse).await.unwrap();
        assert_eq!(holding(&address, "gone"), [("conversation".to_string(), 1)]);
        check_late(&other, &late.receipt.ticket).await;
        assert_eq!(holding(&address, "gone"), [("conversation".to_string(), 1)]);
        one.erase(&at("kept"), Forks::Refuse).await.unwrap();
        assert_eq!(holding(&address, SECRET), [], "no word is left anywhere");
    });
}

async fn check_late(other: &Engine<Postgres>, ticket: &recto::receipt::Ticket) {
    let words = || Append::any([Entry::user(format!("{SECRET} late"))]);
    let refused = [
        other.append(&at("gone"), words()).await.unwrap_err(),
        other.append(&at("gone"), words().keyed("late")).await.unwrap_err(),
        other.acknowledge(&at("gone"), ticket, Answer::default()).await.unwrap_err(),
        other.compile(&at("gone"), &lab::call()).await.unwrap_err(),
        other.pin(&at("gone"), &"main".into(), recto::Span { first: Seq(0), last: Seq(0) }).await.unwrap_err(),
        other.fork(&at("gone"), "fork", None).await.unwrap_err(),
    ];
    for error in refused {
        assert!(error.is_erased(), "{error}");
    }
    let again = other.open(&at("gone"), Opening::default()).await.unwrap_err();
    assert!(again.is_exists(), "{again}");
}

#[test]
fn writers_that_are_at_it_when_another_server_erases_leave_nothing() {
    block_on(async {
        let address = address();
        let [one, other] = [Engine::over(open(&address).await), Engine::over(open(&address).await)];
        one.open(&at("gone"), Opening::default()).await.unwrap();
        let write = |writer: usize| {
            let engine = other.clone();
            tokio::spawn(async move {
                for number in 0..APPENDS_MAX {
                    let append = Append::any([Entry::user(format!("{SECRET} {writer} {number}"))]);
                    if let Err(error) = engine.append(&at("gone"), append).await {
                        assert!(error.is_erased(), "{error}");
                        return number;
                    }
                }
                panic!("it was not erased");
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        while one.conversation(&at("gone")).await.unwrap().tally.sums().entries < 40 {}
        one.erase(&at("gone"), Forks::Refuse).await.unwrap();
        let mut appended = 0;
        for writer in writers {
            appended += writer.await.unwrap();
        }
        assert!(appended >= 40, "they were at it");
        assert_eq!(holding(&address, SECRET), []);
        assert_eq!(holding(&address, "gone"), [("conversation".to_string(), 1)]);
    });
}
