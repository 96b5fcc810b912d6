//! What the store costs over plain SQL in PostgreSQL, as ratios within one run: `cargo bench -p recto-engine --bench
//! postgres` prints them and fails if one is out of bounds.
//!
//! Both do the same in tables of the same shape, in short rounds that alternate, and each round is compared with its
//! neighbour, so that what else the machine does meets both: an append locks the conversation's row, looks
//! whether its key is known, inserts three entries of about a thousand bytes and the key, and moves the head; a window is
//! the newest hundred entries. The plain side has a connection for each caller and prepares its statements once. So does
//! the store, from its pool, with `prepared=yes`; that is what is compared. What it costs to prepare nothing, so that a
//! pooler may stand between, is told as well. The server is a real one, and its commits wait for the disk.

use recto::digest::Digest;
use recto::entry::Millis;
use recto::{Entry, Tokens};
use recto_engine::store::postgres::Postgres;
use recto_engine::store::{Back, Batch, Expect, NewConversation, NewRow};
use recto_engine::{ConversationId, Store, Tenant};
use recto_testkit::postgres::Server;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls, Statement};

const ROUNDS: usize = 41;
const CALLERS: usize = 8;
/// Appends, and windows that are read, in a round; by all callers together.
const APPENDS: usize = 24;
const READS: usize = 48;
const WINDOW: usize = 100;
const ENTRIES: usize = 3;
/// Turns that each conversation has before windows are read.
const TURNS: usize = 400;

const RATIO_MIN: f64 = 0.6;
/// Without prepared statements, whose price this is; lower, something else has become dear.
const UNPREPARED_RATIO_MIN: f64 = 0.4;

const TABLES: &str = "
    CREATE SCHEMA plain;
    CREATE TABLE plain.conversation (LIKE recto.conversation INCLUDING ALL);
    CREATE TABLE plain.entry (LIKE recto.entry INCLUDING ALL);
    CREATE TABLE plain.append_key (LIKE recto.append_key INCLUDING ALL);
    INSERT INTO plain.conversation SELECT * FROM recto.conversation;
    INSERT INTO plain.entry SELECT * FROM recto.entry";
const LOCK: &str = "
    SELECT version, seq, tally FROM plain.conversation WHERE tenant = $1 AND conversation = $2 FOR UPDATE";
const KNOWN: &str = "
    SELECT hash, first, last FROM plain.append_key WHERE tenant = $1 AND conversation = $2 AND key = $3";
const PUT: &str = "
    INSERT INTO plain.entry (tenant, conversation, seq, strand, cost, tally, erased, hash, bytes, large, body, counts)
    SELECT $1, $2, e.* FROM unnest($3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::BIGINT[], $8::BYTEA[],
        $9::BIGINT[], $10::BYTEA[], $11::TEXT[], $12::TEXT[]) AS e";
const PUT_KEY: &str = "
    INSERT INTO plain.append_key (tenant, conversation, key, hash, first, last) VALUES ($1, $2, $3, $4, $5, $6)";
const PUT_HEAD: &str = "
    UPDATE plain.conversation SET version = $3, seq = $4, tally = $5, updated = $6
    WHERE tenant = $1 AND conversation = $2";
const BACK: &str = "
    SELECT seq, strand, tally, cost, hash, bytes, large, erased, body, counts FROM plain.entry
    WHERE tenant = $1 AND conversation = $2 ORDER BY seq DESC LIMIT $3";

/// A figure, and whether it is within bounds.
struct Figure {
    text: String,
    is_met: bool,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is there to print")]
fn main() {
    let server = Server::start(&[("fsync", "on"), ("full_page_writes", "on")]);
    let database = server.database();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let figures = runtime.block_on(async {
        let store = open(&database, "yes").await;
        filled(&store).await;
        let pooled = open(&database, "no").await;
        let plain = plain(&database).await;
        let mut figures = Vec::new();
        for (kind, ratio_min, store) in [("", RATIO_MIN, &store), ("prepared=no: ", UNPREPARED_RATIO_MIN, &pooled)] {
            for callers in [1, CALLERS] {
                let sides = Sides { kind, ratio_min, store, plain: &plain };
                figures.push(compare("appends", callers, APPENDS, &sides, Work::Append).await);
                figures.push(compare("windows", callers, READS, &sides, Work::Window).await);
            }
        }
        figures
    });
    figures.iter().for_each(|figure| println!("{}", figure.text));
    if figures.iter().any(|figure| !figure.is_met) {
        eprintln!("out of bounds");
        std::process::exit(1);
    }
}

#[derive(Clone, Copy)]
enum Work {
    Append,
    Window,
}

/// A store, how much of plain SQL it must reach, and that.
struct Sides<'a> {
    kind: &'static str,
    ratio_min: f64,
    store: &'a Postgres,
    plain: &'a [std::sync::Arc<Plain>],
}

