//! Recto and its Rust peers as workers: each takes one task, says that it is ready, and is then asked for times again
//! and again. `bench/run.py` asks; `bench/peers.py` and `bench/peers.mjs` are the same for other languages.
//!
//! A line `{"task": …}` prepares, and is answered `{"ready": …}`; a line `{"measure": COUNT}` is answered
//! `{"seconds": […], …}`. Who counts is given another text by `{"text": PATH}`, and writes the ids of its tokens by
//! `{"ids": PATH}`.

mod compile;
mod count;
mod store;

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::time::Instant;

/// Something that can be done again and again.
pub(crate) trait Work {
    /// Does it once; what came of it is told, and looked at by whoever asks.
    fn run(&mut self) -> Value;

    /// Takes another text, if it is about one.
    fn read(&mut self, _file: &str) {}

    /// Returns the ids of all tokens, if it is about those.
    fn ids(&self) -> Vec<u32> {
        Vec::new()
    }
}

fn main() {
    let peer = std::env::args().nth(1).expect("the name of a peer");
    let mut work: Option<Box<dyn Work>> = None;
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let answer = match (&asked["task"], &asked["text"], &asked["ids"]) {
            (Value::String(_), ..) => {
                work = Some(prepared(&peer, &asked));
                json!({"ready": peer})
            }
            (_, Value::String(path), _) => {
                work.as_mut().expect("a task comes first").read(path);
                json!({"read": peer})
            }
            (.., Value::String(path)) => {
                let ids = work.as_ref().expect("a task comes first").ids();
                std::fs::write(path, json!(ids).to_string()).expect("the folder can be written to");
                json!({"written": peer})
            }
            _ => measured(work.as_mut().expect("a task comes first").as_mut(), &asked),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("somebody listens");
    }
}

fn measured(work: &mut dyn Work, asked: &Value) -> Value {
    let mut came = Value::Null;
    let times = (0..asked["measure"].as_u64().expect("a count")).map(|_| {
        let start = Instant::now();
        came = work.run();
        start.elapsed().as_secs_f64()
    });
    let seconds: Vec<f64> = times.collect();
    json!({"seconds": seconds, "came": came})
}

fn prepared(peer: &str, asked: &Value) -> Box<dyn Work> {
    let text = |name: &str| asked[name].as_str().unwrap_or_default();
    let number = |name: &str| asked[name].as_u64().unwrap_or_default();
    match text("task") {
        "compile" => Box::new(compile::Compiling::of(text("file"), number("budget"))),
        "count" => Box::new(count::Counting::of(peer, text("file"))),
        "store" => Box::new(store::Storing::of(text("folder"), number("messages"))),
        task => panic!("no task {task:?}"),
    }
}
