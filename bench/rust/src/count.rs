//! Tokens of a text.

use crate::Work;
use recto::Tokenizer;
use recto::tokens::Count;
use serde_json::{Value, json};

type Counter = Box<dyn Fn(&str) -> usize>;

pub(crate) struct Counting {
    text: String,
    counter: Counter,
}

impl Counting {
    pub(crate) fn of(peer: &str, file: &str) -> Counting {
        let text = std::fs::read_to_string(file).expect("a text");
        let counter: Counter = match peer {
            "recto" => Box::new(|text| Tokenizer::O200k.count(text).0 as usize),
            "recto tokenx" => Box::new(|text| Tokenizer::Tokenx.count(text).0 as usize),
            "recto bytes4" => Box::new(|text| Tokenizer::Bytes4.count(text).0 as usize),
            "tiktoken-rs" => {
                let bpe = tiktoken_rs::o200k_base().expect("it comes with the crate");
                Box::new(move |text| bpe.encode_ordinary(text).len())
            }
            "bpe-openai" => {
                let bpe = bpe_openai::o200k_base();
                Box::new(move |text| bpe.count(text))
            }
            peer => panic!("no peer {peer:?}"),
        };
        Counting { text, counter }
    }
}

impl Work for Counting {
    fn run(&mut self) -> Value {
        json!({"tokens": (self.counter)(&self.text)})
    }
}
