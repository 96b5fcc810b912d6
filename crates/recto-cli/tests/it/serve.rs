//! `recto serve` as a process of its own, asked over plain sockets: what a library would not send can be sent, too.

mod callers; // who is let in
mod ending; // signals
mod limits; // what is not taken
mod packaged; // as a service and in a container
mod retention; // what is too old
mod starting; // where it listens, and what it says

use crate::run::{Folder, Ran, command, succeeds};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long something may take to be seen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Providers that nobody reaches.
const CONFIG: &str = "[upstream.openai]\nurl = 'http://127.0.0.1:1/v1'\nretries = 0\n\
                      [upstream.anthropic]\nurl = 'http://127.0.0.1:1'\nretries = 0\n";
/// A body that every wire can read.
const BODY: &str = r#"{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"input":"Hi"}"#;

/// A folder with a store and a configuration.
struct Place {
    folder: Folder,
}

/// A server that runs.
struct Served {
    child: Option<Child>,
    at: SocketAddr,
    url: String,
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Place {
    fn new() -> Place {
        Place::with("")
    }

    /// Returns one whose configuration has more lines.
    fn with(more: &str) -> Place {
        let folder = Folder::new();
        folder.file("recto.toml", format!("{CONFIG}{more}"));
        Place { folder }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("RECTO_CONFIG", self.folder.at("recto.toml")).env("RECTO_STORE", self.folder.at("kept.db"));
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Makes a key of a tenant.
    fn key(&self, name: &str, tenant: &str) -> String {
        let ran = self.run(&["keys", "add", name, "--tenant", tenant]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.trim().into()
    }

    /// Starts a server on this machine.
    fn serve(&self, more: &[&str]) -> Served {
        Served::of(self.command(&[&["serve", "--listen", "127.0.0.1:0"], more].concat()))
    }
}

impl Served {
    fn of(mut command: Command) -> Served {
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_string();
        let at = url.strip_prefix("http://").and_then(|at| at.parse().ok());
        Served { child: Some(child), at: at.expect("an address"), url }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes as they are, and reads until the server ends the connection.
    fn sends(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect();
        // A server may refuse before it has read all; what it says counts.
        let _ = stream.write_all(bytes.as_ref());
        Answer::read(&mut stream)
    }

    /// Asks with these headers, and with a body where the method has one.
    fn asks(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        self.sends(request(method, path, &[&["Host: localhost"], headers].concat(), BODY))
    }

    fn get(&self, path: &str) -> Answer {
        self.asks("GET", path, &[])
    }

    /// Waits until a number has a value.
    fn until(&self, metric: &str, value: u64) {
        let (start, line) = (Instant::now(), format!("\n{metric} {value}\n"));
        while !self.get("/metrics").body.contains(&line) {
            assert!(start.elapsed() < PATIENCE, "no {line:?} in {}", self.get("/metrics").body);
        }
    }

    /// Sends the first half of a request, and returns once it is being answered.
    fn half_asked(&self) -> TcpStream {
        let mut stream = self.connect();
        let request = request("POST", "/v1/chat/completions", &["Host: localhost"], BODY);
        stream.write_all(&request.as_bytes()[..request.len() - 9]).unwrap();
        // With the one that asks for the number.
        self.until("recto_requests_in_flight", 2);
        stream
    }

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Waits for the end.
    fn ended(mut self) -> Ran {
        self.child.take().unwrap().wait_with_output().unwrap().into()
    }

    /// Ends it.
    fn ends(self) -> Ran {
        self.signal("TERM");
        let ran = self.ended();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Answer {
    fn read(stream: &mut TcpStream) -> Answer {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no answer: {text:?}"));
        Answer { status, head: head.to_lowercase(), body: body.into() }
    }

    /// Why Recto refused it, in a word.
    fn refused(&self) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix("x-recto-refused: "))
    }

    /// Status, and why Recto refused it.
    fn told(&self) -> (u16, &str) {
        (self.status, self.refused().unwrap_or_default())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Fails unless the request came through to what answers it, whatever that said.
    #[track_caller]
    fn is_let_in(&self) {
        let doors = ["host", "origin", "no_key", "unknown_key", "two_credentials", "length", "crowded", "store"];
        let limits = ["too_large", "too_deep", "content_encoding", "broken_off", "method", "not_found"];
        let refused = self.refused().is_some_and(|why| doors.contains(&why) || limits.contains(&why));
        assert!(!refused && self.status != 401, "{self:?}");
    }
}

/// Returns a request that ends its connection.
fn request(method: &str, path: &str, headers: &[&str], body: &str) -> String {
    let body = if method == "POST" { body } else { "" };
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = if method == "POST" { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
    format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{lines}{length}\r\n{body}")
}

/// Returns all routes, as the server itself lists them: method and path.
fn routes(served: &Served) -> Vec<(String, String)> {
    let message = served.get("/nowhere").json()["error"]["message"].as_str().unwrap().to_string();
    let (_, list) = message.split_once("there are: ").unwrap();
    let split = |route: &str| route.split_once(' ').map(|(method, path)| (method.into(), path.replace("{*id}", "a/b")));
    let routes: Vec<(String, String)> = list.split(", ").filter_map(split).collect();
    assert!(routes.len() >= 9, "{routes:?}");
    routes
}

/// Returns the help of the command.
fn help() -> String {
    succeeds(&["serve", "--help"]).stdout
}
