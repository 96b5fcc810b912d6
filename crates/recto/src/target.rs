//! Facts about models, as data.

mod table;

use crate::calibration::Calibration;
use crate::entry::Text;
use crate::tokens::{Tokenizer, Tokens};
use crate::wire::Wire;
use serde::{Deserialize, Serialize};

pub use table::{Catalogue, PRICES_STALE_AFTER_DAYS};

/// What is known about a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The name the provider knows it by.
    pub name: Text,
    /// Whose it is; what only another provider understands is not sent to it.
    pub provider: Text,
    /// The format it is spoken to in.
    pub wire: Wire,
    /// How many tokens input and output may have together; `None` is taken as unbounded, and so is 0.
    pub window: Option<Tokens>,
    /// How many tokens the input may have, where that is less than the window leaves.
    pub input_max: Option<Tokens>,
    /// The longest answer.
    pub output_max: Tokens,
    /// Its tokenizer, or the nearest that is published.
    pub tokenizer: Tokenizer,
    /// Whether that tokenizer is its own.
    pub is_counted_exactly: bool,
    /// How its own count relates to that of the tokenizer.
    pub calibration: Calibration,
    /// What a message costs beside its content.
    pub message_overhead: Tokens,
    /// What every request costs beside its messages.
    pub request_overhead: Tokens,
    /// What a request costs more when it offers tools, beside their definitions.
    pub tools_overhead: Tokens,
    /// What tokens cost.
    pub prices: Prices,
    /// How its prompt cache works.
    pub cache: Cache,
    /// Whether the provider remembers what it was sent.
    pub memory: Memory,
    /// What becomes of instructions where it does.
    #[serde(default)]
    pub instructions: Instructions,
    /// Whether earlier reasoning can be sent back.
    pub reasoning: Reasoned,
    /// Whose sealed reasoning it can read beside its own: names of models, or what they begin with.
    pub reads: Vec<Text>,
    /// What an edit of the past does to the reasoning after it.
    pub edits_past: EditsPast,
    /// How it takes instructions that come after the conversation has begun.
    pub late_system: LateSystem,
    /// Whether neighbouring messages of one role must be one.
    pub merges: bool,
    /// Whether a tool result may hold pictures.
    pub result_images: bool,
    /// Whether a failed tool result must say so in its text, because the format has no field for it.
    pub tells_errors: bool,
    /// Whether it takes tools together with reasoning over the Chat format.
    pub chat_tools: bool,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Input that is neither read from nor written to a cache.
    pub input: f64,
    /// Input read from the prompt cache.
    pub cached: f64,
    /// Input written to the prompt cache, where that has a price of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<f64>,
    /// Output.
    #[serde(default)]
    pub output: f64,
    /// Prices of the whole request if its input is longer than a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrices>,
    /// When they were read off, as year-month-day.
    #[serde(default)]
    pub as_of: Text,
}

/// Prices of requests with a long input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrices {
    /// They hold for the whole request if its input has more tokens than this.
    pub above: Tokens,
    /// Input that is neither read from nor written to a cache.
    pub input: f64,
    /// Input read from the prompt cache.
    pub cached: f64,
    /// Input written to the prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<f64>,
    /// Output.
    pub output: f64,
}

/// How a provider's prompt cache works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Where what is cached ends.
    pub kind: Caching,
    /// The shortest beginning that is cached.
    #[serde(default)]
    pub min: Tokens,
    /// How long it is held after it was last read or written.
    #[serde(default = "Cache::usual_life")]
    pub life_seconds: u32,
}

impl Cache {
    fn usual_life() -> u32 {
        300
    }
}

/// Where what a provider caches of a prompt can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    /// Nothing is cached.
    Off,
    /// Whatever stands unchanged, in steps of so many tokens.
    Prefix(Tokens),
    /// At marks alone, of which a request may have four.
    Marks,
    /// At marks, and by itself at the end of the newest message.
    MarksAndEnd,
}

/// Whether a provider remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Every request carries everything.
    Stateless,
    /// A session holds what was sent; requests carry what is new.
    Session,
}

/// What becomes of instructions that a provider with a memory was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instructions {
    /// They stay where they were said.
    #[default]
    Kept,
    /// They are given anew at every call, and forgotten after it.
    Replaced,
}

/// What a target does with a model's earlier reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoned {
    /// It can't be sent back.
    Dropped,
    /// Visible text is sent back.
    Text,
    /// What the provider sealed is sent back to it as it came; nothing else is.
    Sealed,
}

/// What an edit of the past does to the reasoning after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditsPast {
    /// Nothing.
    Free,
    /// Reasoning is bound to what stood before it when it was made: behind anything else it can't be sent.
    DropsLaterReasoning,
}

/// How instructions are taken that come after the conversation has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateSystem {
    /// As they are.
    Keep,
    /// In the user's place, and marked.
    ToUser,
}

