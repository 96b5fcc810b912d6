//! A provider, `recto serve` in front of it, and what it leaves behind.

use super::said::Said;
use crate::run::{Folder, Ran, TODAY, isolated};
use recto::wire::Wire;
use recto_testkit::fake::{Exchange, Server};
use recto_testkit::postgres;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long the server may take to say where it listens, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where models are asked.
const CALLS: [&str; 3] = ["/v1/messages", "/v1/responses", "/v1/chat/completions"];

/// Whom a client talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// Nobody: its address is the provider's own.
    Nothing,
    /// `recto serve` with this policy.
    Recto(&'static str),
    /// The same, with its store in PostgreSQL.
    OnPostgres(&'static str),
}

/// A provider that nobody asked yet, and who stands before it. Every wire has an upstream that leads to it.
pub(super) struct World {
    pub(super) folder: Folder,
    pub(super) fake: Server,
    /// Where conversations are kept.
    store: String,
    serving: Option<Serving>,
    /// A second server on the same store.
    another: Option<Serving>,
}

impl World {
    pub(super) fn new(between: Between) -> World {
        let mut world = World::of(Server::start());
        if let Between::OnPostgres(_) = between {
            world.store = format!("{}?sslmode=disable", postgres::Server::shared().database());
        }
        if let Between::Recto(policy) | Between::OnPostgres(policy) = between {
            world.configure();
            world.serve(policy);
        }
        world
    }

    /// Returns a world with a provider of the test's own making, before its server is started. The lines are added to
    /// the configuration of each upstream.
    pub(super) fn before(fake: Server, lines: &str) -> World {
        let world = World::of(fake);
        world.lead_to(&world.fake.url(), lines);
        world
    }

    fn of(fake: Server) -> World {
        let folder = Folder::new();
        World { store: folder.at("kept.db"), folder, fake, serving: None, another: None }
    }

    /// Starts a second server on the same store, and returns its address.
    pub(super) fn serve_another(&mut self, policy: &str) -> String {
        let serving = Serving::start(self.command(&["serve", "--listen", "127.0.0.1:0", "--policy", policy]));
        self.another.insert(serving).url.clone()
    }

    /// Starts the server over what the last one left behind.
    pub(super) fn serve(&mut self, policy: &str) {
        self.serve_by(self.command(&["serve", "--listen", "127.0.0.1:0", "--policy", policy]));
    }

    /// Starts the server by a command of the test's own making.
    pub(super) fn serve_by(&mut self, command: Command) {
        assert!(self.serving.is_none(), "one server at a time");
        self.serving = Some(Serving::start(command));
    }

    /// Ends the server, and returns all that it said.
    #[track_caller]
    pub(super) fn logged(&mut self) -> String {
        let said = self.serving.take().expect("it runs").end();
        assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
        said.stdout + &said.stderr
    }

    /// Sends the server a signal: `TERM`, `KILL`.
    pub(super) fn signal(&self, name: &str) {
        let id = self.serving.as_ref().expect("it runs").child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Waits for the end of a server that was asked to end, and returns its code.
    pub(super) fn gone(&mut self) -> Option<i32> {
        self.serving.take().expect("it runs").ended().code
    }

    fn configure(&self) {
        self.lead_to(&self.fake.url(), "");
    }

    /// Writes a configuration in which every wire has an upstream at this address.
    pub(super) fn lead_to(&self, url: &str, lines: &str) {
        let mut config = String::new();
        for wire in Wire::CLIENTS {
            let version = if wire == Wire::Anthropic { "" } else { "/v1" };
            config += &format!("[upstream.fake_{wire}]\nurl = '{url}{version}'\nwire = '{wire}'\nmodels = ['*']\n");
            config += &format!("retries = 0\n{lines}");
        }
        self.folder.file("recto.toml", config);
    }

    /// Returns the command with this world's store and configuration.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = isolated(Command::new(env!("CARGO_BIN_EXE_recto")));
        command.args(args).current_dir(&self.folder.path).env("RECTO_TODAY", TODAY);
        command.env("RECTO_CONFIG", self.folder.at("recto.toml")).env("RECTO_STORE", &self.store);
        command
    }

    /// Returns the address that a client is given, without a path.
    pub(super) fn url(&self) -> String {
        self.serving.as_ref().map_or_else(|| self.fake.url(), |serving| serving.url.clone())
    }

    /// All model calls that reached the provider so far; none was refused.
    #[track_caller]
    pub(super) fn calls(&self) -> Vec<Exchange> {
        let mut log = self.fake.log();
        // Claude Code looks whether anybody is there at all; that asks no model anything.
        log.retain(|it| it.request.method != "HEAD");
        let refused: Vec<_> = log.iter().filter_map(|it| it.refusal.as_ref()).collect();
        assert!(refused.is_empty(), "refused: {refused:#?}");
        let is_call = |it: &Exchange| CALLS.contains(&it.request.path.split('?').next().unwrap_or_default());
        log.into_iter().filter(is_call).collect()
    }

    /// Ends the server as an operator does; it must go in peace.
    #[track_caller]
    pub(super) fn stop(&mut self) {
        for serving in [Some(self.serving.take().expect("it runs")), self.another.take()].into_iter().flatten() {
            let said = serving.end();
            assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
        }
    }

    /// Ends the server, and returns what each conversation says that it left behind.
    #[track_caller]
    pub(super) fn kept(&mut self) -> Vec<Vec<Said>> {
        self.stop();
        let list = self.json(&["list", "--json"]);
        let names = list["conversations"].as_array().unwrap().iter().map(|it| it["conversation"].as_str().unwrap());
        names.map(|name| Said::all_kept(&self.json(&["show", name, "--json"]))).collect()
    }

    /// Returns the names of all conversations, sorted.
    #[track_caller]
    pub(super) fn names(&self) -> Vec<String> {
        let list = self.json(&["list", "--json"]);
        let names = list["conversations"].as_array().unwrap().iter();
        let mut names: Vec<String> = names.map(|it| it["conversation"].as_str().unwrap().into()).collect();
        names.sort();
        names
    }

    /// Returns what a conversation says.
    #[track_caller]
    pub(super) fn said(&self, name: &str) -> Vec<Said> {
        Said::all_kept(&self.json(&["show", name, "--json"]))
    }

    /// Runs what must succeed, and returns what it prints.
    #[track_caller]
    pub(super) fn run(&self, args: &[&str]) -> String {
        let ran = Ran::from(self.command(args).output().unwrap());
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    #[track_caller]
    pub(super) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(args)).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Only of a test that failed before it stopped the server itself.
        for serving in [self.serving.take(), self.another.take()].into_iter().flatten() {
            drop(serving.end());
        }
    }
}

