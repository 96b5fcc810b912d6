//! A pooler before a server: PgBouncer in transaction mode, which gives each transaction a connection of its own choice.
//!
//! It keeps several connections to the server and takes them in turn, so that two transactions of a client rarely meet the
//! same one. Whoever leaves something behind in a connection finds it missing, or finds somebody else's.

use super::{Folder, Program, Running, Server, USER, broken, on_free_port};
use std::path::PathBuf;

/// Connections to the server, for each database.
const CONNECTIONS: usize = 3;
/// Where Debian keeps it; not everybody looks there for programs.
const FOLDER: &str = "/usr/sbin";
const READY: &str = "process up: PgBouncer";

/// PgBouncer, stopped and removed when it is dropped.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    running: Option<Running>,
    /// Removed last.
    _folder: Folder,
}

impl Pooler {
    /// Starts one before a server, for all its databases.
    pub fn before(server: &Server) -> Pooler {
        let folder = Folder::new(&server.binaries);
        let file = folder.0.join("pgbouncer.ini");
        let mut port = 0;
        let running = on_free_port("PgBouncer", |free| {
            port = free;
            std::fs::write(&file, settings(server, port)).expect("a file can be written there");
            let command = vec![pgbouncer().into_os_string(), file.clone().into_os_string()];
            // What a shell starts in the background ignores QUIT unless it says otherwise.
            let program = Program { command, stopped_by: "TERM", ready: READY };
            Running::start(&server.binaries, &folder, program)
        });
        Pooler { port, running: Some(running), _folder: folder }
    }

    /// Returns the URL of a database behind it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}/{database}", self.address())
    }

    /// Returns where it listens.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}

fn settings(server: &Server, port: u16) -> String {
    format!(
        "[databases]\n* = host=127.0.0.1 port={server} user={USER}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
         listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
         default_pool_size = {CONNECTIONS}\nmin_pool_size = {CONNECTIONS}\nserver_round_robin = 1\n\
         max_client_conn = 500\nlog_connections = 0\nlog_disconnections = 0\n",
        server = server.port
    )
}

fn pgbouncer() -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&paths).chain([PathBuf::from(FOLDER)]);
    let found = folders.map(|folder| folder.join("pgbouncer")).find(|file| file.is_file());
    found.unwrap_or_else(|| broken("PgBouncer is missing: install the package `pgbouncer`, as scripts/test does"))
}
