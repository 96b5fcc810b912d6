//! Real servers of PostgreSQL for tests: each in a folder of its own, on a free port of the loopback, never as root.
//!
//! A server ends with the process that started it, however that ends: a watchdog waits for the end of a pipe, then stops
//! the server and removes its folder. Names are sorted by the rules of a language, so that nobody relies on the order of
//! bytes without saying so.

mod binaries; // where PostgreSQL is, and as whom it runs
mod cluster; // a primary and its standbys
mod pooler; // what hands out a server's connections for one transaction each
mod processes; // everything that belongs to a server, stopped or ended at once

pub use cluster::Cluster;
pub use pooler::Pooler;

use binaries::Binaries;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Another process may take the port that was free a moment ago.
const STARTS_MAX: usize = 5;
const START_MAX: Duration = Duration::from_secs(60);
const END_MAX: Duration = Duration::from_secs(30);
const LOG_LINES_MAX: usize = 60;
/// The only user, who may do everything.
const USER: &str = "recto";
/// What a server says once it takes connections.
const TAKES_CONNECTIONS: &str = "database system is ready to accept";
/// What exists in every new server.
const FIRST_DATABASE: &str = "postgres";

/// Fast, for data that nobody misses: the death of a process loses nothing of this, the death of a machine would.
const SETTINGS: [(&str, &str); 13] = [
    ("listen_addresses", "127.0.0.1"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("shared_buffers", "64MB"),
    ("max_connections", "200"),
    ("max_wal_senders", "8"),
    ("wal_level", "replica"),
    ("wal_keep_size", "512MB"),
    ("max_wal_size", "1GB"),
    ("hot_standby", "on"),
    // In its folder, and so removed with it.
    ("dynamic_shared_memory_type", "mmap"),
    ("lc_messages", "C"),
    ("logging_collector", "off"),
];

/// Runs a server until its own input ends or says `keep`; without that word the folder is removed.
/// A group that nobody's child leads any more is sent HUP by the system if some of it are stopped.
const WATCHDOG: &str = r#"
folder=$1 signal=$2; shift 2
trap '' HUP
"$@" </dev/null & server=$!
exec 2>/dev/null
read -r word
kill -$signal $server; kill -CONT $(cat /proc/$server/task/$server/children) $server
wait $server
[ "$word" = keep ] || rm -rf "$folder"
"#;

static NEXT: AtomicU64 = AtomicU64::new(0);
static SHARED: OnceLock<Server> = OnceLock::new();

/// A server of PostgreSQL, stopped and removed when it is dropped.
#[derive(Debug)]
pub struct Server {
    binaries: Binaries,
    folder: Folder,
    port: u16,
    settings: Vec<(String, String)>,
    running: Mutex<Option<Running>>,
}

impl Server {
    /// Returns the server that all tests of this process share; each takes a database of its own.
    pub fn shared() -> &'static Server {
        SHARED.get_or_init(|| Server::start(&[]))
    }

    /// Starts a new, empty server; these settings come after those for tests.
    pub fn start(settings: &[(&str, &str)]) -> Server {
        let binaries = Binaries::find();
        let folder = Folder::new(&binaries);
        binaries.copy_template(&folder.data());
        Server::in_folder(binaries, folder, settings)
    }

    fn in_folder(binaries: Binaries, folder: Folder, settings: &[(&str, &str)]) -> Server {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = SETTINGS.iter().chain(settings).map(owned).collect();
        let mut server = Server { binaries, folder, port: 0, settings, running: Mutex::new(None) };
        let running = on_free_port("PostgreSQL", |port| {
            server.port = port;
            server.run()
        });
        *server.running() = Some(running);
        server
    }

    fn run(&self) -> Result<Running, String> {
        let mut command = vec![self.binaries.path("postgres").into_os_string(), "-D".into()];
        command.extend([self.folder.data().into_os_string(), "-p".into(), self.port.to_string().into()]);
        command.extend(["-k".into(), self.folder.0.clone().into_os_string()]);
        for (name, value) in &self.settings {
            command.extend(["-c".into(), format!("{name}={value}").into()]);
        }
        let program = Program { command, stopped_by: "QUIT", ready: TAKES_CONNECTIONS };
        let mut running = Running::start(&self.binaries, &self.folder, program)?;
        running.postmaster = processes::postmaster(&self.folder.data());
        Ok(running)
    }

    /// Makes an empty database, and returns its URL.
    pub fn database(&self) -> String {
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.query(FIRST_DATABASE, &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Returns the URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}/{database}", self.address())
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Runs SQL in a database, by its name or URL, and returns the rows as lines, with `|` between fields.
    pub fn query(&self, database: &str, sql: &str) -> String {
        self.try_query(database, sql).unwrap_or_else(|error| broken(&format!("{sql}: {error}")))
    }

    /// Runs SQL like [`Self::query`], and returns what the server said against it.
    pub fn try_query(&self, database: &str, sql: &str) -> Result<String, String> {
        let url = if database.contains("://") { database.to_owned() } else { self.url(database) };
        let mut psql = Command::new(self.binaries.path("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", sql]);
        let out = psql.env("PGCONNECT_TIMEOUT", "30").output().expect("psql can be run");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if out.status.success() { Ok(text(out.stdout)) } else { Err(text(out.stderr)) }
    }

    /// Waits in the server until a condition holds there. What a transaction has once read of who is connected it
    /// doesn't read again unless it is told to.
    pub fn wait_until(&self, condition: &str) {
        let wait = format!(
            "DO $$ BEGIN FOR i IN 1..3000 LOOP IF ({condition}) THEN RETURN; END IF; \
             PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot(); END LOOP; \
             RAISE EXCEPTION 'waited in vain'; END $$"
        );
        self.query(FIRST_DATABASE, &wait);
    }

    /// Stops all its processes where they stand. Connections stay open, and nobody answers.
    pub fn freeze(&self) {
        processes::freeze(self.running().as_ref().expect("it runs").postmaster);
    }

    /// Lets it go on after a freeze.
    pub fn thaw(&self) {
        processes::thaw(self.running().as_ref().expect("it runs").postmaster);
    }

    /// Ends all its processes at once, frozen or not. Its folder stays.
    pub fn kill(&self) {
        if let Some(running) = self.running().take() {
            processes::kill(running.postmaster);
            running.log.wait_for_end();
            processes::remove_shared_memory(&self.folder.data());
            running.let_go();
        }
    }

    /// Starts it again after a kill, on the same port and with the same data.
    pub fn restart(&self) {
        self.kill();
        let running = self.run().unwrap_or_else(|log| broken(&format!("it did not start again:\n{log}")));
        *self.running() = Some(running);
    }

    /// Returns the newest lines that it logged.
    pub fn log(&self) -> String {
        self.running().as_ref().map(|it| it.log.text()).unwrap_or_default()
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        // A test that failed elsewhere doesn't keep anybody from stopping it.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running().take() {
            processes::thaw(running.postmaster);
            running.stop();
        }
    }
}

