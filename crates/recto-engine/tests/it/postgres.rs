//! What is special about the store in PostgreSQL; everything else is in the contract.

mod carry;
mod cut;
mod lost;
pub(crate) mod pooled;
mod windows;

use crate::contract::make::*;
use crate::folder::TempFolder;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use recto::entry::Text;
use recto::event::Since;
use recto::{Entry, Seq};
use recto_engine::store::postgres::{Postgres, Settings, Warning};
use recto_engine::store::{Batch, Expect, Forks, Store};
use recto_engine::{Append, At, Engine, Error, Opening};
use recto_testkit::postgres::Server;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static DATABASE: OnceLock<String> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The tables that hold rows of conversations.
const TABLES: [&str; 12] = [
    "erasing",
    "written",
    "entry",
    "append_key",
    "content",
    "reader",
    "decision",
    "turn",
    "open_call",
    "record",
    "link",
    "conversation",
];

/// Returns the database of this process.
pub(crate) fn database() -> &'static str {
    DATABASE.get_or_init(|| Server::shared().database())
}

/// Returns where a new store may be made: the address of a schema of its own.
pub(crate) fn address() -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}?schema=test_{number}&sslmode=disable", database())
}

/// Returns where a new store may be made.
pub(crate) fn place() -> Settings {
    address().parse().expect("the address is well formed")
}

/// Opens a store outside of any runtime, or inside of one that doesn't wait.
pub(crate) fn open(settings: Settings) -> Result<Postgres, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    std::thread::spawn(move || runtime.block_on(Postgres::open(settings))).join().expect("opening does not panic")
}

/// Opens a new store.
pub(crate) fn opened() -> ((), Postgres) {
    ((), open(place()).expect("a new store can be opened"))
}

/// Opens a new store whose connections prepare their statements.
pub(crate) fn prepared() -> ((), Postgres) {
    let settings = format!("{}&prepared=yes", address()).parse().expect("the address is well formed");
    ((), open(settings).expect("a new store can be opened"))
}

/// Asks the database behind a store.
fn asked(store: &Postgres, sql: &str) -> String {
    let schema = store.settings().to_string();
    let schema = schema.rsplit('=').next().expect("it tells its schema");
    Server::shared().query(database(), &format!("SET search_path = {schema}; {sql}"))
}

