//! A turn of two messages behind a history, on disk.

use crate::Work;
use recto::Entry;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Append, At, Engine, Opening, Tenant};
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::runtime::Runtime;

pub(crate) struct Storing {
    runtime: Runtime,
    engine: Engine<Sqlite>,
    at: At,
    number: u64,
}

/// What is said in a message; the same for every peer.
fn words(number: u64) -> String {
    format!("message {number} {}", "lorem ipsum dolor ".repeat(44))
}

impl Storing {
    pub(crate) fn of(folder: &str, messages: u64) -> Storing {
        let file = PathBuf::from(folder).join("recto.db");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let engine = Engine::over(Sqlite::open(&file).expect("a new store"));
        let at = At::new(&Tenant::default(), "bench");
        runtime.block_on(engine.open(&at, Opening::default())).expect("it is new");
        let mut storing = Storing { runtime, engine, at, number: 0 };
        while storing.number < messages {
            storing.turn();
        }
        storing
    }

    fn turn(&mut self) {
        let said = [Entry::user(words(self.number)), Entry::assistant(words(self.number + 1))];
        self.number += 2;
        self.runtime.block_on(self.engine.append(&self.at, Append::any(said))).expect("it is appended");
    }
}

impl Work for Storing {
    fn run(&mut self) -> Value {
        self.turn();
        json!({"written": written()})
    }
}

/// What this process has handed to the system to write.
fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").expect("Linux tells what a process writes");
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: ")).expect("it tells the bytes");
    line.parse().expect("a number")
}
