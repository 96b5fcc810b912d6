//! Tables that have a name of their own: `[upstream.NAME]` and `[programs.NAME]`.

use super::{Key, Reading, in_order};
use crate::codes::Code;
use crate::config::programs::{PROGRAMS, ProgramLayer};
use crate::config::upstream::{Hidden, UpstreamLayer};
use crate::config::{Layer, Set};
use crate::failure::Failure;
use recto_engine::upstream::{ClientKey, Remember};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::DeValue;

/// Tables of tables.
pub(super) const NAMED: [&str; 2] = ["upstream", "programs"];

const UPSTREAM_KEYS: [&str; 12] = [
    "url",
    "wire",
    "key_env",
    "client_key",
    "headers",
    "remember",
    "ca",
    "models",
    "plain_http",
    "timeout_seconds",
    "forward_timeout_seconds",
    "retries",
];
const PROGRAM_KEYS: [&str; 5] = ["path", "model", "arguments", "turn_limit_seconds", "silence_limit_seconds"];
pub(super) const SECONDS: RangeInclusive<u32> = 1..=86_400;
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
                "client_key" => upstream.client_key = Some(self.one_of(value, key, &ClientKey::NAMES)?),
                "headers" => upstream.headers = self.headers(value, &format!("{table}.{key}"))?,
                "remember" => upstream.remember = Some(self.one_of(value, key, &Remember::NAMES)?),
                "ca" => upstream.ca = Some(self.string(value, key)?),
                "models" => upstream.models = Some(self.strings(value, key)?),
                "plain_http" => upstream.plain_http = Some(self.flag(value, key)?),
                "timeout_seconds" => upstream.timeout_seconds = Some(self.number(value, key, SECONDS)?),
                "forward_timeout_seconds" => upstream.forward_timeout_seconds = Some(self.number(value, key, SECONDS)?),
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
    pub(super) fn variable(&self, value: &Value<'_>, key: &str) -> Result<Set<String>, Failure> {
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

    /// Reads headers. What is wrong with one is told without its value, which may be a key.
    fn headers(&self, value: &Value<'_>, table: &str) -> Result<BTreeMap<String, Hidden>, Failure> {
        let headers = in_order(self.table(value, table)?).into_iter().map(|(name, value)| {
            let name = name.get_ref().to_ascii_lowercase();
            Ok((name.clone(), Hidden(self.string(value, &name)?.value)))
        });
        headers.collect()
    }

    pub(super) fn one_of<T: Copy>(&self, value: &Value<'_>, key: &str, known: &[(&str, T)]) -> Result<Set<T>, Failure> {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let expected = format!("expected one of: {}", names.join(", "));
        let DeValue::String(text) = value.get_ref() else { return Err(self.wrong(value, key, &expected)) };
        match known.iter().find(|(name, _)| name == text) {
            Some((_, one)) => Ok(self.found(value, *one)),
            None => {
                let failure = self.refused(Code::BadKeyValue, value.span().start, format!("{key} can't be {text:?}"));
                Err(failure.suggesting(text, names).hinting(expected))
            }
        }
    }

    pub(super) fn strings(&self, value: &Value<'_>, key: &str) -> Result<Set<Vec<String>>, Failure> {
        let DeValue::Array(values) = value.get_ref() else { return Err(self.wrong(value, key, STRINGS)) };
        let strings: Result<Vec<String>, Failure> =
            values.iter().map(|it| self.string(it, &format!("an item of {key}")).map(|set| set.value)).collect();
        Ok(self.found(value, strings?))
    }

    pub(super) fn flag(&self, value: &Value<'_>, key: &str) -> Result<Set<bool>, Failure> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(self.found(value, *flag)),
            _ => Err(self.wrong(value, key, A_FLAG)),
        }
    }

    pub(super) fn number(&self, value: &Value<'_>, key: &str, among: RangeInclusive<u32>) -> Result<Set<u32>, Failure> {
        let expected = format!("expected a number from {} to {}", among.start(), among.end());
        let DeValue::Integer(number) = value.get_ref() else { return Err(self.wrong(value, key, &expected)) };
        let read = u32::from_str_radix(number.as_str(), number.radix()).ok();
        match read.filter(|number| among.contains(number)) {
            Some(number) => Ok(self.found(value, number)),
            None => Err(self.bad(value, format!("{key} can't be {}", number.as_str()), &expected)),
        }
    }
}
