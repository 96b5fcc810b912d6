//! The store in a database: named like a file, and filled from one.

use crate::import::Stored;
use crate::run::{command, fails, mentions, succeeds};
use recto::Entry;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Append, At, Engine, Opening, Tenant};
use recto_testkit::postgres::Server;
use std::process::Stdio;

const CONVERSATIONS: usize = 4;
const ENTRIES: usize = 700;

fn address() -> String {
    format!("{}?sslmode=disable", Server::shared().database())
}

#[test]
fn a_database_is_named_like_a_file_and_no_password_is_shown() {
    let (stored, store) = (Stored::with_chat(), address());
    let chat = stored.folder.at("chat.json");
    let ran = succeeds(&["import", &chat, "--store", &store]);
    mentions(&ran.stderr, &["store: postgres://recto@127.0.0.1:", "warning: PostgreSQL commits without waiting"]);
    let same = |args: &[&str]| {
        let here = succeeds(&[args, &["--store", &store]].concat()).stdout;
        assert_eq!(here, stored.run(args).stdout, "{args:?}");
    };
    same(&["show", "chat"]);
    same(&["compile", "chat", "--for", "gpt-4o"]);
    same(&["explain", "chat", "--for", "gpt-4o"]);
    let told = succeeds(&["doctor", "--store", &store]).stdout;
    mentions(&told, &["all is well", "entries"]);
    mentions(
        &fails(3, &["backup", "copy.db", "--store", &store]),
        &["`recto backup` is for stores in a file", "pg_dump"],
    );
    let secret = store.replacen("recto@", "recto:hunter2@", 1);
    for args in [["list", "--store", &secret], ["config", "--store", &secret]] {
        let ran = succeeds(&args);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("hunter2"), "{args:?}");
    }
    let gone = fails(1, &["list", "--store", "postgres://recto:hunter2@127.0.0.1:1/db?sslmode=disable&wait_ms=300"]);
    mentions(&gone, &["error[R0118]", "cannot open the store postgres://recto@127.0.0.1:1/db?schema=recto"]);
    assert!(!gone.contains("hunter2"), "{gone}");
}

/// Fills a store in a file with more than is carried in a moment.
fn filled(store: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::over(Sqlite::open(store).unwrap());
        for number in 0..CONVERSATIONS {
            let at = At::new(&Tenant::default(), format!("talk {number:02}"));
            engine.open(&at, Opening::default()).await.unwrap();
            let said: Vec<Entry> = (0..ENTRIES).map(|it| Entry::user(format!("word {it} of {number}"))).collect();
            engine.append(&at, Append::any(said)).await.unwrap();
        }
    });
}

#[test]
fn a_migration_that_is_killed_goes_on_and_ends_with_the_same() {
    let (stored, store) = (Stored::new(), address());
    filled(&stored.store);
    let from = format!("sqlite:{}", stored.store);
    let args = ["migrate", "--from", &from, "--to", &store];
    let mut killed = 0;
    for rows in [1, 800, 1_700] {
        let mut child = command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // It is killed once so much has arrived.
        let arrived = || {
            let sql = "SELECT count(*) FROM recto.entry";
            Server::shared().try_query(&store, sql).ok().and_then(|rows| rows.parse().ok()).unwrap_or(0)
        };
        while arrived() < rows && child.try_wait().unwrap().is_none() {}
        killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed > 0, "it was never killed in the middle");
    let ran = succeeds(&args);
    mentions(&ran.stderr, &["carried and compared"]);
    let ran = succeeds(&[&args[..], &["--json"]].concat());
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&told["conversations"], &told["known"]), (&0.into(), &CONVERSATIONS.into()));
    for number in 0..CONVERSATIONS {
        let name = format!("talk {number:02}");
        let there = succeeds(&["export", &name, "--store", &store]).stdout;
        assert!(there == stored.run(&["export", &name]).stdout, "{name}");
    }
    stored.run(&["erase", "talk 03", "--entries", "7", "--yes"]);
    mentions(&fails(3, &args), &["error[R0352]", "\"talk 03\" is there already, and is another one"]);
}