/// Lets callers do the same work over the store and in plain SQL, each on a conversation of its own.
async fn compare(
    what: &str,
    callers: usize,
    work_of_all: usize,
    &Sides { kind, ratio_min, store, plain }: &Sides<'_>,
    work: Work,
) -> Figure {
    // The same store may be compared twice, and every append has a key of its own.
    static COMPARED: AtomicU64 = AtomicU64::new(0);
    let key = COMPARED.fetch_add(1, Ordering::Relaxed);
    let each = work_of_all / callers;
    let (mut rates, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 0..ROUNDS {
        // Neither always comes second.
        for side in [round % 2, 1 - round % 2] {
            let start = Instant::now();
            let tasks = (0..callers).map(|caller| {
                let (store, plain) = (store.clone(), plain[caller].clone());
                tokio::spawn(async move {
                    let mut took = Vec::with_capacity(each);
                    for number in 0..each {
                        let key = format!("{key} {round} {callers} {number}");
                        let start = Instant::now();
                        match (work, side) {
                            (Work::Append, 0) => append(&store, caller, &key).await,
                            (Work::Append, _) => plain.append(caller, &key).await,
                            (Work::Window, 0) => window(&store, caller).await,
                            (Work::Window, _) => plain.window(caller).await,
                        }
                        took.push(start.elapsed().as_secs_f64());
                    }
                    took
                })
            });
            rates[side].push(rate(tasks.collect(), callers * each, start).await);
        }
        ratios.push(rates[0][round] / rates[1][round]);
    }
    let [over, under] = rates.map(|mut rates| median_of(&mut rates));
    let ratio = median_of(&mut ratios);
    let text = format!(
        "{kind}{what}, {callers} callers: {ratio:.2} of plain SQL, at least {ratio_min} ({over:.0}/s, {under:.0}/s)"
    );
    Figure { text, is_met: ratio >= ratio_min }
}

/// Returns how much callers have done in a second. That of one caller is told by its median piece of work: where others
/// use the machine too, it often waits for its turn, and that says nothing about either side.
async fn rate(tasks: Vec<tokio::task::JoinHandle<Vec<f64>>>, count: usize, start: Instant) -> f64 {
    let is_alone = tasks.len() == 1;
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await.expect("a caller finishes"));
    }
    if is_alone {
        return 1.0 / median_of(&mut took);
    }
    count as f64 / start.elapsed().max(Duration::from_nanos(1)).as_secs_f64()
}

fn name(caller: usize) -> ConversationId {
    format!("c{caller}").as_str().into()
}

fn rows(key: &str) -> Vec<NewRow> {
    let row = |number: usize| {
        let entry = Entry::user(format!("{key} {number} {}", "lorem ipsum ".repeat(80)));
        let body = serde_json::to_string(&entry).expect("an entry can be written");
        let (hash, bytes) = (Digest::of(body.as_bytes()), body.len() as u64);
        let (counts, large) = (format!("[{bytes}]"), Vec::new());
        NewRow { seq: None, entry, cost: Tokens(bytes), counts, hash, bytes, body, large, is_erased: false }
    };
    (0..ENTRIES).map(row).collect()
}

async fn open(database: &str, prepared: &str) -> Postgres {
    let address = format!("{database}?sslmode=disable&connections={CALLERS}&prepared={prepared}");
    Postgres::open(address.parse().expect("it is well formed")).await.expect("it can be opened")
}

/// Makes conversations that have a past.
async fn filled(store: &Postgres) {
    for caller in 0..CALLERS {
        let (tokenizer, title, meta) = ("o200k_base".into(), "".into(), "{}".into());
        let new = NewConversation { id: name(caller), tokenizer, title, meta, at: Millis(0), from: None };
        store.create(&Tenant::default(), new).await.expect("it is new");
        for turn in 0..TURNS / 100 {
            let rows = (0..100).flat_map(|number| rows(&format!("past {turn} {number}"))).collect();
            let batch = Batch::new(Expect::Any, rows, Millis(0));
            store.append(&Tenant::default(), &name(caller), batch).await.expect("it is appended");
        }
    }
}