/// The server's process.
struct Serving {
    child: Child,
    url: String,
    lines: Receiver<String>,
    said: String,
}

impl Serving {
    /// Starts the server, and waits until it says where it listens.
    fn start(mut command: Command) -> Serving {
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        tell_lines(child.stdout.take().unwrap(), sender.clone());
        tell_lines(child.stderr.take().unwrap(), sender);
        let (start, mut said) = (Instant::now(), String::new());
        loop {
            let Ok(line) = lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) else {
                drop(child.kill());
                child.wait().unwrap();
                panic!("no address of the server in what it said:\n{said}");
            };
            said += &format!("{line}\n");
            // It tells where its traces go, too.
            if let Some(url) = address(&line).filter(|_| !line.starts_with("traces: ")) {
                return Serving { child, url, lines, said };
            }
        }
    }

    /// Asks it to end, and returns its code and all that it said.
    fn end(self) -> Ran {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(asked.unwrap().success());
        self.ended()
    }

    /// Waits for its end, and returns its code and all that it said. One that doesn't end is ended.
    fn ended(mut self) -> Ran {
        let start = Instant::now();
        // Both pipes close when the process is gone.
        loop {
            match self.lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
                Ok(line) => self.said += &format!("{line}\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.child.kill().unwrap();
                    break;
                }
            }
        }
        Ran { code: self.child.wait().unwrap().code(), stdout: String::new(), stderr: self.said }
    }
}

fn tell_lines(pipe: impl Read + Send + 'static, sender: Sender<String>) {
    std::thread::spawn(move || BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|it| sender.send(it)));
}

/// Returns the first address on a line, without its path.
fn address(line: &str) -> Option<String> {
    let start = line.find("http://127.0.0.1:")?;
    let port = line[start + "http://127.0.0.1:".len()..].chars().take_while(char::is_ascii_digit);
    let port: String = port.collect();
    (!port.is_empty()).then(|| format!("http://127.0.0.1:{port}"))
}
