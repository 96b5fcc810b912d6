//! One configuration file: what it sets, and where. Whatever it can't mean is refused.

mod named; // tables that have a name of their own

use super::{Content, Layer, Origin, Set, SummarizerLayer, summarizer};
use crate::args;
use crate::codes::Code;
use crate::failure::Failure;
use crate::models::{FileModels, suggesting_field};
use crate::paint::Colour;
use crate::source;
use crate::talk::{Level, Spelling};
use recto::Tokens;
use recto::error::Place;
use recto::redact::Redact;
use recto::target::Catalogue;
use recto::wire::Wire;
use recto_engine::summarize::Mode;
use serde::Deserialize;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Tables and their keys.
const KEYS: [(&str, &[&str]); 8] = [
    ("defaults", &["for", "wire", "window", "reserve", "policy"]),
    ("store", &["path", "redact_at_rest"]),
    ("server", &["listen", "hosts", "shutdown_seconds", "body_mib", "requests_per_tenant"]),
    ("output", &["color"]),
    ("log", &["format", "level", "requests"]),
    ("retention", &["days", "keep"]),
    ("tracing", &["endpoint"]),
    ("summarizer", summarizer::KEYS),
];
const SHUTDOWN_SECONDS: RangeInclusive<u32> = 0..=3_600;
const BODY_MIB: RangeInclusive<u32> = 1..=1_024;
const REQUESTS_PER_TENANT: RangeInclusive<u32> = 1..=100_000;
const RETENTION_DAYS: RangeInclusive<u32> = 1..=100_000;
/// Tables of models; their keys are those of the catalogue.
const OF_MODELS: [&str; 2] = ["models", "profiles"];

const A_STRING: &str = "expected a string";
const A_SIZE: &str = "expected a number of tokens such as 32000 or \"32k\"";
const A_URL: &str = "expected the URL of a collector such as \"http://127.0.0.1:4318\"";
const A_COLOUR: &str = "expected \"auto\", \"always\" or \"never\"";

/// Reads what a file sets.
pub(super) fn read(path: &Path) -> Result<Content, Failure> {
    of(path, &source::file_text(path, &source::CONFIG)?)
}

