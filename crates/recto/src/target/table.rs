//! The catalogue of models: a data file that is compiled in, and files that add to it or correct it.

use super::{Cache, EditsPast, LateSystem, LongPrices, Memory, Prices, Reasoned, Target};
use crate::calibration::Calibration;
use crate::entry::Text;
use crate::error::{Error, Place};
use crate::tokens::{Tokenizer, Tokens};
use crate::wire::Wire;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Prices that were read off longer ago are said to be stale.
pub const PRICES_STALE_AFTER_DAYS: i64 = 90;
/// How many steps a model may be like another that is like another.
const LIKE_MAX: usize = 8;

const BUILT_IN: &str = include_str!("../../data/models.toml");

/// Models and what is known about them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// When the prices were read off, as year-month-day.
    #[serde(default)]
    as_of: Text,
    /// What several models have in common; no models themselves.
    #[serde(default)]
    profiles: BTreeMap<String, Row>,
    #[serde(default)]
    models: BTreeMap<String, Row>,
}

/// What a file says about a model; the rest is as with the model or profile that it is like.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    like: Option<String>,
    provider: Option<Text>,
    wire: Option<Wire>,
    window: Option<Tokens>,
    input_max: Option<Tokens>,
    output_max: Option<Tokens>,
    tokenizer: Option<Tokenizer>,
    is_counted_exactly: Option<bool>,
    factor: Option<f64>,
    worst_factor: Option<f64>,
    message_overhead: Option<Tokens>,
    request_overhead: Option<Tokens>,
    tools_overhead: Option<Tokens>,
    prices: Option<RowPrices>,
    long_prices: Option<LongPrices>,
    cache: Option<Cache>,
    memory: Option<Memory>,
    reasoning: Option<Reasoned>,
    reads: Option<Vec<Text>>,
    edits_past: Option<EditsPast>,
    late_system: Option<LateSystem>,
    merges: Option<bool>,
    result_images: Option<bool>,
    tells_errors: Option<bool>,
    chat_tools: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowPrices {
    input: f64,
    cached: f64,
    write: Option<f64>,
    output: f64,
    as_of: Option<Text>,
}

impl Catalogue {
    /// Returns the catalogue that is compiled in.
    pub fn built_in() -> &'static Catalogue {
        static BUILT_IN_ONCE: OnceLock<Catalogue> = OnceLock::new();
        BUILT_IN_ONCE.get_or_init(|| Catalogue::parse(BUILT_IN).expect("the built-in catalogue is tested"))
    }

    /// Reads a catalogue: TOML, or JSON of the same shape if it begins with `{`.
    pub fn parse(text: &str) -> Result<Catalogue, Error> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text).map_err(|error| {
                let what = crate::wire::json::without_position(&error);
                Error::input(what).at(crate::wire::json::place_of(text, &error))
            });
        }
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Error::input(error.message().to_string()).at(Place::at(text, at))
        })
    }

    /// Returns the catalogue with another's models added; of those that both know, the other's facts win one by one.
    /// What can't be resolved is an error.
    pub fn with(&self, other: &Catalogue) -> Result<Catalogue, Error> {
        let mut all = self.clone();
        all.profiles.extend(other.profiles.clone());
        for (name, row) in &other.models {
            let mut row = row.clone();
            if let Some(prices) = &mut row.prices {
                prices.as_of.get_or_insert_with(|| other.as_of.clone());
            }
            let merged = match all.models.remove(name) {
                Some(old) if row.like.is_none() => row.over(old),
                _ => row,
            };
            all.models.insert(name.clone(), merged);
        }
        let wrong = all.models.keys().find(|name| all.resolve(name).is_none());
        match wrong {
            None => Ok(all),
            Some(name) => {
                let like = all.models[name].like.clone().unwrap_or_default();
                Err(Error::settings(
                    format!("model {name:?} is like {like:?}, which leads nowhere"),
                    "name a profile or a model that there is, and none that is like itself",
                ))
            }
        }
    }

    /// Returns what is known about a model.
    pub fn target(&self, name: &str) -> Option<Target> {
        if name == "eval" {
            return Some(Target::eval());
        }
        self.resolve(name).map(|row| row.target(name, &self.as_of))
    }

    /// Returns what the catalogue states about a model's memory; `None` where it states nothing, and a target is
    /// stateless by default.
    pub fn stated_memory(&self, name: &str) -> Option<Memory> {
        self.resolve(name)?.memory
    }

    /// Returns the profile or model that a model is like.
    pub fn like(&self, name: &str) -> Option<&str> {
        self.models.get(name)?.like.as_deref()
    }

    /// Returns the names of its models, `eval` first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once("eval").chain(self.models.keys().map(String::as_str))
    }

    /// Returns when its prices were read off, as year-month-day.
    pub fn as_of(&self) -> &Text {
        &self.as_of
    }

    /// A row with everything that it takes from others.
    fn resolve(&self, name: &str) -> Option<Row> {
        let mut row = self.models.get(name)?.clone();
        for _ in 0..LIKE_MAX {
            let Some(like) = row.like.take() else { return Some(row) };
            let other = self.profiles.get(&like).or_else(|| self.models.get(&like).filter(|_| like != name))?;
            row = row.over(other.clone());
        }
        None
    }
}