/// A folder that is gone when nobody needs it any more.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new(binaries: &Binaries) -> Folder {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("recto-postgres-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a temporary folder can be made");
        binaries.give(&folder);
        Folder(folder)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A program that listens somewhere.
struct Program {
    command: Vec<OsString>,
    /// The signal that ends it at once.
    stopped_by: &'static str,
    /// What it logs once it takes connections.
    ready: &'static str,
}

/// The processes of a server that was started.
#[derive(Debug)]
struct Running {
    watchdog: Child,
    /// Its end is the watchdog's signal.
    input: Option<ChildStdin>,
    postmaster: u32,
    log: Arc<Log>,
}

impl Running {
    /// Starts a program, and waits until it says that it is ready; or returns what it has logged before it ended.
    fn start(binaries: &Binaries, folder: &Folder, program: Program) -> Result<Running, String> {
        let mut command = binaries.as_user("sh");
        command.args(["-c", WATCHDOG, "watchdog"]).arg(&folder.0).arg(program.stopped_by).args(program.command);
        command.current_dir(&folder.0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A signal from the terminal is for the test; the watchdog does the rest.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut watchdog = command.spawn().expect("a shell can be started");
        let input = watchdog.stdin.take();
        let log = Log::read(watchdog.stderr.take().expect("its errors are a pipe"), program.ready);
        let running = Running { watchdog, input, postmaster: 0, log };
        if !running.log.wait_for_start() {
            let text = running.log.text();
            running.let_go();
            return Err(text);
        }
        Ok(running)
    }

    /// Stops it, and returns once it has ended.
    fn stop(mut self) {
        drop(self.input.take());
        let _ = self.watchdog.wait();
    }

    /// Ends the watchdog of a server that has ended, and leaves the folder.
    fn let_go(mut self) {
        let told = self.input.take().map(|mut input| input.write_all(b"keep\n"));
        told.expect("its input stays open").expect("the watchdog waits for this");
        let _ = self.watchdog.wait();
    }
}

/// What a server says, read as it is said.
#[derive(Debug, Default)]
struct Log {
    heard: Mutex<Heard>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    lines: VecDeque<String>,
    takes_connections: bool,
    has_ended: bool,
}

impl Log {
    fn read(stderr: ChildStderr, ready: &'static str) -> Arc<Log> {
        let log = Arc::new(Log::default());
        let reading = log.clone();
        // It ends with the last process of the server, since each holds the pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                reading.change(|heard| {
                    heard.takes_connections |= line.contains(ready);
                    heard.lines.push_back(line);
                    if heard.lines.len() > LOG_LINES_MAX {
                        heard.lines.pop_front();
                    }
                });
            }
            reading.change(|heard| heard.has_ended = true);
        });
        log
    }

    fn change(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Returns whether it takes connections; else it has ended.
    fn wait_for_start(&self) -> bool {
        let heard = self.wait(START_MAX, |heard| heard.takes_connections || heard.has_ended);
        heard.takes_connections
    }

    fn wait_for_end(&self) {
        drop(self.wait(END_MAX, |heard| heard.has_ended));
    }

    fn wait(&self, longest: Duration, until: impl Fn(&Heard) -> bool) -> MutexGuard<'_, Heard> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let (heard, waited) = self
            .changed
            .wait_timeout_while(heard, longest, |heard| !until(heard))
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "PostgreSQL took longer than {longest:?}: {:#?}", heard.lines);
        heard
    }

    fn text(&self) -> String {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Starts something on a port that is free, or was a moment ago.
fn on_free_port(what: &str, mut start: impl FnMut(u16) -> Result<Running, String>) -> Running {
    let mut last = String::new();
    for _ in 0..STARTS_MAX {
        match start(free_port()) {
            Ok(running) => return running,
            Err(log) => last = log,
        }
    }
    broken(&format!("{what} did not start:\n{last}"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback has a free port");
    listener.local_addr().expect("it listens somewhere").port()
}

/// Runs a command that must work.
fn run(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|error| broken(&format!("{command:?}: {error}")));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {}\n{said}", out.status);
    String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| broken(&format!("{}: {error}", path.display())))
}

/// Ends a test whose ground is missing.
#[expect(clippy::panic, reason = "a test can't go on without its server")]
fn broken(what: &str) -> ! {
    panic!("{what}")
}