/// Reads what the text of a file sets.
pub(super) fn of(path: &Path, text: &str) -> Result<Content, Failure> {
    let reading = Reading { path, text };
    reading.content().map_err(|failure| failure.during(format!("cannot use {}", path.display())))
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reading<'_> {
    fn content(&self) -> Result<Content, Failure> {
        let table = DeTable::parse(self.text).map_err(|error| self.malformed(&error))?;
        let mut layer = Layer::default();
        for (name, value) in in_order(table.get_ref()) {
            let (name_at, name) = (name.span().start, name.get_ref().as_ref());
            if OF_MODELS.contains(&name) {
                self.table(value, name)?;
                continue;
            }
            if named::NAMED.contains(&name) {
                self.named(&mut layer, name, value)?;
                continue;
            }
            let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == name) else {
                return Err(self.unknown_table(name_at, name));
            };
            for (key, value) in in_order(self.table(value, name)?) {
                let (key_at, key) = (key.span().start, key.get_ref().as_ref());
                if !keys.contains(&key) {
                    return Err(self.unknown_key(key_at, key, name, keys));
                }
                self.set(&mut layer, name, key, value)?;
            }
        }
        Ok(Content { layer, models: self.models(table)? })
    }

    fn table<'v, 'i>(&self, value: &'v Spanned<DeValue<'i>>, name: &str) -> Result<&'v DeTable<'i>, Failure> {
        match value.get_ref() {
            DeValue::Table(values) => Ok(values),
            _ => Err(self.wrong(value, name, &format!("expected a table: [{name}]"))),
        }
    }

    /// What the file says about models, if it does.
    fn models(&self, table: Spanned<DeTable<'_>>) -> Result<Option<FileModels>, Failure> {
        let span = table.span();
        let of_models: DeTable<'_> =
            table.into_inner().into_iter().filter(|(name, _)| OF_MODELS.contains(&name.get_ref().as_ref())).collect();
        let place = |key: &Key<'_>| Place::at(self.text, key.span().start);
        let Some(first) = in_order(&of_models).first().map(|(key, _)| place(key)) else { return Ok(None) };
        let models = of_models.get("models").map(Spanned::get_ref);
        let named = models.and_then(|value| if let DeValue::Table(models) = value { Some(models) } else { None });
        let keys = named.map(in_order).unwrap_or_default().into_iter();
        let places = keys.map(|(key, _)| (key.get_ref().to_string(), place(key))).collect();
        let read = Catalogue::deserialize(toml::Deserializer::from(Spanned::new(span, of_models)));
        let catalogue = read.map_err(|error| {
            let message = error.message().replace('\n', ", ");
            let code = if message.starts_with("unknown field") { Code::UnknownKey } else { Code::BadKeyValue };
            let at = error.span().map_or(0, |span| span.start);
            suggesting_field(self.refused(code, at, &message), &message)
        })?;
        Ok(Some(FileModels { path: self.path.into(), catalogue, places, first }))
    }

    fn set(&self, layer: &mut Layer, table: &str, key: &str, value: &Spanned<DeValue<'_>>) -> Result<(), Failure> {
        match (table, key) {
            ("defaults", "for") => layer.model = Some(self.string(value, key)?),
            ("defaults", "wire") => layer.wire = Some(self.wire(value, key)?),
            ("defaults", "policy") => layer.policy = Some(self.string(value, key)?),
            ("defaults", "window") => layer.window = Some(self.size(value, key)?),
            ("defaults", "reserve") => layer.reserve = Some(self.size(value, key)?),
            ("store", "path") => layer.store = Some(self.string(value, key)?),
            ("store", _) => layer.redact_at_rest = Some(self.kinds(value, key)?),
            ("server", "listen") => layer.server.listen = Some(self.address(value, key)?),
            ("server", "hosts") => layer.server.hosts = Some(self.strings(value, key)?),
            ("server", "shutdown_seconds") => {
                layer.server.shutdown_seconds = Some(self.number(value, key, SHUTDOWN_SECONDS)?);
            }
            ("server", "body_mib") => layer.server.body_mib = Some(self.number(value, key, BODY_MIB)?),
            ("server", _) => layer.server.requests_per_tenant = Some(self.number(value, key, REQUESTS_PER_TENANT)?),
            ("log", "format") => layer.log.format = Some(self.one_of(value, key, &Spelling::NAMES)?),
            ("log", "level") => layer.log.level = Some(self.one_of(value, key, &Level::NAMES)?),
            ("log", _) => layer.log.requests = Some(self.flag(value, key)?),
            ("retention", "days") => layer.retention.days = Some(self.number(value, key, RETENTION_DAYS)?),
            ("retention", _) => layer.retention.keep = Some(self.strings(value, key)?),
            ("tracing", _) => layer.tracing.endpoint = Some(self.url(value, key)?),
            ("summarizer", _) => self.summarizer(&mut layer.summarizer, key, value)?,
            _ => layer.colour = Some(self.colour(value, key)?),
        }
        Ok(())
    }

    fn summarizer(&self, layer: &mut SummarizerLayer, key: &str, value: &Spanned<DeValue<'_>>) -> Result<(), Failure> {
        match key {
            "upstream" => layer.upstream = Some(self.string(value, key)?),
            "url" => layer.url = Some(self.string(value, key)?),
            "wire" => layer.wire = Some(self.wire(value, key)?),
            "key_env" => layer.key_env = Some(self.variable(value, key)?),
            "models" => layer.models = Some(self.strings(value, key)?),
            "mode" => layer.mode = Some(self.one_of(value, key, &Mode::NAMES)?),
            "wait_seconds" => layer.wait_seconds = Some(self.number(value, key, summarizer::WAIT_SECONDS)?),
            "timeout_seconds" => layer.timeout_seconds = Some(self.number(value, key, named::SECONDS)?),
            "background" => layer.background = Some(self.number(value, key, summarizer::AT_ONCE)?),
            "output_tokens" => layer.output_tokens = Some(self.size(value, key)?),
            _ => {
                for (name, value) in in_order(self.table(value, key)?) {
                    let name = name.get_ref().to_string();
                    let prompt = self.string(value, &name)?;
                    layer.prompts.insert(name, prompt);
                }
            }
        }
        Ok(())
    }

    fn string(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<Set<String>, Failure> {
        match value.get_ref() {
            DeValue::String(text) if text.is_empty() => Err(self.bad(value, format!("{key} is empty"), A_STRING)),
            DeValue::String(text) => Ok(self.found(value, text.to_string())),
            _ => Err(self.wrong(value, key, A_STRING)),
        }
    }

    /// Names of what can be redacted.
    fn kinds(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<Set<Vec<String>>, Failure> {
        let kinds = self.strings(value, key)?;
        let redact = Redact { find: kinds.value.iter().map(|it| it.as_str().into()).collect(), ..Redact::default() };
        let wrong = redact.redactor().err();
        wrong.map_or(Ok(kinds), |error| {
            Err(self.bad(value, format!("{key}: {error}"), &error.hint().unwrap_or_default()))
        })
    }

    fn size(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<Set<Tokens>, Failure> {
        let tokens = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok().map(Tokens),
            DeValue::String(text) => args::tokens(text).ok(),
            _ => return Err(self.wrong(value, key, A_SIZE)),
        };
        let shown = || self.text.get(value.span()).unwrap_or_default();
        let tokens = tokens.ok_or_else(|| self.bad(value, format!("{key} can't be {}", shown()), A_SIZE))?;
        Ok(self.found(value, tokens))
    }

    fn address(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<Set<SocketAddr>, Failure> {
        let text = self.string(value, key)?.value;
        match args::address(&text) {
            Ok(address) => Ok(self.found(value, address)),
            Err(expected) => Err(self.bad(value, format!("{key} can't be {text:?}"), &expected)),
        }
    }

    fn url(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<Set<String>, Failure> {
        let url = self.string(value, key)?;
        let is_url = url.value.starts_with("http://") || url.value.starts_with("https://");
        if is_url { Ok(url) } else { Err(self.bad(value, format!("{key} can't be {:?}", url.value), A_URL)) }
    }

    fn wire(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<Set<Wire>, Failure> {
        let names = Wire::ALL.map(Wire::name);
        let expected = format!("expected one of: {}", names.join(", "));
        let DeValue::String(text) = value.get_ref() else { return Err(self.wrong(value, key, &expected)) };
        text.parse().map(|wire| self.found(value, wire)).map_err(|_| {
            let failure = self.refused(Code::BadKeyValue, value.span().start, format!("{key} can't be {text:?}"));
            failure.suggesting(text, names).hinting(expected)
        })
    }

    fn colour(&self, value: &Spanned<DeValue<'_>>, key: &str) -> Result<Set<Colour>, Failure> {
        let DeValue::String(text) = value.get_ref() else { return Err(self.wrong(value, key, A_COLOUR)) };
        match Colour::NAMES.iter().find(|(name, _)| name == text) {
            Some((_, colour)) => Ok(self.found(value, *colour)),
            None => {
                let failure = self.refused(Code::BadKeyValue, value.span().start, format!("{key} can't be {text:?}"));
                Err(failure.suggesting(text, Colour::NAMES.iter().map(|(name, _)| *name)).hinting(A_COLOUR))
            }
        }
    }

    fn found<T>(&self, at: &Spanned<DeValue<'_>>, value: T) -> Set<T> {
        self.found_at(at.span().start, value)
    }

    fn found_at<T>(&self, at: usize, value: T) -> Set<T> {
        let place = Place::at(self.text, at);
        Set { value, origin: Origin::File { path: self.path.into(), place } }
    }

    fn malformed(&self, error: &toml::de::Error) -> Failure {
        let at = error.span().map_or(0, |span| span.start);
        self.refused(Code::BadToml, at, error.message().replace('\n', ", ")).hinting("the file is not valid TOML here")
    }

    fn unknown_table(&self, at: usize, name: &str) -> Failure {
        let failure = self.refused(Code::UnknownKey, at, format!("unknown key {name:?}"));
        match KEYS.iter().find(|(_, keys)| keys.contains(&name)) {
            Some((table, _)) => failure.hinting(format!("{name:?} belongs under [{table}]")),
            None => {
                let tables = KEYS.iter().map(|(table, _)| *table).chain(OF_MODELS).chain(named::NAMED);
                failure.suggesting(name, tables).hinting(
                    "known tables: [defaults], [store], [server], [output], [log], [retention], [tracing], [summarizer], \
                     [upstream], [programs], [models], [profiles]",
                )
            }
        }
    }

    fn unknown_key(&self, at: usize, key: &str, table: &str, known: &[&str]) -> Failure {
        let failure = self.refused(Code::UnknownKey, at, format!("unknown key {key:?} in [{table}]"));
        match KEYS.iter().find(|(_, keys)| keys.contains(&key)) {
            Some((table, _)) => failure.hinting(format!("{key:?} belongs under [{table}]")),
            None => failure
                .suggesting(key, known.iter().copied())
                .hinting(format!("known keys of [{table}]: {}", known.join(", "))),
        }
    }

    /// A value of another type than the key has.
    fn wrong(&self, value: &Spanned<DeValue<'_>>, key: &str, expected: &str) -> Failure {
        let kind = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.bad(value, format!("{key} is {kind}"), expected)
    }

    fn bad(&self, value: &Spanned<DeValue<'_>>, what: String, expected: &str) -> Failure {
        self.refused(Code::BadKeyValue, value.span().start, what).hinting(expected)
    }

    fn refused(&self, code: Code, at: usize, what: impl std::fmt::Display) -> Failure {
        let Place { line, column } = Place::at(self.text, at);
        Failure::of(code, format!("line {line}, column {column}: {what}"))
    }
}

/// The entries of a table as they stand in the file, so that the first mistake is the one that is told.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Key<'i>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

type Key<'i> = Spanned<toml::de::DeString<'i>>;