async fn append(store: &Postgres, caller: usize, key: &str) {
    let rows = rows(key);
    let hashes: String = rows.iter().map(|row| row.hash.to_string()).collect();
    let key = Some((key.into(), Digest::of(hashes.as_bytes())));
    let batch = Batch { key, ..Batch::new(Expect::Any, rows, Millis(0)) };
    let appended = store.append(&Tenant::default(), &name(caller), batch).await.expect("it is appended");
    assert!(!appended.is_repeated, "each has a key of its own");
}

async fn window(store: &Postgres, caller: usize) {
    let back = Back { strands: Vec::new(), below: None, rows: WINDOW, tokens: Tokens(u64::MAX) };
    let rows = store.back(&Tenant::default(), &name(caller), back).await.expect("it can be read");
    assert_eq!(rows.len(), WINDOW);
}

/// A caller's connection, with its statements.
struct Plain {
    client: Client,
    lock: Statement,
    known: Statement,
    put: Statement,
    put_key: Statement,
    put_head: Statement,
    back: Statement,
}

async fn plain(database: &str) -> Vec<std::sync::Arc<Plain>> {
    let mut all = Vec::new();
    for caller in 0..CALLERS {
        let (client, connection) = tokio_postgres::connect(database, NoTls).await.expect("the server runs");
        tokio::spawn(connection);
        if caller == 0 {
            client.batch_execute(TABLES).await.expect("tables can be made");
        }
        let prepare = async |sql| client.prepare(sql).await.expect("it is SQL");
        let (lock, known, put) = (prepare(LOCK).await, prepare(KNOWN).await, prepare(PUT).await);
        let (put_key, put_head, back) = (prepare(PUT_KEY).await, prepare(PUT_HEAD).await, prepare(BACK).await);
        all.push(std::sync::Arc::new(Plain { client, lock, known, put, put_key, put_head, back }));
    }
    all
}

impl Plain {
    async fn append(&self, caller: usize, key: &str) {
        let (tenant, name) = (Tenant::default(), name(caller));
        let (tenant, name) = (tenant.as_str(), name.as_str());
        let done = async {
            self.client.batch_execute("BEGIN").await?;
            let head = self.client.query_one(&self.lock, &[&tenant, &name]).await?;
            let (version, seq, tally): (i64, i64, String) = (head.get(0), head.get(1), head.get(2));
            let hash = Digest::of(key.as_bytes());
            let key = &hash.to_bytes()[..];
            assert!(self.client.query_opt(&self.known, &[&tenant, &name, &key]).await?.is_none());
            let rows = rows("plain");
            let seqs: Vec<i64> = (seq + 1..).take(rows.len()).collect();
            let last = seqs[rows.len() - 1];
            let (zeros, tallies) = (vec![0_i64; rows.len()], vec![tally.as_str(); rows.len()]);
            let costs: Vec<i64> = rows.iter().map(|row| row.cost.0 as i64).collect();
            let bodies: Vec<&str> = rows.iter().map(|row| row.body.as_str()).collect();
            let counts: Vec<&str> = rows.iter().map(|row| row.counts.as_str()).collect();
            let hashes: Vec<Vec<u8>> = rows.iter().map(|row| row.hash.to_bytes().to_vec()).collect();
            let large: Vec<&[u8]> = vec![&[]; rows.len()];
            self.client
                .execute(
                    &self.put,
                    &[
                        &tenant, &name, &seqs, &zeros, &costs, &tallies, &zeros, &hashes, &costs, &large, &bodies,
                        &counts,
                    ],
                )
                .await?;
            self.client.execute(&self.put_key, &[&tenant, &name, &key, &key, &seqs[0], &last]).await?;
            self.client.execute(&self.put_head, &[&tenant, &name, &(version + 1), &last, &tally, &0_i64]).await?;
            self.client.batch_execute("COMMIT").await
        };
        done.await.expect("it is appended");
    }

    async fn window(&self, caller: usize) {
        let (tenant, name) = (Tenant::default(), name(caller));
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&tenant.as_str(), &name.as_str(), &(WINDOW as i64)];
        let rows = self.client.query(&self.back, &values).await.expect("it can be read");
        let bodies: Vec<(i64, String, Vec<u8>, String)> =
            rows.iter().map(|row| (row.get(0), row.get(2), row.get(4), row.get(8))).collect();
        assert_eq!(bodies.len(), WINDOW);
    }
}

fn median_of(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