impl Row {
    /// Its facts, and another's where it has none.
    fn over(self, other: Row) -> Row {
        Row {
            like: other.like,
            provider: self.provider.or(other.provider),
            wire: self.wire.or(other.wire),
            window: self.window.or(other.window),
            input_max: self.input_max.or(other.input_max),
            output_max: self.output_max.or(other.output_max),
            tokenizer: self.tokenizer.or(other.tokenizer),
            is_counted_exactly: self.is_counted_exactly.or(other.is_counted_exactly),
            factor: self.factor.or(other.factor),
            worst_factor: self.worst_factor.or(other.worst_factor),
            message_overhead: self.message_overhead.or(other.message_overhead),
            request_overhead: self.request_overhead.or(other.request_overhead),
            tools_overhead: self.tools_overhead.or(other.tools_overhead),
            long_prices: if self.prices.is_some() { self.long_prices } else { self.long_prices.or(other.long_prices) },
            prices: self.prices.or(other.prices),
            cache: self.cache.or(other.cache),
            memory: self.memory.or(other.memory),
            reasoning: self.reasoning.or(other.reasoning),
            reads: self.reads.or(other.reads),
            edits_past: self.edits_past.or(other.edits_past),
            late_system: self.late_system.or(other.late_system),
            merges: self.merges.or(other.merges),
            result_images: self.result_images.or(other.result_images),
            tells_errors: self.tells_errors.or(other.tells_errors),
            chat_tools: self.chat_tools.or(other.chat_tools),
        }
    }

    fn target(self, name: &str, as_of: &Text) -> Target {
        let plain =
            Target::plain(name, self.provider.as_deref().unwrap_or("unknown"), self.wire.unwrap_or(Wire::OpenaiChat));
        let is_counted_exactly = self.is_counted_exactly.unwrap_or(false);
        let unknown = Calibration::unknown();
        let calibration = match is_counted_exactly {
            true => Calibration::exact(),
            false => Calibration::starting_at(
                self.factor.unwrap_or(unknown.factor),
                self.worst_factor.unwrap_or(unknown.worst),
            ),
        };
        let prices = self.prices.unwrap_or_default();
        Target {
            window: self.window,
            input_max: self.input_max,
            output_max: self.output_max.unwrap_or(plain.output_max),
            tokenizer: self.tokenizer.unwrap_or(plain.tokenizer),
            is_counted_exactly,
            calibration,
            message_overhead: self.message_overhead.unwrap_or(plain.message_overhead),
            request_overhead: self.request_overhead.unwrap_or(plain.request_overhead),
            tools_overhead: self.tools_overhead.unwrap_or(plain.tools_overhead),
            prices: Prices {
                input: prices.input,
                cached: prices.cached,
                write: prices.write,
                output: prices.output,
                long: self.long_prices,
                as_of: prices.as_of.unwrap_or_else(|| as_of.clone()),
            },
            cache: self.cache.unwrap_or(plain.cache),
            memory: self.memory.unwrap_or(plain.memory),
            reasoning: self.reasoning.unwrap_or(plain.reasoning),
            reads: self.reads.unwrap_or_default(),
            edits_past: self.edits_past.unwrap_or(plain.edits_past),
            late_system: self.late_system.unwrap_or(plain.late_system),
            merges: self.merges.unwrap_or(plain.merges),
            result_images: self.result_images.unwrap_or(plain.result_images),
            tells_errors: self.tells_errors.unwrap_or(plain.tells_errors),
            chat_tools: self.chat_tools.unwrap_or(plain.chat_tools),
            ..plain
        }
    }
}
