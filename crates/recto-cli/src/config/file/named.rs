//! Tables that have a name of their own: `[upstream.NAME]` and `[programs.NAME]`.

use super::{Key, Reading, in_order};
use crate::codes::Code;
use crate::config::programs::{PROGRAMS, ProgramLayer};
use crate::config::upstream::UpstreamLayer;
use crate::config::{Layer, Set};
use crate::failure::Failure;
use recto_engine::upstream::Remember;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::DeValue;

/// Tables of tables.
pub(super) const NAMED: [&str; 2] = ["upstream", "programs"];

const UPSTREAM_KEYS: [&str; 9] =
    ["url", "wire", "key_env", "remember", "ca", "models", "plain_http", "timeout_seconds", "retries"];
const PROGRAM_KEYS: [&str; 5] = ["path", "model", "arguments", "turn_limit_seconds", "silence_limit_seconds"];
const SECONDS: RangeInclusive<u32> = 1..=86_400;
const RETRIES: RangeInclusive<u32> = 0..=10;
const VARIABLE_CHARS_MAX: usize = 64;

const STRINGS: &str = "expected an array of strings";
const A_FLAG: &str = "expected true or false";
const A_VARIABLE: &str = "put the key into a variable of the environment, and the name of that variable here";

type Value<'i> = Spanned<DeValue<'i>>;

impl Reading<'_> {
    /// Reads a table of tables.
    pub(super) fn named(&self, layer: &mut Layer, table: &str, value: &Value<'_>) -> Result<(), Failure> {
        for (name, value) in in_order(self.table(value, table)?) {
            match table {
                "upstream" => layer.upstreams.push(self.upstream(name, value)?),
                _ => self.program(layer, name, value)?,
            }
        }
        Ok(())
    }

    fn upstream(&self, name: &Key<'_>, value: &Value<'_>) -> Result<UpstreamLayer, Failure> {
        let table = format!("upstream.{}", name.get_ref());
        let mut upstream = UpstreamLayer::named(self.found_at(name.span().start, name.get_ref().to_string()));
        for (key, value) in in_order(self.table(value, &table)?) {
            let (key_at, key) = (key.span().start, key.get_ref().as_ref());
            match key {
                "url" => upstream.url = Some(self.string(value, key)?),
                "wire" => upstream.wire = Some(self.wire(value, key)?),
                "key_env" => upstream.key_env = Some(self.variable(value, key)?),
                "remember" => upstream.remember = Some(self.remember(value, key)?),
                "ca" => upstream.ca = Some(self.string(value, key)?),
                "models" => upstream.models = Some(self.strings(value, key)?),
                "plain_http" => upstream.plain_http = Some(self.flag(value, key)?),
                "timeout_seconds" => upstream.timeout_seconds = Some(self.number(value, key, SECONDS)?),
                "retries" => upstream.retries = Some(self.number(value, key, RETRIES)?),
                _ => return Err(self.unknown_key(key_at, key, &table, &UPSTREAM_KEYS)),
            }
        }
        Ok(upstream)
    }

    fn program(&self, layer: &mut Layer, name: &Key<'_>, value: &Value<'_>) -> Result<(), Failure> {
        let Some(known) = PROGRAMS.into_iter().find(|known| known == name.get_ref()) else {
            let what = format!("unknown program {:?}", name.get_ref());
            let failure = self.refused(Code::UnknownKey, name.span().start, what);
            return Err(failure
                .suggesting(name.get_ref(), PROGRAMS)
                .hinting(format!("known: {}", PROGRAMS.join(", "))));
        };
        let table = format!("programs.{known}");
        let mut program = ProgramLayer::default();
        for (key, value) in in_order(self.table(value, &table)?) {
            let (key_at, key) = (key.span().start, key.get_ref().as_ref());
            match key {
                "path" => program.path = Some(self.string(value, key)?),
                "model" => program.model = Some(self.string(value, key)?),
                "arguments" => program.arguments = Some(self.strings(value, key)?),
                "turn_limit_seconds" => program.turn_limit_seconds = Some(self.number(value, key, SECONDS)?),
                "silence_limit_seconds" => program.silence_limit_seconds = Some(self.number(value, key, SECONDS)?),
                _ => return Err(self.unknown_key(key_at, key, &table, &PROGRAM_KEYS)),
            }
        }
        layer.programs.insert(known, program);
        Ok(())
    }

    /// Reads the name of a variable. What is none may be the key itself, and is not shown.
    fn variable(&self, value: &Value<'_>, key: &str) -> Result<Set<String>, Failure> {
        let name = self.string(value, key)?;
        let is_name = |text: &str| {
            let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            text.len() <= VARIABLE_CHARS_MAX && text.chars().all(is_letter) && !text.starts_with(char::is_numeric)
        };
        match is_name(&name.value) {
            true => Ok(name),
            false => Err(self.bad(value, format!("{key} is not the name of a variable"), A_VARIABLE)),
        }
    }

    fn remember(&self, value: &Value<'_>, key: &str) -> Result<Set<Remember>, Failure> {
        let names = Remember::NAMES.map(|(name, _)| name);
        let expected = format!("expected one of: {}", names.join(", "));
        let DeValue::String(text) = value.get_ref() else { return Err(self.wrong(value, key, &expected)) };
        match Remember::NAMES.iter().find(|(name, _)| name == text) {
            Some((_, remember)) => Ok(self.found(value, *remember)),
            None => {
                let failure = self.refused(Code::BadKeyValue, value.span().start, format!("{key} can't be {text:?}"));
                Err(failure.suggesting(text, names).hinting(expected))
            }
        }
    }

    fn strings(&self, value: &Value<'_>, key: &str) -> Result<Set<Vec<String>>, Failure> {
        let DeValue::Array(values) = value.get_ref() else { return Err(self.wrong(value, key, STRINGS)) };
        let strings: Result<Vec<String>, Failure> =
            values.iter().map(|it| self.string(it, &format!("an item of {key}")).map(|set| set.value)).collect();
        Ok(self.found(value, strings?))
    }

    fn flag(&self, value: &Value<'_>, key: &str) -> Result<Set<bool>, Failure> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(self.found(value, *flag)),
            _ => Err(self.wrong(value, key, A_FLAG)),
        }
    }

    fn number(&self, value: &Value<'_>, key: &str, among: RangeInclusive<u32>) -> Result<Set<u32>, Failure> {
        let expected = format!("expected a number from {} to {}", among.start(), among.end());
        let DeValue::Integer(number) = value.get_ref() else { return Err(self.wrong(value, key, &expected)) };
        let read = u32::from_str_radix(number.as_str(), number.radix()).ok();
        match read.filter(|number| among.contains(number)) {
            Some(number) => Ok(self.found(value, number)),
            None => Err(self.bad(value, format!("{key} can't be {}", number.as_str()), &expected)),
        }
    }
}
