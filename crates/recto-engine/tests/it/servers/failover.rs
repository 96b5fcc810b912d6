//! A primary that is lost under load: what was acknowledged is on the standby that takes its place, once.

use super::crowd::Crowd;
use super::open;
use crate::child::{setting, tell};
use crate::engine::block_on;
use recto::entry::Part;
use recto::{Entry, Seq};
use recto_engine::store::postgres::{Doubts, Postgres};
use recto_engine::{Append, At, Engine, Opening, Tenant};
use recto_testkit::postgres::Cluster;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const ROUNDS: usize = 1;
const ROUNDS_LONG: usize = 10;
const PROCESSES: usize = 4;
const CALLERS: u64 = 4;
/// Fewer than callers, so that processes meet.
const CONVERSATIONS: u64 = 3;
const ENTRIES_MAX: u64 = 3;
/// Acknowledgements that each process gets before the primary is lost, and after.
const LINES: usize = 40;
/// After so many appends a caller stops by itself.
const APPENDS_MAX: u64 = 100_000;
const TRIES_MAX: usize = 100;
const PAGE_ROWS: usize = 1_000;
/// How long one try of a verb may take.
const WAIT_MS: u64 = 4_000;

/// What a process tells when an append that it can repeat has failed and may be there, and at its end.
const IN_DOUBT: &str = "in doubt";
const DOUBTS: &str = "doubts";
/// How many commits wait for a standby.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
/// Whether all that is on the primary's disk is on its way to the standbys.
const SENT: &str = "NOT EXISTS (SELECT FROM pg_stat_replication WHERE sent_lsn < pg_current_wal_flush_lsn())";
/// Whether a standby has read all that a lost primary has sent to it.
const ALL_READ: &str = "NOT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')";

/// How a primary is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    /// All at once.
    Killed,
    /// It falls silent first, and another takes its place while its connections are still open.
    Frozen,
    /// All at once, while a commit of every conversation waits for the standbys; they have received it, nobody has said
    /// so, and no other server takes its place before the callers have given up.
    InDoubt,
    /// The control: commits wait for nobody, and the standbys have heard nothing for a while.
    Unheard,
}

#[test]
fn a_killed_primary_loses_nothing_that_it_acknowledged() {
    check(Loss::Killed);
}

#[test]
fn a_primary_that_falls_silent_and_is_replaced_loses_nothing_that_it_acknowledged() {
    check(Loss::Frozen);
}

#[test]
fn a_commit_that_nobody_heard_of_is_there_once_when_it_is_repeated() {
    check(Loss::InDoubt);
}

#[test]
fn a_primary_whose_commits_wait_for_nobody_is_found_losing() {
    let found = fail_over(Loss::Unheard);
    assert!(found.lost > 0, "of {} appends none was lost", found.acknowledged);
    assert_eq!((found.gaps, found.duplicates, found.torn), (0, 0, 0), "what is left is whole: {found:?}");
}

fn check(loss: Loss) {
    let rounds = if std::env::var_os("RECTO_LONG").is_some() { ROUNDS_LONG } else { ROUNDS };
    for round in 0..rounds {
        let found = fail_over(loss);
        let Found { acknowledged, resolved, unknown, doubts: [unanswered, done, _], promoted_ms, back_ms, .. } = found;
        println!(
            "{loss:?}, round {round}: {acknowledged} acknowledged; {unanswered} commits not answered, {done} of them \
             found done by the store; {resolved} resolved by repeating, {unknown} unknown; a standby promoted after \
             {promoted_ms} ms, every process back after {back_ms} ms"
        );
        assert!(found.acknowledged > 2 * PROCESSES * LINES, "{found:?}");
        assert_eq!((found.lost, found.gaps, found.duplicates, found.torn), (0, 0, 0, 0), "{found:?}");
        if loss == Loss::InDoubt {
            let all = CONVERSATIONS as usize;
            assert_eq!((found.resolved, found.repeated), (all, all), "the standbys had them: {found:?}");
            assert_eq!((found.unknown, found.doubts[2]), (0, all), "{found:?}");
        }
    }
}

/// An engine on a database that fails; only for a parent that says where.
#[test]
fn child() {
    let (Some(store), Some(process)) = (setting("RECTO_FAILOVER_STORE"), setting("RECTO_FAILOVER_PROCESS")) else {
        return;
    };
    let keyed = setting("RECTO_FAILOVER_KEYED").map_or(2, |every| every.parse().unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        stopping.store(true, Ordering::Relaxed);
    });
    block_on(async {
        let store = open(&store).await;
        let engine = Engine::over(store.clone());
        let write = |caller| {
            let writer = Writer { engine: engine.clone(), process: process.parse().unwrap(), caller, keyed };
            tokio::spawn(writer.write(stop.clone()))
        };
        for caller in (0..CALLERS).map(write).collect::<Vec<_>>() {
            caller.await.unwrap();
        }
        let Doubts { unanswered, done, unknown, .. } = store.doubts();
        tell(&format!("{DOUBTS} {unanswered} {done} {unknown}"));
    });
}

