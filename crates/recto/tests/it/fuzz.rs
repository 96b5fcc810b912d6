//! Every reader of foreign bytes, fed with damaged ones: no panic, and whatever is read can be made into a valid page.

use crate::others;
use recto::entry::Millis;
use recto::format::ResponseFormat;
use recto::target::Catalogue;
use recto::tool::{Tool, Tools};
use recto::{Entry, Log, Policy, Reader, Request, Target, Tokenizer, Wire, compile_once, transcript};
use recto_testkit::fake::{Api, Incoming, Provider, Reply, Settings};
use recto_testkit::mixed::{self, Dice};
use serde_json::{Value, json};

/// How often each reader is tried.
const TRIES: u64 = 1_500;
const TRIES_LONG: u64 = 150_000;

fn tries() -> u64 {
    if std::env::var_os("RECTO_LONG").is_some() { TRIES_LONG } else { TRIES }
}

/// Pieces that decoders have reason to stumble over.
const PIECES: [&str; 24] = [
    "null",
    "true",
    "-1",
    "1e999",
    "\"\"",
    "[]",
    "{}",
    "[[[[[[[[",
    "\\ud800",
    "\\",
    "\"type\":",
    "\"content\":",
    "\u{0}",
    "\u{feff}",
    "\n\n",
    "data: ",
    "{\"type\":\"message\"}",
    "\"role\":\"tool\"",
    "\"id\":\"\"",
    "99999999999999999999",
    "tool_result",
    "\"parentUuid\":null",
    "attachment://x",
    "\"parentId\":\"1\"",
];

/// Damages a text in a few places.
pub(super) fn damaged(seed: &str, dice: &mut Dice) -> String {
    let mut bytes = seed.as_bytes().to_vec();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(bytes.len().max(1));
        let end = (at + 1 + dice.below(40)).min(bytes.len());
        match dice.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
            1 => drop(bytes.drain(at.min(end)..end)),
            2 => {
                let copy = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, copy);
            }
            3 => bytes.truncate(at),
            4 => {
                let piece = dice.pick(&PIECES).bytes();
                bytes.splice(at..at, piece);
            }
            _ => swap_values(&mut bytes, dice),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Puts another value in the place of one behind a colon.
fn swap_values(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let colons: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at + 1).collect();
    let Some(&from) = colons.get(dice.below(colons.len())) else { return };
    let length = bytes[from..].iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(0);
    let piece = dice.pick(&PIECES).bytes();
    bytes.splice(from..from + length, piece);
}

/// What was read becomes a log, a page and a body that its provider takes.
fn usable(entries: Vec<Entry>, tools: Vec<recto::entry::Text>, dice: &mut Dice) {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries {
        if log.append(entry).is_err() {
            return;
        }
    }
    let name = *dice.pick(&["gpt-4o", "gpt-6-sol", "claude-opus-5-5", "claude-haiku-4-5", "gemini-3.8-flash", "qwen3"]);
    let target = Target::named(name).unwrap_or_else(|| mixed::at_home(name)).with_window(None);
    let (reader, policy) = (Reader::new("main"), Policy::none());
    let tools = Tools::counted(tools, &Tokenizer::Chars4);
    let is_good = |tool: &Tool| tool.function.is_some();
    let tools = Some(&tools).filter(|tools| !tools.list().is_empty() && tools.list().iter().all(is_good));
    let request = Request { tools, ..Request::new(&log, &reader, &policy, &target) };
    let Ok(compiled) = compile_once(&request) else { return };
    let body = target.wire.encode(&compiled.page, &target);
    let violations = target.wire.validate(&body);
    // Schemas, fields and blocks of a client's own pass through as they are.
    let is_opaque = |part: &recto::Part| matches!(part, recto::Part::Opaque { .. });
    let has_own = |message: &recto::page::Message| !message.extra.is_empty() || message.parts.iter().any(is_opaque);
    if compiled.page.messages.iter().any(has_own) {
        return;
    }
    let is_clients = |it: &recto::wire::Violation| it.at.contains("tools") || it.what.contains("Extra inputs");
    assert!(violations.iter().all(is_clients), "{violations:?}\n{}", String::from_utf8_lossy(&body));
}

