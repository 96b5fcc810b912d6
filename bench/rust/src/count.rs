//! Tokens of a text.

use crate::Work;
use recto::Tokenizer;
use recto::tokens::Count;
use serde_json::{Value, json};

type Counter = Box<dyn Fn(&str) -> usize>;
type Encoder = fn(&str) -> Vec<u32>;

pub(crate) struct Counting {
    text: String,
    counter: Counter,
    encoder: Option<Encoder>, // none of those that only estimate
}

impl Counting {
    pub(crate) fn of(peer: &str, file: &str) -> Counting {
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
        Counting { text: text(file), counter, encoder: encoder(peer) }
    }
}

fn text(file: &str) -> String {
    std::fs::read_to_string(file).expect("a text")
}

/// Returns how a peer makes the ids of all tokens.
fn encoder(peer: &str) -> Option<Encoder> {
    match peer {
        "recto" => Some(|text| Tokenizer::O200k.ids(text).expect("it doesn't estimate")),
        "tiktoken-rs" => Some(|text| tiktoken_rs::o200k_base().expect("it comes with the crate").encode_ordinary(text)),
        "bpe-openai" => Some(|text| bpe_openai::o200k_base().encode(text)),
        _ => None,
    }
}

impl Work for Counting {
    fn run(&mut self) -> Value {
        json!({"tokens": (self.counter)(&self.text)})
    }

    fn read(&mut self, file: &str) {
        self.text = text(file);
    }

    fn ids(&self) -> Vec<u32> {
        self.encoder.map_or_else(Vec::new, |encode| encode(&self.text))
    }
}
