//! Facts about models, as data.

use crate::entry::Text;
use crate::tokens::{Tokenizer, Tokens};
use serde::Serialize;

/// What is known about a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// The name the provider knows it by.
    pub name: Text,
    /// Whose it is; what only another provider understands is not sent to it.
    pub provider: Text,
    /// How many tokens input and output may have together; `None` is taken as unbounded, and so is 0.
    pub window: Option<Tokens>,
    /// The longest answer.
    pub output_max: Tokens,
    /// Its tokenizer, or the nearest that is published.
    pub tokenizer: Tokenizer,
    /// Whether that tokenizer is its own.
    pub is_counted_exactly: bool,
    /// What a message costs beside its content.
    pub message_overhead: Tokens,
    /// What every request costs beside its messages.
    pub request_overhead: Tokens,
    /// What tokens cost.
    pub prices: Prices,
    /// Whether the provider remembers what it was sent.
    pub memory: Memory,
    /// Whether visible reasoning can be sent back.
    pub reasoning: Reasoned,
    /// Whether a tool result may hold pictures.
    pub result_images: bool,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prices {
    /// Input that is neither read from nor written to a cache.
    pub input: f64,
    /// Input read from the prompt cache.
    pub cached: f64,
    /// Input written to the prompt cache, where that has a price of its own.
    pub write: Option<f64>,
    /// When they were read off, as year-month-day.
    pub as_of: &'static str,
}

/// Whether a provider remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Every request carries everything.
    Stateless,
    /// A session holds what was sent; requests carry what is new.
    Session,
}

/// What a target does with a model's earlier reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoned {
    /// It can't be sent back.
    Dropped,
    /// Visible text is sent back.
    Text,
}

/// Provider, name, window, longest output, prices for input and for cached input.
type Row = (&'static str, &'static str, u64, u64, f64, f64);

const PRICES_AS_OF: &str = "2026-11-15";
/// Models that take tools over the Chat Completions format.
const MODELS: &[Row] = &[
    ("openai", "gpt-4o", 128_000, 16_384, 2.5, 1.25),
    ("openai", "gpt-4.1", 1_047_576, 32_768, 2.0, 0.5),
    ("openai", "gpt-5.2", 400_000, 128_000, 1.75, 0.175),
    ("deepseek", "deepseek-v4-flash", 1_000_000, 393_216, 0.3, 0.006),
    ("moonshot", "kimi-k3", 1_048_576, 1_048_576, 3.0, 0.3),
];

impl Target {
    /// Returns a built-in target by name.
    pub fn named(name: &str) -> Option<Target> {
        if name == "eval" {
            return Some(Target::eval());
        }
        MODELS.iter().find(|row| row.1 == name).map(|&(provider, name, window, output_max, input, cached)| Target {
            name: name.into(),
            provider: provider.into(),
            window: Some(Tokens(window)),
            output_max: Tokens(output_max),
            tokenizer: Tokenizer::O200k,
            is_counted_exactly: provider == "openai",
            message_overhead: Tokens(3),
            request_overhead: Tokens(3),
            prices: Prices { input, cached, write: None, as_of: PRICES_AS_OF },
            memory: Memory::Stateless,
            reasoning: Reasoned::Dropped,
            result_images: false,
        })
    }

    /// Returns the names of the built-in targets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once("eval").chain(MODELS.iter().map(|row| row.1))
    }

    /// Returns the target for comparing policies: a token is four bytes, reading the cache costs a tenth and
    /// writing it five quarters of the plain price, the window is a million, and four tokens go to each message.
    pub fn eval() -> Target {
        Target {
            name: "eval".into(),
            provider: "openai".into(),
            window: Some(Tokens(1_000_000)),
            output_max: Tokens(32_000),
            tokenizer: Tokenizer::Bytes4,
            is_counted_exactly: true,
            message_overhead: Tokens(4),
            request_overhead: Tokens(0),
            prices: Prices { input: 1.0, cached: 0.1, write: Some(1.25), as_of: PRICES_AS_OF },
            memory: Memory::Stateless,
            reasoning: Reasoned::Text,
            result_images: false,
        }
    }

    /// Returns the target with another window.
    #[must_use]
    pub fn with_window(mut self, window: Option<Tokens>) -> Target {
        self.window = window;
        self
    }
}