impl Target {
    /// Returns a built-in target by name.
    pub fn named(name: &str) -> Option<Target> {
        Catalogue::built_in().target(name)
    }

    /// Returns the names of the built-in targets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Catalogue::built_in().names()
    }

    /// Returns the target for comparing policies: a token is four bytes, reading the cache costs a tenth and
    /// writing it five quarters of the plain price, the window is a million, and four tokens go to each message.
    pub fn eval() -> Target {
        Target {
            output_max: Tokens(32_000),
            tokenizer: Tokenizer::Bytes4,
            is_counted_exactly: true,
            message_overhead: Tokens(4),
            request_overhead: Tokens(0),
            prices: Prices {
                input: 1.0,
                cached: 0.1,
                write: Some(1.25),
                output: 0.0,
                long: None,
                as_of: Catalogue::built_in().as_of().clone(),
            },
            reasoning: Reasoned::Text,
            tells_errors: false,
            ..Target::plain("eval", "openai", Wire::OpenaiChat).with_window(Some(Tokens(1_000_000)))
        }
    }

    /// Returns what is safe to take for granted about a model of which nothing is known. No Claude that still answers
    /// has a window below 200,000, so a new one is not kept from what the oldest can read.
    pub fn unknown(name: &str) -> Target {
        let (provider, wire, window) = match name {
            name if name.starts_with("claude") => ("anthropic", Wire::Anthropic, Tokens(200_000)),
            name if name.starts_with("gemini") => ("google", Wire::Gemini, Tokens(32_000)),
            _ => ("unknown", Wire::OpenaiChat, Tokens(32_000)),
        };
        let mut target = Target::plain(name, provider, wire).with_window(Some(window));
        target.calibration = Calibration::unknown();
        (target.late_system, target.merges) = (LateSystem::ToUser, true);
        target
    }

    /// A stateless target without prices.
    fn plain(name: &str, provider: &str, wire: Wire) -> Target {
        let target = Target {
            name: name.into(),
            provider: provider.into(),
            wire,
            window: None,
            input_max: None,
            output_max: Tokens(4_096),
            tokenizer: Tokenizer::O200k,
            is_counted_exactly: false,
            calibration: Calibration::exact(),
            message_overhead: Tokens(3),
            request_overhead: Tokens(3),
            tools_overhead: Tokens(0),
            prices: Prices::default(),
            cache: Cache { kind: Caching::Prefix(Tokens(1)), min: Tokens(0), life_seconds: Cache::usual_life() },
            memory: Memory::Stateless,
            instructions: Instructions::Kept,
            reasoning: Reasoned::Dropped,
            reads: Vec::new(),
            edits_past: EditsPast::Free,
            late_system: LateSystem::Keep,
            merges: false,
            result_images: false,
            tells_errors: true,
            chat_tools: true,
        };
        target.over(wire)
    }

    /// Returns the target as it is when it is spoken to in another format.
    #[must_use]
    pub fn over(mut self, wire: Wire) -> Target {
        self.wire = wire;
        self.result_images = !matches!(wire, Wire::OpenaiChat | Wire::Ollama);
        self.tells_errors = !matches!(wire, Wire::Anthropic | Wire::Gemini);
        if matches!(wire, Wire::Anthropic | Wire::Gemini) {
            self.late_system = LateSystem::ToUser;
        }
        if matches!(wire, Wire::OpenaiChat | Wire::Ollama) && self.reasoning == Reasoned::Sealed {
            self.reasoning = Reasoned::Dropped;
            self.edits_past = EditsPast::Free;
        }
        self
    }

    /// Returns the target with another window.
    #[must_use]
    pub fn with_window(mut self, window: Option<Tokens>) -> Target {
        self.window = window;
        self
    }

    /// Returns the target as one that remembers what it was sent.
    #[must_use]
    pub fn remembering(self, instructions: Instructions) -> Target {
        Target { memory: Memory::Session, instructions, ..self }
    }

    /// Returns whether all instructions stand at the head of every page, because they are forgotten after it.
    pub(crate) fn forgets_instructions(&self) -> bool {
        self.memory == Memory::Session && self.instructions == Instructions::Replaced
    }

    /// Returns whether reasoning that a model sealed can go to it.
    pub fn reads_reasoning_of(&self, provider: Option<&str>, model: Option<&str>) -> bool {
        let begins = |model: &str, name: &str| {
            // Dated releases of one model are that model.
            model
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("-20") || rest.starts_with('@'))
        };
        let is_own = |model: &str| begins(model, &self.name) || begins(&self.name, model);
        let is_read = |model: &str| {
            self.reads.iter().any(|it| match it.strip_suffix('*') {
                Some(start) => model.starts_with(start),
                None => begins(model, it),
            })
        };
        provider == Some(&*self.provider) && model.is_none_or(|model| is_own(model) || is_read(model))
    }
}
