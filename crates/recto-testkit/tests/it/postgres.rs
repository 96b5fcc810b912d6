//! The servers that other tests stand on can be frozen, killed and replaced, and leave nothing behind.

use recto_testkit::postgres::{Cluster, Server};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

const TABLE: &str = "CREATE TABLE said (word TEXT PRIMARY KEY)";

fn say(word: &str) -> String {
    format!("INSERT INTO said VALUES ('{word}')")
}

#[test]
fn every_test_has_a_database_of_its_own_that_sorts_like_a_language() {
    let [one, other] = [(), ()].map(|()| Server::shared().database());
    Server::shared().query(&one, TABLE);
    assert!(Server::shared().try_query(&other, "SELECT * FROM said").is_err());
    let sorted = "SELECT string_agg(it, ' ' ORDER BY it) FROM unnest(ARRAY['b', 'A', 'a', 'B']) it";
    assert_eq!(Server::shared().query(&one, sorted), "a A b B");
}

#[test]
fn a_server_that_was_killed_starts_again_with_what_was_committed() {
    let server = Server::start(&[]);
    let database = server.database();
    server.query(&database, TABLE);
    server.query(&database, &say("before"));
    server.kill();
    assert!(server.try_query(&database, "SELECT 1").is_err());
    server.restart();
    assert_eq!(server.query(&database, "SELECT word FROM said"), "before");
}

#[test]
fn commits_wait_for_any_standby_and_a_promoted_one_has_them() {
    let cluster = Cluster::start(2);
    cluster.wait_for_any(0, &[1, 2]);
    cluster.node(0).query("postgres", TABLE);
    cluster.node(1).freeze();
    cluster.node(0).query("postgres", &say("one standby is enough"));
    cluster.node(2).freeze();
    std::thread::scope(|scope| {
        let alone = scope.spawn(|| cluster.node(0).try_query("postgres", &say("nobody else has it")));
        cluster.node(0).wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')");
        cluster.node(0).kill();
        alone.join().unwrap().expect_err("a commit that nobody else has is not acknowledged");
    });
    cluster.node(1).thaw();
    cluster.node(2).thaw();
    let best = cluster.most_advanced(&[1, 2]);
    cluster.promote(best);
    cluster.follow(3 - best, best);
    cluster.wait_for_any(best, &[3 - best]);
    let words = cluster.node(best).query(&cluster.url("postgres"), "SELECT word FROM said ORDER BY word");
    assert!(words.contains("one standby is enough"), "{words}");
    cluster.node(best).query(&cluster.url("postgres"), &say("and it goes on"));
}

#[test]
fn a_commit_that_waits_for_nobody_is_lost_with_its_primary() {
    let cluster = Cluster::start(1);
    cluster.node(0).query("postgres", TABLE);
    cluster.node(0).query("postgres", &say("early"));
    let caught_up = "(SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication)";
    cluster.node(0).wait_until(caught_up);
    cluster.node(1).freeze();
    cluster.node(0).query("postgres", &say("late"));
    cluster.node(0).kill();
    // Thawed, it would still read what the system holds for it.
    cluster.node(1).restart();
    cluster.promote(1);
    assert_eq!(cluster.node(1).query("postgres", "SELECT word FROM said"), "early");
}

/// Starts a server, tells where, and waits for its end; only for a parent that says so.
#[test]
fn child() {
    if std::env::var_os("RECTO_POSTGRES_CHILD").is_none() {
        return;
    }
    let folder = Server::shared().query("postgres", "SHOW data_directory");
    let process = Server::shared().query("postgres", "SELECT pg_backend_pid()");
    Server::shared().freeze();
    println!("\ntold: {process} {folder}");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_frozen_server_ends_with_a_process_that_was_killed() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["postgres::child", "--exact", "--nocapture"]).env("RECTO_POSTGRES_CHILD", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.find_map(|line| line.strip_prefix("told: ").map(str::to_owned)).unwrap();
    let folder = Path::new(told.split_once(' ').unwrap().1);
    let postmaster = std::fs::read_to_string(folder.join("postmaster.pid")).unwrap();
    let postmaster = Path::new("/proc").join(postmaster.lines().next().unwrap());
    assert!(postmaster.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| !postmaster.exists() && !folder.parent().unwrap().exists());
}

/// Asks again and again, since the end of somebody else's child is told to nobody.
fn wait_until(condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed().as_secs() < 30, "waited in vain");
        std::thread::yield_now();
    }
}