/// One of the callers of a process.
struct Writer {
    engine: Engine<Postgres>,
    process: u64,
    caller: u64,
    /// Every so many appends have a key.
    keyed: u64,
}

impl Writer {
    /// Appends until it is told to stop, and tells what came of each: its places, or that nobody knows.
    async fn write(self, stop: Arc<AtomicBool>) {
        let Writer { engine, process, caller, .. } = &self;
        for number in (0..APPENDS_MAX).take_while(|_| !stop.load(Ordering::Relaxed)) {
            let append = self.made(number);
            let mut unknown = 0;
            for tries in 0.. {
                assert!(tries < TRIES_MAX, "nobody takes it");
                match engine.append(&conversation(*caller), append.clone()).await {
                    Ok(it) => {
                        let (first, last, repeated) =
                            (it.first.unwrap().0, it.last.unwrap().0, u8::from(it.is_repeated));
                        tell(&format!("{process} {caller} {number} {first} {last} {unknown} {repeated}"));
                        break;
                    }
                    Err(error) if error.is_indeterminate() && append.key.is_none() => {
                        tell(&format!("{process} {caller} {number} - - 1 0"));
                        break;
                    }
                    // With its key it can be repeated.
                    Err(error) if error.is_indeterminate() => {
                        unknown += 1;
                        tell(IN_DOUBT);
                    }
                    // Of what could not be reached, or was busy, nothing was written.
                    Err(error) => assert!(error.is_unreachable() || error.is_busy(), "{error}"),
                }
            }
        }
    }

    /// Returns an append; the same again for the same number.
    fn made(&self, number: u64) -> Append {
        let words = words(self.process, self.caller, number);
        let append = Append::any(words.into_iter().map(Entry::user).collect::<Vec<_>>());
        match number.is_multiple_of(self.keyed) {
            true => append.keyed(format!("{} {} {number}", self.process, self.caller)),
            false => append,
        }
    }
}

fn conversation(caller: u64) -> At {
    At::new(&Tenant::default(), format!("c{}", caller % CONVERSATIONS).as_str())
}

fn words(process: u64, caller: u64, number: u64) -> Vec<String> {
    let parts = 1 + (process + caller + number) % ENTRIES_MAX;
    (0..parts).map(|part| format!("{process} {caller} {number} {part} {parts}")).collect()
}

/// What became of what was said.
#[derive(Debug, Default)]
struct Found {
    /// Appends that were acknowledged.
    acknowledged: usize,
    /// Of these, those whose outcome was unknown before they were repeated.
    resolved: usize,
    /// And of these, those that were there already.
    repeated: usize,
    /// What the stores tell: commits that were not answered, found done, told to a caller as unknown.
    doubts: [usize; 3],
    /// Appends without a key whose outcome nobody knows.
    unknown: usize,
    /// Acknowledged, and not there, or not where it was said to be.
    lost: usize,
    /// Places without an entry.
    gaps: usize,
    /// Entries that are there twice.
    duplicates: usize,
    /// Appends of which only a part is there, or that nobody made.
    torn: usize,
    /// From the loss to the promotion of a standby, and to the next acknowledgements of each process.
    promoted_ms: u128,
    back_ms: u128,
}

