//! A client on a plain socket: what a library would hide can be seen, and what it would not do can be done.

use super::world::World;
use recto::wire::Wire;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long something may take to be seen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns where a wire is spoken.
pub(super) fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat => "/v1/chat/completions",
        Wire::OpenaiResponses => "/v1/responses",
        Wire::Anthropic => "/v1/messages",
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// Who asks, with headers of its own.
#[derive(Clone)]
pub(super) struct Client {
    at: String,
    headers: Vec<(String, String)>,
}

/// An answer that is coming.
pub(super) struct Coming {
    stream: TcpStream,
    bytes: Vec<u8>,
}

/// An answer that came.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether it came to the end that HTTP gives it.
    pub(super) is_whole: bool,
}

impl Client {
    pub(super) fn of(world: &World) -> Client {
        let headers = vec![("anthropic-version".into(), "2023-06-01".into())];
        Client { at: world.url().trim_start_matches("http://").into(), headers }
    }

    /// Returns one that asks at another address.
    pub(super) fn at(&self, url: &str) -> Client {
        Client { at: url.trim_start_matches("http://").into(), ..self.clone() }
    }

    /// Returns one that sends another header, too.
    pub(super) fn with(&self, name: &str, value: &str) -> Client {
        let mut client = self.clone();
        client.headers.push((name.into(), value.into()));
        client
    }

    /// Sends a body as it is.
    pub(super) fn sends(&self, path: &str, body: impl AsRef<[u8]>) -> Coming {
        let body = body.as_ref();
        let lines: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        self.writes(&[format!("{head}{lines}Content-Length: {length}\r\n\r\n").as_bytes(), body].concat())
    }

    /// Asks as a talk stands, and waits for the whole answer.
    pub(super) fn asks(&self, talk: &Talk) -> Answer {
        self.sends(path(talk.wire), talk.body().to_string()).whole()
    }

    /// Asks as a talk stands; the answer is a stream.
    pub(super) fn streams(&self, talk: &Talk) -> Coming {
        let mut body = talk.body();
        body["stream"] = true.into();
        self.sends(path(talk.wire), body.to_string())
    }

    /// Asks for what stands at a path.
    pub(super) fn gets(&self, path: &str) -> Answer {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        self.writes(request.as_bytes()).whole()
    }

    /// Asks under another name of the server, and returns the status.
    pub(super) fn asked_for_host(&self, host: &str) -> u16 {
        self.writes(format!("GET /api/v1/version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
            .whole()
            .status
    }

    /// Returns the server's numbers.
    pub(super) fn metrics(&self) -> String {
        String::from_utf8(self.gets("/metrics").body).unwrap()
    }

    /// Waits until a number of the server has a value.
    #[track_caller]
    pub(super) fn until(&self, metric: &str, value: u64) {
        let (start, line) = (Instant::now(), format!("\n{metric} {value}\n"));
        while !self.metrics().contains(&line) {
            assert!(start.elapsed() < PATIENCE, "no {line:?} in {}", self.metrics());
        }
    }

    /// Waits until the server takes nothing new.
    pub(super) fn until_closed(&self) {
        let start = Instant::now();
        while TcpStream::connect(&self.at).is_ok() {
            assert!(start.elapsed() < PATIENCE, "it still listens");
        }
    }

    fn writes(&self, bytes: &[u8]) -> Coming {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // Who refuses early may not read all; what it says counts.
        let _ = stream.write_all(bytes);
        Coming { stream, bytes: Vec::new() }
    }
}

impl Coming {
    /// Reads until these words have come.
    #[track_caller]
    pub(super) fn until(&mut self, words: &str) {
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&self.bytes).contains(words) {
            let read = self.stream.read(&mut piece).unwrap();
            assert!(read > 0, "no {words:?} in {}", String::from_utf8_lossy(&self.bytes));
            self.bytes.extend_from_slice(&piece[..read]);
        }
    }

    /// Goes away.
    pub(super) fn leaves(self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }

    /// Reads to the end of the connection, be it cut.
    #[track_caller]
    pub(super) fn whole(mut self) -> Answer {
        self.read();
        Answer::of(&self.bytes).unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&self.bytes)))
    }

    /// Reads to the end of the connection, and returns whether it was cut, be it before the answer began.
    #[track_caller]
    pub(super) fn ends_cut(mut self) -> bool {
        self.read();
        Answer::of(&self.bytes).is_none_or(|answer| !answer.is_whole)
    }

    #[track_caller]
    fn read(&mut self) {
        if let Err(error) = self.stream.read_to_end(&mut self.bytes) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
    }
}

impl Answer {
    fn of(bytes: &[u8]) -> Option<Answer> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().into()));
        let headers: Vec<(String, String)> = lines.filter_map(header).collect();
        let mut answer = Answer { status, headers, body: Vec::new(), is_whole: false };
        let rest = &bytes[end + 4..];
        if answer.header("transfer-encoding") == Some("chunked") {
            (answer.body, answer.is_whole) = unchunked(rest);
        } else {
            answer.is_whole = answer.header("content-length").is_none_or(|it| it == rest.len().to_string());
            answer.body = rest.to_vec();
        }
        Some(answer)
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The conversation that it belongs to.
    #[track_caller]
    pub(super) fn conversation(&self) -> String {
        self.header("x-recto-conversation").unwrap_or_else(|| panic!("none told: {self:?}")).into()
    }

    /// Status, and why Recto refused it.
    pub(super) fn told(&self) -> (u16, &str) {
        (self.status, self.header("x-recto-refused").unwrap_or_default())
    }
}

/// Returns what pieces hold, and whether the last one came.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return (body, false) };
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("the size of a piece");
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() < size + 2 {
            return (body, false);
        }
        rest = &rest[size + 2..];
    }
}

/// A history that a client keeps, spelled as its wire wants it.
#[derive(Clone, Debug)]
pub(super) struct Talk {
    pub(super) wire: Wire,
    pub(super) list: Vec<Value>,
    /// Fields beside the messages.
    pub(super) beside: Value,
}

impl Talk {
    pub(super) fn new(wire: Wire) -> Talk {
        let beside = match wire {
            Wire::OpenaiChat => json!({"model": "gpt-4o"}),
            Wire::OpenaiResponses => json!({"model": "gpt-4o"}),
            Wire::Anthropic => json!({"model": "claude-haiku-4-5", "max_tokens": 99}),
            Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
        };
        Talk { wire, list: Vec::new(), beside }
    }

    /// Adds words of the user.
    pub(super) fn user(mut self, text: &str) -> Talk {
        self.list.push(json!({"role": "user", "content": text}));
        self
    }

    /// Adds an answer as it came, whole.
    #[track_caller]
    pub(super) fn heard(mut self, answer: &Answer) -> Talk {
        assert_eq!(answer.status, 200, "{}", answer.text());
        let body = answer.json();
        match self.wire {
            Wire::OpenaiChat => self.list.push(body["choices"][0]["message"].clone()),
            Wire::OpenaiResponses => self.list.extend(body["output"].as_array().unwrap().clone()),
            Wire::Anthropic => self.list.push(json!({"role": "assistant", "content": body["content"]})),
            Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
        }
        self
    }

    /// Sets a field beside the messages.
    pub(super) fn beside(mut self, field: &str, value: Value) -> Talk {
        self.beside[field] = value;
        self
    }

    pub(super) fn body(&self) -> Value {
        let mut body = self.beside.clone();
        body[if self.wire == Wire::OpenaiResponses { "input" } else { "messages" }] = self.list.clone().into();
        body
    }
}
