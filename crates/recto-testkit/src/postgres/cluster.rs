//! A primary and its standbys, each of which holds all that was acknowledged, or may.

use super::{FIRST_DATABASE, Folder, Server, USER, broken, run};
use std::process::Command;

/// A primary whose commits are streamed to standbys.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Starts a primary, node 0, and standbys, numbered from 1. Commits wait for nobody until
    /// [`Self::wait_for_any`] says so.
    pub fn start(standbys: usize) -> Cluster {
        let primary = Server::start(&[]);
        let standbys: Vec<Server> = (1..=standbys).map(|number| standby(&primary, number)).collect();
        let nodes = std::iter::once(primary).chain(standbys).collect();
        let cluster = Cluster { nodes };
        cluster.wait_for_streams(0, cluster.nodes.len() - 1);
        cluster
    }

    /// Returns a node.
    pub fn node(&self, number: usize) -> &Server {
        &self.nodes[number]
    }

    /// Lets commits of a primary wait until any one of these standbys has them.
    pub fn wait_for_any(&self, primary: usize, standbys: &[usize]) {
        let names: Vec<String> = standbys.iter().map(|number| name(*number)).collect();
        let node = self.node(primary);
        configure(node, "synchronous_standby_names", &format!("ANY 1 ({})", names.join(", ")));
        let quorum = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'";
        node.wait_until(&format!("({quorum}) = {}", standbys.len()));
    }

    /// Returns the URL of a database in any node that takes writes; see [`Server::database`].
    pub fn url(&self, database: &str) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(Server::address).collect();
        format!("postgres://{USER}@{}/{database}?target_session_attrs=read-write", addresses.join(","))
    }

    /// Returns which of these standbys has received most; it has everything that one of them has.
    pub fn most_advanced(&self, standbys: &[usize]) -> usize {
        let received = |number: &usize| {
            let sql = "SELECT pg_wal_lsn_diff(coalesce(pg_last_wal_receive_lsn(), '0/0'), '0/0')";
            self.node(*number).query(FIRST_DATABASE, sql).parse::<u64>().expect("a place in the log is a number")
        };
        standbys.iter().copied().max_by_key(received).unwrap_or_else(|| broken("there is nobody to promote"))
    }

    /// Makes a standby the primary, and returns once it takes writes.
    pub fn promote(&self, standby: usize) {
        self.node(standby).query(FIRST_DATABASE, "SELECT pg_promote(true, 60)");
        self.node(standby).wait_until("NOT pg_is_in_recovery()");
    }

    /// Lets a standby follow another primary.
    pub fn follow(&self, standby: usize, primary: usize) {
        configure(self.node(standby), "primary_conninfo", &connection(self.node(primary), standby));
        self.wait_for_streams(primary, 1);
    }

    fn wait_for_streams(&self, primary: usize, standbys: usize) {
        let streams = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        self.node(primary).wait_until(&format!("({streams}) = {standbys}"));
    }
}

fn standby(primary: &Server, number: usize) -> Server {
    let binaries = primary.binaries.clone();
    let folder = Folder::new(&binaries);
    let data = folder.data();
    let mut copy: Command = binaries.as_user(binaries.path("pg_basebackup"));
    copy.args(["-d", &primary.url(FIRST_DATABASE), "-X", "stream", "-c", "fast", "--no-sync", "-D"]).arg(&data);
    run(copy.current_dir(&folder.0));
    std::fs::write(data.join("standby.signal"), "").expect("a file can be written there");
    let settings = format!("\nprimary_conninfo = '{}'\n", connection(primary, number));
    let mut file =
        std::fs::OpenOptions::new().append(true).open(data.join("postgresql.auto.conf")).expect("it is there");
    std::io::Write::write_all(&mut file, settings.as_bytes()).expect("a file can be written there");
    Server::in_folder(binaries, folder, &[])
}

/// Changes a setting of a server that runs.
fn configure(server: &Server, setting: &str, value: &str) {
    server.query(FIRST_DATABASE, &format!("ALTER SYSTEM SET {setting} = '{value}'"));
    server.query(FIRST_DATABASE, "SELECT pg_reload_conf()");
}

fn connection(primary: &Server, standby: usize) -> String {
    format!("host=127.0.0.1 port={} user={USER} application_name={}", primary.port, name(standby))
}

fn name(standby: usize) -> String {
    format!("standby_{standby}")
}