/// Bodies, whole replies and streams of a wire, from a provider that speaks it.
fn seeds(wire: Wire) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (mut dice, target) = (Dice::new(7), crate::chain::target(wire));
    let (mut bodies, mut replies, mut streams) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..12 {
        let mut log = Log::counted_by(Tokenizer::Chars4);
        let entries = mixed::conversation(&mut dice, 8);
        for entry in entries.into_iter().chain([Entry::user("so?")]) {
            log.append(entry).unwrap();
        }
        let (reader, policy) = (Reader::new("main"), Policy::none());
        let tools = Tools::counted(mixed::tools(&mut dice), &Tokenizer::Chars4);
        let tools = Some(&tools).filter(|tools| !tools.list().is_empty());
        let page = compile_once(&Request { tools, ..Request::new(&log, &reader, &policy, &target) }).unwrap().page;
        let body = String::from_utf8(wire.encode(&page, &target)).unwrap();
        for stream in [false, true] {
            let mut value: Value = serde_json::from_str(&body).unwrap();
            Api::of(wire).ask_for(&mut value, stream);
            let mut provider = Provider::new(Settings::default());
            let reply = Reply::default().thinking("hm").text("I look, \u{e4}h.").call("look", "{\"a\":[1,2]}");
            provider.push(reply);
            let answer = provider.answer(&Incoming::post(&Api::of(wire).path(&target.name, stream), &value));
            assert_eq!(answer.status, 200, "{}", answer.text());
            if stream { streams.push(answer.text()) } else { replies.push(answer.text()) }
        }
        bodies.push(body);
    }
    (bodies, replies, streams)
}

fn read_stream(wire: Wire, text: &str, dice: &mut Dice) {
    let mut stream = wire.stream();
    let size = 1 + dice.below(100);
    for event in crate::chain::events(wire, text.as_bytes().chunks(size)) {
        if stream.event(&event).is_err() {
            break;
        }
    }
    if let Ok(reply) = stream.finish() {
        usable(vec![Entry::user("hello"), reply.entry, Entry::user("go on")], Vec::new(), dice);
    }
}

fn wire_survives(wire: Wire) {
    let (bodies, replies, streams) = seeds(wire);
    let mut dice = Dice::new(wire as u64 + 1);
    for _ in 0..tries() {
        let body = damaged(&bodies[dice.below(bodies.len())], &mut dice);
        wire.validate(body.as_bytes());
        if let Ok(decoded) = wire.decode(&body) {
            usable(decoded.entries, decoded.tools, &mut dice);
        }
        let reply = damaged(&replies[dice.below(replies.len())], &mut dice);
        if let Ok(reply) = wire.decode_reply(&reply) {
            usable(vec![Entry::user("hello"), reply.entry, Entry::user("go on")], Vec::new(), &mut dice);
        }
        let stream = damaged(&streams[dice.below(streams.len())], &mut dice);
        read_stream(wire, &stream, &mut dice);
    }
}

#[test]
fn chat_survives_damage() {
    wire_survives(Wire::OpenaiChat);
}

#[test]
fn responses_survives_damage() {
    wire_survives(Wire::OpenaiResponses);
}

#[test]
fn gemini_survives_damage() {
    wire_survives(Wire::Gemini);
}

#[test]
fn ollama_survives_damage() {
    wire_survives(Wire::Ollama);
}

#[test]
fn anthropic_survives_damage() {
    wire_survives(Wire::Anthropic);
}