/// Loses a primary under load, and returns what is wrong with the one that follows.
fn fail_over(loss: Loss) -> Found {
    let cluster = Cluster::start(2);
    if loss != Loss::Unheard {
        cluster.wait_for_any(0, &[1, 2]);
    }
    let address = format!("{}&sslmode=disable&connections=4&wait_ms={WAIT_MS}", cluster.url("postgres"));
    block_on(async {
        let engine = Engine::over(open(&address).await);
        for number in 0..CONVERSATIONS {
            engine.open(&conversation(number), Opening::default()).await.unwrap();
        }
    });
    // What is in doubt can be repeated if it has a key.
    let keyed = if loss == Loss::InDoubt { 1 } else { 2 };
    let settings = [("RECTO_FAILOVER_STORE", address), ("RECTO_FAILOVER_KEYED", keyed.to_string())];
    let mut crowd = Crowd::start("servers::failover::child", PROCESSES, "RECTO_FAILOVER_PROCESS", &settings);
    crowd.more(LINES);
    if matches!(loss, Loss::Unheard | Loss::InDoubt) {
        cluster.node(1).freeze();
        cluster.node(2).freeze();
    }
    match loss {
        Loss::Unheard => crowd.more(LINES),
        Loss::InDoubt => cluster.node(0).wait_until(&format!("({WAITING}) = {CONVERSATIONS} AND {SENT}")),
        Loss::Killed | Loss::Frozen => {}
    }
    let start = Instant::now();
    match loss {
        Loss::Frozen => cluster.node(0).freeze(),
        Loss::Killed | Loss::InDoubt | Loss::Unheard => cluster.node(0).kill(),
    }
    if loss == Loss::Unheard {
        let told = crowd.kill();
        // Thawed, it would still read what the system holds for it.
        cluster.node(1).restart();
        cluster.promote(1);
        return verify(&cluster, 1, &told);
    }
    if loss == Loss::InDoubt {
        crowd.until(|told| told.iter().flatten().filter(|line| *line == IN_DOUBT).count() >= CONVERSATIONS as usize);
        for standby in [1, 2] {
            cluster.node(standby).thaw();
            cluster.node(standby).wait_until(ALL_READ);
        }
    }
    let next = cluster.most_advanced(&[1, 2]);
    cluster.promote(next);
    let promoted_ms = start.elapsed().as_millis();
    cluster.follow(3 - next, next);
    cluster.wait_for_any(next, &[3 - next]);
    crowd.more(1);
    let back_ms = start.elapsed().as_millis();
    crowd.more(LINES);
    cluster.node(0).kill();
    crowd.more(LINES);
    crowd.say("stop");
    let told = crowd.end();
    Found { promoted_ms, back_ms, ..verify(&cluster, next, &told) }
}

/// An append of which something was told.
struct Told {
    words: Vec<String>,
    places: Option<(u64, u64)>,
}

fn read(line: &str, found: &mut Found) -> Told {
    let fields: Vec<&str> = line.split(' ').collect();
    let [process, caller, number, first, last, unknown, repeated] = fields[..] else {
        panic!("{line:?} tells nothing")
    };
    let number_of = |field: &str| field.parse::<u64>().unwrap();
    let places = first.parse().ok().zip(last.parse().ok());
    found.acknowledged += usize::from(places.is_some());
    found.unknown += usize::from(places.is_none());
    found.resolved += usize::from(places.is_some() && unknown != "0");
    found.repeated += usize::from(unknown != "0" && repeated != "0");
    Told { words: words(number_of(process), number_of(caller), number_of(number)), places }
}

fn verify(cluster: &Cluster, primary: usize, told: &[Vec<String>]) -> Found {
    let mut found = Found::default();
    let mut all: BTreeMap<String, Vec<Told>> = BTreeMap::new();
    for line in told.iter().flatten().filter(|line| *line != IN_DOUBT) {
        if let Some(doubts) = line.strip_prefix(DOUBTS) {
            let counts = doubts.split_whitespace().map(|count| count.parse::<usize>().unwrap());
            found.doubts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            continue;
        }
        let told = read(line, &mut found);
        let caller = told.words[0].split(' ').nth(1).unwrap().parse().unwrap();
        all.entry(conversation(caller).conversation.to_string()).or_default().push(told);
    }
    block_on(async {
        let address = format!("{}?sslmode=disable", cluster.node(primary).url("postgres"));
        let engine = Engine::over(open(&address).await);
        for number in 0..CONVERSATIONS {
            let at = conversation(number);
            let said = said(&engine, &at, &mut found).await;
            compare(&said, all.get(at.conversation.as_str()).map_or(&[], Vec::as_slice), &mut found);
        }
    });
    found
}

/// Returns what a conversation says, in order, and counts places without an entry.
async fn said(engine: &Engine<Postgres>, at: &At, found: &mut Found) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    loop {
        let page = engine.read(at, Seq(said.len() as u64), PAGE_ROWS).await.unwrap();
        for entry in &page {
            found.gaps += usize::from(entry.seq.0 != said.len() as u64);
            let [Part::Text { text }] = &entry.original().parts[..] else { panic!("{entry:?}") };
            said.push(text.to_string());
        }
        if page.len() < PAGE_ROWS {
            let tally = engine.conversation(at).await.unwrap().tally;
            assert_eq!(tally.sums().entries, said.len() as u64, "the head knows what is there");
            return said;
        }
    }
}

fn compare(said: &[String], told: &[Told], found: &mut Found) {
    let mut places: BTreeMap<&str, u64> = BTreeMap::new();
    for (place, text) in (0..).zip(said) {
        found.duplicates += usize::from(places.insert(text, place).is_some());
    }
    for it in told {
        let there: Vec<u64> = it.words.iter().filter_map(|words| places.get(&**words)).copied().collect();
        let is_whole = there.len() == it.words.len() && there.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let is_told = it.places == there.first().copied().zip(there.last().copied());
        found.torn += usize::from(!there.is_empty() && !is_whole);
        found.lost += usize::from(it.places.is_some() && !(is_whole && is_told));
    }
}
