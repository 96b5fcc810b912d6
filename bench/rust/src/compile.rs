//! The page of a history within a budget, in the provider's format.

use crate::Work;
use recto::wire::{self, Wire};
use recto::{Log, Policy, Reader, Request, Target, Tokenizer, Tokens, compile_once};
use serde_json::{Value, json};

pub(crate) struct Compiling {
    log: Log,
    reader: Reader,
    policy: Policy,
    target: Target,
}

impl Compiling {
    /// Reads a history that a client keeps, and counts it once, as a log does when it is appended to.
    pub(crate) fn of(file: &str, budget: u64) -> Compiling {
        let body = std::fs::read_to_string(file).expect("the history");
        let mut log = Log::counted_by(Tokenizer::O200k);
        for entry in Wire::OpenaiChat.decode(&body).expect("a request").entries {
            log.append(entry).expect("an entry");
        }
        let target = Target::named("gpt-4o").expect("built in").with_window(Some(Tokens(budget)));
        Compiling { log, reader: Reader::new("bench"), policy: Policy::safe(), target }
    }
}

impl Work for Compiling {
    fn run(&mut self) -> Value {
        let request = Request::new(&self.log, &self.reader, &self.policy, &self.target);
        let compiled = compile_once(&Request { reserve: Some(Tokens(0)), ..request }).expect("it fits");
        let bytes = wire::openai_chat::encode(&compiled.page, &self.target);
        json!({"messages": compiled.page.messages.len(), "bytes": bytes.len()})
    }
}