/// Sessions of the two programs, a stream of one, and requests: all that is told apart by what it holds.
fn transcripts() -> Vec<String> {
    let mut dice = Dice::new(11);
    let mut seeds = Vec::new();
    for _ in 0..8 {
        let entries = mixed::conversation(&mut dice, 10);
        let id = "01234567-89ab-8def-8123-456789abcdef";
        seeds.push(transcript::claude_code::session(&entries, id, "/work", Millis(1_790_000_000_000)));
        seeds.push(transcript::codex::session(&entries, id, "/work", Millis(1_790_000_000_000)));
    }
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "model": "claude-opus-5", "tools": ["Bash"]}),
        json!({"type": "assistant", "session_id": "s", "message": {"id": "m1", "type": "message", "role": "assistant",
            "model": "claude-opus-5", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"c": "ls"}}]}}),
        json!({"type": "user", "session_id": "s", "message": {"role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]}}),
        json!({"type": "result", "subtype": "success", "result": "done", "session_id": "s", "num_turns": 2}),
    ];
    seeds.push(lines.map(|line| line.to_string()).join("\n"));
    for wire in Wire::ALL {
        seeds.extend(self::seeds(wire).0.into_iter().take(2));
    }
    seeds
}

/// What other programs leave behind that we write nothing for.
fn of_others() -> Vec<String> {
    let log: Value = serde_json::from_str(others::INSPECT).unwrap();
    let samples: Vec<Value> = log["samples"].as_array().unwrap().iter().map(without_events).collect();
    let log =
        json!({"version": 2, "status": "success", "eval": {"model": "anthropic/claude-opus-5-5"}, "samples": samples});
    let own = [others::trajectory(), others::trajectory_in_words(), others::results(), crate::pi::session()];
    own.into_iter().chain([log.to_string(), samples[0].to_string()]).collect()
}

/// A sample of which everything is read, so that damage hits what is.
fn without_events(sample: &Value) -> Value {
    let mut sample = sample.clone();
    let unread = ["events", "events_data", "output", "model_usage"];
    sample.as_object_mut().unwrap().retain(|name, _| !unread.contains(&name.as_str()));
    sample
}

#[test]
fn transcripts_survive_damage() {
    survive_damage(&transcripts(), Dice::new(5));
}

#[test]
fn what_benchmarks_and_pi_leave_behind_survives_damage() {
    survive_damage(&of_others(), Dice::new(17));
}

fn survive_damage(seeds: &[String], mut dice: Dice) {
    for seed in seeds {
        let read = transcript::read(seed).unwrap_or_else(|error| panic!("{error}\n{seed}"));
        assert!(read.iter().any(|it| !it.entries.is_empty()), "{seed}");
    }
    for _ in 0..tries() {
        let text = damaged(&seeds[dice.below(seeds.len())], &mut dice);
        match transcript::read(&text) {
            Ok(read) => read.into_iter().for_each(|it| usable(it.entries, it.tools, &mut dice)),
            Err(error) => {
                let lines = text.split('\n').count();
                assert!(error.place().is_none_or(|at| at.line >= 1 && at.line <= lines), "{error}\n{text}");
            }
        }
    }
}

#[test]
fn smaller_readers_survive_damage() {
    let schema = r#"{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"},"strict":true}}"#;
    let tool = r#"{"type":"function","function":{"name":"a","description":"b","parameters":{"type":"object"}}}"#;
    let models =
        "as_of = \"2026-01-01\"\n[models.a]\nlike = \"claude\"\nwindow = 3\n[profiles.b]\nwire = \"anthropic\"\n";
    let policy = Policy::safe().to_toml();
    let mut dice = Dice::new(3);
    for _ in 0..tries() {
        drop(ResponseFormat::parse(&damaged(schema, &mut dice)));
        drop(Tool::parse(damaged(tool, &mut dice)));
        if let Ok(catalogue) = Catalogue::parse(&damaged(models, &mut dice)) {
            drop(Catalogue::built_in().with(&catalogue));
        }
        drop(Policy::from_toml(&damaged(&policy, &mut dice)));
    }
}
