//! What is told as it happens: also what other processes do, from any mark on, and no longer than it should.

use super::live::{Live, Place};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A stream of events that is read piece by piece.
struct Heard {
    stream: TcpStream,
    text: String,
}

impl Heard {
    fn at(live: &Live, path: &str, headers: &[&str]) -> Heard {
        let stream = live.opened("GET", &format!("/api/v1{path}"), headers, b"");
        let mut heard = Heard { stream, text: String::new() };
        heard.until("retry: 1000");
        assert!(heard.text.starts_with("HTTP/1.1 200"), "{}", heard.text);
        heard
    }

    /// Reads until these words have come.
    #[track_caller]
    fn until(&mut self, words: &str) {
        let mut piece = [0; 4096];
        while !self.text.contains(words) {
            let read = self.stream.read(&mut piece).unwrap();
            assert!(read > 0, "no {words:?} in {}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }

    /// Reads to the end, and returns everything.
    fn all(mut self) -> String {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).unwrap();
        self.text + &String::from_utf8_lossy(&rest)
    }

    /// The last mark that was told.
    fn mark(&self) -> String {
        let line = self.text.lines().rev().find_map(|line| line.strip_prefix("id: "));
        line.expect("a mark").to_string()
    }
}

const EVENTS: &str = "/conversations/monday/readers/main/events";

fn say(live: &Live, text: &str) {
    live.post("/conversations/monday/entries", json!({"entries": [{"role": "user", "text": text}]}));
}

#[test]
fn what_another_process_appends_is_heard_and_what_was_missed_is_told_again() {
    let place = Place::new();
    let (one, other) = (Live::over(&place, None), Live::over(&place, None));
    one.talk("monday", "words", 1);
    let mut heard = Heard::at(&one, EVENTS, &[]);
    say(&other, "from elsewhere");
    heard.until("event: added");
    heard.until("\"seq\":2");
    assert!(!heard.text.contains("\"seq\":1"), "what was before is not told: {}", heard.text);
    heard.until("id: 0.1.3");
    let mark = heard.mark();
    drop(heard);
    say(&other, "missed");
    say(&one, "missed, too");
    let mut again = Heard::at(&one, EVENTS, &[&format!("Last-Event-ID: {mark}")]);
    again.until("\"seq\":4");
    assert!(again.text.contains("\"seq\":3") && !again.text.contains("\"seq\":2"), "{}", again.text);
    let mut all = Heard::at(&one, &format!("{EVENTS}?since=start"), &[]);
    all.until("\"seq\":4");
    assert!(all.text.contains("\"seq\":0") && all.text.contains("event: acked"), "{}", all.text);
    let mut list = Heard::at(&one, "/events", &[]);
    say(&other, "again");
    list.until("event: changed");
    list.until("\"conversation\":\"monday\"");
}

#[test]
fn a_mark_of_the_readers_loses_nothing() {
    let live = Live::new();
    live.talk("monday", "words", 2);
    let mark = live.get("/conversations/monday/readers")["readers"][0]["mark"].as_str().unwrap().to_string();
    live.post("/conversations/monday/readers/main/pins", json!({"first": 0, "last": 1}));
    let mut heard = Heard::at(&live, &format!("{EVENTS}?since={mark}"), &[]);
    heard.until("event: pinned");
    assert!(!heard.text.contains("event: added"), "{}", heard.text);
    let data = heard.text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let event: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&event["type"], &event["ordinal"]), (&json!("pinned"), &json!(1)));
}

#[test]
fn streams_end_with_the_server_the_conversation_and_the_key() {
    let place = Place::new();
    let key = place.key("mine", "mine");
    let live = Live::over(&place, Some(&key));
    live.talk("monday", "words", 1);
    live.talk("tuesday", "words", 1);
    let erased = Heard::at(&live, EVENTS, &[]);
    assert_eq!(live.ask("DELETE", "/api/v1/conversations/monday", &[], "").status, 200);
    assert!(erased.all().contains("event: erased"));
    let other = place.key("other", "mine");
    live.with_key(&other);
    let tuesday = EVENTS.replace("monday", "tuesday");
    let revoked = Heard::at(&live, &tuesday, &[]);
    assert!(place.command(&["keys", "revoke", "other"]).output().unwrap().status.success());
    live.with_key(&key);
    // Within a second the key opens nothing any more; what is said then is not told.
    let since = Instant::now();
    let told = loop {
        live.post("/conversations/tuesday/entries", json!({"entries": [{"role": "user", "text": "later"}]}));
        if live.ask("GET", "/api/v1/version", &[&format!("authorization: Bearer {other}")], "").status != 200 {
            live.post("/conversations/tuesday/entries", json!({"entries": [{"role": "user", "text": "too late"}]}));
        }
        if since.elapsed() > Duration::from_millis(1_500) {
            break revoked.all();
        }
    };
    assert!(told.contains("event: closing"), "{told}");
    let closing = Heard::at(&live, &tuesday, &[]);
    let since = Instant::now();
    live.ends();
    assert!(closing.all().contains("event: closing"));
    assert!(since.elapsed() < Duration::from_secs(20), "it waited for a stream: {:?}", since.elapsed());
}

#[test]
fn a_tenant_has_so_many_streams_and_no_more() {
    let live = Live::new();
    live.talk("monday", "words", 1);
    let mut open: Vec<Heard> = (0..64).map(|_| Heard::at(&live, EVENTS, &[])).collect();
    live.refuses((429, "crowded"), "GET", EVENTS, "");
    open.pop();
    // That a client has left is seen soon, and then there is a place again.
    let since = Instant::now();
    let mut status = [0; 12];
    while &status[9..] != b"200" {
        assert!(since.elapsed() < Duration::from_secs(20), "the place of who has left stays taken");
        live.opened("GET", &format!("/api/v1{EVENTS}"), &[], b"").read_exact(&mut status).unwrap();
    }
    say(&live, "to all");
    open.iter_mut().for_each(|heard| heard.until("event: added"));
}