#[tokio::test]
async fn texts_with_nul_come_back_as_they_were_wherever_they_stand() {
    let (_, store) = opened();
    let texts = ["a\0b", "\0", "\u{1}", "\u{1}\u{1}", "\u{1}\u{2}\0", "x\u{1}", "plain"];
    for text in texts {
        let mut row = user(text);
        (row.body, row.counts) = (format!("body {text}"), format!("counts {text}"));
        let large: Text = format!("{text}{}", text.repeat(20_000)).into();
        row.large = vec![(recto::digest::Digest::of(large.as_bytes()), large.clone())];
        store.make(new(text)).await;
        store.say(text, vec![row]).await;
        let rows = store.all(text).await;
        assert_eq!((&*rows[0].body, &*rows[0].counts), (&*format!("body {text}"), &*format!("counts {text}")));
        assert_eq!(rows[0].large[0].1, large);
        store.describe(&tenant(), &name(text), format!("about {text}").into(), "{}".into()).await.unwrap();
        assert_eq!(&*store.told(text).await.title, format!("about {text}"));
    }
    let mut names = texts.to_vec();
    names.sort_unstable();
    let listed: Vec<_> = store.list(&tenant(), None, 99).await.unwrap().into_iter().map(|it| it.id).collect();
    assert_eq!(listed, names.into_iter().map(name).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_erase_leaves_no_row_and_refuses_late_writers() {
    let (_, store) = opened();
    store.make(new("a")).await;
    store.say("a", vec![user("secret word"), long('s')]).await;
    store.create(&tenant(), fork("b", "a", Some(0))).await.unwrap();
    store.append(&tenant(), &name("b"), keyed("key", vec![user("secret too")])).await.unwrap();
    let beside = Postgres::open(store.settings().clone()).await.unwrap();
    store.erase(&tenant(), &name("a"), Forks::Erase).await.unwrap();
    for table in &TABLES[..11] {
        assert_eq!(asked(&store, &format!("SELECT count(*) FROM {table}")), "0", "{table}");
    }
    let left =
        asked(&store, "SELECT conversation, state, seq, tally, strands, title, meta FROM conversation ORDER BY 1");
    assert_eq!(left, "a|2|-1||||\nb|2|-1||||");
    let version = store.told("a").await.version;
    let late = Batch { version: Some(version), ..Batch::new(Expect::Any, vec![user("late")], NOW) };
    assert!(beside.append(&tenant(), &name("a"), late).await.unwrap_err().is_erased());
    assert_eq!(asked(&store, "SELECT count(*) FROM entry"), "0");
}

#[tokio::test]
async fn an_erase_that_broke_off_is_finished_when_the_store_is_opened() {
    let (_, store) = opened();
    store.make(new("a")).await;
    store.say("a", vec![user("one"), user("two")]).await;
    asked(
        &store,
        "UPDATE conversation SET state = 1; INSERT INTO erasing VALUES ('local', 'a'); DELETE FROM entry WHERE seq = 0",
    );
    Postgres::open(store.settings().clone()).await.unwrap();
    assert_eq!(asked(&store, "SELECT (SELECT count(*) FROM entry), (SELECT count(*) FROM erasing)"), "0|0");
    assert!(store.append(&tenant(), &name("a"), batch(vec![user("late")])).await.unwrap_err().is_erased());
}

#[tokio::test]
async fn servers_that_start_at_once_make_the_tables_once() {
    let settings = place();
    let mut starts = tokio::task::JoinSet::new();
    for number in 0..8 {
        let settings = settings.clone();
        starts.spawn(async move {
            let store = Postgres::open(settings).await.unwrap_or_else(|error| panic!("server {number}: {error}"));
            store.create(&tenant(), new(&format!("of {number}"))).await.unwrap();
            store
        });
    }
    let stores = starts.join_all().await;
    assert_eq!(stores[0].list(&tenant(), None, 99).await.unwrap().len(), 8);
    assert_eq!(asked(&stores[0], "SELECT count(*), max(version) FROM recto_store"), "1|2");
}

#[tokio::test]
async fn a_newer_schema_and_the_tables_of_others_are_refused() {
    let (_, store) = opened();
    asked(&store, "UPDATE recto_store SET version = 9999");
    let error = Postgres::open(store.settings().clone()).await.unwrap_err();
    assert!(error.is_newer(), "{error}");
    asked(&store, "UPDATE recto_store SET version = 1, application = 'another'");
    let error = Postgres::open(store.settings().clone()).await.unwrap_err();
    assert!(error.is_foreign(), "{error}");
    asked(&store, "DROP TABLE recto_store");
    let error = Postgres::open(store.settings().clone()).await.unwrap_err();
    assert!(error.is_foreign() && error.to_string().contains("none that says it is Recto's"), "{error}");
    // Tables of other names are nobody's business.
    let place = place();
    let schema = place.to_string();
    let schema = schema.rsplit('=').next().unwrap();
    Server::shared().query(database(), &format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.other (x BIGINT)"));
    Postgres::open(place).await.unwrap();
}

#[tokio::test]
async fn a_server_that_waits_for_nobody_is_warned_about() {
    let (_, store) = opened();
    assert!(matches!(store.warnings(), [Warning::Asynchronous { .. }, Warning::NoFsync]), "{:?}", store.warnings());
    let told = store.warnings()[0].to_string();
    assert!(told.contains("synchronous_standby_names = \"\""), "{told}");
}

#[tokio::test]
async fn a_subscriber_at_one_server_hears_what_is_said_at_another() {
    let (_, store) = opened();
    let [here, there] =
        [Engine::over(store.clone()), Engine::over(Postgres::open(store.settings().clone()).await.unwrap())];
    let at = At::new(&tenant(), "a");
    here.open(&at, Opening::default()).await.unwrap();
    let mut subscription = here.subscribe(&at, &reader(), Since::START, Duration::from_millis(5));
    let mut heard = 0;
    for number in 0..5 {
        there.append(&at, Append::any([Entry::user(format!("{number}"))])).await.unwrap();
        while heard <= number {
            heard += subscription.next().await.unwrap().len();
        }
    }
    assert_eq!(subscription.since().next, Seq(5));
}

#[tokio::test]
async fn passwords_are_never_shown() {
    for address in [
        "postgres://recto:hunter2@127.0.0.1:1/db?sslmode=disable&connect_timeout=1&wait_ms=200",
        "postgres://recto@127.0.0.1:1/db?sslmode=disable&password=hunter2&connect_timeout=1&wait_ms=200",
    ] {
        let settings: Settings = address.parse().unwrap();
        let told = format!("{settings} {settings:?}");
        let error = Postgres::open(settings).await.unwrap_err();
        let told = format!("{told} {error} {error:?} {:?}", error.hint());
        assert!(error.is_unreachable() && !told.contains("hunter2"), "{told}");
        assert!(told.contains("postgres://recto@127.0.0.1:1/db?schema=recto"), "{told}");
    }
    for odd in ["postgres://a:hunter2@h/db?hunter2=x", "postgres://a:hunt?er2=x@h/db", "postgres://a:hunter2@h:x/db"] {
        let told = match odd.parse::<Settings>() {
            Ok(settings) => settings.to_string(),
            Err(error) => format!("{error} {error:?} {:?}", error.hint()),
        };
        assert!(!told.contains("er2"), "{told}");
    }
}

#[tokio::test]
async fn who_waits_too_long_for_a_connection_or_a_lock_hears_that_the_store_is_busy() {
    let address = format!("{}&connections=1&wait_ms=400", address());
    let store = Postgres::open(address.parse().unwrap()).await.unwrap();
    store.make(new("a")).await;
    let schema = store.settings().to_string();
    let schema = schema.rsplit('=').next().unwrap().to_string();
    // Somebody else holds the conversation's row for a while, and one writer waits for it with the only connection.
    let hold = format!("BEGIN; SELECT 1 FROM {schema}.conversation FOR UPDATE; SELECT pg_sleep(3); ROLLBACK");
    let holder = std::thread::spawn(move || Server::shared().query(database(), &hold));
    let waits = "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%FOR UPDATE%')";
    tokio::task::spawn_blocking(|| Server::shared().wait_until(waits)).await.unwrap();
    let (here, there) = (tenant(), name("a"));
    let errors: Vec<Error> = refusals_of(4, || store.append(&here, &there, batch(vec![user("one")]))).await;
    assert!(errors.iter().all(|error| error.is_busy() && !error.is_indeterminate()), "{errors:?}");
    assert!(errors.iter().any(|error| error.to_string().contains("none of 1 connections")), "{errors:?}");
    tokio::task::spawn_blocking(|| holder.join()).await.unwrap().unwrap();
    assert_eq!(store.append(&here, &there, batch(vec![user("one")])).await.unwrap(), appended(0, 0));
}

/// Waits for several of the same at once, all of which must fail.
async fn refusals_of<T, F>(count: usize, work: impl Fn() -> F) -> Vec<Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut waiting: Vec<_> = (0..count).map(|_| Box::pin(work())).collect();
    let mut errors = Vec::new();
    std::future::poll_fn(|cx| {
        waiting.retain_mut(|it| match it.as_mut().poll(cx) {
            std::task::Poll::Ready(done) => {
                errors.extend(done.err());
                false
            }
            std::task::Poll::Pending => true,
        });
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!(errors.len(), count);
    errors
}

#[tokio::test]
async fn what_nobody_asks_for_any_more_is_let_go() {
    let (_, store) = opened();
    store.make(new("a")).await;
    for _ in 0..70 {
        store.append(&tenant(), &name("a"), batch(vec![user("x")])).await.unwrap();
    }
    assert_eq!(asked(&store, "SELECT count(*) FROM written"), "71");
    asked(&store, "UPDATE written SET at = 0");
    for _ in 0..64 {
        store.append(&tenant(), &name("a"), batch(vec![user("x")])).await.unwrap();
    }
    // At every 64th version those go that are older than 64 versions and old enough.
    assert_eq!(asked(&store, "SELECT count(*), min(version), max(version) FROM written"), "71|65|135");
    assert_eq!(store.told("a").await.tally.head(), Some(Seq(133)));
}

#[tokio::test]
async fn an_encrypted_connection_is_made_to_a_server_that_can_be_trusted_and_to_no_other() {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "an authority that nobody knows");
    let trusted = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let certificate = CertificateParams::new(["127.0.0.1".to_string()]).unwrap().signed_by(&key, &issuer).unwrap();
    let server = Server::start(&[]);
    let folder = server.query("postgres", "SHOW data_directory");
    // The server writes its key itself, so that it is its own.
    for (file, text) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
        let lines = format!("SELECT unnest(string_to_array('{}', E'\\n'))", text.trim());
        server.query("postgres", &format!("COPY ({lines}) TO '{folder}/{file}'"));
    }
    // It takes no key that others may read.
    std::fs::set_permissions(format!("{folder}/server.key"), Permissions::from_mode(0o600)).unwrap();
    server.query("postgres", "ALTER SYSTEM SET ssl = on");
    server.query("postgres", "SELECT pg_reload_conf()");
    server.wait_until("current_setting('ssl') = 'on'");
    let ours = TempFolder::new();
    let file = ours.file("authority.pem");
    std::fs::write(&file, trusted).unwrap();
    let address = format!("{}?sslmode=require", server.database());
    let encrypted: Settings = format!("{address}&sslrootcert={}", file.display()).parse().unwrap();
    let store = Postgres::open(encrypted).await.unwrap();
    store.make(new("a")).await;
    store.say("a", vec![long('x')]).await;
    assert_eq!(store.all("a").await.len(), 1);
    let secured = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'recto' AND ssl";
    assert_ne!(server.query("postgres", secured), "0");
    let error = Postgres::open(address.parse().unwrap()).await.unwrap_err();
    assert!(error.is_unreachable() && error.to_string().to_lowercase().contains("certificate"), "{error}");
}
