//! A server that runs, and a client that holds every answer against the description.

use super::schema;
use crate::run::{Folder, command};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::rc::Rc;
use std::time::Duration;

/// How long something may take to be seen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a store, which several servers may share.
pub(super) struct Place {
    pub(super) folder: Folder,
}

/// A server that runs, and somebody who asks it.
pub(super) struct Live {
    pub(super) place: Rc<Place>,
    child: Option<Child>,
    at: SocketAddr,
    pub(super) document: Value,
    key: RefCell<Option<String>>,
    /// Which routes have answered with what they are for: method and path as they are described.
    pub(super) answered: RefCell<BTreeSet<(String, String)>>,
}

/// Somebody who asks a server, from any thread.
#[derive(Clone)]
pub(super) struct Client {
    at: SocketAddr,
    key: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Place {
    pub(super) fn new() -> Rc<Place> {
        Rc::new(Place { folder: Folder::new() })
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("RECTO_STORE", self.folder.at("kept.db")).current_dir(&self.folder.path);
        if self.folder.names().contains(&"recto.toml".to_string()) {
            command.env("RECTO_CONFIG", self.folder.at("recto.toml"));
        }
        command
    }

    /// Makes a key of a tenant.
    pub(super) fn key(&self, name: &str, tenant: &str) -> String {
        let output = self.command(&["keys", "add", name, "--tenant", tenant]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().into()
    }
}

impl Live {
    /// Starts a server over a store of its own.
    pub(super) fn new() -> Live {
        Live::over(&Place::new(), None)
    }

    /// Starts a server over a store.
    pub(super) fn over(place: &Rc<Place>, key: Option<&str>) -> Live {
        let mut child = place.command(&["serve", "--listen", "127.0.0.1:0"]).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let at = url.trim().strip_prefix("http://").and_then(|at| at.parse().ok()).expect("an address");
        let mut live = Live {
            place: place.clone(),
            child: Some(child),
            at,
            document: Value::Null,
            key: RefCell::new(key.map(String::from)),
            answered: RefCell::default(),
        };
        let described = live.ask("GET", "/openapi.json", &[], "");
        assert_eq!(described.status, 200, "{}", described.text());
        live.document = described.json();
        live
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// Asks with another key from now on.
    pub(super) fn with_key(&self, key: &str) {
        *self.key.borrow_mut() = Some(key.into());
    }

    /// Returns somebody who asks with the same key.
    pub(super) fn client(&self) -> Client {
        Client { at: self.at, key: self.key.borrow().clone() }
    }

    /// Asks, and takes whatever comes.
    pub(super) fn ask(&self, method: &str, path: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
        self.client().ask(method, path, headers, body)
    }

    /// Sends a request, and returns the connection.
    pub(super) fn opened(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> TcpStream {
        self.client().opened(method, path, headers, body)
    }

    /// Asks for something that must succeed, and be as it is described.
    #[track_caller]
    pub(super) fn asks(&self, method: &str, path: &str, headers: &[&str], body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.ask(method, path, headers, body);
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
        self.holds(method, path, &answer);
        answer.json()
    }

    #[track_caller]
    pub(super) fn get(&self, path: &str) -> Value {
        self.asks("GET", &format!("/api/v1{path}"), &[], &Value::Null)
    }

    #[track_caller]
    pub(super) fn post(&self, path: &str, body: Value) -> Value {
        self.asks("POST", &format!("/api/v1{path}"), &[], &body)
    }

    /// Asks for something that must be refused with this status and word.
    #[track_caller]
    pub(super) fn refuses(&self, told: (u16, &str), method: &str, path: &str, body: impl AsRef<[u8]>) -> Value {
        let answer = self.ask(method, &format!("/api/v1{path}"), &[], body);
        self.is_problem(&answer);
        let problem = answer.json();
        assert_eq!((answer.status, problem["kind"].as_str().unwrap()), told, "{method} {path}: {problem}");
        problem
    }

    /// Fails unless an answer is a refusal as it is described.
    #[track_caller]
    pub(super) fn is_problem(&self, answer: &Answer) {
        assert!(answer.head.contains("content-type: application/problem+json"), "{}", answer.head);
        let (schema, problem) = (&self.document["components"]["schemas"]["Problem"], answer.json());
        if let Some(wrong) = schema::wrong(schema, &problem, &self.document, "problem") {
            panic!("{wrong}");
        }
        assert_eq!(problem["status"], answer.status);
        let kind = format!("x-recto-refused: {}", problem["kind"].as_str().unwrap());
        assert!(answer.head.contains(&kind), "{}", answer.head);
    }

    /// Fails unless an answer is what is described of its route, and notes that it was.
    #[track_caller]
    pub(super) fn holds(&self, method: &str, path: &str, answer: &Answer) {
        let path = path.split('?').next().unwrap();
        let (template, operation) = self.route(method, path).unwrap_or_else(|| panic!("{method} {path}"));
        let content = &operation["responses"][answer.status.to_string()]["content"];
        if let Some(schema) = content["application/json"].get("schema") {
            if let Some(wrong) = schema::wrong(schema, &answer.json(), &self.document, "") {
                panic!("{method} {template}: {wrong}");
            }
        } else {
            assert!(content.get("text/event-stream").is_some(), "{method} {template}: {}", answer.status);
        }
        self.answered.borrow_mut().insert((method.to_lowercase(), template));
    }

    /// Returns the route that leads to a path, as it is described.
    fn route(&self, method: &str, path: &str) -> Option<(String, &Value)> {
        let fits = |template: &str| {
            let (one, other): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
            one.len() == other.len() && one.iter().zip(&other).all(|(a, b)| a == b || a.starts_with('{'))
        };
        let paths = self.document["paths"].as_object()?;
        let mut found: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
        found.sort_by_key(|(template, _)| template.matches('{').count());
        let (template, operations) = found.first()?;
        Some(((*template).clone(), operations.get(method.to_lowercase())?))
    }

    /// Returns all routes: method, path, and what is described of each.
    pub(super) fn routes(&self) -> Vec<(String, String, Value)> {
        let paths = self.document["paths"].as_object().unwrap();
        let all = paths.iter().flat_map(|(path, operations)| {
            let each = operations.as_object().unwrap().iter();
            each.map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation.clone()))
        });
        all.collect()
    }

    /// Makes a conversation that has seen some calls, with these words in it.
    #[track_caller]
    pub(super) fn talk(&self, name: &str, words: &str, calls: usize) {
        self.post("/conversations", json!({"conversation": name}));
        for call in 0..calls {
            let entries = json!([{"role": "user", "text": format!("{words} {call}?")}]);
            self.post(&format!("/conversations/{name}/entries"), json!({"entries": entries}));
            let page = self.post(&format!("/conversations/{name}/readers/main/compile"), json!({"body_as": "none"}));
            let answer = json!({"ticket": page["ticket"], "entries": [{"role": "assistant", "text": words}]});
            self.post(&format!("/conversations/{name}/readers/main/acknowledge"), answer);
        }
    }

    /// Tells the server to end, and waits until it has.
    #[track_caller]
    pub(super) fn ends(mut self) {
        let child = self.child.take().unwrap();
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Client {
    /// Asks, and takes whatever comes.
    pub(super) fn ask(&self, method: &str, path: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.opened(method, path, headers, body.as_ref());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::of(&bytes)
    }

    /// Sends a request, and returns the connection.
    fn opened(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let key = self.key.as_ref().map_or(String::new(), |key| format!("x-recto-key: {key}\r\n"));
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{key}{lines}\r\n"
        );
        // A server may refuse before it has read all; what it says counts.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        stream
    }
}

impl Answer {
    fn of(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head, body: bytes[end + 4..].to_vec() }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}
